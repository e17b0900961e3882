# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A hostile client with valid and invalid messages in place of immediate data, as over iWARP:
# invalid ones end the path. I/O of another session continues and is verified. Over iWARP, a server
# without slots refuses all clients, and both ends log the reason.
# Modules: ours
# Siw: debug

. "$RIG_DIR/steps/hostile.sh"
hostile_up
if [ "$rdma" = siw ]; then
	# iWARP has no immediate data, and the feature is always granted.
	run_peer cases cases no-imm 'no-imm-type*' no-imm-zero-1 no-imm-short no-imm-empty \
		no-imm-long no-imm-send-inv 'no-imm-v*' no-imm-no-write no-imm-write-before 'no-imm-f*'
else
	run_peer cases cases 'no-imm*'
fi
HOSTILE_QUIET=1 HOSTILE_NO_IMM=1 run_peer slots cases 'imm-off*' 'imm-slot*' 'hdr-*' 'msg-*' \
	'desc-*' close-busy 'gone-[dq]*'
peers_passed cases slots
hostile_down

[ "$rdma" = siw ] || return 0
unload
load_server slot_size=0
load_client
mark_log
# siw loses the reply, and with it the reason, if the segment also has the end of the connection.
for ((try = 0; try < 20; try++)); do
	got=$(errno_of "$ctl/map_device" "sessname=s1 path=$(addr server 0) device_path=/dev/zero")
	[ "$got" = ECONNREFUSED ] || break
done
[ "$got" = EOPNOTSUPP ] || fail "map_device with a server over iWARP without slots: $got"
for text in 'rtrs_server: iWARP device siw0 has no immediate data: slot_size must not be 0' \
	'rtrs_client: .* refused it: .*(EOPNOTSUPP|-95)'; do
	log_since_mark | grep -qE "$text" || fail "the log does not have: $text"
done
