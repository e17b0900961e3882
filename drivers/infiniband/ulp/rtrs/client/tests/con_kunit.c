// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of connecting: connection requests of the client, and its checks of the server's
 * answers
 */
#include <kunit/test.h>
#include <linux/sizes.h>

#include "../clt.h"

struct patch {
	size_t nr;
	const char *bytes;
};

#define B(bytes)	{ sizeof(bytes) - 1, bytes }
#define AS_IT_IS	B("")

static const uuid_t path_uuid = { {
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
} };

static const uuid_t sess_uuid = { {
	0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
	0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
} };

static struct rtrs_clt_path *new_path(struct kunit *test)
{
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	path->clt = kunit_kzalloc(test, sizeof(*path->clt), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, path->clt);
	path->path.log = &path->clt->ratelimit;
	strscpy(path->path.name, "test", sizeof(path->path.name));
	return path;
}

/*
 * A request consists of @head, the UUIDs, @first_conn, @tag_hi and @queue_depth, and @offer: the
 * features and the path's ID.
 */

static const struct req_case {
	const char *desc;
	unsigned int cid, nr_queues;
	u16 nr_connects;
	bool may_create;
	u32 offered;
	u32 id;
	u8 head[12];
	u8 first_conn;
	u8 offer[8];
	unsigned int nr_poll;
	u16 queue_depth;
	u16 tag;
	u8 tag_hi;
} req_cases[] = {
	{ "first connection of a session", 0, 1, 1, true, 1, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 1, { 1, 0, 0, 0, 1 } },
	{ "second connection of the first path", 1, 1, 1, true, 1, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 1, 0, 2, 0, 1, 0 }, 0, { 1, 0, 0, 0, 1 } },
	{ "first connection of a further path", 0, 4, 2, false, 1, 0x0a0b0c0d,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 5, 0, 2, 0 }, 0,
	  { 1, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a } },
	{ "last connection of all that can be", 4095, 4095, 0xfffe, false, 1, 0xfffffff,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0xff, 0x0f, 0, 0x10, 0xfe, 0xff }, 0,
	  { 1, 0, 0, 0, 0xff, 0xff, 0xff, 0x0f } },
	{ "last of three polled connections", 5, 2, 1, false, 1, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 5, 0, 6, 0, 1, 0 }, 0, { 1, 0, 0, 0, 1 }, 3 },
	{ "nothing is offered", 0, 1, 1, true, 0, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 1 },
	{ "all is offered", 0, 1, 1, true, 7, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 1, { 7, 0, 0, 0, 1 } },
	{ "a queue depth is asked for", 0, 1, 1, true, 1, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 1, { 1, 0, 0, 0, 1 },
	  .queue_depth = 0x0120 },
	{ "by each connection", 1, 1, 1, true, 1, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 1, 0, 2, 0, 1, 0 }, 0, { 1, 0, 0, 0, 1 },
	  .queue_depth = 0xffff },
	{ "a proof is offered", 0, 1, 1, true, 0x10, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 0x25, { 0x10 },
	  .tag = 0x7f12, .tag_hi = 0xfe },
	{ "all but fencing is offered", 0, 1, 1, true, 6, 1,
	  { 0, 0, 0xbd, 0x1b, 0, 2, 0, 0, 2, 0, 1, 0 }, 1, { 6 } },
};

KUNIT_ARRAY_PARAM_DESC(req_cases, req_cases, desc);

static void request_is_on_the_wire_as_written_down(struct kunit *test)
{
	const struct req_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);
	struct rtrs_cm_req req;
	u8 bytes[56] = { };

	KUNIT_ASSERT_NOT_NULL(test, clt);
	memcpy(bytes, c->head, 12);
	memcpy(bytes + 12, &path_uuid, 16);
	memcpy(bytes + 28, &sess_uuid, 16);
	bytes[44] = c->first_conn;
	bytes[45] = c->tag_hi;
	bytes[46] = c->queue_depth & 0xff;
	bytes[47] = c->queue_depth >> 8;
	memcpy(bytes + 48, c->offer, 8);
	memset(&req, 0x5a, sizeof(req));
	path->clt = clt;
	path->path.log = &path->clt->ratelimit;
	path->path.uuid = path_uuid;
	path->path.nr_connects = c->nr_connects;
	clt->uuid = sess_uuid;
	clt->nr_queues = c->nr_queues;
	clt->nr_poll_queues = c->nr_poll;
	clt->queue_depth = c->queue_depth;
	path->may_create = c->may_create;
	path->path.id = c->id;
	path->neg.offered = c->offered;
	path->neg.tag = c->tag;
	rtrs_clt_fill_req(path, c->cid, &req);
	KUNIT_EXPECT_EQ(test, sizeof(req), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&req, bytes, sizeof(bytes)), 0);
}

struct create_test {
	struct rtrs_clt clt;
	struct rtrs_clt_path path[3];
};

