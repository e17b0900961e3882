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

/* The request for connection 0 is wrong in itself. */
enum { MAGIC_OTHER, MAJOR_1, MAJOR_3, CID_NUM_0, CID_NUM_1, CID_NUM_4097,
	CID_NUM_MAX, CID_2, CID_1, NOT_FIRST, EMPTY, SHORT, ID_0, ID_LONG, ID_MAX };

static int request(long arg)
{
	static const int errs[] = {
		[MAGIC_OTHER] = -EINVAL,	[MAJOR_1] = -EPROTONOSUPPORT,
		[MAJOR_3] = -EPROTONOSUPPORT,	[CID_NUM_0] = -EINVAL,
		[CID_NUM_1] = -EINVAL,		[CID_NUM_4097] = -EINVAL,
		[CID_NUM_MAX] = -EINVAL,	[CID_2] = -EINVAL,
		[CID_1] = -ENOTCONN,		[NOT_FIRST] = -ENXIO,
		[EMPTY] = -EINVAL,		[SHORT] = -EINVAL,
		[ID_0] = -EINVAL,		[ID_LONG] = -EINVAL,
		[ID_MAX] = -EINVAL,
	};
	struct path *p = path_new(test_name);
	u8 len = sizeof(p->req);

	if (arg >= ID_0)
		path_offer(p);
	switch (arg) {
	case MAGIC_OTHER:	p->req.magic = 0x1bbe; break;
	case MAJOR_1:		p->req.version = 0x0100; break;
	case MAJOR_3:		p->req.version = 0x0300; break;
	case CID_NUM_0:		p->req.cid_num = 0; break;
	case CID_NUM_1:		p->req.cid_num = 1; break;
	case CID_NUM_4097:	p->req.cid_num = 4097; break;
	case CID_NUM_MAX:	p->req.cid_num = 65535; break;
	case CID_2:		p->req.cid = 2; break;
	case CID_1:		p->req.cid = 1; break;
	case NOT_FIRST:		p->req.first_conn = 0xfe; break;
	case EMPTY:		len = 0; break;
	case SHORT:		len = 8; break;
	case ID_0:		p->req.path_id = 0; break;
	case ID_LONG:		p->req.path_id = 1 << 28; break;
	case ID_MAX:		p->req.path_id = -1; break;
	}
	return end_with(p, must_refuse(p, path_con(p, 0, &p->req, len),
				       errs[arg]));
}

/* Another minor version, and unknown bits, are taken. */
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
	/* It depends on the server whether it has slots. */
	slots = p->rep.features & arg & FEATURE_SLOTS;
	if (!ret && ((p->rep.features ^ slots) != (arg & (FEATURE_FENCE | FEATURE_EVENT)) ||
		     !p->rep.sess_id != !(arg & FEATURE_FENCE)))
		ret = fail("granted: %#x, session %#x", p->rep.features,
			   p->rep.sess_id);
	return end_with(p, ret ?: must_live(p));
}

/*
 * The request for a later connection doesn't fit those before; that for connection
 * 0 was in order. The path may go on, or not.
 */
enum { CON_AGAIN, CON_0_AGAIN, CON_BEYOND, CON_NUM, CON_OLDER, CON_NEWER,
	CON_OTHER_PATH, CON_DEPTH, CON_NO_DEPTH, CON_FEATURES, CON_ID };

