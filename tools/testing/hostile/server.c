// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile server. It listens, has this machine's client map a device, and is valid except for one
 * message in each case. The client must end the path or fail to map within a time limit, and
 * release everything afterwards.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"

#define CHUNKS_LEN	((size_t)2 * DEPTH * CHUNK)
#define CON_LEN		((size_t)S_RECVS * S_RECV_SIZE)
#define OUT_LEN		(256 << 10)

static struct srv srv;

/* ---- the client's side: map, use, unmap ---- */

struct user {
	pthread_t thread;
	char sess[80];
	const char *addr;
	const char *port;
	unsigned int rounds;
	int map_err;
	unsigned int map_ms;
	int io_err;
	unsigned int io_ms;
	int unmap_err;
	volatile bool mapped;
	volatile bool done;
};

static int put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Small and large reads and writes. Returns the first error; more than one round ignores EIO. */
static int use_disk(const char *disk, unsigned int rounds)
{
	static const struct { bool write; u32 len; } ios[] = {
		{ false, 4096 }, { true, 4096 }, { false, USE_LEN },
		{ true, USE_LEN }, { true, 4096 }, { false, 4096 },
	};
	char dev[80];
	unsigned int i;
	int fd, err = 0;
	void *buf;
	ssize_t n;

	snprintf(dev, sizeof(dev), "/dev/%s", disk);
	if (posix_memalign(&buf, 4096, USE_LEN))
		return ENOMEM;
	fd = open(dev, O_RDWR | O_DIRECT);
	if (fd < 0)
		err = errno;
	for (i = 0; i < ARRAY_SIZE(ios) * rounds && fd >= 0; i++) {
		u32 len = ios[i % ARRAY_SIZE(ios)].len;

		if (ios[i % ARRAY_SIZE(ios)].write)
			n = pwrite(fd, buf, len, 0);
		else
			n = pread(fd, buf, len, 0);
		if (n >= 0)
			continue;
		err = errno;
		/* EIO: the path was lost. */
		if (rounds == 1 || err != EIO)
			break;
	}
	if (fd >= 0) {
		if (!err && fdatasync(fd))
			err = errno;
		close(fd);
	}
	free(buf);
	return err;
}

static void unmap_disk(struct user *u, const char *disk)
{
	u64 end = now_ms() + 20000;
	char file[160];

	snprintf(file, sizeof(file), "/sys/block/%s/rnbd/unmap_device", disk);
	u->unmap_err = put(file, "force");
	snprintf(file, sizeof(file), "/sys/block/%s", disk);
	while (!u->unmap_err && !access(file, F_OK)) {
		if (now_ms() > end)
			u->unmap_err = ETIMEDOUT;
		nap_us(5000);
	}
}

/*
 * Shortens the time limits of the session. The attributes exist as soon as the session does,
 * while the client still looks for partitions.
 */
static bool set_limits(const struct user *u)
{
	static const struct { const char *name; int val, again; } attrs[] = {
		{ "reconnect_delay_ms", 100, 100 },
		{ "reconnect_delay_max_ms", 200, 200 },
		{ "unfenced_delay_ms", UNFENCED_MS, UNFENCED_MS },
		{ "max_reconnect_attempts", 0, -1 },
		{ "failover_timeout", 0, FAILOVER_S },
	};
	char path[400], val[20];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		snprintf(path, sizeof(path), "/sys/class/rtrs-client/%s/%s",
			 u->sess, attrs[i].name);
		snprintf(val, sizeof(val), "%d",
			 srv.test->again ? attrs[i].again : attrs[i].val);
		if (put(path, val))
			return false;
	}
	return true;
}

/* A valid answer may complete the last I/O before the client receives the invalid message. */
static void wait_for_reconnect(void)
{
	u64 end = now_ms() + 20000;

	while (srv.life < 2 && srv.acted && !srv.given_up && now_ms() < end)
		nap_us(5000);
}

