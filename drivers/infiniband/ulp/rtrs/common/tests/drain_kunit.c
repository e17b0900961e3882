// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of draining a path's queues.
 */
#include <kunit/test.h>

#include "../core.h"

#define NR_CONS	3
#define NR_WC	8

/*
 * A path whose connections have one queue each, for sends or receives. Posted work requests
 * complete in order: when the queue of a polled connection is polled, or by a work item.
 */
struct drain_test {
	struct rtrs_path path;
	struct ib_device dev;
	unsigned int marks;	/* number of posted marks */
	unsigned int at_wait;	/* the same when the first one completed */
	unsigned int broken;
	unsigned int by_driver;
	bool refuse;
	struct drain_con {
		struct rtrs_con con;
		struct rdma_cm_id cm_id;
		struct ib_qp qp;
		struct ib_cq cq;
		struct ib_cqe cqe;
		struct ib_cqe *wc[NR_WC];
		unsigned int head, tail;
		unsigned int handled;
		unsigned int marks;
		unsigned int reposts;
		struct delayed_work work;
	} con[NR_CONS];
};

static struct drain_test *to_test(struct ib_device *dev)
{
	return container_of(dev, struct drain_test, dev);
}

static int poll_cq(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	struct drain_con *c = container_of(cq, struct drain_con, cq);
	struct drain_test *t = to_test(cq->device);
	int i;

	t->at_wait = t->at_wait ?: t->marks;
	for (i = 0; i < nr && c->tail != c->head; i++)
		wc[i] = (struct ib_wc) { .wr_cqe = c->wc[c->tail++ % NR_WC] };
	return i;
}

static void run_handlers(struct work_struct *work)
{
	struct drain_con *c = container_of(to_delayed_work(work), struct drain_con, work);
	struct ib_wc wc;

	while (poll_cq(&c->cq, 1, &wc))
		wc.wr_cqe->done(&c->cq, &wc);
}

static void complete_later(struct drain_con *c, struct ib_cqe *cqe)
{
	c->wc[c->head++ % NR_WC] = cqe;
	if (!c->con.polled)
		schedule_delayed_work(&c->work, HZ / 50);
}

static int post_mark(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct drain_con *c = container_of(qp, struct drain_con, qp);
	struct drain_test *t = to_test(qp->device);

	if (t->refuse)
		return -EIO;
	t->marks++;
	c->marks++;
	complete_later(c, cqe);
	return 0;
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	return post_mark(qp, wr->wr_cqe);
}

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	return post_mark(qp, wr->wr_cqe);
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	to_test(qp->device)->broken += attr->qp_state == IB_QPS_ERR;
	return 0;
}

static void drain_by_driver(struct ib_qp *qp)
{
	to_test(qp->device)->by_driver++;
}

/* Handler of a work request posted before the drain; it may post another one. */
static void handled(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drain_con *c = container_of(cq, struct drain_con, cq);

	c->handled++;
	if (!c->reposts)
		return;
	c->reposts--;
	c->con.sq_posted++;
	c->con.recvs.nr_posts++;
	complete_later(c, &c->cqe);
}

static int drain_init(struct kunit *test)
{
	struct drain_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->dev.port_data = kunit_kcalloc(test, 2, sizeof(*t->dev.port_data), GFP_KERNEL);
	if (!t->dev.port_data)
		return -ENOMEM;
	t->dev.ops.poll_cq = poll_cq;
	t->dev.ops.post_send = post_send;
	t->dev.ops.post_recv = post_recv;
	t->dev.ops.modify_qp = modify_qp;
	t->dev.ops.drain_sq = drain_by_driver;
	t->dev.ops.drain_rq = drain_by_driver;
	INIT_LIST_HEAD(&t->path.cons);
	for (i = 0; i < NR_CONS; i++) {
		struct drain_con *c = &t->con[i];

		INIT_DELAYED_WORK(&c->work, run_handlers);
		c->cq.device = &t->dev;
		c->cq.poll_ctx = IB_POLL_DIRECT;
		c->qp.device = &t->dev;
		c->qp.real_qp = &c->qp;
		c->qp.send_cq = &c->cq;
		c->qp.recv_cq = &c->cq;
		c->cm_id.qp = &c->qp;
		c->con.path = &t->path;
		c->con.cm_id = &c->cm_id;
		c->con.cq = &c->cq;
		c->con.cid = i;
		c->cqe.done = handled;
		spin_lock_init(&c->con.sq_lock);
		list_add_tail(&c->con.entry, &t->path.cons);
	}
	/* No other thread polls this connection. */
	t->con[NR_CONS - 1].con.polled = true;
	return 0;
}

static void drain_exit(struct kunit *test)
{
	struct drain_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < NR_CONS; i++)
		cancel_delayed_work_sync(&t->con[i].work);
}

static const struct drain_case {
	const char *desc;
	void (*drain)(struct rtrs_path *path);
	unsigned int broken;	/* queue pairs moved to the error state */
} drain_cases[] = {
	{ "receives", rtrs_path_drain_recv, NR_CONS },
	{ "sends", rtrs_path_drain_send, 0 },
};

