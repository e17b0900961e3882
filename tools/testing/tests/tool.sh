# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The tool rnbd with client and server in one guest: it maps, lists and shows a device, names a
# session, changes settings, adds, loses and recovers a path, resizes, pings, measures, watches, and
# unmaps; reports why the kernel refuses something; prints valid JSON; top draws its screen in a
# terminal; trace joins the steps of requests on both ends; health reports faults.
# Modules: ours

. "$RIG_DIR/steps/tool.sh"

rnbd() { "$tool" "$@"; }
measured() { [ "$(rnbd client path show rxe0 json | member heartbeat_ns)" -gt 0 ]; }
# tool_state_is STATE: true if the tool shows that state of rnbd0
tool_state_is() { [ "$(rnbd show rnbd0 json | member state)" = "$1" ]; }

# A terminal of 80 columns and 24 lines: the tool runs in it, its screen can be seen and keys
# be pressed. Lines that the terminal has wrapped are shown as one.
in_terminal() { tmux -f /dev/null -S /tmp/terminal "$@"; }
terminal() { in_terminal new-session -d -x 80 -y 24 "$tool $*; echo \$? >/tmp/ended"; }
screen() { in_terminal capture-pane -p -J >/tmp/screen && grep -qE "$1" /tmp/screen; }
press() { in_terminal send-keys "$1"; }

rdma_up
says 4 'modprobe rnbd_client' client map vol1 from s1 192.168.100.1
says 3 UNKNOWN client health
set_up sess_queue_depth=16
disk=$(null vol 64)
says 0 'OK: 0 sessions' client health

says 2 'did you mean failover_timeout' client map "$disk" from s1 192.168.100.1 failover_timout=40
equal "map prints" "$(rnbd map "$disk" from s1 192.168.100.1 failover_timeout=40)" /dev/rnbd0
equal "setting of map" "$(cat /sys/class/rtrs-client/s1/failover_timeout)" 40
says 0 '' client session set s1 failover_timeout=50 mp_policy=rr
equal "setting" "$(cat /sys/class/rtrs-client/s1/failover_timeout)" 50
equal "policy" "$(rnbd client session show s1 json | member mp_policy)" round-robin
says 2 'from -1 to 1000000' client session set s1 failover_timeout=-2
says 1 'ENOENT.*' client map /dev/absent from s1
says 1 'kernel: rnbd_client: s1: .*absent' client map /dev/absent from s1
says 1 'dev_search_path' client map /dev/absent from s1
says 1 'EEXIST' client map "$disk" from s1
says 1 'ENXIO' client map "$disk" from s2
says 1 'kernel: .*(10.77|s3)' client map "$disk" from s3 10.77.77.77
equal "state" "$(rnbd list json | member client devices 0 state)" open
equal "size" "$(rnbd show rnbd0 json | member size)" $((64 << 20))
equal "server's session" "$(rnbd server list json | member server devices 0 session)" s1
says 0 'rnbd0 +s1 ' client client list
says 0 "$disk" client show rnbd0

says 0 '' client path add s1 192.168.101.1
says 1 'EEXIST' client path add s1 192.168.101.1
equal "paths" "$(rnbd client session show s1 json | member paths_connected)" 2
says 0 'rnbd OK' client health
says 0 '' client client path disconnect s1 rxe1
says 1 'WARNING: s1/ip:192.168.101.*disconnected' client health
says 0 'is connected' client recover
says 0 '' client client path reset s1 all
says 0 'rnbd OK' client health
says 0 '' client client path delete s1 rxe1
equal "paths" "$(rnbd client session show s1 json | member paths)" 1
says 0 '' client client path readd s1 rxe0
equal "paths" "$(rnbd client session show s1 json | member paths_connected)" 1
says 0 'rnbd0 is open|^$' client recover rnbd0
wait_for 20 tool_state_is open || fail "rnbd0 isn't open again"

echo 100 >/sys/class/rtrs-client/s1/hb_interval_ms
wait_for 20 measured || fail "no heartbeat was measured"
says 0 'disk rnbd0: seq=2 time=' client ping rnbd0 --count 3 --interval 1
says 0 IOPS client perf rnbd0 --seconds 1 --depth 4
reads=$(rnbd perf rnbd0 --seconds 1 --depth 2 json | member iops)
must "perf read nothing: $reads" awk -v n="$reads" 'BEGIN { exit !(n > 0) }'
start_load "/dev/rnbd0"
rnbd stat --watch 1 --count 1 --json >/tmp/stat.json
rnbd stat rnbd0 --json >/tmp/stat.json
must "stat saw no reads: $(cat /tmp/stat.json)" awk -v n="$(member rates 0 reads_s </tmp/stat.json)" \
	'BEGIN { exit !(n > 0) }'
