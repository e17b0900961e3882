# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's power fails during writes. After its boot the client continues by itself and reads
# all acknowledged writes. On a volume that is in the server's page cache, it reads the data that a
# flush has covered, and no others.
# Modules: ours
# Guests: 2
# Rounds: 1

. "$RIG_DIR/steps/failover.sh"

# serve COMMAND: attaches the volumes on the server, runs the command, and mounts the file system.
# The volumes are files of the host, so that they outlive the guest. The share is mounted with
# "sync", as a mounted file system never repeats writes that a disk's cache has lost. The third
# volume is in the page cache of a file system on the share. It has no FUA, unlike a disk of
# faults-disk-removed.
serve()
{
	on server "mount -o remount,sync /run/rig
		debug_kernel || modprobe loop max_loop=8
		losetup /dev/loop1 /run/rig/raw.img
		losetup /dev/loop2 /run/rig/fs.img
		losetup /dev/loop3 /run/rig/cached.img
		$1
		mkdir -p /srv
		mount /dev/loop3 /srv
		# Only flushes write data back.
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs"
}

# serve_cached: attaches the third volume, a file without holes
serve_cached() { on server "losetup /dev/loop4 /srv/volume"; }

set_up
on server 'truncate -s 32M /run/rig/raw.img /run/rig/cached.img; truncate -s 48M /run/rig/fs.img'
# Without a journal, whose commits also write blocks of the file
serve 'mkfs.ext4 -q -O ^has_journal /dev/loop3'
on server 'dd if=/dev/zero of=/srv/volume bs=1M count=4 conv=fsync status=none'
serve_cached
raw=$(map s1 /dev/loop1 "path=$(addr server 0)" "path=$(addr server 1)")
fs=$(map s1 /dev/loop2)
cached=$(map s1 /dev/loop4)
fast_failover
set_attrs failover_timeout=120
mkfs.ext4 -q "$fs"
mount "$fs" /mnt
mark_log
seed_random
# I/O waits for as long as the server takes to boot.
hung_task_limit 120
writer raw "$raw"
writer fs /mnt/file --fsync=8
while next_round; do
	goes_on "$raw"
	goes_on "$fs"
	random_number 100 1500
	pause_ms "$rnd"
	expect_io "0 0 0" "$cached" "write:0:64k:flushed-$round" fsync "write:1m:64k:cached-$round"
	kill_guest server
	wait_for_paths disconnected 60 "$(path 0)" "$(path 1)"
	boot_guest server
	serve :
	serve_cached
	serve_again
	wait_for_paths connected 60 "$(path 0)" "$(path 1)"
	wait_for_state "$cached" open
	expect_io "0 differs" "$cached" "read:0:64k:flushed-$round" "read:1m:64k:cached-$round"
	goes_on "$raw" 40
	goes_on "$fs" 40
done
two_disks_unharmed
tear_down "$cached"
on server 'losetup -d /dev/loop4; umount /srv; losetup -d /dev/loop1 /dev/loop2 /dev/loop3
	echo 500 >/proc/sys/vm/dirty_writeback_centisecs
	rm -f /run/rig/*.img'
