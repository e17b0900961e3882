// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client with slots: threads change requests, and data that the server
 * fetches, continuously. The server must read each of them once: the disk has one consistent
 * request, and does not change after the answer.
 */
#include <pthread.h>

#include "pull.h"

#define NR_IMAGES	4
#define NR_SCRIBBLERS	2
#define IMAGE_SECTORS	16	/* distance of the images' blocks on the disk */
#define ALL_BYTES	(NR_IMAGES * IMAGE_SECTORS * 512)

/* A thread that writes to a slot over a connection of its own, or to data to be fetched */
struct scribbler {
	pthread_t thread;
	struct path *p;
	unsigned int cid;
	u32 image_len;
	volatile bool *go;
	volatile bool idle;
	volatile bool stop;
	unsigned int sent;
};

static u8 *image(struct path *p, unsigned int i)
{
	return area(p, 2 + i);
}

static void scribble_once(struct scribbler *s)
{
	struct con *con = &s->p->cons[s->cid];
	struct ibv_sge sge = {
		.addr = (uintptr_t)image(s->p, (s->sent + s->cid) % NR_IMAGES),
		.length = s->image_len,
		.lkey = s->p->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1ull << 63,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma.remote_addr = s->p->slot[0].addr,
		.wr.rdma.rkey = s->p->slot[0].key,
	}, *bad;

	if (!ibv_post_send(con->qp, &wr, &bad)) {
		con->inflight++;
		s->sent++;
	}
}

static void *scribble_slot(void *arg)
{
	struct scribbler *s = arg;
	struct con *con = &s->p->cons[s->cid];
	u64 end = now_ms() + 60000;
	struct ibv_wc wc[8];
	int i, n;

	while ((!s->stop || con->inflight) && !con->status && now_ms() < end) {
		if (!s->stop && con->inflight < 4)
			scribble_once(s);
		n = ibv_poll_cq(con->cq, ARRAY_SIZE(wc), wc);
		for (i = 0; i < n; i++) {
			con->inflight--;
			if (wc[i].status != IBV_WC_SUCCESS)
				con->status = wc[i].status;
		}
		if (!n)
			nap_us(1);
	}
	return NULL;
}

static void *scribble_memory(void *arg)
{
	struct scribbler *s = arg;

	while (!s->stop) {
		s->idle = false;
		__sync_synchronize();
		if (*s->go) {
			memset(s->p->big, 0x20 + (s->sent++ + s->cid) % 64, BIG_LEN / 4);
			continue;
		}
		s->idle = true;
		nap_us(100);
	}
	return NULL;
}

/* Stops both threads until *go is set. */
static void pause_both(struct scribbler *s, volatile bool *go)
{
	unsigned int i;

	*go = false;
	__sync_synchronize();
	for (i = 0; i < NR_SCRIBBLERS; i++)
		while (!s[i].idle)
			nap_us(100);
}

static int start(struct path *p, struct scribbler *s, void *(*run)(void *arg), u32 len,
		 volatile bool *go)
{
	unsigned int i;

	for (i = 0; i < NR_SCRIBBLERS; i++) {
		s[i] = (struct scribbler) {
			.p = p, .cid = 2 + i, .image_len = len, .go = go,
		};
		p->cons[2 + i].busy = run == scribble_slot;
		if (pthread_create(&s[i].thread, NULL, run, &s[i]))
			return fail("no thread");
	}
	return 0;
}

static unsigned int stop(struct path *p, struct scribbler *s)
{
	unsigned int i, sent = 0;

	for (i = 0; i < NR_SCRIBBLERS; i++)
		s[i].stop = true;
	for (i = 0; i < NR_SCRIBBLERS; i++) {
		if (s[i].thread)
			pthread_join(s[i].thread, NULL);
		sent += s[i].sent;
		p->cons[2 + i].busy = false;
	}
	return sent;
}

static struct path *scribble_path(u32 *id)
{
	struct path *p = path_new(test_name);
	struct open_rsp rsp;

	path_offer_slots(p);
	p->nr_cons = 2 + NR_SCRIBBLERS;
	p->req.cid_num = p->nr_cons;
	p = path_ready(p);
	if (!p)
		return NULL;
	if (!open_rw(p, &rsp) && !fill_disk(p, rsp.device_id, 0, ALL_BYTES, OLD)) {
		*id = rsp.device_id;
		return p;
	}
	path_free(p);
	return NULL;
}

/* Reads the disk, which must not change. Sets @found to the number of the stored image, or -1. */
static int look(struct path *p, u32 id, int *found)
{
	static u8 first[ALL_BYTES];
	const u8 *now = p->big + BIG_LEN, *at;
	unsigned int i, n;

	*found = -1;
	if (read_big(p, id, 0, ALL_BYTES))
		return -1;
	memcpy(first, now, ALL_BYTES);
	nap_us(rnd_below(2000));
	if (read_big(p, id, 0, ALL_BYTES))
		return -1;
	if (memcmp(first, now, ALL_BYTES))
		return fail("the stored data change after the answer");
	for (i = 0; i < NR_IMAGES; i++) {
		at = now + i * IMAGE_SECTORS * 512;
		if (!is_all(at + BLOCK, IMAGE_SECTORS * 512 - BLOCK, OLD))
			return fail("data stored behind block %u", i);
		if (is_all(at, BLOCK, OLD))
			continue;
		if (*found >= 0)
			return fail("one request has written to blocks %d and %u", *found, i);
		*found = i;
		for (n = 0; n < BLOCK; n++)
			if (at[n] < 0x10 || at[n] >= 0x10 + NR_IMAGES)
				return fail("byte %u of block %u is %#x", n, i, at[n]);
	}
	return 0;
}

