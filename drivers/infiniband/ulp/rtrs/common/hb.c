// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heartbeats and the detection of dead paths.
 *
 * Each side sends a heartbeat per interval on connection 0 and answers the heartbeats of the other
 * side: a queue pair with nothing to send would never detect that its peer is gone. However, all
 * connections share a network, where an answer may be delayed by other traffic. So any progress
 * counts: each successful completion of a send or a receive is a sign of life.
 *
 * - A path is dead if no connection has made progress for rtrs_hb_params.max_missed intervals in a
 *   row, each begun with a heartbeat.
 * - While other connections make progress, a connection may be delayed by them, or by the
 *   retransmission of a lost packet. A connection is dead if it has outstanding work requests and
 *   makes no progress for RTRS_HB_STUCK_MS, or for the time after which a path is dead, if that is
 *   longer.
 *
 * Few sends are signalled, and a request may be at the peer's disk for minutes. So a probe is sent
 * on an I/O connection that has made no progress during an interval, if something was posted since
 * the connection was last seen idle. The peer's device acknowledges a probe in any case, see
 * rtrs_con_probe(). Connection 0 uses its heartbeats instead: a device acknowledges a probe even if
 * its host has crashed.
 *
 * The heartbeat work also polls polled connections, so that completions are delayed by at most one
 * interval if no other thread polls.
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "core.h"

/* Heartbeats must not wait for other work or for memory, as late ones end paths. */
static struct workqueue_struct *rtrs_hb_wq;

/* Longer than four consecutive acknowledgment timeouts of a device. */
#define RTRS_HB_STUCK_MS	10000
/*
 * No heartbeats are sent while this number is unanswered. So none of their answers is dropped: a
 * send queue has at least 2 * RTRS_SIGNAL_EVERY entries, of which at least half is free for
 * heartbeats and answers while the peer's device acknowledges messages. Only a peer that sends more
 * heartbeats at a time loses answers.
 */
#define RTRS_HB_MAX_UNANSWERED	8
static_assert(2 * RTRS_HB_MAX_UNANSWERED < RTRS_SIGNAL_EVERY);

/**
 * rtrs_hb_check_con() - check whether a connection is alive
 * @watch: state at the last check; updated
 * @moved: current value of rtrs_con.moved
 * @posted: current value of rtrs_con.sq_posted
 * @probing: a probe is outstanding
 * @ms: milliseconds since the last check
 * @limit_ms: milliseconds without progress after which the connection is dead
 *
 * Return: see enum rtrs_live.
 */
enum rtrs_live rtrs_hb_check_con(struct rtrs_watch *watch, u32 moved, u32 posted,
				 bool probing, u32 ms, u32 limit_ms)
{
	if (moved != watch->moved) {
		watch->moved = moved;
		watch->still = false;
		return RTRS_LIVE_MOVED;
	}
	if (!probing && posted == watch->probed) {
		watch->still = false;
		return RTRS_LIVE_IDLE;
	}
	/* The work requests may have been posted just now, so the time starts now. */
	watch->still_ms = watch->still ? watch->still_ms + ms : 0;
	watch->still = true;
	if (watch->still_ms >= limit_ms)
		return RTRS_LIVE_STUCK;
	return probing ? RTRS_LIVE_WAIT : RTRS_LIVE_PROBE;
}

/**
 * rtrs_hb_check_path() - check whether a path is alive
 * @missed: number of consecutive intervals without progress; updated
 * @moved: a connection made progress in the last interval
 * @max_missed: value of @missed at which the path is dead
 *
 * Return: true if the path is alive.
 */
bool rtrs_hb_check_path(unsigned int *missed, bool moved,
			unsigned int max_missed)
{
	*missed = moved ? 0 : *missed + 1;
	return *missed < max_missed;
}

