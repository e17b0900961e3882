// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile server that has slots: large data are fetched from the client's memory
 * or written to it, whose key the answer invalidates; small ones come and go with the
 * messages. It offers slots that can't be, or does something wrong once, which ends the path;
 * connected to again, it serves well, and I/O goes on.
 *
 * Not in "all", as there is a test of its own.
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

enum { SIZE_0, SIZE_1, SIZE_511, SIZE_4095, SIZE_OVER, SIZE_MAX_, SIZE_IO, HDR_0, HDR_100,
	HDR_513, HDR_4096, HDR_OF_LARGE, HDR_MAX, IO_LESS, NEW_KEYS, DEPTH_MAX };

static int connect_odd(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	grant_slots(s, req, rep);
	switch (s->test->arg) {
	case SIZE_0:		rep->slot_size = 0; break;
	case SIZE_1:		rep->slot_size = 1; break;
	case SIZE_511:		rep->slot_size = 511; break;
	case SIZE_4095:		rep->slot_size = 4095; break;
	case SIZE_OVER:
		rep->slot_size = CHUNK + 512;
		rep->max_hdr_size = 4096;
		rep->max_io_size = 1 << 20;
		break;
	case SIZE_MAX_:
		rep->slot_size = 0xfffffe00;
		rep->max_hdr_size = 4096;
		rep->max_io_size = -1;
		break;
	case SIZE_IO:
		rep->slot_size = CHUNK;
		rep->max_hdr_size = 4096;
		break;
	case HDR_0:		rep->max_hdr_size = 0; break;
	case HDR_100:		rep->max_hdr_size = 100; break;
	case HDR_513:		rep->max_hdr_size = 513; break;
	case HDR_4096:		rep->max_hdr_size = 4096; break;
	case HDR_OF_LARGE:	rep->slot_size = 16384; break;
	case HDR_MAX:		rep->max_hdr_size = -4096; break;
	case IO_LESS:
		rep->slot_size = 8192;
		rep->max_io_size = 4096;
		break;
	case NEW_KEYS:		rep->flags = FLAG_NEW_RKEY; break;
	case DEPTH_MAX:
		rep->queue_depth = 65535;
		rep->slot_size = 65536;
		rep->max_hdr_size = 4096;
		break;
	}
	return S_ACCEPT;
}

enum { SLOT_LESS, SLOT_MORE, SLOT_PART, SLOT_ALL, SLOT_SINGLE };

static u32 info_odd(struct srv *s, struct info_rsp *rsp, u32 len)
{
	const u32 per = S_SLOT + 512;
	struct desc *d = rsp->desc;
	unsigned int i;

	switch (s->test->arg) {
	case SLOT_LESS:		d->len -= per; break;
	case SLOT_MORE:		d->len += per; break;
	case SLOT_PART:		d->len -= 512; break;
	/* As if there were no slots */
	case SLOT_ALL:		d->len = DEPTH * CHUNK; break;
	case SLOT_SINGLE:
		rsp->nr = DEPTH;
		for (i = 0; i < DEPTH; i++) {
			d[i] = d[0];
			d[i].addr += (u64)i * per;
			d[i].len = per;
		}
		return 8 + 16 * DEPTH;
	}
	return len;
}

/* ---- answers ---- */

enum { SMALL_READ = 1, SMALL_WRITE, LARGE_READ, LARGE_WRITE, ANY_LARGE };

