# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A slow device with a short queue does not delay the device of another session.
# Modules: ours

# reads_per_second DEVICE: prints how many reads the device does
reads_per_second()
{
	fio --name=quick --filename="$1" --direct=1 --rw=randread --bs=4k --ioengine=libaio \
		--iodepth=4 --time_based --runtime=4 --output-format=json |
		python3 -c 'import json, sys; print(int(json.load(sys.stdin)["jobs"][0]["read"]["iops"]))'
}

set_up
quick=$(null quick 64)
slow=$(null slow 64 irqmode=2 completion_nsec=100000000 hw_queue_depth=2)
dev=$(map s1 "$quick")
dev2=$(map s2 "$slow")
alone=$(reads_per_second "$dev")
start_load "$dev2" --thread --iodepth=256 --bs=4k
busy=$(reads_per_second "$dev")
say "reads a second: $alone alone, $busy beside the slow device"
must "$busy of $alone reads a second" [ $((busy * 3)) -ge "$alone" ]
kill -KILL "$loader"
wait "$loader" || true
unmap "$dev"
# What the killed one had in flight takes its time as well.
try_unmap() { echo normal >"/sys/block/${dev2#/dev/}/rnbd/unmap_device"; } 2>/dev/null
wait_for 40 try_unmap || fail "the slow device is still open"
wait_for 20 test ! -e "/sys/block/${dev2#/dev/}" || fail "the slow device is still there"
tear_down
