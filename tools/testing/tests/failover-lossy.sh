# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Networks that delay packets, that let those of one side through only, and that lose some:
# nothing is lost.
# Modules: ours
# Guests: 2
# Rounds: 1
# Once: stock

. "$RIG_DIR/steps/stale.sh"

# When rdma_rxe sends a packet again, it carries out registrations of memory again that
# stand in the send queue behind it; that fails, and leaves the queue pair standing still
# without a word. So no packet may be lost unless the path is given up for it, or all I/O
# needs no registration.

# netem_for SECONDS GUEST NET ARGUMENT...: what a guest sends meets with that for so long;
# I/O to the disks goes on meanwhile, and the path is there in the end
netem_for()
{
	local seconds=$1
	shift
	say "what the $1 sends on network $2: ${*:3}"
	# Packets are lost when the rule comes, and goes.
	echo 1 >"$(path "$2")/disconnect"
	[ "$3" = loss ] || netem "$@"
	echo 1 >"$(path "$2")/reconnect"
	[ "$3" = delay ] || netem "$@"
	pause "$seconds"
	goes_on "$raw" 60
	goes_on "$fs" 60
	if [ "$3" = delay ]; then
		is connected "$(path "$2")" || fail "the path has been given up"
		echo 1 >"$(path "$2")/disconnect"
	fi
	netem "$1" "$2"
	[ "$3" = loss ] || echo 1 >"$(path "$2")/reconnect"
	become connected 60 "$(path 0)" "$(path 1)"
	goes_on "$raw"
	goes_on "$fs"
}

up
two_disks
begun=$round
while more; do
	netem_for 2 server 0 delay 100ms
	netem_for 2 client 1 delay 100ms
	netem_for 4 client 1 loss 100%
	netem_for 4 server 0 loss 100%
done
say "$(failed_over) requests were sent again; reconnects: $(reconnects)"
two_disks_unharmed
unload

# Now some, and writes of few pages, answered by a server that doesn't register its chunks
# each time.
up always_invalidate=N
stale_begin hb_interval_ms=500 hb_max_missed=8
generation=0

# lossy SECONDS: blocks are written again and again
lossy()
{
	local end=$(($(now) + $1 * 1000))

	while [ "$(now)" -lt $end ]; do
		generation=$((generation + 1))
		equal "writes" "$(blocks write $generation)" 0
	done
	say "after $generation times 8 blocks: $(failed_over) requests were sent again;" \
		"reconnects: $(reconnects)"
}

round=$begun
while more; do
	netem client 0 loss 5%
	lossy 5
	netem server 1 loss 5% delay 20ms
	lossy 5
	netem client 0
	netem server 0 loss 5%
	lossy 5
	netem server 0
	netem server 1
	become connected 60 "$(path 0)" "$(path 1)"
	equal "blocks that are not the newest" "$(blocks read $generation)" 0
done
stale_end
down
