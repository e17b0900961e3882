// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: what comes once a path is connected, up to the
 * transport's headers.
 */
#include <glob.h>
#include <signal.h>
#include <unistd.h>

#include "hostile.h"

static const u8 nothing[MAX_MSG_LEN + 16];

/* All types of immediate values, on both kinds of connection */
static int imm_types(long cid)
{
	struct path *p;
	int type, ret;

	for (type = 0; type < 16; type++) {
		p = path_up(test_name);
		if (!p)
			return -1;
		send_imm(p, cid, (u32)type << 28 | 0x0ffffff);
		if (!cid && (type == IMM_HB_MSG || type == IMM_HB_ACK))
			ret = must_live(p);
		else
			ret = must_end_quietly(p);
		path_free(p);
		if (ret)
			return fail("type %d: %.400s", type, strdupa(why));
	}
	return 0;
}

/* An immediate value of a request for a chunk or a place that isn't there */
static int imm_bad(long arg)
{
	struct path *p = path_up(test_name);
	u32 chunk, off = 0, slot = 0;

	if (!p)
		return -1;
	chunk = chunk_len(p);
	switch (arg) {
	case 0:	slot = p->rep.queue_depth; break;
	case 1:	slot = (1 << (28 - p->off_bits)) - 1; break;
	case 2:	off = chunk - 1; break;
	case 3:	off = chunk - sizeof(struct io_hdr) + 1; break;
	case 4:	off = data_room(p) + MAX_MSG_LEN + 1; break;
	case 5:	off = (1 << p->off_bits) - 1; break;
	}
	if (slot < p->rep.queue_depth && !(off >> p->off_bits) &&
	    slot << p->off_bits >> p->off_bits != slot)
		return end_with(p, fail("can't be said"));
	send_imm(p, 1, imm_req(p, slot, off));
	return end_with(p, must_end(p, "request for memory"));
}

/* A header of zeroes, of ones, of nothing known */
static int header(long arg)
{
	struct path *p = path_up(test_name);
	struct request r;

	if (!p)
		return -1;
	r = request_rnbd(p, MSG_WRITE, nothing, 8, 0);
	switch (arg) {
	case 0:	r.type = 0; break;
	case 1:	r.type = MSG_RKEY_RSP; break;
	case 2:	r.type = 0xffff; break;
	/* With so much before the header that it could be. */
	case 3:	r.usr_len = MAX_MSG_LEN + 1; r.data_len = 4096; break;
	case 4:	r.usr_len = 0xffff; r.data_len = 80000; break;
	case 5:	r.usr_len = 9; break;	/* begins before the chunk */
	}
	request_send(p, &r);
	return end_with(p, must_end(p, "malformed request"));
}

/* Wrong, but it is clear who asks: answered with EINVAL. */
enum { MSG_NONE, MSG_ODD, MSG_LONGEST, DATA_LONGEST, DESC_0, DESC_2, DESC_MAX,
	FLAGS_2, FLAGS_ALL, INVAL_NO_DESC, DESC_LONG, DESC_HUGE, READ_NO_ROOM };

static int answered(long arg)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct path *p = path_up(test_name);
	struct request r;
	int ret;

	if (!p)
		return -1;
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	switch (arg) {
	case MSG_NONE:
		r.msg_len = 0;
		r.usr_len = 0;
		break;
	case MSG_ODD:
		r = request_rnbd(p, MSG_WRITE, nothing, 3, 1);
		break;
	case MSG_LONGEST:
		r = request_rnbd(p, MSG_WRITE, nothing + 1, MAX_MSG_LEN, 0);
		((struct close_msg *)area(p, 0))->type = 0;
		break;
	case DATA_LONGEST:
		r = request_rnbd(p, MSG_WRITE, nothing, MAX_MSG_LEN,
				 p->rep.max_io_size);
		break;
	case DESC_0:		r.nr_desc = 0; break;
	case DESC_2:		r.nr_desc = 2; break;
	case DESC_MAX:		r.nr_desc = 0xffff; break;
	case FLAGS_2:		r.flags = 2; break;
	case FLAGS_ALL:		r.flags = 0xffff; break;
	case INVAL_NO_DESC:	r.flags = NEED_INVAL; r.nr_desc = 0; break;
	case DESC_LONG:		r.desc.len = 37; break;
	case DESC_HUGE:		r.desc.len = 0xffffffff; break;
	case READ_NO_ROOM:	r.desc.len = 0; break;
	}
	ret = must_answer(p, &r, -EINVAL);
	/* And the path is as good as before. */
	return end_with(p, ret ?: sess_info(p, 2) ?: must_live(p));
}

