# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tenants in network namespaces: two tenants whose servers, clients and sessions have the same names
# and addresses are separate from each other and from the initial namespace; each has its own
# volumes, hosts and keys. Deleting a namespace under load ends its sessions, on the client and on
# the server, while verified I/O of the others continues. A container uses a disk of its namespace.
# The tool saves, clears and restores tenants.
# Modules: ours
# Once: debug 7.2

. "$RIG_DIR/steps/tool.sh"
. "$RIG_DIR/steps/netns.sh"
[ "$(uname -r | cut -d. -f1)" -ge 7 ] || skip "rdma_rxe knows one network namespace"

# freed NETNS...: true if the namespaces' devices are gone, so that nothing holds the namespaces
freed()
{
	local net
	for net in "$@"; do
		[ ! -e "/sys/class/infiniband/$net" ] || return 1
	done
}

netns_gone()
{
	ip netns del "$1"
	deleted=$(now)
}

sessions()
{
	local dir all=
	for dir in /sys/class/rtrs-server/*; do
		all+=" ${dir##*/}"
	done
	echo "${all# }"
}

set_up sess_queue_depth=32
cable a
cable b
one=$(null one 64)
two=$(null two 32)
three=$(null three 16)
add_tenant a "$one"
add_tenant b "$two"

say "equal names and addresses"
mark_log
a=$(map_in c-a web vol)
b=$(map_in c-b web vol)
dev=$(map web "$three")
equal "size of a's" "$(blockdev --getsize64 "$a")" $((64 << 20))
equal "size of b's" "$(blockdev --getsize64 "$b")" $((32 << 20))
equal "size of the first's" "$(blockdev --getsize64 "$dev")" $((16 << 20))
equal "sessions on the server" "$(sessions)" "web web.a web.b"
equal "in c-a" "$(see c-a ls /sys/class/rtrs-client)" web
equal "in c-b" "$(see c-b ls /sys/class/rtrs-client)" web
equal "outside" "$(ls /sys/class/rtrs-client)" web
for net in c-a c-b; do
	number=$(netns_number $net)
	equal "paths in $net" "$(see $net ls /sys/class/rtrs-client/web/paths)" "ip:10.9.0.2@ip:10.9.0.1"
	must "$net isn't told from others in the log" grep -q "web\.$number: mapped vol" <(log_since_mark)
