# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions for tests. A test runs in the client guest, or in the only guest. `on server '...'`
# runs text on the server: in a subshell if there is only one guest. A function NAME_here works
# on the guest that calls it; NAME does the same on the server, unless its comment says otherwise.

shopt -s inherit_errexit

# ---- messages, failures, waiting ----

# say TEXT...: prints a remark
say() { echo "# $*"; }
# fail TEXT...: ends the test as failed
fail() { echo "FAIL: $*"; exit 1; }
# skip TEXT...: ends the test as skipped
skip() { echo "SKIP: $*"; exit 4; }

_never=
# pause SECONDS: sleeps without starting a process
pause()
{
	[ -n "$_never" ] || exec {_never}<> <(:)
	read -r -t "$1" -u "$_never" || true
}

# how_slow: sets $slowness to how many times slower this machine is than a fast idle one, for
# which limits are chosen; the host measures that
how_slow()
{
	slowness=1
	[ ! -e /run/rig/slowness ] || read -r slowness </run/rig/slowness
}

# slowly SECONDS: prints how many seconds this machine needs for what a fast one does in SECONDS
slowly()
{
	local slowness
	how_slow
	echo $(($1 * slowness))
}

# wait_for SECONDS COMMAND...: repeats the command until it is true; false after slowly SECONDS
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

# now: prints the time in milliseconds
now() { echo $((${EPOCHREALTIME/./} / 1000)); }

# must TEXT COMMAND...: fails with the text unless the command is true
must()
{
	local text=$1
	shift
	"$@" || fail "$text"
}

