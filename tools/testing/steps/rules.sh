# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's rules, and what they leave a session.

# rule FILE VALUE
rule() { on server "echo '$2' >$conf/$1"; }

# rule_gives ERRNO FILE VALUE
rule_gives() { equal "'$3' to $2" "$(on server "errno_of $conf/$2 '$3'")" "$1"; }

# volume NAME PATH
volume()
{
	on server "mkdir $conf/volumes/$1"
	rule "volumes/$1/path" "$2"
	rule "volumes/$1/enable" 1
}

# paths_of SESSION: on the server, by name
paths_of() { on server "ls /sys/class/rtrs-server/$1/paths 2>/dev/null | sort | xargs"; }

# has_paths SESSION NUMBER
has_paths() { [ "$(paths_of "$1" | wc -w)" = "$2" ]; }

# paths_are SESSION [NAME...]
paths_are() { [ "$(paths_of "$1")" = "${*:2}" ]; }

# What map_device takes for a path on each network
for net in 0 1; do
	# shellcheck disable=SC2034
	at[net]=path=$(addr server $net)
done
