# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Hosts have addresses. The first path of a session determines to which hosts it belongs; another
# path must match the same ones. Addresses are taken out under load: just the path that doesn't
# match any more ends, whether it was the first one or not, and the load goes on; or the first
# request after that fails. Files are exported as volumes, or where a parameter says so; a file
# of an overlayfs is the same as that of its layer. And while the server doesn't listen, nobody
# connects.
# Modules: ours

. "$RIG_DIR/steps/rules.sh"

# addresses add|del: those of two clients
addresses()
{
	local a

	for a in 100.11/0 100.12/0 101.11/1; do
		ip addr "$1" "192.168.${a%/*}/24" dev "$(netdev "${a#*/}")"
	done
}

for net in 0 1; do
	server[net]=$(addr server $net)
done
set_up sess_queue_depth=32 export_files=N
near=ip:192.168.100.11 near1=ip:192.168.101.11 far=ip:192.168.100.12
addresses add
path=$near,${server[0]} path1=$near1,${server[1]} alien=$far,${server[0]}
disk=$(null one 64)
other=$(null two 64)
third=$(null three 64)

say "wrong addresses"
on server "mkdir $conf/hosts/web"
for wrong in 192.168.0.1 ip:1.2.3 ip:1.2.3.4/33 gid:::/129 "ip:1.2.3.4 x"; do
	rule_gives EINVAL hosts/web/addresses "$wrong"
done
rule_gives E2BIG hosts/web/addresses "$(printf 'ip:10.0.0.%d ' {1..65})"
equal "nothing was set" "$(on server "cat $conf/hosts/web/addresses")" ""
rule_gives 0 hosts/web/addresses "$(printf 'gid:fe80::%x/127 ' {1..64})"
equal "as many as there may be" "$(on server "wc -l <$conf/hosts/web/addresses")" 64
rule hosts/web/addresses " $near	 ip:192.168.101.7/24"
equal "they are shown" "$(on server "xargs <$conf/hosts/web/addresses")" \
	"$near/32 ip:192.168.101.7/24"

say "from where"
rule policy listed
volume v "$disk"
volume any "$other"
rule volumes/any/allow_any_host 1
on server "ln -s $conf/hosts/web $conf/volumes/v/hosts/"
map_fails ENOENT "sessname=web path=$alien device_path=v"
map_fails ENOENT "sessname=db path=$path device_path=v"
start_bystander "$(map db any "path=$alien")"
dev=$(map web v "path=$path" "path=$path1")
# Paths by their names on the server
one=${server[0]}@$near both="${server[0]}@$near ${server[1]}@$near1"
must "two paths" server_paths_are web "$both"
equal "one more, from elsewhere" "$(errno_of /sys/class/rtrs-client/web/add_path "$alien")" EACCES
must "the log names the host" on server "dmesg | grep -q 'web: refused a path: host web matches only'"
start_load "$dev"
must "two paths, after that" server_paths_are web "$both"

say "taken out under load"
rule_ends web "${server[1]}@$near1" hosts/web/addresses "$near"
must "one path is gone" wait_for 20 server_paths_are web "$one"
stop_load
start_load "$dev"
rule hosts/web/addresses "$near ip:192.168.101.0/24"
must "it is back" wait_for 60 server_paths_are web "$both"
stop_load
start_load "$dev"

say "the first path's address is taken out under load"
rule_ends web "$one" hosts/web/addresses "$near1"
must "the other path is left" wait_for 20 server_paths_are web "${server[1]}@$near1"
stop_load
start_load "$dev"
rule hosts/web/addresses "$near $near1"
must "it is back" wait_for 60 server_paths_are web "$both"
stop_load
start_load "$dev"

say "one more host, which matches one path only"
on server "mkdir $conf/hosts/second; echo 'x*' >$conf/hosts/second/sessions
	echo $near1 >$conf/hosts/second/addresses"
rule_ends web "$one" hosts/second/sessions 'w*'
stop_load
start_load "$dev"
equal "the path" "$(errno_of /sys/class/rtrs-client/web/add_path "$alien")" EACCES
on server "rmdir $conf/hosts/second"
must "it is back" wait_for 60 server_paths_are web "$both"
stop_load
start_load "$dev"

say "no path matches the host any more"
# No path is any better than the others, so they stay.
rule_ends web "" hosts/web/addresses "$far"
expect_io EIO "$dev" read:0:4k
load_fails 20
equal "state" "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" closed
equal "remap_device" "$(errno_of "/sys/block/${dev#/dev/}/rnbd/remap_device" 1)" ENOENT
rule hosts/web/addresses ""
echo 1 >"/sys/block/${dev#/dev/}/rnbd/remap_device"
expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
unmap "$dev"
must "the session is gone" wait_for 20 server_paths_are web

say "a path from elsewhere comes first"
rule hosts/web/addresses "$near"
volume third "$third"
rule volumes/third/allow_any_host 1
dev=$(map web third "path=$alien")
equal "a path of the host" "$(errno_of /sys/class/rtrs-client/web/add_path "$path")" EACCES
must "one path" server_paths_are web "${server[0]}@$far"
map_fails ENOENT "sessname=web device_path=v"
# The session belongs to the host when its address does, without another path.
rule_ends web "" hosts/web/addresses "$far"
unmap "$(map web v nopath)"
rule_ends web "" hosts/web/addresses "$near $far"
equal "a path of the host" "$(errno_of /sys/class/rtrs-client/web/add_path "$path")" 0
must "two paths" server_paths_are web "$one ${server[0]}@$far"
start_load "$dev"
map web v nopath >/dev/null
rule_ends web "${server[0]}@$far" hosts/web/addresses "$near"
must "the other path is gone" wait_for 20 server_paths_are web "$one"
stop_load
say "the host is deleted"
start_load "/dev/$(mapped web v)"
on server "rm $conf/volumes/v/hosts/web; rmdir $conf/hosts/web"
expect_io EIO "/dev/$(mapped web v)" read:0:4k
load_fails 20
unmap "/dev/$(mapped web v)"
unmap "$dev"
stop_bystander
unmap "/dev/$(mapped db any)"
on server "rmdir $conf/volumes/v"

say "files"
on server "mkdir -p /srv/low /srv/up /srv/work /srv/all; mount -t tmpfs none /srv/up
	mkdir /srv/up/up /srv/up/work /srv/up/low; truncate -s 8M /srv/up/low/file /srv/up/up/old
	mount -t overlay -o lowerdir=/srv/up/low,upperdir=/srv/up/up,workdir=/srv/up/work none /srv/all"
rule policy open
map_fails ENOTBLK "sessname=s path=${server[0]} device_path=/srv/up/up/old"
map_fails ENOTBLK "sessname=s path=${server[0]} device_path=/srv/all/old"
volume low /srv/up/up/old
volume all /srv/all/old
volume file /srv/all/file
volume upper /srv/up/up/file
for v in low all file upper; do rule "volumes/$v/allow_any_host" 1; done
dev=$(map s low)
map_fails EBUSY "sessname=s path=${server[0]} device_path=all"
map_fails EBUSY "sessname=t path=${server[0]} device_path=all"
unmap "$dev"
dev=$(map s all)
expect_io "0 0" "$dev" write:0:4k:z read:0:4k:z
map_fails EBUSY "sessname=t path=${server[0]} device_path=low"
unmap "$dev"
# It is copied up by being opened for writing. Nothing is read from where it was open before that:
# with Linux 6.1, overlayfs would keep a reference for each such read.
dev2=$(map t file access_mode=ro)
dev=$(map s file)
map_fails EBUSY "sessname=u path=${server[0]} device_path=file"
map_fails EBUSY "sessname=u path=${server[0]} device_path=upper"
expect_io "0 0" "$dev" write:0:4k:z read:0:4k:z
unmap_last "$dev2" "$dev"

say "listening"
dev=$(map s any)
start_bystander "$dev"
must "it has begun" wait_for 20 eval "[ \$(ios $dev writes) -gt 20 ]"
on server "errno_of $conf/listen x" | grep -qx EINVAL
rule listen 0
equal "it doesn't listen" "$(on server "cat $conf/listen")" 0
must "no session" on server 'no_sessions server'
map_fails ECONNREFUSED "sessname=t path=${server[0]} device_path=any"
rule listen 0
rule listen 1
rule listen 1
equal "it listens" "$(on server "cat $conf/listen")" 1
must "the path is back" wait_for 60 server_paths_are s "${server[0]}@${server[0]}"
stop_bystander
unmap "$dev"
on server "umount /srv/all /srv/up; rmdir $conf/volumes/*"
tear_down
unload
load_server listen=N
load_client
equal "it doesn't listen from the beginning" "$(on server "cat $conf/listen")" 0
map_fails ECONNREFUSED "sessname=t path=${server[0]} device_path=$disk"
rule listen 1
dev=$(map t "$(null last 64)")
tear_down "$dev"
addresses del
