# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For tests with the hostile peer: a server with devices, and another session that must not be
# disturbed.

# cases CASE...: runs cases of a hostile client, which writes to $volume, scratch by default
cases()
{
	# siw enforces the limit of locked memory for root, too.
	ulimit -l unlimited
	HOSTILE_RW=${volume:-scratch} HOSTILE_OTHER=other HOSTILE_SLOW=slow \
		HOSTILE_ADDR2=192.168.101.1 HOSTILE_ADDR3=fd00:100::1 \
		hostile client 192.168.100.1 1234 "$@"
}

# The server's parameters. 48 is not a power of two, so immediate values can name chunks that do not
# exist. Cases connect as fast as possible, hence no limit of handshakes.
hostile_parameters=(sess_queue_depth=48 dev_search_path=/dev max_handshakes=0)

# hostile_server [PARAMETER=VALUE...]: loads the modules and makes the devices
hostile_server()
{
	local disk

	# The debug kernel's modules do not rate-limit their messages.
	debug_kernel || export HOSTILE_LIMITED=1
	set_up "${hostile_parameters[@]}" "$@"
	for disk in good scratch other; do
		equal "name of a disk" "$(null $disk 16)" /dev/$disk
	done
	null slow 16 irqmode=2 completion_nsec=300000000 >/dev/null
}

# hostile_bystander: starts I/O of another session
hostile_bystander()
{
	dev=$(map good good)
	start_bystander "$dev"
}

# hostile_up [PARAMETER=VALUE...]: both
hostile_up()
{
	hostile_server "$@"
	hostile_bystander
}

# change_under_way DISK Y|N: a client changes a write's data while a suspended device on top of DISK
# holds the write; Y or N is the server's always_invalidate
change_under_way()
{
	local held
	[ "$server_modules" != intree ] || return 0
	held=$(dm held "0 32768 linear $1 0")
	HOSTILE_KEYS=$2 HOSTILE_HELD=$held HOSTILE_SLOW=$held run_peer under-way \
		hostile client 192.168.100.1 1234 write-under-way
	peers_passed under-way
	server_idle
	on server no_dms_here
}

# run_peer NAME COMMAND...: runs a hostile peer; its output goes to /tmp/NAME.out
run_peer()
{
	"${@:2}" >"/tmp/$1.out" 2>&1 || echo "exit code $?" >>"/tmp/$1.out"
}

# peers_passed NAME...: prints the output of these peers; fails if a case has failed, or if a peer
# has ended in the middle of a case
peers_passed()
{
	local files=("${@/#//tmp/}")

	files=("${files[@]/%/.out}")
	sed 's/^/# /' "${files[@]}"
	! grep -q '^not ok' "${files[@]}" || fail "$(grep -h '^not ok' "${files[@]}")"
	! grep -q '^exit code' "${files[@]}" || fail "a case did not end: $(tail -qn2 "${files[@]}")"
}

# hostile_down: ends the test; fails if the other session was disturbed
hostile_down()
{
	stop_bystander
	tear_down "$dev"
}
