# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Allocations of sysfs and the block layer fail in turn (failslab, fail_page_alloc), in the task
# that maps, opens, reads and writes. Each step returns an errno or succeeds, nothing is left, and
# the next attempt works. Mapping makes some 700 allocations; one in $step fails. (Paths are
# connected by work items: see faults-map.sh.)
#
# vmalloc() logs a stack when an allocation fails. Lockdep must work until the end.
# Kernel: debug
# Modules: ours
# Log-ok: Call Trace:

. ../steps/faults.sh

step=4

# fail_in_turn WHAT ARGUMENT ERRNO...: has allocations fail in turn; fails unless that gives 0 or
# one of these errnos
fail_in_turn()
{
	local what=$1 argument=$2 by=$step first end said=() out e
	shift 2
	[ "$what" = map ] || by=1
	first=1
	while :; do
		out=$(../steps/fail-nth.py "$first" $by $((first + 30 * by - 1)) "$what" "$argument") ||
			fail "$what: $out"
		[ "$what" != map ] || server_idle
		equal "resources after the failures from $first on" "$(rdma_resources)" "$before"
		readarray -t -O ${#said[@]} said < <(grep -v end <<<"$out" || true)
		end=${out##*end }
		[ "$end" = $((first + 30 * by)) ] || break
		first=$end
	done
	out=$(printf '%s\n' "${said[@]}" | awk '{ n[$1] += $2 } END { for (e in n) print e, n[e] }')
	say "$what: $end allocations: $(xargs <<<"$out")"
	for e in $(cut -d' ' -f1 <<<"$out"); do
		[[ " 0 $* " == *" $e "* ]] || fail "$what: $e"
	done
}

set_up sess_queue_depth=2
disk=$(null vol 4 cache_size=1)
text="sessname=s1 path=$(addr server 0) device_path=$disk"
for f in failslab fail_page_alloc; do
	echo N >/sys/kernel/debug/$f/ignore-gfp-wait
	echo 0 >/sys/kernel/debug/$f/verbose
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

before=$(rdma_resources)
# EINVAL: none for a disk's name, which device_add_disk() doesn't look at, but device_add() does.
fail_in_turn map "$text" ENOMEM EINVAL
dev=$(map s1 "$disk")
before=$(rdma_resources)
fail_in_turn open "$dev" ENOMEM
fail_in_turn read "$dev" ENOMEM EFAULT
fail_in_turn write "$dev" ENOMEM EFAULT
fail_in_turn buffered "$dev" ENOMEM
expect_io "0 0" "$dev" write:0:1m:a read:0:1m:a
tear_down "$dev"
devices_anew
must "lockdep has ended its work" grep -q '^ *debug_locks: *1$' /proc/lockdep_stats
