# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of interoperation, which set client_modules and server_modules: map,
# make a file system, write and verify, discard, unmap; with both server modes.

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
		unmap "$dev"
		down
		unload
	done
}
