# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Load the modules, map, unmap, unload, 20 times: no memory growth, nothing left.
# Once: stock

. "$RIG_DIR/steps/memory.sh"

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
		settle
		kernel=$(kernel_kb) pages=$(pages_kb)
	fi
done
grown kernel_kb "$kernel" 3000
grown pages_kb "$pages" 2000
no_nulls
