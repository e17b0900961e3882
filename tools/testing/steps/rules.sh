# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's rules.

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

# What map_device takes for a path on each network
for net in 0 1; do
	# shellcheck disable=SC2034
	at[net]=path=$(addr server $net)
done
