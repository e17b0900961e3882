# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A disk of the server is suspended with a request in flight, and the request's path dies: the
# server can't answer its FENCE before the disk is resumed. Other paths are lost and reconnected
# meanwhile. Their requests continue on the remaining paths, and I/O to another disk is not delayed.
# Modules: ours
# Siw: debug
# Quick: debug

. "$RIG_DIR/steps/failover.sh"

# reconnect_path PATH: reconnects a path and waits until it is connected
reconnect_path()
{
	echo 1 >"$1/reconnect" 2>/dev/null || true
	wait_for_paths connected 20 "$1"
	goes_on "$dev" 10
}

hung_task_limit 120
set_up sess_queue_depth=64
ip addr add 192.168.101.11/24 dev dummy1
disk=$(null vol 32 irqmode=2 completion_nsec=100000000)
still=$(dm still "0 32768 linear $(null still 16) 0")
a=$(addr server 0) b=$(addr server 1)
dev=$(map s1 "$disk" "path=$a")
dev2=$(map s1 "$still")
first=$(path 0)

# The session has one path, which takes the write.
dm_suspend still
start_io "$dev2" write:0:4k:x
wait_for 20 has_inflight "$dev2" writes || fail "the write doesn't wait: $(cat /tmp/io.out)"
echo "$b" >$clt/s1/add_path
echo "$b,ip:192.168.101.11" >$clt/s1/add_path
fast_failover
second=$clt/s1/paths/$b@ip:192.168.101.1
third=$clt/s1/paths/$b@ip:192.168.101.11
wait_for_paths connected 20 "$second" "$third"
# Two requests at a time: if both waited for the suspended disk, no I/O would be done.
writer raw "$dev" --depth=2
goes_on "$dev"
echo 1 >"$first/disconnect"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	reconnect_path "$second"
	reconnect_path "$third"
	[ "$(failed_over)" -le 3 ] || break
done
must "no request was sent again" [ "$(failed_over)" -gt 1 ]
! ended "$io" || fail "the disk doesn't stand still: $(cat /tmp/io.out)"
dm_resume still
end_io 20 0
expect_io 0 "$dev2" read:0:4k:x
echo 1 >"$first/reconnect" || true
wait_for_paths connected 20 "$first"
writers_unharmed
unmap "$dev"
unmap "$dev2"
client_idle
ip addr del 192.168.101.11/24 dev dummy1
tear_down
