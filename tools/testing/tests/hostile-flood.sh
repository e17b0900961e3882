# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client connects, again and again, and leaves each connect half open; then it proves wrong
# secrets as fast as it is answered. Meanwhile another one maps its volume within two seconds,
# each time, and a session that is there notices nothing. When the flood is over, the address that
# it came from gets a session again.
# Modules: ours
# Time: 120

. "$RIG_DIR/steps/hostile.sh"
conf=/sys/kernel/config/rnbd
export HOSTILE_STOP=/tmp/flood.stop HOSTILE_TOLD=/tmp/flood.told
# So few that they are there before the first ones end, also on a slow machine
most=128

# told NAME: what the flood has counted so far
told() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" /tmp/flood.told 2>/dev/null | grep . || echo 0; }
told_more() { [ "$(told "$1")" -ge "$2" ]; }

# flood CASE
flood()
{
	rm -f /tmp/flood.*
	cases "$1" >/tmp/flood.out 2>&1 &
	flooder=$!
}

# honest: maps a volume by the other network, whose addresses have nothing to do with it
honest()
{
	local from took dev

	for _ in 1 2 3; do
		from=$(now)
		dev=$(map honest other "path=$(addr server 1)")
		took=$(($(now) - from))
		say "mapped in $took ms, with $(cat /tmp/flood.told)"
		must "it took $took ms to map a volume" [ $took -lt $(($(slowly 2) * 1000)) ]
		unmap "$dev"
	done
}

flood_ends()
{
	touch /tmp/flood.stop
	wait $flooder || fail "$(cat /tmp/flood.out)"
	hostile_told /tmp/flood.out
}

hostile_up max_handshakes=$most
say "half open"
flood flood-half
must "it is refused in the end: $(cat /tmp/flood.*)" wait_for 60 told_more refused 100
honest
must "so many at a time: $(told most)" [ "$(told most)" = $((most / 2)) ]
flood_ends

say "wrong proofs"
on server "printf Geheim-0123456789 | keyctl padd logon srv:keyed @u >/dev/null
	mkdir $conf/hosts/keyed; echo srv:keyed >$conf/hosts/keyed/keys"
from=$(now)
flood flood-proofs
must "it has to wait: $(cat /tmp/flood.*)" wait_for 60 told_more refused 100
honest
flood_ends
# Four are free, and the delays after the next eight add up to 25 s; then it is one in 12.8 s.
took=$((($(now) - from) / 1000))
say "$(told open) wrong proofs were looked at, of $(told tries), in $took s"
must "few are looked at" [ "$(told open)" -le $((13 + took / 12)) ]
late() { [ "$(errno_of "$ctl/map_device" "sessname=late path=$(addr server 0) device_path=other")" = 0 ]; }
must "it gets a session in the end" wait_for 30 late
unmap "/dev/$(mapped late other)"
on server "rmdir $conf/hosts/keyed"
hostile_down