# equal TEXT VALUE EXPECTED: fails unless both values are the same
equal()
{
	[ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"
}

# ---- guests ----

# two_guests: true if the server and the client are different guests
two_guests() { [[ $RIG_GUESTS == *,* ]]; }
# clients: prints the names of all guests but the server, one a line
clients() { tr , '\n' <<<"$RIG_GUESTS" | sed 1d; }

_calls=0
# call TARGET TEXT: has the host run the text in another guest, or carry it out itself
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

# on GUEST 'shell text': runs the text in that guest, with these functions
on()
{
	if [ "$1" = "$RIG_NAME" ] || ! two_guests; then
		(set -eu; eval "$2")
	else
		call "$1" "set -eu; . $RIG_DIR/lib.sh; $2"
	fi
}

# set_link GUEST NET STATE: changes a network cable. STATE is one of
#	on	plugged in
#	off	pulled: the network card reports no carrier
#	silent	all packets are lost, and the network card does not notice
#	hold	packets of this guest are delayed until `on`
#	short	packets longer than an MTU of 1500 bytes are lost
#	stale	the next connection request of this guest is lost, with all its repetitions, as if
#		it were sent to a stale hardware address
set_link() { call host "link $1 $2 $3"; }

# kill_guest GUEST: switches the guest off
kill_guest() { call host "kill $1"; }
# boot_guest GUEST: boots it again and waits for it; no module is loaded then, no network is up
boot_guest() { call host "boot $1"; }

# freeze GUEST: stops all CPUs of the guest
freeze() { call host "freeze $1"; }
# thaw GUEST: lets its CPUs run again
thaw() { call host "thaw $1"; }

# netem_here NET [ARGUMENT...]: applies arguments of tc-netem(8), e.g. loss 5%, to packets that this
# guest sends on a network; without arguments it removes them
netem_here()
{
	local dev=eth$1
	shift
	if [ $# = 0 ]; then
		tc qdisc del dev "$dev" root
	else
		debug_kernel || modprobe sch_netem
		# The limit also counts packets that are delayed.
		tc qdisc replace dev "$dev" root netem limit 100000 "$@"
	fi
}

# netem GUEST NET [ARGUMENT...]: calls netem_here in that guest
netem() { on "$1" "netem_here ${*:2}"; }

# ---- random numbers, rounds ----

# seed_random: makes $RANDOM repeatable: the same SEED gives the same numbers
seed_random()
{
	SEED=${SEED:-$((EPOCHSECONDS % 100000))}
	say "SEED=$SEED"
	RANDOM=$SEED
}

# random_number LOW HIGH: sets $rnd to a random number (a subshell would not advance $RANDOM here)
# shellcheck disable=SC2034
random_number() { rnd=$(($1 + RANDOM * ($2 - $1 + 1) / 32768)); }

# pause_ms MILLISECONDS: sleeps
pause_ms() { pause "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

round=0
# next_round: increments $round; true for the number of rounds in the header ("Rounds:") or in
# ROUNDS=, or, in a soak, until its time is over
next_round()
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

# _number GUEST: prints the guest's number in a network; the server is 1
_number()
{
	local n=0 g
	for g in ${RIG_GUESTS//,/ }; do
		n=$((n + 1))
		[ "$g" = "$1" ] && echo $n && return
	done
	echo 1
}

# addr GUEST NET: prints the IPv4 address of a guest, as map_device takes it
addr() { echo "ip:192.168.$((100 + $2)).$(_number "$1")"; }
# addr6 GUEST NET: prints the IPv6 address
addr6() { echo "ip:fd00:$((100 + $2))::$(_number "$1")"; }
# gid GUEST NET: prints the GID of the IPv4 address, as in rxe's table
gid()
{
	printf 'gid:0000:0000:0000:0000:0000:ffff:c0a8:%02x%02x\n' \
		$((100 + $2)) "$(_number "$1")"
}

# netdev NET: prints the name of this guest's network device; a single guest has dummy devices
netdev() { if two_guests; then echo "eth$1"; else echo "dummy$1"; fi; }

# The kind of the RDMA devices: rxe or siw. Their names are that and the network's number.
rdma=${RIG_RDMA:-rxe}

# add_rdma NET: makes an RDMA device on that network
add_rdma() { rdma link add "$rdma$1" type "$rdma" netdev "$(netdev "$1")"; }

# rdma_here: sets up networks 0 and 1 on this guest, with an RDMA device on each
rdma_here()
{
	local net dev me

	[ ! -e /sys/class/infiniband/"$rdma"1 ] || return 0
	modprobe -q crc32_generic || :	# built in on newer kernels
	# The debug kernel has soft-iWARP built in, the others' module is in a tree of its own.
	if [ "$rdma" = rxe ]; then
		modprobe rdma_rxe
	elif ! debug_kernel; then
		probe siw siw
	fi
	me=$(_number "$RIG_NAME")
	for net in 0 1; do
		dev=$(netdev $net)
		if ! two_guests; then
			[ -e "/sys/class/net/$dev" ] || ip link add "$dev" type dummy
		elif [ ! -e "/sys/class/net/$dev" ]; then
			modprobe virtio_net
		fi
		echo 0 >"/proc/sys/net/ipv6/conf/$dev/accept_dad"
		ip link set "$dev" mtu 9000 up
		ip addr replace 192.168.$((100 + net))."$me"/24 dev "$dev"
		ip addr replace fd00:$((100 + net))::"$me"/64 dev "$dev" nodad
		add_rdma $net
	done
	! two_guests || call host "listens $RIG_NAME"
}

# rdma_up: sets up networks and RDMA devices on all guests
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

# networks_up: waits until packets pass between client and server, and both ends know each
# other's hardware address. The first packets after a boot may be late.
networks_up()
{
	local net from=$SECONDS

	for net in 0 1; do
		wait_for 60 eval "busybox ping -c1 -W1 $(addr server $net | cut -d: -f2) >/dev/null" ||
			fail "no packets go through network $net"
	done
	[ $((SECONDS - from)) -lt 3 ] || say "the networks took $((SECONDS - from)) s to come up"
}

# counter NAME: prints the sum of a hardware counter of all rxe devices here, e.g. sent_pkts
counter()
{
	cat /sys/class/infiniband/rxe*/ports/1/hw_counters/"$1" |
		awk '{ n += $1 } END { print n }'
}

# ---- modules ----

server_modules=${RIG_SERVER_MODULES:-$RIG_MODULES}
client_modules=${RIG_CLIENT_MODULES:-$RIG_MODULES}

# probe SET MODULE [PARAMETER=VALUE...]: loads a module of that set
probe()
{
	local set=$1
	shift
	modprobe -d "$RIG_TREES$set" "$@"
}

# load_server_here SET [PARAMETER=VALUE...]: loads the server's modules; passes each parameter to
# the module that has it
load_server_here()
{
	local set=$1 p rtrs=() rnbd=()
	shift
	# The in-tree driver does not have it. A later value takes precedence.
	[ "$set" = intree ] || rnbd+=(export_files=Y)
	for p in "$@"; do
		case $p in
		port_nr=*|dev_search_path=*|export_files=*|listen=*|handover_grace=*|state_dir=*)
						rnbd+=("$p") ;;
		# The in-tree driver has chunks only.
		slot_size=*)			[ "$set" = intree ] || rtrs+=("$p") ;;
		*)				rtrs+=("$p") ;;
		esac
	done
	probe "$set" rtrs_server "${rtrs[@]}"
	probe "$set" rnbd_server "${rnbd[@]}"
}

# load_server [PARAMETER=VALUE...]: loads the server's modules on the server
load_server() { on server "load_server_here $server_modules $*"; }
# stop_server: unloads them, except rtrs_core
stop_server() { on server 'rmmod rnbd_server && rmmod rtrs_server'; }
# load_client: loads the client's modules
load_client() { probe "$client_modules" rnbd_client; }

# set_up [PARAMETER=VALUE...]: sets up networks, RDMA devices and modules on all guests; the
# parameters are those of load_server
set_up()
{
	rdma_up
	load_server "$@"
	load_client
}

# unload_here: unloads all modules of the driver
unload_here()
{
	local m
	for m in rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core; do
		[ ! -e /sys/module/$m ] || rmmod $m || return
	done
}

# unload: unloads them on the client and on the server
unload()
{
	unload_here
	on server unload_here
}

# ---- the server's volumes ----

# null_here NAME MB [ATTRIBUTE=VALUE...]: makes a null_blk device and prints its path. The
# device keeps the written data in memory, unless memory_backed=0.
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

# null NAME MB [ATTRIBUTE=VALUE...]: makes one on the server
null() { on server "null_here $*"; }

# no_nulls_here: removes all null_blk devices
no_nulls_here()
{
	local d
	for d in /sys/kernel/config/nullb/*/; do
		[ ! -e "$d" ] || rmdir "$d"
	done
}

# no_nulls: removes all device-mapper and null_blk devices of the server
no_nulls() { on server 'no_dms_here; no_nulls_here'; }

# dm_here NAME LINE...: makes a device-mapper device and prints its path; each LINE is one of its
# table: "start sectors target arguments"
dm_here()
{
	local name=$1
	shift
	modprobe -a dm-mod
	printf '%s\n' "$@" | dmsetup create --noudevsync --noudevrules "$name"
	echo "/dev/dm-$(dmsetup info -c --noheadings -o minor "$name")"
}

# dm NAME LINE...: makes one on the server
dm() { on server "dm_here ${*@Q}"; }

# dm_suspend_here NAME: makes a device-mapper device hold all requests
dm_suspend_here() { dmsetup suspend --noflush --nolockfs --noudevsync "$1"; }
# dm_resume_here NAME: lets it carry them out again
dm_resume_here() { dmsetup resume --noudevsync --noudevrules "$1"; }

# dm_suspend NAME: calls dm_suspend_here on the server
dm_suspend() { on server "dm_suspend_here $1"; }
# dm_resume NAME: calls dm_resume_here on the server
dm_resume() { on server "dm_resume_here $1"; }

# dm_table_here NAME LINE...: replaces the table of a device-mapper device
dm_table_here()
{
	local name=$1
	shift
	printf '%s\n' "$@" | dmsetup reload --noudevsync "$name"
	dm_resume_here "$name"
}

# dm_table NAME LINE...: replaces it on the server
dm_table() { on server "dm_table_here ${*@Q}"; }

# no_dms_here: removes all device-mapper devices, which may be stacked
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

# queue DISK ATTRIBUTE: prints an attribute of the disk's queue
queue() { cat "/sys/block/${1#/dev/}/queue/$2"; }
# server_queue DISK ATTRIBUTE: prints one of a disk of the server
server_queue() { on server "queue $1 $2"; }

# ios DISK FIELD: prints a number of /sys/block/*/stat by name
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

# server_ios DISK FIELD: prints one of a disk of the server
server_ios() { on server "ios $1 $2"; }

# inflight DISK [reads|writes]: prints the number of requests of a disk that are in flight
inflight()
{
	local reads writes
	read -r reads writes <"/sys/block/${1#/dev/}/inflight" || return
	case ${2:-all} in
	reads)	echo "$reads" ;;
	writes)	echo "$writes" ;;
	all)	echo $((reads + writes)) ;;
	*)	fail "inflight: no $2" ;;
	esac
}