static struct create_test *create_init(struct kunit *test)
{
	struct create_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	spin_lock_init(&t->clt.create.lock);
	init_waitqueue_head(&t->clt.wait);
	INIT_LIST_HEAD(&t->clt.create.waiters);
	for (i = 0; i < ARRAY_SIZE(t->path); i++) {
		t->path[i].clt = &t->clt;
		t->path[i].path.log = &t->path[i].clt->ratelimit;
		t->path[i].path.id = i + 1;
		t->path[i].sm.state = RTRS_CLT_CONNECTING;
		INIT_LIST_HEAD(&t->path[i].create_entry);
	}
	return t;
}

static void expect_create(struct kunit *test, struct create_test *t, unsigned int i, bool may)
{
	t->path[i].may_create = !may;
	KUNIT_EXPECT_EQ_MSG(test, rtrs_clt_begin_create(&t->path[i]), may, "path %u", i);
	KUNIT_EXPECT_EQ_MSG(test, t->path[i].may_create, may, "path %u", i);
}

/* Paths request creation one at a time, in the order of their first calls. */
static void paths_request_creation_in_order(struct kunit *test)
{
	struct create_test *t = create_init(test);

	expect_create(test, t, 0, true);
	expect_create(test, t, 1, false);
	expect_create(test, t, 2, false);
	/* A path that doesn't own creation can't release it. */
	rtrs_clt_end_create(&t->path[1]);
	expect_create(test, t, 2, false);
	expect_create(test, t, 1, false);
	rtrs_clt_end_create(&t->path[0]);
	expect_create(test, t, 2, false);
	expect_create(test, t, 0, false);
	expect_create(test, t, 1, true);
	rtrs_clt_end_create(&t->path[1]);
	expect_create(test, t, 0, false);
	expect_create(test, t, 2, true);
	rtrs_clt_end_create(&t->path[2]);
	expect_create(test, t, 0, true);
}

static void creation_that_takes_too_long_is_taken_over_by_one(struct kunit *test)
{
	struct create_test *t = create_init(test);
	unsigned long now = jiffies;

	expect_create(test, t, 0, true);
	KUNIT_EXPECT_GE(test, t->clt.create.expires - now, msecs_to_jiffies(7000));
	expect_create(test, t, 1, false);
	expect_create(test, t, 2, false);
	t->clt.sess_id = 1;
	t->clt.create.expires = jiffies;
	expect_create(test, t, 2, false);
	expect_create(test, t, 1, true);
	KUNIT_EXPECT_LT(test, t->clt.create.expires - now, msecs_to_jiffies(7000));
	t->clt.create.expires = jiffies + 5 * HZ;
	expect_create(test, t, 2, false);
	/* A late answer to the first path, which then retries with another ID */
	rtrs_clt_end_create(&t->path[0]);
	t->path[0].path.id = 4;
	expect_create(test, t, 0, false);
	expect_create(test, t, 2, false);
	rtrs_clt_end_create(&t->path[1]);
	expect_create(test, t, 0, false);
	expect_create(test, t, 2, true);
	/* A late answer, without another path that has become the owner meanwhile */
	t->clt.create.expires = jiffies;
	rtrs_clt_end_create(&t->path[2]);
	KUNIT_EXPECT_EQ(test, t->clt.create.owner, 0);
}

/* An owner never released creation, and jiffies have advanced by half of their range since. */
static void creation_that_is_never_ended_expires(struct kunit *test)
{
	struct create_test *t = create_init(test);

	expect_create(test, t, 0, true);
	t->clt.create.expires = jiffies + LONG_MAX / 2;
	expect_create(test, t, 1, true);
	t->clt.create.expires = jiffies + 8 * HZ;
	expect_create(test, t, 2, true);
}

/* Without session IDs, a path waits until the owner is connected or has timed out. */
static void accept_with_a_session_id_ends_creation(struct kunit *test)
{
	struct create_test *t = create_init(test);
	unsigned long now = jiffies;

	expect_create(test, t, 0, true);
	expect_create(test, t, 1, false);
	t->clt.create.expires = now + HZ;
	/* An accept has no effect on a path that isn't the owner. */
	rtrs_clt_create_accepted(&t->path[1]);
	KUNIT_EXPECT_EQ(test, t->clt.create.expires, now + HZ);
	rtrs_clt_create_accepted(&t->path[0]);
	KUNIT_EXPECT_GE(test, t->clt.create.expires - now, msecs_to_jiffies(7000));
	expect_create(test, t, 1, false);
	rtrs_clt_end_create(&t->path[0]);
	expect_create(test, t, 1, true);

	expect_create(test, t, 2, false);
	t->path[1].neg.sess_id = 1;
	rtrs_clt_create_accepted(&t->path[1]);
	expect_create(test, t, 2, true);
}

static void path_may_always_stop_or_join(struct kunit *test)
{
	struct create_test *t = create_init(test);

	expect_create(test, t, 0, true);
	expect_create(test, t, 1, false);
	expect_create(test, t, 2, false);
	t->path[1].may_create = true;
	t->path[1].sm.state = RTRS_CLT_CLOSING;
	KUNIT_EXPECT_TRUE(test, rtrs_clt_begin_create(&t->path[1]));
	KUNIT_EXPECT_FALSE(test, t->path[1].may_create);
	/* The path has left the queue of waiters. */
	rtrs_clt_end_create(&t->path[0]);
	expect_create(test, t, 2, true);

	expect_create(test, t, 0, false);
	t->clt.nr_up = 1;
	t->path[0].may_create = true;
	KUNIT_EXPECT_TRUE(test, rtrs_clt_begin_create(&t->path[0]));
	KUNIT_EXPECT_FALSE(test, t->path[0].may_create);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->clt.create.waiters));
}

