# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's modules are unloaded and loaded again during I/O: I/O waits and continues without
# errors. A device with another size, or other limits, is updated; one that can no longer be opened
# returns EIO until it can, also by remap_device, while other devices of the session continue.
# Without a path nothing hangs: neither unmap_device, map_device nor remap_device.

. "$RIG_DIR/steps/failover.sh"

# start_server [PARAMETER=VALUE...]: loads the server with the volumes below $volumes
start_server() { load_server dev_search_path=$volumes "$@"; }

# unlink_volume NAME: removes a name from $volumes
unlink_volume() { on server "rm $volumes/$1"; }

# start_read DEVICE: starts a read that has to wait; end_io waits for it
start_read()
{
	start_io "$1" read:0:4k
	wait_for 30 has_inflight "$1" || fail "the read doesn't wait: $(cat /tmp/io.out)"
}

# still_writes: waits until the verified load has written more
still_writes()
{
	goes_on "$dev" 60
	! writer_ended load || fail "the load ended: $(cat $writers/load.out)"
}

# verified_load: starts to write to $dev and to verify, until writers_unharmed
verified_load()
{
	writer load "$dev" --pause=1
	still_writes
}

# back_soon SESSION: after the loss of its path
back_soon()
{
	echo 200 >"/sys/class/rtrs-client/$1/reconnect_delay_ms"
	echo 500 >"/sys/class/rtrs-client/$1/reconnect_delay_max_ms"
}

# write_files FOLDER: one after the other, each on the server's disk before the next
write_files()
{
	mkdir "$1"
	for i in 1 2 3 4 5 6 7 8; do
		dd if=/tmp/data of="$1/$i" bs=64k conv=fsync status=none || return
	done
}

mark_log
set_up dev_search_path=$volumes
a=$(null a 64)
b=$(null b 64)
larger=$(null larger 96)
discards=$(null discards 64 discard=1 cache_size=1)
blocks=$(null blocks 64 blocksize=4096)
link_volume a "$a"
link_volume b "$b"
dev=$(map s1 a)
echo -1 >/sys/class/rtrs-client/s1/failover_timeout
back_soon s1
dev2=$(map s1 b)

verified_load

# Raw, and mounted: the files written meanwhile are there.
head -c 256k /dev/urandom >/tmp/data
mkfs.ext4 -q "$dev2"
mount "$dev2" /mnt
for round in 1 2 3; do
	write_files /mnt/$round &
	writer=$!
	start=$EPOCHREALTIME
	stop_server
	wait_for_state "$dev" closed
	wait_for_state "$dev2" closed
	start_server
	wait_for_state "$dev" open
	wait_for_state "$dev2" open
	say "restart $round: $(awk "BEGIN { print $EPOCHREALTIME - $start }") s"
	still_writes
	wait $writer || fail "files could not be written"
