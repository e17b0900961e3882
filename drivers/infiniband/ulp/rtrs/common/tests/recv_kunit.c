// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of a connection's receives.
 */
#include <kunit/test.h>

#include "../core.h"

/* More receives than messages fit in a page. */
#define NR_MAX	1200

/* A queue pair that records posted receives in order. */
struct recv_test {
	struct rtrs_path path;
	struct rtrs_con con;
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_pd pd;
	struct ib_device dev;
	struct ib_sge posted[NR_MAX];
	unsigned int head, tail;
	unsigned int chains, wrong, early;
	int err, err_repost;
};

static void receive(struct recv_test *t);

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct recv_test *t = container_of(qp, struct recv_test, qp);
	static const struct ib_sge none;

	if (t->err)
		return t->err;
	for (; wr; wr = wr->next) {
		t->wrong += wr->wr_cqe != &t->con.recvs.cqe || t->head - t->tail == NR_MAX;
		t->posted[t->head++ % NR_MAX] = wr->num_sge ? *wr->sg_list : none;
	}
	if (t->chains++)
		return 0;
	/* Messages are handled before the post of their receives returns. */
	for (; t->early; t->early--)
		receive(t);
	return 0;
}

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Receives a message, and checks that it is read where the device stored it. */
static void receive(struct recv_test *t)
{
	const struct ib_sge *sge = &t->posted[t->tail++ % NR_MAX];
	const union rtrs_recv_msg *msg = rtrs_con_recv_msg(&t->con);

	t->wrong += sge->length != sizeof(*msg) || sge->lkey != 0x1234 ||
		    sge->addr != (uintptr_t)msg;
	t->err_repost = rtrs_con_repost(&t->con);
}

static struct recv_test *recv_init(struct kunit *test)
{
	struct recv_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	if (!ib_uses_virt_dma(&t->dev))
		kunit_skip(test, "needs CONFIG_INFINIBAND_VIRT_DMA");
	t->dev.ops.post_recv = post_recv;
	t->qp.device = &t->dev;
	t->cm_id.qp = &t->qp;
	t->pd.local_dma_lkey = 0x1234;
	t->path.dev = &t->dev;
	t->path.pd = &t->pd;
	t->con.path = &t->path;
	t->con.cm_id = &t->cm_id;
	return t;
}

static const struct nr_case {
	u32 nr;
} nr_cases[] = { { 16 }, { 17 }, { 31 }, { 32 }, { 33 }, { 48 }, { 63 }, { 512 }, { 1100 } };

static void nr_desc(const struct nr_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u receives", c->nr);
}

KUNIT_ARRAY_PARAM(nr, nr_cases, nr_desc);

/* Checks that each posted receive has its own memory, in single pages. */
static void expect_own_memory(struct kunit *test, const struct recv_test *t)
{
	const struct rtrs_recvs *r = &t->con.recvs;
	unsigned long *in_use = kunit_kcalloc(test, BITS_TO_LONGS(NR_MAX), sizeof(long),
					      GFP_KERNEL);
	unsigned int i;
	u64 addr;
	u32 page;

	KUNIT_ASSERT_NOT_NULL(test, in_use);
	KUNIT_EXPECT_EQ(test, t->wrong, 0);
	KUNIT_EXPECT_EQ(test, r->msgs.nr_groups, DIV_ROUND_UP(r->nr * 8, PAGE_SIZE));
	for (i = t->tail; i != t->head; i++) {
		addr = t->posted[i % NR_MAX].addr;
		for (page = 0; page < r->msgs.nr_groups; page++)
			if (addr - r->msgs.dma[page] < PAGE_SIZE)
				break;
		KUNIT_ASSERT_LT(test, page, r->msgs.nr_groups);
		KUNIT_EXPECT_EQ(test, addr % sizeof(union rtrs_recv_msg), 0);
		KUNIT_EXPECT_FALSE(test, test_and_set_bit((page * PAGE_SIZE + addr % PAGE_SIZE) / 8,
							  in_use));
	}
}

