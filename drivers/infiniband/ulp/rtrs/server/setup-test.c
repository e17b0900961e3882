// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the handshake: what the server tells, and takes for an INFO_REQ.
 */
#include <kunit/test.h>

#include "srv.h"

static const struct accept_case {
	const char *desc;
	u32 depth, chunk_size;
	bool always_invalidate;
	u32 features;
	u8 bytes[56];
} accept_cases[] = {
	{ "the defaults", 512, 131072, true, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 2, 0, 0, 0 } },
	{ "keys that stay", 512, 131072, false, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "the deepest, smallest", 32768, 8192, true, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 0x80,
	  0, 0x10, 0, 0, 0, 0x10, 0, 0, 2, 0, 0, 0 } },
	{ "one large one", 1, 4194304, false, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 1, 0,
	  0, 0xf0, 0x3f, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "with fencing", 512, 131072, true, RTRS_FEATURE_FENCE, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0x78, 0x56, 0x34, 0x12,
	  0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad,
	  0xae, 0xaf } },
};

KUNIT_ARRAY_PARAM_DESC(accept_cases, accept_cases, desc);

static void accept_is_on_the_wire_as_written_down(struct kunit *test)
{
	const struct accept_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv *srv = kunit_kzalloc(test, sizeof(*srv), GFP_KERNEL);
	struct rtrs_cm_rep rep;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, srv);
	for (i = 0; i < sizeof(srv->uuid); i++)
		srv->uuid.b[i] = 0xa0 + i;
	sess->srv = srv;
	path->sess = sess;
	path->features = c->features;
	sess->id = 0x12345678;
	sess->queue_depth = c->depth;
	sess->chunk_size = c->chunk_size;
	sess->always_invalidate = c->always_invalidate;
	memset(&rep, 0x5a, sizeof(rep));
	rtrs_srv_fill_accept(&rep, path);
	KUNIT_EXPECT_EQ(test, sizeof(rep), sizeof(c->bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&rep, c->bytes, sizeof(c->bytes)), 0);
}

static const struct reject_case {
	const char *desc;
	int err;
	u8 bytes[56];
} reject_cases[] = {
	{ "ENXIO", -ENXIO, { 0xbd, 0x1b, 0, 2, 0xfa, 0xff } },
	{ "EBUSY", -EBUSY, { 0xbd, 0x1b, 0, 2, 0xf0, 0xff } },
	{ "EPROTONOSUPPORT", -EPROTONOSUPPORT, { 0xbd, 0x1b, 0, 2, 0xa3, 0xff } },
	{ "ENOTSUPP, one of the kernel's own", -524, { 0xbd, 0x1b, 0, 2, 0xf4, 0xfd } },
};

KUNIT_ARRAY_PARAM_DESC(reject_cases, reject_cases, desc);

static void reject_is_on_the_wire_as_written_down(struct kunit *test)
{
	const struct reject_case *c = test->param_value;
	struct rtrs_cm_rep rep;

	memset(&rep, 0x5a, sizeof(rep));
	rtrs_srv_fill_rep(&rep, c->err);
	KUNIT_EXPECT_EQ(test, memcmp(&rep, c->bytes, sizeof(c->bytes)), 0);
}

static const struct name_case {
	const char *desc;
	int ret;
	u8 bytes[16];
} name_cases[] = {
	{ "a name", 0, { 0, 0, 'h', 'o', 's', 't', '-', '1' } },
	{ "bytes behind the name", 0, { 0, 0, 'h', 0, '/', '.', '\n' } },
	{ "an INFO_RSP", -EPROTO, { 1, 0, 'h', 'o', 's', 't' } },
	{ "a type beyond a byte", -EPROTO, { 0, 1, 'h', 'o', 's', 't' } },
	{ "another type and no name", -EPROTO, { 2, 0 } },
	{ "no name", -EINVAL, { 0, 0, 0, 'h' } },
	{ "a slash", -EINVAL, { 0, 0, 'h', '/', 's', 't' } },
	{ "a dot", -EINVAL, { 0, 0, 'h', '.', 's', 't' } },
	{ "a line's end", -EINVAL, { 0, 0, 'h', '\n', 's', 't' } },
	{ "an escape", -EINVAL, { 0, 0, 0x1b, '[', '2', 'J' } },
};

KUNIT_ARRAY_PARAM_DESC(name_cases, name_cases, desc);

static void info_req_is_checked(struct kunit *test)
{
	const struct name_case *c = test->param_value;
	struct rtrs_info_req *req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, req);
	memcpy(req, c->bytes, sizeof(c->bytes));
	KUNIT_EXPECT_EQ(test, rtrs_srv_check_info_req(req), c->ret);
}