done
umount /mnt
mount "$dev2" /mnt
for round in 1 2 3; do
	for file in /mnt/"$round"/*; do
		cmp /tmp/data "$file" || fail "what was written during restart $round differs"
	done
done
umount /mnt
! log_since_mark | grep "I/O error, dev ${dev#/dev/}," || fail "an I/O error was reported"

# Another size, and a request that has waited.
python3 -S "$RIG_DIR/steps/uevents.py" >/tmp/events &
listener=$!
wait_for 10 grep -q listening /tmp/events
stop_server
start_read "$dev2"
link_volume b "$larger"
start_server
wait_for_state "$dev2" open
end_io 30 0
wait_for 10 eval "[ \$(blockdev --getsize64 $dev2) = $((96 << 20)) ]" || fail "the size is the old one"
wait_for 10 grep -q "change .*/${dev2#/dev/} disk RESIZE" /tmp/events ||
	fail "no event: $(cat /tmp/events)"
kill $listener
expect_io "0 0" "$dev2" write:95m:1m:x read:95m:1m:x
equal "remap_device of an open device" "$(errno_of "$(device_attr "$dev2" remap_device)" 1)" EALREADY

# Not there yet, with a request that waits, as it may for a server that is booting.
timeout=/sys/class/rtrs-client/s1/failover_timeout
usual=$(cat $timeout)
echo -1 >$timeout
stop_server
start_read "$dev2"
unlink_volume b
mark_log
start_server
wait_for_state "$dev" open
wait_for 20 eval "log_since_mark | grep -q \"can't open it\"" || fail "nobody has tried to open it"
! ended "$io" || fail "the request didn't wait: $(cat /tmp/io.out)"
link_volume b "$b"
end_io 30 0
wait_for_state "$dev2" open

# Gone, when it may wait no longer: only that device.
stop_server
start_read "$dev2"
unlink_volume b
start_server
wait_for_state "$dev" open
! ended "$io" || fail "the request didn't wait: $(cat /tmp/io.out)"
echo 0 >$timeout
end_io 30 EIO
echo "$usual" >$timeout
wait_for_state "$dev2" closed
still_writes
expect_io EIO "$dev2" read:0:4k
equal "remap_device without a device" "$(errno_of "$(device_attr "$dev2" remap_device)" 1)" ENOENT
link_volume b "$b"
wait_for_state "$dev2" open
expect_io 0 "$dev2" read:0:4k

# queue_is TEXT ATTRIBUTE VALUE: soon, as a disk's limits follow when its I/O goes on
queue_is() { wait_for 20 eval "[ \"\$(queue $dev2 $2)\" = '$3' ]" || fail "$1: $(queue "$dev2" "$2"), not $3"; }

# Other limits, there and back; other blocks, and back by remap_device. On newer kernels a
# write to the queue's attributes waits for I/O, with the limits locked.
equal "discards before" "$(queue "$dev2" discard_max_bytes)" 0
equal "cache before" "$(queue "$dev2" write_cache)" "write through"
stop_server
start_read "$dev2"
echo 64 >"/sys/block/${dev2#/dev/}/queue/max_sectors_kb" &
limiter=$!
link_volume b "$discards"
start_server
wait_for_state "$dev2" open
end_io 30 0
wait_for 30 ended $limiter || fail "a write to max_sectors_kb hangs"
wait $limiter || fail "max_sectors_kb can't be written"
queue_is "cache after" write_cache "write back"
must "discards after" [ "$(queue "$dev2" discard_max_bytes)" -gt 0 ]
flushes=$(server_ios "$discards" flushes)
expect_io "0 0 0 0" "$dev2" write:0:64k:x discard:0:64k buffered:0:4k:y fsync
must "no flush has arrived" [ "$(server_ios "$discards" flushes)" -gt "$flushes" ]
stop_server
link_volume b "$b"
start_server
wait_for_state "$dev2" open
queue_is "cache again" write_cache "write through"
equal "discards again" "$(queue "$dev2" discard_max_bytes)" 0
expect_io "ENOTSUP 0 0 0" "$dev2" discard:0:64k buffered:0:4k:y fsync read:0:4k:y
stop_server
link_volume b "$blocks"
start_server
wait_for_state "$dev" open
wait_for 30 io_returns EIO "$dev2" read:0:4k ||
	fail "I/O to a disk of other blocks"
equal "remap_device, other blocks" "$(errno_of "$(device_attr "$dev2" remap_device)" 1)" EINVAL
link_volume b "$b"
got=$(errno_of "$(device_attr "$dev2" remap_device)" 1)
[[ $got = 0 || $got = EALREADY ]] || fail "remap_device when it is back: $got"
equal "state after remap_device" "$(cat "$(device_attr "$dev2" state)")" open
expect_io 0 "$dev2" read:0:4k
still_writes

# Without a path. What is not to wait doesn't.
dev3=$(map s2 b access_mode=ro)
echo 0 >/sys/class/rtrs-client/s2/failover_timeout
back_soon s2
stop_server
wait_for_state "$dev2" closed
wait_for_state "$dev3" closed
expect_io EIO "$dev3" read:0:4k
map_fails "ENOTCONN|ECONNABORTED" "sessname=s1 path=$(addr server 0) device_path=c"
equal "remap_device without a path" "$(errno_of "$(device_attr "$dev2" remap_device)" 1)" ENOTCONN
python3 -IS -c 'import os, sys
os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 65536, os.POSIX_FADV_WILLNEED)' "$dev2"
wait_for 15 no_inflight "$dev2" || fail "readahead waits"
start_read "$dev2"
unmap "$dev2" force
end_io 30 EIO
start_server
wait_for_state "$dev3" open
expect_io 0 "$dev3" read:0:4k
still_writes
writers_unharmed

# Idle ones go while there is no path, too.
stop_server
wait_for_state "$dev" closed
wait_for_state "$dev3" closed
unmap "$dev"
unmap "$dev3"
client_idle

# All requests wait that the session takes, but for those it takes to open the device
# again. If there are none for that, none waits.
start_server sess_queue_depth=2
dev=$(map s1 a)
back_soon s1
verified_load
stop_server
wait_for_state "$dev" closed
start_server sess_queue_depth=2
wait_for_state "$dev" open
still_writes
writers_unharmed
unmap "$dev"
stop_server
start_server sess_queue_depth=1
dev=$(map s1 a)
back_soon s1
expect_io 0 "$dev" read:0:4k
stop_server
wait_for_state "$dev" closed
expect_io ENOLINK "$dev" read:0:4k
start_server sess_queue_depth=1
wait_for_state "$dev" open
expect_io 0 "$dev" read:0:4k
unmap "$dev"
on server "rm -r $volumes"
tear_down
