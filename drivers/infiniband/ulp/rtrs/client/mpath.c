// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which path a request takes.
 *
 * The connected paths of a session stand in an array that is replaced, never
 * changed. A request looks at it under RCU; once it has been replaced and a
 * grace period is over, no request can be on its way to a path that left.
 */
#include <linux/slab.h>

#include "clt.h"

static unsigned int rtrs_clt_cost(const struct rtrs_clt_path *path,
				  enum rtrs_clt_policy policy,
				  unsigned int queue)
{
	u64 latency;

	if (policy == RTRS_CLT_MI)
		return atomic_read(&path->cons[queue + 1].inflight);
	/* What has not been measured yet may be anything. */
	latency = READ_ONCE(path->path.hb_latency);
	return latency ? min_t(u64, latency, UINT_MAX) : UINT_MAX;
}

/**
 * rtrs_clt_pick_path() - the path that a request takes
 * @clt: the session
 * @live: paths that take requests
 * @queue: the request's queue
 *
 * Nothing is written that other CPUs share: each goes round on its own, and what is in
 * flight is counted for each queue, as are what it costs to send and to be answered.
 * Of equally good paths each has its turn.
 *
 * Context: RCU read side, which also keeps the path in order for requests.
 * Return: the path.
 */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt,
					 const struct rtrs_clt_live *live,
					 unsigned int queue)
{
	enum rtrs_clt_policy policy = READ_ONCE(clt->policy);
	unsigned int i, cost, least = UINT_MAX;
	struct rtrs_clt_path *path, *best;
	unsigned int turn;

	if (live->nr == 1)
		return live->path[0];
	turn = this_cpu_inc_return(*clt->turn) % live->nr;
	best = live->path[turn];
	if (policy == RTRS_CLT_RR)
		return best;
	for (i = 0; i < live->nr; i++) {
		path = live->path[turn];
		cost = rtrs_clt_cost(path, policy, queue);
		if (cost < least) {
			least = cost;
			best = path;
		}
		if (++turn == live->nr)
			turn = 0;
	}
	return best;
}

/**
 * rtrs_clt_live_replace() - replace the array of paths that take requests
 * @clt: the session
 * @add: path to add, or NULL
 * @del: path to leave out, which is in the array, or NULL
 *
 * Context: process, under clt->lock.
 * Return: 0, or -ENOMEM, never without @add.
 */
int rtrs_clt_live_replace(struct rtrs_clt *clt, struct rtrs_clt_path *add,
			  struct rtrs_clt_path *del)
{
	/* Those who wait for a path's end may be short of memory for it. */
	gfp_t gfp = del ? GFP_NOIO | __GFP_NOFAIL : GFP_KERNEL;
	struct rtrs_clt_live *old, *new = NULL;
	unsigned int i, nr, room;

	old = rcu_dereference_protected(clt->live, lockdep_is_held(&clt->lock));
	nr = old ? old->nr : 0;
	room = nr + !!add - !!del;
	if (room) {
		new = kzalloc(struct_size(new, path, room), gfp);
		if (!new)
			return -ENOMEM;
		for (i = 0; i < nr; i++)
			if (old->path[i] != del)
				new->path[new->nr++] = old->path[i];
		if (add)
			new->path[new->nr++] = add;
	}
	rcu_assign_pointer(clt->live, new);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

/**
 * rtrs_clt_is_live() - may a path take requests?
 * @path: the path
 *
 * Context: process, under clt->lock.
 */
bool rtrs_clt_is_live(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_live *live;
	unsigned int i;

	live = rcu_dereference_protected(clt->live, lockdep_is_held(&clt->lock));
	for (i = 0; live && i < live->nr; i++)
		if (live->path[i] == path)
			return true;
	return false;
}

/* The upper layer hears of each change before the next one can have an effect. */
static void rtrs_clt_set_link(struct rtrs_clt *clt, enum rtrs_link_event ev)
{
	lockdep_assert_held(&clt->lock);
	clt->link = ev;
	queue_work(rtrs_clt_sess_wq, &clt->link_work);
}

/**
 * rtrs_clt_link_work() - tell the upper layer what became of the session
 * @work: in the session
 */
void rtrs_clt_link_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(work, struct rtrs_clt, link_work);
	enum rtrs_link_event ev;

	mutex_lock(&clt->lock);
	while (clt->opened && clt->told != clt->link) {
		ev = clt->link;
		clt->telling = true;
		mutex_unlock(&clt->lock);
		clt->link_event(clt->priv, ev);
		mutex_lock(&clt->lock);
		clt->telling = false;
		clt->told = ev;
	}
	mutex_unlock(&clt->lock);
}

