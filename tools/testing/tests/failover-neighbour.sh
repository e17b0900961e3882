# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The only path is lost, and its next connection request never arrives, nor do its repetitions, as
# if they were sent to the hardware address of a stale neighbour entry. (Devices resend a request to
# the address that was resolved first; soft-RoCE looks it up for each packet.) The attempt times out
# after 5 s, and the next one succeeds, within the default failover_timeout.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

states=/sys/kernel/debug/tracing/events/rtrs_clt/rtrs_clt_path_state

# tries: prints the seconds and the errno of each attempt to connect
tries()
{
	sed -n 's/.* \([0-9.]*\): rtrs_clt_path_state: .*: \([a-z]*\) -> \([a-z]*\) (\(.*\))/\1 \2 \3 \4/p' \
		/sys/kernel/debug/tracing/trace |
		awk '$3 == "connecting" { from = $1 } $2 == "connecting" { print int($1 - from), $4 }'
}

set_up
disk=$(null vol 16)
dev=$(map s1 "$disk" "path=$(addr server 0)")
fast_failover
expect_io 0 "$dev" write:0:4k:a
echo >/sys/kernel/debug/tracing/trace
echo 1 >$states/enable
set_link client 0 stale
on server 'echo 1 >"$(echo /sys/class/rtrs-server/s1/paths/*/disconnect)"'
wait_for_paths disconnected 20 "$(path 0)"
start_io "$dev" write:0:4k:b
end_io 60 0
echo 0 >$states/enable
set_link client 0 on
say "tries: $(tries | xargs)"
read -r took errno < <(tries)
equal "the first try" "$errno" -110
# Without the limit, it takes 30 s.
must "the first try took $took s" [ "$took" -ge 5 -a "$took" -lt 20 ]
expect_io 0 "$dev" read:0:4k:b
tear_down "$dev"
