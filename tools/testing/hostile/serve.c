// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile server.
 */
#include "server.h"

/* ---- answers to connection requests ---- */

/* Rejects with an errno. */
static int reject(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	memset(rep, 0, sizeof(*rep));
	rep->magic = MAGIC;
	rep->version = VERSION;
	rep->err = s->test->arg;
	return S_REJECT;
}

/* Rejects the second connection. */
static int reject_1(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	return req->cid == 1 ? reject(s, req, rep, len) : S_ACCEPT;
}

static int reject_empty(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	*len = 0;
	return S_REJECT;
}

enum { REP_MAGIC, DEPTH_1, DEPTH_FITS, IO_4096, IO_5000, FLAGS, FEATURES, CON_1_ALL };

static int accept_odd(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	if (s->test->arg == CON_1_ALL) {
		if (req->cid)
			memset(rep, 0xff, sizeof(*rep));
		return S_ACCEPT;
	}
	switch (s->test->arg) {
	case REP_MAGIC:		rep->magic = 0; break;
	case DEPTH_1:		rep->queue_depth = 1; break;
	case DEPTH_FITS:
		rep->queue_depth = 32768;
		rep->max_io_size = 4096;
		break;
	case IO_4096:		rep->max_io_size = 4096; break;
	case IO_5000:		rep->max_io_size = 5000; break;
	case FLAGS:		rep->flags = -1; break;
	case FEATURES:		rep->features = ~FEATURE_SLOTS; break;
	}
	return S_ACCEPT;
}

static int with_flags(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	rep->flags = s->test->flags;
	return S_ACCEPT;
}

static int grants_fencing(struct srv *s, const struct cm_req *req, struct cm_rep *rep,
			  u8 *len)
{
	rep->features = FEATURE_FENCE;
	rep->sess_id = 5;
	return S_ACCEPT;
}

static int grants_events(struct srv *s, const struct cm_req *req, struct cm_rep *rep,
			 u8 *len)
{
	rep->features = FEATURE_EVENT;
	return S_ACCEPT;
}

/* Does not answer the request for this connection. */
static int ignore(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	return req->cid == s->test->arg ? S_IGNORE : S_ACCEPT;
}

/* ---- when a connection is established ---- */

static void hang_up_con(struct srv *s, struct scon *c)
{
	if (c->cid == s->test->arg)
		s_disconnect(c);
}

/* The connection's QP fails, and the CM does not say so. */
static void break_con(struct srv *s, struct scon *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (c->cid == s->test->arg)
		ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
}

enum { EARLY_INFO, EARLY_HB, EARLY_HBS, EARLY_RSP, EARLY_SEND };

static void early(struct srv *s, struct scon *c)
{
	struct info_rsp rsp = { .type = MSG_INFO_RSP };
	int i;

	switch (s->test->arg) {
	case EARLY_INFO:
		if (!c->cid)
			s_post(c, IBV_WR_SEND, &rsp, sizeof(rsp), 0, 0, 0);
		break;
	case EARLY_HB:
		if (!c->cid)
			s_imm(c, (u32)IMM_HB_MSG << 28);
		break;
	/* More than the receives that the client posts at first */
	case EARLY_HBS:
		for (i = 0; !c->cid && i < 60; i++)
			s_imm(c, (u32)IMM_HB_MSG << 28);
		break;
	case EARLY_RSP:
		if (c->cid == 1)
			s_imm(c, s_rsp(IMM_IO_RSP, 0, 0));
		break;
	case EARLY_SEND:
		if (c->cid == 1)
			s_post(c, IBV_WR_SEND, &rsp, sizeof(rsp), 0, 0, 0);
		break;
	}
}

/* The CM may report connections late. The client sends INFO_REQ when all are established. */
static u32 up_at_last(struct srv *s, struct info_rsp *rsp, u32 len)
{
	unsigned int i;

	for (i = 0; i < s->nr_cons; i++)
		s_up(&s->cons[i]);
	return len;
}

/* No answer: with one, the path could be up before the client sees the early message. */
static u32 early_at_last(struct srv *s, struct info_rsp *rsp, u32 len)
{
	up_at_last(s, rsp, len);
	return 0;
}

/* ---- INFO_RSP ---- */

enum { INFO_TYPE, INFO_TOO_MANY, INFO_LONGER, INFO_TOO_LONG, INFO_SINGLE, INFO_TWICE,
	INFO_HANG_UP, INFO_SILENT, INFO_KEY, INFO_ADDR };

