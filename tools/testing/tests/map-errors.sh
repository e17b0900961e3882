# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Invalid input to map_device: the errno is the expected one, the log names the error, and nothing
# is left. A row has the errno, a word that the log must contain, and the input. Rows with + are
# valid for the in-tree driver, or have another result.

# Bytes are to be bytes: some at the end of a line would have the next one read as well.
LC_ALL=C

long() { printf 'x%.0s' $(seq "$1"); }

rows()
{
	cat <<-END
	  EINVAL sessname=.is.missing path=$a device_path=$disk
	  EINVAL device_path=.is.missing sessname=s1 path=$a
	  ENXIO s1:.no.such.session sessname=s1 device_path=$disk
	  EINVAL foo=bar:.no.such.option $ok foo=bar
	  EINVAL foo:.no.such.option $ok foo
	+ EINVAL sessname=.*given.before $ok sessname=s2
	+ EINVAL device_path=.*given.before $ok device_path=/dev/other
	+ EINVAL access_mode=.*given.before $ok access_mode=ro access_mode=ro
	+ EINVAL dest_port=.*given.before $ok dest_port=1234 dest_port=1234
	+ EINVAL nr_queues=.*given.before $ok nr_queues=1 nr_queues=1
	+ EINVAL queue_depth=.*given.before $ok queue_depth=1 queue_depth=1
	+ EINVAL nr_poll_queues=.*given.before $ok nr_poll_queues=1 nr_poll_queues=1
	+ EINVAL failover_timeout=x: $ok failover_timeout=x
	+ EINVAL hb_max_missed=0: $ok hb_max_missed=0
	+ EINVAL mp_policy=best: $ok mp_policy=best
	+ EINVAL hb_max_missed.*given.before $ok hb_max_missed=1 hb_max_missed=1
	+ EINVAL add_path=.*no.such.option $ok add_path=$a
	+ EINVAL sessname=xxx sessname=$(long 255) path=$a device_path=$disk
	  EINVAL device_path=/xxx sessname=s1 path=$a device_path=/$(long 255)
+ ENAMETOOLONG device_path=/xxx.*together sessname=$(long 100) path=$a device_path=/$(long 154)
	  EINVAL path=ip:xxx sessname=s1 path=ip:$(long 300) device_path=$disk
	  EINVAL sessname=: sessname= path=$a device_path=$disk
	  EINVAL device_path=: sessname=s1 path=$a device_path=
	  EINVAL path=: sessname=s1 path= device_path=$disk
	  EINVAL sessname=a/b: sessname=a/b path=$a device_path=$disk
	  EINVAL sessname=a\.b: sessname=a.b path=$a device_path=$disk
	  EINVAL path=ip:.*,ip:fd00 sessname=s1 path=$a,$(addr6 server 0) device_path=$disk
	  EINVAL|EPROTONOSUPPORT path=ib:1.2.3.4: sessname=s1 path=ib:1.2.3.4 device_path=$disk
	  EINVAL path=ip:1.2.3: sessname=s1 path=ip:1.2.3 device_path=$disk
	  EINVAL path=ip:fd00:::1: sessname=s1 path=ip:fd00:::1 device_path=$disk
	  EINVAL path=gid:12: sessname=s1 path=gid:12 device_path=$disk
	  EINVAL path=,ip: sessname=s1 path=,$a device_path=$disk
	  EINVAL|EPROTONOSUPPORT path=ip:.*,: sessname=s1 path=$a, device_path=$disk
	  EINVAL path=ip:.*,ip:.*,ip sessname=s1 path=$a,$a,$a device_path=$disk
	+ EINVAL dest_port=0: $ok dest_port=0
	  EINVAL dest_port=70000: $ok dest_port=70000
	  EINVAL dest_port=-1: $ok dest_port=-1
	  EINVAL dest_port=12x: $ok dest_port=12x
	  EINVAL dest_port=: $ok dest_port=
	  EINVAL access_mode=wo: $ok access_mode=wo
	  EINVAL access_mode=: $ok access_mode=
	  EINVAL nr_queues=0: $ok nr_queues=0
	  EINVAL nr_queues=65: $ok nr_queues=65
	  EINVAL nr_queues=1x: $ok nr_queues=1x
	  EINVAL queue_depth=0: $ok queue_depth=0
	  EINVAL queue_depth=4097: $ok queue_depth=4097
	  EINVAL queue_depth=1x: $ok queue_depth=1x
	  EINVAL nr_poll_queues=x: $ok nr_poll_queues=x
	+ EINVAL nr_poll_queues=-2: $ok nr_poll_queues=-2
	  EINVAL nr_poll_queues=100000: $ok nr_poll_queues=100000
	  EINVAL sessname=.is.missing
	  EINVAL garbage:.no.such.option garbage
	  EINVAL byte.0.is.not $(printf '\x01\x02\xff\xfe\x80\x7f')
	  EINVAL byte.[0-9]+.is.not $(head -c 3000 /dev/urandom | tr -d '\0\n')$(printf '\xc3')
	  EINVAL xxx.*:.no.such.option $(long 4000)
	  EINVAL =:.no.such.option = = =
	  EEXIST|EINVAL . sessname=s1 path=$a path=$a device_path=$disk
	  ENOENT /dev/absent sessname=s1 path=$a device_path=/dev/absent
	  ENOTBLK|EISDIR|EINVAL /dev sessname=s1 path=$a device_path=/dev
	  ENOTBLK|EINVAL /dev/null sessname=s1 path=$a device_path=/dev/null
	+ ENXIO /dev/no-driver sessname=s1 path=$a device_path=/dev/no-driver
	+ EROFS $protected sessname=s1 path=$a device_path=$protected
	  ENOTDIR|ENOENT $disk/a sessname=s1 path=$a device_path=$disk/a
	  EINVAL|EACCES /dev/../dev sessname=s1 path=$a device_path=/dev/..$disk
	  EINVAL|EACCES /dev/.. sessname=s1 path=$a device_path=/dev/..
	  ECONNRESET|ECONNREFUSED s1 dest_port=4321 sessname=s1 path=$a device_path=$disk
	+ ECONNRESET|ECONNREFUSED s1 $ok dest_port=4321
	  ENETUNREACH|EHOSTUNREACH s1|10.77 sessname=s1 path=ip:10.77.77.77 device_path=$disk
	  EADDRNOTAVAIL s1|192.168.100.66 sessname=s1 path=ip:192.168.100.66,$a device_path=$disk
	  ENODEV|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL s1 sessname=s1 path=$(gid server 0) device_path=$disk
	END
}

