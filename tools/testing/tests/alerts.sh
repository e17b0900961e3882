# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Alerts from end to end: Debian's Prometheus scrapes a client and a server by node_exporter, with the
# package's rules as they are. When a cable is pulled, the alerts about a lost path fire for both
# guests, and no other alert does; without the second cable, those about the session and its device
# fire. All end when the cables are back.
#
# Prometheus was not tried on User Mode Linux.
# Modules: ours
# Guests: 2
# Kernel: stock
# Sets: prometheus

. "$RIG_DIR/steps/failover.sh"
. "$RIG_DIR/steps/monitoring.sh"

# alerts_have STATE ALERT...: true if these alerts have the state, and maybe others
alerts_have()
{
	local alert all

	all=" $(alerts "$1") "
	for alert in "${@:2}"; do
		[[ $all = *" $alert "* ]] || return
	done
}
# only ALERT...: true if these alerts fire, and no others
only()
{
	local all

	all=$(alerts firing) && [ "$all" = "$*" ]
}
show_alerts() { ask_prometheus ALERTS; cat "$monitoring"/*.log | tail -n 20; }

set_up
disk=$(null vol 64)
dev=$(map s1 "$disk" "path=$(addr server 0)" "path=$(addr server 1)")
fast_failover
export_metrics_here
on server ". $RIG_DIR/steps/monitoring.sh; export_metrics_here"
prometheus_here "$(realpath "$RIG_DIR/../monitoring/rnbd.rules.yml")" \
	127.0.0.1=client 192.168.101.1=server
# Four paths: each guest has its end of both.
paths_up() { [[ $(ask_prometheus 'sum(rnbd_path_up)') = *" => $1 "* ]]; }
wait_for 60 paths_up 4 || fail "no metrics of four paths: $(show_alerts)"
equal "alerts at first" "$(ask_prometheus ALERTS)" ""

set_link server 0 off
lost=(RnbdPathDown/warning/client RnbdServerLostPath/warning/server)
# They are pending for a minute.
wait_for 30 alerts_have pending "${lost[@]}" || fail "not pending: ${lost[*]}; $(show_alerts)"
wait_for 75 only "${lost[@]}" || fail "don't fire: ${lost[*]}; $(show_alerts)"
alert=$(ask_prometheus 'ALERTS{alertname="RnbdPathDown"}')
equal "path" "$(label path <<<"$alert")" "$(basename "$(path 0)")"
equal "session" "$(label session <<<"$alert")" s1
must "the device is not open" grep -qx open "/sys/block/${dev#/dev/}/rnbd/state"

set_link server 1 off
gone=(RnbdDeviceClosed/critical/client RnbdSessionDown/critical/client)
wait_for 60 alerts_have firing "${gone[@]}" || fail "don't fire: ${gone[*]}; $(show_alerts)"

set_link server 0 on
set_link server 1 on
wait_for_paths connected 40 "$(path 0)" "$(path 1)"
wait_for 60 paths_up 4 || fail "not four paths: $(show_alerts)"
wait_for 20 only || fail "alerts that don't end: $(show_alerts)"

daemons_end_here
on server ". $RIG_DIR/steps/monitoring.sh; daemons_end_here"
tear_down "$dev"
