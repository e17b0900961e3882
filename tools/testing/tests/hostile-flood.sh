# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Another machine sends connects from ten of its addresses, as fast as they are answered, 8 at a
# time and at least 2,000 in all, and completes none of them. Meanwhile an honest client, which has
# another address, and a secret, takes two seconds more at most to map a volume, and a session that is
# there notices nothing; later the server is rid of all. Then each announces 64 connections, then
# 4,096. All of them together take less than 32 MiB. Then wrong proofs come from one address, none of
# which is accepted, and connects from one other address as well. The honest client notices as little,
# and when all is over a session comes from the address of the proofs again.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/hostile.sh"
. "$RIG_DIR/steps/rules.sh"
export HOSTILE_QUIET=1 HOSTILE_STOP=/tmp/flood.stop HOSTILE_TOLD HOSTILE_FROM=192.168.100.101
half=/tmp/half.told proofs=/tmp/proofs.told

# counted FILE NAME: prints what an attack has counted by that name so far
counted() { sed -n "s/.*\b$2=\([0-9]*\).*/\1/p" "$1" 2>/dev/null | grep . || echo 0; }
# counted_at_least FILE NAME NUMBER: true if that is at least so many
counted_at_least() { [ "$(counted "$1" "$2")" -ge "$3" ]; }

# attack CASE FILE: in the background, until attacks_end
attack()
{
	rm -f "$2"
	HOSTILE_TOLD=$2 cases "$1" >"${2%.told}.out" 2>&1 &
	attacks+=($!)
}

attacks_end()
{
	local attack

	touch $HOSTILE_STOP
	for attack in "${attacks[@]}"; do
		wait "$attack" || fail "$(cat /tmp/half.out /tmp/proofs.out)"
	done
	attacks=()
	rm $HOSTILE_STOP
	say "$(cat $half)"
}

# honest FILE: maps a volume three times by the other network, whose addresses have nothing to do with
# it; what it takes in the middle is in $took, as others use this machine, too. Its programs are
# first on the CPU that the attacking ones have here as well: it's the server that has to be fair.
# The longest is in $slowest, and in $answered what the attack had done after the first time.
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

# honest_in_time FILE: while it is attacked
honest_in_time()
{
	honest "$1"
	must "it took $took ms to map a volume, not $usual" [ "$took" -lt $((usual + $(slowly 2) * 1000)) ]
	must "once it took $slowest ms" [ "$slowest" -lt $((usual + $(slowly 10) * 1000)) ]
	must "the attack went on" wait_for 10 counted_at_least "$1" answers $((answered + 1))
}

# available: MiB that the server has left for use
available() { on server "awk '/^MemAvailable/ { print int(\$2 / 1024) }' /proc/meminfo"; }

# strangers_memory: keeps the most that all clients were charged with, of ten looks, and what else
# the server has lost since $free
strangers_memory()
{
	local used

	# In one go: the server is slow to answer meanwhile.
	for used in $(on server "for i in {1..10}; do
			cat /sys/devices/rtrs_server/stats/memory_used
			sleep 0.1
		done"); do
		[ "$used" -le "$peak" ] || peak=$used
	done
	say "with the strangers, all are charged with $((peak >> 10)) KiB, $((charged >> 10)) before;" \
		"$((free - $(available))) MiB less are available"
	must "strangers take $((peak - charged)) bytes" [ $((peak - charged)) -lt $((32 << 20)) ]
}

domains() { on server "rdma resource show pd | grep -c rtrs"; }
as_before() { [ "$(domains)" = "$before" ]; }

most=32
hostile_server max_handshakes=$most
# Nothing can be opened but by hosts, of which strangers are none.
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
bystander "$dev"
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

say "half open"
attack flood-half $half
wait_for 60 counted_at_least $half refused 100 || fail "it isn't refused: $(cat /tmp/half.*)"
honest_in_time $half
wait_for 60 counted_at_least $half answers 2000 || fail "too few: $(cat $half)"
strangers_memory
attacks_end
# All ten together have no more than may be.
must "some were half open: $(cat $half)" [ "$(counted $half open)" -ge $((most / 2)) ]
must "so many at a time: $(cat $half)" [ "$(counted $half early)" -le $most ]
equal "refused otherwise" "$(counted $half other)" 0
must "the others have an answer" [ "$(counted $half lost)" -le 100 ]
must "the server is rid of them" wait_for 60 as_before

say "with many connections"
attack flood-wide $half
wait_for 60 counted_at_least $half refused 500 || fail "it isn't refused: $(cat /tmp/half.*)"
honest_in_time $half
strangers_memory
attacks_end
must "some were half open: $(cat $half)" [ "$(counted $half open)" -ge 1 ]
equal "refused otherwise" "$(counted $half other)" 0
attack flood-widest $half
wait_for 60 counted_at_least $half other 100 || fail "it isn't refused: $(cat /tmp/half.*)"
strangers_memory
attacks_end
equal "half open, or to be tried again" "$(counted $half open) $(counted $half refused)" "0 0"

say "wrong proofs"
add_key server srv:keyed Geheim-0123456789
on server "mkdir $conf/hosts/keyed; echo srv:keyed >$conf/hosts/keyed/keys"
me=$(addr client 0) HOSTILE_FROM=${me#ip:}
attack flood-proofs $proofs
wait_for 60 counted_at_least $proofs open 5 || fail "they aren't looked at: $(cat /tmp/proofs.*)"

say "and half open"
HOSTILE_FROM=192.168.100.101
attack flood-half $half
wait_for 60 counted_at_least $half early $((most / 4)) || fail "they don't come: $(cat /tmp/half.*)"
wait_for 60 counted_at_least $half refused 500 || fail "it isn't refused: $(cat /tmp/half.*)"
honest_in_time $half
attacks_end
say "$(counted $proofs open) wrong proofs were looked at, of $(counted $proofs tries)"
must "no more than one address may: $(cat $half)" [ "$(counted $half early)" -le $((most / 2)) ]
hostile_told /tmp/half.out /tmp/proofs.out
late() { [ "$(errno_of "$ctl/map_device" "sessname=honest ${at[0]} device_path=other key=clt:honest")" = 0 ]; }
must "it gets a session in the end" wait_for 30 late
unmap "/dev/$(mapped honest other)"
on server "rmdir $conf/hosts/keyed"
must "the server is rid of them" wait_for 60 as_before
for i in {101..110}; do
	ip addr del "192.168.100.$i/24" dev "$(netdev 0)"
done
bystander_unharmed
unmap "$dev"
on server "rm $conf/volumes/*/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
down
