# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Volumes, hosts and the policy of the server: what a session can open by a name. A device that a
# changed rule no longer allows is closed at once, under load, while verified I/O of another session
# continues. Then 1000 random changes, 200 on the debug kernel: a model defines what two sessions
# have after each.
# Modules: ours

. "$RIG_DIR/steps/rules.sh"

link_host() { on server "ln -s $conf/hosts/$2 $conf/volumes/$1/hosts/$2"; }
unlink_host() { on server "rm $conf/volumes/$1/hosts/$2"; }

# not_for ERRNO SESSION NAME [OPTION...]
not_for() { map_fails "$1" "sessname=$2 path=$a device_path=$3 ${*:4}"; }

# revoked_by ERRNO RESTORE RULE...: fails unless the rule takes v1 away from web-1, so that no
# request is carried out that begins when the rule has been changed, and remap_device gives that
# errno until the text RESTORE is run
revoked_by()
{
	local errno=$1 restore=$2
	shift 2
	say "taken away by: $*"
	start_load "$dev"
	"$@"
	expect_io EIO "$dev" read:0:4k
	load_fails 20
	equal "state" "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" closed
	# The server closes it when its last I/O has ended.
	must "it is open on the server" wait_for 20 \
		on server "[ ! -e /sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/web-1 ]"
	equal "remap_device meanwhile" "$(errno_of "/sys/block/${dev#/dev/}/rnbd/remap_device" 1)" "$errno"
	eval "$restore"
	echo 1 >"/sys/block/${dev#/dev/}/rnbd/remap_device"
	expect_io "0 0" "$dev" write:0:4k:x read:0:4k:x
}

a=$(addr server 0)
set_up sess_queue_depth=32
disk=$(null one 64)
other=$(null two 64)

say "wrong rules"
on server "mkdir $conf/volumes/v1 $conf/hosts/web $conf/hosts/db"
rule_gives EINVAL policy closed
rule_gives EINVAL volumes/v1/enable 1
rule_gives EINVAL volumes/v1/path nullb0
rule_gives EINVAL volumes/v1/modes "ro wo"
rule_gives EINVAL volumes/v1/allow_any_host x
rule_gives EINVAL hosts/web/sessions ""
equal "modes of a new volume" "$(on server "cat $conf/volumes/v1/modes")" "ro rw migration handover"
must "a link to a volume" on server "! ln -s $conf/volumes/v1 $conf/volumes/v1/hosts/x 2>/dev/null"
must "a folder's name too long" on server "! mkdir $conf/hosts/$(printf 'x%.0s' {1..255}) 2>/dev/null"
equal "a path that was never set" "$(on server "cat $conf/volumes/v1/path")" ""
rule volumes/v1/modes ""
equal "no modes" "$(on server "cat $conf/volumes/v1/modes")" ""
on server "rmdir $conf/volumes/v1"

say "policy open"
volume v1 "$disk"
rule_gives EBUSY volumes/v1/path "$other"
rule hosts/web/sessions ' web-* '
equal "what is set" "$(on server "cd $conf; cat policy volumes/v1/{path,modes,exclusive,allow_any_host,enable} hosts/*/sessions")" \
	"$(printf '%s\n' open "$disk" "ro rw migration handover" 0 0 1 db 'web-*')"
not_for ENOENT web-1 v1
dev=$(map web-1 "$disk")
unmap "$dev"
link_host v1 web
dev=$(map web-1 v1)
expect_io "0" "$dev" write:0:4k:y
must "it is another disk" on server "$RIG_DIR/steps/io.py $disk read:0:4k:y | grep -qx 0"
unmap "$dev"

say "policy listed"
rule policy listed
for name in "$disk" v2 ./v1 v1/ //v1 'v*' '*'; do
	not_for ENOENT web-1 "$name"
done
not_for ENOENT db v1
not_for ENOENT 'web*' v2
not_for ENOENT web v1
rule volumes/v1/modes "ro  migration"
equal modes "$(on server "cat $conf/volumes/v1/modes")" "ro migration"
not_for EACCES web-1 v1
not_for EACCES web-1 v1 access_mode=rw
not_for ENOENT db v1 access_mode=rw
dev=$(map web-1 v1 access_mode=ro)
dev2=$(map web-2 v1 access_mode=migration)
unmap "$dev"
rule volumes/v1/exclusive 1
not_for EBUSY web-3 v1 access_mode=ro
unmap "$dev2"
dev=$(map web-1 v1 access_mode=ro)
not_for EBUSY web-3 v1 access_mode=ro
unmap "$dev"
rule volumes/v1/exclusive 0
rule volumes/v1/modes "rw ro migration"

say "taken away under load"
volume v2 "$other"
link_host v2 db
dev=$(map web-1 v1)
start_bystander "$(map db v2)"
revoked_by ENOENT "link_host v1 web" unlink_host v1 web
revoked_by ENOENT "rule hosts/web/sessions 'web-[1-3]'" rule hosts/web/sessions 'web-[2-3]'
revoked_by ENOENT "rule volumes/v1/enable 1" rule volumes/v1/enable 0
revoked_by ENOENT "volume v1 $disk; link_host v1 web" \
	on server "rm $conf/volumes/v1/hosts/web; rmdir $conf/volumes/v1"
revoked_by EACCES "rule volumes/v1/modes 'rw ro migration'" rule volumes/v1/modes ro
unmap "$dev"

rule policy open
dev=$(map web-1 "$disk")
revoked_by ENOENT "rule policy open" rule policy listed
unmap "$dev"

n=1000
! debug_kernel || n=200
say "$n changes at random and what two sessions get after each, while a third comes and goes"
volume base "$(null three 16)"
rule volumes/base/allow_any_host 1
for session in web-1 web-2; do
	map $session base access_mode=ro >/dev/null
done
seed_random
rm -f /tmp/third
"$RIG_DIR/steps/rules.py" "$SEED" $n "${disk#/dev/}" "$a" /tmp/third >/tmp/changes 2>&1 &
changer=$!
nr=0
while ! ended $changer; do
	got=$(errno_of "$ctl/map_device" "sessname=web-3 path=$a device_path=v1 access_mode=ro")
	case $got in
	0)	nr=$((nr + 1))
		: >/tmp/third
		unmap "/dev/$(mapped web-3 v1)" force ;;
	ENOENT|EACCES) ;;
	*)	fail "web-3 gets $got" ;;
	esac
done
must "$(cat /tmp/changes)" wait $changer
say "$(cat /tmp/changes); the third one: $nr"
for session in web-1 web-2; do
	unmap "/dev/$(mapped $session base)"
done
rule policy listed
stop_bystander
rule volumes/v1/allow_any_host 1
rule volumes/v1/modes rw
rule volumes/v1/enable 1
dev=$(map any v1)
verify "$dev" --bs=4k --size=1m
unmap "$dev"
unmap "/dev/$(mapped db v2)"
rule policy open
must "a host with a link to it is gone" on server "! rmdir $conf/hosts/db 2>/dev/null"
on server "rm -f $conf/volumes/v[12]/hosts/*; rmdir $conf/volumes/* $conf/hosts/*"
tear_down
