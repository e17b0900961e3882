# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Fault injection on the debug kernel: each call that can fail fails in turn, see debug/faults/.

fail_rtrs=/sys/kernel/debug/fail_rtrs
rtrs_faults=/sys/module/rtrs_faults/parameters

declare -A points=()

# arm CALLS N: makes the Nth call fail that matches the pattern MODULE:CALL
arm()
{
	[ -e $fail_rtrs ] || probe ours rtrs-faults
	printf %s "$1" >$rtrs_faults/only
	printf - >$rtrs_faults/hit
	echo "$2" >$fail_rtrs/space
	echo 1 >$fail_rtrs/times
	echo 100 >$fail_rtrs/probability
}

# disarm: ends the injection; sets $hit to the call that failed, if any
disarm()
{
	echo 0 >$fail_rtrs/probability
	hit=
	[ "$(<$fail_rtrs/times)" != 0 ] || hit=$(<$rtrs_faults/hit)
}

# fail_each CALLS SECONDS COMMAND...: runs the command with a failure of the first call, then of the
# second, and so on, until no call fails. The command must be true within that time. It sets $got to
# its result, and calls disarm. Of the calls in a loop, the first three and the last eight fail, and
# some in between.
fail_each()
{
	local calls=$1 limit=$2 n=1 done=0 same=0 last='' start wrong=()
	shift 2
	while :; do
		arm "$calls" $n
		start=$SECONDS got=''
		if ! "$@"; then
			wrong+=("$got: ${hit:-no failure}")
		fi
		[ $((SECONDS - start)) -le "$(slowly "$limit")" ] || fail "$hit: took $((SECONDS - start)) s"
		if [ "$hit" = "$last" ] && [ -n "$hit" ]; then
			same=$((same + 1))
		elif [ $((n - done)) -gt 1 ]; then
			# The loop has ended before this call.
			same=-8 n=$((done + 1))
			continue
		else
			same=0
		fi
		[ -n "$hit" ] || break
		points["${hit%% *}"]=$((${points["${hit%% *}"]:-0} + 1))
		echo "$n $got: $hit"
		last=$hit done=$n
		n=$((n + (same < 3 ? 1 : 8)))
	done
	say "$calls: $((n - 1)) calls"
	[ ${#wrong[@]} = 0 ] || fail "${#wrong[@]} failures of $calls came out wrong: $(printf '\n  %s' "${wrong[@]}")"
}

# points: prints the number of failures of each call
points()
{
	local call n=0
	for call in "${!points[@]}"; do
		n=$((n + ${points[$call]}))
	done
	say "$n failures of ${#points[@]} different calls:"
	for call in "${!points[@]}"; do
		echo "${points[$call]} $call"
	done | sort -k2 | xargs -n 8 | sed 's/^/# /'
}

# devices_anew: removes the unused RDMA devices and adds them again. The RDMA core warns about parts
# of completion queues in use, which `rdma resource` does not show.
devices_anew()
{
	local net
	for net in 0 1; do
		rdma link delete $rdma$net
		add_rdma $net
	done
}
