# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A lost path is reconnected max_reconnect_attempts times, with delays that double and vary; then
# only on request. A path may be missing when a session is created if another one connects; it is
# connected later.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

failed() { cut -d' ' -f2 "$(path 0)/stats/reconnects"; }
succeeded() { cut -d' ' -f1 "$(path 0)/stats/reconnects"; }
failed_at_least() { [ "$(failed)" -ge "$1" ]; }

set_up
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)")
fast_failover
set_attrs max_reconnect_attempts=3 failover_timeout=60
on server 'rmmod rnbd_server; rmmod rtrs_server'
wait_for_paths disconnected 20 "$(path 0)"
wait_for 20 failed_at_least 3 || fail "attempts: $(failed)"
pause 3
equal attempts "$(failed)" 3
load_server
pause 2
paths_are disconnected "$(path 0)" || fail "there was to be no further attempt"
echo 1 >"$(path 0)/reconnect"
wait_for_paths connected 5 "$(path 0)"
equal "successful ones" "$(succeeded)" 1
expect_io "0 0" "$dev" write:0:64k:a read:0:64k:a

# For ever, with growing delays
set_attrs max_reconnect_attempts=-1 reconnect_delay_ms=200 reconnect_delay_max_ms=1600
echo 1 >"$(path 0)/stats/reset_all"
states=/sys/kernel/debug/tracing/events/rtrs_clt/rtrs_clt_path_state
echo >/sys/kernel/debug/tracing/trace
echo 1 >$states/enable
on server 'rmmod rnbd_server; rmmod rtrs_server'
wait_for_paths disconnected 20 "$(path 0)"
for n in 1 2 3 4 5 6 7; do
	wait_for 20 failed_at_least $n || fail "attempts: $(failed)"
done
echo 0 >$states/enable
# By the kernel's clock, as this script may be delayed
delays=$(awk '{ for (i = 1; i < NF && $i !~ /^[0-9]+\.[0-9]+:$/; i++); t = $i + 0 }
	/-> waiting/ { since = t }
	/waiting -> connecting/ { if (since) printf "%d ", (t - since) * 1000 }' \
	/sys/kernel/debug/tracing/trace)
say "milliseconds before each attempt: $delays"
read -ra delays <<<"$delays"
must "there are ${#delays[@]}" [ ${#delays[@]} -ge 6 ]
must "delays don't grow" [ $((delays[4] + delays[5])) -gt $((delays[0] + delays[1])) ]
must "the last ones are too short" [ $((delays[4] < delays[5] ? delays[4] : delays[5])) -ge 780 ]
load_server
wait_for_paths connected 20 "$(path 0)"
expect_io "0 0" "$dev" write:0:64k:b read:0:64k:b

# No attempts
set_attrs max_reconnect_attempts=0
echo 1 >"$(path 0)/stats/reset_all"
on server 'rmmod rnbd_server; rmmod rtrs_server'
wait_for_paths disconnected 20 "$(path 0)"
load_server
pause 2
equal attempts "$(cat "$(path 0)/stats/reconnects")" "0 0"
paths_are disconnected "$(path 0)" || fail "it is back"
echo 1 >"$(path 0)/reconnect"
wait_for_paths connected 5 "$(path 0)"
# A reconnect of a connected path succeeds.
equal "reconnect" "$(errno_of "$(path 0)/reconnect" 1)" 0
paths_are connected "$(path 0)" || fail "it is lost"
unmap "$dev"
client_idle

# A path without an RDMA device
rdma link delete "$rdma"1
dev=$(map s1 "$disk" "path=$(addr server 1)" "path=$(addr server 0)")
fast_failover
equal "paths that are there" "$(grep -lx connected $clt/s1/paths/*/state | wc -l)" 1
expect_io "0 0" "$dev" write:0:64k:c read:0:64k:c
add_rdma 1
wait_for 40 eval "[ \$(grep -lx connected $clt/s1/paths/*/state | wc -l) = 2 ]" ||
	fail "the missing path doesn't come"
tear_down "$dev"