/* 512 chunks of 128 KiB, with RTRS_FLAG_NEW_RKEY */
static const u8 accept[56] = {
	0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x00, 0xf0, 0x01, 0x00,
	0x00, 0x10, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
};

/* A device with large limits */
static const struct ib_device_attr able = {
	.max_send_sge = 64,
	.max_fast_reg_page_list_len = 2048,
	.max_qp_wr = 1 << 20,
	.max_cqe = 1 << 22,
};

struct offer {
	u32 depth, chunk_size, max_io_size, max_segments;
	bool new_rkey;
};

#define USUAL	{ 512, 131072, 126976, 32, true }

/* @put replaces the bytes of accept[] at @at; @want is the result. */
static const struct rep_case {
	const char *desc;
	int ret;
	u8 len, at;
	struct patch put;
	struct offer want;
} rep_cases[] = {
	{ "as servers are by default", 0, 56, 0, AS_IT_IS, USUAL },
	{ "more private data than that", 0, 196, 0, AS_IT_IS, USUAL },
	{ "another minor version", 0, 56, 2, B("\xff\x02"), USUAL },
	{ "keys that stay", 0, 56, 16, B("\0"), { 512, 131072, 126976, 32, false } },
	{ "flags of the future", 0, 56, 16, B("\xfd\xff\xff\xff"),
	  { 512, 131072, 126976, 32, false } },
	{ "reserved bytes that are used", 0, 56, 20, B("\xff\xff\xff\xff"), USUAL },
	{ "an errno, though it accepts", 0, 56, 4, B("\xff\xff"), USUAL },
	{ "one chunk", 0, 56, 6, B("\x01\0"), { 1, 131072, 126976, 32, true } },
	{ "as many chunks as fit", 0, 56, 6, B("\0\x08"), { 2048, 131072, 126976, 32, true } },
	{ "one chunk more than fits", -EPROTO, 56, 6, B("\x01\x08") },
	{ "65535 chunks", -EPROTO, 56, 6, B("\xff\xff") },
	{ "no chunks", -EPROTO, 56, 6, B("\0\0") },
	{ "the least I/O", 0, 56, 8, B("\0\x10\0\0"), { 512, 8192, 4096, 2, true } },
	{ "I/O below that", -EPROTO, 56, 8, B("\xff\x0f\0\0") },
	{ "no I/O", -EPROTO, 56, 8, B("\0\0\0\0") },
	{ "the most I/O with 512 chunks", 0, 56, 8, B("\0\xf0\x07\0"),
	  { 512, 524288, 520192, 128, true } },
	{ "one byte more", -EPROTO, 56, 8, B("\x01\xf0\x07\0") },
	{ "more I/O than we do", 0, 56, 6, B("\x02\0\0\xf0\xff\0"),
	  { 2, 16777216, SZ_4M, 1025, true } },
	{ "1 GiB, in one chunk", -EPROTO, 56, 6, B("\x01\0\0\0\0\x40") },
	{ "I/O of 4 GiB less one byte", -EPROTO, 56, 8, B("\xff\xff\xff\xff") },
	{ "a chunk of 4 GiB, which is 0", -EPROTO, 56, 8, B("\0\xf0\xff\xff") },
	{ "room for the longest headers", 0, 56, 12, B("\x58\x01\0\0"),
	  { 512, 127320, 126976, 32, true } },
	{ "a byte less for headers", -EPROTO, 56, 12, B("\x57\x01\0\0") },
	{ "no room for headers", -EPROTO, 56, 12, B("\0\0\0\0") },
	{ "4 GiB for headers, less one byte", -EPROTO, 56, 12, B("\xff\xff\xff\xff") },
	{ "headers that wrap to a small chunk", -EPROTO, 56, 12, B("\0\x10\xfe\xff") },
	{ "another magic", -EPROTO, 56, 0, B("\xbe") },
	{ "the magic the other way round", -EPROTO, 56, 0, B("\x1b\xbd") },
	{ "a major version before", -EPROTO, 56, 2, B("\0\x01") },
	{ "a major version to come", -EPROTO, 56, 2, B("\0\x03") },
	{ "no private data", -EPROTO, 0, 0, AS_IT_IS },
	{ "private data, a byte short", -EPROTO, 55, 0, AS_IT_IS },
};

KUNIT_ARRAY_PARAM_DESC(rep_cases, rep_cases, desc);

