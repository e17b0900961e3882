# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The RDMA device of a path is removed under load, and added again: the path is reconnected with the
# next attempt, within reconnect_delay_max_ms, one second, and I/O has no errors. Then both devices
# are removed: I/O waits until one is added again.
# Modules: ours
# Rounds: 2

. "$RIG_DIR/steps/failover.sh"

# back PATH...: waits until these paths are connected, soon after the device was added
back()
{
	local from took
	from=$(now)
	wait_for_paths connected 40 "$@"
	took=$(($(now) - from))
	say "back after $took ms"
	# The delay, and a second of a fast machine to connect
	must "it took $took ms" [ $took -le $((1000 + $(slowly 1) * 1000)) ]
}

set_up
disk=$(null vol 32)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
fast_failover
mark_log
writer raw "$dev"
while next_round; do
	net=$((round % 2))
	goes_on "$dev"
	rdma link delete $rdma$net
	wait_for_paths disconnected 1 "$(path $net)"
	goes_on "$dev"
	add_rdma $net
	back "$(path 0)" "$(path 1)"
	equal "the device of the path" "$(cat "$(path $net)/hca_name")" $rdma$net
	goes_on "$dev"

	rdma link delete "$rdma"0
	rdma link delete "$rdma"1
	wait_for_paths disconnected 1 "$(path 0)" "$(path 1)"
	add_rdma $net
	back "$(path $net)"
	goes_on "$dev"
	add_rdma $((1 - net))
	back "$(path 0)" "$(path 1)"
done
writers_unharmed
log_quiet
tear_down "$dev"
