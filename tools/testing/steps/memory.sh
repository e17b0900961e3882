# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel's memory in use. Pages from alloc_pages() are in no counter and unknown to kmemleak:
# they are the difference between the total and all counters.

# slab_kb: prints the size of used objects in caches of the drivers; free objects in slabs depend on
# earlier tests
slab_kb()
{
	awk '$1 ~ /^(kmalloc-|rnbd|rtrs|bio-|biovec)/ { n += $2 * $4 } END { print int(n / 1024) }' \
		/proc/slabinfo
}

kernel_kb() { awk '/^(Slab|VmallocUsed|Percpu):/ { n += $2 } END { print n }' /proc/meminfo; }

# pages_kb: prints the size of pages that are neither free nor counted. CPUs keep lists of free
# pages.
pages_kb()
{
	awk '/^MemTotal:/ { n += $2 }
		/^(MemFree|Active|Inactive|Unevictable|Slab|KernelStack|PageTables|SecPageTables|Percpu|VmallocUsed):/ { n -= $2 }
		/^ *count:/ { n -= 4 * $2 }
		END { print n }' /proc/meminfo /proc/zoneinfo
}

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# grown COUNTER BEFORE KB: fails if the counter has grown by KB or more. RCU and workqueues release
# memory a little later.
grown()
{
	settle
	wait_for 10 eval "[ \$((\$($1) - $2)) -lt $3 ]" ||
		fail "$1 grew from $2 to $($1)"
	say "$1: $2 before, $($1) after"
}
