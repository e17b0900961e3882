// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A connection's queue pair and completion queue: how large, and on which vector.
 *
 * What a device reports as its limits is not all that counts. mlx5 for one refuses
 * send queues by their bytes, that is, by the entries of their lists too. So a queue
 * pair that is refused is tried again smaller, as far as its user can do with that.
 *
 * A completion queue has room for just the entries of its queue pair, and lives as long.
 */
#include <linux/log2.h>

#include "core.h"
#include "qp.h"

/* What queues are made of, as mlx5 has it; other devices differ, but not by much. */
#define RTRS_SEND_BYTES		132
#define RTRS_SGE_BYTES		16
#define RTRS_SEND_ALIGN		64
#define RTRS_RECV_BYTES		64
#define RTRS_CQE_BYTES		64

/* The next vector in turn of each device; devices far apart share one. */
static atomic_t rtrs_next_vector[32];

/**
 * rtrs_qp_fit() - lower the size of a queue pair to what a device reports
 * @params: the size
 * @attrs: what the device can do
 *
 * Return: false if the device can't do with the least that is asked for.
 */
VISIBLE_IF_KUNIT bool rtrs_qp_fit(struct rtrs_qp_params *params,
				  const struct ib_device_attr *attrs)
{
	int send = min(attrs->max_qp_wr - 1, attrs->max_cqe - 2 - (int)params->recv_wr) -
		   (int)params->send_reserve;

	if (send < (int)params->min_send_wr ||
	    attrs->max_qp_wr - 1 < (int)params->recv_wr ||
	    attrs->max_send_sge < (int)params->min_send_sge)
		return false;
	params->send_wr = min_t(u32, params->send_wr, send);
	params->send_sge = min_t(u32, params->send_sge, attrs->max_send_sge);
	return true;
}

/**
 * rtrs_qp_shrink() - the next smaller size to try
 * @params: the size that was refused
 *
 * Entries of lists go first: who has fewer of them registers memory more often. Who has
 * a shorter queue may have to wait.
 *
 * Return: false if there is none.
 */
VISIBLE_IF_KUNIT bool rtrs_qp_shrink(struct rtrs_qp_params *params)
{
	if (params->send_sge > params->min_send_sge)
		params->send_sge = max(params->send_sge / 2, params->min_send_sge);
	else if (params->send_wr > params->min_send_wr)
		params->send_wr = max(params->send_wr / 2, params->min_send_wr);
	else
		return false;
	return true;
}

/**
 * rtrs_qp_bytes() - memory that a queue pair takes, with its completion queue
 * @params: its size
 *
 * Return: bytes, about; devices round up to powers of two.
 */
u64 rtrs_qp_bytes(const struct rtrs_qp_params *params)
{
	u64 send = params->send_wr + params->send_reserve + 1;
	u64 recv = params->recv_wr + 1;
	u64 wr = ALIGN(RTRS_SEND_BYTES + params->send_sge * RTRS_SGE_BYTES,
		       RTRS_SEND_ALIGN);

	return roundup_pow_of_two(send * wr) +
	       roundup_pow_of_two(recv * RTRS_RECV_BYTES) +
	       roundup_pow_of_two((send + recv) * RTRS_CQE_BYTES);
}
EXPORT_SYMBOL_GPL(rtrs_qp_bytes);

/**
 * rtrs_qp_vector() - choose a completion vector
 * @nr_vectors: those that the device has
 * @nr_io: connections for I/O of the path
 * @cid: which of its connections
 * @next: the next vector in turn of all connections; changed if it is taken
 *
 * A path that spreads evenly over the vectors by itself has its connections on them in
 * order, since their owners' CPUs are in that order too. All others take turns over
 * the whole device: else each path would begin with the first vectors again.
 *
 * Return: the vector.
 */
VISIBLE_IF_KUNIT u32 rtrs_qp_vector(u32 nr_vectors, u32 nr_io, u32 cid,
				    atomic_t *next)
{
	if (cid && nr_io % nr_vectors == 0)
		return (cid - 1) % nr_vectors;
	return ((u32)atomic_inc_return(next) - 1) % nr_vectors;
}

static int rtrs_qp_try(struct rtrs_con *con, const struct rtrs_qp_params *params,
		       u32 vector)
{
	/* One more of each, for ib_drain_sq() and ib_drain_rq(). */
	struct ib_qp_init_attr attr = {
		.event_handler	= rtrs_con_qp_event,
		.qp_context	= con,
		.qp_type	= IB_QPT_RC,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.cap.max_send_wr = params->send_wr + params->send_reserve + 1,
		.cap.max_recv_wr = params->recv_wr + 1,
		.cap.max_send_sge = params->send_sge,
		.cap.max_recv_sge = 1,
	};
	struct ib_cq *cq;
	int ret;

	cq = ib_alloc_cq(con->path->dev, con,
			 attr.cap.max_send_wr + attr.cap.max_recv_wr, vector,
			 params->poll);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	ret = rdma_create_qp(con->cm_id, con->path->pd, &attr);
	if (ret)
		ib_free_cq(cq);
	else
		con->cq = cq;
	return ret;
}

/**
 * rtrs_con_create_qp() - give a connection its queue pair
 * @con: has its cm_id with a device, and its path that device
 * @params: size and kind; lowered to what the device grants
 *
 * Context: process.
 * Return: 0; -ENOMEM or -EINVAL if the device has no room for the least size; or another
 * errno of the verbs. rtrs_con_destroy_qp() undoes it.
 */
int rtrs_con_create_qp(struct rtrs_con *con, struct rtrs_qp_params *params)
{
	struct ib_device *dev = con->path->dev;
	u32 vector;
	int ret;

	if (!rtrs_qp_fit(params, &dev->attrs))
		return -EINVAL;
	vector = rtrs_qp_vector(max(dev->num_comp_vectors, 1), params->nr_io, con->cid,
				&rtrs_next_vector[dev->index %
						  ARRAY_SIZE(rtrs_next_vector)]);
	do {
		ret = rtrs_qp_try(con, params, vector);
	} while (rtrs_qp_refused(ret) && rtrs_qp_shrink(params));
	if (!ret)
		rtrs_con_init_sq(con, params);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_con_create_qp);

/**
 * rtrs_con_destroy_qp() - undo rtrs_con_create_qp(), if it was done
 * @con: drained, or never connected
 */
void rtrs_con_destroy_qp(struct rtrs_con *con)
{
	if (!con->cq)
		return;
	list_del(&con->entry);
	rdma_destroy_qp(con->cm_id);
	ib_free_cq(con->cq);
	con->cq = NULL;
}
EXPORT_SYMBOL_GPL(rtrs_con_destroy_qp);
