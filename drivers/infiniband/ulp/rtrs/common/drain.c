// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Draining the queues of a path that is ending.
 *
 * A marker work request is posted after all others of a queue. When the handler of the mark has
 * run, the handlers of all earlier work requests have run, too. A device may need tens of
 * milliseconds to flush a queue, so the marks of all connections are posted before the first one is
 * waited for.
 *
 * Handlers of work requests that completed before the path ended may post once more, possibly after
 * the mark. Such a queue gets a second mark. Handlers of flushed work requests post nothing.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "core.h"

/* Returns a counter of posts to the queue, except marks. */
static u32 rtrs_con_nr_posts(const struct rtrs_con *con, bool recv)
{
	/* Pairs with rtrs_con_repost(): the counted receives precede the mark. */
	return recv ? smp_load_acquire(&con->recvs.nr_posts) : READ_ONCE(con->sq_posted);
}

static void rtrs_drain_mark_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct rtrs_drain_mark, cqe)->done);
}

static int rtrs_con_post_send_mark(struct rtrs_con *con, struct rtrs_drain_mark *mark)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &mark->cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.send_flags	= IB_SEND_SIGNALED,
	};
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&con->sq_lock, flags);
	/*
	 * Counted work requests have to precede the mark, even if their doorbell was not rung yet.
	 */
	rtrs_con_ring(con);
	mark->nr_posts = rtrs_con_nr_posts(con, false);
	ret = ib_post_send(con->cm_id->qp, &wr.wr, NULL);
	spin_unlock_irqrestore(&con->sq_lock, flags);
	return ret;
}

static int rtrs_con_post_recv_mark(struct rtrs_con *con, struct rtrs_drain_mark *mark)
{
	struct ib_recv_wr wr = { .wr_cqe = &mark->cqe };

	mark->nr_posts = rtrs_con_nr_posts(con, true);
	return ib_post_recv(con->cm_id->qp, &wr, NULL);
}

/* Checks whether the last post to the queue was the mark. */
static bool rtrs_con_marked(const struct rtrs_con *con, bool recv)
{
	return con->mark.set && con->mark.recv == recv &&
	       con->mark.nr_posts == rtrs_con_nr_posts(con, recv);
}

static void rtrs_con_mark(struct rtrs_con *con, bool recv)
{
	struct rtrs_drain_mark *mark = &con->mark;

	mark->set = true;
	mark->recv = recv;
	mark->cqe.done = rtrs_drain_mark_done;
	init_completion(&mark->done);
	mark->posted = !mark->stuck && !(recv ? rtrs_con_post_recv_mark(con, mark) :
						rtrs_con_post_send_mark(con, mark));
}

/* Waits for the mark. If the mark was not posted, the driver or the RDMA core drains the queue. */
static void rtrs_con_wait_mark(struct rtrs_con *con, bool recv)
{
	struct rtrs_drain_mark *mark = &con->mark;

	if (!mark->posted) {
		if (recv)
			ib_drain_rq(con->cm_id->qp);
		else
			ib_drain_sq(con->cm_id->qp);
	} else if (con->polled) {
		while (!completion_done(&mark->done)) {
			if (!rtrs_con_poll(con))
				usleep_range(100, 200);
			cond_resched();
		}
	} else {
		wait_for_completion(&mark->done);
	}
}

static void rtrs_path_mark(struct rtrs_path *path, bool recv)
{
	struct rtrs_con *con;

	list_for_each_entry(con, &path->cons, entry) {
		con->mark.due = !rtrs_con_marked(con, recv);
		if (con->mark.due)
			rtrs_con_mark(con, recv);
	}
	list_for_each_entry(con, &path->cons, entry)
		if (con->mark.due)
			rtrs_con_wait_mark(con, recv);
}

static void rtrs_path_drain(struct rtrs_path *path, bool recv)
{
	rtrs_path_mark(path, recv);
	/* For queues to which more was posted after the mark */
	rtrs_path_mark(path, recv);
}

/**
 * rtrs_path_drain_recv() - drain the receive queues of a path
 * @path: disconnected path; connections without a queue pair are ignored
 *
 * On return, no handler of a receive runs or will run.
 *
 * Context: process, but not completion handling; never concurrent for a path.
 */
VISIBLE_IF_KUNIT void rtrs_path_drain_recv(struct rtrs_path *path)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct rtrs_con *con;

	/*
	 * Also for connections that the CM has not moved to the error state, because it doesn't
	 * know them yet.
	 */
	list_for_each_entry(con, &path->cons, entry)
		con->mark.stuck = ib_modify_qp(con->cm_id->qp, &attr, IB_QP_STATE);
	rtrs_path_drain(path, true);
}

/**
 * rtrs_path_disconnect() - disconnect a path and drain its receive queues
 * @path: path that is ending; its connections are not changed meanwhile
 *
 * On return, the peer can't access any memory over the path, and no handler of a receive runs or
 * will run.
 *
 * Context: as for rtrs_path_drain_recv().
 */
void rtrs_path_disconnect(struct rtrs_path *path)
{
	struct rtrs_con *con;

	list_for_each_entry(con, &path->cons, entry)
		rdma_disconnect(con->cm_id);
	rtrs_path_drain_recv(path);
}
EXPORT_SYMBOL_GPL(rtrs_path_disconnect);

/**
 * rtrs_path_drain_send() - drain the send queues of a path
 * @path: path after rtrs_path_disconnect(). Nothing is posted to it, except by handlers of sends
 *
 * A second call waits only for connections to which something was posted meanwhile.
 *
 * Context: process, but not completion handling; never concurrent for a path.
 */
void rtrs_path_drain_send(struct rtrs_path *path)
{
	rtrs_path_drain(path, false);
}
EXPORT_SYMBOL_GPL(rtrs_path_drain_send);