static void *user_thread(void *arg)
{
	struct user *u = arg;
	char text[300], link[300], disk[300] = "";
	u64 start = now_ms();
	ssize_t n;

	snprintf(text, sizeof(text),
		 "sessname=%s path=ip:%s dest_port=%s%s", u->sess,
		 u->addr, u->port, srv.test->discover ? "" : " device_path=dev");
	u->map_err = put(srv.test->discover ? "/dev/rnbd-discover" :
			 "/sys/class/rnbd-client/ctl/map_device", text);
	u->map_ms = now_ms() - start;
	if (!u->map_err && !srv.test->discover) {
		snprintf(link, sizeof(link),
			 "/sys/class/rnbd-client/ctl/devices/dev@%s", u->sess);
		n = readlink(link, disk, sizeof(disk) - 1);
		disk[n > 0 ? n : 0] = 0;
		u->mapped = true;
		start = now_ms();
		u->io_err = use_disk(basename(disk), u->rounds);
		u->io_ms = now_ms() - start;
		if (srv.test->again)
			wait_for_reconnect();
		unmap_disk(u, basename(disk));
	}
	u->done = true;
	return NULL;
}

/* ---- connections ---- */

static int scon_recv(struct scon *c, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->recvs + i * S_RECV_SIZE,
		.length = S_RECV_SIZE,
		.lkey = srv.mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(c->id->qp, &wr, &bad);
}

static int srv_memory(struct ibv_context *verbs)
{
	if (srv.pd)
		return 0;
	srv.mem_len = CHUNKS_LEN + MAX_CONS * CON_LEN + OUT_LEN;
	srv.mem = mmap(NULL, srv.mem_len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	srv.out = srv.mem + CHUNKS_LEN + MAX_CONS * CON_LEN;
	srv.pd = ibv_alloc_pd(verbs);
	if (srv.mem == MAP_FAILED || !srv.pd)
		return -1;
	srv.mr = ibv_reg_mr(srv.pd, srv.mem, srv.mem_len,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return srv.mr ? 0 : -1;
}

static int scon_qp(struct scon *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap.max_send_wr = S_SENDS,
		.cap.max_recv_wr = S_RECVS,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_all = 1,
	};
	unsigned int i;

	c->cq = ibv_create_cq(c->id->verbs, S_SENDS + S_RECVS, NULL, NULL, 0);
	if (!c->cq)
		return -1;
	attr.send_cq = c->cq;
	attr.recv_cq = c->cq;
	if (rdma_create_qp(c->id, srv.pd, &attr))
		return -1;
	for (i = 0; i < S_RECVS; i++)
		if (scon_recv(c, i))
			return -1;
	return 0;
}

static void scon_free(struct scon *c)
{
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->id)
		rdma_destroy_id(c->id);
	memset(c, 0, sizeof(*c));
}

static struct cm_rep good_rep(void)
{
	return (struct cm_rep) {
		.magic = MAGIC,
		.version = VERSION,
		.queue_depth = DEPTH,
		.max_io_size = CHUNK - 4096,
		.max_hdr_size = 4096,
	};
}

static void srv_reject(struct rdma_cm_id *id, const void *data, u8 len)
{
	rdma_reject(id, data, len);
	rdma_destroy_id(id);
}

static void srv_request(const struct rdma_cm_event *ev)
{
	const struct cm_req *req = ev->param.conn.private_data;
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct cm_rep rep = good_rep();
	u8 len = sizeof(rep);
	struct scon *c;
	int what;

	if (srv.given_up) {
		srv_reject(ev->id, NULL, 0);
		return;
	}
	if (req->magic != MAGIC || req->version >> 8 != 2 || req->cid >= MAX_CONS ||
	    req->cid >= req->cid_num) {
		srv.complaint = "the connection request is wrong";
		rdma_destroy_id(ev->id);
		return;
	}
	if (!req->cid)
		srv.life++;
	what = srv.test->connect ? srv.test->connect(&srv, req, &rep, &len) : S_ACCEPT;
	if (!req->cid)
		srv.rep = rep;
	if (what == S_REJECT) {
		srv_reject(ev->id, &rep, len);
		return;
	}
	c = &srv.cons[req->cid];
	scon_free(c);
	c->cid = req->cid;
	c->id = ev->id;
	c->id->context = c;
	srv.nr_cons = req->cid_num;
	if (what == S_IGNORE)
		return;
	if (srv_memory(ev->id->verbs)) {
		srv.complaint = "no memory";
		return;
	}
	c->recvs = srv.mem + CHUNKS_LEN + c->cid * CON_LEN;
	/* Fails if the client has disconnected meanwhile. */
	if (scon_qp(c))
		return;
	param.private_data = &rep;
	param.initiator_depth = ev->param.conn.initiator_depth;
	param.private_data_len = len;
	rdma_accept(c->id, &param);
}

