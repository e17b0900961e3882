// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: valid and invalid FENCE messages
 */
#include "hostile.h"

/* A path that offers fencing; of a session of its own, or of the session of @first */
static struct path *fence_path(const struct path *first, unsigned int addr)
{
	struct path *p = path_new(test_name);

	path_offer(p);
	if (first)
		path_join(p, first, addr);
	p = path_ready(p);
	if (!p)
		return NULL;
	if (p->rep.features == FEATURE_FENCE && p->rep.sess_id &&
	    (!first || (p->rep.sess_id == first->rep.sess_id &&
			!memcmp(p->rep.srv_uuid, first->rep.srv_uuid, 16))))
		return p;
	fail("features %#x, session %#x", p->rep.features, p->rep.sess_id);
	path_free(p);
	return NULL;
}

static int ask_for(struct path *p, u32 id)
{
	return send_imm(p, 0, (u32)IMM_FENCE << 28 | id);
}

static int must_be_fenced(struct path *p, unsigned int before, u32 id)
{
	u64 end = now_ms() + 8000;

	while (p->fenced == before) {
		path_poll(p);
		if (path_ended(p))
			return fail("the path ended instead of FENCED");
		if (now_ms() > end)
			return fail("no FENCED");
		nap_us(100);
	}
	if (p->fenced != before + 1 || p->fenced_id != id)
		return fail("%u times fenced, last %u, not %u",
			    p->fenced - before, p->fenced_id, id);
	return 0;
}

static int fence(struct path *p, u32 id)
{
	unsigned int before = p->fenced;

	if (ask_for(p, id))
		return fail("can't send FENCE");
	return must_be_fenced(p, before, id);
}

/* State of the path that is fenced */
enum { IDLE, IN_FLIGHT, CONNECTING, GONE };

static struct path *target(const struct path *first, long how, u64 *since)
{
	struct path *p;

	if (how != CONNECTING) {
		p = fence_path(first, 1);
		if (!p || how == IDLE)
			return p;
		if (!start_slow_reads(p, 0, 4, since)) {
			if (how == GONE)
				rdma_disconnect(p->cons[1].id);
			return p;
		}
	} else {
		p = path_new(test_name);
		path_offer(p);
		path_join(p, first, 1);
		if (!path_con(p, 0, &p->req, sizeof(p->req)))
			return p;
		fail("not accepted");
	}
	path_free(p);
	return NULL;
}

/* The path ends, and FENCED is sent when its requests have ended. */
static int fence_one(long how)
{
	struct path *p = fence_path(NULL, 0), *q;
	u64 since = 0, took;
	int ret;

	if (!p)
		return -1;
	q = target(p, how, &since);
	if (!q)
		return end_with(p, -1);
	ret = fence(p, q->req.path_id);
	took = now_ms() - since;
	if (!ret && took < SLOW_MS)
		ret = fail("fenced %llu ms after requests were sent",
			   (unsigned long long)took);
	if (!ret && how != GONE)
		ret = must_end(q, "given it up");
	/* The same path again, and an unknown ID */
	ret = ret ?: fence(p, q->req.path_id) ?: fence(p, 0x0fffffff);
	ret = ret ?: sess_info(p, 2) ?: must_live(p);
	path_free(q);
	return end_with(p, ret);
}

/*
 * The client reconnects between the same addresses, which ends the old path, and sends FENCE for it
 * over the new path, while requests of the old path are in flight at the disk.
 */
static int fence_and_back(long arg)
{
	struct path *p = fence_path(NULL, 0), *q, *r = NULL;
	u64 since, up = 0, took;
	int ret = -1;

	if (!p)
		return -1;
	q = target(p, IN_FLIGHT, &since);
	if (q)
		r = fence_path(p, 1);
	if (r) {
		up = now_ms() - since;
		ret = fence(r, q->req.path_id);
		took = now_ms() - since;
		if (!ret && took < SLOW_MS)
			ret = fail("fenced %llu ms after requests were sent",
				   (unsigned long long)took);
		ret = ret ?: sess_info(r, 2) ?: must_live(r) ?: must_live(p);
		snprintf(note, sizeof(note), "up after %llu ms, fenced after %llu",
			 (unsigned long long)up, (unsigned long long)took);
		path_free(r);
	}
	if (q)
		path_free(q);
	return end_with(p, ret);
}

