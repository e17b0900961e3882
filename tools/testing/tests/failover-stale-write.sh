# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A write that is delayed in the network, and was resent on another path, does not overwrite newer
# data when it arrives: never with fencing; without fencing it does, which shows that the test
# works. The same with a write that the server's disk delays.
#
# Only the stock kernel, as the delays are chosen for its speed.
# Modules: ours
# Guests: 2
# Rounds: 4
# Kernel: stock

. "$RIG_DIR/steps/stale.sh"

# The option applies to paths that are added afterwards.
fencing() { echo "$1" >/sys/kernel/debug/rtrs_client/fencing; }

set_up
seed_random
fencing Y
stale_begin
while next_round; do
	stale_round || fail "stale blocks after round $round, with fencing: $stale"
done
stale_end

fencing N
stale_begin unfenced_delay_ms=0
bad=0
for round in 1 2 3; do
	stale_round || { bad=$((bad + 1)); say "without fencing: $stale"; }
done
fencing Y
must "without fencing nothing went wrong: is it held up at all?" [ $bad -gt 0 ]
stale_end

# FENCED is sent after the requests at the disk have ended.
slow=$(dm slow "0 32768 delay $disk 0 0 $disk 0 1500")
disk=$slow
stale_begin
for round in 1 2; do
	blocks start $((2 * round)) >/dev/null
	random_number 100 1200
	pause_ms "$rnd"
	echo 1 >"$(path 0)/disconnect" &
	equal "the old writes" "$(blocks wait)" 0
	equal "the new writes" "$(blocks write $((2 * round + 1)))" 0
	wait $! || fail "disconnect failed"
	pause 1.6
	equal "stale blocks" "$(blocks read $((2 * round + 1)))" 0
	echo 1 >"$(path 0)/reconnect"
	wait_for_paths connected 40 "$(path 0)" "$(path 1)"
done
stale_end
tear_down