/* A read to memory that isn't there: the client's own fault, and end */
enum { KEY_WRONG, KEY_0, KEY_STALE, KEY_CHUNK, ADDR_0, ADDR_WRAPS, ADDR_BEYOND,
	INVAL_WRONG, INVAL_0, INVAL_CHUNK, INVAL_EINVAL };

static int read_to(long arg)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct path *p = path_up(test_name);
	struct ibv_mr *mr;
	struct request r;

	if (!p)
		return -1;
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	switch (arg) {
	case KEY_WRONG:		r.desc.key ^= 0x55; break;
	case KEY_0:		r.desc.key = 0; break;
	case KEY_STALE:
		mr = ibv_reg_mr(p->pd, read_area(p, 0), 4096,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		r.desc.key = mr->rkey;
		ibv_dereg_mr(mr);
		break;
	case KEY_CHUNK:
		r.desc.key = p->slot[1].key;
		r.desc.addr = p->slot[1].addr;
		break;
	case ADDR_0:		r.desc.addr = 0; break;
	case ADDR_WRAPS:	r.desc.addr = -8; break;
	case ADDR_BEYOND:
		r.desc.addr = (uintptr_t)p->mem + p->mem_len - 35;
		break;
	case INVAL_EINVAL:	msg.type = 77; /* fall through */
	case INVAL_WRONG:	r.flags = NEED_INVAL; r.desc.key ^= 0x55; break;
	case INVAL_0:		r.flags = NEED_INVAL; r.desc.key = 0; break;
	case INVAL_CHUNK:
		r.flags = NEED_INVAL;
		r.desc.len = 0;
		r.desc.key = p->slot[1].key;
		break;
	}
	request_send(p, &r);
	/* With rxe, a key's protection domain counts for nothing. */
	if (arg == INVAL_CHUNK) {
		path_free(p);
		return hello(0);
	}
	/* After an error the server leaves it to the client. */
	if (arg == INVAL_EINVAL)
		return end_with(p, wait_answer(p, 0, 0, 5000) ?: must_live(p));
	return end_with(p, must_end(p, "path ends: send ("));
}

/* A key that is bound to a window, and that the server shall invalidate */
static int inval_window(long arg)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct path *p = path_up(test_name);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .wr_id = 1ull << 63,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct request r;
	int ret;

	if (!p)
		return -1;
	mr = ibv_reg_mr(p->pd, read_area(p, 0), 4096, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	mw = mr ? ibv_alloc_mw(p->pd, IBV_MW_TYPE_2) : NULL;
	if (!mw) {
		if (mr)
			ibv_dereg_mr(mr);
		snprintf(note, sizeof(note), "no memory windows here");
		return end_with(p, 0);
	}
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
		.mr = mr,
		.addr = (uintptr_t)read_area(p, 0),
		.length = 4096,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	con_post(&p->cons[1], &wr);
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	r.flags = NEED_INVAL;
	r.desc.key = wr.bind_mw.rkey;
	ret = must_answer(p, &r, 0);
	if (!ret && (p->invalidated != 1 ||
		     p->slot[0].imm_type != IMM_IO_RSP_W_INV))
		ret = fail("%u invalidations, answer of type %d",
			   p->invalidated, p->slot[0].imm_type);
	/* The key is stale now. */
	if (!ret) {
		request_send(p, &r);
		ret = must_end(p, "path ends: send (");
	}
	con_destroy_qp(&p->cons[1]);
	ibv_dealloc_mw(mw);
	ibv_dereg_mr(mr);
	return end_with(p, ret);
}