KUNIT_ARRAY_PARAM_DESC(drain_cases, drain_cases, desc);

/* The connections wait for the device concurrently. */
static void marks_of_all_are_posted_first(struct kunit *test)
{
	const struct drain_case *c = test->param_value;
	struct drain_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < NR_CONS; i++)
		complete_later(&t->con[i], &t->con[i].cqe);
	c->drain(&t->path);
	KUNIT_EXPECT_EQ(test, t->broken, c->broken);
	KUNIT_EXPECT_EQ(test, t->at_wait, NR_CONS);
	KUNIT_EXPECT_EQ_MSG(test, t->marks, NR_CONS, "no connection needs a second one");
	for (i = 0; i < NR_CONS; i++)
		KUNIT_EXPECT_EQ(test, t->con[i].handled, 1);
}

static void second_mark_covers_what_handlers_post(struct kunit *test)
{
	const struct drain_case *c = test->param_value;
	struct drain_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < NR_CONS; i++)
		complete_later(&t->con[i], &t->con[i].cqe);
	t->con[1].reposts = 1;
	t->con[2].reposts = 1;
	c->drain(&t->path);
	for (i = 0; i < NR_CONS; i++) {
		KUNIT_EXPECT_EQ(test, t->con[i].marks, i ? 2 : 1);
		KUNIT_EXPECT_EQ(test, t->con[i].handled, i ? 2 : 1);
		KUNIT_EXPECT_EQ(test, t->con[i].tail, t->con[i].head);
	}
}

/* The upper layer may complete requests between two drains. Here, connection 1 posts an answer. */
static void drained_queues_get_no_mark(struct kunit *test)
{
	const struct drain_case *c = test->param_value;
	struct drain_test *t = test->priv;
	unsigned int i;

	c->drain(&t->path);
	KUNIT_EXPECT_EQ(test, t->marks, NR_CONS);
	c->drain(&t->path);
	KUNIT_EXPECT_EQ(test, t->marks, NR_CONS);
	t->con[1].con.sq_posted++;
	t->con[1].con.recvs.nr_posts++;
	complete_later(&t->con[1], &t->con[1].cqe);
	c->drain(&t->path);
	for (i = 0; i < NR_CONS; i++)
		KUNIT_EXPECT_EQ(test, t->con[i].marks, i == 1 ? 2 : 1);
	KUNIT_EXPECT_EQ(test, t->con[1].handled, 1);
}

/* The mark of the other queue is ignored. */
static void both_queues_are_marked(struct kunit *test)
{
	struct drain_test *t = test->priv;

	rtrs_path_drain_recv(&t->path);
	KUNIT_EXPECT_EQ(test, t->marks, NR_CONS);
	rtrs_path_drain_send(&t->path);
	KUNIT_EXPECT_EQ(test, t->marks, 2 * NR_CONS);
}

/* An answer is queued, but its doorbell was not rung. Its handler has to run before the mark's. */
static void mark_stands_behind_what_is_queued(struct kunit *test)
{
	struct drain_test *t = test->priv;
	struct drain_con *c = &t->con[0];
	struct ib_send_wr wr = { .wr_cqe = &c->cqe, .send_flags = IB_SEND_SIGNALED };
	struct rtrs_con *queued = NULL;

	c->con.sq_size = 4;
	c->con.sq_limit = 4;
	KUNIT_ASSERT_EQ(test, rtrs_con_queue(&c->con, &wr, false, &queued), 0);
	KUNIT_EXPECT_EQ(test, t->marks, 0);
	rtrs_path_drain_send(&t->path);
	KUNIT_EXPECT_EQ(test, c->handled, 1);
	KUNIT_EXPECT_EQ(test, c->tail, c->head);
	/* One for the answer and one for the mark */
	KUNIT_EXPECT_EQ(test, c->marks, 2);
}

/* If posting fails, as on a crashed device, the driver drains the queue. */
static void draining_is_left_to_the_driver_if_need_be(struct kunit *test)
{
	const struct drain_case *c = test->param_value;
	struct drain_test *t = test->priv;

	t->refuse = true;
	c->drain(&t->path);
	KUNIT_EXPECT_EQ(test, t->by_driver, NR_CONS);
}

static struct kunit_case rtrs_drain_cases[] = {
	KUNIT_CASE_PARAM(marks_of_all_are_posted_first, drain_cases_gen_params),
	KUNIT_CASE_PARAM(second_mark_covers_what_handlers_post, drain_cases_gen_params),
	KUNIT_CASE_PARAM(drained_queues_get_no_mark, drain_cases_gen_params),
	KUNIT_CASE(both_queues_are_marked),
	KUNIT_CASE(mark_stands_behind_what_is_queued),
	KUNIT_CASE_PARAM(draining_is_left_to_the_driver_if_need_be, drain_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_drain_suite = {
	.name = "rtrs-drain",
	.init = drain_init,
	.exit = drain_exit,
	.test_cases = rtrs_drain_cases,
};

kunit_test_suite(rtrs_drain_suite);
