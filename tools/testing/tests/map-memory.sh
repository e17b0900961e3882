# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What a session takes of the memory of both ends, of all the kernel has: with one path, when there
# is one before, at most 8.5 MiB; with two paths 16 MiB. On the stock kernel, as the checkers of the
# other one take memory themselves.
# Kernel: stock
# Modules: ours
# Cpus: 2
# Append: slub_debug=-
# Alone: yes
# Time: 40

. "$RIG_DIR/steps/compare.sh"

# takes KIB WHAT OPTION...: maps the next volume
nr=0
takes()
{
	local before=$free

	devs+=("$(map "s$nr" "${disks[nr]}" "${@:3}")")
	nr=$((nr + 1))
	free=$(free_kib)
	say "$2: $((before - free)) KiB"
	[ $((before - free)) -le "$1" ] || fail "$2 takes $((before - free)) KiB"
}

up
devs=()
for i in 0 1 2 3; do disks[i]=$(null "vol$i" 16); done
free=$(free_kib)
takes 32768 "a first session, and what stays for good"
takes 8704 "a session of one path"
takes 8704 "another one"
takes 16384 "a session of two paths" path="$(addr server 0)" path="$(addr server 1)"
for dev in "${devs[@]}"; do unmap "$dev"; done
down
