// SPDX-License-Identifier: GPL-2.0
/*
 * A client's path: handshake, requests and answers, valid unless a case changes them
 */
#include <sys/mman.h>
#include <sys/random.h>

#include "hostile.h"

#define AREAS_LEN	((size_t)NR_AREAS * STRIDE)
#define CON_RECV_LEN	((size_t)NR_RECVS * RECV_SIZE + INFO_SIZE)

u8 *area(struct path *p, unsigned int i)
{
	return p->mem + (size_t)(i % NR_AREAS) * STRIDE;
}

u8 *read_area(struct path *p, unsigned int i)
{
	return p->mem + AREAS_LEN + (size_t)(i % NR_AREAS) * STRIDE;
}

/* Not from rnd(): concurrent peers, or peers with the same seed, need different UUIDs. */
static void fill_random(void *buf, size_t len)
{
	if (getrandom(buf, len, 0) != (ssize_t)len)
		abort();
}

/* All paths offer slots; all paths offer messages in place of immediate data. */
bool all_slots;
bool all_no_imm;
/* The server's always_invalidate: Y, N, or NULL if unknown */
const char *srv_keys;

bool has_slots(const struct path *p)
{
	return p->rep.features & FEATURE_SLOTS;
}

/* Data bytes of a chunk or slot */
u32 data_room(const struct path *p)
{
	return has_slots(p) ? p->rep.slot_size : p->rep.max_io_size;
}

u32 chunk_len(const struct path *p)
{
	return data_room(p) + p->rep.max_hdr_size;
}

struct path *path_new(const char *sess)
{
	struct path *p = calloc(1, sizeof(*p));
	unsigned int i;

	if (!p)
		return NULL;
	p->mem_len = 2 * AREAS_LEN + MAX_CONS * CON_RECV_LEN;
	p->mem = mmap(NULL, p->mem_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->mem == MAP_FAILED) {
		free(p);
		return NULL;
	}
	snprintf(p->sess, sizeof(p->sess), "%s", sess);
	p->addr = addrs[0];
	p->nr_cons = 2;
	p->reads = 1;
	p->req = (struct cm_req) {
		.magic = MAGIC,
		.version = VERSION,
		.cid_num = p->nr_cons,
		.recon_cnt = 1,
		.first_conn = 1,
	};
	fill_random(p->req.path_uuid, 16);
	fill_random(p->req.sess_uuid, 16);
	for (i = 0; i < MAX_CONS; i++) {
		p->cons[i].path = p;
		p->cons[i].cid = i;
		p->cons[i].recvs = p->mem + 2 * AREAS_LEN + i * CON_RECV_LEN;
	}
	if (all_slots)
		path_offer_slots(p);
	if (all_no_imm)
		path_offer_no_imm(p);
	return p;
}

/* Offers fencing, with a unique path ID. */
void path_offer(struct path *p)
{
	static u32 last;

	p->req.features |= FEATURE_FENCE;
	p->req.path_id = ++last;
}

/* Offers slots, and allocates memory for large data. */
void path_offer_slots(struct path *p)
{
	p->req.features |= FEATURE_SLOTS;
	p->reads = 16;
	if (p->big)
		return;
	p->big = mmap(NULL, 2 * BIG_LEN, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->big == MAP_FAILED)
		p->big = NULL;
}

/* Offers slots, and messages in place of immediate data, which it then sends. */
void path_offer_no_imm(struct path *p)
{
	path_offer_slots(p);
	p->req.features |= FEATURE_NO_IMM;
	p->no_imm = true;
}

/* Offers a proof of a secret, which path_info() sends. */
void path_offer_proof(struct path *p)
{
	p->req.features |= FEATURE_PROOF;
	prove_tag(p);
}

/* Makes @p a further path of a session, to another address. */
void path_join(struct path *p, const struct path *first, unsigned int addr)
{
	memcpy(p->req.sess_uuid, first->req.sess_uuid, 16);
	p->req.first_conn = first->req.first_conn & ~1;
	p->req.tag_hi = first->req.tag_hi;
	p->addr = addrs[addr];
}

