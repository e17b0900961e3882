// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sizes of a path's queue pairs, and the number of slots that fit.
 *
 * A request needs up to two work requests in the send queue: a registration and a write. Room for a
 * third one, which invalidates the key, is reserved for each slot, as the handler of an answer
 * can't wait for room. For the other two, rtrs_con_queue() may return -EBUSY. They leave the queue
 * when the server's device has acknowledged them, long before the answer, so the queue need not
 * have room for those of all slots. The server answers each request with one message, for which a
 * receive is posted. A SEND WITH INV that was not requested may find no receive, so the server's
 * device sends it again later.
 *
 * With RTRS_FEATURE_SLOTS, the server invalidates all keys. Nothing is reserved, except on
 * soft-iWARP, where the client invalidates keys again. Most requests need only one work request.
 * With RTRS_FEATURE_NO_IMM, another one replaces the immediate value.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/*
 * Number of requests of a connection, not acknowledged by the server's device, that fit in its send
 * queue
 */
#define RTRS_CLT_SEND_SLOTS	256
/* With RTRS_FEATURE_SLOTS: maximum number of work requests in this queue */
#define RTRS_CLT_SMALL_SEND_WR	254
/* In a shorter send queue, signalled sends would complete too late to make room. */
#define RTRS_CLT_MIN_SEND_WR	(2 * RTRS_SIGNAL_EVERY)
/* If a queue pair can't be created, the number of slots is not lowered below this. */
#define RTRS_CLT_MIN_SLOTS	16

/**
 * rtrs_clt_qp_params() - compute the size of a connection's queue pair
 * @path: path of the connection, with its device; unless @cid is 0, its number of slots is known
 * @cid: index of the connection
 * @params: filled in
 */
VISIBLE_IF_KUNIT void rtrs_clt_qp_params(const struct rtrs_clt_path *path,
					 unsigned int cid,
					 struct rtrs_qp_params *params)
{
	*params = (struct rtrs_qp_params) {
		.send_wr	= RTRS_SERVICE_WR,
		.recv_wr	= RTRS_SERVICE_WR,
		.send_sge	= 1,
		.min_send_sge	= 1,
		.min_send_wr	= RTRS_CLT_MIN_SEND_WR,
		.nr_io		= path->clt->nr_queues,
		.poll		= IB_POLL_SOFTIRQ,
	};
	if (!cid)
		return;
	if (cid > path->clt->nr_queues)
		params->poll = IB_POLL_DIRECT;
	params->send_wr = (path->path.no_imm ? 3 : 2) *
			  min_t(u32, path->neg.nr_slots, RTRS_CLT_SEND_SLOTS) +
			  RTRS_SIGNAL_EVERY;
	if (path->neg.slot_size)
		params->send_wr = min_t(u32, params->send_wr, RTRS_CLT_SMALL_SEND_WR);
	params->min_send_wr = min_t(u32, params->send_wr, RTRS_CLT_MIN_SEND_WR);
	params->recv_wr = path->neg.nr_slots + RTRS_RECV_BATCH;
	params->send_sge = path->neg.max_sge;
	if (!path->neg.slot_size || path->neg.own_inv)
		params->send_reserve = path->neg.nr_slots;
	if (!path->neg.slot_size)
		params->min_send_sge = RTRS_CLT_MIN_SGE;
}

/**
 * rtrs_clt_dev_slots() - compute the number of slots for which a device has room
 * @attrs: limits of the device
 * @small: RTRS_FEATURE_SLOTS is granted
 *
 * Return: the number; 0 or less if there is room for none.
 */
int rtrs_clt_dev_slots(const struct ib_device_attr *attrs, bool small)
{
	/* One more work request for each queue is used to drain it. */
	int send = attrs->max_qp_wr - 1 - RTRS_CLT_MIN_SEND_WR;
	int recv = attrs->max_qp_wr - 1 - RTRS_RECV_BATCH;
	int cq = attrs->max_cqe - 2 - RTRS_CLT_MIN_SEND_WR - RTRS_RECV_BATCH;

	if (small)
		return send < 0 ? 0 : min(recv, cq);
	return min3(send, recv, cq / 2);
}

/**
 * rtrs_clt_fewer_slots() - halve the number of a path's slots
 * @path: path that is being connected, and whose slots aren't allocated yet
 *
 * A path with fewer slots than its session would be refused. The shortage of memory may be over at
 * the next attempt.
 *
 * Return: false if the path has RTRS_CLT_MIN_SLOTS or fewer, or no more than the session.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_fewer_slots(struct rtrs_clt_path *path)
{
	u32 least = max_t(u32, path->clt->limits.queue_depth, RTRS_CLT_MIN_SLOTS);

	if (path->neg.nr_slots <= least)
		return false;
	path->neg.nr_slots = max(path->neg.nr_slots / 2, least);
	return true;
}

/**
 * rtrs_clt_create_qp() - create a connection's queue pair
 * @path: path that is being connected; neg.nr_slots and neg.max_sge are lowered if the device
 *	refuses larger queues
 * @cid: index of the connection
 * @recv_wr: set to the number of receives for which the queue pair has room
 *
 * Return: 0 or a negative errno; rtrs_path_destroy_qps() undoes success.
 */
int rtrs_clt_create_qp(struct rtrs_clt_path *path, unsigned int cid, u32 *recv_wr)
{
	u32 had = path->neg.nr_slots;
	struct rtrs_qp_params params;
	int ret;

	do {
		rtrs_clt_qp_params(path, cid, &params);
		ret = rtrs_con_create_qp(&path->cons[cid].con, &params);
	} while (cid && rtrs_qp_refused(ret) && rtrs_clt_fewer_slots(path));
	*recv_wr = params.recv_wr;
	if (ret || !cid)
		return ret;
	if (path->neg.nr_slots < had)
		pr_info("%s: the device has no room for the queues of %u requests, using %u\n",
			path->path.name, had, path->neg.nr_slots);
	path->neg.max_sge = params.send_sge;
	return 0;
}
