// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile client that sends random messages: valid ones with a field or two changed, so that
 * most pass the first checks. oracle.c has the expected answers. The same seed makes the same
 * choices, but the order of answers varies.
 */
#include "oracle.h"

#define NR_PATHS	4
#define STUCK_MS	8000
#define WILD_BATCHES	10	/* sent on a path while any answer is valid */

/* The only path of a session */
struct rpath {
	struct path *p;			/* NULL if it is not connected */
	struct oracle oracle;
	u32 ids[2];			/* of the devices opened first, which may be closed */
	unsigned int nr_ids;
	u32 sent[NR_AREAS];		/* requests, by slot */
	u32 seen[NR_AREAS];		/* answers compared by the oracle, by slot */
	unsigned int asked;		/* FENCEs sent */
	unsigned int wild;		/* batches sent while the oracle accepts any answer */
	u64 busy_since;			/* when requests were last sent */
};

static struct rpath paths[NR_PATHS];
static unsigned int sent, answered, judged, done, malformed, connects, refusals, ends;
static u64 first_seed;

/* An error of the server, which why[] describes */
static void __attribute__((noreturn)) wrong(const char *sess)
{
	printf("not ok random-client: seed %#llx, %u messages: %s: %s\n",
	       (unsigned long long)first_seed, sent, sess, why);
	exit(1);
}

/* Special numbers, numbers near @right, or random ones */
static u64 odd(u64 right)
{
	static const u64 some[] = {
		0, 1, 2, 7, 8, 511, 512, 513, 4095, 4096, 4097, 126976, 131072,
		0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
		0xfffffe00, 0xffffffff, 1ull << 32, 1ull << 55, 1ull << 63, -1ull,
	};

	switch (rnd_below(4)) {
	case 0:		return some[rnd_below(ARRAY_SIZE(some))];
	case 1:		return right + rnd_below(17) - 8;
	case 2:		return right ^ 1ull << rnd_below(64);
	default:	return rnd() >> rnd_below(64);
	}
}

static bool one_in(u32 n)
{
	return !rnd_below(n);
}

static void mutate_bytes(void *buf, size_t len)
{
	u8 *b = buf;
	int n;

	for (n = 1 + rnd_below(3); n; n--)
		b[rnd_below(len)] = one_in(2) ? rnd() : b[rnd_below(len)] ^ 1u << rnd_below(8);
}

/* A path with an invalid handshake */
static void bad_connect(void)
{
	struct path *p = path_new("h-random-bad");
	struct {
		struct info_req req;
		u8 extra[64];
	} m = { .req.type = MSG_INFO_REQ };
	unsigned int cid, cids = rnd_below(3);
	struct cm_req req;
	u32 len = sizeof(m.req);

	strcpy(m.req.name, "h-random-bad");
	for (cid = 0; cid <= cids; cid++) {
		req = p->req;
		req.cid = cid;
		req.cid_num = cids + 1 + (cids == 0);
		if (one_in(2))
			mutate_bytes(&req, sizeof(req));
		sent++;
		if (path_con(p, cid, &req, one_in(10) ? rnd_below(56) : 56)) {
			refusals++;
			break;
		}
	}
	if (p->cons[0].up) {
		if (one_in(2))
			mutate_bytes(&m, sizeof(m.req));
		if (one_in(4))
			len = rnd_below(sizeof(m));
		path_info_req(p, &m, len);
		sent++;
		nap_us(rnd_below(3000));
		path_poll(p);
	}
	path_free(p);
}

/* Changes bytes of a proof until it differs: a later change may undo an earlier one. */
static void mutate_proof(struct proof *proof)
{
	const struct proof before = *proof;

	do
		mutate_bytes(proof, sizeof(*proof));
	while (!memcmp(proof, &before, sizeof(before)));
}

/* A path of a host with a key, with an invalid proof or without one: must be refused. */
static void bad_proof(const char *sess)
{
	struct path *p = path_new(sess);
	u32 role = 0, len = PROOF_LEN;
	struct proof proof = { };
	int ret;

	if (one_in(2))
		path_offer_proof(p);
	if (!path_connect(p)) {
		if (p->rep.features & FEATURE_PROOF) {
			role = one_in(8) ? 2 : 1;
			prove(p, role, &proof);
			mutate_proof(&proof);
			if (one_in(8))
				len = rnd_below(PROOF_LEN + 8);
			ret = send_proof(p, &proof, len);
			if (!ret)
				ret = path_wait_info(p);
		} else {
			ret = path_info(p);
		}
		sent += 3;
		if (!ret) {
			fail("the server accepts an invalid proof: role %u, %u bytes", role, len);
			wrong(sess);
		}
	}
	refusals++;
	path_free(p);
}

