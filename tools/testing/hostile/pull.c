// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client with slots: the server fetches large data from the client's memory.
 * The client describes that memory wrongly, or ends during a fetch. (In scribble.c it changes
 * data after sending them.)
 */
#include "pull.h"

#define FETCHES		8	/* at a time, of BIG_LEN each */

static struct path *slots_path(const char *sess)
{
	struct path *p = path_new(sess);

	path_offer_slots(p);
	p = path_ready(p);
	if (!p)
		return NULL;
	if (has_slots(p) && p->rep.slot_size >= BLOCK && p->rep.slot_size < STRIDE / 2 &&
	    p->rep.max_io_size == BIG_LEN)
		return p;
	fail("features %#x, slots of %u bytes, I/O of %u", p->rep.features, p->rep.slot_size,
	     p->rep.max_io_size);
	path_free(p);
	return NULL;
}

int open_rw(struct path *p, struct open_rsp *rsp)
{
	int err;

	if (sess_info(p, 2))
		return -1;
	err = open_retry(p, dev_rw, ACC_RW, rsp);
	return err ? fail("can't open %s: %d", dev_rw, err) : 0;
}

/* A path with the disk open, and the device ID */
static struct path *slots_dev(u32 *id)
{
	struct path *p = slots_path(test_name);
	struct open_rsp rsp;

	if (!p || !open_rw(p, &rsp)) {
		*id = rsp.device_id;
		return p;
	}
	path_free(p);
	return NULL;
}

bool is_all(const u8 *b, size_t len, u8 what)
{
	return *b == what && !memcmp(b, b + 1, len - 1);
}

/* A write whose data the server fetches from the start of @big */
static struct request fetch(struct path *p, const struct io_msg *msg)
{
	return request_rnbd(p, MSG_FETCH, msg, sizeof(*msg), msg->bi_size);
}

static int do_io(struct path *p, const struct request *r, const struct io_msg *msg)
{
	int err = do_request(p, r);

	if (!err)
		return 0;
	return err > 0 ? -1 : fail("operation %u at %llu, %u bytes: %d", msg->rw,
				   (unsigned long long)msg->sector, msg->bi_size, err);
}

/* Writes from @big. */
int write_big(struct path *p, u32 id, u64 sector, u32 len)
{
	struct io_msg msg = io_msg(id, OP_WRITE, sector, len);
	struct request r = fetch(p, &msg);

	r.slot = 1;
	return do_io(p, &r, &msg);
}

/* Reads into the second half of @big, in a slot that no thread writes to. */
int read_big(struct path *p, u32 id, u64 sector, u32 len)
{
	struct io_msg msg = io_msg(id, OP_READ, sector, len);
	struct request r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), len);

	r.slot = 1;
	r.desc.addr = (uintptr_t)p->big + BIG_LEN;
	r.desc.key = p->big_mr->rkey;
	memset(p->big + BIG_LEN, 0x99, len);
	return do_io(p, &r, &msg);
}

int fill_disk(struct path *p, u32 id, u64 sector, u32 len, u8 with)
{
	memset(p->big, with, len);
	return write_big(p, id, sector, len);
}

/* Another session reads the first blocks, which must be unchanged. */
static int untouched(void)
{
	struct path *p;
	int ret;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	ret = read_big(p, id, 0, 16 * BLOCK);
	if (!ret && !is_all(p->big + BIG_LEN, 16 * BLOCK, OLD))
		ret = fail("the disk has changed");
	return end_with(p, ret);
}

/* ---- valid requests ---- */

/* Uses the window for a request; the answer must invalidate it. */
static int with_window(struct path *p, struct window *w, struct request *r, int err)
{
	unsigned int before = p->invalidated;

	if (window_bind(p, w))
		return -1;
	r->flags = NEED_INVAL;
	r->desc.key = w->key;
	if (must_answer(p, r, err))
		return -1;
	if (p->invalidated != before + 1 || p->slot[r->slot].imm_type != ANSWER_INV)
		return fail("%u invalidations, answer of type %d", p->invalidated - before,
			    p->slot[r->slot].imm_type);
	return 0;
}

