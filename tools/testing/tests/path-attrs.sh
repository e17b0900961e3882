# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The attributes of a client's session and its paths: output, valid and invalid input.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

# takes FILE VALUE...: fails unless a write of each value succeeds, and a read returns it
takes()
{
	local file=$1 v
	shift
	for v in "$@"; do
		equal "$file $v" "$(errno_of "$clt/s1/$file" "$v")" 0
		equal "$file" "$(cat "$clt/s1/$file")" "$v"
	done
}

# refuses FILE VALUE...: fails unless a write of each value gives EINVAL or ERANGE and changes
# nothing
refuses()
{
	local file=$1 v before got
	shift
	before=$(cat "$clt/s1/$file")
	for v in "$@"; do
		got=$(errno_of "$clt/s1/$file" "$v")
		[[ "|EINVAL|ERANGE|" == *"|$got|"* ]] || fail "$file '$v' gave $got"
		equal "$file after '$v'" "$(cat "$clt/s1/$file")" "$before"
	done
}

# shows FILE PATTERN: fails unless the file's contents match the extended regular expression
shows()
{
	grep -qxE "$2" "$1" || fail "${1##*/} shows '$(cat "$1")'"
	equal "lines of ${1##*/}" "$(wc -l <"$1")" "${3:-1}"
}

set_up
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)")

equal max_reconnect_attempts "$(cat $clt/s1/max_reconnect_attempts)" -1
equal reconnect_delay_ms "$(cat $clt/s1/reconnect_delay_ms)" 1000
equal reconnect_delay_max_ms "$(cat $clt/s1/reconnect_delay_max_ms)" 30000
equal hb_interval_ms "$(cat $clt/s1/hb_interval_ms)" 5000
equal hb_max_missed "$(cat $clt/s1/hb_max_missed)" 5
equal failover_timeout "$(cat $clt/s1/failover_timeout)" 30
equal unfenced_delay_ms "$(cat $clt/s1/unfenced_delay_ms)" 5000
shows $clt/s1/fencing 1
takes max_reconnect_attempts 0 1 100 -1
takes reconnect_delay_ms 100 2000
takes reconnect_delay_max_ms 10000 60000
takes hb_interval_ms 200 1000
takes hb_max_missed 3 10
takes failover_timeout 0 -1 10 3600
takes unfenced_delay_ms 0 1000
refuses max_reconnect_attempts '' x -2 99999999999
for file in reconnect_delay_ms reconnect_delay_max_ms hb_interval_ms hb_max_missed; do
	refuses $file '' x -1 99999999999
done
refuses hb_interval_ms 0
refuses hb_max_missed 0
refuses failover_timeout '' x -2 99999999999
refuses unfenced_delay_ms '' x -1 99999999999
fast_failover

# Adding paths
rr="EINVAL|EADDRNOTAVAIL|EAFNOSUPPORT|ENXIO|ENODEV"
for bad in '' nonsense ip: ip:1.2.3 "ip:192.168.100.1,ip:192.168.100.1,ip:192.168.100.1"; do
	got=$(errno_of $clt/s1/add_path "$bad")
	[[ "|$rr|" == *"|$got|"* ]] || fail "add_path '$bad' gave $got"
done
equal "the path that is there" "$(errno_of $clt/s1/add_path "$(addr server 0)")" EEXIST
equal "another path" "$(errno_of $clt/s1/add_path "$(addr server 1)")" 0
wait_for_paths connected 0 "$(path 0)" "$(path 1)"
for f in add_path "$(path 0)/reconnect" "$(path 0)/disconnect" "$(path 0)/remove_path" \
		"$(path 0)/stats/reset_all"; do
	[[ $f == /* ]] || f=$clt/s1/$f
	grep -qi usage "$f" || fail "$f tells no usage: $(cat "$f")"
done

# Attributes of a path
verify "$dev" --bs=16k --size=2m
p=$(path 0)
shows "$p/state" connected
shows "$p/hca_name" rxe0
shows "$p/hca_port" 1
shows "$p/src_addr" 'ip:192\.168\.100\.[0-9]+'
shows "$p/dst_addr" "$(addr server 0)"
wait_for 10 eval "[ \"\$(cut -d' ' -f1 '$p/cur_latency')\" -gt 0 ]" || fail "no latency"
shows "$p/cur_latency" '[0-9]+ ns'
shows "$p/stats/rdma" '[0-9]+ [0-9]+ [0-9]+ [0-9]+ 0 0'
shows "$p/stats/reconnects" '0 0'
equal "CPUs" "$(wc -w <"$p/stats/cpu_migration_from")" "$(nproc)"
equal "CPUs" "$(wc -w <"$p/stats/cpu_migration_to")" "$(nproc)"
must "hb_latency is empty" [ -n "$(cat "$p/stats/hb_latency")" ]
say "hb_latency: $(xargs <"$p/stats/hb_latency")"

for f in reconnect disconnect remove_path stats/reset_all; do
	for bad in '' 0 2 x; do
		equal "$f '$bad'" "$(errno_of "$p/$f" "$bad")" EINVAL
	done
done

# States of a path
echo 1 >"$p/disconnect"
shows "$p/state" disconnected
expect_io "0 0" "$dev" write:0:1m:a read:0:1m:a
pause 1.5
shows "$p/state" disconnected
echo 1 >"$p/reconnect"
shows "$p/state" connected
shows "$p/stats/reconnects" '1 0'
# SIGCHLD does not interrupt the write.
(for i in 1 2 3 4 5 6 7 8 9; do sleep "0.$i" & sleep "0.0$i" & done; echo 1 >"$p/reconnect") ||
	fail "reconnect was interrupted"
shows "$p/state" connected
shows "$p/stats/reconnects" '2 0'
# Nor is a writer that is stopped meanwhile one to begin again when it goes on. (One that has
# ended by then shows nothing, so there are three.)
for n in 3 4 5; do
	sh -c "echo 1 >'$p/reconnect'" &
	writer=$!
	until read -r state <"$p/state" && [ "$state" != connected ] || ended $writer; do :; done
	kill -STOP $writer || say "writer $n had ended"
	wait_for 30 paths_are connected "$p" || fail "the path isn't connected again"
	kill -CONT $writer || :
	wait $writer || fail "reconnect by a process that was stopped"
	shows "$p/stats/reconnects" "$n 0"
done
echo 1 >"$p/stats/reset_all"
shows "$p/stats/rdma" '0 0 0 0 0 0'
shows "$p/stats/reconnects" '0 0'
echo 1 >"$p/remove_path"
[ ! -e "$p" ] || fail "the path is still there"
expect_io "0 0" "$dev" write:0:1m:b read:0:1m:b
unmap "$dev"
client_idle

# A client that doesn't use fencing, as with a server that can't
echo N >/sys/kernel/debug/rtrs_client/fencing
dev=$(map s1 "$disk" "path=$(addr server 0)")
echo Y >/sys/kernel/debug/rtrs_client/fencing
shows $clt/s1/fencing 0
tear_down "$dev"
