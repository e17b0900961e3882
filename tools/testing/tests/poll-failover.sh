# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Polling and other jobs write and verify on a raw disk and on ext4, over two paths. Paths are cut,
# disconnected and reconnected, and all are lost and reconnected: no error, and nothing hangs.
# Modules: ours
# Guests: 2
# Rounds: 2

. "$RIG_DIR/steps/failover.sh"

all_go_on()
{
	goes_on "$raw"
	goes_on "$fs"
}

set_up
seed_random
a=$(null raw 32) b=$(null fs 48)
raw=$(map s1 "$a" "path=$(addr server 0)" "path=$(addr server 1)" nr_poll_queues=1)
fs=$(map s1 "$b")
fast_failover
equal "polls" "$(queue "$raw" io_poll) $(queue "$fs" io_poll)" "1 1"
mkfs.ext4 -q "$fs"
mount "$fs" /mnt
mark_log
raw_writer raw "$raw" --depth=2 --poll
writer plain-raw "$raw" --depth=2 --offset=16m
writer fs /mnt/file --poll
# fsync does not poll.
writer plain-fs /mnt/plain --fsync=32
all_go_on
while next_round; do
	net=$((round % 2)) other=$((1 - round % 2))
	set_link server $net silent
	wait_for_paths disconnected 20 "$(path $net)"
	all_go_on
	set_link server $net on
	wait_for_paths connected 20 "$(path 0)" "$(path 1)"

	echo 1 >"$(path $other)/disconnect"
	all_go_on
	echo 1 >"$(path $net)/disconnect"
	random_number 10 500
	pause_ms "$rnd"
	echo 1 >"$(path $net)/reconnect"
	all_go_on
	echo 1 >"$(path $other)/reconnect"
	random_number 10 200
	pause_ms "$rnd"
done
say "$(failed_over) requests were sent again"
[ "$(failed_over)" -gt 0 ] || fail "no path was lost with requests in flight"
two_disks_unharmed
tear_down
