# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The tool rnbd on two hosts: each command on its side, JSON output according to the schema; its
# messages about a pulled cable, a session without paths and a device closed by the server, and how
# it repairs each; joined traces of both hosts.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"
. "$RIG_DIR/steps/tool.sh"

paths_up() { fits object client session show s1 json; [ "$(judged paths_connected)" = "$1" ]; }
# tool_server_paths NUMBER: true if the tool lists so many paths on the server
tool_server_paths() { [ "$(on server "$tool server path list -H" | wc -l)" = "$1" ]; }

rdma_up
says 4 'modprobe rnbd_client' client client list
says 4 'modprobe rnbd_server' server server list
set_up
disk=$(null vol 64)
equal map "$("$tool" map "$disk" from s1 192.168.100.1 192.168.101.1)" /dev/rnbd0
got=0
out=$(setpriv --reuid 65534 --clear-groups "$tool" unmap rnbd0 2>&1) || got=$?
equal "exit code for nobody" $got 5
must "nobody isn't told: $out" grep -q 'as root' <<<"$out"

# Listings and single things, on both sides

# lines SIDE: what is asked there, the exit code, a word of the answer, and what JSON it is
lines()
{
	local line
	for line in list dump 'device list' 'session list' 'path list' "$1 list all"; do
		echo "$line;0;s1;"
		echo "$line json;0;;list"
	done
	for line in s1 s1/rxe1; do
		echo "show $line;0;s1;"
		echo "$1 show $line json;0;;object"
	done
	cat <<-END
		stat --json;0;;stat
		stat --prometheus;0;rnbd_path_up.side="$1";
		show nothing;3;nothing.*is called|no .*nothing;
		list nonsense;2;list;
		health json;0;;health
	END
}

asking=()
for side in client server; do
	lines $side >/tmp/lines-$side
	mapfile -t asked < <(cut -d';' -f1 /tmp/lines-$side)
	ask $side "${asked[@]}" &
	asking+=($!)
done
wait "${asking[0]}"
wait "${asking[1]}"
for side in client server; do
	while IFS=';' read -r line code word definition <&3; do
		if ! IFS= read -r -d '' got || ! IFS= read -r -d '' answer; then
			fail "rnbd $line on $side: no answer"
		fi
		judge "$line on $side" "$code" "$word" "$definition" "$got" "$answer"
	done 3</tmp/lines-$side </tmp/answers-$side
	equal "health of the $side" "$(judged status)" OK
done
fits object client show rnbd0 json
fits object server server device show "$(basename "$disk")" json
equal "paths on the server" "$(judged session)" s1

# Paths, one and all
fast_failover
says 0 '' client path disconnect s1/rxe1
says 1 'disconnected' client health
says 0 'is connected' client path recover s1 rxe1
says 0 '' client path reconnect s1 all
says 0 '' client path delete s1 192.168.101.1
says 0 '' client path add s1 192.168.101.1
says 0 '' client path readd s1 rxe0
says 0 '' client session disconnect s1
says 2 'CRITICAL.*s1' client health
says 0 '' client session reconnect s1
wait_for 20 paths_up 2 || fail "not both paths are connected"
wait_for 20 tool_server_paths 2 || fail "the server has not two paths"

# A cable
says 0 '' client path reset s1 all
set_link server 1 silent
wait_for 20 paths_up 1 || fail "the cut was not noticed"
says 1 "WARNING: s1/ip:192.168.101.*disconnected" client health
says 0 'degraded' client show s1
says 1 'no answer' client path recover s1 rxe1 &
recovering=$!
# Meanwhile the server takes the disk away.
says 0 '' server server close "$(basename "$disk")" s1
expect_io EIO /dev/rnbd0 read:0:4k
says 2 'CRITICAL: rnbd0' client health
says 0 '' client session remap s1
expect_io 0 /dev/rnbd0 read:0:4k
wait $recovering
set_link server 1 on
wait_for 40 paths_up 2 || fail "the path doesn't come back"
says 1 'lost and connected again' client health
says 0 'OK' client health --max-reconnects 100
says 0 '' client device recover rnbd0

# What it measures
set_attrs hb_interval_ms=100
fits ping client ping s1 --count 2 --interval 1 --json
equal "what is pinged" "$(judged targets 2 type)" disk
fits perf client perf rnbd0 --seconds 1 --depth 4 --json
must "no reads" awk -v n="$(judged iops)" 'BEGIN { exit !(n > 0) }'

# Both hosts' traces
log=/tmp/trace.log
# The server's first, and the client's is stopped first: what the client tells of, the server
# tells of too.
for side in server client; do
	if [ $side = server ]; then group=rtrs_srv; else group=rtrs_clt; fi
	on $side "$tool trace --record $log --seconds 1000 >/dev/null 2>&1 </dev/null &
		echo \$! >/tmp/tracer"
	wait_for 30 traces $side "$group" || fail "the $side doesn't trace"
done
dd if=/dev/rnbd0 of=/dev/null bs=16k count=40 iflag=direct status=none
for side in client server; do
	on $side 'kill -TERM $(cat /tmp/tracer); while [ -e /proc/$(cat /tmp/tracer) ]; do pause 0.1; done'
done
on server "cat $log" >/tmp/server.log
fits trace client trace s1 --client-log $log --server-log /tmp/server.log json
must "requests traced: $(judged requests)" [ "$(judged requests)" -ge 40 ]
equal "requests with the server's part" "$(judged with_server)" "$(judged requests)"

says 0 '' client unmap rnbd0
client_idle
says 0 'OK: 0 sessions' client health
tear_down