static int second(long arg)
{
	static const int errs[] = {
		[CON_AGAIN] = -EBUSY,	[CON_0_AGAIN] = -EBUSY,
		[CON_BEYOND] = -EINVAL,	[CON_NUM] = -EINVAL,
		[CON_OLDER] = -EBUSY,	[CON_NEWER] = -ENOTCONN,
		[CON_OTHER_PATH] = -ENOTCONN,
		[CON_DEPTH] = -ENOTCONN,	[CON_NO_DEPTH] = -ENOTCONN,
		[CON_FEATURES] = -EINVAL, [CON_ID] = -EINVAL,
	};
	struct path *p = path_new(test_name);
	struct cm_req req;
	int ret;

	p->nr_cons = 3;
	p->req.cid_num = 3;
	p->req.recon_cnt = 5;
	p->req.queue_depth = arg == CON_NO_DEPTH ? 65535 : 0;
	if (arg >= CON_FEATURES)
		path_offer(p);
	ret = path_con(p, 0, &p->req, sizeof(p->req));
	req = p->req;
	req.cid = 1;
	if (!ret)
		ret = path_con(p, 1, &req, sizeof(req));
	if (ret)
		return end_with(p, fail("not accepted"));
	req.cid = arg == CON_AGAIN ? 1 : arg == CON_0_AGAIN ? 0 :
		  arg == CON_BEYOND ? 3 : 2;
	if (arg == CON_NUM)
		req.cid_num = 4;
	if (arg == CON_OLDER)
		req.recon_cnt = 4;
	if (arg == CON_NEWER)
		req.recon_cnt = 6;
	if (arg == CON_OTHER_PATH)
		req.path_uuid[0]++;
	if (arg == CON_DEPTH)
		req.queue_depth = 65535;
	if (arg == CON_NO_DEPTH)
		req.queue_depth = 0;
	if (arg == CON_FEATURES)
		req.features = 0;
	if (arg == CON_ID)
		req.path_id++;
	ret = must_refuse(p, path_con(p, 2, &req, sizeof(req)), errs[arg]);
	if (ret)
		return end_with(p, ret);
	con_free(&p->cons[2]);
	if (arg == CON_NEWER)
		return end_with(p, must_end(p, "reconnects it"));
	/* The path has taken no harm. */
	req = p->req;
	req.cid = 2;
	if (path_con(p, 2, &req, sizeof(req)))
		return end_with(p, fail("the right one isn't taken after it"));
	p->off_bits = 28 - 6;
	ret = path_info(p);
	return end_with(p, ret ?: must_live(p));
}

/* Asks for that many requests in flight; then other paths of the session ask for others. */
static int depth(long asked)
{
	struct path *p = path_new(test_name), *q;
	int other, ret;

	p->req.queue_depth = asked;
	ret = path_connect(p);
	if (!ret && p->rep.queue_depth > asked)
		ret = fail("%u slots, %ld were asked for", p->rep.queue_depth, asked);
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

/* Connections come for a path that is connected already. */
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

/* A second path of a session between the same addresses takes the first's place. */
static int same_addr(long anew)
{
	struct path *p = path_up(test_name), *q = path_new(test_name);
	int ret;

	if (!p)
		return -1;
	memcpy(q->req.sess_uuid, p->req.sess_uuid, 16);
	q->req.first_conn = 0;
	if (anew) {
		/* The session goes with its last path, so this is for another one. */
		q->req.first_conn = 1;
		memcpy(q->req.path_uuid, p->req.path_uuid, 16);
		q->req.recon_cnt = p->req.recon_cnt + 1;
	}
	ret = path_connect(q);
	if (!ret)
		ret = path_info(q);
	if (!ret)
		ret = must_end(p, anew ? "reconnects it" : "new path between");
	if (!ret)
		ret = must_live(q);
	path_free(p);
	return end_with(q, ret);
}

/* A path of a session under another name than that */
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
		ret = fail("taken");
	if (!ret)
		ret = must_end(q, "EINVAL");
	if (!ret)
		ret = must_live(p);
	path_free(p);
	return end_with(q, ret);
}

/* A new session wants the name of @p's, if any; that one's heartbeats are seen to. */
static int want_name(struct path *q, struct path *p)
{
	struct info_req req = { .type = MSG_INFO_REQ };
	u64 end = now_ms() + 10000;

	if (path_connect(q))
		return -1;
	memcpy(req.name, q->sess, sizeof(req.name));
	if (path_info_req(q, &req, sizeof(req)))
		return fail("INFO_REQ can't be sent");
	while (!q->nr_info && !path_ended(q)) {
		if (p)
			path_poll(p);
		path_poll(q);
		if (now_ms() > end)
			return fail("neither taken nor refused");
		nap_us(100);
	}
	return 0;
}

static int must_not_get_name(const char *name, struct path *p)
{
	struct path *q = path_new(name);
	int ret = want_name(q, p);

	if (!ret && q->nr_info)
		ret = fail("taken");
	return end_with(q, ret ?: must_end(q, "EEXIST"));
}

/*
 * Other sessions under the name of one that is alive. That it is, it has to show once, and
 * then for a while no more.
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
		ret = must_not_get_name(test_name, p);
	if (!ret)
		ret = must_live(p);
	/* Heartbeats are due each 5 s, and asked for each 10 s. */
	most = 2 + 2 * ((now_ms() - from) / 5000);
	if (!ret && (!p->hb_msgs || p->hb_msgs > most))
		ret = fail("%u heartbeats", p->hb_msgs);
	return end_with(p, ret);
}

