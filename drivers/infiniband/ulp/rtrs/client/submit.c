// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests as the upper layer hands them in. When there is no path they wait, see
 * failover.c.
 */
#include <linux/export.h>

#include "clt.h"
#include "trace.h"

/**
 * rtrs_clt_submit() - send a request
 * @clt: the session
 * @io: the request
 * @last: nothing follows soon: send it and what waits for it. Without it the
 *	request may wait for rtrs_clt_commit() on its queue
 *
 * The request's io->done() is called once, perhaps before this returns, if and
 * only if this returns 0. When no path takes requests, or the one that it went over
 * dies, it waits for another, unless it is not to; see rtrs_clt_params.retry_ok.
 *
 * Context: any.
 * Return: 0; -ECONNABORTED if there is no path and it is not to wait for one; -ENOTCONN
 * if there has been none for too long; -EBUSY if the paths' queues are full, or the data
 * can't be mapped for the device, right now; or the errno of registering it. Of requests
 * on the same queue submitted before without @last none stays behind, whatever is
 * returned, if @last is set.
 */
int rtrs_clt_submit(struct rtrs_clt *clt, struct rtrs_clt_io *io, bool last)
{
	/* Once it is sent, the request may be done and gone at any time. */
	const unsigned int queue = io->queue;
	struct rtrs_clt_path_set *set;
	int ret;

	io->priv.path_failures = 0;
	trace_rtrs_clt_submit(clt->name, io);
	rcu_read_lock();
	do {
		set = rcu_dereference(clt->path_set);
		ret = likely(set) ? rtrs_clt_send(clt, set, io, last) :
				     rtrs_clt_wait_for_path(clt, io);
	} while (unlikely(ret == -EAGAIN));
	/* Earlier ones of the batch may have gone to the other paths' chains. */
	if (last && set && (set->nr > 1 || unlikely(ret)))
		rtrs_clt_flush(set, queue);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_clt_submit);

/**
 * rtrs_clt_commit() - send what rtrs_clt_submit() held back
 * @clt: the session
 * @queue: on which queue
 *
 * Context: any.
 */
void rtrs_clt_commit(struct rtrs_clt *clt, unsigned int queue)
{
	struct rtrs_clt_path_set *set;

	rcu_read_lock();
	set = rcu_dereference(clt->path_set);
	if (set)
		rtrs_clt_flush(set, queue);
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(rtrs_clt_commit);

/**
 * rtrs_clt_give_up() - a request took too long
 * @clt: the session
 * @io: the request, in flight, or done by now
 *
 * A request can't be taken back from the server alone: its path ends, and all
 * requests that are on it take another one, or wait.
 *
 * Context: any.
 */
void rtrs_clt_give_up(struct rtrs_clt *clt, struct rtrs_clt_io *io)
{
	struct rtrs_clt_path_set *set;
	unsigned int i;

	rcu_read_lock();
	set = rcu_dereference(clt->path_set);
	for (i = 0; set && i < set->nr; i++)
		if (set->path[i] == READ_ONCE(io->priv.path))
			rtrs_clt_path_error(&set->path[i]->path, -ETIMEDOUT,
					    "a request stays unanswered");
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(rtrs_clt_give_up);
