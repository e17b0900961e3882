// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the handshake: messages of the server, checks of INFO_REQ, and memory. */
#include <kunit/test.h>
#include <linux/delay.h>

#include "../srv.h"

/*
 * Initializes the memory layout of @path for slots of @slot_size bytes, or for chunks if that is 0.
 */
static void init_mem(struct rtrs_srv_path *path, unsigned int slot_size)
{
	unsigned int old = rtrs_srv_slot_size;

	rtrs_srv_slot_size = slot_size;
	rtrs_srv_mem_init(path);
	rtrs_srv_slot_size = old;
}

static const struct accept_case {
	const char *desc;
	u32 depth, chunk_size;
	bool always_invalidate;
	u32 features;
	u8 bytes[56];
	u32 slot_size;
} accept_cases[] = {
	{ "the defaults", 512, 131072, true, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "without always_invalidate", 512, 131072, false, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "the deepest, smallest", 32768, 8192, true, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 0x80,
	  0, 0x10, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "one large one", 1, 4194304, false, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 1, 0,
	  0, 0xf0, 0x3f, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 } },
	{ "with fencing", 512, 131072, true, RTRS_FEATURE_FENCE, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x78, 0x56, 0x34, 0x12,
	  0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad,
	  0xae, 0xaf } },
	{ "with slots", 512, 131072, true, RTRS_FEATURE_SLOTS, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0, 0x10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, [44] = 0, 0x10, 0, 0 }, 4096 },
	{ "with the largest slots of 512 bytes for headers", 512, 131072, true,
	  RTRS_FEATURE_SLOTS, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2, 0, 0, 0x10, 0, 0, 2, 0, 0,
	  0, 0, 0, 0, 4, 0, 0, 0, [44] = 0, 0x3e, 0, 0 }, 15872 },
	{ "with slots of 16 KiB and fencing", 512, 8192, false,
	  RTRS_FEATURE_SLOTS | RTRS_FEATURE_FENCE, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0, 0x10, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0x78, 0x56, 0x34, 0x12,
	  0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad,
	  0xae, 0xaf, 0, 0x40, 0, 0 }, 16384 },
	{ "without slots, others have them", 512, 131072, true, 0, { 0xbd, 0x1b, 0, 2, 0, 0, 0, 2,
	  0, 0xf0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0 }, 4096 },
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
	path->path.features = c->features;
	sess->id = 0x12345678;
	sess->queue_depth = c->depth;
	sess->chunk_size = c->chunk_size;
	sess->always_invalidate = c->always_invalidate;
	init_mem(path, c->slot_size);
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
		0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x00, 0x00, 0x40,
		0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x04, 0x03, 0x02, 0x01, 0x00, 0x00, 0x40, 0x00,
	};
	struct ib_mr a = { .iova = 0x1122334455660000, .rkey = 0xaabbccdd };
	struct ib_mr b = { .iova = 0x1000, .rkey = 0x01020304 };
	struct ib_mr *mrs[] = { &a, &b };
	struct rtrs_region chunks = {
		.nr = 257, .size = 0x400000, .per_mr = 256, .nr_mrs = 2, .mrs = mrs,
	};
	struct rtrs_info_rsp *rsp = kunit_kzalloc(test, sizeof(bytes), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rsp);
	rtrs_srv_fill_info_rsp(rsp, &chunks);
	KUNIT_EXPECT_EQ(test, memcmp(rsp, bytes, sizeof(bytes)), 0);
}

static const struct rsp_case {
	const char *desc;
	struct rtrs_region chunks;
	u32 len[2];
} rsp_cases[] = {
	{ "all in one", { .nr = 16, .size = 4096, .per_mr = 16, .nr_mrs = 1 }, { 65536 } },
	{ "room for more in one", { .nr = 16, .size = 4096, .per_mr = 512, .nr_mrs = 1 },
	  { 65536 } },
	{ "two full ones", { .nr = 16, .size = 4096, .per_mr = 8, .nr_mrs = 2 },
	  { 32768, 32768 } },
	{ "a group of which two are used",
	  { .nr = 10, .size = 4608, .group_shift = 3, .per_mr = 8, .nr_mrs = 2 },
	  { 36864, 9216 } },
	{ "one of a group", { .nr = 1, .size = 4608, .group_shift = 3, .per_mr = 8, .nr_mrs = 1 },
	  { 4608 } },
};