/* Invalid messages: the path on which they are sent ends. */
enum { SELF, ID_0, CON_1, NOT_OFFERED, TWICE, EARLY, ANSWER };

static int wrong(long arg)
{
	struct path *p, *q = NULL;
	u32 type = arg == ANSWER ? IMM_FENCED : IMM_FENCE, id = 77;
	u64 since;
	int ret = 0;

	if (arg == EARLY) {
		p = path_new(test_name);
		path_offer(p);
		if (path_connect(p))
			return end_with(p, -1);
	} else {
		p = arg == NOT_OFFERED ? path_up(test_name) : fence_path(NULL, 0);
		if (!p)
			return -1;
	}
	if (arg == SELF)
		id = p->req.path_id;
	if (arg == ID_0)
		id = 0;
	if (arg == TWICE) {
		q = target(p, IN_FLIGHT, &since);
		if (!q)
			return end_with(p, -1);
		id = q->req.path_id;
		ret = ask_for(p, id);
	}
	if (!ret)
		ret = send_imm(p, arg == CON_1, type << 28 | id);
	/* The end of the other path may be logged first. */
	if (!ret && arg == TWICE)
		ret = must_end_quietly(p) ?: must_end_quietly(q);
	else
		ret = ret ?: must_end(p, arg == EARLY ? "is no INFO_REQ" : "unexpected message");
	if (q)
		path_free(q);
	return end_with(p, ret ?: must_go(test_name, 8000));
}

/* Path IDs are local to a session: the ID of another session's path has no effect. */
static int other_session(long arg)
{
	struct path *p = fence_path(NULL, 0), *q;
	int ret;

	if (!p)
		return -1;
	q = path_new("h-fence-bystander");
	path_offer(q);
	q = path_ready(q);
	if (!q)
		return end_with(p, -1);
	ret = fence(p, q->req.path_id) ?: sess_info(q, 2) ?: must_live(q) ?:
	      must_live(p);
	path_free(q);
	return end_with(p, ret);
}

/* A second path with the ID of the first one is rejected; the first one still works. */
static int same_id(long arg)
{
	struct path *p = fence_path(NULL, 0), *q;
	int ret;

	if (!p)
		return -1;
	q = path_new(test_name);
	q->req.features = FEATURE_FENCE;
	q->req.path_id = p->req.path_id;
	path_join(q, p, 1);
	ret = must_refuse(q, path_con(q, 0, &q->req, sizeof(q->req)), -EINVAL);
	path_free(q);
	return end_with(p, ret ?: sess_info(p, 2) ?: must_live(p));
}

/* Waits until the path ends or receives FENCED. */
static int wait_for_either(struct path *p)
{
	u64 end = now_ms() + 8000;

	while (!path_ended(p) && !p->fenced) {
		path_poll(p);
		if (now_ms() > end)
			return fail("neither ended nor FENCED");
		nap_us(100);
	}
	return 0;
}

/*
 * Each path fences the next one, all with requests in flight, and none waits for ever. The FENCE
 * of a path that has ended before the server reads it has no effect.
 */
static int circle(long nr)
{
	struct path *p[3] = { };
	int i, ended = 0, ret = 0;
	u64 since;

	for (i = 0; i < nr && !ret; i++) {
		p[i] = fence_path(p[0], i);
		if (!p[i] || start_slow_reads(p[i], 4 * i, 4, &since))
			ret = -1;
	}
	for (i = 0; i < nr && !ret; i++)
		ret = ask_for(p[i], p[(i + 1) % nr]->req.path_id);
	for (i = 0; i < nr && !ret; i++) {
		ret = wait_for_either(p[i]);
		if (path_ended(p[i])) {
			ended++;
			count_ended();
		}
	}
	for (i = 0; i < nr; i++)
		if (p[i])
			path_free(p[i]);
	snprintf(note, sizeof(note), "%d of %ld ended", ended, nr);
	return ret ?: must_go(test_name, 8000) ?: hello(0);
}

