# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sessions over RDMA devices that refuse queues for their size, as hardware does, and
# soft-RoCE doesn't: each one connects, with as much as the devices have room for, and
# data are right, also when one of its paths is lost under load.
# Kernel: debug
# Modules: ours
# Time: 200

. "$RIG_DIR/steps/device.sh"
. "$RIG_DIR/steps/failover.sh"

# session LIMIT=VALUE...: over such a device, with a server that would have 2048 requests
session()
{
	say "a device with ${*:-the limits of mlx5}"
	device "$@"
	mark
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	say "client: $(queues rtrs_client | paste -sd,); refused: $(refusals rtrs_client)"
	say "server: $(queues rtrs_server | paste -sd,); refused: $(refusals rtrs_server)"
	say "requests: $(<"/sys/block/${dev#/dev/}/queue/nr_requests")"
}

# works: data are right, with a path that comes and goes
works()
{
	local p
	verify "$dev" --size=2m $mixed
	soon
	writer raw "$dev" --bs=4k
	for p in "$(path 0)" "$(path 1)"; do
		goes_on "$dev"
		echo 1 >"$p/reconnect"
		become connected 20 "$p"
	done
	goes_on "$dev"
	writers_unharmed
	unmap "$dev"
	server_idle
}

up sess_queue_depth=2048 max_chunk_size=8192
disk=$(null vol 16)

session
works
# Room for 1024 sends of one entry
session sq_blocks=1024
works
session max_send_sge=2
works
no_device
down
