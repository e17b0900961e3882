# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The client's modules can't be unloaded while a device is open, idle or under load. When it is
# closed they can, with the device still mapped, and the server has no session left.

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk")
exec 7<"$dev"
! rmmod rnbd_client 2>/dev/null || fail "removed with an open device"
! rmmod rtrs_client 2>/dev/null || fail "the transport was removed below its user"
exec 7<&-
start_load "$dev"
! rmmod rnbd_client 2>/dev/null || fail "removed under load"
stop_load
wait_for 10 rmmod rnbd_client 2>/dev/null || fail "not removed with the device closed"
[ ! -e "$dev" ] || fail "$dev is left"
rmmod rtrs_client
server_idle
load_client
dev=$(map s1 "$disk")
verify "$dev" --bs=4k --size=1m
tear_down "$dev"
