# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A disk of the server stands still with a request in hand, and the request's path dies: it
# can't be fenced before the disk goes on. Other paths die and come back meanwhile; what was
# on them goes on over those that are left, and another disk's load doesn't stand still.
# Modules: ours
# Time: 120
# Siw: debug

. "$RIG_DIR/steps/failover.sh"

# again PATH: connected anew, sooner or later
again()
{
	echo 1 >"$1/reconnect" 2>/dev/null || true
	become connected 20 "$1"
	goes_on "$dev" 10
}

patience 120
up sess_queue_depth=64
ip addr add 192.168.101.11/24 dev dummy1
disk=$(null vol 32 irqmode=2 completion_nsec=100000000)
still=$(dm still "0 32768 linear $(null still 16) 0")
a=$(addr server 0) b=$(addr server 1)
dev=$(map s1 "$disk" "path=$a")
dev2=$(map s1 "$still")
first=$(path 0)

# The only path there is takes it.
on server 'dmsetup suspend --noflush --nolockfs --noudevsync still'
"$RIG_DIR/steps/io.py" "$dev2" write:0:4k:x >/tmp/still.out &
write=$!
wait_for 20 eval "[ \$(awk '{ print \$2 }' /sys/block/${dev2#/dev/}/inflight) = 1 ]" ||
	fail "the write doesn't wait"
echo "$b" >$clt/s1/add_path
echo "$b,ip:192.168.101.11" >$clt/s1/add_path
soon
second=$clt/s1/paths/$b@ip:192.168.101.1
third=$clt/s1/paths/$b@ip:192.168.101.11
become connected 20 "$second" "$third"
# Two requests at a time: if both wait for the disk, too, all stands still.
writer raw "$dev" --iodepth=2
goes_on "$dev"
echo 1 >"$first/disconnect"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	again "$second"
	again "$third"
	[ "$(failed_over)" -le 3 ] || break
done
must "no request was sent again" [ "$(failed_over)" -gt 1 ]
! ended $write || fail "the disk doesn't stand still: $(cat /tmp/still.out)"
on server 'dmsetup resume --noudevsync still'
wait_for 20 ended $write || fail "the write still waits"
equal "the write" "$(cat /tmp/still.out)" 0
gives 0 "$dev2" read:0:4k:x
echo 1 >"$first/reconnect" || true
become connected 20 "$first"
writers_unharmed
unmap "$dev"
unmap "$dev2"
client_idle
ip addr del 192.168.101.11/24 dev dummy1
down
