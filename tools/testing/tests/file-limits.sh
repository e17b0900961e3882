# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A file's size is rounded down to its block size. Discards are offered for a file if its
# filesystem can punch holes (ext4), and not if it can't (FAT), which also makes write
# zeroes write zeroes. The debug kernel has no FAT.
# Modules: ours
# Kernel: stock
# Once: stock

set_up
on server 'mkdir -p /srv/4k /srv/fat
	disk=$(null_here d4k 64 blocksize=4096); mkfs.ext4 -q $disk; mount $disk /srv/4k
	truncate -s $(((16 << 20) + 512)) /srv/4k/file
	disk=$(null_here fat 64); busybox mkdosfs $disk; modprobe -a vfat nls_cp437 nls_ascii
	mount -t vfat $disk /srv/fat; head -c 16M /dev/urandom >/srv/fat/file'

dev=$(map s1 /srv/4k/file)
equal "block size" "$(blockdev --getss "$dev")" 4096
equal "size of a file that ends within a block" "$(blockdev --getsize64 "$dev")" $((16 << 20))
must "discards on ext4" [ "$(queue "$dev" discard_max_bytes)" -gt 0 ]
blkdiscard "$dev"
unmap "$dev"

dev=$(map s1 /srv/fat/file)
equal "size" "$(blockdev --getsize64 "$dev")" $((16 << 20))
equal "discards on FAT" "$(queue "$dev" discard_max_bytes)" 0
equal "write zeroes on FAT" "$(queue "$dev" write_zeroes_max_bytes)" 0
blkdiscard -z -l 1M "$dev"
cmp -n 1048576 "$dev" /dev/zero || fail "not zero"
unmap_last "$dev"
on server 'umount /srv/4k /srv/fat'
tear_down
