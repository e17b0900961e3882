// SPDX-License-Identifier: GPL-2.0
/*
 * Floods of a hostile client, as fast as the server answers: connection requests without further
 * messages, and invalid proofs. They last until the file HOSTILE_STOP exists, and write counters to
 * the file HOSTILE_TOLD.
 *
 * Connection requests are built here and sent in RoCE v2 packets over raw sockets, as this
 * machine's RDMA stack makes only twenty connects a second. HOSTILE_FROM lists their source
 * addresses, which this machine has. An accept is not answered, or only with RTU.
 *
 * Layouts: InfiniBand Architecture Specification, volume 1: chapter 9 (transport headers), 12.6
 * (CM's messages), annex A17 (RoCE v2 and its ICRC).
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "hostile.h"

#define ROCE_PORT	4791
#define UD_SEND_ONLY	0x64
#define GSI_QKEY	0x80010000
#define CM_CLASS	7
#define MAX_FROM	16
#define MAX_ASKED	65536	/* IDs have 16 bits */
#define LOST_MS		3000	/* attempts are given up that long after the last answer */
#define EARLY_MS	25000	/* no half-open connection has timed out by then */
#define WINDOW		8	/* attempts in flight */

enum { CM_REQ = 0x10, CM_REJ = 0x12, CM_REP = 0x13, CM_RTU = 0x14, CM_DREQ = 0x15 };

/* A CM message; the offsets in the specification count from @body. */
struct mad {
	u8 base_version;
	u8 class;
	u8 class_version;
	u8 method;
	u16 status;
	u16 class_specific;
	u64 tid;
	u16 attr_id;
	u16 reserved;
	u32 attr_mod;
	u8 body[232];
} __attribute__((packed));
static_assert(sizeof(struct mad) == 256, "mad");

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	u8 bth_opcode;
	u8 bth_flags;
	u16 bth_pkey;
	u32 bth_qpn;
	u32 bth_psn;
	u32 deth_qkey;
	u32 deth_qpn;
	struct mad mad;
	u32 icrc;
} __attribute__((packed));
static_assert(sizeof(struct packet) == 308, "packet");

/* Result of a connection attempt */
enum fate { NOTHING, ASKED, OPEN, OVER };

/* Connection attempts and their results */
struct flood {
	int out;			/* raw socket to send from */
	int in;				/* raw socket that receives a copy of all UDP packets */
	u32 from[MAX_FROM];		/* source addresses, used in turn */
	unsigned int nr_from;
	u32 to;				/* the server's address and port */
	u16 port;
	u16 salt;			/* random upper half of the CM IDs, and the GUID */
	u32 psn;			/* of the last packet */
	u8 fate[MAX_ASKED];		/* result of each attempt, by its number */
	unsigned int tries;		/* attempts, number of the next one */
	unsigned int answers;		/* attempts that were answered */
	unsigned int lost;		/* attempts that are given up */
	unsigned int lost_below;	/* all of them have smaller numbers */
	u64 heard;			/* ms: last answer, or last time attempts were given up */
	u64 began;			/* ms: first attempt */
	unsigned int refused;		/* rejected with -EAGAIN */
	unsigned int other;		/* rejected with another errno */
	unsigned int open;		/* accepted, or proofs checked */
	unsigned int early;		/* accepted before any can have timed out */
};

static void put32(u8 *to, u32 val)
{
	val = htobe32(val);
	memcpy(to, &val, sizeof(val));
}

static u32 get32(const u8 *from)
{
	u32 val;

	memcpy(&val, from, sizeof(val));
	return be32toh(val);
}

