# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client closes neither a device whose disk was removed nor one that it does not open again after
# its second SESS_INFO. The server closes each of them after 30 seconds. The removed disk returns by
# the same name, and another client maps it. A device that the client has opened again stays open.
# Modules: ours
# Once: debug 7.2

. "$RIG_DIR/steps/hostile.sh"

# is_open DISK: true if the server has the disk open
is_open() { [ -e "/sys/class/rnbd-server/ctl/devices/$1" ]; }

# closes DISK FROM: fails unless the server closes the disk 30 seconds after the kernel has logged
# FROM. The server looks once a second, and counts its looks
closes()
{
	local took

	wait_for 50 eval "! is_open $1" || fail "the server keeps $1"
	took=$(ms_between "$2" "closing $1")
	say "$1 was closed after $took ms"
	must "$1 was closed after $took ms" [ "$took" -ge 29000 ]
	must "$1 was closed after $took ms" [ "$took" -le 36000 ]
}

hung_task_limit 100
hostile_server
modprobe -a ib_uverbs rdma_ucm
mkfifo /tmp/said
mark_log
(HOSTILE_RW=scratch HOSTILE_SLOW=slow HOSTILE_OTHER=other exec "${RIG_TREES%tree-}hostile" \
	client 192.168.100.1 1234 keep-open keeper >/tmp/said) &
keeper=$!
read -r said </tmp/said
equal "what the client says" "$said" yes
for disk in slow scratch other; do
	must "$disk is not open" is_open $disk
done
echo 0 >/sys/kernel/config/nullb/scratch/power
closes slow 'opened slow'
closes scratch 'scratch was removed'
echo 1 >/sys/kernel/config/nullb/scratch/power
dev=$(map s2 scratch)
expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
unmap "$dev"
must "other was closed, too" is_open other
kill -KILL $keeper
tear_down
