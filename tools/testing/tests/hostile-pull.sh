# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that has slots, and whose data are fetched from its memory: it says everything
# wrong about that memory, goes away in the midst of a fetch, and changes its requests while
# they are carried out, which must change nothing that is stored: a mirror of two disks has the
# same on both. No answer brings what is not the client's. Another session's I/O goes on, all
# of it verified.
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

volume=other cases pull-gone-silent >/tmp/silent.out &
silent=$!
cases 'pull-[!g]*' 'pull-gone-[!s]*' >/tmp/pull.out || bad=1
volume=md0 cases 'scribble*' >/tmp/scribble.out || bad=1
HOSTILE_QUIET=1 HOSTILE_SLOTS=1 cases 'imm-off*' 'imm-slot*' 'hdr-*' 'again*' \
	'slot-on-*' 'io-[!p]*' open-room close-busy 'gone-[dq]*' >/tmp/slots.out || bad=1
wait $silent || bad=1
hostile_told /tmp/silent.out /tmp/pull.out /tmp/scribble.out /tmp/slots.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -qn1 /tmp/pull.out /tmp/scribble.out /tmp/slots.out)"

start=$(($(cat /sys/block/md0/md/dev-half1/offset) * 512))
wait_for 10 no_mirror md0
equal "differences between the mirror's halves" \
	"$(cmp -i "$start" /dev/half1 /dev/half2 2>&1)" ""
hostile_down
