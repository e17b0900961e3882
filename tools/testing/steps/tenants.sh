# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many sessions write 1 MiB at a time, each 16 at once, to a server that has memory for a few
# of these. fair_share SESSIONS MIB SECONDS: with so much memory beyond what the idle sessions
# take. Each writes its own disk of 16 MiB over and over, and reads it back in the end. Meanwhile
# memory_used stays below max_memory. At the end of the time all have been given about as much.

module=/sys/module/rtrs_server/parameters

# Buffers are counted by each CPU, which may be off by 256 KiB.
slack=$((1 << 20))

# written: MiB that the server has written for each session so far, and its name, in order
written()
{
	on server 'cd /sys/class/rtrs-server
		for s in t*; do echo "$(cat "$s"/paths/*/stats/rdma) $s"; done' |
		awk '{ printf "%d %s\n", $4 / 2 ^ 20 - $5, $NF }' | sort -n
}

# tenants OPTION...: all of them, as threads of one fio
tenants()
{
	local i args=()
	for ((i = 0; i < sessions; i++)); do
		args+=("--name=t$i" "--filename=${devs[i]}")
	done
	fio --thread --direct=1 --ioengine=libaio --iodepth=16 --bs=1m --size=16m --verify=crc32c \
		--verify_fatal=1 --serialize_overlap=1 "$@" "${args[@]}" >/tmp/tenants.out 2>&1 ||
		fail "fio: $(grep -iE 'err=|error|verify' /tmp/tenants.out | head -n 20)"
}

# shellcheck disable=SC2154
fair_share()
{
	local sessions=$1 mib=$2 seconds=$3 devs=() disks=() i from charged max low high most

	for ((i = 0; i < sessions; i++)); do
		disks[i]=$(null "v$i" 16)
	done
	from=$SECONDS
	for ((i = 0; i < sessions; i++)); do
		devs[i]=$(map "t$i" "${disks[i]}" nr_queues=1)
	done
	charged=$(on server "cat $module/memory_used")
	max=$(((charged >> 20) + 1 + mib))
	on server "echo $max >$module/max_memory
		while [ ! -e /tmp/enough ]; do cat $module/memory_used; pause 0.1; done >/tmp/used 9>&- 2>&1 &"
	say "$sessions sessions mapped in $((SECONDS - from)) s take $((charged >> 10)) KiB; max_memory=$max"
	tenants --rw=write --do_verify=0 --time_based --runtime="$(slowly "$seconds")" &
	fio=$!
	wait $fio || fail "$(cat /tmp/tenants.out)"
	written >/tmp/after
	read -r low _ < <(head -n 1 /tmp/after)
	read -r high _ < <(tail -n 1 /tmp/after)
	say "written: from $low to $high MiB; slowest requests: from" \
		"$(grep -oE 'clat \(([a-z]+)\): .*max=[^,]*' /tmp/tenants.out | sed 's/.*(\(.*\)):.*max=/\1 /' | sort -k1,1 -k2,2n | sed -n '1p;$p' | xargs)"
	# Who has least is next, so each gets as much; some begin a little earlier than others.
	[ "$high" -le $((low * 3 / 2 + 8)) ] || fail "unfair: $(xargs </tmp/after)"
	tenants --rw=read
	on server 'touch /tmp/enough; wait_for 10 eval "! pgrep -f memory_used"' || :
	most=$(on server 'sort -n /tmp/used | tail -n 1; rm -f /tmp/used /tmp/enough')
	say "memory_used: $((most >> 10)) KiB at most of $((max << 10))"
	must "$most bytes used" [ "$most" -le $(((max << 20) + slack)) ]
	must "memory was not short" [ "$most" -gt $(((max << 20) - (mib << 20) * 2 / 3)) ]
	for ((i = 0; i < sessions; i++)); do
		unmap "${devs[i]}"
	done
}