/* The images differ in single bytes, so that any mix of them is a valid request. */
static u32 images_write(struct path *p, u32 id, u32 *imm)
{
	struct io_msg msg;
	struct request r;
	u32 len = 0;
	int i;

	for (i = NR_IMAGES - 1; i >= 0; i--) {
		msg = io_msg(id, OP_WRITE, i * IMAGE_SECTORS, BLOCK);
		r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), BLOCK);
		memset(area(p, 0), 0x10 + i, BLOCK);
		len = request_write(p, &r, imm);
		memcpy(image(p, i), area(p, 0), len);
	}
	return len;
}

/* A read, a fetch, a write without data, and a write in a read request */
static u32 images_mixed(struct path *p, u32 id, u32 *imm)
{
	static const struct { u16 type; u8 op; bool high; } kinds[NR_IMAGES] = {
		{ MSG_READ, OP_READ, true }, { MSG_FETCH, OP_WRITE, false },
		{ MSG_WRITE, OP_WRITE, false }, { MSG_READ, OP_WRITE, true },
	};
	struct io_msg msg;
	struct request r;
	u32 len = 0;
	int i;

	memset(p->big, 0x10, BLOCK);
	for (i = NR_IMAGES - 1; i >= 0; i--) {
		msg = io_msg(id, kinds[i].op, i * IMAGE_SECTORS, BLOCK);
		r = request_rnbd(p, MSG_FETCH, &msg, sizeof(msg), BLOCK);
		r.type = kinds[i].type;
		/* Not where look() reads the disk into */
		r.desc.addr = (uintptr_t)p->big + (kinds[i].high ? BIG_LEN / 2 : 0);
		request_write(p, &r, imm);
		len = r.msg_len + sizeof(struct io_hdr);
		memcpy(image(p, i), area(p, 0), len);
	}
	return len;
}

static int one_of_them(struct path *p, u32 len, u32 imm, bool mixed)
{
	u32 before = p->slot[0].answers;
	int err;

	if (write_to(p, 1, image(p, rnd_below(NR_IMAGES)), len, p->slot[0].addr,
		     p->slot[0].key, &imm))
		return fail("can't send");
	if (wait_answer(p, 0, before, 10000))
		return -1;
	err = p->slot[0].err;
	return err && !(mixed && err == -EINVAL) ? fail("answered with %d", err) : 0;
}

static int scribble(long mixed)
{
	unsigned int rounds = 0, stored[NR_IMAGES] = { }, none = 0, sent;
	struct scribbler s[NR_SCRIBBLERS] = { };
	u64 end;
	struct path *p;
	u32 id, len, imm;
	int found, ret;

	p = scribble_path(&id);
	if (!p)
		return -1;
	len = mixed ? images_mixed(p, id, &imm) : images_write(p, id, &imm);
	ret = start(p, s, scribble_slot, len, NULL);
	for (end = now_ms() + 3000; !ret && now_ms() < end; rounds++) {
		/* A mix of two reads may have the address of the data to fetch. */
		memset(p->big, 0x10, BLOCK);
		ret = one_of_them(p, len, imm, mixed) ?: look(p, id, &found);
		if (ret)
			break;
		if (found < 0 && !mixed) {
			ret = fail("no data are stored");
		} else if (found < 0) {
			none++;
		} else {
			stored[found]++;
			ret = fill_disk(p, id, found * IMAGE_SECTORS, BLOCK, OLD);
		}
	}
	sent = stop(p, s);
	snprintf(note, sizeof(note), "%u rounds, %u times scribbled, stored %u %u %u %u, not %u",
		 rounds, sent, stored[0], stored[1], stored[2], stored[3], none);
	return end_with(p, ret ?: must_live(p));
}

/* Data change during the fetch, or after the answer. */
static int scribble_source(long after)
{
	struct scribbler s[NR_SCRIBBLERS] = { };
	const u32 len = BIG_LEN / 4;
	volatile bool go = !after;
	unsigned int rounds = 0, sent;
	static u8 first[BIG_LEN / 4];
	struct path *p;
	u64 end;
	int ret;
	u32 id;

	p = scribble_path(&id);
	if (!p)
		return -1;
	ret = start(p, s, scribble_memory, 0, &go);
	for (end = now_ms() + 2000; !ret && now_ms() < end; rounds++) {
		if (after)
			memset(p->big, 0xc1, len);
		ret = write_big(p, id, 0, len);
		go = true;
		ret = ret ?: read_big(p, id, 0, len);
		memcpy(first, p->big + BIG_LEN, len);
		ret = ret ?: read_big(p, id, 0, len);
		if (!ret && memcmp(first, p->big + BIG_LEN, len))
			ret = fail("the stored data change after the answer");
		if (!ret && after && !is_all(first, len, 0xc1))
			ret = fail("the stored data differ from those before the answer");
		if (after)
			pause_both(s, &go);
	}
	sent = stop(p, s);
	snprintf(note, sizeof(note), "%u rounds, %u times scribbled", rounds, sent);
	return end_with(p, ret ?: must_live(p));
}

const struct test scribble_cases[] = {
	{ "scribble", "small writes change continuously", scribble, 0 },
	{ "scribble-kind", "requests change their type continuously", scribble, 1 },
	{ "scribble-during", "data change during the fetch", scribble_source, 0 },
	{ "scribble-after", "data change after the answer", scribble_source, 1 },
	{ }
};
