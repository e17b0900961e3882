# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that says everything wrong, in directed cases (`hostile list` has them):
# each is refused, or answered with an errno, or costs the client its own path, with a
# reason in the log. Another session's I/O goes on, all of it verified.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
hostile_up
export HOSTILE_KEYS=Y
cases all >/tmp/cases.out || bad=1
hostile_told /tmp/cases.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/cases.out)"
equal "reconnects of the other session" "$(cat /sys/class/rtrs-client/good/paths/*/stats/reconnects)" "0 0"
hostile_down
