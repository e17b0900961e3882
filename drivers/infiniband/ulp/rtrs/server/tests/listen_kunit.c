// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the checks of connection requests, devices and module parameters. */
#include <kunit/test.h>
#include <linux/hashtable.h>

#include "../srv.h"

struct patch {
	size_t nr;
	const char *bytes;
};

#define B(bytes)	{ sizeof(bytes) - 1, bytes }
#define AS_IT_IS	B("")

/* A valid request for connection 1 of 3. */
static const u8 request[56] = {
	0x00, 0x00, 0xbd, 0x1b, 0x00, 0x02, 0x01, 0x00, 0x03, 0x00, 0x07, 0x00,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
	0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
	0x01, 0x00, 0x34, 0x12, 0x01, 0x00, 0x00, 0x00, 0x78, 0x56, 0x34, 0x02,
};

/* Changes of the request above, from offset @at on. */
static const struct req_case {
	const char *desc;
	int ret;
	u8 len, at;
	struct patch put;
} req_cases[] = {
	{ "as it is", 0, 56, 0, AS_IT_IS },
	{ "more private data than that", 0, 196, 0, AS_IT_IS },
	{ "bytes that belong to the CM", 0, 56, 0, B("\xff\xff") },
	{ "another minor version", 0, 56, 4, B("\xff") },
	{ "connection 0", 0, 56, 6, B("\0\0") },
	{ "the last connection", 0, 56, 6, B("\x02\0") },
	{ "one connection for I/O", 0, 56, 8, B("\x02\0") },
	{ "4096 connections", 0, 56, 8, B("\0\x10") },
	{ "bits of the future", 0, 56, 44, B("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x0f") },
	{ "an id without a feature", 0, 56, 48, B("\0\0\0\0\xff\xff\xff\xff") },
	{ "an id with features of the future", 0, 56, 48, B("\xfe\xff\xff\xff\xff\xff\xff\xff") },
	{ "fencing, the first id", 0, 56, 48, B("\x01\0\0\0\x01\0\0\0") },
	{ "fencing, the last id", 0, 56, 48, B("\x01\0\0\0\xff\xff\xff\x0f") },
	{ "fencing without an id", -EINVAL, 56, 48, B("\x01\0\0\0\0\0\0\0") },
	{ "fencing, an id that doesn't fit", -EINVAL, 56, 48, B("\x01\0\0\0\0\0\0\x10") },
	{ "fencing, the largest number", -EINVAL, 56, 48, B("\x01\0\0\0\xff\xff\xff\xff") },
	{ "no private data", -EINVAL, 0, 0, AS_IT_IS },
	{ "a byte is missing", -EINVAL, 55, 0, AS_IT_IS },
	{ "another magic", -EINVAL, 56, 2, B("\xbc") },
	{ "the magic the other way round", -EINVAL, 56, 2, B("\x1b\xbd") },
	{ "another magic and version", -EINVAL, 56, 2, B("\0\0\0\x03") },
	{ "a major version before", -EPROTONOSUPPORT, 56, 4, B("\0\x01") },
	{ "a major version to come", -EPROTONOSUPPORT, 56, 4, B("\0\x03") },
	{ "no connections", -EINVAL, 56, 6, B("\0\0\0\0") },
	{ "no connection for I/O", -EINVAL, 56, 6, B("\0\0\x01\0") },
	{ "4097 connections", -EINVAL, 56, 8, B("\x01\x10") },
	{ "65535 connections", -EINVAL, 56, 8, B("\xff\xff") },
	{ "a connection behind the last", -EINVAL, 56, 6, B("\x03\0") },
	{ "a connection far behind the last", -EINVAL, 56, 6, B("\xff\xff") },
};

KUNIT_ARRAY_PARAM_DESC(req_cases, req_cases, desc);

static void request_is_checked(struct kunit *test)
{
	const struct req_case *c = test->param_value;
	u8 *data = kunit_kzalloc(test, c->len + 1, GFP_KERNEL);
	struct rtrs_cm_req req;

	KUNIT_ASSERT_NOT_NULL(test, data);
	memcpy(data, request, min_t(size_t, c->len, sizeof(request)));
	memcpy(data + c->at, c->put.bytes, c->put.nr);
	KUNIT_ASSERT_EQ(test, rtrs_srv_check_req(c->len ? data : NULL, c->len, &req), c->ret);
	if (!c->ret)
		KUNIT_EXPECT_EQ(test, memcmp(&req, data, sizeof(req)), 0);
}