/* Messages and operations that nobody expects, on an I/O connection or the other */
enum { SEND_0, SEND_8, SEND_300, SEND_IMM, SEND_IMM_300, SEND_INV_CHUNK,
	SEND_INV_WRONG, RDMA_READ, ATOMIC_ADD, ATOMIC_SWAP, WRITE_BEYOND,
	WRITE_BEFORE, WRITE_KEY_0, WRITE_KEY_WRONG, WRITE_PAGES, NR_OPS };

static int op_on(struct path *p, unsigned int cid, long arg)
{
	/* Chunks share a key, whose memory ends with the last one. */
	struct slot *s = &p->slot[p->rep.queue_depth - 1];
	u32 chunk = chunk_len(p);
	u8 *from = area(p, 0);

	switch (arg) {
	case SEND_0:		return send_msg(p, cid, NULL, 0);
	case SEND_8:		return send_msg(p, cid, nothing, 8);
	case SEND_300:		return send_msg(p, cid, nothing, 300);
	case SEND_IMM:
		return send_with(p, cid, from, 0, IBV_WR_SEND_WITH_IMM,
				 imm_req(p, 0, 0));
	case SEND_IMM_300:
		return send_with(p, cid, from, 300, IBV_WR_SEND_WITH_IMM,
				 (u32)IMM_HB_MSG << 28);
	case SEND_INV_CHUNK:
		return send_with(p, cid, from, 0, IBV_WR_SEND_WITH_INV, s->key);
	case SEND_INV_WRONG:
		return send_with(p, cid, from, 0, IBV_WR_SEND_WITH_INV, 0x55);
	case RDMA_READ:
		return rdma_op(p, cid, 4096, s->addr, s->key, IBV_WR_RDMA_READ);
	case ATOMIC_ADD:
		return rdma_op(p, cid, 8, s->addr, s->key,
			       IBV_WR_ATOMIC_FETCH_AND_ADD);
	case ATOMIC_SWAP:
		return rdma_op(p, cid, 8, s->addr, s->key,
			       IBV_WR_ATOMIC_CMP_AND_SWP);
	case WRITE_BEYOND:
		return write_to(p, cid, from, 16, s->addr + chunk - 15, s->key, NULL);
	case WRITE_BEFORE:
		s = &p->slot[0];
		return write_to(p, cid, from, 16, s->addr - 1, s->key, NULL);
	case WRITE_KEY_0:
		return write_to(p, cid, from, 16, s->addr, 0, NULL);
	case WRITE_KEY_WRONG:
		return write_to(p, cid, from, 16, s->addr, s->key ^ 0x80, NULL);
	case WRITE_PAGES:
		return write_to(p, cid, from, STRIDE, s->addr, s->key, NULL);
	}
	return -1;
}

/* A path that can send all of these */
static struct path *path_reader(void)
{
	struct path *p = path_new(test_name);

	p->may_read = true;
	return path_ready(p);
}

static int ops(long cid)
{
	struct path *p;
	int op, ret;

	for (op = 0; op < NR_OPS; op++) {
		p = path_reader();
		if (!p)
			return -1;
		op_on(p, cid, op);
		ret = must_end_quietly(p);
		path_free(p);
		if (ret)
			return fail("operation %d: %.400s", op, strdupa(why));
	}
	return 0;
}

/* The same, one by one, with a look at the log */
static int op(long arg)
{
	struct path *p = path_reader();

	if (!p)
		return -1;
	op_on(p, 1, arg);
	return end_with(p, must_end(p, NULL));
}

/* A write to the disk that takes its time, in slot 0; returns when it has been sent */
static int write_slowly(struct path *p)
{
	struct open_rsp rsp;
	struct io_msg msg;
	struct request r;

	if (open_soon(p, dev_slow, ACC_RW, &rsp))
		return fail("can't open %s", dev_slow);
	msg = io_msg(rsp.device_id, OP_WRITE, 0, 4096);
	r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
	p->slot[0].answers = 0;
	request_send(p, &r);
	return 0;
}

