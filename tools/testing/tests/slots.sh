# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server with small slots: small data travel with the request, large data are fetched, or sent
# from a buffer, up to 1 MiB. With and without always_invalidate. Data are right, no other data have
# changed, no memory is left, and a lost path loses no requests of either kind. Also slots of 64
# KiB, and a session with many slots whose server returns with larger ones.

. "$RIG_DIR/steps/failover.sh"
. "$RIG_DIR/steps/hostile.sh"

rdma_up
for mode in Y N; do
	load_server slot_size=4096 always_invalidate=$mode
	load_client
	disk=$(null vol 128)
	dev=$(map s1 "$disk")
	idle=$(server_memory)
	must "$idle bytes used by an idle session" [ "$idle" -lt $((8 << 20)) ]
	verify "$dev" "$mixed" --numjobs=2 --size=8m --offset_increment=16m
	server_memory_falls_to "$idle"
	equal "the space between the jobs" \
		"$(on server "cmp -n $((8 << 20)) -i $((8 << 20)):0 $disk /dev/zero && echo zero")" zero
	dd if=/dev/urandom of=/tmp/data bs=1M count=8 status=none
	dd if=/tmp/data of="$dev" bs=1M oflag=direct status=none
	on server "dd if=$disk bs=1M count=8 iflag=direct status=none" | cmp - /tmp/data ||
		fail "the server has something else"
	dd if="$dev" bs=1M count=8 iflag=direct status=none | cmp - /tmp/data ||
		fail "something else is read"
	unmap "$dev"
	server_memory_freed
	HOSTILE_SLOTS=1 change_under_way "$disk" $mode
	tear_down
	unload
done

# The largest writes into slots of 64 KiB are sent from where they lie.
for slot in 4096 65536; do
	load_server slot_size=$slot
	load_client
	disk=$(null vol 64)
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	fast_failover
	[ $slot = 4096 ] || verify "$dev" "$mixed" --size=8m
	for size in 4k 64k; do
		[ $slot-$size != 65536-4k ] || continue
		writer size-$slot-$size "$dev" --bs=$size --depth=8
		goes_on "$dev"
		for net in 0 1; do
			echo 1 >"$(path $net)/disconnect"
			goes_on "$dev"
			echo 1 >"$(path $net)/reconnect"
			goes_on "$dev"
		done
		writers_unharmed
	done
	unmap "$dev"
	server_memory_freed
	tear_down
	unload
done

# The client has to register 128 regions then, and keeps its number of slots.
load_server slot_size=4096 sess_queue_depth=2048
load_client
disk=$(null vol 64)
dev=$(map s1 "$disk")
fast_failover
stop_server
wait_for_paths disconnected 30 "$(path 0)"
load_server slot_size=126976 sess_queue_depth=2048
wait_for_paths connected 60 "$(path 0)"
verify "$dev" "$mixed" --size=8m
tear_down "$dev"
unload
