# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Steps that tests are made of. A test runs in the client guest, or in the only
# one; what it wants on the server goes through `on server '...'`, which is a
# plain subshell where there is only one guest.

shopt -s inherit_errexit

# ---- talk, fail, wait ----

say() { echo "# $*"; }
fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "SKIP: $*"; exit 4; }

_never=
# pause SECONDS: like sleep, without starting a process.
pause()
{
	[ -n "$_never" ] || exec {_never}<> <(:)
	read -r -t "$1" -u "$_never" || true
}

# Limits are chosen for a fast machine that has nothing else to do; the host says how many
# times slower this one is at the moment: in $slowness.
how_slow()
{
	slowness=1
	[ ! -e /run/rig/slowness ] || read -r slowness </run/rig/slowness
}

# slowly SECONDS: on this machine, at the moment
slowly()
{
	local slowness
	how_slow
	echo $(($1 * slowness))
}

# wait_for SECONDS COMMAND...: until the command is true; false if it never is. The seconds
# are more on a slow machine.
wait_for()
{
	local from=$SECONDS seconds=$1
	shift
	until "$@"; do
		[ $((SECONDS - from)) -le "$seconds" ] ||
			[ $((SECONDS - from)) -le "$(slowly "$seconds")" ] || return 1
		pause 0.1
	done
}

# milliseconds since some time
now() { echo $((${EPOCHREALTIME/./} / 1000)); }

# must TEXT COMMAND...: the command is true, or the test fails with the text.
must()
{
	local text=$1
	shift
	"$@" || fail "$text"
}

