# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For comparisons of drivers over rxe, on null_blk volumes that keep no data: ours-Y, ours-N,
# intree-Y, intree-N (modules and the server's always_invalidate) and nvme (NVMe over RDMA). In one
# guest, or in a server and a client.

nvmet=/sys/kernel/config/nvmet
nqn=nqn.2014-08.org.nvmexpress:bench

# bench_volumes N: makes /dev/bench0 and so on, on the server
bench_volumes()
{
	local i

	for ((i = 0; i < $1; i++)); do
		on server "[ -b /dev/bench$i ] || null_here bench$i 1024 memory_backed=0 hw_queue_depth=256" >/dev/null
	done
}

# bench_load WHAT: loads the modules
bench_load()
{
	rdma_up >&2
	bench_volumes 1
	case $1 in
	nvme)
		on server ". $RIG_DIR/steps/compare.sh; nvme_export"
		modprobe nvme-rdma
		;;
	*)
		# shellcheck disable=SC2034
		client_modules=${1%-*} server_modules=${1%-*}
		case ${1#*-} in
		[YN])	load_server always_invalidate="${1#*-}" ;;
		*)	load_server slot_size="${1#*-}" ;;
		esac
		load_client
		;;
	esac
}

# bench_map WHAT SHAPE: maps disks and prints them, separated by commas. SHAPE: one, a session with
# one disk; paths, the same with two paths; polled, with a polled queue; devices, eight disks;
# sessions, eight sessions with one disk
bench_map()
{
	local i disks=

	case $1-$2 in
	nvme-one)
		nvme_connect
		return
		;;
	nvme-*)
		fail "there is no $2 for NVMe here"
		;;
	*-one)
		map bench /dev/bench0
		return
		;;
	*-polled)
		map bench /dev/bench0 nr_poll_queues=1
		return
		;;
	*-paths)
		map bench /dev/bench0 path="$(addr server 0)" path="$(addr server 1)"
		return
		;;
	esac
	bench_volumes 8
	for i in 0 1 2 3 4 5 6 7; do
		case $2 in
		devices)	disks+=,$(map bench "/dev/bench$i") ;;
		sessions)	disks+=,$(map "bench$i" "/dev/bench$i") ;;
		*)		fail "no shape $2" ;;
		esac
	done
	echo "${disks#,}"
}

nvme_export()
{
	modprobe nvmet-rdma
	mkdir -p $nvmet/subsystems/$nqn/namespaces/1 $nvmet/ports/1
	echo 1 >$nvmet/subsystems/$nqn/attr_allow_any_host
	echo /dev/bench0 >$nvmet/subsystems/$nqn/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/$nqn/namespaces/1/enable
	echo rdma >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	addr server 0 | cut -d: -f2 >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/
}

nvme_unexport()
{
	rm $nvmet/ports/1/subsystems/$nqn
	rmdir $nvmet/ports/1 $nvmet/subsystems/$nqn/namespaces/1 $nvmet/subsystems/$nqn
	rmmod nvmet_rdma
}

nvme_disk()
{
	local disk

	for disk in /dev/nvme*n1; do
		[ -b "$disk" ] && echo "$disk" && return
	done
	return 1
}

nvme_connect()
{
	echo "transport=rdma,traddr=$(addr server 0 | cut -d: -f2),trsvcid=4420,nqn=$nqn" >/dev/nvme-fabrics
	wait_for 20 nvme_disk >/dev/null || fail "no NVMe disk"
	nvme_disk
}

# bench_unmap WHAT: unmaps all disks
bench_unmap()
{
	local disk

	if [ "$1" = nvme ]; then
		echo 1 >"$(echo /sys/class/nvme/nvme*/delete_controller)"
		return
	fi
	for disk in /sys/block/rnbd*; do
		[ ! -e "$disk" ] || unmap "${disk##*/}"
	done
	# The in-tree client warns if it is unloaded while a session ends.
	client_idle
	server_idle
}

# bench_unload WHAT: unloads the modules
bench_unload()
{
	if [ "$1" = nvme ]; then
		rmmod nvme_rdma
		on server ". $RIG_DIR/steps/compare.sh; nvme_unexport"
	else
		unload
	fi
}

