# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The in-tree server knows no fencing: cut, failover and reconnect work with it as well,
# after the wait that stands for it; in both of its modes.
#
# On the stock kernel alone: checkers would tell of the in-tree driver, too.
# Modules: ours
# Sets: intree
# Guests: 2
# Rounds: 1
# Kernel: stock

# shellcheck disable=SC2034
server_modules=intree
. "$RIG_DIR/steps/interop.sh"
. "$RIG_DIR/steps/failover.sh"

# lose NET: what was in hand there is answered by the other path alone
lose()
{
	random 100 1000
	pause_ms "$rnd"
	link server "$1" silent
	become disconnected 20 "$(path "$1")"
	goes_on "$raw"
	goes_on "$fs"
	writers_unharmed
	writers_on
	link server "$1" on
	# It takes no path back before it has itself noticed that the old one is dead.
	become connected 60 "$(path 0)" "$(path 1)"
}

rdma_up
dice
while more; do
	# With N it registers no memory while I/O is on, so nothing there needs mending, and
	# nothing that would help the client is done to its paths.
	for mode in N Y; do
		load_server always_invalidate=$mode
		load_client
		[ $mode = N ] || mend
		two_disks
		lose $((round % 2))
		[ "$(failed_over)" -gt 0 ] || fail "nothing was sent again"
		say "always_invalidate=$mode: $(failed_over) requests were sent again"
		two_disks_unharmed
		[ $mode = N ] || mended
		unload
	done
done
