# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A device mapped read only stays so, even if the client's user makes it writable.

up
disk=$(null vol 16 discard=1)
on server "dd if=/dev/urandom of=$disk bs=1M oflag=direct status=none count=16"
before=$(on server "sum $disk")
dev=$(map s1 "$disk" access_mode=ro)
equal "ro" "$(cat "/sys/block/${dev#/dev/}/ro")" 1
equal "read_only on the server" \
	"$(on server "cat /sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1/read_only")" 1
for mode in --setro --setrw; do
	blockdev $mode "$dev" || true
	! dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct 2>/dev/null ||
		fail "a write was taken after blockdev $mode"
	! blkdiscard -l 4096 "$dev" 2>/dev/null || fail "a discard was taken after blockdev $mode"
	! blkdiscard -z -l 4096 "$dev" 2>/dev/null || fail "zeroes were taken after blockdev $mode"
done
equal "read through the client" "$(sum "$dev")" "$before"
unmap "$dev"
server_idle
equal "the server's data" "$(on server "sum $disk")" "$before"
down
