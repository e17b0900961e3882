// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages from the server: answers, keys, heartbeats, FENCED, EVENT.
 *
 * None of them is trusted. Invalid ones end the path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/**
 * rtrs_clt_read_rkey() - read the key that came with an answer
 * @msg: message that was received with the answer
 * @len: bytes that were received
 * @slot: slot that the answer is for
 * @rkey: set to the new key of the slot's chunk
 *
 * Return: false if the message doesn't have a key for this slot.
 */
bool rtrs_clt_read_rkey(const struct rtrs_msg_rkey_rsp *msg, u32 len, u32 slot,
			u32 *rkey)
{
	if (len < sizeof(*msg) ||
	    le16_to_cpu(msg->type) != RTRS_MSG_RKEY_RSP ||
	    le16_to_cpu(msg->slot) != slot)
		return false;
	*rkey = le32_to_cpu(msg->rkey);
	return true;
}

/* Return: @rkey, set to the key that came with an answer; NULL if there is no valid one. */
static const u32 *rtrs_clt_recv_rkey(struct rtrs_clt_con *con, const struct ib_wc *wc,
				     u32 slot, u32 *rkey)
{
	const union rtrs_recv_msg *msg = rtrs_con_recv_msg(&con->con);

	return rtrs_clt_read_rkey(&msg->rkey, wc->byte_len, slot, rkey) ? rkey : NULL;
}

/**
 * rtrs_clt_read_answer() - read what came with a SEND WITH INV, with RTRS_FEATURE_SLOTS
 * @msg: message that was received
 * @len: bytes that were received
 * @slot: set to the slot that it is for
 * @err: set to the errno of the answer, 0 or negative
 *
 * Return: false if the message isn't an answer.
 */
bool rtrs_clt_read_answer(const struct rtrs_msg_answer *msg, u32 len, u32 *slot, int *err)
{
	if (len != sizeof(*msg) || le16_to_cpu(msg->type) != RTRS_MSG_ANSWER ||
	    le16_to_cpu(msg->err) > RTRS_IMM_ERR_MASK)
		return false;
	*slot = le16_to_cpu(msg->slot);
	*err = -(int)le16_to_cpu(msg->err);
	return true;
}

/* Handles a SEND WITH INV: with small slots, an answer. */
static void rtrs_clt_recv_inv(struct rtrs_clt_con *con, const struct ib_wc *wc)
{
	const union rtrs_recv_msg *msg;
	u32 slot;
	int err;

	if (!to_clt_path(con->con.path)->neg.slot_size) {
		rtrs_clt_invalidated(con, wc->ex.invalidate_rkey);
		return;
	}
	msg = rtrs_con_recv_msg(&con->con);
	if (rtrs_clt_read_answer(&msg->answer, wc->byte_len, &slot, &err))
		rtrs_clt_answer_inv(con, wc->ex.invalidate_rkey, slot, err);
	else
		rtrs_clt_path_error(con->con.path, -EPROTO,
				    "the server invalidated a key without an answer");
}

/* Handles an immediate value. With @has_msg, it came with a message, which may have a key. */
static void rtrs_clt_recv_imm(struct rtrs_clt_con *con, const struct ib_wc *wc, u32 imm,
			      bool has_msg)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	u32 payload = rtrs_imm_payload(imm);
	u32 slot = rtrs_imm_rsp_slot(payload);
	const u32 *new_rkey = NULL;
	u32 rkey;

	switch (rtrs_imm_type(imm)) {
	case RTRS_IMM_IO_RSP_W_INV:
		if (path->neg.slot_size)
			break;
		fallthrough;
	case RTRS_IMM_IO_RSP:
		/* No requests are sent on the service connection, so none is answered there. */
		if (!con->con.cid)
			break;
		if (has_msg && path->neg.new_rkey) {
			new_rkey = rtrs_clt_recv_rkey(con, wc, slot, &rkey);
			if (!new_rkey)
				break;
		}
		rtrs_clt_answer(con, slot, rtrs_imm_rsp_err(payload), new_rkey);
		return;
	case RTRS_IMM_FENCED:
		if (con->con.cid || !rtrs_clt_fence_answer(path, payload))
			break;
		return;
	case RTRS_IMM_EVENT:
		if (con->con.cid || payload || !(path->neg.features & RTRS_FEATURE_EVENT))
			break;
		path->clt->link.srv_event(path->clt->link.priv);
		return;
	default:
		if (rtrs_hb_recv(&con->con, imm))
			return;
	}
	rtrs_clt_err(path->clt, "%s: connection %u: immediate data %#x not expected\n",
		     path->path.name, con->con.cid, imm);
	rtrs_clt_path_error(con->con.path, -EPROTO,
			    "the server sent unexpected immediate data");
}

/* Handles a message: with RTRS_FEATURE_NO_IMM, it has what would be an immediate value. */
static void rtrs_clt_recv_msg(struct rtrs_clt_con *con, const struct ib_wc *wc)
{
	const union rtrs_recv_msg *msg = rtrs_con_recv_msg(&con->con);

	if (con->con.path->no_imm && !(wc->wc_flags & IB_WC_WITH_IMM) &&
	    rtrs_msg_imm_valid(&msg->imm, wc->byte_len))
		rtrs_clt_recv_imm(con, wc, le32_to_cpu(msg->imm.imm), false);
	else
		rtrs_clt_path_error(con->con.path, -EPROTO,
				    "the server sent a message that was not asked for");
}

/* Handler of all receives but the one for INFO_RSP. */
static void rtrs_clt_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_con *con = container_of(wc->wr_cqe, struct rtrs_clt_con,
						con.recvs.cqe);
	int ret;

	/* The CM breaks a queue pair that is rejected before it tells us the reason. */
	if (wc->status == IB_WC_WR_FLUSH_ERR && !READ_ONCE(con->established))
		return;
	if (rtrs_con_wc_failed(&con->con, wc, "receive"))
		return;
	if (wc->wc_flags & IB_WC_WITH_IMM && !con->con.path->no_imm)
		rtrs_clt_recv_imm(con, wc, be32_to_cpu(wc->ex.imm_data),
				  wc->opcode == IB_WC_RECV);
	else if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		rtrs_clt_recv_inv(con, wc);
	else
		rtrs_clt_recv_msg(con, wc);
	ret = rtrs_con_repost(&con->con);
	if (unlikely(ret))
		rtrs_clt_path_error(con->con.path, ret, "posting receives");
}

/**
 * rtrs_clt_recvs_start() - post a connection's receives
 * @con: has its queue pair; the service connection is connected already
 * @nr: number of receives
 *
 * Return: 0 or a negative errno; rtrs_con_free_recvs() cleans up either way.
 */
int rtrs_clt_recvs_start(struct rtrs_clt_con *con, u32 nr)
{
	return rtrs_con_start_recvs(&con->con, nr, true, rtrs_clt_recv_done);
}