static u32 info_odd(struct srv *s, struct info_rsp *rsp, u32 len)
{
	struct desc *d = rsp->desc;
	unsigned int i;

	switch (s->test->arg) {
	case INFO_TYPE:		rsp->type = MSG_RKEY_RSP; break;
	case INFO_TOO_MANY:
		rsp->nr = DEPTH + 1;
		for (i = 0; i <= DEPTH; i++) {
			d[i] = d[0];
			d[i].len = CHUNK;
		}
		/* Longer than the client's receive buffer */
		return 8 + 16 * (DEPTH + 1);
	case INFO_SINGLE:	return s_desc_each(rsp, CHUNK);
	case INFO_LONGER:	return len + 16;
	case INFO_TOO_LONG:	return 8 + 16 * (DEPTH + 4);
	case INFO_TWICE:
		s_post(&s->cons[0], IBV_WR_SEND, rsp, len, 0, 0, 0);
		break;
	case INFO_HANG_UP:
		s_hang_up();
		return 0;
	case INFO_SILENT:
		return 0;
	case INFO_KEY:		d->key ^= 0x55; break;
	case INFO_ADDR:		d->addr += 1ull << 40; break;
	}
	return len;
}

static u32 info_none(struct srv *s, struct info_rsp *rsp, u32 len)
{
	return 0;
}

static u32 info_imm(struct srv *s, struct info_rsp *rsp, u32 len)
{
	s_post(&s->cons[0], IBV_WR_SEND_WITH_IMM, rsp, len, s->test->arg, 0, 0);
	return 0;
}

static u32 info_on_con_1(struct srv *s, struct info_rsp *rsp, u32 len)
{
	s_post(&s->cons[1], IBV_WR_SEND, rsp, len, 0, 0, 0);
	return 0;
}

/* ---- answers to requests ---- */

enum { A_FREE, A_BEYOND, A_MAX, A_TWICE, A_ERR, A_TYPE, A_HB_CON_1,
	A_SERVICE, A_OTHER_CON, A_W_INV, A_INV_WRONG, A_INV_TWICE, A_INV_EARLY,
	A_SEND, A_SEND_LONG, A_SEND_IMM_LONG, A_RKEY_NONE, A_RKEY_TYPE,
	A_RKEY_SLOT, A_RKEY_SHORT, A_RKEY_WRONG, A_WRITE_BEYOND, A_WRITE_FAR, A_WRITE_LATE,
	A_WRITE_WRONG, A_IMM_SERVICE, A_READ, A_FLOOD, A_FLOOD_ACK, A_EVENT, A_EVENT_CON_1,
	A_NEVER,
	A_HANG_UP, A_SHORT, A_INFO };

static u32 rsp_type(const struct sreq *r)
{
	return r->hdr.type == MSG_READ && r->hdr.flags & NEED_INVAL ?
	       IMM_IO_RSP_W_INV : IMM_IO_RSP;
}

static void flood(struct srv *s, u32 type)
{
	struct scon *c = &s->cons[0];
	u64 end = now_ms() + 20000;
	int n = 0;

	while (n < 10000 && !s->ended && now_ms() < end) {
		if (s_post(c, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0, type << 28, 0, 0))
			s_poll();
		else
			n++;
	}
}

static void rkey_rsp(const struct sreq *r, u16 type, u16 slot, u32 key, u32 len)
{
	struct rkey_rsp m = { type, slot, key };

	s_post(r->con, IBV_WR_SEND_WITH_IMM, &m, len, s_rsp(IMM_IO_RSP, r->slot, 0),
	       0, 0);
}

