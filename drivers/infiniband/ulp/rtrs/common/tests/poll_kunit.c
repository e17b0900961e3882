// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of polled connections.
 */
#include <kunit/test.h>

#include "../core.h"

#define NR_WC	256

/*
 * A device with a completion queue. Posted work requests complete at once, and their handlers run
 * when the queue is polled.
 */
struct poll_test {
	struct rtrs_path path;
	struct rtrs_con con;
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_cq cq;
	struct ib_device dev;
	struct ib_cqe cqe;
	struct ib_cqe *wc[NR_WC];
	unsigned int head, tail;
	unsigned int handled, nested;
	unsigned int reposts;
};

static struct poll_test *cq_to_test(struct ib_cq *cq)
{
	return container_of(cq, struct poll_test, cq);
}

static int poll_cq(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	struct poll_test *t = cq_to_test(cq);
	int i;

	for (i = 0; i < nr && t->tail != t->head; i++)
		wc[i] = (struct ib_wc) { .wr_cqe = t->wc[t->tail++ % NR_WC] };
	return i;
}

static void complete_later(struct poll_test *t, struct ib_cqe *cqe)
{
	t->wc[t->head++ % NR_WC] = cqe;
}

/* A handler that polls, as a request submitted by a handler does. */
static void handled(struct ib_cq *cq, struct ib_wc *wc)
{
	struct poll_test *t = cq_to_test(cq);

	t->handled++;
	t->nested += rtrs_con_poll(&t->con);
	if (t->reposts) {
		t->reposts--;
		complete_later(t, &t->cqe);
	}
}

static struct poll_test *poll_init(struct kunit *test)
{
	struct poll_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->dev.port_data = kunit_kcalloc(test, 2, sizeof(*t->dev.port_data), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->dev.port_data);
	t->dev.ops.poll_cq = poll_cq;
	t->cq.device = &t->dev;
	t->cq.poll_ctx = IB_POLL_DIRECT;
	t->qp.device = &t->dev;
	t->qp.real_qp = &t->qp;
	t->qp.send_cq = &t->cq;
	t->qp.recv_cq = &t->cq;
	t->cm_id.qp = &t->qp;
	t->con.path = &t->path;
	t->con.cm_id = &t->cm_id;
	t->con.cq = &t->cq;
	t->con.polled = true;
	t->cqe.done = handled;
	return t;
}

static void completions_are_handled_by_one_at_a_time(struct kunit *test)
{
	struct poll_test *t = poll_init(test);

	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), 0);
	complete_later(t, &t->cqe);
	complete_later(t, &t->cqe);
	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), 2);
	KUNIT_EXPECT_EQ(test, t->handled, 2);
	KUNIT_EXPECT_EQ(test, t->nested, 0);

	/* Another thread polls the connection. */
	complete_later(t, &t->cqe);
	set_bit(0, &t->con.polling);
	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), 0);
	clear_bit(0, &t->con.polling);
	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), 1);
}

static void polling_has_a_budget(struct kunit *test)
{
	struct poll_test *t = poll_init(test);

	t->reposts = 1000;
	complete_later(t, &t->cqe);
	while (t->head < 100)
		complete_later(t, &t->cqe);
	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), RTRS_POLL_BUDGET);
	KUNIT_EXPECT_EQ(test, t->handled, RTRS_POLL_BUDGET);
}

static void others_are_left_to_their_interrupts(struct kunit *test)
{
	struct poll_test *t = poll_init(test);

	t->con.polled = false;
	complete_later(t, &t->cqe);
	KUNIT_EXPECT_EQ(test, rtrs_con_poll(&t->con), 0);
	KUNIT_EXPECT_EQ(test, t->handled, 0);
}

static struct kunit_case rtrs_poll_cases[] = {
	KUNIT_CASE(completions_are_handled_by_one_at_a_time),
	KUNIT_CASE(polling_has_a_budget),
	KUNIT_CASE(others_are_left_to_their_interrupts),
	{}
};

static struct kunit_suite rtrs_poll_suite = {
	.name = "rtrs-poll",
	.test_cases = rtrs_poll_cases,
};

kunit_test_suite(rtrs_poll_suite);
