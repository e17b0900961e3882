# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A session over two RDMA devices in one guest: I/O goes round them. And one of eight
# paths, which are all used.
# Modules: ours
# Time: 90
# Once: stock

ios_of() { awk '{ print $1 + $3 }' "$1/stats/rdma"; }

up sess_queue_depth=64
disk=$(null vol 64)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
equal devices "$(cat /sys/class/rtrs-client/s1/paths/*/hca_name | sort | xargs)" "rxe0 rxe1"
verify "$dev" "$mixed" --numjobs=2 --size=4m --offset_increment=16m
unmap "$dev"
client_idle

options=()
for i in 1 2 3 4; do
	for net in 0 1; do
		ip addr add "192.168.$((100 + net)).$((10 + i))/24" dev "dummy$net"
		options+=("path=ip:192.168.$((100 + net)).$((10 + i))")
	done
done
dev=$(map s1 "$disk" "${options[@]}")
equal paths "$(ls /sys/class/rtrs-client/s1/paths | wc -l)" 8
equal "paths on the server" "$(on server 'ls /sys/class/rtrs-server/s1/paths | wc -l')" 8
verify "$dev" "$mixed" --numjobs=2 --size=4m --offset_increment=16m
for path in /sys/class/rtrs-client/s1/paths/*; do
	say "${path##*/}: $(ios_of "$path") I/Os"
	must "${path##*/} is used" [ "$(ios_of "$path")" -gt 20 ]
done
unmap "$dev"
client_idle
for i in 1 2 3 4; do
	for net in 0 1; do
		ip addr del "192.168.$((100 + net)).$((10 + i))/24" dev "dummy$net"
	done
done
down
