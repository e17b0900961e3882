# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# An open device can't be unmapped without force (EBUSY), and still works. Invalid words are
# refused.
# Quick: debug

set_up
disk=$(null vol 16)
dev=$(map s1 "$disk")
here=/sys/block/${dev#/dev/}/rnbd
exec 7<"$dev"
equal "unmap of an open device" "$(errno_of "$here/unmap_device" normal)" EBUSY
equal "state" "$(cat "$here/state")" open
dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none
for word in '' x normally 1; do
	equal "unmap '$word'" "$(errno_of "$here/unmap_device" "$word")" EINVAL
done
equal "remap of an open device" "$(errno_of "$here/remap_device" 1)" EALREADY
equal "remap with 2" "$(errno_of "$here/remap_device" 2)" EINVAL
exec 7<&-
tear_down "$dev"