/* Handles the first request of a kind; true if no valid answer follows. */
static bool misbehave(struct srv *s, const struct sreq *r, long what, int arg)
{
	static const struct info_rsp info = { .type = MSG_INFO_RSP };
	static u8 junk[8192];
	const struct desc *d = &r->hdr.desc[0];
	struct scon *c = r->con;

	switch (what) {
	case A_FREE:
		s_imm(c, s_rsp(IMM_IO_RSP, (r->slot + 1) % DEPTH, 0));
		return true;
	case A_BEYOND:
		s_imm(c, s_rsp(IMM_IO_RSP, DEPTH, 0));
		return true;
	case A_MAX:
		s_imm(c, s_rsp(IMM_IO_RSP, -1, 0));
		return true;
	case A_TWICE:
		s_reply(r, NULL, 0, -5);
		s_imm(c, s_rsp(IMM_IO_RSP, r->slot, 0));
		return true;
	case A_ERR:
		s_reply(r, NULL, 0, arg);
		return true;
	case A_TYPE:
		s_imm(c, s_rsp(arg, r->slot, 0));
		return true;
	case A_HB_CON_1:
		s_imm(c, (u32)IMM_HB_MSG << 28);
		return true;
	case A_SERVICE:
		s_imm(&s->cons[0], s_rsp(IMM_IO_RSP, r->slot, 0));
		return true;
	case A_IMM_SERVICE:
		s_imm(&s->cons[0], (u32)arg << 28 | 77);
		return true;
	case A_OTHER_CON:
		/* With one CPU, the client has no other than the service connection. */
		s_imm(&s->cons[c->cid > 1 ? 1 : s->nr_cons > 2 ? 2 : 0],
		      s_rsp(IMM_IO_RSP, r->slot, 0));
		return true;
	case A_W_INV:
		s_imm(c, s_rsp(IMM_IO_RSP_W_INV, r->slot, arg));
		return true;
	case A_INFO:
		s_post(&s->cons[0], IBV_WR_SEND, &info, sizeof(info), 0, 0, 0);
		return true;
	case A_INV_WRONG:
		s_post(c, IBV_WR_SEND_WITH_INV, NULL, 0, d->key ^ 0x55, 0, 0);
		return false;
	case A_INV_EARLY:
		s_post(c, IBV_WR_SEND_WITH_INV, NULL, 0, d->key, 0, 0);
		return false;
	case A_INV_TWICE:
		s_data(r, junk, d->len < sizeof(junk) ? d->len : sizeof(junk));
		s_post(c, IBV_WR_SEND_WITH_INV, NULL, 0, d->key, 0, 0);
		s_post(c, IBV_WR_SEND_WITH_INV, NULL, 0, d->key, 0, 0);
		s_answer(r, IMM_IO_RSP_W_INV, r->slot, 0);
		return true;
	case A_SEND:
		s_post(c, IBV_WR_SEND, junk, 8, 0, 0, 0);
		return true;
	case A_SEND_LONG:
		s_post(c, IBV_WR_SEND, junk, 5000, 0, 0, 0);
		return true;
	case A_SEND_IMM_LONG:
		s_post(c, IBV_WR_SEND_WITH_IMM, junk, 16,
		       s_rsp(IMM_IO_RSP, r->slot, 0), 0, 0);
		return true;
	case A_RKEY_NONE:
		rkey_rsp(r, MSG_RKEY_RSP, r->slot, s->mr->rkey, 0);
		return true;
	case A_RKEY_TYPE:
		rkey_rsp(r, MSG_INFO_RSP, r->slot, s->mr->rkey, 8);
		return true;
	case A_RKEY_SLOT:
		rkey_rsp(r, MSG_RKEY_RSP, r->slot + 1, s->mr->rkey, 8);
		return true;
	case A_RKEY_SHORT:
		rkey_rsp(r, MSG_RKEY_RSP, r->slot, s->mr->rkey, 4);
		return true;
	case A_WRITE_BEYOND:
		s_post(c, IBV_WR_RDMA_WRITE, junk, 64, 0,
		       d->addr + d->len - 32, d->key);
		return false;
	case A_WRITE_FAR:
		s_post(c, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr + (1 << 26), d->key);
		return false;
	case A_WRITE_WRONG:
		s_post(c, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr, d->key ^ 0x55);
		return false;
	case A_WRITE_LATE:
		s_answer(r, rsp_type(r), r->slot, 0);
		nap_us(20000);
		s_post(c, IBV_WR_RDMA_WRITE, junk, 64, 0, d->addr, d->key);
		return true;
	case A_FLOOD:
		flood(s, IMM_HB_MSG);
		return false;
	case A_FLOOD_ACK:
		flood(s, IMM_HB_ACK);
		return false;
	case A_EVENT:
		s_imm(&s->cons[0], (u32)IMM_EVENT << 28);
		return true;
	case A_EVENT_CON_1:
		s_imm(c, (u32)IMM_EVENT << 28);
		return true;
	case A_NEVER:
		if (arg)
			s->quit_at = now_ms() + arg;
		return true;
	case A_HANG_UP:
		s_hang_up();
		return true;
	case A_SHORT:
		s_reply(r, junk, d->len < sizeof(junk) ? d->len / 2 : sizeof(junk), 0);
		return true;
	}
	return false;
}

/* @arg of a case: an A_ constant, and a number in the bits above it */
#define WITH(what, n)	((what) | (long)(n) << 16)

/* Large reads have a key of their own; small ones use preregistered memory of the client. */
static bool large_read(const struct sreq *r)
{
	return r->hdr.type == MSG_READ && r->hdr.nr_desc && r->hdr.desc[0].len > 4096;
}

static bool wrong(struct srv *s, const struct sreq *r)
{
	if (r->kind != s->test->at || s->acted || (s->test->large && !large_read(r)))
		return false;
	s->acted = true;
	return misbehave(s, r, s->test->arg & 0xffff, s->test->arg >> 16);
}