static void messages_are_those_of_their_receives(struct kunit *test)
{
	const struct nr_case *c = test->param_value;
	struct recv_test *t = recv_init(test);
	u32 i;

	KUNIT_ASSERT_EQ(test, rtrs_con_start_recvs(&t->con, c->nr, true, done), 0);
	KUNIT_EXPECT_EQ(test, t->head, c->nr);
	KUNIT_EXPECT_TRUE(test, t->con.recvs.cqe.done == done);
	for (i = 0; i < 5 * c->nr; i++) {
		receive(t);
		KUNIT_ASSERT_EQ(test, t->wrong, 0);
		KUNIT_ASSERT_EQ(test, t->err_repost, 0);
		KUNIT_ASSERT_GE(test, t->head - t->tail, c->nr - RTRS_RECV_BATCH + 1);
		KUNIT_ASSERT_LE(test, t->head - t->tail, c->nr);
	}
	expect_own_memory(test, t);
	rtrs_con_free_recvs(&t->con);
	KUNIT_EXPECT_EQ(test, t->con.recvs.msgs.nr, 0);
}

/* The peer of a connected queue pair may send before all receives are posted. */
static void messages_may_come_at_once(struct kunit *test)
{
	const struct nr_case *c = test->param_value;
	struct recv_test *t = recv_init(test);
	u32 i;

	t->early = c->nr;
	KUNIT_ASSERT_EQ(test, rtrs_con_start_recvs(&t->con, c->nr, true, done), 0);
	for (i = 0; i < 2 * c->nr; i++)
		receive(t);
	KUNIT_EXPECT_EQ(test, t->err_repost, 0);
	expect_own_memory(test, t);
	rtrs_con_free_recvs(&t->con);
}

static void receives_of_immediate_data_are_empty(struct kunit *test)
{
	struct recv_test *t = recv_init(test);
	u32 i;

	KUNIT_ASSERT_EQ(test, rtrs_con_start_recvs(&t->con, 48, false, done), 0);
	KUNIT_EXPECT_EQ(test, t->head, 48);
	KUNIT_EXPECT_EQ(test, t->chains, 1);
	for (i = 0; i < 48; i++)
		KUNIT_EXPECT_EQ(test, t->posted[i].length, 0);
	for (i = 0; i < 15; i++)
		KUNIT_EXPECT_EQ(test, rtrs_con_repost(&t->con), 0);
	KUNIT_EXPECT_EQ(test, t->chains, 1);
	KUNIT_EXPECT_EQ(test, rtrs_con_repost(&t->con), 0);
	KUNIT_EXPECT_EQ(test, t->chains, 2);
	KUNIT_EXPECT_EQ(test, t->head, 64);
	rtrs_con_free_recvs(&t->con);
}

static void a_queue_pair_that_takes_none_is_told(struct kunit *test)
{
	struct recv_test *t = recv_init(test);
	u32 i;

	t->err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, rtrs_con_start_recvs(&t->con, 32, true, done), -ENOMEM);
	rtrs_con_free_recvs(&t->con);
	/* A second call has no effect. */
	rtrs_con_free_recvs(&t->con);

	/* Posted receives are still handled, but nothing is posted after a failed post. */
	t->err = 0;
	KUNIT_ASSERT_EQ(test, rtrs_con_start_recvs(&t->con, 40, true, done), 0);
	for (i = 0; i < 31; i++)
		receive(t);
	KUNIT_EXPECT_EQ(test, t->err_repost, 0);
	t->err = -EINVAL;
	receive(t);
	KUNIT_EXPECT_EQ(test, t->err_repost, -EINVAL);
	t->err = 0;
	KUNIT_ASSERT_EQ(test, t->head - t->tail, 24);
	for (i = 0; i < 24; i++)
		receive(t);
	KUNIT_EXPECT_EQ(test, t->err_repost, 0);
	KUNIT_EXPECT_EQ(test, t->head, t->tail);
	KUNIT_EXPECT_EQ(test, t->wrong, 0);
	rtrs_con_free_recvs(&t->con);
}

static struct kunit_case rtrs_recv_cases[] = {
	KUNIT_CASE_PARAM(messages_are_those_of_their_receives, nr_gen_params),
	KUNIT_CASE_PARAM(messages_may_come_at_once, nr_gen_params),
	KUNIT_CASE(receives_of_immediate_data_are_empty),
	KUNIT_CASE(a_queue_pair_that_takes_none_is_told),
	{}
};

static struct kunit_suite rtrs_recv_suite = {
	.name = "rtrs-recv",
	.test_cases = rtrs_recv_cases,
};

kunit_test_suite(rtrs_recv_suite);