/* Requests that the server has in hand on all paths of the session */
static unsigned int held(const char *sess)
{
	char pattern[320];
	unsigned int n, sum = 0;
	glob_t g;
	size_t i;
	FILE *f;

	snprintf(pattern, sizeof(pattern),
		 "/sys/class/rtrs-server/%s/paths/*/stats/rdma", sess);
	if (glob(pattern, 0, NULL, &g))
		return 0;
	for (i = 0; i < g.gl_pathc; i++) {
		f = fopen(g.gl_pathv[i], "r");
		if (f && fscanf(f, "%*u %*u %*u %*u %u", &n) == 1)
			sum += n;
		if (f)
			fclose(f);
	}
	globfree(&g);
	return sum;
}

/*
 * Puts requests in hand that take their time, in these slots; @since is from when. They
 * are with the disk when this returns.
 */
int put_in_hand(struct path *p, unsigned int slot, unsigned int nr, u64 *since)
{
	struct io_msg msg = { .type = RNBD_IO, .rw = OP_READ, .bi_size = 4096 };
	struct open_rsp rsp;
	struct request r;
	unsigned int i;

	if (sess_info(p, 2))
		return -1;
	if (open_soon(p, dev_slow, ACC_RO, &rsp))
		return fail("can't open %s", dev_slow);
	msg.device_id = rsp.device_id;
	*since = now_ms();
	for (i = slot; i < slot + nr; i++) {
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
		r.slot = i;
		r.desc.addr = (uintptr_t)read_area(p, i);
		p->slot[i].answers = 0;
		request_send(p, &r);
	}
	while (held(p->sess) < nr) {
		if (now_ms() > *since + SLOW_MS - 50)
			return fail("%s isn't slow, or the server is", dev_slow);
		nap_us(1000);
	}
	return 0;
}

/* A path of a session of its own, with requests in hand */
struct path *in_hand(const char *sess, unsigned int nr_cons, unsigned int nr)
{
	struct path *p = path_new(sess);
	u64 since;

	p->nr_cons = nr_cons;
	p->req.cid_num = nr_cons;
	p = path_ready(p);
	if (!p || !put_in_hand(p, 0, nr, &since))
		return p;
	path_free(p);
	return NULL;
}

/* A slot is used again while its request is in hand. */
enum { AGAIN_IMM, AGAIN_OTHER_CON, AGAIN_WRITE };

/* The client writes to the chunk of a write in hand; for its data see write_under_way(). */
static int write_in_hand(long arg)
{
	struct path *p = path_up(test_name);
	u64 since = now_ms();

	if (!p || sess_info(p, 2) || write_slowly(p))
		return p ? end_with(p, -1) : -1;
	while (!held(p->sess))
		if (now_ms() > since + SLOW_MS)
			return end_with(p, fail("the server doesn't have it"));
	write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
	return end_with(p, wait_answer(p, 0, 0, 5000) ?: must_live(p));
}

static int hold_disk(bool on)
{
	return system(on ? "dmsetup suspend --noflush --nolockfs --noudevsync held" :
			   "dmsetup resume --noudevsync --noudevrules held") ?
		fail("the disk can't be %s", on ? "held" : "let go") : 0;
}

/* Sends a write to a disk that holds it; returns when the server has given it to the disk. */
static int write_held(struct path *p, u32 id)
{
	struct io_msg msg = io_msg(id, OP_WRITE, 0, 4096);
	struct request r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
	u64 end = now_ms() + 10000;

	memset(area(p, 0), 0xa5, 4096);
	p->slot[0].answers = 0;
	if (request_send(p, &r))
		return fail("can't send");
	while (!held(p->sess)) {
		if (now_ms() > end)
			return fail("the server doesn't have it");
		path_poll(p);
		nap_us(1000);
	}
	return must_live(p);
}

