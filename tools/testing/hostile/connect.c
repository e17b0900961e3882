// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: connection requests, and the first message.
 */
#include <stdlib.h>
#include <unistd.h>

#include "hostile.h"

int hello(long arg)
{
	struct path *p = path_up(test_name);

	return p ? end_with(p, must_live(p)) : -1;
}

/* An invalid request for connection 0; the KUnit tests of rtrs-server-listen have the others. */
enum { MAGIC_OTHER, CID_1, NOT_FIRST };

static int request(long arg)
{
	static const int errs[] = {
		[MAGIC_OTHER] = -EINVAL, [CID_1] = -ENOTCONN, [NOT_FIRST] = -ENXIO,
	};
	struct path *p = path_new(test_name);

	switch (arg) {
	case MAGIC_OTHER:	p->req.magic = 0x1bbe; break;
	case CID_1:		p->req.cid = 1; break;
	case NOT_FIRST:		p->req.first_conn = 0xfe; break;
	}
	return end_with(p, must_refuse(p, path_con(p, 0, &p->req, sizeof(p->req)), errs[arg]));
}

/* Another minor version and unknown bits are accepted. */
static int minor(long arg)
{
	struct path *p = path_new(test_name);
	u32 slots;
	int ret;

	p->req.version = 0x02ff;
	p->req.first_conn = 0xff;
	memset(p->req.cma, 0xff, sizeof(p->req.cma));
	p->req.tag_hi = 0xff;
	p->req.queue_depth = 0xffff;
	p->req.features = arg;
	p->req.path_id = arg & FEATURE_FENCE ? 0x0fffffff : 0xffffffff;
	ret = path_connect(p);
	if (!ret)
		ret = path_info(p);
	/* Slots depend on the server's slot_size. */
	slots = p->rep.features & arg & FEATURE_SLOTS;
	if (!ret && ((p->rep.features ^ slots) != (arg & (FEATURE_FENCE | FEATURE_EVENT)) ||
		     !p->rep.sess_id != !(arg & FEATURE_FENCE)))
		ret = fail("granted: %#x, session %#x", p->rep.features,
			   p->rep.sess_id);
	return end_with(p, ret ?: must_live(p));
}

/* A request for a later connection that does not match the path's other connections */
enum { CON_AGAIN, CON_NUM, CON_NEWER, CON_OTHER_PATH, CON_DEPTH, CON_NO_DEPTH };

static int second(long arg)
{
	static const int errs[] = {
		[CON_AGAIN] = -EBUSY,		[CON_NUM] = -EINVAL,
		[CON_NEWER] = -ENOTCONN,	[CON_OTHER_PATH] = -ENOTCONN,
		[CON_DEPTH] = -ENOTCONN,	[CON_NO_DEPTH] = -ENOTCONN,
	};
	struct path *p = path_new(test_name);
	struct cm_req req;
	int ret;

	p->nr_cons = 3;
	p->req.cid_num = 3;
	p->req.recon_cnt = 5;
	p->req.queue_depth = arg == CON_NO_DEPTH ? 65535 : 0;
	ret = path_con(p, 0, &p->req, sizeof(p->req));
	req = p->req;
	req.cid = 1;
	if (!ret)
		ret = path_con(p, 1, &req, sizeof(req));
	if (ret)
		return end_with(p, fail("not accepted"));
	req.cid = arg == CON_AGAIN ? 1 : 2;
	switch (arg) {
	case CON_NUM:		req.cid_num = 4; break;
	case CON_NEWER:		req.recon_cnt = 6; break;
	case CON_OTHER_PATH:	req.path_uuid[0]++; break;
	case CON_DEPTH:		req.queue_depth = 65535; break;
	case CON_NO_DEPTH:	req.queue_depth = 0; break;
	}
	ret = must_refuse(p, path_con(p, 2, &req, sizeof(req)), errs[arg]);
	if (ret)
		return end_with(p, ret);
	con_free(&p->cons[2]);
	if (arg == CON_NEWER)
		return end_with(p, must_end(p, "reconnects it"));
	/* The path still works. */
	req = p->req;
	req.cid = 2;
	if (path_con(p, 2, &req, sizeof(req)))
		return end_with(p, fail("a valid request is rejected afterwards"));
	p->off_bits = 28 - 6;
	ret = path_info(p);
	return end_with(p, ret ?: must_live(p));
}

