# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The paths of a session do not connect to an in-tree server at the same time: it would create the
# session twice, for paths over different networks, and hang.
# Modules: ours
# Sets: intree
# Guests: 2
# Kernel: stock

# shellcheck disable=SC2034
server_modules=intree
. "$RIG_DIR/steps/failover.sh"
set_up always_invalidate=N
disk=$(null vol 16)
for _ in {1..12}; do
	dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
	wait_for_paths connected 20 "$(path 0)" "$(path 1)"
	unmap_last "$dev"
done
tear_down
unload