/* Another session under the name of one that the kernel's client has */
static int name_of_kernel(long arg)
{
	return must_not_get_name("good", NULL);
}

/* Another session under the name of one that answers no more */
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
		ret = want_name(q, NULL);
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

/* What can't be a name; the drivers' unit tests have more of these. */
static int name(long which)
{
	static const char *const names[] = { "", "a\nb" };
	struct info_req req = { .type = MSG_INFO_REQ };
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	if (which < 0)
		memset(req.name, 'a', sizeof(req.name));
	else
		strcpy(req.name, names[which]);
	if (!ret)
		ret = path_info_req(p, &req, sizeof(req));
	return end_with(p, ret ?: must_end(p, "EINVAL"));
}

/* The longest name that can be */
static int long_name(long arg)
{
	char sess[255];
	struct path *p;

	memset(sess, 'n', 254);
	sess[254] = 0;
	p = path_up(sess);
	return p ? end_with(p, must_live(p)) : -1;
}

/* The first message is none, or of another length. */
static int info_len(long len)
{
	static struct {
		struct info_req req;
		u8 more[3000];
	} m;
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	strcpy(m.req.name, test_name);
	if (!ret)
		ret = path_info_req(p, &m, len);
	return end_with(p, ret ?: must_end(p, "first message"));
}

static int info_type(long type)
{
	struct info_req req = { .type = type };
	struct path *p = path_new(test_name);
	int ret = path_connect(p);

	strcpy(req.name, test_name);
	if (!ret)
		ret = path_info_req(p, &req, sizeof(req));
	return end_with(p, ret ?: must_end(p, "EPROTO"));
}

enum { INFO_CON_1, INFO_EARLY, INFO_TWICE, INFO_TWICE_AT_ONCE, INFO_IMM,
	INFO_HB, INFO_IO };

/* The first message is right, but the place or the time isn't. */
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
		/* It may be overlooked. */
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

/* Comes and goes at once, again and again; ends in the middle of all steps. */
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

/* Many sessions that never get on with it: others still connect. */
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
	snprintf(note, sizeof(note), "%u of %zu taken", n, ARRAY_SIZE(p));
	ret = hello(0);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		path_free(p[i]);
	/* They have no name yet in the log, and would be taken for the next case's path. */
	return ret ?: unnamed_ends_logged(n);
}

/* As many sessions as it gets, against a server that gives so much and no more */
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
		if (strstr(line, "that clients may take"))
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

/* A number from an attribute of the server, which is on this machine. */
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
 * First connections of sessions that don't go on, each for a path of eight, until the server has no
 * memory for one more. All eight count from the first one on, and so it has none for 4,096.
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
 * Silence after each step. The server notices: 30 s after the first connection,
 * or when its heartbeats have stayed unanswered.
 */
static int silence(long arg)
{
	/* Seconds: the handshake's limit, then heartbeats that stay unanswered. */
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
				ret = fail("step %d: the path lives on", i);
			}
		}
		nap_us(10000);
	}
	for (i = 0; i < NR_SILENT; i++)
		path_free(p[i]);
	return ret;
}


