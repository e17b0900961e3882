# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# 100 mappings and unmappings: the kernel's memory does not grow, neither with each mapping nor once
# by the chunks of a session, and nothing is left. On the debug kernel, whose checkers keep slabs,
# kmemleak looks for leaks instead; 30 mappings suffice there.
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
