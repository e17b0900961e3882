# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The network drops full-size packets, as its MTU is lower than the client's: mapping fails with
# EMSGSIZE, and the log names the MTU. A path that is reconnected over such a network takes no
# requests, and another path is used. When the MTU is correct again, the path is reconnected.
# Modules: ours
# Guests: 2

. "$RIG_DIR/steps/failover.sh"

set_up
disk=$(null vol 16)
set_link client 0 short
mark_log
began=$(now)
equal "map_device" "$(errno_of "$ctl/map_device" "sessname=s1 path=$(addr server 0) device_path=$disk")" EMSGSIZE
took=$(($(now) - began))
say "that took $took ms"
must "it took $took ms" [ $took -lt $(($(slowly 20) * 1000)) ]
log_since_mark | grep -q 'packets of 4096 bytes of data are lost.*MTU' || fail "the log doesn't name the MTU"
client_idle
set_link client 0 on

dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
fast_failover
expect_io 0 "$dev" write:0:64k:a
set_link client 0 short
mark_log
echo 1 >"$(path 0)/disconnect"
equal "reconnect" "$(errno_of "$(path 0)/reconnect" 1)" EMSGSIZE
paths_are disconnected "$(path 0)" || fail "the path takes requests"
equal "last_error" "$(cat "$(path 0)/last_error")" -90
"${RIG_TREES%tree-}rnbd" client health >/tmp/health || true
grep -q "WARNING: s1/.*$(addr server 0).*MTU" /tmp/health || fail "rnbd health: $(cat /tmp/health)"
before=$(path_ios "$(path 0)")
expect_io "0 0" "$dev" write:0:64k:b read:0:64k:b
equal "requests on that path" "$(path_ios "$(path 0)")" "$before"
equal "lines about the MTU" "$(log_since_mark | grep -c 'packets of 4096 bytes')" 1
set_link client 0 on
wait_for_paths connected 20 "$(path 0)"
equal "last_error" "$(cat "$(path 0)/last_error")" 0
tear_down "$dev"
