# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A short form of `make bench`: 4 and 64 KiB at depth 32, beside the in-tree driver.
# Expects not more packets for an I/O than it sends; I/Os a second are shown only.
# Sets: intree
# Modules: ours
# Time: 240
# Once: stock
# Alone: yes

. "$RIG_DIR/steps/bench.sh"
for what in ours-Y intree-Y ours-N intree-N; do
	dev=$(bench_up $what)
	for cell in "randread 4k" "randwrite 4k" "randread 64k" "randwrite 64k"; do
		# shellcheck disable=SC2086
		echo "${what#*-} ${what%-*} $cell $(bench_cell "$dev" $cell 32 1)" >>/tmp/cells
	done
	bench_down $what
done
rm -f /tmp/bad
for mode in Y N; do
	for cell in "randread 4k" "randwrite 4k" "randread 64k" "randwrite 64k"; do
		# shellcheck disable=SC2046
		set -- $(for set in ours intree; do
			grep "^$mode $set $cell" /tmp/cells |
				awk '{ print $5, $8 }'
		done)
		say "$cell, always_invalidate=$mode: $1 IOPS, $2 packets; in-tree $3, $4"
		# Heartbeats and acknowledgements come as they do.
		awk "BEGIN { exit !($2 > $4 * 1.02) }" && echo "$cell $mode: $2 > $4" >>/tmp/bad
	done
done
[ ! -e /tmp/bad ] || fail "more packets than the in-tree driver: $(cat /tmp/bad)"
no_nulls
