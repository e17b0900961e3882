# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Four jobs write blocks of 512 bytes to 1 MiB and read them: all checksums are right, and no other
# data have changed.
# Once: debug 7.2
# Siw: debug

set_up
disk=$(null vol 128)
dev=$(map s1 "$disk")
verify "$dev" "$mixed" --numjobs=4 --size=8m --offset_increment=16m
equal "the space between the jobs" \
	"$(on server "cmp -n $((8 << 20)) -i $((8 << 20)):0 $disk /dev/zero && echo zero")" zero
tear_down "$dev"
