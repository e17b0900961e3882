# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Without a path, I/O waits for failover_timeout seconds, then fails with EIO, and so does new I/O
# until a path is connected again. 0 does not wait, -1 waits for ever. Fail-fast requests, as sent
# by md, do not wait.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"
set_up
disk=$(null vol 32)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
fast_failover

# cut_all: interrupts both networks; sets $from to the time
cut_all()
{
	from=$(now)
	mark_log
	set_link server 0 silent
	set_link server 1 silent
}

# restore SEED: restores both networks; I/O succeeds again
restore()
{
	set_link server 0 on
	set_link server 1 on
	wait_for_paths connected 60 "$(path 0)" "$(path 1)"
	expect_io "0 0" "$dev" "write:0:64k:$1" "read:0:64k:$1"
}

# io NAME STEP: in the background; what it gave, and how long after the cut (or $from) goes
# to /tmp/NAME.io
io()
{
	(
		got=$("$RIG_DIR/steps/io.py" "$dev" "$2")
		echo "$got $(($(now) - from))"
	) >"/tmp/$1.io" 2>&1 &
}

# expires SECONDS: fails unless requests have failed when there was no path for so long, by the
# kernel's clock
expires()
{
	local took

	wait_for 20 eval "log_since_mark | grep -q 'no path for $1 s: requests fail'" || fail "not in the log: $(log_since_mark)"
	took=$(ms_between "s1: session lost" "no path for $1 s: requests fail")
	say "requests fail $took ms after the last path was lost"
	must "requests fail after $took ms, not $1 s" [ "$took" -ge $(($1 * 1000 - 100)) ]
	# The kernel's timers may be late by an eighth of their time.
	must "requests fail after $took ms, not $1 s" [ "$took" -le $(($1 * 1000 * 9 / 8 + 1000)) ]
}

# check_io NAME ERRNO LOW MORE: after LOW milliseconds at least, and at most MORE later, which is for
# a fast machine. How slow this one is, is asked afterwards, as it may have become so meanwhile.
check_io()
{
	local got ms high

	wait_for 60 test -s "/tmp/$1.io" || fail "$1: still waits"
	read -r got ms <"/tmp/$1.io"
	say "$1: $got after $ms ms"
	[ "$got" = "$2" ] || fail "$1: $got, expected $2"
	high=$(($3 + $(slowly "$4")))
	[ $((ms >= $3 && ms <= high)) = 1 ] || fail "$1: after $ms ms, expected $3 to $high"
}

# Time to detect a lost path, and further delays of a slow machine
slack=6000
expect_io 0 "$dev" write:0:64k:first
limit=$(slowly 4)
set_attrs failover_timeout="$limit"
cut_all
for i in 1 2 3 4 5 6; do
	io "write-$i" "write:$((i * 64))k:64k:new"
	io "read-$i" "read:0:64k"
done
for i in 1 2 3 4 5 6; do
	check_io "write-$i" EIO $((limit * 1000)) $slack
	check_io "read-$i" EIO $((limit * 1000)) $slack
done
expires "$limit"
from=$(now)
io late read:0:4k
check_io late EIO 0 3000
[ -b "$dev" ] || fail "the disk is gone"
restore second

# The new value counts, not the old one.
set_attrs failover_timeout=60
set_attrs failover_timeout=0
cut_all
io at-once write:0:4k:x
check_io at-once EIO 0 $slack
expires 0
restore third

set_attrs failover_timeout=-1
cut_all
io for-ever write:0:4k:x
pause 7
[ ! -s /tmp/for-ever.io ] || fail "for-ever: $(cat /tmp/for-ever.io)"
restore fourth
check_io for-ever 0 7000 53000

# A mirror whose other half is local
set_attrs failover_timeout=60
here=$(null_here here 32)
mirror md0 --failfast "$dev" "$here"
# md does not mark sequential reads as fail-fast.
dd if=/dev/md0 of=/dev/null bs=64k skip=64 count=4 iflag=direct status=none
cut_all
dd if=/dev/zero of=/dev/md0 bs=64k count=4 oflag=direct status=none || fail "the mirror failed"
took=$(($(now) - from))
say "the mirror went on after $took ms"
must "the mirror waited for $took ms" [ "$took" -le $(($(slowly $slack) + 2000)) ]
wait_for 10 grep -q '(F)' /proc/mdstat || fail "the dead half is not marked: $(cat /proc/mdstat)"
no_mirror md0
restore fifth
tear_down "$dev"
