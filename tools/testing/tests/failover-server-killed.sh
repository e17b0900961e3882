# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's power goes while it is written to; it comes back, with its module and its
# volumes: the client goes on by itself, and finds what it was told is written. On a volume that
# the server keeps in its page cache, it finds all that a flush has covered, and nothing else.
# Modules: ours
# Guests: 2
# Rounds: 1

. "$RIG_DIR/steps/failover.sh"

# The volumes have to outlive the guest: they are files of the host. Nothing of them may be
# left in the guest's memory alone: a file system that goes on never writes again what a
# disk's cache has lost. So the share is mounted with "sync". The third volume lies in the page
# cache of a file system on the share. It has no FUA: faults-disk-removed has a disk with that.
# serve COMMAND: also runs the command when the file system is there
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
		# Nothing is written back but by a flush.
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs"
}

# serve_cached: gives the server its third volume, from a file that has all its blocks
serve_cached() { on server "losetup /dev/loop4 /srv/volume"; }

set_up
on server 'truncate -s 32M /run/rig/raw.img /run/rig/cached.img; truncate -s 48M /run/rig/fs.img'
# Without a journal, whose commits would write blocks of the file as well
serve 'mkfs.ext4 -q -O ^has_journal /dev/loop3'
on server 'dd if=/dev/zero of=/srv/volume bs=1M count=4 conv=fsync status=none'
serve_cached
raw=$(map s1 /dev/loop1 "path=$(addr server 0)" "path=$(addr server 1)")
fs=$(map s1 /dev/loop2)
cached=$(map s1 /dev/loop4)
fast_failover
attr failover_timeout=120
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
writers_unharmed
umount /mnt
e2fsck -fn "$fs" >/tmp/fsck.out 2>&1 || fail "e2fsck: $(cat /tmp/fsck.out)"
log_quiet
tear_down "$raw" "$fs" "$cached"
on server 'losetup -d /dev/loop4; umount /srv; losetup -d /dev/loop1 /dev/loop2 /dev/loop3
	echo 500 >/proc/sys/vm/dirty_writeback_centisecs
	rm -f /run/rig/*.img'