static enum rtrs_live rtrs_hb_watch_con(struct rtrs_con *con, u32 ms,
					u32 limit_ms)
{
	enum rtrs_live live;
	u32 posted;

	/* Possibly no other thread polls. */
	while (rtrs_con_poll(con) == RTRS_POLL_BUDGET)
		cond_resched();
	posted = READ_ONCE(con->sq_posted);
	live = rtrs_hb_check_con(&con->watch, READ_ONCE(con->moved), posted,
				 READ_ONCE(con->probe_busy), ms, limit_ms);
	/* If the queue is full, the next check retries, until the connection is dead. */
	if (live == RTRS_LIVE_PROBE && con->cid && !rtrs_con_probe(con))
		con->watch.probed = posted + 1;
	return live;
}

/* Checks all connections. Returns false if one of them is dead. */
static bool rtrs_hb_watch_cons(struct rtrs_path *path, u32 ms, bool *moved)
{
	u32 limit_ms = max_t(u64, RTRS_HB_STUCK_MS,
			     (u64)READ_ONCE(path->hb->interval_ms) *
			     READ_ONCE(path->hb->max_missed));
	struct rtrs_con *con;
	enum rtrs_live live;
	bool alive = true;

	*moved = false;
	list_for_each_entry(con, &path->cons, entry) {
		live = rtrs_hb_watch_con(con, ms, limit_ms);
		*moved |= live == RTRS_LIVE_MOVED;
		alive &= live != RTRS_LIVE_STUCK;
	}
	return alive;
}

static void rtrs_hb_send(struct rtrs_path *path, struct rtrs_con *con)
{
	u32 unanswered = path->hb_sent - READ_ONCE(path->hb_answered);

	if (unanswered >= RTRS_HB_MAX_UNANSWERED)
		return;
	if (!unanswered) {
		WRITE_ONCE(path->hb_timed_at, ktime_get_ns());
		WRITE_ONCE(path->hb_timed, path->hb_sent + 1);
	}
	WRITE_ONCE(path->hb_sent, path->hb_sent + 1);
	/* A full send queue makes no progress either. */
	if (rtrs_con_post_imm(con, rtrs_imm(RTRS_IMM_HB_MSG, 0)))
		WRITE_ONCE(path->hb_sent, path->hb_sent - 1);
}

/* Queues the heartbeat work in @ms, unless it is queued already or heartbeats are stopped. */
static void rtrs_hb_queue(struct rtrs_path *path, unsigned int ms)
{
	spin_lock(&path->hb_lock);
	if (path->hb_con)
		queue_delayed_work(rtrs_hb_wq, &path->hb_work,
				   msecs_to_jiffies(ms));
	spin_unlock(&path->hb_lock);
}

/**
 * rtrs_hb_forget_moves() - ignore past progress
 * @path: path with heartbeats
 *
 * Does not call rtrs_con_probe(): a device acknowledges that even if its host is dead.
 */
VISIBLE_IF_KUNIT void rtrs_hb_forget_moves(struct rtrs_path *path)
{
	struct rtrs_con *con;
	u32 moved;

	list_for_each_entry(con, &path->cons, entry) {
		moved = READ_ONCE(con->moved);
		if (moved != con->watch.moved)
			con->watch.still = false;
		con->watch.moved = moved;
	}
}

/* Begins the probe of rtrs_hb_probe_now(). */
static void rtrs_hb_begin_trial(struct rtrs_path *path, struct rtrs_con *con)
{
	rtrs_hb_forget_moves(path);
	path->hb_on_trial = true;
	rtrs_hb_send(path, con);
	/* rtrs_hb_probe_now() may have queued the work item while this was running. */
	spin_lock(&path->hb_lock);
	if (path->hb_con)
		mod_delayed_work(rtrs_hb_wq, &path->hb_work,
				 msecs_to_jiffies(path->hb_trial_ms));
	spin_unlock(&path->hb_lock);
}

/* Ends a probe of rtrs_hb_probe_now(), if one is in progress, as the path is alive. */
static void rtrs_hb_end_trial(struct rtrs_path *path)
{
	if (!path->hb_on_trial)
		return;
	path->hb_on_trial = false;
	spin_lock(&path->hb_lock);
	WRITE_ONCE(path->hb_trial_ms, 0);
	spin_unlock(&path->hb_lock);
	if (path->probed)
		path->probed(path);
}

