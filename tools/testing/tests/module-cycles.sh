# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Load the modules, map, unmap, unload, 20 times: no growth, no leftover.
# Time: 360
# Once: stock

kernel_kb() { awk '/^(Slab|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo; }

rdma_up
disk=$(null vol 16)
for i in $(seq 20); do
	load_server sess_queue_depth=32
	load_client
	dev=$(map s1 "$disk")
	unmap "$dev"
	unload || fail "can't unload the modules, cycle $i"
	for f in /sys/class/rnbd-client /sys/class/rtrs-client /sys/class/rnbd-server \
		/sys/class/rtrs-server /sys/module/rtrs_core; do
		[ ! -e $f ] || fail "$f is left, cycle $i"
	done
	! rdma resource show qp | grep -E 'rtrs|rnbd' || fail "queue pairs left, cycle $i"
	if [ "$i" = 5 ]; then
		echo 2 >/proc/sys/vm/drop_caches
		before=$(kernel_kb)
	fi
done
echo 2 >/proc/sys/vm/drop_caches
say "kernel memory: $before KB, after 15 more cycles $(kernel_kb) KB"
# shellcheck disable=SC2016
wait_for 10 eval '[ $(($(kernel_kb) - before)) -lt 3000 ]' ||
	fail "kernel memory grew from $before to $(kernel_kb) KB in 15 cycles"
no_nulls
