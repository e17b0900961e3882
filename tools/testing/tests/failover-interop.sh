# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The in-tree server has no fencing. After the loss of a path, requests are resent on another path
# after unfenced_delay_ms, and the path is reconnected; in both modes of that server.
#
# Only the stock kernel, as checkers would also report errors of the in-tree driver.
# Modules: ours
# Sets: intree
# Guests: 2
# Rounds: 1
# Kernel: stock

# shellcheck disable=SC2034
server_modules=intree
. "$RIG_DIR/steps/interop.sh"
. "$RIG_DIR/steps/failover.sh"

events=$tracing/events/rtrs_clt
wait_ms=3000

# trace_waits on|off: traces lost and resent requests
trace_waits()
{
	local event value=0
	[ "$1" = off ] || { value=1; echo >$tracing/trace; }
	for event in rtrs_clt_failover rtrs_clt_post; do
		echo $value >$events/$event/enable
	done
}

# waits: prints for each request of a lost path the milliseconds until it was resent
waits()
{
	sed -n 's/.* \([0-9.]*\): rtrs_clt_\(failover\|post\): .*: slot \([0-9]*\) .*/\1 \2 \3/p' \
		$tracing/trace |
		awk '$2 == "failover" { died[$3] = $1 }
			$2 == "post" && $3 in died { print int(($1 - died[$3]) * 1000); delete died[$3] }'
}

# all_sent_again: true if there are requests of a lost path, and all were resent
all_sent_again()
{
	local n
	n=$(waits | wc -w)
	[ "$n" -gt 0 ] && [ "$n" -ge "$(grep -c ' rtrs_clt_failover: ' $tracing/trace)" ]
}

# waited_long MODE: fails if a request was resent too early, or too late, as the other path was
# connected
waited_long()
{
	local shortest longest all

	all=$(waits | sort -n)
	shortest=$(head -n 1 <<<"$all") longest=$(tail -n 1 <<<"$all")
	say "always_invalidate=$1: $(wc -w <<<"$all") requests were sent again after $shortest to $longest ms"
	must "no request was sent again" [ -n "$all" ]
	# Minus one tick of the client's timer
	must "one was sent again after $shortest ms" [ "$shortest" -ge $((wait_ms - 10)) ]
	must "one was sent again after $longest ms" \
		[ "$longest" -le $((wait_ms + $(slowly 2) * 1000)) ]
}

# lose NET: cuts a network; requests in flight there are answered over the other path only
lose()
{
	random_number 100 1000
	pause_ms "$rnd"
	trace_waits on
	set_link server "$1" silent
	wait_for_paths disconnected 20 "$(path "$1")"
	# The buffer of the trace is too small for all requests of the test.
	wait_for 30 all_sent_again || fail "requests were not sent again"
	trace_waits off
	goes_on "$raw"
	goes_on "$fs"
	writers_unharmed
	writers_on
	set_link server "$1" on
	# The server accepts no reconnect before it has detected the loss of the old path.
	wait_for_paths connected 60 "$(path 0)" "$(path 1)"
}

rdma_up
seed_random
while next_round; do
	for mode in N Y; do
		load_server always_invalidate=$mode
		load_client
		two_disks
		set_attrs unfenced_delay_ms=$wait_ms
		lose $((round % 2))
		waited_long $mode
		two_disks_unharmed
		tear_down
		unload
	done
done
