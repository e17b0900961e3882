// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heartbeats, and when a path is dead.
 *
 * Each side sends a heartbeat each interval on connection 0 and answers those of the
 * other: a queue pair with nothing to send would never notice that its peer is gone.
 * All connections share a network, though, where an answer may stand behind much else.
 * So what counts is whether anything moves: each good completion of a send or a receive
 * is a sign of life.
 *
 * - A path is dead when nothing has moved on any of its connections for
 *   rtrs_hb_params.max_missed intervals in a row, each begun with a heartbeat.
 * - While others move, a connection may stand behind them, or wait until a lost packet
 *   is sent again. It is dead when it has something outstanding and nothing has moved
 *   on it for RTRS_HB_STUCK_MS, or for as long as it takes a path, if that is longer.
 *
 * Few sends are signalled, and a request may be with the peer's disk for minutes. So if
 * a connection for I/O hasn't moved during an interval, and something was posted since
 * it was last seen to be idle, a probe is sent: that has to be acknowledged, whatever
 * the peer does; see rtrs_con_probe(). Connection 0 has its heartbeats instead: a
 * probe is acknowledged by a device alone, even if its host has crashed.
 *
 * A polled connection is polled here, too: nothing waits for longer than an interval if
 * nobody else does.
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "core.h"

/* Late heartbeats end paths, so they don't wait behind others, nor for memory. */
static struct workqueue_struct *rtrs_hb_wq;

/* Outlasts four times in a row that a device waits for an acknowledgment. */
#define RTRS_HB_STUCK_MS	10000
/*
 * With this number unanswered, further heartbeats are left out. So each has an answer: a send
 * queue is of 2 * RTRS_SIGNAL_EVERY or more, and as long as the peer's device acknowledges
 * messages, half of that is free for heartbeats and answers. Only a peer that sends more
 * heartbeats at a time loses answers.
 */
#define RTRS_HB_MAX_UNANSWERED	8
static_assert(2 * RTRS_HB_MAX_UNANSWERED < RTRS_SIGNAL_EVERY);

/**
 * rtrs_hb_judge_con() - decide whether a connection is alive
 * @watch: state at the last check; updated
 * @moved: value of rtrs_con.moved now
 * @posted: value of rtrs_con.sq_posted now
 * @probing: a probe is outstanding
 * @ms: milliseconds since the last check
 * @limit_ms: milliseconds without progress after which it is dead
 *
 * Return: see enum rtrs_live.
 */
enum rtrs_live rtrs_hb_judge_con(struct rtrs_watch *watch, u32 moved, u32 posted,
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
	/* It may have been posted a moment ago, so the time counts from now. */
	watch->still_ms = watch->still ? watch->still_ms + ms : 0;
	watch->still = true;
	if (watch->still_ms >= limit_ms)
		return RTRS_LIVE_STUCK;
	return probing ? RTRS_LIVE_WAIT : RTRS_LIVE_PROBE;
}

/**
 * rtrs_hb_judge_path() - decide whether a path is alive
 * @missed: number of intervals in a row in which nothing moved; updated
 * @moved: something moved on a connection in the last interval
 * @max_missed: value of @missed at which the path is dead
 *
 * Return: true if the path is alive.
 */
bool rtrs_hb_judge_path(unsigned int *missed, bool moved,
			unsigned int max_missed)
{
	*missed = moved ? 0 : *missed + 1;
	return *missed < max_missed;
}

static enum rtrs_live rtrs_hb_look_con(struct rtrs_con *con, u32 ms,
				       u32 limit_ms)
{
	enum rtrs_live live;
	u32 posted;

	/* Perhaps nobody else does. */
	while (rtrs_con_poll(con) == RTRS_POLL_BUDGET)
		cond_resched();
	posted = READ_ONCE(con->sq_posted);
	live = rtrs_hb_judge_con(&con->watch, READ_ONCE(con->moved), posted,
				 READ_ONCE(con->probe_busy), ms, limit_ms);
	/* A full queue gets its probe when it has room, or is dead by then. */
	if (live == RTRS_LIVE_PROBE && con->cid && !rtrs_con_probe(con))
		con->watch.probed = posted + 1;
	return live;
}

