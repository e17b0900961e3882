# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Each attribute has the name, place and format that existing tools parse. Those with a question
# mark are optional.

# file_matches FOLDER FILE REGEX: fails unless the whole file does
file_matches()
{
	local file=$1/$2
	[ -e "$file" ] || fail "$file is missing"
	[[ $(cat "$file") =~ ^($3)$ ]] || fail "$file: '$(cat "$file")' is not '$3'"
}

# files_match FOLDER: fails unless each file that the table on stdin names does
files_match()
{
	local name regex
	while read -r name regex; do
		if [[ $name == \?* ]]; then
			name=${name#?}
			[ -e "$1/$name" ] || { say "not there: $name"; continue; }
		fi
		file_matches "$1" "$name" "$regex"
	done
}

set_up
disk=$(null vol 16)
a=$(addr server 0)
dev=$(map s1 "$disk" "path=$a,$a" access_mode=rw)
name=${dev#/dev/}
n='[0-9]+'
path=$a@$a
policy=mp_policy last=" $n"
# The in-tree driver has only mpath_policy, one figure less, and no reset_all there.
[ "$RIG_MODULES" != intree ] || policy=mpath_policy last=

[ "$(readlink -f "$ctl")" = /sys/devices/virtual/rnbd-client/ctl ] || fail "$ctl leads elsewhere"
[ "$(basename "$(readlink -f "$ctl/devices/${disk//\//!}@s1")")" = "$name" ] || fail "the link in $ctl/devices"
[ -n "$(cat "$ctl/map_device")" ] || fail "map_device tells no usage"
files_match "/sys/block/$name/rnbd" <<-END
	state open
	session s1
	mapping_path $disk
	access_mode rw
	nr_poll_queues 0
	unmap_device .+
	remap_device .+
	resize .+
	?server_sectors 32768
END
files_match /sys/class/rtrs-client/s1 <<-END
	?add_path .+
	?max_reconnect_attempts -?$n
	?fencing [01]
	?nr_queues $n
	?queue_depth $n
	?$policy (round-robin|min-inflight|min-latency) \((RR: 0|MI: 1|ML: 2)\)
	mpath_policy (round-robin|min-inflight|min-latency) \((RR: 0|MI: 1|ML: 2)\)
END
files_match "/sys/class/rtrs-client/s1/paths/$path" <<-END
	state connected
	?last_error 0
	?reconnect .+
	?disconnect .+
	?remove_path .+
	hca_name rxe0
	hca_port 1
	src_addr $a
	dst_addr $a
	cur_latency $n ns
	stats/rdma $n $n $n $n $n $n
	?stats/reconnects $n $n
	?stats/cpu_migration_from .*
	?stats/cpu_migration_to .*
	?stats/reset_all .+
END
for f in /sys/class/rtrs-client/s1/paths/*/stats/cpu_migration_*; do
	[ ! -e "$f" ] || equal "CPUs in $f" "$(wc -w <"$f")" "$(nproc)"
done
files_match "/sys/class/rtrs-server/s1/paths/$path" <<-END
	disconnect .+
	hca_name rxe0
	hca_port 1
	src_addr $a
	dst_addr $a
	stats/rdma $n $n $n $n$last
END
if [ "$RIG_MODULES" != intree ]; then
	stats=/sys/class/rtrs-server/s1/paths/$path/stats
	file_matches "/sys/class/rtrs-server/s1/paths/$path" stats/reset_all .+
	[ "$(cat "$stats/rdma")" != "0 0 0 0 0" ] || fail "the server has counted nothing"
	equal "a reset by 2" "$(errno_of "$stats/reset_all" 2)" EINVAL
	equal "a reset" "$(errno_of "$stats/reset_all" 1)" 0
	equal "statistics after a reset" "$(cat "$stats/rdma")" "0 0 0 0 0"
fi
files_match "/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/sessions/s1" <<-END
	read_only 0
	mapping_path ${disk#/dev/}|$disk
	access_mode rw
	force_close .+
END
equal block_dev "$(basename "$(readlink -f "/sys/class/rnbd-server/ctl/devices/${disk#/dev/}/block_dev")")" "${disk#/dev/}"

# A further device of a session needs no path.
other=$(null other 16)
dev2=$(map s1 "$other" nopath)
equal "the link to a further device" "$(readlink -f "$ctl/devices/${other//\//!}@s1")" "$(readlink -f "/sys/block/${dev2#/dev/}")"
equal "its session" "$(cat "/sys/block/${dev2#/dev/}/rnbd/session")" s1
equal "paths of the session" "$(ls /sys/class/rtrs-client/s1/paths)" "$path"
expect_io "0 0" "$dev2" write:0:4k:x read:0:4k:x
unmap "$dev2"
[ ! -L "$ctl/devices/${other//\//!}@s1" ] || fail "its link is left"

# The figures count.
stats=/sys/class/rtrs-client/s1/paths/$path/stats
was=$(cat "$stats/rdma")
dd if=/dev/zero of="$dev" bs=64k count=8 oflag=direct status=none
dd if="$dev" of=/dev/null bs=4k count=16 iflag=direct status=none
grown=$(cat <(echo "$was") "$stats/rdma" |
	awk 'NR == 1 { split($0, w) } NR == 2 { print $1 - w[1], $2 - w[2], $3 - w[3], $4 - w[4], $5, $6 }')
# The in-tree driver counts the 32 bytes of each message, too.
[[ $grown =~ ^16\ (65536|66048)\ 8\ (524288|524544)\ 0\ 0$ ]] || fail "stats/rdma grew by $grown"

unmap "$dev"
client_idle
dev=$(map s1 "$disk" access_mode=ro)
equal access_mode "$(cat "/sys/block/${dev#/dev/}/rnbd/access_mode")" ro
unmap "$dev"

[ "$RIG_MODULES" != ours ] || for name in memory_used memory_waits; do
	number=$(cat "/sys/devices/rtrs_server/stats/$name")
	[[ $number =~ ^[0-9]+$ ]] || fail "$name is '$number'"
done

# Defaults of the parameters
equal max_chunk_size "$(cat /sys/module/rtrs_server/parameters/max_chunk_size)" 131072
equal sess_queue_depth "$(cat /sys/module/rtrs_server/parameters/sess_queue_depth)" 512
equal slot_size "$(cat /sys/module/rtrs_server/parameters/slot_size)" 4096
equal always_invalidate "$(cat /sys/module/rtrs_server/parameters/always_invalidate)" Y
equal port_nr "$(cat /sys/module/rnbd_server/parameters/port_nr)" 1234
equal dev_search_path "$(cat /sys/module/rnbd_server/parameters/dev_search_path)" /
tear_down