enum { IMM_PLAIN = 1, IMM_INV, IMM_FREE, KEY_SMALL, KEY_WRONG, KEY_LAST, BODY_TYPE, BODY_SLOT,
	BODY_SLOT_MAX, BODY_ERR, BODY_ERR_MAX, BODY_SHORT, BODY_NONE, BODY_LONG, NO_INV, IMM_ANSWER,
	TWICE, TWICE_IMM, INV_EMPTY, WRITE_BEYOND, WRITE_FAR, WRITE_WRONG_WAY, READ_BEYOND,
	READ_WRONG_WAY, READ_LATE, WRITE_LATE, SERVICE };

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
	case BODY_ERR:	send_inv(r, d->key, MSG_ANSWER, r->slot, 512, len); break;
	case BODY_ERR_MAX: send_inv(r, d->key, MSG_ANSWER, r->slot, 0xffff, len); break;
	case BODY_SHORT: send_inv(r, d->key, MSG_ANSWER, r->slot, 0, len - 1); break;
	case BODY_NONE:	send_inv(r, d->key, MSG_ANSWER, r->slot, 0, 0); break;
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

/* Not at the reads that look for partitions, before the disk is used */
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

/* An errno is an answer like any other. */
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

/* ---- with slots first and not later, and the other way around ---- */

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

#define OFFER(name_, what, arg_) \
	{ .name = "pulled-" name_, .about = "offers " what, .connect = connect_odd, \
	  .err = EPROTO, .ends = true, .log = "can't be right", .extra = true, .arg = arg_ }
#define INFO(name_, what, arg_) \
	{ .name = "pulled-info-" name_, .about = "INFO_RSP: " what, .connect = connect_slots, \
	  .info = info_odd, .err = EPROTO, .ends = true, .extra = true, .arg = arg_ }
#define WRONG(name_, what, kind, arg_, log_, fenced_) \
	{ .name = "pulled-" name_, .about = what, .connect = connect_slots, .again = true, \
	  .fence = fence, .request = wrong, .log = ENDS log_, .extra = true, \
	  .fenced = fenced_, .arg = AT(kind, arg_) }
/* The log has the client's reason; any, "", where its device sees first what is wrong. */
#define ANSWER(name_, what, kind, arg_, log_)	WRONG(name_, what, kind, arg_, log_, true)
/* Answered well first: there is nothing to be fenced. */
#define ANSWERED(name_, what, kind, arg_, log_)	WRONG(name_, what, kind, arg_, log_, false)

