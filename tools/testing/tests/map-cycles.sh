# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Map and unmap 100 times: no growth in the kernel's memory, not by one chunk a time nor by
# the chunks of one session once, and no leftover. On the debug kernel, whose checkers keep
# slabs of their own, kmemleak looks for those in the end; 30 times do there.
# Once: stock

. "$RIG_DIR/steps/memory.sh"

cycles()
{
	local dev
	for _ in $(seq "$1"); do
		dev=$(map s1 "$disk")
		unmap_last "$dev"
	done
}

# Of 128 KiB each, and one for each of 32 requests
set_up sess_queue_depth=32
disk=$(null vol 16)
cycles 10
settle
slab=$(slab_kb) kernel=$(kernel_kb) pages=$(pages_kb)
if debug_kernel; then
	cycles 20
else
	cycles 90
	grown slab_kb "$slab" 400
	grown kernel_kb "$kernel" 1000
fi
grown pages_kb "$pages" 1500
tear_down