static void accept_is_checked(struct kunit *test)
{
	const struct rep_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	u8 *data = kunit_kzalloc(test, c->len + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	memcpy(data, accept, min_t(size_t, c->len, sizeof(accept)));
	memcpy(data + c->at, c->put.bytes, c->put.nr);
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, c->len ? data : NULL,
						 c->len), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, path->neg.depth, c->want.depth);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, c->want.depth);
	KUNIT_EXPECT_EQ(test, path->neg.chunk_size, c->want.chunk_size);
	KUNIT_EXPECT_EQ(test, path->neg.max_io_size, c->want.max_io_size);
	KUNIT_EXPECT_EQ(test, path->neg.max_segments, c->want.max_segments);
	KUNIT_EXPECT_EQ(test, path->neg.new_rkey, c->want.new_rkey);
}

/* 512 slots of 4 KiB, I/O of up to 1 MiB */
static const u8 accept_slots[56] = {
	0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x10, 0x00,
	0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, [45] = 0x10,
};

static const struct slots_case {
	const char *desc;
	int ret;
	u8 at;
	struct patch put;
	u8 at2;
	struct patch put2;
	u32 nr_slots, chunk_size, slot_size, max_io_size;
} slots_cases[] = {
	{ "as servers are by default", 0, 0, AS_IT_IS, 0, AS_IT_IS, 512, 4608, 4096, 1048576 },
	{ "the smallest slots", 0, 44, B("\0\x02"), 0, AS_IT_IS, 512, 1024, 512, 1048576 },
	{ "slots without room for data", -EPROTO, 44, B("\0\0") },
	{ "an odd slot", -EPROTO, 44, B("\x01\x10") },
	{ "slots of less than the unit", -EPROTO, 44, B("\0\x01") },
	{ "slots off the unit", -EPROTO, 44, B("\0\x11") },
	{ "the largest slots with less room for headers", 0, 44, B("\0\x3e"), 0, AS_IT_IS,
	  512, 16384, 15872, 1048576 },
	{ "slots that need more room for headers", -EPROTO, 44, B("\0\x40") },
	{ "slots with more room for headers", 0, 44, B("\0\x40"), 12, B("\0\x10"),
	  512, 20480, 16384, 1048576 },
	{ "too much room for headers", -EPROTO, 12, B("\0\x10") },
	{ "a byte more for headers", -EPROTO, 12, B("\x01\x02") },
	{ "a byte less for headers", -EPROTO, 12, B("\xff\x01") },
	{ "the largest slots, fewer than there are", 0, 44, B("\0\0\x02"), 12, B("\0\x10"),
	  496, 135168, 131072, 1048576 },
	{ "slots that are too large", -EPROTO, 44, B("\0\x02\x02"), 12, B("\0\x10") },
	{ "slots of 4 GiB less the unit", -EPROTO, 44, B("\0\xfe\xff\xff"), 12, B("\0\x10") },
	{ "I/O of as much as a slot has", 0, 8, B("\0\x10\0"), 0, AS_IT_IS,
	  512, 4608, 4096, 4096 },
	{ "I/O of less than a slot has", -EPROTO, 8, B("\0\x10\0"), 44, B("\0\x12") },
	{ "more I/O than fits in an immediate value", 0, 8, B("\0\0\x30"), 0, AS_IT_IS,
	  512, 4608, 4096, 3145728 },
	{ "more I/O than we do", 0, 8, B("\0\0\0\x10"), 0, AS_IT_IS,
	  512, 4608, 4096, SZ_4M },
	{ "keys that change", -EPROTO, 16, B("\x02") },
	{ "flags of the future", 0, 16, B("\xfd\xff\xff\xff"), 0, AS_IT_IS,
	  512, 4608, 4096, 1048576 },
	{ "more slots than fit", -EPROTO, 6, B("\x01\x80") },
	{ "as many slots as fit", 0, 6, B("\0\x80"), 0, AS_IT_IS, 4096, 4608, 4096, 1048576 },
	{ "not granted", 0, 20, B("\x03"), 6, B("\x02\0"), 2, 1049088, 0, 1048576 },
};

KUNIT_ARRAY_PARAM_DESC(slots_cases, slots_cases, desc);

static void small_slots_are_as_agreed(struct kunit *test)
{
	const struct slots_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	u8 data[56];

	memcpy(data, accept_slots, sizeof(data));
	memcpy(data + c->at, c->put.bytes, c->put.nr);
	memcpy(data + c->at2, c->put2.bytes, c->put2.nr);
	path->neg.offered = RTRS_FEATURE_SLOTS;
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, data, sizeof(data)),
			c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, c->nr_slots);
	KUNIT_EXPECT_EQ(test, path->neg.chunk_size, c->chunk_size);
	KUNIT_EXPECT_EQ(test, path->neg.slot_size, c->slot_size);
	KUNIT_EXPECT_EQ(test, path->neg.max_io_size, c->max_io_size);
	KUNIT_EXPECT_EQ(test, path->neg.max_sge,
			c->slot_size && c->slot_size <= 16384 ? 1 : 17);
	KUNIT_EXPECT_EQ(test, path->neg.copy_size, c->slot_size ?: 4096);
}

/* The server offers 512 slots or chunks. */
static const struct depth_case {
	const char *desc;
	u16 asked;
	u32 nr_slots;
} depth_cases[] = {
	{ "none is asked for", 0, 512 },
	{ "one", 1, 1 },
	{ "as many as the server has", 512, 512 },
	{ "one less", 511, 511 },
	{ "more than the server has", 65535, 512 },
};

