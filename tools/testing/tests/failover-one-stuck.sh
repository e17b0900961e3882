# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A disk of the server is suspended with requests in flight when the client loses all paths. As soon
# as a path is connected again, requests for another disk continue; with one path, where the server
# loses the session's last path, and with two. The write ends when its disk is resumed. Reads have
# failed by then, and other requests use their slots.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

# lose_paths NET...: loses all of these paths while a request is stuck, and connects the first one
lose_paths()
{
	local net paths=() began took

	for net; do
		paths+=("$(path "$net")")
	done
	expect_io 0 "$dev" write:0:4k:a
	dm_suspend still
	start_io "$dev2" write:0:4k:x
	wait_for 20 server_has_inflight s1 1 || fail "no write is in flight at the server"
	# Most read-ahead fails when the paths are lost. Other requests use its slots then.
	dd if="$dev2" of=/dev/null bs=4k count=64 skip=$((1024 * $#)) 2>/dev/null & reader=$!
	wait_for 20 server_reads || fail "no read is in flight at the server"
	for net; do
		set_link client "$net" silent
	done
	wait_for_paths disconnected 20 "${paths[@]}"
	wait_for 20 eval "! server_connected" || fail "the server has not lost its paths"
	set_link client "$1" on
	began=$(now)
	wait_for_paths connected 30 "${paths[0]}"
	expect_io "0 0" "$dev" write:0:4k:b read:0:4k:b
	# In all slots
	fio --name=all --filename="$dev" --direct=1 --ioengine=libaio --iodepth=60 --rw=randread \
		--bs=4k --number_ios=240 --size=4m >/tmp/all.out || fail "$(cat /tmp/all.out)"
	took=$(($(now) - began))
	say "with $# paths the other disk's requests went on after $took ms"
	must "it took $took ms" [ $took -lt $(($(slowly 10) * 1000)) ]
	! ended "$io" || fail "the disk doesn't stand still: $(cat /tmp/io.out)"
	dm_resume still
	end_io 30 0
	wait_for 30 ended $reader || fail "the reader hangs"
	expect_io 0 "$dev2" read:0:4k:x
	for net; do
		set_link client "$net" on
	done
	wait_for_paths connected 60 "${paths[@]}"
}

# server_reads: true if more than the write is in flight at the server
server_reads() { [ "$(server_inflight s1)" -gt 1 ]; }

# server_connected: true if the server has a path of the session
server_connected() { on server 'ls -d /sys/class/rtrs-server/s1/paths/*' >/dev/null 2>&1; }

set_up sess_queue_depth=64
disk=$(null vol 16)
still=$(dm still "0 32768 linear $(null still 16) 0")
dev=$(map s1 "$disk" "path=$(addr server 0)")
dev2=$(map s1 "$still")
fast_failover
set_attrs failover_timeout=600
lose_paths 0
addr server 1 >$clt/s1/add_path
wait_for_paths connected 30 "$(path 1)"
lose_paths 0 1
tear_down "$dev" "$dev2"
