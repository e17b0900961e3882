# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server starts before its disk is ready: a loop device without a file, or a disk that is
# read-only for now. The client's writes wait, and the server claims nothing. They continue when the
# disk is ready: the client tries to open it once a second.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

# away COMMAND ERRNO: the server is restarted, and the disk changed meanwhile. The server refuses to
# open it with one of these numbers or names; a write waits
away()
{
	stop_server
	wait_for_state "$dev" closed 60
	on server "$1"
	start_io "$dev" write:0:4k:after
	mark_log
	load_server
	wait_for 20 eval "log_since_mark | grep -qE 'server can.t open it .*: -($2)\$'" ||
		fail "the server has not refused it with $2: $(log_since_mark)"
	must "the write didn't wait: $(cat /tmp/io.out)" eval '! ended $io'
}

# back COMMAND: the disk is ready
back()
{
	local took

	mark_log
	on server "$1"
	log_note "the disk is ready"
	end_io 60 0
	took=$(ms_between "the disk is ready" "$disk is open again")
	say "it was opened $took ms after that"
	must "it was opened after $took ms" [ "$took" -lt 2000 ]
	expect_io 0 "$dev" read:0:4k:after
}

set_up
on server 'debug_kernel || modprobe loop; truncate -s 16M /tmp/loop.img'
disk=$(on server 'losetup --find --show /tmp/loop.img')
dev=$(map s1 "$disk")
set_attrs failover_timeout=-1
fast_failover
expect_io 0 "$dev" write:0:4k:before
away "losetup -d $disk" "ENXIO|6"
back "losetup $disk /tmp/loop.img"
unmap_last "$dev"
on server "losetup -d $disk; rm /tmp/loop.img"

disk=$(null vol 16)
dev=$(map s1 "$disk")
set_attrs failover_timeout=-1
fast_failover
away "blockdev --setro $disk" "EROFS|30"
back "blockdev --setrw $disk"
tear_down "$dev"
