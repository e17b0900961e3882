// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile server with slots. Large data are fetched from the client's memory or
 * written to it, and the answer invalidates its key; small data travel in messages. The server
 * offers invalid slots, or sends one invalid message, which ends the path. After the reconnect it
 * is a valid server, and I/O continues.
 *
 * Not part of "all": see tests/hostile-pulled.sh.
 */
#include "server.h"

static void grant_slots(struct srv *s, const struct cm_req *req, struct cm_rep *rep)
{
	if (!(req->features & FEATURE_SLOTS))
		s->complaint = "the client offers no slots";
	rep->features = FEATURE_FENCE | FEATURE_SLOTS;
	rep->sess_id = 5;
	rep->srv_uuid[0] = 1;
	rep->slot_size = S_SLOT;
	rep->max_hdr_size = 512;
	rep->max_io_size = CHUNK;
}

static int connect_slots(struct srv *s, const struct cm_req *req, struct cm_rep *rep,
			 u8 *len)
{
	grant_slots(s, req, rep);
	return S_ACCEPT;
}

/* ---- offers ---- */

/* No data in slots; the KUnit tests of rtrs-client-conn have the other invalid offers. */
static int connect_empty(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	grant_slots(s, req, rep);
	rep->slot_size = 0;
	return S_ACCEPT;
}

static int connect_large(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	grant_slots(s, req, rep);
	rep->slot_size = CHUNK;
	rep->max_hdr_size = 4096;
	return S_ACCEPT;
}

enum { SLOT_ALL, SLOT_SINGLE };

static u32 info_odd(struct srv *s, struct info_rsp *rsp, u32 len)
{
	if (s->test->arg == SLOT_SINGLE)
		return s_desc_each(rsp, S_SLOT + 512);
	/* Chunks in place of slots */
	rsp->desc[0].len = DEPTH * CHUNK;
	return len;
}

/* ---- answers ---- */

enum { SMALL_READ = 1, SMALL_WRITE, LARGE_READ, LARGE_WRITE, ANY_LARGE };

enum { IMM_PLAIN = 1, IMM_INV, IMM_FREE, KEY_SMALL, KEY_WRONG, KEY_LAST, BODY_TYPE, BODY_SLOT,
	BODY_SLOT_MAX, BODY_LONG, NO_INV, IMM_ANSWER, TWICE, TWICE_IMM, WRITE_BEYOND, WRITE_FAR,
	WRITE_WRONG_WAY, READ_BEYOND, READ_WRONG_WAY, READ_LATE, WRITE_LATE, SERVICE };

#define AT(kind, what)	((kind) << 8 | (what))

static unsigned int kind_of(const struct sreq *r)
{
	const struct io_msg *msg = (const void *)r->msg;

	if (r->kind != RNBD_IO)
		return 0;
	if (r->hdr.type == MSG_FETCH)
		return LARGE_WRITE;
	if (r->hdr.type == MSG_READ)
		return s_needs_inval(r) ? LARGE_READ : SMALL_READ;
	return (msg->rw & 0xff) == OP_WRITE ? SMALL_WRITE : 0;
}

static void send_inv(const struct sreq *r, u32 key, u16 type, u32 slot, u16 err, u32 len)
{
	struct answer a = { type, slot, err };

	s_answer_inv(r, key, &a, len);
}