/* Requests a queue depth; then other paths of the session request other depths. */
static int depth(long asked)
{
	struct path *p = path_new(test_name), *q;
	int other, ret;

	p->req.queue_depth = asked;
	ret = path_connect(p);
	if (!ret && p->rep.queue_depth > asked)
		ret = fail("%u slots, %ld requested", p->rep.queue_depth, asked);
	ret = ret ?: path_info(p) ?: must_live(p);
	for (other = -1; other <= 1 && !ret; other++) {
		q = path_new(test_name);
		path_join(q, p, 1);
		q->req.queue_depth = asked + other;
		ret = path_con(q, 0, &q->req, sizeof(q->req));
		if (other)
			ret = must_refuse(q, ret, -EINVAL);
		else if (ret || q->rep.queue_depth != p->rep.queue_depth)
			ret = fail("a path with %u slots", q->rep.queue_depth);
		path_free(q);
	}
	return end_with(p, ret ?: must_live(p));
}

/* Further connections for a path that is already connected */
static int late(long arg)
{
	struct path *p = path_up(test_name);
	struct cm_req req;
	int ret;

	if (!p)
		return -1;
	req = p->req;
	req.cid = arg;
	ret = must_refuse(p, path_con(p, 3, &req, sizeof(req)), -EBUSY);
	con_free(&p->cons[3]);
	return end_with(p, ret ?: must_live(p));
}

/* A second path of a session between the same addresses replaces the first one. */
static int same_addr(long reconnect)
{
	struct path *p = path_up(test_name), *q = path_new(test_name);
	int ret;

	if (!p)
		return -1;
	memcpy(q->req.sess_uuid, p->req.sess_uuid, 16);
	q->req.first_conn = 0;
	if (reconnect) {
		/* The session ends with its last path, so this creates a session. */
		q->req.first_conn = 1;
		memcpy(q->req.path_uuid, p->req.path_uuid, 16);
		q->req.recon_cnt = p->req.recon_cnt + 1;
	}
	ret = path_connect(q);
	if (!ret)
		ret = path_info(q);
	if (!ret)
		ret = must_end(p, reconnect ? "reconnects it" : "new path between");
	if (!ret)
		ret = must_live(q);
	path_free(p);
	return end_with(q, ret);
}

/* A path with another name than its session */
static int other_name(long arg)
{
	struct path *p = path_up(test_name);
	struct path *q = path_new(test_name);
	int ret;

	if (!p)
		return -1;
	memcpy(q->req.sess_uuid, p->req.sess_uuid, 16);
	strcat(q->sess, "x");
	ret = path_connect(q);
	if (!ret && !path_info(q))
		ret = fail("accepted");
	if (!ret)
		ret = must_end(q, "EINVAL");
	if (!ret)
		ret = must_live(p);
	path_free(p);
	return end_with(q, ret);
}

/* A new session requests the name of @p's session. @p, if any, answers heartbeats meanwhile. */
static int request_name(struct path *q, struct path *p)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	u64 end = now_ms() + 10000;

	if (path_connect(q))
		return -1;
	memcpy(req.name, q->sess, sizeof(req.name));
	if (path_info_req(q, &req, sizeof(req)))
		return fail("can't send INFO_REQ");
	while (!q->nr_info && !path_ended(q)) {
		if (p)
			path_poll(p);
		path_poll(q);
		if (now_ms() > end)
			return fail("neither accepted nor refused");
		nap_us(100);
	}
	return 0;
}

static int name_refused(const char *name, struct path *p)
{
	struct path *q = path_new(name);
	int ret = request_name(q, p);

	if (!ret && q->nr_info)
		ret = fail("accepted");
	return end_with(q, ret ?: must_end(q, "EEXIST"));
}

