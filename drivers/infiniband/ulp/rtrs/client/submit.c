// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests from the upper layer. While there is no path, they wait in failover.c. */
#include <linux/export.h>

#include "clt.h"
#include "trace.h"

/**
 * rtrs_clt_submit() - send a request
 * @clt: an open session
 * @io: the request, filled in except io->priv
 * @last: last request of a batch: send it, and earlier ones on its queue. Otherwise the request may
 *	stay queued until rtrs_clt_commit()
 *
 * If and only if this function returns 0, io->done() is called once, possibly before it returns. If
 * no path accepts requests, or the request's path dies, the request waits for another path, unless
 * io->failfast is set; see rtrs_clt_params.retry_ok.
 *
 * Context: any; for a polled queue, with interrupts on.
 * Return: 0; -ECONNABORTED if there is no path and io->failfast is set; -EHOSTUNREACH if there has
 * been no path for too long; -EBUSY if the paths' queues are full or the data can't be mapped for
 * the device at the moment; or the errno of registering the data. With @last, requests submitted
 * earlier on the same queue are sent in any case.
 */
int rtrs_clt_submit(struct rtrs_clt *clt, struct rtrs_clt_io *io, bool last)
{
	/* The request may be completed and freed at any time after it is sent. */
	const unsigned int queue = io->queue;
	struct rtrs_clt_path_set *set;
	int ret;

	io->priv.path_failures = 0;
	trace_rtrs_clt_submit(clt->label, io);
	rcu_read_lock();
	do {
		set = rcu_dereference(clt->path_set);
		ret = likely(set) ? rtrs_clt_send(clt, set, io, last) :
				     rtrs_clt_wait_for_path(clt, io);
	} while (unlikely(ret == -EAGAIN));
	/* Earlier requests of the batch may be queued on other paths. */
	if (last && set && (set->nr > 1 || unlikely(ret)))
		rtrs_clt_flush(set, queue);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_clt_submit);

/**
 * rtrs_clt_commit() - send requests that were submitted without @last
 * @clt: an open session
 * @queue: rtrs_clt_io.queue of these requests
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
 * rtrs_clt_poll() - handle completions of a polled queue
 * @clt: an open session
 * @queue: rtrs_clt_io.queue of the requests
 *
 * Calls io->done() for answered requests. A request that is sent again uses the same queue of
 * another path, so this function polls all paths. Without a caller, the next heartbeat polls the
 * queue.
 *
 * Context: process or softirq, with interrupts on; any number of callers at a time.
 * Return: number of completions handled.
 */
int rtrs_clt_poll(struct rtrs_clt *clt, unsigned int queue)
{
	struct rtrs_clt_path_set *set;
	int nr = 0;

	rcu_read_lock();
	set = rcu_dereference(clt->path_set);
	if (likely(set))
		nr = rtrs_clt_poll_paths(set, queue);
	rcu_read_unlock();
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_clt_poll);

/**
 * rtrs_clt_give_up() - end the path of a request that has timed out
 * @clt: session of the request
 * @io: the request, which may have been completed meanwhile
 *
 * A single request can't be cancelled on the server. All requests on the path move to another path,
 * or wait for one.
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
