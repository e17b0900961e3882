# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# queue_depth of map_device: a session has as many requests in flight, and the server sets aside
# memory for no more; with small slots and with chunks, for two paths, and after a reconnect. A
# number that is more than the server has means all it has. A later device may name the number
# that was asked for, that which the session has, or none.
# Modules: ours
# Time: 60

clt=/sys/class/rtrs-client/s1

used() { on server 'cat /sys/module/rtrs_server/parameters/memory_used'; }
none_used() { [ "$(used)" = 0 ]; }
# less BYTES: the server's memory is at most that, once what requests have used has gone back
less() { [ "$(used)" -le "$1" ]; }
idle() { wait_for 30 less "$1" || fail "$(used) bytes are used, not up to $1"; }

# has DEVICE N: so many requests in flight
has()
{
	equal "queue_depth of the session" "$(cat $clt/queue_depth)" "$2"
	must "the disk has no more requests" [ "$(queue "$1" nr_requests)" -le "$2" ]
	gives "0 0 0 0" "$1" write:0:4k:x read:0:4k:x write:4096:256k:y read:4096:256k:y
}

# opened N OPTION...: maps the disk as the first one, over two paths; the session has N
opened()
{
	dev=$(map s1 "$disk" path="$(addr server 0)" path="$(addr server 1)" "${@:2}")
	has "$dev" "$1"
}

closed()
{
	unmap "$dev"
	client_idle
	server_idle
	wait_for 20 none_used || fail "$(used) bytes are still used"
}

up
disk=$(null vol 16)
other=$(null other 16)

opened 512
all=$(used)
closed

opened 32 queue_depth=32
# A slot has 4608 bytes, and the server keeps more for each; 1 MiB is the session's.
few=$((all - 2 * 480 * 4608))
idle $few
# shellcheck disable=SC2086,SC2154
verify "$dev" $mixed --iodepth=64 --size=4M
for path in "$clt"/paths/*; do
	echo 1 >"$path/reconnect"
	equal "state of the path" "$(cat "$path/state")" connected
done
has "$dev" 32
idle $few

mark
refused EINVAL "sessname=s1 device_path=$other queue_depth=31"
must "the log tells why" grep -q 'queue_depth=32, not 31' <(since)
for option in nopath queue_depth=32; do
	dev2=$(map s1 "$other" nopath "${option/nopath/}")
	has "$dev2" 32
	unmap "$dev2"
done
closed

opened 1 queue_depth=1
closed

opened 512 queue_depth=4096
for n in 512 4096; do
	dev2=$(map s1 "$other" nopath queue_depth=$n)
	unmap "$dev2"
done
refused EINVAL "sessname=s1 device_path=$other queue_depth=511"
closed
down
unload

# Chunks for the largest request: 8 of them for each path.
load_server slot_size=0 max_chunk_size=131072
load_client
disk=$(null vol 16)
opened 8 queue_depth=8
idle $((2 * 8 * 131072 + (5 << 20)))
closed
down
