# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A device that is mapped read-only does not change, even if a user of the client makes it writable,
# or a hostile client sends requests that change it, with chunks and with slots.

. "$RIG_DIR/steps/hostile.sh"

set_up
disk=$(null vol 16 discard=1)
on server "dd if=/dev/urandom of=$disk bs=1M oflag=direct status=none count=16"
before=$(on server "checksum $disk")
dev=$(map s1 "$disk" access_mode=ro)
equal "ro" "$(cat "/sys/block/${dev#/dev/}/ro")" 1
equal "read_only on the server" \
	"$(on server "cat /sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1/read_only")" 1
for mode in --setro --setrw; do
	blockdev $mode "$dev"
	expect_io "EPERM EPERM EPERM" "$dev" write:0:4k:x discard:0:4k zeroes:0:4k
done
equal "read through the client" "$(checksum "$dev")" "$before"
unmap_last "$dev"
equal "the server's data" "$(on server "checksum $disk")" "$before"

# refused_all: the case writes 0xa5 to the first block while it may, and must not change it later
refused_all()
{
	volume=$disk run_peer cases cases io-read-only
	peers_passed cases
	server_idle
	on server "cmp $disk /tmp/want" || fail "the server's disk has changed"
}
if [ "$server_modules" != intree ]; then
	on server "{ head -c 4096 /dev/zero | tr '\0' '\245'; tail -c +4097 $disk; } >/tmp/want"
	refused_all
	HOSTILE_SLOTS=1 refused_all
fi
tear_down