/*
 * Other sessions with the name of a live session. The server probes the live one once, and not
 * again for a while.
 */
static int name_in_use(long others)
{
	struct path *p = path_up(test_name);
	u64 from = now_ms();
	unsigned int most;
	int ret = 0;

	if (!p)
		return -1;
	while (!ret && others--)
		ret = name_refused(test_name, p);
	if (!ret)
		ret = must_live(p);
	/* A heartbeat is sent every 5 s, and a probe every 10 s at most. */
	most = 2 + 2 * ((now_ms() - from) / 5000);
	if (!ret && (!p->hb_msgs || p->hb_msgs > most))
		ret = fail("%u heartbeats", p->hb_msgs);
	return end_with(p, ret);
}

/* Another session with the name of the kernel client's session */
static int name_of_kernel(long arg)
{
	return name_refused("good", NULL);
}

/* Another session with the name of one that no longer answers */
static int name_of_dead(long nr_paths)
{
	struct path *p[2] = { path_up(test_name) }, *q = path_new(test_name);
	int ret = 0;
	long i;

	for (i = 1; p[0] && i < nr_paths; i++) {
		p[i] = path_new(test_name);
		path_join(p[i], p[0], i);
		ret = path_connect(p[i]) ?: path_info(p[i]);
	}
	if (p[0] && !ret)
		ret = request_name(q, NULL);
	if (p[0] && !ret && !q->nr_info)
		ret = fail("refused");
	for (i = 0; i < nr_paths && p[i]; i++)
		ret = ret ?: must_end(p[i], "a probe stays unanswered");
	if (p[0] && !ret)
		ret = must_live(q);
	for (i = 0; i < nr_paths && p[i]; i++)
		path_free(p[i]);
	return end_with(q, p[0] ? ret : -1);
}

/* An invalid name; the KUnit tests of rtrs-server-setup have the others. */
static int name(long arg)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	strcpy(req.name, "a\nb");
	if (!ret)
		ret = path_info_req(p, &req, sizeof(req));
	return end_with(p, ret ?: must_end(p, "EINVAL"));
}

/* The longest valid name */
static int long_name(long arg)
{
	char sess[255];
	struct path *p;

	memset(sess, 'n', 254);
	sess[254] = 0;
	p = path_up(sess);
	return p ? end_with(p, must_live(p)) : -1;
}

/* The first message has another length. */
static int info_len(long len)
{
	static struct {
		struct info_req req;
		u8 extra[3000];
	} m;
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	strcpy(m.req.name, test_name);
	if (!ret)
		ret = path_info_req(p, &m, len);
	return end_with(p, ret ?: must_end(p, "first message"));
}

static int info_type(long arg)
{
	struct info_req req = { .type = MSG_INFO_RSP };
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	strcpy(req.name, test_name);
	if (!ret)
		ret = path_info_req(p, &req, sizeof(req));
	return end_with(p, ret ?: must_end(p, "EPROTO"));
}

enum { INFO_CON_1, INFO_EARLY, INFO_TWICE, INFO_TWICE_AT_ONCE, INFO_IMM,
	INFO_HB, INFO_IO };

/* A valid first message on the wrong connection, or at the wrong time */
static int info_odd(long arg)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	struct path *p = path_new(test_name);
	int ret;

	strcpy(req.name, test_name);
	if (arg == INFO_EARLY)
		ret = path_con(p, 0, &p->req, sizeof(p->req));
	else
		ret = path_connect(p);
	if (ret)
		return end_with(p, -1);
	switch (arg) {
	case INFO_CON_1:
		send_msg(p, 1, &req, sizeof(req));
		break;
	case INFO_TWICE_AT_ONCE:
		path_info_req(p, &req, sizeof(req));
		/* fall through */
	case INFO_EARLY:
		path_info_req(p, &req, sizeof(req));
		break;
	case INFO_TWICE:
		if (path_info(p))
			return end_with(p, -1);
		path_info_req(p, &req, sizeof(req));
		break;
	case INFO_IMM:
		memcpy(area(p, 0), &req, sizeof(req));
		send_with(p, 0, area(p, 0), sizeof(req), IBV_WR_SEND_WITH_IMM, 0);
		/* The server may ignore the immediate value. */
		if (!path_wait_info(p))
			return end_with(p, must_live(p));
		break;
	case INFO_HB:
		send_imm(p, 0, (u32)IMM_HB_MSG << 28);
		break;
	case INFO_IO:
		send_imm(p, 1, imm_req(p, 0, 0));
		break;
	}
	return end_with(p, must_end(p, NULL));
}

