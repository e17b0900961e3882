// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receives: posted, and their completions dispatched by immediate value to heartbeats,
 * requests and fencing.
 *
 * Receives of immediate data are empty, and all alike. With RTRS_FEATURE_NO_IMM, each has memory
 * for the message in its place. They are completed in the order in which they were posted.
 */
#include <linux/slab.h>

#include "srv.h"

/**
 * rtrs_srv_service_wr() - compute the size of the queues of a service connection
 * @con: the connection, whose path is known
 *
 * Return: work requests; without slots, clients send some requests on it.
 */
u32 rtrs_srv_service_wr(const struct rtrs_srv_con *con)
{
	return rtrs_srv_has_slots(con->path) ? RTRS_SERVICE_WR : RTRS_SERVICE_DEPTH;
}

/**
 * rtrs_srv_recv_chains() - compute the number of chains of receives of a connection
 * @con: connection whose path and session are known
 *
 * Return: the number with which there is always a receive for a request in each slot.
 */
u32 rtrs_srv_recv_chains(const struct rtrs_srv_con *con)
{
	u32 max = con->path->path.dev->attrs.max_qp_wr - 1;

	if (!con->con.cid)
		return min(rtrs_srv_service_wr(con), max) / RTRS_SRV_RECV_BATCH - 1;
	return DIV_ROUND_UP(con->path->sess->queue_depth +
			    RTRS_SRV_RECV_BATCH - 1, RTRS_SRV_RECV_BATCH);
}

/* Posts the next batch; with memory for messages, it has that of the last one. */
static int rtrs_srv_recv_post_batch(struct rtrs_srv_con *con)
{
	u32 i;

	if (con->recv_nr) {
		for (i = 0; i < RTRS_SRV_RECV_BATCH; i++)
			con->recv_sge[i].addr = con->recv_dma + (con->recv_first + i) *
						sizeof(*con->recv_msgs);
		con->recv_first = (con->recv_first + RTRS_SRV_RECV_BATCH) % con->recv_nr;
	}
	return ib_post_recv(con->con.cm_id->qp, con->recv_wr, NULL);
}

/* Called for each completed receive; posts them again in batches. */
static int rtrs_srv_recv_again(struct rtrs_srv_con *con)
{
	if (++con->recv_used < RTRS_SRV_RECV_BATCH)
		return 0;
	con->recv_used = 0;
	return rtrs_srv_recv_post_batch(con);
}

/* Reads what came with a receive; false if that isn't an immediate value. */
static bool rtrs_srv_recv_imm(const struct rtrs_srv_con *con, const struct ib_wc *wc,
			      u32 *imm)
{
	u32 nr = con->recv_first + con->recv_used;
	const struct rtrs_msg_imm *msg;

	if (likely(!con->recv_nr)) {
		*imm = be32_to_cpu(wc->ex.imm_data);
		return wc->opcode == IB_WC_RECV_RDMA_WITH_IMM;
	}
	msg = &con->recv_msgs[nr];
	ib_dma_sync_single_for_cpu(con->path->path.dev, con->recv_dma + nr * sizeof(*msg),
				   sizeof(*msg), DMA_FROM_DEVICE);
	*imm = le32_to_cpu(msg->imm);
	return wc->opcode == IB_WC_RECV &&
	       !(wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE)) &&
	       rtrs_msg_imm_valid(msg, wc->byte_len);
}

static void rtrs_srv_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_con *con = container_of(wc->wr_cqe,
						struct rtrs_srv_con, recv_cqe);
	struct rtrs_srv_path *path = con->path;
	bool valid;
	u32 imm;
	int ret;

	if (unlikely(rtrs_con_wc_failed(&con->con, wc, "receive")))
		return;
	valid = rtrs_srv_recv_imm(con, wc, &imm);
	ret = rtrs_srv_recv_again(con);
	if (unlikely(ret)) {
		rtrs_srv_path_error(&path->path, ret, "posting receives");
		return;
	}
	if (unlikely(!valid))
		goto unexpected;
	if (rtrs_hb_recv(&con->con, imm))
		return;
	switch (rtrs_srv_path_state(path)) {
	case RTRS_SRV_CONNECTED:
		break;
	case RTRS_SRV_CONNECTING:
		goto unexpected;
	default:
		return;
	}
	/* Clients without slots send some requests on the service connection, too. */
	if (likely(rtrs_imm_type(imm) == RTRS_IMM_IO_REQ)) {
		if (!con->con.cid && rtrs_srv_has_slots(path))
			goto unexpected;
		rtrs_srv_request(con, rtrs_imm_payload(imm));
		return;
	}
	if (rtrs_imm_type(imm) == RTRS_IMM_FENCE &&
	    rtrs_srv_fence_recv(con, rtrs_imm_payload(imm)))
		return;

unexpected:
	rtrs_srv_proto_error(path, "message that isn't due here: immediate %#x, connection %u",
			     imm, con->con.cid);
}

/* Memory for the messages of @nr receives. */
static int rtrs_srv_recv_alloc(struct rtrs_srv_con *con, u32 nr)
{
	struct ib_device *dev = con->path->path.dev;
	size_t bytes = nr * sizeof(*con->recv_msgs);
	int ret;

	ret = rtrs_srv_path_charge(con->path, bytes);
	if (ret)
		return ret;
	con->recv_msgs = kzalloc(bytes, GFP_KERNEL);
	if (!con->recv_msgs)
		return -ENOMEM;
	con->recv_dma = ib_dma_map_single(dev, con->recv_msgs, bytes, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, con->recv_dma))
		return -ENOMEM;
	con->recv_nr = nr;
	return 0;
}

/**
 * rtrs_srv_recv_free() - undo what rtrs_srv_recv_post() has allocated
 * @con: connection whose queue pair is destroyed; its path still has the device
 */
void rtrs_srv_recv_free(struct rtrs_srv_con *con)
{
	if (con->recv_nr)
		ib_dma_unmap_single(con->path->path.dev, con->recv_dma,
				    con->recv_nr * sizeof(*con->recv_msgs),
				    DMA_FROM_DEVICE);
	con->recv_nr = 0;
	kfree(con->recv_msgs);
	con->recv_msgs = NULL;
}

static void rtrs_srv_recv_init_sge(struct rtrs_srv_con *con, u32 i)
{
	con->recv_sge[i].length = sizeof(*con->recv_msgs);
	con->recv_sge[i].lkey = con->path->path.pd->local_dma_lkey;
	con->recv_wr[i].sg_list = &con->recv_sge[i];
	con->recv_wr[i].num_sge = 1;
}

/**
 * rtrs_srv_recv_post() - post a new connection's receives
 * @con: connection that has its queue pair
 *
 * Return: 0 or a negative errno; rtrs_srv_recv_free() cleans up either way.
 */
int rtrs_srv_recv_post(struct rtrs_srv_con *con)
{
	u32 chains = rtrs_srv_recv_chains(con);
	int ret = 0;
	u32 i;

	if (con->path->path.no_imm)
		ret = rtrs_srv_recv_alloc(con, chains * RTRS_SRV_RECV_BATCH);
	con->recv_cqe.done = rtrs_srv_recv_done;
	for (i = 0; i < RTRS_SRV_RECV_BATCH; i++) {
		con->recv_wr[i].wr_cqe = &con->recv_cqe;
		if (i)
			con->recv_wr[i - 1].next = &con->recv_wr[i];
		if (con->recv_nr)
			rtrs_srv_recv_init_sge(con, i);
	}
	for (i = 0; i < chains && !ret; i++)
		ret = rtrs_srv_recv_post_batch(con);
	return ret;
}