/* A connection is established, according to the CM or to a message: the first report counts. */
void s_up(struct scon *c)
{
	if (c->up)
		return;
	c->up = true;
	if (srv.test->established)
		srv.test->established(&srv, c);
}

/*
 * Disconnects. The CM sends no DREQ before it has received the client's RTU, which may be late; a
 * DREQ is sent when it arrives.
 */
void s_disconnect(struct scon *c)
{
	c->disconnected = true;
	rdma_disconnect(c->id);
}

static void srv_event(const struct rdma_cm_event *ev)
{
	struct scon *c = ev->id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		srv_request(ev);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		s_up(c);
		if (c->disconnected)
			rdma_disconnect(c->id);
		break;
	default:
		if (c) {
			c->ended = true;
			srv.ended = true;
		}
		break;
	}
}

static void srv_poll_cm(int ms)
{
	struct pollfd fd = { .fd = srv.ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev, copy;
	u8 data[256];

	while (poll(&fd, 1, ms) > 0 && !rdma_get_cm_event(srv.ch, &ev)) {
		ms = 0;
		copy = *ev;
		memset(data, 0, sizeof(data));
		if (ev->param.conn.private_data)
			memcpy(data, ev->param.conn.private_data,
			       ev->param.conn.private_data_len);
		copy.param.conn.private_data = data;
		/* An ID can only be destroyed when its events are acknowledged. */
		rdma_ack_cm_event(ev);
		srv_event(&copy);
	}
}

/* ---- sending ---- */

int s_post(struct scon *c, enum ibv_wr_opcode opcode, const void *from, u32 len,
	   u32 imm_or_inv, u64 addr, u32 key)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)srv.out + srv.out_used,
		.length = len,
		.lkey = srv.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1ull << 63,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = !!len,
		.wr.rdma.remote_addr = addr,
		.wr.rdma.rkey = key,
	}, *bad;

	if (!c->id || !c->id->qp || c->inflight >= S_SENDS)
		return -1;
	if (srv.out_used + len > OUT_LEN) {
		sge.addr = (uintptr_t)srv.out;
		srv.out_used = 0;
	}
	if (from && len)
		memcpy((void *)(uintptr_t)sge.addr, from, len);
	srv.out_used = (srv.out_used + len + 63) & ~63u;
	if (opcode == IBV_WR_SEND_WITH_INV) {
		/* Not before the data are fetched */
		wr.send_flags |= IBV_SEND_FENCE;
		wr.invalidate_rkey = imm_or_inv;
	} else {
		wr.imm_data = htonl(imm_or_inv);
	}
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return -1;
	c->inflight++;
	return 0;
}

u32 s_rsp(u32 type, u32 slot, int err)
{
	return type << 28 | ((u32)abs(err) & 0x1ff) << 19 | (slot & 0x7ffff);
}

void s_imm(struct scon *c, u32 imm)
{
	s_post(c, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0, imm, 0, 0);
}

bool s_slots(const struct srv *s)
{
	return s->rep.features & FEATURE_SLOTS;
}

bool s_needs_inval(const struct sreq *r)
{
	return r->hdr.type != MSG_WRITE && r->hdr.flags & NEED_INVAL;
}

/* The message that answers a large request with slots */
void s_answer_inv(const struct sreq *r, u32 key, const struct answer *a, u32 len)
{
	u8 m[64] = { };

	memcpy(m, a, sizeof(*a));
	s_post(r->con, IBV_WR_SEND_WITH_INV, m, len, key, 0, 0);
}

