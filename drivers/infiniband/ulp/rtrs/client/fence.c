// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fences: what dead paths have left behind.
 *
 * Requests of a dead path stay with its struct rtrs_clt_fence until the server has
 * said, over another path, that nothing which was sent on the dead one has any effect
 * any more. Until then a repeat could be done and acknowledged, the block be written
 * again, and the first copy, held up somewhere, overwrite that. A server that can't
 * tell is given some time instead. After that they are parked, see failover.c.
 *
 * Requests may fail meanwhile, but the fences stay: after a failed write, too, the block
 * may be written again. So the first path that comes up has them settled before it takes
 * requests, see rtrs_clt_link_add().
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/**
 * rtrs_clt_kick_fencing() - something may have changed for dead paths
 * @clt: the session
 *
 * A path came up or ended, or one has no question open any more.
 *
 * Context: any.
 */
void rtrs_clt_kick_fencing(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, 0);
}

/**
 * rtrs_clt_unfenced() - are there dead paths that may still have an effect?
 * @clt: the session
 */
bool rtrs_clt_unfenced(struct rtrs_clt *clt)
{
	return !list_empty_careful(&clt->fences.list);
}

static void rtrs_clt_leave_fence(struct rtrs_clt_path *path,
				 struct rtrs_clt_fence *fence,
				 struct list_head *ios)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_io *io;

	list_for_each_entry(io, ios, priv.entry) {
		trace_rtrs_clt_failover(path->path.name, io->slot, 0);
		io->priv.path = NULL;
		if (!io->priv.path_failures++)
			io->priv.first_failure = jiffies;
		path->stats.failed_over++;
	}
	fence->granted = path->neg.features & RTRS_FEATURE_FENCE;
	fence->sess_id = path->neg.sess_id;
	uuid_copy(&fence->srv_uuid, &path->neg.srv_uuid);
	fence->until = jiffies + msecs_to_jiffies(READ_ONCE(clt->fences.unfenced_ms));
	list_splice(ios, &fence->ios);
	spin_lock_irq(&clt->failover.lock);
	list_add_tail(&fence->entry, &clt->fences.list);
	spin_unlock_irq(&clt->failover.lock);
}

/**
 * rtrs_clt_failover_path() - take over what a dead path leaves behind
 * @path: the path, drained, and out of the array
 * @ios: requests that were on it
 *
 * If it had no requests in flight, there is nothing to be fenced.
 *
 * Context: the path's work item.
 */
void rtrs_clt_failover_path(struct rtrs_clt_path *path, struct list_head *ios)
{
	struct rtrs_clt_fence *fence = path->fence.own;

	path->fence.own = NULL;
	if (list_empty(ios))
		kfree(fence);
	else
		rtrs_clt_leave_fence(path, fence, ios);
	/* Fences that were requested over this path are requested over another one. */
	if (rtrs_clt_unfenced(path->clt))
		rtrs_clt_kick_fencing(path->clt);
}

static bool rtrs_clt_fence_due(const struct rtrs_clt_fence *fence)
{
	return fence->granted || time_after_eq(jiffies, fence->until);
}

/* A copy of a fence, if there is one: of one that needn't wait, if there is. */
static bool rtrs_clt_any_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
{
	struct rtrs_clt_fence *fence, *found = NULL;

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry)
		if (!found || (!rtrs_clt_fence_due(found) &&
			       (rtrs_clt_fence_due(fence) ||
				time_before(fence->until, found->until))))
			found = fence;
	if (found)
		*copy = *found;
	spin_unlock_irq(&clt->failover.lock);
	return found;
}

static struct rtrs_clt_fence *rtrs_clt_find_fence(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;

	lockdep_assert_held(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry)
		if (fence->id == id)
			return fence;
	return NULL;
}

/**
 * rtrs_clt_can_fence() - can the server fence a dead path, asked over this one?
 * @path: the path, connected
 * @fence: what the dead path has left behind
 *
 * The server answers for any path that it doesn't know. So it has to be the one that
 * knew the dead path: another one that was started in its place, or has taken over its
 * address, can't tell what the first one may still do. The same session is on the same
 * server; and a server with a UUID has ended all older sessions of ours, with all that
 * came in there, before it lets a path of a new one get here.
 *
 * Return: false if the dead path is assumed to be dead when its time has come.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_can_fence(const struct rtrs_clt_path *path,
					 const struct rtrs_clt_fence *fence)
{
	if (!fence->granted || !(path->neg.features & RTRS_FEATURE_FENCE))
		return false;
	return path->neg.sess_id == fence->sess_id ||
	       (!uuid_is_null(&fence->srv_uuid) &&
		uuid_equal(&path->neg.srv_uuid, &fence->srv_uuid));
}

/*
 * The server can't tell any more. What the path has left behind gets the time that it
 * would have had without the server's help, counted from the path's end.
 */
static void rtrs_clt_fence_by_time(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;

	spin_lock_irq(&clt->failover.lock);
	fence = rtrs_clt_find_fence(clt, id);
	if (fence)
		fence->granted = false;
	spin_unlock_irq(&clt->failover.lock);
}

