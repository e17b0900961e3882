# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Limits of a host: sessions and memory. Further sessions and paths are refused with EDQUOT;
# existing ones stay and can reconnect, and hosts without limits are not affected. Of concurrent
# sessions, as many as the limit are accepted. A session that has left requests at a slow disk
# counts until they end.
# Modules: ours

. "$RIG_DIR/steps/rules.sh"
# usage NAME: prints the host's usage of a limit
usage() { on server "sed -n 's/^$1 //p' $conf/hosts/web/usage"; }
# over_limit SESSION: fails unless it is refused
over_limit() { map_fails EDQUOT "sessname=$1 ${at[0]} device_path=$disk access_mode=ro"; }
# within_limit SESSION: maps and unmaps a device
within_limit() { unmap "$(map "$1" "$disk" "${at[0]}" access_mode=ro)"; }

set_up sess_queue_depth=256
disk=$(null vol 32)
other=$(null other 32)
on server "mkdir $conf/hosts/web"
rule hosts/web/sessions 'web*'
for what in sessions memory; do
	equal "limit of $what" "$(on server "cat $conf/hosts/web/max_$what")" 0
	equal "$what" "$(usage $what)" 0
done
equal "no number" "$(on server "errno_of $conf/hosts/web/max_memory many")" EINVAL
dev=$(map web1 "$disk" "${at[0]}" nr_queues=1 access_mode=ro)
equal "who can read it" "$(on server "stat -c %a $conf/hosts/web/usage")" 400
equal "of one path" "$(usage sessions)" 1
mib=$(usage memory)
must "memory of a path: $mib" [ "$mib" -ge 1 ]
say "a path of 256 slots takes $mib MiB"

paths=/sys/class/rtrs-client/web1/paths
for limit in sessions:1 memory:$mib; do
	what=${limit%:*} now=${limit#*:}
	say "$limit"
	rule hosts/web/max_$what "$now"
	over_limit web2
	must "no session" wait_for 10 server_has_no web2
	unmap "$(map other "$other" "${at[0]}")"
	# A path that joins: of the same session, so that one more session doesn't matter.
	if [ "$what" != sessions ]; then
		equal "a path that joins" "$(errno_of /sys/class/rtrs-client/web1/add_path \
			"$(addr server 1)")" EDQUOT
		must "one path" wait_for 10 server_has_paths web1 1
	fi
	# It stays, and comes back.
	echo 1 >"$(echo $paths/*/reconnect)"
	must "it is back" wait_for 30 server_has_paths web1 1
	expect_io 0 "$dev" read:0:4k
	rule hosts/web/max_$what 1
	expect_io 0 "$dev" read:0:4k
	rule hosts/web/max_$what 0
	within_limit web2
done

say "requests that are still at a disk"
slow=$(null slow 16 irqmode=2 completion_nsec=4000000000)
dev2=$(map web3 "$slow" "${at[0]}")
rule hosts/web/max_sessions 2
dd if=/dev/zero of="$dev2" bs=4k count=1 oflag=direct status=none 2>/dev/null &
must "it has a request" wait_for 10 on server "has_inflight $slow"
echo 1 >"$(echo /sys/class/rtrs-client/web3/paths/*/disconnect)"
over_limit web2
must "it counts no more" wait_for 30 eval "[ \$(usage sessions) = 1 ]"
within_limit web2
rule hosts/web/max_sessions 0
unmap "$dev2" force
wait $! || true

say "two hosts that it is: both limits count"
on server "mkdir $conf/hosts/all; echo '*' >$conf/hosts/all/sessions
	echo 1 >$conf/hosts/all/max_sessions"
over_limit web2
over_limit x
on server "rmdir $conf/hosts/all"
within_limit web2

say "at the same time"
rule hosts/web/max_sessions 3
for i in 2 3 4 5 6; do
	errno_of "$ctl/map_device" "sessname=web$i ${at[0]} device_path=$disk access_mode=ro" \
		>/tmp/errno.$i &
	started[i]=$!
done
wait "${started[@]}"
equal "what they got" "$(sort /tmp/errno.* | tr '\n' ' ')" "0 0 EDQUOT EDQUOT EDQUOT "
equal "sessions" "$(usage sessions)" 3
for i in 2 3 4 5 6; do
	[ "$(cat /tmp/errno.$i)" != 0 ] || unmap "/dev/$(mapped web$i "$disk")"
done
unmap "$dev"
# The server ends a session after the client has unmapped its last device.
unused() { [ "$(usage sessions) $(usage memory)" = "0 0" ]; }
wait_for 20 unused || fail "in the end there are $(usage sessions) sessions with $(usage memory) bytes"
on server "rmdir $conf/hosts/web"
tear_down
