# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The suites of unit tests, which are built into the modules and run when these are loaded. The
# kernel's own kunit.py judges their output: all suites that are named here have run, each case has
# passed and none was skipped, and there are no other suites. The output is left in
# share/kunit.ktap of the guest's results, the verdict in share/kunit.out.
# Kernel: debug
# Modules: ours
# Append: kunit.enable=1
# Quick: debug

suites="rtrs-proto rtrs-addr rtrs-core-con rtrs-drain rtrs-poll rtrs-hb rtrs-hist rtrs-proof rtrs-qp rtrs-recv
	rtrs-region
	rtrs-client-path rtrs-client-mpath rtrs-client-con rtrs-client-qp rtrs-client-setup rtrs-client-io
	rtrs-client-failover rtrs-client-probe
	rtrs-server-path rtrs-server-limit rtrs-server-listen rtrs-server-setup rtrs-server-io
	rtrs-server-buf rtrs-server-port rtrs-server-fetch
	rnbd-client-map rnbd-client-limits rnbd-client-io rnbd-client-open rnbd-client-reopen
	rnbd-client-generation rnbd-client-cache rnbd-client-device rnbd-client-discover
	rnbd-server-io rnbd-server-session rnbd-server-list rnbd-server-open rnbd-server-dev
	rnbd-server-map rnbd-server-rules rnbd-server-path rnbd-server-writer rnbd-server-queue"
ktap=/run/rig/kunit.ktap verdict=/run/rig/kunit.out

# The modules are loaded one by one, as the kernel's log may not hold the output of all. Each module
# prints a document of its own. This test joins them and numbers all suites again.
count=$(wc -w <<<"$suites")
printf 'KTAP version 1\n1..%d\n' "$count" >$ktap
for module in rtrs_core rtrs_client rtrs_server rnbd_client rnbd_server; do
	mark_log
	probe ours $module
	log_since_mark | sed 's/^\[[^]]*\] //; /^KTAP version 1$/d; /^1\.\.[0-9]*$/d'
done | awk '/^(not )?ok [0-9]+ / { sub(/ok [0-9]+/, "ok " ++n) } { print }' >>$ktap

# kunit.py ignores suites beyond the plan, and accepts skipped cases and errors of the format.
code=0
python3 -B "$RIG_SOURCE/tools/testing/kunit/kunit.py" parse $ktap >$verdict || code=$?
if [ $code != 0 ] || grep -qE '\[(FAILED|CRASHED|SKIPPED|ERROR|NO TESTS RUN)\]' $verdict; then
	fail "kunit.py, exit code $code: $(grep -vE '\[PASSED\]|\] =+' $verdict | tail -n 40)"
fi
differences=$(diff <(xargs -n 1 <<<"$suites" | sort) <(sed -n 's/^    # Subtest: //p' $ktap | sort) |
	grep '^[<>]' | xargs)
[ -z "$differences" ] || fail "suites that are missing (<) or too many (>): $differences"
say "$(sed -n 's/.*Testing complete. //p' $verdict), in $count suites"
for what in open close; do
	equal "warnings of a device that takes long to $what" \
		"$(grep -c "kunit: still waiting for the server to $what a device" $ktap)" 1
done
unload
