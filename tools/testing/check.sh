#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make check: the compiler with W=1, sparse, checkpatch.pl --strict, kernel-doc, sphinx, shellcheck
# and pylint must be silent, pictures of the manuals up to date, and the tests of the tool and of the
# rig must pass. Prints the output of each check, and fails if there was any.
#
# setup.sh builds the modules and the tool, for guests as well, and turns warnings into errors.
# Checks that were silent do not run again until their input or their program has changed; the
# cache keeps a stamp of each.

set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tools/testing
cache=${RTRS_TESTING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrs-testing}
stamps=$cache/silent
src=$cache/linux-source-6.1
# Checks are about Debian 12's kernel, whatever the tests run on.
export KERNEL=stock PYTHONDONTWRITEBYTECODE=1
cd "$root"

# silent COMMAND...: runs the command, unless it was silent before with the same input. The
# standard input has everything that the result depends on, e.g. files and versions.
silent()
{
	local stamp said

	stamp=$stamps/$( (echo "$*"; cat) | sha256sum | cut -c 1-64)
	if [ -e "$stamp" ]; then
		touch "$stamp"
	elif said=$("$@" 2>&1 </dev/null) && [ -z "$said" ]; then
		touch "$stamp"
	else
		echo "${said:-$1 failed}"
	fi
}

# each FILE... -- COMMAND...: runs the command on each file that the standard input lists. Its
# result also depends on FILE..., e.g. the program itself.
each()
{
	local sum f with=()

	while [ "$1" != -- ]; do
		with+=("$1")
		shift
	done
	shift
	sum=$(cat "${with[@]}" | sha256sum)
	while read -r f; do
		{ echo "$sum"; cat "$f"; } | silent "$@" "$f"
	done
}

# c_files PATTERN: prints the names of the drivers' and the tool's files that match
c_files()
{
	find drivers include tools/rnbd \( -name '*.[ch]' -o -name Kconfig -o -name Makefile \) \
		! -name '*.mod.c' | grep -E "$1" | sort
}

# scripts INTERPRETER: prints the names of its scripts
scripts() { grep -rlE --exclude-dir=__pycache__ "^#!.*[/ ]$1\$" .ci debian tools; }

python_files() { { scripts python3; find tools -name '*.py'; } | sort -u; }

# ---- the checks: each prints its findings, and nothing else ----

# built WHAT FOLDER: has setup.sh build it; prints the compiler's output, or why it failed
built()
{
	local log

	if ! log=$("$here/setup.sh" "$1" 2>&1); then
		cat ".build/$2/said" 2>/dev/null | grep . || echo "$log"
		echo "the build failed"
	fi
}

modules() { built modules stock; }
tool() { built programs programs; }

tool_tests()
{
	{ gcc -v; python3 --version; dpkg-query -W libjson-c-dev libc6 python3-jsonschema prometheus
		find tools/rnbd tools/boot tools/monitoring Documentation/*.rst Documentation/man -type f \
			! -name '*.o' -print0 | sort -z | xargs -0 sha256sum
	} 2>&1 | silent run_tool_tests
}

run_tool_tests()
{
	{ make -s -C tools/rnbd check 2>&1 || echo "failed"; } |
		sed '/^ok [^#]*$/d; /^[0-9]* passed, 0 failed$/d'
}

# LINUX_VERSION_CODE and such have no place in the drivers, so nothing is excused; MAINTAINERS is
# in this project's root.
checkpatch()
{
	c_files . | each "$src"/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch} -- \
		perl "$src/scripts/checkpatch.pl" --no-tree --strict --quiet --no-summary --terse --file
}

kernel_doc()
{
	local wall=''

	# Older ones know no -Wall, and warn of all that they know.
	! grep -q Wall "$src/scripts/kernel-doc" || wall=-Wall
	# shellcheck disable=SC2086
	c_files '^(drivers|include)/.*\.[ch]$' |
		xargs perl "$src/scripts/kernel-doc" -none $wall 2>&1 || echo "failed"
}

shell()
{
	{ shellcheck --version; shell_files | xargs cat tools/testing/.shellcheckrc; } |
		silent run_shellcheck
}

run_shellcheck() { shell_files | xargs shellcheck --severity=warning; }

shell_files()
{
	{ scripts '(ba)?sh'; grep -rl '^# shellcheck shell=' .ci debian tools; } | sort -u
}

sphinx()
{
	sphinx-build -q -W --keep-going -b html Documentation "$work/html" 2>&1 || echo "failed"
}

# Of python3, as the machine may have none that draws; see pictures.py.
pictures() { python3 "$here/pictures.py" check 2>&1 || echo "failed"; }

python()
{
	{ pylint --version; python_files | xargs sha256sum tools/testing/pylintrc; } | silent run_pylint
}

run_pylint()
{
	python_files | PYLINTHOME=$work/pylint xargs pylint --rcfile=tools/testing/pylintrc
}

rig_tests()
{
	local said

	said=$(python3 -m unittest discover -s tools/testing/unit -t tools/testing 2>&1) || {
		echo "$said"
		return
	}
	grep -q '^Ran [1-9]' <<<"$said" || echo "$said"
}

# ---- all of them ----

# The long ones come first.
checks=(
	"modules:compiler (W=1) and sparse"
	"checkpatch:checkpatch.pl --strict"
	"tool_tests:the tool: its tests"
	"tool:the tool, the hostile peer, the verifier: compiler and rst2man"
	"python:pylint"
	"shell:shellcheck"
	"sphinx:sphinx"
	"pictures:pictures, diagrams of states, names in README and architecture.rst"
	"kernel_doc:kernel-doc"
	"rig_tests:the rig's unit tests"
)

# verdict CHECK: runs it, and prints whether it was silent, or its output
verdict()
{
	local text said

	said=$("${1%%:*}" 2>&1) || said="${said:+$said$'\n'}failed"
	if [ -n "$said" ]; then
		echo "$1" >>"$work/bad"
		text="not silent: ${1#*:}"$'\n'$(sed 's/^/  /' <<<"$said")
	else
		text="silent: ${1#*:}"
	fi
	# Verdicts of two checks must not mix.
	flock "$work" cat <<<"$text"
}

if [ "${1:-}" = --verdict ]; then
	verdict "$2"
	exit
fi
"$here/setup.sh" check
mkdir -p "$stamps"
find "$stamps" -type f -mtime +30 -delete
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
printf '%s\0' "${checks[@]}" | xargs -0 -n 1 -P "$(nproc)" "$here/check.sh" --verdict || echo "xargs" >>"$work/bad"
[ ! -s "$work/bad" ] || { echo "make check: $(wc -l <"$work/bad") not silent"; exit 1; }
echo "make check: all silent"