# bench_cell DISKS SECONDS FIO_OPTION...: prints I/Os, I/Os a second, mean and 99th
# percentile of the latency in us, packets for an I/O
bench_cell()
{
	local before after disk jobs=()

	for disk in ${1//,/ }; do
		jobs+=(--name="${disk##*/}" --filename="$disk")
	done
	before=$(counter sent_pkts)
	fio --name=global --direct=1 --ioengine=libaio --norandommap --group_reporting --thread \
		--time_based --runtime="$2" "${@:3}" --output-format=json \
		--output=/tmp/cell.json "${jobs[@]}"
	after=$(counter sent_pkts)
	python3 - "$((after - before))" <<-'END'
	import json, sys
	job = json.load(open("/tmp/cell.json"))["jobs"][0]
	sides = [job[x] for x in ("read", "write") if job[x]["total_ios"]]
	ios = sum(s["total_ios"] for s in sides)
	mean = sum(s["clat_ns"]["mean"] * s["total_ios"] for s in sides) / ios
	p99 = max(s["clat_ns"]["percentile"]["99.000000"] for s in sides)
	print(f"{ios} {sum(s['iops'] for s in sides):.1f} {mean / 1e3:.1f}"
	      f" {p99 / 1e3:.0f} {int(sys.argv[1]) / ios:.3f}")
	END
}

# ---- costs of an I/O, counted in this guest ----

# A function of rdma_rxe for each cost, called once: calls of post_send, work requests sent; calls
# of post_recv, receives posted; completions; calls of a completion queue's handler; arming of a
# completion queue; registrations and invalidations of memory.
cost_probes="rxe_post_send do_complete rxe_post_recv post_one_recv rxe_cq_post
	rxe_send_complete rxe_req_notify_cq rxe_reg_fast_mr rxe_invalidate_mr"

costs_on()
{
	local t=/sys/kernel/debug/tracing p

	for p in $cost_probes; do
		echo "p:rig/$p rdma_rxe:$p" >>$t/kprobe_events
	done
	echo 1 >$t/events/rig/enable
	# Wake-ups of workers
	echo 'hist:keys=target_cpu if comm ~ "kworker*"' >$t/events/sched/sched_wakeup/trigger
}

costs_off()
{
	local t=/sys/kernel/debug/tracing

	echo '!hist:keys=target_cpu if comm ~ "kworker*"' >$t/events/sched/sched_wakeup/trigger
	echo 0 >$t/events/rig/enable
	echo >$t/kprobe_events
}

# costs: prints the number of each since costs_on, then workers' wake-ups and packets sent
costs()
{
	local t=/sys/kernel/debug/tracing p

	for p in $cost_probes; do
		awk -v p="$p" '$1 == p { n = $2 } END { printf "%d ", n }' $t/kprobe_profile
	done
	awk '$1 == "Hits:" { n = $2 } END { printf "%d ", n }' $t/events/sched/sched_wakeup/hist
	counter sent_pkts
}

# bench_costs DISKS SECONDS FIO_OPTION...: prints I/Os, then client and server, each with
# the increase of each of its costs
bench_costs()
{
	local steps=". $RIG_DIR/steps/compare.sh" here there here2 there2 cell

	here=$(costs)
	there=$(on server "$steps; costs")
	cell=$(bench_cell "$@")
	here2=$(costs)
	there2=$(on server "$steps; costs")
	echo "${cell%% *}"
	python3 - client "$here" "$here2" server "$there" "$there2" <<-'END'
	import sys
	for side, a, b in zip(*[iter(sys.argv[1:])] * 3):
	    print(side, *(int(y) - int(x) for x, y in zip(a.split(), b.split())))
	END
}

# bench_modules DISKS SECONDS FIO_OPTION...: prints I/Os, then module and instructions in it
# (sampled, 20,000 each), by the clock that counts two nanoseconds for one
bench_modules()
{
	local cell

	cell=$(perf record -q -a -e cpu-clock -c 40000 -o /tmp/perf.data -- \
		bash -c ". $RIG_DIR/lib.sh; . $RIG_DIR/steps/compare.sh; bench_cell ${*@Q}" 2>/tmp/perf.err) ||
		fail "perf: $(cat /tmp/perf.err)"
	echo "${cell%% *}"
	perf script -i /tmp/perf.data -F ip 2>/dev/null | python3 -c '
import collections, sys
where = [line.split() for line in open("/proc/modules")]
where = sorted((int(w[5], 16), int(w[1]), w[0]) for w in where)
found = collections.Counter()
for line in sys.stdin:
    ip = int(line, 16)
    for start, size, name in where:
        if start <= ip < start + size:
            found[name] += 20000
for name, n in found.items():
    print(name, n)'
	rm -f /tmp/perf.data
}

# ---- costs of a set-up ----

# free_kib: prints the free memory. MemFree does not include the CPUs' lists of free pages.
free_kib()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^MemFree/ { free += $2 } $1 == "count:" { free += 4 * $2 } END { print free }' \
		/proc/meminfo /proc/zoneinfo
}

# session_gone SESSION: true if neither end has that session
session_gone()
{
	[ ! -e "/sys/class/rtrs-client/$1" ] && server_has_no "$1"
}

# timed SESSION DISK OPTION...: prints the milliseconds and KiB that mapping takes: the memory with
# an empty page cache, then the time with all programs in it
timed()
{
	local free kib before dev

	free=$(free_kib)
	dev=$(map "$@")
	kib=$((free - $(free_kib)))
	unmap "$dev"
	[ "$2" = /dev/bench39 ] || wait_for 20 session_gone "$1"
	before=$(date +%s%N)
	map "$@" >/dev/null
	echo "$((($(date +%s%N) - before) / 1000000)) $kib"
}

# bench_setup: a first map with one path, with two; the 40th disk of a session; the first
# and the 16th session of one path: ms and KiB each, both ends together
bench_setup()
{
	local i

	bench_volumes 40
	# The first mapping makes allocations that stay.
	map warm /dev/bench0 >/dev/null
	bench_unmap rnbd
	echo "first-map $(timed bench /dev/bench0)"
	for ((i = 1; i < 39; i++)); do
		map bench "/dev/bench$i" >/dev/null
	done
	echo "40th-disk $(timed bench /dev/bench39)"
	bench_unmap rnbd
	echo "first-map-two-paths $(timed bench /dev/bench0 path="$(addr server 0)" path="$(addr server 1)")"
	bench_unmap rnbd
	for ((i = 0; i < 15; i++)); do
		map "bench$i" "/dev/bench$i" >/dev/null
	done
	echo "16th-session $(timed bench15 /dev/bench15)"
	bench_unmap rnbd
}
