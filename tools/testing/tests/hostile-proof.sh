# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that is to prove that it knows a secret, and does so wrongly: with any bytes, one bit
# off, with the server's part, a proof of another session, time, path or connection, cut, or none;
# and goes on as if it were right. It is refused each time. Names with patterns in them, and those
# of others' volumes, get it nothing. Another session's I/O goes on, all of it verified.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_KEY=Geheim-0123456789
# Elsewhere the log has but some of the reasons.
debug_kernel || export HOSTILE_QUIET=1
hostile_up
add_key server srv:keyed $HOSTILE_KEY
on server "mkdir $conf/hosts/keyed $conf/hosts/insider $conf/volumes/secret
	echo srv:keyed >$conf/hosts/keyed/keys
	echo srv:keyed >$conf/hosts/insider/keys
	echo /dev/other >$conf/volumes/secret/path
	ln -s $conf/hosts/keyed $conf/volumes/secret/hosts/
	echo 1 >$conf/volumes/secret/enable"
cases 'proof-*' >/tmp/cases.out || bad=1
hostile_told /tmp/cases.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/cases.out)"
for name in 'key*' '*' keye '[k]eyed' '?eyed'; do
	refused ENOENT "sessname=$name path=$(addr server 0) device_path=secret"
done
for name in 'secr*' '*' ./secret secret/ /secret ../secret secret/../secret; do
	refused 'ENOENT|EINVAL|ENOTDIR' "sessname=x path=$(addr server 0) device_path=$name"
done
refused EKEYREJECTED "sessname=keyed path=$(addr server 0) device_path=secret"
on server "rm $conf/volumes/secret/hosts/keyed; rmdir $conf/volumes/secret $conf/hosts/keyed $conf/hosts/insider"
hostile_down
