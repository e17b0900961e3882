# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The in-tree client with our server, always_invalidate on and off.
# Sets: intree
# Guests: 2
# Once: stock 7.2

# shellcheck disable=SC2034
client_modules=intree
. "$RIG_DIR/steps/interop.sh"
interop
