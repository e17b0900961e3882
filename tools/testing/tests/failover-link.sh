# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Cables are pulled and plugged in again at random moments, seen by the network card or
# not, one, the other, both; a raw disk and a file system are written to and verified all
# the while, and notice nothing.
#
# The debug kernel's network card sees no cable pulled: there they all fall silent.
# Modules: ours
# Guests: 2
# Rounds: 3
# Once: 6.12

. "$RIG_DIR/steps/failover.sh"
up
dice
two_disks

# Long enough for the path to be given up: when a packet is sent again, rdma_rxe carries
# out registrations of memory again that stand in the send queue behind it, which fails
# and leaves the queue pair standing still, without a word.
shortest=1500
! debug_kernel || shortest=3000

# cut_for_a_while NET...: interrupts these networks for a random time
cut_for_a_while()
{
	local net how=off

	random 0 1
	[ "$rnd" = 0 ] || how=silent
	for net in "$@"; do
		link server "$net" $how
	done
	random "$shortest" 4000
	pause_ms "$rnd"
	say "round $round: networks $*, $how for $rnd ms"
	for net in "$@"; do
		link server "$net" on
	done
}

# From 6.12 on a pulled cable can leave a port of rdma_rxe where nothing can be connected
# any more: see Documentation/rtrs.rst, "Known issues". A new device can.
# shellcheck disable=SC2016
renew_rxe='for net in 0 1; do
	rdma resource show qp link rxe$net | grep -q "type GSI state ERR" || continue
	say "rxe$net is made again"
	rdma link del rxe$net
	add_rdma $net
done'

all_connected()
{
	for _ in 1 2 3; do
		! wait_for 15 is connected "$(path 0)" "$(path 1)" || return 0
		on server "$renew_rxe"
	done
	become connected 40 "$(path 0)" "$(path 1)"
}

while more; do
	random 100 1500
	pause_ms "$rnd"
	case $((round % 3)) in
	1) cut_for_a_while 0 ;;
	2) cut_for_a_while 1 ;;
	0) cut_for_a_while 0 1 ;;
	esac
	all_connected
	goes_on "$raw"
	goes_on "$fs"
done
say "$(failed_over) requests were sent again; reconnects: $(reconnects)"
must "nothing was sent again" [ "$(failed_over)" -gt 0 ]
two_disks_unharmed
