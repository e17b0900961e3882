# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client with 10,000 random messages per round, and a server with random answers: see
# tools/testing/hostile/random.c. SEED= repeats the choices. All answers to the client are as
# expected, most of its valid I/O is done, and the server ends paths only for invalid messages. Half
# of the client's sessions have a key, and send some invalid proofs; in three rounds of four the
# server's policy is "listed". At the same time, a client stops after each step of the handshake.
# I/O of another session continues and is verified.
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
run_peer silence cases silence &
silence=$!
seed_random
seed=$SEED
while next_round; do
	policy=$([ $((round % 4)) = 0 ] && echo open || echo listed)
	on server "echo $policy >$conf/policy"
	HOSTILE_POLICY=$policy HOSTILE_RW=scratch HOSTILE_OTHER=other run_peer client hostile \
		random-client 192.168.100.1 1234 $((seed + round)) 10000
	peers_passed client
done
run_peer server hostile random-server 192.168.100.1 7000 "$seed" 2000
wait $silence
peers_passed server silence
stop_bystander
unmap "$dev"
on server "cd $conf; rm volumes/*/hosts/*; rmdir volumes/* hosts/*"
tear_down
