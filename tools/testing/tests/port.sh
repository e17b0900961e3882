# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server on another port, and dest_port= anywhere among the options.

rdma_up
load_server port_nr=4321
load_client
disk=$(null vol 16)
a=$(addr server 0)
map_fails 'ECONNRESET|ECONNREFUSED' "sessname=s1 path=$a device_path=$disk"
echo "dest_port=4321 sessname=s1 path=$a device_path=$disk" >"$ctl/map_device"
unmap "/dev/$(mapped s1 "$disk")"
client_idle
# The in-tree driver applies dest_port only to later paths.
if [ "$client_modules" != intree ]; then
	echo "device_path=$disk path=$a sessname=s1 access_mode=rw dest_port=4321" >"$ctl/map_device"
	unmap "/dev/$(mapped s1 "$disk")"
fi
tear_down