/* The first bytes of the disk are as they were sent, or as they were changed. */
static int look_at_held(bool changed)
{
	struct path *p = path_up(test_name);
	struct open_rsp rsp;
	struct io_msg msg;
	struct request r;
	const u8 *b;
	int i, ret;

	if (!p)
		return -1;
	if (sess_info(p, 2) || open_soon(p, dev_held, ACC_RO, &rsp))
		return end_with(p, fail("can't open %s again", dev_held));
	msg = io_msg(rsp.device_id, OP_READ, 0, 4096);
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
	ret = must_answer(p, &r, 0);
	b = read_area(p, 0);
	for (i = 0; i < 4096 && !ret; i++)
		if (b[i] != (changed && i < 64 ? 0x5a : 0xa5))
			ret = fail("byte %d is %#x: the data have %schanged", i, b[i],
				   changed ? "not " : "");
	return end_with(p, ret);
}

/*
 * Data that change in their slot or chunk before the disk has taken them are stored as they were
 * sent; if the server trusts its clients, as they are.
 */
static int write_under_way(long arg)
{
	struct path *p = path_up(test_name);
	bool changes;
	struct open_rsp rsp;
	int ret;

	if (!p || !srv_keys)
		return fail("no path, or HOSTILE_KEYS isn't set");
	if (sess_info(p, 2) || open_soon(p, dev_held, ACC_RW, &rsp))
		return end_with(p, fail("can't open %s", dev_held));
	changes = *srv_keys == 'N';
	ret = hold_disk(true) ?: write_held(p, rsp.device_id);
	if (!ret) {
		memset(area(p, 1), 0x5a, 64);
		write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
		ret = must_live(p);
	}
	if (!ret && p->slot[0].answers)
		ret = fail("it was answered before it was stored");
	if (hold_disk(false))
		ret = -1;
	if (!ret)
		ret = wait_answer(p, 0, 0, 10000) ?: must_live(p);
	path_free(p);
	return ret ?: look_at_held(changes);
}

/* What the client writes to the chunk of a read doesn't get among the data, unless it is trusted. */
static int spoil_read(struct path *p)
{
	static u8 first[4096];
	u64 since;

	memset(area(p, 1), 0x77, 64);
	write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
	if (wait_answer(p, 0, 0, 5000))
		return -1;
	memcpy(first, read_area(p, 0), sizeof(first));
	/* The same data again, which nobody spoils */
	if (put_in_hand(p, 1, 1, &since) || wait_answer(p, 1, 0, 5000))
		return -1;
	if ((!srv_keys || *srv_keys == 'Y') &&
	    memcmp(first, read_area(p, 1), sizeof(first)))
		return fail("what the client wrote is among the data that were read");
	return 0;
}

static int again(long arg)
{
	struct path *p = in_hand(test_name, 3, 1);

	if (!p)
		return -1;
	nap_us(50000);
	if (p->slot[0].answers)
		return end_with(p, fail("%s isn't slow", dev_slow));
	if (arg == AGAIN_WRITE)
		return end_with(p, spoil_read(p) ?: must_live(p));
	send_imm(p, arg == AGAIN_IMM ? 1 : 2, imm_req(p, 0, 32));
	return end_with(p, must_end(p, "slot used again"));
}

/* One more path of a session, by another address */
static struct path *join(const struct path *p, unsigned int addr)
{
	struct path *q = path_new(p->sess);

	path_join(q, p, addr);
	return path_ready(q);
}

/*
 * A second path uses a slot that is in hand: it waits. A third one takes its place,
 * which ends the second.
 */
static int slot_on_paths(long nr)
{
	struct path *p = path_up(test_name), *q, *r = NULL;
	u64 since;
	int ret;

	if (!p)
		return -1;
	q = join(p, 1);
	if (!q)
		return end_with(p, -1);
	if (nr == 3)
		r = join(p, 2);
	ret = nr == 3 && !r ? -1 : put_in_hand(p, 0, 1, &since);
	/*
	 * The answer to a heartbeat comes after what was sent before on the same connection,
	 * on which those with slots send no requests.
	 */
	if (!ret)
		ret = send_imm(q, has_slots(q), imm_req(q, 0, 32)) ?: must_live(q);
	nap_us(has_slots(p) ? 50000 : 0);
	path_poll(p);
	if (!ret && p->slot[0].answers)
		ret = fail("%s isn't slow", dev_slow);
	if (!ret && nr == 3)
		ret = send_imm(r, 1, imm_req(r, 0, 32)) ?:
		      must_end(q, "on another path");
	else if (!ret)
		/* What is in its chunk is nonsense, found when its turn has come. */
		ret = wait_answer(p, 0, 0, 5000) ?: must_end(q, "malformed");
	if (!ret && !p->slot[0].answers)
		ret = wait_answer(p, 0, 0, 5000);
	if (!ret)
		ret = must_live(p);
	if (r)
		path_free(r);
	path_free(q);
	return end_with(p, ret);
}

