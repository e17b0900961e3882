# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# One piece is fetched at a time over a port (max_fetch). The large writes of two sessions of
# this host and of one of the server's own, all over one port, go on, and are what they should
# be: while paths die with one being fetched, while the limit changes, and while this host can't
# be reached, and its piece is as if on its way. Small writes beside them don't wait for long.
# Modules: ours
# Guests: 2
# Kernel: debug
# Time: 150

. "$RIG_DIR/steps/failover.sh"

limit() { on server "echo $1 >/sys/module/rtrs_server/parameters/max_fetch"; }

# own_writes: how many the server's own session has written
own_writes() { on server "ios \$(cat /tmp/own.dev) writes"; }
own_goes_on()
{
	local before
	before=$(own_writes)
	wait_for "$1" eval "[ \$(own_writes) -gt $((before + 10)) ]" ||
		fail "the server's own session stands still: $(own_writes)"
}

large=(--bs=1m --iodepth=8 --size=16m)
up max_fetch=128
for s in a b; do
	# shellcheck disable=SC2034
	session=$s
	declare "$s=$(map $s "$(null $s 16)")"
	soon
done
small=$(map small "$(null small 16)")
disk=$(null own 16)
on server "load_client; map own $disk >/tmp/own.dev"
bystander "$small"
# shellcheck disable=SC2154
writer a "$a" "${large[@]}"
# shellcheck disable=SC2154
writer b "$b" "${large[@]}"
on server ". $RIG_DIR/steps/failover.sh
	writer own \$(cat /tmp/own.dev) ${large[*]} 9>&-
	echo \${writers[own]} >/tmp/own.pid"
all_go_on() { goes_on "$a"; goes_on "$b"; goes_on "$small"; own_goes_on 20; }

all_go_on
for kib in 1 4096 0 128; do
	limit $kib
	all_go_on
done
for _ in 1 2 3; do
	echo 1 >"$(path 0 a)/disconnect"
	goes_on "$b"
	own_goes_on 20
	echo 1 >"$(path 0 a)/reconnect"
	goes_on "$a"
done
say "nothing comes from here any more"
link client 0 silent
# Not before its piece has been given up, after 250 ms; its device would try for 15 s.
own_goes_on 5
link client 0 on
all_go_on
bystander_unharmed
writers_unharmed
on server 'kill -INT $(cat /tmp/own.pid)
	wait_for 60 ended $(cat /tmp/own.pid) || fail "its own writer does not end"
	grep -q "err= 0" /tmp/own.out || fail "$(cat /tmp/own.out)"
	unmap $(cat /tmp/own.dev)
	client_idle'
for dev in "$a" "$b" "$small"; do
	unmap "$dev"
done
down
on server 'rmmod rnbd_client rtrs_client'
