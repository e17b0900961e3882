# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A path over IPv6, with and without a source, and one more over IPv4 in the session
# (which the in-tree server takes for the same path).

set_up
disk=$(null vol 64)
for path in "$(addr6 server 0)" "$(addr6 client 0),$(addr6 server 0)" \
	"$(addr6 client 0)@$(addr6 server 0)"; do
	if [ "$RIG_MODULES" = intree ]; then
		dev=$(map s1 "$disk" "path=$path")
	else
		dev=$(map s1 "$disk" "path=$path" "path=$(addr server 1)")
	fi
	compgen -G '/sys/class/rtrs-client/s1/paths/*fd00:100::1*' >/dev/null ||
		fail "the path is not listed: $(ls /sys/class/rtrs-client/s1/paths)"
	verify "$dev" "$mixed" --size=4m
	unmap "$dev"
	client_idle
done
tear_down
