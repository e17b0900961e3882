# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server claims devices that are mapped for writing: programs there can neither mount nor format
# them, their partitions, or their disk; what is mounted there can't be mapped for writing. All
# mappings of a disk share the claim, and the last one releases it. Read-only mappings claim
# nothing, nor does claim=N. The node of a disk is never opened for writing, so that udev on the
# server, which watches nodes, does not read the disk when a mapping is closed.
# Modules: ours

claim() { on server "echo $1 >/sys/module/rnbd_server/parameters/claim"; }

# claimed DISK: true if an exclusive open on the server fails with EBUSY
claimed()
{
	on server "python3 -c 'import errno, os
try:
    os.open(\"$1\", os.O_RDONLY | os.O_EXCL)
except OSError as e:
    raise SystemExit(e.errno != errno.EBUSY)
raise SystemExit(2)'"
}
free() { ! claimed "$1"; }

# node_closed: prints how many times since the last call a file of the disk's node that was open for
# writing has been closed, as udev would see it
node_closed()
{
	local nr
	echo >&"${watch[1]}"
	read -r nr <&"${watch[0]}"
	echo "$nr"
}

a=$(addr server 0)
set_up sess_queue_depth=16
disk=$(null vol 64)
on server "printf 'label: gpt\\nstart=2048, size=16384\\nstart=18432, size=32768\\n' | sfdisk -q $disk
	wait_for 10 test -b ${disk}2; mkdir -p /srv"

must "it is free" free "$disk"
coproc watch { python3 -uc 'import ctypes, os, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(fd, sys.argv[1].encode(), 8) > 0  # IN_CLOSE_WRITE
for _ in sys.stdin:
    try:
        print(len(os.read(fd, 4096)) // 16)
    except BlockingIOError:
        print(0)' "$disk"; }
watcher=$!
equal "the watch begins" "$(node_closed)" 0
on server ": 1<>$disk"
equal "a program that writes" "$(node_closed)" 1
unmap "$(map s1 "$disk")"
claim N
unmap "$(map s1 "$disk")"
claim Y
equal "mappings for writing" "$(node_closed)" 0
kill "$watcher"

one=$(map s1 "${disk}1")
must "a partition" claimed "${disk}1"
must "its disk" claimed "$disk"
must "the other partition is free" free "${disk}2"
map_fails EBUSY "sessname=s2 path=$a device_path=$disk"
two=$(map s2 "${disk}1" access_mode=migration)
mkfs.ext4 -q "$one"
must "mkfs on the server" on server "! mkfs.ext4 -q ${disk}1 2>/tmp/said && grep -q 'in use' /tmp/said"
must "mount on the server" on server "! mount ${disk}1 /srv 2>/tmp/said && grep -q busy /tmp/said"
unmap "$one"
must "one of two has it" claimed "${disk}1"
unmap "$two"
must "nobody has it" free "$disk"

on server "mount ${disk}1 /srv"
map_fails EBUSY "sessname=s1 path=$a device_path=${disk}1"
must "the log tells why" on server "dmesg | grep -q '${disk}1 is mounted'"
map_fails EBUSY "sessname=s1 path=$a device_path=$disk"
one=$(map s1 "${disk}1" access_mode=ro)
unmap "$one"
one=$(map s1 "${disk}2")
unmap "$one"

claim N
one=$(map s1 "${disk}1")
claim Y
on server "umount /srv; mount ${disk}1 /srv; umount /srv"
unmap "$one"
one=$(map s1 "$disk")
must "it is claimed again" claimed "$disk"
unmap "$one"
must "it is free in the end" free "$disk"
tear_down