/*
 * A path is dead for good, if it wasn't known before: its requests may go on. Context:
 * any.
 */
static void rtrs_clt_fenced(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;
	unsigned long flags;

	spin_lock_irqsave(&clt->failover.lock, flags);
	fence = rtrs_clt_find_fence(clt, id);
	if (fence) {
		list_del(&fence->entry);
		list_splice_tail(&fence->ios, &clt->failover.parked);
	}
	spin_unlock_irqrestore(&clt->failover.lock, flags);
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

	WRITE_ONCE(path->fence.asked, id);
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
	if (!id || READ_ONCE(path->fence.asked) != id)
		return false;
	rtrs_clt_fenced(path->clt, id);
	WRITE_ONCE(path->fence.asked, 0);
	/* Last: the waiter asks for the next one. */
	smp_store_release(&path->fence.done, id);
	wake_up_all(&path->sm.wait);
	rtrs_clt_kick_fencing(path->clt);
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
		wait_event_idle_timeout(path->sm.wait, READ_ONCE(path->sm.state) !=
					RTRS_CLT_CONNECTING, left);
		return READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTING ? 0 :
			-ECONNABORTED;
	}
	ret = rtrs_clt_ask_fence(path, fence->id);
	if (ret)
		return ret;
	if (!wait_event_idle_timeout(path->sm.wait, READ_ONCE(path->fence.done) ==
				     fence->id || READ_ONCE(path->sm.state) !=
				     RTRS_CLT_CONNECTING, left))
		return -ETIMEDOUT;
	return READ_ONCE(path->fence.done) == fence->id ? 0 : -ECONNABORTED;
}

/**
 * rtrs_clt_fence_via() - have all dead paths fenced over one that comes up
 * @path: the path, all but ready for requests
 *
 * Context: the path's work item.
 * Return: 0, -ETIMEDOUT if a request takes the server long, or
 * -ECONNABORTED.
 */
int rtrs_clt_fence_via(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_fence fence;
	int ret;

	while (rtrs_clt_any_fence(clt, &fence)) {
		if (fence.granted && !rtrs_clt_can_fence(path, &fence)) {
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
static int rtrs_clt_fence_via_any(struct rtrs_clt *clt,
				  const struct rtrs_clt_fence *fence)
{
	struct rtrs_clt_path *path, *idle = NULL;
	int ret = 0;

	lockdep_assert_held(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		/* One in the array keeps its connections until it has left that. */
		if (!rtrs_clt_is_live(path) ||
		    READ_ONCE(path->sm.state) != RTRS_CLT_CONNECTED)
			continue;
		/* They belong to one session, so to one server. */
		if (!rtrs_clt_can_fence(path, fence))
			ret = -EOPNOTSUPP;
		else if (READ_ONCE(path->fence.asked) == fence->id)
			return 0;
		else if (!READ_ONCE(path->fence.asked))
			idle = path;
	}
	/* If it fails, that path ends, and this is looked at again. */
	if (idle && !ret)
		rtrs_clt_ask_fence(idle, fence->id);
	return ret;
}

/* A copy of a fence that has not been seen in this round, if there is one. */
static bool rtrs_clt_see_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
{
	struct rtrs_clt_fence *fence;
	bool found = false;

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry) {
		found = fence->seen != clt->fences.round;
		if (found) {
			fence->seen = clt->fences.round;
			*copy = *fence;
			break;
		}
	}
	spin_unlock_irq(&clt->failover.lock);
	return found;
}

/* Waits for nothing: whatever may make a difference has it run again. */
static void rtrs_clt_fence_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, fences.work);
	struct rtrs_clt_fence fence;
	unsigned long next = 0;
	bool later = false;

	mutex_lock(&clt->lock);
	clt->fences.round++;
	while (rtrs_clt_see_fence(clt, &fence)) {
		if (fence.granted) {
			if (!rtrs_clt_fence_via_any(clt, &fence))
				continue;
			rtrs_clt_fence_by_time(clt, fence.id);
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
		queue_delayed_work(rtrs_clt_sess_wq, &clt->fences.work,
				   next - jiffies);
}

/**
 * rtrs_clt_fence_init() - prepare a session for fencing its dead paths
 * @clt: a new session
 */
void rtrs_clt_fence_init(struct rtrs_clt *clt)
{
	INIT_LIST_HEAD(&clt->fences.list);
	INIT_DELAYED_WORK(&clt->fences.work, rtrs_clt_fence_work);
}

/**
 * rtrs_clt_fence_exit() - drop all fences; requests that wait for them are parked
 * @clt: a session without paths; nothing is submitted to it any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_fence_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence, *next;

	/* The works of failover.c walk over the fences. */
	cancel_delayed_work_sync(&clt->fences.work);
	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry_safe(fence, next, &clt->fences.list, entry) {
		list_del(&fence->entry);
		list_splice(&fence->ios, &clt->failover.parked);
		kfree(fence);
	}
	spin_unlock_irq(&clt->failover.lock);
}
