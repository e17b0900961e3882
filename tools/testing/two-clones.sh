#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two clones of this tree share the cache: one runs `make test` while the other one runs
# `make bench`. Both work, and each loads the modules that were built from its own sources,
# which differ. Ends in "N passed, N failed".

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# Guests do not see /tmp.
mkdir -p "$root/.build"
work=$(mktemp -d "$root/.build/clones.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# check TEXT COMMAND...: a result
check()
{
	local text=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok $((passed + failed)) $text"
	else
		failed=$((failed + 1))
		echo "not ok $((passed + failed)) $text"
	fi
}

# clone NAME: a clone of the last commit, whose modules bear its name
clone()
{
	git clone -q "$root" "$work/$1"
	echo "MODULE_INFO(clone, \"$1\");" >>"$work/$1/drivers/infiniband/ulp/rtrs/common/con.c"
}

# own NAME: the guests of a clone load its modules
own()
{
	local ko

	for ko in "$work/$1"/.build/stock/{modules,tree-ours/lib/modules/*/updates}/rtrs-core.ko; do
		[ "$(modinfo -F clone "$ko")" = "$1" ] || return 1
	done
}

# run NAME TARGET VARIABLE=VALUE...: in a clone, by make; its output begins with the name
run()
{
	local name=$1 rc=0
	shift
	make --no-print-directory -C "$work/$name" "$@" </dev/null >"$work/$name.log" 2>&1 || rc=$?
	sed "s/^/# $name: /" "$work/$name.log"
	return $rc
}

for name in test bench; do
	clone $name
done
run bench bench CELLS=4k-randread-1 TABLES=speed WHAT=ours-Y ROUNDS=1 &
bench=$!
check "make test beside make bench" run test test KERNEL=stock T=port
check "make bench beside make test" wait $bench
for name in test bench; do
	check "modules of the clone for make $name" own $name
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
