#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make check: the compiler with W=1, sparse, checkpatch.pl --strict, kernel-doc, sphinx and
# what checks shell scripts must all be silent, and the tool's tests pass. Works on a copy, so
# that everything is compiled; prints what each had to say, and fails if any had.

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tools/testing/setup.sh" check
src=${RTRS_TESTING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrs-testing}/linux-source-6.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# verdict WHAT FILE: silent, or what it said
verdict()
{
	if [ -s "$2" ]; then
		bad=$((bad + 1))
		echo "not silent: $1"
		sed 's/^/  /' "$2"
	else
		echo "silent: $1"
	fi
}

mkdir "$work/tree"
(cd "$root" && tar -cf - --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
	--exclude='.*.cmd' --exclude=.git --exclude=test-results .) | tar -xf - -C "$work/tree"
cd "$work/tree"

echo "compiling with W=1 and sparse..."
make -s W=1 C=2 modules >"$work/build" 2>&1 || echo "the build failed" >>"$work/build"
# Not ours: Debian's headers package has no vmlinux to make BTF from.
grep -v 'Skipping BTF generation' "$work/build" >"$work/warnings" || true
verdict "compiler (W=1) and sparse" "$work/warnings"

# The tool: by the compiler with all that it warns of, then its own tests.
{ make -s -C tools/rnbd CFLAGS="-O2 -Werror" OUT="$work/tool" ||
	echo "the build of the tool failed"; } >"$work/tool-build" 2>&1
verdict "the tool: compiler and rst2man" "$work/tool-build"
make -s -C tools/rnbd check >"$work/tool-tests" 2>&1 || echo "failed" >>"$work/tool-tests"
sed -i '/^ok /d; /^[0-9]* passed, 0 failed$/d' "$work/tool-tests"
verdict "the tool: its tests" "$work/tool-tests"

find drivers include tools/rnbd \( -name '*.[ch]' -o -name Kconfig -o -name Makefile \) \
	! -name '*.mod.c' 2>/dev/null | sort >"$work/files"
while read -r f; do
	# LINUX_VERSION_CODE and such have no place in the drivers, so nothing
	# is excused; MAINTAINERS is in this project's root.
	perl "$src/scripts/checkpatch.pl" --no-tree --strict --quiet --no-summary \
		--terse --file "$f" || true
done <"$work/files" >"$work/checkpatch" 2>&1
verdict "checkpatch.pl --strict" "$work/checkpatch"

# Older ones know no -Wall, and warn of all that they know.
wall=
grep -q Wall "$src/scripts/kernel-doc" && wall=-Wall
# shellcheck disable=SC2086
grep -E '^(drivers|include)/.*\.[ch]$' "$work/files" | xargs -r perl "$src/scripts/kernel-doc" -none $wall \
	>"$work/kernel-doc" 2>&1 || true
verdict "kernel-doc" "$work/kernel-doc"

grep -rlE '^#!.*[/ ](ba)?sh$|^# shellcheck shell=' .ci debian tools | sort |
	xargs -r shellcheck --severity=warning >"$work/shellcheck" 2>&1 || true
verdict "shellcheck" "$work/shellcheck"

sphinx-build -q -W --keep-going -b html Documentation "$work/html" >"$work/sphinx" 2>&1 ||
	echo "failed" >>"$work/sphinx"
verdict "sphinx" "$work/sphinx"

[ $bad = 0 ] || { echo "make check: $bad not silent"; exit 1; }
echo "make check: all silent"
