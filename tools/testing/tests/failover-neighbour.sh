# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# While the only path is down, the client's neighbour table has a wrong hardware address for the
# server, and is right again soon after the first try has begun. That try never gets an answer. It is
# given up after some seconds, and the next one finds the server: requests wait for less than the
# default failover_timeout.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

# try_begins: true if the path is being connected with the wrong address
try_begins() { grep -q 'waiting -> connecting' /sys/kernel/debug/tracing/trace; }

up
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)")
soon
gives 0 "$dev" write:0:4k:a
states=/sys/kernel/debug/tracing/events/rtrs_clt/rtrs_clt_path_state
server=$(addr server 0)
server=${server#ip:}
echo >/sys/kernel/debug/tracing/trace
echo 1 >$states/enable
ip neigh replace "$server" lladdr 02:00:00:00:77:77 dev eth0 nud permanent
become disconnected 20 "$(path 0)"
start_io "$dev" write:0:4k:b
wait_for 20 try_begins || fail "it isn't tried again"
pause 1
ip neigh del "$server" dev eth0
began=$(now)
end_io 60 0
took=$(($(now) - began))
echo 0 >$states/enable
say "the write was done $took ms after that"
must "it took $took ms" [ $took -lt $(($(slowly 15) * 1000)) ]
gives 0 "$dev" read:0:4k:b
unmap "$dev"
down
