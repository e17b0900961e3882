# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of interoperation, which set client_modules and server_modules: map,
# make a file system, write and verify, discard, unmap; with both server modes.

# taken_away DISK DEV: the server closes the device by force, and answers I/O with its own errno
taken_away()
{
	local state=/sys/block/${2#/dev/}/rnbd/state

	on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${1#/dev/}/sessions/s1/force_close"
	expect_io EIO "$2" read:0:4k
	equal "state of what was taken away" "$(cat "$state")" closed
	equal remap_device "$(errno_of "${state%/state}/remap_device" 1)" 0
	equal "state after remap_device" "$(cat "$state")" open
	expect_io "0 0" "$2" write:0:4k:x read:0:4k:x
}

interop()
{
	local mode disk dev before

	say "client: $client_modules, server: $server_modules"
	rdma_up
	for mode in Y N; do
		load_server always_invalidate=$mode
		load_client
		disk=$(null vol 128 discard=1)
		dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
		# Its other policy fails I/O, see Documentation/rtrs.rst, "Known issues".
		[ "$client_modules" != intree ] ||
			echo round-robin >/sys/class/rtrs-client/s1/mpath_policy
		[ "$client_modules $server_modules" != "ours intree" ] ||
			equal fencing "$(cat /sys/class/rtrs-client/s1/fencing)" 0
		[ "$client_modules $server_modules" != "ours intree" ] ||
			map_fails EOPNOTSUPP "sessname=s1 device_path=/dev/other access_mode=handover"
		verify "$dev" "$mixed" --numjobs=4 --size=4m --offset_increment=16m

		mkfs.ext4 -q "$dev"
		mount "$dev" /mnt
		cp -r /usr/share/perl/5*/unicore/lib /mnt/
		(cd /mnt && find . -type f -exec sha256sum {} +) >/tmp/sums
		umount /mnt
		mount -o ro "$dev" /mnt
		(cd /mnt && sha256sum --quiet -c /tmp/sums) || fail "files changed"
		umount /mnt

		before=$(server_ios "$disk" discard_sectors)
		blkdiscard -o 0 -l $((16 << 20)) "$dev"
		equal "sectors discarded on the server" \
			$(($(server_ios "$disk" discard_sectors) - before)) 32768
		# In older servers its opcode is another operation.
		[ "$client_modules" = intree ] ||
			equal "write zeroes" "$(queue "$dev" write_zeroes_max_bytes)" 0
		[ "$client_modules $server_modules" != "ours intree" ] || taken_away "$disk" "$dev"
		tear_down "$dev"
		unload
	done
}
