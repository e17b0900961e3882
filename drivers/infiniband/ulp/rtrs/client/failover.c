// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What becomes of requests whose path has died, or that find none.
 *
 * Requests of a dead path stay with its struct rtrs_clt_fence until the server has
 * said, over another path, that nothing which was sent on the dead one has any effect
 * any more. Until then a repeat could be done and acknowledged, the block be written
 * anew, and the first copy, held up somewhere, overwrite that. A server that can't
 * tell is given some time instead.
 *
 * After that they are parked, with those that found no path, until there is one and
 * the upper layer lets them go: rtrs_clt_resume(). When there is no path at all for
 * too long, they fail. The fences stay: who is told that his request failed may write
 * the block again, too. So the first path that comes up has them settled before it
 * takes requests, see rtrs_clt_live_add().
 *
 * A request that waits is in exactly one list, and whoever takes it out, under
 * park_lock, sends it or ends it. By then its pages and its slot are nobody's but its
 * owner's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/* A send queue was full; some of it will have been sent by then. */
#define RTRS_CLT_BUSY_MS	2
/* So many paths may die under a request, whatever the session's limit. */
#define RTRS_CLT_MAX_LOSSES	8

/* Why a request can't wait any longer, if there is no path; 0 if it can. */
static int rtrs_clt_hopeless(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	int err;

	lockdep_assert_held(&clt->park_lock);
	if (clt->expired)
		return -ENOTCONN;
	if (io->failfast)
		return -ECONNABORTED;
	/* Perhaps the upper layer has lost interest. */
	err = clt->retry_ok(io);
	return err == -EAGAIN ? 0 : err;
}

static struct rtrs_clt_io *rtrs_clt_find_hopeless(struct rtrs_clt *clt,
						  struct list_head *ios, int *err)
{
	struct rtrs_clt_io *io;

	list_for_each_entry(io, ios, entry) {
		*err = rtrs_clt_hopeless(clt, io);
		if (*err) {
			list_del(&io->entry);
			return io;
		}
	}
	return NULL;
}

static struct rtrs_clt_io *rtrs_clt_next_hopeless(struct rtrs_clt *clt, int *err)
{
	struct rtrs_clt_io *io = NULL;
	struct rtrs_clt_fence *fence;
	unsigned long flags;

	rcu_read_lock();
	spin_lock_irqsave(&clt->park_lock, flags);
	if (clt->down) {
		io = rtrs_clt_find_hopeless(clt, &clt->parked, err);
		list_for_each_entry(fence, &clt->fences, entry)
			if (!io)
				io = rtrs_clt_find_hopeless(clt, &fence->ios,
							    err);
	}
	spin_unlock_irqrestore(&clt->park_lock, flags);
	rcu_read_unlock();
	return io;
}

static void rtrs_clt_end_io(struct rtrs_clt *clt, struct rtrs_clt_io *io, int err)
{
	trace_rtrs_clt_complete(clt->name, io->slot, err);
	io->done(io, err);
}

/* Ends requests that have waited for long enough, if there is no path. */
static void rtrs_clt_reap(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io;
	int err;

	while ((io = rtrs_clt_next_hopeless(clt, &err)))
		rtrs_clt_end_io(clt, io, err);
}

/* When requests that wait since the loss of all paths fail; some timeout is set. */
static unsigned long rtrs_clt_limit_end(struct rtrs_clt *clt)
{
	int timeout = READ_ONCE(clt->failover_timeout);

	return clt->down_since + (unsigned long)max(timeout, 0) * HZ;
}

static bool rtrs_clt_limit_passed(struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->lock);
	return !clt->nr_up && READ_ONCE(clt->failover_timeout) >= 0 &&
	       time_after_eq(jiffies, rtrs_clt_limit_end(clt));
}

/* The requests have waited for as long as they may. */
static void rtrs_clt_limit_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, limit_work);
	bool expired;

	mutex_lock(&clt->lock);
	/* It may have been queued for another loss of all paths. */
	expired = rtrs_clt_limit_passed(clt);
	spin_lock_irq(&clt->park_lock);
	expired &= !clt->expired;
	clt->expired |= expired;
	spin_unlock_irq(&clt->park_lock);
	mutex_unlock(&clt->lock);
	if (expired)
		pr_err("%s: no path for %d s: requests fail until there is one\n",
		       clt->name, READ_ONCE(clt->failover_timeout));
	rtrs_clt_reap(clt);
}

