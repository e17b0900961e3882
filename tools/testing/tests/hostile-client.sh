# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A client that says everything wrong, in directed cases (`hostile list` has them):
# each is refused, or answered with an errno, or costs the client its own path, with a
# reason in the log. Another session's I/O goes on, all of it verified.
# Modules: ours
# Time: 200

cases()
{
	HOSTILE_RW=scratch HOSTILE_OTHER=other HOSTILE_SLOW=slow \
		HOSTILE_ADDR2=192.168.101.1 HOSTILE_ADDR3=fd00:100::1 \
		hostile client 192.168.100.1 1234 "$@"
}

# 48 isn't a power of 2, so there are numbers of chunks that can be said but aren't.
up sess_queue_depth=48 dev_search_path=/dev
for disk in good scratch other; do
	null $disk 16 >/tmp/disk
	equal "name of a disk" "$(cat /tmp/disk)" /dev/$disk
done
null slow 16 irqmode=2 completion_nsec=300000000 >/tmp/disk
dev=$(map good good)
bystander "$dev"

cases silence >/tmp/silence.out &
silence=$!
cases all >/tmp/cases.out || bad=1
wait $silence || bad=1
sed 's/^/# /' /tmp/cases.out /tmp/silence.out
[ -z "${bad:-}" ] || fail "$(grep -h '^not ok' /tmp/cases.out /tmp/silence.out)"
bystander_unharmed
unmap "$dev"
down