equal()
{
	[ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"
}

# ---- guests ----

two_guests() { [[ $RIG_GUESTS == *,* ]]; }
clients() { tr , '\n' <<<"$RIG_GUESTS" | sed 1d; }

_calls=0
# call TARGET TEXT: have the host pass the text to another guest, or do it.
call()
{
	local id code
	id=$BASHPID-$((++_calls))
	printf '%s\n' "$2" >"/run/rig/$id.call"
	mkfifo "/run/rig-calls/$id"
	echo "CALL $id $1" >&9
	read -r code <"/run/rig-calls/$id"
	cat "/run/rig/$id.ret"
	rm -f "/run/rig-calls/$id"
	return "$code"
}

# on GUEST 'shell text': run it there, with these steps at hand.
on()
{
	if [ "$1" = "$RIG_NAME" ] || ! two_guests; then
		(set -eu; eval "$2")
	else
		call "$1" "set -eu; . $RIG_DIR/lib.sh; $2"
	fi
}

# link GUEST NET on|off|silent|hold: what becomes of a network cable. on: plugged in; off:
# pulled, and the network card sees it; silent: nothing goes through, and nobody is told;
# hold: what this guest sends is kept until it is `on` again, and comes through then.
link() { call host "link $1 $2 $3"; }

# kill_guest GUEST: power off without a goodbye; boot_guest: on again, returns when it is
# ready. Nothing is loaded then, no network up.
kill_guest() { call host "kill $1"; }
boot_guest() { call host "boot $1"; }

# freeze GUEST: it stands still, thaw: goes on.
freeze() { call host "freeze $1"; }
thaw() { call host "thaw $1"; }

# netem GUEST NET ARGUMENT...: what it sends on a network meets with this, e.g. loss 5%;
# without arguments no longer.
netem_here()
{
	local dev=eth$1
	shift
	if [ $# = 0 ]; then
		tc qdisc del dev "$dev" root
	else
		debug_kernel || modprobe sch_netem
		# The limit counts packets, that wait as well.
		tc qdisc replace dev "$dev" root netem limit 100000 "$@"
	fi
}

netem() { on "$1" "netem_here ${*:2}"; }

# ---- chance, and how often ----

# dice: from here on $RANDOM is the same in each run with the same SEED
dice()
{
	SEED=${SEED:-$((EPOCHSECONDS % 100000))}
	say "SEED=$SEED"
	RANDOM=$SEED
}

# random LOW HIGH: a number in $rnd (a subshell would throw dice of its own)
# shellcheck disable=SC2034
random() { rnd=$(($1 + RANDOM * ($2 - $1 + 1) / 32768)); }

# pause_ms MILLISECONDS
pause_ms() { pause "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

round=0
# more: true as many times as the test's header says (Rounds), or ROUNDS=, or, in a soak,
# until the time is over; counts in $round
more()
{
	round=$((round + 1))
	if [ "${RIG_SOAK:-0}" != 0 ]; then
		[ $SECONDS -lt "$RIG_SOAK" ] && return
	else
		[ $round -le "${RIG_ROUNDS:-1}" ] && return
	fi
	say "$((round - 1)) rounds"
	return 1
}

# ---- network and RDMA ----

# My number in a network: 1 is the server.
_number()
{
	local n=0 g
	for g in ${RIG_GUESTS//,/ }; do
		n=$((n + 1))
		[ "$g" = "$1" ] && echo $n && return
	done
	echo 1
}

# addr GUEST NET, addr6, gid: an address as map_device takes it.
addr() { echo "ip:192.168.$((100 + $2)).$(_number "$1")"; }
addr6() { echo "ip:fd00:$((100 + $2))::$(_number "$1")"; }
# The GID of the IPv4 address, as rxe has it in its table.
gid()
{
	printf 'gid:0000:0000:0000:0000:0000:ffff:c0a8:%02x%02x\n' \
		$((100 + $2)) "$(_number "$1")"
}

# netdev NET: this guest's network device; in a single guest that is a dummy device
netdev() { if two_guests; then echo "eth$1"; else echo "dummy$1"; fi; }

# The kind of the RDMA devices: rxe or siw. Their names are that and the network's number.
rdma=${RIG_RDMA:-rxe}

# add_rdma NET: an RDMA device on that network
add_rdma() { rdma link add "$rdma$1" type "$rdma" netdev "$(netdev "$1")"; }

# Networks 0 and 1 up on this guest, with an RDMA device on each
rdma_here()
{
	local net dev me

	[ ! -e /sys/class/infiniband/"$rdma"1 ] || return 0
	modprobe -q crc32_generic || :	# built in on newer kernels
	modprobe "${rdma/#rxe/rdma_rxe}"
	me=$(_number "$RIG_NAME")
	for net in 0 1; do
		dev=$(netdev $net)
		if ! two_guests; then
			ip link add "$dev" type dummy
		elif [ ! -e "/sys/class/net/$dev" ]; then
			modprobe virtio_net
		fi
		echo 0 >"/proc/sys/net/ipv6/conf/$dev/accept_dad"
		ip link set "$dev" mtu 9000 up
		ip addr add 192.168.$((100 + net))."$me"/24 dev "$dev"
		ip addr add fd00:$((100 + net))::"$me"/64 dev "$dev" nodad
		add_rdma $net
	done
	! two_guests || call host "listens $RIG_NAME"
}

rdma_up()
{
	local g

	rdma_here
	if two_guests; then
		for g in ${RIG_GUESTS//,/ }; do
			[ "$g" = "$RIG_NAME" ] || on "$g" rdma_here
		done
		networks_up
	fi
}

# Packets go through, and both ends know each other's hardware address. The first
# ones after a boot can take their time, which is none of the drivers' business.
networks_up()
{
	local net from=$SECONDS

	for net in 0 1; do
		wait_for 60 eval "busybox ping -c1 -W1 $(addr server $net | cut -d: -f2) >/dev/null" ||
			fail "no packets go through network $net"
	done
	[ $((SECONDS - from)) -lt 3 ] || say "the networks took $((SECONDS - from)) s to come up"
}

# counter NAME [GUEST]: of all rxe devices, e.g. sent_pkts
counter()
{
	cat /sys/class/infiniband/rxe*/ports/1/hw_counters/"$1" |
		awk '{ n += $1 } END { print n }'
}

# ---- modules ----

server_modules=${RIG_SERVER_MODULES:-$RIG_MODULES}
client_modules=${RIG_CLIENT_MODULES:-$RIG_MODULES}

# probe SET MODULE [PARAMETER=VALUE...]
probe()
{
	local set=$1
	shift
	modprobe -d "$RIG_TREES$set" "$@"
}

# load_server_here SET [PARAMETER=VALUE...]: of either server module
load_server_here()
{
	local set=$1 p rtrs=() rnbd=()
	shift
	# The in-tree driver has no such thing. What comes later counts.
	[ "$set" = intree ] || rnbd+=(export_files=Y)
	for p in "$@"; do
		case $p in
		port_nr=*|dev_search_path=*|export_files=*|listen=*|handover_grace=*)
						rnbd+=("$p") ;;
		# The in-tree driver has chunks only.
		slot_size=*)			[ "$set" = intree ] || rtrs+=("$p") ;;
		*)				rtrs+=("$p") ;;
		esac
	done
	probe "$set" rtrs_server "${rtrs[@]}"
	probe "$set" rnbd_server "${rnbd[@]}"
}

load_server() { on server "load_server_here $server_modules $*"; }
stop_server() { on server 'rmmod rnbd_server && rmmod rtrs_server'; }
load_client() { probe "$client_modules" rnbd_client; }

# up [PARAMETER=VALUE...]: everything to map devices with
up()
{
	rdma_up
	load_server "$@"
	load_client
}

unload_here()
{
	local m
	for m in rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core; do
		[ ! -e /sys/module/$m ] || rmmod $m || return
	done
}

unload()
{
	unload_here
	on server unload_here
}

# ---- the server's volumes ----

# null NAME MB [ATTRIBUTE=VALUE...]: a null_blk device that keeps what is
# written to it; prints its path. memory_backed=0 makes one that doesn't.
null_here()
{
	local dir=/sys/kernel/config/nullb/$1 name=$1 a
	modprobe null_blk nr_devices=0
	mkdir "$dir"
	echo "$2" >"$dir/size"
	shift 2
	for a in memory_backed=1 "$@"; do
		echo "${a#*=}" >"$dir/${a%%=*}"
	done
	echo 1 >"$dir/power"
	# Older kernels number them, newer ones take the name.
	[ -b "/dev/$name" ] || name=nullb$(<"$dir/index")
	echo "/dev/$name"
}

null() { on server "null_here $*"; }

# All null_blk devices gone again.
no_nulls_here()
{
	local d
	for d in /sys/kernel/config/nullb/*/; do
		[ ! -e "$d" ] || rmdir "$d"
	done
}

no_nulls() { on server 'no_dms_here; no_nulls_here'; }

# dm NAME LINE...: a device-mapper device, a line of its table each; prints its path.
# LINE is as dmsetup takes it: "start sectors target arguments".
dm_here()
{
	local name=$1
	shift
	modprobe -a dm-mod
	printf '%s\n' "$@" | dmsetup create --noudevsync --noudevrules "$name"
	echo "/dev/dm-$(dmsetup info -c --noheadings -o minor "$name")"
}

dm() { on server "dm_here ${*@Q}"; }

# dm_table NAME LINE...: give it another table
dm_table_here()
{
	local name=$1
	shift
	printf '%s\n' "$@" | dmsetup reload --noudevsync "$name"
	dmsetup resume --noudevsync --noudevrules "$name"
}

dm_table() { on server "dm_table_here ${*@Q}"; }

# All device-mapper devices gone again, those that stand on others first.
no_dms_here()
{
	local name

	[ -e /sys/class/misc/device-mapper ] || return 0
	for _ in 1 2 3; do
		for name in $(dmsetup ls | awk '/\(/ { print $1 }'); do
			dmsetup remove --noudevsync --noudevrules "$name" 2>/dev/null || true
		done
	done
}

# queue DISK ATTRIBUTE, here or on the server
queue() { cat "/sys/block/${1#/dev/}/queue/$2"; }
server_queue() { on server "queue $1 $2"; }

# ios DISK FIELD: a number of /sys/block/*/stat by name
ios()
{
	local f
	case $2 in
	reads) f=1 ;;
	read_merges) f=2 ;;
	read_sectors) f=3 ;;
	writes) f=5 ;;
	write_merges) f=6 ;;
	write_sectors) f=7 ;;
	discards) f=12 ;;
	discard_sectors) f=14 ;;
	flushes) f=16 ;;
	*) fail "ios: no field $2" ;;
	esac
	awk -v f=$f '{ print $f }' "/sys/block/${1#/dev/}/stat"
}