/* Opens a device, unless another session has it open. */
static int open_first(struct rpath *rp, const char *name)
{
	u8 mode = rnd_below(3);
	struct open_rsp rsp;
	int err = open_dev(rp->p, name, mode, &rsp);

	if (err > 0)
		return -1;
	if (err && err != -EBUSY) {
		fail("can't open %s: %d", name, err);
		wrong(rp->p->sess);
	}
	if (err)
		return 0;
	if (oracle_opened(&rp->oracle, name, mode, &rsp))
		wrong(rp->p->sess);
	rp->ids[rp->nr_ids++] = rsp.device_id;
	return 0;
}

/* With HOSTILE_KEY, half of the paths have a key. */
static int connect_path(struct rpath *rp, unsigned int nr)
{
	bool key = getenv("HOSTILE_KEY") && nr % 2;
	unsigned int i;
	char sess[32];

	if (one_in(4))
		bad_connect();
	snprintf(sess, sizeof(sess), key ? "h-keyed-%u" : "h-random-%u", nr);
	if (key && one_in(2))
		bad_proof(sess);
	memset(rp, 0, sizeof(*rp));
	rp->p = path_new(sess);
	if (key)
		path_offer_proof(rp->p);
	if (one_in(2))
		path_offer(rp->p);
	if (one_in(2))
		path_offer_slots(rp->p);
	rp->p = path_ready(rp->p);
	if (!rp->p)
		return -1;
	connects++;
	sent += 4;
	if (sess_info(rp->p, one_in(8) ? rnd() : 2) || open_first(rp, dev_rw) ||
	    open_first(rp, dev_other))
		return -1;
	for (i = 0; i < NR_AREAS; i++)
		rp->sent[i] = rp->seen[i] = rp->p->slot[i].answers;
	return 0;
}

union msg {
	struct sess_info info;
	struct open_req open;
	struct io_msg io;
	struct close_msg close;
	u8 bytes[MAX_MSG_LEN];
};

/* Mostly the ID of an open device */
static u32 some_id(const struct rpath *rp)
{
	const struct opened *d = &rp->oracle.opened[rnd_below(NR_OPENED)];

	if (one_in(8) && rp->nr_ids)
		return rp->ids[rnd_below(rp->nr_ids)];
	for (; d < rp->oracle.opened + NR_OPENED; d++)
		if (d->name[0])
			return d->rsp.device_id;
	for (d = rp->oracle.opened; d < rp->oracle.opened + NR_OPENED; d++)
		if (d->name[0])
			return d->rsp.device_id;
	return 0;
}

static void io_request(struct rpath *rp, struct request *r, union msg *m)
{
	u32 op = rnd_below(6);
	u32 len = 512 << rnd_below(one_in(20) ? 9 : 5);

	m->io = (struct io_msg) {
		.type = RNBD_IO,
		.device_id = some_id(rp),
		.sector = rnd_below(16384) & ~7u,
		.rw = op | (one_in(4) ? rnd_below(16) << 8 : 0),
		.bi_size = len,
		.prio = one_in(8) ? rnd() : 0,
	};
	if (len > rp->p->rep.max_io_size)
		m->io.bi_size = len = 512;
	*r = request_rnbd(rp->p, op == OP_READ ? MSG_READ : MSG_WRITE, m,
			  one_in(8) ? 24 + rnd_below(8) : sizeof(m->io),
			  op <= OP_WRITE ? len : 0);
	if (one_in(6))
		m->io.device_id = odd(m->io.device_id);
	if (one_in(6))
		m->io.sector = odd(m->io.sector);
	if (one_in(8))
		m->io.rw = odd(m->io.rw);
	if (one_in(8))
		m->io.bi_size = odd(m->io.bi_size);
}

