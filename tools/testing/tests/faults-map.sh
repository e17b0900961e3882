# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail fails in turn while a device is mapped and unmapped, on the client and on
# the server: map_device returns an errno, or the device works. Nothing is left, and the next
# attempt succeeds.
# Kernel: debug
# Modules: ours

. ../steps/faults.sh

# cycle: map, unmap. A failure on the way out stops nothing, but the unloading of the
# module does, for which unmap_device gives ENODEV.
cycle()
{
	local dev

	got=$(errno_of $ctl/map_device "$text")
	if [ "$got" = 0 ]; then
		dev=$(mapped s1 "$disk")
		up=$(cat /sys/class/rtrs-client/s1/paths/*/state | grep -cx connected)
		got=0,$(errno_of "/sys/block/$dev/rnbd/unmap_device" normal)
	fi
	disarm
	if [ "$got" = 0,ENODEV ]; then
		unmap "/dev/$dev"
	fi
	client_idle
	server_idle
	equal "disks after $hit" "$(compgen -G '/dev/rnbd[0-9]*' || true)" ""
	equal "resources after $hit" "$(rdma_resources)" "$before"
	case $got-$hit in
	unknown*)				false ;;
	0,0-)					true ;;
	0,ENODEV-*:try_module_get*)		true ;;
	# The failure may be in the search for partitions, or in the disconnect.
	0,0-*:ib_dma_map_sg*|0,0-*:ib_map_mr_sg*|0,0-*:ib_post_*)		true ;;
	0,0-*:rdma_rw_*)							true ;;
	# The server uses its reserve.
	0,0-rtrs_server:alloc_pages*|0,0-rtrs_server:sgl_alloc_order*|0,0-rtrs_server:kzalloc*)	true ;;
	0,0-*:rdma_disconnect*|0,0-*:rdma_reject*|0,0-*:percpu_ref_tryget*)	true ;;
	0,0-*:rtrs_con_*)			true ;;
	# Smaller allocations succeeded, or the client's in whole pages.
	0,0-rtrs_core:*" rtrs_region_"*)						true ;;
	0,0-rtrs_core:rdma_create_qp*|0,0-rtrs_core:ib_alloc_cq*)		true ;;
	0,0-rnbd_client:blk_mq_alloc_request*)	true ;;
	# The server offers no discards.
	0,0-rnbd_server:vfs_fallocate*)		true ;;
	0*)					false ;;
	esac
}

# two_paths: the same with a second path, which may be missing in the end. One connected
# path makes a session.
two_paths()
{
	cycle || true
	[[ $got != unknown* && ($got != 0,0 || -z $hit || $up == 1 || $up == 2) ]]
}

set_up sess_queue_depth=2
disk=$(null vol 4)
text="sessname=s1 path=$(addr server 0) device_path=$disk"
before=$(rdma_resources)
for m in rnbd_client rtrs_client rtrs_core rnbd_server rtrs_server; do
	fail_each "$m:*" 10 cycle
done

say "two paths"
text="$text path=$(addr server 1)"
fail_each 'rtrs_client:kzalloc' 10 two_paths
fail_each 'rtrs_client:rdma_*' 10 two_paths

say "add_path"
text=${text% path=*}
add="$(addr server 1)"
# added: adds a path and removes it
added()
{
	local remove="/sys/class/rtrs-client/s1/paths/*@$add/remove_path"

	got=$(errno_of /sys/class/rtrs-client/s1/add_path "$add")
	if [ "$got" = 0 ]; then
		got=0,$(errno_of "$(compgen -G "$remove")" 1)
	fi
	disarm
	if [ "$got" = 0,ENODEV ]; then
		equal "removed at the second try" "$(errno_of "$(compgen -G "$remove")" 1)" 0
	fi
	must "paths of the server after $hit" wait_for 20 server_has_paths s1 1
	equal "paths after $hit" "$(ls /sys/class/rtrs-client/s1/paths | wc -l)" 1
	equal "resources after $hit" "$(rdma_resources)" "$with_one"
	case $got-$hit in
	0,0-)					true ;;
	unknown*|*-)				false ;;
	# As with unmap_device above.
	0,ENODEV-*:try_module_get*)		true ;;
	# In the removal, or before the path took requests
	0,0-*:rdma_disconnect*|0,0-*:rdma_reject*|0,0-*:ib_post_*|0,0-*:rtrs_con_*)	true ;;
	0,0-rtrs_core:*" rtrs_region_"*)						true ;;
	0,0-rtrs_core:rdma_create_qp*|0,0-rtrs_core:ib_alloc_cq*)		true ;;
	# After the loss of a path, the size is queried.
	0,0-*:ib_dma_map_sg*|0,0-*:ib_map_mr_sg*|0,0-*:rdma_rw_*)		true ;;
	0,0-rtrs_server:alloc_pages*|0,0-rtrs_server:sgl_alloc_order*)		true ;;
	0*)					false ;;
	esac
}
dev=$(map s1 "$disk")
with_one=$(rdma_resources)
for m in rtrs_client rtrs_core rtrs_server; do
	fail_each "$m:*" 10 added
done
unmap_last "$dev"

say "a file"
backing=$(null backing 16)
on server "mkfs.ext4 -q $backing; mkdir -p /srv; mount $backing /srv; truncate -s 4M /srv/volume"
disk=/srv/volume
text="sessname=s1 path=$(addr server 0) device_path=$disk"
fail_each 'rnbd_server:*' 10 cycle
on server 'umount /srv'
points
tear_down
devices_anew
