# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A session over two RDMA devices in one guest distributes its I/O. A session of eight paths, all of
# which are used. A session of 128 paths, and no more.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

set_up sess_queue_depth=64
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
equal "paths on the server" "$(server_paths s1 | wc -w)" 8
verify "$dev" "$mixed" --numjobs=2 --size=4m --offset_increment=16m
for path in /sys/class/rtrs-client/s1/paths/*; do
	say "${path##*/}: $(path_ios "$path") I/Os"
	must "${path##*/} is used" [ "$(path_ios "$path")" -gt 20 ]
done
unmap_last "$dev"
on server 'rmmod rnbd_server rtrs_server'
load_server sess_queue_depth=2 max_chunk_size=8192
# Each source to each destination of a network: 2 * 5 * 13
for i in 5 6 7 8 9 10 11 12; do
	for net in 0 1; do
		ip addr add "192.168.$((100 + net)).$((10 + i))/24" dev "dummy$net"
	done
done
dev=$(map s1 "$disk")
n=1
for i in {0..4}; do
	for src in {0..12}; do
		for net in 0 1; do
			# The first one is there.
			if [ $n = 128 ] || [ "$i$src$net" = 000 ]; then
				continue
			fi
			a=192.168.$((100 + net))
			got=$(errno_of /sys/class/rtrs-client/s1/add_path \
				"ip:$a.$((src ? 10 + src : 1)),ip:$a.$((i ? 10 + i : 1))")
			equal "path $n" "$got" 0
			n=$((n + 1))
		done
	done
done
equal paths "$(ls /sys/class/rtrs-client/s1/paths | wc -l)" 128
equal "paths on the server" "$(server_paths s1 | wc -w)" 128
mark_log
equal "one more" "$(errno_of /sys/class/rtrs-client/s1/add_path \
	"ip:192.168.101.22,ip:192.168.101.14")" EMFILE
must "the log says why" grep -q "there are 128 paths" <(log_since_mark)
verify "$dev" --bs=4k --size=1m
unmap_last "$dev"
for i in 5 6 7 8 9 10 11 12; do
	for net in 0 1; do
		ip addr del "192.168.$((100 + net)).$((10 + i))/24" dev "dummy$net"
	done
done
for i in 1 2 3 4; do
	for net in 0 1; do
		ip addr del "192.168.$((100 + net)).$((10 + i))/24" dev "dummy$net"
	done
done
tear_down