static void request_is_read_as_written_down(struct kunit *test)
{
	struct rtrs_cm_req req;

	KUNIT_ASSERT_EQ(test, rtrs_srv_check_req(request, sizeof(request), &req), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(req.cid), 1);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(req.cid_num), 3);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(req.recon_cnt), 7);
	KUNIT_EXPECT_EQ(test, memcmp(&req.path_uuid, request + 12, 16), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&req.sess_uuid, request + 28, 16), 0);
	KUNIT_EXPECT_EQ(test, req.first_conn, 1);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(req.queue_depth), 0x1234);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(req.features), 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(req.path_id), 0x02345678);
}

/* The existing path has three connections. */
static const struct join_case {
	const char *desc;
	int ret;
	u16 path_cnt, cnt, cid, cid_num;
	struct {
		u32 features, id;
	} path, req;
	bool no_slots;
	u16 asked, asks;
} join_cases[] = {
	{ "its second connection", 0, 1, 1, 1, 3 },
	{ "its last connection", 0, 1, 1, 2, 3 },
	{ "its connection 0 once more", -EBUSY, 1, 1, 0, 3 },
	{ "of more connections", -EINVAL, 1, 1, 1, 4 },
	{ "of fewer connections", -EINVAL, 1, 1, 1, 2 },
	{ "connected again, connection 0", -ESTALE, 1, 2, 0, 3 },
	{ "connected again, another connection", -ESTALE, 1, 2, 1, 3 },
	{ "connected again, of more connections", -ESTALE, 1, 2, 0, 4 },
	{ "of the time before", -EBUSY, 2, 1, 1, 3 },
	{ "of the time before, connection 0", -EBUSY, 2, 1, 0, 3 },
	{ "connected again, after the signed numbers", -ESTALE, 0x7fff, 0x8000, 0, 3 },
	{ "connected again, after all numbers", -ESTALE, 0xffff, 0, 0, 3 },
	{ "of the time before all numbers", -EBUSY, 0, 0xffff, 1, 3 },
	{ "connected again, as far ahead as can be told", -ESTALE, 0xfff0, 0x7fef, 0, 3 },
	{ "as far behind as can be told", -EBUSY, 0xfff0, 0x7ff0, 1, 3 },
	{ "the same after all numbers", 0, 0xffff, 0xffff, 1, 3 },
	{ "with fencing", 0, 1, 1, 1, 3, { 1, 5 }, { 1, 5 } },
	{ "with fencing, another id", -EINVAL, 1, 1, 1, 3, { 1, 5 }, { 1, 6 } },
	{ "with fencing, the other had none", -EINVAL, 1, 1, 1, 3, { 0, 0 }, { 1, 5 } },
	{ "without fencing, the other had it", -EINVAL, 1, 1, 1, 3, { 1, 5 }, { 0, 5 } },
	{ "an id means nothing without fencing", 0, 1, 1, 1, 3, { 0, 0 }, { 0, 6 } },
	{ "with events", 0, 1, 1, 1, 3, { 3, 5 }, { 3, 5 } },
	{ "with events, the other had none", -EINVAL, 1, 1, 1, 3, { 1, 5 }, { 3, 5 } },
	{ "with slots", 0, 1, 1, 1, 3, { 7, 5 }, { 7, 5 } },
	{ "with slots, the other had none", -EINVAL, 1, 1, 1, 3, { 3, 5 }, { 7, 5 } },
	{ "without slots, the other had them", -EINVAL, 1, 1, 1, 3, { 7, 5 }, { 3, 5 } },
	{ "with slots, the server has none", 0, 1, 1, 1, 3, { 3, 5 }, { 7, 5 }, true },
	{ "without immediate data", 0, 1, 1, 1, 3, { 15, 5 }, { 15, 5 } },
	{ "without, the other with", -EINVAL, 1, 1, 1, 3, { 7, 5 }, { 15, 5 } },
	{ "without, but no slots", 0, 1, 1, 1, 3, { 3, 5 }, { 11, 5 } },
	{ "features of the future", 0, 1, 1, 1, 3, { 63, 5 }, { -1, 5 } },
	{ "the same queue depth", 0, 1, 1, 1, 3, .asked = 32, .asks = 32 },
	{ "another queue depth", -EINVAL, 1, 1, 1, 3, .asked = 32, .asks = 33 },
	{ "a queue depth, the other asked for none", -EINVAL, 1, 1, 1, 3, .asks = 32 },
	{ "no queue depth, the other asked for one", -EINVAL, 1, 1, 1, 3, .asked = 32 },
	{ "connected again, another queue depth", -ESTALE, 1, 2, 0, 3, .asked = 32, .asks = 33 },
	{ "connected again, with fencing now", -ESTALE, 1, 2, 0, 3, { 0, 0 }, { 1, 6 } },
};

