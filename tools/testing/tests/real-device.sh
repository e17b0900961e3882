# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sessions over RDMA devices that refuse large queues, as hardware does, unlike soft-RoCE: each
# session connects with as many slots as the devices have room for, and data are right, also when a
# path is lost under load. Completion queues have exactly the entries of their queue pairs, are
# distributed over the device's vectors, and are destroyed with the connections. The expected
# numbers are for guests with one CPU.
# Kernel: debug
# Modules: ours
# Cpus: 1

. "$RIG_DIR/steps/device.sh"
. "$RIG_DIR/steps/failover.sh"

# session SLOTS LIMIT=VALUE...: has that many slots over such a device, though the server
# would have 2048. Four of them are for messages about devices, the others for the disks
session()
{
	local want=$(($1 - 4))
	shift
	device "$@"
	mark_log
	before=$(rdma resource show)
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	say "a device with ${*:-the limits of mlx5}: queue pairs of" \
		"$(queue_pairs | sort -un | paste -sd,) (sends SGEs receives), $(refusals) refused"
	equal "requests with ${*:-the limits of mlx5}" \
		"$(<"/sys/block/${dev#/dev/}/queue/nr_requests")" "$want"
}

# paths_lost: verifies data while each path is lost once
paths_lost()
{
	local p
	verify "$dev" --size=512k $mixed
	fast_failover
	writer raw "$dev" --bs=4k
	for p in "$(path 0)" "$(path 1)"; do
		goes_on "$dev"
		echo 1 >"$p/reconnect"
		wait_for_paths connected 20 "$p"
	done
	goes_on "$dev"
	writers_unharmed
}

# end_session: unmaps the disk; waits until its RDMA objects are destroyed
end_session()
{
	unmap_last "$dev"
	# Including completion queues
	wait_for 20 eval '[ "$(rdma resource show)" = "$before" ]' ||
		fail "before: $before, after: $(rdma resource show)"
}

set_up sess_queue_depth=2048 max_chunk_size=8192
disk=$(null vol 16)

session 2048 vectors=4
equal "queue pairs refused" "$(refusals)" 0
# Those of the server's two for I/O have room for what rdma_rw adds on some devices.
entries=$(cqs | awk '{ n += $1 } END { print n }')
sizes=$(queue_pairs | awk '{ n += $1 + $3 } END { print n }')
must "entries of completion queues: $entries, of queue pairs: $sizes" \
	[ "$entries" -ge "$sizes" -a "$entries" -le $((sizes + 2 * 3 * 16)) ]
# The client's two connections of each path and the server's two
for rxe in rxe0 rxe1; do
	equal "vectors of $rxe" "$(cqs | grep $rxe | cut -d' ' -f2 | sort -n | xargs)" "0 1 2 3"
done
paths_lost
end_session

# Requests leave a send queue before they are answered, and answers before they have arrived: with
# slots, the least queue that a server can do with is the one that it wants, and clients as well.
session 2048 sq_blocks=1024
equal "queue pairs refused" "$(refusals)" 0
paths_lost
end_session

no_device
tear_down
unload
load_server slot_size=0 sess_queue_depth=2048 max_chunk_size=8192
load_client
disk=$(null vol 16)

# With chunks, keys are invalidated by the client: room for 320 sends of two entries
session 256 sq_blocks=1024
must "no queue pair was refused" [ "$(refusals)" -gt 0 ]
paths_lost
end_session

session 2048 max_send_sge=2
verify "$dev" --size=512k $mixed
end_session

# No space for a queue pair
device sq_blocks=16
map_fails "ENOMEM|ECONNRESET" "sessname=s1 path=$(addr server 0) device_path=$disk"
no_device
tear_down
