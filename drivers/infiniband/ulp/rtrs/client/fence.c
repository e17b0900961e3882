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

/*
 * Wakes rtrs_clt_fence_via() after a fence has ended, or after its end has become a matter of time,
 * because the server can't confirm it.
 */
static void rtrs_clt_fence_changed(struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->failover.lock);
	WRITE_ONCE(clt->fences.nr_changes, clt->fences.nr_changes + 1);
	wake_up_all(&clt->wait);
}

/* Ends the fence of a path that is fenced now, and parks its requests. Any context. */
static void rtrs_clt_end_fence(struct rtrs_clt *clt, struct rtrs_clt_fence *fence)
{
	lockdep_assert_held(&clt->failover.lock);
	trace_rtrs_clt_fenced(clt->label, fence->id, fence->granted);
	list_del(&fence->entry);
	list_splice_tail(&fence->ios, &clt->failover.parked);
	kfree(fence);
	rtrs_clt_fence_changed(clt);
	rtrs_clt_resume(clt);
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
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_fence *fence;
	unsigned long flags;

	if (!id || READ_ONCE(path->fence.asked) != id)
		return false;
	spin_lock_irqsave(&clt->failover.lock, flags);
	fence = rtrs_clt_find_fence(clt, id);
	/* Another path may have been answered before. */
	if (fence)
		rtrs_clt_end_fence(clt, fence);
	spin_unlock_irqrestore(&clt->failover.lock, flags);
	WRITE_ONCE(path->fence.asked, 0);
	rtrs_clt_kick_fencing(clt);
	return true;
}

/**
 * rtrs_clt_may_fence_via() - check whether FENCE may be sent over a path
 * @path: path of the session, in any state
 * @fence: fence of a dead path
 *
 * A path that accepts requests keeps its connections until rtrs_clt_link_del() has removed it from
 * the array, under clt->lock. A path that is being connected keeps them during
 * rtrs_clt_fence_via(). It is used only for fences that rtrs_clt_fence_via() waits for, since each
 * path can have only one unanswered FENCE.
 *
 * Context: under clt->lock.
 * Return: true if the path can carry FENCE now.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_may_fence_via(struct rtrs_clt_path *path,
					     const struct rtrs_clt_fence *fence)
{
	enum rtrs_clt_state state = READ_ONCE(path->sm.state);

	if (path->fence.ready)
		return fence->failed && state == RTRS_CLT_CONNECTING;
	return rtrs_clt_is_live(path) && state == RTRS_CLT_CONNECTED;
}

/* Sends FENCE over a path. */
static void rtrs_clt_post_fence(struct rtrs_clt_path *path, u32 id)
{
	int err;

	WRITE_ONCE(path->fence.asked, id);
	err = rtrs_con_post_imm(&path->cons[0].con, rtrs_imm(RTRS_IMM_FENCE, id));
	/* The end of the path queues the work item again. */
	if (err)
		rtrs_clt_path_error(&path->path, err, "sending FENCE");
}

/*
 * Sends FENCE over one path that accepts requests, and over each path that is being connected and
 * waits for the fence, as any of these may die. Paths with an unanswered FENCE are left out. So if
 * a request is stuck on the server's disk, the late answer delays no FENCE over another path.
 * Returns false if there are paths, but none can fence the dead one.
 */
static bool rtrs_clt_send_fence(struct rtrs_clt *clt, const struct rtrs_clt_fence *fence)
{
	bool able = false, unable = false, sent = false;
	struct rtrs_clt_path *path, *idle = NULL;
	u32 asked;

	lockdep_assert_held(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		if (!rtrs_clt_may_fence_via(path, fence))
			continue;
		if (!rtrs_clt_can_fence(path, fence)) {
			unable = true;
			continue;
		}
		able = true;
		asked = READ_ONCE(path->fence.asked);
		sent |= asked == fence->id;
		if (!asked && path->fence.ready)
			rtrs_clt_post_fence(path, fence->id);
		else if (!asked)
			idle = path;
	}
	if (idle && !sent)
		rtrs_clt_post_fence(idle, fence->id);
	return able || !unable;
}