static int windows(struct path *p, u32 id, struct window *w)
{
	struct io_msg msg = io_msg(id, OP_WRITE, 2048, BIG_LEN);
	struct request r = fetch(p, &msg);

	memset(p->big, 0x3c, BIG_LEN);
	if (with_window(p, w, &r, 0))
		return -1;
	msg.rw = OP_READ;
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), BIG_LEN);
	if (with_window(p, w, &r, 0))
		return -1;
	if (!is_all(p->big + BIG_LEN, BIG_LEN, 0x3c))
		return fail("read other data than written");
	/* A small read, and errors of RNBD and of RTRS, which also invalidate the key */
	msg.bi_size = BLOCK;
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), BLOCK);
	r.desc.addr = (uintptr_t)p->big;
	memset(p->big, 0, BLOCK);
	if (with_window(p, w, &r, 0))
		return -1;
	if (!is_all(p->big, BLOCK + 1, 0x3c))
		return fail("a small read returns other data");
	msg.rw = OP_WRITE;
	r = fetch(p, &msg);
	msg.sector = -1ull;
	if (with_window(p, w, &r, -EINVAL))
		return -1;
	r.desc.len = 0;
	return with_window(p, w, &r, -EINVAL);
}

/* Small and large requests, with and without invalidation */
static int good(long arg)
{
	struct window w;
	struct path *p;
	int ret, i;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	for (i = 0; i < BIG_LEN; i++)
		p->big[i] = i ^ i >> 8;
	ret = write_big(p, id, 4096, BIG_LEN) ?: read_big(p, id, 4096, BIG_LEN);
	if (!ret && memcmp(p->big, p->big + BIG_LEN, BIG_LEN))
		ret = fail("read other data than written");
	if (!ret && p->invalidated)
		ret = fail("%u invalidations", p->invalidated);
	if (!ret && !window_new(p, &w, p->big, 2 * BIG_LEN)) {
		ret = windows(p, id, &w) ?: must_live(p);
		con_destroy_qp(&p->cons[1]);
		window_free(&w);
	}
	return end_with(p, ret);
}

/* ---- invalid requests ---- */

enum { LEN_OVER, LEN_LESS, MSG_READS };

/* A path and a fetch for a write to the first blocks, which have old data; NULL on failure */
static struct path *path_to_fetch(struct io_msg *msg, struct request *r)
{
	struct path *p;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return NULL;
	if (fill_disk(p, id, 0, 16 * BLOCK, OLD)) {
		path_free(p);
		return NULL;
	}
	memset(p->big, 0x66, BIG_LEN);
	*msg = io_msg(id, OP_WRITE, 0, 16 * BLOCK);
	*r = fetch(p, msg);
	return p;
}

/* Answered with -EINVAL; see also rtrs-server-io in KUnit. */
static int einval(long arg)
{
	struct io_msg msg;
	struct request r;
	struct path *p;
	int ret;

	p = path_to_fetch(&msg, &r);
	if (!p)
		return -1;
	switch (arg) {
	case LEN_OVER:		r.desc.len = BIG_LEN + 1; break;
	/* RNBD's length differs from the length fetched. */
	case LEN_LESS:		r.desc.len -= 512; break;
	case MSG_READS:		msg.rw = OP_READ; break;
	}
	ret = must_answer(p, &r, -EINVAL) ?: sess_info(p, 2) ?: must_live(p);
	if (!ret && !is_all(p->big + BIG_LEN, BIG_LEN, 0))
		ret = fail("a failed request has written data");
	path_free(p);
	return ret ?: untouched();
}

/* The path ends. The server logs a failed fetch, as rxe reports a refused read to the requester. */
enum { BAD_KEY, KEY_0, KEY_STALE, KEY_NO_READ, KEY_OTHER, KEY_SLOT, ADDR_0, ADDR_WRAPS,
	ADDR_BEYOND, BEFORE_1, TOO_MUCH, CON_0, INVAL_MR, INVAL_BAD, INVAL_BAD_EINVAL,
	TWICE, TWICE_IMM };

static struct ibv_mr *some_mr(struct path *p, int access)
{
	return ibv_reg_mr(p->pd, p->big, BIG_LEN, IBV_ACCESS_LOCAL_WRITE | access);
}

