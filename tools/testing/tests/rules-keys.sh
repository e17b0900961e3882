# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Secrets: a host that has keys gets nothing without proving that it knows one, on each of its
# paths; a client that has one doesn't take a server that doesn't know it. Keys are changed under
# load, on one end after the other, and a verified load goes on; one that is taken away ends what
# was proved with it. The secrets are in no log, no attribute and no trace.
# Modules: ours
# Siw: debug

. "$RIG_DIR/steps/rules.sh"

up sess_queue_depth=32
disk=$(null one 64)
other=$(null two 64)
first=Geheim-0123456789-first second=Geheim-0123456789-second third=Geheim-0123456789-third
# Both ends may be one machine: so each calls them by names of its own.
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
refused EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:wrong"
refused EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:short"
refused ENOKEY "sessname=web ${at[0]} device_path=v key=clt:none"
refused EKEYREJECTED "sessname=web ${at[0]} device_path=v"
refused EKEYREJECTED "sessname=web-x ${at[0]} device_path=w"
must "no session" on server 'no_sessions server'
# The server has no key of that host, so it can't prove anything.
refused EKEYREJECTED "sessname=db ${at[0]} device_path=w key=clt:web"
bystander "$(map db w "${at[0]}")"

say "its name, from an address that isn't its own"
rule hosts/web/addresses ip:192.0.2.1
refused EKEYREJECTED "sessname=web ${at[0]} device_path=v"
refused EKEYREJECTED "sessname=web ${at[0]} device_path=v key=clt:web"
rule hosts/web/addresses ""

say "a session that was there before, with nothing open"
rule hosts/web/keys ""
rule volumes/w/allow_any_host 1
dev=$(map web1 w "${at[0]}" access_mode=ro)
# Its path stays for as long as it has a device; that the server closes, and it keeps the session.
on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${other#/dev/}/sessions/web1/force_close"
rule volumes/w/allow_any_host 0
must "it is connected" server_has_paths web1 1
rule hosts/web/keys srv:web
must "it isn't any more" wait_for 1 server_has_paths web1 0
unmap "$dev"

say "two paths"
dev=$(map web v "${at[0]}" "${at[1]}" key=clt:web)
must "two paths" wait_for 20 server_has_paths web 2
verify "$dev" "$mixed" --size=2m
refused EINVAL "sessname=web ${at[0]} device_path=x key=clt:wrong"
refused ENOENT "sessname=web device_path=w key=clt:web"

say "keys are changed"
load "$dev"
rule hosts/web/keys "srv:web srv:web2"
must "both paths are there" server_has_paths web 2
add_key client clt:web $second
echo 1 >"$(echo /sys/class/rtrs-client/web/paths/* | cut -d' ' -f1)/reconnect"
must "it is back, with the other key" wait_for 60 server_has_paths web 2
rule hosts/web/keys srv:web2
must "the other one, too" wait_for 60 server_has_paths web 2
load_goes_on
load "$dev"
must "it is open" state_is "$dev" open
load_goes_on

say "the server has another key now, so there are no paths; and the right one again"
load "$dev"
echo -1 >/sys/class/rtrs-client/web/failover_timeout
rule hosts/web/keys srv:web
must "no paths" wait_for 1 server_has_paths web 0
rule hosts/web/keys srv:web2
must "they are back" wait_for 60 server_has_paths web 2
load_goes_on
load "$dev"
echo 1 >/sys/class/rtrs-client/web/failover_timeout
rule hosts/web/keys srv:web
load_fails 30
add_key client clt:web $first
must "they are back" wait_for 60 server_has_paths web 2
must "it is open again" wait_for 30 state_is "$dev" open
gives "0 0" "$dev" write:0:4k:x read:0:4k:x
unmap "$dev"
bystander_unharmed
unmap "/dev/$(mapped db w)"

say "a secret is changed under the same name"
add_key server srv:own $first
rule hosts/web/keys srv:own
dev=$(map web v "${at[0]}" key=clt:web)
add_key server srv:own $second
echo 1 >"$(echo /sys/class/rtrs-client/web/paths/*)/reconnect"
must "its old secret counts until keys is written" wait_for 60 server_has_paths web 1
add_key server srv:own $first
rule hosts/web/keys srv:own
must "the path of a secret that is the same has ended" server_has_paths web 1
add_key server srv:own $second
rule hosts/web/keys srv:own
must "the path of the former secret is there" wait_for 1 server_has_paths web 0
add_key client clt:web $second
must "it is back" wait_for 60 server_has_paths web 1
unmap "$dev"
rule hosts/web/keys srv:web

say "the secrets"
for place in /sys/kernel/config/rnbd /sys/class/rtrs-client /sys/class/rtrs-server \
	/sys/class/rnbd-client /sys/module /sys/kernel/tracing/trace; do
	must "not in $place" eval "! grep -rqs Geheim- $place"
done
must "not in the log" eval "! dmesg | grep -q Geheim-"
"$RIG_DIR/steps/memory.py" "${RIG_TREES%tree-}rnbd" server rules >/tmp/memory
must "the tool has not read the rules" grep -aq srv:web /tmp/memory
must "not in the tool" eval "! grep -aq Geheim- /tmp/memory"
on server "rm $conf/volumes/*/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
down
