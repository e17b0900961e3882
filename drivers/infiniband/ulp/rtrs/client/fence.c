// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fencing of dead paths.
 *
 * The requests of a dead path stay with its struct rtrs_clt_fence until the server has confirmed,
 * over another path, that nothing sent on the dead path can take effect any more. Without this,
 * data could be lost: a write is sent again and acknowledged, the block is written once more, and
 * then the first, delayed copy of the write overwrites it. If the server can't fence, a delay
 * replaces its confirmation. After that the requests are parked, see failover.c.
 *
 * Requests may fail while they wait, but their fences stay, since a block may also be written again
 * after a failed write. So the first path to be connected accepts no requests until the fences of
 * failed writes are gone, see rtrs_clt_link_add(). It doesn't wait for other fences: a request that
 * is stuck on the server's disk delays only the requests of its own path.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "clt.h"
#include "trace.h"

/**
 * rtrs_clt_kick_fencing() - run the work item that fences dead paths
 * @clt: session in which a path was connected or has ended, or FENCED was received
 *
 * Context: any.
 */
void rtrs_clt_kick_fencing(struct rtrs_clt *clt)
{
	mod_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, 0);
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
			io->priv.first_failure = get_jiffies_64();
		path->stats.failed_over++;
	}
	fence->granted = path->path.features & RTRS_FEATURE_FENCE;
	fence->sess_id = path->neg.sess_id;
	uuid_copy(&fence->srv_uuid, &path->neg.srv_uuid);
	fence->until = get_jiffies_64() + msecs_to_jiffies(READ_ONCE(clt->fences.unfenced_ms));
	list_splice(ios, &fence->ios);
	spin_lock_irq(&clt->failover.lock);
	/*
	 * The newest fence comes first, because an older one may be stuck, and each path can have
	 * only one unanswered FENCE.
	 */
	list_add(&fence->entry, &clt->fences.list);
	spin_unlock_irq(&clt->failover.lock);
}

/**
 * rtrs_clt_failover_path() - start to fence a dead path
 * @path: path that is drained and accepts no requests any more
 * @ios: requests that were on the path; if there are none, it need not be fenced
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
	/* FENCEs sent over this path must be sent over another one. */
	if (!list_empty_careful(&path->clt->fences.list))
		rtrs_clt_kick_fencing(path->clt);
}

static bool rtrs_clt_fence_due(const struct rtrs_clt_fence *fence)
{
	return fence->granted || time_after_eq64(get_jiffies_64(), fence->until);
}

/*
 * Copies the next fence that the first path must wait for; if possible, one that needs no delay.
 * Returns false if there is none.
 */
static bool rtrs_clt_failed_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *copy)
{
	struct rtrs_clt_fence *fence, *found = NULL;

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry)
		if (fence->failed &&
		    (!found || (!rtrs_clt_fence_due(found) &&
				(rtrs_clt_fence_due(fence) || fence->until < found->until))))
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
 * rtrs_clt_can_fence() - check whether a dead path can be fenced over another path
 * @path: path that is connected
 * @fence: fence of the dead path
 *
 * A server confirms a FENCE for any path that it doesn't know. So FENCE must go to the server to
 * which the dead path was connected: a restarted server, or another one at the same address, can't
 * exclude late effects of the dead path. Equal session IDs identify the same server. Equal server
 * UUIDs are also sufficient: before such a server sends INFO_RSP in a new session, it has ended all
 * older sessions of this client, including the requests received there.
 *
 * Return: false if the fence can only end at rtrs_clt_fence.until.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_can_fence(const struct rtrs_clt_path *path,
					 const struct rtrs_clt_fence *fence)
{
	if (!fence->granted || !(path->path.features & RTRS_FEATURE_FENCE))
		return false;
	if (!uuid_is_null(&fence->srv_uuid) && !uuid_is_null(&path->neg.srv_uuid))
		return uuid_equal(&path->neg.srv_uuid, &fence->srv_uuid);
	return path->neg.sess_id == fence->sess_id;
}

/* Makes a fence end at rtrs_clt_fence.until, as the server can't fence the path any more. */
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
 * Parks the requests of a path that is fenced now. Does nothing if there is no such fence. Any
 * context.
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
	trace_rtrs_clt_fenced(clt->label, id, fence->granted);
	kfree(fence);
	rtrs_clt_resume(clt);
}

/* Sends FENCE. Each path can have only one unanswered FENCE. */
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
 * @path: path on which it was received
 * @id: its payload, the ID of the dead path
 *
 * Context: completion handler of the service connection's receives.
 * Return: false if no FENCE for that path is unanswered.
 */