/**
 * rtrs_clt_set_limit() - how long may requests wait from now on?
 * @clt: the session; it has lost its last path, has one again, or the limit was changed
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_set_limit(struct rtrs_clt *clt)
{
	bool expired = rtrs_clt_limit_passed(clt);

	lockdep_assert_held(&clt->lock);
	spin_lock_irq(&clt->park_lock);
	clt->down = !clt->nr_up;
	if (!expired)
		clt->expired = false;
	spin_unlock_irq(&clt->park_lock);
	if (clt->nr_up || READ_ONCE(clt->failover_timeout) < 0)
		cancel_delayed_work(&clt->limit_work);
	else
		mod_delayed_work(rtrs_clt_sess_wq, &clt->limit_work, expired ? 0 :
				 rtrs_clt_limit_end(clt) - jiffies);
	/* Those that don't wait. */
	rtrs_clt_resume(clt);
}

static int rtrs_clt_park_locked(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	lockdep_assert_held(&clt->park_lock);
	if (io->failfast)
		return -ECONNABORTED;
	if (clt->expired)
		return -ENOTCONN;
	trace_rtrs_clt_park(clt->name, io->slot, 0);
	io->path = NULL;
	list_add_tail(&io->entry, &clt->parked);
	return 0;
}

/**
 * rtrs_clt_park() - put a request aside
 * @clt: the session
 * @io: the request
 *
 * It waits for rtrs_clt_resume(); see rtrs_clt_params.retry_ok.
 *
 * Context: any.
 * Return: 0, and io->done() is called once, perhaps before this returns; -ECONNABORTED
 * if it is not to wait, -ENOTCONN if there has been no path for too long.
 */
int rtrs_clt_park(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	unsigned long flags;
	int ret;

	io->losses = 0;
	spin_lock_irqsave(&clt->park_lock, flags);
	ret = rtrs_clt_park_locked(clt, io);
	spin_unlock_irqrestore(&clt->park_lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_clt_park);

/**
 * rtrs_clt_wait_for_path() - put a request aside that found no path
 * @clt: the session
 * @io: the request
 *
 * Context: any, RCU read side.
 * Return: as rtrs_clt_park(); -EAGAIN if there is a path by now.
 */
int rtrs_clt_wait_for_path(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	unsigned long flags;
	int ret = -EAGAIN;

	spin_lock_irqsave(&clt->park_lock, flags);
	/* A path that comes later has parked requests resumed after this. */
	if (!rcu_access_pointer(clt->live))
		ret = rtrs_clt_park_locked(clt, io);
	spin_unlock_irqrestore(&clt->park_lock, flags);
	return ret;
}

/*
 * Perhaps it is the request itself that its paths die of, and there is always another
 * one for it: that has to end some time.
 */
static bool rtrs_clt_enough(struct rtrs_clt *clt, const struct rtrs_clt_io *io)
{
	int timeout = READ_ONCE(clt->failover_timeout);

	return io->losses >= RTRS_CLT_MAX_LOSSES && timeout >= 0 &&
	       time_after_eq(jiffies, io->lost_at + (unsigned long)timeout * HZ);
}

/*
 * -EAGAIN or -EBUSY: it has to wait again. The upper layer changes its state, then
 * synchronizes RCU, so its verdict holds until the request is posted.
 */
static int rtrs_clt_retry(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	const struct rtrs_clt_live *live;
	int ret;

	lockdep_assert(rcu_read_lock_held());
	if (rtrs_clt_enough(clt, io))
		return -ENOTCONN;
	ret = clt->retry_ok(io);
	if (ret)
		return ret;
	live = rcu_dereference(clt->live);
	if (!live)
		return -EAGAIN;
	ret = clt->prep_retry(io);
	return ret ?: rtrs_clt_send(clt, live, io, true);
}

/* Sends what is parked, as far as it may be; true if a queue was full. */
static bool rtrs_clt_send_parked(struct rtrs_clt *clt)
{
	struct rtrs_clt_io *io, *next;
	bool busy = false;
	LIST_HEAD(ios);
	LIST_HEAD(back);
	int ret;

	spin_lock_irq(&clt->park_lock);
	list_splice_init(&clt->parked, &ios);
	spin_unlock_irq(&clt->park_lock);
	list_for_each_entry_safe(io, next, &ios, entry) {
		list_del(&io->entry);
		rcu_read_lock();
		ret = rtrs_clt_retry(clt, io);
		rcu_read_unlock();
		if (ret == -EAGAIN || ret == -EBUSY)
			list_add_tail(&io->entry, &back);
		else if (ret)
			rtrs_clt_end_io(clt, io, ret);
		busy |= ret == -EBUSY;
	}
	spin_lock_irq(&clt->park_lock);
	list_splice(&back, &clt->parked);
	spin_unlock_irq(&clt->park_lock);
	return busy;
}

static void rtrs_clt_resume_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, resume_work);

	if (rtrs_clt_send_parked(clt))
		queue_delayed_work(rtrs_clt_sess_wq, &clt->resume_work,
				   msecs_to_jiffies(RTRS_CLT_BUSY_MS));
	/* Also what could not be found while it was in the hands of the above. */
	rtrs_clt_reap(clt);
}

