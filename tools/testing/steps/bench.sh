# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What is compared, in one guest over rxe0 and on one null_blk that keeps no data:
# ours-Y, ours-N, intree-Y, intree-N (a set of modules and the server's
# always_invalidate) and nvme (NVMe over RDMA).

bench_disk=/dev/bench
nvmet=/sys/kernel/config/nvmet
nqn=nqn.2014-08.org.nvmexpress:bench

# bench_up WHAT: prints the block device to use
bench_up()
{
	rdma_up >&2
	[ -b "$bench_disk" ] || null_here bench 1024 memory_backed=0 hw_queue_depth=256 >/dev/null
	case $1 in
	nvme)
		nvme_up
		;;
	*)
		# shellcheck disable=SC2034
		client_modules=${1%-*} server_modules=${1%-*}
		load_server always_invalidate="${1#*-}"
		load_client
		map bench "$bench_disk"
		;;
	esac
}

nvme_up()
{
	modprobe -a nvmet-rdma nvme-rdma
	mkdir -p $nvmet/subsystems/$nqn/namespaces/1 $nvmet/ports/1
	echo 1 >$nvmet/subsystems/$nqn/attr_allow_any_host
	echo "$bench_disk" >$nvmet/subsystems/$nqn/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/$nqn/namespaces/1/enable
	echo rdma >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	addr server 0 | cut -d: -f2 >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/
	echo "transport=rdma,traddr=$(addr server 0 | cut -d: -f2),trsvcid=4420,nqn=$nqn" >/dev/nvme-fabrics
	wait_for 20 compgen -G '/dev/nvme*n1' || fail "no NVMe disk"
}

# bench_down WHAT
bench_down()
{
	case $1 in
	nvme)
		echo 1 >"$(echo /sys/class/nvme/nvme*/delete_controller)"
		rm $nvmet/ports/1/subsystems/$nqn
		rmdir $nvmet/ports/1 $nvmet/subsystems/$nqn/namespaces/1 $nvmet/subsystems/$nqn
		rmmod nvme_rdma nvmet_rdma
		;;
	*)
		unmap "/dev/$(mapped bench "$bench_disk")"
		# The in-tree client warns if it is unloaded while a session of its ends.
		client_idle
		server_idle
		unload
		;;
	esac
}

# bench_cell DEVICE RW SIZE DEPTH SECONDS: prints I/Os a second, mean and 99th
# percentile of the latency in us, packets for an I/O
bench_cell()
{
	local before after

	before=$(counter sent_pkts)
	fio --name=cell --filename="$1" --direct=1 --ioengine=libaio --rw="$2" --bs="$3" \
		--iodepth="$4" --norandommap --time_based --runtime="$5" \
		--output-format=json --output=/tmp/cell.json
	after=$(counter sent_pkts)
	python3 - "$((after - before))" <<-'END'
	import json, sys
	job = json.load(open("/tmp/cell.json"))["jobs"][0]
	side = job["read"] if job["read"]["total_ios"] else job["write"]
	clat = side["clat_ns"]
	print(f"{side['iops']:.0f} {clat['mean'] / 1e3:.0f}"
	      f" {clat['percentile']['99.000000'] / 1e3:.0f}"
	      f" {int(sys.argv[1]) / side['total_ios']:.2f}")
	END
}
