# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# RDMA devices with lower limits than soft-RoCE, on the debug kernel: see debug/faults/device.c.

rtrs_device=/sys/module/rtrs_faults/parameters

# device [LIMIT=VALUE...]: gives all RDMA devices of this guest the limits of mlx5, except for
# these. Each queue that the drivers create is logged.
device()
{
	local limit

	[ -e $rtrs_device ] || probe ours rtrs-faults
	no_device
	for limit in sq_blocks=32768 max_qp_wr=32768 max_send_sge=30 max_cqe=4194303 vectors=1 "$@"; do
		echo "${limit#*=}" >"$rtrs_device/${limit%%=*}"
	done
	echo Y >$rtrs_device/emulate
}

no_device() { echo N >$rtrs_device/emulate; }

# queue_pairs: prints the queue pairs created since the mark: sends, SGEs, receives
queue_pairs()
{
	log_since_mark | sed -n 's/.*rtrs_faults: .* queue pair of \([0-9]*\) sends of \([0-9]*\) SGEs, \([0-9]*\) receives: 0$/\1 \2 \3/p'
}

# refusals: prints the number of queue pairs refused since the mark
refusals() { log_since_mark | grep -c 'rtrs_faults: .* queue pair of .* receives: -' || true; }

# cqs: prints the completion queues created since the mark: entries, vector, device
cqs()
{
	log_since_mark | sed -n 's/.*rtrs_faults: .* completion queue of \([0-9]*\) on vector \([0-9]*\) of \(.*\): 0$/\1 \2 \3/p'
}
