# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that says everything wrong, in directed cases (see tools/testing/hostile):
# each is refused, or answered with an errno, or costs the client its own path, with a
# reason in the log. Another session's I/O goes on.
# Modules: ours
# Time: 150

up sess_queue_depth=48
disk=$(null good 64)
scratch=$(null scratch 16)
dev=$(map good "$disk")
load "$dev"
HOSTILE_RW=$scratch hostile client "$(hostile_addr)" 1234 all >/tmp/hostile.out || bad=1
sed 's/^/# /' /tmp/hostile.out
[ -z "${bad:-}" ] || fail "$(grep '^not ok' /tmp/hostile.out)"
load_goes_on
unmap "$dev"
down