/* Makes a connection of the path; returns as con_request(). */
int path_con(struct path *p, unsigned int cid, const struct cm_req *req, u8 len)
{
	struct con *con = &p->cons[cid];

	con->cid = cid;
	if (con_resolve(con))
		return -1;
	if (!p->pd) {
		p->pd = ibv_alloc_pd(con->id->verbs);
		if (!p->pd)
			return fail("no protection domain");
		p->mr = ibv_reg_mr(p->pd, p->mem, p->mem_len,
				   IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
		if (!p->mr)
			return fail("can't register memory: %s", strerror(errno));
	}
	if (p->big && !p->big_mr) {
		p->big_mr = ibv_reg_mr(p->pd, p->big, 2 * BIG_LEN,
				       IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ);
		if (!p->big_mr)
			return fail("can't register memory: %s", strerror(errno));
	}
	if (con_create_qp(con))
		return -1;
	return con_request(con, req, len);
}

static unsigned int bits(u32 n)
{
	return n ? 32 - __builtin_clz(n) : 0;
}

int path_connect(struct path *p)
{
	struct cm_req req = p->req;
	unsigned int i;
	int ret;

	for (i = 0; i < p->nr_cons; i++) {
		req.cid = i;
		ret = path_con(p, i, &req, sizeof(req));
		if (ret)
			return ret < 0 ? ret : fail("rejected with %d",
						    p->reject_err);
	}
	if (p->rep.magic != MAGIC || p->rep.version >> 8 != VERSION >> 8 ||
	    !p->rep.queue_depth || p->rep.queue_depth > MAX_DEPTH)
		return fail("invalid accept");
	p->off_bits = 28 - bits(p->rep.queue_depth - 1);
	if (p->rep.flags)
		return fail("the server changes its chunks' keys");
	return 0;
}

/* Sends a first message, valid or not. */
int path_info_req(struct path *p, const void *msg, u32 len)
{
	return send_msg(p, 0, msg, len);
}

int path_wait_info(struct path *p)
{
	u64 end = now_ms() + 10000;

	while (!p->nr_info) {
		path_poll(p);
		if (p->refused)
			return fail("refused with %d", p->refused);
		if (path_ended(p))
			return fail("the path ended before INFO_RSP");
		if (now_ms() > end)
			return fail("no INFO_RSP");
		nap_us(100);
	}
	return 0;
}

int path_info(struct path *p)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	struct proof proof;
	int ret;

	if (p->rep.features & FEATURE_PROOF) {
		fill_random(proof.nonce, sizeof(proof.nonce));
		prove(p, 1, &proof);
		ret = send_proof(p, &proof, PROOF_LEN);
	} else {
		memcpy(req.name, p->sess, sizeof(req.name));
		ret = path_info_req(p, &req, sizeof(req));
	}
	if (ret)
		return fail("can't send INFO_REQ");
	return path_wait_info(p);
}

/* Connects the path and exchanges INFO_REQ and INFO_RSP; frees it on failure. */
struct path *path_ready(struct path *p)
{
	if (p && !path_connect(p) && !path_info(p))
		return p;
	if (p)
		path_free(p);
	return NULL;
}

struct path *path_up(const char *sess)
{
	return path_ready(path_new(sess));
}

bool path_ended(const struct path *p)
{
	unsigned int i;

	for (i = 0; i < MAX_CONS; i++)
		if (p->cons[i].ended || p->cons[i].status)
			return true;
	return false;
}

/* Assigns the descriptors to the slots. */
static void path_read_info(struct path *p, const struct info_rsp *rsp, u32 len)
{
	u32 chunk = chunk_len(p);
	unsigned int i, slot = 0;
	u64 off;

	if (rsp->type == MSG_INFO_RSP && len == 8 && rsp->err) {
		p->refused = rsp->err;
		return;
	}
	if (p->rep.features & FEATURE_PROOF && len > 32)
		len -= 32;
	if (rsp->type != MSG_INFO_RSP || len != 8u + 16 * rsp->nr) {
		p->unexpected++;
		return;
	}
	for (i = 0; i < rsp->nr; i++)
		for (off = 0; off < rsp->desc[i].len && slot < MAX_DEPTH;
		     off += chunk, slot++) {
			p->slot[slot].addr = rsp->desc[i].addr + off;
			p->slot[slot].key = rsp->desc[i].key;
		}
	if (slot != p->rep.queue_depth)
		p->unexpected++;
	p->nr_info = rsp->nr;
}

