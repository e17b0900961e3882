# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server comes back before its disk: a loop device without a file, or a disk that is read-only for
# now. The client's writes wait, the server claims nothing, and they go on soon after the disk is
# there.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

# away COMMAND: the server is restarted, and the disk changed meanwhile; a write waits
away()
{
	stop_server
	wait_for_state "$dev" closed 60
	on server "$1"
	start_io "$dev" write:0:4k:after
	mark
	load_server
	wait_for 60 eval 'since | grep -q "can.t open it\|disk is empty"' ||
		fail "the server was not asked"
	must "the write didn't wait: $(cat /tmp/io.out)" eval '! ended $io'
}

# back COMMAND: the disk is ready
back()
{
	local from took

	from=$(now)
	on server "$1"
	end_io 60 0
	took=$(($(now) - from))
	say "the write was done $took ms after that"
	must "it took $took ms" [ $took -lt $(($(slowly 3) * 1000)) ]
	gives 0 "$dev" read:0:4k:after
}

up
on server 'debug_kernel || modprobe loop; truncate -s 16M /tmp/loop.img'
disk=$(on server 'losetup --find --show /tmp/loop.img')
dev=$(map s1 "$disk")
attr failover_timeout=-1
soon
gives 0 "$dev" write:0:4k:before
away "losetup -d $disk"
back "losetup $disk /tmp/loop.img"
unmap "$dev"
server_idle
on server "losetup -d $disk; rm /tmp/loop.img"

disk=$(null vol 16)
dev=$(map s1 "$disk")
attr failover_timeout=-1
soon
away "blockdev --setro $disk"
back "blockdev --setrw $disk"
unmap "$dev"
down