KUNIT_ARRAY_PARAM_DESC(join_cases, join_cases, desc);

/* Sets the size of the server's slots, 0 for none. Returns the previous size. */
static unsigned int set_slot_size(unsigned int size)
{
	unsigned int old = rtrs_srv_slot_size;

	rtrs_srv_slot_size = size;
	return old;
}

static void slots_are_granted_if_there_are_any(struct kunit *test)
{
	unsigned int old = set_slot_size(0);

	KUNIT_EXPECT_EQ(test, rtrs_srv_grant(~0U),
			RTRS_FEATURE_FENCE | RTRS_FEATURE_EVENT | RTRS_FEATURE_PROOF |
			RTRS_FEATURE_REASON);
	KUNIT_EXPECT_FALSE(test, rtrs_srv_form_ok(true, ~0U));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_form_ok(false, ~0U));
	set_slot_size(512);
	KUNIT_EXPECT_EQ(test, rtrs_srv_grant(~0U),
			RTRS_FEATURE_FENCE | RTRS_FEATURE_EVENT | RTRS_FEATURE_SLOTS |
			RTRS_FEATURE_NO_IMM | RTRS_FEATURE_PROOF | RTRS_FEATURE_REASON);
	KUNIT_EXPECT_EQ(test, rtrs_srv_grant(RTRS_FEATURE_NO_IMM), 0);
	KUNIT_EXPECT_FALSE(test, rtrs_srv_form_ok(true, RTRS_FEATURE_NO_IMM));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_form_ok(true, RTRS_FEATURES));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_form_ok(true, RTRS_FEATURES | RTRS_FEATURE_NO_IMM));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_form_ok(false, RTRS_FEATURES));
	set_slot_size(old);
}

static void request_joins_a_path_or_not(struct kunit *test)
{
	const struct join_case *c = test->param_value;
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_cm_req req = {
		.cid = cpu_to_le16(c->cid),
		.cid_num = cpu_to_le16(c->cid_num),
		.recon_cnt = cpu_to_le16(c->cnt),
		.features = cpu_to_le32(c->req.features),
		.path_id = cpu_to_le32(c->req.id),
		.queue_depth = cpu_to_le16(c->asks),
	};
	unsigned int old;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	path->sess = sess;
	sess->asked = c->asked;
	path->path.nr_cons = 3;
	path->path.nr_connects = c->path_cnt;
	path->path.features = c->path.features;
	path->path.id = c->path.id;
	old = set_slot_size(c->no_slots ? 0 : 4096);
	KUNIT_EXPECT_EQ(test, rtrs_srv_check_join(path, &req), c->ret);
	set_slot_size(old);
}

