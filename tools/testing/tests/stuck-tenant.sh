# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A disk of the server is suspended with more than 600 requests of two sessions, whose paths end and
# reconnect. The server's workqueues for that have one worker each. Another session, with its own
# disk, is not disturbed: it maps, reads, loses a path that is fenced, reconnects it, and unmaps,
# each within 2 s of the time that it takes alone.
# Modules: ours
# Guests: 3
# Kernel: stock

. "$RIG_DIR/steps/failover.sh"

depth=320
queues=/sys/devices/virtual/workqueue

# map_still SESSION: client2 maps the disk, while that works
map_still()
{
	on client2 "map $1 $still path=$(addr server 0) path=$(addr server 1) access_mode=ro >/tmp/$1.dev
		echo -1 >/sys/class/rtrs-client/$1/failover_timeout"
}

# stick SESSION: as many reads of the disk as the session is to have, over both paths
stick()
{
	on client2 "fio --name=$1 --filename=\$(cat /tmp/$1.dev) --direct=1 --ioengine=libaio \
			--rw=randread --bs=4k --iodepth=$depth --number_ios=$depth \
			>/tmp/$1.out 2>&1 9>&- &
		echo \$! >/tmp/$1.pid"
	wait_for 30 eval "[ \$(server_inflight $1) -ge $depth ]" ||
		fail "$1: the server has $(server_inflight "$1") requests of it"
}

# reset SESSION: its paths are given up, and asked for again; nobody waits for that
reset()
{
	on client2 "for p in /sys/class/rtrs-client/$1/paths/*; do echo 1 >\$p/disconnect; done
		for p in /sys/class/rtrs-client/$1/paths/*; do
			(echo 1 >\$p/reconnect) >/dev/null 2>&1 9>&- &
		done"
}

# reads_end SESSION: waits for its reads to end without an error; unmaps its device
reads_end()
{
	on client2 "wait_for 60 ended \$(cat /tmp/$1.pid) || fail '$1: its reads still wait'
		grep -q 'err= 0' /tmp/$1.out || fail \"$1: \$(cat /tmp/$1.out)\"
		unmap \$(cat /tmp/$1.dev)"
}

declare -A alone
# step NAME COMMAND...: does it, and says how long that took; with others, it may take 2 s
# more than alone
step()
{
	local name=$1 from took limit
	shift
	from=$(now)
	"$@"
	took=$(($(now) - from))
	say "$with: $name took $took ms"
	if [ "$with" = alone ]; then
		alone[$name]=$took
	else
		limit=$((alone[$name] + $(slowly 2) * 1000))
		[ $took -le $limit ] || fail "$name took $took ms, ${alone[$name]} ms alone"
	fi
}

do_map() { dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)"); }
do_read() { expect_io 0 "$dev" read:0:64k; }
do_fence()
{
	echo 1 >"$(path 0)/disconnect"
	goes_on "$dev" 30
	wait_for 30 eval "[ \$(failed_over) -gt 0 ]" || fail "no request was sent again: $(show_paths)"
}
do_reconnect() { echo 1 >"$(path 0)/reconnect"; wait_for_paths connected 30 "$(path 0)"; }
do_unmap() { unmap "$dev"; client_idle; wait_for 30 server_has_no s1; }

# other_session WITH: goes through the steps, alone or with the others stuck
other_session()
{
	with=$1
	step map do_map
	step read do_read
	# So that some are on the path that is given up.
	set_attrs mp_policy=round-robin
	writer "$1" "$dev" --depth=12
	goes_on "$dev"
	step fence do_fence
	step reconnect do_reconnect
	writers_unharmed
	step unmap do_unmap
}

hung_task_limit 200
on server "hung_task_limit 200"
on client2 "hung_task_limit 200"
set_up sess_queue_depth=512 max_chunk_size=8192
# So slow that requests are in flight when a path has been taken from the array, which takes an RCU
# grace period: a few tenths of a second on a busy machine.
disk=$(null vol 32 irqmode=2 completion_nsec=600000000)
still=$(dm still "0 32768 linear $(null still 16) 0")
for queue in setup close; do
	on server "echo 1 >$queues/rtrs-server-$queue/max_active"
done
on client2 load_client
other_session alone
map_still s2
map_still s3
dm_suspend still
stick s2
stick s3
say "$(($(server_inflight s2) + $(server_inflight s3))) requests stand still"
reset s2
reset s3
wait_for 20 eval "[ \$(on server 'dmesg | grep -c \"s[23] .*path ends\"') -ge 4 ]" ||
	fail "the server has not ended the paths"
other_session stuck
dm_resume still
reads_end s2
reads_end s3
on client2 "client_idle; hung_task_limit 20"
on server "hung_task_limit 20"
tear_down
