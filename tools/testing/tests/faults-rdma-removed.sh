# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The RDMA device of client and server is removed, when idle and under load: I/O without
# failover_timeout fails, and the disk can be unmapped; when the device is back, the disk can be
# mapped again. A second path over another device stays.
# Modules: ours

remove()
{
	local start=$EPOCHREALTIME
	rdma link delete "$rdma"0
	say "$1: the device was gone in $(awk "BEGIN { print $EPOCHREALTIME - $start }") s"
}

set_up
disk=$(null vol 32)
for how in idle load; do
	dev=$(map s1 "$disk")
	fail_fast s1
	[ $how != load ] || start_load "$dev"
	remove $how
	[ $how != load ] || load_fails 30
	expect_io EIO "$dev" read:0:4k
	unmap "$dev" force
	client_idle
	server_idle
	map_fails 'ENODEV|EADDRNOTAVAIL|EHOSTUNREACH|ENETUNREACH' \
		"sessname=s1 path=$(addr server 0) device_path=$disk"
	add_rdma 0
	dev=$(map s1 "$disk")
	verify "$dev" --bs=16k --size=1m
	unmap "$dev"
done

dev=$(map s1 "$disk" path="$(addr server 0)" path="$(addr server 1)")
remove "two paths"
expect_io "0 0" "$dev" write:0:1m:a read:0:1m:a
equal "paths that are left" \
	"$(grep -lx connected /sys/class/rtrs-client/s1/paths/*/state | wc -l)" 1
unmap "$dev"
add_rdma 0
tear_down