static void misbehave(struct srv *s, const struct sreq *r, unsigned int what)
{
	static const u8 junk[64];
	const struct answer a = { MSG_ANSWER, r->slot };
	const struct desc *d = &r->hdr.desc[0];
	const u32 len = sizeof(a);

	switch (what) {
	case IMM_PLAIN:	s_imm(r->con, s_rsp(IMM_IO_RSP, r->slot, 0)); break;
	case IMM_INV:	s_imm(r->con, s_rsp(IMM_IO_RSP_W_INV, r->slot, 0)); break;
	case IMM_FREE:
		s_imm(r->con, s_rsp(IMM_IO_RSP, (r->slot + 1) % DEPTH, 0));
		break;
	case SERVICE:	s_imm(&s->cons[0], s_rsp(IMM_IO_RSP, r->slot, 0)); break;
	case KEY_SMALL:	send_inv(r, s->small_key, MSG_ANSWER, r->slot, 0, len); break;
	case KEY_WRONG:	send_inv(r, d->key ^ 0x55, MSG_ANSWER, r->slot, 0, len); break;
	case KEY_LAST:	send_inv(r, s->large_key, MSG_ANSWER, r->slot, 0, len); break;
	case BODY_TYPE:	send_inv(r, d->key, MSG_RKEY_RSP, r->slot, 0, len); break;
	case BODY_SLOT:	send_inv(r, d->key, MSG_ANSWER, r->slot ^ 1, 0, len); break;
	case BODY_SLOT_MAX: send_inv(r, d->key, MSG_ANSWER, 0xffff, 0, len); break;
	case BODY_LONG:	send_inv(r, d->key, MSG_ANSWER, r->slot, 0, 16); break;
	case NO_INV:	s_post(r->con, IBV_WR_SEND, &a, len, 0, 0, 0); break;
	case IMM_ANSWER:
		s_post(r->con, IBV_WR_SEND_WITH_IMM, &a, len,
		       s_rsp(IMM_IO_RSP, r->slot, 0), 0, 0);
		break;
	case TWICE:
		s_reply(r, junk, 0, 0);
		send_inv(r, d->key, MSG_ANSWER, r->slot, 0, len);
		break;
	case TWICE_IMM:
		s_reply(r, junk, 0, 0);
		s_imm(r->con, s_rsp(IMM_IO_RSP, r->slot, 0));
		break;
	case WRITE_BEYOND:
		s_post(r->con, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr + d->len - 32, d->key);
		break;
	case WRITE_FAR:
		s_post(r->con, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr + (1 << 26), d->key);
		break;
	case WRITE_WRONG_WAY:
		s_post(r->con, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr, d->key);
		break;
	case READ_BEYOND:
		s_post(r->con, IBV_WR_RDMA_READ, NULL, 64, 0, d->addr + d->len - 32, d->key);
		break;
	case READ_WRONG_WAY:
		s_post(r->con, IBV_WR_RDMA_READ, NULL, 64, 0, d->addr, d->key);
		break;
	case READ_LATE:
		s_reply(r, junk, 0, 0);
		s_post(r->con, IBV_WR_RDMA_READ, NULL, 64, 0, d->addr, d->key);
		break;
	case WRITE_LATE:
		s_reply(r, junk, 0, 0);
		s_post(r->con, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr, d->key);
		break;
	}
}

/* After the first write: not in place of answers to reads that look for partitions */
static bool wrong(struct srv *s, const struct sreq *r)
{
	unsigned int kind = kind_of(r), at = s->test->arg >> 8;

	if (kind == SMALL_WRITE)
		s->wrote = true;
	if (!s->acted && s->wrote && kind &&
	    (kind == at || (at == ANY_LARGE && kind >= LARGE_READ)) &&
	    ((s->test->arg & 0xff) != KEY_LAST || s->large_key)) {
		s->acted = true;
		s->life = 1;
		misbehave(s, r, s->test->arg & 0xff);
		return true;
	}
	if (kind == SMALL_READ)
		s->small_key = r->hdr.desc[0].key;
	if (kind >= LARGE_READ)
		s->large_key = r->hdr.desc[0].key;
	return false;
}

/* Answers with an errno, which is valid. */
static bool large_fails(struct srv *s, const struct sreq *r)
{
	if (s->acted || kind_of(r) != s->test->arg >> 8)
		return false;
	s->acted = true;
	s_reply(r, NULL, 0, -(int)(s->test->arg & 0xff));
	return true;
}

static void fence(struct srv *s, u32 id)
{
	s_imm(&s->cons[0], (u32)IMM_FENCED << 28 | id);
}

/* ---- slots only before, or only after the reconnect ---- */

static int connect_other(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	bool first = !s->acted || s->life < 2;

	if (first == !!s->test->arg) {
		grant_slots(s, req, rep);
		return S_ACCEPT;
	}
	rep->features = FEATURE_FENCE;
	rep->sess_id = 5;
	rep->srv_uuid[0] = 1;
	if (!first)
		rep->max_io_size = 2 * CHUNK - 4096;
	return S_ACCEPT;
}

static bool hang_up_first(struct srv *s, const struct sreq *r)
{
	if (s->acted || r->kind != RNBD_IO || r->hdr.type == MSG_READ)
		return false;
	s->acted = true;
	s->life = 1;
	s_hang_up();
	return true;
}

#define WRONG(name_, what, kind, arg_, log_, fenced_) \
	{ .name = "pulled-" name_, .about = what, .connect = connect_slots, .again = true, \
	  .fence = fence, .request = wrong, .log = ENDS log_, .extra = true, \
	  .fenced = fenced_, .arg = AT(kind, arg_) }
/* The client logs its reason; "" if its device detects the error first. */
#define ANSWER(name_, what, kind, arg_, log_)	WRONG(name_, what, kind, arg_, log_, true)
/* A valid answer is sent first, so no request remains to be fenced. */
#define ANSWERED(name_, what, kind, arg_, log_)	WRONG(name_, what, kind, arg_, log_, false)

