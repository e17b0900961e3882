// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receives: posted, and their completions dispatched by immediate value to heartbeats,
 * requests and fencing.
 */
#include "srv.h"

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
		return min_t(u32, RTRS_SERVICE_DEPTH, max) /
		       RTRS_SRV_RECV_BATCH - 1;
	return DIV_ROUND_UP(con->path->sess->queue_depth +
			    RTRS_SRV_RECV_BATCH - 1, RTRS_SRV_RECV_BATCH);
}

/* Called for each completed receive; posts them again in batches. */
static int rtrs_srv_recv_again(struct rtrs_srv_con *con)
{
	if (++con->recv_used < RTRS_SRV_RECV_BATCH)
		return 0;
	con->recv_used = 0;
	return ib_post_recv(con->con.cm_id->qp, con->recv_wr, NULL);
}

static void rtrs_srv_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_con *con = container_of(wc->wr_cqe,
						struct rtrs_srv_con, recv_cqe);
	struct rtrs_srv_path *path = con->path;
	u32 imm = 0;
	int ret;

	if (unlikely(rtrs_con_wc_failed(&con->con, wc, "receive")))
		return;
	ret = rtrs_srv_recv_again(con);
	if (unlikely(ret)) {
		rtrs_srv_path_error(&path->path, ret, "posting receives");
		return;
	}
	if (unlikely(wc->opcode != IB_WC_RECV_RDMA_WITH_IMM))
		goto unexpected;
	imm = be32_to_cpu(wc->ex.imm_data);
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

/**
 * rtrs_srv_recv_post() - post a new connection's receives
 * @con: connection that has its queue pair
 *
 * Return: 0 or a negative errno.
 */
int rtrs_srv_recv_post(struct rtrs_srv_con *con)
{
	u32 chains = rtrs_srv_recv_chains(con);
	int ret = 0;
	u32 i;

	con->recv_cqe.done = rtrs_srv_recv_done;
	for (i = 0; i < RTRS_SRV_RECV_BATCH; i++) {
		con->recv_wr[i].wr_cqe = &con->recv_cqe;
		if (i)
			con->recv_wr[i - 1].next = &con->recv_wr[i];
	}
	for (i = 0; i < chains && !ret; i++)
		ret = ib_post_recv(con->con.cm_id->qp, con->recv_wr, NULL);
	return ret;
}
