# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The client's disk has the unique ID of the server's disk. If the server has another disk by that
# name after a reconnect, nothing is written to it.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

wwid() { cat "$(device_attr "$dev" wwid)"; }

set_up dev_search_path=$volumes
modprobe -a sd_mod
modprobe scsi_debug dev_size_mb=16 delay=0 add_host=2 per_host_store=1
wait_for 20 eval '[ "$(scsi_disks_here | wc -l)" = 2 ]' || fail "scsi_debug made no two disks"
a=$(basename "$(scsi_disks_here | head -n 1)") b=$(basename "$(scsi_disks_here | tail -n 1)")
link_volume volume "/dev/$a"
dev=$(map s1 volume "path=$(addr server 0)")
equal "wwid" "$(wwid)" "$(cat "/sys/block/$a/device/wwid")"
[ "$(wwid)" != "$(cat "/sys/block/$b/device/wwid")" ] || fail "both disks have the same id"

fast_failover
set_attrs failover_timeout=2
expect_io 0 "$dev" write:0:4k:mine
"$RIG_DIR/steps/io.py" "/dev/$b" write:0:4k:other >/dev/null
mark_log
echo 1 >"$(path 0)/disconnect"
wait_for 20 state_is "$dev" closed || fail "it is still open"
link_volume volume "/dev/$b"
echo 1 >"$(path 0)/reconnect"
expect_io EIO "$dev" write:0:4k:lost
wait_for 20 eval "log_since_mark | grep -q 'another disk by that name'" || fail "the log doesn't say why"
equal "state" "$(cat "/sys/block/${dev#/dev/}/rnbd/state")" closed
expect_io 0 "/dev/$b" read:0:4k:other
equal "remap" "$(errno_of "/sys/block/${dev#/dev/}/rnbd/remap_device" 1)" ESTALE
link_volume volume "/dev/$a"
equal "remap" "$(errno_of "/sys/block/${dev#/dev/}/rnbd/remap_device" 1)" 0
expect_io "0 0" "$dev" read:0:4k:mine write:0:4k:again
unmap "$dev"

# What has no id
link_volume volume "$(null plain 16)"
dev=$(map s1 volume "path=$(addr server 0)")
equal "wwid of a disk without" "$(wwid)" ""
unmap_last "$dev"
no_scsi
tear_down
