# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A machine sends connection requests from ten addresses, as fast as they are answered, 8 at a time
# and at least 2,000 in all, and completes none of them. Meanwhile another client, with another
# address and a secret, needs two seconds more at most to map a volume, and an existing session is
# not disturbed; later the server has released everything. The same with requests that announce 64
# connections, then 4,096. All of them together take less than 32 MiB. Then invalid proofs come from
# one address, and connection requests from another one: the other client is not delayed, and
# afterwards a session from the address of the proofs is accepted.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/hostile.sh"
. "$RIG_DIR/steps/rules.sh"
export HOSTILE_QUIET=1 HOSTILE_STOP=/tmp/flood.stop HOSTILE_TOLD HOSTILE_FROM=192.168.100.101
half=/tmp/half.told proofs=/tmp/proofs.told

# counted FILE NAME: prints a counter of an attack
counted() { sed -n "s/.*\b$2=\([0-9]*\).*/\1/p" "$1" 2>/dev/null | grep . || echo 0; }
# counted_at_least FILE NAME NUMBER: true if the counter is at least NUMBER
counted_at_least() { [ "$(counted "$1" "$2")" -ge "$3" ]; }

# attack CASE FILE: starts a case in the background, which writes its counters to the file
attack()
{
	rm -f "$2"
	HOSTILE_TOLD=$2 run_peer "$1" cases "$1" &
	attacks[$!]=$1
}

# attacks_end: stops all attacks
attacks_end()
{
	touch $HOSTILE_STOP
	wait "${!attacks[@]}"
	peers_passed "${attacks[@]}"
	attacks=()
	rm $HOSTILE_STOP
	say "$(cat $half)"
}

# honest FILE: maps a volume three times over the other network, from which no attack comes. Sets
# $took to the median of the times in ms, $slowest to the longest, and $answered to the answers that
# the attack had after the first time. The client has priority on this guest's CPU, which it shares
# with the attack: only the server's fairness is tested.
honest()
{
	local from dev times=() i

	for i in 1 2 3; do
		from=$(now)
		dev=$(renice -n -15 "$BASHPID" >/dev/null; map honest other "${at[1]}" key=clt:honest)
		times+=($(($(now) - from)))
		unmap "$dev"
		[ "$i" != 1 ] || answered=$(counted "$1" answers)
	done
	say "mapped in ${times[*]} ms, with $(cat "$1")"
	mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
	took=${times[1]} slowest=${times[2]}
}

# honest_in_time FILE: the same during an attack, within the time limits
honest_in_time()
{
	honest "$1"
	must "it took $took ms to map a volume, not $usual" [ "$took" -lt $((usual + $(slowly 2) * 1000)) ]
	must "once it took $slowest ms" [ "$slowest" -lt $((usual + $(slowly 10) * 1000)) ]
	must "the attack has stopped" wait_for 10 counted_at_least "$1" answers $((answered + 1))
}

# available: prints the server's available memory in MiB
available() { on server "awk '/^MemAvailable/ { print int(\$2 / 1024) }' /proc/meminfo"; }

