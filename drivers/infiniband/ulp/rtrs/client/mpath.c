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

/**
 * rtrs_clt_pick_path() - round-robin
 * @clt: the session
 *
 * Each CPU goes round on its own.
 *
 * Context: RCU read side, which also keeps the path in order for requests.
 * Return: the path, or NULL if none is connected.
 */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt)
{
	const struct rtrs_clt_live *live = rcu_dereference(clt->live);

	if (unlikely(!live))
		return NULL;
	if (live->nr == 1)
		return live->path[0];
	return live->path[this_cpu_inc_return(*clt->turn) % live->nr];
}

static void rtrs_clt_link_event(struct rtrs_clt *clt, enum rtrs_link_event ev)
{
	lockdep_assert_held(&clt->lock);
	if (clt->link == ev)
		return;
	clt->link = ev;
	if (clt->opened)
		clt->link_event(clt->priv, ev);
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

static bool rtrs_clt_is_live(struct rtrs_clt_path *path)
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

/**
 * rtrs_clt_live_add() - a path is connected: let requests take it
 * @path: the path
 *
 * Context: process, the thread that connects it.
 * Return: 0, -ENOMEM, or -ECONNABORTED if something ended the path meanwhile.
 */
int rtrs_clt_live_add(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	mutex_lock(&clt->lock);
	ret = rtrs_clt_live_replace(clt, path, NULL);
	if (ret)
		goto unlock;
	/* From here on an error takes the path out again, see the work item. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_CONNECTED, 0)) {
		ret = -ECONNABORTED;
		goto unlock;
	}
	rtrs_hb_start(&path->path, &path->cons[0].con);
	path->was_live = true;
	clt->nr_up++;
	rtrs_clt_link_event(clt, RTRS_LINK_UP);
unlock:
	mutex_unlock(&clt->lock);
	return ret;
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
 * rtrs_clt_live_gone() - a path has given its requests back
 * @path: the path, whether it took any or not
 *
 * If it was the last one, this is the moment to tell the upper layer.
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
	if (!--clt->nr_up)
		rtrs_clt_link_event(clt, RTRS_LINK_DOWN);
	mutex_unlock(&clt->lock);
}