/* A path that is being set up, and another path of its session. */
static const struct way_case {
	const char *desc;
	bool in_the_way;
	u32 features;
	struct {
		const char *addr;
		u8 uuid;
		enum rtrs_srv_state state;
		bool named;
		bool has_key;
	} other;
} way_cases[] = {
	{ "another way", false, 0, { "b", 2, RTRS_SRV_CONNECTED, true } },
	{ "another way, ending", false, 0, { "b", 2, RTRS_SRV_CLOSING, true } },
	{ "the same way, being set up", false, 0, { "a", 2, RTRS_SRV_CONNECTING } },
	{ "the same way, about to be up", true, 0, { "a", 2, RTRS_SRV_CONNECTING, true } },
	{ "the same way", true, 0, { "a", 2, RTRS_SRV_CONNECTED, true } },
	{ "the same way, ending", true, 0, { "a", 2, RTRS_SRV_CLOSING, true } },
	{ "the same way, hidden", true, 0, { "a", 2, RTRS_SRV_CLOSING } },
	{ "itself before, another way", true, 0, { "b", 1, RTRS_SRV_CLOSING, true } },
	{ "itself before, hidden", true, 0, { "a", 1, RTRS_SRV_CLOSING } },
	{ "fencing, the same way", true, 1, { "a", 2, RTRS_SRV_CONNECTED, true } },
	{ "fencing, the same way, ending", true, 1, { "a", 2, RTRS_SRV_CLOSING, true } },
	{ "fencing, the same way, hidden", false, 1, { "a", 2, RTRS_SRV_CLOSING } },
	{ "fencing, itself before", true, 1, { "a", 1, RTRS_SRV_CLOSING, true } },
	{ "fencing, itself before, hidden", false, 1, { "a", 1, RTRS_SRV_CLOSING } },
	{ "fencing, itself before, another way", false, 1, { "b", 1, RTRS_SRV_CLOSING, true } },
	{ "with a key, itself before, another way", true, 1,
	  { "b", 1, RTRS_SRV_CONNECTED, true, true } },
	{ "with a key, itself before, another way, ending", false, 1,
	  { "b", 1, RTRS_SRV_CLOSING, true, true } },
	{ "with a key, itself before, unproved, another way", false, 1,
	  { "b", 1, RTRS_SRV_CONNECTING } },
	{ "with a key, another one, another way", false, 1,
	  { "b", 2, RTRS_SRV_CONNECTED, true, true } },
};

KUNIT_ARRAY_PARAM_DESC(way_cases, way_cases, desc);

