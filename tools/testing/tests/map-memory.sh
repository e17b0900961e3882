# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The memory that a session takes on both ends, measured by the kernel's free memory: with one path,
# besides another session, at most 8 MiB, the mean of four, as free memory varies; with two paths 16
# MiB. Only the stock kernel, as the other one's checkers take memory.
# Kernel: stock
# Modules: ours
# Cpus: 2
# Append: slub_debug=-
# Alone: yes

. "$RIG_DIR/steps/compare.sh"

# sessions_take NUMBER KIB WHAT OPTION...: maps so many volumes, each in a session of its own; fails
# if a session takes more memory than that
nr=0
sessions_take()
{
	local before=$free kib i

	for ((i = 0; i < $1; i++)); do
		devs+=("$(map "s$nr" "${disks[nr]}" "${@:4}")")
		nr=$((nr + 1))
	done
	free=$(free_kib)
	kib=$(((before - free) / $1))
	say "$3: $kib KiB"
	[ $kib -le "$2" ] || fail "$3 takes $kib KiB"
}

set_up
devs=()
for i in {0..5}; do disks[i]=$(null "vol$i" 16); done
free=$(free_kib)
sessions_take 1 32768 "a first session, and what stays for good"
sessions_take 4 8192 "a session of one path"
sessions_take 1 16384 "a session of two paths" path="$(addr server 0)" path="$(addr server 1)"
for dev in "${devs[@]}"; do unmap "$dev"; done
tear_down
