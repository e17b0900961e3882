# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Network cables are pulled and plugged in at random times, with and without a carrier event, on one
# network, the other, or both. A raw disk and a file system are written to and verified meanwhile,
# without errors.
#
# The debug kernel's network card has no carrier: there, all cables become silent.
# Modules: ours
# Guests: 2
# Rounds: 3
# Once: 6.12

. "$RIG_DIR/steps/failover.sh"
set_up
seed_random
two_disks

# cut_for_a_while NET...: cuts these networks for a random time
cut_for_a_while()
{
	local net how=off

	random_number 0 1
	[ "$rnd" = 0 ] || how=silent
	for net in "$@"; do
		set_link server "$net" $how
	done
	# Short cuts lose a few packets; long ones end paths.
	random_number "$((round % 3 ? 200 : 2500))" 4000
	pause_ms "$rnd"
	say "round $round: networks $*, $how for $rnd ms"
	for net in "$@"; do
		set_link server "$net" on
	done
}

while next_round; do
	random_number 100 1500
	pause_ms "$rnd"
	case $((round % 3)) in
	1) cut_for_a_while 0 ;;
	2) cut_for_a_while 1 ;;
	0) cut_for_a_while 0 1 ;;
	esac
	wait_for_paths connected 40 "$(path 0)" "$(path 1)"
	goes_on "$raw"
	goes_on "$fs"
done
say "$(failed_over) requests were sent again; reconnects: $(reconnects)"
must "nothing was sent again" [ "$(failed_over)" -gt 0 ]
two_disks_unharmed
tear_down
