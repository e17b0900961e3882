# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Directed cases of a hostile client (`hostile list` prints them): the server rejects each, answers
# with an errno, or ends the path and logs a reason. I/O of another session continues and is
# verified.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
hostile_up
export HOSTILE_KEYS=Y
run_peer cases cases all
peers_passed cases
equal "reconnects of the other session" "$(cat /sys/class/rtrs-client/good/paths/*/stats/reconnects)" "0 0"
hostile_down