/* A complete answer with slots; data are padded with zeros. */
static void s_reply_slots(const struct sreq *r, const void *data, u32 len, int err)
{
	const struct desc *d = &r->hdr.desc[0];
	struct answer a = { MSG_ANSWER, r->slot, abs(err) };
	static u8 buf[CHUNK];
	bool read = r->hdr.type == MSG_READ && !err && d->len <= CHUNK;

	if (read) {
		memset(buf, 0, d->len);
		memcpy(buf, data, len < d->len ? len : d->len);
	}
	if (!s_needs_inval(r)) {
		s_post(r->con, IBV_WR_RDMA_WRITE_WITH_IMM, buf, read ? d->len : 0,
		       s_rsp(IMM_IO_RSP, r->slot, err), d->addr, d->key);
		return;
	}
	if (read)
		s_post(r->con, IBV_WR_RDMA_WRITE, buf, d->len, 0, d->addr, d->key);
	else if (r->hdr.type == MSG_FETCH)
		s_post(r->con, IBV_WR_RDMA_READ, NULL, d->len, 0, d->addr, d->key);
	s_answer_inv(r, d->key, &a, sizeof(a));
}

/* The last message of an answer */
void s_answer(const struct sreq *r, u32 type, u32 slot, int err)
{
	struct rkey_rsp key = { MSG_RKEY_RSP, slot, srv.mr->rkey };

	if (srv.rep.flags & FLAG_NEW_RKEY)
		s_post(r->con, IBV_WR_SEND_WITH_IMM, &key, sizeof(key),
		       s_rsp(type, slot, err), 0, 0);
	else
		s_imm(r->con, s_rsp(type, slot, err));
}

void s_data(const struct sreq *r, const void *data, u32 len)
{
	if (r->hdr.type == MSG_READ && len)
		s_post(r->con, IBV_WR_RDMA_WRITE, data, len, 0,
		       r->hdr.desc[0].addr, r->hdr.desc[0].key);
}

/* A complete answer: data, if any, and the last message */
void s_reply(const struct sreq *r, const void *data, u32 len, int err)
{
	bool inval = r->hdr.type == MSG_READ && r->hdr.flags & NEED_INVAL && !err;

	if (s_slots(&srv)) {
		s_reply_slots(r, data, len, err);
		return;
	}
	if (!err)
		s_data(r, data, len);
	if (inval)
		s_post(r->con, IBV_WR_SEND_WITH_INV, NULL, 0,
		       r->hdr.desc[0].key, 0, 0);
	s_answer(r, inval ? IMM_IO_RSP_W_INV : IMM_IO_RSP, r->slot, err);
}

/* Changes INFO_RSP to a descriptor of @size bytes for each chunk or slot; returns its length. */
u32 s_desc_each(struct info_rsp *rsp, u32 size)
{
	struct desc *d = rsp->desc;
	unsigned int i;

	rsp->nr = DEPTH;
	for (i = 0; i < DEPTH; i++)
		d[i] = (struct desc) { d[0].addr + (u64)i * size, d[0].key, size };
	return sizeof(*rsp) + DEPTH * sizeof(*d);
}

struct open_rsp s_open_rsp(void)
{
	return (struct open_rsp) {
		.type = RNBD_OPEN_RSP,
		.device_id = 7,
		.nsectors = 2048,
		.max_hw_sectors = 248,
		.max_discard_sectors = 248,
		.discard_granularity = 4096,
		.max_write_zeroes_sectors = 248,
		.physical_block_size = 4096,
		.logical_block_size = 512,
		.max_segments = 31,
		.cache_policy = 3,
	};
}

static void s_good(const struct sreq *r)
{
	struct sess_info info = { .type = RNBD_SESS_INFO_RSP, .ver = 2 };
	struct open_rsp rsp = s_open_rsp();
	static const u8 zeroes[CHUNK];

	switch (r->kind) {
	case RNBD_SESS_INFO:
		s_reply(r, &info, sizeof(info), 0);
		break;
	case RNBD_OPEN:
		s_reply(r, &rsp, sizeof(rsp), 0);
		break;
	default:
		s_reply(r, zeroes, r->hdr.type == MSG_READ ?
			r->hdr.desc[0].len : 0, 0);
		break;
	}
}

/* ---- receiving ---- */

static unsigned int slot_bits(u32 depth)
{
	return depth > 1 ? 32 - __builtin_clz(depth - 1) : 0;
}

/* Size of a chunk or slot */
static u32 srv_chunk(void)
{
	return (s_slots(&srv) ? srv.rep.slot_size : srv.rep.max_io_size) +
	       srv.rep.max_hdr_size;
}

static bool srv_type_ok(const struct sreq *r)
{
	return r->hdr.type == MSG_READ || r->hdr.type == MSG_WRITE ||
	       (r->hdr.type == MSG_FETCH && s_slots(&srv));
}

