// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages from the server: answers, keys, heartbeats, FENCED, EVENT.
 *
 * Messages are not trusted. Invalid ones end the path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/**
 * rtrs_clt_parse_rkey() - parse the message with a new key that was received with an answer
 * @msg: message that was received with the answer
 * @len: bytes received
 * @slot: slot of the answer
 * @rkey: set to the new key of the slot's chunk
 *
 * Return: false if the message doesn't contain a key for this slot.
 */
bool rtrs_clt_parse_rkey(const struct rtrs_msg_rkey_rsp *msg, u32 len, u32 slot,
			 u32 *rkey)
{
	if (len < sizeof(*msg) ||
	    le16_to_cpu(msg->type) != RTRS_MSG_RKEY_RSP ||
	    le16_to_cpu(msg->slot) != slot)
		return false;
	*rkey = le32_to_cpu(msg->rkey);
	return true;
}

/**
 * rtrs_clt_parse_answer() - parse the message of a SEND WITH INV, with RTRS_FEATURE_SLOTS
 * @msg: message that was received
 * @len: bytes received
 * @answer: slot and errno are filled in
 *
 * Return: false if the message isn't an answer.
 */
bool rtrs_clt_parse_answer(const struct rtrs_msg_answer *msg, u32 len,
			   struct rtrs_clt_answer *answer)
{
	if (len != sizeof(*msg) || le16_to_cpu(msg->type) != RTRS_MSG_ANSWER ||
	    le16_to_cpu(msg->err) > RTRS_IMM_ERR_MASK)
		return false;
	answer->slot = le16_to_cpu(msg->slot);
	answer->err = -(int)le16_to_cpu(msg->err);
	return true;
}

/* Handles a SEND WITH INV. With RTRS_FEATURE_SLOTS it is an answer. */
static void rtrs_clt_recv_inv(struct rtrs_clt_con *con, const struct ib_wc *wc)
{
	u32 rkey = wc->ex.invalidate_rkey;
	struct rtrs_clt_answer answer = { .inv_rkey = &rkey };

	/* Not requested; see "Invalid keys" in io.c. */
	if (!to_clt_path(con->con.path)->neg.slot_size)
		return;
	if (rtrs_clt_parse_answer(&rtrs_con_recv_msg(&con->con)->answer, wc->byte_len, &answer))
		rtrs_clt_answer(con, &answer);
	else
		rtrs_clt_path_error(con->con.path, -EPROTO,
				    "the server invalidated a key without an answer");
}

/*
 * Handles an immediate value. If @has_msg, a message was received with it, which may contain a key.
 */
static void rtrs_clt_recv_imm(struct rtrs_clt_con *con, const struct ib_wc *wc, u32 imm,
			      bool has_msg)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	u32 payload = rtrs_imm_payload(imm), rkey;
	struct rtrs_clt_answer answer = {
		.slot = rtrs_imm_rsp_slot(payload),
		.err = rtrs_imm_rsp_err(payload),
	};

	switch (rtrs_imm_type(imm)) {
	case RTRS_IMM_IO_RSP_W_INV:
		if (path->neg.slot_size)
			break;
		fallthrough;
	case RTRS_IMM_IO_RSP:
		/*
		 * No requests are sent on the service connection, so there are no answers either.
		 */
		if (!con->con.cid)
			break;
		if (has_msg && path->neg.new_rkey) {
			if (!rtrs_clt_parse_rkey(&rtrs_con_recv_msg(&con->con)->rkey,
						 wc->byte_len, answer.slot, &rkey))
				break;
			answer.new_rkey = &rkey;
		}
		rtrs_clt_answer(con, &answer);
		return;
	case RTRS_IMM_FENCED:
		if (con->con.cid || !rtrs_clt_fence_answer(path, payload))
			break;
		return;
	case RTRS_IMM_EVENT:
		if (con->con.cid || payload || !(path->path.features & RTRS_FEATURE_EVENT))
			break;
		path->clt->link.srv_event(path->clt->link.priv);
		return;
	default:
		if (rtrs_hb_recv(&con->con, imm))
			return;
	}
	rtrs_path_err(&path->path, "connection %u: unexpected immediate data %#x\n", con->con.cid,
		      imm);
	rtrs_clt_path_error(con->con.path, -EPROTO,
			    "the server sent unexpected immediate data");
}

/* Handles a message. With RTRS_FEATURE_NO_IMM, it replaces an immediate value. */
static void rtrs_clt_recv_msg(struct rtrs_clt_con *con, const struct ib_wc *wc)
{
	const union rtrs_recv_msg *msg = rtrs_con_recv_msg(&con->con);

	if (con->con.path->no_imm && !(wc->wc_flags & IB_WC_WITH_IMM) &&
	    rtrs_msg_imm_valid(&msg->imm, wc->byte_len))
		rtrs_clt_recv_imm(con, wc, le32_to_cpu(msg->imm.imm), false);
	else
		rtrs_clt_path_error(con->con.path, -EPROTO,
				    "the server sent an unexpected message");
}

/* Completion handler of all receives except the one for INFO_RSP */
static void rtrs_clt_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_con *con = container_of(wc->wr_cqe, struct rtrs_clt_con,
						con.recvs.cqe);
	int ret;

	/*
	 * If a connection is rejected, the CM moves its queue pair to the error state before it
	 * reports the reason.
	 */
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
 * @con: connection with a queue pair; the service connection must be connected
 * @nr: number of receives
 *
 * Return: 0 or a negative errno; rtrs_path_destroy_qps() cleans up in both cases.
 */
int rtrs_clt_recvs_start(struct rtrs_clt_con *con, u32 nr)
{
	return rtrs_con_start_recvs(&con->con, nr, true, rtrs_clt_recv_done);
}
