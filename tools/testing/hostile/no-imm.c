// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: valid and invalid messages in place of immediate data, as over iWARP.
 * They work with all devices.
 */
#include "hostile.h"

static const u8 nothing[16];

/* A path with the feature; @offered: other features to offer instead, if not 0 */
static struct path *no_imm_path(u32 offered)
{
	struct path *p = path_new(test_name);

	path_offer_no_imm(p);
	if (offered) {
		p->req.features = offered;
		p->no_imm = false;
	}
	return path_ready(p);
}

static int send_msg_imm(struct path *p, unsigned int cid, u32 imm)
{
	struct msg_imm msg = { .type = MSG_IMM, .imm = imm };

	return send_msg(p, cid, &msg, sizeof(msg));
}

/* Valid messages */
static int works(long arg)
{
	struct path *p = no_imm_path(0);
	struct open_rsp rsp;

	if (!p)
		return -1;
	if (!(p->rep.features & FEATURE_NO_IMM) || !has_slots(p))
		return end_with(p, fail("granted: %#x", p->rep.features));
	return end_with(p, must_live(p) ?: sess_info(p, 2) ?:
			open_dev(p, dev_rw, ACC_RW, &rsp) ?: must_live(p));
}

/* Without slots, the feature is not granted. */
static int alone(long arg)
{
	struct path *p = no_imm_path(FEATURE_NO_IMM);

	if (!p)
		return -1;
	if (p->rep.features)
		return end_with(p, fail("granted: %#x", p->rep.features));
	return end_with(p, sess_info(p, 2) ?: must_live(p));
}

/* Such a message on a path without the feature */
static int without(long cid)
{
	struct path *p = no_imm_path(FEATURE_SLOTS);

	if (!p)
		return -1;
	send_msg_imm(p, cid, (u32)IMM_HB_MSG << 28);
	return end_with(p, must_end_quietly(p));
}

/* Invalid messages */
enum { TYPE_0, TYPE_6, ZERO_1, SHORT, EMPTY, LONG, WITH_IMM, WITH_INV, IMM };

static int bad(struct path *p, unsigned int cid, long how)
{
	struct msg_imm msg[2] = { { .type = MSG_IMM, .imm = (u32)IMM_HB_MSG << 28 } };
	u32 imm = (u32)IMM_HB_MSG << 28, len = sizeof(msg[0]);

	switch (how) {
	case TYPE_0:	msg[0].type = 0; break;
	case TYPE_6:	msg[0].type = MSG_ANSWER; break;
	case ZERO_1:	msg[0].zero = 1; break;
	case SHORT:	len--; break;
	case EMPTY:	len = 0; break;
	case LONG:	len++; break;
	case WITH_IMM:
	case WITH_INV:
		memcpy(area(p, 0), msg, len);
		return send_with(p, cid, area(p, 0), len, how == WITH_IMM ?
				 IBV_WR_SEND_WITH_IMM : IBV_WR_SEND_WITH_INV,
				 how == WITH_IMM ? imm : p->slot[0].key);
	case IMM:
		p->no_imm = false;
		return send_imm(p, cid, imm);
	}
	return send_msg(p, cid, msg, len);
}

static int no_message(long how)
{
	struct path *p;
	int cid, ret;

	for (cid = 0; cid < 2; cid++) {
		p = no_imm_path(0);
		if (!p)
			return -1;
		bad(p, cid, how);
		ret = must_end_quietly(p);
		path_free(p);
		if (ret)
			return ret;
	}
	return 0;
}

/* Valid messages with immediate values of all types */
static int values(long cid)
{
	struct path *p;
	int type, ret;

	for (type = 0; type < 16; type++) {
		p = no_imm_path(0);
		if (!p)
			return -1;
		send_msg_imm(p, cid, (u32)type << 28 | 0x0ffffff);
		if (!cid && (type == IMM_HB_MSG || type == IMM_HB_ACK))
			ret = must_live(p);
		else
			ret = must_end_quietly(p);
		path_free(p);
		if (ret)
			return ret;
	}
	return 0;
}

/* The message of a request without a request in the slot, or with an earlier one */
static int no_write(long arg)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct path *p = no_imm_path(0);
	struct request r;
	u32 imm, before;

	if (!p)
		return -1;
	if (arg) {
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
		if (do_request(p, &r))
			return end_with(p, -1);
		request_write(p, &r, &imm);
		before = p->slot[0].answers;
		send_msg_imm(p, 1, imm);
		return end_with(p, wait_answer(p, 0, before, 10000) ?: must_live(p));
	}
	send_msg_imm(p, 1, imm_req(p, 0, sizeof(nothing)));
	return end_with(p, must_end(p, "malformed request"));
}

/*
 * More messages than receives, as fast as possible: the path stays. An iWARP device does not send a
 * message again if there was no receive, so the path may end.
 */
static int flood(long type)
{
	struct path *p = no_imm_path(0);
	unsigned int n;
	bool iwarp;

	if (!p)
		return -1;
	iwarp = p->cons[0].id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	n = send_burst(p, (u32)type << 28, 0, 10000);
	snprintf(note, sizeof(note), "%u sent, %u answers so far", n, p->hb_acks);
	if (iwarp && path_ended(p))
		return end_with(p, 0);
	return end_with(p, sess_info(p, 2) ?: must_live(p));
}

const struct test no_imm_cases[] = {
	{ "no-imm", "valid messages in place of immediate data", works },
	{ "no-imm-alone", "offered without slots: not granted", alone },
	{ "no-imm-without-0", "message without the feature, on connection 0", without, 0,
	  .quiet = true },
	{ "no-imm-without-1", "message without the feature, on connection 1", without, 1,
	  .quiet = true },
	{ "no-imm-type-0", "message of type 0", no_message, TYPE_0, .quiet = true },
	{ "no-imm-type-6", "message of type 6", no_message, TYPE_6, .quiet = true },
	{ "no-imm-zero-1", "reserved field that is not 0", no_message, ZERO_1, .quiet = true },
	{ "no-imm-short", "message of 7 bytes", no_message, SHORT, .quiet = true },
	{ "no-imm-empty", "message of 0 bytes", no_message, EMPTY, .quiet = true },
	{ "no-imm-long", "message of 9 bytes", no_message, LONG, .quiet = true },
	{ "no-imm-send-imm", "SEND WITH IMM", no_message, WITH_IMM, .quiet = true },
	{ "no-imm-send-inv", "SEND WITH INV of a slot's key", no_message, WITH_INV,
	  .quiet = true },
	{ "no-imm-imm", "immediate data", no_message, IMM, .quiet = true },
	{ "no-imm-values-0", "values of all types on connection 0", values, 0, .quiet = true },
	{ "no-imm-values-1", "values of all types on connection 1", values, 1, .quiet = true },
	{ "no-imm-no-write", "message of a request without the request", no_write, 0 },
	{ "no-imm-write-before", "message of a request with an earlier request", no_write, 1 },
	{ "no-imm-flood-hb", "10,000 heartbeats", flood, IMM_HB_MSG },
	{ "no-imm-flood-hb-ack", "10,000 answers to heartbeats", flood, IMM_HB_ACK },
	{ }
};
