// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * State of a session, and its requests that wait for a path or for the upper layer.
 *
 * A request is parked if there is no path, or once its dead path is fenced (fence.c). It stays
 * parked until there is a path and the upper layer allows it to be sent: rtrs_clt_resume(). If the
 * session has no path for too long, or only paths that answer no request, parked requests and
 * requests that wait for a fence fail.
 *
 * A waiting request is in exactly one list. Code that removes it, under rtrs_clt_failover.lock,
 * must send it, complete it or put it back. No device accesses its pages while it waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/* If a send queue is full, parked requests are sent after this time. */
#define RTRS_CLT_BUSY_MS	2
/* Minimum number of paths that must die before a request fails; see rtrs_clt_retries_exhausted() */
#define RTRS_CLT_MAX_PATH_FAILURES	8

/**
 * rtrs_clt_sess_next_state() - get the next state from the state table
 * @state: state of a session
 * @ev: event
 *
 * Return: the next state; @state if the event doesn't change it.
 */
VISIBLE_IF_KUNIT enum rtrs_clt_sess_state
rtrs_clt_sess_next_state(enum rtrs_clt_sess_state state, enum rtrs_clt_sess_event ev)
{
	/* The next state plus one; 0 where the event has no effect. */
	static const u8 next[RTRS_CLT_SESS_NR_STATES][RTRS_CLT_SESS_NR_EVENTS] = {
		[RTRS_CLT_SESS_DOWN] = {
			[RTRS_CLT_SESS_EV_PATH]		= RTRS_CLT_SESS_TRIAL + 1,
			[RTRS_CLT_SESS_EV_EXPIRE]	= RTRS_CLT_SESS_EXPIRED + 1,
		},
		[RTRS_CLT_SESS_EXPIRED] = {
			[RTRS_CLT_SESS_EV_PATH]		= RTRS_CLT_SESS_TRIAL + 1,
			[RTRS_CLT_SESS_EV_EXTEND]	= RTRS_CLT_SESS_DOWN + 1,
		},
		[RTRS_CLT_SESS_TRIAL] = {
			[RTRS_CLT_SESS_EV_ANSWER]	= RTRS_CLT_SESS_UP + 1,
			[RTRS_CLT_SESS_EV_LOST]		= RTRS_CLT_SESS_DOWN + 1,
		},
		[RTRS_CLT_SESS_UP] = {
			[RTRS_CLT_SESS_EV_LOST]		= RTRS_CLT_SESS_DOWN + 1,
		},
	};

	return next[state][ev] ? next[state][ev] - 1 : state;
}

static bool rtrs_clt_state_has_path(enum rtrs_clt_sess_state state)
{
	return state == RTRS_CLT_SESS_TRIAL || state == RTRS_CLT_SESS_UP;
}

/**
 * rtrs_clt_sess_has_path() - check whether a session has a path
 * @clt: the session
 *
 * Context: under clt->lock or clt->failover.lock.
 * Return: true if a path accepts requests, is about to do so, or its requests are not all reclaimed
 * yet, see &rtrs_clt.nr_up.
 */
bool rtrs_clt_sess_has_path(const struct rtrs_clt *clt)
{
	return rtrs_clt_state_has_path(clt->failover.state);
}

/**
 * rtrs_clt_kick_fencing() - run the work item that fences dead paths
 * @clt: session in which a path was connected or has ended, a path that is being connected may be
 *	used to send FENCE, a request with a fence has failed, or FENCED was received
 *
 * Context: any.
 */
void rtrs_clt_kick_fencing(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, 0);
}

/* Returns the jiffies until waiting requests fail, 0 if they fail now; U64_MAX: never. */
static u64 rtrs_clt_failover_left(const struct rtrs_clt *clt)
{
	int timeout = READ_ONCE(clt->failover.timeout);
	u64 age = get_jiffies_64() - atomic64_read(&clt->failover.down_since);

	if (timeout < 0)
		return U64_MAX;
	return max((u64)timeout * HZ, age) - age;
}

