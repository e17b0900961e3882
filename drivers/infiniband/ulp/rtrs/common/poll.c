// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Polled connections: their completion queue raises no interrupts.
 *
 * Whoever waits for a completion polls. So that nothing depends on that, heartbeats do so
 * as well (hb.c), and so does draining. One thread polls a connection at a time, as its
 * handlers must not run at the same time; the others leave it to that one.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "core.h"
#include "qp.h"

/**
 * rtrs_con_poll() - handle completions of a polled connection
 * @con: connection with a queue pair, which the caller keeps; nothing is done if it isn't
 *	polled, or another thread, or a caller of this one, is polling it
 *
 * The thread that polls isn't preempted, as others rely on it. Softirqs stay on: the block layer
 * gives bios of polled I/O back to a cache that only tasks may use.
 *
 * Context: process or softirq, with interrupts on.
 * Return: number of completions that were handled, at most RTRS_POLL_BUDGET.
 */
int rtrs_con_poll(struct rtrs_con *con)
{
	int nr = 0;

	if (!con->polled)
		return 0;
	preempt_disable();
	if (!test_bit(0, &con->polling) && !test_and_set_bit_lock(0, &con->polling)) {
		nr = ib_process_cq_direct(con->cq, RTRS_POLL_BUDGET);
		clear_bit_unlock(0, &con->polling);
	}
	preempt_enable();
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_con_poll);

/* A work request behind all others of its queue. */
struct rtrs_drain_mark {
	struct ib_cqe cqe;
	bool done;
};

static void rtrs_drain_mark_done(struct ib_cq *cq, struct ib_wc *wc)
{
	container_of(wc->wr_cqe, struct rtrs_drain_mark, cqe)->done = true;
}

static int rtrs_con_post_mark(struct rtrs_con *con, struct rtrs_drain_mark *mark, bool recv)
{
	struct ib_recv_wr recv_wr = { .wr_cqe = &mark->cqe };
	struct ib_rdma_wr send_wr = {
		.wr.wr_cqe	= &mark->cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.send_flags	= IB_SEND_SIGNALED,
	};

	if (recv)
		return ib_post_recv(con->cm_id->qp, &recv_wr, NULL);
	return ib_post_send(con->cm_id->qp, &send_wr.wr, NULL);
}

/**
 * rtrs_con_drain_polled() - wait until one queue of a polled connection is empty
 * @con: polled connection that was disconnected, and that nobody else polls any more
 * @recv: the receive queue, else the send queue
 *
 * ib_drain_sq() and ib_drain_rq() sleep for 100 ms each time before they poll such a queue,
 * and requests wait for that.
 *
 * Context: process, may sleep.
 * Return: false if the device doesn't take the mark; those know what to do then.
 */
bool rtrs_con_drain_polled(struct rtrs_con *con, bool recv)
{
	struct rtrs_drain_mark mark = { .cqe.done = rtrs_drain_mark_done };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (ib_modify_qp(con->cm_id->qp, &attr, IB_QP_STATE) ||
	    rtrs_con_post_mark(con, &mark, recv))
		return false;
	for (;;) {
		while (rtrs_con_poll(con))
			cond_resched();
		if (mark.done)
			return true;
		usleep_range(100, 200);
	}
}
