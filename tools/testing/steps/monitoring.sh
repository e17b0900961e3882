# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the test of alerts: Debian's Prometheus and node_exporter, and what the timer of the tool's
# package does

rnbd=${RIG_TREES%tree-}rnbd
PATH+=:${RIG_TREES%tree-}prometheus/usr/bin
# The directory that rnbd-metrics.service writes to, and Debian's node_exporter reads by default
textfiles=/var/lib/prometheus/node-exporter
monitoring=/tmp/monitoring

# daemon NAME COMMAND...: runs it in the background, until daemons_end_here
daemon()
{
	mkdir -p $monitoring
	"${@:2}" >"$monitoring/$1.log" 2>&1 </dev/null 9>&- &
	echo $! >"$monitoring/$1.pid"
}

# write_metrics: what rnbd-metrics.timer does, once a second instead of twice a minute
write_metrics()
{
	while "$rnbd" metrics $textfiles/rnbd.prom; do
		pause 1
	done
}

# export_metrics_here: shows metrics of this guest to Prometheus
export_metrics_here()
{
	mkdir -p $textfiles
	daemon metrics write_metrics
	daemon exporter prometheus-node-exporter --collector.disable-defaults --collector.textfile
}

# prometheus_here RULES ADDRESS=NAME...: has Prometheus scrape these guests
prometheus_here()
{
	local rules=$1 target

	mkdir -p $monitoring
	shift
	{
		echo "global: { scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s }"
		echo "rule_files: [ '$rules' ]"
		echo "scrape_configs:"
		echo "  - job_name: node"
		echo "    static_configs:"
		for target in "$@"; do
			echo "      - targets: [ '${target%=*}:9100' ]"
			echo "        labels: { instance: '${target#*=}' }"
		done
	} >$monitoring/prometheus.yml
	promtool check config $monitoring/prometheus.yml >$monitoring/check.log 2>&1 ||
		fail "promtool: $(<$monitoring/check.log)"
	daemon prometheus prometheus --config.file=$monitoring/prometheus.yml \
		--storage.tsdb.path=$monitoring/data --web.listen-address=127.0.0.1:9090 \
		--log.level=warn
}

# ask_prometheus QUERY: prints a line for each series of the answer. Tests ask until they get what
# they wait for, and promtool takes long to start: hence the pause.
ask_prometheus()
{
	pause 2
	promtool query instant http://127.0.0.1:9090 "$1" 2>/dev/null
}

# label NAME: prints the value of a label of each line of such an answer
label() { sed -nE "s/.*[{ ]$1=\"([^\"]*)\".*/\1/p"; }

# alerts STATE: prints the alerts that are pending or firing, each as name/severity/instance, in one
# line
alerts()
{
	local found line

	found=$(ask_prometheus "ALERTS{alertstate=\"$1\"}") || return
	while read -r line; do
		echo "$(label alertname <<<"$line")/$(label severity <<<"$line")/$(
			label instance <<<"$line")"
	done <<<"$found" | grep -v '^//$' | sort | xargs
}

# daemons_end_here: ends them
daemons_end_here()
{
	local pid

	for pid in "$monitoring"/*.pid; do
		kill "$(<"$pid")"
	done
	for pid in "$monitoring"/*.pid; do
		wait_for 20 ended "$(<"$pid")" || fail "$pid doesn't end"
	done
	rm -r $monitoring $textfiles
}
