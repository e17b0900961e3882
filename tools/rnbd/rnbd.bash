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

# _rnbd_commands: the first words of all commands, one a line
_rnbd_commands()
{
	rnbd help 2>/dev/null | awk '$1 == "rnbd" { print $2 == "server" ? $3 : $2 }'
}

# _rnbd_options COMMAND...: the options of a command, each with its "=", one a line
_rnbd_options()
{
	rnbd help "$@" 2>/dev/null | awk -F= '/^  [a-z_]+=/ { print substr($1, 3) "=" }'
}

# Offer options of a command, behind which the value follows without a blank.
_rnbd_offer_options()
{
	compopt -o nospace 2>/dev/null || :
	_rnbd_offer < <(_rnbd_options "$@")
}

# Offer those lines that begin with $cur. Clients choose the names of sessions: none of them
# may be expanded, so compgen -W is of no use.
_rnbd_offer()
{
	local word quoted

	while IFS= read -r word; do
		printf -v quoted %q "$word"
		[[ -z $word || $word != "$cur"* && $quoted != "$cur"* ]] || COMPREPLY+=("$quoted")
	done
}

_rnbd_offer_words()
{
	_rnbd_offer < <(printf '%s\n' "$@")
}

_rnbd_offer_names()
{
	local kind

	for kind; do
		_rnbd_offer < <(_rnbd_names "$kind")
	done
}

_rnbd()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	# Names of paths have colons, at which bash parts words.
	! declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref -n : cur prev
	# Values of options, which bash parts from their names, are not known.
	[[ $cur != = && $prev != = ]] || return
	if [[ $cur == -* ]]; then
		_rnbd_offer_words --json --help --verbose --dry-run --bytes --no-headings
		[[ " ${COMP_WORDS[*]} " != *" "@(map|unmap)" "* ||
			" ${COMP_WORDS[*]} " == *" volume"?(s)" "* ]] || _rnbd_offer_words --save
		[[ " ${COMP_WORDS[*]} " != *" map "* || " ${COMP_WORDS[*]} " == *" volume"?(s)" "* ]] ||
			_rnbd_offer_words --all
		return
	fi
	if [[ ${COMP_WORDS[COMP_CWORD - 2]-} == volume?(s) && $prev == @(map|unmap) ]]; then
		_rnbd_offer_words all
		_rnbd_offer < <(rnbd volume list --no-headings 2>/dev/null | awk '{ print $1 }')
		return
	fi
	if [[ " ${COMP_WORDS[*]}" == *" session"?(s)" set "*" "* ]]; then
		_rnbd_offer_options session set
		return
	fi
	if [[ " ${COMP_WORDS[*]}" == *@(" discover "|" map "*"--all ")?*" "* ]]; then
		[[ $prev == from ]] || _rnbd_offer_words from
		_rnbd_offer_options discover
		return
	fi
	case $prev in
	rnbd|client|server|help)
		_rnbd_offer_words client server device session path tenant host volume help
		_rnbd_offer < <(_rnbd_commands | sort -u |
			grep -vx -e device -e session -e path -e tenant -e host -e volume -e help) ;;
	device|devices)
		_rnbd_offer_words list show map unmap remap resize recover close ;;
	session|sessions)
		_rnbd_offer_words list show set reconnect disconnect recover remap hurry ;;
	path|paths)
		_rnbd_offer_words list show add delete readd reconnect disconnect recover reset ;;
	volume|volumes)
		if [[ " ${COMP_WORDS[*]} " == *" server "* ]]; then
			_rnbd_offer_words list add set delete
		else
			_rnbd_offer_words list check map unmap
		fi ;;
	tenant|tenants|host|hosts)
		_rnbd_offer_words list add set delete ;;
	policy)
		_rnbd_offer_words open listed ;;
	list)
		_rnbd_offer_words devices sessions paths all json ;;
	discover|--all)
		_rnbd_offer_names sessions ;;
	unmap|remap|resize|perf|close)
		_rnbd_offer_names devices ;;
	from)
		_rnbd_offer_names sessions ;;
	add|set)
		[[ ${COMP_WORDS[COMP_CWORD - 2]-} != @(path|session)?(s) ]] ||
			_rnbd_offer_names sessions ;;
	delete|readd)
		_rnbd_offer_names paths ;;
	show|stat|ping|trace|recover|reconnect|disconnect|reset)
		_rnbd_offer_names devices sessions paths ;;
	*)
		_rnbd_offer_words from ro rw migration handover force json help
		[[ " ${COMP_WORDS[*]} " != *" map "*" "*" "* ]] || _rnbd_offer_options map ;;
	esac
	! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "$cur"
}

complete -F _rnbd rnbd
