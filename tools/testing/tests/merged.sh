# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Requests that arrive together are submitted together: contiguous ones are merged for the server's
# disk, though the client sends each separately. Of blocks written and read in order, 32 at a time,
# some must be merged, and all must have the right data. Single requests are submitted without a
# work item.
# Modules: ours
# Once: debug 6.12

# cpus 0|1: all but the first. With one, many of those that were sent at once are there when the
# work item runs; with two, hardly any may be.
cpus()
{
	local cpu
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$cpu" ] || echo "$1" >"$cpu"
	done
}

cpus 0
set_up
# It takes its time, and is none that sleeps when it is handed something, which would be handed
# each by itself.
ms=$(slowly 10)
disk=$(scsi ndelay=$(((ms < 900 ? ms : 900) * 1000000)))
dev=$(map s1 "$disk")
echo none >"/sys/block/${dev#/dev/}/queue/scheduler"
echo 2 >"/sys/block/${dev#/dev/}/queue/nomerges"
on server "echo none >/sys/block/${disk#/dev/}/queue/scheduler"

# write_in_order BLOCKS DEPTH [SIZE]: writes so many blocks of 4 KiB in order, SIZE at a time, then
# reads and verifies them
write_in_order()
{
	fio --name=x --filename="$dev" --direct=1 --ioengine=libaio --rw=write --bs="${3:-4k}" \
		--size=$(($1 * 4))k --iodepth="$2" --iodepth_batch_submit="$2" \
		--iodepth_batch_complete_min="$2" --verify=crc32c --do_verify=1 --verify_fatal=1 \
		>/tmp/fio.out 2>&1 || fail "$(cat /tmp/fio.out)"
}

# merges: prints the numbers of merged reads and merged writes of the server's disk
merges() { on server "echo \$(ios $disk read_merges) \$(ios $disk write_merges)"; }

# begun: prints how often a work item has submitted requests since the last call
trace=/sys/kernel/debug/tracing
begun() { on server "grep -c 'function rtrs_srv_begin_work' $trace/trace || true; echo >$trace/trace"; }

read -r reads writes <<<"$(merges)"
write_in_order 2048 32
read -r reads2 writes2 <<<"$(merges)"
say "of 2048 blocks, $((writes2 - writes)) writes and $((reads2 - reads)) reads became part of others"
must "few writes became part of others" [ $((writes2 - writes)) -ge 64 ]
must "few reads became part of others" [ $((reads2 - reads)) -ge 64 ]

on server "echo 1 >$trace/events/workqueue/workqueue_execute_start/enable"
# Fetches succeed as well.
write_in_order 2048 8 1m
begun >/dev/null
write_in_order 64 1
equal "work items for one at a time" "$(begun)" 0
write_in_order 64 32
must "no work item for many" [ "$(begun)" -gt 0 ]
on server "echo 0 >$trace/events/workqueue/workqueue_execute_start/enable"
unmap "$dev"
no_scsi
tear_down
cpus 1