static void info_req_without_a_name_s_end_is_refused(struct kunit *test)
{
	u8 *bytes = kunit_kzalloc(test, 272, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	memset(bytes + 2, 'n', 254);
	KUNIT_EXPECT_EQ(test, rtrs_srv_check_info_req((void *)bytes), 0);
	bytes[2 + 254] = 'n';
	KUNIT_EXPECT_EQ(test, rtrs_srv_check_info_req((void *)bytes), -EINVAL);
}

static void info_rsp_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 bytes[40] = {
		1, 0, 2, 0, 0, 0, 0, 0,
		0x00, 0x00, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x40, 0x00, 0x00,
		0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x04, 0x03, 0x02, 0x01, 0x00, 0x00, 0x00, 0x40,
	};
	struct ib_mr a = { .iova = 0x1122334455660000, .rkey = 0xaabbccdd, .length = 0x4000 };
	struct ib_mr b = { .iova = 0x1000, .rkey = 0x01020304, .length = 0x40000000 };
	struct ib_mr *mrs[] = { &a, &b };
	struct rtrs_info_rsp *rsp = kunit_kzalloc(test, sizeof(bytes), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rsp);
	rtrs_srv_fill_info_rsp(rsp, mrs, 2);
	KUNIT_EXPECT_EQ(test, memcmp(rsp, bytes, sizeof(bytes)), 0);
}

static const struct mr_case {
	const char *desc;
	u32 depth, chunk_size, pages;
	bool always_invalidate;
	u32 chunks;
} mr_cases[] = {
	{ "a key each", 512, 131072, 512, true, 1 },
	{ "as many as the device takes", 512, 131072, 512, false, 16 },
	{ "a device that takes more than all", 16, 131072, 65536, false, 16 },
	{ "as many in each", 510, 131072, 512, false, 15 },
	{ "a depth that is a prime", 509, 131072, 512, false, 1 },
	{ "a chunk is all that the device takes", 512, 131072, 32, false, 1 },
	{ "a chunk is more than the device takes", 512, 131072, 31, false, 0 },
	{ "the same, with a key each", 512, 131072, 31, true, 0 },
	{ "a device that takes no pages", 512, 131072, 0, false, 0 },
	{ "no more than 1 GiB", 2048, 4194304, UINT_MAX, false, 256 },
};

KUNIT_ARRAY_PARAM_DESC(mr_cases, mr_cases, desc);

static void chunks_are_dealt_out_to_memory_regions(struct kunit *test)
{
	const struct mr_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct ib_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->attrs.max_fast_reg_page_list_len = c->pages;
	sess->queue_depth = c->depth;
	sess->chunk_size = c->chunk_size;
	sess->always_invalidate = c->always_invalidate;
	path->sess = sess;
	path->path.dev = dev;
	KUNIT_EXPECT_EQ(test, rtrs_srv_chunks_per_mr(path), c->chunks);
}

static const struct bytes_case {
	const char *desc;
	u32 depth, chunk_size, per_mr;
	bool always_invalidate;
	size_t io_size;
	u64 bytes;
} bytes_cases[] = {
	{ "a key each", 512, 131072, 1, true, 1024, 68046856 },
	{ "16 chunks for each key", 512, 131072, 16, false, 1024, 67785480 },
	{ "the most chunks", 65535, 8192, 1, true, 256, 590863568 },
	{ "more than 4 GiB", 2048, 4194304, 1, true, 1024, 8609939464 },
};

KUNIT_ARRAY_PARAM_DESC(bytes_cases, bytes_cases, desc);

static void memory_of_a_path_is_counted(struct kunit *test)
{
	const struct bytes_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sess);
	sess->queue_depth = c->depth;
	sess->chunk_size = c->chunk_size;
	sess->always_invalidate = c->always_invalidate;
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_bytes(sess, c->per_mr, c->io_size), c->bytes);
}

static struct kunit_case rtrs_srv_setup_cases[] = {
	KUNIT_CASE_PARAM(accept_is_on_the_wire_as_written_down, accept_cases_gen_params),
	KUNIT_CASE_PARAM(reject_is_on_the_wire_as_written_down, reject_cases_gen_params),
	KUNIT_CASE_PARAM(info_req_is_checked, name_cases_gen_params),
	KUNIT_CASE(info_req_without_a_name_s_end_is_refused),
	KUNIT_CASE(info_rsp_is_on_the_wire_as_written_down),
	KUNIT_CASE_PARAM(chunks_are_dealt_out_to_memory_regions, mr_cases_gen_params),
	KUNIT_CASE_PARAM(memory_of_a_path_is_counted, bytes_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_srv_setup_suite = {
	.name = "rtrs-server-setup",
	.test_cases = rtrs_srv_setup_cases,
};

kunit_test_suite(rtrs_srv_setup_suite);
