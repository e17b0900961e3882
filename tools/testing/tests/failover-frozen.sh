# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's CPUs stop for longer than the client's heartbeat limit, and continue: the client's
# I/O continues as well.
# Modules: ours
# Guests: 2
# Rounds: 3

. "$RIG_DIR/steps/failover.sh"
set_up
seed_random
two_disks
while next_round; do
	random_number 200 1000
	pause_ms "$rnd"
	freeze server
	wait_for_paths disconnected 30 "$(path 0)" "$(path 1)"
	random_number 0 4000
	pause_ms "$rnd"
	thaw server
	wait_for_paths connected 60 "$(path 0)" "$(path 1)"
	goes_on "$raw"
	goes_on "$fs"
done
two_disks_unharmed
tear_down
