# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A path is disconnected and reconnected while the server's disk is suspended with a request of that
# path, so that the old path can't end. With fencing, the path is up at once if there is another
# path. Without fencing it waits for the end of the request, as only that tells the client when it
# may resend. If it is the only path, it joins the old session with fencing; without fencing, the
# old session ends first, and the server closes its devices.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

# hold_write DEVICE: suspends the server's disk and starts a write on the first path
hold_write()
{
	dm_suspend still
	start_io "$1" write:0:4k:x
	wait_for 20 server_has_inflight s1 1 || fail "no write is in flight at the server"
}

# release_write: resumes the disk; the write ends
release_write()
{
	! ended "$io" || fail "the disk doesn't stand still: $(cat /tmp/io.out)"
	dm_resume still
	end_io 30 0
}

# reconnect_first [COMMAND...]: disconnects the first path, runs the command, and reconnects the
# path in the background; the result goes to /tmp/reconnect
reconnect_first()
{
	echo 1 >"$first/disconnect"
	paths_are disconnected "$first" || fail "it is connected"
	[ $# = 0 ] || "$@"
	mark_log
	errno_of "$first/reconnect" 1 >/tmp/reconnect &
	reconnect=$!
}

# reconnect_ends SECONDS: waits until the reconnect succeeds
reconnect_ends()
{
	wait_for "$1" ended $reconnect || fail "it isn't connected again; $(show_paths)"
	equal "reconnect" "$(cat /tmp/reconnect)" 0
}

# is_up: true if the server has logged that it is connected, which the client may not know yet
is_up() { log_since_mark | grep -q "rtrs_server: s1 $(addr server 0)@.*: connected"; }

# server_closed: true if the server has only one disk open
server_closed() { [ "$(on server 'ls /sys/class/rnbd-server/ctl/devices' | wc -l)" = 1 ]; }

# map_both: maps the disk that is going to be suspended, and another one
map_both()
{
	dev=$(map s1 "$still" "path=$(addr server 0)")
	dev2=$(map s1 "$disk")
	first=$(path 0)
	# Longer than this test waits for events that must not happen
	set_attrs failover_timeout=600
}

hung_task_limit 120
set_up sess_queue_depth=64
disk=$(null vol 16)
still=$(dm still "0 32768 linear $(null still 16) 0")
for fencing in Y N; do
	echo $fencing >/sys/kernel/debug/rtrs_client/fencing
	map_both
	hold_write "$dev"
	addr server 1 >$clt/s1/add_path
	reconnect_first
	if [ $fencing = Y ]; then
		reconnect_ends 10
		wait_for 10 is_up || fail "the server doesn't know of it"
		reconnect_first
		reconnect_ends 10
	else
		! wait_for 4 is_up || fail "it doesn't wait"
	fi
	paths_are connected "$(path 1)" || fail "the other path is lost"
	release_write
	reconnect_ends 20
	expect_io 0 "$dev" read:0:4k:x
	unmap_last "$dev" "$dev2"
done
echo Y >/sys/kernel/debug/rtrs_client/fencing

# The session's only path: no CLOSE of the other disk reaches the server.
for fencing in Y N; do
	echo $fencing >/sys/kernel/debug/rtrs_client/fencing
	map_both
	hold_write "$dev"
	reconnect_first unmap "$dev2"
	if [ $fencing = Y ]; then
		# The first attempt may end, to join the old session.
		wait_for_paths connected 20 "$first"
		! ended "$io" || fail "the write has ended: $(cat /tmp/io.out)"
	else
		! wait_for 4 is_up || fail "the session doesn't end first"
	fi
	release_write
	wait_for_paths connected 30 "$first"
	expect_io 0 "$dev" read:0:4k:x
	wait_for 120 server_closed || fail "the server has the unmapped disk open"
	other=$(map s2 "$disk" "path=$(addr server 0)")
	expect_io 0 "$other" write:0:4k:y
	unmap_last "$other" "$dev"
done
echo Y >/sys/kernel/debug/rtrs_client/fencing
tear_down
