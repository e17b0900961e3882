# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Stale writes: network 0 delays the client's packets, so that the path there is lost; its writes
# are resent on the other path and acknowledged, and the same blocks are written again and
# acknowledged. Then the delayed packets arrive. The blocks must have the newer data. Half of the
# writes fit in a slot of the server, the server fetches the others.

. "$RIG_DIR/steps/failover.sh"

# blocks COMMAND...: passes a command to steps/blocks.py and prints its answer
blocks()
{
	local answer
	echo "$*" >&"${BLOCKS[1]}"
	read -r -t 60 answer <&"${BLOCKS[0]}" || fail "blocks.py $*: no answer; $(show_paths)"
	echo "$answer"
}

# stale_begin [ATTRIBUTE=VALUE...]: maps $dev over both networks, with round-robin; uses 8 blocks
stale_begin()
{
	[ -n "${disk:-}" ] || disk=$(null vol 16)
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	set_attrs mp_policy=round-robin reconnect_delay_ms=200 reconnect_delay_max_ms=1000 "$@"
	coproc BLOCKS { exec "$RIG_DIR/steps/blocks.py" "$dev" 8 4096,16384 2>/tmp/blocks.err; }
}

stale_end()
{
	local pid=$BLOCKS_PID
	eval "exec ${BLOCKS[1]}>&-"
	wait_for 20 ended "$pid" || fail "blocks.py doesn't end"
	unmap_last "$dev"
}

# stale_round: true if all blocks have the newest data; otherwise $stale describes them
stale_round()
{
	local old=$((2 * round)) new=$((2 * round + 1)) held before

	before=$(failed_over)
	set_link client 0 hold
	blocks start $old >/dev/null
	random_number 30 600
	held=$rnd
	pause_ms "$held"
	echo 1 >"$(path 0)/disconnect" &
	equal "the old writes" "$(blocks wait)" 0
	must "nothing was on that path" [ "$(failed_over)" -gt "$before" ]
	equal "the new writes" "$(blocks write $new)" 0
	random_number 0 400
	pause_ms "$rnd"
	set_link client 0 on
	# Packets before the ping have arrived; they are handled a moment later.
	wait_for 20 eval "busybox ping -c1 -W1 $(addr server 0 | cut -d: -f2) >/dev/null" ||
		fail "network 0 doesn't work"
	pause 0.3
	wait $! || fail "disconnect failed"
	stale=$(blocks read $new)
	echo 1 >"$(path 0)/reconnect"
	wait_for_paths connected 40 "$(path 0)" "$(path 1)"
	[ "$stale" = 0 ]
}
