# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A process waits for a session whose first connect, by another process, is to a server that does
# not exist. When the other process is killed, the waiting one continues. Only the stock kernel, as
# the other one has no /proc/*/stack.
# Kernel: stock
# Once: stock
# Modules: ours

# start_map TEXT: maps in the background; sets $mapper to the process
start_map()
{
	echo "$1" >"$ctl/map_device" 2>/dev/null &
	mapper=$!
}

in_write() { grep -q rtrs_clt "/proc/$1/stack"; }
waits() { grep -q rnbd_clt_sess_get "/proc/$1/stack"; }

set_up
disk=$(null vol 16)
start_map "sessname=s1 path=ip:192.168.100.77 device_path=$disk"
first=$mapper
wait_for 20 in_write "$first" || fail "nobody connects: $(cat /proc/"$first"/stack)"
start_map "sessname=s1 path=$(addr server 0) device_path=$disk"
second=$mapper
wait_for 20 waits "$second" || fail "it doesn't wait: $(cat /proc/"$second"/stack)"
kill -KILL "$first"
wait_for 30 ended "$second" || fail "it still waits"
wait "$second" || fail "it failed as well"
dev=/dev/$(mapped s1 "$disk")
expect_io 0 "$dev" write:0:4k:x
tear_down "$dev"
