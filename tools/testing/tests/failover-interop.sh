# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The in-tree server knows no fencing: cut, failover and reconnect work with it as well,
# after the wait that stands for it.
# Modules: ours
# Sets: intree
# Guests: 2
# Time: 200
# Rounds: 1
# Kernel: stock

# shellcheck disable=SC2034
server_modules=intree
. "$RIG_DIR/steps/interop.sh"
. "$RIG_DIR/steps/failover.sh"
up
dice
mend
two_disks
while more; do
	random 100 1000
	pause_ms "$rnd"
	net=$((round % 2))
	link server $net silent
	become disconnected 20 "$(path $net)"
	goes_on "$raw"
	goes_on "$fs"
	link server $net on
	# It takes no path back before it has itself noticed that the old one is dead.
	become connected 60 "$(path 0)" "$(path 1)"
done
say "$(failed_over) requests were sent again"
two_disks_unharmed
mended
unload