static int wrong_key(struct path *p, struct request *r, long arg, struct ibv_mr **mr,
		     struct path **q)
{
	switch (arg) {
	case BAD_KEY:		r->desc.key ^= 0x55; break;
	case KEY_0:		r->desc.key = 0; break;
	case KEY_SLOT:
		r->desc.key = p->slot[1].key;
		r->desc.addr = p->slot[1].addr;
		r->desc.len = 512;
		break;
	case KEY_STALE:
		*mr = some_mr(p, IBV_ACCESS_REMOTE_READ);
		r->desc.key = (*mr)->rkey;
		ibv_dereg_mr(*mr);
		*mr = NULL;
		break;
	case KEY_NO_READ:
		*mr = some_mr(p, IBV_ACCESS_REMOTE_WRITE);
		r->desc.key = (*mr)->rkey;
		break;
	case KEY_OTHER:
		*q = slots_path("h-pull-other");
		if (!*q)
			return -1;
		r->desc.key = (*q)->big_mr->rkey;
		r->desc.addr = (uintptr_t)(*q)->big;
		break;
	}
	return 0;
}

/* With one doorbell, so that the second request arrives before the data of the first. */
static int send_twice(struct path *p, const struct request *r, bool imm_only)
{
	struct ibv_send_wr wr[2];
	struct ibv_sge sge;

	wr[0] = request_wr(p, r, &sge);
	wr[1] = wr[0];
	wr[0].next = &wr[1];
	if (imm_only)
		wr[1].num_sge = 0;
	return con_post(&p->cons[1], wr);
}

static const char *reason(long arg)
{
	switch (arg) {
	case BEFORE_1:		return "malformed request";
	case TOO_MUCH:
	case INVAL_MR ... INVAL_BAD_EINVAL: return NULL;
	case CON_0:		return "unexpected message";
	case TWICE:
	case TWICE_IMM:		return "slot used again";
	default:		return "fetching data";
	}
}

static int ends(long arg)
{
	struct ibv_mr *mr = NULL;
	struct open_rsp rsp = {};
	struct path *p, *q = NULL;
	struct io_msg msg;
	struct request r;
	int ret;

	p = path_to_fetch(&msg, &r);
	if (!p)
		return -1;
	ret = wrong_key(p, &r, arg, &mr, &q);
	switch (arg) {
	case ADDR_0:		r.desc.addr = 0; break;
	case ADDR_WRAPS:	r.desc.addr = -8; break;
	case ADDR_BEYOND:
		r.desc.addr = (uintptr_t)p->big + 2 * BIG_LEN - r.desc.len + 1;
		break;
	case BEFORE_1:		r.data_len = 1; break;
	case TOO_MUCH:
		r.type = MSG_WRITE;
		r.data_len = p->rep.slot_size + 1;
		break;
	case CON_0:		r.cid = 0; break;
	case INVAL_MR:		r.flags = NEED_INVAL; break;
	/* Nothing is fetched, as the length is wrong. */
	case INVAL_BAD_EINVAL:	r.desc.len = 0; /* fall through */
	case INVAL_BAD:		r.flags = NEED_INVAL; r.desc.key ^= 0x55; break;
	case TWICE:
	case TWICE_IMM:
		/* A slow disk: the request is in flight even if all data were fetched. */
		if (!ret && open_retry(p, dev_slow, ACC_RW, &rsp))
			ret = fail("can't open %s", dev_slow);
		msg.device_id = rsp.device_id;
		msg.bi_size = BIG_LEN;
		r.desc.len = BIG_LEN;
		break;
	}
	if (arg == TWICE || arg == TWICE_IMM)
		ret = ret ?: send_twice(p, &r, arg == TWICE_IMM);
	else
		ret = ret ?: request_send(p, &r);
	/* rxe breaks this end of the connection, and may not report it to the server. */
	if (arg >= INVAL_MR && arg <= INVAL_BAD_EINVAL)
		ret = ret ?: must_end_quietly(p);
	else
		ret = ret ?: must_end(p, reason(arg));
	if (mr)
		ibv_dereg_mr(mr);
	path_free(p);
	if (q)
		path_free(q);
	/* The data were fetched with a valid key and may be stored. */
	return ret ?: arg == INVAL_MR ? hello(0) : untouched();
}

/* Two requests invalidate the same window. */
static int stale_window(long arg)
{
	struct window w;
	struct io_msg msg;
	struct request r;
	struct path *p;
	int ret;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	if (window_new(p, &w, p->big, 2 * BIG_LEN))
		return end_with(p, -1);
	ret = fill_disk(p, id, 0, 16 * BLOCK, OLD);
	msg = io_msg(id, OP_WRITE, 0, 16 * BLOCK);
	r = fetch(p, &msg);
	ret = ret ?: with_window(p, &w, &r, 0);
	memset(p->big, 0x66, BIG_LEN);
	ret = ret ?: request_send(p, &r) ?: must_end(p, "fetching data");
	con_destroy_qp(&p->cons[1]);
	window_free(&w);
	return end_with(p, ret) ?: untouched();
}