/* Starts, changes or stops the time limit of waiting requests, according to the session's state. */
static void rtrs_clt_set_failover_timer(struct rtrs_clt *clt)
{
	u64 left = rtrs_clt_failover_left(clt);

	if (clt->failover.state == RTRS_CLT_SESS_DOWN && left != U64_MAX)
		mod_delayed_work(rtrs_clt_sess_wq, &clt->failover.work, left);
	else
		cancel_delayed_work(&clt->failover.work);
}

/*
 * Applies an event to a session's state, and queues the work items that follow. No other function
 * changes the state. Returns true if the event changed it.
 */
static bool rtrs_clt_sess_move_locked(struct rtrs_clt *clt, enum rtrs_clt_sess_event ev)
{
	enum rtrs_clt_sess_state old = clt->failover.state;
	enum rtrs_clt_sess_state new = rtrs_clt_sess_next_state(old, ev);

	lockdep_assert_held(&clt->lock);
	lockdep_assert_held(&clt->failover.lock);
	if (new == old)
		return false;
	if (old == RTRS_CLT_SESS_UP)
		atomic64_set(&clt->failover.down_since, get_jiffies_64());
	WRITE_ONCE(clt->failover.state, new);
	trace_rtrs_clt_sess_state(clt->label, old, new);
	rtrs_clt_set_failover_timer(clt);
	/* Fails requests that may not wait. Those that may are resumed once there is a path. */
	if (!rtrs_clt_state_has_path(new))
		rtrs_clt_resume(clt);
	if (rtrs_clt_state_has_path(old) != rtrs_clt_state_has_path(new))
		queue_work(rtrs_clt_sess_wq, &clt->link.work);
	return true;
}

/**
 * rtrs_clt_sess_move() - apply an event to a session's state
 * @clt: session that the event is about
 * @ev: event
 *
 * Context: process, under clt->lock.
 * Return: true if the event changed the state.
 */
bool rtrs_clt_sess_move(struct rtrs_clt *clt, enum rtrs_clt_sess_event ev)
{
	bool moved;

	spin_lock_irq(&clt->failover.lock);
	moved = rtrs_clt_sess_move_locked(clt, ev);
	spin_unlock_irq(&clt->failover.lock);
	return moved;
}

/* Returns the errno with which a request fails instead of waiting, or 0 if it may wait. */
static int rtrs_clt_wait_errno(const struct rtrs_clt *clt, const struct rtrs_clt_io *io)
{
	lockdep_assert_held(&clt->failover.lock);
	if (io->failfast)
		return -ECONNABORTED;
	return clt->failover.state == RTRS_CLT_SESS_EXPIRED ? -EHOSTUNREACH : 0;
}

/*
 * Returns the errno with which a waiting request fails while there is no path, or 0 if it may wait.
 */
static int rtrs_clt_io_fail_errno(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	/* The upper layer may also end the request, for example if its device is being removed. */
	int err = rtrs_clt_wait_errno(clt, io) ?: clt->failover.retry_ok(io);

	return err == -EAGAIN ? 0 : err;
}

/*
 * Moves requests that may not wait from @ios to @failed, with their errno in priv.err. Returns true
 * if the server must not execute one of them any more, see rtrs_clt_io.dir.
 */
static bool rtrs_clt_take_failed(struct rtrs_clt *clt, struct list_head *ios,
				 struct list_head *failed)
{
	struct rtrs_clt_io *io, *next;
	bool to_fence = false;

	list_for_each_entry_safe(io, next, ios, priv.entry) {
		io->priv.err = rtrs_clt_io_fail_errno(clt, io);
		if (!io->priv.err)
			continue;
		list_move_tail(&io->priv.entry, failed);
		to_fence |= io->dir != DMA_FROM_DEVICE;
	}
	return to_fence;
}

/*
 * Moves fences without waiting requests to the end of the list: each path can have only one
 * unanswered FENCE, and waiting requests come first. Such fences are not dropped, since the server
 * may not know yet that the path is dead.
 */