/* The answer has an unknown key for the chunk, so the next request fails. */
static bool wrong_key(struct srv *s, const struct sreq *r)
{
	struct sess_info info = { .type = RNBD_SESS_INFO_RSP, .ver = 2 };

	if (r->kind != RNBD_SESS_INFO)
		return false;
	s_data(r, &info, sizeof(info));
	rkey_rsp(r, MSG_RKEY_RSP, r->slot, s->mr->rkey ^ 0x55, 8);
	return true;
}

/* ---- RNBD's answers ---- */

enum { SI_TYPE, SI_VER_0 };

static bool sess_info_odd(struct srv *s, const struct sreq *r)
{
	struct sess_info info = { .type = RNBD_SESS_INFO_RSP, .ver = 2 };

	if (r->kind != RNBD_SESS_INFO)
		return false;
	switch (s->test->arg) {
	case SI_TYPE:		info.type = RNBD_OPEN_RSP; break;
	case SI_VER_0:		info.ver = 0; break;
	}
	s_reply(r, &info, sizeof(info), 0);
	return true;
}

enum { OPEN_TYPE, SIZE_0, SIZE_1, SIZE_MOST, LBS_1024, LBS_4096, LBS_8192, PBS_MAX, LIMITS_0,
	LIMITS_MAX, ID_MAX, OPEN_NOTHING, OPEN_RANDOM };

/* Sets the expected results of a random answer, which may be valid. */
static void expect_open(struct srv *s, const struct open_rsp *rsp)
{
	u32 lbs = rsp->logical_block_size;
	u64 len = rsp->nsectors * 512;

	if (lbs < 512 || lbs > 4096 || lbs & (lbs - 1))
		s->want_err = EINVAL;
	else if (rsp->nsectors > INT64_MAX >> 9)
		s->want_err = EFBIG;
	else if (!len)
		s->want_io = ENOSPC;
	/* I/O up to the end of the disk ends within a block. */
	else if (len < USE_LEN && len % lbs)
		s->want_io = EINVAL;
}

static bool open_odd(struct srv *s, const struct sreq *r)
{
	struct open_rsp rsp = s_open_rsp();
	unsigned int i;

	if (r->kind != RNBD_OPEN)
		return false;
	switch (s->test->arg) {
	case OPEN_TYPE:		rsp.type = RNBD_SESS_INFO_RSP; break;
	case SIZE_0:		rsp.nsectors = 0; break;
	case SIZE_1:		rsp.nsectors = 1; break;
	case SIZE_MOST:		rsp.nsectors = INT64_MAX >> 9; break;
	case LBS_1024:		rsp.logical_block_size = 1024; break;
	case LBS_4096:		rsp.logical_block_size = 4096; break;
	case LBS_8192:		rsp.logical_block_size = 8192; break;
	case PBS_MAX:		rsp.physical_block_size = 65535; break;
	case LIMITS_0:
	case LIMITS_MAX:
		i = s->test->arg == LIMITS_0 ? 0 : -1;
		rsp.max_hw_sectors = i;
		rsp.max_write_zeroes_sectors = i;
		rsp.max_discard_sectors = i;
		rsp.discard_granularity = i;
		rsp.discard_alignment = i;
		rsp.max_segments = i;
		rsp.secure_discard = i;
		break;
	case ID_MAX:		rsp.device_id = -1; break;
	case OPEN_NOTHING:
		s_answer(r, rsp_type(r), r->slot, 0);
		return true;
	case OPEN_RANDOM:
		/* Type and block size are often valid, so that later checks are reached. */
		for (i = 4; i < sizeof(rsp); i++)
			((u8 *)&rsp)[i] = rnd();
		if (rnd() & 3)
			rsp.nsectors >>= 16 + rnd_below(40);
		if (rnd() & 7)
			rsp.logical_block_size = 512 << rnd_below(4);
		if (rnd() & 1)
			rsp.physical_block_size = 512 << rnd_below(7);
		expect_open(s, &rsp);
		break;
	}
	s_reply(r, &rsp, sizeof(rsp), 0);
	return true;
}

/* ---- at random ---- */

static int random_rep(struct srv *s, const struct cm_req *req, struct cm_rep *rep, u8 *len)
{
	unsigned int i;

	if (!req->cid && req->features & FEATURE_SLOTS && rnd() & 1) {
		rep->features = FEATURE_SLOTS;
		rep->slot_size = S_SLOT;
		rep->max_hdr_size = 512;
	} else {
		rep->flags = rnd() & FLAG_NEW_RKEY;
	}
	if (req->cid) {
		/* All connections of a path must agree. */
		rep->flags = s->rep.flags;
		return rnd_below(100) ? S_ACCEPT : S_REJECT;
	}
	if (rnd_below(10))
		return S_ACCEPT;
	s->lied = true;
	for (i = rnd_below(3); i < 3; i++)
		((u8 *)rep)[rnd_below(24)] = rnd();
	return rnd() & 1 ? S_REJECT : S_ACCEPT;
}

