# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's tracepoints tell of each request by its slot that it was received,
# dispatched and replied to, in this order, with direction and length; and of a path's
# states from its beginning to its end.
# Modules: ours
# Time: 60

t=/sys/kernel/debug/tracing
# told EVENT: what it said, without the name of the path, which has to be there
told()
{
	on server "sed -n 's/.* rtrs_srv_$1: s1 ip:[^ ]*@ip:[^ ]*: //p' $t/trace"
}

up
disk=$(null vol 64)
on server "echo >$t/trace; echo 1 >$t/events/rtrs_srv/enable"
dev=$(map s1 "$disk")
on server "echo >$t/trace"
dd if=/dev/urandom of="$dev" bs=12k count=3 oflag=direct status=none
dd if="$dev" of=/dev/null bs=20k count=2 iflag=direct status=none
on server "sed -n 's/.* rtrs_srv_\([a-z]*\): s1 [^ ]*: slot \([0-9]*\),.*/\1 \2/p' $t/trace" >/tmp/steps
awk '	BEGIN { next_step["receive"] = "dispatch"; next_step["dispatch"] = "answer" }
	{ want = slot[$2] ? slot[$2] : "receive" }
	$1 != want { print "slot", $2 ": " $1 " instead of " want }
	{ slot[$2] = next_step[$1] }
	END { for (s in slot) if (slot[s]) print "slot", s ": no " slot[s] }' /tmp/steps >/tmp/wrong
[ ! -s /tmp/wrong ] || fail "$(cat /tmp/wrong)"
for event in dispatch answer; do
	equal "writes: $event" "$(told $event | grep -c 'write 12288 bytes (0)$')" 3
	equal "reads: $event" "$(told $event | grep -c 'read 20480 bytes (0)$')" 2
done
unmap "$dev"
server_idle
equal "end of the path" "$(told path_state)" "connected -> closing"
# An error is told with its request.
dev=$(map s1 "$disk" access_mode=ro)
! echo "sessname=s1 path=$(addr server 0) device_path=/dev/none" >"$ctl/map_device" 2>/dev/null || fail "mapped what isn't there"
equal "errors" "$(told answer | grep -c 'read [0-9]* bytes (-[1-9][0-9]*)$')" 1
unmap "$dev"
server_idle
equal "states" "$(on server "sed -n 's/.*rtrs_srv_path_state: .*: //p' $t/trace" | xargs)" \
	"connected -> closing connecting -> connected connected -> closing"
on server "echo 0 >$t/events/rtrs_srv/enable; echo >$t/trace"
down
