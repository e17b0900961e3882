# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many sessions lose their path at the same time, and all are back soon: in less time than it takes
# them one after the other, since nobody waits for anybody else.
# Modules: ours
# Time: 90

many=24
tracing=/sys/kernel/debug/tracing
events=$tracing/events/rtrs_clt/rtrs_clt_path_state

connects() { grep -c ' -> connected ' $tracing/trace; }

# disconnect N...: the server ends the paths of these sessions
disconnect()
{
	on server "for n in $*; do
		for path in /sys/class/rtrs-server/s\$n/paths/*; do echo 1 >\"\$path/disconnect\"; done
	done"
}

# lost N...: all of these sessions lose their path; the milliseconds from the first loss until all
# are connected again are in $took then
lost()
{
	echo >$tracing/trace
	disconnect "$@"
	wait_for 30 eval "[ \$(connects) -ge $# ]" || fail "$(connects) of $# are back"
	took=$(awk '{ sub(":", "", $4); at = $4 * 1000 } / connected -> / && !first { first = at }
		/ -> connected / { last = at }
		END { print int(last - first) }' $tracing/trace)
}

up
for ((n = 0; n < many; n++)); do
	dev[n]=$(map "s$n" "$(null v$n 16)" queue_depth=8 nr_queues=1 reconnect_delay_ms=20)
done
echo 1 >$events/enable
one=0
for n in 0 1 2 3; do
	lost $n
	one=$((one + took))
done
# shellcheck disable=SC2046
lost $(seq 0 $((many - 1)))
echo 0 >$events/enable
say "one session at a time: $((one / 4)) ms, $many at once: $took ms"
[ $((took * 4)) -le $((many * one)) ] || fail "one after the other would be as fast"
for ((n = 0; n < many; n++)); do unmap "${dev[n]}"; done
down
