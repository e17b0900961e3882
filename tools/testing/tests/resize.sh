# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# `resize` takes a number of sectors; the disk has that size, and an event says so. By 0 our
# disk gets the size that the server's has by now, unless that is less. The geometry that old
# partitioning tools ask for follows.
# Time: 60

# geometry: heads, sectors and cylinders
geometry()
{
	python3 -S - "$1" <<-END
		import fcntl, struct, sys
		HDIO_GETGEO = 0x0301
		with open(sys.argv[1], "rb") as disk:
		    print(*struct.unpack("BBHL", fcntl.ioctl(disk, HDIO_GETGEO, bytes(16)))[:3])
	END
}

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
	[ "$RIG_MODULES" != ours ] ||
		equal geometry "$(geometry "$dev")" "64 32 $((sectors / 64 / 32))"
done
wait_for 5 grep -q "change .*/${dev#/dev/} disk RESIZE" /tmp/events ||
	fail "no event: $(cat /tmp/events)"
equal "resize to nonsense" "$(errno_of "$here/resize" x)" EINVAL
if [ "$RIG_MODULES" = ours ]; then
	echo 131072 >"$here/resize"
	linear=$(dm volume "0 65536 linear $disk 0")
	dev2=$(map s1 "$linear")
	there=/sys/block/${dev2#/dev/}/rnbd
	echo 0 >"$there/resize"
	equal "size as before" "$(blockdev --getsz "$dev2")" 65536
	dm_table volume "0 131072 linear $disk 0"
	echo 0 >"$there/resize"
	equal "size after the server's has grown" "$(blockdev --getsz "$dev2")" 131072
	wait_for 5 grep -q "change .*/${dev2#/dev/} disk RESIZE" /tmp/events ||
		fail "no event: $(cat /tmp/events)"
	gives 0 "$dev2" write:63m:1m:x
	dm_table volume "0 32768 linear $disk 0"
	equal "resize to what has shrunk" "$(errno_of "$there/resize" 0)" EFBIG
	equal "size after that" "$(blockdev --getsz "$dev2")" 131072
	unmap "$dev2"
fi
kill $listener
unmap "$dev"
down
