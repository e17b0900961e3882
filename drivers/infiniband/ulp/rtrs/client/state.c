// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * State of a path.
 *
 * It changes in one function, by one table. Whatever goes wrong, in whatever context,
 * calls rtrs_clt_path_error(), which does no more than move the state and see to it
 * that the path's work item runs, or wakes up if it is connecting.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

/* Paths are brought up and down here, also when reclaim waits for one. */
struct workqueue_struct *rtrs_clt_wq;
/* For work that paths wait for; it waits for nothing but RCU and rtrs_clt.lock. */
struct workqueue_struct *rtrs_clt_sess_wq;

/**
 * rtrs_clt_next_state() - the state table
 * @state: where a path is
 * @ev: what happens
 *
 * Return: where it goes; @state if the event means nothing to it.
 */
enum rtrs_clt_state rtrs_clt_next_state(enum rtrs_clt_state state,
					enum rtrs_clt_event ev)
{
	/* One more than the next state, so that 0 is what is missing. */
	static const u8 next[RTRS_CLT_NR_STATES][RTRS_CLT_NR_EVENTS] = {
		[RTRS_CLT_IDLE] = {
			[RTRS_CLT_EV_WANT]	= RTRS_CLT_WAITING + 1,
		},
		[RTRS_CLT_WAITING] = {
			[RTRS_CLT_EV_DUE]	= RTRS_CLT_CONNECTING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_IDLE + 1,
		},
		[RTRS_CLT_CONNECTING] = {
			[RTRS_CLT_EV_UP]	= RTRS_CLT_CONNECTED + 1,
			[RTRS_CLT_EV_FAIL]	= RTRS_CLT_RESETTING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
		},
		[RTRS_CLT_CONNECTED] = {
			[RTRS_CLT_EV_FAIL]	= RTRS_CLT_RESETTING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
		},
		[RTRS_CLT_RESETTING] = {
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
			[RTRS_CLT_EV_ENDED]	= RTRS_CLT_WAITING + 1,
		},
		[RTRS_CLT_CLOSING] = {
			[RTRS_CLT_EV_WANT]	= RTRS_CLT_RESETTING + 1,
			[RTRS_CLT_EV_ENDED]	= RTRS_CLT_IDLE + 1,
		},
	};

	return next[state][ev] ? next[state][ev] - 1 : state;
}

/**
 * rtrs_clt_path_move_locked() - the one place where a path's state changes
 * @path: the path
 * @ev: what happened
 * @err: why, for RTRS_CLT_EV_FAIL and RTRS_CLT_EV_STOP
 *
 * Context: any, under path->sm.lock.
 * Return: true if the event changed the state.
 */
bool rtrs_clt_path_move_locked(struct rtrs_clt_path *path,
			       enum rtrs_clt_event ev, int err)
{
	enum rtrs_clt_state old = path->sm.state;
	enum rtrs_clt_state new = rtrs_clt_next_state(old, ev);

	lockdep_assert_held(&path->sm.lock);
	if (new == old)
		return false;
	/* Only the first error counts: others may follow from it. */
	if (old == RTRS_CLT_CONNECTING || old == RTRS_CLT_CONNECTED)
		path->sm.err = err;
	WRITE_ONCE(path->sm.state, new);
	trace_rtrs_clt_path_state(path->path.name, old, new, err);
	/* In other states the work item runs, or is due later. */
	if (old == RTRS_CLT_CONNECTED || old == RTRS_CLT_IDLE)
		mod_delayed_work(rtrs_clt_wq, &path->sm.work, 0);
	wake_up_all(&path->sm.wait);
	wake_up_all(&path->clt->wait);
	return true;
}

/**
 * rtrs_clt_path_move() - let something happen to a path
 * @path: the path
 * @ev: what happened
 * @err: why, for RTRS_CLT_EV_FAIL and RTRS_CLT_EV_STOP
 *
 * Context: any.
 * Return: true if the event changed the state.
 */
bool rtrs_clt_path_move(struct rtrs_clt_path *path, enum rtrs_clt_event ev,
			int err)
{
	unsigned long flags;
	bool moved;

	spin_lock_irqsave(&path->sm.lock, flags);
	moved = rtrs_clt_path_move_locked(path, ev, err);
	spin_unlock_irqrestore(&path->sm.lock, flags);
	return moved;
}

/**
 * rtrs_clt_path_error() - a path can't go on
 * @p: the path
 * @err: negative errno
 * @why: for the log
 *
 * Context: any, any number of times.
 */
void rtrs_clt_path_error(struct rtrs_path *p, int err, const char *why)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	bool again = READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTING &&
		     READ_ONCE(path->sm.logged) == err;

	/* One that is tried again and again says the same only once. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_FAIL, err) || again)
		return;
	WRITE_ONCE(path->sm.logged, err);
	rtrs_clt_err(path->clt, "%s: path ends: %s (%pe)\n", p->name, why, ERR_PTR(err));
}

/**
 * rtrs_clt_path_step_done() - a connection has finished the step at hand
 * @path: its path
 *
 * Context: any.
 */
void rtrs_clt_path_step_done(struct rtrs_clt_path *path)
{
	if (atomic_dec_and_test(&path->sm.nr_pending))
		wake_up_all(&path->sm.wait);
}

/* Acquire: see what handlers wrote before their step was done. */
static bool rtrs_clt_path_woken(struct rtrs_clt_path *path)
{
	return !atomic_read_acquire(&path->sm.nr_pending) ||
	       READ_ONCE(path->sm.state) != RTRS_CLT_CONNECTING;
}

static int rtrs_clt_path_failed(struct rtrs_clt_path *path)
{
	int ret;

	spin_lock_irq(&path->sm.lock);
	ret = path->sm.state == RTRS_CLT_CONNECTING ? 0 : path->sm.err;
	spin_unlock_irq(&path->sm.lock);
	return ret;
}

/**
 * rtrs_clt_path_wait() - wait until all have finished the step at hand
 * @path: the path; path->sm.nr_pending was set before the step was started
 * @timeout_ms: for how long
 *
 * Context: the path's work item.
 * Return: 0, the errno of what went wrong, or -ETIMEDOUT.
 */
int rtrs_clt_path_wait(struct rtrs_clt_path *path, unsigned int timeout_ms)
{
	long left = msecs_to_jiffies(timeout_ms);
	int ret;

	left = wait_event_idle_timeout(path->sm.wait, rtrs_clt_path_woken(path), left);
	ret = rtrs_clt_path_failed(path);
	if (ret)
		return ret;
	return left ? 0 : -ETIMEDOUT;
}
