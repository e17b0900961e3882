# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each call that can fail fails in turn during I/O, on the client and on the server, with slots,
# with chunks whose data are copied or not, on a disk and on a file. The application gets an error
# or success, never wrong data, and nothing hangs. A path that ends is reconnected, and its requests
# are resent. Afterwards the device works.
# Kernel: debug
# Modules: ours

. ../steps/faults.sh

steps=(write:0:4k:a write:64k:248k:a read:0:4k:a:b read:64k:16k:a:b read:64k:248k:a:b
	discard:1m:64k fsync)
alive() { grep -qx connected /sys/class/rtrs-client/s1/paths/*/state; }
at_rest() { [ "$(cut -d' ' -f5 /sys/class/rtrs-client/s1/paths/*/stats/rdma)" = 0 ]; }

# map_disk: maps $disk and writes the data that each round starts with
map_disk()
{
	dev=$(map s1 "$disk")
	# Each failure ends the path soon after it was connected, so the delay grows to its maximum.
	echo 20 >/sys/class/rtrs-client/s1/reconnect_delay_ms
	echo 200 >/sys/class/rtrs-client/s1/reconnect_delay_max_ms
	expect_io 0 "$dev" write:0:512k:b
}

# round STEP...: does I/O with a failure, then checks that nothing is left
round()
{
	../steps/io.py "$dev" "$@" >/tmp/io.out &
	wait_for 20 ended $! || fail "I/O hangs: $(<$rtrs_faults/hit)"
	got=$(</tmp/io.out)
	disarm
	# The server reports that the device is not open: only remap_device opens it again.
	case $hit in
	rnbd_server:percpu_ref_tryget_live*)
		equal "remap_device" "$(errno_of "/sys/block/${dev#/dev/}/rnbd/remap_device" 1)" 0 ;;
	esac
	must "no path after $hit" wait_for 10 alive
	expect_io "0 0 0" "$dev" write:0:512k:b fsync read:0:512k:b
	must "requests left after $hit" wait_for 5 at_rest
	# No room in a send queue, or for what maps pages, is for nobody to notice; nor no memory
	# for data, as there is a reserve.
	case $hit in
	*:rtrs_con_*|*:ib_dma_map_sg*|*:alloc_pages*|*:sgl_alloc_order*)
		[[ $got =~ ^0( 0)*$ ]] || return ;;
	esac
	[[ $got =~ ^(0|EIO|ENOSPC)( (0|EIO|ENOSPC))*$ ]] || return
	[ -n "$hit" ] || [[ $got =~ ^0( 0)*$ ]]
}

on_disk()
{
	load_server sess_queue_depth=4 max_chunk_size=262144 "$@"
	disk=$(null vol 4 cache_size=1 discard=1)
	map_disk
	# The client of chunks does the same whether the server copies data or not.
	case $* in
	slot_size=0\ *N)	;;
	slot_size=0*)		fail_each 'rtrs_client:[!r]*' 10 round "${steps[@]}" ;;
	*)			fail_each 'r*_client:[!r]*' 10 round "${steps[@]}" ;;
	esac
	fail_each 'rtrs_*:ib_post_send' 10 round "${steps[@]}"
	fail_each 'rtrs_*:rtrs_con_*' 10 round "${steps[@]}"
	# Receives are posted in batches of 16.
	fail_each '*:ib_post_recv' 10 round read:0:512k read:0:512k read:0:512k read:0:512k
	unmap_last "$dev"
	no_nulls
	on server 'rmmod rnbd_server rtrs_server'
}

rdma_up
load_client
on_disk
on_disk slot_size=0
on_disk slot_size=0 always_invalidate=N

load_server sess_queue_depth=4
backing=$(null backing 16)
on server "mkfs.ext4 -q $backing; mkdir -p /srv; mount $backing /srv; truncate -s 4M /srv/volume"
disk=/srv/volume
map_disk
fail_each 'r*_server:[!r]*' 10 round "${steps[@]}" zeroes:1m:64k
unmap_last "$dev"
on server 'umount /srv'
points
tear_down
devices_anew
