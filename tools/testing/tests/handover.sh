# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two clients have a volume with access_mode=handover. The right to write goes to the newer one
# with its first write, when what the older one has in hand is done. The older one's writes fail
# with EBADE from then on, its reads go on, until it maps the volume anew; whatever becomes of
# the clients' sessions and of the server in between. Under load, none of the older one's writes
# takes the place of one of the newer one.
# Modules: ours
# Guests: 3

. "$RIG_DIR/steps/failover.sh"

# a EXPECTED STEP...: this client's I/O, see steps/io.py; b: client2's
a() { expect_io "$1" "$dev" "${@:2}"; }
b() { on client2 "expect_io ${1@Q} $dev2 ${*:2}"; }

# They map the volume anew.
map_a()
{
	dev=$(map s1 "$disk" access_mode=handover)
	attr failover_timeout=-1
	fast_failover
}

map_b()
{
	dev2=$(on client2 "map s2 $disk access_mode=handover")
	on client2 ". $RIG_DIR/steps/failover.sh; session=s2; attr failover_timeout=-1; fast_failover"
}

unmap_b() { on client2 "unmap $dev2"; }

# server_says A [B]: of this client's mapping, and of client2's if it has one
server_says()
{
	local sessions=/sys/class/rnbd-server/ctl/devices/${disk_there##*/}/sessions

	equal "may they write" "$(on server "cat $sessions/s[12]/handover" | xargs)" "$*"
}

# unplug GUEST, plug GUEST: from and to the server
unplug() { set_link "$1" 0 off; }
plug() { set_link "$1" 0 on; }

set_up
# Writes to its second half take 8 s.
disk=$(null vol 32 discard=1)
disk=$(dm slow "0 32768 linear $disk 0" "32768 32768 delay $disk 32768 0 $disk 32768 8000")
on client2 load_client

# It is shared with nobody who writes in another mode.
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

# Being there, reading and flushing takes nothing away; writing does, for ever.
map_a
a "0 0" write:0:64k:first write:128k:64k:first
map_b
server_says writer newer
b "0 0 0" read:0:64k:first fsync read:128k:64k:first
a 0 write:64k:64k:last
mark_log
server_says writer newer
b "0 0" read:64k:64k:last write:0:64k:b1
server_says fenced writer
a "EBADE EBADE EBADE 0 0" write:0:64k:no discard:64k:64k zeroes:64k:64k read:0:64k:b1 \
	read:64k:64k:last
a "0 EIO" buffered:192k:4k:no fsync
must "nothing in the log" eval "log_since_mark | grep -q 'a newer mapping has written'"
b "0 0" read:64k:64k:last write:0:64k:b2
a "EBADE 0" write:0:64k:no read:0:64k:b2

# The server refuses by itself. This client doesn't know yet.
unmap "$dev"
map_a
a "0 0" read:0:64k:b2 write:0:64k:a1
b "EBADE 0" write:0:64k:no read:0:64k:a1
for step in discard:0:64k write:0:64k:no; do
	unmap_b
	map_b
	b 0 write:64k:64k:b3
	a "EBADE 0" $step read:0:64k:a1
	unmap "$dev"
	map_a
	a 0 write:0:64k:a1
done

# What it has in hand is done before anything of the new one begins.
unmap_b
map_b
start_io "$dev" write:24m:4k:slow
wait_for 30 has_inflight "$dev" writes || fail "nothing is in flight: $(cat /tmp/io.out)"
pause 1
! ended "$io" || fail "the disk isn't slow: $(cat /tmp/io.out)"
writes=$(server_ios "$disk" writes)
b 0 write:0:4k:b4
must "the new one's write was first" [ $(($(server_ios "$disk" writes) - writes)) -ge 2 ]
end_io 60 0
b 0 read:24m:4k:slow
a "EBADE 0" write:0:4k:no read:0:4k:b4

# Both write to the same blocks, and the newer one verifies its own.
unmap "$dev"
map_a
unmap_b
map_b
writer a "$dev" --depth=8
goes_on "$dev"
on client2 ". $RIG_DIR/steps/failover.sh; writer b $dev2 --depth=8"
# It may be a read that is the first to meet the newer one.
wait_for 60 writer_ended a || fail "the older one goes on"
must "the older one: $(cat $writers/a.out)" \
	grep -qE '^sector [0-9]+: write: Invalid exchange$|: there is something else, ' $writers/a.out
for _ in 1 2 3; do
	writer a "$dev" --depth=8
	writer_fails a EBADE
done
on client2 "goes_on $dev2; goes_on $dev2; . $RIG_DIR/steps/failover.sh; writers_unharmed"

# One is cut off, and the other one takes over. What waited fails.
unmap "$dev"
map_a
a 0 write:0:64k:a5
unmap_b
map_b
unplug client
wait_for_state "$dev" closed 60
start_io "$dev" write:0:64k:no
b "0 0" read:0:64k:a5 write:0:64k:b5
plug client
wait_for_state "$dev" open 60
end_io 60 EBADE
a "EBADE 0" write:0:64k:no read:0:64k:b5

# The one that writes is cut off. It writes on afterwards.
unplug client2
on client2 "wait_for_state $dev2 closed 60"
plug client2
on client2 "wait_for_state $dev2 open 60"
b "0 0" read:0:64k:b5 write:0:64k:b6
a "EBADE 0" write:64k:64k:no read:0:64k:b6

# A server that was started again knows nothing. The old one is the first one there, and waits
# for the newer one.
unmap "$dev"
map_a
a 0 write:0:64k:a7
unmap_b
map_b
b 0 write:0:64k:b7
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
b "0 0" read:0:64k:b7 write:0:64k:b8
server_says fenced writer
a "EBADE 0" write:0:64k:no read:0:64k:b8

# Both have known who writes, and say so.
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=1
wait_for_state "$dev" open 60
on client2 "wait_for_state $dev2 open 60"
b 0 write:0:64k:b9
a "EBADE 0" write:0:64k:no read:0:64k:b9

# One that is alone goes on. One that is new waits for nobody.
unmap_b
unmap "$dev"
map_a
a 0 write:0:64k:a10
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=1
wait_for_state "$dev" open 60
a 0 write:0:64k:a11
stop_server
wait_for_state "$dev" closed 60
load_server handover_grace=3600
wait_for_state "$dev" open 60
map_b
b "0 0" read:0:64k:a11 write:0:64k:b11
a "EBADE 0" write:0:64k:no read:0:64k:b11
unmap "$dev"
map_a
a 0 write:0:64k:a12
b "EBADE 0" write:0:64k:no read:0:64k:a12

# It remembers the one that has lost its session, and is alone.
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