/* Header and data change all the time, while the server looks at them. */
static int changing(long arg)
{
	struct io_msg msg = { .type = RNBD_IO, .rw = OP_WRITE, .bi_size = 4096 };
	struct ibv_send_wr wr[6];
	struct ibv_sge sge[6];
	struct open_rsp rsp;
	struct path *p;
	struct request r;
	unsigned int i, n, round, ended = 0;
	u32 len, imm;

	for (round = 0; round < 12; round++) {
		p = path_up(test_name);
		if (!p)
			return -1;
		if (sess_info(p, 2) || open_soon(p, dev_rw, ACC_RW, &rsp))
			return end_with(p, fail("can't open %s", dev_rw));
		msg.device_id = rsp.device_id;
		for (i = 0; i < 40 && !path_ended(p); i++) {
			r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
			r.slot = i % 8;
			len = request_write(p, &r, &imm);
			/* What is written over it: sizes, most of the time. */
			memcpy(read_area(p, 0), area(p, r.slot), len);
			memset(read_area(p, 0) + 4096 + offsetof(struct io_msg, sector),
			       rnd(), 8);
			memset(read_area(p, 0) + 4096 + offsetof(struct io_msg, bi_size),
			       rnd(), 2);
			if (i % 8 == 7)
				read_area(p, 0)[4096 + sizeof(msg) + 2] = rnd();
			for (n = 0; n < 6; n++) {
				sge[n] = (struct ibv_sge) {
					.addr = (uintptr_t)(n & 1 ? read_area(p, 0) :
							    area(p, r.slot)),
					.length = len,
					.lkey = p->mr->lkey,
				};
				if (n & 1)
					sge[n].addr += 4096, sge[n].length -= 4096;
				wr[n] = (struct ibv_send_wr) {
					.wr_id = 1ull << 63,
					.next = n < 5 ? &wr[n + 1] : NULL,
					.sg_list = &sge[n],
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.opcode = IBV_WR_RDMA_WRITE,
					.wr.rdma.remote_addr = p->slot[r.slot].addr +
							       (n & 1 ? 4096 : 0),
					.wr.rdma.rkey = p->slot[r.slot].key,
				};
			}
			wr[0].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
			wr[0].imm_data = htonl(imm);
			n = p->slot[r.slot].answers;
			con_post(&p->cons[1], wr);
			if (wait_answer(p, r.slot, n, 2000) && !path_ended(p))
				return end_with(p, -1);
		}
		ended += path_ended(p);
		path_free(p);
	}
	snprintf(note, sizeof(note), "%u of %u paths ended", ended, round);
	return hello(0);
}

/* Heartbeats without end; the path goes on, and so does its I/O. */
static int flood(long type)
{
	struct path *p = path_up(test_name);
	struct ibv_send_wr wr[32] = { };
	unsigned int i, n;

	if (!p)
		return -1;
	for (i = 0; i < 32; i++) {
		wr[i].wr_id = 1ull << 63;
		wr[i].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].imm_data = htonl((u32)type << 28);
		wr[i].next = i < 31 ? &wr[i + 1] : NULL;
	}
	for (n = 0; n < 10000 && !path_ended(p); n += 32)
		con_post(&p->cons[0], wr);
	snprintf(note, sizeof(note), "%u sent, %u answers so far", n, p->hb_acks);
	return end_with(p, sess_info(p, 2) ?: must_live(p));
}

