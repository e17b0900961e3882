# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server that says everything wrong, in directed cases (`hostile list` has them):
# map_device, in bounded time, and I/O give just the errno that is due, and what was mapped goes
# away when it is unmapped. Paths end with the reason in the log. When it is connected to again, it
# is another one: I/O goes on if that is none of the client's business, or fails in time.
# Another session, with a good server, takes no notice.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
hostile_up
n=0
jobs=()
for case in silent-con-0 silent-con-1 info-rsp-silent silent-first silent-hb dead-con-1; do
	n=$((n + 1))
	hostile server 192.168.100.1 $((7000 + n)) $case >/tmp/silent-$n.out &
	jobs+=($!)
done
hostile server 192.168.100.1 7000 all >/tmp/cases.out || bad=1
wait "${jobs[@]}" || bad=1
hostile_told /tmp/cases.out /tmp/silent-*.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/cases.out)"
hostile_down
