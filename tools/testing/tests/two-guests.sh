# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server and a client with two networks: a device is mapped over both, I/O is distributed, data
# are right, and both sides list the paths. The network between guests neither loses nor reorders
# packets, which rdma_rxe does not survive.
# Guests: 2
# Once: stock

. "$RIG_DIR/steps/failover.sh"
set_up
disk=$(null vol 128)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
equal "paths on the client" "$(ls /sys/class/rtrs-client/s1/paths | wc -l)" 2
equal "paths on the server" "$(server_paths s1 | wc -w)" 2
disorder() { on server 'counter out_of_seq_request'; counter out_of_seq_request; }
before=$(disorder)
verify "$dev" "$mixed" --numjobs=4 --size=4m --offset_increment=16m
equal "packets that came too early, on both sides" "$(disorder)" "$before"

a=$(path_ios "$(path 0)") b=$(path_ios "$(path 1)")
say "I/Os by path: $a, $b"
must "I/O goes round the paths: $a and $b" [ $((a * 2)) -ge "$b" -a $((b * 2)) -ge "$a" ]
tear_down "$dev"
