# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of the tool rnbd: what it says, its JSON, and that it traces.

tool=${RIG_TREES%tree-}rnbd

# says EXPECTED WORD GUEST ARGUMENT...: there it ends with that exit code, and says the word
says()
{
	local want=$1 word=$2 out got=0
	out=$(on "$3" "$tool ${*:4} 2>&1") || got=$?
	equal "exit code of rnbd ${*:4} on $3, which says: $out" "$got" "$want"
	must "rnbd ${*:4} on $3 says nothing of '$word': $out" grep -qE -- "$word" <<<"$out"
}

# member KEY...: of the JSON on stdin
member()
{
	/usr/bin/python3 -c 'import functools, json, sys
print(functools.reduce(lambda v, k: v[int(k) if k.isdigit() else k], sys.argv[1:],
		       json.load(sys.stdin)))' "$@"
}

# traces GUEST GROUP: it does so there, those tracepoints. That takes its time to begin.
traces() { on "$1" "grep -qs 1 /sys/kernel/debug/tracing/instances/rnbd-*/events/$2/enable"; }
