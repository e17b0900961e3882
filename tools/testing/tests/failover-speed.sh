# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# With heartbeats every 200 ms, three of which may be missed, I/O continues on the other path within
# 1.5 s of a silent cut: the slowest request takes no longer.
#
# Only the stock kernel, as the debug kernel's checkers take time.
# Modules: ours
# Guests: 2
# Kernel: stock
# Rounds: 2
# Alone: yes

. "$RIG_DIR/steps/failover.sh"

# slowest: prints the latency of the load's slowest request in milliseconds
slowest()
{
	python3 -IS -c '
import json
text = open("/tmp/speed.json").read()
# fio may print messages before the JSON.
job = json.loads(text[text.index("{"):])["jobs"][0]
assert not job["error"], job["error"]
print(max(job[x]["clat_ns"]["max"] for x in ("read", "write")) // 1000000)'
}

set_up
disk=$(null vol 32)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
set_attrs hb_interval_ms=200 hb_max_missed=3 reconnect_delay_ms=200 reconnect_delay_max_ms=1000
while next_round; do
	net=$((round % 2))
	before=$(failed_over)
	reads=$(ios "$dev" reads)
	fio --name=speed --filename="$dev" --direct=1 --ioengine=libaio --rw=randrw --bs=4k \
		--iodepth=4 --time_based --runtime=10 --output-format=json \
		--output=/tmp/speed.json &
	fio=$!
	wait_for 20 eval "[ \$(ios $dev reads) -gt $((reads + 100)) ]" || fail "no load"
	set_link server $net silent
	wait $fio || fail "I/O failed"
	again=$(($(failed_over) - before))
	took=$(slowest)
	say "network $net cut: $again requests were sent again, the slowest took $took ms"
	must "nothing was on that path" [ $again -gt 0 ]
	must "I/O stood for $took ms" [ "$took" -le 1500 ]
	set_link server $net on
	wait_for_paths connected 40 "$(path 0)" "$(path 1)"
done
tear_down "$dev"
