# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Three clients of one disk map it in random access modes, write, lose their sessions and open it
# again, while the server is restarted at random. A model defines which of them may write: a mapping
# never writes again after another one has replaced it by writing.
# A round is one schedule.
# Modules: ours
# Rounds: 100

. "$RIG_DIR/steps/hostile.sh"

on server 'mkdir -p /run/rnbd-state'
state=(state_dir=/run/rnbd-state handover_grace=0)
hostile_server "${state[@]}"
mkfifo /tmp/restarted
HOSTILE_SCHEDULES=$RIG_ROUNDS HOSTILE_RESTART=1 HOSTILE_QUIET=1 run_peer cases \
	cases gen-schedules </tmp/restarted & tool=$!
exec 3>/tmp/restarted
done=0
# A line for each restart
while ! ended $tool; do
	wait_for 600 eval "ended $tool || [ \$(grep -c ^restart /tmp/cases.out) -gt $done ]" ||
		fail "the cases have not ended: $(cat /tmp/cases.out)"
	! ended $tool || break
	stop_server
	load_server "${hostile_parameters[@]}" "${state[@]}"
	done=$((done + 1))
	echo go >&3
done
exec 3>&-
rm /tmp/restarted
wait $tool
peers_passed cases
must "nothing was done" grep -q '^ok gen-schedules' /tmp/cases.out
must "the server wasn't restarted" [ $done -gt 0 ]
on server 'rm -r /run/rnbd-state'
tear_down
