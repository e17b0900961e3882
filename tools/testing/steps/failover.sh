# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of failover: paths by network, short time limits of sessions, and programs that
# write and verify meanwhile.

clt=/sys/class/rtrs-client

# path NET [SESSION [SERVER]]: prints the folder of the path over this network
path() { echo "$clt/${2:-s1}/paths/"*@"$(addr "${3:-server}" "$1")"; }

# set_attrs ATTRIBUTE=VALUE...: sets attributes of session s1, or $session
set_attrs()
{
	local a
	for a in "$@"; do
		echo "${a#*=}" >"$clt/${session:-s1}/${a%%=*}"
	done
}

# fast_failover: shortens heartbeats and reconnect delays, so that a dead path is detected and
# reconnected soon
fast_failover()
{
	local interval=200

	! debug_kernel || interval=500
	set_attrs hb_interval_ms=$interval hb_max_missed=3 reconnect_delay_ms=200 \
		reconnect_delay_max_ms=1000 unfenced_delay_ms=1000
}

# paths_are STATE PATH...: true if all of these paths have the state
paths_are()
{
	local want=$1 p
	shift
	for p in "$@"; do
		[ "$(cat "$p/state" 2>/dev/null)" = "$want" ] || return
	done
}

# wait_for_paths STATE SECONDS PATH...: waits until all of these paths have the state
wait_for_paths()
{
	wait_for "$2" paths_are "$1" "${@:3}" ||
		fail "not $1 after $2 s: ${*:3}; $(show_paths)"
}

# path_ios PATH: prints the number of reads and writes on a path
path_ios() { awk '{ print $1 + $3 }' "$1/stats/rdma"; }

# reconnects: prints the reconnects of each path of session s1: how many succeeded and failed
reconnects() { cat "$clt"/s1/paths/*/stats/reconnects | xargs; }

# failed_over [SESSION]: prints the number of requests that were sent again
failed_over() { cat "$clt/${1:-s1}"/paths/*/stats/rdma | awk '{ n += $6 } END { print n }'; }

# serve_again [GUEST]: sets up a server again after a boot
serve_again() { on "${1:-server}" "rdma_here; load_server_here $server_modules"; }

# ---- writers ----

# Folder of the writers' process IDs and output
writers=/tmp/writers

# writer NAME FILE [OPTION...]: writes and verifies until writers_unharmed; for the options see
# steps/verifier.c
writer()
{
	mkdir -p $writers
	[[ $2 = /dev/* ]] || touch "$2"
	"$verifier" "${@:2}" >"$writers/$1.out" 2>&1 9>&- &
	echo $! >"$writers/$1.pid"
}

# raw_writer NAME DEVICE [OPTION...]: three of them, with blocks of three sizes, each in a part of
# the device's first 16 MB that is its own
raw_writer()
{
	writer "$1" "$2" "${@:3}"
	writer "$1-16k" "$2" "${@:3}" --bs=16k --offset=4m
	writer "$1-64k" "$2" "${@:3}" --bs=64k --offset=8m
}

writer_ended() { ended "$(cat "$writers/$1.pid")"; }
# writer_names: prints the names of all writers
writer_names() { (cd $writers && ls -- *.pid) | sed 's/\.pid$//'; }

# writers_unharmed: stops all writers of this guest; fails if one has had an error, or has written
# or verified too little
writers_unharmed()
{
	local name

	[ -n "$(writer_names)" ] || fail "no writers"
	for name in $(writer_names); do
		! writer_ended "$name" || fail "$name has ended: $(cat "$writers/$name.out")"
		kill -INT "$(cat "$writers/$name.pid")"
	done
	for name in $(writer_names); do
		wait_for 60 writer_ended "$name" || fail "$name doesn't end"
		say "$name: $(tail -n 1 "$writers/$name.out")"
		verified_enough "$name" "$writers/$name.out" 20 10
	done
	rm -r $writers
}

# writer_fails NAME ERRNO: waits until a writer ends with this error, and no other
writer_fails()
{
	wait_for 60 writer_ended "$1" || fail "$1 goes on"
	[[ $(cat "$writers/$1.out") =~ ^sector\ [0-9]+:\ (read|write):\ "${_text[$2]}"$ ]] ||
		fail "$1: $(cat "$writers/$1.out"), expected $2"
	rm "$writers/$1".*
}

# log_quiet: fails if the log has I/O errors since the mark
log_quiet()
{
	! log_since_mark | grep -E 'I/O error|EXT4-fs (error|warning)|Aborting journal|lost async page write' ||
		fail "the kernel's log has I/O errors"
}

# ---- a raw disk and one with a file system, over two paths each ----

# two_disks: maps two disks of session s1, $raw and $fs, mounts a file system of $fs on /mnt, and
# starts writers
two_disks()
{
	local a b

	a=$(null raw 32) b=$(null fs 48)
	raw=$(map s1 "$a" "path=$(addr server 0)" "path=$(addr server 1)")
	fs=$(map s1 "$b")
	fast_failover
	mkfs.ext4 -q "$fs"
	mount "$fs" /mnt
	mark_log
	writers_on
}

writers_on()
{
	raw_writer raw "$raw" --depth=2
	writer fs /mnt/file --fsync=32
	goes_on "$raw"
	goes_on "$fs"
}

# two_disks_unharmed: fails if a writer, the file system or the log has errors; unmaps both disks
two_disks_unharmed()
{
	writers_unharmed
	umount /mnt
	e2fsck -fn "$fs" >/tmp/fsck.out 2>&1 || fail "e2fsck: $(cat /tmp/fsck.out)"
	log_quiet
	unmap "$raw"
	unmap "$fs"
}

# ---- mirrors ----

# mirror NAME [OPTION...] DEVICE...: makes a raid1 of two devices, without a resync
mirror()
{
	local name=$1
	shift
	debug_kernel || modprobe raid1
	MDADM_NO_UDEV=1 mdadm --create "/dev/$name" --run --quiet --metadata=1.2 --level=1 \
		--bitmap=none --assume-clean --raid-devices=2 "$@" </dev/null ||
		fail "mdadm: no mirror"
}

no_mirror() { MDADM_NO_UDEV=1 mdadm --stop --quiet "/dev/$1"; }

# half_back NAME DEVICE: adds a failed half to the mirror again and waits for the resync
half_back()
{
	MDADM_NO_UDEV=1 mdadm --manage --quiet "/dev/$1" --remove "$2" || fail "mdadm: can't remove"
	# Its contents may be lost.
	MDADM_NO_UDEV=1 mdadm --zero-superblock --quiet "$2" 2>/dev/null || true
	MDADM_NO_UDEV=1 mdadm --manage --quiet "/dev/$1" --add "$2" || fail "mdadm: can't add"
	wait_for 60 in_step "$1" || fail "no resync: $(cat /proc/mdstat)"
}

in_step() { grep -A1 "^$1 :" /proc/mdstat | grep -qF '[UU]'; }

# data DEVICE: prints the checksum of a half's data, without the superblock
data() { digest dd if="$1" bs=1M skip=4 iflag=direct status=none; }
