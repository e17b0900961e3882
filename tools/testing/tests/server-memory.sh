# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What clients take of the server's memory is counted from their first connection request
# on: it is the same with each connect, never more than max_memory, also if somebody
# connects again and again and goes no further, and nothing is left when they have gone.
# Modules: ours
# Time: 130

used() { on server 'cat /sys/module/rtrs_server/parameters/memory_used'; }
none_used() { [ "$(used)" = 0 ]; }
all_back() { wait_for 20 none_used || fail "$(used) bytes are still used"; }

up sess_queue_depth=16 max_memory=6 slot_size=0
equal "bytes used before anybody came" "$(used)" 0
disk=$(null vol 16)
first=
for _ in 1 2 3 4 5; do
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	now=$(used)
	# Each path has two queue pairs at least, of more than 64 KiB each.
	must "$now bytes used, less than the chunks and queue pairs have" \
		[ "$now" -gt $((2 * 16 * 131072 + 4 * 65536)) ]
	equal "bytes used by the same session again" "$now" "${first:-$now}"
	first=$now
	unmap "$dev"
	server_idle
	all_back
done
say "a session of two paths, 16 chunks each: $first bytes"

# Not enough for the chunks of another session: all of what it took by then goes back.
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
refused "ECONNRESET|ECONNABORTED|ENOMEM" "sessname=s2 path=$(addr server 0) device_path=$disk"
refused "ECONNRESET|ECONNABORTED|ENOMEM" "sessname=s3 path=$(addr server 0) device_path=$disk"
same() { [ "$(used)" = "$first" ]; }
wait_for 20 same || fail "$(used) bytes used with one session, not $first"
unmap "$dev"
server_idle
all_back

hostile client 192.168.100.1 1234 hoard-first || fail "the server takes too much"
all_back
down
unload

# With small slots, idle paths of 512 take little: 4 MiB with two connections for I/O, of which
# each takes some 256 KiB. There is one here. The session's reserve is 1 MiB.
load_server
load_client
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)" nr_queues=1)
idle() { [ "$(used)" -le $((2 * (13 << 18) + (1 << 20))) ]; }
# What the first reads have used goes back.
wait_for 30 idle || fail "a session of two idle paths takes $(used) bytes"
say "a session of two paths, 512 slots each: $(used) bytes"
unmap "$dev"
server_idle
all_back
down
