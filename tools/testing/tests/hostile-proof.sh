# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A hostile client with invalid proofs of a secret: random bytes, one bit changed, the server's
# part, a proof of another session, connect, path or connection, a short one, or none; and requests
# after an invalid proof. It is refused each time. Patterns as session names, and names of other
# hosts' volumes, are refused as well. I/O of another session continues and is verified.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_KEY=Geheim-0123456789
# On other kernels, the log is rate-limited.
debug_kernel || export HOSTILE_QUIET=1
hostile_up
add_key server srv:keyed $HOSTILE_KEY
on server "mkdir $conf/hosts/keyed $conf/hosts/insider $conf/volumes/secret
	echo srv:keyed >$conf/hosts/keyed/keys
	echo srv:keyed >$conf/hosts/insider/keys
	echo /dev/other >$conf/volumes/secret/path
	ln -s $conf/hosts/keyed $conf/volumes/secret/hosts/
	echo 1 >$conf/volumes/secret/enable"
run_peer cases cases 'proof-*'
peers_passed cases
for name in 'key*' '*' keye '[k]eyed' '?eyed'; do
	map_fails ENOENT "sessname=$name path=$(addr server 0) device_path=secret"
done
for name in 'secr*' '*' ./secret secret/ /secret ../secret secret/../secret; do
	map_fails 'ENOENT|EINVAL|ENOTDIR' "sessname=x path=$(addr server 0) device_path=$name"
done
map_fails EKEYREJECTED "sessname=keyed path=$(addr server 0) device_path=secret"
on server "rm $conf/volumes/secret/hosts/keyed; rmdir $conf/volumes/secret $conf/hosts/keyed $conf/hosts/insider"
hostile_down
