// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Polled connections, whose completion queues raise no interrupts.
 *
 * Threads that wait for a completion poll. In case no thread does, heartbeats (hb.c) and draining
 * (drain.c) poll as well. One thread polls a connection at a time, as its handlers must not run
 * concurrently; other threads rely on that one.
 */
#include <linux/module.h>
#include <linux/preempt.h>

#include "core.h"

/**
 * rtrs_con_poll() - handle completions of a polled connection
 * @con: connection with a queue pair that the caller keeps. Nothing is done if the connection isn't
 *	polled, or another thread or a caller of this function is polling it
 *
 * Preemption is disabled while polling, as other threads rely on this one. Not with PREEMPT_RT,
 * where the handlers' spinlocks sleep. Softirqs stay enabled: the block layer returns bios of
 * polled I/O to a cache that only tasks may use.
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
