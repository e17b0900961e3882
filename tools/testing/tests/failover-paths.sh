# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Several processes add, remove, disconnect and reconnect paths, and the policy is changed, while
# the disk is written to and verified. One path stays. Writes to sysfs return expected errnos only,
# each kind of write succeeds at times, and added paths take requests.
# Modules: ours
# Rounds: 12
# Once: debug 7.2

. "$RIG_DIR/steps/failover.sh"

folder=$clt/s1/paths

# repeat NAME MS ERRNOS COMMAND...: runs the command in the background, with pauses of up to so
# many milliseconds, until /tmp/enough is there; notes what it prints, which must be 0, none or one
# of A|B
repeat()
{
	local name=$1 ms=$2 ok="0|none|$3" got
	shift 3
	while [ ! -e /tmp/enough ]; do
		got=$("$@") || true
		[[ "|$ok|" == *"|$got|"* ]] || echo "$name: $got" >>/tmp/wrong
		echo "$name $got" >>/tmp/repeat
		pause_ms $((RANDOM % ms))
	done &
	pids+=($!)
}

add() { errno_of "$clt/s1/add_path" "$1"; }
# Prints "none" if the path does not exist
do_path()
{
	[ -e "$folder/$1/$2" ] || { echo none; return; }
	errno_of "$folder/$1/$2" 1 2>/dev/null
}

# note_used: records which of the added paths has taken requests
note_used()
{
	local i stats
	for i in 11 12; do
		# Without a process, as the CPU is busy
		{ read -ra stats <"$folder/$base@ip:192.168.101.$i/stats/rdma"; } 2>/dev/null || continue
		[ "$((stats[0] + stats[2]))" = 0 ] || used[i]=1
	done
}

# tasks: our shells, and all that wait without being interruptible: state and parent, what
# they write to. (User Mode Linux can't tell where in the kernel another task waits: KASAN
# stops it, and sysrq takes it down.)
tasks()
{
	local p stat
	for p in /proc/[0-9]*; do
		stat=$(cut -d' ' -f1-4 "$p/stat" || true)
		[[ "$stat" != *"(bash)"* && "$stat" != *") D "* ]] ||
			echo "$stat $(readlink "$p/fd/1" || true)"
	done 2>/dev/null
}

# hangs PID: what is known of it. The kernel looks for tasks that hang each 20 s only, and
# needs to see one twice.
hangs()
{
	echo 5 >/proc/sys/kernel/hung_task_check_interval_secs
	wait_for 30 eval "dmesg | grep -q 'blocked for more than'" || true
	tasks | while read -r line; do say "$line"; done
	fail "a writer of sysfs hangs: $1; $(show_paths)"
}

set_up sess_queue_depth=64
for i in 1 2 3; do
	ip addr add "192.168.101.$((10 + i))/24" dev dummy1
done
# Slow enough for requests in flight when a path ends
disk=$(null vol 32 irqmode=2 completion_nsec=50000000)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
fast_failover
base="ip:192.168.101.1"
rm -f /tmp/enough /tmp/wrong /tmp/repeat
raw_writer raw "$dev" --depth=6
goes_on "$dev"

pids=()
# ECONNABORTED: the path is removed while it is being added.
taken='EEXIST|EALREADY|ECONNABORTED'
gone='ENOENT|ENODEV|EACCES|EALREADY'
# Paths must exist for long enough to take and lose requests.
for i in 1 2; do
	repeat "add-11" 60 "$taken" add "$base,ip:192.168.101.11"
	repeat "remove-11" 1000 "$gone" do_path "$base@ip:192.168.101.11" remove_path
done
repeat "add-12" 60 "$taken" add "$base,ip:192.168.101.12"
repeat "remove-12" 500 "$gone" do_path "$base@ip:192.168.101.12" remove_path
# EBUSY: the server's disk still has requests of four earlier connects of that path.
second=$(basename "$(path 1)")
for i in 1 2; do
	repeat "disconnect" 1000 "$gone" do_path "$second" disconnect
	repeat "reconnect" 60 "$gone|EBUSY|ECONNRESET|ECONNREFUSED|ECONNABORTED|ETIMEDOUT" do_path "$second" reconnect
done
used=()
policies=(round-robin MI ml 0 1 2 min-latency min-inflight)
while next_round; do
	echo "${policies[round % 8]}" >"$clt/s1/mp_policy"
	goes_on "$dev"
	for _ in 1 2 3 4 5; do
		note_used
		pause 0.2
	done
	[ ! -s /tmp/wrong ] || break
done
touch /tmp/enough
for pid in "${pids[@]}"; do
	wait_for 60 ended "$pid" || hangs "$pid"
	wait "$pid" || true
done
sort /tmp/repeat | uniq -c | while read -r line; do say "$line"; done
[ ! -s /tmp/wrong ] || fail "$(sort /tmp/wrong | uniq -c)"
# All succeed several times a round.
least=$((1 + round / 3))
for name in add-11 add-12 remove-11 remove-12 disconnect reconnect; do
	n=$(grep -cx "$name 0" /tmp/repeat || true)
	must "$name has succeeded only $n times" [ "$n" -ge $least ]
done
must "of the paths that were added only these took requests: ${!used[*]}" [ "${!used[*]}" = "11 12" ]
goes_on "$dev"
say "$(failed_over) requests of those that are left were sent again"
[ "$(failed_over)" -gt 0 ] || fail "no path was lost with requests in flight"
writers_unharmed
echo 1 >"$(path 1)/reconnect" || true
wait_for_paths connected 40 "$(path 0)" "$(path 1)"
unmap "$dev"
client_idle
for i in 1 2 3; do
	ip addr del "192.168.101.$((10 + i))/24" dev dummy1
done
tear_down
