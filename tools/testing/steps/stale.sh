# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The stale write: what the client sends on network 0 is held up in the network, so that
# the path there is given up; its writes are repeated over the other and acknowledged, and
# the same blocks written anew, which is acknowledged as well. Then what was held up comes
# through. The blocks must hold the newer data. Half of them fit in a slot of the server, the
# others are fetched by it.

. "$RIG_DIR/steps/failover.sh"

# blocks COMMAND...: passes a command to steps/blocks.py and prints its answer
blocks()
{
	local answer
	echo "$*" >&"${BLOCKS[1]}"
	read -r -t 60 answer <&"${BLOCKS[0]}" || fail "blocks.py $*: no answer; $(show_paths)"
	echo "$answer"
}

# stale_begin [ATTRIBUTE=VALUE...]: $dev over both networks, taking turns; 8 blocks of it
stale_begin()
{
	[ -n "${disk:-}" ] || disk=$(null vol 16)
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	attr mp_policy=round-robin reconnect_delay_ms=200 reconnect_delay_max_ms=1000 "$@"
	coproc BLOCKS { exec "$RIG_DIR/steps/blocks.py" "$dev" 8 4096,16384 2>/tmp/blocks.err; }
}

stale_end()
{
	local pid=$BLOCKS_PID
	eval "exec ${BLOCKS[1]}>&-"
	wait_for 20 ended "$pid" || fail "blocks.py doesn't end"
	unmap_last "$dev"
}

# stale_round: true if all blocks are as they were written last; else $stale says what is
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
	# What came before a ping has come through, and then takes a moment.
	wait_for 20 eval "busybox ping -c1 -W1 $(addr server 0 | cut -d: -f2) >/dev/null" ||
		fail "network 0 doesn't work"
	pause 0.3
	wait $! || fail "disconnect failed"
	stale=$(blocks read $new)
	echo 1 >"$(path 0)/reconnect"
	wait_for_paths connected 40 "$(path 0)" "$(path 1)"
	[ "$stale" = 0 ]
}
