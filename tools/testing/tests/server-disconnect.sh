# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# sysfs on the server: `disconnect` ends a path, `force_close` takes a device from a
# session. The client's I/O fails, and the device can be mapped again.
# Time: 90

up
disk=$(null vol 64)
dev=$(map s1 "$disk")
load "$dev"
# shellcheck disable=SC2016
on server 'echo 1 >"$(echo /sys/class/rtrs-server/s1/paths/*/disconnect)"'
load_fails 30
unmap "$dev" force
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
