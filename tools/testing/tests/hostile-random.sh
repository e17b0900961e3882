# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that says anything, 10,000 times a round, and a server that answers anything; see
# tools/testing/hostile/random.c. It takes another way each time, which SEED= repeats. Each answer to
# the client is as its messages deserve, most of its valid I/O is done, and the server ends no path
# without a reason.
# Half of the client's sessions have to prove a secret, and do so wrongly at times; in three rounds
# of four the server's policy is "listed".
# Beside all that, a client that falls silent after each step of the handshake.
# Another session's I/O goes on, all of it verified.
# Modules: ours
# Rounds: 4
# Kernel: debug

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_KEY=Geheim-0123456789
hostile_server
add_key server srv:keyed $HOSTILE_KEY
on server "mkdir $conf/hosts/{keyed,plain}
	echo srv:keyed >$conf/hosts/keyed/keys
	echo 'h-keyed-*' >$conf/hosts/keyed/sessions
	echo 'h-random-*' >$conf/hosts/plain/sessions
	for v in good scratch other slow; do
		mkdir $conf/volumes/\$v
		echo /dev/\$v >$conf/volumes/\$v/path
		ln -s $conf/hosts/{keyed,plain} $conf/volumes/\$v/hosts/
		[ \$v = scratch ] || echo 1 >$conf/volumes/\$v/allow_any_host
		echo 1 >$conf/volumes/\$v/enable
	done"
hostile_bystander
cases silence >/tmp/silence.out &
silence=$!
dice
seed=$SEED
: >/tmp/client.out
while more; do
	policy=$([ $((round % 4)) = 0 ] && echo open || echo listed)
	on server "echo $policy >$conf/policy"
	HOSTILE_POLICY=$policy HOSTILE_RW=scratch HOSTILE_OTHER=other hostile random-client 192.168.100.1 1234 \
		$((seed + round)) 10000 >>/tmp/client.out || bad=1
done
hostile random-server 192.168.100.1 7000 "$seed" 2000 >/tmp/server.out || bad=1
wait $silence || bad=1
hostile_told /tmp/client.out /tmp/server.out /tmp/silence.out
[ -z "${bad:-}" ] || fail "it did not end as it should"
bystander_unharmed
unmap "$dev"
on server "cd $conf; rm volumes/*/hosts/*; rmdir volumes/* hosts/*"
down
