# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which access modes can be combined: any number of readers, one writer, and a second writer with
# access_mode=migration.

set_up sess_queue_depth=16
disk=$(null vol 16)
r1=$(map r1 "$disk" access_mode=ro)
r2=$(map r2 "$disk" access_mode=ro)
w1=$(map w1 "$disk" access_mode=rw)
r3=$(map r3 "$disk" access_mode=ro)
a=$(addr server 0)
map_fails 'EPERM|EBUSY' "sessname=w2 path=$a device_path=$disk access_mode=rw"
map_fails 'EPERM|EBUSY' "sessname=w2 path=$a device_path=$disk"
w2=$(map w2 "$disk" access_mode=migration)
map_fails 'EPERM|EBUSY' "sessname=w3 path=$a device_path=$disk access_mode=migration"
for pair in "$r1 ro" "$r2 ro" "$r3 ro" "$w1 rw" "$w2 migration"; do
	read -r dev mode <<<"$pair"
	equal "mode of $dev" "$(cat "/sys/block/${dev#/dev/}/rnbd/access_mode")" "$mode"
done
dd if=/dev/urandom of="$w1" bs=64k count=4 oflag=direct status=none
cmp -n 262144 "$w1" "$r1"
dd if=/dev/urandom of="$w2" bs=64k count=4 oflag=direct status=none
unmap "$w1"
map_fails 'EPERM|EBUSY' "sessname=w3 path=$a device_path=$disk access_mode=rw"
unmap "$w2"
w3=$(map w3 "$disk")
for dev in "$r1" "$r2" "$r3" "$w3"; do
	unmap "$dev"
done
tear_down
