# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server that has slots, and says everything wrong about them, or does with the client's
# memory what it was not asked to. map_device fails, or the path ends with a reason in the
# log, and I/O goes on as soon as it is connected to again. Another session, with a good
# server, takes no notice.
# Modules: ours
# Quick: debug

. "$RIG_DIR/steps/hostile.sh"
hostile_up
hostile server 192.168.100.1 7000 'pulled-*' >/tmp/pulled.out || bad=1
hostile_told /tmp/pulled.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/pulled.out)"
hostile_down