/* Answers that are never taken, as many as there are slots; then it goes away. */
static int no_receives(long arg)
{
	struct info_req info = { .type = MSG_INFO_REQ };
	struct path *p = path_new(test_name);
	struct request r;
	unsigned int i;
	int ret;

	p->nr_cons = 2;
	ret = path_con(p, 0, &p->req, sizeof(p->req));
	p->no_recv = true;
	p->req.cid = 1;
	if (!ret)
		ret = path_con(p, 1, &p->req, sizeof(p->req));
	if (ret)
		return end_with(p, -1);
	p->off_bits = 28 - 6;
	strcpy(info.name, test_name);
	if (path_info(p))
		return end_with(p, -1);
	for (i = 0; i < p->rep.queue_depth; i++) {
		r = request_rnbd(p, MSG_WRITE, nothing, 8, 0);
		r.slot = i;
		request_send(p, &r);
	}
	ret = must_live(p);
	path_free(p);
	return ret ?: must_go(test_name, 10000) ?: hello(0);
}

/* Another process has requests in hand, and is killed; it can't be a mere fork. */
int hold_and_kill(const char *how)
{
	char cmd[400], answer[300] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "echo $$; exec /proc/%d/exe client %s %s %s %s",
		 getpid(), args[2], args[3], how, test_name);
	f = popen(cmd, "r");
	if (!f || !fgets(cmd, sizeof(cmd), f) ||
	    !fgets(answer, sizeof(answer), f))
		return fail("no other process");
	kill(atoi(cmd), SIGKILL);
	pclose(f);
	return strcmp(answer, "yes\n") ? fail("the other process: %s", answer) : 0;
}

/* Gone with requests in hand, and back at once */
enum { GO_DISCONNECT, GO_QP, GO_KILLED };

static int gone(long arg)
{
	struct path *p;

	if (arg == GO_KILLED) {
		if (hold_and_kill("hold"))
			return -1;
	} else {
		p = in_hand(test_name, 2, 8);
		if (!p)
			return -1;
		if (arg == GO_DISCONNECT) {
			rdma_disconnect(p->cons[1].id);
		} else {
			con_destroy_qp(&p->cons[0]);
			con_destroy_qp(&p->cons[1]);
		}
		path_free(p);
	}
	/* Waits for what is left of the old one. */
	return hello(0);
}

