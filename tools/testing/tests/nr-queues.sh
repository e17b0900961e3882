# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# nr_queues of map_device: each path of the session has as many connections for I/O, and one for
# service, at both ends, and the disk as many queues. By default it is one for each CPU. A later
# device may name the number that the session has, or none.
# Cpus: 2
# Modules: ours

clt=/sys/class/rtrs-client/s1

# connected_qps: prints the number of connected queue pairs; the RDMA core has some of its own
connected_qps() { rdma resource show qp | grep -c 'state RTS'; }

# has_queues DEVICE N: fails unless the device and its session have so many queues
has_queues()
{
	local disk=${1#/dev/}
	equal "nr_queues of the session" "$(cat $clt/nr_queues)" "$2"
	# shellcheck disable=SC2012
	equal "queues of the disk" "$(ls "/sys/block/$disk/mq" | wc -l)" "$2"
}

set_up
disk=$(null vol 16)
other=$(null other 16)
cpus=$(nproc)
idle=$(connected_qps)

dev=$(map s1 "$disk")
has_queues "$dev" "$cpus"
expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
all=$(($(connected_qps) - idle))
unmap "$dev"
client_idle

dev=$(map s1 "$disk" nr_queues=1)
has_queues "$dev" 1
expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
few=$(($(connected_qps) - idle))
# Client and server may be the same machine.
[ $((few * (cpus + 1))) = $((all * 2)) ] ||
	fail "queue pairs: $few with one queue, $all with $cpus"

mark_log
map_fails EINVAL "sessname=s1 device_path=$other nr_queues=2"
must "the log tells why" grep -q 'nr_queues=1, not 2' <(log_since_mark)
equal "nr_queues after that" "$(cat $clt/nr_queues)" 1
map_fails EINVAL "sessname=s1 device_path=$other nr_queues=0"
map_fails EINVAL "sessname=s1 device_path=$other nr_queues=$((cpus + 1))"
dev2=$(map s1 "$other" nopath nr_queues=1)
has_queues "$dev2" 1
unmap "$dev2"
dev2=$(map s1 "$other" nopath)
has_queues "$dev2" 1
# Another path has as many.
addr server 1 >$clt/add_path
equal "queue pairs of two paths" $(($(connected_qps) - idle)) $((2 * few))
expect_io "0 0" "$dev2" write:0:4k:x read:0:4k:x
tear_down "$dev2" "$dev"
