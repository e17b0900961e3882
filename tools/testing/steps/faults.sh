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

# each CALLS SECONDS COMMAND...: run the command with the first call failing, the second,
# and so on, until nothing fails. It must be true, in this time, whatever fails; it says
# in $got what came of it, and disarms before it tries anything else.
each()
{
	local calls=$1 limit=$2 n=0 start wrong=()
	shift 2
	while n=$((n + 1)); do
		arm "$calls" $n
		start=$SECONDS got=''
		"$@" || wrong+=("$got: ${hit:-no failure}")
		[ -n "$hit" ] || break
		[ $((SECONDS - start)) -le "$limit" ] || fail "$hit: took $((SECONDS - start)) s"
		points["${hit%% *}"]=$((${points["${hit%% *}"]:-0} + 1))
		echo "$got: $hit"
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
