# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Session attributes in map_device: they are set while the disk's first I/O is in flight; a second
# device changes them, like a write to the attributes; a mapping that fails, or an invalid line,
# changes nothing.
# Modules: ours
# Once: stock
# Quick: stock

clt=/sys/class/rtrs-client/s1

# settings: prints the attributes of the session
settings()
{
	local f
	for f in failover_timeout hb_interval_ms hb_max_missed max_reconnect_attempts mp_policy \
		reconnect_delay_max_ms reconnect_delay_ms unfenced_delay_ms; do
		sed "s/^/$f=/; s/ (.*//" $clt/$f
	done
}

all="failover_timeout=77 hb_interval_ms=1234 hb_max_missed=7 max_reconnect_attempts=9
	mp_policy=round-robin reconnect_delay_max_ms=4321 reconnect_delay_ms=321 unfenced_delay_ms=21"
# shellcheck disable=SC2086
want=$(printf '%s\n' $all)

set_up
null=$(null vol 16)
slow=$(dm slow "0 32768 linear $null 0")
other=$(null other 16)

# The search for partitions waits for the server's disk.
on server "dmsetup suspend --noudevsync slow"
# shellcheck disable=SC2086
map s1 "$slow" $all >/tmp/mapped &
mapper=$!
wait_for 30 eval 'has_inflight rnbd0 reads 2>/dev/null' || fail "nothing is read: $(cat /tmp/mapped)"
equal "settings at the first I/O" "$(settings)" "$want"
on server "dmsetup resume --noudevsync slow"
wait $mapper || fail "the device was not mapped"
dev=$(cat /tmp/mapped)

map_fails ENOENT "sessname=s1 device_path=/dev/absent hb_max_missed=8"
map_fails EINVAL "sessname=s1 device_path=$other hb_max_missed=8 hb_interval_ms=1"
map_fails EINVAL "sessname=s1 path=$(addr server 1) device_path=$other hb_max_missed=8"
equal "settings after lines that were refused" "$(settings)" "$want"

dev2=$(map s1 "$other" failover_timeout=-1 mp_policy=ML)
equal "settings that a second device has changed" "$(settings)" \
	"$(sed 's/^failover_timeout=.*/failover_timeout=-1/; s/round-robin/min-latency/' <<<"$want")"

unmap "$dev"
unmap "$dev2"
dev=$(map s1 "$other")
must "settings outlive their session" grep -qx 5000 $clt/hb_interval_ms
tear_down "$dev"
