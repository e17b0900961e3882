// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the sizes of queue pairs, and of completion vectors.
 */
#include <kunit/test.h>

#include "../core.h"

/* Arguments: sends, reserve, receives, SGEs. The minimum is 64 sends of two SGEs. */
#define SIZE(send, reserve, recv, sge)					\
	{ .send_wr = send, .send_reserve = reserve, .recv_wr = recv,	\
	  .send_sge = sge, .min_send_wr = 64, .min_send_sge = 2 }
/* The same with rdma_rw contexts, each of which needs three more sends. */
#define SIZE_RDMA(send, reserve, recv, sge, ctxs)			\
	{ .send_wr = send, .send_reserve = reserve, .recv_wr = recv,	\
	  .send_sge = sge, .min_send_wr = 64, .min_send_sge = 2,	\
	  .rdma_ctxs = ctxs }
#define DEV(wr, sge, cqe)						\
	{ .max_qp_wr = wr, .max_send_sge = sge, .max_cqe = cqe }

static const struct fit_case {
	const char *desc;
	struct ib_device_attr attrs;
	struct rtrs_qp_params params;
	bool ok;
	u32 send, sge;
} fit_cases[] = {
	{ "all fits", DEV(4096, 30, 8192), SIZE(544, 512, 1040, 17), true, 544, 17 },
	{ "just so", DEV(1057, 17, 2098), SIZE(544, 512, 1040, 17), true, 544, 17 },
	{ "one send too many", DEV(1056, 17, 4096), SIZE(544, 512, 1040, 17), true,
	  543, 17 },
	{ "one entry too many for the CQ", DEV(4096, 17, 2097),
	  SIZE(544, 512, 1040, 17), true, 543, 17 },
	{ "least sends", DEV(1041, 17, 1618), SIZE(544, 512, 1040, 17), true, 64, 17 },
	{ "one less than the least", DEV(1041, 17, 1617), SIZE(544, 512, 1040, 17) },
	{ "a receive too many", DEV(1040, 17, 4096), SIZE(544, 512, 1040, 17) },
	{ "few SGEs", DEV(4096, 2, 8192), SIZE(544, 512, 1040, 17), true, 544, 2 },
	{ "too few SGEs", DEV(4096, 1, 8192), SIZE(544, 512, 1040, 17) },
	{ "any number", DEV(INT_MAX, INT_MAX, INT_MAX), SIZE(544, 512, 1040, 17), true,
	  544, 17 },
	{ "none", DEV(0, 0, 0), SIZE(544, 512, 1040, 17) },
	{ "contexts for RDMA, just so", DEV(1081, 17, 2122), SIZE_RDMA(544, 512, 1040, 17, 8), true,
	  544, 17 },
	{ "contexts for RDMA, one send too many", DEV(1080, 17, 4096),
	  SIZE_RDMA(544, 512, 1040, 17, 8), true, 543, 17 },
	{ "contexts for RDMA, one entry too many for the CQ", DEV(4096, 17, 2121),
	  SIZE_RDMA(544, 512, 1040, 17, 8), true, 543, 17 },
	{ "contexts for RDMA, one less than the least", DEV(1065, 17, 1641),
	  SIZE_RDMA(544, 512, 1040, 17, 8) },
};

KUNIT_ARRAY_PARAM_DESC(fit_cases, fit_cases, desc);

static void size_is_lowered_to_what_the_device_reports(struct kunit *test)
{
	const struct fit_case *c = test->param_value;
	struct rtrs_qp_params params = c->params;

	KUNIT_ASSERT_EQ(test, rtrs_qp_fit(&params, &c->attrs), c->ok);
	if (!c->ok)
		return;
	KUNIT_EXPECT_EQ(test, params.send_wr, c->send);
	KUNIT_EXPECT_EQ(test, params.send_sge, c->sge);
	KUNIT_EXPECT_EQ(test, params.send_reserve, c->params.send_reserve);
	KUNIT_EXPECT_EQ(test, params.recv_wr, c->params.recv_wr);
}

/* SGEs and sends of all attempts, in order. */
static const u32 tries[][2] = {
	{ 17, 544 }, { 8, 544 }, { 4, 544 }, { 2, 544 }, { 2, 272 }, { 2, 136 }, { 2, 68 },
	{ 2, 64 },
};