const struct test connect_cases[] = {
	{ "hello", "a path as it should be", hello },
	{ "req-magic", "request of another protocol", request, MAGIC_OTHER },
	{ "req-major-1", "major version 1", request, MAJOR_1, .quiet = true },
	{ "req-major-3", "major version 3", request, MAJOR_3 },
	{ "req-minor", "another minor version, unknown bits: taken", minor,
	  ~(FEATURE_NO_IMM | FEATURE_PROOF | FEATURE_REASON) },
	{ "req-features", "features that nobody knows: not granted", minor,
	  ~(FEATURE_FENCE | FEATURE_EVENT | FEATURE_NO_IMM | FEATURE_PROOF | FEATURE_REASON) },
	{ "req-features-none", "an id, but no features: taken", minor, 0 },
	{ "req-id-0", "fencing without an id", request, ID_0 },
	{ "req-id-long", "with an id of 29 bits", request, ID_LONG, .quiet = true },
	{ "req-id-max", "with an id of 32 bits", request, ID_MAX, .quiet = true },
	{ "req-cid-num-0", "no connections", request, CID_NUM_0, .quiet = true },
	{ "req-cid-num-1", "one connection", request, CID_NUM_1, .quiet = true },
	{ "req-cid-num-4097", "one too many", request, CID_NUM_4097 },
	{ "req-cid-num-max", "65535 connections", request, CID_NUM_MAX, .quiet = true },
	{ "req-cid-beyond", "connection 2 of 2", request, CID_2, .quiet = true },
	{ "req-cid-1-first", "connection 1 before 0", request, CID_1 },
	{ "req-not-first", "no first_conn, unknown session", request, NOT_FIRST },
	{ "req-empty", "no private data", request, EMPTY, .quiet = true },
	{ "req-short", "8 bytes of private data", request, SHORT, .quiet = true },
	{ "con-again", "connection 1 twice", second, CON_AGAIN },
	{ "con-0-again", "connection 0 twice", second, CON_0_AGAIN, .quiet = true },
	{ "con-beyond", "connection 3 of 3", second, CON_BEYOND },
	{ "con-num", "another number of connections", second, CON_NUM },
	{ "con-older", "of an earlier connect", second, CON_OLDER, .quiet = true },
	{ "con-newer", "of a later connect: the path ends", second, CON_NEWER },
	{ "con-other-path", "of a path that isn't there", second, CON_OTHER_PATH },
	{ "con-depth", "asks for a queue depth, the path for none", second, CON_DEPTH },
	{ "con-no-depth", "asks for no queue depth, the path for one", second, CON_NO_DEPTH,
	  .quiet = true },
	{ "depth-1", "one slot; other paths of the session ask for other numbers", depth, 1 },
	{ "depth-most", "65535 slots, likewise", depth, 65535, .quiet = true },
	{ "con-features", "without the path's features", second, CON_FEATURES },
	{ "con-id", "with another id than the path's", second, CON_ID, .quiet = true },
	{ "con-late-0", "connection 0 of a connected path", late, 0 },
	{ "con-late-1", "connection 1 of a connected path", late, 1, .quiet = true },
	{ "same-addr", "second path between the same addresses", same_addr, 0 },
	{ "same-path", "a path that is connected, anew", same_addr, 1 },
	{ "name-in-use", "another session's name: that one lives on", name_in_use, 1 },
	{ "name-in-use-often", "the same, several times", name_in_use, 10, .quiet = true },
	{ "name-in-use-by-kernel", "name of a session with I/O: lives on", name_of_kernel },
	{ "name-of-dead", "name of a session that answers no more: taken", name_of_dead, 1 },
	{ "name-of-dead-2-paths", "the same, of two paths, of which one has another address",
	  name_of_dead, 2 },
	{ "name-other", "path under another name than its session", other_name },
	{ "name-empty", "name is empty", name, 0 },
	{ "name-newline", "name has a newline", name, 1 },
	{ "name-no-nul", "name doesn't end", name, -1 },
	{ "name-long", "longest name: taken", long_name },
	{ "info-0", "first message of 0 bytes", info_len, 0, .quiet = true },
	{ "info-2", "of 2 bytes", info_len, 2, .quiet = true },
	{ "info-short", "a byte too short", info_len, sizeof(struct info_req) - 1, .quiet = true },
	{ "info-long", "a byte too long", info_len, sizeof(struct info_req) + 1 },
	{ "info-3000", "much too long", info_len, 3000, .quiet = true },
	{ "info-type-1", "of another type", info_type, MSG_INFO_RSP },
	{ "info-type-ffff", "of no type", info_type, 0xffff, .quiet = true },
	{ "info-con-1", "on another connection", info_odd, INFO_CON_1 },
	{ "info-early", "before all connections stand", info_odd, INFO_EARLY },
	{ "info-twice", "and again later", info_odd, INFO_TWICE },
	{ "info-twice-at-once", "twice", info_odd, INFO_TWICE_AT_ONCE, .quiet = true },
	{ "info-imm", "with an immediate value", info_odd, INFO_IMM },
	{ "info-heartbeat", "a heartbeat instead", info_odd, INFO_HB, .quiet = true },
	{ "info-io", "a request instead", info_odd, INFO_IO },
	{ "hit-and-run", "gone in the middle of all steps", hit_and_run },
	{ "half-open", "48 sessions that don't go on", half_open },
	{ "hoard", "as many sessions as it gets", hoard, .extra = true },
	{ "hoard-first", "as many first connections as it gets", hoard_first, .quiet = true,
	  .extra = true },
	{ "silence", "silence after each step", silence, .extra = true },
	{ }
};