static void path_waits_for_another(struct kunit *test)
{
	const struct way_case *c = test->param_value;
	struct rtrs_srv_path *path = kunit_kcalloc(test, 2, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	strscpy(path[0].path.addr_str, "a", sizeof(path[0].path.addr_str));
	path[0].path.uuid.b[0] = 1;
	path[0].path.features = c->features;
	strscpy(path[1].path.addr_str, c->other.addr, sizeof(path[1].path.addr_str));
	path[1].path.uuid.b[0] = c->other.uuid;
	path[1].state = c->other.state;
	path[1].sysfs.named = c->other.named;
	/* The key is not accessed. */
	if (c->other.has_key)
		path[1].key = (struct key *)test;
	KUNIT_EXPECT_EQ(test, rtrs_srv_must_wait_for(&path[0], &path[1]), c->in_the_way);
}

static const struct older_case {
	const char *desc;
	u8 uuid;
	u16 cnt, other_cnt;
	bool older;
} older_cases[] = {
	{ "older", 1, 6, 7, true },
	{ "newer", 1, 7, 6, false },
	{ "the same", 1, 7, 7, false },
	{ "older, after all numbers", 1, 0xffff, 0, true },
	{ "newer, after all numbers", 1, 0, 0xffff, false },
	{ "another path", 2, 6, 7, false },
};

KUNIT_ARRAY_PARAM_DESC(older_cases, older_cases, desc);

static void earlier_attempts_are_told_from_later_ones(struct kunit *test)
{
	const struct older_case *c = test->param_value;
	struct rtrs_srv_path *path = kunit_kcalloc(test, 2, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	path[0].path.uuid.b[0] = 1;
	path[0].path.nr_connects = c->cnt;
	path[1].path.uuid.b[0] = c->uuid;
	path[1].path.nr_connects = c->other_cnt;
	KUNIT_EXPECT_EQ(test, rtrs_srv_is_older(&path[0], &path[1]), c->older);
}

/* A session that was created by a request with the queue depth 7 */
static const struct match_case {
	const char *desc;
	bool matches;
	bool proves, named;
	u32 features;
	u16 asked;
	u8 uuid;
	bool other_srv;
	u8 tag_lo, tag_hi;
} match_cases[] = {
	{ "the same request", true, false, false, 0, 7, 1 },
	{ "another UUID", false, false, false, 0, 7, 2 },
	{ "another listener", false, false, false, 0, 7, 1, true },
	{ "another depth", false, false, false, 0, 8, 1 },
	{ "another depth, it has a name", true, false, true, 0, 8, 1 },
	{ "with a proof", true, true, false, RTRS_FEATURE_PROOF, 7, 1 },
	{ "a proof, where there is none", false, false, true, RTRS_FEATURE_PROOF, 7, 1 },
	{ "no proof, where there is one", false, true, true, 0, 7, 1 },
	{ "a proof with another tag", false, true, true, RTRS_FEATURE_PROOF, 7, 1, false, 2 },
	{ "a proof with another upper part", false, true, true, RTRS_FEATURE_PROOF, 7, 1, false,
	  0, 1 },
	{ "without a proof there is no tag", true, false, true, 0, 7, 1, false, 2, 1 },
	{ "other features", true, false, true, RTRS_FEATURE_FENCE, 7, 1 },
};

KUNIT_ARRAY_PARAM_DESC(match_cases, match_cases, desc);

static void request_is_for_a_session_like_it(struct kunit *test)
{
	const struct match_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_cm_req req = {
		.sess_uuid.b[0] = c->uuid,
		.first_conn = c->tag_lo,
		.tag_hi = c->tag_hi,
	};
	struct rtrs_srv *srv = kunit_kcalloc(test, 2, sizeof(*srv), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, srv);
	sess->srv = srv;
	sess->uuid.b[0] = 1;
	sess->asked = 7;
	sess->proves = c->proves;
	sess->name[0] = c->named ? 'n' : 0;
	req.features = cpu_to_le32(c->features);
	req.queue_depth = cpu_to_le16(c->asked);
	KUNIT_EXPECT_EQ(test, rtrs_srv_sess_matches(sess, srv + c->other_srv, &req), c->matches);
}

/* Sessions in the order of their creation, on two servers, with one path each. */
static const struct table_sess {
	u8 srv;
	u8 uuid;
	const char *name;
	enum rtrs_srv_state state;
	bool stuck, ending;
} table_sessions[] = {
	{ 0, 1, "a", RTRS_SRV_CLOSING },
	{ 0, 1, "b", RTRS_SRV_CLOSING },
	{ 0, 1, "", RTRS_SRV_CONNECTING },
	{ 0, 2, "c", RTRS_SRV_CONNECTED },
	{ 1, 2, "c", RTRS_SRV_CONNECTED },
	{ 0, 3, "", RTRS_SRV_CONNECTING },
	{ 0, 4, "d", RTRS_SRV_CLOSING },
	{ 0, 4, "e", RTRS_SRV_CLOSING },
	{ 0, 6, "f", RTRS_SRV_CLOSING, true },
	{ 0, 7, "g", RTRS_SRV_CLOSING, true, true },
	{ 0, 8, "h", RTRS_SRV_CLOSING, false, true },
	{ 0, 9, "i", RTRS_SRV_CLOSING, true },
	{ 0, 9, "", RTRS_SRV_CONNECTING },
};

/* @found: index in table_sessions, -1 for none */
static const struct find_case {
	const char *desc;
	u8 srv;
	u8 uuid;
	bool may_create;
	int found;
	bool fences;
} find_cases[] = {
	{ "the one that isn't ending", 0, 1, false, 2 },
	{ "the one that isn't ending, for a new client", 0, 1, true, 2 },
	{ "the only one", 0, 2, false, 3 },
	{ "the same UUID at another server", 1, 2, false, 4 },
	{ "an unknown UUID", 0, 5, false, -1 },
	{ "an unknown UUID at another server", 1, 1, false, -1 },
	{ "the newer one of two that are ending", 0, 4, false, 7 },
	{ "one that is ending, for a new client", 0, 4, true, -1 },
	{ "one that is ending, for a new client with fencing", 0, 4, true, -1, true },
	{ "one with a stuck request, for a new client", 0, 6, true, -1 },
	{ "one with a stuck request, for a new client with fencing", 0, 6, true, 8, true },
	{ "a path has ended, another one has a stuck request", 0, 7, true, 9, true },
	{ "a path has ended, and others end", 0, 8, false, -1, true },
	{ "not a newer one that can't come up", 0, 9, true, 11, true },
	{ "a newer one, without fencing", 0, 9, true, 12 },
};

static const struct name_case {
	const char *desc;
	u8 srv;
	const char *name;
	int found;
} name_cases[] = {
	{ "a name", 0, "a", 0 },
	{ "the same name at two servers", 0, "c", 3 },
	{ "the same name at two servers, the other one", 1, "c", 4 },
	{ "a name of another server", 1, "a", -1 },
	{ "an unknown name", 0, "aa", -1 },
};

static int table_index(const struct rtrs_srv_sess *sess, const struct rtrs_srv_sess *found)
{
	return found ? found - sess : -1;
}

static void session_is_found_by_uuid_or_name(struct kunit *test)
{
	const unsigned int nr = ARRAY_SIZE(table_sessions);
	struct rtrs_srv_path *path = kunit_kcalloc(test, nr, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv_sess *sess = kunit_kcalloc(test, nr, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv *srv = kunit_kcalloc(test, 2, sizeof(*srv), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, srv);
	mutex_lock(&rtrs_srv_lock);
	for (i = 0; i < nr; i++) {
		const struct table_sess *t = &table_sessions[i];

		sess[i].srv = srv + t->srv;
		sess[i].uuid.b[0] = t->uuid;
		strscpy(sess[i].name, t->name, sizeof(sess[i].name));
		INIT_LIST_HEAD(&sess[i].paths);
		list_add(&path[i].entry, &sess[i].paths);
		path[i].state = t->state;
		path[i].ios.late = t->stuck;
		sess[i].ending = t->ending;
		rtrs_srv_sess_add(&sess[i]);
	}
	for (i = 0; i < ARRAY_SIZE(find_cases); i++) {
		const struct find_case *c = &find_cases[i];
		struct rtrs_cm_req req = {
			.sess_uuid.b[0] = c->uuid,
			.features = cpu_to_le32(c->fences ? RTRS_FEATURE_FENCE : 0),
		};

		KUNIT_EXPECT_EQ_MSG(test, table_index(sess, rtrs_srv_sess_find(srv + c->srv, &req,
									       c->may_create)),
				    c->found, "%s", c->desc);
	}
	for (i = 0; i < ARRAY_SIZE(name_cases); i++) {
		const struct name_case *c = &name_cases[i];

		KUNIT_EXPECT_EQ_MSG(test, table_index(sess, rtrs_srv_sess_by_name(srv + c->srv,
										  c->name)),
				    c->found, "%s", c->desc);
	}
	KUNIT_EXPECT_EQ_MSG(test, table_index(sess, rtrs_srv_sess_predecessor(&sess[2], "a")), 0,
			    "the client's last session of that name");
	KUNIT_EXPECT_EQ_MSG(test, table_index(sess, rtrs_srv_sess_predecessor(&sess[2], "c")), -1,
			    "its sessions had other names");
	KUNIT_EXPECT_EQ_MSG(test, table_index(sess, rtrs_srv_sess_predecessor(&sess[5], "c")), -1,
			    "there was none before");
	for (i = 0; i < nr; i++)
		hash_del(&sess[i].by_uuid);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_sess_by_name(srv, "a"), NULL);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_sess_predecessor(&sess[2], "a"), NULL);
	mutex_unlock(&rtrs_srv_lock);
}

#define OWNER_PATHS	2
#define NOW		1000

/* A session with a name, and a new session from 10.0.0.1 that requests the name. */
static const struct owner_case {
	const char *desc;
	enum rtrs_srv_name_owner owner;
	u64 next_probe;
	struct {
		const char *addr;
		enum rtrs_srv_state state;
		bool on_trial;
		bool admitted;
		bool refused;
	} path[OWNER_PATHS];
	bool connected;
} owner_cases[] = {
	{ "its only path ends", RTRS_SRV_OWNER_ENDING, 0,
	  { { "ip:10.0.0.1", RTRS_SRV_CLOSING } } },
	{ "all of its paths end", RTRS_SRV_OWNER_ENDING, 0,
	  { { "ip:10.0.0.1", RTRS_SRV_CLOSING, true },
	    { "ip:10.0.1.1", RTRS_SRV_CLOSING, true } } },
	{ "it has no path any more", RTRS_SRV_OWNER_ENDING, 0, {} },
	{ "the same host", RTRS_SRV_OWNER_UNCHECKED, 0,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTED } } },
	{ "the same host, by one of its paths", RTRS_SRV_OWNER_UNCHECKED, 0,
	  { { "ip:10.0.1.1", RTRS_SRV_CONNECTED }, { "ip:10.0.0.1", RTRS_SRV_CONNECTED } } },
	{ "the same host, by a path that ends", RTRS_SRV_OWNER_UNCHECKED, 0,
	  { { "ip:10.0.1.1", RTRS_SRV_CONNECTED }, { "ip:10.0.0.1", RTRS_SRV_CLOSING } } },
	{ "another host", RTRS_SRV_OWNER_ALIVE, 0,
	  { { "ip:10.0.0.2", RTRS_SRV_CONNECTED }, { "ip:10.0.1.2", RTRS_SRV_CONNECTED } } },
	{ "another host, on trial", RTRS_SRV_OWNER_PROBED, 0,
	  { { "ip:10.0.0.2", RTRS_SRV_CONNECTED, true } } },
	{ "on trial", RTRS_SRV_OWNER_PROBED, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTED, true } } },
	{ "one path was dead, the other one is on trial", RTRS_SRV_OWNER_PROBED, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CLOSING, true },
	    { "ip:10.0.1.1", RTRS_SRV_CONNECTED, true } } },
	{ "a path was dead, the other one is alive", RTRS_SRV_OWNER_ALIVE, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CLOSING, true }, { "ip:10.0.1.1", RTRS_SRV_CONNECTED } } },
	{ "it has just shown that it is alive", RTRS_SRV_OWNER_ALIVE, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTED } } },
	{ "it has shown that some time ago", RTRS_SRV_OWNER_UNCHECKED, NOW,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTED } } },
	{ "it is being set up", RTRS_SRV_OWNER_ALIVE, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING } } },
	{ "a path is being set up, and none is left that was up", RTRS_SRV_OWNER_ENDING, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING } }, true },
	{ "a path is being set up, and the last that was up ends", RTRS_SRV_OWNER_ENDING, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING }, { "ip:10.0.1.1", RTRS_SRV_CLOSING } }, true },
	{ "a path is being set up, its client is admitted", RTRS_SRV_OWNER_ALIVE, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING, false, true } }, true },
	{ "a path was admitted, but is refused", RTRS_SRV_OWNER_ENDING, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING, false, true, true } }, true },
	{ "its first path is refused", RTRS_SRV_OWNER_ENDING, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING, false, true, true } } },
	{ "a path is being set up, and another one is up", RTRS_SRV_OWNER_ALIVE, NOW + 1,
	  { { "ip:10.0.0.1", RTRS_SRV_CONNECTING }, { "ip:10.0.1.1", RTRS_SRV_CONNECTED } }, true },
};

