# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Networks that delay packets, that pass packets in one direction only, or that lose some of them:
# no data are lost. While packets are lost, requests of all forms are in flight: writes that fit in
# a slot, writes that the server fetches, reads, and registrations of memory for both. Queue pairs
# resend lost packets, and no path ends.
# Modules: ours
# Guests: 2
# Rounds: 1
# Once: stock

. "$RIG_DIR/steps/stale.sh"

# netem_for SECONDS GUEST NET ARGUMENT...: applies netem to what the guest sends on the network
# for so long, while I/O to the disks goes on
netem_for()
{
	local seconds=$1

	shift
	say "what the $1 sends on network $2: ${*:3}"
	netem "$@"
	pause "$seconds"
	goes_on "$raw" 60
	goes_on "$fs" 60
	[ "$3" != delay ] || paths_are connected "$(path "$2")" || fail "the path has ended"
	netem "$1" "$2"
	wait_for_paths connected 60 "$(path 0)" "$(path 1)"
	goes_on "$raw"
	goes_on "$fs"
}

# missed: prints the number of packets that arrived out of sequence, on client and server
missed()
{
	local n='cat /sys/class/infiniband/rxe*/ports/1/hw_counters/out_of_seq_request'

	echo $(($(eval "$n" | paste -sd+) + $(on server "$n" | paste -sd+)))
}

# some_lost ARGUMENT...: what both guests send on both networks meets with that, while all forms of
# requests are under way
some_lost()
{
	local net before missed

	before=$(reconnects) missed=$(missed)
	for net in 0 1; do
		netem client $net "$@"
		netem server $net "$@"
	done
	fio --name=reads --filename="$raw" --direct=1 --ioengine=libaio --rw=randread \
		--bssplit=4k/50:64k/25:256k/25 --iodepth=8 --runtime=5 --time_based \
		>/tmp/reads.out 2>&1 || fail "reads: $(cat /tmp/reads.out)"
	goes_on "$raw" 60
	goes_on "$fs" 60
	for net in 0 1; do
		netem client $net
		netem server $net
	done
	missed=$(($(missed) - missed))
	say "$*: $missed packets came out of sequence"
	must "nothing was lost" [ $missed -gt 20 ]
	equal "reconnects" "$(reconnects)" "$before"
}

begun=$round
for mode in Y N; do
	set_up always_invalidate=$mode
	two_disks
	round=$begun
	while next_round; do
		if [ $mode = Y ]; then
			netem_for 2 server 0 delay 100ms
			netem_for 2 client 1 delay 100ms
			netem_for 4 client 1 loss 100%
			netem_for 4 server 0 loss 100%
		fi
		set_attrs hb_interval_ms=2000 hb_max_missed=8
		some_lost loss 2%
		fast_failover
	done
	say "always_invalidate=$mode: $(failed_over) requests were sent again; reconnects: $(reconnects)"
	two_disks_unharmed
	tear_down
	unload
done