const struct test request_cases[] = {
	{ "imm-slot", "request for the chunk behind the last", imm_bad, 0 },
	{ "imm-slot-max", "for the highest that can be said", imm_bad, 1, .quiet = true },
	{ "imm-off-last", "header in the chunk's last byte", imm_bad, 2, .quiet = true },
	{ "imm-off-end", "header reaches out of the chunk by a byte", imm_bad, 3 },
	{ "imm-off-msg", "header behind the longest message", imm_bad, 4 },
	{ "imm-off-max", "highest offset that can be said", imm_bad, 5, .quiet = true },
	{ "hdr-type-0", "header of type 0", header, 0, .quiet = true },
	{ "hdr-type-4", "header of an answer", header, 1 },
	{ "hdr-type-ffff", "header of no type", header, 2, .quiet = true },
	{ "hdr-usr-321", "user message too long", header, 3 },
	{ "hdr-usr-65535", "user message longer than all", header, 4, .quiet = true },
	{ "hdr-usr-before", "user message begins before the chunk", header, 5 },
	{ "msg-none", "no user message", answered, MSG_NONE },
	{ "msg-odd", "3 bytes of user message, 1 of data", answered, MSG_ODD },
	{ "msg-longest", "user message as long as can be", answered, MSG_LONGEST },
	{ "data-longest", "data and message as long as can be", answered, DATA_LONGEST },
	{ "desc-0", "read without a descriptor", answered, DESC_0 },
	{ "desc-2", "read with two descriptors", answered, DESC_2 },
	{ "desc-65535", "read with 65535 descriptors", answered, DESC_MAX },
	{ "read-flags-2", "read with an unknown flag", answered, FLAGS_2 },
	{ "read-flags-all", "read with all flags", answered, FLAGS_ALL },
	{ "read-inval-none", "invalidate what isn't named", answered, INVAL_NO_DESC },
	{ "desc-long", "descriptor a byte longer than the room", answered, DESC_LONG },
	{ "desc-huge", "descriptor of 4 GiB", answered, DESC_HUGE },
	{ "desc-empty", "descriptor of no bytes", answered, READ_NO_ROOM },
	{ "read-key-wrong", "read to a key that isn't", read_to, KEY_WRONG },
	{ "read-key-0", "read to key 0", read_to, KEY_0, .quiet = true },
	{ "read-key-stale", "read to a key that was", read_to, KEY_STALE, .quiet = true },
	{ "read-key-chunk", "read to a chunk", read_to, KEY_CHUNK, .quiet = true },
	{ "read-addr-0", "read to address 0", read_to, ADDR_0, .quiet = true },
	{ "read-addr-wraps", "read to the end of all addresses", read_to, ADDR_WRAPS, .quiet = true },
	{ "read-addr-beyond", "read to a byte too far", read_to, ADDR_BEYOND, .quiet = true },
	{ "read-inval-wrong", "invalidate a key that isn't", read_to, INVAL_WRONG },
	{ "read-inval-0", "invalidate key 0", read_to, INVAL_0, .quiet = true },
	{ "read-inval-chunk", "invalidate a chunk's key", read_to, INVAL_CHUNK },
	{ "read-inval-error", "invalidate a wrong key of a failed read", read_to, INVAL_EINVAL },
	{ "read-inval-window", "invalidate a key: done; use it again: ends", inval_window },
	{ "op-send", "SEND", op, SEND_0 },
	{ "op-send-300", "SEND of 300 bytes", op, SEND_300, .quiet = true },
	{ "op-send-imm", "SEND WITH IMM of a request", op, SEND_IMM, .quiet = true },
	{ "op-send-inv", "SEND WITH INV of a chunk's key", op, SEND_INV_CHUNK, .quiet = true },
	{ "op-read", "RDMA READ of a chunk", op, RDMA_READ },
	{ "op-atomic", "atomic operation on a chunk", op, ATOMIC_ADD, .quiet = true },
	{ "op-write-beyond", "RDMA WRITE out of a chunk", op, WRITE_BEYOND, .quiet = true },
	{ "op-write-key", "RDMA WRITE with a wrong key", op, WRITE_KEY_WRONG, .quiet = true },
	{ "again", "slot used again while in hand", again, AGAIN_IMM },
	{ "again-other-con", "slot used again on another connection", again, AGAIN_OTHER_CON },
	{ "again-write", "RDMA WRITE to the chunk of a read in hand: it reads the disk", again,
	  AGAIN_WRITE },
	{ "again-write-data", "RDMA WRITE to the chunk of a write in hand", write_in_hand },
	{ "write-under-way", "data of a write change before the disk has them", write_under_way,
	  .extra = true },
	{ "changing", "headers change while they are read", changing, .quiet = true },
	{ "flood-hb", "10,000 heartbeats", flood, IMM_HB_MSG },
	{ "flood-hb-ack", "10,000 answers to heartbeats", flood, IMM_HB_ACK },
	{ "no-receives", "answers are never taken", no_receives },
	{ "gone-disconnect", "disconnects with requests in hand", gone, GO_DISCONNECT },
	{ "gone-qp", "queue pairs destroyed with requests in hand", gone, GO_QP },
	{ "gone-killed", "process killed with requests in hand", gone, GO_KILLED },
	{ "slot-on-2-paths", "slot used on another path while in hand", slot_on_paths, 2 },
	{ "slot-on-3-paths", "and on a third one", slot_on_paths, 3 },
	{ "imm-types-con-0", "all types of immediate values on connection 0", imm_types, 0, .quiet = true },
	{ "imm-types-con-1", "and on connection 1", imm_types, 1, .quiet = true },
	{ "ops-con-0", "all that isn't expected, on connection 0", ops, 0, .quiet = true },
	{ "ops-con-1", "and on connection 1", ops, 1, .quiet = true },
	{ }
};
