// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Selection of a path for a request.
 *
 * The paths of a session that accept requests are in an array, which is replaced rather than
 * changed. Submitters read it under RCU. Once it has been replaced and a grace period has passed,
 * nobody submits requests to a path that was removed.
 */
#include <linux/slab.h>

#include "clt.h"

/* Returns the last round trip of a heartbeat in ns, or 0 if none has been measured yet. */
static unsigned int rtrs_clt_latency(const struct rtrs_clt_path *path)
{
	return min_t(u64, READ_ONCE(path->path.hb_latency), UINT_MAX / 2);
}

/* Returns the number of requests in flight. Both counters may change meanwhile. */
static unsigned int rtrs_clt_inflight(const struct rtrs_clt_path *path,
				      unsigned int queue)
{
	const struct rtrs_clt_con *con = &path->cons[queue + 1];
	int nr = READ_ONCE(con->con.sq_queued) - READ_ONCE(con->done);

	return max(nr, 0);
}

/*
 * Returns true if a path has less than half of the other's latency. Smaller differences may be
 * random, and must not make all queues select the same one of several equally fast paths.
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
	/* A path without a measurement comes last. */
	a = rtrs_clt_latency(path) ?: UINT_MAX;
	b = rtrs_clt_latency(than) ?: UINT_MAX;
	return a < b;
}

/**
 * rtrs_clt_pick_path() - select a path for a request
 * @clt: session with the policy to use
 * @set: paths to select from, at least one
 * @queue: rtrs_clt_io.queue of the request
 *
 * Selection writes no shared cache line: the cursor is per CPU, in-flight counts are per queue, and
 * latencies change only with heartbeats. Equally good paths are used in turn.
 *
 * Context: RCU read side, which keeps the path in a state in which it accepts requests.
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

/*
 * Replaces the array by a copy in @new, with @add and without @del. Frees @new if the copy is
 * empty.
 */
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
 * rtrs_clt_path_set_alloc() - allocate an array for rtrs_clt_path_set_add()
 * @path: path that isn't in an array
 *
 * Also allocates the array that rtrs_clt_path_set_del() needs. At that time memory may be
 * exhausted, and freeing memory may wait for the removal of the path.
 *
 * Context: process, under clt->lock.
 * Return: the array, or NULL if memory is short. rtrs_clt_path_set_free() undoes it.
 */
struct rtrs_clt_path_set *rtrs_clt_path_set_alloc(struct rtrs_clt_path *path)
{
	struct rtrs_clt_path_set *new;

	new = kzalloc(struct_size(new, path, RTRS_MAX_PATHS), GFP_KERNEL);
	path->spare = kzalloc(struct_size(new, path, RTRS_MAX_PATHS), GFP_KERNEL);
	if (!new || !path->spare) {
		rtrs_clt_path_set_free(path, new);
		return NULL;
	}
	return new;
}

/**
 * rtrs_clt_path_set_free() - free what rtrs_clt_path_set_alloc() has allocated
 * @path: path that isn't in an array
 * @new: the array, or NULL
 */
void rtrs_clt_path_set_free(struct rtrs_clt_path *path, struct rtrs_clt_path_set *new)
{
	kfree(new);
	kfree(path->spare);
	path->spare = NULL;
}

/**
 * rtrs_clt_path_set_add() - add a path to the array of paths that accept requests
 * @clt: session of the array
 * @path: path that isn't in the array
 * @new: array of rtrs_clt_path_set_alloc()
 *
 * Context: process, under clt->lock.
 */
void rtrs_clt_path_set_add(struct rtrs_clt *clt, struct rtrs_clt_path *path,
			   struct rtrs_clt_path_set *new)
{
	rtrs_clt_path_set_replace(clt, new, path, NULL);
}

/**
 * rtrs_clt_path_set_del() - remove a path from the array of paths that accept requests
 * @clt: session of the array
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
 * rtrs_clt_is_live() - check whether a path accepts requests
 * @path: any path of its session
 *
 * Context: process, under clt->lock.
 * Return: true if the path is in the array of paths that accept requests.
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
 * rtrs_clt_poll_paths() - handle completions of a queue on all paths
 * @set: paths that accept requests
 * @queue: rtrs_clt_io.queue of requests; nothing is done unless it is polled
 *
 * Context: process or softirq, with interrupts on, RCU read side.
 * Return: number of completions handled.
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
 * @clt: session of the request
 * @set: paths that accept requests, at least one
 * @io: the request
 * @last: ring the doorbell; otherwise the request may stay queued until rtrs_clt_flush()
 *
 * If the queue of one path is full, the other paths are tried. If the queues of all paths are full
 * and polled, they are polled, so that a later attempt finds room.
 *
 * Context: any, RCU read side; for a polled queue, with interrupts on.
 * Return: 0; -EBUSY if the queues of all paths are full or the data can't be mapped for the device
 * at the moment; or the errno of registering the data.
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
 * rtrs_clt_flush() - ring the doorbells of a queue on all paths
 * @set: paths that accept requests
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