# has_inflight DISK [reads|writes]: true if any are in flight
has_inflight() { [ "$(inflight "$@")" -gt 0 ]; }
# no_inflight DISK [reads|writes]: true if none are in flight
no_inflight() { [ "$(inflight "$@")" = 0 ]; }

# scsi_disks_here: prints the sysfs folders of all disks of scsi_debug; false if there are none
scsi_disks_here() { compgen -G '/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*'; }

# scsi_here [PARAMETER=VALUE...]: makes a scsi_debug disk and prints its path; it has discard,
# write zeroes, FUA and a write cache
scsi_here()
{
	modprobe -a sd_mod
	modprobe scsi_debug dev_size_mb=64 delay=0 "$@"
	wait_for 20 scsi_disks_here >/dev/null || fail "scsi_debug made no disk"
	echo "/dev/$(basename "$(scsi_disks_here)")"
}

# scsi [PARAMETER=VALUE...]: makes one on the server
scsi() { on server "scsi_here $*"; }
# no_scsi: removes it again
no_scsi() { on server 'wait_for 60 rmmod scsi_debug 2>/dev/null' || fail "scsi_debug is in use"; }

tracing=/sys/kernel/debug/tracing
# trace_here DISK: starts tracing the requests that the block layer passes to a disk
trace_here()
{
	local t=$tracing
	echo >$t/trace
	echo "dev == $(stat -c '(0x%t << 20) + 0x%T' "$1" | { read -r e; echo $((e)); })" \
		>$t/events/block/block_rq_issue/filter
	echo 1 >$t/events/block/block_rq_issue/enable
}