/**
 * rtrs_clt_resume() - let requests that wait go on, or end, if they can
 * @clt: the session
 *
 * Asks rtrs_clt_params.retry_ok for each, some time after this.
 *
 * Context: any.
 */
void rtrs_clt_resume(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->resume_work, 0);
}
EXPORT_SYMBOL_GPL(rtrs_clt_resume);

/**
 * rtrs_clt_look_after_fences() - something may have changed for dead paths
 * @clt: the session
 *
 * A path came up or ended, or one has no question open any more.
 *
 * Context: any.
 */
void rtrs_clt_look_after_fences(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->fence_work, 0);
}

/**
 * rtrs_clt_unfenced() - are there dead paths that may still have an effect?
 * @clt: the session
 */
bool rtrs_clt_unfenced(struct rtrs_clt *clt)
{
	return !list_empty_careful(&clt->fences);
}

static void rtrs_clt_leave_fence(struct rtrs_clt_path *path,
				 struct rtrs_clt_fence *fence,
				 struct list_head *ios)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_io *io;

	list_for_each_entry(io, ios, entry) {
		trace_rtrs_clt_strand(path->path.name, io->slot, 0);
		io->path = NULL;
		if (!io->losses++)
			io->lost_at = jiffies;
		path->failed_over++;
	}
	fence->granted = path->features & RTRS_FEATURE_FENCE;
	fence->until = jiffies + msecs_to_jiffies(READ_ONCE(clt->unfenced_ms));
	list_splice(ios, &fence->ios);
	spin_lock_irq(&clt->park_lock);
	list_add_tail(&fence->entry, &clt->fences);
	spin_unlock_irq(&clt->park_lock);
}

/**
 * rtrs_clt_strand() - take over what a dead path leaves behind
 * @path: the path, drained, its keys invalid, and out of the array
 * @ios: requests that were on it
 *
 * If it had none in hand, there is nothing to be fenced.
 *
 * Context: the path's work item.
 */
void rtrs_clt_strand(struct rtrs_clt_path *path, struct list_head *ios)
{
	struct rtrs_clt_fence *fence = path->fence;

	path->fence = NULL;
	if (list_empty(ios))
		kfree(fence);
	else
		rtrs_clt_leave_fence(path, fence, ios);
	/* What was being asked for over this path is asked for over another one. */
	if (rtrs_clt_unfenced(path->clt))
		rtrs_clt_look_after_fences(path->clt);
}

static bool rtrs_clt_fence_due(const struct rtrs_clt_fence *fence)
{
	return fence->granted || time_after_eq(jiffies, fence->until);
}

/* A copy of a fence, if there is one: of one that needn't wait, if there is. */
static bool rtrs_clt_any_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
{
	struct rtrs_clt_fence *fence, *found = NULL;

	spin_lock_irq(&clt->park_lock);
	list_for_each_entry(fence, &clt->fences, entry)
		if (!found || (!rtrs_clt_fence_due(found) &&
			       (rtrs_clt_fence_due(fence) ||
				time_before(fence->until, found->until))))
			found = fence;
	if (found)
		*copy = *found;
	spin_unlock_irq(&clt->park_lock);
	return found;
}