server_ios() { on server "ios $1 $2"; }

# scsi PATH_OPTIONS...: a scsi_debug disk, which knows discard, write zeroes, FUA
# and a write cache; prints its path. `no_scsi` takes it away.
scsi_here()
{
	modprobe -a sd_mod
	modprobe scsi_debug dev_size_mb=64 delay=0 "$@"
	wait_for 20 compgen -G '/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*' >/dev/null ||
		fail "scsi_debug made no disk"
	echo "/dev/$(basename /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*)"
}

scsi() { on server "scsi_here $*"; }
no_scsi() { on server 'wait_for 20 rmmod scsi_debug 2>/dev/null' || fail "scsi_debug is in use"; }

# What the server's disk was asked to do, by the block layer's trace: start, run
# what is of interest, then count. Kinds are those of blktrace: R, W, D
# (discard), N (write zeroes), F (flush); WFS is a write with FUA and SYNC.
trace_here()
{
	local t=/sys/kernel/debug/tracing
	echo >$t/trace
	echo "dev == $(stat -c '(0x%t << 20) + 0x%T' "$1" | { read -r e; echo $((e)); })" \
		>$t/events/block/block_rq_issue/filter
	echo 1 >$t/events/block/block_rq_issue/enable
}

traced_here()
{
	local t=/sys/kernel/debug/tracing
	echo 0 >$t/events/block/block_rq_issue/enable
	sed -n 's/.*block_rq_issue: [0-9]*,[0-9]* \([A-Z]*\) .* + \([0-9]*\) .*/\1 \2/p' $t/trace
}

