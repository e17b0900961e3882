// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A connection's queue pair and completion queue: their sizes, and the completion vector.
 *
 * A device may refuse a queue pair that is within its reported limits. For example, mlx5 limits the
 * bytes of a send queue, which also depend on the number of SGEs. So the creation of a queue pair
 * is retried with smaller sizes, down to the minimum that its user accepts.
 *
 * A completion queue has as many entries as its queue pair can use, and the same lifetime.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>

#include "core.h"

/* Sizes of queue entries on mlx5; other devices differ little. */
#define RTRS_SEND_BYTES		132
#define RTRS_SGE_BYTES		16
#define RTRS_SEND_ALIGN		64
#define RTRS_RECV_BYTES		64
#define RTRS_CQE_BYTES		64
/* Size of the memory region that rdma_rw allocates per context, if the device needs one. */
#define RTRS_RW_MR_BYTES	(512 + 256 * sizeof(u64))

/* Next completion vector of each device, indexed by the device's index; see rtrs_qp_vector(). */
static atomic_t rtrs_next_vector[32];

/**
 * rtrs_qp_fit() - lower the size of a queue pair to the limits of a device
 * @params: requested size; lowered
 * @attrs: limits that the device reports
 *
 * Return: false if the limits are below the minimum size.
 */
VISIBLE_IF_KUNIT bool rtrs_qp_fit(struct rtrs_qp_params *params,
				  const struct ib_device_attr *attrs)
{
	int send = min(attrs->max_qp_wr - 1, attrs->max_cqe - 2 - (int)params->recv_wr) -
		   (int)(params->send_reserve + params->rdma_ctxs * RTRS_RW_WR);

	if (send < (int)params->min_send_wr ||
	    attrs->max_qp_wr - 1 < (int)params->recv_wr ||
	    attrs->max_send_sge < (int)params->min_send_sge)
		return false;
	params->send_wr = min_t(u32, params->send_wr, send);
	params->send_sge = min_t(u32, params->send_sge, attrs->max_send_sge);
	return true;
}

/**
 * rtrs_qp_shrink() - select the next smaller size to try
 * @params: refused size; lowered
 *
 * Inline data are dropped first: without them, the device reads short messages from memory. Fewer
 * SGEs require registering memory more often. With a shorter queue, requests may have to wait.
 *
 * Return: false if there is no smaller size.
 */
VISIBLE_IF_KUNIT bool rtrs_qp_shrink(struct rtrs_qp_params *params)
{
	if (params->send_inline)
		params->send_inline = 0;
	else if (params->send_sge > params->min_send_sge)
		params->send_sge = max(params->send_sge / 2, params->min_send_sge);
	else if (params->send_wr > params->min_send_wr)
		params->send_wr = max(params->send_wr / 2, params->min_send_wr);
	else
		return false;
	return true;
}

/**
 * rtrs_qp_bytes() - estimate the memory of a queue pair and its completion queue
 * @params: size of the queue pair
 *
 * Return: estimated bytes; devices round up to powers of two.
 */
u64 rtrs_qp_bytes(const struct rtrs_qp_params *params)
{
	u64 send = params->send_wr + params->send_reserve + 1 +
		   params->rdma_ctxs * RTRS_RW_WR;
	u64 recv = params->recv_wr + 1;
	u64 wr = ALIGN(RTRS_SEND_BYTES + params->send_sge * RTRS_SGE_BYTES,
		       RTRS_SEND_ALIGN);

	return roundup_pow_of_two(send * wr) +
	       roundup_pow_of_two(recv * RTRS_RECV_BYTES) +
	       roundup_pow_of_two((send + recv) * RTRS_CQE_BYTES) +
	       params->rdma_ctxs * RTRS_RW_MR_BYTES;
}
EXPORT_SYMBOL_GPL(rtrs_qp_bytes);

/**
 * rtrs_qp_vector() - select a completion vector
 * @nr_vectors: number of completion vectors of the device
 * @nr_io: number of I/O connections of the path
 * @cid: index of the connection
 * @next: counter of the device, for connections that use the vectors in rotation
 *
 * If the number of a path's I/O connections is a multiple of the number of vectors, they use the
 * vectors in order, which is also the order of their CPUs. All other connections of a device use
 * the vectors in rotation; otherwise the first vectors would be used by each path.
 *
 * Return: index of the vector.
 */
