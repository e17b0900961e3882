# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# sysfs on the server: `disconnect` ends a path, which comes back by itself, and I/O goes on
# (the in-tree client's fails): at once where both ends are ours, as the server that has ended
# the old session answers for its paths. `force_close` takes a device from a session: the client's I/O
# fails, and the device can be mapped again.
# Time: 90

up
disk=$(null vol 64 irqmode=2 completion_nsec=10000000)
dev=$(map s1 "$disk")
[ "$RIG_MODULES" != ours ] || echo 3600000 >/sys/class/rtrs-client/s1/unfenced_delay_ms
load "$dev"
# shellcheck disable=SC2016
on server 'echo 1 >"$(echo /sys/class/rtrs-server/s1/paths/*/disconnect)"'
if [ "$client_modules" = ours ]; then
	before=$(ios "$dev" writes)
	wait_for 20 eval "[ \$(ios $dev writes) -gt $((before + 100)) ]" || fail "no I/O any more"
	load_goes_on
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
load "$dev"
on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1/force_close"
load_fails 30
[ ! -e "/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1" ] || fail "still listed"
dd if="$dev2" of=/dev/null bs=4k count=1 iflag=direct status=none || fail "the other device broke"
unmap "$dev" force
unmap "$dev2"
dev=$(map s1 "$disk")
verify "$dev" --bs=4k --size=1m
unmap "$dev"
down
