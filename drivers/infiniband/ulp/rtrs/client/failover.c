// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that wait: for a path, or for the upper layer.
 *
 * Requests that found no path, or whose path has died and is fenced (fence.c), are parked
 * until there is a path and the upper layer lets them go: rtrs_clt_resume(). When there
 * is no path at all for too long, or none that answers, they fail, and so do those that
 * wait for a fence.
 *
 * A request that waits is in exactly one list. Code that takes it out, under
 * rtrs_clt_failover.lock, has to send it, end it or put it back. No device accesses its
 * pages while it waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/* Parked requests are tried again after this time if a send queue was full. */
#define RTRS_CLT_BUSY_MS	2
/* A request is not failed for the deaths of fewer paths; see rtrs_clt_retries_exhausted(). */
#define RTRS_CLT_MAX_PATH_FAILURES	8

/* The errno with which a request ends that wants to wait for a path; 0 if it may. */
static int rtrs_clt_wait_errno(const struct rtrs_clt *clt, const struct rtrs_clt_io *io)
{
	lockdep_assert_held(&clt->failover.lock);
	if (io->failfast)
		return -ECONNABORTED;
	return clt->failover.expired ? -EHOSTUNREACH : 0;
}

/* The errno with which a request ends as there is no path; 0 if it may wait. */
static int rtrs_clt_io_fail_errno(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	/* The upper layer may want it to end, for example as its device is being removed. */
	int err = rtrs_clt_wait_errno(clt, io) ?: clt->failover.retry_ok(io);

	return err == -EAGAIN ? 0 : err;
}

/* Moves requests that may not wait from @ios to @failed, with their errno in priv.err. */
static void rtrs_clt_take_failed(struct rtrs_clt *clt, struct list_head *ios,
				 struct list_head *failed)
{
	struct rtrs_clt_io *io, *next;

	list_for_each_entry_safe(io, next, ios, priv.entry) {
		io->priv.err = rtrs_clt_io_fail_errno(clt, io);
		if (io->priv.err)
			list_move_tail(&io->priv.entry, failed);
	}
}

static void rtrs_clt_end_io(struct rtrs_clt *clt, struct rtrs_clt_io *io, int err)
{
	trace_rtrs_clt_complete(clt->label, io->slot, err);
	io->done(io, err);
}

/**
 * rtrs_clt_fail_expired() - end requests that may not wait any longer
 * @clt: session; nothing is done if it has a path
 *
 * Each request is checked once, and ended without the lock.
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
	if (failover->down) {
		rtrs_clt_take_failed(clt, &failover->parked, &failed);
		list_for_each_entry(fence, &clt->fences.list, entry)
			rtrs_clt_take_failed(clt, &fence->ios, &failed);
	}
	spin_unlock_irq(&failover->lock);
	rcu_read_unlock();
	list_for_each_entry_safe(io, next, &failed, priv.entry)
		rtrs_clt_end_io(clt, io, io->priv.err);
}

/* When waiting requests fail, in jiffies. Only for a timeout that isn't -1. */
static unsigned long rtrs_clt_failover_expires(struct rtrs_clt *clt)
{
	int timeout = READ_ONCE(clt->failover.timeout);

	return clt->failover.down_since + (unsigned long)max(timeout, 0) * HZ;
}

static bool rtrs_clt_failover_expired(struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->lock);
	return !clt->nr_up && READ_ONCE(clt->failover.timeout) >= 0 &&
	       time_after_eq(jiffies, rtrs_clt_failover_expires(clt));
}

/* failover.timeout has passed since the loss of all paths. */
static void rtrs_clt_failover_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, failover.work);
	bool expired;

	mutex_lock(&clt->lock);
	/* It may have been queued for another loss of all paths. */
	expired = rtrs_clt_failover_expired(clt);
	spin_lock_irq(&clt->failover.lock);
	expired &= !clt->failover.expired;
	clt->failover.expired |= expired;
	spin_unlock_irq(&clt->failover.lock);
	mutex_unlock(&clt->lock);
	if (expired)
		rtrs_clt_err(clt, "%s: no path for %d s: requests fail until there is one\n",
			     clt->label, READ_ONCE(clt->failover.timeout));
	rtrs_clt_fail_expired(clt);
}

/**
 * rtrs_clt_arm_failover_timer() - start, change or stop the time limit of waiting requests
 * @clt: session that has lost its last path, has one again, or whose timeout was changed
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_arm_failover_timer(struct rtrs_clt *clt)
{
	bool expired = rtrs_clt_failover_expired(clt);

	lockdep_assert_held(&clt->lock);
	spin_lock_irq(&clt->failover.lock);
	clt->failover.down = !clt->nr_up;
	if (!expired)
		clt->failover.expired = false;
	spin_unlock_irq(&clt->failover.lock);
	if (clt->nr_up || READ_ONCE(clt->failover.timeout) < 0)
		cancel_delayed_work(&clt->failover.work);
	else
		mod_delayed_work(rtrs_clt_sess_wq, &clt->failover.work, expired ? 0 :
				 rtrs_clt_failover_expires(clt) - jiffies);
	/* Ends requests that may not wait. */
	rtrs_clt_resume(clt);
}