/* The path that sent FENCE ends before the answer. */
static int asker_gone(long kill_qp)
{
	struct path *p = fence_path(NULL, 0), *q;
	u64 since;
	int ret;

	if (!p)
		return -1;
	q = target(p, IN_FLIGHT, &since);
	if (!q)
		return end_with(p, -1);
	ret = ask_for(p, q->req.path_id) ?: must_end(q, "given it up");
	if (kill_qp)
		con_destroy_qp(&p->cons[0]);
	path_free(p);
	path_free(q);
	return ret ?: must_go(test_name, 40000) ?: hello(0);
}

/* One after the other, then as fast as possible */
static int fence_flood(long arg)
{
	struct path *p = fence_path(NULL, 0);
	unsigned int i, n;

	if (!p)
		return -1;
	for (i = 0; i < 1000; i++)
		if (fence(p, 0x0fffffff - i))
			return end_with(p, -1);
	n = send_burst(p, (u32)IMM_FENCE << 28 | 1000, 1, 10000);
	if (must_end_quietly(p))
		return end_with(p, -1);
	snprintf(note, sizeof(note), "%u sent, %u answers", n, p->fenced - 1000);
	path_free(p);
	return must_go(test_name, 8000) ?: hello(0);
}

/* A path without receives; answers to heartbeats have filled the server's send queue. */
static struct path *full(void)
{
	struct path *p = path_new(test_name);
	unsigned int i;
	int ret;

	path_offer(p);
	p->no_recv = true;
	ret = path_connect(p);
	if (!ret && con_recv(&p->cons[0], NR_RECVS))
		ret = fail("can't post a receive");
	ret = ret ?: path_info(p);
	for (i = 0; i < 600 && !ret; i++)
		ret = send_imm(p, 0, (u32)IMM_HB_MSG << 28);
	if (!ret)
		return p;
	path_free(p);
	return NULL;
}

/* There is still room for one FENCED. */
static int room_left(long arg)
{
	struct path *p = full();
	unsigned int i;
	int ret;

	if (!p)
		return -1;
	ret = ask_for(p, 77);
	nap_us(300000);
	for (i = 0; i < NR_RECVS && !ret; i++)
		ret = con_recv(&p->cons[0], i);
	return end_with(p, ret ?: must_be_fenced(p, 0, 77));
}

/* But not for many. */
static int no_room(long arg)
{
	struct path *p = full();
	unsigned int i;
	int ret = 0;

	if (!p)
		return -1;
	for (i = 0; i < 40 && !ret && !path_ended(p); i++) {
		ret = ask_for(p, 77);
		/* The answer is not received, but a FENCE before the answer is invalid. */
		nap_us(200000);
		path_poll(p);
	}
	return end_with(p, must_end(p, "no room to answer a FENCE"));
}

const struct test fence_cases[] = {
	{ "fence", "a path is fenced", fence_one, IDLE },
	{ "fence-in-hand", "a path with requests in flight: FENCED follows their end", fence_one,
	  IN_FLIGHT },
	{ "fence-connecting", "a path that has not all connections", fence_one, CONNECTING },
	{ "fence-gone", "a path that has disconnected with requests in flight", fence_one, GONE },
	{ "fence-and-back", "a path that was reconnected, over its successor", fence_and_back },
	{ "fence-self", "a path fences itself", wrong, SELF },
	{ "fence-0", "FENCE with ID 0", wrong, ID_0, .quiet = true },
	{ "fence-con-1", "FENCE on an I/O connection", wrong, CON_1 },
	{ "fence-not-offered", "FENCE without the feature", wrong, NOT_OFFERED },
	{ "fence-twice", "FENCE twice before the answer", wrong, TWICE },
	{ "fence-early", "FENCE before INFO_REQ", wrong, EARLY },
	{ "fenced", "FENCED from a client", wrong, ANSWER, .quiet = true },
	{ "fence-other-session", "ID of another session's path: no effect", other_session },
	{ "fence-same-id", "two paths with one ID: rejected", same_id },
	{ "fence-each-other", "two paths fence each other", circle, 2 },
	{ "fence-circle", "three paths fence each other in a circle", circle, 3 },
	{ "fence-asker-gone", "the path that sent FENCE disconnects", asker_gone, 0 },
	{ "fence-asker-broken", "the queue pair of that path is destroyed", asker_gone, 1 },
	{ "fence-flood", "1,000 in order, 10,000 at once", fence_flood },
	{ "fence-room-left", "no receives: room for one FENCED", room_left },
	{ "fence-no-room", "no receives: no room for many", no_room },
	{ }
};