KUNIT_ARRAY_PARAM_DESC(owner_cases, owner_cases, desc);

static void owner_path(struct kunit *test, struct rtrs_srv_sess *sess, const char *addr,
		       enum rtrs_srv_state state, bool on_trial, bool admitted, bool refused)
{
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, addr, RTRS_PORT, &path->path.addr), 0);
	path->state = state;
	path->path.hb_trial_ms = on_trial;
	path->setup.admitted = admitted;
	path->setup.refused = refused;
	list_add_tail(&path->entry, &sess->paths);
}

static void owner_of_a_name_is_checked(struct kunit *test)
{
	const struct owner_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kcalloc(test, 2, sizeof(*sess), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	INIT_LIST_HEAD(&sess[0].paths);
	INIT_LIST_HEAD(&sess[1].paths);
	owner_path(test, &sess[0], "ip:10.0.0.1", RTRS_SRV_CONNECTING, false, false, false);
	for (i = 0; i < OWNER_PATHS && c->path[i].addr; i++)
		owner_path(test, &sess[1], c->path[i].addr, c->path[i].state,
			   c->path[i].on_trial, c->path[i].admitted, c->path[i].refused);
	sess[1].next_probe = c->next_probe;
	sess[1].connected = c->connected;
	KUNIT_EXPECT_EQ(test, rtrs_srv_check_name_owner(&sess[0], &sess[1], NOW), c->owner);
}

static const struct param_case {
	const char *desc;
	int ret;
	unsigned int chunk_size, depth, slot_size;
} param_cases[] = {
	{ "the defaults", 0, 131072, 512, 4096 },
	{ "no slots", 0, 131072, 512 },
	{ "the least of both", 0, 8192, 1 },
	{ "the deepest with 128 KiB", 0, 131072, 2048 },
	{ "one deeper", -EINVAL, 131072, 2049 },
	{ "the deepest with 8 KiB", 0, 8192, 32768 },
	{ "one deeper than that", -EINVAL, 8192, 32769 },
	{ "the deepest of all", -EINVAL, 8192, 65535 },
	{ "deeper than the deepest", -EINVAL, 8192, 65536 },
	{ "the largest number for the depth", -EINVAL, 8192, UINT_MAX },
	{ "depth 0", -EINVAL, 131072, 0 },
	{ "chunks of 4 KiB", -EINVAL, 4096, 512 },
	{ "chunks of no power of 2", -EINVAL, 131072 + 8192, 512 },
	{ "chunks of 0 bytes", -EINVAL, 0, 512 },
	{ "chunks of 2 GiB", -EINVAL, 1u << 31, 1 },
	{ "the smallest slots", 0, 131072, 512, 512 },
	{ "slots of a byte", -EINVAL, 131072, 512, 1 },
	{ "slots of a byte more than the smallest", -EINVAL, 131072, 512, 513 },
	{ "the largest slots", 0, 131072, 512, 131072 },
	{ "slots larger than that", -EINVAL, 131072, 512, 131072 + 512 },
	{ "the largest number for slots", -EINVAL, 131072, 512, UINT_MAX },
	{ "the largest multiple for slots", -EINVAL, 131072, 512, -512u },
	{ "the deepest with slots of 7.5 KiB", 0, 8192, 32768, 7680 },
	{ "slots larger than that, as deep", -EINVAL, 8192, 32768, 8192 },
	{ "the deepest with slots of 15.5 KiB", 0, 8192, 16384, 15872 },
	{ "slots of 16 KiB, as deep", -EINVAL, 8192, 16384, 16384 },
	{ "the deepest with slots of 16 KiB", 0, 8192, 8192, 16384 },
	{ "the deepest with the largest slots", 0, 8192, 1024, 131072 },
	{ "one deeper than with the largest slots", -EINVAL, 8192, 1025, 131072 },
};

KUNIT_ARRAY_PARAM_DESC(param_cases, param_cases, desc);

static void parameters_are_checked(struct kunit *test)
{
	const struct param_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_srv_check_params(c->chunk_size, c->depth, c->slot_size),
			c->ret);
}

