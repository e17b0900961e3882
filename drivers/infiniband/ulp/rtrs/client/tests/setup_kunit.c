// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the exchange of INFO_REQ and INFO_RSP on the client */
#include <kunit/test.h>

#include "../clt.h"

struct patch {
	size_t nr;
	const char *bytes;
};

#define B(bytes)	{ sizeof(bytes) - 1, bytes }
#define AS_IT_IS	B("")

#define DEPTH		4
#define CHUNK_SIZE	8192

/* Four chunks of 8 KiB with two keys */
static const u8 info_rsp[40] = {
	0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x40, 0x00, 0x00,
	0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x04, 0x03, 0x02, 0x01, 0x00, 0x40, 0x00, 0x00,
};

/* One descriptor for each chunk, in descending order of addresses */
static const u8 info_rsp4[72] = {
	0x01, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
	0x04, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,
	0x00, 0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,
	0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x02, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,
	0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,
};

/* Creates a path with slots and the first @len bytes of @rsp. */
static struct rtrs_clt_path *path_with(struct kunit *test, u32 nr_slots, const u8 *rsp, u32 len)
{
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	path->neg.depth = DEPTH;
	path->neg.chunk_size = CHUNK_SIZE;
	path->neg.nr_slots = nr_slots;
	path->slots = kunit_kcalloc(test, nr_slots, sizeof(*path->slots), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, path->slots);
	for (i = 0; i < nr_slots; i++) {
		path->slots[i] = kunit_kzalloc(test, sizeof(*path->slots[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, path->slots[i]);
	}
	path->info.rsp.msg = kunit_kzalloc(test, len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, path->info.rsp.msg);
	memcpy(path->info.rsp.msg, rsp, len);
	path->info.len = len;
	return path;
}

static const struct deal_case {
	const char *desc;
	u32 nr_slots;
	const u8 *rsp;
	u32 len;
	u64 addr[DEPTH];
	u32 key[DEPTH];
} deal_cases[] = {
	{ "two descriptors", 4, info_rsp, sizeof(info_rsp),
	  { 0x1122334455660000, 0x1122334455662000, 0x1000, 0x3000 },
	  { 0xaabbccdd, 0xaabbccdd, 0x01020304, 0x01020304 } },
	{ "a descriptor each", 4, info_rsp4, sizeof(info_rsp4),
	  { 0x7fffffffffffe000, 0x6000, 0x4000, 0x2000 }, { 4, 3, 2, 1 } },
	{ "more than we have slots for", 3, info_rsp, sizeof(info_rsp),
	  { 0x1122334455660000, 0x1122334455662000, 0x1000 },
	  { 0xaabbccdd, 0xaabbccdd, 0x01020304 } },
	{ "one slot", 1, info_rsp, sizeof(info_rsp), { 0x1122334455660000 }, { 0xaabbccdd } },
};

KUNIT_ARRAY_PARAM_DESC(deal_cases, deal_cases, desc);

static void slots_get_their_memory(struct kunit *test)
{
	const struct deal_case *c = test->param_value;
	struct rtrs_clt_path *path = path_with(test, c->nr_slots, c->rsp, c->len);
	u32 i;

	KUNIT_ASSERT_EQ(test, rtrs_clt_parse_info_rsp(path), 0);
	for (i = 0; i < c->nr_slots; i++) {
		KUNIT_EXPECT_EQ(test, path->slots[i]->raddr, c->addr[i]);
		KUNIT_EXPECT_EQ(test, path->slots[i]->rkey, c->key[i]);
	}
}

/* @put replaces the bytes of info_rsp[] at @at. */
static const struct bad_case {
	const char *desc;
	u32 len, at;
	struct patch put;
} bad_cases[] = {
	{ "a byte is missing", 39, 0, AS_IT_IS },
	{ "the second descriptor is missing", 24, 0, AS_IT_IS },
	{ "the descriptors are missing", 8, 0, AS_IT_IS },
	{ "only a part of the header", 7, 0, AS_IT_IS },
	{ "one byte", 1, 0, AS_IT_IS },
	{ "of type INFO_REQ", 40, 0, B("\0") },
	{ "of type WRITE", 40, 0, B("\x02") },
	{ "of a type beyond a byte", 40, 0, B("\x01\x01") },
	{ "no descriptors", 40, 2, B("\0\0") },
	{ "one descriptor, half of the memory", 40, 2, B("\x01\0") },
	{ "one descriptor more than came", 40, 2, B("\x03\0") },
	{ "65535 descriptors", 40, 2, B("\xff\xff") },
	{ "memory of no length", 40, 20, B("\0\0\0\0") },
	{ "a byte more than two chunks", 40, 20, B("\x01\x40\0\0") },
	{ "a byte less than two chunks", 40, 20, B("\xff\x3f\0\0") },
	{ "half a chunk", 40, 20, B("\0\x10\0\0") },
	{ "a chunk too few", 40, 20, B("\0\x20\0\0") },
	{ "a chunk too many", 40, 20, B("\0\x60\0\0") },
	{ "a chunk too many, in the second one", 40, 36, B("\0\x60\0\0") },
	{ "as many chunks as fit in 4 GiB", 40, 20, B("\0\xe0\xff\xff") },
	{ "the last byte's address is beyond 64 bits", 40, 8, B("\0\xe0\xff\xff\xff\xff\xff\xff") },
	{ "the last byte's address is the last one", 40, 8, B("\0\xc0\xff\xff\xff\xff\xff\xff") },
};

KUNIT_ARRAY_PARAM_DESC(bad_cases, bad_cases, desc);

static void answer_is_refused(struct kunit *test)
{
	const struct bad_case *c = test->param_value;
	struct rtrs_clt_path *path = path_with(test, DEPTH, info_rsp, c->len);

	memcpy(path->info.rsp.msg + c->at, c->put.bytes, c->put.nr);
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_info_rsp(path), -EPROTO);
}

/* INFO_RSP of a server that refuses the path with @err */
static const struct refusal_case {
	const char *desc;
	u32 features;
	struct patch err;
	int ret;
} refusal_cases[] = {
	{ "the host has enough", RTRS_FEATURE_REASON, B("\x86\xff\xff\xff"), -EDQUOT },
	{ "a key", RTRS_FEATURE_PROOF, B("\x7f\xff\xff\xff"), -EKEYREJECTED },
	{ "a path that is still being tried", RTRS_FEATURE_REASON, B("\x8d\xff\xff\xff"),
	  -ECONNREFUSED },
	{ "no errno", RTRS_FEATURE_REASON, B("\1\0\0\0"), -ECONNREFUSED },
	{ "the largest", RTRS_FEATURE_REASON, B("\xff\xff\xff\x7f"), -ECONNREFUSED },
	{ "the smallest", RTRS_FEATURE_REASON, B("\0\0\0\x80"), -ECONNREFUSED },
	{ "of a server that doesn't do that", RTRS_FEATURE_FENCE, B("\x86\xff\xff\xff"), -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(refusal_cases, refusal_cases, desc);

static void server_says_why_it_refuses(struct kunit *test)
{
	static const u8 refusal[8] = { 0x01 };
	const struct refusal_case *c = test->param_value;
	struct rtrs_clt_path *path = path_with(test, DEPTH, refusal, sizeof(refusal));
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clt);
	ratelimit_state_init(&clt->ratelimit, DEFAULT_RATELIMIT_INTERVAL, 1);
	path->clt = clt;
	path->path.log = &path->clt->ratelimit;
	path->path.features = c->features;
	memcpy((u8 *)path->info.rsp.msg + 4, c->err.bytes, c->err.nr);
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_info_rsp(path), c->ret);
}

static void name_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 bytes[272] = { 0, 0, 'h', 'o', 's', 't', '-', '1' };
	struct rtrs_info_req *req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, req);
	rtrs_clt_fill_info_req(req, "host-1");
	KUNIT_EXPECT_EQ(test, sizeof(*req), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(req, bytes, sizeof(bytes)), 0);
}

static void longest_name_keeps_its_end(struct kunit *test)
{
	struct rtrs_info_req *req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);
	char name[255];

	KUNIT_ASSERT_NOT_NULL(test, req);
	memset(name, 'n', 254);
	name[254] = '\0';
	rtrs_clt_fill_info_req(req, name);
	KUNIT_EXPECT_EQ(test, memcmp((u8 *)req + 2, name, 255), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv((u8 *)req + 257, 0, 15));
}

static struct kunit_case rtrs_clt_info_cases[] = {
	KUNIT_CASE_PARAM(slots_get_their_memory, deal_cases_gen_params),
	KUNIT_CASE_PARAM(server_says_why_it_refuses, refusal_cases_gen_params),
	KUNIT_CASE_PARAM(answer_is_refused, bad_cases_gen_params),
	KUNIT_CASE(name_is_on_the_wire_as_written_down),
	KUNIT_CASE(longest_name_keeps_its_end),
	{}
};

static struct kunit_suite rtrs_clt_info_suite = {
	.name = "rtrs-client-setup",
	.test_cases = rtrs_clt_info_cases,
};

kunit_test_suite(rtrs_clt_info_suite);