static void rtrs_clt_postpone_fences(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence, *next;
	LIST_HEAD(last);

	lockdep_assert_held(&clt->failover.lock);
	list_for_each_entry_safe(fence, next, &clt->fences.list, entry)
		if (list_empty(&fence->ios) && !fence->failed)
			list_move_tail(&fence->entry, &last);
	list_splice_tail(&last, &clt->fences.list);
}

static void rtrs_clt_end_io(struct rtrs_clt *clt, struct rtrs_clt_io *io, int err)
{
	trace_rtrs_clt_complete(clt->label, io->slot, err);
	io->done(io, err);
}

/**
 * rtrs_clt_fail_expired() - fail requests that may not wait any longer
 * @clt: session; nothing is done if it has a path
 *
 * Each request is checked once, and completed without holding the lock.
 *
 * Context: process.
 */
VISIBLE_IF_KUNIT void rtrs_clt_fail_expired(struct rtrs_clt *clt)
{
	struct rtrs_clt_failover *failover = &clt->failover;
	struct rtrs_clt_fence *fence;
	struct rtrs_clt_io *io, *next;
	LIST_HEAD(failed);

	rcu_read_lock();
	spin_lock_irq(&failover->lock);
	if (!rtrs_clt_sess_has_path(clt)) {
		rtrs_clt_take_failed(clt, &failover->parked, &failed);
		list_for_each_entry(fence, &clt->fences.list, entry) {
			if (!rtrs_clt_take_failed(clt, &fence->ios, &failed))
				continue;
			/* A path that is being connected may now be used to fence the dead one. */
			fence->failed = true;
			rtrs_clt_kick_fencing(clt);
		}
		rtrs_clt_postpone_fences(clt);
	}
	spin_unlock_irq(&failover->lock);
	rcu_read_unlock();
	list_for_each_entry_safe(io, next, &failed, priv.entry)
		rtrs_clt_end_io(clt, io, io->priv.err);
}

/**
 * rtrs_clt_allow_first_path() - stop failing waiting requests, because a path is about to be added
 * @clt: session without paths that accept requests
 *
 * If the path isn't added after all, RTRS_CLT_SESS_EV_LOST undoes this.
 *
 * Context: process, under clt->lock.
 * Return: true; or false without doing anything if a fence has &rtrs_clt_fence.failed set.
 */
bool rtrs_clt_allow_first_path(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence;
	bool failed = false;

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry)
		failed |= fence->failed;
	if (!failed)
		rtrs_clt_sess_move_locked(clt, RTRS_CLT_SESS_EV_PATH);
	spin_unlock_irq(&clt->failover.lock);
	return !failed;
}

/* Runs when failover.timeout has passed since the loss of all paths. */
static void rtrs_clt_failover_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, failover.work);
	bool expired;

	mutex_lock(&clt->lock);
	/* The work item may have been queued for an earlier loss of all paths. */
	expired = !rtrs_clt_failover_left(clt) &&
		  rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_EXPIRE);
	mutex_unlock(&clt->lock);
	if (expired && __ratelimit(&clt->ratelimit))
		pr_err("%s: no path for %d s: requests fail until there is one\n",
		       clt->label, READ_ONCE(clt->failover.timeout));
}

/**
 * rtrs_clt_failover_timeout_changed() - apply a new failover_timeout to requests that wait
 * @clt: session whose timeout has changed
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_failover_timeout_changed(struct rtrs_clt *clt)
{
	if (rtrs_clt_failover_left(clt))
		rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_EXTEND);
	rtrs_clt_set_failover_timer(clt);
}

/* Returns true if a request waits for a path, or a dead path is not fenced yet. */
static bool rtrs_clt_any_waits(struct rtrs_clt *clt)
{
	bool waits;

	spin_lock_irq(&clt->failover.lock);
	waits = clt->failover.resuming || !list_empty(&clt->failover.parked) ||
		!list_empty(&clt->fences.list);
	spin_unlock_irq(&clt->failover.lock);
	return waits;
}

