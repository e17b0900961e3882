# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many sessions lose their path at the same time, over a network with a delay of 300 ms: all are
# connected again in a quarter of the time that they would take one after the other.
# Modules: ours
# Guests: 2

many=24
events=$tracing/events/rtrs_clt/rtrs_clt_path_state

# sessions_back: prints the number of sessions that have connected again
sessions_back() { grep ' -> connected ' $tracing/trace | grep -oE ' s[0-9]+ ip:' | sort -u | wc -l; }

# disconnect N...: the server ends the paths of these sessions
disconnect()
{
	on server "for n in $*; do
		for path in /sys/class/rtrs-server/s\$n/paths/*; do
			echo 1 >\"\$path/disconnect\" &
		done
	done
	wait"
}

# lost N...: all of these sessions lose their path; the milliseconds from the last loss until all
# are connected again are in $took then
lost()
{
	echo >$tracing/trace
	disconnect "$@"
	wait_for 30 eval "[ \$(sessions_back) = $# ]" || fail "$(sessions_back) of $# are back"
	equal "lost" "$(grep -c ' connected -> ' $tracing/trace)" $#
	took=$(awk '{ sub(":", "", $4); at = $4 * 1000 } / connected -> / { lost = at }
		/ -> connected / { back = at }
		END { print int(back - lost) }' $tracing/trace)
	[ "$took" -gt 0 ] || fail "the last one isn't back"
}

set_up
on server "for ((n = 0; n < $many; n++)); do null_here v\$n 16 >/dev/null; done"
for ((n = 0; n < many; n++)); do
	dev[n]=$(map "s$n" /dev/v$n queue_depth=8 nr_queues=1 reconnect_delay_ms=20)
done
netem server 0 delay 300ms
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
[ $((took * 16)) -le $((many * one)) ] || fail "one after the other is not much slower"
netem server 0
for ((n = 0; n < many; n++)); do unmap "${dev[n]}"; done
tear_down