/* Never waits: each event that may change the outcome queues the work item again. */
static void rtrs_clt_fence_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(to_delayed_work(work),
					    struct rtrs_clt, fences.work);
	struct rtrs_clt_fence *fence, *tmp;
	u64 now, next = U64_MAX;

	mutex_lock(&clt->lock);
	spin_lock_irq(&clt->failover.lock);
	now = get_jiffies_64();
	list_for_each_entry_safe(fence, tmp, &clt->fences.list, entry) {
		if (fence->granted && rtrs_clt_send_fence(clt, fence))
			continue;
		if (fence->granted) {
			fence->granted = false;
			rtrs_clt_fence_changed(clt);
		}
		if (time_after_eq64(now, fence->until))
			rtrs_clt_end_fence(clt, fence);
		else
			next = min(next, fence->until);
	}
	spin_unlock_irq(&clt->failover.lock);
	mutex_unlock(&clt->lock);
	/* Doesn't delay the work item if it is already queued to run at once. */
	if (next != U64_MAX)
		queue_delayed_work(rtrs_clt_sess_wq, &clt->fences.work, next - now);
}

/*
 * Returns true if the first path must wait for a fence. @left is set to the jiffies within which
 * the next fence should end.
 */
static bool rtrs_clt_any_failed_fence(struct rtrs_clt *clt, long *left)
{
	u64 now = get_jiffies_64(), until = now;
	struct rtrs_clt_fence *fence;
	bool found = false;

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry(fence, &clt->fences.list, entry) {
		if (!fence->failed)
			continue;
		found = true;
		if (!fence->granted)
			until = max(until, fence->until);
	}
	spin_unlock_irq(&clt->failover.lock);
	*left = until - now + msecs_to_jiffies(RTRS_CLT_CONNECT_MS);
	return found;
}

/* Allows or forbids the work item to send FENCE over a path that is being connected. */
static void rtrs_clt_fence_set_ready(struct rtrs_clt_path *path, bool ready)
{
	mutex_lock(&path->clt->lock);
	path->fence.ready = ready;
	mutex_unlock(&path->clt->lock);
}

/**
 * rtrs_clt_fence_via() - fence dead paths with failed requests over a path that is being connected
 * @path: path that has received INFO_RSP, and accepts no requests yet
 *
 * The work item sends FENCE over the path meanwhile. Each fence that ends restarts the time limit:
 * RTRS_CLT_CONNECT_MS, after &rtrs_clt_fence.until of fences that the server can't end.
 *
 * Context: the path's connect_work.
 * Return: 0; -EINPROGRESS if no fence has ended in time, usually because a request of a dead path
 * is stuck on the server's disk; or the path's error if it has ended meanwhile.
 */
int rtrs_clt_fence_via(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	unsigned int seen;
	int ret = 0;
	long left;

	rtrs_clt_fence_set_ready(path, true);
	rtrs_clt_kick_fencing(clt);
	while (!ret) {
		/* Changes after this point end the wait below. */
		seen = READ_ONCE(clt->fences.nr_changes);
		if (!rtrs_clt_any_failed_fence(clt, &left))
			break;
		left = wait_event_idle_timeout(clt->wait,
					       READ_ONCE(clt->fences.nr_changes) != seen ||
					       rtrs_clt_path_failed(path), left);
		ret = rtrs_clt_path_failed(path);
		if (!ret && !left)
			ret = -EINPROGRESS;
	}
	rtrs_clt_fence_set_ready(path, false);
	return ret;
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

	spin_lock_irq(&clt->failover.lock);
	list_for_each_entry_safe(fence, next, &clt->fences.list, entry) {
		list_del(&fence->entry);
		list_splice(&fence->ios, &clt->failover.parked);
		kfree(fence);
	}
	spin_unlock_irq(&clt->failover.lock);
	/* Without paths and fences, nothing queues the work item any more. */
	cancel_delayed_work_sync(&clt->fences.work);
}
