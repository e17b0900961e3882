# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the tests of the tool rnbd: its output, its JSON, and its traces

tool=${RIG_TREES%tree-}rnbd

# Reads JSON for the tests; it ends with the test.
coproc READER { "$RIG_DIR/steps/look.py" "$RIG_DIR/../rnbd/tests"; }
# shellcheck disable=SC2153
exec {reader_in}>&"${READER[1]}" {reader_out}<&"${READER[0]}"

# look FILE DEFINITION [KEY...]: true if the JSON in the file matches this definition of the schema,
# or DEFINITION is empty; prints the member, or everything
look()
{
	local verdict answer
	(IFS=$'\t'; echo "$*") >&"$reader_in"
	read -r verdict answer <&"$reader_out"
	echo "$answer"
	[ "$verdict" = ok ]
}

# member KEY...: prints a member of the JSON on stdin
member()
{
	local file=/tmp/member-$BASHPID
	cat >"$file"
	look "$file" '' "$@"
}

# ask GUEST LINE...: runs the tool with each line in the guest, in one call; exit codes and outputs,
# each with a NUL at the end, go to /tmp/answers-GUEST
ask()
{
	local guest=$1
	shift
	on "$guest" "for line in ${*@Q}; do
		code=0
		$tool \$line >/tmp/answer 2>&1 || code=\$?
		printf '%s\0' \$code
		cat /tmp/answer
		printf '\0'
	done" >"/tmp/answers-$guest"
}

# judge LINE EXPECTED WORD DEFINITION CODE ANSWER: checks the tool's exit code and output for a
# line: it has the exit code EXPECTED and prints the word, or JSON if there is a definition, which
# is then in /tmp/json
judge()
{
	local why
	equal "exit code of rnbd $1, which says: $6" "$5" "$2"
	must "rnbd $1 says nothing of '$3': $6" grep -qE -- "$3" <<<"$6"
	[ -n "$4" ] || return 0
	printf '%s' "$6" >/tmp/json
	why=$(look /tmp/json "$4") || fail "rnbd $1: $why: $6"
}

# says EXPECTED WORD GUEST ARGUMENT...: runs the tool in the guest: it must end with this exit code
# and print the word
says()
{
	local out got=0
	out=$(on "$3" "$tool ${*:4} 2>&1") || got=$?
	judge "${*:4} on $3" "$1" "$2" '' "$got" "$out"
}

# fits DEFINITION GUEST ARGUMENT...: runs the tool in the guest: its JSON must match the definition
fits()
{
	local out got=0
	out=$(on "$2" "$tool ${*:3}" 2>/tmp/errors) || got=$?
	[ $got = 0 ] || out+=$(</tmp/errors)
	judge "${*:3} on $2" 0 '' "$1" "$got" "$out"
}

# judged KEY...: prints a member of the JSON that was checked last
judged() { look /tmp/json '' "$@"; }

# traces GUEST GROUP: true if the tool has enabled this group of tracepoints in the guest
traces() { on "$1" "grep -qs 1 /sys/kernel/debug/tracing/instances/rnbd-*/events/$2/enable"; }
