# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel's own allocations fail in turn (failslab, fail_page_alloc), in the task that
# maps, opens, reads and writes: those of the RDMA core, the networks, sysfs, the block
# layer. There's an errno or success, nothing is left, and the next try works. To map
# takes some 800 of them; one in $step is made to fail.
#
# What others do when memory fails is no trouble of ours: vmalloc() tells of it with a
# stack; rxe, when it gets no socket for a queue pair, stops timers that it has not set up
# yet (rxe_qp_do_cleanup), which lockdep and debug_objects take amiss, and lockdep ends
# its work, hence guests of its own. It is looked at that these come from there.
# Kernel: debug
# Modules: ours
# Log-ok: Call Trace:|lockdep|WARNING: .* debug_print_object|ODEBUG
# Append: faults-memory

. ../steps/faults.sh

step=4

# blame: warnings in the log whose stack isn't that of rxe's mistake
blame()
{
	since | awk '/ (WARNING|INFO|BUG): / { if (line && !rxe) print line; line = $0; rxe = 0 }
		/rxe_qp_do_cleanup/ { rxe = 1 }
		END { if (line && !rxe) print line }'
}

# fail_in_turn WHAT ARGUMENT ERRNO...: has allocations fail in turn; fails unless that gives 0 or
# one of these errnos
fail_in_turn()
{
	local what=$1 argument=$2 by=$step first end said=() out e
	shift 2
	[ "$what" = map ] || by=1
	first=1
	while :; do
		mark
		out=$(../steps/fail-nth.py "$first" $by $((first + 30 * by - 1)) "$what" "$argument") ||
			fail "$what: $out"
		[ "$what" != map ] || server_idle
		equal "resources after the failures from $first on" "$(rdma_resources)" "$before"
		equal "warnings after the failures from $first on" "$(blame)" ""
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

up sess_queue_depth=2
disk=$(null vol 4 cache_size=1)
text="sessname=s1 path=$(addr server 0) device_path=$disk"
for f in failslab fail_page_alloc; do
	echo N >/sys/kernel/debug/$f/ignore-gfp-wait
	echo 0 >/sys/kernel/debug/$f/verbose
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

before=$(rdma_resources)
# ENFILE: no memory for a socket; ENOBUFS: none for a route; EINVAL: none for a disk's
# name, which device_add_disk() doesn't look at, but device_add() does.
fail_in_turn map "$text" ENOMEM ENFILE ENOBUFS EINVAL
dev=$(map s1 "$disk")
before=$(rdma_resources)
fail_in_turn open "$dev" ENOMEM
fail_in_turn read "$dev" ENOMEM EFAULT
fail_in_turn write "$dev" ENOMEM EFAULT
fail_in_turn buffered "$dev" ENOMEM
gives "0 0" "$dev" write:0:1m:a read:0:1m:a
unmap "$dev"
down
devices_anew