trace() { on server "trace_here $1"; }
# traced: a line for each request: its kind, and its sectors
traced() { on server traced_here; }

# ---- mapping ----

ctl=/sys/class/rnbd-client/ctl
# The server's rules
# shellcheck disable=SC2034
conf=/sys/kernel/config/rnbd

# mapped SESSION PATH: the disk's name, e.g. rnbd0; false if there's none
mapped()
{
	local link
	link=$(readlink "$ctl/devices/${2//\//!}@$1") || return
	basename "$link"
}

# map SESSION PATH [OPTION=VALUE...]: by the first network, if no path= is
# given; prints the block device.
map()
{
	local session=$1 device=$2 path
	path="path=$(addr server 0)"
	shift 2
	case " $* " in
	*" path="*|*" nopath "*) path= ;;
	esac
	set -- "${@/#nopath/}"
	echo "sessname=$session $path device_path=$device $*" >$ctl/map_device
	echo "/dev/$(mapped "$session" "$device")"
}

# unmap DEVICE [force]
unmap()
{
	echo "${2:-normal}" >"/sys/block/${1#/dev/}/rnbd/unmap_device"
	# The answer comes before the disk is gone.
	wait_for 20 test ! -e "/sys/block/${1#/dev/}" || fail "$1 still there after unmap"
}

# server_idle: no session is left on the server
no_sessions()
{
	! compgen -G "/sys/class/rtrs-$1/*/paths" >/dev/null
}

server_idle() { on server 'wait_for 30 no_sessions server' || fail "sessions left on the server"; }
client_idle() { wait_for 30 no_sessions client || fail "sessions left on the client"; }