static void path_answered(struct path *p, u32 imm)
{
	struct slot *s;
	u32 nr = imm & 0x7ffff;

	if (nr >= p->rep.queue_depth) {
		p->unexpected++;
		return;
	}
	s = &p->slot[nr];
	s->imm_type = imm >> 28;
	s->err = -(int)((imm >> 19) & 0x1ff);
	s->answers++;
}

static void path_answered_inv(struct path *p, const struct ibv_wc *wc,
			      const struct answer *a)
{
	struct slot *s;

	if (wc->byte_len != sizeof(*a) || a->type != MSG_ANSWER ||
	    a->slot >= p->rep.queue_depth || a->err > 511) {
		p->unexpected++;
		return;
	}
	s = &p->slot[a->slot];
	s->imm_type = ANSWER_INV;
	s->err = -(int)a->err;
	s->answers++;
}

/* Reads an immediate value, or the message in its place; false if there is neither. */
static bool path_read_imm(struct path *p, const struct ibv_wc *wc, const struct msg_imm *msg,
			  u32 *imm)
{
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		*imm = ntohl(wc->imm_data);
		if (p->no_imm)
			p->unexpected++;
		return true;
	}
	*imm = msg->imm;
	return p->no_imm && wc->byte_len == sizeof(*msg) && msg->type == MSG_IMM && !msg->zero;
}

static void path_received(struct con *con, const struct ibv_wc *wc)
{
	struct path *p = con->path;
	const void *buf = con->recvs + wc->wr_id * RECV_SIZE;
	u32 imm;

	/* rxe uses another bit in user space. */
	if (wc->wc_flags & (IBV_WC_WITH_INV | 1 << 2)) {
		p->invalidated++;
		if (has_slots(p))
			path_answered_inv(p, wc, buf);
	} else if (!path_read_imm(p, wc, buf, &imm)) {
		path_read_info(p, buf, wc->byte_len);
	} else if (imm >> 28 == IMM_HB_MSG) {
		p->hb_msgs++;
		if (!p->mute)
			send_imm(p, con->cid, (u32)IMM_HB_ACK << 28);
	} else if (imm >> 28 == IMM_HB_ACK) {
		p->hb_acks++;
	} else if (imm >> 28 == IMM_FENCED && !con->cid) {
		p->fenced_id = imm & 0x0fffffff;
		p->fenced++;
	} else if (imm >> 28 == IMM_IO_RSP || imm >> 28 == IMM_IO_RSP_W_INV) {
		path_answered(p, imm);
	} else {
		p->unexpected++;
	}
	if (wc->wr_id < NR_RECVS)
		con_recv(con, wc->wr_id);
}

static void con_poll_cq(struct con *con)
{
	struct ibv_wc wc[32];
	int i, n;

	while (con->cq && (n = ibv_poll_cq(con->cq, ARRAY_SIZE(wc), wc)) > 0) {
		for (i = 0; i < n; i++) {
			if (wc[i].wr_id & 1ull << 63)
				con->inflight--;
			if (wc[i].status == IBV_WC_SUCCESS) {
				if (!(wc[i].wr_id & 1ull << 63))
					path_received(con, &wc[i]);
			} else if (!con->status) {
				con->status = wc[i].status;
			}
		}
	}
}

void path_poll(struct path *p)
{
	unsigned int i;

	for (i = 0; i < MAX_CONS; i++) {
		if (!p->cons[i].id)
			continue;
		if (!p->cons[i].busy)
			con_poll_cq(&p->cons[i]);
		con_poll_cm(&p->cons[i]);
	}
}

