# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that says anything, 10,000 times a round, and a server that answers anything; see
# tools/testing/hostile/random.c. It takes another way each time, which SEED= repeats.
# Beside all that, a client that falls silent after each step of the handshake.
# Another session's I/O goes on, all of it verified.
# Modules: ours
# Time: 200
# Rounds: 4
# Kernel: debug

. "$RIG_DIR/steps/hostile.sh"
hostile_up
cases silence >/tmp/silence.out &
silence=$!
dice
seed=$SEED
: >/tmp/client.out
while more; do
	HOSTILE_RW=scratch HOSTILE_OTHER=other hostile random-client 192.168.100.1 1234 \
		$((seed + round)) 10000 >>/tmp/client.out || bad=1
done
hostile random-server 192.168.100.1 7000 "$seed" 2000 >/tmp/server.out || bad=1
wait $silence || bad=1
hostile_told /tmp/client.out /tmp/server.out /tmp/silence.out
[ -z "${bad:-}" ] || fail "it did not end as it should"
hostile_down
