# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail made to fail in turn, on the debug kernel: its copies of the
# drivers ask rtrs-faults.ko before each of them, see debug/faults/.

fail_rtrs=/sys/kernel/debug/fail_rtrs
rtrs_faults=/sys/module/rtrs_faults/parameters

declare -A points=()

# arm CALLS N: the Nth call from now on fails, of those that match the pattern MODULE:CALL
arm()
{
	[ -e $fail_rtrs ] || probe ours rtrs-faults
	printf %s "$1" >$rtrs_faults/only
	printf - >$rtrs_faults/hit
	echo "$2" >$fail_rtrs/space
	echo 1 >$fail_rtrs/times
	echo 100 >$fail_rtrs/probability
}

# disarm: sets $hit to what failed, if anything did
disarm()
{
	echo 0 >$fail_rtrs/probability
	hit=
	[ "$(<$fail_rtrs/times)" != 0 ] || hit=$(<$rtrs_faults/hit)
}

# fail_each CALLS SECONDS COMMAND...: runs the command with the first call failing, then with the
# second, and so on, until no call fails. The command must be true within that time in each case.
# It sets $got to its result, and disarms before it tries anything else. Of the calls in a loop the
# first three fail, the last eight, and some in between.
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
			# The loop ended somewhere before this one.
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

# points: how often which call failed
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

# devices_anew: RDMA devices that nobody uses can be removed. The RDMA core warns if somebody
# still holds a part of a completion queue, which `rdma resource` doesn't show.
devices_anew()
{
	local net
	for net in 0 1; do
		rdma link delete $rdma$net
		add_rdma $net
	done
}
