# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A virtual machine migrates between two clients, back and forth, while it writes to its disk, a
# volume: with access_mode=handover, and with migration. The disk has each number that the machine
# has counted to, and never an older one. With handover, the old client can no longer write.
# Migrations use TCP, the last one RDMA.
#
# Only the stock kernel 6.1, as QEMU within an emulated guest is slow.
# Modules: ours
# Guests: 3
# Rounds: 2
# Kernel: stock

. "$RIG_DIR/steps/machine.sh"

declare -A dev sess=([client]=s1 [client2]=s2)

# host GUEST 'shell text': runs the text in the guest, with steps/machine.sh
host() { on "$1" ". $RIG_DIR/steps/machine.sh; $2"; }

# take GUEST MODE: maps the volume in the guest
take() { dev[$1]=$(on "$1" "map ${sess[$1]} $disk access_mode=$2"); }
leave() { on "$1" "unmap ${dev[$1]}"; }

# update_count: sets $count to what the machine on $at has counted to; fails if that has decreased
update_count()
{
	local now
	now=$(host "$at" "counted_here ${dev[$at]}") || fail "on $at: $now $(host "$at" 'cat /tmp/machine.out')"
	must "it has gone back from $count to $now" [ "$now" -ge "$count" ]
	count=$now
}

# counted_on COUNT: true if the machine has counted further than COUNT
counted_on() { update_count; [ "$count" -gt $1 ]; }

# machine_goes_on: waits until the machine has counted further
machine_goes_on() { wait_for 60 counted_on "$count" || fail "the machine writes nothing on $at"; }

# move PROTOCOL: migrates the machine to the other client, which has mapped the volume
move()
{
	local from=$at to=client time uri
	[ "$from" = client2 ] || to=client2
	uri=$1:$(addr "$to" 1 | cut -d: -f2):4444
	host "$to" "machine_here ${dev[$to]} -incoming $uri"
	time=$(host "$from" "qmp_here migrate $uri") ||
		fail "$uri: $(host "$from" 'cat /tmp/machine.out') $(host "$to" 'cat /tmp/machine.out')"
	at=$to
	host "$to" 'wait_for 60 machine_is running' || fail "it doesn't run on $to"
	say "from $from to $to by $1: downtime ${time% *} ms of ${time#* } ms"
	machine_goes_on
	host "$from" no_machine_here
}

# old_side_writes ERRNO: fails unless a write of the client that the machine has left gives this
# errno
old_side_writes()
{
	local old=client
	[ "$at" = client2 ] || old=client2
	on "$old" "expect_io '$1 0' ${dev[$old]} write:512k:4k:old read:512k:4k"
}

# start_machine MODE: starts the machine on client; client2 maps the volume as well
start_machine()
{
	at=client
	count=0
	take client "$1"
	dd if=/tmp/counter of="${dev[client]}" bs=1M conv=sync oflag=direct status=none
	machine_here "${dev[client]}"
	machine_goes_on
	take client2 "$1"
}

# end_machine: ends it; both clients unmap the volume
end_machine()
{
	host "$at" no_machine_here
	leave client
	leave client2
}

set_up
on client2 load_client
disk=$(null vol 16)
boot_sector /tmp/counter

start_machine handover
while next_round; do
	move tcp
	old_side_writes EBADE
	# Maps the volume again on the client that gets the machine next.
	if [ "$at" = client ]; then leave client2; take client2 handover
	else leave client; take client handover; fi
done
modprobe -a ib_uverbs rdma_ucm
on client2 'modprobe -a ib_uverbs rdma_ucm'
move rdma
old_side_writes EBADE
end_machine

start_machine migration
move tcp
old_side_writes 0
move tcp
end_machine
on client2 client_idle
tear_down
