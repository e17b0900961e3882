# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The client's disk has the queue limits and preferred I/O sizes of the server's device: with and
# without discard, with blocks of 512 and of 4,096 bytes. The server splits requests that are too
# large for its device.

# same_limits DISK DEVICE: fails unless the device has the limits of the server's disk
same_limits()
{
	local f
	for f in logical_block_size physical_block_size discard_granularity \
		discard_max_bytes write_zeroes_max_bytes fua write_cache; do
		[ "$RIG_MODULES $f" != "intree write_zeroes_max_bytes" ] || continue
		equal "$f of $1" "$(queue "$2" $f)" "$(server_queue "$1" $f)"
	done
	for f in optimal_io_size minimum_io_size rotational; do
		[ "$RIG_MODULES" != ours ] ||
			equal "$f of $1" "$(queue "$2" $f)" "$(server_queue "$1" $f)"
	done
	f=$(on server "cat /sys/block/${1#/dev/}/alignment_offset")
	[ "$RIG_MODULES" = intree ] || equal "alignment of $1" \
		"$(cat "/sys/block/${2#/dev/}/alignment_offset")" "$f"
	equal "size of $1" "$(blockdev --getsz "$2")" "$(on server "blockdev --getsz $1")"
	[ "$RIG_MODULES" = intree ] || must "max_hw_sectors_kb of $1" \
		[ "$(queue "$2" max_hw_sectors_kb)" = 1024 ]
	must "max_segments of $1" [ "$(queue "$2" max_segments)" -ge 1 ]
}

set_up
small=$(null small 16 max_sectors=64)
on server "echo 1 >/sys/block/${small#/dev/}/queue/rotational"
dev=$(map s1 "$small")
same_limits "$small" "$dev"
was=$(server_ios "$small" writes)
expect_io "0 0" "$dev" write:0:1m:x read:0:1m:x
[ "$RIG_MODULES" = intree ] || equal "writes of the server's disk" \
	$(($(server_ios "$small" writes) - was)) 32
unmap "$dev"

disk=$(null vol 16 blocksize=4096)
dev=$(map s1 "$disk")
same_limits "$disk" "$dev"
unmap_last "$dev"

for args in "lbpu=1 lbpws=1 physblk_exp=3 lowest_aligned=1 opt_xferlen_exp=7" \
	"sector_size=4096 lbpws=1" "lbpu=0"; do
	# shellcheck disable=SC2086
	disk=$(scsi $args)
	dev=$(map s1 "$disk")
	same_limits "$disk" "$dev"
	[ "$RIG_MODULES" = intree ] || equal "optimal size of I/O" \
		"$(queue "$dev" optimal_io_size)" $((1024 * $(queue "$dev" logical_block_size)))
	unmap_last "$dev"
	no_scsi
done
tear_down
