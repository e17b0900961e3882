// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fencing of dead paths.
 *
 * Requests of a dead path stay with its struct rtrs_clt_fence until the server has
 * answered, over another path, that nothing that was sent on the dead one can have an
 * effect any more. Sent again before that, a write could be acknowledged, the block be
 * written once more, and the first copy, held up somewhere, overwrite that. If the server
 * can't fence, a delay takes the place of its answer. Then the requests are parked, see
 * failover.c.
 *
 * Requests may fail meanwhile, but the fences stay, since the block may be written again
 * after a failed write, too. So the first path that is connected takes no requests before
 * all fences are gone, see rtrs_clt_link_add().
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/**
 * rtrs_clt_kick_fencing() - run the work item that fences dead paths
 * @clt: session in which a path was connected or has ended, or a FENCE was answered
 *
 * Context: any.
 */
void rtrs_clt_kick_fencing(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, 0);
}

/**
 * rtrs_clt_unfenced() - are there dead paths that aren't fenced?
 * @clt: session of the paths
 *
 * Context: any.
 * Return: true if there are.
 */
bool rtrs_clt_unfenced(struct rtrs_clt *clt)
{
	return !list_empty_careful(&clt->fences.list);
}

static void rtrs_clt_add_fence(struct rtrs_clt_path *path,
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
 * rtrs_clt_failover_path() - begin to fence a dead path
 * @path: path that is drained and takes no requests any more
 * @ios: requests that were on it; if there are none, it need not be fenced
 *
 * Context: the path's end_work.
 */
void rtrs_clt_failover_path(struct rtrs_clt_path *path, struct list_head *ios)
{
	struct rtrs_clt_fence *fence = path->fence.own;

	path->fence.own = NULL;
	if (list_empty(ios))
		kfree(fence);
	else
		rtrs_clt_add_fence(path, fence, ios);
	/* Fences that were requested over this path are requested over another one. */
	if (rtrs_clt_unfenced(path->clt))
		rtrs_clt_kick_fencing(path->clt);
}

static bool rtrs_clt_fence_due(const struct rtrs_clt_fence *fence)
{
	return fence->granted || time_after_eq(jiffies, fence->until);
}

/* Copies the fence to settle next, one that isn't delayed if possible; false if none. */
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
 * rtrs_clt_can_fence() - can a dead path be fenced over another path?
 * @path: path that is connected
 * @fence: fence of the dead path
 *
 * The server answers for any path that it doesn't know. So it has to be the one that
 * knew the dead path: another one that was started in its place, or has taken over its
 * address, can't tell what the first one may still do. The same session is on the same
 * server; and a server with a UUID has ended all older sessions of ours, with all that
 * came in there, before it lets a path of a new one get here.
 *
 * Return: false if only rtrs_clt_fence.until can end the fence.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_can_fence(const struct rtrs_clt_path *path,
					 const struct rtrs_clt_fence *fence)
{
	if (!fence->granted || !(path->neg.features & RTRS_FEATURE_FENCE))
		return false;
	if (!uuid_is_null(&fence->srv_uuid) && !uuid_is_null(&path->neg.srv_uuid))
		return uuid_equal(&path->neg.srv_uuid, &fence->srv_uuid);
	return path->neg.sess_id == fence->sess_id;
}

/* The server can't fence the path any more: the delay, counted from its end, has to do. */
static void rtrs_clt_fence_by_time(struct rtrs_clt *clt, u32 id)
{
	struct rtrs_clt_fence *fence;

	spin_lock_irq(&clt->failover.lock);
	fence = rtrs_clt_find_fence(clt, id);
	if (fence)
		fence->granted = false;
	spin_unlock_irq(&clt->failover.lock);
}

/* A path is fenced: parks its requests. Nothing is done if it has no fence. Any context. */
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
	trace_rtrs_clt_fenced(clt->label, id, fence->granted);
	kfree(fence);
	rtrs_clt_resume(clt);
}

/* Sends FENCE; on a path, one at a time may be unanswered. */
static int rtrs_clt_ask_fence(struct rtrs_clt_path *path, u32 id)
{
	int ret;

	WRITE_ONCE(path->fence.asked, id);
	ret = rtrs_con_post_imm(&path->cons[0].con, rtrs_imm(RTRS_IMM_FENCE, id));
	if (ret)
		rtrs_clt_path_error(&path->path, ret, "sending FENCE");
	return ret;
}

/**
 * rtrs_clt_fence_answer() - handle FENCED
 * @path: path on which it came
 * @id: its payload, the ID of the dead path
 *
 * Context: handler of the service connection's receives.
 * Return: false if the server was not asked to fence that path.
 */
bool rtrs_clt_fence_answer(struct rtrs_clt_path *path, u32 id)
{
	if (!id || READ_ONCE(path->fence.asked) != id)
		return false;
	rtrs_clt_fenced(path->clt, id);
	WRITE_ONCE(path->fence.asked, 0);
	/* Last: the waiter sends the next FENCE. */
	smp_store_release(&path->fence.done, id);
	wake_up_all(&path->sm.wait);
	rtrs_clt_kick_fencing(path->clt);
	return true;
}

/* Waits until one dead path is fenced, over a path that is being connected. */
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
 * rtrs_clt_fence_via() - fence all dead paths over one that is being connected
 * @path: path that has its INFO_RSP, and takes no requests yet
 *
 * Context: the path's connect_work.
 * Return: 0; -ETIMEDOUT if FENCED doesn't come, as the server's disk holds a request;
 * or -ECONNABORTED if @path has ended meanwhile.
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
 * Sends FENCE over a path that takes requests, unless it has been sent, or all paths wait
 * for an answer: one that is late, as the server's disk holds a request, delays no FENCE
 * over another path. -EOPNOTSUPP if there are paths, but none that can fence this one.
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

/* Copies a fence that has not been seen in this round; false if there is none. */
static bool rtrs_clt_next_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
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

/* Doesn't wait: each event that may change the outcome queues it again. */
static void rtrs_clt_fence_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, fences.work);
	struct rtrs_clt_fence fence;
	unsigned long next = 0;
	bool later = false;

	mutex_lock(&clt->lock);
	clt->fences.round++;
	while (rtrs_clt_next_fence(clt, &fence)) {
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
 * rtrs_clt_fence_init() - initialize the members of fence.c
 * @clt: a new session
 */
void rtrs_clt_fence_init(struct rtrs_clt *clt)
{
	INIT_LIST_HEAD(&clt->fences.list);
	INIT_DELAYED_WORK(&clt->fences.work, rtrs_clt_fence_work);
}

/**
 * rtrs_clt_fence_exit() - drop all fences; requests that wait for them are parked
 * @clt: session without paths, and to which nothing is submitted any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_fence_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence, *next;

	/* Work items of failover.c may be walking over the fences. */
	cancel_delayed_work_sync(&clt->fences.work);
	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry_safe(fence, next, &clt->fences.list, entry) {
		list_del(&fence->entry);
		list_splice(&fence->ios, &clt->failover.parked);
		kfree(fence);
	}
	spin_unlock_irq(&clt->failover.lock);
}
