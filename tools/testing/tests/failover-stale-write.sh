# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A write that was held up in the network, and repeated over another path, doesn't come
# back to destroy what was written after it: in no round with fencing; without it it does,
# or this would test nothing. So with one that the server's disk holds up.
#
# On the stock kernel alone, as its moments are chosen for that kernel's speed.
# Modules: ours
# Guests: 2
# Rounds: 4
# Kernel: stock

. "$RIG_DIR/steps/stale.sh"

# The option goes for paths that are made from then on.
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

# With fencing, its answer waits for what the disk has in hand.
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
