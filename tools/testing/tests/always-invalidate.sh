# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server with chunks, with and without always_invalidate. A client changes a write's data in its
# chunk while the server's disk is suspended. With always_invalidate the disk stores the data as
# they were sent, otherwise as they were changed. slots.sh does the same with small slots.

. "$RIG_DIR/steps/hostile.sh"

rdma_up
for mode in Y N; do
	load_server always_invalidate=$mode slot_size=0
	load_client
	equal "always_invalidate" "$(on server 'cat /sys/module/rtrs_server/parameters/always_invalidate')" $mode
	disk=$(null vol 128)
	dev=$(map s1 "$disk")
	verify "$dev" "$mixed" --numjobs=2 --size=8m --offset_increment=16m
	dd if=/dev/urandom of=/tmp/data bs=1M count=8 status=none
	dd if=/tmp/data of="$dev" bs=1M oflag=direct status=none
	on server "dd if=$disk bs=1M count=8 iflag=direct status=none" | cmp - /tmp/data ||
		fail "the server has something else"
	unmap "$dev"
	change_under_way "$disk" $mode
	tear_down
	unload
done
