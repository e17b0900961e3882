// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: messages and requests on a connected path, up to the headers of RTRS
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

/* A request for a chunk or an offset that does not exist; see also rtrs-server-io in KUnit. */
static int imm_bad(long by_offset)
{
	struct path *p = path_up(test_name);
	u32 off = 0, slot = 0;

	if (!p)
		return -1;
	if (by_offset)
		off = data_room(p) + MAX_MSG_LEN + 1;
	else
		slot = p->rep.queue_depth;
	if (slot << p->off_bits >> p->off_bits != slot || off >> p->off_bits)
		return end_with(p, fail("the immediate value has too few bits"));
	send_imm(p, 1, imm_req(p, slot, off));
	return end_with(p, must_end(p, "slot or offset out of range"));
}

/* An invalid header; see also rtrs-server-io in KUnit. */
static int header(long of_answer)
{
	struct path *p = path_up(test_name);
	struct request r;

	if (!p)
		return -1;
	r = request_rnbd(p, MSG_WRITE, nothing, 8, 0);
	if (of_answer)
		r.type = MSG_RKEY_RSP;
	else
		r.usr_len = 9;	/* begins before the chunk */
	request_send(p, &r);
	return end_with(p, must_end(p, "malformed request"));
}

/* Invalid requests that are answered with EINVAL; see also rtrs-server-io in KUnit. */
enum { MSG_NONE, MSG_ODD, MSG_LONGEST, DATA_LONGEST, DESC_0, DESC_2, READ_NO_ROOM };

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
	case READ_NO_ROOM:	r.desc.len = 0; break;
	}
	ret = must_answer(p, &r, -EINVAL);
	/* The path still works. */
	return end_with(p, ret ?: sess_info(p, 2) ?: must_live(p));
}

/* A read into memory that does not exist: the path ends. */
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
	/* rxe ignores the protection domain of a key. */
	if (arg == INVAL_CHUNK) {
		path_free(p);
		return hello(0);
	}
	/* After an error, the server leaves the invalidation to the client. */
	if (arg == INVAL_EINVAL)
		return end_with(p, wait_answer(p, 0, 0, 5000) ?: must_live(p));
	return end_with(p, must_end(p, "path ends: send ("));
}

/* The server invalidates the key of a memory window. */
static int inval_window(long arg)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	struct path *p = path_up(test_name);
	struct request r;
	struct window w;
	int ret;

	if (!p)
		return -1;
	if (window_new(p, &w, read_area(p, 0), 4096)) {
		snprintf(note, sizeof(note), "no memory windows");
		return end_with(p, 0);
	}
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	r.flags = NEED_INVAL;
	ret = window_bind(p, &w);
	r.desc.key = w.key;
	ret = ret ?: must_answer(p, &r, 0);
	if (!ret && (p->invalidated != 1 || p->slot[0].imm_type != IMM_IO_RSP_W_INV))
		ret = fail("%u invalidations, answer of type %d",
			   p->invalidated, p->slot[0].imm_type);
	/* The key is stale now. */
	if (!ret) {
		request_send(p, &r);
		ret = must_end(p, "path ends: send (");
	}
	con_destroy_qp(&p->cons[1]);
	window_free(&w);
	return end_with(p, ret);
}

/* Unexpected messages and operations, on an I/O connection or on the service connection */
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

/* A path that can send all of these operations */
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

/* One of them, with a check of the log */
static int op(long arg)
{
	struct path *p = path_reader();

	if (!p)
		return -1;
	op_on(p, 1, arg);
	return end_with(p, must_end(p, NULL));
}

/* Sends a write to the slow disk in slot 0. */
static int write_slowly(struct path *p)
{
	struct open_rsp rsp;
	struct io_msg msg;
	struct request r;

	if (open_retry(p, dev_slow, ACC_RW, &rsp))
		return fail("can't open %s", dev_slow);
	msg = io_msg(rsp.device_id, OP_WRITE, 0, 4096);
	r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
	p->slot[0].answers = 0;
	request_send(p, &r);
	return 0;
}