void path_free(struct path *p)
{
	unsigned int i;

	for (i = 0; i < MAX_CONS; i++)
		if (p->cons[i].up && !p->cons[i].ended)
			rdma_disconnect(p->cons[i].id);
	for (i = 0; i < MAX_CONS; i++)
		con_free(&p->cons[i]);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	if (p->big_mr)
		ibv_dereg_mr(p->big_mr);
	if (p->big)
		munmap(p->big, 2 * BIG_LEN);
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	munmap(p->mem, p->mem_len);
	free(p);
}

static struct ibv_send_wr wr_from(struct path *p, struct ibv_sge *sge,
				  const void *from, u32 len)
{
	*sge = (struct ibv_sge) {
		.addr = (uintptr_t)from,
		.length = len,
		.lkey = p->mr->lkey,
	};
	return (struct ibv_send_wr) {
		.wr_id = 1ull << 63,
		.sg_list = sge,
		.num_sge = !!len,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

int send_imm(struct path *p, unsigned int cid, u32 imm)
{
	return write_to(p, cid, NULL, 0, 0, 0, &imm);
}

/* Sends @nr immediate values, @step apart, in chains of 32. Returns how many were sent. */
unsigned int send_burst(struct path *p, u32 imm, u32 step, unsigned int nr)
{
	struct ibv_send_wr wr[32] = { };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].wr_id = 1ull << 63;
		wr[i].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].imm_data = htonl(imm + i * step);
		wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
	}
	for (n = 0; n < nr && !path_ended(p); n += ARRAY_SIZE(wr))
		con_post(&p->cons[0], wr);
	return n;
}

void window_free(struct window *w)
{
	if (w->mw)
		ibv_dealloc_mw(w->mw);
	if (w->mr)
		ibv_dereg_mr(w->mr);
}

/* Allocates a window on the memory, which is not bound. */
int window_new(struct path *p, struct window *w, void *addr, size_t len)
{
	*w = (struct window) { .addr = addr, .len = len };
	w->mr = ibv_reg_mr(p->pd, addr, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
	w->mw = w->mr ? ibv_alloc_mw(p->pd, IBV_MW_TYPE_2) : NULL;
	if (!w->mw) {
		window_free(w);
		return fail("no memory window");
	}
	w->key = w->mw->rkey;
	return 0;
}

/* Binds the window under a new key. */
int window_bind(struct path *p, struct window *w)
{
	struct ibv_send_wr wr = {
		.wr_id = 1ull << 63,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw.mw = w->mw,
		.bind_mw.bind_info = {
			.mr = w->mr,
			.addr = (uintptr_t)w->addr,
			.length = w->len,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};

	w->key = ibv_inc_rkey(w->key);
	wr.bind_mw.rkey = w->key;
	if (con_post(&p->cons[1], &wr))
		return fail("can't bind a window");
	w->mw->rkey = w->key;
	return 0;
}

/* SENDs a message from the last area. */
int send_msg(struct path *p, unsigned int cid, const void *msg, u32 len)
{
	u8 *buf = area(p, NR_AREAS - 1);
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	if (len)
		memcpy(buf, msg, len);
	wr = wr_from(p, &sge, buf, len);
	wr.opcode = IBV_WR_SEND;
	return con_post(&p->cons[cid], &wr);
}

/* Other kinds of SEND from the path's memory */
int send_with(struct path *p, unsigned int cid, const void *from, u32 len,
	      enum ibv_wr_opcode opcode, u32 imm_or_key)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_from(p, &sge, from, len);

	wr.opcode = opcode;
	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = imm_or_key;
	else
		wr.imm_data = htonl(imm_or_key);
	return con_post(&p->cons[cid], &wr);
}

/* RDMA READ and atomics, into the first read area */
int rdma_op(struct path *p, unsigned int cid, u32 len, u64 addr, u32 key,
	    enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_from(p, &sge, read_area(p, 0), len);

	wr.opcode = opcode;
	if (opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = key;
	} else {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
	}
	return con_post(&p->cons[cid], &wr);
}

/* RDMA WRITE of the path's memory, WITH IMM if @imm is not NULL */
int write_to(struct path *p, unsigned int cid, const void *from, u32 len,
	     u64 addr, u32 key, const u32 *imm)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_from(p, &sge, from, len);

	wr.opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	wr.imm_data = imm ? htonl(*imm) : 0;
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = key;
	return con_post(&p->cons[cid], &wr);
}

