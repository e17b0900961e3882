# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Neither a busy session nor a busy machine loses a path. XFS on LVM on a disk with two paths, with
# heartbeats every 200 ms, three of which may be missed: small files are copied to it, first on idle
# machines, then with programs that use all CPUs of both guests. No path is reconnected, and no
# request is resent.
#
# The interval follows the slowness of the machine: on a machine with two busy CPUs, a guest did not
# run for 600 ms twice in fifteen minutes.
# Modules: ours
# Guests: 2
# Kernel: stock
# Rounds: 1

. "$RIG_DIR/steps/failover.sh"

lvm() { command lvm "$@" --config "$lvm_config" 9>&-; }
# Without udev; scans only /dev
lvm_config='global { locking_type = 1 } devices { use_devicesfile = 0 scan = [ "/dev" ] }
	activation { udev_sync = 0 udev_rules = 0 }'

# logged REGEX: prints how many lines of both guests' logs match since the mark
logged() { { log_since_mark; on server "_mark=$_mark; log_since_mark"; } | grep -cE "$1" || true; }

# none_dead TEXT: fails if a path ended
none_dead()
{
	equal "$1: requests sent again" "$(failed_over)" 0
	equal "$1: reconnects" "$(reconnects)" "$were"
	equal "$1: paths that have ended" "$(logged 'path ends')" 0
}

# copies SECONDS TEXT: copies a tree of small files repeatedly
copies()
{
	local end=$((SECONDS + $1)) n=0

	set_attrs hb_interval_ms="$(slowly 200)"
	while [ $SECONDS -lt $end ]; do
		cp -r /tmp/files /mnt/copy
		sync -f /mnt
		n=$((n + 1))
		rm -r /mnt/copy
	done
	say "$2: $n copies; interval $(cat "$clt/s1/hb_interval_ms") ms; heartbeats $(cat "$(path 0)/stats/hb_latency")"
	none_dead "$2"
}

# take_cpus: runs a busy loop for each CPU of both guests
take_cpus_here() { for _ in 1 2; do sh -c 'while :; do :; done' >&- 2>&- 9>&- & echo $! >>/tmp/busy; done; }
take_cpus() { take_cpus_here; on server "$(declare -f take_cpus_here); take_cpus_here"; }
# release_cpus: ends these loops
release_cpus_here() { xargs kill </tmp/busy; rm /tmp/busy; }
release_cpus() { release_cpus_here; on server "$(declare -f release_cpus_here); release_cpus_here"; }

set_up
disk=$(null vol 512)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
set_attrs hb_interval_ms=200 hb_max_missed=3 reconnect_delay_ms=200 reconnect_delay_max_ms=1000
were=$(reconnects)
python3 -IS -c '
import os
for i in range(500):
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
mark_log
# shellcheck disable=SC2154
on server "echo $_mark >/dev/kmsg"
while next_round; do
	copies 10 "idle"
	take_cpus
	copies 10 "busy"
	release_cpus
done
umount /mnt
lvm vgchange -q -an vg
tear_down "$dev"
