# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A write of a number of sectors to `resize` changes the disk's size, with an event. 0 sets the
# current size of the server's disk, unless it is smaller. With our driver on both ends, the size
# follows the server's disk or file within two seconds; if that has shrunk, the log has a message.
# An empty disk gets its partitions as well. The geometry for old partitioning tools follows.
# Once: debug 6.12 7.2

# geometry DEVICE: prints heads, sectors and cylinders
geometry()
{
	python3 -S - "$1" <<-END
		import fcntl, struct, sys
		HDIO_GETGEO = 0x0301
		with open(sys.argv[1], "rb") as disk:
		    print(*struct.unpack("BBHL", fcntl.ioctl(disk, HDIO_GETGEO, bytes(16)))[:3])
	END
}

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk")
here=/sys/block/${dev#/dev/}/rnbd
: >/tmp/events
python3 "$RIG_DIR/steps/uevents.py" >>/tmp/events &
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

# follows DEVICE SECTORS COMMAND...: the command changes the server's disk, and the device gets that
# size by itself, with an event, within two seconds
follows()
{
	local took

	mark_log
	"${@:3}"
	log_note "the server's disk has another size"
	wait_for 20 eval "[ \$(blockdev --getsz $1) = $2 ]" ||
		fail "$1 has $(blockdev --getsz "$1") sectors, not $2"
	wait_for 5 grep -q "change .*/${1#/dev/} disk RESIZE" /tmp/events ||
		fail "no event: $(cat /tmp/events)"
	took=$(ms_between "the server's disk has another size" "${1#/dev/}: detected capacity change")
	say "$1 has its size after $took ms"
	must "$1 got its size after $took ms" [ "$took" -lt 2000 ]
}

# shrunk TEXT: fails unless the log has one message with the text
shrunk()
{
	wait_for 20 eval "log_since_mark | grep -q '$1, less than'" || fail "nothing in the log of $1"
	equal "messages of $1" "$(log_since_mark | grep -c "$1, less than")" 1
}

if [ "$RIG_MODULES" = ours ]; then
	echo 131072 >"$here/resize"
	under=$(null under 64)
	linear=$(dm volume "0 65536 linear $under 0")
	dev2=$(map s1 "$linear")
	there=/sys/block/${dev2#/dev/}/rnbd
	echo 0 >"$there/resize"
	equal "size as before" "$(blockdev --getsz "$dev2")" 65536
	dm_table volume "0 131072 linear $under 0"
	echo 0 >"$there/resize"
	equal "size after the server's has grown" "$(blockdev --getsz "$dev2")" 131072
	equal "what the server said" "$(cat "$there/server_sectors")" 131072
	wait_for 5 grep -q "change .*/${dev2#/dev/} disk RESIZE" /tmp/events ||
		fail "no event: $(cat /tmp/events)"
	expect_io 0 "$dev2" write:63m:1m:x
	mark_log
	dm_table volume "0 32768 linear $under 0"
	shrunk "32768 sectors on the server"
	equal "resize to what has shrunk" "$(errno_of "$there/resize" 0)" EFBIG
	equal "size after that" "$(blockdev --getsz "$dev2")" 131072
	equal "what the server said" "$(cat "$there/server_sectors")" 32768

	# By itself: a file; a disk beside it keeps the size that a user gave it.
	# shellcheck disable=SC2016
	on server 'mkdir -p /srv; disk=$(null_here backing 64); mkfs.ext4 -q $disk; mount $disk /srv
		truncate -s 16M /srv/volume'
	dev3=$(map s1 /srv/volume)
	echo 65536 >"$here/resize"
	follows "$dev3" 49152 on server 'truncate -s 24M /srv/volume'
	mark_log
	expect_io 0 "$dev3" write:23m:1m:x
	on server 'truncate -s 20M /srv/volume'
	shrunk "40960 sectors on the server"
	equal "size of the file's disk" "$(blockdev --getsz "$dev3")" 49152
	equal "size that a user gave" "$(blockdev --getsz "$dev")" 65536
	equal "what its server said" "$(cat "$here/server_sectors")" 131072
	unmap "$dev3"
	on server 'wait_for 20 umount /srv'
	unmap "$dev2"
	# The same for a disk
	dm_table volume "0 65536 linear $under 0"
	dev2=$(map s1 "$linear")
	: >/tmp/events
	follows "$dev2" 131072 dm_table volume "0 131072 linear $under 0"
	equal "what the server said" "$(cat "/sys/block/${dev2#/dev/}/rnbd/server_sectors")" 131072
	expect_io 0 "$dev2" write:63m:1m:x
	unmap "$dev2"

	# From size 0, with partitions, which the event announces
	empty=$(on server 'debug_kernel || modprobe loop
		truncate -s 0 /tmp/empty.img; truncate -s 64M /tmp/full.img
		printf "start=2048,size=2048\nstart=8192,size=4096\n" | sfdisk -q /tmp/full.img
		losetup --find --show /tmp/empty.img')
	dev2=$(map s1 "$empty")
	equal "size of nothing" "$(blockdev --getsz "$dev2")" 0
	: >/tmp/events
	follows "$dev2" 131072 \
		on server "cp --sparse=never /tmp/full.img /tmp/empty.img; losetup -c $empty"
	wait_for 20 test -e "/sys/block/${dev2#/dev/}/${dev2#/dev/}p2" || fail "no partitions"
	equal "size of the second" "$(cat "/sys/block/${dev2#/dev/}/${dev2#/dev/}p2/size")" 4096
	unmap "$dev2"
	on server "losetup -d $empty; rm /tmp/empty.img /tmp/full.img"
fi
kill $listener
tear_down "$dev"