static struct rtrs_clt_fence *rtrs_clt_find_fence(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;

	lockdep_assert_held(&clt->park_lock);
	list_for_each_entry(fence, &clt->fences, entry)
		if (fence->id == id)
			return fence;
	return NULL;
}

/*
 * The server can't tell any more: it isn't the one that granted it. Returns the time at
 * which the path has to be assumed to be dead.
 */
static unsigned long rtrs_clt_fence_by_time(struct rtrs_clt *clt, u32 id)
{
	unsigned long until = jiffies +
			      msecs_to_jiffies(READ_ONCE(clt->unfenced_ms));
	struct rtrs_clt_fence *fence;

	spin_lock_irq(&clt->park_lock);
	fence = rtrs_clt_find_fence(clt, id);
	if (fence && !fence->granted) {
		until = fence->until;
	} else if (fence) {
		fence->granted = false;
		fence->until = until;
	}
	spin_unlock_irq(&clt->park_lock);
	return until;
}

/*
 * A path is dead for good, if it wasn't known before: its requests may go on. Context:
 * any.
 */
static void rtrs_clt_fenced(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;
	unsigned long flags;

	spin_lock_irqsave(&clt->park_lock, flags);
	fence = rtrs_clt_find_fence(clt, id);
	if (fence) {
		list_del(&fence->entry);
		list_splice_tail(&fence->ios, &clt->parked);
	}
	spin_unlock_irqrestore(&clt->park_lock, flags);
	if (!fence)
		return;
	trace_rtrs_clt_fenced(clt->name, id, fence->granted);
	kfree(fence);
	rtrs_clt_resume(clt);
}

/* Asks the server; that has one question of a path at a time. */
static int rtrs_clt_ask_fence(struct rtrs_clt_path *path, u32 id)
{
	int ret;

	WRITE_ONCE(path->fence_asked, id);
	ret = rtrs_con_post_imm(&path->cons[0].con, rtrs_imm(RTRS_IMM_FENCE, id));
	if (ret)
		rtrs_clt_path_error(&path->path, ret, "asking for a fence");
	return ret;
}

/**
 * rtrs_clt_fence_answer() - the server says that a path is dead
 * @path: the path on which it says so
 * @id: the dead path
 *
 * Context: handler of the service connection's receives.
 * Return: false if it wasn't asked that.
 */
bool rtrs_clt_fence_answer(struct rtrs_clt_path *path, u32 id)
{
	if (!id || READ_ONCE(path->fence_asked) != id)
		return false;
	rtrs_clt_fenced(path->clt, id);
	WRITE_ONCE(path->fence_asked, 0);
	/* Last, as who waits for it asks for the next one. */
	smp_store_release(&path->fenced, id);
	wake_up_all(&path->wait);
	rtrs_clt_look_after_fences(path->clt);
	return true;
}

/* One of all, for a path that is being connected. */
static int rtrs_clt_fence_one(struct rtrs_clt_path *path,
			      const struct rtrs_clt_fence *fence)
{
	long left = msecs_to_jiffies(RTRS_CLT_CONNECT_MS);
	int ret;

	if (!fence->granted) {
		left = max(0L, (long)(fence->until - jiffies));
		wait_event_idle_timeout(path->wait, READ_ONCE(path->state) !=
					RTRS_CLT_CONNECTING, left);
		return READ_ONCE(path->state) == RTRS_CLT_CONNECTING ? 0 :
			-ECONNABORTED;
	}
	ret = rtrs_clt_ask_fence(path, fence->id);
	if (ret)
		return ret;
	if (!wait_event_idle_timeout(path->wait, READ_ONCE(path->fenced) ==
				     fence->id || READ_ONCE(path->state) !=
				     RTRS_CLT_CONNECTING, left))
		return -ETIMEDOUT;
	return READ_ONCE(path->fenced) == fence->id ? 0 : -ECONNABORTED;
}

/**
 * rtrs_clt_fence_over() - have all dead paths fenced over one that comes up
 * @path: the path, all but ready for requests
 *
 * Context: the path's work item.
 * Return: 0, -ETIMEDOUT if the server has something in hand that takes long, or
 * -ECONNABORTED.
 */