static const struct depth_case {
	const char *desc;
	int max_qp_wr, max_cqe;
	u32 depth;
} depth_cases[] = {
	{ "a device that is no limit", INT_MAX, INT_MAX, 65535 },
	{ "a device for 512", 545, 754, 512 },
	{ "a queue pair for one less", 544, 754, 511 },
	{ "a completion queue for one less", 545, 753, 511 },
	{ "a device for one", 209, 243, 1 },
	{ "a send queue for none", 208, 754, 0 },
	{ "a completion queue for none", 209, 242, 0 },
	{ "a device that tells nothing", 0, 0, 0 },
	{ "a device that tells nonsense", -1, -1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(depth_cases, depth_cases, desc);

static void device_limits_the_depth(struct kunit *test)
{
	const struct depth_case *c = test->param_value;
	struct ib_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->attrs.max_qp_wr = c->max_qp_wr;
	dev->attrs.max_cqe = c->max_cqe;
	KUNIT_EXPECT_EQ(test, rtrs_srv_dev_depth(dev), c->depth);
}

static struct kunit_case rtrs_srv_listen_cases[] = {
	KUNIT_CASE_PARAM(request_is_checked, req_cases_gen_params),
	KUNIT_CASE(request_is_read_as_written_down),
	KUNIT_CASE(slots_are_granted_if_there_are_any),
	KUNIT_CASE_PARAM(request_joins_a_path_or_not, join_cases_gen_params),
	KUNIT_CASE_PARAM(path_waits_for_another, way_cases_gen_params),
	KUNIT_CASE_PARAM(earlier_attempts_are_told_from_later_ones, older_cases_gen_params),
	KUNIT_CASE_PARAM(request_is_for_a_session_like_it, match_cases_gen_params),
	KUNIT_CASE(session_is_found_by_uuid_or_name),
	KUNIT_CASE_PARAM(owner_of_a_name_is_checked, owner_cases_gen_params),
	KUNIT_CASE_PARAM(parameters_are_checked, param_cases_gen_params),
	KUNIT_CASE_PARAM(device_limits_the_depth, depth_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_srv_listen_suite = {
	.name = "rtrs-server-listen",
	.test_cases = rtrs_srv_listen_cases,
};

kunit_test_suite(rtrs_srv_listen_suite);