KUNIT_ARRAY_PARAM_DESC(rsp_cases, rsp_cases, desc);

static void info_rsp_tells_of_no_more_than_is_used(struct kunit *test)
{
	const struct rsp_case *c = test->param_value;
	struct rtrs_region chunks = c->chunks;
	struct ib_mr *mr = kunit_kcalloc(test, 2, sizeof(*mr), GFP_KERNEL);
	struct ib_mr *mrs[] = { &mr[0], &mr[1] };
	struct rtrs_info_rsp *rsp;
	u32 i;

	rsp = kunit_kzalloc(test, struct_size(rsp, desc, 2), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_NOT_NULL(test, rsp);
	chunks.mrs = mrs;
	rtrs_srv_fill_info_rsp(rsp, &chunks);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(rsp->nr_desc), chunks.nr_mrs);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rsp->desc[i].len), c->len[i]);
}

static const struct mr_case {
	const char *desc;
	u32 depth, chunk_size, pages, chunks, slot_size;
} mr_cases[] = {
	{ "as many as the device takes", 512, 131072, 512, 16 },
	{ "a device that takes more than all", 16, 131072, 65536, 16 },
	{ "as many in each", 510, 131072, 512, 15 },
	{ "a depth that is a prime", 509, 131072, 512, 1 },
	{ "a chunk is all that the device takes", 512, 131072, 32, 1 },
	{ "a chunk is more than the device takes", 512, 131072, 31, 0 },
	{ "a device that takes no pages", 512, 131072, 0, 0 },
	{ "no more pages than one has addresses of", 2048, 131072, UINT_MAX, 16 },
	{ "a chunk of more", 2048, 4194304, UINT_MAX, 1 },
	{ "slots, as many as the device takes", 512, 131072, 512, 448, 4096 },
	{ "slots, a depth that is a prime", 509, 131072, 512, 448, 4096 },
	{ "slots, a group is all that the device takes", 512, 131072, 9, 8, 4096 },
	{ "slots, a group is more than the device takes", 512, 131072, 8, 0, 4096 },
	{ "slots of whole pages", 512, 131072, 512, 102, 16384 },
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
	path->sess = sess;
	path->path.dev = dev;
	path->path.features = c->slot_size ? RTRS_FEATURE_SLOTS : 0;
	init_mem(path, c->slot_size);
	KUNIT_EXPECT_EQ(test, rtrs_srv_chunks_per_mr(path), c->chunks);
}

static const struct bytes_case {
	const char *desc;
	u32 depth, chunk_size, per_mr;
	size_t io_size;
	u64 bytes;
	u32 slot_size;
} bytes_cases[] = {
	{ "a key each", 512, 131072, 1, 1024, 68046856 },
	{ "16 chunks for each key", 512, 131072, 16, 1024, 67789576 },
	{ "the most chunks", 65535, 8192, 1, 256, 590863568 },
	{ "more than 4 GiB", 2048, 4194304, 1, 1024, 8609939464 },
	{ "small slots", 512, 131072, 448, 1024, 2897864, 4096 },
	{ "slots of whole pages", 512, 131072, 512, 1024, 11043376, 16384 },
};

KUNIT_ARRAY_PARAM_DESC(bytes_cases, bytes_cases, desc);

static void memory_of_a_path_is_counted(struct kunit *test)
{
	const struct bytes_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, path);
	path->sess = sess;
	path->path.features = c->slot_size ? RTRS_FEATURE_SLOTS : 0;
	sess->queue_depth = c->depth;
	sess->chunk_size = c->chunk_size;
	init_mem(path, c->slot_size);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_bytes(path, c->per_mr, c->io_size), c->bytes);
}

/* A path whose setup work refuses the client while it is being stopped */
struct stop_test {
	struct rtrs_srv_path path;
	struct completion running;
};

static void time_is_over(struct work_struct *work)
{
}