/**
 * rtrs_clt_first_path_up() - account for the first path of a session
 * @clt: session in RTRS_CLT_SESS_TRIAL, with one path
 *
 * If nothing has waited, the next loss of all paths starts a new time limit.
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_first_path_up(struct rtrs_clt *clt)
{
	if (!rtrs_clt_any_waits(clt))
		rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_ANSWER);
}

/**
 * rtrs_clt_all_paths_lost() - start the time limit of waiting requests
 * @clt: session that has lost its last path
 *
 * A server may accept unusable paths again and again. So the time limit of requests that have
 * already waited continues, unless a request has been answered since.
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_all_paths_lost(struct rtrs_clt *clt)
{
	if (!rtrs_clt_any_waits(clt))
		rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_ANSWER);
	rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_LOST);
}

static int rtrs_clt_park_locked(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	int err = rtrs_clt_wait_errno(clt, io);

	if (err)
		return err;
	trace_rtrs_clt_park(clt->label, io->slot, 0);
	io->priv.path = NULL;
	list_add_tail(&io->priv.entry, &clt->failover.parked);
	return 0;
}

/**
 * rtrs_clt_park() - make a request wait for rtrs_clt_resume()
 * @clt: an open session
 * @io: the request, filled in except its message and io->priv
 *
 * When the request is resumed, rtrs_clt_params.retry_ok decides whether it is sent.
 *
 * Context: any.
 * Return: 0, and io->done() is called once, possibly before this function returns; -ECONNABORTED if
 * io->failfast is set; -EHOSTUNREACH if there has been no path for too long.
 */
int rtrs_clt_park(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	unsigned long flags;
	int ret;

	io->priv.path_failures = 0;
	spin_lock_irqsave(&clt->failover.lock, flags);
	ret = rtrs_clt_park_locked(clt, io);
	spin_unlock_irqrestore(&clt->failover.lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_clt_park);

/**
 * rtrs_clt_wait_for_path() - park a request until there is a path
 * @clt: session without paths that accept requests
 * @io: the request, filled in except io->priv
 *
 * Context: any, RCU read side.
 * Return: as rtrs_clt_park(); -EAGAIN if there is a path now.
 */
int rtrs_clt_wait_for_path(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	unsigned long flags;
	int ret = -EAGAIN;

	spin_lock_irqsave(&clt->failover.lock, flags);
	/* If a path is added after this, rtrs_clt_link_add() resumes parked requests. */
	if (!rcu_access_pointer(clt->path_set))
		ret = rtrs_clt_park_locked(clt, io);
	spin_unlock_irqrestore(&clt->failover.lock, flags);
	return ret;
}

/*
 * Returns true if a request must not be retried any more. The request itself may kill its paths.
 * Since a lost path may always be followed by another one, the number of retries must be limited.
 */
static bool rtrs_clt_retries_exhausted(struct rtrs_clt *clt, const struct rtrs_clt_io *io)
{
	int timeout = READ_ONCE(clt->failover.timeout);

	return io->priv.path_failures >= RTRS_CLT_MAX_PATH_FAILURES && timeout >= 0 &&
	       get_jiffies_64() - io->priv.first_failure >= (u64)timeout * HZ;
}

/*
 * Sends a parked request. Returns -EAGAIN or -EBUSY if it must wait again.
 *
 * The decision of retry_ok() is valid until the request is posted: the upper layer calls
 * synchronize_rcu() after it changes its state.
 */
static int rtrs_clt_retry(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	const struct rtrs_clt_path_set *set;
	int ret;

	lockdep_assert(rcu_read_lock_held());
	if (rtrs_clt_retries_exhausted(clt, io))
		return -EHOSTUNREACH;
	ret = clt->failover.retry_ok(io);
	if (ret)
		return ret;
	set = rcu_dereference(clt->path_set);
	if (!set)
		return -EAGAIN;
	ret = clt->failover.prep_retry(io);
	return ret ?: rtrs_clt_send(clt, set, io, true);
}

/* Sends parked requests, if possible. Returns true if a send queue was full. */
static bool rtrs_clt_send_parked(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io, *next;
	bool busy = false;
	LIST_HEAD(ios);
	LIST_HEAD(back);
	int ret;

	spin_lock_irq(&clt->failover.lock);
	clt->failover.resuming = !list_empty(&clt->failover.parked);
	list_splice_init(&clt->failover.parked, &ios);
	spin_unlock_irq(&clt->failover.lock);
	list_for_each_entry_safe(io, next, &ios, priv.entry) {
		list_del(&io->priv.entry);
		rcu_read_lock();
		ret = rtrs_clt_retry(clt, io);
		rcu_read_unlock();
		if (ret == -EAGAIN || ret == -EBUSY)
			list_add_tail(&io->priv.entry, &back);
		else if (ret)
			rtrs_clt_end_io(clt, io, ret);
		busy |= ret == -EBUSY;
	}
	spin_lock_irq(&clt->failover.lock);
	list_splice(&back, &clt->failover.parked);
	clt->failover.resuming = false;
	spin_unlock_irq(&clt->failover.lock);
	return busy;
}

static void rtrs_clt_resume_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, failover.resume_work);

	if (rtrs_clt_send_parked(clt))
		queue_delayed_work(rtrs_clt_sess_wq, &clt->failover.resume_work,
				   msecs_to_jiffies(RTRS_CLT_BUSY_MS));
	/* Also checks requests that rtrs_clt_send_parked() had moved to its local list. */
	rtrs_clt_fail_expired(clt);
}