/* Connects and disconnects repeatedly, after each step of the handshake. */
static int hit_and_run(long arg)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	struct path *p;
	int i;

	for (i = 0; i < 24; i++) {
		p = path_new(test_name);
		strcpy(req.name, test_name);
		if (path_con(p, 0, &p->req, sizeof(p->req)) > 0)
			return end_with(p, fail("connection 0 refused"));
		if (i % 4 == 1) {
			p->req.cid = 1;
			con_resolve(&p->cons[1]);
			con_create_qp(&p->cons[1]);
			con_request_only(&p->cons[1], &p->req, sizeof(p->req));
		} else if (i % 4 > 1) {
			p->req.cid = 1;
			if (path_con(p, 1, &p->req, sizeof(p->req)))
				return end_with(p, fail("connection 1 refused"));
			path_info_req(p, &req, sizeof(req));
			if (i % 4 == 3)
				nap_us(rnd_below(40000));
		}
		path_free(p);
	}
	return must_go(test_name, 10000) ?: hello(0);
}

/* Many sessions that do not complete the handshake: others still connect. */
static int half_open(long arg)
{
	static struct path *p[48];
	unsigned int i, n = 0;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = path_new(test_name);
		if (!path_con(p[i], 0, &p[i]->req, sizeof(p[i]->req)))
			n++;
	}
	snprintf(note, sizeof(note), "%u of %zu accepted", n, ARRAY_SIZE(p));
	ret = hello(0);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		path_free(p[i]);
	/* The log has no names of these paths: they would be mistaken for the next case's path. */
	return ret ?: unnamed_ends_logged(n);
}

/* As many sessions as possible, with a server that has max_memory */
static int hoard(long arg)
{
	struct path *p[64];
	unsigned int n = 0;
	const char *line;
	char sess[80];
	int i, ret = 0;

	while (n < ARRAY_SIZE(p)) {
		snprintf(sess, sizeof(sess), "%s-%u", test_name, n);
		p[n] = path_up(sess);
		if (!p[n])
			break;
		n++;
	}
	if (!n || n == ARRAY_SIZE(p))
		ret = fail("%u sessions", n);
	nap_us(100000);
	for (i = 0; !ret && (line = log_line(i)); i++)
		if (strstr(line, "that clients may use"))
			break;
	if (!ret && !line)
		ret = fail("no reason in the log");
	snprintf(note, sizeof(note), "%u sessions", n);
	for (i = 0; i < (int)n; i++) {
		if (!ret)
			ret = must_live(p[i]);
		path_free(p[i]);
	}
	return ret ?: hello(0);
}

#define MAX_MEMORY	"/sys/module/rtrs_server/parameters/max_memory"
#define MEMORY_USED	"/sys/devices/rtrs_server/stats/memory_used"

