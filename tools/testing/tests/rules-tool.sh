# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's rules set by the tool: shown, saved, cleared and restored with the same result;
# unchanged rules have no effect on sessions under load. A server that is loaded again under load
# has its rules before its clients connect: none is wrongly refused or accepted. With an invalid
# line nothing is loaded.
# Modules: ours

. "$RIG_DIR/steps/tool.sh"

export RNBD_SERVER_CONF=/tmp/server.conf
server() { "$tool" server "$@"; }
# As text, without what may differ
shown() { server rules json | tr -d ' \n'; }

# tells EXPECTED WORD ARGUMENT...: it ends with that exit code, and says the word
tells()
{
	local expected=$1 word=$2 got=0 out
	shift 2
	out=$(server "$@" 2>&1) || got=$?
	equal "exit code of $*, which says: $out" "$got" "$expected"
	must "$* says nothing of '$word': $out" grep -qE -- "$word" <<<"$out"
}

set_up sess_queue_depth=32
a=$(addr server 0)
disk=$(null one 64)
other=$(null two 64)

say "set and shown"
add_key server rnbd:web 0123456789abcdef
server host add web sessions='web*' addresses="192.168.0.0/16 fd00::/8" keys=rnbd:web max_sessions=8
server host add db
server volume add data path="$disk" hosts=web modes="rw ro"
server volume add logs path="$other" hosts="db web" enable=0
server volume set logs hosts=db exclusive=1 enable=1
server policy listed
equal "shown" "$(shown | sed -E 's/"uuid":"[0-9a-f-]{36}",//g')" "$(printf '%s' '{"policy":"listed","listen":true,"tenants":[],"hosts":[' \
	'{"name":"db","sessions":"db","addresses":[],"keys":[],"max_sessions":0,"max_memory":0,' \
	'"cgroup":""},' \
	'{"name":"web","sessions":"web*","addresses":["ip:192.168.0.0/16","ip:fd00::/8"],"keys":["rnbd:web"],' \
	'"max_sessions":8,"max_memory":0,"cgroup":""}],"volumes":[' \
	"{\"name\":\"data\",\"path\":\"$disk\",\"modes\":[\"ro\",\"rw\"],\"exclusive\":false," \
	'"allow_any_host":false,"hosts":["web"],"enable":true},' \
	"{\"name\":\"logs\",\"path\":\"$other\",\"modes\":[\"ro\",\"rw\",\"migration\",\"handover\"]," \
	'"exclusive":true,"allow_any_host":false,"hosts":["db"],"enable":true}]}')"
tells 2 'has no path' volume add bad modes=ro
tells 3 'no host' volume set data hosts=nobody
tells 1 'is for host db' host delete db
map_fails ENOENT "sessname=web path=$a device_path=logs key=rnbd:web"
dev=$(map web data key=rnbd:web)
start_bystander "$(map db logs)"

say "saved, cleared and restored"
before=$(shown)
echo "sess_queue_depth = 32" >/tmp/server.conf
server save
server check
start_load "$dev"
server load
stop_load
equal "loaded again" "$(shown)" "$before"
cp /tmp/server.conf /tmp/saved.conf
server clear
equal "nothing is left" "$(find $conf/volumes $conf/hosts -mindepth 1)" ""
equal "but the policy" "$(<$conf/policy)" listed
server load
equal "restored" "$(shown)" "$before"
server save
must "saved again, it is the same" cmp /tmp/server.conf /tmp/saved.conf
for d in "$dev" "/dev/$(mapped db logs)"; do
	expect_io EIO "$d" read:0:4k
	must "it was closed" [ "$(cat "/sys/block/${d#/dev/}/rnbd/state")" = closed ]
	unmap "$d"
done
kill "$bystander" 2>/dev/null || true
wait "$bystander" || true

say "loaded again under load"
dev=$(map web data key=rnbd:web)
echo 100 >/sys/class/rtrs-client/web/reconnect_delay_ms
start_bystander "$dev"
must "it has begun" wait_for 20 eval "[ \$(ios $dev writes) -gt 20 ]"
mark_log
server unload
must "it is gone" [ ! -e /sys/module/rtrs_server ]
server load
must "its session is back" wait_for 60 eval "[ \$(ls /sys/class/rtrs-server | wc -l) = 1 ]"
before=$(ios "$dev" writes)
must "it goes on" wait_for 20 eval "[ \$(ios $dev writes) -gt $((before + 20)) ]"
stop_bystander
must "it was not refused" eval "! log_since_mark | grep -q \"can't open\""
unmap "$dev"

say "a line that is wrong"
client_idle
server unload
echo "[volume wrong" >>/tmp/server.conf
tells 2 'server.conf:[0-9]*: ' load
must "nothing was loaded" [ ! -e /sys/module/rtrs_server ]
tear_down
