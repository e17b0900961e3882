# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# I/O that is larger than the server's chunks is split: with each chunk size, 1 MiB is written and
# read.

rdma_up
for chunk in 8192 65536 131072; do
	load_server max_chunk_size=$chunk slot_size=0
	load_client
	disk=$(null vol 64)
	dev=$(map s1 "$disk")
	limit=$((chunk - 4096))
	must "max_hw_sectors_kb $(queue "$dev" max_hw_sectors_kb) of $chunk" \
		[ "$(queue "$dev" max_hw_sectors_kb)" -le $((limit / 1024)) ]
	dd if=/dev/urandom of=/tmp/data bs=1M count=4 status=none
	dd if=/tmp/data of="$dev" bs=1M oflag=direct status=none
	dd if="$dev" bs=1M count=4 iflag=direct status=none | cmp - /tmp/data ||
		fail "read something else, chunks of $chunk"
	on server "dd if=$disk bs=1M count=4 iflag=direct status=none" >/tmp/back
	cmp /tmp/back /tmp/data || fail "the server has something else"
	tear_down "$dev"
	unload
done