/* Reads a number from an attribute of the server, which is on this machine. */
static long long server_number(const char *file)
{
	char text[32];
	FILE *f;

	f = fopen(file, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return atoll(text);
}

/*
 * First connections of paths with eight connections each, until the server has no memory left. The
 * first connection is charged for all eight. A path with 4096 connections is rejected at once.
 */
static int hoard_first(long arg)
{
	static struct path *p[1000];
	long long max = server_number(MAX_MEMORY) << 20, used = 0;
	unsigned int i, n = 0;
	int ret;

	p[n] = path_new(test_name);
	p[n]->req.cid_num = 4096;
	ret = must_refuse(p[n], path_con(p[n], 0, &p[n]->req, sizeof(p[n]->req)), -ENOMEM);
	path_free(p[n]);
	while (!ret && n < ARRAY_SIZE(p)) {
		p[n] = path_new(test_name);
		p[n]->req.cid_num = 8;
		ret = path_con(p[n], 0, &p[n]->req, sizeof(p[n]->req));
		n++;
		used = server_number(MEMORY_USED);
		if (used <= 0 || used > max)
			ret = fail("%lld of %lld bytes are used", used, max);
	}
	if (ret > 0)
		ret = must_refuse(p[n - 1], ret, -ENOMEM);
	else if (!ret)
		ret = fail("%u paths", n);
	if (!ret && used < max / 2)
		ret = fail("refused with %lld of %lld bytes used", used, max);
	snprintf(note, sizeof(note), "%u paths, %lld of %lld bytes", n - 1, used, max);
	for (i = 0; i < n; i++)
		path_free(p[i]);
	return ret;
}

enum { SILENT_0, SILENT_MISSING, SILENT_INFO, SILENT_MUTE, SILENT_NO_RECV,
	SILENT_VANISH, NR_SILENT };

static struct path *silent_path(int step)
{
	char sess[80];
	struct path *p;
	int ret = 0;

	snprintf(sess, sizeof(sess), "%s-%d", test_name, step);
	p = path_new(sess);
	p->nr_cons = step == SILENT_MISSING ? 2 : 3;
	p->req.cid_num = 3;
	p->mute = true;
	p->no_recv = step == SILENT_NO_RECV;
	if (step == SILENT_0)
		ret = path_con(p, 0, &p->req, sizeof(p->req));
	else
		ret = path_connect(p);
	if (!ret && step == SILENT_NO_RECV) {
		struct info_req req = { .type = MSG_INFO_REQ };

		strcpy(req.name, sess);
		path_info_req(p, &req, sizeof(req));
	} else if (!ret && step >= SILENT_MUTE) {
		ret = path_info(p);
	}
	if (!ret && step == SILENT_VANISH)
		for (step = 0; step < 3; step++)
			con_destroy_qp(&p->cons[step]);
	if (!ret)
		return p;
	path_free(p);
	return NULL;
}

/*
 * The client stops after each step. The server ends the path 30 s after the first connection
 * request, or when its heartbeats remain unanswered.
 */
static int silence(long arg)
{
	/* Seconds: the limit of the handshake, then of unanswered heartbeats */
	static const struct { int min, max; } limits[] = {
		{ 28, 36 }, { 28, 36 }, { 28, 36 }, { 20, 45 }, { 20, 45 }, { 0, 45 },
	};
	struct path *p[NR_SILENT];
	u64 start = now_ms();
	int i, took, left = NR_SILENT, ended[NR_SILENT] = { 0 }, ret = 0;
	size_t len = 0;

	for (i = 0; i < NR_SILENT; i++) {
		p[i] = silent_path(i);
		if (!p[i])
			return -1;
	}
	while (left && !ret) {
		took = (now_ms() - start) / 1000;
		for (i = 0; i < NR_SILENT && !ret; i++) {
			if (ended[i])
				continue;
			path_poll(p[i]);
			if (path_ended(p[i])) {
				ended[i] = 1;
				left--;
				len += snprintf(note + len, sizeof(note) - len,
						"%d:%ds ", i, took);
				if (took < limits[i].min)
					ret = fail("step %d: ended after %d s", i, took);
			} else if (took > limits[i].max) {
				ret = fail("step %d: the path has not ended", i);
			}
		}
		nap_us(10000);
	}
	for (i = 0; i < NR_SILENT; i++)
		path_free(p[i]);
	return ret;
}

const struct test connect_cases[] = {
	{ "hello", "a valid path", hello },
	{ "req-magic", "request with another magic", request, MAGIC_OTHER },
	{ "req-minor", "another minor version, unknown bits: accepted", minor,
	  ~(FEATURE_NO_IMM | FEATURE_PROOF | FEATURE_REASON) },
	{ "req-features", "unknown features: not granted", minor,
	  ~(FEATURE_FENCE | FEATURE_EVENT | FEATURE_NO_IMM | FEATURE_PROOF | FEATURE_REASON) },
	{ "req-features-none", "a path ID without features: accepted", minor, 0 },
	{ "req-cid-1-first", "connection 1 before connection 0", request, CID_1 },
	{ "req-not-first", "no first_conn, unknown session", request, NOT_FIRST },
	{ "con-again", "connection 1 twice", second, CON_AGAIN },
	{ "con-num", "another number of connections", second, CON_NUM },
	{ "con-newer", "reconnect count of a later connect: the path ends", second, CON_NEWER },
	{ "con-other-path", "UUID of a path that does not exist", second, CON_OTHER_PATH },
	{ "con-depth", "queue depth requested, the path requested none", second, CON_DEPTH },
	{ "con-no-depth", "no queue depth requested, the path requested one", second, CON_NO_DEPTH,
	  .quiet = true },
	{ "depth-1", "one slot; other paths of the session request other depths", depth, 1 },
	{ "depth-most", "the same with 65535 slots", depth, 65535, .quiet = true },
	{ "con-late-0", "connection 0 of a connected path", late, 0 },
	{ "con-late-1", "connection 1 of a connected path", late, 1, .quiet = true },
	{ "same-addr", "second path between the same addresses", same_addr, 0 },
	{ "same-path", "reconnect of a connected path", same_addr, 1 },
	{ "name-in-use", "name of another session, which stays", name_in_use, 1 },
	{ "name-in-use-often", "the same ten times", name_in_use, 10, .quiet = true },
	{ "name-in-use-by-kernel", "name of a session with I/O, which stays", name_of_kernel },
	{ "name-of-dead", "name of a session that does not answer: accepted", name_of_dead, 1 },
	{ "name-of-dead-2-paths", "the same with two paths between different addresses",
	  name_of_dead, 2 },
	{ "name-other", "path with another name than its session", other_name },
	{ "name-newline", "newline in the name", name },
	{ "name-long", "longest name: accepted", long_name },
	{ "info-0", "first message of 0 bytes", info_len, 0, .quiet = true },
	{ "info-2", "first message of 2 bytes", info_len, 2, .quiet = true },
	{ "info-short", "first message a byte too short", info_len, sizeof(struct info_req) - 1,
	  .quiet = true },
	{ "info-long", "first message a byte too long", info_len, sizeof(struct info_req) + 1 },
	{ "info-3000", "first message of 3000 bytes", info_len, 3000, .quiet = true },
	{ "info-type-1", "first message of another type", info_type },
	{ "info-con-1", "INFO_REQ on connection 1", info_odd, INFO_CON_1 },
	{ "info-early", "INFO_REQ before all connections are established", info_odd, INFO_EARLY },
	{ "info-twice", "second INFO_REQ after INFO_RSP", info_odd, INFO_TWICE },
	{ "info-twice-at-once", "INFO_REQ twice", info_odd, INFO_TWICE_AT_ONCE, .quiet = true },
	{ "info-imm", "INFO_REQ with an immediate value", info_odd, INFO_IMM },
	{ "info-heartbeat", "a heartbeat instead of INFO_REQ", info_odd, INFO_HB, .quiet = true },
	{ "info-io", "a request instead of INFO_REQ", info_odd, INFO_IO },
	{ "hit-and-run", "disconnects after each step", hit_and_run },
	{ "half-open", "48 sessions that do not complete the handshake", half_open },
	{ "hoard", "as many sessions as possible", hoard, .extra = true },
	{ "hoard-first", "as many first connections as possible", hoard_first, .quiet = true,
	  .extra = true },
	{ "silence", "stops after each step", silence, .extra = true },
	{ }
};
