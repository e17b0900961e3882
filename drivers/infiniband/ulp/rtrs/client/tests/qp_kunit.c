// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the sizes of queue pairs */
#include <kunit/test.h>

#include "../clt.h"

static const struct size_case {
	const char *desc;
	u32 nr_slots;
	unsigned int cid;
	u32 send_wr, min_send_wr, send_reserve, recv_wr, send_sge;
	u32 slot_size;
	bool own_inv;
} size_cases[] = {
	{ "service connection", 0, 0, 126, 64, 0, 126, 1 },
	{ "service connection of a path with slots", 512, 0, 126, 64, 0, 126, 1 },
	{ "one slot", 1, 1, 34, 34, 1, 17, 9 },
	{ "16 slots", 16, 1, 64, 64, 16, 32, 9 },
	{ "as many as never wait", 256, 1, 544, 64, 256, 272, 9 },
	{ "512 slots", 512, 1, 544, 64, 512, 528, 9 },
	{ "the same on the last connection", 512, 4, 544, 64, 512, 528, 9 },
	{ "the same on the first polled connection", 512, 5, 544, 64, 512, 528, 9 },
	{ "2048 slots", 2048, 1, 544, 64, 2048, 2064, 9 },
	{ "the most slots", 65535, 1, 544, 64, 65535, 65551, 9 },
	{ "small slots: service connection", 512, 0, 126, 64, 0, 126, 1, 4096 },
	{ "small slots: one", 1, 1, 34, 34, 0, 17, 1, 4096 },
	{ "small slots: the last that never wait", 111, 1, 254, 64, 0, 127, 1, 4096 },
	{ "small slots: 512", 512, 1, 254, 64, 0, 528, 1, 4096 },
	{ "small slots: 512, over soft-iWARP", 512, 1, 254, 64, 512, 528, 1, 4096, true },
};

KUNIT_ARRAY_PARAM_DESC(size_cases, size_cases, desc);

static void size_follows_from_the_slots(struct kunit *test)
{
	const struct size_case *c = test->param_value;
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_qp_params params;

	KUNIT_ASSERT_NOT_NULL(test, clt);
	KUNIT_ASSERT_NOT_NULL(test, path);
	clt->nr_queues = 4;
	clt->nr_poll_queues = 2;
	path->clt = clt;
	path->neg.nr_slots = c->nr_slots;
	path->neg.slot_size = c->slot_size;
	path->neg.own_inv = c->own_inv;
	path->neg.max_sge = c->slot_size ? 1 : 9;
	rtrs_clt_qp_params(path, c->cid, &params);
	KUNIT_EXPECT_EQ(test, params.send_wr, c->send_wr);
	KUNIT_EXPECT_EQ(test, params.min_send_wr, c->min_send_wr);
	KUNIT_EXPECT_EQ(test, params.send_reserve, c->send_reserve);
	KUNIT_EXPECT_EQ(test, params.recv_wr, c->recv_wr);
	KUNIT_EXPECT_EQ(test, params.send_sge, c->send_sge);
	KUNIT_EXPECT_EQ(test, params.min_send_sge, c->cid && !c->slot_size ? 2 : 1);
	KUNIT_EXPECT_EQ(test, params.nr_io, 4);
	KUNIT_EXPECT_EQ(test, params.poll, c->cid > 4 ? IB_POLL_DIRECT : IB_POLL_SOFTIRQ);
}

static void slots_become_fewer_down_to_the_least(struct kunit *test)
{
	static const u32 want[] = { 500, 250, 125, 62, 31, 16 };
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, clt);
	path->clt = clt;
	path->neg.nr_slots = 1000;
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		KUNIT_EXPECT_TRUE(test, rtrs_clt_fewer_slots(path));
		KUNIT_EXPECT_EQ(test, path->neg.nr_slots, want[i]);
	}
	KUNIT_EXPECT_FALSE(test, rtrs_clt_fewer_slots(path));
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 16);
	path->neg.nr_slots = 1;
	KUNIT_EXPECT_FALSE(test, rtrs_clt_fewer_slots(path));
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 1);
}

/*
 * A path with fewer slots would be refused. The shortage of memory may be over at the next attempt.
 */
static void slots_do_not_become_fewer_than_the_session_has(struct kunit *test)
{
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, clt);
	path->clt = clt;
	clt->limits.queue_depth = 300;
	path->neg.nr_slots = 512;
	KUNIT_EXPECT_TRUE(test, rtrs_clt_fewer_slots(path));
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 300);
	KUNIT_EXPECT_FALSE(test, rtrs_clt_fewer_slots(path));
	KUNIT_EXPECT_EQ(test, path->neg.nr_slots, 300);
}

static struct kunit_case rtrs_clt_qp_cases[] = {
	KUNIT_CASE_PARAM(size_follows_from_the_slots, size_cases_gen_params),
	KUNIT_CASE(slots_become_fewer_down_to_the_least),
	KUNIT_CASE(slots_do_not_become_fewer_than_the_session_has),
	{}
};

static struct kunit_suite rtrs_clt_qp_suite = {
	.name = "rtrs-client-qp",
	.test_cases = rtrs_clt_qp_cases,
};

kunit_test_suite(rtrs_clt_qp_suite);