rm -f /tmp/ended
terminal top --interval 0.5
for word in '^rnbd top - .* by I/O ' '^rnbd0 .*open' '^s1 .*up' '^  192.168.100.1 .*up'; do
	wait_for 20 screen "$word" || fail "top shows no '$word': $(cat /tmp/screen)"
done
# Each value stands below its heading, in 80 columns.
awk 'length > 80 { print "wrapped: " $0 }
	/STATE/ { width = length; state = index($0, " STATE"); if (/ P99$/) next; print }
	/^(rnbd[0-9]|s1|  )/ && (length != width || substr($0, state) !~ /^ (open|up) +[0-9]/)' \
	/tmp/screen >/tmp/wrong
must "columns: $(cat /tmp/wrong; cat /tmp/screen)" test ! -s /tmp/wrong
press n
wait_for 20 screen ' by name ' || fail "not sorted by name: $(cat /tmp/screen)"
press q
wait_for 20 test -s /tmp/ended || fail "top doesn't end"
equal "exit code of top" "$(cat /tmp/ended)" 0
stop_load
says 0 'rnbd_path_up\{side="client",session="s1",path="ip:192.168.100.1@ip:192.168.100.1"\} 1' \
	client stat --prometheus

# Client and server are on one host here, so both logs are one.
"$tool" client trace rnbd0 --seconds 1000 --json >/tmp/trace.json &
tracer=$!
wait_for 30 traces client rtrs_clt || fail "it doesn't trace"
dd if=/dev/rnbd0 of=/dev/null bs=16k count=20 iflag=direct status=none
kill -TERM $tracer
wait $tracer
must "requests traced: $(cat /tmp/trace.json)" [ "$(member requests </tmp/trace.json)" -ge 20 ]
equal "requests with the server's part" "$(member with_server </tmp/trace.json)" \
	"$(member requests </tmp/trace.json)"
must "an instance of tracefs is left" [ -z "$(ls /sys/kernel/debug/tracing/instances)" ]

says 2 force client resize rnbd0 32M
says 2 'has 131072s on the server' client resize rnbd0 65M
says 0 '' client resize rnbd0 32M force
equal "size" "$(rnbd show rnbd0 json | member size)" $((32 << 20))
says 0 '' server server close "$(basename "$disk")" s1
expect_io EIO /dev/rnbd0 read:0:4k
wait_for 20 tool_state_is closed || fail "rnbd0 isn't closed"
says 2 'CRITICAL: rnbd0' client health
says 0 '' client remap rnbd0
says 0 '' client client path reset s1 all
says 0 'rnbd OK' client health

exec 8</dev/rnbd0
says 1 'unmount it first' client unmap rnbd0
exec 8<&-
says 0 '' client unmap "$disk" from s1
wait_for 20 test ! -e /sys/block/rnbd0 || fail "rnbd0 is still there"
says 3 'called' client unmap rnbd0

# A line of the table of volumes comes and goes with the mapping.
export RNBD_VOLUMES=/tmp/table
echo '# mine' >$RNBD_VOLUMES
equal "map --save prints" \
	"$(rnbd map "$disk" from s1 192.168.100.1 failover_timeout=40 --save=vol)" /dev/rnbd0
equal "table" "$(tail -n +2 $RNBD_VOLUMES)" "vol s1 192.168.100.1 $disk failover_timeout=40"
equal "volume" "$(rnbd volume map vol)" /dev/rnbd0
rnbd unmap rnbd0 --save
equal "table" "$(cat $RNBD_VOLUMES)" '# mine'
wait_for 20 test ! -e /sys/block/rnbd0 || fail "rnbd0 is still there"

# Without a name, a session is called after this host and the server; others join it.
hostname client1.example.org
session=client1-example-org_192-168-100-1
second=$(null second 64)
must "the first device has no disk" [ -b "$(rnbd map "$disk" 192.168.100.1)" ]
equal "sessions" "$(ls /sys/class/rtrs-client)" $session
must "the second device has no disk" [ -b "$(rnbd map "$second" 192.168.100.1 ro)" ]
equal "sessions" "$(ls /sys/class/rtrs-client)" $session
says 0 '' client unmap "$second"
says 0 '' client unmap "$disk"
hostname "$RIG_NAME"
tear_down