/* Looks at all connections; false if one of them is dead. */
static bool rtrs_hb_look(struct rtrs_path *path, u32 ms, bool *moved)
{
	u32 limit_ms = max_t(u64, RTRS_HB_STUCK_MS,
			     (u64)READ_ONCE(path->hb->interval_ms) *
			     READ_ONCE(path->hb->max_missed));
	struct rtrs_con *con;
	bool alive = true;

	*moved = false;
	list_for_each_entry(con, &path->cons, entry) {
		switch (rtrs_hb_look_con(con, ms, limit_ms)) {
		case RTRS_LIVE_MOVED:
			*moved = true;
			break;
		case RTRS_LIVE_STUCK:
			alive = false;
			break;
		default:
			break;
		}
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
	/* No room in the send queue: nothing moves there either. */
	if (rtrs_con_post_imm(con, rtrs_imm(RTRS_IMM_HB_MSG, 0)))
		WRITE_ONCE(path->hb_sent, path->hb_sent - 1);
}

/* Lets the work item run in @ms, unless it is due already, or is to run no more. */
static void rtrs_hb_queue(struct rtrs_path *path, unsigned int ms)
{
	spin_lock(&path->hb_lock);
	if (path->hb_con)
		queue_delayed_work(rtrs_hb_wq, &path->hb_work,
				   msecs_to_jiffies(ms));
	spin_unlock(&path->hb_lock);
}

/**
 * rtrs_hb_forget_moves() - count only progress from now on
 * @path: path whose heartbeat is started
 *
 * Sends no probes, which a device acknowledges even if its host is dead.
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

/* See rtrs_hb_probe_now(). */
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

/* The path is alive: a trial that waited for that is over. */
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
	if (!rtrs_hb_look(path, path->hb_on_trial ? path->hb_trial_ms : ms, &moved))
		dead = "a connection stands still";
	if (!rtrs_hb_judge_path(&path->hb_missed, moved,
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
 * rtrs_hb_init() - initialize a path's heartbeat
 * @path: new path
 */
void rtrs_hb_init(struct rtrs_path *path)
{
	spin_lock_init(&path->hb_lock);
	INIT_DELAYED_WORK(&path->hb_work, rtrs_hb_work);
}

/**
 * rtrs_hb_reset() - forget what another connection of a path has measured
 * @path: path whose heartbeat isn't started
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
 * rtrs_hb_start() - start a path's heartbeat
 * @path: path that is connected
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
 * rtrs_hb_changed() - apply a change of rtrs_hb_params at once
 * @path: path with these parameters; nothing is done if its heartbeat isn't started
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
 * rtrs_hb_probe_now() - see at once whether a path's peer is alive
 * @path: the path; nothing happens if its heartbeat isn't started. May be called
 *	while it is stopped, as long as something keeps the path itself
 * @timeout_ms: for how long to wait, not 0
 *
 * Sends a heartbeat. If nothing at all moves on any connection for @timeout_ms from then
 * on, the path ends: rtrs_path.error() is called with -ETIMEDOUT. Else all goes on as
 * before, and rtrs_path.probed() is called. A second call while the first one waits
 * changes nothing, so that many who ask can't put off the verdict.
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
 * rtrs_hb_on_trial() - does rtrs_hb_probe_now() wait for a sign of life?
 * @path: the path
 *
 * Context: any.
 * Return: true until rtrs_path.probed() is about to be called. If the path is found to be
 * dead, for ever.
 */
bool rtrs_hb_on_trial(const struct rtrs_path *path)
{
	return READ_ONCE(path->hb_trial_ms);
}
EXPORT_SYMBOL_GPL(rtrs_hb_on_trial);

/**
 * rtrs_hb_stop() - undo rtrs_hb_start(), if it was done
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
 * @con: connection that it came on
 * @imm: immediate value, in the CPU's byte order
 *
 * Context: handler of a receive's completion.
 * Return: false if it is none, or came on another connection than 0.
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