static u32 random_info(struct srv *s, struct info_rsp *rsp, u32 len)
{
	if (!rnd_below(10)) {
		s->lied = true;
		((u8 *)rsp)[rnd_below(len)] = rnd();
	}
	return len;
}

static bool random_answer(struct srv *s, const struct sreq *r)
{
	/* Rare, as they end the path at once */
	static const long few[] = {
		A_FREE, A_BEYOND, A_MAX, A_TWICE, A_TYPE, A_HB_CON_1, A_SERVICE,
		A_OTHER_CON, A_INV_WRONG, A_INV_TWICE, A_SEND, A_SEND_LONG,
		A_SEND_IMM_LONG, A_RKEY_NONE, A_RKEY_TYPE, A_RKEY_SLOT,
		A_RKEY_SHORT, A_WRITE_BEYOND, A_WRITE_WRONG, A_WRITE_LATE,
		A_HANG_UP, A_INV_EARLY,
	};
	struct open_rsp rsp = s_open_rsp();

	if (r->kind == RNBD_OPEN && !rnd_below(4)) {
		((u8 *)&rsp)[rnd_below(sizeof(rsp))] = rnd();
		s_reply(r, &rsp, sizeof(rsp), 0);
		return true;
	}
	if (!rnd_below(10))
		return misbehave(s, r, rnd() & 1 ? A_ERR : A_SHORT, rnd_below(512));
	if (!rnd_below(10) && !(s->rep.flags & FLAG_NEW_RKEY)) {
		/* Claims an invalidation that it has not done. */
		s_data(r, &rsp, sizeof(rsp));
		return misbehave(s, r, A_W_INV, 5);
	}
	if (!rnd_below(100))
		return misbehave(s, r, few[rnd_below(ARRAY_SIZE(few))], rnd_below(16));
	return false;
}

const struct srv_test random_case = {
	.name = "random", .err = ANY, .connect = random_rep, .info = random_info,
	.request = random_answer, .ms = 60000, .rounds = 30,
};

#define REJECT(errno_, name_, err_) \
	{ .name = "rej-" name_, .about = "reject with " #errno_, \
	  .connect = reject, .arg = errno_, .err = err_ }
#define REP(name_, what, err_, more...) \
	{ .name = "rep-" name_, .about = "accept: " what, \
	  .connect = accept_odd, .err = err_, more }
/* Sent before INFO_REQ, or at least before its answer, which is not sent */
#define EARLY(name_, what, arg_, more...) \
	{ .name = "early-" name_, .about = what " before INFO_REQ", \
	  .established = early, .info = early_at_last, .err = EPROTO, \
	  .ends = true, .arg = arg_, more }
#define INFO(name_, what, err_, arg_, more...) \
	{ .name = "info-rsp-" name_, .about = "INFO_RSP: " what, \
	  .info = info_odd, .err = err_, .arg = arg_, more }
/* The path ends before it is up, before the first request, or before the answer to it. */
#define SOON_LOST	.err = ECONNRESET, .errs = { ENOTCONN, ECONNABORTED }, .ends = true
/*
 * Two cases each: at SESS_INFO, whose loss makes mapping fail, and at the first I/O, which looks
 * for partitions: mapping succeeds, and later I/O finds no path. The client logs its reason; ""
 * if its device or the CM detects the error first.
 */
#define ANSWER(name_, what, log_, arg_, more...) \
	{ .name = "first-" name_, .about = "first answer: " what, \
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = arg_, \
	  .err = ECONNABORTED, .log = ENDS log_, more }, \
	{ .name = "io-" name_, .about = "answer to I/O: " what, \
	  .request = wrong, .at = RNBD_IO, .arg = arg_, \
	  .io_err = EIO, .log = ENDS log_, more }
/* In place of the answer to the first large read */
#define LARGE(name_, what, arg_) \
	{ .name = "io-" name_, .about = "answer to a large read: " what, \
	  .request = wrong, .at = RNBD_IO, .large = true, .arg = arg_, \
	  .io_err = EIO, .ends = true }
#define OPEN(name_, what, err_, arg_, more...) \
	{ .name = "open-" name_, .about = "answer to OPEN: " what, \
	  .request = open_odd, .err = err_, .arg = arg_, more }
#define NEW_KEYS .connect = with_flags, .flags = FLAG_NEW_RKEY

