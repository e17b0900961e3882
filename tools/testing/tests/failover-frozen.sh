# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server stands still for some seconds, for longer than the client believes in its
# paths, and goes on: so does the client's I/O.
# Modules: ours
# Guests: 2
# Rounds: 3

. "$RIG_DIR/steps/failover.sh"
up
dice
two_disks
while more; do
	random 200 1000
	pause_ms "$rnd"
	freeze server
	become disconnected 30 "$(path 0)" "$(path 1)"
	random 0 4000
	pause_ms "$rnd"
	thaw server
	become connected 60 "$(path 0)" "$(path 1)"
	goes_on "$raw"
	goes_on "$fs"
done
two_disks_unharmed
