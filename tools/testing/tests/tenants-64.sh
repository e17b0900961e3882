# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The same as tenants.sh with 64 sessions and 32 MiB, on a server with 2 GiB of memory. Too slow to
# run for each change.
# Modules: ours
# Guests: 2
# Kernel: stock
# Rota: stock

. "$RIG_DIR/steps/tenants.sh"

set_up sess_queue_depth=32
fair_share 64 32
tear_down
