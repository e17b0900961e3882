# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk changes while it is mapped: its write cache, limits, read-only state. The server
# notices within two seconds, and the client's disk follows. A write that is in progress when the
# disk gets a write cache is flushed before its answer. While the client's disk has been open since
# before the cache, writes are sent with FUA; afterwards with flushes.
# Modules: ours
# Once: debug 6.12 7.2

# queue_has ATTRIBUTE VALUE: true if the client's queue has that value
queue_has() { [ "$(queue "$dev" "$1")" = "$2" ]; }

# changed COMMAND...: runs a command that changes the server's disk
changed()
{
	mark_log
	"$@"
	log_note "the server's disk is another one"
}

# noticed: fails unless the server has noticed the change within 2 s
noticed()
{
	local took

	took=$(ms_between "the server's disk is another one" "has (a write cache|other limits) now")
	say "the server has noticed after $took ms"
	must "the server has noticed after $took ms" [ "$took" -lt 2000 ]
}

# becomes ATTRIBUTE VALUE: after a change, waits until the client's queue has that value
becomes()
{
	wait_for 20 queue_has "$@" || fail "$1 is '$(queue "$dev" "$1")', not '$2'"
	noticed
}

# zeroes COUNT: prints as many zeroes, in a line
zeroes() { printf '0 %.0s' $(seq "$1") | sed 's/ $//'; }

# flushes STEP...: prints the flushes of the disk with the cache that the steps cause
flushes()
{
	local was
	was=$(server_ios "$cached" flushes)
	expect_io "$(zeroes $#)" "$dev" "$@"
	echo $(($(server_ios "$cached" flushes) - was))
}

# kinds STEP...: prints the kinds of requests that the steps cause on the disk with the cache
kinds()
{
	trace "$cached"
	expect_io "$(zeroes $#)" "$dev" "$@"
	traced | awk '{ print $1 }' | xargs
}

writes_are() { [ "$(kinds write:0:4k:x)" = "$1" ]; }

# moved DISK: moves the server's volume to this disk
moved() { changed dm_table volume "0 65536 linear $1 0"; }

set_up
plain=$(null plain 32)
cached=$(null cached 32 cache_size=1)
disk=$(dm volume "0 65536 linear $plain 0")
dev=$(map s1 "$disk")
equal "write cache" "$(queue "$dev" write_cache)" "write through"

say "a write that is in progress meanwhile"
dm_suspend volume
was=$(server_ios "$cached" flushes)
start_io "$dev" write:0:4k:a
wait_for 20 server_has_inflight s1 1 || fail "the write is not on its way"
moved "$cached"
end_io 20 0
equal "flushes of the write" $(($(server_ios "$cached" flushes) - was)) 1

say "the cache is known; nobody had the disk open"
becomes write_cache "write back"
log_since_mark | grep -q "has a write cache now: writes are flushed" || fail "the log doesn't say that"
wait_for 20 writes_are WS || fail "writes are still '$(kinds write:0:4k:x)'"
equal "flushes of a write" "$(flushes write:0:4k:b)" 0
equal "flushes of a write and fsync" "$(flushes write:0:4k:b fsync)" 1

say "the cache goes, and comes while the disk is open"
moved "$plain"
becomes write_cache "write through"
exec 5<"$dev"
moved "$cached"
becomes write_cache "write back"
wait_for 20 writes_are WFS || fail "writes are '$(kinds write:0:4k:x)'"
equal "flushes of fsync" "$(flushes fsync)" 1
equal "zeroes" "$(kinds zeroes:0:4k)" WFS
exec 5<&-
wait_for 20 writes_are WS || fail "writes are still '$(kinds write:0:4k:x)'"
equal "flushes of a write and fsync" "$(flushes write:0:4k:b fsync)" 1

say "read-only, rotational, size of I/O"
equal "read-only" "$(blockdev --getro "$dev")" 0
changed on server "blockdev --setro $disk"
wait_for 20 eval "[ \$(blockdev --getro $dev) = 1 ]" || fail "$dev isn't read-only"
noticed
changed on server "blockdev --setrw $disk"
wait_for 20 eval "[ \$(blockdev --getro $dev) = 0 ]" || fail "$dev is still read-only"
noticed
equal rotational "$(queue "$dev" rotational)" 0
changed on server "echo 1 >/sys/block/${disk#/dev/}/queue/rotational"
becomes rotational 1
unmap_last "$dev"
no_nulls

say "blocks become larger"
plain=$(null plain 32)
large=$(null large 32 blocksize=4096)
disk=$(dm volume "0 65536 linear $plain 0")
dev=$(map s1 "$disk")
moved "$large"
wait_for 20 eval "log_since_mark | grep -q 'its blocks are of 4096 bytes now'" || fail "no message"
equal "block size" "$(queue "$dev" logical_block_size)" 512
expect_io 0 "$dev" write:0:4k:x
moved "$plain"
expect_io "0 0" "$dev" write:0:4k:x write:512:512:x
unmap_last "$dev"
no_nulls

say "write zeroes and discards that turn out not to be there"
disk=$(scsi lbpws=1 lbpws10=1)
dev=$(map s1 "$disk")
dd if=/dev/urandom of="$dev" bs=64k count=4 oflag=direct status=none
on server 'echo 1 >/sys/module/scsi_debug/parameters/write_same_length'
echo >$tracing/trace
echo 1 >$tracing/events/rtrs_clt/rtrs_clt_answer/enable
changed expect_io 0 "$dev" zeroes:64k:64k
echo 0 >$tracing/events/rtrs_clt/rtrs_clt_answer/enable
# The block layer of Linux 6.1 writes zeroes itself after any error, later ones only after
# EOPNOTSUPP.
equal "errors of write zeroes" "$(sed -n 's/.*rtrs_clt_answer: .* (\(-[0-9]*\))$/\1/p' $tracing/trace)" -95
dd if="$dev" bs=64k skip=1 count=1 iflag=direct status=none | cmp -n 65536 - /dev/zero
becomes write_zeroes_max_bytes "$(server_queue "$disk" write_zeroes_max_bytes)"
equal "write zeroes" "$(queue "$dev" write_zeroes_max_bytes)" 0
try_discard() { blkdiscard -o 131072 -l 65536 "$dev" 2>/dev/null || true; }
changed try_discard
wait_for 20 eval "[ \$(server_queue $disk discard_max_bytes) = 0 ]" ||
	fail "the server still has discards"
becomes discard_max_bytes 0
expect_io "ENOTSUP 0" "$dev" discard:128k:64k zeroes:128k:64k
unmap_last "$dev"
no_scsi

say "blocks of 64 KiB, which only newer kernels support"
if large=$(null large 64 blocksize=65536 2>/dev/null) &&
	[ "$(server_queue "$large" logical_block_size)" = 65536 ]; then
	map_fails EOPNOTSUPP "sessname=s1 path=$(addr server 0) device_path=$large"
	say "refused"
fi
no_nulls
tear_down
