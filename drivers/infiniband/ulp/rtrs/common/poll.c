// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Polled connections: their completion queue raises no interrupts.
 *
 * Whoever waits for a completion polls. So that nothing depends on that, heartbeats do so
 * as well (hb.c), and so does draining (drain.c). One thread polls a connection at a time, as its
 * handlers must not run at the same time; the others leave it to that one.
 */
#include <linux/module.h>
#include <linux/preempt.h>

#include "core.h"

/**
 * rtrs_con_poll() - handle completions of a polled connection
 * @con: connection with a queue pair, which the caller keeps; nothing is done if it isn't
 *	polled, or another thread, or a caller of this one, is polling it
 *
 * The thread that polls isn't preempted, as others rely on it; with PREEMPT_RT it is, since the
 * handlers take spinlocks, which sleep there. Softirqs stay enabled: the block layer returns bios
 * of polled I/O to a cache that only tasks may use.
 *
 * Context: process or softirq, with interrupts on.
 * Return: number of completions that were handled, at most RTRS_POLL_BUDGET.
 */
int rtrs_con_poll(struct rtrs_con *con)
{
	int nr = 0;

	if (!con->polled)
		return 0;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	if (!test_bit(0, &con->polling) && !test_and_set_bit_lock(0, &con->polling)) {
		nr = ib_process_cq_direct(con->cq, RTRS_POLL_BUDGET);
		clear_bit_unlock(0, &con->polling);
	}
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_con_poll);
