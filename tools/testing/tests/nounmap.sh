# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Write zeroes with NOUNMAP keep the space provisioned, others release it: according to the disk's
# provisioning map.
# Modules: ours

provisioned() { on server 'cat /sys/bus/pseudo/drivers/scsi_debug/map'; }

set_up
disk=$(scsi lbpu=1 lbpws=1 lbprz=1 delay=0)
dev=$(map s1 "$disk")
dd if=/dev/urandom of="$dev" bs=64k count=16 oflag=direct status=none
equal "blocks in use" "$(provisioned)" 0-2047
fallocate -z -o 65536 -l 65536 "$dev"
equal "blocks in use after zeroing" "$(provisioned)" 0-2047
fallocate -p -o 131072 -l 65536 "$dev"
equal "blocks in use after a hole" "$(provisioned)" 0-255,384-2047
dd if="$dev" bs=64k skip=1 count=2 iflag=direct status=none | cmp -n 131072 - /dev/zero
unmap_last "$dev"
no_scsi
tear_down
