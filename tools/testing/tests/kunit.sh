# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The suites of unit tests, which are built into the modules and run when these are
# loaded. All those named here are there, have run and are good, and there are no
# others. What they say is left in share/kunit.ktap of the guest's results.
# Kernel: debug
# Modules: ours
# Append: kunit.enable=1 kunit.stats_enabled=2
# Time: 120

suites="rtrs-proto rtrs-addr rtrs-core-con rtrs-poll rtrs-hb rtrs-hist rtrs-proof rtrs-qp rtrs-recv
	rtrs-region
	rtrs-client-path rtrs-client-mpath rtrs-client-conn rtrs-client-qp rtrs-client-info rtrs-client-io
	rtrs-client-failover
	rtrs-server-path rtrs-server-limit rtrs-server-listen rtrs-server-setup rtrs-server-io
	rtrs-server-buf rtrs-server-port rtrs-server-fetch
	rnbd-client-map rnbd-client-limits rnbd-client-io rnbd-client-open rnbd-client-reopen
	rnbd-client-handover
	rnbd-server-io rnbd-server-session rnbd-server-map rnbd-server-rules
	rnbd-server-path rnbd-server-handover"
results=/sys/kernel/debug/kunit
ktap=/run/rig/kunit.ktap

# Each by itself, as all that they say may be more than the kernel's log holds.
for module in rtrs_core rtrs_client rtrs_server rnbd_client rnbd_server; do
	mark
	probe ours $module
	since | sed 's/^\[[^]]*\] //' >>$ktap
done

failed() { grep -B4 '^ *not ok\|FAILED' $ktap | head -n 40; fail "$1"; }

cases=0 count=0
for suite in $suites; do
	file=$results/$suite/results
	[ -e "$file" ] || fail "suite $suite is not there"
	good=$(sed -n 's/^# Totals: pass:\([1-9][0-9]*\) fail:0 skip:0 .*/\1/p' "$file")
	[ -n "$good" ] || failed "suite $suite"
	grep -q "^ok 1 $suite\$" "$file" || failed "suite $suite"
	cases=$((cases + good))
	count=$((count + 1))
done
equal "suites that there are" "$(ls $results | wc -l)" $count
say "$cases cases in $count suites"
for what in open close; do
	equal "warnings of a device that takes long to $what" \
		"$(grep -c "kunit: still waiting for the server to $what a device" $ktap)" 1
done
unload
