# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server and a client on a network of two cables: map by both paths, I/O goes round
# them, data arrives; the session's paths are listed on both sides. The network between
# guests neither loses packets nor has them overtake one another, which rdma_rxe wouldn't
# survive.
# Guests: 2
# Time: 120
# Once: stock

up
disk=$(null vol 128)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
equal "paths on the client" "$(ls /sys/class/rtrs-client/s1/paths | wc -l)" 2
equal "paths on the server" "$(on server 'ls /sys/class/rtrs-server/s1/paths | wc -l')" 2
disorder() { on server 'counter out_of_seq_request'; counter out_of_seq_request; }
before=$(disorder)
verify "$dev" "$mixed" --numjobs=4 --size=4m --offset_increment=16m
equal "packets that came too early, on both sides" "$(disorder)" "$before"

# <reads> <read bytes> <writes> <write bytes> ...
total() { cat /sys/class/rtrs-client/s1/paths/*@"$(addr server "$1")"/stats/rdma | awk '{ print $1 + $3 }'; }
a=$(total 0) b=$(total 1)
say "I/Os by path: $a, $b"
must "I/O goes round the paths: $a and $b" [ $((a * 2)) -ge "$b" -a $((b * 2)) -ge "$a" ]
unmap "$dev"
down
