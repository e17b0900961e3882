# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client loses its power during writes. Another client, with its address and session name,
# connects at once: it can open the volume for writing within 10 s of the server's clock, because
# the server probes the old session instead of waiting for its heartbeats to time out. The same for
# the client itself, after a boot.
# Modules: ours
# Guests: 3

. "$RIG_DIR/steps/failover.sh"

paths="path=$(addr server 0) path=$(addr server 1)"

# lose_client2: client2 maps the volume and writes, then loses its power
lose_client2()
{
	# This is its second session, so that queue pairs of the time after don't bear the
	# same numbers: the connection manager would notice that.
	on client2 "load_client; dev=\$(map s2 $disk $paths); unmap \$dev; client_idle
		dev=\$(map s2 $disk $paths)
		fio --name=load --filename=\$dev --direct=1 --ioengine=libaio --rw=randwrite \
			--iodepth=8 --time_based --runtime=1000 >/dev/null 2>&1 9>&- &"
	writes=$(server_ios "$disk" writes)
	wait_for 20 eval "[ \$(server_ios $disk writes) -gt $((writes + 20)) ]" ||
		fail "client2 writes nothing"
	from=$(now)
	on server "echo client2 goes at $from >/dev/kmsg"
	kill_guest client2
}

# maps GUEST OPTION...: the guest can map the volume within 10 s
maps()
{
	local back took
	back=$(now)
	on server "log_note 'mark $back'; log_note 's2 is asked for'"
	on "$1" "maps() { map s2 $disk ${*:2} access_mode=rw >/tmp/dev 2>/dev/null
			[ -b \$(cat /tmp/dev) ]; }
		wait_for 60 maps || fail 'it does not get the volume'"
	took=$(on server "_mark='mark $back'; ms_between 's2 is asked for' 's2: opened '")
	say "$1 is there after $((back - from)) ms, and has the volume after another $took ms"
	must "it took $took ms" [ "$took" -le 10000 ]
}

# ends REASON: prints the number of the old session's paths that the server has ended for this
# reason
ends() { on server "dmesg | sed '1,/client2 goes at $from/d' | grep -c 's2 .*path ends: $1' || true"; }

# unmap_on GUEST: verifies the volume in that guest and unmaps it
unmap_on()
{
	on "$1" "dev=\$(cat /tmp/dev)
		verify \$dev --bs=16k --size=1m
		unmap \$dev; client_idle"
}

set_up
disk=$(null vol 32)
lose_client2
others=()
for net in 0 1; do
	other=$(addr client2 $net)
	ip addr add "${other#ip:}/24" dev eth$net
	others+=("path=$other,$(addr server $net)")
done
on server 'ip neigh flush all'
maps client "${others[@]}"
# If the new client has a queue pair of the same number, its device refuses the probe.
equal "paths that didn't answer" "$(ends '\(a probe stays unanswered\|a connection broke\)')" 2
equal "paths given up by heartbeats" "$(ends 'heartbeats')" 0
unmap_on client
for net in 0 1; do
	other=$(addr client2 $net)
	ip addr del "${other#ip:}/24" dev eth$net
done
on server 'ip neigh flush all'

boot_guest client2
on client2 rdma_here
lose_client2
boot_guest client2
on client2 "rdma_here; load_client"
# shellcheck disable=SC2086
maps client2 $paths
say "$(ends 'a probe') paths didn't answer, $(ends heartbeats) were given up by then"
unmap_on client2
tear_down
