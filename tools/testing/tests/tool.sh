# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The tool rnbd against live modules, client and server in one guest: it maps, lists and
# shows a device, adds, loses and recovers a path, resizes, pings, measures, watches, and
# unmaps; says why the kernel refuses something; its JSON can be parsed; top draws its screen
# in a terminal; trace finds both hosts' steps of requests; health finds what was broken.
# Modules: ours
# Time: 60

rnbd() { "${RIG_TREES%tree-}rnbd" "$@"; }

# code EXPECTED WORD ARGUMENT...: it ends with that exit code, and says the word
code()
{
	local want=$1 word=$2 out got=0
	shift 2
	out=$(rnbd "$@" 2>&1) || got=$?
	equal "exit code of rnbd $*, which says: $out" "$got" "$want"
	must "rnbd $* says nothing of '$word': $out" grep -qE -- "$word" <<<"$out"
}

# member KEY... : of the JSON on stdin
member()
{
	/usr/bin/python3 -c 'import functools, json, sys
print(functools.reduce(lambda v, k: v[int(k) if k.isdigit() else k], sys.argv[1:],
		       json.load(sys.stdin)))' "$@"
}

measured() { [ "$(rnbd client path show rxe0 json | member heartbeat_ns)" -gt 0 ]; }
state_is() { [ "$(rnbd show rnbd0 json | member state)" = "$1" ]; }

# A terminal of 80 columns: script runs the tool in it, and q is pressed.
top_screen()
{
	(pause 3; printf q; pause 1) |
		timeout "$(slowly 30)" script -qec "stty cols 80 rows 24; $1 top --interval 0.5" /dev/null
}

rdma_up
code 4 'modprobe rnbd_client' map vol1 from s1 192.168.100.1
code 3 UNKNOWN health
up sess_queue_depth=16
disk=$(null vol 64)
code 0 'OK: 0 sessions' health

equal "map prints" "$(rnbd map "$disk" from s1 192.168.100.1)" /dev/rnbd0
code 1 'ENOENT.*' map /dev/absent from s1
code 1 'kernel: rnbd_client: s1: .*absent' map /dev/absent from s1
code 1 'dev_search_path' map /dev/absent from s1
code 1 'EEXIST' map "$disk" from s1
code 1 'ENXIO' map "$disk" from s2
code 1 'kernel: .*(10.77|s3)' map "$disk" from s3 10.77.77.77
equal "state" "$(rnbd list json | member client devices 0 state)" open
equal "size" "$(rnbd show rnbd0 json | member size)" $((64 << 20))
equal "server's session" "$(rnbd server list json | member server devices 0 session)" s1
code 0 'rnbd0 +s1 ' client list
code 0 "$disk" show rnbd0

code 0 '' path add s1 192.168.101.1
code 1 'EEXIST' path add s1 192.168.101.1
equal "paths" "$(rnbd client session show s1 json | member paths_connected)" 2
code 0 'rnbd OK' health
code 0 '' client path disconnect s1 rxe1
code 1 'WARNING: s1/ip:192.168.101.*disconnected' health
code 0 'is connected' recover
code 0 '' client path reset s1 all
code 0 'rnbd OK' health
code 0 '' client path delete s1 rxe1
equal "paths" "$(rnbd client session show s1 json | member paths)" 1
code 0 '' client path readd s1 rxe0
equal "paths" "$(rnbd client session show s1 json | member paths_connected)" 1
code 0 'rnbd0 is open|^$' recover rnbd0
wait_for 20 state_is open || fail "rnbd0 isn't open again"

echo 100 >/sys/class/rtrs-client/s1/hb_interval_ms
wait_for 20 measured || fail "no heartbeat was measured"
code 0 'disk rnbd0: seq=2 time=' ping rnbd0 --count 3 --interval 1
code 0 IOPS perf rnbd0 --seconds 1 --depth 4
reads=$(rnbd perf rnbd0 --seconds 1 --depth 2 json | member iops)
must "perf read nothing: $reads" awk -v n="$reads" 'BEGIN { exit !(n > 0) }'
load "/dev/rnbd0"
rnbd stat --watch 1 --count 1 --json >/tmp/stat.json
rnbd stat rnbd0 --json >/tmp/stat.json
must "stat saw no reads: $(cat /tmp/stat.json)" awk -v n="$(member rates 0 reads_s </tmp/stat.json)" \
	'BEGIN { exit !(n > 0) }'
top_screen "${RIG_TREES%tree-}rnbd" >/tmp/top.out
load_goes_on
for word in 'rnbd top - ' 'rnbd0 .*open' 's1 .*up' '  192.168.100.1 .*up'; do
	must "top shows no '$word': $(cat -v /tmp/top.out)" grep -q "$word" /tmp/top.out
done
code 0 'rnbd_path_up\{side="client",session="s1",path="ip:192.168.100.1@ip:192.168.100.1"\} 1' \
	stat --prometheus

# Client and server are on one host here, so both logs are one. An instance takes its time.
tracing() { grep -qs 1 /sys/kernel/debug/tracing/instances/rnbd-*/events/rtrs_clt/enable; }
"${RIG_TREES%tree-}rnbd" client trace rnbd0 --seconds 1000 --json >/tmp/trace.json &
tracer=$!
wait_for 30 tracing || fail "it doesn't trace"
dd if=/dev/rnbd0 of=/dev/null bs=16k count=20 iflag=direct status=none
kill -TERM $tracer
wait $tracer
must "requests traced: $(cat /tmp/trace.json)" [ "$(member requests </tmp/trace.json)" -ge 20 ]
equal "requests with the server's part" "$(member with_server </tmp/trace.json)" \
	"$(member requests </tmp/trace.json)"
must "an instance of tracefs is left" [ -z "$(ls /sys/kernel/debug/tracing/instances)" ]

code 2 force resize rnbd0 32M
code 0 '' resize rnbd0 32M force
equal "size" "$(rnbd show rnbd0 json | member size)" $((32 << 20))
code 0 '' server close "$(basename "$disk")" s1
gives EIO /dev/rnbd0 read:0:4k
wait_for 20 state_is closed || fail "rnbd0 isn't closed"
code 2 'CRITICAL: rnbd0' health
code 0 '' remap rnbd0
code 0 '' client path reset s1 all
code 0 'rnbd OK' health

exec 8</dev/rnbd0
code 1 'unmount it first' unmap rnbd0
exec 8<&-
code 0 '' unmap "$disk" from s1
wait_for 20 test ! -e /sys/block/rnbd0 || fail "rnbd0 is still there"
code 3 'called' unmap rnbd0
down
