# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of interoperation, which set client_modules and server_modules: map,
# make a file system, write and verify, discard, unmap; with both server modes.

# A queue pair of rdma_rxe that carries out a registration of memory again stops sending,
# without a word (see Documentation/rtrs.rst, "Limits"). The in-tree server doesn't notice
# and goes on answering heartbeats. Ours does after a while, when the other path may have
# met it as well, and the in-tree client fails what finds no path. So the paths are connected
# again when that is in the server's log: a few times, and only where one end is the in-tree
# driver; ours has to find out by itself.
mend_most=6
mend_note() { on server "echo '$1' >/dev/kmsg"; }

# rxe_fails N: wait for that to be logged after note N; false at the end of mending
rxe_fails()
{
	on server "noted=
		while read -r line; do
			case \$line in
			*'end of mending $mending') exit 1 ;;
			*'mending $mending-$1') noted=1 ;;
			*rxe_reg_fast_mr*'not free'*) [ -z \"\$noted\" ] || exit 0 ;;
			esac
		done < <(exec dmesg -w)
		exit 1"
}

# connect_again PATH: reconnects a path; true if it is connected then
connect_again()
{
	[ -e "$1/reconnect" ] || return 0
	{ echo 1 >"$1/reconnect"; } 2>/dev/null || true
	[ "$(cat "$1/state" 2>/dev/null)" = connected ]
}

mend_rxe()
{
	local p n=0
	while rxe_fails $n; do
		n=$((n + 1))
		echo $n >/tmp/mended
		[ $n -le $mend_most ] || break
		mend_note "mending $mending-$n"
		for p in /sys/class/rtrs-client/*/paths/*; do
			if [ "$client_modules" = intree ]; then
				wait_for 20 connect_again "$p" || true
			else
				# A silent one keeps its writer waiting, not the others.
				connect_again "$p" &
			fi
		done
	done
	wait
}

# mend, mended: what is between them is not held up by that
mend()
{
	[ "$client_modules $server_modules" != "ours ours" ] ||
		fail "paths between two ends of ours are not for the test to mend"
	echo 0 >/tmp/mended
	mending=$EPOCHSECONDS
	mend_note "mending $mending-0"
	mend_rxe &
	mender=$!
}

mended()
{
	[ -n "${mender:-}" ] || return 0
	mend_note "end of mending $mending"
	wait_for 30 ended "$mender" || fail "what connects paths again hangs"
	mender=
	say "rdma_rxe stopped queue pairs of the server $(cat /tmp/mended) times"
	[ "$(cat /tmp/mended)" -le $mend_most ] ||
		fail "paths had to be connected again more than $mend_most times"
}

# taken_away DISK DEV: the server closes it by force, and says so in its own way
taken_away()
{
	local state=/sys/block/${2#/dev/}/rnbd/state

	on server "echo 1 >/sys/class/rnbd-server/ctl/devices/${1#/dev/}/sessions/s1/force_close"
	gives EIO "$2" read:0:4k
	equal "state of what was taken away" "$(cat "$state")" closed
	equal remap_device "$(errno_of "${state%/state}/remap_device" 1)" 0
	equal "state after remap_device" "$(cat "$state")" open
	gives "0 0" "$2" write:0:4k:x read:0:4k:x
}

interop()
{
	local mode disk dev before

	say "client: $client_modules, server: $server_modules"
	rdma_up
	mend
	for mode in Y N; do
		load_server always_invalidate=$mode
		load_client
		disk=$(null vol 128 discard=1)
		dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
		# Its other policy fails I/O, see Documentation/rtrs.rst, "Known issues".
		[ "$client_modules" != intree ] ||
			echo round-robin >/sys/class/rtrs-client/s1/mpath_policy
		[ "$client_modules $server_modules" != "ours intree" ] ||
			equal fencing "$(cat /sys/class/rtrs-client/s1/fencing)" 0
		[ "$client_modules $server_modules" != "ours intree" ] ||
			refused EOPNOTSUPP "sessname=s1 device_path=/dev/other access_mode=handover"
		verify "$dev" "$mixed" --numjobs=4 --size=4m --offset_increment=16m

		mkfs.ext4 -q "$dev"
		mount "$dev" /mnt
		cp -r /usr/share/perl/5*/unicore/lib /mnt/
		(cd /mnt && find . -type f -exec sha256sum {} +) >/tmp/sums
		umount /mnt
		mount -o ro "$dev" /mnt
		(cd /mnt && sha256sum --quiet -c /tmp/sums) || fail "files changed"
		umount /mnt

		before=$(server_ios "$disk" discard_sectors)
		blkdiscard -o 0 -l $((16 << 20)) "$dev"
		equal "sectors discarded on the server" \
			$(($(server_ios "$disk" discard_sectors) - before)) 32768
		# Its number was another operation's in older servers.
		[ "$client_modules" = intree ] ||
			equal "write zeroes" "$(queue "$dev" write_zeroes_max_bytes)" 0
		[ "$client_modules $server_modules" != "ours intree" ] || taken_away "$disk" "$dev"
		unmap "$dev"
		down
		unload
	done
	mended
}
