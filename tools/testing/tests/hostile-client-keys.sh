# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# As hostile-client, against a server that leaves its chunks' keys valid, so that a
# client can change a request while it is carried out. Not looking for reasons in the
# log, hence faster. And one that takes all the memory it can have.
# Modules: ours
# Time: 120

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_QUIET=1
hostile_up always_invalidate=N max_memory=128
cases all hoard >/tmp/cases.out || bad=1
hostile_told /tmp/cases.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/cases.out)"
hostile_down
