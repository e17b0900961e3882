# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk is removed under load. Without failover_timeout I/O fails, nothing hangs, the
# session and its other device stay; unmapping works, the disk can't be mapped as long as it is
# gone, and can when it is back. With failover_timeout I/O waits, the server closes the disk, and
# I/O goes on soon after the disk is back. Disks: null_blk, SCSI, device-mapper, a file's
# filesystem whose disk goes.
# Modules: ours
# Once: debug stock 7.2

. "$RIG_DIR/steps/failover.sh"

# removed WHAT DEVICE STATE ERRNOS: fails unless the device gets that state, and a read, a write and
# fsync give these errnos, now that the device's disk was removed
removed()
{
	local state=$3
	local name=${2#/dev/} steps=(read:0:4k write:0:4k:a fsync)
	load_fails 30
	# shellcheck disable=SC2086
	set -- "$1" "$2" $4
	gives "${*:3}" "$2" "${steps[@]:0:$#-2}"
	equal "state after $1" "$(cat "/sys/block/$name/rnbd/state")" "$state"
	gives "0 0" "$other" write:0:1m:b read:0:1m:b
	unmap "$2"
}

# closed_on_server DISK: true if the server has closed the disk
closed_on_server() { on server "[ ! -e /sys/class/rnbd-server/ctl/devices/${1#/dev/} ]"; }

# gone DISK COMMAND: the command removes it, and the server closes it
gone()
{
	on server "$2"
	wait_for_state "$dev" closed 20
	wait_for 20 closed_on_server "$1" || fail "the server keeps $1"
}

# returns DISK REMOVE ADD: the disk is removed under load, and comes back by these commands
returns()
{
	local from took before got

	dev=$(map s1 "$1")
	attr failover_timeout=-1
	load "$dev"
	gone "$1" "$2"
	got=$(errno_of "$(device_attr "$dev" remap_device)" 1)
	[[ "ENOENT ENXIO ENODEV" == *"$got"* ]] || fail "remap_device gave $got"
	start_io "$dev" write:0:4k:after
	before=$(ios "$dev" writes)
	from=$(now)
	on server "$3"
	# Writes of the load wait already; the other program may not have started yet.
	wait_for 60 eval "[ \$(ios $dev writes) -gt $before ]" || fail "nothing is written"
	took=$(($(now) - from))
	say "a write was done $took ms after the disk was back"
	must "it took $took ms" [ $took -lt $(($(slowly 3) * 1000)) ]
	end_io 60 0
	goes_on "$dev"
	load_goes_on
	# Without I/O, the server tells.
	gone "$1" "$2"
	on server "$3"
	wait_for_state "$dev" open 20
	gives "0 0" "$dev" write:0:4k:x read:0:4k:x
	unmap "$dev"
	attr failover_timeout=0
}

# usable DISK: fails unless the disk can be mapped and used again
usable()
{
	dev=$(map s1 "$1")
	verify "$dev" --bs=16k --size=1m
	unmap "$dev"
}

up
other=$(map s1 "$(null other 16)")
attr failover_timeout=0

say "null_blk"
disk=$(null vol 32 cache_size=1)
dev=$(map s1 "$disk")
load "$dev"
on server 'echo 0 >/sys/kernel/config/nullb/vol/power'
removed null_blk "$dev" closed "EIO EIO EIO"
refused 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
# shellcheck disable=SC2016
on server 'echo 1 >/sys/kernel/config/nullb/vol/power'
usable "$disk"
returns "$disk" 'echo 0 >/sys/kernel/config/nullb/vol/power' \
	'echo 1 >/sys/kernel/config/nullb/vol/power'

say "SCSI"
disk=$(scsi)
dev=$(map s1 "$disk")
load "$dev"
on server "echo 1 >/sys/block/${disk#/dev/}/device/delete"
removed SCSI "$dev" closed "EIO EIO EIO"
refused 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
no_scsi
disk=$(scsi)
usable "$disk"
# shellcheck disable=SC2016
returns "$disk" "echo 1 >/sys/block/${disk#/dev/}/device/delete" \
	'for host in /sys/class/scsi_host/host*; do echo "- - -" >$host/scan; done'
no_scsi

say "device-mapper"
lower=$(null lower 32 cache_size=1)
disk=$(dm volume "0 65536 linear $lower 0")
dev=$(map s1 "$disk")
load "$dev"
# In use, it can only be made to fail all I/O, and be removed later.
on server 'dmsetup remove --force --noudevsync --noudevrules volume 2>/dev/null || true'
# What it is then has no write cache, so there is nothing to flush for the kernel.
removed device-mapper "$dev" open "EIO EIO 0"
on server 'dmsetup remove --noudevsync --noudevrules volume 2>/dev/null || true'
refused 'ENOENT|ENXIO|ENODEV' "sessname=s1 device_path=$disk"
disk=$(dm volume "0 65536 linear $lower 0")
usable "$disk"

say "a file whose disk goes"
disk=$(null backing 64 cache_size=1)
on server "mkfs.ext4 -q -O ^has_journal $disk; mkdir -p /srv; mount -o errors=continue $disk /srv
	truncate -s 32M /srv/volume"
dev=$(map s1 /srv/volume)
gives 0 "$dev" write:0:32m:c
load "$dev"
on server 'echo 0 >/sys/kernel/config/nullb/backing/power'
# Filesystems tell of a lost write once; a flush of the load's may have been told.
removed file "$dev" open "EIO EIO"
on server 'umount /srv'

unmap "$other"
down
