# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# As hostile-client, against a server without always_invalidate, so that a
# client can change a request while it is carried out: all cases to which that may make
# a difference, without a look at the log; I/O on a file, where a disk was before; and a
# client that takes all the memory it can have.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_QUIET=1 HOSTILE_KEYS=N
hostile_up always_invalidate=N max_memory=128
cases 'imm-*' 'hdr-*' 'msg-*' data-longest 'desc-*' 'read-*' 'ops-*' 'again*' changing \
	no-receives 'gone-*' 'slot-*' close-busy hoard >/tmp/cases.out || bad=1
truncate -s 16M /dev/shm/scratch /dev/shm/other
HOSTILE_RW=shm/scratch HOSTILE_OTHER=shm/other hostile client 192.168.100.1 1234 'io-*' \
	rnbd-good ids open-twice open-storm >/tmp/file.out || bad=1
rm /dev/shm/scratch /dev/shm/other
hostile_told /tmp/cases.out /tmp/file.out
[ -z "${bad:-}" ] || fail "a case did not end: $(tail -n1 /tmp/cases.out)"
hostile_down