# traced_here: stops tracing; prints the kind and the sectors of each request, one a line. The kinds
# are named as in blktrace: R, W, D (discard), N (write zeroes), F (flush); WFS is a write with FUA
# and SYNC.
traced_here()
{
	local t=$tracing
	echo 0 >$t/events/block/block_rq_issue/enable
	sed -n 's/.*block_rq_issue: [0-9]*,[0-9]* \([A-Z]*\) .* + \([0-9]*\) .*/\1 \2/p' $t/trace
}

# trace DISK: calls trace_here on the server
trace() { on server "trace_here $1"; }
# traced: calls traced_here on the server
traced() { on server traced_here; }

# link_volume NAME DISK: makes a symbolic link to a disk in $volumes on the server. Load the server
# with dev_search_path=$volumes.
volumes=/tmp/volumes
link_volume() { on server "mkdir -p $volumes; ln -sfn $2 $volumes/$1"; }

# add_key GUEST NAME SECRET: adds a key to the guest's user keyring, or changes its secret
add_key() { on "$1" "printf %s $3 | keyctl padd logon $2 @u >/dev/null"; }

# ---- mapping ----

ctl=/sys/class/rnbd-client/ctl
# Where the server's rules are
# shellcheck disable=SC2034
conf=/sys/kernel/config/rnbd

