# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# mp_policy and its alias mpath_policy: values, output, and the distribution of I/O: round-robin
# distributes evenly, min-inflight and min-latency avoid a slow path.
#
# Only the stock kernel, as the debug kernel's checkers take time.
# Modules: ours
# Guests: 2
# Kernel: stock

. "$RIG_DIR/steps/failover.sh"

# share POLICY [FIO OPTION...]: sets $a and $b to the numbers of I/Os on networks 0 and 1
share()
{
	local a0 b0
	echo "$1" >$clt/s1/mp_policy
	a0=$(path_ios "$(path 0)") b0=$(path_ios "$(path 1)")
	fio --name=share --filename="$dev" --direct=1 --ioengine=libaio --rw=randrw --bs=4k \
		--time_based --runtime=3 "${@:2}" >/tmp/share.out 2>&1 ||
		fail "$(cat /tmp/share.out)"
	a=$(($(path_ios "$(path 0)") - a0)) b=$(($(path_ios "$(path 1)") - b0))
	say "$1: $a and $b"
}

set_up
disk=$(null vol 32)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
equal default "$(cat $clt/s1/mp_policy)" "min-inflight (MI: 1)"
while read -r word shown; do
	echo "$word" >$clt/s1/mp_policy
	equal "mp_policy $word" "$(cat $clt/s1/mp_policy)" "$shown"
done <<END
round-robin round-robin (RR: 0)
min-inflight min-inflight (MI: 1)
min-latency min-latency (ML: 2)
RR round-robin (RR: 0)
mi min-inflight (MI: 1)
ML min-latency (ML: 2)
rr round-robin (RR: 0)
MI min-inflight (MI: 1)
ml min-latency (ML: 2)
0 round-robin (RR: 0)
1 min-inflight (MI: 1)
2 min-latency (ML: 2)
END
for word in '' 3 -1 RX round min-inflightx; do
	equal "mp_policy '$word'" "$(errno_of $clt/s1/mp_policy "$word")" EINVAL
done
equal "what stays" "$(cat $clt/s1/mp_policy)" "min-latency (ML: 2)"
equal "mpath_policy" "$(cat $clt/s1/mpath_policy)" "min-latency (ML: 2)"
echo RR >$clt/s1/mpath_policy
equal "mp_policy, set by its other name" "$(cat $clt/s1/mp_policy)" "round-robin (RR: 0)"

share RR --iodepth=8
must "round-robin doesn't share out" [ $((a * 5)) -ge $((b * 4)) -a $((b * 5)) -ge $((a * 4)) ]
share MI --iodepth=16
must "min-inflight leaves a path out" [ $((a * 4)) -ge "$b" -a $((b * 4)) -ge "$a" ]

# Three times the latency without a delay
delay=$((3 * 16 * 3000 / (a + b)))
netem server 1 delay "${delay}ms"
set_attrs hb_interval_ms=200
wait_for 40 eval "[ \$(cut -d' ' -f1 '$(path 1)/cur_latency') -gt $((delay * 3 / 4))000000 ]" ||
	fail "cur_latency is $(cat "$(path 1)/cur_latency")"
share ML --iodepth=8
must "min-latency takes the slow path" [ "$a" -ge $((b * 10)) ]
share MI --iodepth=16
must "min-inflight doesn't keep off the slow path" [ "$a" -ge $((b * 2)) ]
netem server 1
tear_down "$dev"
