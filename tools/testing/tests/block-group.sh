# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The operations of blktests on a mapped disk: partitions are read during I/O (block/001); discards,
# and writes with flushes, of several jobs (003, 004); another I/O scheduler under load (005); CPU
# hotplug under load (008); writes to a disk set read-only fail (012); thirty mappings and
# unmappings in a row (rnbd/001 and 002). CPUs are also removed while there is no path. Only the
# stock kernel, as User Mode Linux has no CPU hotplug.
# Kernel: stock
# Once: stock
# Cpus: 2
# Modules: ours

cpu1=/sys/devices/system/cpu/cpu1/online

# jobs OPTION...: runs two jobs of fio with a fixed amount of I/O
jobs()
{
	fio --name=jobs --filename="$dev" --direct=1 --ioengine=libaio --iodepth=16 --numjobs=2 \
		--bs=16k "$@" >/tmp/jobs.out 2>&1 || fail "fio $*: $(tail -n 5 /tmp/jobs.out)"
}

# done_since FIELD BEFORE: prints the increase of a number of the server's disk since it was BEFORE
done_since() { echo $(($(server_ios "$disk" "$1") - $2)); }

# writes_stopped: true if no write ends within 0.3 s
writes_stopped()
{
	local before
	before=$(ios "$dev" writes)
	pause 0.3
	[ "$(ios "$dev" writes)" = "$before" ]
}

# where_requests_are: prints requests in flight, according to fio, both ends of the path and the
# block layer
where_requests_are()
{
	local d=/sys/kernel/debug/block/${dev#/dev/}
	echo "fio: $(cat /tmp/load.out)"
	echo "client: $(cat "$path/state" "$path/stats/rdma" | xargs)"
	on server 'echo "server: $(cat /sys/class/rtrs-server/s1/paths/*/stats/rdma)"'
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
	grep . "$d"/hctx*/{state,busy,dispatch} "$d"/hctx*/cpu*/*_rq_list || true
}

set_up
disk=$(null vol 64 discard=1 cache_size=8)
dev=$(map s1 "$disk")

say "partitions are looked for"
start_load "$dev"
for _ in $(seq 20); do
	blockdev --rereadpt "$dev" || fail "BLKRRPART"
done
stop_load

say "discards"
dd if=/dev/urandom of=/tmp/data bs=1M count=40 status=none
dd if=/tmp/data of="$dev" bs=1M oflag=direct status=none
was=$(server_ios "$disk" discard_sectors)
# Each block of the first 32 MB once, in any order
jobs --rw=randtrim --size=16m --offset_increment=16m
equal "sectors that the server's disk has discarded" "$(done_since discard_sectors "$was")" 65536
on server "cmp -n $((32 << 20)) $disk /dev/zero" || fail "not all was discarded"
on server "cmp -n $((8 << 20)) -i $((32 << 20)) $disk /tmp/data" || fail "more was discarded"

say "flushes"
was=$(ios "$dev" flushes) were=$(server_ios "$disk" flushes)
jobs --rw=randwrite --fdatasync=1 --size=4m --offset_increment=32m
# Two processes request at least 255 flushes each. Flushes of both may be merged, on both ends.
sent=$(($(ios "$dev" flushes) - was))
flushed=$(done_since flushes "$were")
say "$sent are sent, $flushed done by the server's disk"
must "only $sent flushes are sent" [ "$sent" -ge 255 ]
must "only $flushed of $sent flushes are done" [ "$flushed" -ge $((sent / 2)) ]

say "schedulers"
modprobe -a mq-deadline kyber-iosched bfq 2>/dev/null || true
start_load "$dev"
for _ in 1 2 3; do
	for scheduler in $(queue "$dev" scheduler | tr -d '[]'); do
		echo "$scheduler" >"/sys/block/${dev#/dev/}/queue/scheduler"
		queue "$dev" scheduler | grep -qF "[$scheduler]" || fail "not $scheduler: $(queue "$dev" scheduler)"
	done
done
say "$(queue "$dev" scheduler)"
stop_load

say "CPUs"
start_load "$dev" --cpus_allowed_policy=shared
for _ in 1 2 3 4 5; do
	echo 0 >$cpu1
	was=$(ios "$dev" writes)
	wait_for 20 eval "[ \$(ios $dev writes) -gt $was ]" || { echo 1 >$cpu1; fail "no I/O without CPU 1"; }
	echo 1 >$cpu1
	was=$(ios "$dev" writes)
	wait_for 20 eval "[ \$(ios $dev writes) -gt $was ]" || fail "no I/O with CPU 1"
done
stop_load

say "CPUs, while requests wait for a path"
echo -1 >/sys/class/rtrs-client/s1/failover_timeout
path=$(echo /sys/class/rtrs-client/s1/paths/*)
start_load "$dev" --cpus_allowed=1
echo 1 >"$path/disconnect"
wait_for 20 writes_stopped || fail "I/O goes on"
! ended "$loader" || fail "the load ended: $(cat /tmp/load.out)"
echo 0 >$cpu1 &
wait_for 20 ended $! || fail "a CPU can't go"
wait $! || fail "CPU 1 stays"
echo 1 >$cpu1
echo 1 >"$path/reconnect"
was=$(ios "$dev" writes)
wait_for 20 eval "[ \$(ios $dev writes) -gt $was ]" || fail "no I/O after that: $(where_requests_are)"
stop_load

say "mapped without one of the CPUs"
unmap "$dev"
client_idle
echo 0 >$cpu1
dev=$(map s1 "$disk")
expect_io 0 "$dev" write:0:64k:w
echo 1 >$cpu1
expect_io 0 "$dev" read:0:64k:w
taskset -c 1 "$RIG_DIR/steps/io.py" "$dev" write:1m:64k:w read:1m:64k:w >/tmp/cpu1
equal "I/O of the CPU that came" "$(cat /tmp/cpu1)" "0 0"

say "read only"
expect_io 0 "$dev" write:0:64k:x
was=$(checksum "$dev")
blockdev --setro "$dev"
! dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct status=none 2>/dev/null || fail "a write was taken"
for option in '' --zeroout; do
	# shellcheck disable=SC2086
	! blkdiscard --force $option --length 4096 "$dev" 2>/dev/null || fail "blkdiscard $option was taken"
done
equal "the data" "$(checksum "$dev")" "$was"
blockdev --setrw "$dev"
expect_io "0 0" "$dev" write:0:4k:y discard:4k:4k
unmap "$dev"

say "a zoned disk"
zoned=$(null zoned 64 zoned=1 zone_size=4)
map_fails EOPNOTSUPP "sessname=s1 path=$(addr server 0) device_path=$zoned"

say "thirty times"
for _ in $(seq 30); do
	dev=$(map s1 "$disk")
	echo normal >"/sys/block/${dev#/dev/}/rnbd/unmap_device"
done
wait_for 20 eval '! compgen -G "/sys/block/rnbd*" >/dev/null' || fail "a disk is left"
tear_down
