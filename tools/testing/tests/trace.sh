# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's tracepoints report for each request that it was received, dispatched and answered, in
# this order, with direction and length, and all states of a path. The client's report that requests
# are submitted, posted, answered and completed, and that they wait for a path.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

t=/sys/kernel/debug/tracing
# traced_as EVENT: prints the text of these events without the name of the path, which must be there
traced_as()
{
	on server "sed -n 's/.* rtrs_srv_$1: s1 ip:[^ ]*@ip:[^ ]*: //p' $t/trace"
}

set_up
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
	equal "writes: $event" "$(traced_as $event | grep -c 'write 12288 bytes (0)$')" 3
	equal "reads: $event" "$(traced_as $event | grep -c 'read 20480 bytes (0)$')" 2
done
unmap_last "$dev"
equal "end of the path" "$(traced_as path_state)" "connected -> closing"
# An error is told with its request.
dev=$(map s1 "$disk" access_mode=ro)
! echo "sessname=s1 path=$(addr server 0) device_path=/dev/none" >"$ctl/map_device" 2>/dev/null || fail "mapped what isn't there"
equal "errors" "$(traced_as answer | grep -c 'read [0-9]* bytes (-[1-9][0-9]*)$')" 1
unmap_last "$dev"
equal "states" "$(on server "sed -n 's/.*rtrs_srv_path_state: .*: //p' $t/trace" | xargs)" \
	"connected -> closing connecting -> connected connected -> closing"
on server "echo 0 >$t/events/rtrs_srv/enable; echo >$t/trace"

# The client's. What is posted may be answered, and done, before that has been told.
told_of() { steps_of "$1" | grep -o "$2" | wc -l; }
posted() { [ "$(told_of "$1" post)" != 0 ]; }
all_told() { [ "$(told_of "$1" post)" = "$(told_of "$1" submit)" ]; }
steps_of() { sed -n "s/.* rtrs_clt_\([a-z]*\): s1[: ].*slot $1[: ].*/\1/p" $t/trace | xargs; }
slots() { sed -n 's/.* rtrs_clt_submit: s1: slot \([0-9]*\): .*/\1/p' $t/trace; }
parked() { grep -q rtrs_clt_park $t/trace; }
dev=$(map s1 "$disk")
echo >$t/trace
echo 1 >$t/events/rtrs_clt/enable
expect_io "0 0" "$dev" write:0:12k:x read:0:20k
equal "told of a write" "$(grep -c 'rtrs_clt_submit: s1: slot [0-9]*: write of 12288 bytes on queue [0-9]' $t/trace)" 1
equal "told of a read" "$(grep -c 'rtrs_clt_submit: s1: slot [0-9]*: read of 20480 bytes on queue [0-9]' $t/trace)" 1
for slot in $(slots | sort -u); do
	n=$(slots | grep -cx "$slot")
	wait_for 5 all_told "$slot" || fail "slot $slot: $(steps_of "$slot")"
	must "slot $slot: $(steps_of "$slot")" eval "steps_of $slot | awk '{
		for (i = 1; i <= NF; i++)
			if ((n += (\$i == \"submit\") - (\$i == \"post\")) < 0)
				exit 1 }'"
	equal "steps of slot $slot" "$(steps_of "$slot" | sed 's/ post//g')" \
		"$(yes submit answer complete | head -n "$n" | xargs)"
done
echo >$t/trace
echo 1 >"$(path 0)/disconnect"
start_io "$dev" read:0:4k
wait_for 20 parked || fail "nothing waits: $(cat $t/trace)"
echo 1 >"$(path 0)/reconnect"
end_io 20 0
slot=$(sed -n 's/.* rtrs_clt_park: s1: slot \([0-9]*\) .*/\1/p' $t/trace | head -n 1)
wait_for 5 posted "$slot" || fail "not posted: $(steps_of "$slot")"
steps_of "$slot" >/tmp/steps
must "steps of what waited: $(cat /tmp/steps)" \
	grep -qE '^(submit )?park( park)* (post answer complete|answer (post complete|complete post))$' \
	/tmp/steps
sed -n 's/.*rtrs_clt_path_state: s1 [^ ]*: \([a-z]* -> [a-z]*\) .*/\1/p' $t/trace | xargs >/tmp/states
say "states: $(cat /tmp/states)"
must "states of the path: $(cat /tmp/states)" grep -qE '^connected -> .* connecting -> connected$' /tmp/states
echo 0 >$t/events/rtrs_clt/enable
echo >$t/trace
tear_down "$dev"
