# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Many sessions write 1 MiB at a time, each 16 at once, to a server that has memory for a few of
# these. fair_share SESSIONS MIB: with so much memory beyond what the idle sessions take. Half of it
# is set aside in shares, which are too small for such requests: the other half is for all. Each
# writes 20 MiB to its own 16 MiB of a disk, and reads that back in the end. A write takes the disk
# a second for 8 sessions, so that it's memory that is short, and not the network. It is given out
# when all have asked: until then there is only each session's reserve, and the disk below stands
# still. Meanwhile memory_used stays below max_memory by what is set aside. While all still write,
# all have been given about as much.

module=/sys/module/rtrs_server/parameters stats=/sys/devices/rtrs_server/stats

# Two CPUs may take the last MiB at the same time; and there are small requests.
slack=$((2 << 20))

# written: MiB that the server has written for each session so far, and its name, in order. One
# program reads them all, as time passes between two.
written()
{
	on server "cd /sys/class/rtrs-server && grep '' t*/paths/*/stats/rdma" |
		awk '{ split($1, path, "/"); printf "%d %s\n", $4 / 2 ^ 20 - $5, path[1] }' | sort -n
}

# written_most MIB: true if the server has written that much for one session
written_most()
{
	local most

	written >/tmp/written
	read -r most _ < <(tail -n 1 /tmp/written)
	[ "$most" -ge "$1" ]
}

# all_ask: true if each session has 16 requests in flight
all_ask()
{
	[ "$(awk '$2 >= 16' /sys/block/rnbd*/inflight | wc -l)" = "$sessions" ]
}

# or_over COMMAND: true if the command is true, or fio has ended
or_over() { "$@" || ended "$fio"; }

# tenants OPTION...: runs the I/O of all sessions, as threads of one fio
tenants()
{
	local i args=()
	for ((i = 0; i < sessions; i++)); do
		args+=("--name=t$i" "--filename=${devs[i]}" "--verify_pattern=\"t$i \"%o")
	done
	fio --thread --direct=1 --ioengine=libaio --iodepth=16 --bs=1m --size=16m --verify=pattern \
		--verify_fatal=1 --serialize_overlap=1 "$@" "${args[@]}" >/tmp/tenants.out 2>&1 ||
		fail "fio: $(grep -iE 'err=|error|verify' /tmp/tenants.out | head -n 20)"
}

# shellcheck disable=SC2154
fair_share()
{
	local sessions=$1 mib=$2 devs=() disks=() size=$((16 << 11)) gate part i from charged waits max low high most again

	gate=$(dm gate "0 $((sessions * size)) linear $(null all $((sessions * 16))) 0")
	for ((i = 0; i < sessions; i++)); do
		part="$gate $((i * size))"
		disks[i]=$(dm "slow$i" "0 $size delay $part 0 $part $((sessions * 125))")
	done
	from=$SECONDS
	for ((i = 0; i < sessions; i++)); do
		devs[i]=$(map "t$i" "${disks[i]}" nr_queues=1)
	done
	charged=$(on server "cat $stats/memory_used")
	max=$(((charged >> 20) + 1 + mib))
	on server "echo $((max - mib)) >$module/max_memory
		dm_suspend_here gate
		while [ ! -e /tmp/enough ]; do cat $stats/memory_used; pause 0.1; done >/tmp/used 9>&- 2>&1 &"
	say "$sessions sessions mapped in $((SECONDS - from)) s take $((charged >> 10)) KiB; max_memory=$max"
	tenants --rw=write --do_verify=0 --io_size=20m &
	fio=$!
	wait_for 150 or_over all_ask || fail "not all sessions write"
	all_ask || fail "$(cat /tmp/tenants.out)"
	waits=$(on server "cat $stats/memory_waits")
	on server "echo $max >$module/max_memory; dm_resume_here gate"
	wait_for $((sessions * 8)) or_over written_most 12 || fail "too few writes: $(xargs </tmp/written)"
	wait $fio || fail "$(cat /tmp/tenants.out)"
	read -r low _ < <(head -n 1 /tmp/written)
	read -r high _ < <(tail -n 1 /tmp/written)
	say "written: from $low to $high MiB; slowest requests: from" \
		"$(grep -oE 'clat \(([a-z]+)\): .*max=[^,]*' /tmp/tenants.out | sed 's/.*(\(.*\)):.*max=/\1 /' | sort -k1,1 -k2,2n | sed -n '1p;$p' | xargs)"
	must "a session has written all its data" [ "$high" -lt 20 ]
	# The session with the least data is next, so all get the same.
	[ "$high" -le $((low * 3 / 2 + 3)) ] || fail "unfair: $(xargs </tmp/written)"
	tenants --rw=read
	on server 'touch /tmp/enough; wait_for 10 eval "! pgrep -f memory_used"' || :
	most=$(on server 'sort -n /tmp/used | tail -n 1; rm -f /tmp/used /tmp/enough')
	say "memory_used: $((most >> 10)) KiB at most of $((max << 10))"
	# The shared part is used, and no more.
	must "only $most bytes used" [ "$most" -ge $((charged + (2 << 20))) ]
	# A reconnected path may exist together with its predecessor.
	again=$(cat /sys/class/rtrs-client/t*/paths/*/stats/reconnects | awk '{ n += $1 } END { print n }')
	must "$most bytes used, $again paths came back" \
		[ "$most" -le $((charged + ((max << 20) - charged) / 2 + slack + again * charged / sessions)) ]
	must "memory was not short" [ "$(on server "cat $stats/memory_waits")" -ge $((waits + sessions)) ]
	for ((i = 0; i < sessions; i++)); do
		unmap "${devs[i]}"
	done
}