/* The connection, or only its queue pair, allows no RDMA READ. */
static int no_reads(long by_qp)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct path *p;
	struct open_rsp rsp;
	struct io_msg msg;
	struct request r;
	int ret;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	if (fill_disk(p, id, 0, 16 * BLOCK, OLD))
		return end_with(p, -1);
	path_free(p);
	if (must_go(test_name, 10000))
		return -1;
	log_mark();
	p = path_new(test_name);
	path_offer_slots(p);
	if (!by_qp)
		p->reads = 0;
	p = path_ready(p);
	if (!p)
		return -1;
	if (by_qp && ibv_modify_qp(p->cons[1].qp, &attr, IBV_QP_ACCESS_FLAGS))
		return end_with(p, fail("can't change a queue pair"));
	ret = open_rw(p, &rsp);
	msg = io_msg(rsp.device_id, OP_WRITE, 0, 16 * BLOCK);
	r = fetch(p, &msg);
	memset(p->big, 0x66, BIG_LEN);
	ret = ret ?: request_send(p, &r) ?:
	      must_end(p, by_qp ? "fetching data" : "malformed request");
	return end_with(p, ret) ?: untouched();
}

/* ---- the client ends during requests ---- */

enum { GO_DISCONNECT, GO_QP, GO_ERROR, GO_KILLED, GO_SILENT };

static int begin_big(struct path *p, u32 id, u32 op, unsigned int nr)
{
	struct io_msg msg;
	struct request r;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		msg = io_msg(id, op, (i % 8) * (BIG_LEN / 512), BIG_LEN);
		r = request_rnbd(p, op == OP_READ ? MSG_READ : MSG_FETCH, &msg, sizeof(msg),
				 BIG_LEN);
		r.slot = i;
		if (request_send(p, &r))
			return fail("can't send");
	}
	return 0;
}

/* Each request was executed completely, or not at all. */
static int all_or_none(void)
{
	unsigned int i, done = 0;
	struct path *p;
	u8 first;
	int ret = 0;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	for (i = 0; i < FETCHES && !ret; i++) {
		ret = read_big(p, id, i * (BIG_LEN / 512), BIG_LEN);
		first = p->big[BIG_LEN];
		if (!ret && ((first != 0x77 && first != OLD) ||
			     !is_all(p->big + BIG_LEN, BIG_LEN, first)))
			ret = fail("MiB %u of the disk was written in part", i);
		done += first == 0x77;
	}
	snprintf(note + strlen(note), sizeof(note) - strlen(note), " %u/%u", done, FETCHES);
	return end_with(p, ret);
}

static int fill_all(u32 *id, struct path **p)
{
	unsigned int i;

	*p = slots_dev(id);
	if (!*p)
		return -1;
	for (i = 0; i < FETCHES; i++)
		if (fill_disk(*p, *id, i * (BIG_LEN / 512), BIG_LEN, OLD))
			return end_with(*p, -1);
	memset((*p)->big, 0x77, BIG_LEN);
	return 0;
}

static int go(struct path *p, long how)
{
	unsigned int i;

	switch (how) {
	case GO_DISCONNECT:
		rdma_disconnect(p->cons[1].id);
		return 0;
	case GO_QP:
		for (i = 0; i < p->nr_cons; i++)
			con_destroy_qp(&p->cons[i]);
		return 0;
	case GO_ERROR:
		for (i = 0; i < p->nr_cons; i++)
			con_break_qp(&p->cons[i]);
		return 0;
	case GO_SILENT:
		/* Heartbeats continue; RDMA READs are not answered. */
		con_destroy_qp(&p->cons[1]);
		return must_end_late(p);
	}
	return -1;
}

static int gone_once(long how, u32 op)
{
	struct path *p;
	int ret;
	u32 id;

	if (fill_all(&id, &p))
		return -1;
	ret = begin_big(p, id, op, FETCHES);
	nap_us(rnd_below(10000));
	return end_with(p, ret ?: go(p, how)) ?: all_or_none();
}

