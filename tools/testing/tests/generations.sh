# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Three clients of one disk map it in random access modes, write, lose their sessions and open it
# again, while the server is restarted now and then. What each of them may do is compared with a
# model: a mapping that another one has replaced by writing never writes again.
# A round is one schedule.
# Modules: ours
# Rounds: 100

. "$RIG_DIR/steps/hostile.sh"

on server 'mkdir -p /run/rnbd-state'
state=(state_dir=/run/rnbd-state handover_grace=0)
hostile_server "${state[@]}"
mkfifo /tmp/restarted
HOSTILE_SCHEDULES=$RIG_ROUNDS HOSTILE_RESTART=1 HOSTILE_QUIET=1 cases gen-schedules \
	</tmp/restarted >/tmp/cases.out & tool=$!
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
wait $tool || true
hostile_told /tmp/cases.out
must "nothing was done" grep -q '^ok gen-schedules' /tmp/cases.out
must "the server wasn't restarted" [ $done -gt 0 ]
on server 'rm -r /run/rnbd-state'
down
