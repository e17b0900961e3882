# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Attributes of the server: `disconnect` ends a path, which is reconnected, and I/O continues (the
# in-tree client's fails); at once with our driver on both ends, as the server has ended the old
# session. `force_close` closes a device of a session: the client's I/O fails, its state is
# "closed", also after a reconnect, and remap_device or a new mapping opens it again.
# Quick: debug

. "$RIG_DIR/steps/failover.sh"

set_up
disk=$(null vol 64 irqmode=2 completion_nsec=200000000)
dev=$(map s1 "$disk")
[ "$RIG_MODULES" != ours ] || echo 3600000 >/sys/class/rtrs-client/s1/unfenced_delay_ms
start_load "$dev"
# When there are requests to be sent again
# shellcheck disable=SC2016
on server 'wait_for 20 grep -q "[1-9]" "/sys/block/vol/inflight" &&
	echo 1 >"$(echo /sys/class/rtrs-server/s1/paths/*/disconnect)"'
if [ "$client_modules" = ours ]; then
	before=$(ios "$dev" writes)
	wait_for 20 eval "[ \$(ios $dev writes) -gt $((before + 100)) ]" || fail "no I/O any more"
	stop_load
	equal "successful reconnects" "$(cut -d' ' -f1 /sys/class/rtrs-client/s1/paths/*/stats/reconnects)" 1
	must "no request was in flight" \
		[ "$(awk '{ print $6 }' /sys/class/rtrs-client/s1/paths/*/stats/rdma)" -gt 0 ]
	unmap "$dev"
else
	load_fails 30
	unmap "$dev" force
fi
client_idle
server_idle

dev=$(map s1 "$disk")
other=$(null other 16)
dev2=$(map s1 "$other")
start_load "$dev"
on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1/force_close"
load_fails 30
[ ! -e "/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1" ] || fail "still listed"
dd if="$dev2" of=/dev/null bs=4k count=1 iflag=direct status=none || fail "the other device broke"
if [ "$client_modules" = ours ]; then
	here=/sys/block/${dev#/dev/}/rnbd
	equal "state of what was taken away" "$(cat "$here/state")" closed
	equal "state of the other device" "$(cat "/sys/block/${dev2#/dev/}/rnbd/state")" open
	expect_io EIO "$dev" read:0:4k
	echo 1 >"$(path 0)/disconnect"
	equal "remap_device without a path" "$(errno_of "$here/remap_device" 1)" ENOTCONN
	echo 1 >"$(path 0)/reconnect"
	wait_for 20 grep -q open "/sys/block/${dev2#/dev/}/rnbd/state" || fail "the other device isn't open again"
	equal "state after a reconnect" "$(cat "$here/state")" closed
	equal remap_device "$(errno_of "$here/remap_device" 1)" 0
	equal "state after remap_device" "$(cat "$here/state")" open
	equal "once more" "$(errno_of "$here/remap_device" 1)" EALREADY
	expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
	# Nothing is sent to it: the client notices when it asks for the size.
	taken=/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1
	on server "echo 1 >$taken/force_close"
	equal "resize of what was taken away" "$(errno_of "$here/resize" 0)" ENOTCONN
	equal "state after that" "$(cat "$here/state")" closed
	[ ! -e "$taken" ] || fail "it is open again on the server"
fi
unmap "$dev" force
unmap "$dev2"
dev=$(map s1 "$disk")
verify "$dev" --bs=4k --size=1m
tear_down "$dev"