/**
 * rtrs_clt_same_session() - does a path lead to the session that the others are in?
 * @path: the path, connected
 *
 * A server that was started anew makes another session. Those with fencing give each an
 * id. Others may have made it for this path, if need be: then it can't be known to be the
 * one of those that have come up meanwhile, though by rtrs_clt_accepted() there are none
 * unless something took longer than a turn. The path's next try asks for theirs.
 *
 * Context: under clt->lock; the session has paths.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_same_session(const struct rtrs_clt_path *path)
{
	if (path->sess_id || path->clt->sess_id)
		return path->sess_id == path->clt->sess_id;
	return !path->founds;
}

/*
 * Whether nothing stands against requests on a new path: -EAGAIN if something does
 * that is to be waited for.
 */
static int rtrs_clt_may_go_live(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	lockdep_assert_held(&clt->lock);
	if (clt->nr_up) {
		/* The others' session may be one that the server has lost, so they end. */
		if (!rtrs_clt_same_session(path))
			return -ESTALE;
	} else if (clt->opened && (clt->telling || clt->told != clt->link)) {
		return -EAGAIN;
	} else if (rtrs_clt_unfenced(clt)) {
		return -EAGAIN;
	}
	return rtrs_clt_check_limits(path);
}

/* What requests need is there; the first path begins a session with the server. */
static int rtrs_clt_try_live(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	mutex_lock(&clt->lock);
	ret = rtrs_clt_may_go_live(path);
	if (ret)
		goto unlock;
	/* From here on an error takes it down again, in the work item that we are in. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_UP, 0)) {
		ret = -ECONNABORTED;
		goto unlock;
	}
	ret = rtrs_clt_live_replace(clt, path, NULL);
	if (ret)
		goto unlock;
	rtrs_hb_start(&path->path, &path->cons[0].con);
	path->was_live = true;
	WRITE_ONCE(clt->sess_id, path->sess_id);
	/* Who waits for this is woken by the path's result. */
	WRITE_ONCE(clt->nr_up, clt->nr_up + 1);
	if (clt->nr_up == 1) {
		rtrs_clt_set_limit(clt);
		rtrs_clt_set_link(clt, RTRS_LINK_UP);
	}
unlock:
	mutex_unlock(&clt->lock);
	return ret;
}

/**
 * rtrs_clt_live_add() - a path is connected: let requests take it
 * @path: the path
 *
 * The first one of a session that has lost all paths does not take any before the
 * upper layer has heard of that, and before what the lost ones have left behind on the
 * server is over: some of it may have failed here, and been made up for.
 *
 * Context: the path's work item.
 * Return: 0, -ENOMEM, -EINVAL if the path can do less than the others, -ESTALE if it
 * leads to another session than they do, or may, -ETIMEDOUT, or why it ended meanwhile.
 */
int rtrs_clt_live_add(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	while ((ret = rtrs_clt_try_live(path)) == -EAGAIN) {
		flush_work(&clt->link_work);
		ret = rtrs_clt_fence_over(path);
		if (ret)
			return ret;
	}
	if (ret)
		return ret;
	/* What has waited for a path. */
	rtrs_clt_look_after_fences(clt);
	rtrs_clt_resume(clt);
	return 0;
}

/**
 * rtrs_clt_live_del() - let no more requests take a path
 * @path: the path, whether it took any or not
 *
 * On return no rtrs_clt_submit() is on its way to it.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_live_del(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	bool live;

	mutex_lock(&clt->lock);
	live = rtrs_clt_is_live(path);
	if (live)
		rtrs_clt_live_replace(clt, NULL, path);
	mutex_unlock(&clt->lock);
	if (live)
		synchronize_rcu();
}

/**
 * rtrs_clt_live_gone() - a path has let go of its requests
 * @path: the path, whether it took any or not
 *
 * If it was the last one, this is the moment from which they wait for a path.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_live_gone(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	if (!path->was_live)
		return;
	path->was_live = false;
	mutex_lock(&clt->lock);
	WRITE_ONCE(clt->nr_up, clt->nr_up - 1);
	if (!clt->nr_up) {
		clt->down_since = jiffies;
		rtrs_clt_set_limit(clt);
		rtrs_clt_set_link(clt, RTRS_LINK_DOWN);
	}
	mutex_unlock(&clt->lock);
}