bool rtrs_clt_fence_answer(struct rtrs_clt_path *path, u32 id)
{
	if (!id || READ_ONCE(path->fence.asked) != id)
		return false;
	rtrs_clt_fenced(path->clt, id);
	WRITE_ONCE(path->fence.asked, 0);
	/* Last, because the waiter sends the next FENCE. */
	smp_store_release(&path->fence.done, id);
	wake_up_all(&path->sm.wait);
	rtrs_clt_kick_fencing(path->clt);
	return true;
}

/* Fences one dead path over a path that is being connected, and waits until this is done. */
static int rtrs_clt_fence_one(struct rtrs_clt_path *path,
			      const struct rtrs_clt_fence *fence)
{
	long left = msecs_to_jiffies(RTRS_CLT_CONNECT_MS);
	u64 now = get_jiffies_64();
	int ret;

	if (!fence->granted) {
		left = max(fence->until, now) - now;
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
		return -EINPROGRESS;
	return READ_ONCE(path->fence.done) == fence->id ? 0 : -ECONNABORTED;
}

/**
 * rtrs_clt_fence_via() - fence dead paths with failed requests over a path that is being connected
 * @path: path that has received INFO_RSP, and accepts no requests yet
 *
 * Context: the path's connect_work.
 * Return: 0; -EINPROGRESS if FENCED isn't received in time, usually because a request of the dead
 * path is stuck on the server's disk; -ECONNABORTED if @path has ended meanwhile; or an errno of
 * ib_post_send().
 */
int rtrs_clt_fence_via(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_fence fence;
	int ret;

	while (rtrs_clt_failed_fence(clt, &fence)) {
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
 * Sends FENCE over a path that accepts requests, unless it has been sent, or each path has an
 * unanswered FENCE. A late answer, because a request is stuck on the server's disk, thus delays no
 * FENCE over another path. Returns -EOPNOTSUPP if there are paths, but none can fence the dead one.
 */
static int rtrs_clt_fence_via_any(struct rtrs_clt *clt,
				  const struct rtrs_clt_fence *fence)
{
	struct rtrs_clt_path *path, *idle = NULL;
	int ret = 0;

	lockdep_assert_held(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		/* A path in the array keeps its connections until it is removed. */
		if (!rtrs_clt_is_live(path) ||
		    READ_ONCE(path->sm.state) != RTRS_CLT_CONNECTED)
			continue;
		/* All paths belong to one session, so to one server. */
		if (!rtrs_clt_can_fence(path, fence))
			ret = -EOPNOTSUPP;
		else if (READ_ONCE(path->fence.asked) == fence->id)
			return 0;
		else if (!READ_ONCE(path->fence.asked))
			idle = path;
	}
	/* On failure that path ends, which queues this work item again. */
	if (idle && !ret)
		rtrs_clt_ask_fence(idle, fence->id);
	return ret;
}

/* Copies a fence that has not been seen in this round. Returns false if there is none. */
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

/* Never waits: each event that may change the outcome queues the work item again. */
static void rtrs_clt_fence_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, fences.work);
	struct rtrs_clt_fence fence;
	u64 now, next = U64_MAX;

	mutex_lock(&clt->lock);
	clt->fences.round++;
	while (rtrs_clt_next_fence(clt, &fence)) {
		if (fence.granted) {
			if (!rtrs_clt_fence_via_any(clt, &fence))
				continue;
			rtrs_clt_fence_by_time(clt, fence.id);
		}
		if (time_after_eq64(get_jiffies_64(), fence.until))
			rtrs_clt_fenced(clt, fence.id);
		else
			next = min(next, fence.until);
	}
	mutex_unlock(&clt->lock);
	now = get_jiffies_64();
	/* Doesn't delay the work item if it is already queued to run at once. */
	if (next != U64_MAX)
		queue_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, max(next, now) - now);
}

/**
 * rtrs_clt_fence_init() - initialize the fields used by fence.c
 * @clt: a new session
 */
void rtrs_clt_fence_init(struct rtrs_clt *clt)
{
	INIT_LIST_HEAD(&clt->fences.list);
	INIT_DELAYED_WORK(&clt->fences.work, rtrs_clt_fence_work);
}

/**
 * rtrs_clt_fence_exit() - drop all fences, and park the requests that wait for them
 * @clt: session without paths, to which nothing is submitted any more
 *
 * Context: process, may sleep.
 */
void rtrs_clt_fence_exit(struct rtrs_clt *clt)
{
	struct rtrs_clt_fence *fence, *next;

	/* Work items of failover.c may be iterating over the fences. */
	cancel_delayed_work_sync(&clt->fences.work);
	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry_safe(fence, next, &clt->fences.list, entry) {
		list_del(&fence->entry);
		list_splice(&fence->ios, &clt->failover.parked);
		kfree(fence);
	}
	spin_unlock_irq(&clt->failover.lock);
}