# mapped SESSION PATH: prints the name of the mapped disk, e.g. rnbd0; false if there is none
mapped()
{
	local link
	link=$(readlink "$ctl/devices/${2//\//!}@$1") || return
	basename "$link"
}

# map SESSION PATH [OPTION=VALUE...]: maps a device and prints the block device; uses network 0
# unless there is a path= or the word nopath
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

# unmap DEVICE [force]: unmaps a device and waits until its disk is gone
unmap()
{
	echo "${2:-normal}" >"/sys/block/${1#/dev/}/rnbd/unmap_device"
	# The write returns before the disk is gone.
	wait_for 20 test ! -e "/sys/block/${1#/dev/}" || fail "$1 still there after unmap"
}

# device_attr DEVICE NAME: prints the path of an attribute of a mapped device
device_attr() { echo "/sys/block/${1#/dev/}/rnbd/$2"; }

# state_is DEVICE STATE: true if a mapped device has that state
state_is() { [ "$(cat "$(device_attr "$1" state)")" = "$2" ]; }

# wait_for_state DEVICE STATE [SECONDS]: waits until it has that state, 40 s by default
wait_for_state()
{
	wait_for "${3:-40}" state_is "$1" "$2" ||
		fail "$1 is '$(cat "$(device_attr "$1" state)")' after ${3:-40} s, not $2"
}

# show_paths: prints the state and the statistics of all paths of the client
show_paths()
{
	local p
	for p in /sys/class/rtrs-client/*/paths/*; do
		echo "${p#/sys/class/rtrs-client/}:" \
			"$(cat "$p/state" "$p/stats/rdma" "$p/stats/reconnects" 2>&1 | xargs);"
	done
}

# goes_on DEVICE [SECONDS]: waits until the device has completed 20 more writes, 20 s by default
goes_on()
{
	local before
	before=$(ios "$1" writes)
	wait_for "${2:-20}" eval "[ \$(ios $1 writes) -gt $((before + 20)) ]" ||
		fail "no more writes to $1, $(inflight "$1") requests in flight;" \
			"$(show_paths) $(cat /tmp/writers/*.out 2>/dev/null)"
}

# ---- sessions on the server ----

# server_paths SESSION: prints the names of a session's paths on the server, in order
server_paths() { on server "ls /sys/class/rtrs-server/$1/paths 2>/dev/null | sort | xargs"; }
# server_has_paths SESSION NUMBER: true if the session has that number of paths there
server_has_paths() { [ "$(server_paths "$1" | wc -w)" = "$2" ]; }
# server_paths_are SESSION [NAME...]: true if the session has exactly these paths there
server_paths_are() { [ "$(server_paths "$1")" = "${*:2}" ]; }
# server_has_no SESSION: true if the server does not have that session
server_has_no() { on server "[ ! -e /sys/class/rtrs-server/$1 ]"; }

# server_inflight SESSION: prints the number of requests of a session in flight at the server
server_inflight()
{
	on server "cat /sys/class/rtrs-server/$1/paths/*/stats/rdma 2>/dev/null" |
		awk '{ n += $5 } END { print n + 0 }'
}

# server_has_inflight SESSION NUMBER: true if exactly that number is in flight
server_has_inflight() { [ "$(server_inflight "$1")" = "$2" ]; }

# server_memory: prints the bytes that sessions take of the server's memory
server_memory() { on server 'cat /sys/devices/rtrs_server/stats/memory_used'; }
# server_memory_is BYTES: true if sessions take exactly BYTES
server_memory_is() { [ "$(server_memory)" = "$1" ]; }
# server_memory_at_most BYTES: true if sessions take no more than BYTES
server_memory_at_most() { [ "$(server_memory)" -le "$1" ]; }

# server_memory_falls_to BYTES: waits until sessions take no more than BYTES; a slot keeps its
# requests' memory until two heartbeats after the last use
server_memory_falls_to()
{
	wait_for 30 server_memory_at_most "$1" ||
		fail "sessions take $(server_memory) bytes of the server's memory, more than $1"
}

