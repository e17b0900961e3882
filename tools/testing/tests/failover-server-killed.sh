# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's power goes while it is written to; it comes back, with its module and its
# volumes: the client goes on by itself, and finds what it was told is written.
#
# On the stock kernel alone: a kernel whose power goes can't be asked for leaks, and what
# the client does is what it does in failover-frozen on the debug kernel.
# Modules: ours
# Guests: 2
# Rounds: 1
# Kernel: stock

. "$RIG_DIR/steps/failover.sh"

# The volumes have to outlive the guest: they are files of the host. Nothing of them may be
# left in the guest's memory alone: a file system that goes on never writes again what a
# disk's cache has lost. So the share is mounted with "sync".
serve()
{
	on server "mount -o remount,sync /run/rig
		debug_kernel || modprobe loop max_loop=8
		losetup /dev/loop1 /run/rig/raw.img
		losetup /dev/loop2 /run/rig/fs.img"
}

up
on server 'truncate -s 32M /run/rig/raw.img; truncate -s 48M /run/rig/fs.img'
serve
raw=$(map s1 /dev/loop1 "path=$(addr server 0)" "path=$(addr server 1)")
fs=$(map s1 /dev/loop2)
soon
attr failover_timeout=120
mkfs.ext4 -q "$fs"
mount "$fs" /mnt
mark
dice
# I/O waits for as long as the server takes to boot.
patience 120
writer raw "$raw"
writer fs /mnt/file --fsync=8
while more; do
	goes_on "$raw"
	goes_on "$fs"
	random 100 1500
	pause_ms "$rnd"
	kill_guest server
	become disconnected 60 "$(path 0)" "$(path 1)"
	boot_guest server
	serve
	serve_again
	become connected 60 "$(path 0)" "$(path 1)"
	goes_on "$raw" 40
	goes_on "$fs" 40
done
writers_unharmed
umount /mnt
e2fsck -fn "$fs" >/tmp/fsck.out 2>&1 || fail "e2fsck: $(cat /tmp/fsck.out)"
log_quiet
unmap "$raw"
unmap "$fs"
down
on server 'losetup -d /dev/loop1 /dev/loop2; rm -f /run/rig/*.img'