static void refuse_late(struct work_struct *work)
{
	struct stop_test *t = container_of(work, struct stop_test, path.setup.work);
	unsigned long until;

	schedule_delayed_work(&t->path.setup.timeout, MAX_JIFFY_OFFSET);
	complete(&t->running);
	while (!READ_ONCE(t->path.setup.stopped))
		usleep_range(1000, 2000);
	until = jiffies + HZ;
	/* If the timeout is canceled while this work runs, restarts it after that. */
	while (delayed_work_pending(&t->path.setup.timeout) && time_before(jiffies, until))
		usleep_range(1000, 2000);
	mod_delayed_work(system_dfl_wq, &t->path.setup.timeout, MAX_JIFFY_OFFSET);
}

static void stopped_handshake_has_no_time_limit(struct kunit *test)
{
	struct stop_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	init_completion(&t->running);
	INIT_WORK(&t->path.setup.work, refuse_late);
	INIT_DELAYED_WORK(&t->path.setup.timeout, time_is_over);
	queue_work(system_dfl_wq, &t->path.setup.work);
	wait_for_completion(&t->running);
	rtrs_srv_setup_stop(&t->path);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&t->path.setup.timeout));
	cancel_delayed_work_sync(&t->path.setup.timeout);
}

/* A path of an upper layer that records the allocation context of its callback. */
struct noio_test {
	struct rtrs_srv srv;
	struct rtrs_srv_sess sess;
	struct rtrs_srv_path path;
	struct rtrs_info_req req;
	unsigned int asked, noio;
};

static int refuse(void *owner, const char *sessname, const struct rtrs_srv_peer *peer)
{
	struct noio_test *t = owner;

	t->asked++;
	t->noio += !!(current->flags & PF_MEMALLOC_NOIO);
	return -EACCES;
}

/* Memory reclaim may depend on the client of the path. */
static void handshake_allocates_without_io(struct kunit *test)
{
	static const struct rtrs_srv_ops ops = { .admit = refuse };
	struct noio_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int flags = current->flags & PF_MEMALLOC_NOIO;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->srv.ops = &ops;
	t->srv.owner = t;
	ratelimit_state_init(&t->srv.log, 10000 * HZ, 0);
	t->sess.srv = &t->srv;
	t->path.sess = &t->sess;
	t->path.path.log = &t->srv.log;
	t->path.state = RTRS_SRV_CLOSING;
	spin_lock_init(&t->path.state_lock);
	mutex_init(&t->path.conns.lock);
	t->path.setup.req.msg = &t->req;
	t->req.type = cpu_to_le16(RTRS_MSG_INFO_REQ);
	strscpy(t->req.name, "s1", sizeof(t->req.name));
	rtrs_srv_setup_work(&t->path.setup.work);
	KUNIT_EXPECT_EQ(test, t->asked, 1);
	KUNIT_EXPECT_EQ(test, t->noio, 1);
	KUNIT_EXPECT_EQ(test, current->flags & PF_MEMALLOC_NOIO, flags);
}

static struct kunit_case rtrs_srv_setup_cases[] = {
	KUNIT_CASE_PARAM(accept_is_on_the_wire_as_written_down, accept_cases_gen_params),
	KUNIT_CASE_PARAM(reject_is_on_the_wire_as_written_down, reject_cases_gen_params),
	KUNIT_CASE_PARAM(info_req_is_checked, name_cases_gen_params),
	KUNIT_CASE(info_req_without_a_name_s_end_is_refused),
	KUNIT_CASE(info_rsp_is_on_the_wire_as_written_down),
	KUNIT_CASE_PARAM(info_rsp_tells_of_no_more_than_is_used, rsp_cases_gen_params),
	KUNIT_CASE_PARAM(chunks_are_dealt_out_to_memory_regions, mr_cases_gen_params),
	KUNIT_CASE_PARAM(memory_of_a_path_is_counted, bytes_cases_gen_params),
	KUNIT_CASE(stopped_handshake_has_no_time_limit),
	KUNIT_CASE(handshake_allocates_without_io),
	{}
};

static struct kunit_suite rtrs_srv_setup_suite = {
	.name = "rtrs-server-setup",
	.test_cases = rtrs_srv_setup_cases,
};

kunit_test_suite(rtrs_srv_setup_suite);