static void other_request(struct rpath *rp, struct request *r, union msg *m)
{
	switch (rnd_below(8)) {
	case 0:
		m->info = (struct sess_info) { .type = RNBD_SESS_INFO, .ver = rnd() };
		*r = request_rnbd(rp->p, MSG_READ, m, sizeof(m->info), 36);
		break;
	case 1 ... 3:
		m->open = (struct open_req) { .type = RNBD_OPEN,
			.access_mode = one_in(4) ? rnd() : rnd_below(3) };
		strcpy(m->open.name, one_in(2) ? dev_rw : dev_other);
		if (one_in(2))
			mutate_bytes(m->open.name, one_in(2) ? 8 : 255);
		*r = request_rnbd(rp->p, MSG_READ, m, sizeof(m->open), 56);
		break;
	case 4:
		m->close = (struct close_msg) { .type = RNBD_CLOSE,
			.device_id = one_in(4) ? some_id(rp) : odd(1) };
		*r = request_rnbd(rp->p, MSG_WRITE, m, sizeof(m->close), 0);
		break;
	default:
		*r = request_rnbd(rp->p, one_in(2) ? MSG_READ : MSG_WRITE, m,
				  rnd_below(MAX_MSG_LEN + 1), rnd_below(9000));
		mutate_bytes(m, 32);
		m->info.type = rnd_below(one_in(2) ? 8 : 65536);
		break;
	}
	if (one_in(6))
		r->msg_len = r->usr_len = rnd_below(MAX_MSG_LEN + 1);
}

/* Invalid RTRS headers that are answered */
static void mutate_soft(struct path *p, struct request *r)
{
	if (r->type == MSG_WRITE)
		return;
	switch (rnd_below(r->type == MSG_READ && r->data_len ? 4 : 3)) {
	case 0:	r->flags = 1 << (1 + rnd_below(15)); break;
	case 1:	r->nr_desc = one_in(2) ? 0 : 2 + rnd_below(65534); break;
	case 2:	r->desc.len = odd(r->desc.len); break;
	case 3:	r->data_len += rnd_below(64); break;
	}
	/* A valid length must not exceed the area. */
	if (r->desc.len > STRIDE &&
	    r->desc.len <= (has_slots(p) ? p->rep.max_io_size : r->data_len))
		r->desc.len = 512;
}

/* Invalid RTRS headers that end the path */
static void mutate_hard(struct request *r)
{
	switch (rnd_below(5)) {
	case 0:	r->type = odd(r->type); break;
	case 1:	r->usr_len = odd(r->usr_len); break;
	case 2:	r->desc.key = odd(r->desc.key); break;
	case 3:	r->desc.addr = odd(r->desc.addr); break;
	case 4:	r->flags = NEED_INVAL; break;
	}
}

