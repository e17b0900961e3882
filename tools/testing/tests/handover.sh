# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two clients map a volume with access_mode=handover. The first write of the newer mapping takes
# over the right to write, after the older one's requests in flight have ended. From then on the
# older mapping's writes fail with EBADE, and its reads succeed, until it is mapped anew; also after
# losses of sessions and restarts of the server. Under load, no write of the older mapping
# overwrites one of the newer mapping.
# Modules: ours
# Guests: 3

. "$RIG_DIR/steps/failover.sh"

# io_a, io_b EXPECTED STEP...: I/O of this client, and of client2; see expect_io
io_a() { expect_io "$1" "$dev" "${@:2}"; }
io_b() { on client2 "expect_io ${1@Q} $dev2 ${*:2}"; }

# map_a, map_b: map the volume as a newer mapping
map_a()
{
	dev=$(map s1 "$disk" access_mode=handover)
	set_attrs failover_timeout=-1
	fast_failover
}

map_b()
{
	dev2=$(on client2 "map s2 $disk access_mode=handover")
	on client2 ". $RIG_DIR/steps/failover.sh; session=s2; set_attrs failover_timeout=-1; fast_failover"
}

unmap_b() { on client2 "unmap $dev2"; }

# server_says A [B]: checks the state of this client's mapping, and of client2's, on the server
server_says()
{
	local sessions=/sys/class/rnbd-server/ctl/devices/${disk_there##*/}/sessions

	equal "may they write" "$(on server "cat $sessions/s[12]/handover" | xargs)" "$*"
}

# unplug GUEST, plug GUEST: network 0
unplug() { set_link "$1" 0 off; }
plug() { set_link "$1" 0 on; }

set_up
# Writes to its second half take 8 s.
disk=$(null vol 32 discard=1)
disk=$(dm slow "0 32768 linear $disk 0" "32768 32768 delay $disk 32768 0 $disk 32768 8000")
on client2 load_client

# It can't be combined with writers in other modes.
map_a
other="path=$(addr server 0) device_path=$disk"
map_fails EBUSY "sessname=s3 $other"
map_fails EBUSY "sessname=s3 $other access_mode=migration"
reader=$(map s3 "$disk" access_mode=ro)
disk_there=$(on server "realpath $disk")
must "no file handover of a reader" \
	on server "[ ! -e /sys/class/rnbd-server/ctl/devices/${disk_there##*/}/sessions/s3/handover ]"
for pair in "$dev handover" "$reader ro"; do
	equal "mode of ${pair% *}" "$(cat "/sys/block/$(basename "${pair% *}")/rnbd/access_mode")" "${pair#* }"
done
unmap "$dev"
dev=$(map s1 "$disk" access_mode=rw)
map_fails EBUSY "sessname=s4 $other access_mode=handover"
unmap "$reader"
unmap "$dev"

# Mapping, reads and flushes change nothing; a write takes over the right to write.
map_a
io_a "0 0" write:0:64k:first write:128k:64k:first
map_b
server_says writer newer
io_b "0 0 0" read:0:64k:first fsync read:128k:64k:first
io_a 0 write:64k:64k:last
mark_log
server_says writer newer
io_b "0 0" read:64k:64k:last write:0:64k:b1
server_says fenced writer
io_a "EBADE EBADE EBADE 0 0" write:0:64k:no discard:64k:64k zeroes:64k:64k read:0:64k:b1 \
	read:64k:64k:last
io_a "0 EIO" buffered:192k:4k:no fsync
must "nothing in the log" eval "log_since_mark | grep -q 'a newer mapping has written'"
io_b "0 0" read:64k:64k:last write:0:64k:b2
io_a "EBADE 0" write:0:64k:no read:0:64k:b2

# The server refuses the write, as this client does not yet know the newer writer.
unmap "$dev"
map_a
io_a "0 0" read:0:64k:b2 write:0:64k:a1
io_b "EBADE 0" write:0:64k:no read:0:64k:a1
for step in discard:0:64k write:0:64k:no; do
	unmap_b
	map_b
	io_b 0 write:64k:64k:b3
	io_a "EBADE 0" $step read:0:64k:a1
	unmap "$dev"
	map_a
	io_a 0 write:0:64k:a1
done

# Requests in flight of the older mapping end before the first write of the newer one.
unmap_b
map_b
start_io "$dev" write:24m:4k:slow
wait_for 30 has_inflight "$dev" writes || fail "nothing is in flight: $(cat /tmp/io.out)"
pause 1
! ended "$io" || fail "the disk isn't slow: $(cat /tmp/io.out)"
writes=$(server_ios "$disk" writes)
io_b 0 write:0:4k:b4
must "the new one's write was first" [ $(($(server_ios "$disk" writes) - writes)) -ge 2 ]
end_io 60 0
io_b 0 read:24m:4k:slow
io_a "EBADE 0" write:0:4k:no read:0:4k:b4

# Both write to the same blocks, and the newer one verifies its own.
unmap "$dev"
map_a
unmap_b
map_b
writer a "$dev" --depth=8
goes_on "$dev"
on client2 ". $RIG_DIR/steps/failover.sh; writer b $dev2 --depth=8"
# A read may be the first to find data of the newer mapping.
wait_for 60 writer_ended a || fail "the older one goes on"
must "the older one: $(cat $writers/a.out)" \
	grep -qE '^sector [0-9]+: write: Invalid exchange$|: there is something else, ' $writers/a.out
for _ in 1 2 3; do
	writer a "$dev" --depth=8
	writer_fails a EBADE
done
on client2 "goes_on $dev2; goes_on $dev2; . $RIG_DIR/steps/failover.sh; writers_unharmed"

# The older mapping loses its session, and the newer one writes. Waiting writes fail.
unmap "$dev"
map_a
io_a 0 write:0:64k:a5
unmap_b
map_b
unplug client
wait_for_state "$dev" closed 60
start_io "$dev" write:0:64k:no
io_b "0 0" read:0:64k:a5 write:0:64k:b5
plug client
wait_for_state "$dev" open 60
end_io 60 EBADE
io_a "EBADE 0" write:0:64k:no read:0:64k:b5

# The newer mapping loses its session, and can write afterwards.
unplug client2
on client2 "wait_for_state $dev2 closed 60"
plug client2
on client2 "wait_for_state $dev2 open 60"
io_b "0 0" read:0:64k:b5 write:0:64k:b6
io_a "EBADE 0" write:64k:64k:no read:0:64k:b6

# A server that was started again knows nothing. The old one is the first one there, and waits
# for the newer one.
unmap "$dev"
map_a
io_a 0 write:0:64k:a7
unmap_b
map_b
io_b 0 write:0:64k:b7
stop_server
unplug client2
wait_for_state "$dev" closed 60
load_server "handover_grace=$(slowly 15)"
wait_for_state "$dev" open 60
start_io "$dev" write:0:64k:no
pause 3
! ended "$io" || fail "a write didn't wait for newer writers: $(cat /tmp/io.out)"
server_says waiting
plug client2
on client2 "wait_for_state $dev2 open 60"
end_io 60 EBADE
io_b "0 0" read:0:64k:b7 write:0:64k:b8
server_says fenced writer
io_a "EBADE 0" write:0:64k:no read:0:64k:b8

# Both clients report the newer writer after a restart of the server.
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=1
wait_for_state "$dev" open 60
on client2 "wait_for_state $dev2 open 60"
io_b 0 write:0:64k:b9
io_a "EBADE 0" write:0:64k:no read:0:64k:b9

# A single mapping continues after a restart. A new mapping does not wait.
unmap_b
unmap "$dev"
map_a
io_a 0 write:0:64k:a10
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=1
wait_for_state "$dev" open 60
io_a 0 write:0:64k:a11
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=3600
wait_for_state "$dev" open 60
map_b
io_b "0 0" read:0:64k:a11 write:0:64k:b11
io_a "EBADE 0" write:0:64k:no read:0:64k:b11
unmap "$dev"
map_a
io_a 0 write:0:64k:a12
io_b "EBADE 0" write:0:64k:no read:0:64k:a12

# The server keeps the state of a single mapping that has lost its session.
unmap_b
unplug client
wait_for_state "$dev" closed 60
plug client
wait_for_state "$dev" open 60
start_io "$dev" write:0:64k:a13
end_io 60 0

unmap "$dev"
on client2 client_idle
tear_down