/**
 * rtrs_clt_resume() - send or complete parked requests, if possible
 * @clt: an open session
 *
 * A work item calls rtrs_clt_params.retry_ok for each parked request.
 *
 * Context: any.
 */
void rtrs_clt_resume(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->failover.resume_work, 0);
}
EXPORT_SYMBOL_GPL(rtrs_clt_resume);

/**
 * rtrs_clt_failover_init() - initialize the fields used by failover.c
 * @clt: a new session
 */
void rtrs_clt_failover_init(struct rtrs_clt *clt)
{
	spin_lock_init(&clt->failover.lock);
	INIT_LIST_HEAD(&clt->failover.parked);
	INIT_DELAYED_WORK(&clt->failover.resume_work, rtrs_clt_resume_work);
	INIT_DELAYED_WORK(&clt->failover.work, rtrs_clt_failover_work);
}

/**
 * rtrs_clt_failover_exit() - complete all parked requests with -ECONNABORTED
 * @clt: session without paths and fences, to which nothing is submitted any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_failover_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io, *next;

	cancel_delayed_work_sync(&clt->failover.work);
	cancel_delayed_work_sync(&clt->failover.resume_work);
	list_for_each_entry_safe(io, next, &clt->failover.parked, priv.entry)
		rtrs_clt_end_io(clt, io, -ECONNABORTED);
}

/**
 * rtrs_clt_may_wait() - check the time limit of waiting requests
 * @clt: the session, which may have a path
 * @since: when the upper layer lost another resource that requests wait for, in jiffies
 *
 * For an upper layer whose requests wait not only for a path, see rtrs_clt_params.retry_ok.
 *
 * Context: any.
 * Return: true if failover_timeout has not yet passed since the last path was lost, or has not yet
 * passed since @since.
 */
bool rtrs_clt_may_wait(const struct rtrs_clt *clt, unsigned long since)
{
	int timeout = READ_ONCE(clt->failover.timeout);
	/* Read before jiffies, so that the time of the loss is never in the future */
	u64 down = atomic64_read_acquire(&clt->failover.down_since);
	u64 now = get_jiffies_64();

	/* With 32 bits, @since may be weeks ago, too long for time_after(). */
	return timeout < 0 ||
	       min_t(u64, now - down, (unsigned long)now - since) < (u64)timeout * HZ;
}
EXPORT_SYMBOL_GPL(rtrs_clt_may_wait);
