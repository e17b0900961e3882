# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's modules are unloaded with open sessions, idle and under load: I/O of the clients
# fails, and nothing hangs. When they are loaded again, the device can be mapped again.

remove_server()
{
	local start=$EPOCHREALTIME
	stop_server
	say "$1: the server's modules were gone in $(awk "BEGIN { print $EPOCHREALTIME - $start }") s"
}

set_up
disk=$(null vol 64)
for how in idle load; do
	dev=$(map s1 "$disk")
	dev2=$(map s2 "$disk" access_mode=ro)
	fail_fast s1
	fail_fast s2
	if [ $how = load ]; then
		start_load "$dev"
	fi
	remove_server $how
	if [ $how = load ]; then
		load_fails 30
	fi
	for s in s1 s2; do
		wait_for 10 eval "! grep -qx connected /sys/class/rtrs-client/$s/paths/*/state" ||
			fail "still connected: $s"
	done
	! dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none 2>/tmp/dd.out ||
		fail "read from a server that is gone"
	unmap "$dev" force
	unmap "$dev2" force
	client_idle
	load_server
	dev=$(map s1 "$disk")
	verify "$dev" --bs=4k --size=1m
	unmap "$dev"
done
tear_down
