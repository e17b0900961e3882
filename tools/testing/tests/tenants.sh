# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# 16 sessions write 1 MiB at a time, 16 at once each, to a server that has 8 MiB for all of them
# besides their reserves: each gets its share, none fails, and the data are right. Not on the debug
# kernel, which is too slow.
# Modules: ours
# Kernel: stock

. "$RIG_DIR/steps/tenants.sh"

set_up sess_queue_depth=32
fair_share 16 8
tear_down
