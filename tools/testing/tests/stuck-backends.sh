# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Blocked workers of the server: over 600 requests of two sessions wait for files, because the disk
# below is suspended, which also blocks more OPENs than a workqueue has workers without delaying the
# same session's OPEN of another device, or because the file system is frozen; and for disks that
# block in submission. Meanwhile a third session maps, writes, reads, flushes, discards and unmaps a
# disk and a file nearly as fast as before. The blocked requests end without errors. On a kernel
# with two CPUs, as times are compared.
# Modules: ours
# Kernel: stock
# Once: stock

# third DEVICE: the third session's work
third()
{
	local dev
	dev=$(map s3 "$1")
	dd if=/tmp/data of="$dev" bs=64k oflag=direct conv=fsync status=none
	dd if="$dev" bs=64k count=16 iflag=direct status=none | cmp - /tmp/data
	blkdiscard "$dev"
	unmap "$dev"
}

# unharmed WHAT: the third session doesn't notice
unharmed()
{
	local from=$EPOCHREALTIME worker d
	for d in "$quick" /dev/shm/ok; do
		third "$d" >/tmp/third.out 2>&1 &
		worker=$!
		wait_for 30 ended $worker || fail "$1: $d of the third session waits, too"
		wait $worker || fail "$1: $d: $(cat /tmp/third.out)"
	done
	ms=$(((${EPOCHREALTIME/./} - ${from/./}) / 1000))
	say "$1: the third session took $ms ms"
}

# both_inflight: prints the number of requests of both sessions that are in flight
both_inflight() { echo $(($(inflight "${devs[0]}") + $(inflight "${devs[1]}"))); }

# start_stuck read|write: starts as many requests as both sessions can have; none ends
start_stuck()
{
	local i
	loaders=()
	for i in 0 1; do
		fio --name=stuck --filename="${devs[i]}" --direct=1 --ioengine=libaio \
			--rw="rand$1" --bs=4k --iodepth=400 --size=32m --number_ios=2000 \
			>/tmp/stuck$i.out 2>&1 &
		loaders+=($!)
	done
	wait_for 60 eval '[ "$(both_inflight)" -ge 700 ]' || fail "$(both_inflight) requests in flight"
}

# end_stuck: waits for these requests to end without an error
end_stuck()
{
	local i
	for i in 0 1; do
		wait "${loaders[i]}" || fail "$(cat /tmp/stuck$i.out)"
	done
}

hung_task_limit 200
set_up
quick=$(null quick 64 discard=1)
truncate -s 64M /dev/shm/ok
head -c 1M /dev/urandom >/tmp/data
hung=$(dm hung "0 262144 linear $(null backing 128) 0")
mkfs.ext4 -q "$hung"
mkdir -p /srv/hung
mount "$hung" /srv/hung
mkdir /srv/hung/dir
for i in 0 1; do
	dd if=/dev/zero of=/srv/hung/f$i bs=1M count=32 conv=fsync status=none
done
# The journal keeps written blocks in memory. After a new mount, a lookup in dir reads the disk.
umount /srv/hung
mount "$hung" /srv/hung
for i in 0 1; do
	devs[i]=$(map s$((i + 1)) /srv/hung/f$i)
done
unharmed "nothing is stuck"
alone=$ms

dm_suspend hung
start_stuck read
unharmed "reads are stuck"
must "$ms ms, $alone ms alone" [ "$ms" -le $((2 * alone + 3000)) ]
echo 3 >/proc/sys/vm/drop_caches
modprobe -a ib_uverbs rdma_ucm
mkfifo /tmp/said
for i in 1 2; do
	(HOSTILE_SLOW=/srv/hung/dir/f HOSTILE_RW=$quick exec "${RIG_TREES%tree-}hostile" client 192.168.100.1 1234 hold-opens "o$i" >/tmp/said) &
	hostiles+=($!)
	read -r said </tmp/said
	equal "OPENs of session $i" "$said" yes
done
unharmed "OPENs are stuck"
must "$ms ms, $alone ms alone" [ "$ms" -le $((2 * alone + 3000)) ]
kill -KILL "${hostiles[@]}"
dm_resume hung
end_stuck

fsfreeze -f /srv/hung
start_stuck write
unharmed "writes are stuck"
must "$ms ms, $alone ms alone" [ "$ms" -le $((2 * alone + 3000)) ]
fsfreeze -u /srv/hung
end_stuck

unmap_last "${devs[0]}" "${devs[1]}"
umount /srv/hung

# A write to a range that md has suspended waits in whatever submits it.
modprobe -a md-mod raid1
for i in 0 1; do
	MDADM_NO_UDEV=1 mdadm --create /dev/md$i --run --force --assume-clean --metadata=1.2 --level=1 \
		--raid-devices=1 "$(null leg$i 64)" 2>/dev/null
	devs[i]=$(map s$((i + 1)) /dev/md$i)
	echo 262144 >/sys/block/md$i/md/suspend_hi
done
start_stuck write
unharmed "writes to disks are stuck"
must "$ms ms, $alone ms alone" [ "$ms" -le $((2 * alone + 3000)) ]
echo 0 >/sys/block/md0/md/suspend_hi
echo 0 >/sys/block/md1/md/suspend_hi
end_stuck
for i in 0 1; do
	unmap "${devs[i]}"
done
server_idle
MDADM_NO_UDEV=1 mdadm --stop /dev/md0 /dev/md1 2>/dev/null
rm /dev/shm/ok
tear_down