KUNIT_ARRAY_PARAM_DESC(depth_cases, depth_cases, desc);

static void no_more_slots_are_used_than_asked_for(struct kunit *test)
{
	const struct depth_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);

	path->clt->queue_depth = c->asked;
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, accept, sizeof(accept)),
			0);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, c->nr_slots);
	KUNIT_EXPECT_EQ(test, path->neg.depth, 512);
	path->neg.offered = RTRS_FEATURE_SLOTS;
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, accept_slots,
						 sizeof(accept_slots)), 0);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, c->nr_slots);
	KUNIT_EXPECT_EQ(test, path->neg.depth, 512);
}

/* A device whose queues have room for 30 chunks has room for many more slots. */
static void small_slots_need_shorter_queues(struct kunit *test)
{
	static const struct ib_device_attr attrs = {
		.max_send_sge = 2, .max_fast_reg_page_list_len = 33, .max_qp_wr = 95,
		.max_cqe = 4096,
	};
	struct rtrs_clt_path *path = new_path(test);

	path->neg.offered = RTRS_FEATURE_SLOTS;
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &attrs, SIZE_MAX, accept_slots,
						 sizeof(accept_slots)), 0);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 78);
	KUNIT_EXPECT_EQ(test, path->neg.max_io_size, 131072);
	KUNIT_EXPECT_EQ(test, rtrs_clt_dev_slots(&attrs, false), 30);
}

/* Chunks are memory of the server, but the client also allocates memory for each of them. */
static void client_uses_some_of_very_many_chunks(struct kunit *test)
{
	struct rtrs_clt_path *path = new_path(test);
	u8 data[56];

	memcpy(data, accept, sizeof(data));
	/* 32768 chunks, I/O of 4096 bytes */
	memcpy(data + 6, "\x00\x80\x00\x10\x00\x00", 6);
	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, data, sizeof(data)), 0);
	KUNIT_EXPECT_EQ(test, path->neg.depth, 32768);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 4096);
}

static const struct dev_case {
	const char *desc;
	int ret;
	struct ib_device_attr attrs;
	u32 nr_slots, max_sge, max_io_size;
} dev_cases[] = {
	{ "a device that is no limit", 0, { .max_send_sge = 64, .max_fast_reg_page_list_len = 2048,
	  .max_qp_wr = INT_MAX, .max_cqe = INT_MAX }, 512, 17, 126976 },
	{ "two segments", 0, { .max_send_sge = 2, .max_fast_reg_page_list_len = 2,
	  .max_qp_wr = 4096, .max_cqe = 4096 }, 512, 2, 4096 },
	{ "one segment in a send", -EOPNOTSUPP, { .max_send_sge = 1,
	  .max_fast_reg_page_list_len = 32,
	  .max_qp_wr = 4096, .max_cqe = 4096 } },
	{ "one page in a registration", -EOPNOTSUPP,
	  { .max_send_sge = 32, .max_fast_reg_page_list_len = 1,
	  .max_qp_wr = 4096, .max_cqe = 4096 } },
	{ "no registration", -EOPNOTSUPP, { .max_send_sge = 32, .max_qp_wr = 4096,
	  .max_cqe = 4096 } },
	{ "pages for half of the I/O", 0, { .max_send_sge = 32, .max_fast_reg_page_list_len = 16,
	  .max_qp_wr = 4096, .max_cqe = 4096 }, 512, 17, 61440 },
	{ "a queue pair for one slot", 0, { .max_send_sge = 32, .max_fast_reg_page_list_len = 32,
	  .max_qp_wr = 66, .max_cqe = 4096 }, 1, 17, 126976 },
	{ "a queue pair for no slot", -EOPNOTSUPP,
	  { .max_send_sge = 32, .max_fast_reg_page_list_len = 32,
	  .max_qp_wr = 65, .max_cqe = 4096 } },
	{ "a completion queue for one slot", 0, { .max_send_sge = 32,
	  .max_fast_reg_page_list_len = 32,
	  .max_qp_wr = 4096, .max_cqe = 84 }, 1, 17, 126976 },
	{ "a completion queue for no slot", -EOPNOTSUPP,
	  { .max_send_sge = 32, .max_fast_reg_page_list_len = 32,
	  .max_qp_wr = 4096, .max_cqe = 83 } },
	{ "a device that tells nothing", -EOPNOTSUPP, { } },
};

KUNIT_ARRAY_PARAM_DESC(dev_cases, dev_cases, desc);

static void device_sets_limits(struct kunit *test)
{
	const struct dev_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);

	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &c->attrs, SIZE_MAX, accept,
						 sizeof(accept)), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, path->neg.depth, 512);
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, c->nr_slots);
	KUNIT_EXPECT_EQ(test, path->neg.max_sge, c->max_sge);
	KUNIT_EXPECT_EQ(test, path->neg.max_io_size, c->max_io_size);
}

