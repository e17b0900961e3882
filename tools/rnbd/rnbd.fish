# SPDX-License-Identifier: GPL-2.0
#
# Completion of fish for rnbd(8): commands, options, and the names of what there is. Clients choose
# the names of sessions: fish quotes them, and nothing here evaluates them.

# __rnbd_names KIND...: devices, sessions or paths, one a line
function __rnbd_names
	for kind in $argv
		rnbd list $kind --no-headings 2>/dev/null | awk -v kind=$kind '
			NF < 3 { next }
			kind == "devices" { sub(".*/", "", $1) }
			{ print kind == "paths" ? $2 : $1 }'
	end
end

# __rnbd_commands [OBJECT]: the first words of all commands, or the commands of an object
function __rnbd_commands
	rnbd help $argv 2>/dev/null | awk -v object="$argv" '
		/^  rnbd / {
			word = $2 == "server" ? 3 : 2
			word = object == "" ? $word : $(word + 1)
			if (!seen[word]++)
				print word
		}'
end

# __rnbd_settings COMMAND...: the options NAME=VALUE of a command, up to the "="
function __rnbd_settings
	rnbd help $argv 2>/dev/null | awk -F= '/^  [a-z_]+=/ { print substr($1, 3) "=" }'
end

# __rnbd_options [WORD...]: the options of a command
function __rnbd_options
	printf '%s\n' --help --version
	begin
		rnbd help $argv[1..2] 2>/dev/null; or rnbd help $argv[1] 2>/dev/null
	end | awk '/^ +options: / { for (i = 2; i <= NF; i++) print $i }'
end

function __rnbd_arguments
	switch "$argv"
	case 'volume map' 'volume unmap'
		echo all
		rnbd volume list -H 2>/dev/null | awk '{ print $1 }'
	case discover
		__rnbd_names sessions
	case 'discover * from'
	case 'discover *'
		echo from
		__rnbd_settings discover
	case 'session set'
		__rnbd_names sessions
	case 'session set *'
		__rnbd_settings session set
	case '* from'
		__rnbd_names sessions
	case 'map * *' 'device map * *'
		printf '%s\n' ro rw migration handover
		__rnbd_settings map
	case 'map *' 'device map *'
		echo from
	case list
		printf '%s\n' devices sessions paths all
	case policy
		printf '%s\n' open listed
	case help
		printf '%s\n' client server
		__rnbd_commands
	case 'path delete' 'path readd'
		__rnbd_names sessions paths
	case 'session *' 'path add'
		__rnbd_names sessions
	case unmap remap resize perf close 'device *'
		__rnbd_names devices
	case 'unmap *'
		printf '%s\n' from force
	case check report metrics save
		__fish_complete_path (commandline -ct)
	case '*'
		__rnbd_names devices sessions paths
	end
end

function __rnbd_complete
	set -l objects device session path tenant host volume
	set -l tokens (commandline -opc)
	# Words before this one, without options and the side
	set -l before (string match -v -- '-*' $tokens[2..])

	if contains -- "$before[1]" client server
		set -e before[1]
	end
	if string match -q -- '-*' (commandline -ct)
		__rnbd_options $before
		return
	end
	if test (count $before) -eq 0
		printf '%s\n' client server help
		__rnbd_commands
		return
	end
	if contains -- (string replace -r 's$' '' -- $before[1]) $objects
		set before[1] (string replace -r 's$' '' -- $before[1])
		if test (count $before) -eq 1
			__rnbd_commands $before[1]
			return
		end
	end
	__rnbd_arguments $before
end

complete -c rnbd -f -a '(__rnbd_complete)'
