# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A host with keys must prove one of them on each path; a client with a key refuses a server
# without it. Keys are changed under load, on one end after the other, while verified I/O continues;
# removing a key ends the paths that were proved with it at once. No log, attribute or trace
# contains the secrets.
# Modules: ours
# Siw: debug

. "$RIG_DIR/steps/rules.sh"

# trace_all 1|0: enables or disables all tracepoints of the drivers
trace_all()
{
	local side

	for side in srv clt; do
		echo "$1" >"$tracing/events/rtrs_$side/enable"
	done
}

# without_secret WORD FILE...: fails unless the word is in one of these files, or files below these
# folders, and a secret in none of them
without_secret()
{
	local word=$1
	shift
	must "no $word in $*" grep -rqsF -- "$word" "$@"
	must "a secret in $*" eval "! grep -rqs Geheim- ${*@Q}"
}

set_up sess_queue_depth=32
disk=$(null one 64)
other=$(null two 64)
first=Geheim-0123456789-first second=Geheim-0123456789-second third=Geheim-0123456789-third
# Client and server may share a keyring: key names differ.
add_key server srv:web $first
add_key server srv:web2 $second
add_key server srv:short Geheim-01234567
add_key client clt:web $first
add_key client clt:wrong $third
add_key client clt:short Geheim-01234567

say "wrong keys"
on server "mkdir $conf/hosts/web $conf/hosts/db $conf/volumes/v $conf/volumes/w"
rule hosts/web/sessions 'web*'
rule_gives ENOKEY hosts/web/keys srv:none
rule_gives E2BIG hosts/web/keys "srv:web srv:web2 srv:web"
rule_gives EKEYREJECTED hosts/web/keys "srv:web srv:short"
equal "no keys" "$(on server "cat $conf/hosts/web/keys")" ""
rule hosts/web/keys "srv:web"
equal "a key" "$(on server "cat $conf/hosts/web/keys")" srv:web
on server "echo $disk >$conf/volumes/v/path; echo $other >$conf/volumes/w/path
	ln -s $conf/hosts/web $conf/volumes/v/hosts/; ln -s $conf/hosts/db $conf/volumes/w/hosts/
	echo 1 >$conf/volumes/v/enable; echo 1 >$conf/volumes/w/enable"
rule policy listed
echo >"$tracing/trace"
trace_all 1
map_fails EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:wrong"
map_fails EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:short"
map_fails ENOKEY "sessname=web ${at[0]} device_path=v key=clt:none"
map_fails EKEYREJECTED "sessname=web ${at[0]} device_path=v"
map_fails EKEYREJECTED "sessname=web-x ${at[0]} device_path=w"
must "no session" on server 'no_sessions server'
# The server has no key of that host, so it can't prove anything.
map_fails EKEYREJECTED "sessname=db ${at[0]} device_path=w key=clt:web"
trace_all 0
cp "$tracing/trace" /tmp/trace
start_bystander "$(map db w "${at[0]}")"

say "its name, from an address that isn't its own"
rule hosts/web/addresses ip:192.0.2.1
map_fails EKEYREJECTED "sessname=web ${at[0]} device_path=v"
map_fails EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:web"
rule hosts/web/addresses ""

say "a session that was there before, with nothing open"
rule hosts/web/keys ""
rule volumes/w/allow_any_host 1
dev=$(map web1 w "${at[0]}" access_mode=ro)
# Its path stays for as long as it has a device; that the server closes, and it keeps the session.
on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${other#/dev/}/sessions/web1/force_close"
rule volumes/w/allow_any_host 0
must "it is connected" server_has_paths web1 1
rule_ends web1 "$(server_paths web1)" hosts/web/keys srv:web
must "it isn't any more" wait_for 20 server_has_paths web1 0
unmap "$dev"

say "two paths"
dev=$(map web v "${at[0]}" "${at[1]}" key=clt:web)
must "two paths" wait_for 20 server_has_paths web 2
verify "$dev" "$mixed" --size=2m
map_fails EINVAL "sessname=web ${at[0]} device_path=x key=clt:wrong"
map_fails ENOENT "sessname=web device_path=w key=clt:web"

say "keys are changed"
start_load "$dev"
both=$(server_paths web)
rule_ends web "" hosts/web/keys "srv:web srv:web2"
equal "paths" "$(server_paths web)" "$both"
add_key client clt:web $second
echo 1 >"$(echo /sys/class/rtrs-client/web/paths/* | cut -d' ' -f1)/reconnect"
must "it is back, with the other key" wait_for 60 server_has_paths web 2
rule_ends web "${both#* }" hosts/web/keys srv:web2
must "the other one, too" wait_for 60 server_paths_are web "$both"
stop_load
start_load "$dev"
must "it is open" state_is "$dev" open
stop_load

say "the server has another key now, so there are no paths; and the right one again"
start_load "$dev"
echo -1 >/sys/class/rtrs-client/web/failover_timeout
rule_ends web "$both" hosts/web/keys srv:web
must "no paths" wait_for 20 server_has_paths web 0
rule hosts/web/keys srv:web2
must "they are back" wait_for 60 server_has_paths web 2
stop_load
start_load "$dev"
echo 1 >/sys/class/rtrs-client/web/failover_timeout
rule hosts/web/keys srv:web
load_fails 30
add_key client clt:web $first
must "they are back" wait_for 60 server_has_paths web 2
must "it is open again" wait_for 30 state_is "$dev" open
expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
unmap "$dev"
stop_bystander
unmap "/dev/$(mapped db w)"

say "a secret is changed under the same name"
add_key server srv:own $first
rule hosts/web/keys srv:own
echo >"$tracing/trace"
trace_all 1
dev=$(map web v "${at[0]}" key=clt:web)
add_key server srv:own $second
echo 1 >"$(echo /sys/class/rtrs-client/web/paths/*)/reconnect"
must "its old secret counts until keys is written" wait_for 60 server_has_paths web 1
trace_all 0
cat "$tracing/trace" >>/tmp/trace
one=$(server_paths web)
add_key server srv:own $first
rule_ends web "" hosts/web/keys srv:own
equal "the path of a secret that is the same" "$(server_paths web)" "$one"
add_key server srv:own $second
rule_ends web "$one" hosts/web/keys srv:own
must "the path of the former secret is there" wait_for 20 server_has_paths web 0
add_key client clt:web $second
must "it is back" wait_for 60 server_has_paths web 1

say "the secrets"
dmesg >/tmp/log
without_secret srv:own /sys/kernel/config/rnbd
# grep does not follow links, hence these folders.
without_secret connected /sys/class/rtrs-client/*/
without_secret "$rdma" /sys/class/rtrs-server/*/
without_secret path= /sys/class/rnbd-client/*/
without_secret open "/sys/block/${dev#/dev/}/rnbd/"
without_secret 1234 /sys/module
# Handshakes that failed, and that succeeded
without_secret "$one: connecting -> closing" /tmp/trace
without_secret "$one: connecting -> connected" /tmp/trace
without_secret "rtrs_clt_path_state: web " /tmp/trace
without_secret "mapped v" /tmp/log
unmap "$dev"
rule hosts/web/keys srv:web
"$RIG_DIR/steps/memory.py" "${RIG_TREES%tree-}rnbd" server rules >/tmp/memory
must "the tool has not read the rules" grep -aq srv:web /tmp/memory
must "not in the tool" eval "! grep -aq Geheim- /tmp/memory"
on server "rm $conf/volumes/*/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
tear_down