static void hard_wr(struct path *p, struct ibv_send_wr *wr)
{
	switch (rnd_below(5)) {
	case 0:	wr->imm_data = rnd(); break;
	case 1:	wr->wr.rdma.remote_addr = odd(wr->wr.rdma.remote_addr); break;
	case 2:	wr->wr.rdma.rkey = odd(wr->wr.rdma.rkey); break;
	case 3:	wr->opcode = one_in(2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM; break;
	case 4:
		wr->opcode = IBV_WR_SEND_WITH_INV;
		wr->num_sge = 0;
		wr->invalidate_rkey = p->slot[rnd_below(48)].key;
		break;
	}
}

/* Sends requests in free slots, with one doorbell. */
static void send_batch(struct rpath *rp, unsigned int hard)
{
	struct ibv_send_wr wr[NR_AREAS];
	struct ibv_sge sge[NR_AREAS];
	struct path *p = rp->p;
	unsigned int i, n = 0;
	struct request r;
	union msg m;
	bool wild;

	for (i = 0; i < NR_AREAS; i++) {
		if (p->slot[i].answers != rp->sent[i] || one_in(8))
			continue;
		memset(&m, 0, sizeof(m));
		if (one_in(6))
			other_request(rp, &r, &m);
		else
			io_request(rp, &r, &m);
		r.slot = i;
		if (r.type == MSG_READ)
			r.desc.addr = (uintptr_t)read_area(p, i);
		if (one_in(12))
			mutate_soft(p, &r);
		wild = one_in(hard);
		if (wild)
			mutate_hard(&r);
		if (r.data_len + r.msg_len > data_room(p) + MAX_MSG_LEN)
			continue;
		wr[n] = request_wr(p, &r, &sge[n]);
		wr[n].sg_list = &sge[n];
		/* The oracle does not know this change. */
		if (one_in(hard)) {
			hard_wr(p, &wr[n]);
			rp->oracle.wild = true;
		}
		oracle_sent(&rp->oracle, p, &r);
		rp->oracle.wild |= wild && !rp->oracle.fatal_at;
		if (n)
			wr[n - 1].next = &wr[n];
		rp->sent[i]++;
		n++;
	}
	if (one_in(4)) {
		send_imm(p, 0, (u32)(one_in(2) ? IMM_HB_MSG : IMM_HB_ACK) << 28 |
			 (rnd() & 0xfff));
		sent++;
	}
	/* The session has no other path to fence. */
	if (p->req.features & FEATURE_FENCE && p->fenced == rp->asked && !one_in(3)) {
		send_imm(p, 0, (u32)IMM_FENCE << 28 | (p->req.path_id + 1));
		rp->asked++;
		sent++;
	} else if (one_in(hard)) {
		send_imm(p, rnd_below(2), (u32)IMM_FENCE << 28 | (odd(1) & 0x0fffffff));
		rp->oracle.wild = true;
		sent++;
	}
	if (n) {
		con_post(&p->cons[1], wr);
		rp->busy_since = now_ms();
	}
	sent += n;
}

/* Compares all new answers with the oracle. */
static void judge(struct rpath *rp)
{
	const struct oracle *o = &rp->oracle;
	struct path *p = rp->p;
	unsigned int i;

	for (i = 0; i < NR_AREAS; i++)
		for (; rp->seen[i] != p->slot[i].answers; rp->seen[i]++)
			if (oracle_answered(&rp->oracle, p, i))
				wrong(p->sess);
	if (o->wild)
		return;
	if (o->fatal_at && !path_ended(p)) {
		if (now_ms() < o->fatal_at + STUCK_MS)
			return;
		fail("the path has not ended after a malformed request");
		wrong(p->sess);
	}
	if (o->fatal_at)
		return;
	if (path_ended(p))
		fail("the path has ended, but all requests must be answered");
	else if (p->unexpected || p->fenced > rp->asked)
		fail("%u messages that no server sends, %u answers to %u FENCEs",
		     p->unexpected, p->fenced, rp->asked);
	else
		return;
	wrong(p->sess);
}

static int busy(const struct rpath *rp)
{
	unsigned int i, n = 0;

	for (i = 0; i < NR_AREAS; i++)
		n += rp->p->slot[i].answers != rp->sent[i];
	return n;
}

/* Ends the path in a random way. */
static void drop(struct rpath *rp)
{
	unsigned int i;

	for (i = 0; i < NR_AREAS; i++)
		answered += rp->p->slot[i].answers;
	malformed += rp->oracle.fatal_at && path_ended(rp->p);
	judged += rp->oracle.judged;
	done += rp->oracle.done;
	if (one_in(8))
		for (i = 0; i < 2; i++)
			con_destroy_qp(&rp->p->cons[i]);
	path_free(rp->p);
	rp->p = NULL;
}

/*
 * Sends @messages on several paths. Fails for an unexpected answer or end of a path, for a request
 * without an answer, for a server that accepts no paths, and for too few answers.
 */
int random_client(u64 seed, unsigned int messages)
{
	unsigned int i, tries = 0, n;
	u64 start = now_ms();
	struct rpath *rp;

	first_seed = seed;
	rnd_seed(seed);
	quiet = true;
	while (sent < messages) {
		i = rnd_below(NR_PATHS);
		rp = &paths[i];
		if (!rp->p) {
			if (!connect_path(rp, i)) {
				tries = 0;
				continue;
			}
			if (rp->p)
				drop(rp);
			if (++tries < 10)
				continue;
			printf("not ok random-client: seed %#llx, %u messages: %s\n",
			       (unsigned long long)seed, sent, why);
			return -1;
		}
		path_poll(rp->p);
		judge(rp);
		if (path_ended(rp->p)) {
			ends++;
			drop(rp);
			continue;
		}
		n = busy(rp);
		if (n < NR_AREAS / 2 && rp->wild < WILD_BATCHES) {
			send_batch(rp, 500);
			rp->wild += rp->oracle.wild;
		} else if (n < NR_AREAS / 2) {
			drop(rp);
			continue;
		} else if (now_ms() > rp->busy_since + STUCK_MS) {
			printf("not ok random-client: seed %#llx, %u messages, %u unanswered\n",
			       (unsigned long long)seed, sent, n);
			return -1;
		} else {
			nap_us(50);
		}
		if (one_in(2000))
			drop(rp);
	}
	for (i = 0; i < NR_PATHS; i++)
		if (paths[i].p)
			drop(&paths[i]);
	n = judged < messages / 2 || done < messages / 10;
	printf("%s random-client: seed %#llx, %u messages, %u answers, %u of them as expected, %u I/Os done%s, %u connects, %u refusals, %u paths ended by the server, %u of them for malformed requests, %llu ms\n",
	       n ? "not ok" : "ok", (unsigned long long)seed, sent, answered, judged, done,
	       n ? ", which is little" : "", connects, refusals, ends, malformed,
	       (unsigned long long)(now_ms() - start));
	return n ? -1 : 0;
}
