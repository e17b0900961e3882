# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The RDMA device of a path goes under load, and comes back: so does the path, by itself,
# and I/O notices nothing. Then both go: it waits until one is back.
# Modules: ours
# Rounds: 2

. "$RIG_DIR/steps/failover.sh"

up
disk=$(null vol 32)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
soon
mark
writer raw "$dev"
while more; do
	net=$((round % 2))
	goes_on "$dev"
	rdma link delete $rdma$net
	become disconnected 10 "$(path $net)"
	goes_on "$dev"
	add_rdma $net
	become connected 40 "$(path 0)" "$(path 1)"
	equal "the device of the path" "$(cat "$(path $net)/hca_name")" $rdma$net
	goes_on "$dev"

	rdma link delete "$rdma"0
	rdma link delete "$rdma"1
	become disconnected 10 "$(path 0)" "$(path 1)"
	add_rdma $net
	become connected 40 "$(path $net)"
	goes_on "$dev"
	add_rdma $((1 - net))
	become connected 40 "$(path 0)" "$(path 1)"
done
writers_unharmed
log_quiet
unmap "$dev"
down
