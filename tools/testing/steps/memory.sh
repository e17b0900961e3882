# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the kernel has in use. Pages that a driver takes by themselves (alloc_pages()) are in
# no counter and unknown to kmemleak: they are what is missing from the sum of all others.

# slab_kb: objects in use of the caches that the drivers take from; what slabs have left over
# depends on what ran before
slab_kb()
{
	awk '$1 ~ /^(kmalloc-|rnbd|rtrs|bio-|biovec)/ { n += $2 * $4 } END { print int(n / 1024) }' \
		/proc/slabinfo
}

kernel_kb() { awk '/^(Slab|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo; }

# pages_kb: neither free nor counted as anything. CPUs keep lists of free pages.
pages_kb()
{
	awk '/^MemTotal:/ { n += $2 }
		/^(MemFree|Active|Inactive|Unevictable|Slab|KernelStack|PageTables|SecPageTables|Percpu|VmallocUsed):/ { n -= $2 }
		/^ *count:/ { n -= 4 * $2 }
		END { print n }' /proc/meminfo /proc/zoneinfo
}

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# grown COUNTER BEFORE KB: by less, sooner or later: what RCU and workqueues still hold is
# given back within moments
grown()
{
	settle
	wait_for 10 eval "[ \$((\$($1) - $2)) -lt $3 ]" ||
		fail "$1 grew from $2 to $($1)"
	say "$1: $2 before, $($1) after"
}
