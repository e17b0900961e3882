# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Large writes of two sessions share a port (max_fetch). One fetch is held when it maps its memory,
# until the end of the test. The other session's writes continue. So does a third session whose
# paths end with requests in flight: the server answers FENCE without waiting for the fetch.
# Kernel: debug
# Modules: ours

. ../steps/faults.sh
. "$RIG_DIR/steps/failover.sh"

# hold CALL: the next call that matches waits until the next hold
hold() { printf %s "$1" >$rtrs_faults/hold; }
held() { [ "$(<$rtrs_faults/held)" = 1 ]; }
large_writes() { echo $(($(ios "$a" writes) + $(ios "$b" writes))); }
# large_go_on: waits for more large writes than one of the two sessions has in flight
large_go_on()
{
	local before
	before=$(large_writes)
	wait_for 30 eval "[ \$(large_writes) -gt $((before + 8)) ]" ||
		fail "large writes stand still after $(large_writes)"
}

set_up max_fetch=128
for s in a b; do
	declare "$s=$(map $s "$(null $s 16)")"
	writer $s "${!s}" --bs=512k --blocks=8
done
small=$(map s1 "$(null small 16)" "path=$(addr server 0)" "path=$(addr server 1)")
set_attrs reconnect_delay_ms=200 reconnect_delay_max_ms=1000 failover_timeout=-1
fast_failover
writer small "$small"
large_go_on
hold rtrs_server:rdma_rw_ctx_init
wait_for 30 held || fail "no piece is held"
large_go_on
start=$SECONDS
for ((n = 0; n < 10 && $(failed_over) == 0; n++)); do
	for i in 0 1; do
		echo 1 >"$(path $i)/reconnect"
		wait_for_paths connected 20 "$(path $i)"
		goes_on "$small" 10
	done
done
say "fenced and connected again $((2 * n)) times in $((SECONDS - start)) s"
must "no request was sent again" [ "$(failed_over)" -gt 0 ]
must "the piece has gone on" held
hold -
large_go_on
writers_unharmed
for dev in "$a" "$b" "$small"; do
	unmap "$dev"
done
tear_down