static void refused_size_shrinks_to_the_least(struct kunit *test)
{
	struct rtrs_qp_params params = SIZE(544, 512, 1040, 17);
	u32 i;

	params.send_inline = 8;
	KUNIT_EXPECT_TRUE(test, rtrs_qp_shrink(&params));
	KUNIT_EXPECT_EQ(test, params.send_inline, 0);
	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		KUNIT_EXPECT_EQ(test, params.send_sge, tries[i][0]);
		KUNIT_EXPECT_EQ(test, params.send_wr, tries[i][1]);
		KUNIT_EXPECT_EQ(test, rtrs_qp_shrink(&params), i + 1 < ARRAY_SIZE(tries));
	}
	KUNIT_EXPECT_EQ(test, params.send_reserve, 512);
	KUNIT_EXPECT_EQ(test, params.recv_wr, 1040);
}

static void least_size_shrinks_no_more(struct kunit *test)
{
	struct rtrs_qp_params params = SIZE(64, 512, 1040, 2);

	KUNIT_EXPECT_FALSE(test, rtrs_qp_shrink(&params));
	/* The minimum may exceed the current size. */
	params.send_wr = 10;
	params.send_sge = 1;
	KUNIT_EXPECT_FALSE(test, rtrs_qp_shrink(&params));
	KUNIT_EXPECT_EQ(test, params.send_wr, 10);
	KUNIT_EXPECT_EQ(test, params.send_sge, 1);
}

static const struct bytes_case {
	const char *desc;
	struct rtrs_qp_params params;
	u64 send, recv, cq;
} bytes_cases[] = {
	{ "one of each", SIZE(0, 0, 0, 1), 256, 64, 128 },
	{ "32 SGEs", SIZE(1056, 512, 1040, 32), SZ_2M, SZ_128K, SZ_256K },
	{ "17 SGEs", SIZE(544, 512, 1040, 17), SZ_512K, SZ_128K, SZ_256K },
	{ "contexts for RDMA, to the last send", SIZE_RDMA(8167, 0, 63, 7, 8), SZ_2M, SZ_4K,
	  SZ_1M },
	{ "contexts for RDMA, one more", SIZE_RDMA(8168, 0, 63, 7, 8), SZ_4M, SZ_4K, SZ_1M },
	{ "full to the last send", SIZE(8191, 0, 63, 7), SZ_2M, SZ_4K, SZ_1M },
	{ "one more", SIZE(8192, 0, 63, 7), SZ_4M, SZ_4K, SZ_1M },
	{ "more than 32 bits", SIZE(1 << 26, 0, 0, 1), SZ_16G, 64, SZ_8G },
};

KUNIT_ARRAY_PARAM_DESC(bytes_cases, bytes_cases, desc);

static void bytes_are_those_of_the_queues(struct kunit *test)
{
	const struct bytes_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_qp_bytes(&c->params), c->send + c->recv + c->cq +
			c->params.rdma_ctxs * 2560);
}

static const struct vector_case {
	const char *desc;
	u32 nr_vectors, nr_io;
	/* Vectors of connections 0 to 4 of one path, then of another one. */
	u32 want[2][5];
} vector_cases[] = {
	{ "one vector", 1, 4, { { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 } } },
	{ "a connection for each", 4, 4, { { 0, 0, 1, 2, 3 }, { 1, 0, 1, 2, 3 } } },
	{ "two for each", 2, 4, { { 0, 0, 1, 0, 1 }, { 1, 0, 1, 0, 1 } } },
	{ "fewer connections", 8, 4, { { 0, 1, 2, 3, 4 }, { 5, 6, 7, 0, 1 } } },
	{ "more connections, not evenly", 3, 4, { { 0, 1, 2, 0, 1 }, { 2, 0, 1, 2, 0 } } },
};

KUNIT_ARRAY_PARAM_DESC(vector_cases, vector_cases, desc);

static void vectors_are_spread_over_the_device(struct kunit *test)
{
	const struct vector_case *c = test->param_value;
	atomic_t next = ATOMIC_INIT(0);
	u32 p, cid;

	for (p = 0; p < 2; p++)
		for (cid = 0; cid < 5; cid++)
			KUNIT_EXPECT_EQ(test, rtrs_qp_vector(c->nr_vectors, c->nr_io,
							     cid, &next),
					c->want[p][cid]);
}

static struct kunit_case rtrs_qp_cases[] = {
	KUNIT_CASE_PARAM(size_is_lowered_to_what_the_device_reports, fit_cases_gen_params),
	KUNIT_CASE(refused_size_shrinks_to_the_least),
	KUNIT_CASE(least_size_shrinks_no_more),
	KUNIT_CASE_PARAM(bytes_are_those_of_the_queues, bytes_cases_gen_params),
	KUNIT_CASE_PARAM(vectors_are_spread_over_the_device, vector_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_qp_suite = {
	.name = "rtrs-qp",
	.test_cases = rtrs_qp_cases,
};

kunit_test_suite(rtrs_qp_suite);
