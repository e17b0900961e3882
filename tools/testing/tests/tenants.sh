# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# 16 sessions write 1 MiB at a time, 16 at once each, to a server that has 8 MiB for all of
# them beside their reserves: each gets its share, none fails, and what they wrote is there. Not
# on the debug kernel: it is so busy with RDMA that programs hardly get to send.
# Modules: ours
# Kernel: stock

. "$RIG_DIR/steps/tenants.sh"

set_up sess_queue_depth=32
fair_share 16 8
tear_down
