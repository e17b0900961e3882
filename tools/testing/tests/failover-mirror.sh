# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A mirror of one disk each of two servers (client2 is the second server). One server loses its
# power: the mirror continues with the other disk. The server returns without its data: after a
# resync, both disks have the same data.
# Modules: ours
# Guests: 3

. "$RIG_DIR/steps/failover.sh"

set_up
a=$(null vol 32)
on client2 "load_server_here $server_modules; null_here vol 32" >/tmp/b
b=$(tail -n 1 /tmp/b)
dev=$(map s1 "$a" "path=$(addr server 0)" "path=$(addr server 1)")
dev2=$(map s2 "$b" "path=$(addr client2 0)" "path=$(addr client2 1)")
fast_failover s1
fast_failover s2
# md doesn't mark all reads as fail-fast.
session=s2 set_attrs failover_timeout=5
mirror md0 --failfast "$dev" "$dev2"
writer mirror /dev/md0 --bs=16k
goes_on "$dev"
goes_on "$dev2"
kill_guest client2
wait_for 60 grep -q '(F)' /proc/mdstat || fail "the dead half is not marked: $(cat /proc/mdstat)"
goes_on "$dev"
writers_unharmed

writer mirror /dev/md0 --bs=16k
boot_guest client2
on client2 'null_here vol 32 >/dev/null'
serve_again client2
wait_for_paths connected 60 "$(path 0 s2 client2)" "$(path 1 s2 client2)"
wait_for 20 io_returns 0 "$dev2" read:0:4k || fail "the second disk is not open again"
half_back md0 "$dev2"
goes_on "$dev2"
writers_unharmed
no_mirror md0
equal "data of both halves" "$(data "$dev")" "$(data "$dev2")"
unmap "$dev"
unmap "$dev2"
on client2 'wait_for 30 no_sessions server && no_nulls_here'
tear_down
