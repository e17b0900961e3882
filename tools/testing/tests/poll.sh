# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# nr_poll_queues of map_device: polling jobs (io_uring with IOPOLL) read back what they wrote, on a
# raw disk and on ext4, next to jobs that do not poll. Their requests use the polled queue, and only
# they handle the answers. pvsync2 with hipri works as well. Without a poller, heartbeats handle the
# answers: when the job is stopped, and when it is killed. Later devices of the session must have
# the same number. The default is no polled queue.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

t=/sys/kernel/debug/tracing
polls=(--ioengine=io_uring --hipri=1)

# on_queues: prints the queues of the requests submitted since the last call
on_queues()
{
	sed -n 's/.* rtrs_clt_submit: s1: .* on queue \([0-9]*\)$/\1/p' $t/trace | sort -u | xargs
	echo >$t/trace
}

# polling_job DEVICE: starts a job that polls; sets $job to its process
polling_job()
{
	fio --name=busy --filename="$1" --direct=1 "${polls[@]}" --rw=randrw --bs=4k \
		--iodepth=16 --time_based --runtime=1000 --thread >/tmp/busy.out 2>&1 &
	job=$!
	goes_on "$1"
}

set_up
a=$(null a 32) b=$(null b 32) c=$(null c 48)
dev=$(map s1 "$a")
equal "polled queues by default" \
	"$(queue "$dev" io_poll) $(cat "/sys/block/${dev#/dev/}/rnbd/nr_poll_queues")" "0 0"
unmap "$dev"
client_idle

dev=$(map s1 "$a" nr_queues=1 nr_poll_queues=1)
equal "polled queues" \
	"$(queue "$dev" io_poll) $(cat "/sys/block/${dev#/dev/}/rnbd/nr_poll_queues")" "1 1"
mark_log
map_fails EINVAL "sessname=s1 device_path=$b nr_poll_queues=0"
must "the log tells why" grep -q 'nr_poll_queues=1, not 0' <(log_since_mark)
plain=$(map s1 "$b" nr_poll_queues=1)
fs=$(map s1 "$c")

# Only the job handles the answers to its polled requests.
set_attrs hb_interval_ms=3600000
echo >$t/trace
echo 1 >$t/events/rtrs_clt/rtrs_clt_submit/enable
verify "$dev" --rw=randrw --bs=4k --size=256k "${polls[@]}"
equal "queues of polled I/O" "$(on_queues)" 1
verify "$dev" --bs=4k --size=256k
equal "queues of other I/O" "$(on_queues)" 0
echo 0 >$t/events/rtrs_clt/rtrs_clt_submit/enable
mkfs.ext4 -q "$fs"
mount "$fs" /mnt
verify "$dev" "$mixed" --size=8m "${polls[@]}"
verify "$dev" --ioengine=pvsync2 --hipri=1 --bs=16k --size=512k
verify /mnt/file --bs=4k --size=1m "${polls[@]}"
raw_writer polled "$dev" --depth=2 --poll
writer plain "$plain"
writer fs /mnt/file --poll
writer plain-fs /mnt/plain --fsync=32
for i in "$dev" "$plain" "$fs"; do
	goes_on "$i"
done
writers_unharmed
umount /mnt
e2fsck -fn "$fs" >/tmp/fsck.out 2>&1 || fail "e2fsck: $(cat /tmp/fsck.out)"

# Heartbeats handle the answers to requests of a stopped job.
set_attrs hb_interval_ms=500
polling_job "$dev"
kill -STOP $job
must "requests of a job that stands still are answered" wait_for 20 no_inflight "$dev"
kill -CONT $job
goes_on "$dev"
kill -KILL $job
wait $job || true
wait_for 20 ended $job
must "requests of a job that was killed are answered" wait_for 20 no_inflight "$dev"
equal "reconnects" "$(cat "$(path 0)/stats/reconnects")" "0 0"
polling_job "$dev"
kill -KILL $job
wait $job || true
# The last reference to the disk may be released a little later.
wait_for 20 eval "[ \$(errno_of /sys/block/${dev#/dev/}/rnbd/unmap_device normal) = 0 ]" ||
	fail "$dev can't be unmapped"
wait_for 20 test ! -e "/sys/block/${dev#/dev/}" || fail "$dev still there after unmap"
tear_down "$plain" "$fs"
unload