static void rtrs_hb_work(struct work_struct *work)
{
	struct rtrs_path *path = container_of(to_delayed_work(work),
					      struct rtrs_path, hb_work);
	unsigned int ms = READ_ONCE(path->hb->interval_ms);
	struct rtrs_con *con = READ_ONCE(path->hb_con);
	const char *dead = NULL;
	bool moved;

	if (!con)
		return;
	if (READ_ONCE(path->hb_trial_ms) && !path->hb_on_trial) {
		rtrs_hb_begin_trial(path, con);
		return;
	}
	if (!rtrs_hb_watch_cons(path, path->hb_on_trial ? path->hb_trial_ms : ms, &moved))
		dead = "a connection makes no progress";
	if (!rtrs_hb_check_path(&path->hb_missed, moved,
				READ_ONCE(path->hb->max_missed)))
		dead = "heartbeats stay unanswered";
	if (path->hb_on_trial && !moved)
		dead = "a probe stays unanswered";
	if (dead) {
		path->error(path, -ETIMEDOUT, dead);
		return;
	}
	rtrs_hb_end_trial(path);
	if (path->tick)
		path->tick(path);
	rtrs_hb_send(path, con);
	rtrs_hb_queue(path, ms);
}

/**
 * rtrs_path_init() - initialize the common part of a path
 * @path: new path, zeroed
 * @hb: parameters of heartbeats; outlives the path
 * @error: requests the end of the path; see struct rtrs_path
 */
void rtrs_path_init(struct rtrs_path *path, const struct rtrs_hb_params *hb,
		    void (*error)(struct rtrs_path *path, int err,
				  const char *why))
{
	path->hb = hb;
	path->error = error;
	INIT_LIST_HEAD(&path->cons);
	mutex_init(&path->stats_lock);
	spin_lock_init(&path->hb_lock);
	INIT_DELAYED_WORK(&path->hb_work, rtrs_hb_work);
}
EXPORT_SYMBOL_GPL(rtrs_path_init);

/**
 * rtrs_hb_reset() - reset the measurements of a path
 * @path: path whose heartbeats are stopped
 */
VISIBLE_IF_KUNIT void rtrs_hb_reset(struct rtrs_path *path)
{
	path->hb_missed = 0;
	path->hb_on_trial = false;
	path->hb_sent = 0;
	path->hb_answered = 0;
	path->hb_timed = 0;
	WRITE_ONCE(path->hb_latency, 0);
}

/**
 * rtrs_hb_start() - start a path's heartbeats
 * @path: connected path
 * @con: connection 0 of @path
 *
 * Context: process.
 */
void rtrs_hb_start(struct rtrs_path *path, struct rtrs_con *con)
{
	rtrs_hb_reset(path);
	spin_lock(&path->hb_lock);
	path->hb_trial_ms = 0;
	path->hb_con = con;
	spin_unlock(&path->hb_lock);
	rtrs_hb_queue(path, READ_ONCE(path->hb->interval_ms));
}
EXPORT_SYMBOL_GPL(rtrs_hb_start);

/**
 * rtrs_hb_changed() - apply changed rtrs_hb_params at once
 * @path: path with these parameters; nothing is done if its heartbeats are stopped
 *
 * Context: process.
 */
void rtrs_hb_changed(struct rtrs_path *path)
{
	spin_lock(&path->hb_lock);
	if (path->hb_con && !path->hb_trial_ms)
		mod_delayed_work(rtrs_hb_wq, &path->hb_work,
				 msecs_to_jiffies(READ_ONCE(path->hb->interval_ms)));
	spin_unlock(&path->hb_lock);
}
EXPORT_SYMBOL_GPL(rtrs_hb_changed);

