// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * State of a path.
 *
 * The state is changed by one function, according to one table. rtrs_clt_path_error() reports
 * errors from any context: it changes the state, and queues the work item that disconnects the path
 * or wakes the one that is connecting it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>

#include "clt.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * Paths are connected and disconnected on separate workqueues, each with its own rescuer for memory
 * reclaim. Connecting can take long if a server doesn't answer. Disconnecting must not wait for it,
 * nor for the network, as failover waits for disconnecting.
 */
struct workqueue_struct *rtrs_clt_connect_wq;
struct workqueue_struct *rtrs_clt_end_wq;
/* For work items that paths wait for. These wait only for RCU and rtrs_clt.lock. */
struct workqueue_struct *rtrs_clt_sess_wq;

/**
 * rtrs_clt_next_state() - get the next state from the state table
 * @state: state of a path
 * @ev: event
 *
 * Return: the next state; @state if the event doesn't change it.
 */
enum rtrs_clt_state rtrs_clt_next_state(enum rtrs_clt_state state,
					enum rtrs_clt_event ev)
{
	/* The next state plus one; 0 where the event has no effect. */
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
 * rtrs_clt_backoff() - compute the delay before the next attempt to connect
 * @first: delay in milliseconds before the first attempt after the path was lost
 * @max: upper limit of the delay, in milliseconds
 * @failures: number of failed attempts since then
 *
 * A random part prevents all clients of a lost server from reconnecting at the same time.
 *
 * Return: a random time in milliseconds between half of the delay and all of it. The delay is
 * @first, doubled with each failure, and at most @max.
 */
VISIBLE_IF_KUNIT unsigned int rtrs_clt_backoff(unsigned int first, unsigned int max,
					       unsigned int failures)
{
	u64 ms = min_t(u64, (u64)first << min(failures, 31U), max);

	return ms / 2 + get_random_u32_below(ms / 2 + 1);
}

/**
 * rtrs_clt_path_failures() - count the consecutive failures of a path
 * @path: path that isn't connected
 *
 * A path that connects but can't carry requests must not be reconnected again and again without
 * delay. So the loss of a path soon after it was connected counts as a failure. The first such loss
 * in a row doesn't count, since it may be an ordinary one.
 *
 * Context: under path->sm.lock.
 * Return: number of failures.
 */
u32 rtrs_clt_path_failures(const struct rtrs_clt_path *path)
{
	return path->sm.failures + (path->sm.short_lives ?: 1) - 1;
}

/**
 * rtrs_clt_path_queue_attempt() - queue the next attempt to connect a path
 * @path: path; nothing is done unless it is RTRS_CLT_WAITING
 *
 * An attempt that is already queued gets the delay that applies now.
 *
 * Context: any, under path->sm.lock.
 */
void rtrs_clt_path_queue_attempt(struct rtrs_clt_path *path)
{
	const struct rtrs_clt_reconnect *reconnect = &path->clt->reconnect;
	unsigned int ms = 0;

	lockdep_assert_held(&path->sm.lock);
	if (path->sm.state != RTRS_CLT_WAITING)
		return;
	if (!path->sm.at_once && !path->sm.hurry)
		ms = rtrs_clt_backoff(READ_ONCE(reconnect->delay_ms),
				      READ_ONCE(reconnect->delay_max_ms),
				      rtrs_clt_path_failures(path));
	mod_delayed_work(rtrs_clt_connect_wq, &path->sm.connect_work, msecs_to_jiffies(ms));
}

/**
 * rtrs_clt_path_move_locked() - apply an event to a path's state
 * @path: path that the event is about
 * @ev: event
 * @err: negative errno for RTRS_CLT_EV_FAIL and RTRS_CLT_EV_STOP, else 0
 *
 * No other function changes the state.
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
	/*
	 * An attempt that starts satisfies earlier requests for one; if it succeeds, also requests
	 * made while it ran.
	 */
	if (new == RTRS_CLT_CONNECTING || new == RTRS_CLT_CONNECTED) {
		path->sm.at_once = false;
		path->sm.hurry = false;
	}
	if (new == RTRS_CLT_CONNECTED)
		path->sm.up_since = jiffies;
	trace_rtrs_clt_path_state(path->path.name, old, new, err);
	/* During an attempt, rtrs_clt_path_try_over() queues it later. */
	if (old == RTRS_CLT_CONNECTED && !path->sm.trying)
		queue_work(rtrs_clt_end_wq, &path->sm.end_work);
	rtrs_clt_path_queue_attempt(path);
	wake_up_all(&path->sm.wait);
	wake_up_all(&path->clt->wait);
	return true;
}

/**
 * rtrs_clt_path_move() - lock path->sm.lock and apply an event to a path's state
 * @path: path that the event is about
 * @ev: event
 * @err: negative errno for RTRS_CLT_EV_FAIL and RTRS_CLT_EV_STOP, else 0
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
 * rtrs_clt_path_error() - report an error that ends a path
 * @p: path that failed, or could not be connected
 * @err: negative errno; the first one becomes the path's error
 * @why: cause, for the log
 *
 * Context: any, any number of times.
 */
void rtrs_clt_path_error(struct rtrs_path *p, int err, const char *why)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	bool again = READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTING &&
		     READ_ONCE(path->sm.logged) == err;

	/* Repeated attempts log the same error once. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_FAIL, err) || again)
		return;
	WRITE_ONCE(path->sm.logged, err);
	rtrs_path_err(p, "path ends: %s (%pe)\n", why, ERR_PTR(err));
}

/**
 * rtrs_clt_path_step_done() - report that a connection has finished the current step
 * @path: path of the connection; see rtrs_clt_path_wait()
 *
 * Context: any.
 */
void rtrs_clt_path_step_done(struct rtrs_clt_path *path)
{
	if (atomic_dec_and_test(&path->sm.nr_pending))
		wake_up_all(&path->sm.wait);
}

/* Acquire semantics: makes the handlers' writes before the end of their step visible. */
static bool rtrs_clt_path_woken(struct rtrs_clt_path *path)
{
	return !atomic_read_acquire(&path->sm.nr_pending) ||
	       READ_ONCE(path->sm.state) != RTRS_CLT_CONNECTING;
}

/**
 * rtrs_clt_path_failed() - get the error of an attempt to connect
 * @path: path that is being connected, or was when the attempt failed
 *
 * Context: process.
 * Return: 0 while the attempt can succeed, or the path's error.
 */
int rtrs_clt_path_failed(struct rtrs_clt_path *path)
{
	int ret;

	spin_lock_irq(&path->sm.lock);
	ret = path->sm.state == RTRS_CLT_CONNECTING ? 0 : path->sm.err;
	spin_unlock_irq(&path->sm.lock);
	return ret;
}

/**
 * rtrs_clt_path_wait() - wait until all connections have finished the current step
 * @path: path that is being connected; path->sm.nr_pending was set before the step was started
 * @timeout_ms: maximum time to wait, in milliseconds
 *
 * Context: the path's connect_work.
 * Return: 0, the path's error if it has ended meanwhile, or -ETIMEDOUT.
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