VISIBLE_IF_KUNIT u32 rtrs_qp_vector(u32 nr_vectors, u32 nr_io, u32 cid,
				    atomic_t *next)
{
	if (cid && nr_io % nr_vectors == 0)
		return (cid - 1) % nr_vectors;
	return ((u32)atomic_inc_return(next) - 1) % nr_vectors;
}

static void rtrs_con_qp_event(struct ib_event *event, void *context)
{
	struct rtrs_con *con = context;

	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(con->cm_id, IB_EVENT_COMM_EST);
	else
		pr_debug("%s: connection %u: %s\n", con->path->name, con->cid,
			 ib_event_msg(event->event));
}

static int rtrs_qp_try(struct rtrs_con *con, struct rtrs_qp_params *params, u32 vector)
{
	/* One more entry per queue, for a drain mark or ib_drain_sq() and ib_drain_rq(). */
	struct ib_qp_init_attr attr = {
		.event_handler	= rtrs_con_qp_event,
		.qp_context	= con,
		.qp_type	= IB_QPT_RC,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.cap.max_send_wr = params->send_wr + params->send_reserve + 1,
		.cap.max_recv_wr = params->recv_wr + 1,
		.cap.max_send_sge = params->send_sge,
		.cap.max_inline_data = params->send_inline,
		.cap.max_recv_sge = 1,
		.cap.max_rdma_ctxs = params->rdma_ctxs,
		.port_num	= con->cm_id->port_num,
	};
	struct ib_cq *cq;
	int ret;

	if (con->path->no_imm)
		attr.cap.max_inline_data = max_t(u32, params->send_inline,
						 sizeof(struct rtrs_msg_imm));
	cq = ib_alloc_cq(con->path->dev, con,
			 attr.cap.max_send_wr + params->rdma_ctxs * RTRS_RW_WR +
			 attr.cap.max_recv_wr, vector,
			 params->poll);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	ret = rdma_create_qp(con->cm_id, con->path->pd, &attr);
	if (!ret && con->path->no_imm &&
	    attr.cap.max_inline_data < sizeof(struct rtrs_msg_imm)) {
		rtrs_path_err(con->path, "device %s can't send inline data, which replace immediate data\n",
			      dev_name(&con->path->dev->dev));
		rdma_destroy_qp(con->cm_id);
		ret = -EOPNOTSUPP;
	}
	if (ret) {
		ib_free_cq(cq);
		return ret;
	}
	con->cq = cq;
	/* Drivers without support for inline data set the size to 0. */
	if (attr.cap.max_inline_data < params->send_inline)
		params->send_inline = 0;
	return 0;
}

/**
 * rtrs_con_create_qp() - create a connection's queue pair
 * @con: connection whose cm_id has a device, which the path has opened
 * @params: size and kind; lowered to the supported size
 *
 * Context: process.
 * Return: 0; -ENOMEM or -EINVAL if the device doesn't support the minimum size; or another errno of
 * the verbs. rtrs_path_destroy_qps() destroys the queue pair.
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
	con->polled = params->poll == IB_POLL_DIRECT;
	do {
		ret = rtrs_qp_try(con, params, vector);
	} while (rtrs_qp_refused(ret) && rtrs_qp_shrink(params));
	if (!ret)
		rtrs_con_init_sq(con, params);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_con_create_qp);

static void rtrs_con_destroy_qp(struct rtrs_con *con)
{
	list_del(&con->entry);
	rdma_destroy_qp(con->cm_id);
	ib_free_cq(con->cq);
	con->cq = NULL;
	rtrs_con_free_recvs(con);
}

/**
 * rtrs_path_destroy_qps() - destroy the queue pairs of a path, and the memory of its receives
 * @path: path whose connections are drained, or were never connected
 *
 * Memory regions must be freed after their queue pairs are destroyed: with rdma_rxe, an aborted
 * RDMA WRITE holds its memory region as long as the queue pair exists.
 *
 * Context: process, may sleep.
 */
void rtrs_path_destroy_qps(struct rtrs_path *path)
{
	struct rtrs_con *con, *next;

	list_for_each_entry_safe(con, next, &path->cons, entry)
		rtrs_con_destroy_qp(con);
}
EXPORT_SYMBOL_GPL(rtrs_path_destroy_qps);
