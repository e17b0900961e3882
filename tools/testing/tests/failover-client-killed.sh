# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client loses its power during writes. Within 60 s the server releases its session and its
# device, and another client can open the device for writing.
# Modules: ours
# Guests: 3

. "$RIG_DIR/steps/failover.sh"

set_up
disk=$(null vol 32)
paths="path=$(addr server 0) path=$(addr server 1)"
on client2 "load_client; dev=\$(map s2 $disk $paths)
	fio --name=load --filename=\$dev --direct=1 --ioengine=libaio --rw=randwrite \
		--iodepth=8 --time_based --runtime=1000 >/dev/null 2>&1 9>&- &"
wait_for 20 eval "[ \$(server_ios $disk writes) -gt 20 ]" || fail "client2 writes nothing"
from=$(now)
kill_guest client2
wait_for 60 server_has_no s2 || fail "the server still has the session after 60 s"
say "the server let go of the session after $(($(now) - from)) ms"
[ $(($(now) - from)) -le 60000 ] || fail "the server took its time"
# shellcheck disable=SC2086
dev=$(map s1 "$disk" $paths access_mode=rw)
verify "$dev" --bs=16k --size=1m
unmap "$dev"
client_idle

# After a boot, it connects with the same session name.
boot_guest client2
on client2 "rdma_here; load_client; dev=\$(map s2 $disk $paths)
	verify \$dev --bs=16k --size=1m
	unmap \$dev; client_idle"
tear_down