# server_memory_freed: waits until sessions take no memory of the server
server_memory_freed()
{
	wait_for 20 server_memory_is 0 ||
		fail "sessions that are gone take $(server_memory) bytes of the server's memory"
}

# ---- the end of a test ----

# no_sessions client|server: true if that side has no session on this guest
no_sessions()
{
	! compgen -G "/sys/class/rtrs-$1/*/paths" >/dev/null
}

# server_idle: waits until the server has no session
server_idle() { on server 'wait_for 30 no_sessions server' || fail "sessions left on the server"; }
# client_idle: waits until the client has no session
client_idle() { wait_for 30 no_sessions client || fail "sessions left on the client"; }

# rdma_resources: prints the RDMA objects in use here, without completion queues: the RDMA core
# keeps those for later users
rdma_resources()
{
	local all
	all=$(rdma resource show)
	sed 's/ cq [0-9]*//' <<<"$all"
}

# hung_task_limit SECONDS: the kernel reports hung tasks after SECONDS instead of 20 s, until
# `tear_down`
hung_task_limit() { slowly "$1" >/proc/sys/kernel/hung_task_timeout_secs; }
# On a slow machine 20 s are more.
how_slow
read -r _patience </proc/sys/kernel/hung_task_timeout_secs
[ "$_patience" -ge $((20 * slowness)) ] || hung_task_limit 20

# unmap_last DEVICE...: unmaps the last devices; waits until client and server have no session
unmap_last()
{
	local dev

	for dev; do
		unmap "$dev"
	done
	client_idle
	server_idle
}

