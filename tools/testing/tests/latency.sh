# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Histograms of latencies: of requests on a path, and on the server of requests that wait and of
# requests at the disk. The disk has a latency of 50 ms.
# Modules: ours

. "$RIG_DIR/steps/failover.sh"

# counts FILE [MICROSECONDS]: prints the numbers of reads and writes that took longer
counts()
{
	awk -v from="${2:-0}" '
		$1 == "usecs" { for (i = 2; i <= NF; i++) end[i] = $i == "inf" ? 1e9 : $i }
		$1 != "sum" { for (i = 2; i <= NF; i++) if (end[i] > from) n[$1] += $i }
		END { print n["read"], n["write"] }' "$1"
}

# latency_sum FILE: prints the sums of the latencies of reads and of writes
latency_sum() { sed -n 's/^sum //p' "$1"; }

# more_of NAME BEFORE AFTER READS WRITES: fails unless AFTER has that many more reads and writes
more_of()
{
	# shellcheck disable=SC2086
	set -- "$1" $2 $3 "$4 $5"
	equal "$1, more reads and writes" "$(($4 - $2)) $(($5 - $3))" "$6"
}

set_up
disk=$(null vol 16 irqmode=2 completion_nsec=50000000)
dev=$(map s1 "$disk" "path=$(addr server 0)")
on_path=$(path 0)/stats/io_latency
srv=/sys/class/rnbd-server/ctl/devices/${disk#/dev/}
before=$(counts "$on_path" 50000) sum=$(latency_sum "$on_path")
on_disk=$(counts "$srv/stats/disk_latency" 50000) disk_sum=$(latency_sum "$srv/stats/disk_latency")
waited=$(counts "$srv/stats/wait_latency")
expect_io "0 0 0 0 0" "$dev" write:0:4k:a read:0:4k:a write:1m:64k:b write:2m:4k:c read:2m:4k:c
more_of "path" "$before" "$(counts "$on_path" 50000)" 2 3
more_of "disk" "$on_disk" "$(counts "$srv/stats/disk_latency" 50000)" 2 3
more_of "wait" "$waited" "$(counts "$srv/stats/wait_latency")" 2 3
for f in "$sum $(latency_sum "$on_path")" "$disk_sum $(latency_sum "$srv/stats/disk_latency")"; do
	# shellcheck disable=SC2086
	set -- $f
	[ $(($3 - $1)) -ge 100000 ] && [ $(($4 - $2)) -ge 150000 ] || fail "sums: $f"
done
equal "refused" "$(errno_of "$on_path" 1) $(errno_of "$srv/stats/wait_latency" 1)" "EACCES EACCES"
tear_down "$dev"