const struct srv_test server_cases[] = {
	{ .name = "serve", .about = "a valid server" },
	{ .name = "serve-keys", .about = "a valid server with keys in each answer", NEW_KEYS },

	/* See also rtrs-client-conn in KUnit. */
	REJECT(-1, "-1", EPERM),
	REJECT(-4, "-4", ECONNREFUSED),
	{ .name = "rej-empty", .about = "reject without private data",
	  .connect = reject_empty, .err = ECONNREFUSED },
	{ .name = "rej-con-1", .about = "reject of the second connection",
	  .connect = reject_1, .arg = -13, .err = EACCES },

	REP("magic", "another magic", EPROTO, .arg = REP_MAGIC),
	REP("depth-1", "one chunk", 0, .arg = DEPTH_1),
	REP("depth-fits", "32768 chunks of 8192 bytes, without the memory", ECONNABORTED,
	    .arg = DEPTH_FITS, .ends = true),
	REP("io-4096", "I/O of a page: valid", 0, .arg = IO_4096),
	REP("io-5000", "I/O of a page and a part: valid", 0, .arg = IO_5000),
	REP("flags", "all flags: valid", 0, .arg = FLAGS),
	REP("features", "all features but slots, without a session ID: valid", 0, .arg = FEATURES),
	REP("con-1", "bytes of 0xff for later connections", 0, .arg = CON_1_ALL),

	{ .name = "gone-con-0", .about = "disconnects connection 0 at once",
	  .established = hang_up_con, .info = up_at_last, .arg = 0, .err = ECONNRESET,
	  .ends = true },
	{ .name = "gone-con-1", .about = "disconnects connection 1 at once",
	  .established = hang_up_con, .info = info_none, .arg = 1, .err = ECONNRESET,
	  .ends = true },
	{ .name = "gone-con-1-info", .about = "disconnects connection 1 and sends INFO_RSP",
	  .established = hang_up_con, .info = up_at_last, .arg = 1, SOON_LOST },
	EARLY("info", "INFO_RSP", EARLY_INFO),
	EARLY("hb", "heartbeat", EARLY_HB, .log = ENDS BAD_INFO),
	EARLY("hbs", "60 heartbeats", EARLY_HBS, .log = ENDS BAD_INFO),
	EARLY("rsp", "answer", EARLY_RSP, .log = ENDS UNASKED),
	EARLY("send", "message", EARLY_SEND, .log = ENDS BAD_MSG),

	/* See also rtrs-client-info in KUnit. */
	INFO("type", "another type", EPROTO, INFO_TYPE),
	INFO("too-many", "more descriptors than chunks", ECONNRESET, INFO_TOO_MANY),
	INFO("single", "a descriptor for each chunk: valid", 0, INFO_SINGLE),
	INFO("longer", "further bytes at the end: valid", 0, INFO_LONGER),
	INFO("too-long", "longer than the receive buffer", ECONNRESET, INFO_TOO_LONG),
	{ .name = "info-rsp-twice", .about = "INFO_RSP: twice",
	  /* The second one is sent again later if no receive was posted for it. */
	  .info = info_odd, .arg = INFO_TWICE, SOON_LOST, .may_map = true, .io_err = EIO },
	INFO("gone", "disconnects instead", ECONNRESET, INFO_HANG_UP, .ends = true),
	/* Detected by the first request; with fencing, by the probe packet before it */
	INFO("key", "unknown key", ECONNABORTED, INFO_KEY, .ends = true),
	INFO("addr", "wrong address", ECONNABORTED, INFO_ADDR, .ends = true),
	INFO("key-fence", "unknown key, with fencing", ECONNRESET, INFO_KEY,
	     .connect = grants_fencing, .log = ENDS BAD_WRITE),
	INFO("addr-fence", "wrong address, with fencing", ECONNRESET, INFO_ADDR,
	     .connect = grants_fencing, .log = ENDS BAD_WRITE),
	{ .name = "info-rsp-imm", .about = "INFO_RSP with an immediate value",
	  .info = info_imm, .arg = (long)IMM_HB_MSG << 28, .err = EPROTO,
	  .log = ENDS BAD_INFO },
	{ .name = "info-rsp-con-1", .about = "INFO_RSP on connection 1",
	  .info = info_on_con_1, .err = ECONNRESET, .ends = true },

	/* See also rtrs-client-io in KUnit. */
	ANSWER("free", "for a slot not in use", UNASKED, A_FREE),
	{ .name = "first-twice", .about = "first answer: an error, twice",
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = A_TWICE, .err = EIO },
	{ .name = "io-twice", .about = "answer to I/O: an error, twice",
	  .request = wrong, .at = RNBD_IO, .arg = A_TWICE, .io_err = EIO,
	  .log = ENDS UNASKED },
	ANSWER("type-0", "type 0", BAD_IMM, WITH(A_TYPE, 0)),
	ANSWER("type-3", "type 3", BAD_IMM, WITH(A_TYPE, 3)),
	ANSWER("type-7", "type 7", BAD_IMM, WITH(A_TYPE, 7)),
	ANSWER("type-10", "type 10", BAD_IMM, WITH(A_TYPE, 10)),
	ANSWER("type-15", "type 15", BAD_IMM, WITH(A_TYPE, 15)),
	ANSWER("hb", "a heartbeat", BAD_IMM, A_HB_CON_1),
	ANSWER("service", "on connection 0", BAD_IMM, A_SERVICE),
	/* With one CPU that is connection 0. */
	ANSWER("other-con", "on another connection", "", A_OTHER_CON),
	ANSWER("fence", "FENCE from a server", BAD_IMM, WITH(A_IMM_SERVICE, IMM_FENCE),
	       .connect = grants_fencing),
	ANSWER("fenced", "FENCED without a FENCE", BAD_IMM, WITH(A_IMM_SERVICE, IMM_FENCED),
	       .connect = grants_fencing),
	ANSWER("event", "EVENT without the feature", BAD_IMM, A_EVENT),
	ANSWER("event-con-1", "EVENT on an I/O connection", BAD_IMM, A_EVENT_CON_1,
	       .connect = grants_events),
	ANSWER("event-payload", "EVENT with a payload", BAD_IMM, WITH(A_IMM_SERVICE, IMM_EVENT),
	       .connect = grants_events),
	ANSWER("inv-wrong", "invalidates an unknown key", "", A_INV_WRONG),
	ANSWER("info", "INFO_RSP again", BAD_MSG, A_INFO),
	ANSWER("send", "a message of 8 bytes", BAD_MSG, A_SEND),
	ANSWER("send-long", "a message of 5000 bytes", "", A_SEND_LONG),
	ANSWER("send-imm-long", "an answer with a message of 16 bytes", "", A_SEND_IMM_LONG),
	ANSWER("rkey-slot", "key of another slot", BAD_IMM, A_RKEY_SLOT, NEW_KEYS),
	ANSWER("write-far", "data beyond the memory for small reads", "", A_WRITE_FAR),
	ANSWER("write-wrong", "data with an unknown key", "", A_WRITE_WRONG),
	ANSWER("gone", "disconnects instead", "", A_HANG_UP),
	ANSWER("never", "none for 2 s, then disconnects", "", WITH(A_NEVER, 2000)),
	LARGE("inv-early", "invalidates the key before the data", A_INV_EARLY),
	LARGE("write-beyond", "data beyond the memory", A_WRITE_BEYOND),
	LARGE("write-late", "data after the answer", A_WRITE_LATE),
	{ .name = "rkey-wrong", .about = "an unknown key for the chunk",
	  .request = wrong_key, NEW_KEYS, .err = ECONNABORTED, .ends = true },
	{ .name = "io-short", .about = "half of the data: valid",
	  .request = wrong, .at = RNBD_IO, .arg = A_SHORT, .err = 0 },
	{ .name = "io-w-inv", .about = "IO_RSP_W_INV to a request without a key",
	  .request = wrong, .at = RNBD_IO, .arg = WITH(A_W_INV, 5) },
	{ .name = "io-w-inv-large", .about = "IO_RSP_W_INV without an invalidation",
	  .request = wrong, .at = RNBD_IO, .large = true, .arg = WITH(A_W_INV, 0) },
	{ .name = "io-inv-unasked", .about = "invalidates the key of a large read twice: valid",
	  .request = wrong, .at = RNBD_IO, .large = true, .arg = A_INV_TWICE },
	{ .name = "flood-hb", .about = "10,000 heartbeats",
	  .request = wrong, .at = RNBD_IO, .arg = A_FLOOD, .err = 0, .ms = 30000 },
	{ .name = "flood-hb-ack", .about = "10,000 answers to heartbeats",
	  .request = wrong, .at = RNBD_IO, .arg = A_FLOOD_ACK, .err = 0,
	  .ms = 30000 },
	{ .name = "first-err-1", .about = "SESS_INFO fails with 1",
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = WITH(A_ERR, 1), .err = EPERM },
	{ .name = "first-err-4", .about = "SESS_INFO fails with 4 (EINTR)",
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = WITH(A_ERR, 4), .err = EIO },
	{ .name = "first-err-511", .about = "SESS_INFO fails with 511",
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = WITH(A_ERR, 511), .err = 511 },
	{ .name = "open-err-2", .about = "OPEN fails with 2",
	  .request = wrong, .at = RNBD_OPEN, .arg = WITH(A_ERR, 2), .err = ENOENT },
	{ .name = "open-err-4", .about = "OPEN fails with 4 (EINTR)",
	  .request = wrong, .at = RNBD_OPEN, .arg = WITH(A_ERR, 4), .err = EIO },
	{ .name = "open-err-511", .about = "OPEN fails with 511",
	  .request = wrong, .at = RNBD_OPEN, .arg = WITH(A_ERR, 511), .err = 511 },
	{ .name = "open-gone", .about = "disconnects instead of an answer to OPEN",
	  .request = wrong, .at = RNBD_OPEN, .arg = A_HANG_UP, .err = ECONNABORTED,
	  .ends = true },
	{ .name = "open-never", .about = "no answer to OPEN, then disconnects",
	  .request = wrong, .at = RNBD_OPEN, .arg = WITH(A_NEVER, 2000), .err = ECONNABORTED,
	  .ends = true },
	{ .name = "io-err-511", .about = "the first I/O fails with 511",
	  .request = wrong, .at = RNBD_IO, .arg = WITH(A_ERR, 511) },
	{ .name = "io-err-511-large", .about = "a large read fails with 511",
	  .request = wrong, .at = RNBD_IO, .large = true, .arg = WITH(A_ERR, 511),
	  .io_err = EIO },
	{ .name = "close-never", .about = "no answer to CLOSE, then disconnects",
	  .request = wrong, .at = RNBD_CLOSE, .arg = WITH(A_NEVER, 2000), .err = 0 },
	{ .name = "close-err", .about = "CLOSE fails",
	  .request = wrong, .at = RNBD_CLOSE, .arg = WITH(A_ERR, 2), .err = 0 },

	{ .name = "sess-type", .about = "answer to SESS_INFO: another type",
	  .request = sess_info_odd, .arg = SI_TYPE, .err = EPROTO },
	{ .name = "sess-ver-0", .about = "version 0: valid",
	  .request = sess_info_odd, .arg = SI_VER_0, .err = 0 },

	/* See also rnbd-client-limits in KUnit. */
	OPEN("type", "another type", EPROTO, OPEN_TYPE),
	OPEN("size-0", "no sectors", 0, SIZE_0, .io_err = ENOSPC),
	OPEN("size-1", "one sector", 0, SIZE_1),
	OPEN("size-most", "largest capacity", 0, SIZE_MOST),
	OPEN("lbs-1024", "logical blocks of 1024 bytes", 0, LBS_1024),
	OPEN("lbs-4096", "logical blocks of 4096 bytes", 0, LBS_4096),
	OPEN("lbs-8192", "logical blocks of 8192 bytes", EINVAL, LBS_8192),
	OPEN("pbs-max", "physical blocks of 65535 bytes", 0, PBS_MAX),
	OPEN("limits-0", "limits of 0", 0, LIMITS_0),
	OPEN("limits-max", "limits of all bits", 0, LIMITS_MAX),
	OPEN("id-max", "device ID of all bits", 0, ID_MAX),
	OPEN("nothing", "no data", EPROTO, OPEN_NOTHING),
	/* expect_open() may change the expected errnos. */
	OPEN("random-1", "random bytes", 0, OPEN_RANDOM),
	OPEN("random-2", "random bytes", 0, OPEN_RANDOM),
	OPEN("random-3", "random bytes", 0, OPEN_RANDOM),
	OPEN("random-4", "random bytes", 0, OPEN_RANDOM),

	{ .name = "silent-con-0", .about = "no answer to the first request",
	  .connect = ignore, .arg = 0, .err = ETIMEDOUT, .ms = 60000, .extra = true },
	{ .name = "silent-con-1", .about = "no answer to the second request",
	  .connect = ignore, .arg = 1, .err = ETIMEDOUT, .ms = 60000, .extra = true },
	INFO("silent", "not sent", ETIMEDOUT, INFO_SILENT, .ms = 60000, .extra = true),
	{ .name = "silent-first", .about = "no answer to SESS_INFO",
	  .request = wrong, .at = RNBD_SESS_INFO, .arg = A_NEVER, .err = ECONNABORTED,
	  .log = ENDS "a request stays unanswered", .ms = 60000, .extra = true },
	{ .name = "silent-hb", .about = "no answers to heartbeats and I/O",
	  .request = wrong, .at = RNBD_OPEN, .arg = A_NEVER, .mute = true,
	  .err = ECONNABORTED, .ms = 60000, .extra = true,
	  /* The other connection is alive: its device acknowledges a probe. */
	  .log = ENDS "a connection makes no progress" },
	{ .name = "dead-con-1", .about = "the QP of connection 1 fails, and the CM does not say so",
	  .established = break_con, .info = up_at_last, .arg = 1, .err = ECONNABORTED,
	  .ms = 60000, .extra = true, .ends = true },
	{ }
};
