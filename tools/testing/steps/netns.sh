# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Network namespaces in one guest: one for a tenant's server and one for its client, with a veth
# pair between them. All tenants have the same addresses.

# shellcheck disable=SC2034
to_server=path=ip:10.9.0.1

# in_net NETNS COMMAND...: runs the command in the namespace, with the initial sysfs and configfs
in_net()
{
	local net=$1
	shift
	nsenter --net="/run/netns/$net" -- "$@"
}

# see NETNS COMMAND...: runs the command in the namespace, with its own sysfs
see() { ip netns exec "$@"; }

# cable TENANT: makes the namespaces s-TENANT and c-TENANT, with 10.9.0.1 and 10.9.0.2
cable()
{
	local side n=1

	ip netns add "s-$1"
	ip netns add "c-$1"
	ip link add "s-$1" netns "s-$1" type veth peer "c-$1" netns "c-$1"
	for side in "s-$1" "c-$1"; do
		in_net "$side" ip link set "$side" mtu 9000 up
		in_net "$side" ip link set lo up
		in_net "$side" ip addr add 10.9.0.$n/24 dev "$side"
		in_net "$side" rdma link add "$side" type rxe netdev "$side"
		n=$((n + 1))
	done
}

# add_tenant NAME DISK: adds a tenant with one volume, vol, for any host
add_tenant()
{
	mkdir "$conf/tenants/$1" "$conf/tenants/$1/volumes/vol"
	echo "$2" >"$conf/tenants/$1/volumes/vol/path"
	echo 1 >"$conf/tenants/$1/volumes/vol/allow_any_host"
	echo 1 >"$conf/tenants/$1/volumes/vol/enable"
	in_net "s-$1" sh -c "echo 1 >$conf/tenants/$1/listen"
}

# remove_tenant NAME: removes it again
remove_tenant()
{
	rmdir "$conf/tenants/$1"/volumes/* "$conf/tenants/$1"
}

# netns_number NETNS: prints the inode number of the namespace, as lsns does
netns_number() { stat -L -c %i "/run/netns/$1"; }

# map_in NETNS SESSION DEVICE [OPTION...]: maps a device in the namespace; prints the block device
map_in()
{
	local net=$1 session=$2 device=$3
	shift 3
	in_net "$net" sh -c "echo 'sessname=$session $to_server device_path=$device $*' >$ctl/map_device"
	echo "/dev/$(mapped "$session.$(netns_number "$net")" "$device")"
}

# refused_in NETNS ERRNO LINE: fails unless map_device in the namespace gives this errno
refused_in()
{
	local got
	got=$(in_net "$1" bash -c ". $RIG_DIR/lib.sh; errno_of $ctl/map_device '$3'")
	equal "'$3' in $1" "$got" "$2"
}
