# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each kind of request arrives at the server's device as the same kind: flush, FUA, discard, write
# zeroes with and without unmapping. Secure erase fails on a device without it. Requests are
# answered only when the device has completed them.
# Quick: debug

# expect KIND SECTORS: fails unless the server's device got requests of this kind for so many
# sectors
expect()
{
	traced >/tmp/traced
	equal "sectors of $1 ($(sort /tmp/traced | uniq -c | xargs))" \
		"$(awk -v k="$1" '$1 ~ "^" k "$" { n += $2 } END { print n + 0 }' /tmp/traced)" "$2"
}

# arrived: true if a request is at the server's disk, or was answered
arrived() { server_has_inflight s1 1 || ended "$job"; }

# held COMMAND...: what the command asks of a disk that holds its requests isn't answered, though
# a read of another disk, which comes later, is
held()
{
	dm_suspend volume
	"$@" &
	job=$!
	wait_for 20 arrived || fail "$*: doesn't get to the server"
	dd if="$other" of=/dev/null bs=4k count=1 iflag=direct status=none
	! ended "$job" || fail "$*: was answered before the disk had done it"
	equal "$*: requests in flight" "$(server_inflight s1)" 1
	dm_resume volume
	wait_for 20 ended "$job" || fail "$*: isn't answered"
	wait "$job" || fail "$*: failed"
}

set_up
# lbpu, lbpws: unmap and write same; the disk has a write cache and FUA
disk=$(scsi lbpu=1 lbpws=1 lbprz=1 delay=0)
dev=$(map s1 "$disk")
equal "write cache" "$(queue "$dev" write_cache)" "write back"
equal "FUA" "$(queue "$dev" fua)" 1

trace "$disk"
dd if=/dev/urandom of=/tmp/data bs=64k count=16 status=none
dd if=/tmp/data of="$dev" bs=64k oflag=direct status=none
expect 'WS?' 2048
trace "$disk"
dd if=/tmp/data of="$dev" bs=64k count=2 oflag=direct,dsync status=none
expect WFS 256
trace "$disk"
dd of="$dev" count=0 conv=fsync,notrunc status=none
traced | grep -q '^F' || fail "no flush arrived: $(traced)"
cmp -n 1048576 "$disk" /tmp/data || fail "not what was written"

trace "$disk"
blkdiscard -o 131072 -l 65536 "$dev"
expect 'D.*' 128
if [ "$RIG_MODULES" != intree ]; then
	trace "$disk"
	fallocate -p -o 262144 -l 65536 "$dev"
	expect '(N|WZ).*' 128
	trace "$disk"
	blkdiscard -z -o 524288 -l 65536 "$dev"
	expect '(N|WZ).*' 128
else
	# It has no write zeroes.
	dd if=/dev/zero of="$dev" bs=64k count=1 seek=4 oflag=direct status=none
	dd if=/dev/zero of="$dev" bs=64k count=1 seek=8 oflag=direct status=none
fi
{
	head -c 131072 /tmp/data
	head -c 65536 /dev/zero
	tail -c +196609 /tmp/data | head -c 65536
	head -c 65536 /dev/zero
	tail -c +327681 /tmp/data | head -c 196608
	head -c 65536 /dev/zero
	tail -c +589825 /tmp/data
} >/tmp/want
dd if="$dev" bs=64k count=16 iflag=direct status=none | cmp - /tmp/want || fail "wrong blocks are zero"

! blkdiscard -s -l 65536 "$dev" 2>/tmp/secure || fail "secure erase on a disk that has none"
grep -q 'not supported' /tmp/secure || fail "secure erase: $(cat /tmp/secure)"
unmap_last "$dev"
no_scsi

if [ "$RIG_MODULES" != intree ]; then
	disk=$(null cached 16 cache_size=1 discard=1)
	dev=$(map s1 "$(dm volume "0 32768 linear $disk 0")")
	other=$(map s1 "$(null other 16)")
	equal "write cache" "$(queue "$dev" write_cache)" "write back"
	held dd if=/tmp/data of="$dev" bs=4k count=1 oflag=direct status=none
	held dd if=/tmp/data of="$dev" bs=256k count=1 oflag=direct status=none
	held dd if=/tmp/data of="$dev" bs=4k count=1 oflag=direct,dsync status=none
	held dd of="$dev" count=0 conv=fsync,notrunc status=none
	held blkdiscard -o 65536 -l 65536 "$dev"
	unmap "$other"
	unmap "$dev"
fi
tear_down
