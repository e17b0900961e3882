# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Several processes map and unmap devices at once, in shared sessions and in sessions of their own:
# each gets the device that it maps, and only one of those that map the same device. Nothing is
# left.
# Modules: ours
# Kernel: debug

# map_times SESSION DISK TIMES: maps and unmaps a disk so many times; prints each result
map_times()
{
	local i got dev
	for ((i = 0; i < $3; i++)); do
		got=$(errno_of "$ctl/map_device" "sessname=$1 path=$(addr server 0) device_path=$2")
		echo "$got"
		[ "$got" = 0 ] || continue
		dev=/dev/$(mapped "$1" "$2")
		dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none || echo unreadable
		unmap "$dev"
	done
}

# mappers_end: waits for all processes
mappers_end()
{
	local pid
	for pid in "${pids[@]}"; do
		wait_for 60 ended "$pid" || fail "one hangs"
		wait "$pid" || fail "one failed: $(cat /tmp/mapper-*)"
	done
	pids=()
}

set_up sess_queue_depth=16
pids=()
for i in 1 2 3 4; do
	null vol$i 4 >/dev/null
done

say "four devices, of two sessions"
for i in 1 2 3 4; do
	map_times s$((i % 2)) /dev/vol$i 8 >/tmp/mapper-$i 2>&1 &
	pids+=($!)
done
mappers_end
equal "what came of it" "$(cat /tmp/mapper-? | sort | uniq -c | xargs)" "32 0"
client_idle

say "four devices, a session each"
for i in 1 2 3 4; do
	map_times s$i /dev/vol$i 6 >/tmp/mapper-$i 2>&1 &
	pids+=($!)
done
mappers_end
equal "what came of it" "$(cat /tmp/mapper-? | sort | uniq -c | xargs)" "24 0"
client_idle

say "one device, wanted by all"
for i in 1 2 3 4; do
	map_times s$((i % 2)) /dev/vol1 8 >/tmp/mapper-$i 2>&1 &
	pids+=($!)
done
mappers_end
say "$(cat /tmp/mapper-? | sort | uniq -c | xargs)"
must "somebody mapped it" grep -qx 0 /tmp/mapper-?
# EEXIST: in the same session; EBUSY: in the other one
! cat /tmp/mapper-? | grep -vxE '0|EEXIST|EBUSY' || fail "another errno"
dev=$(map s1 /dev/vol1)
expect_io "0 0" "$dev" write:0:4k:a read:0:4k:a
tear_down "$dev"