static const struct feature_case {
	const char *desc;
	u32 offered;
	u8 bytes[24];
	u32 features, sess_id;
	u8 srv_uuid[16];
} feature_cases[] = {
	{ "a server that knows none", 1, { }, 0, 0 },
	{ "a server that fences", 1, { 1, 0, 0, 0, 4, 3, 2, 1 }, 1, 0x01020304 },
	{ "a server with a UUID", 1, { 1, 0, 0, 0, 4, 3, 2, 1, 0xa0, [23] = 0xaf }, 1,
	  0x01020304, { 0xa0, [15] = 0xaf } },
	{ "events without fencing", 2, { 2 }, 2, 0 },
	{ "features of the future", 1, { 0xff, 0xff, 0xff, 0xff, 1 }, 1, 1 },
	{ "others than offered", 1, { 2, 0, 0, 0, 1, 0, 0, 0, 0xa0 }, 0, 0 },
	{ "none was offered", 0, { 1, 0, 0, 0, 1, 0, 0, 0, 0xa0 }, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(feature_cases, feature_cases, desc);

static const struct mapping_case {
	const char *desc;
	int ret;
	size_t max_mapping;
	u32 max_io_size, max_segments;
} mapping_cases[] = {
	{ "as much as is asked for", 0, 126976, 126976, 32 },
	{ "a byte less", 0, 126975, 122880, 31 },
	{ "a page", 0, 4096, 4096, 2 },
	{ "less than a page", -EOPNOTSUPP, 4095 },
	{ "nothing", -EOPNOTSUPP, 0 },
};

KUNIT_ARRAY_PARAM_DESC(mapping_cases, mapping_cases, desc);

static void no_request_is_larger_than_can_be_mapped(struct kunit *test)
{
	const struct mapping_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);

	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_rep(path, &able, c->max_mapping, accept,
						 sizeof(accept)), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, path->neg.max_io_size, c->max_io_size);
	KUNIT_EXPECT_EQ(test, path->neg.max_segments, c->max_segments);
}

static void features_are_those_offered_and_granted(struct kunit *test)
{
	const struct feature_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	u8 bytes[56];
	int ret;

	memcpy(bytes, accept, sizeof(bytes));
	memcpy(bytes + 20, c->bytes, sizeof(c->bytes));
	path->neg.offered = c->offered;
	ret = rtrs_clt_parse_rep(path, &able, SIZE_MAX, bytes, sizeof(bytes));
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, path->path.features, c->features);
	KUNIT_EXPECT_EQ(test, path->neg.sess_id, c->sess_id);
	KUNIT_EXPECT_EQ(test, memcmp(&path->neg.srv_uuid, c->srv_uuid, sizeof(c->srv_uuid)), 0);
}

static const struct form_case {
	const char *desc;
	enum rdma_driver_id driver;
	u32 caps;
	u32 offered;
	bool no_imm, own_inv;
} form_cases[] = {
	{ "soft-RoCE", RDMA_DRIVER_RXE, RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP, 0, false, false },
	{ "soft-iWARP", RDMA_DRIVER_SIW, RDMA_CORE_PORT_IWARP, RTRS_FEATURE_NO_IMM, true, true },
	{ "an adapter", RDMA_DRIVER_MLX5, RDMA_CORE_PORT_IBA_ROCE, 0, false, false },
	{ "an iWARP adapter", RDMA_DRIVER_CXGB4, RDMA_CORE_PORT_IWARP, RTRS_FEATURE_NO_IMM, true,
	  false },
};

KUNIT_ARRAY_PARAM_DESC(form_cases, form_cases, desc);

static void device_decides_what_is_sent(struct kunit *test)
{
	const struct form_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	struct ib_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct ib_port_data *ports = kunit_kcalloc(test, 2, sizeof(*ports), GFP_KERNEL);
	struct rdma_cm_id *id = kunit_kzalloc(test, sizeof(*id), GFP_KERNEL);
	struct rtrs_clt_con *con = kunit_kzalloc(test, sizeof(*con), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, ports);
	KUNIT_ASSERT_NOT_NULL(test, id);
	KUNIT_ASSERT_NOT_NULL(test, con);
	ports[1].immutable.core_cap_flags = c->caps;
	dev->port_data = ports;
	dev->ops.driver_id = c->driver;
	id->device = dev;
	id->port_num = 1;
	con->con.cm_id = id;
	path->cons = con;
	/* Values from the path's previous device */
	path->path.no_imm = !c->no_imm;
	path->neg.own_inv = !c->own_inv;
	rtrs_clt_choose_form(path);
	KUNIT_EXPECT_EQ(test, path->path.no_imm, c->no_imm);
	KUNIT_EXPECT_EQ(test, path->neg.offered, c->offered);
	KUNIT_EXPECT_EQ(test, path->neg.own_inv, c->own_inv);
}

