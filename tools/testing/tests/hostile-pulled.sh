# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A hostile server with slots: invalid slots, invalid answers, invalid access to the client's
# memory. map_device fails, or the path ends with a reason in the log and I/O continues after the
# reconnect. Another session, with a valid server, is not disturbed.
# Modules: ours
# Quick: debug

. "$RIG_DIR/steps/hostile.sh"
hostile_up
run_peer pulled hostile server 192.168.100.1 7000 'pulled-*'
peers_passed pulled
hostile_down