const struct srv_test pulled_cases[] = {
	{ .name = "pulled-good", .about = "all as it should be", .connect = connect_slots,
	  .extra = true },
	{ .name = "pulled-large-slots", .about = "slots of as much as any request",
	  .connect = connect_odd, .arg = SIZE_IO, .extra = true },
	{ .name = "pulled-info-single", .about = "INFO_RSP: a descriptor for each slot",
	  .connect = connect_slots, .info = info_odd, .arg = SLOT_SINGLE, .extra = true },
	OFFER("size-0", "slots of 0 bytes", SIZE_0),
	OFFER("size-1", "slots of 1 byte", SIZE_1),
	OFFER("size-511", "slots of 511 bytes", SIZE_511),
	OFFER("size-4095", "slots of 4095 bytes", SIZE_4095),
	OFFER("size-over", "slots of more than 128 KiB", SIZE_OVER),
	OFFER("size-4g", "slots of 4 GiB", SIZE_MAX_),
	OFFER("hdr-0", "no room for headers", HDR_0),
	OFFER("hdr-100", "too little room for headers", HDR_100),
	OFFER("hdr-513", "a byte more room for headers", HDR_513),
	OFFER("hdr-4096", "small slots with room for headers as of large ones", HDR_4096),
	OFFER("hdr-512", "large slots with room for headers as of small ones", HDR_OF_LARGE),
	OFFER("hdr-4g", "4 GiB of room for headers", HDR_MAX),
	OFFER("io-less", "I/O smaller than a slot", IO_LESS),
	OFFER("new-keys", "keys that change", NEW_KEYS),
	OFFER("depth", "more than an immediate value can say", DEPTH_MAX),
	INFO("less", "a slot too few", SLOT_LESS),
	INFO("more", "a slot too many", SLOT_MORE),
	INFO("part", "a part of a slot", SLOT_PART),
	INFO("all", "chunks in place of slots", SLOT_ALL),
	{ .name = "pulled-err", .about = "a fetch fails", .connect = connect_slots,
	  .request = large_fails, .io_err = EIO, .extra = true, .arg = AT(LARGE_WRITE, 5) },
	{ .name = "pulled-read-err", .about = "a large read fails", .connect = connect_slots,
	  .request = large_fails, .io_err = ENODATA, .extra = true, .arg = AT(LARGE_READ, 61) },
	ANSWER("imm-read", "IO_RSP to a large read", LARGE_READ, IMM_PLAIN, UNASKED),
	ANSWER("imm-write", "IO_RSP to a large write", LARGE_WRITE, IMM_PLAIN, UNASKED),
	ANSWER("imm-inv", "IO_RSP_W_INV to a large write", LARGE_WRITE, IMM_INV, BAD_IMM),
	ANSWER("imm-inv-small", "IO_RSP_W_INV to a small write", SMALL_WRITE, IMM_INV, BAD_IMM),
	ANSWER("imm-free", "IO_RSP for a slot that has no request", SMALL_WRITE, IMM_FREE, UNASKED),
	ANSWER("imm-body", "IO_RSP with the body of an ANSWER", LARGE_WRITE, IMM_ANSWER, UNASKED),
	ANSWER("service", "IO_RSP on the service connection", SMALL_WRITE, SERVICE, BAD_IMM),
	ANSWER("inv-small-read", "ANSWER to a small read", SMALL_READ, KEY_SMALL, OTHER_KEY),
	ANSWER("inv-small-write", "ANSWER to a small write", SMALL_WRITE, KEY_SMALL, OTHER_KEY),
	ANSWER("key-small", "ANSWER with the key of the memory for small reads",
	       LARGE_READ, KEY_SMALL, OTHER_KEY),
	ANSWER("key-wrong", "ANSWER with a key that isn't", LARGE_WRITE, KEY_WRONG, ""),
	ANSWER("key-last", "ANSWER with the key of the request before", ANY_LARGE, KEY_LAST, ""),
	ANSWER("type", "ANSWER of another type", LARGE_READ, BODY_TYPE, NO_ANSWER),
	ANSWER("slot", "ANSWER for a slot that has no request", LARGE_WRITE, BODY_SLOT, OTHER_KEY),
	ANSWER("slot-max", "ANSWER for slot 65535", LARGE_READ, BODY_SLOT_MAX, OTHER_KEY),
	ANSWER("errno-512", "ANSWER with errno 512", LARGE_WRITE, BODY_ERR, NO_ANSWER),
	ANSWER("errno-max", "ANSWER with errno 65535", LARGE_READ, BODY_ERR_MAX, NO_ANSWER),
	ANSWER("short", "ANSWER of 7 bytes", LARGE_WRITE, BODY_SHORT, NO_ANSWER),
	ANSWER("empty", "SEND WITH INV of nothing", LARGE_READ, BODY_NONE, NO_ANSWER),
	ANSWER("long", "ANSWER of 16 bytes", LARGE_WRITE, BODY_LONG, ""),
	ANSWER("no-inv", "ANSWER that invalidates nothing", LARGE_WRITE, NO_INV, BAD_MSG),
	ANSWERED("twice", "ANSWER twice", LARGE_WRITE, TWICE, "the server invalidated a key"),
	ANSWERED("twice-imm", "ANSWER and IO_RSP", LARGE_READ, TWICE_IMM, UNASKED),
	ANSWER("beyond", "data beyond a read's memory", LARGE_READ, WRITE_BEYOND, ""),
	ANSWER("far", "data beyond the memory for small reads", SMALL_READ, WRITE_FAR, ""),
	ANSWER("write-source", "data written to what is to be fetched",
	       LARGE_WRITE, WRITE_WRONG_WAY, ""),
	ANSWER("fetch-beyond", "fetches more than there is", LARGE_WRITE, READ_BEYOND, ""),
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