/* Over iWARP, a path needs both features. */
static void immediate_data_is_done_without_or_not_used(struct kunit *test)
{
	struct rtrs_clt_path *path = new_path(test);
	u8 bytes[sizeof(accept_slots)];

	memcpy(bytes, accept_slots, sizeof(bytes));
	path->neg.offered = RTRS_FEATURES | RTRS_FEATURE_NO_IMM;
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, bytes, sizeof(bytes)),
			-EOPNOTSUPP);
	bytes[20] |= RTRS_FEATURE_NO_IMM;
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, bytes, sizeof(bytes)), 0);
	bytes[20] &= ~RTRS_FEATURE_SLOTS;
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_rep(path, &able, SIZE_MAX, bytes, sizeof(bytes)),
			-EOPNOTSUPP);
}

static const struct limits_case {
	const char *desc;
	int ret;
	u32 depth, io_size, segments;
} limits_cases[] = {
	{ "as the first path", 0, 128, 65536, 17 },
	{ "more than the first path", 0, 129, 65537, 18 },
	{ "a slot less", -EINVAL, 127, 65536, 17 },
	{ "a byte less", -EINVAL, 128, 65535, 17 },
	{ "a segment less", -EINVAL, 128, 65536, 16 },
};

KUNIT_ARRAY_PARAM_DESC(limits_cases, limits_cases, desc);

static void further_path_reaches_the_limits_of_the_first(struct kunit *test)
{
	const struct limits_case *c = test->param_value;
	struct rtrs_clt_path *path = new_path(test);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clt);
	path->clt = clt;
	path->path.log = &path->clt->ratelimit;
	path->path.dev = kunit_kzalloc(test, sizeof(*path->path.dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, path->path.dev);
	clt->nr_queues = 3;
	clt->nr_poll_queues = 2;
	path->neg.nr_slots = 128;
	path->neg.max_io_size = 65536;
	path->neg.max_segments = 17;
	/* This path might still fail to become the first one. */
	KUNIT_ASSERT_EQ(test, rtrs_clt_check_limits(path), 0);
	KUNIT_ASSERT_FALSE(test, clt->have_limits);
	rtrs_clt_set_limits(path);
	KUNIT_ASSERT_TRUE(test, clt->have_limits);

	path->neg.nr_slots = c->depth;
	path->neg.max_io_size = c->io_size;
	path->neg.max_segments = c->segments;
	KUNIT_EXPECT_EQ(test, rtrs_clt_check_limits(path), c->ret);
	rtrs_clt_set_limits(path);
	KUNIT_EXPECT_EQ(test, clt->limits.queue_depth, 128);
	KUNIT_EXPECT_EQ(test, clt->limits.max_io_size, 65536);
	KUNIT_EXPECT_EQ(test, clt->limits.max_segments, 17);
	KUNIT_EXPECT_EQ(test, clt->limits.nr_queues, 3);
	KUNIT_EXPECT_EQ(test, clt->limits.nr_poll_queues, 2);
	KUNIT_EXPECT_EQ(test, clt->limits.numa_node, NUMA_NO_NODE);
}

static const struct open_case {
	const char *desc;
	unsigned int nr_queues, nr_poll_queues;
} open_cases[] = {
	{ "no connection for I/O", 0, 0 },
	{ "polled connections only", 0, 1 },
	{ "one too many", RTRS_MAX_CONS, 0 },
	{ "one too many with a polled one", RTRS_MAX_CONS - 1, 1 },
	{ "one too many, most of them polled", 1, RTRS_MAX_CONS - 1 },
	{ "a number that wraps", 2, UINT_MAX },
};

KUNIT_ARRAY_PARAM_DESC(open_cases, open_cases, desc);

static void session_has_no_more_connections_than_can_be(struct kunit *test)
{
	const struct open_case *c = test->param_value;
	struct rtrs_addr *addr = kunit_kzalloc(test, sizeof(*addr), GFP_KERNEL);
	struct rtrs_clt_params params = {
		.sessname	= "test",
		.label		= "test",
		.net		= &init_net,
		.paths		= addr,
		.nr_paths	= 1,
		.nr_queues	= c->nr_queues,
		.nr_poll_queues	= c->nr_poll_queues,
	};

	KUNIT_ASSERT_NOT_NULL(test, addr);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_clt_open(&params), ERR_PTR(-EINVAL));
}

static const struct reject_case {
	const char *desc;
	int err;
	u8 len;
	u8 bytes[6];
} reject_cases[] = {
	{ "an unknown session", -ENXIO, 56, { 0xbd, 0x1b, 0, 2, 0xfa, 0xff } },
	{ "a path that is there already", -EBUSY, 56, { 0xbd, 0x1b, 0, 2, 0xf0, 0xff } },
	{ "of another major version", -EPROTONOSUPPORT, 56, { 0xbd, 0x1b, 0, 3, 0xa3, 0xff } },
	{ "the largest errno", -511, 56, { 0xbd, 0x1b, 0, 2, 0x01, 0xfe } },
	{ "an errno of the kernel's own", -ECONNREFUSED, 56, { 0xbd, 0x1b, 0, 2, 0x00, 0xfe } },
	{ "the least number", -ECONNREFUSED, 56, { 0xbd, 0x1b, 0, 2, 0x00, 0x80 } },
	{ "success", -ECONNREFUSED, 56, { 0xbd, 0x1b, 0, 2, 0, 0 } },
	{ "a positive errno", -ECONNREFUSED, 56, { 0xbd, 0x1b, 0, 2, 6, 0 } },
	{ "another magic", -ECONNREFUSED, 56, { 0xbe, 0x1b, 0, 2, 0xfa, 0xff } },
	{ "private data, a byte short", -ECONNREFUSED, 55, { 0xbd, 0x1b, 0, 2, 0xfa, 0xff } },
	{ "no private data", -ECONNREFUSED, 0, { } },
};

