# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A server with devices for a hostile client, and a session beside it that is to notice
# nothing.

# cases CASE...: writes to $volume, or scratch
cases()
{
	# siw has root, too, keep to it.
	ulimit -l unlimited
	HOSTILE_RW=${volume:-scratch} HOSTILE_OTHER=other HOSTILE_SLOW=slow \
		HOSTILE_ADDR2=192.168.101.1 HOSTILE_ADDR3=fd00:100::1 \
		hostile client 192.168.100.1 1234 "$@"
}

# The server's parameters. 48 isn't a power of 2, so some numbers of chunks can be sent that do not
# exist. Cases connect as fast as they can, hence no limit of handshakes.
hostile_parameters=(sess_queue_depth=48 dev_search_path=/dev max_handshakes=0)

# hostile_server [PARAMETER=VALUE...]
hostile_server()
{
	local disk

	# There all that the drivers say is in the log.
	debug_kernel || export HOSTILE_LIMITED=1
	up "${hostile_parameters[@]}" "$@"
	for disk in good scratch other; do
		equal "name of a disk" "$(null $disk 16)" /dev/$disk
	done
	null slow 16 irqmode=2 completion_nsec=300000000 >/dev/null
}

hostile_bystander()
{
	dev=$(map good good)
	bystander "$dev"
}

# hostile_up [PARAMETER=VALUE...]
hostile_up()
{
	hostile_server "$@"
	hostile_bystander
}

# change_under_way DISK Y|N: has a client change a write's data while a device on top of DISK holds
# the write, the server having that always_invalidate
change_under_way()
{
	local held
	[ "$server_modules" != intree ] || return 0
	held=$(dm held "0 32768 linear $1 0")
	HOSTILE_KEYS=$2 HOSTILE_HELD=$held HOSTILE_SLOW=$held hostile client 192.168.100.1 1234 \
		write-under-way >/tmp/under-way.out || fail "$(cat /tmp/under-way.out)"
	hostile_told /tmp/under-way.out
	server_idle
	on server no_dms_here
}

# hostile_told FILE...: what the cases said; fails if one failed
hostile_told()
{
	sed 's/^/# /' "$@"
	! grep -q '^not ok' "$@" || fail "$(grep -h '^not ok' "$@")"
}

hostile_down()
{
	bystander_unharmed
	unmap "$dev"
	down
}
