# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# One fetch at a time over a port (max_fetch). Large writes of two sessions of this host and of one
# of the server's own continue with correct data: while paths are lost during a fetch, while the
# limit changes, and while this host can't be reached. Small writes are not delayed for long. Too
# slow to run for each change.
# Modules: ours
# Guests: 2
# Rota: stock

. "$RIG_DIR/steps/failover.sh"

# set_max_fetch KIB: sets the limit of data fetched at a time over a port
set_max_fetch() { on server "echo $1 >/sys/module/rtrs_server/parameters/max_fetch"; }

# large_go_on SECONDS NAME...: each of these has done more large writes than it has at once. The
# one named own is the server's. Between writes they read back what they wrote.
writes() { if [ "$1" = own ]; then on server 'ios $(cat /tmp/own.dev) writes'; else ios "${!1}" writes; fi; }
large_go_on()
{
	local seconds=$1 name before
	shift
	for name in "$@"; do
		before=$(writes "$name")
		wait_for "$seconds" eval "[ \$(writes $name) -gt $((before + 4)) ]" ||
			fail "$name stands still after $(writes "$name") writes; $(show_paths)"
	done
}

large=(--bs=512k --blocks=8)
set_up max_fetch=128
for s in a b; do
	declare "$s=$(map $s "$(null $s 16)")"
	session=$s set_attrs reconnect_delay_ms=200 reconnect_delay_max_ms=1000 failover_timeout=-1
done
small=$(map small "$(null small 16)")
disk=$(null own 16)
on server "load_client; map own $disk >/tmp/own.dev"
start_bystander "$small"
for s in a b; do
	writer $s "${!s}" "${large[@]}"
done
on server ". $RIG_DIR/steps/failover.sh
	writer own \$(cat /tmp/own.dev) ${large[*]}"

large_go_on 20 a b own
for kib in 1 0 128; do
	set_max_fetch $kib
	large_go_on 20 a b own
done
for _ in 1 2; do
	echo 1 >"$(path 0 a)/disconnect"
	large_go_on 20 b own
	echo 1 >"$(path 0 a)/reconnect"
	large_go_on 20 a
done
say "nothing comes from here any more"
set_link client 0 silent
# The server gives up the fetch after 250 ms; its device retries for 15 s.
large_go_on 5 own
set_link client 0 on
large_go_on 30 a b own
goes_on "$small"
stop_bystander
writers_unharmed
on server '. $RIG_DIR/steps/failover.sh
	writers_unharmed
	unmap $(cat /tmp/own.dev)
	client_idle'
for dev in "$a" "$b" "$small"; do
	unmap "$dev"
done
tear_down
on server 'rmmod rnbd_client rtrs_client'