# patience SECONDS: the kernel complains of tasks that wait for longer than that, rather
# than for 20 s; until `down`
patience() { slowly "$1" >/proc/sys/kernel/hung_task_timeout_secs; }
# Never less than 20 s, as they pass on this machine
how_slow
read -r _patience </proc/sys/kernel/hung_task_timeout_secs
[ "$_patience" -ge $((20 * slowness)) ] || patience 20

# down: for the end of a test: all mapped devices have been unmapped already
down()
{
	client_idle
	server_idle
	no_nulls
	patience 20
}

# ---- errors and the kernel's log ----

declare -A _text=(
	[EPERM]="Operation not permitted"
	[ENOENT]="No such file or directory"
	[EIO]="Input/output error"
	[ENXIO]="No such device or address"
	[ESTALE]="Stale file handle"
	[ENOMEM]="Cannot allocate memory"
	[EKEYREJECTED]="Key was rejected by service"
	[ENOKEY]="Required key not available"
	[EACCES]="Permission denied"
	[EBUSY]="Device or resource busy"
	[EEXIST]="File exists"
	[ENODEV]="No such device"
	[ENOTDIR]="Not a directory"
	[EISDIR]="Is a directory"
	[EINVAL]="Invalid argument"
	[ENOTBLK]="Block device required"
	[EROFS]="Read-only file system"
	[ERANGE]="Numerical result out of range"
	[ENAMETOOLONG]="File name too long"
	[EOPNOTSUPP]="Operation not supported"
	[EADDRNOTAVAIL]="Cannot assign requested address"
	[EAFNOSUPPORT]="Address family not supported by protocol"
	[ENETUNREACH]="Network is unreachable"
	[EHOSTUNREACH]="No route to host"
	[ENOTCONN]="Transport endpoint is not connected"
	[ESHUTDOWN]="Cannot send after transport endpoint shutdown"
	[ETIMEDOUT]="Connection timed out"
	[ECONNRESET]="Connection reset by peer"
	[ECONNREFUSED]="Connection refused"
	[EALREADY]="Operation already in progress"
	[EPROTONOSUPPORT]="Protocol not supported"
	[ECONNABORTED]="Software caused connection abort"
	[ENOTCONN]="Transport endpoint is not connected"
	[EHOSTDOWN]="Host is down"
	[EFBIG]="File too large"
	[ENOSPC]="No space left on device"
	[E2BIG]="Argument list too long"
	[EAGAIN]="Resource temporarily unavailable"
	[EMFILE]="Too many open files"
	[EREMOTEIO]="Remote I/O error"
	[ENODATA]="No data available"
	[EDQUOT]="Disk quota exceeded"
	[EBADE]="Invalid exchange"
	[EILSEQ]="Invalid or incomplete multibyte or wide character"
)

# errno_of FILE TEXT: write the text to the file; print the error's name, or 0
errno_of()
{
	local out name
	if out=$( { printf '%s\n' "$2" >"$1"; } 2>&1); then
		echo 0
		return
	fi
	for name in "${!_text[@]}"; do
		[[ $out != *": ${_text[$name]}" ]] || { echo "$name"; return; }
	done
	echo "unknown: $out"
}

# mark, since: what the kernel logged since the mark
mark()
{
	_mark="mark-$BASHPID-$RANDOM"
	echo "$_mark" >/dev/kmsg
}

# A message that is longer than a line of the log lacks its end, and isn't shown before
# another one follows.
since()
{
	echo "end of $_mark" >/dev/kmsg
	dmesg | sed "1,/$_mark/d; /end of $_mark/d"
}

# refused EXPECTED TEXT: map_device gives this errno, or one of several (A|B)
refused()
{
	local got
	got=$(errno_of "$ctl/map_device" "$2")
	[[ "|$1|" == *"|$got|"* ]] || fail "'$2' gave $got, expected $1"
}

# ---- load ----

