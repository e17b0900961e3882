# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# `rnbd server stop`, which systemctl stop rnbd-server runs, during writes: when it returns, data
# are durable and devices closed, so that the file system of a volume in a file can be unmounted,
# and a disk has been flushed. Clients wait without errors, and continue after `rnbd server load`. A
# disk whose flush fails is reported and does not delay the stop. The in-tree driver is refused
# before and after it is loaded.
# Modules: ours
# Sets: intree

. "$RIG_DIR/steps/failover.sh"
. "$RIG_DIR/steps/tool.sh"
export RNBD_SERVER_CONF=/tmp/server.conf
: >/tmp/server.conf
sectors=$((16 << 11))

set_up
mkdir -p /srv
store=$(null_here store 64)
mkfs.ext4 -q "$store"
mount "$store" /srv
truncate -s 16M /srv/volume
lower=$(null_here lower 16 cache_size=1)
disk=$(dm_here disk "0 $sectors linear $lower 0")
worse=$(null_here worse 16 cache_size=1)
bad=$(dm_here bad "0 $sectors linear $worse 0")

file_dev=$(map s1 /srv/volume)
disk_dev=$(map s1 "$disk")
bad_dev=$(map s1 "$bad")
set_attrs reconnect_delay_ms=200 reconnect_delay_max_ms=500 failover_timeout=-1

say "nothing is flushed but by the server"
dd if=/dev/urandom of=/tmp/data bs=1M count=4 status=none
for dev in "$file_dev" "$disk_dev" "$bad_dev"; do
	dd if=/tmp/data of="$dev" bs=1M seek=8 oflag=direct conv=notrunc status=none
done
flushes=$(ios "$lower" flushes)
dm_table_here bad "0 $sectors flakey $worse 0 0 1000"
writer file "$file_dev"
goes_on "$file_dev"
mark_log
says 0 '' client server stop
equal sessions "$(ls /sys/class/rtrs-server)" ""
equal "open devices" "$(ls /sys/class/rnbd-server/ctl/devices)" ""
must "the disk wasn't flushed" [ "$(ios "$lower" flushes)" -gt "$flushes" ]
must "the log doesn't tell of the disk that can't be flushed" grep -qE "can't sync $bad: -(EIO|5)" <(log_since_mark)
umount /srv
mount -o ro "$store" /srv
must "the file has something else" cmp -n $((4 << 20)) -i 0:$((8 << 20)) /tmp/data /srv/volume
must "the disk has something else" cmp -n $((4 << 20)) -i 0:$((8 << 20)) /tmp/data "$lower"
must "no write waits" wait_for 30 has_inflight "$file_dev"
must "the writer has ended" eval "! writer_ended file"

say "started again"
mount -o remount,rw /srv
dm_table_here bad "0 $sectors linear $worse 0"
says 0 '' client server load
goes_on "$file_dev" 60
writers_unharmed
for dev in "$file_dev" "$disk_dev" "$bad_dev"; do
	wait_for_state "$dev" open
	unmap "$dev"
done
client_idle
server_idle
umount /srv

say "the kernel's own driver"
unload_here
modules=lib/modules/$(uname -r)
mount --bind "${RIG_TREES}intree/$modules" "/$modules"
says 1 "rtrs_server would be the kernel's own driver" client server load
must "it was loaded" [ ! -e /sys/module/rtrs_server ]
load_server_here intree
says 1 "rtrs_server is the kernel's own driver" client server load
says 1 "rnbd_server is the kernel's own driver" client server stop
says 2 "rnbd_server: the kernel's own driver is loaded" client server health
unload_here
umount "/$modules"
rm /tmp/server.conf
tear_down