static int gone(long how)
{
	unsigned int i;
	struct path *p;
	u32 id;
	int ret = 0;

	if (how == GO_SILENT)
		return gone_once(how, OP_WRITE);
	for (i = 0; i < 2 && !ret; i++) {
		if (how == GO_KILLED) {
			if (fill_all(&id, &p))
				return -1;
			path_free(p);
			ret = must_go(test_name, 10000) ?: hold_and_kill("hold-fetching") ?:
			      must_go(test_name, 20000) ?: all_or_none();
		} else {
			ret = gone_once(how, OP_WRITE);
		}
	}
	return ret;
}

/* The same during large reads */
static int gone_reading(long how)
{
	return gone_once(how, OP_READ) ?: gone_once(how, OP_READ);
}

/* Starts large writes, prints a line, and waits to be killed. */
void hold_fetching(const char *sess)
{
	struct path *p = slots_path(sess);
	struct open_rsp rsp;
	int ret = p ? open_rw(p, &rsp) : -1;

	if (p)
		memset(p->big, 0x77, BIG_LEN);
	ret = ret ?: begin_big(p, rsp.device_id, OP_WRITE, FETCHES);
	printf(ret ? "no: %s\n" : "yes\n", why);
	fflush(stdout);
	for (;;)
		nap_us(100000);
}

/* Large requests in all slots, for more data than the server has memory. All are answered. */
static int many(long op)
{
	struct path *p, *q;
	unsigned int i;
	int ret;
	u32 id;

	p = slots_dev(&id);
	q = slots_path("h-pull-many-2");
	if (!p || !q) {
		if (p)
			path_free(p);
		return -1;
	}
	for (i = 0; i < p->rep.queue_depth; i++)
		p->slot[i].answers = 0;
	memset(p->big, 0x77, BIG_LEN);
	ret = begin_big(p, id, op, p->rep.queue_depth);
	/* Small requests of another session do not wait for them. */
	for (i = 0; i < 4 && !ret; i++)
		ret = sess_info(q, 2);
	for (i = 0; i < p->rep.queue_depth && !ret; i++)
		if (!wait_answer(p, i, 0, 30000) && p->slot[i].err)
			ret = fail("slot %u: %d", i, p->slot[i].err);
		else if (!p->slot[i].answers)
			ret = -1;
	ret = ret ?: must_live(p) ?: must_live(q);
	path_free(q);
	return end_with(p, ret);
}

/* ---- answers do not contain data of others ---- */

static int check_room(struct path *p, const void *msg, u16 len, u32 answer, u32 room)
{
	struct request r = request_rnbd(p, MSG_READ, msg, len, room);
	u8 *to = p->big + BIG_LEN;

	r.desc.addr = (uintptr_t)to;
	r.desc.key = p->big_mr->rkey;
	memset(to, 0x99, BIG_LEN);
	if (must_answer(p, &r, 0))
		return -1;
	if (room > answer && !is_all(to + answer, room - answer, 0))
		return fail("an answer of %u bytes with room for %u has more data", answer, room);
	if (room < BIG_LEN && !is_all(to + room, BIG_LEN - room, 0x99))
		return fail("an answer has more than the room of %u bytes", room);
	return 0;
}

/* Another session fills the server's memory with its data. */
static int fill_memory(void)
{
	struct io_msg msg;
	struct request r;
	struct path *p;
	unsigned int i;
	int ret = 0;
	u32 id;

	p = slots_dev(&id);
	if (!p)
		return -1;
	memset(p->big, 0xb7, BIG_LEN);
	for (i = 0; i < NR_AREAS; i++)
		memset(area(p, i), 0xb7, STRIDE);
	for (i = 0; i < p->rep.queue_depth; i++) {
		msg = io_msg(id, OP_WRITE, i * 8, BLOCK);
		r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), BLOCK);
		r.slot = i;
		ret = ret ?: do_io(p, &r, &msg);
	}
	ret = ret ?: begin_big(p, id, OP_WRITE, FETCHES) ?:
	      wait_answer(p, FETCHES - 1, 1, 10000);
	return end_with(p, ret);
}

