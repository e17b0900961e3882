# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A path is disconnected and connected again while the server's disk holds a request of it,
# so that its old one can't end there. With fencing it is up at once, if there is another
# one; without, it waits for that, since the client has no other way to know when the
# request may be sent again. If it is the only one, its session ends first, with what is
# open there.
# Modules: ours
# Time: 120

. "$RIG_DIR/steps/failover.sh"

# hold DEVICE: the server's disk has a write of it in hand, on the first path
hold()
{
	on server 'dmsetup suspend --noflush --nolockfs --noudevsync still'
	"$RIG_DIR/steps/io.py" "$1" write:0:4k:x >/tmp/still.out &
	write=$!
	wait_for 20 in_hand || fail "the server has no write in hand"
}

in_hand()
{
	[ "$(on server 'cut -d" " -f5 /sys/class/rtrs-server/s1/paths/*/stats/rdma')" = 1 ]
}

# let_go: of the write
let_go()
{
	! ended $write || fail "the disk doesn't stand still: $(cat /tmp/still.out)"
	on server 'dmsetup resume --noudevsync still'
	wait_for 30 ended $write || fail "the write still waits"
	equal "the write" "$(cat /tmp/still.out)" 0
}

# again: the first path, disconnected and connected; what comes of it is in /tmp/reconnect
again()
{
	echo 1 >"$first/disconnect"
	is disconnected "$first" || fail "it is connected"
	[ $# = 0 ] || "$@"
	mark
	errno_of "$first/reconnect" 1 >/tmp/reconnect &
	reconnect=$!
}

reconnected()
{
	wait_for "$1" ended $reconnect || fail "it isn't connected again; $(paths)"
	equal "reconnect" "$(cat /tmp/reconnect)" 0
}

# The server has it, even if the client doesn't know yet
is_up() { since | grep -q "rtrs_server: s1 $(addr server 0)@.*: connected"; }

# map_both: a disk that stands still, and another one
map_both()
{
	dev=$(map s1 "$still" "path=$(addr server 0)")
	dev2=$(map s1 "$disk")
	first=$(path 0)
	# Longer than this test waits to see that something doesn't happen.
	attr failover_timeout=600
}

patience 120
up sess_queue_depth=64
disk=$(null vol 16)
still=$(dm still "0 32768 linear $(null still 16) 0")
for fencing in Y N; do
	echo $fencing >/sys/module/rtrs_client/parameters/fencing
	map_both
	hold "$dev"
	addr server 1 >$clt/s1/add_path
	again
	if [ $fencing = Y ]; then
		reconnected 10
		wait_for 10 is_up || fail "the server doesn't know of it"
		again
		reconnected 10
	else
		! wait_for 4 is_up || fail "it doesn't wait"
	fi
	is connected "$(path 1)" || fail "the other path is lost"
	let_go
	reconnected 20
	gives 0 "$dev" read:0:4k:x
	unmap "$dev"
	unmap "$dev2"
	client_idle
	server_idle
done
echo Y >/sys/module/rtrs_client/parameters/fencing

map_both
hold "$dev"
# Nobody can tell the server.
again unmap "$dev2"
! wait_for 4 is_up || fail "the session doesn't end first"
let_go
reconnected 30
gives 0 "$dev" read:0:4k:x
other=$(map s2 "$disk" "path=$(addr server 0)")
gives 0 "$other" write:0:4k:y
unmap "$other"
unmap "$dev"
down
