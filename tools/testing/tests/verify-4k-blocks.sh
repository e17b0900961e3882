# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A device with logical blocks of 4,096 bytes: the client's disk has the same block size.
# Quick: debug

set_up
disk=$(null vol 128 blocksize=4096)
dev=$(map s1 "$disk")
equal "logical block size" "$(queue "$dev" logical_block_size)" 4096
equal "size" "$(blockdev --getsize64 "$dev")" $((128 << 20))
verify "$dev" "$mixed4k" --numjobs=4 --size=8m --offset_increment=16m
! dd if=/dev/zero of="$dev" bs=512 count=1 oflag=direct 2>/dev/null ||
	fail "a write of 512 bytes was taken"
tear_down "$dev"
