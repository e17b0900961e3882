# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's disk holds an OPEN, then a write to another device of the session. The session's
# other devices can be mapped, used and unmapped meanwhile, including its first and last disk.
# Modules: ours

# at_once COMMAND...: fails if the command waits for the disk
at_once()
{
	"$@" >/tmp/at-once &
	wait_for 20 ended $! || { dm_resume still; fail "'$*' waits for the disk"; }
	wait $! || fail "$*: $(cat /tmp/at-once)"
}

hung_task_limit 100
set_up
disk=$(null vol 16)
other=$(null other 16)
still=$(dm still "0 32768 linear $(null still 16) 0")
# While partitions are read, others can't open the device.
on server "modprobe loop 2>/dev/null || true"
loop=$(on server "losetup --find --show --partscan --direct-io=on $still")

say "a device that can't be opened"
dev=$(map s1 "$disk")
dm_suspend still
on server "blockdev --rereadpt $loop >/dev/null 2>&1 &"
on server "wait_for 20 has_inflight $loop" ||
	fail "nobody looks for partitions"
errno_of "$ctl/map_device" "sessname=s1 device_path=$loop" >/tmp/held &
held=$!
wait_for 20 server_has_inflight s1 1 || fail "the server isn't opening the device: $(cat /tmp/held)"
at_once unmap "$dev"
at_once map s1 "$disk"
at_once map s1 "$other"
expect_io 0 "$(cat /tmp/at-once)" write:0:4k:x
at_once unmap "$(cat /tmp/at-once)"
at_once unmap "$dev"
! ended $held || fail "the device is open: $(cat /tmp/held)"
dm_resume still
wait_for 30 ended $held || fail "the device is still not open"
equal "the mapping that was held up" "$(cat /tmp/held)" 0
unmap_last "/dev/$(mapped s1 "$loop")"
on server "losetup --detach $loop"

say "a write that isn't answered"
dev=$(map s1 "$still")
dm_suspend still
start_io "$dev" write:0:4k:x
wait_for 20 server_has_inflight s1 1 || fail "no write is in flight at the server"
at_once map s1 "$disk"
expect_io 0 "$(cat /tmp/at-once)" write:0:4k:x
at_once unmap "$(cat /tmp/at-once)"
! ended "$io" || fail "the write has been answered: $(cat /tmp/io.out)"
dm_resume still
end_io 30 0
tear_down "$dev"
