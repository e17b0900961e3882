# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client loses its connection during a write, and the server ends its session. Another client maps
# the volume. If it has only read, the first client continues. If it has written, the first client's
# waiting write fails, and its disk stays closed until remap_device, also after a restart of the
# server. Writes to another disk have no effect, even if the volume's disk gets the device number of
# that disk.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

# This client has its session over network 0; the other client, in the same guest, over network 1.
# lose: the server ends the first client's session
lose()
{
	set_link client 0 silent
	# Without this, the server ends it after 25 s without a heartbeat.
	on server 'for p in /sys/class/rtrs-server/s1/paths/*; do echo 1 >"$p/disconnect"; done
		wait_for 60 test ! -e /sys/class/rtrs-server/s1' || fail "the server keeps s1"
	wait_for_state "$beside" closed 60
}

map_other() { other=$(map s2 "$disk" "path=$(addr server 1)" access_mode=$mode); }

# stays_closed: after a reconnect of the session, the other disk is open and this one is not
stays_closed()
{
	lose
	set_link client 0 on
	wait_for_state "$beside" open 60
	must "it was opened again" state_is "$dev" closed
}

remap()
{
	echo 1 >"$(device_attr "$dev" remap_device)"
	wait_for_state "$dev" open
}

on server 'mkdir -p /run/rnbd-state'
set_up state_dir=/run/rnbd-state
disk=$(null vol 16)
disk2=$(null beside 16)
for mode in rw migration; do
	dev=$(map s1 "$disk" access_mode=$mode)
	beside=$(map s1 "$disk2" access_mode=ro)
	set_attrs failover_timeout=-1
	fast_failover
	expect_io 0 "$dev" write:0:64k:first

	lose
	start_io "$dev" write:0:4k:second
	map_other
	expect_io 0 "$other" read:0:4k:first
	unmap "$other"
	set_link client 0 on
	end_io 60 0
	wait_for_state "$dev" open

	lose
	start_io "$dev" write:0:4k:old
	map_other
	expect_io 0 "$other" write:0:4k:new
	mark_log
	set_link client 0 on
	end_io 60 EIO
	must "nothing in the log" eval "log_since_mark | grep -q 'a newer mapping has written'"
	expect_io 0 "$other" read:0:4k:new
	unmap "$other"
	stays_closed
	remap
	expect_io "0 0" "$dev" read:0:4k:new write:0:4k:third

	lose
	start_io "$dev" write:0:4k:old
	map_other
	expect_io "0 0" "$other" read:0:4k:third write:0:4k:newer
	unmap "$other"
	stop_server
	load_server state_dir=/run/rnbd-state
	set_link client 0 on
	end_io 60 EIO
	remap
	expect_io 0 "$dev" read:0:4k:newer

	# A restart alone changes nothing.
	expect_io 0 "$dev" write:0:4k:fourth
	stop_server
	wait_for_state "$beside" closed 60
	start_io "$dev" write:0:4k:fifth
	load_server state_dir=/run/rnbd-state
	end_io 60 0
	expect_io 0 "$dev" read:0:4k:fifth
	unmap "$beside"
	unmap "$dev"
	client_idle
done

# linked NAME: makes a disk on the server, and a symbolic link by which it is mapped
linked() { on server "ln -sfn \$(null_here $1 16) /run/$1"; }
number() { on server "stat -Lc %t:%T /run/$1"; }

say "two disks exchange their numbers: who has written to one, doesn't matter to the other"
linked one
linked two
number=$(number one)
dev=$(map s1 /run/one)
beside=$(map s1 "$disk2" access_mode=ro)
set_attrs failover_timeout=-1
fast_failover
expect_io 0 "$dev" write:0:4k:first
other=$(map s2 /run/two "path=$(addr server 1)")
expect_io 0 "$other" write:0:4k:newer
unmap "$other"
lose
on server 'rmdir /sys/kernel/config/nullb/one /sys/kernel/config/nullb/two'
linked two
linked one
equal "the number of the other disk" "$(number two)" "$number"
start_io "$dev" write:0:4k:second
set_link client 0 on
end_io 60 0
unmap "$beside"
unmap "$dev"
client_idle
on server 'rm -r /run/rnbd-state /run/one /run/two'
tear_down
