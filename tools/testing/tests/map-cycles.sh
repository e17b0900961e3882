# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Map and unmap 100 times: no growth in the kernel's memory, no leftover. On the debug
# kernel, whose checkers keep memory of their own, kmemleak looks in the end; 20 times
# do there.
# Time: 240
# Once: stock

# Objects in use; what slabs have left over depends on what ran before.
slab() { awk '$1 ~ /^(kmalloc-|rnbd|rtrs|bio-|biovec)/ { n += $2 * $4 } END { print int(n / 1024) }' /proc/slabinfo; }
kernel_kb() { awk '/^(Slab|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo; }

cycle()
{
	local dev
	dev=$(map s1 "$disk")
	unmap "$dev"
	client_idle
	server_idle
}

up sess_queue_depth=32
disk=$(null vol 16)
for _ in 1 2 3 4 5 6 7 8 9 10; do
	cycle
done
if debug_kernel; then
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		cycle
	done
	down
	return
fi
echo 2 >/proc/sys/vm/drop_caches
before=$(slab) kernel=$(kernel_kb)
for _ in $(seq 90); do
	cycle
done
echo 2 >/proc/sys/vm/drop_caches
# What RCU and workqueues still hold is given back within moments.
# shellcheck disable=SC2016
wait_for 10 eval '[ $(($(slab) - before)) -lt 400 ]' ||
	fail "kmalloc caches grew from $before to $(slab) KB in 90 cycles"
say "kmalloc caches: $before KB before, $(slab) KB after; slab, vmalloc and per-CPU: $kernel, $(kernel_kb)"
# shellcheck disable=SC2016
wait_for 10 eval '[ $(($(kernel_kb) - kernel)) -lt 1000 ]' ||
	fail "kernel memory grew from $kernel to $(kernel_kb) KB in 90 cycles"
down