/* Why a request of a client with slots is invalid, or NULL */
static const char *srv_slot_error(const struct sreq *r, u32 off)
{
	u32 data = off - r->hdr.usr_len;

	if (r->hdr.type == MSG_WRITE)
		return data > srv.rep.slot_size ? "too much data in a slot" : NULL;
	if (data)
		return "data before the message";
	if (r->hdr.nr_desc != 1 || r->hdr.flags & ~NEED_INVAL ||
	    r->hdr.desc[0].len > srv.rep.max_io_size)
		return "an invalid descriptor";
	if (r->hdr.type == MSG_READ && !s_needs_inval(r) &&
	    r->hdr.desc[0].len > srv.rep.slot_size)
		return "a large read into the memory for small ones";
	return NULL;
}

static void srv_io(struct scon *c, u32 payload)
{
	unsigned int bits = 28 - slot_bits(srv.rep.queue_depth);
	struct sreq r = { .con = c, .slot = payload >> bits };
	u32 off = payload & ((1u << bits) - 1);
	u32 per = srv_chunk();
	const u8 *chunk = srv.mem + (size_t)r.slot * per;

	if (r.slot >= srv.rep.queue_depth || off + sizeof(r.hdr) > per) {
		srv.complaint = "the client's request is outside of its chunk";
		return;
	}
	/* INFO_RSP may have described more memory than exists. */
	if ((size_t)(r.slot + 1) * per > CHUNKS_LEN) {
		s_hang_up();
		return;
	}
	memcpy(&r.hdr, chunk + off, sizeof(r.hdr));
	if (!srv_type_ok(&r) || r.hdr.usr_len > off) {
		if (srv.lied)
			s_hang_up();
		else
			srv.complaint = "the client's request is malformed";
		return;
	}
	if (s_slots(&srv) && !srv.lied && !srv.complaint)
		srv.complaint = srv_slot_error(&r, off);
	r.msg = chunk + off - r.hdr.usr_len;
	r.kind = *(const u16 *)r.msg;
	if (r.kind < ARRAY_SIZE(srv.requests))
		srv.requests[r.kind]++;
	if (srv.test->request && srv.test->request(&srv, &r))
		return;
	s_good(&r);
}

static void srv_info_req(struct scon *c, const struct info_req *req, u32 len)
{
	u32 per = srv_chunk();
	struct {
		struct info_rsp rsp;
		struct desc desc[DEPTH + 8];
	} m = { .rsp.type = MSG_INFO_RSP, .rsp.nr = 1 };

	if (len != sizeof(*req) || req->type != MSG_INFO_REQ) {
		srv.complaint = "the client's first message is wrong";
		return;
	}
	m.desc[0].addr = (uintptr_t)srv.mem;
	m.desc[0].key = srv.mr->rkey;
	m.desc[0].len = srv.rep.queue_depth * per;
	len = sizeof(m.rsp) + sizeof(struct desc);
	if (srv.test->info)
		len = srv.test->info(&srv, &m.rsp, len);
	if (len)
		s_post(c, IBV_WR_SEND, &m, len, 0, 0, 0);
}

static void srv_received(struct scon *c, const struct ibv_wc *wc)
{
	u32 imm = ntohl(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM)) {
		srv_info_req(c, (void *)(c->recvs + wc->wr_id * S_RECV_SIZE),
			     wc->byte_len);
	} else if (imm >> 28 == IMM_IO_REQ) {
		srv_io(c, imm & 0x0fffffff);
	} else if (imm >> 28 == IMM_HB_MSG) {
		if (!srv.test->mute)
			s_imm(c, (u32)IMM_HB_ACK << 28);
	} else if (imm >> 28 == IMM_FENCE && srv.test->fence) {
		srv.fences++;
		srv.test->fence(&srv, imm & 0x0fffffff);
	}
	scon_recv(c, wc->wr_id);
}