done
equal "netns of a's disk" "$(cat "/sys/block/${a#/dev/}/rnbd/netns")" "$(netns_number c-a)"
equal "netns of a's disk, in c-a" "$(see c-a cat "/sys/block/${a#/dev/}/rnbd/netns")" ""
equal "netns of the first's, in c-a" "$(see c-a cat "/sys/block/${dev#/dev/}/rnbd/netns" | wc -w)" 1
equal "session of a's disk" "$(cat "/sys/block/${a#/dev/}/rnbd/session")" web
equal "netns of the first's" "$(cat "/sys/block/${dev#/dev/}/rnbd/netns")" ""
equal "where a listens" "$(cat $conf/tenants/a/netns)" "$(netns_number s-a)"
equal "a's mapping" "$(ls "/sys/class/rnbd-server/ctl/devices/${one#/dev/}/sessions")" web.a
expect_io "0 0" "$a" write:0:4k:a read:0:4k:a
expect_io "0 0" "$b" write:0:4k:b read:0:4k:b
expect_io "0" "$one" read:0:4k:a
expect_io "0" "$two" read:0:4k:b

must "one has ended another's path" eval "! log_since_mark | grep -q 'path ends'"

say "what is another's"
refused_in c-a ENOENT "sessname=web device_path=$two"
refused_in c-a ENOENT "sessname=x $to_server device_path=$two"
refused_in c-a EADDRNOTAVAIL "sessname=x path=$(gid server 0) device_path=vol"
map_fails ENOENT "sessname=x path=$(addr server 0) device_path=vol"
for name in 1a . a.b 'a b' "$(printf 'a%.0s' {1..32})"; do
	must "a tenant '$name'" eval "! mkdir '$conf/tenants/$name' 2>/dev/null"
done
mkdir $conf/tenants/b/hosts/web $conf/tenants/a/volumes/other
must "a link to another's host" \
	eval "! ln -s $conf/tenants/b/hosts/web $conf/tenants/a/volumes/other/hosts/ 2>/dev/null"
rmdir $conf/tenants/a/volumes/other
equal "a listens elsewhere too" "$(in_net s-b bash -c ". $RIG_DIR/lib.sh; errno_of $conf/tenants/a/listen 1")" EBUSY
mkdir $conf/tenants/c
equal "two in one" "$(in_net s-b bash -c ". $RIG_DIR/lib.sh; errno_of $conf/tenants/c/listen 1")" EADDRNOTAVAIL
rmdir $conf/tenants/c
add_key server srv:b Geheim-0123456789
echo srv:b >$conf/tenants/b/hosts/web/keys
wait_for 10 eval "! [ -e /sys/class/rtrs-server/web.b/paths/ip:10.9.0.1@ip:10.9.0.2 ]" ||
	fail "b's client has not proved anything, and has a path"
must "a's has one" [ -e /sys/class/rtrs-server/web.a/paths/ip:10.9.0.1@ip:10.9.0.2 ]
echo >$conf/tenants/b/hosts/web/keys
wait_for 20 test -e /sys/class/rtrs-server/web.b/paths/ip:10.9.0.1@ip:10.9.0.2 ||
	fail "b's client does not come back"
rmdir $conf/tenants/b/hosts/web

say "limits"
mkdir $conf/tenants/a/hosts/web
echo 1 >$conf/tenants/a/hosts/web/max_sessions
equal "usage of a's host" "$(head -n1 $conf/tenants/a/hosts/web/usage)" "sessions 1"
see c-a sh -c 'cd /sys/class/rtrs-client/web/paths/*/ && echo 1 >reconnect'
wait_for 20 grep -q open "/sys/block/${a#/dev/}/rnbd/state" || fail "a's client does not come back"
rmdir $conf/tenants/a/hosts/web

say "saved, cleared and restored"
export RNBD_SERVER_CONF=/tmp/server.conf
"$tool" server host add b/db sessions='db*'
"$tool" server volume set b/vol hosts=db
"$tool" server save
cp /tmp/server.conf /tmp/saved.conf
"$tool" server clear
equal "cleared" "$(ls $conf/tenants)" ""
wait_for 10 eval "[ \"\$(sessions)\" = web ]" || fail "sessions on the server: $(sessions)"
"$tool" server load
"$tool" server save
equal "restored" "$(cat /tmp/server.conf)" "$(cat /tmp/saved.conf)"
equal "where a listens" "$(cat $conf/tenants/a/netns)" "$(netns_number s-a)"
for disk in "$a" "$b"; do
	wait_for 30 grep -q open "/sys/block/${disk#/dev/}/rnbd/state" || fail "$disk doesn't come back"
done
"$tool" server volume set b/vol hosts=
"$tool" server host delete b/db

say "a container"
nsenter --net=/run/netns/c-a unshare --mount bash -ec "
	mount -t tmpfs tmpfs /mnt
	mknod /mnt/vol b $(stat -c '0x%t 0x%T' "$a")
	mkfs.ext4 -q -F /mnt/vol
	mkdir /mnt/d
	mount /mnt/vol /mnt/d
	echo hello >/mnt/d/file
	sync" || fail "the container can't use its disk"

say "the client's namespace goes"
start_bystander "$b"
start_load "$a"
netns_gone c-a
# Once the disk is gone, it has no sectors.
load_fails 10 "EIO|ENOSPC"
wait_for 10 test ! -e "/sys/block/${a#/dev/}" || fail "a's disk is still there"
wait_for 10 eval "[ \"\$(sessions)\" = 'web web.b' ]" || fail "sessions on the server: $(sessions)"
wait_for 20 freed c-a || fail "the namespace is still there"
say "gone in $(($(now) - deleted)) ms"
equal "a listens" "$(cat $conf/tenants/a/listen)" 1

say "the server's namespace goes"
netns_gone s-a
wait_for 10 eval "[ \"\$(cat $conf/tenants/a/listen)\" = 0 ]" || fail "a still listens"
wait_for 20 freed s-a || fail "the namespace is still there"
equal "netns of a" "$(cat $conf/tenants/a/netns)" 0
stop_bystander

say "under load"
cable a
in_net s-a sh -c "echo 1 >$conf/tenants/a/listen"
a=$(map_in c-a web vol)
start_bystander "$b"
see c-a sh -c 'echo 0 >/sys/class/rtrs-client/web/failover_timeout'
start_load "$a"
netns_gone s-a
load_fails 10
wait_for 10 eval "[ \"\$(sessions)\" = 'web web.b' ]" || fail "sessions on the server: $(sessions)"
wait_for 20 freed s-a || fail "the namespace is still there"
unmap "$a" force
netns_gone c-a
wait_for 20 freed c-a || fail "the namespace is still there"
stop_bystander

unmap "$b"
unmap "$dev"
remove_tenant a
remove_tenant b
ip netns del c-b
ip netns del s-b
wait_for 20 freed c-b s-b || fail "b's namespaces are still there"
tear_down