# strangers_memory: checks the memory that clients are charged with, ten times; prints how much less
# memory is available than $free
strangers_memory()
{
	local used

	# In one call, as the server is busy
	for used in $(on server "for i in {1..10}; do
			cat /sys/devices/rtrs_server/stats/memory_used
			sleep 0.1
		done"); do
		[ "$used" -le "$peak" ] || peak=$used
	done
	say "clients are charged with $((peak >> 10)) KiB during the attack, $((charged >> 10)) before;" \
		"$((free - $(available))) MiB less are available"
	must "the attack takes $((peak - charged)) bytes" [ $((peak - charged)) -lt $((32 << 20)) ]
}

domains() { on server "rdma resource show pd | grep -c rtrs"; }
as_before() { [ "$(domains)" = "$before" ]; }

most=32
hostile_server max_handshakes=$most
# Only hosts can open volumes.
add_key server srv:honest Geheim-9876543210
add_key client clt:honest Geheim-9876543210
on server "mkdir $conf/hosts/honest $conf/hosts/good"
rule hosts/honest/keys srv:honest
for name in good other; do
	volume $name /dev/$name
done
on server "ln -s $conf/hosts/honest $conf/volumes/other/hosts/
	ln -s $conf/hosts/good $conf/volumes/good/hosts/"
rule policy listed
dev=$(map good good "${at[1]}")
start_bystander "$dev"
charged=$(on server "cat /sys/devices/rtrs_server/stats/memory_used") peak=0 free=$(available)
before=$(domains)
for i in {102..110}; do
	HOSTILE_FROM+=" 192.168.100.$i"
done
for from in $HOSTILE_FROM; do
	ip addr add "$from/24" dev "$(netdev 0)"
done

say "as usual"
honest /dev/null
usual=$took

say "half-open connections"
attack flood-half $half
wait_for 60 counted_at_least $half refused 100 || fail "no connect is refused: $(cat /tmp/*.told)"
honest_in_time $half
wait_for 60 counted_at_least $half answers 2000 || fail "too few answers: $(cat $half)"
strangers_memory
attacks_end
# max_handshakes limits all addresses together.
must "too few were accepted: $(cat $half)" [ "$(counted $half open)" -ge $((most / 2)) ]
must "too many were accepted: $(cat $half)" [ "$(counted $half early)" -le $most ]
equal "rejected with another errno" "$(counted $half other)" 0
must "too many have no answer" [ "$(counted $half lost)" -le 100 ]
must "the server keeps protection domains" wait_for 60 as_before

say "with many connections"
attack flood-wide $half
wait_for 60 counted_at_least $half refused 500 || fail "no connect is refused: $(cat /tmp/*.told)"
honest_in_time $half
strangers_memory
attacks_end
must "none was accepted: $(cat $half)" [ "$(counted $half open)" -ge 1 ]
equal "rejected with another errno" "$(counted $half other)" 0
attack flood-widest $half
wait_for 60 counted_at_least $half other 100 || fail "no connect is refused: $(cat /tmp/*.told)"
strangers_memory
attacks_end
equal "accepted, or rejected with EAGAIN" "$(counted $half open) $(counted $half refused)" "0 0"

say "invalid proofs"
add_key server srv:keyed Geheim-0123456789
on server "mkdir $conf/hosts/keyed; echo srv:keyed >$conf/hosts/keyed/keys"
me=$(addr client 0) HOSTILE_FROM=${me#ip:}
attack flood-proofs $proofs
wait_for 60 counted_at_least $proofs open 5 || fail "no proof is checked: $(cat /tmp/*.told)"

say "invalid proofs and half-open connections"
HOSTILE_FROM=192.168.100.101
attack flood-half $half
wait_for 60 counted_at_least $half early $((most / 4)) || fail "none is accepted: $(cat /tmp/*.told)"
wait_for 60 counted_at_least $half refused 500 || fail "no connect is refused: $(cat /tmp/*.told)"
honest_in_time $half
attacks_end
say "$(counted $proofs open) of $(counted $proofs tries) invalid proofs were checked"
must "too many of one address were accepted: $(cat $half)" [ "$(counted $half early)" -le $((most / 2)) ]
late() { [ "$(errno_of "$ctl/map_device" "sessname=honest ${at[0]} device_path=other key=clt:honest")" = 0 ]; }
must "no session from the address of the proofs" wait_for 30 late
unmap "/dev/$(mapped honest other)"
on server "rmdir $conf/hosts/keyed"
must "the server keeps protection domains" wait_for 60 as_before
for i in {101..110}; do
	ip addr del "192.168.100.$i/24" dev "$(netdev 0)"
done
stop_bystander
unmap "$dev"
on server "rm $conf/volumes/*/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
tear_down