static bool srv_poll_cq(struct scon *c)
{
	struct ibv_wc wc[32];
	bool busy = false;
	int i, n;

	while (c->cq && (n = ibv_poll_cq(c->cq, ARRAY_SIZE(wc), wc)) > 0) {
		busy = true;
		for (i = 0; i < n && c->cq; i++) {
			if (wc[i].wr_id & 1ull << 63)
				c->inflight--;
			else if (wc[i].status == IBV_WC_SUCCESS)
				srv_received(c, &wc[i]);
			if (wc[i].status != IBV_WC_SUCCESS)
				srv.ended = true;
		}
	}
	return busy;
}

bool s_poll(void)
{
	bool busy = false;
	unsigned int i;

	srv_poll_cm(0);
	for (i = 0; i < MAX_CONS; i++)
		busy |= srv_poll_cq(&srv.cons[i]);
	return busy;
}

/* Disconnects all established connections. */
void s_hang_up(void)
{
	unsigned int i;

	for (i = 0; i < MAX_CONS; i++)
		if (srv.cons[i].up)
			s_disconnect(&srv.cons[i]);
}

static int srv_listen(const char *addr, const char *port)
{
	struct sockaddr_storage at;

	if (set_addr(&at, addr, port))
		return fail("no address: %s", addr);
	srv.ch = rdma_create_event_channel();
	if (!srv.ch || rdma_create_id(srv.ch, &srv.listen, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(srv.listen, (void *)&at) || rdma_listen(srv.listen, 16))
		return fail("can't listen: %s", strerror(errno));
	fcntl(srv.ch->fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static void srv_reset(void)
{
	unsigned int i;

	for (i = 0; i < MAX_CONS; i++)
		scon_free(&srv.cons[i]);
	memset(srv.requests, 0, sizeof(srv.requests));
	srv.complaint = NULL;
	srv.ended = false;
	srv.acted = false;
	srv.lied = false;
	srv.quit_at = 0;
	srv.given_up = false;
	srv.wrote = false;
	srv.small_key = 0;
	srv.large_key = 0;
	srv.life = 0;
	srv.fences = 0;
	srv.later_at = 0;
}

/* Waits for a line with the text about the session. HOSTILE_LIMITED: the log may lack it. */
static bool logged(const char *sess, const char *text)
{
	u64 end = now_ms() + 5000;
	const char *line;
	unsigned int i = 0;

	if (getenv("HOSTILE_LIMITED"))
		return true;
	while (now_ms() < end) {
		for (; (line = log_line(i)); i++)
			if (strstr(line, sess) && strstr(line, text))
				return true;
		nap_us(5000);
	}
	return false;
}

/* Checks the results of a case with a reconnect. */
static int check_again(const struct srv_test *t, const struct user *u)
{
	snprintf(note, sizeof(note), "%u connects, %u FENCEs; I/O: %s, %u ms",
		 srv.life, srv.fences, u->io_err ? strerror(u->io_err) : "done",
		 u->io_ms);
	if (!srv.acted || srv.life < 2)
		return fail("the client has not reconnected");
	if (t->fenced && !srv.fences)
		return fail("the client has not sent FENCE");
	if (u->io_ms < t->io_ms)
		return fail("I/O waited for %u ms, not %u", u->io_ms, t->io_ms);
	return 0;
}

static bool map_as_expected(const struct srv_test *t, int err)
{
	unsigned int i;

	if (t->may_map && !err)
		return true;
	for (i = 0; i < ARRAY_SIZE(t->errs); i++)
		if (err && err == t->errs[i])
			return true;
	return err == srv.want_err;
}

static int check_results(const struct srv_test *t, const struct user *u)
{
	unsigned int limit = t->ms ?: 30000;

	snprintf(note, sizeof(note), "map: %s, %u ms; I/O: %s",
		 u->map_err ? strerror(u->map_err) : "done", u->map_ms,
		 u->map_err ? "none" : u->io_err ? strerror(u->io_err) : "done");
	if (srv.complaint)
		return fail("%s", srv.complaint);
	if (u->unmap_err)
		return fail("unmap: %s", strerror(u->unmap_err));
	if (u->map_ms > limit)
		return fail("mapping took %u ms", u->map_ms);
	if (t->err == ANY)
		return 0;
	if (!map_as_expected(t, u->map_err))
		return fail("map_device: %d, not %d", u->map_err, srv.want_err);
	if (!u->map_err && u->io_err != srv.want_io)
		return fail("I/O: %d, not %d", u->io_err, srv.want_io);
	if (t->again && check_again(t, u))
		return -1;
	if (t->log && !logged(u->sess, t->log))
		return fail("the log has no line with '%s'", t->log);
	if (t->ends && !logged(u->sess, "path ends: "))
		return fail("no reason in the log");
	return 0;
}

/*
 * Waits for the end of the session. Until then, its path may connect again, and its connections
 * would replace those of the next case. The next session of that name would inherit its settings.
 */
static void wait_gone(const char *sess)
{
	u64 end = now_ms() + 10000;
	char path[400];

	snprintf(path, sizeof(path), "/sys/class/rtrs-client/%s", sess);
	while (!access(path, F_OK) && now_ms() < end) {
		s_poll();
		nap_us(1000);
	}
}

static int run_one(const struct srv_test *t, const char *addr, const char *port)
{
	struct user u = { .addr = addr, .port = port, .rounds = t->rounds ?: 1 };
	u64 hung = now_ms() + 60000;
	bool busy, limited = false;

	snprintf(u.sess, sizeof(u.sess), "h-%s", t->name);
	srv_reset();
	srv.test = t;
	srv.want_err = t->err;
	srv.want_io = t->io_err;
	if (pthread_create(&u.thread, NULL, user_thread, &u))
		return fail("no thread");
	while (!u.done) {
		limited = limited || set_limits(&u);
		busy = s_poll();
		if (srv.quit_at && now_ms() > srv.quit_at) {
			s_hang_up();
			srv.quit_at = 0;
		}
		if (srv.later_at && now_ms() > srv.later_at) {
			s_imm(&srv.cons[0], srv.later);
			srv.later_at = 0;
		}
		if (now_ms() > hung) {
			s_hang_up();
			hung = -1;
			srv.given_up = true;
			srv.complaint = "the client hangs";
		}
		if (!busy)
			nap_us(200);
	}
	pthread_join(u.thread, NULL);
	wait_gone(u.sess);
	return check_results(t, &u);
}

/* Repeats mapping, I/O and unmapping with random answers until @requests were received. */
int random_server(const char *addr, const char *port, u64 seed,
		  unsigned int requests)
{
	unsigned int n = 0, maps = 0, mapped = 0, i;
	u64 start = now_ms();

	rnd_seed(seed);
	if (srv_listen(addr, port)) {
		printf("not ok listen: %s\n", why);
		return 1;
	}
	log_mark();
	while (n < requests) {
		if (run_one(&random_case, addr, port)) {
			printf("not ok random-server: seed %#llx, mapping %u: %s (%s)\n",
			       (unsigned long long)seed, maps, why, note);
			return 1;
		}
		log_mark();
		maps++;
		mapped += srv.requests[RNBD_IO] > 0;
		for (i = 0; i < ARRAY_SIZE(srv.requests); i++)
			n += srv.requests[i];
	}
	srv_reset();
	printf("ok random-server: seed %#llx, %u requests, %u of %u mapped, %llu ms\n",
	       (unsigned long long)seed, n, mapped, maps,
	       (unsigned long long)(now_ms() - start));
	return 0;
}

static int run_cases(const struct srv_test *t, const char *addr, const char *port,
		     char **patterns, int nr)
{
	int failed = 0;
	u64 start;

	for (; t->name; t++) {
		if (!chosen(t->name, t->extra, patterns, nr))
			continue;
		note[0] = 0;
		log_mark();
		start = now_ms();
		if (run_one(t, addr, port)) {
			failed++;
			printf("not ok %s: %s (%s)\n", t->name, why, note);
		} else {
			printf("ok %s (%llu ms) %s\n", t->name,
			       (unsigned long long)(now_ms() - start), note);
		}
		fflush(stdout);
	}
	return failed;
}

int run_server(const char *addr, const char *port, char **patterns, int nr)
{
	int failed;

	if (srv_listen(addr, port)) {
		printf("not ok listen: %s\n", why);
		return 1;
	}
	failed = run_cases(server_cases, addr, port, patterns, nr) +
		 run_cases(again_cases, addr, port, patterns, nr) +
		 run_cases(pulled_cases, addr, port, patterns, nr) +
		 run_cases(listed_cases, addr, port, patterns, nr) +
		 not_chosen(patterns, nr);
	srv_reset();
	return failed;
}