/* The number of requests in flight at the server on all paths of the session */
static unsigned int in_flight(const char *sess)
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
 * Sends reads of the slow disk in @nr slots. They are in flight at the disk when this returns;
 * @since is when they were sent.
 */
int start_slow_reads(struct path *p, unsigned int slot, unsigned int nr, u64 *since)
{
	struct io_msg msg = { .type = RNBD_IO, .rw = OP_READ, .bi_size = 4096 };
	struct open_rsp rsp;
	struct request r;
	unsigned int i;

	if (sess_info(p, 2))
		return -1;
	if (open_retry(p, dev_slow, ACC_RO, &rsp))
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
	while (in_flight(p->sess) < nr) {
		if (now_ms() > *since + SLOW_MS - 50)
			return fail("reads of %s end too soon, or start too late", dev_slow);
		nap_us(1000);
	}
	return 0;
}

/* A path of a session of its own, with slow reads in flight */
struct path *path_with_reads(const char *sess, unsigned int nr_cons, unsigned int nr)
{
	struct path *p = path_new(sess);
	u64 since;

	p->nr_cons = nr_cons;
	p->req.cid_num = nr_cons;
	p = path_ready(p);
	if (!p || !start_slow_reads(p, 0, nr, &since))
		return p;
	path_free(p);
	return NULL;
}

/* Writes to the chunk of a write in flight; for its data see write_under_way(). */
static int write_in_flight(long arg)
{
	struct path *p = path_up(test_name);
	u64 since = now_ms();

	if (!p || sess_info(p, 2) || write_slowly(p))
		return p ? end_with(p, -1) : -1;
	while (!in_flight(p->sess))
		if (now_ms() > since + SLOW_MS)
			return end_with(p, fail("the write is not in flight"));
	write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
	return end_with(p, wait_answer(p, 0, 0, 5000) ?: must_live(p));
}

static int hold_disk(bool on)
{
	return system(on ? "dmsetup suspend --noflush --nolockfs --noudevsync held" :
			   "dmsetup resume --noudevsync --noudevrules held") ?
		fail("can't %s the disk", on ? "suspend" : "resume") : 0;
}

/* Sends a write to the suspended disk; returns when it is in flight at the server. */
static int write_held(struct path *p, u32 id)
{
	struct io_msg msg = io_msg(id, OP_WRITE, 0, 4096);
	struct request r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
	u64 end = now_ms() + 10000;

	memset(area(p, 0), 0xa5, 4096);
	p->slot[0].answers = 0;
	if (request_send(p, &r))
		return fail("can't send");
	while (!in_flight(p->sess)) {
		if (now_ms() > end)
			return fail("the write is not in flight");
		path_poll(p);
		nap_us(1000);
	}
	return must_live(p);
}