/* Does anything wait for a path, or for a dead one to be fenced? */
static bool rtrs_clt_any_waits(struct rtrs_clt *clt)
{
	bool waits;

	spin_lock_irq(&clt->failover.lock);
	waits = !list_empty(&clt->failover.parked) || !list_empty(&clt->fences.list);
	spin_unlock_irq(&clt->failover.lock);
	return waits;
}

/**
 * rtrs_clt_first_path_up() - requests need not wait for a path any more
 * @clt: the session, which had no path and has one now
 *
 * If nothing has waited, a later loss has nothing to do with the last one.
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_first_path_up(struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->lock);
	clt->failover.answered = !rtrs_clt_any_waits(clt);
	rtrs_clt_arm_failover_timer(clt);
}

/**
 * rtrs_clt_all_paths_lost() - requests wait for a path from now on
 * @clt: the session, which has lost its last path
 *
 * A server may let paths connect that are no good, one after the other. So requests that
 * have waited before go on doing so, unless a path has answered any since.
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_all_paths_lost(struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->lock);
	if (clt->failover.answered || !rtrs_clt_any_waits(clt))
		WRITE_ONCE(clt->failover.down_since, jiffies);
	rtrs_clt_arm_failover_timer(clt);
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
 * rtrs_clt_park() - let a request wait for rtrs_clt_resume()
 * @clt: an open session
 * @io: the request, filled in except its message and io->priv
 *
 * When it is resumed, rtrs_clt_params.retry_ok decides what happens to it.
 *
 * Context: any.
 * Return: 0, and io->done() is called once, perhaps before this returns; -ECONNABORTED
 * if io->failfast is set, -EHOSTUNREACH if there has been no path for too long.
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
 * rtrs_clt_wait_for_path() - let a request wait for a path
 * @clt: session without paths that take requests
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
 * The request itself may be the cause of its paths' deaths. As there may always be another
 * path, such retries have to end.
 */
static bool rtrs_clt_retries_exhausted(struct rtrs_clt *clt, const struct rtrs_clt_io *io)
{
	int timeout = READ_ONCE(clt->failover.timeout);

	return io->priv.path_failures >= RTRS_CLT_MAX_PATH_FAILURES && timeout >= 0 &&
	       time_after_eq(jiffies, io->priv.first_failure + (unsigned long)timeout * HZ);
}

/*
 * -EAGAIN or -EBUSY: it has to wait again. The upper layer changes its state, then
 * synchronizes RCU, so its verdict holds until the request is posted.
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

/* Sends parked requests that may be sent; returns true if a send queue was full. */
static bool rtrs_clt_send_parked(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io, *next;
	bool busy = false;
	LIST_HEAD(ios);
	LIST_HEAD(back);
	int ret;

	spin_lock_irq(&clt->failover.lock);
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
	/* Includes requests that were in a local list of rtrs_clt_send_parked(). */
	rtrs_clt_fail_expired(clt);
}

/**
 * rtrs_clt_resume() - send or end parked requests, if that is possible now
 * @clt: an open session
 *
 * A work item calls rtrs_clt_params.retry_ok for each of them.
 *
 * Context: any.
 */
void rtrs_clt_resume(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->failover.resume_work, 0);
}
EXPORT_SYMBOL_GPL(rtrs_clt_resume);

/**
 * rtrs_clt_failover_init() - initialize the members of failover.c
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
 * rtrs_clt_failover_exit() - end all requests that wait
 * @clt: session without paths and fences, and to which nothing is submitted any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_failover_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io, *next;

	/* The first may queue the second. */
	cancel_delayed_work_sync(&clt->failover.work);
	cancel_delayed_work_sync(&clt->failover.resume_work);
	list_for_each_entry_safe(io, next, &clt->failover.parked, priv.entry)
		rtrs_clt_end_io(clt, io, -ECONNABORTED);
}

/**
 * rtrs_clt_may_wait() - is it still time for requests to wait since the last loss?
 * @clt: the session, which may have a path
 * @since: when the upper layer lost something else that requests wait for, in jiffies
 *
 * For an upper layer that lets them wait for more than a path, see
 * rtrs_clt_params.retry_ok.
 *
 * Context: any.
 * Return: whether less than failover_timeout has passed since the last path was lost, or since
 * that, whichever came later.
 */
bool rtrs_clt_may_wait(const struct rtrs_clt *clt, unsigned long since)
{
	unsigned long down = READ_ONCE(clt->failover.down_since);
	int timeout = READ_ONCE(clt->failover.timeout);

	if (time_after(down, since))
		since = down;
	return timeout < 0 || time_before(jiffies, since + (unsigned long)timeout * HZ);
}
EXPORT_SYMBOL_GPL(rtrs_clt_may_wait);
