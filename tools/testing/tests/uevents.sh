# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Events of a device: its attributes exist before the event "add", and it can't be unmapped while it
# is being mapped; "online" and "offline" report whether it can be used; and poll(2) reports each
# change of `state`.
# Once: debug 6.12

# heard EVENT...: these have come of the disk itself, in this order, and no others
heard() { [ "$(awk -v disk="/$name" 'substr($2, length($2) - length(disk) + 1) == disk { print $1 }' /tmp/events | xargs)" = "$*" ]; }
hears() { wait_for 20 heard "$@" || fail "not '$*': $(cat /tmp/events)"; }
polls() { wait_for 20 eval "[ '$*' = \"\$(xargs </tmp/states)\" ]" || fail "not '$*': $(xargs </tmp/states)"; }

# path_is ATTRIBUTE: of the session's only path, written
path_is() { echo 1 >"$(echo /sys/class/rtrs-client/s1/paths/*/"$1")"; }

set_up
disk=$(dm still "0 32768 linear $(null vol 16) 0")
# It looks for partitions when it is opened for the first time.
on server "dd if=$disk of=/dev/null count=1 status=none"
python3 -S "$RIG_DIR/steps/uevents.py" >/tmp/events &
listener=$!
wait_for 10 grep -q listening /tmp/events

# The client looks for partitions before the disk is announced.
dm_suspend still
errno_of "$ctl/map_device" "sessname=s1 path=$(addr server 0) device_path=$disk" >/tmp/mapper &
mapper=$!
wait_for 20 compgen -G '/sys/block/rnbd*/inflight' >/dev/null || fail "no disk: $(cat /tmp/mapper)"
name=$(basename "$(echo /sys/block/rnbd*)")
here=/sys/block/$name/rnbd
wait_for 20 has_inflight "$name" || fail "nobody looks for partitions"
heard "" || fail "announced already: $(cat /tmp/events)"
if [ "$RIG_MODULES" = ours ]; then
	equal "state before it is announced" "$(cat "$here/state")" open
	equal "session before it is announced" "$(cat "$here/session")" s1
	equal "unmapped while it is mapped" "$(errno_of "$here/unmap_device" force)" EBUSY
fi
dm_resume still
wait_for 20 ended $mapper || fail "it isn't mapped"
equal map_device "$(cat /tmp/mapper)" 0
equal "the link" "$(mapped s1 "$disk")" "$name"
hears add online

if [ "$RIG_MODULES" = ours ]; then
	python3 -S "$RIG_DIR/steps/poll.py" "$here/state" >/tmp/states &
	poller=$!
	polls open
fi
path_is disconnect
hears add online offline
[ "$RIG_MODULES" != ours ] || polls open closed
path_is reconnect
hears add online offline online
[ "$RIG_MODULES" != ours ] || polls open closed open
unmap "/dev/$name"
hears add online offline online remove
if [ "$RIG_MODULES" = ours ]; then
	wait_for 10 grep -qE 'unmapped|gone' /tmp/states || fail "not told: $(xargs </tmp/states)"
	kill "$poller" || true
fi
kill $listener
tear_down
