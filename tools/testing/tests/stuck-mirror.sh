# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The only disk of a mirror is suspended, with a hundred writes to the mirror, or to a volume on it.
# md waits for its superblock before the first write to a clean array, in the submitting context,
# and for its bitmap when a plug is flushed; so does the volume. Another disk of the same session
# and connection is not delayed. The writes end when the disk is resumed.
# Modules: ours
# Once: debug 6.12

# mirror_stuck: the first device is written to, while the mirror's disk hangs
mirror_stuck()
{
	local mirror worker

	dm_suspend leg
	fio --name=stuck --filename="${devs[0]}" --direct=1 --ioengine=libaio --rw=randwrite --bs=4k \
		--iodepth=128 --size=32m --number_ios=400 >/tmp/stuck.out 2>&1 &
	mirror=$!
	wait_for 30 eval '[ "$(inflight "${devs[0]}")" -ge 128 ]' || fail "$(inflight "${devs[0]}") requests in flight"
	{
		dd if=/tmp/data of="${devs[1]}" bs=64k oflag=direct status=none &&
			dd if="${devs[1]}" bs=64k count=16 iflag=direct status=none | cmp - /tmp/data
	} >/tmp/quick.out 2>&1 &
	worker=$!
	wait_for 30 ended $worker || fail "another disk of the session waits, too"
	wait $worker || fail "$(cat /tmp/quick.out)"
	dm_resume leg
	wait $mirror || fail "$(cat /tmp/stuck.out)"
}

hung_task_limit 100
set_up
head -c 1M /dev/urandom >/tmp/data
modprobe -a md-mod raid1
leg=$(dm leg "0 131072 linear $(null slow 64) 0")
MDADM_NO_UDEV=1 mdadm --create /dev/md0 --run --force --assume-clean --metadata=1.2 --level=1 \
	--bitmap=internal --bitmap-chunk=64K --raid-devices=1 "$leg" 2>/dev/null
devs[1]=$(map s1 "$(null quick 64)" nr_queues=1)

say "a clean array"
must "it isn't clean" wait_for 30 grep -qx clean /sys/block/md0/md/array_state
devs[0]=$(map s1 /dev/md0)
mirror_stuck
unmap "${devs[0]}"

say "a volume on it, and the array isn't clean"
volume=$(dm volume "0 65536 linear /dev/md0 0")
echo 1000 >/sys/block/md0/md/safe_mode_delay
devs[0]=$(map s1 "$volume")
dd if=/tmp/data of="${devs[0]}" bs=64k count=1 oflag=direct status=none
must "it is clean" wait_for 30 grep -qx active /sys/block/md0/md/array_state
mirror_stuck
unmap_last "${devs[0]}" "${devs[1]}"
dmsetup remove --noudevsync --noudevrules volume
MDADM_NO_UDEV=1 mdadm --stop /dev/md0 2>/dev/null
tear_down
