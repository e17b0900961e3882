# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A busy network does not lose a path. With heartbeats every 200 ms (more on a slow machine), three
# of which may be missed, links of 20 and 5 Mbit/s are filled with large writes, on one connection
# and on all of them: nothing is reconnected or resent. Then the link is cut, which is still
# detected.
# Modules: ours
# Guests: 2
# Kernel: stock
# Rounds: 1

. "$RIG_DIR/steps/failover.sh"

# sent_again HOST: how often rdma_rxe's timer ran out there, and how often it gave up after 7 times
sent_again()
{
	on "$1" "cd /sys/class/infiniband/rxe0/ports/1/hw_counters &&
		echo \$(cat completer_retry_err) times, gave up \$(cat retry_exceeded_err)"
}

# filled RATE FIO_OPTION...: this rate, with writes of 64 KiB that wait, 64 at a time in all
filled()
{
	local rate=$1 out
	shift
	netem client 0 rate "$rate"
	netem server 0 rate "$rate"
	out=$(fio --name=slow --filename="$dev" --direct=1 --ioengine=libaio --rw=randwrite \
		--bs=64k --time_based --runtime=8 --group_reporting "$@" 2>&1) ||
		fail "$rate: $out"
	netem client 0
	netem server 0
	say "$rate, $*: $(grep -m1 ' write: ' <<<"$out" | xargs);" \
		"heartbeats $(cat "$(path 0)/stats/hb_latency");" \
		"rdma_rxe sent again $(sent_again client), $(sent_again server)"
	equal "$rate: requests sent again" "$(failed_over)" 0
	equal "$rate: reconnects" "$(reconnects)" "$were"
}

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk")
set_attrs "hb_interval_ms=$(slowly 200)" hb_max_missed=3 reconnect_delay_ms=200 reconnect_delay_max_ms=1000
were=$(reconnects)
mark_log
while next_round; do
	for rate in 20mbit 5mbit; do
		filled $rate --iodepth=64
		filled $rate --iodepth=32 --numjobs=2 --cpus_allowed=0-1 \
			--cpus_allowed_policy=split
	done
done
! log_since_mark | grep 'path ends' || fail "a path has ended"
set_link server 0 silent
must "the cut is not noticed" wait_for 10 eval "! paths_are connected $(path 0)"
set_link server 0 on
wait_for_paths connected 40 "$(path 0)"
tear_down "$dev"
