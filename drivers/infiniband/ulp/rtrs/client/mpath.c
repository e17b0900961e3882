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
 * @set: paths that take requests
 * @queue: the request's queue
 *
 * Selection writes no shared cache line: the cursor is per CPU, in-flight counts are per
 * queue. Equally good paths take turns.
 *
 * Context: RCU read side, which also keeps the path in order for requests.
 * Return: the path.
 */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt,
					 const struct rtrs_clt_path_set *set,
					 unsigned int queue)
{
	enum rtrs_clt_policy policy = READ_ONCE(clt->policy);
	unsigned int i, cost, least = UINT_MAX;
	struct rtrs_clt_path *path, *best;
	unsigned int turn;

	if (set->nr == 1)
		return set->path[0];
	turn = this_cpu_inc_return(*clt->rr_next) % set->nr;
	best = set->path[turn];
	if (policy == RTRS_CLT_RR)
		return best;
	for (i = 0; i < set->nr; i++) {
		path = set->path[turn];
		cost = rtrs_clt_cost(path, policy, queue);
		if (cost < least) {
			least = cost;
			best = path;
		}
		if (++turn == set->nr)
			turn = 0;
	}
	return best;
}

/**
 * rtrs_clt_path_set_replace() - replace the array of paths that take requests
 * @clt: the session
 * @add: path to add, or NULL
 * @del: path to leave out, which is in the array, or NULL
 *
 * Context: process, under clt->lock.
 * Return: 0, or -ENOMEM, never without @add.
 */
int rtrs_clt_path_set_replace(struct rtrs_clt *clt, struct rtrs_clt_path *add,
			      struct rtrs_clt_path *del)
{
	/* Those who wait for a path's end may be short of memory for it. */
	gfp_t gfp = del ? GFP_NOIO | __GFP_NOFAIL : GFP_KERNEL;
	struct rtrs_clt_path_set *old, *new = NULL;
	unsigned int i, nr, room;

	old = rcu_dereference_protected(clt->path_set, lockdep_is_held(&clt->lock));
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
	rcu_assign_pointer(clt->path_set, new);
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
	struct rtrs_clt_path_set *set;
	unsigned int i;

	set = rcu_dereference_protected(clt->path_set, lockdep_is_held(&clt->lock));
	for (i = 0; set && i < set->nr; i++)
		if (set->path[i] == path)
			return true;
	return false;
}

/**
 * rtrs_clt_send() - send a request over one of the paths
 * @clt: the session
 * @set: paths that take requests
 * @io: the request
 * @last: nothing follows soon
 *
 * One path whose queue is full does not stop the others.
 *
 * Context: any, RCU read side.
 * Return: 0, -EBUSY if the queues of all paths are full, or the data can't be mapped for
 * the device right now, or the errno of registering it.
 */
int rtrs_clt_send(struct rtrs_clt *clt, const struct rtrs_clt_path_set *set,
		  struct rtrs_clt_io *io, bool last)
{
	struct rtrs_clt_path *first = rtrs_clt_pick_path(clt, set, io->queue);
	unsigned int i;
	int ret;

	ret = rtrs_clt_send_over(first, io, last);
	for (i = 0; unlikely(ret == -EBUSY) && i < set->nr; i++)
		if (set->path[i] != first)
			ret = rtrs_clt_send_over(set->path[i], io, last);
	return ret;
}

/**
 * rtrs_clt_flush() - post what a queue's chains hold, on all paths
 * @set: paths that take requests
 * @queue: the queue
 *
 * Context: any, RCU read side.
 */
void rtrs_clt_flush(const struct rtrs_clt_path_set *set, unsigned int queue)
{
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		rtrs_con_flush(&set->path[i]->cons[queue + 1].con);
}
