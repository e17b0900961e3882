// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heartbeat: each side sends one each interval on the service connection and
 * answers those of the other. A path whose heartbeats stay unanswered ends; a
 * queue pair with nothing to send would never notice that its peer is gone. The
 * others are looked after as well, see rtrs_con_probe().
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "core.h"

/* Late heartbeats end paths, so they don't wait behind others, nor for memory. */
static struct workqueue_struct *rtrs_hb_wq;

static void rtrs_hb_again(struct rtrs_path *path)
{
	queue_delayed_work(rtrs_hb_wq, &path->hb_work,
			   msecs_to_jiffies(READ_ONCE(path->hb->interval_ms)));
}

static void rtrs_hb_work(struct work_struct *work)
{
	struct rtrs_path *path = container_of(to_delayed_work(work),
					      struct rtrs_path, hb_work);

	if (atomic_read(&path->hb_missed) >= READ_ONCE(path->hb->max_missed)) {
		path->error(path, -ETIMEDOUT, "heartbeats stay unanswered");
		return;
	}
	if (!path->probe(path)) {
		path->error(path, -ETIMEDOUT, "a connection stands still");
		return;
	}
	/* Round trips are measured from the first that is not answered yet. */
	if (atomic_inc_return(&path->hb_missed) == 1)
		WRITE_ONCE(path->hb_sent, ktime_get_ns());
	/* No room in the send queue: the peer takes nothing, so it counts. */
	rtrs_con_post_imm(path->hb_con, rtrs_imm(RTRS_IMM_HB_MSG, 0));
	rtrs_hb_again(path);
}

/**
 * rtrs_hb_start() - start a path's heartbeat
 * @path: a connected path
 * @con: its connection 0
 */
void rtrs_hb_start(struct rtrs_path *path, struct rtrs_con *con)
{
	path->hb_con = con;
	atomic_set(&path->hb_missed, 0);
	INIT_DELAYED_WORK(&path->hb_work, rtrs_hb_work);
	rtrs_hb_again(path);
}
EXPORT_SYMBOL_GPL(rtrs_hb_start);

/**
 * rtrs_hb_changed() - let a change of rtrs_hb_params have effect now
 * @path: a path between rtrs_hb_start() and rtrs_hb_stop()
 */
void rtrs_hb_changed(struct rtrs_path *path)
{
	mod_delayed_work(rtrs_hb_wq, &path->hb_work,
			 msecs_to_jiffies(READ_ONCE(path->hb->interval_ms)));
}
EXPORT_SYMBOL_GPL(rtrs_hb_changed);

/**
 * rtrs_hb_stop() - undo rtrs_hb_start(), if it was done
 * @path: the path
 *
 * Context: process, may sleep.
 */
void rtrs_hb_stop(struct rtrs_path *path)
{
	if (!path->hb_con)
		return;
	cancel_delayed_work_sync(&path->hb_work);
	path->hb_con = NULL;
}
EXPORT_SYMBOL_GPL(rtrs_hb_stop);

static void rtrs_hb_answered(struct rtrs_path *path)
{
	u64 ns = ktime_get_ns() - READ_ONCE(path->hb_sent);
	u32 *count = &path->hb_hist[min_t(u32, fls64(div_u64(ns, NSEC_PER_USEC)),
					  RTRS_HB_BUCKETS - 1)];

	WRITE_ONCE(path->hb_latency, ns);
	WRITE_ONCE(*count, *count + 1);
}

/**
 * rtrs_hb_recv() - handle an immediate value if it is a heartbeat
 * @con: where it came
 * @imm: the value, in the CPU's order
 *
 * Context: handler of a receive's completion.
 * Return: false if it is none, or on a connection that has none.
 */
bool rtrs_hb_recv(struct rtrs_con *con, u32 imm)
{
	struct rtrs_path *path = con->path;

	if (con->cid)
		return false;
	switch (rtrs_imm_type(imm)) {
	case RTRS_IMM_HB_MSG:
		/*
		 * Without room the answer is dropped: a peer that floods us
		 * with heartbeats can't make us queue anything for it.
		 */
		rtrs_con_post_imm(con, rtrs_imm(RTRS_IMM_HB_ACK, 0));
		return true;
	case RTRS_IMM_HB_ACK:
		if (atomic_xchg(&path->hb_missed, 0))
			rtrs_hb_answered(path);
		return true;
	default:
		return false;
	}
}
EXPORT_SYMBOL_GPL(rtrs_hb_recv);

static int __init rtrs_core_init(void)
{
	rtrs_hb_wq = alloc_workqueue("rtrs-hb", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	return rtrs_hb_wq ? 0 : -ENOMEM;
}
module_init(rtrs_core_init);

static void __exit rtrs_core_exit(void)
{
	destroy_workqueue(rtrs_hb_wq);
}
module_exit(rtrs_core_exit);