/* Checks that the first bytes of the disk are as they were sent, or as they were changed. */
static int check_held(bool changed)
{
	struct path *p = path_up(test_name);
	struct open_rsp rsp;
	struct io_msg msg;
	struct request r;
	const u8 *b;
	int i, ret;

	if (!p)
		return -1;
	if (sess_info(p, 2) || open_retry(p, dev_held, ACC_RO, &rsp))
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
 * The data of a write change in its slot or chunk before the disk reads them. With
 * always_invalidate=Y they are stored as they were sent, otherwise as they were changed.
 */
static int write_under_way(long arg)
{
	struct path *p = path_up(test_name);
	bool changes;
	struct open_rsp rsp;
	int ret;

	if (!p || !srv_keys)
		return fail("no path, or HOSTILE_KEYS isn't set");
	if (sess_info(p, 2) || open_retry(p, dev_held, ACC_RW, &rsp))
		return end_with(p, fail("can't open %s", dev_held));
	changes = *srv_keys == 'N';
	ret = hold_disk(true) ?: write_held(p, rsp.device_id);
	if (!ret) {
		memset(area(p, 1), 0x5a, 64);
		write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
		ret = must_live(p);
	}
	if (!ret && p->slot[0].answers)
		ret = fail("the write was answered before the disk was resumed");
	if (hold_disk(false))
		ret = -1;
	if (!ret)
		ret = wait_answer(p, 0, 0, 10000) ?: must_live(p);
	path_free(p);
	return ret ?: check_held(changes);
}

/* Data written to the chunk of a read do not change what is read, with always_invalidate=Y. */
static int spoil_read(struct path *p)
{
	static u8 first[4096];
	u64 since;

	memset(area(p, 1), 0x77, 64);
	write_to(p, 1, area(p, 1), 64, p->slot[0].addr, p->slot[0].key, NULL);
	if (wait_answer(p, 0, 0, 5000))
		return -1;
	memcpy(first, read_area(p, 0), sizeof(first));
	/* Reads the same data, undisturbed. */
	if (start_slow_reads(p, 1, 1, &since) || wait_answer(p, 1, 0, 5000))
		return -1;
	if ((!srv_keys || *srv_keys == 'Y') &&
	    memcmp(first, read_area(p, 1), sizeof(first)))
		return fail("the data read contain what the client wrote");
	return 0;
}

/* A slot is reused while its request is in flight. */
enum { AGAIN_IMM, AGAIN_OTHER_CON, AGAIN_WRITE };

static int again(long arg)
{
	struct path *p = path_with_reads(test_name, 3, 1);

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
 * A second path uses a slot whose request is in flight: its request waits. A third path uses the
 * slot as well, which ends the second path.
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
	ret = nr == 3 && !r ? -1 : start_slow_reads(p, 0, 1, &since);
	/*
	 * The answer to a heartbeat follows everything sent before on the same connection. With
	 * slots, no requests are sent on that connection.
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
		/* Its chunk has no valid request, which is detected when the slot is free. */
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

/* Header and data change continuously while the server reads them. */
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
		if (sess_info(p, 2) || open_retry(p, dev_rw, ACC_RW, &rsp))
			return end_with(p, fail("can't open %s", dev_rw));
		msg.device_id = rsp.device_id;
		for (i = 0; i < 40 && !path_ended(p); i++) {
			r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
			r.slot = i % 8;
			len = request_write(p, &r, &imm);
			/* Overwrites mostly sizes. */
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

/* 10,000 heartbeats: the path stays, and its I/O works. */
static int flood(long type)
{
	struct path *p = path_up(test_name);
	unsigned int n;

	if (!p)
		return -1;
	n = send_burst(p, (u32)type << 28, 0, 10000);
	snprintf(note, sizeof(note), "%u sent, %u answers so far", n, p->hb_acks);
	return end_with(p, sess_info(p, 2) ?: must_live(p));
}

/* As many answers as slots, without receives for them; then the client disconnects. */
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

/* Kills another process that has requests in flight. RDMA resources do not survive a fork. */
int hold_and_kill(const char *how)
{
	char cmd[400], answer[300] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "echo $$; exec /proc/%d/exe client %s %s %s %s",
		 getpid(), args[2], args[3], how, test_name);
	f = popen(cmd, "r");
	if (!f || !fgets(cmd, sizeof(cmd), f) ||
	    !fgets(answer, sizeof(answer), f))
		return fail("can't start another process");
	kill(atoi(cmd), SIGKILL);
	pclose(f);
	return strcmp(answer, "yes\n") ? fail("the other process: %s", answer) : 0;
}

/* The client ends with requests in flight and connects again at once. */
enum { GO_DISCONNECT, GO_QP, GO_KILLED };

static int gone(long arg)
{
	struct path *p;

	if (arg == GO_KILLED) {
		if (hold_and_kill("hold"))
			return -1;
	} else {
		p = path_with_reads(test_name, 2, 8);
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
	/* Waits until the old path has ended. */
	return hello(0);
}

const struct test request_cases[] = {
	{ "imm-slot", "request for the chunk behind the last one", imm_bad, 0 },
	{ "imm-off-msg", "request whose header is behind the longest message", imm_bad, 1 },
	{ "hdr-type-4", "header of an answer", header, 1 },
	{ "hdr-usr-before", "user message that begins before the chunk", header, 0 },
	{ "msg-none", "no user message", answered, MSG_NONE },
	{ "msg-odd", "3 bytes of user message, 1 byte of data", answered, MSG_ODD },
	{ "msg-longest", "longest user message, of type 0", answered, MSG_LONGEST },
	{ "data-longest", "longest user message with most data", answered, DATA_LONGEST },
	{ "desc-0", "read without a descriptor", answered, DESC_0 },
	{ "desc-2", "read with two descriptors", answered, DESC_2 },
	{ "desc-empty", "read into 0 bytes", answered, READ_NO_ROOM },
	{ "read-key-wrong", "read with an unknown key", read_to, KEY_WRONG },
	{ "read-key-0", "read with key 0", read_to, KEY_0, .quiet = true },
	{ "read-key-stale", "read with a deregistered key", read_to, KEY_STALE, .quiet = true },
	{ "read-key-chunk", "read into a chunk", read_to, KEY_CHUNK, .quiet = true },
	{ "read-addr-0", "read to address 0", read_to, ADDR_0, .quiet = true },
	{ "read-addr-wraps", "read to the last addresses", read_to, ADDR_WRAPS, .quiet = true },
	{ "read-addr-beyond", "read to a byte behind the memory", read_to, ADDR_BEYOND,
	  .quiet = true },
	{ "read-inval-wrong", "invalidate an unknown key", read_to, INVAL_WRONG },
	{ "read-inval-0", "invalidate key 0", read_to, INVAL_0, .quiet = true },
	{ "read-inval-chunk", "invalidate the key of a chunk", read_to, INVAL_CHUNK },
	{ "read-inval-error", "invalidate an unknown key; the read fails", read_to, INVAL_EINVAL },
	{ "read-inval-window", "invalidate a window: works once", inval_window },
	{ "op-send", "SEND", op, SEND_0 },
	{ "op-send-300", "SEND of 300 bytes", op, SEND_300, .quiet = true },
	{ "op-send-imm", "SEND WITH IMM of a request", op, SEND_IMM, .quiet = true },
	{ "op-send-inv", "SEND WITH INV of a chunk's key", op, SEND_INV_CHUNK, .quiet = true },
	{ "op-read", "RDMA READ of a chunk", op, RDMA_READ },
	{ "op-atomic", "atomic operation on a chunk", op, ATOMIC_ADD, .quiet = true },
	{ "op-write-beyond", "RDMA WRITE beyond a chunk", op, WRITE_BEYOND, .quiet = true },
	{ "op-write-key", "RDMA WRITE with an unknown key", op, WRITE_KEY_WRONG, .quiet = true },
	{ "again", "slot reused while its request is in flight", again, AGAIN_IMM },
	{ "again-other-con", "the same on another connection", again, AGAIN_OTHER_CON },
	{ "again-write", "RDMA WRITE to the chunk of a read in flight: it reads the disk", again,
	  AGAIN_WRITE },
	{ "again-write-data", "RDMA WRITE to the chunk of a write in flight", write_in_flight },
	{ "write-under-way", "data of a write change before the disk reads them",
	  write_under_way, .extra = true },
	{ "changing", "headers change while the server reads them", changing, .quiet = true },
	{ "flood-hb", "10,000 heartbeats", flood, IMM_HB_MSG },
	{ "flood-hb-ack", "10,000 answers to heartbeats", flood, IMM_HB_ACK },
	{ "no-receives", "no receives for answers", no_receives },
	{ "gone-disconnect", "disconnects with requests in flight", gone, GO_DISCONNECT },
	{ "gone-qp", "destroys queue pairs with requests in flight", gone, GO_QP },
	{ "gone-killed", "process killed with requests in flight", gone, GO_KILLED },
	{ "slot-on-2-paths", "slot in flight is used on another path", slot_on_paths, 2 },
	{ "slot-on-3-paths", "slot in flight is used on two other paths", slot_on_paths, 3 },
	{ "imm-types-con-0", "immediate values of all types on connection 0", imm_types, 0,
	  .quiet = true },
	{ "imm-types-con-1", "immediate values of all types on connection 1", imm_types, 1,
	  .quiet = true },
	{ "ops-con-0", "all unexpected operations on connection 0", ops, 0, .quiet = true },
	{ "ops-con-1", "all unexpected operations on connection 1", ops, 1, .quiet = true },
	{ }
};
