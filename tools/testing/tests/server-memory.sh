# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's memory that clients use is counted from their first connection request on: it is the
# same for each connect, never more than max_memory, also with many incomplete connects, and nothing
# is left afterwards.
# Modules: ours

set_up sess_queue_depth=16 max_memory=6 slot_size=0
equal "bytes used before anybody came" "$(server_memory)" 0
disk=$(null vol 16)
first=
for _ in 1 2 3 4 5; do
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	now=$(server_memory)
	# Each path has two queue pairs at least, of more than 64 KiB each.
	must "$now bytes used, less than the chunks and queue pairs have" \
		[ "$now" -gt $((2 * 16 * 131072 + 4 * 65536)) ]
	equal "bytes used by the same session again" "$now" "${first:-$now}"
	first=$now
	unmap_last "$dev"
	server_memory_freed
done
say "a session of two paths, 16 chunks each: $first bytes"

# Not enough for the chunks of another session: all of what it took by then goes back.
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
map_fails "ECONNRESET|ECONNABORTED|ENOMEM" "sessname=s2 path=$(addr server 0) device_path=$disk"
map_fails "ECONNRESET|ECONNABORTED|ENOMEM" "sessname=s3 path=$(addr server 0) device_path=$disk"
wait_for 20 server_memory_is "$first" || fail "$(server_memory) bytes used with one session, not $first"
unmap_last "$dev"
server_memory_freed

hostile client 192.168.100.1 1234 hoard-first || fail "the server takes too much"
server_memory_freed
tear_down
unload

# With small slots, idle paths of 512 take little: 4 MiB with two connections for I/O, of which
# each takes some 256 KiB. There is one here. The session's reserve is 1 MiB.
load_server
load_client
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)" nr_queues=1)
server_memory_falls_to $((2 * (13 << 18) + (1 << 20)))
say "a session of two paths, 512 slots each: $(server_memory) bytes"
unmap_last "$dev"
server_memory_freed
tear_down
