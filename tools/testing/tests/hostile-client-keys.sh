# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# As hostile-client, with a server without always_invalidate, so that a client can change a request
# while it is executed: the cases for which that may make a difference, without checks of the log.
# I/O on a file, and a client that allocates as much of the server's memory as possible.
# Modules: ours

. "$RIG_DIR/steps/hostile.sh"
export HOSTILE_QUIET=1 HOSTILE_KEYS=N
hostile_up always_invalidate=N max_memory=128
run_peer cases cases 'imm-*' 'hdr-*' 'msg-*' data-longest 'desc-*' 'read-*' 'ops-*' 'again*' \
	changing no-receives 'gone-*' 'slot-*' close-busy hoard
truncate -s 16M /dev/shm/scratch /dev/shm/other
HOSTILE_RW=shm/scratch HOSTILE_OTHER=shm/other run_peer file hostile client 192.168.100.1 1234 'io-*' \
	rnbd-good ids open-twice open-storm
rm /dev/shm/scratch /dev/shm/other
peers_passed cases file
hostile_down
