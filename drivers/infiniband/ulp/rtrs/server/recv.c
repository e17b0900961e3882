// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages from the client. A message is dispatched by its immediate value, or by the message that
 * replaces it with RTRS_FEATURE_NO_IMM, to heartbeats, requests and fencing.
 */
#include "srv.h"

/* Reads the immediate value of a received message. Returns false if the message has none. */
static bool rtrs_srv_recv_imm(const struct rtrs_srv_con *con, const struct ib_wc *wc,
			      u32 *imm)
{
	const union rtrs_recv_msg *msg;

	if (likely(!con->path->path.no_imm)) {
		*imm = be32_to_cpu(wc->ex.imm_data);
		return wc->opcode == IB_WC_RECV_RDMA_WITH_IMM;
	}
	msg = rtrs_con_recv_msg(&con->con);
	*imm = le32_to_cpu(msg->imm.imm);
	return wc->opcode == IB_WC_RECV &&
	       !(wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE)) &&
	       rtrs_msg_imm_valid(&msg->imm, wc->byte_len);
}

static void rtrs_srv_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_con *con = container_of(wc->wr_cqe, struct rtrs_srv_con,
						con.recvs.cqe);
	struct rtrs_srv_path *path = con->path;
	bool valid;
	u32 imm;
	int ret;

	if (unlikely(rtrs_con_wc_failed(&con->con, wc, "receive")))
		return;
	valid = rtrs_srv_recv_imm(con, wc, &imm);
	ret = rtrs_con_repost(&con->con);
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
	/* Clients without slots also send requests on the service connection. */
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
	rtrs_srv_proto_error(path, "unexpected message: immediate %#x, connection %u",
			     imm, con->con.cid);
}

/**
 * rtrs_srv_recv_start() - post a new connection's receives
 * @con: connection with its queue pair
 *
 * Return: 0 or a negative errno. In either case, rtrs_path_destroy_qps() cleans up.
 */
int rtrs_srv_recv_start(struct rtrs_srv_con *con)
{
	struct rtrs_path *path = &con->path->path;

	return rtrs_con_start_recvs(&con->con,
				    rtrs_srv_nr_recvs(con->path, path->dev, con->con.cid),
				    path->no_imm, rtrs_srv_recv_done);
}