# load DEVICE [FIO OPTION...]: I/O until it fails or is stopped; its process id
# is then in $loader
load()
{
	local dev=$1 before
	shift
	before=$(ios "$dev" writes)
	fio --name=load --filename="$dev" --direct=1 --ioengine=libaio --rw=randrw \
		--bs=16k --iodepth=16 --time_based --runtime=1000 "$@" >/tmp/load.out 2>&1 &
	# shellcheck disable=SC2034
	loader=$!
	wait_for 20 eval "[ \$(ios $dev writes) -gt $((before + 20)) ]" ||
		fail "no load: $(cat /tmp/load.out)"
}

# impatient SESSION: its I/O doesn't wait for a path. The in-tree client's never does.
impatient()
{
	[ "$client_modules" != ours ] || echo 0 >"/sys/class/rtrs-client/$1/failover_timeout"
}

ended() { ! kill -0 "$1" 2>/dev/null; }

# load_fails SECONDS: the load must end by itself in this time, with I/O errors
load_fails()
{
	wait_for "$1" ended "$loader" || fail "I/O still waits after $1 s"
	! wait "$loader" || fail "the load saw no I/O error"
	grep -qi 'input/output error\|no such device\|error' /tmp/load.out || fail "$(cat /tmp/load.out)"
}

# load_goes_on: it has not failed so far; stop it
load_goes_on()
{
	! ended "$loader" || fail "the load ended: $(cat /tmp/load.out)"
	kill -INT "$loader"
	wait "$loader" || true
	! grep -qi 'input/output error' /tmp/load.out || fail "$(cat /tmp/load.out)"
}

# ---- data ----

# digest COMMAND...: checksum of what it prints; if it fails, something that equals nothing
digest()
{
	local out
	out=$(set -o pipefail; "$@" | sha256sum) || { echo "failed-$BASHPID-$EPOCHREALTIME"; return 1; }
	echo "${out%% *}"
}

# sum DEVICE: checksum of all of it, past the page cache
sum() { digest dd if="$1" bs=1M iflag=direct status=none; }

# verify DEVICE [FIO OPTION...]: writes all sizes and checks what it reads back
verify()
{
	local dev=$1 out
	shift
	out=$(fio --name=verify --filename="$dev" --direct=1 --ioengine=libaio \
		--rw=randwrite --iodepth=16 --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --group_reporting "$@" 2>&1) ||
		fail "fio --verify on $dev: $out"
}

# gives EXPECTED DEVICE STEP...: the steps of steps/io.py give these errnos, 0 for none
gives()
{
	local want=$1 got
	shift
	got=$("$RIG_DIR/steps/io.py" "$@") || fail "io.py failed"
	equal "${*:2}" "$got" "$want"
}

# A mix of sizes, of 512 bytes to 1 MiB, and one for disks of 4 KiB blocks.
# shellcheck disable=SC2034
mixed=--bssplit=512/15:1k/10:4k/30:16k/15:64k/10:128k/10:1m/10
# shellcheck disable=SC2034
mixed4k=--bssplit=4k/45:16k/20:64k/15:128k/10:1m/10

# ---- a hostile peer ----

# hostile ARGUMENT...: run it; see hostile/main.c
hostile()
{
	modprobe -a ib_uverbs rdma_ucm
	! debug_kernel || export HOSTILE_UNLIMITED=1
	"${RIG_TREES%tree-}hostile" "$@"
}

# bystander DEVICE: I/O of a session that is to notice nothing: writes and verifies
# all the time, until bystander_unharmed
bystander()
{
	fio --name=bystander --filename="$1" --direct=1 --ioengine=libaio --rw=randwrite \
		--bs=4k --iodepth=2 --size=4m --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --loops=1000000 --thinktime=2ms \
		--max_latency="$(slowly 15)s" >/tmp/bystander.out 2>&1 &
	bystander=$!
}

