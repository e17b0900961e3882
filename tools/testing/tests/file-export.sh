# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A regular file on the server as a device: data, flush, discard (which makes holes), zeroes,
# read-only.
# Modules: ours

file=/srv/volume
set_up
on server "mkdir -p /srv; disk=\$(null_here backing 128); mkfs.ext4 -q \$disk; mount \$disk /srv
	truncate -s 64M $file"
dev=$(map s1 $file)
equal size "$(blockdev --getsize64 "$dev")" $((64 << 20))
verify "$dev" "$mixed" --numjobs=2 --size=8m --offset_increment=16m
dd of="$dev" count=0 conv=fsync,notrunc status=none
dd if=/dev/urandom of=/tmp/data bs=1M count=4 status=none
dd if=/tmp/data of="$dev" bs=1M oflag=direct,sync status=none
on server "head -c $((4 << 20)) $file" | cmp - /tmp/data || fail "the file has something else"
before=$(on server "du -k $file | cut -f1")
blkdiscard -o 0 -l $((2 << 20)) "$dev"
dd if="$dev" bs=1M count=2 iflag=direct status=none | cmp -n $((2 << 20)) - /dev/zero
must "a discard leaves a hole" [ "$(on server "du -k $file | cut -f1")" -lt "$before" ]
unmap_last "$dev"
dev=$(map s1 $file access_mode=ro)
! dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct 2>/dev/null || fail "written read only"
unmap_last "$dev"
map_fails 'ENOTBLK|EISDIR|EINVAL' "sessname=s1 path=$(addr server 0) device_path=/srv"
# Files without stored data
for name in /proc/version /proc/self/mem /sys/kernel/uevent_seqnum /dev/null; do
	map_fails ENOTBLK "sessname=s1 path=$(addr server 0) device_path=$name"
done
server_idle
on server 'umount /srv'
tear_down
