# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Directed cases of a hostile server (`hostile list` prints them): map_device and I/O return the
# expected errno within a time limit, and the device can be unmapped. The log has the reason why a
# path ended. In some cases the server differs after the reconnect: I/O continues, or fails in time.
# Another session, with a valid server, is not disturbed.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
hostile_up
silent=(silent-con-0 silent-con-1 info-rsp-silent silent-first silent-hb dead-con-1 list-silent)
for n in "${!silent[@]}"; do
	run_peer "${silent[n]}" hostile server 192.168.100.1 $((7001 + n)) "${silent[n]}" &
	jobs[n]=$!
done
run_peer cases hostile server 192.168.100.1 7000 all
wait "${jobs[@]}"
peers_passed cases "${silent[@]}"
hostile_down
