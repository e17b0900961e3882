# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The number of packets for one I/O. With an MTU of 4096 bytes, a read of 4 KiB takes two packets
# and the acknowledgement of each; 64 KiB take 16 packets of data instead of one. With a server of
# chunks, a read of 4 KiB takes three; the in-tree driver takes 8 packets (see `make bench`).
# Modules: ours

. "$RIG_DIR/steps/compare.sh"

# repeated: prints how many requests soft-RoCE has received more than once, since an answer was late
repeated() { echo $(($(counter duplicate_request) + $(counter out_of_seq_request))); }

# packets RW SIZE NUMBER: for so many I/Os, 32 at a time; and how many of them heartbeats may
# be, as the server goes on with its own, one each 5 s. Counts again if soft-RoCE has repeated
# requests, as it does on a busy machine.
packets()
{
	local before after again from

	for _ in 1 2 3; do
		from=$SECONDS again=$(repeated)
		before=$(counter sent_pkts)
		fio --name=packets --filename="$dev" --direct=1 --ioengine=libaio --rw="$1" --bs="$2" \
			--iodepth=32 --norandommap --number_ios="$3" >/tmp/fio.out 2>&1 ||
			fail "$(cat /tmp/fio.out)"
		after=$(counter sent_pkts)
		[ "$(repeated)" != "$again" ] || break
	done
	echo $((after - before)) $((20 + 2 * (SECONDS - from)))
}

while read -r what read4 write4 read64 write64; do
	bench_load $what
	dev=$(bench_map $what one)
	echo 60000 >/sys/class/rtrs-client/bench/hb_interval_ms
	while read -r rw size number want; do
		got=$(packets "$rw" "$size" "$number")
		read -r got more <<<"$got"
		say "$number $rw of $size, $what: $got packets"
		[ $((got >= number * want && got <= number * want + more)) = 1 ] ||
			fail "$number $rw of $size: $got packets, not $((number * want))"
	done <<-END
		randread 4k 2000 $read4
		randwrite 4k 2000 $write4
		randread 64k 1000 $read64
		randwrite 64k 1000 $write64
	END
	bench_unmap $what
	bench_unload $what
done <<-END
	ours-Y 4 5 21 21
	ours-N 4 5 21 21
	ours-0 6 5 21 20
END
no_nulls