/**
 * rtrs_hb_probe_now() - check at once whether a path's peer is alive
 * @path: the path; nothing is done if its heartbeats are stopped. May be called concurrently with
 *	rtrs_hb_stop(), while the caller keeps the path itself
 * @timeout_ms: time limit in ms, not 0
 *
 * Sends a heartbeat. If no connection makes progress within @timeout_ms after that, the path ends:
 * rtrs_path.error() is called with -ETIMEDOUT. Otherwise rtrs_path.probed() is called, and regular
 * heartbeats continue. Further calls have no effect while the first one waits, so repeated calls
 * can't extend the time limit.
 *
 * Context: process.
 */
void rtrs_hb_probe_now(struct rtrs_path *path, unsigned int timeout_ms)
{
	spin_lock(&path->hb_lock);
	if (path->hb_con && !path->hb_trial_ms) {
		WRITE_ONCE(path->hb_trial_ms, timeout_ms);
		mod_delayed_work(rtrs_hb_wq, &path->hb_work, 0);
	}
	spin_unlock(&path->hb_lock);
}
EXPORT_SYMBOL_GPL(rtrs_hb_probe_now);

/**
 * rtrs_hb_on_trial() - check whether rtrs_hb_probe_now() is in progress
 * @path: the path
 *
 * Context: any.
 * Return: true until rtrs_path.probed() is about to be called. Remains true if the path is dead.
 */
bool rtrs_hb_on_trial(const struct rtrs_path *path)
{
	return READ_ONCE(path->hb_trial_ms);
}
EXPORT_SYMBOL_GPL(rtrs_hb_on_trial);

/**
 * rtrs_hb_stop() - undo rtrs_hb_start(), if it was called
 * @path: the path
 *
 * Context: process, may sleep.
 */
void rtrs_hb_stop(struct rtrs_path *path)
{
	spin_lock(&path->hb_lock);
	WRITE_ONCE(path->hb_con, NULL);
	spin_unlock(&path->hb_lock);
	cancel_delayed_work_sync(&path->hb_work);
}
EXPORT_SYMBOL_GPL(rtrs_hb_stop);

/* Answers come in the order of the heartbeats. Unrequested ones are ignored. */
static void rtrs_hb_answer(struct rtrs_path *path)
{
	u32 nr = path->hb_answered + 1;
	u32 *count;
	u64 ns;

	if (path->hb_answered == READ_ONCE(path->hb_sent))
		return;
	WRITE_ONCE(path->hb_answered, nr);
	if (nr != READ_ONCE(path->hb_timed))
		return;
	ns = ktime_get_ns() - READ_ONCE(path->hb_timed_at);
	WRITE_ONCE(path->hb_latency, ns);
	count = &path->hb_hist[min_t(u32, fls64(div_u64(ns, NSEC_PER_USEC)),
				     RTRS_HB_BUCKETS - 1)];
	WRITE_ONCE(*count, *count + 1);
}

/**
 * rtrs_hb_recv() - handle an immediate value if it is a heartbeat
 * @con: connection that received the value
 * @imm: immediate value, in the CPU's byte order
 *
 * Context: completion handler of a receive.
 * Return: false if it is no heartbeat, or was not received on connection 0.
 */
bool rtrs_hb_recv(struct rtrs_con *con, u32 imm)
{
	struct rtrs_path *path = con->path;

	if (con->cid)
		return false;
	switch (rtrs_imm_type(imm)) {
	case RTRS_IMM_HB_MSG:
		rtrs_con_answer_imm(con, rtrs_imm(RTRS_IMM_HB_ACK, 0));
		return true;
	case RTRS_IMM_HB_ACK:
		rtrs_hb_answer(path);
		return true;
	default:
		return false;
	}
}
EXPORT_SYMBOL_GPL(rtrs_hb_recv);

static int __init rtrs_core_init(void)
{
	rtrs_hb_wq = alloc_workqueue("rtrs-hb",
				     WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	return rtrs_hb_wq ? 0 : -ENOMEM;
}
module_init(rtrs_core_init);

static void __exit rtrs_core_exit(void)
{
	destroy_workqueue(rtrs_hb_wq);
}
module_exit(rtrs_core_exit);