# sessions_left SESSIONS: true if the client has just these, and the one that goes on
sessions_left()
{
	# shellcheck disable=SC2010
	[ "$(ls /sys/class/rtrs-client | grep -vx nobody | xargs)" = "$1" ]
}

row()
{
	local word
	mark_log
	map_fails "$1" "$3"
	word=$2
	[ "$RIG_MODULES" != intree ] || word='rnbd|rtrs'
	log_since_mark | grep -E 'rnbd|rtrs' | grep -qE -- "$word" ||
		fail "the log says nothing of '$word' after '$3': $(log_since_mark)"
	wait_for 10 sessions_left "$mapped" || fail "sessions left after '$3': $(ls /sys/class/rtrs-client)"
	equal "disks after '$3'" "$(compgen -G "/dev/rnbd[0-9]*" | wc -l)" "$disks"
}

set_up sess_queue_depth=16
disk=$(null vol 16)
protected=$(null protected 16)
on server "blockdev --setro $protected; mknod /dev/no-driver b 511 0"
a=$(addr server 0)
ok="sessname=s1 path=$a device_path=$disk"
before=$(rdma_resources)
mapped='' disks=0

# Slow, so in the background
errno_of "$ctl/map_device" "sessname=nobody path=ip:192.168.100.77 device_path=$disk" >/tmp/nobody &

rows >/tmp/rows
n=0 bad=0
while read -r want word text; do
	if [ "$want" = + ]; then
		[ "$RIG_MODULES" != intree ] || continue
		read -r want word text <<<"$word $text"
	fi
	(row "$want" "$word" "$text") || bad=$((bad + 1))
	n=$((n + 1))
done </tmp/rows
say "$n rows"

dev=$(map s1 "$disk")
mapped=s1 disks=1
row EEXIST "$disk" "sessname=s1 device_path=$disk"
row EEXIST "$disk" "$ok access_mode=ro"
if [ "$RIG_MODULES" = ours ]; then
	# The session has another path: the volume of another server may have the same name.
	row EINVAL 'path=.*one of its paths' "sessname=s1 path=$(addr server 1) device_path=$disk"
	row EINVAL 'path=.*one of its paths' "$ok dest_port=4321"
	row EINVAL dest_port "sessname=s1 device_path=$disk dest_port=4321"
	row EEXIST "$disk" "sessname=s1 device_path=$disk dest_port=1234"
fi
row 'EPERM|EBUSY' "$disk" "sessname=s2 path=$a device_path=$disk"
row ENOENT /dev/absent 'sessname=s1 device_path=/dev/absent'
equal state "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" open
unmap "$dev"

# A read-only disk can be mapped read-only.
dev=$(map s1 "$protected" access_mode=ro)
dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none || fail "it can't be read"
unmap "$dev"
on server 'rm /dev/no-driver'

wait
must "the server that isn't there: $(cat /tmp/nobody)" \
	grep -qxE 'ETIMEDOUT|EHOSTUNREACH' /tmp/nobody
dmesg | grep -qE '192\.168\.100\.77' || fail "the log says nothing of 192.168.100.77"
client_idle
server_idle
equal "rdma resource" "$(rdma_resources)" "$before"
equal "rows that failed" $bad 0
tear_down
