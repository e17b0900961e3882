# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk is removed under load. Without failover_timeout, I/O fails, nothing hangs, and
# the session and its other device stay; the device can be unmapped, and mapped again when the disk
# is back. With failover_timeout, I/O waits, the server closes the disk, and I/O continues soon
# after the disk is back. Flushes fail once if writes were in the disk's cache. Data covered by a
# flush or FUA are on the disk. I/O waits no longer than failover_timeout even if the removed disk
# never ends a request. Disks: null_blk, SCSI, device-mapper, and a file on a file system whose disk
# is removed.
# Modules: ours
# Once: debug 7.2

. "$RIG_DIR/steps/failover.sh"

# removed WHAT DEVICE STATE ERRNOS: fails unless the device gets that state, and a read, a write and
# fsync give these errnos, now that the device's disk was removed
removed()
{
	local state=$3
	local name=${2#/dev/} steps=(read:0:4k write:0:4k:a fsync)
	load_fails 30
	# shellcheck disable=SC2086
	set -- "$1" "$2" $4
	expect_io "${*:3}" "$2" "${steps[@]:0:$#-2}"
	equal "state after $1" "$(cat "/sys/block/$name/rnbd/state")" "$state"
	expect_io "0 0" "$other" write:0:1m:b read:0:1m:b
	unmap "$2"
}

# can_flush: flushes the device
can_flush() { dd if=/dev/null of="$dev" conv=notrunc,fsync status=none 2>/dev/null; }

# flushes_fail_for_a_while: fails unless flushes fail now, and succeed later
flushes_fail_for_a_while()
{
	expect_io ENODATA "$dev" fsync
	wait_for 30 can_flush || fail "flushes fail for ever"
}

# closed_on_server DISK: true if the server has closed the disk
closed_on_server() { on server "[ ! -e /sys/class/rnbd-server/ctl/devices/${1#/dev/} ]"; }

# gone DISK COMMAND: removes the disk by this command; the server closes it
gone()
{
	on server "$2"
	wait_for_state "$dev" closed 20
	wait_for 20 closed_on_server "$1" || fail "the server keeps $1"
}

# returns DISK REMOVE ADD: removes the disk under load and adds it again by these commands
returns()
{
	local took before got

	dev=$(map s1 "$1")
	set_attrs failover_timeout=-1
	start_load "$dev"
	gone "$1" "$2"
	got=$(errno_of "$(device_attr "$dev" remap_device)" 1)
	[[ "ENOENT ENXIO ENODEV" == *"$got"* ]] || fail "remap_device gave $got"
	start_io "$dev" write:0:4k:after
	before=$(ios "$dev" writes)
	mark_log
	on server "$3"
	log_note "the disk is back"
	# Writes of the load are waiting; the other program may not have started.
	wait_for 60 eval "[ \$(ios $dev writes) -gt $before ]" || fail "nothing is written"
	# The client tries once a second.
	took=$(ms_between "the disk is back" "$1 is open again")
	say "it was opened $took ms after the disk was back"
	must "it was opened after $took ms" [ "$took" -lt 2000 ]
	end_io 60 0
	goes_on "$dev"
	stop_load
	flushes_fail_for_a_while
	# Without I/O, the server sends an event, and no data are lost.
	gone "$1" "$2"
	on server "$3"
	wait_for_state "$dev" open 20
	expect_io "0 0 0" "$dev" write:0:4k:x read:0:4k:x fsync
	unmap "$dev"
	set_attrs failover_timeout=0
}

# keeps DISK REMOVE ADD: these commands lose the data in the disk's cache, and no others
keeps()
{
	local flushes f at

	dev=$(map s1 "$1")
	mkfs.ext4 -q -b 4096 "$dev"
	mount -o noinit_itable,commit=600 "$dev" /mnt
	dd if=/dev/zero of=/mnt/file bs=64k count=3 conv=fsync status=none
	# null_blk caches no page that is on the disk already, so the file's are taken from there.
	at=$(filefrag -v /mnt/file | sed -n 's/^ *0: *0\.\. *47: *\([0-9]*\)\..*/\1/p')
	must "the file isn't in one piece: $(filefrag -v /mnt/file)" [ -n "$at" ]
	blkdiscard -f -o $((at * 4096)) -l 192k "$dev"
	expect_io "0 0" /mnt/file write:0:64k:flushed fsync
	flushes=$(server_ios "$1" flushes)
	expect_io "0 0" /mnt/file dsync:64k:64k:forced write:128k:64k:cached
	equal "flushes with FUA" "$(server_ios "$1" flushes)" "$flushes"
	set_attrs failover_timeout=-1
	gone "$1" "$2"
	on server "$3"
	wait_for_state "$dev" open 20
	for f in "flushed 128" "forced 128" "cached 0"; do
		equal "sectors of '$f' and the like on the disk" \
			"$(on server "grep -ao '${f% *} [0-9]*;' $1 | sort -u | wc -l")" "${f#* }"
	done
	flushes_fail_for_a_while
	umount /mnt
	unmap "$dev"
	set_attrs failover_timeout=0
}

# usable DISK: fails unless the disk can be mapped and used again
usable()
{
	dev=$(map s1 "$1")
	verify "$dev" --bs=16k --size=1m
	unmap "$dev"
}

set_up
other=$(map s1 "$(null other 16)")
set_attrs failover_timeout=0

say "null_blk"
disk=$(null vol 32 cache_size=1 discard=1)
dev=$(map s1 "$disk")
start_load "$dev"
on server 'echo 0 >/sys/kernel/config/nullb/vol/power'
removed null_blk "$dev" closed "EIO EIO EIO"
map_fails 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
# shellcheck disable=SC2016
on server 'echo 1 >/sys/kernel/config/nullb/vol/power'
usable "$disk"
returns "$disk" 'echo 0 >/sys/kernel/config/nullb/vol/power' \
	'echo 1 >/sys/kernel/config/nullb/vol/power'
keeps "$disk" 'echo 0 >/sys/kernel/config/nullb/vol/power' \
	'echo 1 >/sys/kernel/config/nullb/vol/power'

say "SCSI"
disk=$(scsi)
dev=$(map s1 "$disk")
start_load "$dev"
on server "echo 1 >/sys/block/${disk#/dev/}/device/delete"
removed SCSI "$dev" closed "EIO EIO EIO"
map_fails 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
no_scsi
disk=$(scsi)
usable "$disk"
# shellcheck disable=SC2016
returns "$disk" "echo 1 >/sys/block/${disk#/dev/}/device/delete" \
	'for host in /sys/class/scsi_host/host*; do echo "- - -" >$host/scan; done
	wait_for 20 scsi_disks_here >/dev/null'
no_scsi

# The disk's delays are in jiffies, 100 per second on this kernel.
if debug_kernel; then
	say "a disk that hangs when it is removed"
	disk=$(scsi)
	dev=$(map s1 "$disk")
	set_attrs failover_timeout=4
	on server 'echo 2000 >/sys/bus/pseudo/drivers/scsi_debug/delay'
	"$RIG_DIR/steps/io.py" "$dev" write:0:4k:a >/tmp/hung.out &
	hung=$!
	wait_for 20 server_has_inflight s1 1 || fail "no write is in flight at the server"
	mark_log
	on server "echo 1 >/sys/block/${disk#/dev/}/device/delete &"
	wait_for_state "$dev" closed 20
	start_io "$dev" write:4k:4k:b
	end_io 20 EIO
	expect_io "0 0" "$other" write:0:1m:b read:0:1m:b
	wait_for 60 ended $hung || fail "the write never ends"
	wait_for 60 closed_on_server "$disk" || fail "the server keeps $disk"
	# By the log, as the disk's delay and the driver's timers count the same jiffies.
	took=$(ms_between 'I/O waits until' 'I/O fails until')
	hung=$(ms_between 'I/O waits until' "closed $disk")
	say "I/O failed $took ms after the disk went; its last request took $hung ms"
	must "I/O failed after $took ms" [ $took -gt 4000 -a $took -lt 8000 ]
	must "the disk ended its last request after $hung ms" [ $hung -gt 10000 ]
	unmap "$dev"
	no_scsi
	set_attrs failover_timeout=0
fi

say "device-mapper"
lower=$(null lower 32 cache_size=1)
disk=$(dm volume "0 65536 linear $lower 0")
dev=$(map s1 "$disk")
start_load "$dev"
# A device in use is made to fail all I/O, and removed later.
on server 'dmsetup remove --force --noudevsync --noudevrules volume 2>/dev/null || true'
# The failing device has no write cache, so the kernel sends no flush.
removed device-mapper "$dev" open "EIO EIO 0"
on server 'dmsetup remove --noudevsync --noudevrules volume 2>/dev/null || true'
map_fails 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
disk=$(dm volume "0 65536 linear $lower 0")
usable "$disk"

say "a file whose disk goes"
disk=$(null backing 64 cache_size=1)
on server "mkfs.ext4 -q -O ^has_journal $disk; mkdir -p /srv; mount -o errors=continue $disk /srv
	truncate -s 32M /srv/volume"
dev=$(map s1 /srv/volume)
expect_io 0 "$dev" write:0:32m:c
start_load "$dev"
on server 'echo 0 >/sys/kernel/config/nullb/backing/power'
# File systems report a lost write once, possibly to a flush of the load.
removed file "$dev" open "EIO EIO"
on server 'umount /srv'

tear_down "$other"
