# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Unmapping with force under load: I/O fails, nothing hangs, and the session's other device is not
# affected. Five times.

# The second one is the kernel's for a disk that is gone, which has no sectors.
removed="EIO|ENOSPC"
set_up
disk=$(null vol 64)
other=$(null other 16)
dev2=$(map s1 "$other")
for i in 1 2 3 4 5; do
	dev=$(map s1 "$disk")
	fio --name=other --filename="$dev2" --direct=1 --rw=randread --bs=4k --time_based \
		--runtime=1000 >/tmp/other.out 2>&1 &
	pid=$!
	start_load "$dev" --numjobs=2
	start=$EPOCHREALTIME
	unmap "$dev" force
	load_fails 20 "$removed"
	say "round $i: gone in $(awk "BEGIN { print $EPOCHREALTIME - $start }") s"
	! ended $pid || fail "the other device failed too: $(cat /tmp/other.out)"
	kill -INT $pid
	wait $pid || true
	[ ! -e "$ctl/devices/${disk//\//!}@s1" ] || fail "link left"
done
unmap_last "$dev2"
# Nothing wrote after the unmapping.
before=$(server_ios "$disk" writes)
pause 0.5
equal "writes on the server" "$(server_ios "$disk" writes)" "$before"
tear_down
