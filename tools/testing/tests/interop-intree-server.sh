# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Our client with the in-tree server, always_invalidate on and off.
# Sets: intree
# Guests: 2
# Once: stock 6.12

# shellcheck disable=SC2034
server_modules=intree
. "$RIG_DIR/steps/interop.sh"
interop