bystander_unharmed()
{
	! ended "$bystander" || fail "the other session's I/O ended: $(cat /tmp/bystander.out)"
	kill -INT "$bystander"
	wait "$bystander" || true
	grep -q 'err= 0' /tmp/bystander.out || fail "the other session noticed: $(cat /tmp/bystander.out)"
	say "the other session: $(grep -m1 ' write: ' /tmp/bystander.out | xargs)," \
		"$(grep -m1 ' clat (' /tmp/bystander.out | xargs)"
}

# ---- leftovers ----

# leftovers: lists what is left of a test on this guest; nothing if all is well.
# In the end the modules have to go.
leftovers()
{
	local f side n=0

	for side in client server; do
		wait_for 15 no_sessions $side || {
			echo "session left: $(echo /sys/class/rtrs-$side/*/paths/*)"
			n=1
		}
	done
	for f in /sys/block/rnbd*; do
		[ ! -e "$f" ] || { echo "disk left: $f"; n=1; }
	done
	for f in /sys/class/rnbd-server/ctl/devices/*/block_dev "$ctl"/devices/*; do
		[ ! -L "$f" ] || { echo "left: $f"; n=1; }
	done
	[ $n = 0 ] || return 0
	for f in qp mr pd cq; do
		rdma resource show $f 2>/dev/null | grep -E 'comm \[?(rtrs|rnbd)' |
			sed "s/^/$f left: /"
	done
	timeout "$(slowly 60)" bash -c ". $RIG_DIR/lib.sh; unload_here" 2>&1 ||
		echo "modules can't be unloaded: $(lsmod | grep -E '^(rtrs|rnbd)' | tr '\n' ';')"
	# Of work queues that were not destroyed
	grep -hE '^(rtrs|rnbd)' /proc/[0-9]*/comm 2>/dev/null | sed 's/^/thread left: /'
	for side in 0 1; do
		[ ! -e "/sys/class/net/$(netdev $side)" ] ||
			ip -o -4 addr show dev "$(netdev $side)" |
				awk '!/ 192\.168\.10[01]\.[1-9]\// { print "address left: " $4 }'
	done
	no_dms_here
	if [ -e /sys/class/misc/device-mapper ]; then
		dmsetup ls | awk '/\(/ { print "device-mapper device left: " $1 }'
	fi
	no_nulls_here
}

# ---- a test that takes too long ----

# what_waits: each CPU's next timer, and what each process waits in. Tasks that sleep for good
# are in the kernel's log. What may hang itself comes last.
what_waits()
{
	local p args

	echo w >/proc/sysrq-trigger
	# Times in ns. A CPU whose next one is past has lost it.
	grep -E '^(now at|cpu:|Per CPU)|(expires_next|next_event) *:' /proc/timer_list 2>/dev/null || true
	for p in /proc/[0-9]*; do
		# Threads of the kernel have none.
		if [ ! -e "$p/exe" ] || [ "$p" = /proc/$$ ]; then
			continue
		fi
		args=$(timeout 1 tr '\0' ' ' 2>/dev/null <"$p/cmdline") || continue
		echo "${p#/proc/} ${args:0:160}"
		timeout 1 sed 's/^/    /' "$p/stack" 2>/dev/null || true
	done
}

# ---- the debug kernel ----

debug_kernel() { [ "$RIG_KERNEL" = debug ]; }

# leaked_memory: what kmemleak finds; nothing if all is well. It wants to have seen
# memory unchanged for 5 s before it calls it a leak.
leaked_memory()
{
	local f=/sys/kernel/debug/kmemleak

	for _ in 1 2; do
		echo scan >$f
		pause 6
	done
	echo scan >$f
	[ -z "$(head -c 1 $f)" ] || { echo scan >$f; cat $f; }
}

# save_coverage: counters of our modules' lines, to the guest's folder on the host
save_coverage()
{
	mkdir -p /run/rig/gcov
	cd /sys/kernel/debug/gcov
	find . -name '*.gcda' -exec cp --parents -t /run/rig/gcov {} +
}
