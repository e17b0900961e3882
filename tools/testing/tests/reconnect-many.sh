# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many sessions lose their path at the same time, and all are back soon: in less time than it takes
# them one after the other, since nobody waits for anybody else.
# Modules: ours
# Time: 90

many=24
events=/sys/kernel/debug/tracing/events/rtrs_clt/rtrs_clt_path_state

# lost N...: milliseconds from the first loss until all of these sessions are connected again
lost()
{
	echo >/sys/kernel/debug/tracing/trace
	on server "for n in $*; do for path in /sys/class/rtrs-server/s\$n/paths/*; do echo 1 >\"\$path/disconnect\"; done; done"
	wait_for 30 eval "[ \$(connects) -ge $# ]" || fail "$(connects) of $# are back"
	awk '{ sub(":", "", $4); at = $4 * 1000 } / connected -> / && !first { first = at }
		/ -> connected / { last = at } END { print int(last - first) }' /sys/kernel/debug/tracing/trace
}

connects() { grep -c ' -> connected ' /sys/kernel/debug/tracing/trace; }

up
disk=$(null vol 16)
for ((n = 0; n < many; n++)); do
	dev[n]=$(map "s$n" "$disk" queue_depth=8 nr_queues=1 reconnect_delay_ms=20 reconnect_delay_max_ms=40)
done
echo 1 >$events/enable
one=0
for n in 0 1 2 3; do
	one=$((one + $(lost $n)))
done
all=$(lost $(seq 0 $((many - 1))))
echo 0 >$events/enable
say "one session at a time: $((one / 4)) ms, $many at once: $all ms"
[ $((all * 4)) -le $((many * one)) ] || fail "$many sessions take $all ms, one takes $((one / 4)) ms"
for ((n = 0; n < many; n++)); do unmap "${dev[n]}"; done
down
