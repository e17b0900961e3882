# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two sessions with two devices each, all written and read at once: data are right. A mapping needs
# no thread on the server; a session has one rescuer for I/O on disks.

set_up
pids=
for s in s1 s2; do
	for d in a b; do
		disk=$(null "$s$d" 64)
		dev=$(map $s "$disk")
		verify "$dev" "$mixed" --numjobs=2 --size=6m --offset_increment=16m &
		pids="$pids $!"
	done
done
equal "sessions on the server" "$(on server 'ls /sys/class/rtrs-server | wc -l')" 2
equal "devices on the server" "$(on server 'ls /sys/class/rnbd-server/ctl/devices | wc -l')" 4
# One for each session's I/O on disks
equal "rescuers" "$(on server "ps -eo comm | grep -c '^\(kworker/R-rnbd_\|rnbd_srv_\)'")" 2
for pid in $pids; do
	wait "$pid" || fail "one of the four writers failed"
done
for dev in /dev/rnbd?; do
	unmap "$dev"
done
tear_down
