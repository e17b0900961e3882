// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sizes of a path's queue pairs, and the queue depth for which a device has room.
 *
 * All requests of a session may arrive on one connection, which needs a posted receive for each.
 * Answers can wait for room in the send queue, see send.c.
 */
#include "srv.h"

/*
 * Returns the size of the queues of a service connection, in work requests each. Without
 * RTRS_FEATURE_SLOTS, clients also send requests on a service connection.
 */
static u32 rtrs_srv_service_wr(const struct rtrs_srv_path *path)
{
	return rtrs_srv_has_slots(path) ? RTRS_SERVICE_WR : RTRS_SERVICE_DEPTH;
}

/**
 * rtrs_srv_nr_recvs() - compute the number of receives of a connection
 * @path: path with known session and features
 * @dev: the path's device
 * @cid: index of the connection in its path
 *
 * Return: the number of receives, so that one is always posted for a request in each slot.
 */
u32 rtrs_srv_nr_recvs(const struct rtrs_srv_path *path, const struct ib_device *dev, u16 cid)
{
	u32 max = dev->attrs.max_qp_wr - 1;

	if (!cid)
		return round_down(min(rtrs_srv_service_wr(path), max), RTRS_RECV_BATCH) -
		       RTRS_RECV_BATCH;
	return round_up(path->sess->queue_depth + RTRS_RECV_BATCH - 1, RTRS_RECV_BATCH);
}

/**
 * rtrs_srv_dev_depth() - compute the largest queue depth for an RDMA device
 * @dev: device of a path
 *
 * Return: the queue depth; 0 if the device is not usable.
 */
u32 rtrs_srv_dev_depth(const struct ib_device *dev)
{
	/* One entry of each queue is reserved for draining. */
	int wr = dev->attrs.max_qp_wr - 1;
	int by_recv = wr - 2 * RTRS_RECV_BATCH;
	int send = RTRS_SRV_MIN_SEND_WR;
	int by_cq;

	if (rtrs_srv_slot_size)
		send += RTRS_SRV_READ_WR + RTRS_SRV_READS * RTRS_RW_WR;
	by_cq = dev->attrs.max_cqe - send - 2 * RTRS_RECV_BATCH - 2;
	if (wr < send)
		return 0;
	return clamp(min(by_recv, by_cq), 0, RTRS_MAX_QUEUE_DEPTH);
}

/**
 * rtrs_srv_qp_params() - compute the size of a connection's queue pair
 * @path: path with known session, features and number of connections
 * @dev: the path's device
 * @cid: index of the connection in its path
 *
 * Return: the size.
 */
struct rtrs_qp_params rtrs_srv_qp_params(const struct rtrs_srv_path *path,
					 const struct ib_device *dev, u16 cid)
{
	bool slots = rtrs_srv_has_slots(path);
	u32 max = dev->attrs.max_qp_wr - 1;
	struct rtrs_qp_params params = {
		.send_sge	= 1,
		.min_send_sge	= 1,
		/* Soft-iWARP doesn't support SEND WITH INV of inline data. */
		.send_inline	= path->path.no_imm ? 0 : sizeof(struct rtrs_msg_answer),
		.min_send_wr	= RTRS_SRV_MIN_SEND_WR,
		.recv_wr	= rtrs_srv_nr_recvs(path, dev, cid),
		.nr_io		= path->path.nr_cons - 1,
		.poll		= IB_POLL_WORKQUEUE,
	};

	if (cid) {
		params.send_wr = min_t(u32, path->sess->queue_depth * RTRS_SRV_WR_PER_IO,
				       slots ? RTRS_SRV_SLOTS_SEND_WR : RTRS_SRV_SEND_WR);
		if (slots) {
			params.send_reserve = RTRS_SRV_READ_WR;
			params.rdma_ctxs = RTRS_SRV_READS;
			/* Room for the largest answer, whatever the queue depth. */
			params.send_wr = max_t(u32, params.send_wr, RTRS_SRV_MAX_DATA_WR + 1);
		}
		params.send_wr += RTRS_SIGNAL_EVERY;
	} else {
		/* Slow submission to disks must not delay heartbeats. */
		params.poll = IB_POLL_UNBOUND_WORKQUEUE;
		params.send_reserve = RTRS_SRV_SERVICE_RESERVE;
		params.min_send_wr -= params.send_reserve;
		params.send_wr = min(rtrs_srv_service_wr(path), max) - params.send_reserve;
		/* One more for the client's first message. */
		params.recv_wr++;
	}
	params.min_send_wr = min(params.send_wr, params.min_send_wr);
	return params;
}

static u64 rtrs_srv_con_bytes(const struct rtrs_srv_path *path, const struct ib_device *dev,
			      u16 cid)
{
	struct rtrs_qp_params params = rtrs_srv_qp_params(path, dev, cid);
	u64 bytes = sizeof(struct rtrs_srv_con) + rtrs_qp_bytes(&params);

	if (path->path.no_imm)
		bytes += rtrs_region_bytes(params.recv_wr, sizeof(union rtrs_recv_msg), 0);
	return bytes;
}

/**
 * rtrs_srv_cons_bytes() - estimate the memory of all connections that a client announces
 * @path: path with known session, features and number of connections
 * @dev: the path's device
 *
 * Return: estimated bytes.
 */
u64 rtrs_srv_cons_bytes(const struct rtrs_srv_path *path, const struct ib_device *dev)
{
	return rtrs_srv_con_bytes(path, dev, 0) +
	       (path->path.nr_cons - 1) * rtrs_srv_con_bytes(path, dev, 1);
}
