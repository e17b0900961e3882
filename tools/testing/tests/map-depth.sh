# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# queue_depth of map_device: the session has as many requests in flight, and the server allocates
# memory for no more; with small slots and with chunks, for two paths, and after a reconnect. A
# larger number than the server has means all of them. A later device may name the requested number,
# the session's number, or none. A session with many chunks and a key for each reconnects even
# without 32 contiguous pages (debug kernel).
# Modules: ours

clt=/sys/class/rtrs-client/s1

# has_depth DEVICE N: fails unless the device's session has so many requests in flight at most
has_depth()
{
	equal "queue_depth of the session" "$(cat $clt/queue_depth)" "$2"
	must "the disk has no more requests" [ "$(queue "$1" nr_requests)" -le "$2" ]
	expect_io "0 0 0 0" "$1" write:0:4k:x read:0:4k:x write:4096:256k:y read:4096:256k:y
}

# open_session N OPTION...: maps the disk as the first one, over two paths; the session then has
# N requests
open_session()
{
	dev=$(map s1 "$disk" path="$(addr server 0)" path="$(addr server 1)" "${@:2}")
	has_depth "$dev" "$1"
}

# close_session: unmaps it; all memory of the session is freed
close_session()
{
	unmap_last "$dev"
	server_memory_freed
}

# fragmented PERCENT: on the debug kernel, so many allocations of 32 pages or more fail; tasks there
# have stacks of 16
fragmented()
{
	local dir=/sys/kernel/debug/fail_page_alloc

	[ -d $dir ] || return 0
	echo N >$dir/ignore-gfp-wait
	echo 0 >$dir/verbose
	echo 5 >$dir/min-order
	echo -1 >$dir/times
	echo "$1" >$dir/probability
}

set_up
disk=$(null vol 16)
other=$(null other 16)

open_session 512
all=$(server_memory)
close_session

open_session 32 queue_depth=32
# A slot has 4608 bytes, and the server keeps more for each; 1 MiB is the session's.
few=$((all - 2 * 480 * 4608))
server_memory_falls_to $few
# shellcheck disable=SC2086,SC2154
verify "$dev" $mixed --iodepth=64 --size=4M
for path in "$clt"/paths/*; do
	echo 1 >"$path/reconnect"
	equal "state of the path" "$(cat "$path/state")" connected
done
has_depth "$dev" 32
server_memory_falls_to $few

mark_log
map_fails EINVAL "sessname=s1 device_path=$other queue_depth=31"
must "the log tells why" grep -q 'queue_depth=32, not 31' <(log_since_mark)
for option in nopath queue_depth=32; do
	dev2=$(map s1 "$other" nopath "${option/nopath/}")
	has_depth "$dev2" 32
	unmap "$dev2"
done
close_session

open_session 1 queue_depth=1
close_session

open_session 512 queue_depth=4096
for n in 512 4096; do
	dev2=$(map s1 "$other" nopath queue_depth=$n)
	unmap "$dev2"
done
map_fails EINVAL "sessname=s1 device_path=$other queue_depth=511"
close_session
tear_down
unload

# Chunks for the largest request: 8 of them for each path.
load_server slot_size=0 max_chunk_size=131072
load_client
disk=$(null vol 16)
open_session 8 queue_depth=8
server_memory_falls_to $((2 * 8 * 131072 + (5 << 20)))
close_session
tear_down
unload

# INFO_RSP has 64 KiB.
load_server slot_size=0 max_chunk_size=8192 sess_queue_depth=4096
load_client
disk=$(null vol 16)
dev=$(map s1 "$disk" path="$(addr server 0)" queue_depth=4096)
has_depth "$dev" 4096
fragmented 100
echo 1 >"$(echo "$clt"/paths/*)/reconnect"
fragmented 0
equal "state of the path" "$(cat "$clt"/paths/*/state)" connected
has_depth "$dev" 4096
close_session
tear_down