int rtrs_clt_fence_over(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_fence fence;
	int ret;

	while (rtrs_clt_any_fence(clt, &fence)) {
		if (fence.granted && !(path->features & RTRS_FEATURE_FENCE)) {
			rtrs_clt_fence_by_time(clt, fence.id);
			continue;
		}
		ret = rtrs_clt_fence_one(path, &fence);
		if (ret)
			return ret;
		rtrs_clt_fenced(clt, fence.id);
	}
	return 0;
}

/*
 * Sees to it that a path is being asked for over one that takes requests, unless all of
 * those wait for an answer already: one that doesn't come, as the server's disk takes
 * long, keeps no other question. -EOPNOTSUPP if there are some, but none that can do that.
 */
static int rtrs_clt_fence_over_any(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_path *path, *idle = NULL;
	int ret = 0;

	lockdep_assert_held(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		/* One in the array keeps its connections until it has left that. */
		if (!rtrs_clt_is_live(path) ||
		    READ_ONCE(path->state) != RTRS_CLT_CONNECTED)
			continue;
		/* They belong to one session, so to one server. */
		if (!(path->features & RTRS_FEATURE_FENCE))
			ret = -EOPNOTSUPP;
		else if (READ_ONCE(path->fence_asked) == id)
			return 0;
		else if (!READ_ONCE(path->fence_asked))
			idle = path;
	}
	/* If it fails, that path ends, and this is looked at again. */
	if (idle && !ret)
		rtrs_clt_ask_fence(idle, id);
	return ret;
}

/* A copy of a fence that has not been seen in this round, if there is one. */
static bool rtrs_clt_see_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
{
	struct rtrs_clt_fence *fence;
	bool found = false;

	spin_lock_irq(&clt->park_lock);
	list_for_each_entry(fence, &clt->fences, entry) {
		found = fence->seen != clt->fence_round;
		if (found) {
			fence->seen = clt->fence_round;
			*copy = *fence;
			break;
		}
	}
	spin_unlock_irq(&clt->park_lock);
	return found;
}

/* Waits for nothing: whatever may make a difference has it run again. */
static void rtrs_clt_fence_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, fence_work);
	struct rtrs_clt_fence fence;
	unsigned long next = 0;
	bool later = false;

	mutex_lock(&clt->lock);
	clt->fence_round++;
	while (rtrs_clt_see_fence(clt, &fence)) {
		if (fence.granted) {
			if (rtrs_clt_fence_over_any(clt, fence.id))
				fence.until = rtrs_clt_fence_by_time(clt, fence.id);
			else
				continue;
		}
		if (time_after_eq(jiffies, fence.until)) {
			rtrs_clt_fenced(clt, fence.id);
		} else if (!later || time_before(fence.until, next)) {
			later = true;
			next = fence.until;
		}
	}
	mutex_unlock(&clt->lock);
	/* Not if it is to run again at once. */
	if (later)
		queue_delayed_work(rtrs_clt_sess_wq, &clt->fence_work,
				   next - jiffies);
}

/**
 * rtrs_clt_failover_init() - prepare a session for the loss of paths
 * @clt: a new session
 */
void rtrs_clt_failover_init(struct rtrs_clt *clt)
{
	spin_lock_init(&clt->park_lock);
	INIT_LIST_HEAD(&clt->parked);
	INIT_LIST_HEAD(&clt->fences);
	INIT_DELAYED_WORK(&clt->resume_work, rtrs_clt_resume_work);
	INIT_DELAYED_WORK(&clt->fence_work, rtrs_clt_fence_work);
	INIT_DELAYED_WORK(&clt->limit_work, rtrs_clt_limit_work);
}

/**
 * rtrs_clt_failover_exit() - end all requests that wait
 * @clt: a session without paths; nothing is submitted to it any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_failover_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence, *next_fence;
	struct rtrs_clt_io *io, *next;

	/* Each may queue those behind it. */
	cancel_delayed_work_sync(&clt->fence_work);
	cancel_delayed_work_sync(&clt->limit_work);
	cancel_delayed_work_sync(&clt->resume_work);
	list_for_each_entry_safe(fence, next_fence, &clt->fences, entry) {
		list_splice(&fence->ios, &clt->parked);
		kfree(fence);
	}
	list_for_each_entry_safe(io, next, &clt->parked, entry)
		rtrs_clt_end_io(clt, io, -ECONNABORTED);
}