const struct srv_test pulled_cases[] = {
	{ .name = "pulled-good", .about = "a valid server", .connect = connect_slots,
	  .extra = true },
	{ .name = "pulled-large-slots", .about = "slots as large as the largest request",
	  .connect = connect_large, .extra = true },
	{ .name = "pulled-info-single", .about = "INFO_RSP: a descriptor for each slot",
	  .connect = connect_slots, .info = info_odd, .arg = SLOT_SINGLE, .extra = true },
	{ .name = "pulled-size-0", .about = "slots without data", .connect = connect_empty,
	  .err = EPROTO, .ends = true, .log = "offer is invalid", .extra = true },
	{ .name = "pulled-info-all", .about = "INFO_RSP: chunks in place of slots",
	  .connect = connect_slots, .info = info_odd, .err = EPROTO, .ends = true,
	  .extra = true, .arg = SLOT_ALL },
	{ .name = "pulled-err", .about = "a fetch fails", .connect = connect_slots,
	  .request = large_fails, .io_err = EIO, .extra = true, .arg = AT(LARGE_WRITE, 5) },
	{ .name = "pulled-read-err", .about = "a large read fails", .connect = connect_slots,
	  .request = large_fails, .io_err = ENODATA, .extra = true, .arg = AT(LARGE_READ, 61) },
	ANSWER("imm-read", "IO_RSP to a large read", LARGE_READ, IMM_PLAIN, UNASKED),
	ANSWER("imm-write", "IO_RSP to a large write", LARGE_WRITE, IMM_PLAIN, UNASKED),
	ANSWER("imm-inv", "IO_RSP_W_INV to a large write", LARGE_WRITE, IMM_INV, BAD_IMM),
	ANSWER("imm-inv-small", "IO_RSP_W_INV to a small write", SMALL_WRITE, IMM_INV, BAD_IMM),
	ANSWER("imm-free", "IO_RSP for a slot not in use", SMALL_WRITE, IMM_FREE, UNASKED),
	ANSWER("imm-body", "IO_RSP with the body of an ANSWER", LARGE_WRITE, IMM_ANSWER, UNASKED),
	ANSWER("service", "IO_RSP on the service connection", SMALL_WRITE, SERVICE, BAD_IMM),
	ANSWER("inv-small-read", "ANSWER to a small read", SMALL_READ, KEY_SMALL, OTHER_KEY),
	ANSWER("inv-small-write", "ANSWER to a small write", SMALL_WRITE, KEY_SMALL, OTHER_KEY),
	ANSWER("key-small", "ANSWER with the key of the memory for small reads",
	       LARGE_READ, KEY_SMALL, OTHER_KEY),
	ANSWER("key-wrong", "ANSWER with an unknown key", LARGE_WRITE, KEY_WRONG, ""),
	ANSWER("key-last", "ANSWER with the key of the last request", ANY_LARGE, KEY_LAST, ""),
	ANSWER("type", "ANSWER of another type", LARGE_READ, BODY_TYPE, NO_ANSWER),
	ANSWER("slot", "ANSWER for a slot not in use", LARGE_WRITE, BODY_SLOT, OTHER_KEY),
	ANSWER("slot-max", "ANSWER for slot 65535", LARGE_READ, BODY_SLOT_MAX, OTHER_KEY),
	ANSWER("long", "ANSWER of 16 bytes", LARGE_WRITE, BODY_LONG, ""),
	ANSWER("no-inv", "ANSWER without an invalidation", LARGE_WRITE, NO_INV, BAD_MSG),
	ANSWERED("twice", "ANSWER twice", LARGE_WRITE, TWICE, "the server invalidated a key"),
	ANSWERED("twice-imm", "ANSWER and IO_RSP", LARGE_READ, TWICE_IMM, UNASKED),
	ANSWER("beyond", "data beyond a read's memory", LARGE_READ, WRITE_BEYOND, ""),
	ANSWER("far", "data beyond the memory for small reads", SMALL_READ, WRITE_FAR, ""),
	ANSWER("write-source", "RDMA WRITE to the memory of a large write",
	       LARGE_WRITE, WRITE_WRONG_WAY, ""),
	ANSWER("fetch-beyond", "fetches beyond a write's memory", LARGE_WRITE, READ_BEYOND, ""),
	ANSWER("fetch-read", "fetches the memory of a large read", LARGE_READ, READ_WRONG_WAY, ""),
	ANSWER("fetch-small", "fetches the memory for small reads", SMALL_READ, READ_WRONG_WAY, ""),
	ANSWERED("fetch-late", "fetches after the answer", LARGE_WRITE, READ_LATE,
		 "a connection broke"),
	ANSWERED("write-late", "writes data after the answer", LARGE_READ, WRITE_LATE,
		 "a connection broke"),
	{ .name = "pulled-no-more", .about = "comes back without slots", .again = true,
	  .connect = connect_other, .request = hang_up_first, .fence = fence,
	  .fenced = true, .arg = 1, .extra = true },
	{ .name = "pulled-anew", .about = "comes back with slots", .again = true,
	  .connect = connect_other, .request = hang_up_first, .fence = fence,
	  .fenced = true, .arg = 0, .extra = true },
	{ }
};