KUNIT_ARRAY_PARAM_DESC(reject_cases, reject_cases, desc);

static void reject_tells_an_errno(struct kunit *test)
{
	const struct reject_case *c = test->param_value;
	u8 *data = kunit_kzalloc(test, c->len + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	if (c->len)
		memcpy(data, c->bytes, sizeof(c->bytes));
	KUNIT_EXPECT_EQ(test, rtrs_clt_rep_err(c->len ? (void *)data : NULL, c->len), c->err);
}

/*
 * -EINTR and -ESHUTDOWN make the client stop, -EINPROGRESS makes it wait, and -EEXIST means that
 * the user has specified a path twice. So the errno from a server must be none of these.
 */
static void reject_never_tells_what_only_we_do(struct kunit *test)
{
	struct rtrs_cm_rep rep = { .magic = cpu_to_le16(0x1bbd) };
	u32 i;
	int err;

	for (i = 0; i <= U16_MAX; i++) {
		rep.err = cpu_to_le16(i);
		err = rtrs_clt_rep_err(&rep, sizeof(rep));
		KUNIT_ASSERT_LT(test, err, 0);
		KUNIT_ASSERT_GT(test, err, -512);
		KUNIT_ASSERT_NE(test, err, -EINTR);
		KUNIT_ASSERT_NE(test, err, -ESHUTDOWN);
		KUNIT_ASSERT_NE(test, err, -EINPROGRESS);
		KUNIT_ASSERT_NE(test, err, -EEXIST);
		if (err != -ECONNREFUSED)
			KUNIT_ASSERT_EQ(test, err, (int)i - 65536);
	}
}

static const struct answer_case {
	const char *desc;
	bool ever_up;
	u32 failures;
	unsigned int ms;
} answer_cases[] = {
	{ "the path's first try", false, 0, 30000 },
	{ "its first tries failed", false, 2, 30000 },
	{ "it was lost", true, 0, 5000 },
	{ "the last short try", true, 2, 5000 },
	{ "the server may be slow", true, 3, 30000 },
};

KUNIT_ARRAY_PARAM_DESC(answer_cases, answer_cases, desc);

/* While requests wait for a lost path, its address is resolved again soon. */
static void lost_path_waits_shortly_for_an_answer(struct kunit *test)
{
	const struct answer_case *c = test->param_value;
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	path->stats.ever_up = c->ever_up;
	path->sm.failures = c->failures;
	KUNIT_EXPECT_EQ(test, rtrs_clt_answer_ms(path), c->ms);
}

static struct kunit_case rtrs_clt_conn_cases[] = {
	KUNIT_CASE_PARAM(lost_path_waits_shortly_for_an_answer, answer_cases_gen_params),
	KUNIT_CASE_PARAM(request_is_on_the_wire_as_written_down, req_cases_gen_params),
	KUNIT_CASE(paths_request_creation_in_order),
	KUNIT_CASE(creation_that_takes_too_long_is_taken_over_by_one),
	KUNIT_CASE(creation_that_is_never_ended_expires),
	KUNIT_CASE(accept_with_a_session_id_ends_creation),
	KUNIT_CASE(path_may_always_stop_or_join),
	KUNIT_CASE_PARAM(accept_is_checked, rep_cases_gen_params),
	KUNIT_CASE_PARAM(small_slots_are_as_agreed, slots_cases_gen_params),
	KUNIT_CASE_PARAM(no_more_slots_are_used_than_asked_for, depth_cases_gen_params),
	KUNIT_CASE(small_slots_need_shorter_queues),
	KUNIT_CASE(client_uses_some_of_very_many_chunks),
	KUNIT_CASE_PARAM(device_sets_limits, dev_cases_gen_params),
	KUNIT_CASE_PARAM(no_request_is_larger_than_can_be_mapped, mapping_cases_gen_params),
	KUNIT_CASE(immediate_data_is_done_without_or_not_used),
	KUNIT_CASE_PARAM(device_decides_what_is_sent, form_cases_gen_params),
	KUNIT_CASE_PARAM(features_are_those_offered_and_granted, feature_cases_gen_params),
	KUNIT_CASE_PARAM(further_path_reaches_the_limits_of_the_first, limits_cases_gen_params),
	KUNIT_CASE_PARAM(session_has_no_more_connections_than_can_be, open_cases_gen_params),
	KUNIT_CASE_PARAM(reject_tells_an_errno, reject_cases_gen_params),
	KUNIT_CASE(reject_never_tells_what_only_we_do),
	{}
};

static struct kunit_suite rtrs_clt_conn_suite = {
	.name = "rtrs-client-con",
	.test_cases = rtrs_clt_conn_cases,
};

kunit_test_suite(rtrs_clt_conn_suite);