/* Fields that routers change count as ones, as do 8 bytes in front. */
static u32 icrc_of(const struct packet *packet)
{
	struct packet p = *packet;
	u32 crc = crc32(0, NULL, 0);

	crc = crc32(crc, (const u8 *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	p.ip.tos = 0xff;
	p.ip.ttl = 0xff;
	p.ip.check = 0xffff;
	p.udp.check = 0xffff;
	p.bth_qpn |= htobe32(0xff000000);
	return crc32(crc, (const u8 *)&p, offsetof(struct packet, icrc));
}

static u16 source_port(unsigned int id)
{
	return htobe16(0xc000 | id % 1024);
}

static int flood_send(struct flood *f, unsigned int id, u16 attr, struct packet *p)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = f->to };

	p->ip = (struct iphdr) {
		.version = 4,
		.ihl = 5,
		.tot_len = htobe16(sizeof(*p)),
		.id = htobe16(1),
		.frag_off = htobe16(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = f->from[id % f->nr_from],
		.daddr = f->to,
	};
	p->udp = (struct udphdr) {
		.source = source_port(id),
		.dest = htobe16(ROCE_PORT),
		.len = htobe16(sizeof(*p) - sizeof(p->ip)),
	};
	p->bth_opcode = UD_SEND_ONLY;
	p->bth_pkey = 0xffff;
	p->bth_qpn = htobe32(1);
	p->bth_psn = htobe32(++f->psn & 0xffffff);
	p->deth_qkey = htobe32(GSI_QKEY);
	p->deth_qpn = htobe32(1);
	p->mad.base_version = 1;
	p->mad.class = CM_CLASS;
	p->mad.class_version = 2;
	p->mad.method = 3;
	p->mad.tid = htobe64((u64)f->salt << 32 | id);
	p->mad.attr_id = htobe16(attr);
	put32(p->mad.body, (u32)f->salt << 16 | id);
	p->icrc = htole32(icrc_of(p));
	if (sendto(f->out, p, sizeof(*p), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return fail("can't send: %s", strerror(errno));
	return 0;
}

static void put_gid(u8 *to, u32 addr)
{
	to[10] = to[11] = 0xff;
	memcpy(to + 12, &addr, 4);
}

static int flood_connect(struct flood *f, const struct cm_req *req)
{
	unsigned int id = f->tries++;
	u16 port = source_port(id);
	struct packet p = { };
	u8 *b = p.mad.body;

	f->fate[id] = ASKED;
	put32(b + 12, 0x01060000 | f->port);	/* service: TCP's ports */
	put32(b + 16, f->salt);			/* our GUID */
	put32(b + 20, 1);
	put32(b + 32, (0x1000 + id) << 8 | 1);	/* our queue pair; responder resources */
	put32(b + 36, 1);			/* initiator depth */
	put32(b + 40, 20 << 3);			/* its time to answer, 4 s; RC */
	put32(b + 44, 20 << 3 | 7);		/* our first PSN, time, retries */
	/* P_Key, MTU 1024, retries: its CM waits for RTU longer than the server does */
	put32(b + 48, 0xffff0000 | 3 << 12 | 7 << 8 | 15 << 4);
	put_gid(b + 56, f->from[id % f->nr_from]);
	put_gid(b + 72, f->to);
	put32(b + 88, 3);			/* 10 Gb/s */
	b[93] = 64;				/* hops */
	b[95] = 18 << 3;			/* time for an ACK */
	b[141] = 4 << 4;			/* what rdma_cm puts in front: IPv4 */
	memcpy(b + 142, &port, 2);
	memcpy(b + 144 + 12, &f->from[id % f->nr_from], 4);
	memcpy(b + 160 + 12, &f->to, 4);
	memcpy(b + 176, req, sizeof(*req));
	return flood_send(f, id, CM_REQ, &p);
}

static int flood_rtu(struct flood *f, unsigned int id, u32 theirs)
{
	struct packet p = { };

	put32(p.mad.body + 4, theirs);
	return flood_send(f, id, CM_RTU, &p);
}

/* Handles an answer, which may be a duplicate. */
static int flood_answer(struct flood *f, const struct packet *p)
{
	u32 ours = get32(p->mad.body + 4), id = ours & 0xffff;
	u16 attr = be16toh(p->mad.attr_id);
	enum fate was = f->fate[id];
	struct cm_rep rep;

	if (ours >> 16 != f->salt || was == NOTHING || was == OVER)
		return 0;
	if (attr != CM_REP && attr != CM_REJ && attr != CM_DREQ)
		return 0;
	if (was == ASKED) {
		f->answers++;
		f->lost -= id < f->lost_below;
		f->heard = now_ms();
	}
	if (attr == CM_REP) {
		if (was == OPEN)
			return 0;
		f->fate[id] = OPEN;
		f->open++;
		f->early += now_ms() - f->began < EARLY_MS;
		/* RTU for half of the connections of each address */
		return id / f->nr_from % 2 ? flood_rtu(f, id, get32(p->mad.body)) : 0;
	}
	f->fate[id] = OVER;
	/* The connection has ended; its accept may have been lost. */
	if (was == OPEN || attr == CM_DREQ)
		return 0;
	memcpy(&rep, p->mad.body + 84, sizeof(rep));
	if (rep.magic == MAGIC && (int16_t)rep.err == -EAGAIN)
		f->refused++;
	else
		f->other++;
	return 0;
}

static int flood_answers(struct flood *f)
{
	struct packet p;
	ssize_t len;
	int ret = 0;

	while (!ret && (len = recv(f->in, &p, sizeof(p), MSG_DONTWAIT | MSG_TRUNC)) >= 0)
		if (len == sizeof(p) && p.udp.dest == htobe16(ROCE_PORT) && p.ip.saddr == f->to &&
		    p.bth_opcode == UD_SEND_ONLY && p.mad.class == CM_CLASS)
			ret = flood_answer(f, &p);
	return ret;
}

static bool stopped(void)
{
	return !access(getenv("HOSTILE_STOP"), F_OK);
}

/* Replaces the file, so that readers never see a part of it. */
static void flood_tell(const struct flood *f)
{
	const char *told = getenv("HOSTILE_TOLD");
	char new[256];
	FILE *to;

	snprintf(new, sizeof(new), "%s.new", told);
	to = fopen(new, "w");
	if (!to)
		return;
	fprintf(to, "tries=%u answers=%u refused=%u other=%u lost=%u open=%u early=%u rate=%llu\n",
		f->tries, f->answers, f->refused, f->other, f->lost, f->open, f->early,
		(unsigned long long)f->answers * 1000 / (now_ms() - f->began + 1));
	fclose(to);
	rename(new, told);
}

static int flood_env(void)
{
	if (!getenv("HOSTILE_STOP") || !getenv("HOSTILE_TOLD"))
		return fail("HOSTILE_STOP and HOSTILE_TOLD are not set");
	return 0;
}

static int flood_open(struct flood *f)
{
	const struct sockaddr_in *to = (const void *)&addrs[0];
	char *from = strdup(getenv("HOSTILE_FROM") ?: ""), *addr;
	int size = 8 << 20;

	if (flood_env())
		return -1;
	f->to = to->sin_addr.s_addr;
	f->port = be16toh(to->sin_port);
	f->salt = 1 + rnd_below(0xffff);
	while (f->nr_from < MAX_FROM && (addr = strsep(&from, " ")))
		f->nr_from += inet_pton(AF_INET, addr, &f->from[f->nr_from]);
	if (!f->nr_from)
		return fail("HOSTILE_FROM has no address");
	f->out = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	f->in = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	if (f->out < 0 || f->in < 0 ||
	    setsockopt(f->in, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		return fail("no raw sockets: %s", strerror(errno));
	return 0;
}

/* Keeps @window attempts in flight, each for a session of its own. */
static int flood_knock(struct flood *f, struct cm_req *req, unsigned int window)
{
	int ret = 0;

	if (now_ms() - f->heard > LOST_MS) {
		f->lost = f->tries - f->answers;
		f->lost_below = f->tries;
		f->heard = now_ms();
	}
	while (!ret && f->tries - f->answers - f->lost < window) {
		if (f->tries == MAX_ASKED)
			return fail("no more IDs for connections");
		memcpy(req->sess_uuid, &f->tries, sizeof(f->tries));
		memcpy(req->path_uuid, &f->tries, sizeof(f->tries));
		ret = flood_connect(f, req);
	}
	return ret;
}

/* Each attempt announces @nr_cons connections. The sockets are closed on exit. */
static int flood_half(long nr_cons)
{
	static struct flood flood;
	struct flood *f = &flood;
	struct path *p = path_new("half");
	int ret = flood_open(f);
	u64 told = 0;

	p->req.cid_num = nr_cons;
	f->began = f->heard = now_ms();
	while (!ret && !stopped()) {
		struct pollfd fd = { .fd = f->in, .events = POLLIN };

		ret = flood_knock(f, &p->req, WINDOW);
		poll(&fd, 1, 10);
		ret = ret ?: flood_answers(f);
		if (now_ms() > told + 100) {
			flood_tell(f);
			told = now_ms();
		}
	}
	flood_tell(f);
	return end_with(p, ret);
}

static int flood_proofs(long arg)
{
	struct flood f = { .began = now_ms() };
	int err;

	if (flood_env())
		return -1;
	while (!stopped()) {
		err = wrong_proof_once();
		f.tries++;
		f.answers++;
		f.refused += err == -EAGAIN;
		f.open += err == -EKEYREJECTED;
		if (err == -1)
			return -1;
		if (err != -EAGAIN && err != -EKEYREJECTED)
			return fail("an invalid proof got %d", err);
		flood_tell(&f);
	}
	return 0;
}

const struct test flood_cases[] = {
	{ "flood-half", "half-open paths of 2 connections", flood_half, 2, .extra = true },
	{ "flood-wide", "half-open paths of 64 connections", flood_half, 64, .extra = true },
	{ "flood-widest", "half-open paths of 4096 connections", flood_half, 4096,
	  .extra = true },
	{ "flood-proofs", "invalid proofs", flood_proofs,
	  .extra = true },
	{ }
};
