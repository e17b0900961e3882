# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Discovery: a client lists just the volumes that it may map, by policy, name, address and key, in
# one message or many, while volumes come and go; and maps all of them. Volumes have UUIDs, which
# the client shows. A server that can't list volumes says so.
# Modules: ours
# Sets: intree
# Guests: 2

. "$RIG_DIR/steps/tool.sh"
. "$RIG_DIR/steps/rules.sh"

# discovered WORD...: prints the names that the tool lists
discovered() { "$tool" discover "$@" -H | awk '{ print $1 }' | xargs; }
uuid_of() { on server "cat $conf/volumes/$1/uuid"; }
link_host() { on server "ln -s $conf/hosts/$2 $conf/volumes/$1/hosts/$2"; }

server=192.168.100.1
set_up sess_queue_depth=32
disk=$(null one 64)
other=$(null two 32)

say "policy open"
says 0 'no volumes' client client discover $server
volume v1 "$disk"
says 0 'no volumes' client client discover $server
rule volumes/v1/allow_any_host 1
rule volumes/v1/modes "ro rw"
first=$(uuid_of v1)
equal "listed" "$("$tool" discover $server session=s1 -H | xargs)" "v1 64M ro,rw $first"
"$tool" discover $server json >/tmp/json
equal "size in JSON" "$(judged 0 size)" $((64 << 20))
equal "without a write" "$(cat /dev/rnbd-discover)" ""
must "nobody else may" eval "! setpriv --reuid 65534 --clear-groups cat /dev/rnbd-discover 2>/dev/null"
client_idle
server_idle
map_fails EINVAL "sessname=s1 path=ip:$server"
for line in "" "sessname=s1" "sessname=s1 path=ip:$server device_path=v1" \
	"sessname=s1 path=ip:$server access_mode=ro" "sessname=s1 path=ip:$server failover_timeout=1"; do
	got=$(errno_of /dev/rnbd-discover "$line")
	[[ "|EINVAL|ENXIO|" == *"|$got|"* ]] || fail "'$line' gave $got"
done
mark_log
equal "errno of an option of a device" "$(errno_of /dev/rnbd-discover 'device_path=v1')" EINVAL
log_since_mark | grep -q 'rnbd-discover: device_path=v1: ' || fail "the log: $(log_since_mark)"

say "UUIDs"
dev=$(map s1 v1)
equal "on the client" "$(cat "$(device_attr "$dev" uuid)")" "$first"
equal "by the tool" "$("$tool" show "${dev#/dev/}" json | member uuid)" "$first"
equal "in the open session" "$(discovered s1)" v1
equal "by its address" "$(discovered $server)" v1
ro=$(map s1 "$other" access_mode=ro)
equal "of what is no volume" "$(cat "$(device_attr "$ro" uuid)")" ""
unmap "$ro"
second=12345678-9abc-def0-1234-56789abcdef0
rule_gives EBUSY volumes/v1/uuid $second
rule volumes/v1/enable 0
equal "while it is disabled" "$(discovered s1)" ""
for wrong in "" 0 ${second}0 ${second/-/} 00000000-0000-0000-0000-000000000000; do
	rule_gives EINVAL volumes/v1/uuid "$wrong"
done
rule volumes/v1/uuid $second
rule volumes/v1/enable 1
expect_io EIO "$dev" read:0:4k
echo 1 >"$(device_attr "$dev" remap_device)"
equal "another one" "$(cat "$(device_attr "$dev" uuid)")" $second
unmap "$dev"

say "policy listed"
add_key server rnbd:key 0123456789abcdef
add_key client rnbd:key 0123456789abcdef
on server "mkdir $conf/hosts/web $conf/hosts/near $conf/hosts/keyed"
rule hosts/web/sessions 'web*'
rule hosts/near/sessions '*'
rule hosts/near/addresses ip:192.168.101.0/24
rule hosts/keyed/sessions 'keyed'
rule hosts/keyed/keys rnbd:key
for name in web near keyed; do
	volume for-$name "$other"
	link_host for-$name $name
done
rule policy listed
rule volumes/v1/allow_any_host 0
equal "of web" "$(discovered $server session=web1)" for-web
equal "of an address" "$(discovered 192.168.101.1 session=s1)" for-near
equal "of both" "$(discovered 192.168.101.1 session=web1)" "for-near for-web"
must "of nobody" eval "! '$tool' discover $server session=s1 >/dev/null 2>&1"
equal "of a key" "$(discovered $server session=keyed key=rnbd:key)" for-keyed
says 1 'requires a key' client client discover $server session=keyed
rule volumes/for-web/modes ""
equal "without a mode" "$(discovered $server session=web1)" ""
rule volumes/for-web/modes rw

say "many volumes"
long=$(printf 'n%.0s' {1..200})
on server "for n in {100..199}; do
	mkdir $conf/volumes/$long\$n
	echo $disk >$conf/volumes/$long\$n/path
	echo ro >$conf/volumes/$long\$n/modes
	ln -s $conf/hosts/web $conf/volumes/$long\$n/hosts/
	echo 1 >$conf/volumes/$long\$n/enable
done"
want="for-web $(printf "$long%d " {100..199} | sed 's/ $//')"
equal "all" "$(discovered $server session=web1)" "$want"
# Volumes that others have between these cost messages, too.
on server "mkdir $conf/volumes/off{1..1100}"
volume last "$(null three 16)"
link_host last web
equal "all, behind others" "$(discovered $server session=web1)" "${want/for-web/for-web last}"
on server "rmdir $conf/volumes/off*"
on server "rm -f /tmp/stop
	while [ ! -e /tmp/stop ]; do
		mkdir $conf/volumes/comes && rmdir $conf/volumes/comes
		echo 0 >$conf/volumes/${long}150/enable
		echo 1 >$conf/volumes/${long}150/enable
	done >/dev/null 2>&1 </dev/null 9>&- &"
for _ in 1 2 3 4 5; do
	discovered $server session=web2 >/tmp/web2 &
	equal "all but one" "$(discovered $server session=web1 | sed "s/ ${long}150//")" \
		"$(sed "s/ ${long}150//; s/for-web/& last/" <<<"$want")"
	wait $!
	must "both at the same time" cmp <(sed "s/ ${long}150//" /tmp/web2) \
		<(sed "s/ ${long}150//; s/for-web/& last/" <<<"$want")
done
on server ": >/tmp/stop; wait_for 20 eval '[ ! -e $conf/volumes/comes ]'"
on server "for n in {100..199}; do
	rm $conf/volumes/$long\$n/hosts/web
	rmdir $conf/volumes/$long\$n
done"

say "all are mapped"
volume lost /dev/absent
link_host lost web
got=0
"$tool" map --all $server session=web1 >/tmp/mapped 2>/tmp/errors || got=$?
equal "exit code: $(cat /tmp/errors)" $got 1
must "says why: $(cat /tmp/errors)" grep -q "lost" /tmp/errors
equal "mapped" "$(awk '{ print $2 }' /tmp/mapped | xargs)" "for-web last"
on server "rm $conf/volumes/lost/hosts/web; rmdir $conf/volumes/lost"
unmap "/dev/$(mapped web1 for-web)"
unmap "/dev/$(mapped web1 last)"
client_idle

say "a server that can't"
on server "rm -f $conf/volumes/*/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
server_idle
on server unload_here
# shellcheck disable=SC2034
server_modules=intree
load_server
says 1 "server can't list its volumes" client client discover $server
map_fails ENOENT "sessname=s1 path=ip:$server device_path=nothing"
client_idle
unload
tear_down
