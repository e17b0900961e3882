# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk holds up what a session asks of it: opening a device, then a write to
# another one. The session's other devices are mapped, used and unmapped meanwhile, the
# first and the last disk among them.
# Modules: ours
# Time: 120

# in_hand N: the server has so many requests of the session in hand
in_hand()
{
	[ "$(on server 'cut -d" " -f5 /sys/class/rtrs-server/s1/paths/*/stats/rdma')" = "$1" ]
}

stand_still() { on server 'dmsetup suspend --noflush --nolockfs --noudevsync still'; }
go_on() { on server 'dmsetup resume --noudevsync still'; }

# at_once COMMAND...: it doesn't wait for the disk
at_once()
{
	"$@" >/tmp/at-once &
	wait_for 20 ended $! || { go_on; fail "'$*' waits for the disk"; }
	wait $! || fail "$*: $(cat /tmp/at-once)"
}

patience 100
up
disk=$(null vol 16)
other=$(null other 16)
still=$(dm still "0 32768 linear $(null still 16) 0")
# Whoever looks for its partitions keeps it from being opened by others.
on server "modprobe loop 2>/dev/null || true"
loop=$(on server "losetup --find --show --partscan --direct-io=on $still")

say "a device that can't be opened"
dev=$(map s1 "$disk")
stand_still
on server "blockdev --rereadpt $loop >/dev/null 2>&1 &"
on server "wait_for 20 grep -q '[1-9]' /sys/block/${loop#/dev/}/inflight" ||
	fail "nobody looks for partitions"
errno_of "$ctl/map_device" "sessname=s1 device_path=$loop" >/tmp/held &
held=$!
wait_for 20 in_hand 1 || fail "the server isn't opening the device: $(cat /tmp/held)"
at_once unmap "$dev"
at_once map s1 "$disk"
at_once map s1 "$other"
gives 0 "$(cat /tmp/at-once)" write:0:4k:x
at_once unmap "$(cat /tmp/at-once)"
at_once unmap "$dev"
! ended $held || fail "the device is open: $(cat /tmp/held)"
go_on
wait_for 30 ended $held || fail "the device is still not open"
equal "the mapping that was held up" "$(cat /tmp/held)" 0
unmap "/dev/$(mapped s1 "$loop")"
client_idle
server_idle
on server "losetup --detach $loop"

say "a write that isn't answered"
dev=$(map s1 "$still")
stand_still
"$RIG_DIR/steps/io.py" "$dev" write:0:4k:x >/tmp/held &
held=$!
wait_for 20 in_hand 1 || fail "the server has no write in hand"
at_once map s1 "$disk"
gives 0 "$(cat /tmp/at-once)" write:0:4k:x
at_once unmap "$(cat /tmp/at-once)"
! ended $held || fail "the write has been answered: $(cat /tmp/held)"
go_on
wait_for 30 ended $held || fail "the write still waits"
equal "the write" "$(cat /tmp/held)" 0
unmap "$dev"
down
