# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# `resize` takes a number of sectors; the disk has that size, and an event says so.
# Time: 60

up
disk=$(null vol 64)
dev=$(map s1 "$disk")
here=/sys/block/${dev#/dev/}/rnbd
python3 "$RIG_DIR/steps/uevents.py" >/tmp/events &
listener=$!
wait_for 10 grep -q listening /tmp/events
for sectors in 65536 262144 131072; do
	echo $sectors >"$here/resize"
	equal size "$(blockdev --getsz "$dev")" $sectors
done
wait_for 5 grep -q "change .*/${dev#/dev/} disk RESIZE" /tmp/events ||
	fail "no event: $(cat /tmp/events)"
equal "resize to nonsense" "$(errno_of "$here/resize" x)" EINVAL
kill $listener
unmap "$dev"
down
