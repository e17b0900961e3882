// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of draining a connection.
 */
#include <kunit/test.h>

#include "core.h"

/* A device whose queue pair has a send queue; its handlers may post to it. */
struct drain_test {
	struct rtrs_con con;
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_cq cq;
	struct ib_device dev;
	unsigned int queued;
	unsigned int reposts;
};

/* What the caller waits for is what is queued now; that is what has handlers then. */
static void drain_sq(struct ib_qp *qp)
{
	struct drain_test *t = container_of(qp, struct drain_test, qp);

	t->queued = t->reposts;
	t->reposts = 0;
}

static void drain_covers_what_handlers_post(struct kunit *test)
{
	struct drain_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->dev.ops.drain_sq = drain_sq;
	t->qp.device = &t->dev;
	t->qp.send_cq = &t->cq;
	t->cm_id.qp = &t->qp;
	t->con.cm_id = &t->cm_id;
	t->queued = 1;
	t->reposts = 1;
	rtrs_con_drain_send(&t->con);
	KUNIT_EXPECT_EQ_MSG(test, t->queued, 1, "there is no queue pair");
	t->con.cq = &t->cq;
	rtrs_con_drain_send(&t->con);
	KUNIT_EXPECT_EQ(test, t->queued, 0);
}

static struct kunit_case rtrs_con_cases[] = {
	KUNIT_CASE(drain_covers_what_handlers_post),
	{}
};

static struct kunit_suite rtrs_con_suite = {
	.name = "rtrs-core-con",
	.test_cases = rtrs_con_cases,
};

kunit_test_suite(rtrs_con_suite);
