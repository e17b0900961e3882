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

/* Round trip of a heartbeat in ns; 0 if none has been measured yet. */
static unsigned int rtrs_clt_latency(const struct rtrs_clt_path *path)
{
	return min_t(u64, READ_ONCE(path->path.hb_latency), UINT_MAX / 2);
}

/* Others may change either counter meanwhile. */
static unsigned int rtrs_clt_inflight(const struct rtrs_clt_path *path,
				      unsigned int queue)
{
	const struct rtrs_clt_con *con = &path->cons[queue + 1];
	int nr = READ_ONCE(con->con.sq_queued) - READ_ONCE(con->done);

	return max(nr, 0);
}

/*
 * Less than half of the other's latency. Smaller differences may be chance, and the queues
 * together must not crowd one of several paths that are equally fast.
 */
static bool rtrs_clt_much_faster(const struct rtrs_clt_path *path,
				 const struct rtrs_clt_path *than)
{
	unsigned int latency = rtrs_clt_latency(path);

	return latency && 2 * latency < rtrs_clt_latency(than);
}

static bool rtrs_clt_better(const struct rtrs_clt_path *path,
			    const struct rtrs_clt_path *than,
			    enum rtrs_clt_policy policy, unsigned int queue)
{
	unsigned int a, b;

	if (policy == RTRS_CLT_MI) {
		a = rtrs_clt_inflight(path, queue);
		b = rtrs_clt_inflight(than, queue);
		return a < b || (a == b && rtrs_clt_much_faster(path, than));
	}
	/* Without a measurement, it comes last. */
	a = rtrs_clt_latency(path) ?: UINT_MAX;
	b = rtrs_clt_latency(than) ?: UINT_MAX;
	return a < b;
}

/**
 * rtrs_clt_pick_path() - choose the path that a request takes
 * @clt: session, whose policy counts
 * @set: paths to choose from, at least one
 * @queue: rtrs_clt_io.queue of the request
 *
 * Selection writes no shared cache line: the cursor is per CPU, in-flight counts are per
 * queue, latencies change with a heartbeat. Equally good paths take turns.
 *
 * Context: RCU read side, which keeps the path able to take requests.
 * Return: a path of @set.
 */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt,
					 const struct rtrs_clt_path_set *set,
					 unsigned int queue)
{
	enum rtrs_clt_policy policy = READ_ONCE(clt->policy);
	struct rtrs_clt_path *best;
	unsigned int i, next;

	if (set->nr == 1)
		return set->path[0];
	next = this_cpu_inc_return(*clt->rr_next) % set->nr;
	best = set->path[next];
	if (policy == RTRS_CLT_RR)
		return best;
	for (i = 1; i < set->nr; i++) {
		if (++next == set->nr)
			next = 0;
		if (rtrs_clt_better(set->path[next], best, policy, queue))
			best = set->path[next];
	}
	return best;
}

/* Replaces the array by a copy in @new, with @add and without @del; frees @new if that is empty. */
static void rtrs_clt_path_set_replace(struct rtrs_clt *clt, struct rtrs_clt_path_set *new,
				      struct rtrs_clt_path *add, struct rtrs_clt_path *del)
{
	struct rtrs_clt_path_set *old;
	unsigned int i;

	old = rcu_dereference_protected(clt->path_set, lockdep_is_held(&clt->lock));
	for (i = 0; old && i < old->nr; i++)
		if (old->path[i] != del)
			new->path[new->nr++] = old->path[i];
	if (add)
		new->path[new->nr++] = add;
	if (!new->nr) {
		kfree(new);
		new = NULL;
	}
	rcu_assign_pointer(clt->path_set, new);
	if (old)
		kfree_rcu(old, rcu);
}

/**
 * rtrs_clt_path_set_add() - add a path to the array of those that take requests
 * @clt: session that the array belongs to
 * @path: path that isn't in the array
 *
 * The array that will be needed when the path leaves is allocated as well: by then there may be
 * no memory, since freeing some may wait for that.
 *
 * Context: process, under clt->lock.
 * Return: 0 or -ENOMEM.
 */
int rtrs_clt_path_set_add(struct rtrs_clt *clt, struct rtrs_clt_path *path)
{
	struct rtrs_clt_path_set *new;

	new = kzalloc(struct_size(new, path, RTRS_MAX_PATHS), GFP_KERNEL);
	path->spare = kzalloc(struct_size(new, path, RTRS_MAX_PATHS), GFP_KERNEL);
	if (!new || !path->spare) {
		kfree(new);
		kfree(path->spare);
		path->spare = NULL;
		return -ENOMEM;
	}
	rtrs_clt_path_set_replace(clt, new, path, NULL);
	return 0;
}

/**
 * rtrs_clt_path_set_del() - take a path out of the array of those that take requests
 * @clt: session that the array belongs to
 * @path: path in the array
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_path_set_del(struct rtrs_clt *clt, struct rtrs_clt_path *path)
{
	rtrs_clt_path_set_replace(clt, path->spare, NULL, path);
	path->spare = NULL;
}

/**
 * rtrs_clt_is_live() - does a path take requests?
 * @path: any path of its session
 *
 * Context: process, under clt->lock.
 * Return: true if it is in the array of paths that take requests.
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
 * rtrs_clt_poll_paths() - handle completions of a queue, on all paths
 * @set: paths that take requests
 * @queue: rtrs_clt_io.queue of requests; nothing is done if it isn't a polled one
 *
 * Context: process or softirq, with interrupts on, RCU read side.
 * Return: number of completions that were handled.
 */
int rtrs_clt_poll_paths(const struct rtrs_clt_path_set *set, unsigned int queue)
{
	unsigned int i;
	int nr = 0;

	for (i = 0; i < set->nr; i++)
		nr += rtrs_con_poll(&set->path[i]->cons[queue + 1].con);
	return nr;
}

/**
 * rtrs_clt_send() - send a request over one of the paths
 * @clt: session that the request was submitted to
 * @set: paths that take requests, at least one
 * @io: the request
 * @last: ring the doorbell; otherwise the request may wait for rtrs_clt_flush()
 *
 * If the queue of one path is full, the others are tried. If that of all is, and it is a polled
 * one, it is polled, so that a later try finds room.
 *
 * Context: any, RCU read side; for a polled queue, with interrupts on.
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
	if (unlikely(ret == -EBUSY))
		rtrs_clt_poll_paths(set, io->queue);
	return ret;
}

/**
 * rtrs_clt_flush() - ring the doorbells of a queue, on all paths
 * @set: paths that take requests
 * @queue: rtrs_clt_io.queue of requests that were sent without @last
 *
 * Context: any, RCU read side.
 */
void rtrs_clt_flush(const struct rtrs_clt_path_set *set, unsigned int queue)
{
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		rtrs_con_flush(&set->path[i]->cons[queue + 1].con);
}