# tear_down [DEVICE...]: ends a test: unmaps the last devices, waits until client and server have no
# session, and removes the server's null_blk and device-mapper devices
tear_down()
{
	unmap_last "$@"
	no_nulls
	hung_task_limit 20
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
	[EMSGSIZE]="Message too long"
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

# errno_of FILE TEXT: writes the text to the file; prints the error's name, or 0
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

# mark_log: writes a mark to the kernel's log
mark_log()
{
	_mark="mark-$BASHPID-$RANDOM"
	echo "$_mark" >/dev/kmsg
}

# log_since_mark: prints the kernel's log since the mark. A long message is complete only when
# another one follows, hence the second mark.
log_since_mark()
{
	echo "end of $_mark" >/dev/kmsg
	dmesg | sed "1,/$_mark/d; /end of $_mark/d"
}

# log_note TEXT: writes a line to the kernel's log
log_note() { echo "$1" >/dev/kmsg; }

# ms_between FROM TO: prints the milliseconds, by the kernel's clock, between two lines of the log
# since the mark: from the last match of FROM before TO to the first match of TO. Negative if FROM
# has its first match after TO.
ms_between()
{
	local took

	took=$(log_since_mark | awk -v from="$1" -v to="$2" -F '[][]' '
		(!ended || !began) && $0 ~ from { began = 1; start = $2 }
		!ended && $0 ~ to { ended = 1; end = $2 }
		END { if (began && ended) printf "%d\n", (end - start) * 1000 }')
	[ -n "$took" ] || fail "the log doesn't have '$1' and '$2': $(log_since_mark)" >&2
	echo "$took"
}

# map_fails ERRNO TEXT: fails unless map_device gives this errno, or one of several (A|B)
map_fails()
{
	local got
	got=$(errno_of "$ctl/map_device" "$2")
	[[ "|$1|" == *"|$got|"* ]] || fail "'$2' gave $got, expected $1"
}

# ---- load ----

# start_load DEVICE [FIO OPTION...]: starts I/O, which runs until it fails or is stopped; sets
# $loader to its process
start_load()
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

# fail_fast SESSION: without a path, I/O of the session fails at once, as with the in-tree client
fail_fast()
{
	[ "$client_modules" != ours ] || echo 0 >"/sys/class/rtrs-client/$1/failover_timeout"
}

# ended PROCESS: true if the process has ended
ended() { ! kill -0 "$1" 2>/dev/null; }

# load_errors: prints the texts of the load's I/O errors, each once
load_errors()
{
	sed -nE 's/^fio: io_u error on file [^:]*: (.*): (read|write|sync) offset=.*/\1/p
		s/^load: .*: err= *[1-9].*, error=(.*)\): pid=.*/\1/p' /tmp/load.out | sort -u
}

# load_fails SECONDS [ERRNO]: waits for the load to end; fails unless it has had this error, EIO by
# default, or one of several (A|B), and no other
load_fails()
{
	local text ok=() errors

	wait_for "$1" ended "$loader" || fail "the load has not ended after $1 s"
	! wait "$loader" || fail "the load saw no I/O error"
	for text in $(tr '|' ' ' <<<"${2:-EIO}"); do
		ok+=(-e "${_text[$text]}")
	done
	errors=$(load_errors)
	if [ -z "$errors" ] || grep -vqxF "${ok[@]}" <<<"$errors"; then
		fail "the load had the errors '$errors', expected ${2:-EIO}: $(grep '^fio' /tmp/load.out)"
	fi
}

# stop_load: stops the load; fails if it has already ended, or has had an error
stop_load()
{
	! ended "$loader" || fail "the load ended: $(cat /tmp/load.out)"
	kill -INT "$loader"
	wait "$loader" || true
	[ -z "$(load_errors)" ] && grep -q '^load: .* err= 0:' /tmp/load.out ||
		fail "the load had an error: $(cat /tmp/load.out)"
}

# ---- data ----

# digest COMMAND...: prints the checksum of the command's output, or a unique text if it fails
digest()
{
	local out
	out=$(set -o pipefail; "$@" | sha256sum) || { echo "failed-$BASHPID-$EPOCHREALTIME"; return 1; }
	echo "${out%% *}"
}

# checksum DEVICE: prints the checksum of a device, which it reads past the page cache
checksum() { digest dd if="$1" bs=1M iflag=direct status=none; }

# verify DEVICE [FIO OPTION...]: writes to a device and fails unless it reads the same back
verify()
{
	local dev=$1 out
	shift
	out=$(fio --name=verify --filename="$dev" --direct=1 --ioengine=libaio \
		--rw=randwrite --iodepth=16 --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --group_reporting "$@" 2>&1) ||
		fail "fio --verify on $dev: $out"
}

# Writes, and verifies that blocks have their newest generation: see steps/verifier.c
verifier=${RIG_TREES%tree-}verifier

# verified_enough NAME FILE WRITES READS: fails unless the verifier, whose output is in the file,
# has written at least WRITES blocks, verified READS meanwhile, and some at the end
verified_enough()
{
	local writes='' reads last

	read -r writes reads last <<<"$(sed -n \
		's/^ok: \([0-9]*\) writes, \([0-9]*\) reads verified meanwhile and \([0-9]*\) .*/\1 \2 \3/p' "$2")"
	[ -n "$writes" ] || fail "$1: $(cat "$2")"
	[ "$writes" -ge "$3" ] && [ "$reads" -ge "$4" ] && [ "$last" -gt 0 ] ||
		fail "$1: expected $3 writes and $4 verified reads at least: $(cat "$2")"
}

# expect_io ERRNOS DEVICE STEP...: fails unless the steps of steps/io.py give these errnos, 0 for
# none
expect_io()
{
	local want=$1 got
	shift
	got=$("$RIG_DIR/steps/io.py" "$@") || fail "io.py failed"
	equal "${*:2}" "$got" "$want"
}

# io_returns ERRNOS DEVICE STEP...: true if the steps give these errnos
io_returns() { [ "$("$RIG_DIR/steps/io.py" "${@:2}")" = "$1" ]; }

# start_io DEVICE STEP...: starts steps in the background; sets $io to their process
start_io()
{
	"$RIG_DIR/steps/io.py" "$@" >/tmp/io.out &
	io=$!
	io_steps=${*:2}
}

# end_io SECONDS ERRNOS: waits for these steps to end; fails unless they give these errnos
end_io()
{
	wait_for "$1" ended "$io" || fail "'$io_steps' has not ended after $1 s"
	wait "$io" || fail "io.py failed"
	equal "result of '$io_steps'" "$(cat /tmp/io.out)" "$2"
}

# A mix of sizes from 512 bytes to 1 MiB, and one for disks with blocks of 4 KiB
# shellcheck disable=SC2034
mixed=--bssplit=512/15:1k/10:4k/30:16k/15:64k/10:128k/10:1m/10
# shellcheck disable=SC2034
mixed4k=--bssplit=4k/45:16k/20:64k/15:128k/10:1m/10

# ---- a hostile peer ----

# hostile ARGUMENT...: runs the hostile peer, see hostile/main.c
hostile()
{
	modprobe -a ib_uverbs rdma_ucm
	! debug_kernel || export HOSTILE_UNLIMITED=1
	"${RIG_TREES%tree-}hostile" "$@"
}

# start_bystander DEVICE: starts verified I/O of a session that must not be disturbed; sets
# $bystander to the process. No request may take longer than 15 s.
start_bystander()
{
	"$verifier" "$1" --blocks=8 --depth=2 --pause=2 --slowest="$(slowly 15)" \
		>/tmp/bystander.out 2>&1 9>&- &
	bystander=$!
	_bystander_since=$SECONDS
}

# stop_bystander: stops it; fails if it has had an error, or if it has written or verified fewer
# blocks than 20, and three per second
stop_bystander()
{
	local least slowness

	how_slow
	least=$((20 + 3 * (SECONDS - _bystander_since) / slowness))
	! ended "$bystander" || fail "the other session's I/O ended: $(cat /tmp/bystander.out)"
	kill -INT "$bystander"
	wait_for 30 ended "$bystander" || fail "the other session's I/O doesn't end"
	wait "$bystander" || fail "the other session had an error: $(cat /tmp/bystander.out)"
	say "the other session: $(cat /tmp/bystander.out)"
	verified_enough "the other session" /tmp/bystander.out "$least" "$least"
}

# ---- leftovers ----

# leftovers: prints sessions, disks, RDMA objects and others that a test has not removed on this
# guest; unloads modules, removes temporary files
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
	# Rescuers of workqueues that were not destroyed
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
	rm -rf --one-file-system /tmp/*
}

# ---- a test that takes too long ----

# what_waits: prints each CPU's next timer and each process's kernel stack, and has the kernel log
# blocked tasks. Steps that may hang themselves come last.
what_waits()
{
	local p args

	echo w >/proc/sysrq-trigger
	# Times are in ns. A CPU whose next event is in the past has lost it.
	grep -E '^(now at|cpu:|Per CPU)|(expires_next|next_event) *:' /proc/timer_list 2>/dev/null || true
	for p in /proc/[0-9]*; do
		# Kernel threads have no exe.
		if [ ! -e "$p/exe" ] || [ "$p" = /proc/$$ ]; then
			continue
		fi
		args=$(timeout 1 tr '\0' ' ' 2>/dev/null <"$p/cmdline") || continue
		echo "${p#/proc/} ${args:0:160}"
		timeout 1 sed 's/^/    /' "$p/stack" 2>/dev/null || true
	done
}

# ---- the debug kernel ----

# debug_kernel: true on the debug kernel
debug_kernel() { [ "$RIG_KERNEL" = debug ]; }

# leaked_memory: prints kmemleak's report, which is empty without leaks. kmemleak reports memory
# only after 5 s without a change.
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

# save_coverage [TEST]: copies the modules' line counters to the guest's folder on the host
save_coverage()
{
	local to=/run/rig/gcov${1:+-$1}

	mkdir -p "$to"
	cd /sys/kernel/debug/gcov
	find . -name '*.gcda' -exec cp --parents -t "$to" {} +
}

# reset_coverage: clears the line counters, and drops the counters of unloaded modules
reset_coverage() { echo 1 >/sys/kernel/debug/gcov/reset; }
