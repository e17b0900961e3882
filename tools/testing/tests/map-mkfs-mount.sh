# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The whole way of a volume: map, make a file system, mount it, write files, unmount,
# unmap, map again: the files are there, and on the server's device too.
# Once: 6.12 7.2

set_up
disk=$(null vol 256)
dev=$(map s1 "$disk")
equal "state" "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" open
equal "size" "$(blockdev --getsize64 "$dev")" $((256 << 20))

mkfs.ext4 -q "$dev"
mount "$dev" /mnt
cp -r /usr/share/perl/5*/unicore /mnt/
want=$(cd /mnt && find . -type f -exec sha256sum {} + | sort | sha256sum)
umount /mnt
unmap "$dev"
client_idle

dev=$(map s1 "$disk" access_mode=ro)
mount -o ro "$dev" /mnt
equal "files after mapping again" \
	"$(cd /mnt && find . -type f -exec sha256sum {} + | sort | sha256sum)" "$want"
umount /mnt
unmap_last "$dev"
on server "e2fsck -fn $disk" || fail "the file system on the server's device has errors"
tear_down
