# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A hostile client with slots, from whose memory the server fetches data: it describes that memory
# wrongly, ends during a fetch, and changes requests while they are executed. The stored data must
# not change: both disks of a mirror have the same data. No answer contains data of others. I/O of
# another session continues and is verified.
# Modules: ours
# Cpus: 2
# Once: stock

. "$RIG_DIR/steps/hostile.sh"
. "$RIG_DIR/steps/failover.sh"

hostile_up max_memory=64
for half in half1 half2; do
	null $half 16 >/dev/null
done
mirror md0 /dev/half1 /dev/half2

volume=other run_peer silent cases pull-gone-silent &
silent=$!
run_peer pull cases 'pull-[!g]*' 'pull-gone-[!s]*'
volume=md0 run_peer scribble cases 'scribble*'
HOSTILE_QUIET=1 HOSTILE_SLOTS=1 run_peer slots cases 'imm-off*' 'imm-slot*' 'hdr-*' 'again*' \
	'slot-on-*' 'io-*' close-busy 'gone-[dq]*'
wait $silent
peers_passed silent pull scribble slots

start=$(($(cat /sys/block/md0/md/dev-half1/offset) * 512))
wait_for 10 no_mirror md0
equal "differences between the mirror's halves" \
	"$(cmp -i "$start" /dev/half1 /dev/half2 2>&1)" ""
hostile_down