u32 imm_req(const struct path *p, unsigned int slot, u32 off)
{
	return (slot << p->off_bits | off) & 0x0fffffff;
}

/*
 * Builds a request in the slot's area, in the layout of the chunk, and its immediate value.
 * Returns the length of data, message and header.
 */
u32 request_write(struct path *p, const struct request *r, u32 *imm)
{
	u8 *buf = area(p, r->slot);
	struct io_hdr hdr = {
		.type = r->type,
		.usr_len = r->usr_len,
		.flags = r->flags,
		.nr_desc = r->nr_desc,
		.desc[0] = r->desc,
	};
	u32 off = r->data_len + r->msg_len;

	if (r->type == MSG_WRITE && r->data)
		memcpy(buf, r->data, r->data_len);
	memcpy(buf + r->data_len, r->msg, r->msg_len);
	memcpy(buf + off, &hdr, sizeof(hdr));
	*imm = imm_req(p, r->slot, off);
	return off + (r->type == MSG_WRITE ? 4 : sizeof(hdr));
}

/* The work request that writes the request to the chunk; the caller may change it. */
struct ibv_send_wr request_wr(struct path *p, const struct request *r,
			      struct ibv_sge *sge)
{
	const struct slot *s = &p->slot[r->slot];
	u32 start = r->type == MSG_READ ? r->data_len : 0;
	struct ibv_send_wr wr;
	u32 len, imm;

	len = request_write(p, r, &imm);
	wr = wr_from(p, sge, area(p, r->slot) + start, len - start);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl(imm);
	wr.wr.rdma.remote_addr = s->addr + start;
	wr.wr.rdma.rkey = s->key;
	return wr;
}

int request_send(struct path *p, const struct request *r)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request_wr(p, r, &sge);

	return con_post(&p->cons[r->cid], &wr);
}

/*
 * A valid request with a user message. Reads go to the first read area. With slots, large data are
 * in @big, and a large write is fetched.
 */
struct request request_rnbd(struct path *p, u16 type, const void *msg, u16 len,
			    u32 data_len)
{
	struct request r = {
		.cid = 1,
		.type = type,
		.msg = msg,
		.msg_len = len,
		.usr_len = len,
		.data_len = data_len,
	};

	if (has_slots(p) && type == MSG_WRITE && data_len > data_room(p))
		r.type = MSG_FETCH;
	if (r.type != MSG_WRITE) {
		r.nr_desc = 1;
		r.desc.addr = (uintptr_t)read_area(p, 0);
		r.desc.key = p->mr->rkey;
		r.desc.len = data_len;
	}
	if (has_slots(p) && r.type != MSG_WRITE)
		r.data_len = 0;
	if (r.type == MSG_FETCH || (has_slots(p) && data_len > STRIDE)) {
		r.desc.addr = (uintptr_t)p->big + (type == MSG_READ ? BIG_LEN : 0);
		r.desc.key = p->big_mr->rkey;
	}
	return r;
}

/* Waits until a slot has received more answers than @before. */
int wait_answer(struct path *p, unsigned int slot, u32 before, int ms)
{
	u64 end = now_ms() + ms;

	for (;;) {
		path_poll(p);
		if (p->slot[slot].answers != before)
			return 0;
		if (path_ended(p))
			return fail("the path ended without an answer");
		if (now_ms() > end)
			return fail("no answer in %d ms", ms);
		nap_us(50);
	}
}

/* Sends a request; returns the errno of the answer, or 1 without an answer. */
int do_request(struct path *p, const struct request *r)
{
	u32 before = p->slot[r->slot].answers;

	if (request_send(p, r))
		return fail("can't send"), 1;
	if (wait_answer(p, r->slot, before, 10000))
		return 1;
	return p->slot[r->slot].err;
}
