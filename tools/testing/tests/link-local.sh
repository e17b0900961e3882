# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The same IPv6 link-local addresses on two links are two paths with different scopes. I/O continues
# when one link is cut. A path can be removed, and added again by its name in sysfs, by the
# interface's name, and by `rnbd path readd`.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"
. "$RIG_DIR/steps/tool.sh"
set_up
for net in 0 1; do
	ip addr add fe80::2/64 dev "eth$net" nodad
	on server "ip addr add fe80::1/64 dev eth$net nodad"
done

# between NET: prints the name of the path over this network, as sysfs has it
between()
{
	local scope
	scope=$(<"/sys/class/net/eth$1/ifindex")
	echo "ip:fe80::2%$scope@ip:fe80::1%$scope"
}
paths=$clt/s1/paths
zero=$paths/$(between 0) one=$paths/$(between 1)

dev=$(map s1 "$(null vol 32)" path=ip:fe80::2%eth0,ip:fe80::1%eth0 "path=$(between 1)")
equal paths "$(cd "$paths" && echo *)" "$(printf '%s\n' "$(between 0)" "$(between 1)" | sort | xargs)"
equal devices "$(cat "$zero/hca_name" "$one/hca_name" | xargs)" "${rdma}0 ${rdma}1"
equal "src_addr, dst_addr" "$(cat "$zero/src_addr" "$zero/dst_addr" | xargs)" "$(between 0 | tr @ ' ')"
must "the server hasn't two paths: $(server_paths s1)" server_has_paths s1 2
for path in ip:fe80::1%eth0 ip:fe80::2,ip:fe80::1%eth0 "$(between 0)"; do
	equal "the path again, $path" "$(errno_of "$clt/s1/add_path" "$path")" EEXIST
done
equal "no such interface" "$(errno_of "$clt/s1/add_path" ip:fe80::1%nosuchdev)" EINVAL

fast_failover
writer raw "$dev"
for net in 0 1; do
	set_link server $net silent
	goes_on "$dev"
	set_link server $net on
	wait_for_paths connected 40 "$zero" "$one"
done

echo 1 >"$zero/remove_path"
equal "the other one" "$(cd "$paths" && echo *)" "$(between 1)"
between 0 >"$clt/s1/add_path"
equal state "$(<"$zero/state")" connected
says 0 '' client path readd s1 fe80::1%eth1
equal state "$(<"$one/state")" connected
must "the server hasn't two paths: $(server_paths s1)" server_has_paths s1 2
goes_on "$dev"
writers_unharmed
unmap_last "$dev"
for net in 0 1; do
	ip addr del fe80::2/64 dev "eth$net"
	on server "ip addr del fe80::1/64 dev eth$net"
done
tear_down
