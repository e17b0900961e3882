# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A busy session is not a dead one. XFS on LVM on a disk with two paths, and a heartbeat of
# 200 ms of which three may be missed: small files are copied to it. Nothing is connected
# again, and no request is sent again.
# Modules: ours
# Guests: 2
# Kernel: stock
# Time: 200
# Rounds: 1

. "$RIG_DIR/steps/failover.sh"

lvm() { command lvm "$@" --config "$lvm_config" 9>&-; }
# Without udev, and blind to all but the disk.
lvm_config='global { locking_type = 1 } devices { use_devicesfile = 0 scan = [ "/dev" ] }
	activation { udev_sync = 0 udev_rules = 0 }'

reconnects() { cat "$clt"/s1/paths/*/stats/reconnects | xargs; }

# copies SECONDS TEXT: of a tree of small files, one after the other
copies()
{
	local end=$((SECONDS + $1)) n=0

	while [ $SECONDS -lt $end ]; do
		cp -r /tmp/files /mnt/copy
		sync -f /mnt
		n=$((n + 1))
		rm -r /mnt/copy
	done
	say "$2: $n copies; heartbeats $(cat "$(path 0)/stats/hb_latency")"
	equal "$2: requests sent again" "$(failed_over)" 0
	equal "$2: reconnects" "$(reconnects)" "$were"
}

up
disk=$(null vol 512)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
attr hb_interval_ms=200 hb_max_missed=3 reconnect_delay_ms=200 reconnect_delay_max_ms=1000
were=$(reconnects)
python3 -IS -c '
import os
for i in range(1500):
    d = f"/tmp/files/{i // 50}"
    os.makedirs(d, exist_ok=True)
    with open(f"{d}/{i}", "wb") as f:
        f.write(os.urandom(1 + i * 7919 % 24000))'
modprobe -a dm-mod xfs
lvm pvcreate -q "$dev"
lvm vgcreate -q vg "$dev"
lvm lvcreate -q -y -Wn -Zn -l100%FREE -n lv vg
mkfs.xfs -q /dev/mapper/vg-lv
mount /dev/mapper/vg-lv /mnt
mark
while more; do
	copies 10 "idle"
done
! since | grep 'path ends' || fail "a path has ended"
umount /mnt
lvm vgchange -q -an vg
unmap "$dev"
down
