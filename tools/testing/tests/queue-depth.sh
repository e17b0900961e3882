# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Four chunks for eight devices with eight jobs each: the slowest device has at least a quarter of
# the fastest one's I/O.
# Once: stock

set_up sess_queue_depth=4
args=()
for i in 1 2 3 4 5 6 7 8; do
	disk=$(null "vol$i" 16)
	dev=$(map s1 "$disk")
	args+=(--name="d$i" --filename="$dev")
done
fio --direct=1 --ioengine=psync --rw=randrw --bs=4k --numjobs=8 --thread --time_based \
	--runtime=15 "${args[@]}" --output-format=terse --terse-version=3 >/tmp/fio.out ||
	fail "fio: $(tail -n 5 /tmp/fio.out)"
for i in 1 2 3 4 5 6 7 8; do
	s=$(on server "echo \$((\$(ios /dev/vol$i reads) + \$(ios /dev/vol$i writes)))")
	say "vol$i: $s I/Os"
	echo "$s"
done >/tmp/ios
cat /tmp/ios
low=$(grep -v '#' /tmp/ios | sort -n | head -n 1)
high=$(grep -v '#' /tmp/ios | sort -n | tail -n 1)
must "between $low and $high I/Os a device" [ $((low * 4)) -ge "$high" ]
for dev in /dev/rnbd?; do
	unmap "$dev"
done
tear_down
