# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail fails in turn while a device is mapped and unmapped, on the
# client and on the server: map_device gives an errno, or the device works; either way
# nothing stays behind, and the next try, without a failure, succeeds.
# Kernel: debug
# Modules: ours
# Time: 200

. ../steps/faults.sh

# Completion queues are the RDMA core's, that keeps them for the next who wants one.
resources() { rdma resource show | sed 's/ cq [0-9]*//'; }

# cycle: map, unmap
cycle()
{
	got=$(errno_of $ctl/map_device "$text")
	[ "$got" != 0 ] || unmap "/dev/$(mapped s1 "$disk")"
	disarm
	client_idle
	server_idle
	equal "resources after $hit" "$(resources)" "$before"
	[[ $got != unknown* && ($got != 0 || -z $hit || $hit == *rdma_disconnect*) ]]
}

up sess_queue_depth=4
disk=$(null vol 4)
text="sessname=s1 path=$(addr server 0) device_path=$disk"
before=$(resources)
for m in rnbd_client rtrs_client rtrs_core rnbd_server rtrs_server; do
	each "$m:*" 10 cycle
done
points
down
