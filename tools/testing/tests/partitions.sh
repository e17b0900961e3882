# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A device can be partitioned: nodes and events appear, and the data of a partition are at the right
# offset. An existing partition table is read on mapping.

set_up
disk=$(null vol 64)
python3 "$RIG_DIR/steps/uevents.py" >/tmp/events &
listener=$!
wait_for 10 grep -q listening /tmp/events
dev=$(map s1 "$disk")
sfdisk -q "$dev" <<-'END'
	label: gpt
	start=2048, size=16384
	start=18432, size=32768
END
wait_for 10 test -b "${dev}p2" || fail "no node for the second partition"
equal "size of the second" "$(blockdev --getsz "${dev}p2")" 32768
dd if=/dev/urandom of="${dev}p2" bs=1M count=4 oflag=direct status=none
dd if="$dev" bs=512 skip=18432 count=8192 iflag=direct status=none |
	cmp -n $((4 << 20)) - "${dev}p2" || fail "the partition is elsewhere"
unmap "$dev"
[ ! -e "${dev}p2" ] || fail "a partition is left after unmap"
dev=$(map s1 "$disk")
must "partitions on mapping again" [ -b "${dev}p1" -a -b "${dev}p2" ]
unmap "$dev"
kill $listener
for event in "add .*/block/rnbd[0-9]* disk" "add .*/rnbd[0-9]*p2 partition" \
	"remove .*/rnbd[0-9]*p1 partition" "remove .*/block/rnbd[0-9]* disk"; do
	grep -qE "^$event" /tmp/events || fail "no event '$event': $(cat /tmp/events)"
done
tear_down
