# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk has less space than its size: a thin volume, and a sparse file on a small file
# system. The application gets ENOSPC and can read what it has written; when there is space again,
# writes succeed.
# Modules: ours

# fill DEVICE: writes megabytes until an error; prints their number and the errno
fill()
{
	local at got=()
	for at in {0..31}; do
		got+=("write:${at}m:1m:all")
	done
	read -ra got <<<"$("$RIG_DIR/steps/io.py" "$1" "${got[@]}")"
	for at in {0..31}; do
		[ "${got[at]}" = 0 ] || break
	done
	echo "$at ${got[at]}"
}

# full DEVICE MB: fails unless the device takes between 2 and MB megabytes
full()
{
	local at why
	read -r at why <<<"$(fill "$1")"
	say "$why after $at MB"
	equal "writing to $1" "$why" ENOSPC
	must "it took $at MB" [ "$at" -gt 1 ]
	must "it took $at MB" [ "$at" -le "$2" ]
	# What the page cache took is lost, and fsync tells, if not why: the kernel keeps no
	# other errno for the pages of a disk.
	expect_io "ENOSPC 0 0 EIO" "$1" "write:${at}m:1m:x" "read:0m:${at}m:all" \
		"buffered:$((at + 2))m:64k:y" fsync
}

set_up
say "a thin volume of 32 MB in a pool of 8"
meta=$(null meta 4)
data=$(null data 8)
pool=$(dm pool "0 16384 thin-pool $meta $data 128 0 1 error_if_no_space")
on server 'dmsetup message pool 0 "create_thin 0"'
disk=$(dm thin "0 65536 thin $pool 0")
dev=$(map s1 "$disk")
full "$dev" 8
# Discarded blocks go back to the pool.
expect_io "0 0 0" "$dev" discard:0:4m write:20m:1m:z fsync
expect_io "0" "$dev" read:20m:1m:z
unmap_last "$dev"
no_nulls

say "a file of 32 MB on a filesystem of 16"
# shellcheck disable=SC2016
on server 'disk=$(null_here backing 16); mkfs.ext4 -q -m 0 $disk
	mkdir -p /srv; mount $disk /srv; truncate -s 32M /srv/volume'
dev=$(map s1 /srv/volume)
full "$dev" 16
expect_io "0 0 0" "$dev" discard:0:4m write:20m:1m:z fsync
expect_io "0" "$dev" read:20m:1m:z
unmap_last "$dev"
on server 'umount /srv'

say "one of 32 MB in a tmpfs of 8"
on server 'mount -t tmpfs -o size=8448k full /srv; truncate -s 32M /srv/volume'
# The last write is short.
dev=$(map s1 /srv/volume)
full "$dev" 9
expect_io "0 0" "$dev" discard:0:4m write:20m:1m:z
unmap_last "$dev"
on server 'umount /srv'
tear_down
