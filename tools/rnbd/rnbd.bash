# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion for rnbd(8): commands, and the names of what there is.

# _rnbd_names KIND: devices, sessions or paths
_rnbd_names()
{
	rnbd list "$1" --no-headings 2>/dev/null | awk -v kind="$1" '
		NF < 3 { next }
		kind == "devices" { sub(".*/", "", $1) }
		{ print kind == "paths" ? $2 : $1 }'
}

_rnbd()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words

	# Names of paths have colons, at which bash parts words.
	! declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref -n : cur prev
	case $prev in
	rnbd|client|server)
		words="client server device session path help $(rnbd help 2>/dev/null |
			awk '$1 == "rnbd" { print $2 == "server" ? $3 : $2 }')" ;;
	device|devices)
		words="list show" ;;
	session|sessions)
		words="list show reconnect disconnect" ;;
	path|paths)
		words="list show add delete readd reconnect disconnect reset" ;;
	list)
		words="devices sessions paths all json" ;;
	unmap|remap|resize|perf|close)
		words=$(_rnbd_names devices) ;;
	from|add)
		words=$(_rnbd_names sessions) ;;
	delete|readd)
		words=$(_rnbd_names paths) ;;
	show|stat|ping|trace|recover|reconnect|disconnect|reset)
		words="$(_rnbd_names devices) $(_rnbd_names sessions) $(_rnbd_names paths)" ;;
	*)
		words="from ro rw migration force json help" ;;
	esac
	[[ $cur != -* ]] || words="--json --help --verbose --dry-run --bytes --no-headings"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	! declare -F __ltrimcolonprefixes >/dev/null || __ltrimcolonprefixes "$cur"
}

complete -F _rnbd rnbd
