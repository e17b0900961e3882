# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# I/O of a host is charged to its cgroup, for volumes on disks and on files: io.max is used up to 5
# % less or more, for bytes and for requests, reads and writes, and io.stat counts all of it. Other
# sessions and heartbeats are not delayed. A change under load, to another cgroup or to none, is
# effective at once; a removed cgroup does not stop I/O.
# Modules: ours

. "$RIG_DIR/steps/rules.sh"
cg=/run/cg
# set_io_max CGROUP TEXT: sets io.max of the disk
set_io_max() { on server "echo '$major_minor $2' >$cg/$1/io.max"; }
# io_stat CGROUP KEY: prints a number of the disk in io.stat
io_stat() { on server "grep -s '^$major_minor ' $cg/$1/io.stat | grep -o '$2=[0-9]*' | cut -d= -f2 | grep . || echo 0"; }

# fio_run DEVICE KEY OPTION...: how many (bytes, or iops) a second, in ten; and how many bytes
fio_run()
{
	fio --name=rate --filename="$1" --direct=1 --ioengine=libaio --iodepth=32 --time_based \
		--runtime=10 --output-format=json "${@:3}" 2>/dev/null |
		sed -n '/^{/,$p' | python3 -c "
import json, sys
job = json.load(sys.stdin)['jobs'][0]
print(*[round(sum(job[x][y] for x in ('read', 'write'))) for y in ('$2', 'io_bytes')])"
}

# paid CGROUP: prints the bytes read and written that the cgroup was charged with
paid() { echo $(($(io_stat "$1" rbytes) + $(io_stat "$1" wbytes))); }

# holds CGROUP DEVICE KEY LIMIT OPTION...
holds()
{
	local got bytes off before
	before=$(paid "$1")
	read -r got bytes <<<"$(fio_run "$2" "$3" "${@:5}")"
	say "${*:5}: $got a second, of $4"
	equal "what it has paid for" $(($(paid "$1") - before)) "$bytes"
	# blk-throttle reckons in tenths of a second: what its timers lose it doesn't give back, and
	# when nothing waits it begins anew, with a tenth to spare.
	off=$((5 * $(slowly 1)))
	must "$got isn't $4, within $off %" [ "$((got * 100))" -ge "$(($4 * (100 - off)))" ]
	# On a slow machine, fio's clock may start when the first requests have been sent.
	must "$got is beyond $4 by more than $off %" [ "$((got * 100))" -le "$(($4 * (100 + off)))" ]
}

# So few that a slow machine has no other limit, and that there are always some that wait: 32
# requests are two seconds.
rate=$((64 << 10))
set_up sess_queue_depth=32
disk=$(null vol 64)
major_minor=$(on server "lsblk -dno MAJ:MIN $disk | tr -d ' '")
other=$(null other 32)
on server "mkdir -p $cg; mount -t cgroup2 none $cg; echo +io >$cg/cgroup.subtree_control
	mkdir $cg/web $cg/web2 $conf/hosts/web; echo 'web*' >$conf/hosts/web/sessions"
rule_gives ENOENT hosts/web/cgroup /none
rule_gives EINVAL hosts/web/cgroup web
on server "mkdir $cg/web2/below"
rule_gives EOPNOTSUPP hosts/web/cgroup /web2/below
on server "rmdir $cg/web2/below"
rule hosts/web/cgroup /web
equal "cgroup" "$(on server "cat $conf/hosts/web/cgroup")" /web
dev=$(map web1 "$disk")
start_bystander "$(map other "$other")"

say "bytes, requests"
set_io_max web "wbps=$rate"
holds web "$dev" bw_bytes $rate --rw=randwrite --bs=4k
set_io_max web "rbps=$rate wbps=max"
holds web "$dev" bw_bytes $rate --rw=randread --bs=4k
set_io_max web "rbps=max wiops=20"
holds web "$dev" iops 20 --rw=randwrite --bs=4k
before=$(io_stat web wbytes)
expect_io "0 0" "$dev" write:0:64k:x read:0:64k:x
equal "bytes that it has written" "$(($(io_stat web wbytes) - before))" 65536
must "it has read some" [ "$(io_stat web rbytes)" -ge 65536 ]
verify "$dev" --bs=4k --size=256k

say "another cgroup, and none, under load"
set_io_max web "wiops=2 riops=2"
start_load "$dev"
rule hosts/web/cgroup /web2
before=$(io_stat web2 wios)
wrote_more() { [ "$(io_stat web2 wios)" -gt $((before + 50)) ]; }
must "the other cgroup pays" wait_for 30 wrote_more
rule hosts/web/cgroup ""
before=$(io_stat web2 wios)
stop_load
start_load "$dev"
must "nobody pays" [ "$(io_stat web2 wios)" -le $((before + 32)) ]

say "a cgroup that goes"
set_io_max web "wiops=max riops=max"
rule hosts/web/cgroup /web
on server "rmdir $cg/web"
rule_gives ENOENT hosts/web/cgroup /web
stop_load
verify "$dev" --bs=4k --size=256k
stop_bystander
unmap "$dev"

say "a path of a host with a cgroup doesn't join, unless the other path is of that host, too"
rule hosts/web/cgroup /web2
rule hosts/web/addresses "ip:192.168.101.0/24"
dev=$(map web1 "$disk")
before=$(io_stat web2 wios)
expect_io 0 "$dev" write:0:4k:x
equal "what the cgroup has paid" "$(io_stat web2 wios)" "$before"
equal "a path" "$(errno_of /sys/class/rtrs-client/web1/add_path "$(addr server 1)")" EACCES
expect_io 0 "$dev" write:0:4k:x
equal "what the cgroup has paid" "$(io_stat web2 wios)" "$before"
rule hosts/web/addresses "ip:192.168.100.0/24 ip:192.168.101.0/24"
equal "a path" "$(errno_of /sys/class/rtrs-client/web1/add_path "$(addr server 1)")" 0
expect_io 0 "$dev" write:0:4k:x
equal "what the cgroup has paid" "$(io_stat web2 wios)" $((before + 1))
rule hosts/web/addresses ""
unmap "$dev"

say "a file"
set_io_max web2 "wbps=$rate rbps=$rate riops=max wiops=max"
rule hosts/web/cgroup /web2
on server "mkfs.ext4 -q $disk; mkdir -p /run/fs; mount $disk /run/fs
	dd if=/dev/urandom of=/run/fs/file bs=1M count=8 conv=fsync status=none"
dev=$(map web1 /run/fs/file)
holds web2 "$dev" bw_bytes $rate --rw=randwrite --bs=4k --size=8m
holds web2 "$dev" bw_bytes $rate --rw=randread --bs=4k --size=8m
set_io_max web2 "wbps=max rbps=max"
verify "$dev" --size=1m
unmap "$dev"
unmap "/dev/$(mapped other "$other")"
on server "umount /run/fs; rmdir $conf/hosts/web $cg/web2; umount $cg; rmdir $cg /run/fs"
tear_down
