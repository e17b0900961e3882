# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For tests of the server's rules

# rule FILE VALUE: writes a value to a file of the rules
rule() { on server "echo '$2' >$conf/$1"; }

# rule_gives ERRNO FILE VALUE: fails unless writing the value gives this errno
rule_gives() { equal "'$3' to $2" "$(on server "errno_of $conf/$2 '$3'")" "$1"; }

# volume NAME PATH: adds a volume and enables it
volume()
{
	on server "mkdir $conf/volumes/$1"
	rule "volumes/$1/path" "$2"
	rule "volumes/$1/enable" 1
}

# watch_paths: starts tracing the states of the server's paths
watch_paths()
{
	on server "echo >$tracing/trace
		echo 1 >$tracing/events/rtrs_srv/rtrs_srv_path_state/enable"
}

# ended_paths SESSION: stops that; prints the session's paths that have ended, or have begun to end
ended_paths()
{
	on server "echo 0 >$tracing/events/rtrs_srv/rtrs_srv_path_state/enable
		sed -n 's/.* rtrs_srv_path_state: $1 \([^ ]*\): connected -> closing\$/\1/p' $tracing/trace" |
		sort | xargs
}

# rule_ends SESSION PATHS FILE VALUE: writes a value to a file of the rules; fails unless this ends
# exactly these paths of the session, which take no requests after the write
rule_ends()
{
	watch_paths
	rule "$3" "$4"
	equal "paths of $1 that end by '$4' in $3" "$(ended_paths "$1")" "$2"
}

# The option path= of map_device for each network
for net in 0 1; do
	# shellcheck disable=SC2034
	at[net]=path=$(addr server $net)
done
