# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that sends messages in place of immediate data, as it must over iWARP, and what isn't
# quite that: each costs it its own path. Another session's I/O goes on, all of it verified.
# Over iWARP, a server without slots refuses all clients, and both ends' logs say why.
# Modules: ours
# Siw: debug

. "$RIG_DIR/steps/hostile.sh"
hostile_up
if [ "$rdma" = siw ]; then
	# There is no other way, and what there isn't can't be sent.
	cases no-imm 'no-imm-type*' no-imm-zero-1 no-imm-short no-imm-empty no-imm-long \
		no-imm-send-inv 'no-imm-v*' no-imm-no-write no-imm-write-before 'no-imm-f*' >/tmp/cases.out || bad=1
else
	cases 'no-imm*' >/tmp/cases.out || bad=1
fi
HOSTILE_QUIET=1 HOSTILE_NO_IMM=1 cases 'imm-off*' 'imm-slot*' 'hdr-*' 'msg-*' \
	'desc-[!l]*' open-room close-busy 'gone-[dq]*' >/tmp/slots.out || bad=1
hostile_told /tmp/cases.out /tmp/slots.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -qn1 /tmp/cases.out /tmp/slots.out)"
hostile_down

[ "$rdma" = siw ] || return 0
unload
load_server slot_size=0
load_client
mark
# siw loses the reply, and so the reason, if the end of the connection is in the same segment.
for ((try = 0; try < 20; try++)); do
	got=$(errno_of "$ctl/map_device" "sessname=s1 path=$(addr server 0) device_path=/dev/zero")
	[ "$got" = ECONNREFUSED ] || break
done
[ "$got" = EOPNOTSUPP ] || fail "a client that a server over iWARP refuses: $got"
for text in 'rtrs_server: iWARP device siw0 has no immediate data: it takes a slot_size' \
	'rtrs_client: .* refused it: .*(EOPNOTSUPP|-95)'; do
	since | grep -qE "$text" || fail "the log doesn't say: $text"
done