static int no_more(long arg)
{
	static const u32 rooms[] = { 80, 81, 512, 4096, 4097, 16384, 65536, 300000, BIG_LEN };
	struct sess_info info = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct open_req req = { .type = RNBD_OPEN, .access_mode = ACC_RW };
	unsigned int i, round;
	struct io_msg msg;
	struct path *p;
	int ret = fill_memory();
	u32 id;

	if (ret)
		return ret;
	p = slots_dev(&id);
	if (!p)
		return -1;
	snprintf(req.name, sizeof(req.name), "%s", dev_rw);
	for (round = 0; round < 3; round++)
		for (i = 0; i < ARRAY_SIZE(rooms) && !ret; i++)
			ret = check_room(p, &info, sizeof(info), 36, rooms[i]) ?:
			      check_room(p, &req, sizeof(req), 56, rooms[i]);
	/* An error has no data. */
	for (i = 4; i < ARRAY_SIZE(rooms) && !ret; i++) {
		struct request r;

		msg = io_msg(id, OP_READ, -8ull, rooms[i] & ~511u);
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), rooms[i] & ~511u);
		r.desc.addr = (uintptr_t)p->big + BIG_LEN;
		r.desc.key = p->big_mr->rkey;
		memset(p->big + BIG_LEN, 0x99, BIG_LEN);
		ret = must_answer(p, &r, -EINVAL);
		if (!ret && !is_all(p->big + BIG_LEN, BIG_LEN, 0x99))
			ret = fail("an error has data");
	}
	return end_with(p, ret ?: must_live(p));
}

#define EINVAL_CASE(name, about, arg)	{ "pull-" name, about, einval, arg }
#define ENDS(name, about, arg, more...)	{ "pull-" name, about, ends, arg, more }

const struct test pull_cases[] = {
	{ "pull-good", "small and large requests, with and without invalidation", good },
	EINVAL_CASE("len-over", "fetch a byte more than the largest request", LEN_OVER),
	EINVAL_CASE("len-less", "fetch less than RNBD's length", LEN_LESS),
	EINVAL_CASE("op-read", "fetch for a read", MSG_READS),
	ENDS("key-wrong", "fetch with an unknown key", BAD_KEY),
	ENDS("key-0", "fetch with key 0", KEY_0, .quiet = true),
	ENDS("key-stale", "fetch with a deregistered key", KEY_STALE, .quiet = true),
	ENDS("key-no-read", "fetch with a key without read access", KEY_NO_READ),
	ENDS("key-other", "fetch with the key of another path", KEY_OTHER, .quiet = true),
	ENDS("key-slot", "fetch with the key of a slot", KEY_SLOT, .quiet = true),
	ENDS("addr-0", "fetch from address 0", ADDR_0, .quiet = true),
	ENDS("addr-wraps", "fetch from the last addresses", ADDR_WRAPS, .quiet = true),
	ENDS("addr-beyond", "fetch a byte behind the memory", ADDR_BEYOND),
	ENDS("before-1", "a byte before the message", BEFORE_1),
	ENDS("data-over", "a byte more than a slot", TOO_MUCH),
	ENDS("con-0", "fetch on the service connection", CON_0),
	ENDS("inval-mr", "invalidate a memory region", INVAL_MR, .quiet = true),
	ENDS("inval-wrong", "invalidate an unknown key", INVAL_BAD, .quiet = true),
	ENDS("inval-error", "invalidate an unknown key of a failed request", INVAL_BAD_EINVAL,
	     .quiet = true),
	ENDS("twice", "slot reused during a fetch", TWICE),
	ENDS("twice-imm", "slot reused during a fetch, only with its immediate value", TWICE_IMM),
	{ "pull-inval-stale", "invalidate a window twice", stale_window },
	{ "pull-no-reads", "the connection allows no RDMA READ", no_reads, 0 },
	{ "pull-qp-no-reads", "the queue pair allows no RDMA READ", no_reads, 1 },
	{ "pull-gone-disconnect", "disconnects during fetches", gone, GO_DISCONNECT },
	{ "pull-gone-qp", "destroys queue pairs during fetches", gone, GO_QP },
	{ "pull-gone-error", "breaks queue pairs during fetches", gone, GO_ERROR },
	{ "pull-gone-killed", "process killed during fetches", gone, GO_KILLED },
	{ "pull-gone-silent", "answers heartbeats, but no RDMA READ", gone, GO_SILENT,
	  .extra = true },
	{ "pull-gone-reading", "destroys queue pairs during large reads", gone_reading, GO_QP },
	{ "pull-many", "more to fetch than the server has memory", many, OP_WRITE },
	{ "pull-many-reads", "more to read than the server has memory", many, OP_READ },
	{ "pull-no-more", "answers shorter than their room", no_more },
	{ }
};
