# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk fails reads, writes, discards or flushes, completely or in single sectors: the
# application gets the errno that it would get on the server. Other I/O continues, and all I/O
# succeeds when the disk works again.
# Modules: ours

sectors=$((16 << 11))

# On top of a disk with a write cache.
lower=$(null lower 16 cache_size=1 discard=1)
set_up
disk=$(dm broken "0 $sectors linear $lower 0")
dev=$(map s1 "$disk")
equal "write cache" "$(queue "$dev" write_cache)" "write back"
expect_io "0 0 0 0" "$dev" write:0:1m:a fsync read:0:1m:a discard:8m:64k

say "all I/O fails"
dm_table broken "0 $sectors error"
expect_io "EIO EIO EIO EIO" "$dev" read:0:4k write:0:4k:b read:0:1m write:0:1m:b
expect_io EIO "$dev" zeroes:8m:64k
dm_table broken "0 $sectors linear $lower 0"
expect_io "0 0 0" "$dev" read:0:1m:a write:1m:1m:b read:1m:1m:b

say "all I/O fails, without a moment's warning"
dm_table broken "0 $sectors flakey $lower 0 0 1000"
expect_io "EIO EIO EIO" "$dev" read:0:4k write:0:4k:b fsync

say "writes fail, and so do flushes: that is for fsync to say"
dm_table broken "0 $sectors flakey $lower 0 0 1000 1 error_writes"
expect_io "0 EIO EIO EIO EIO" "$dev" read:0:1m:a write:0:4k:b discard:8m:64k zeroes:8m:64k fsync
# The same for data in the page cache
expect_io "0 EIO" "$dev" buffered:0:64k:c fsync
dm_table broken "0 $sectors linear $lower 0"
expect_io "0 0 0" "$dev" write:0:1m:d fsync read:0:1m:d

say "one piece of the disk fails"
dm_table broken "0 8192 linear $lower 0" "8192 8 error" "8200 $((sectors - 8200)) linear $lower 8200"
expect_io "0 EIO 0 EIO EIO" "$dev" write:4092k:4k:e write:4m:4k:e write:4100k:4k:e read:4m:512 read:4m:1m
expect_io "0 0" "$dev" read:4092k:4k:e read:4100k:4k:e
unmap_last "$dev"

say "half of the reads fail for good, under load"
dev=$(map s1 "$disk")
start_load "$dev"
dm_table broken "0 $((sectors / 2)) linear $lower 0" "$((sectors / 2)) $((sectors / 2)) error"
load_fails 20
equal state "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" open
dm_table broken "0 $sectors linear $lower 0"
verify "$dev" --bs=16k --size=2m
tear_down "$dev"

say "sectors that can't be read"
if on server 'modprobe -q dm-dust || dmsetup targets | grep -q ^dust'; then
	lower=$(null lower 16)
	disk=$(dm broken "0 $sectors dust $lower 0 512")
	dev=$(map s1 "$disk")
	expect_io 0 "$dev" write:0:1m:f
	on server 'dmsetup message broken 0 addbadblock 100; dmsetup message broken 0 enable'
	expect_io "EIO 0 0 EIO" "$dev" read:48k:4k read:0:48k read:52k:4k read:0:1m
	# A write repairs such a sector.
	expect_io "0 0" "$dev" write:0:1m:g read:0:1m:g
	tear_down "$dev"
else
	say "there's no dm-dust here"
fi

if debug_kernel; then
	say "the block layer fails bios before the disk sees them, one after the other"
	disk=$(null vol 16 cache_size=1)
	dev=$(map s1 "$disk")
	fail=/sys/kernel/debug/fail_make_request
	on server "echo 1 >/sys/block/$(basename "$(readlink -f "/sys/class/block/${disk#/dev/}")")/make-it-fail
		echo 0 >$fail/verbose; echo 100 >$fail/probability; echo -1 >$fail/times"
	expect_io "EIO EIO EIO" "$dev" read:0:4k write:0:1m:a fsync
	on server "echo 1 >$fail/times"
	expect_io "EIO 0" "$dev" write:0:64k:a write:0:64k:a
	on server "echo 1 >$fail/times"
	expect_io "EIO 0" "$dev" fsync fsync
	on server "echo 0 >$fail/probability"
	tear_down "$dev"
fi

# Errors of a SCSI disk, errno by errno
disk=$(scsi opts=0 every_nth=0)
dev=$(map s1 "$disk")
tell() { on server "echo $2 >/sys/bus/pseudo/drivers/scsi_debug/$1"; }
expect_io "0 0" "$dev" write:0:4m:h read:0:4m:h
say "a medium error"
tell opts 2
expect_io "ENODATA 0" "$dev" read:2330k:4k read:0:2m
say "an error of protection information"
tell opts 0x20
tell every_nth 1
expect_io "EILSEQ EILSEQ" "$dev" read:0:4k write:0:4k:i
tell every_nth 0
tell opts 0
say "the disk refuses to write"
on server 'echo 1 >/sys/module/scsi_debug/parameters/wp'
expect_io "EREMOTEIO 0" "$dev" write:0:4k:i read:0:4m
on server 'echo 0 >/sys/module/scsi_debug/parameters/wp'
expect_io "0 0" "$dev" write:0:4m:j read:0:4m:j
unmap_last "$dev"
no_scsi
tear_down
