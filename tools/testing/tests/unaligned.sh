# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Direct I/O from many small pieces of memory at different offsets in their pages: up to 1 MiB in a
# request, written and read.

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk")
python3 "$RIG_DIR/steps/pieces.py" "$dev" 60 || fail "see above"
tear_down "$dev"
