// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the accounting of a connection's send queue, and of its messages. */
#include <kunit/test.h>

#include "../core.h"

/* A device whose queue pair accepts all posted work requests. */
struct post_test {
	struct rtrs_path path;
	struct rtrs_con con;
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_device dev;
	unsigned int posted;
	enum ib_wr_opcode opcode;
	int flags;
	struct ib_sge sge;
	u8 body[8];
};

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct post_test *t = container_of(qp, struct post_test, qp);

	for (; wr; wr = wr->next) {
		t->posted++;
		t->opcode = wr->opcode;
		t->flags = wr->send_flags;
		t->sge = (struct ib_sge) {};
		if (wr->num_sge)
			t->sge = *wr->sg_list;
		if (wr->send_flags & IB_SEND_INLINE && t->sge.length == sizeof(t->body))
			memcpy(t->body, (void *)(uintptr_t)t->sge.addr, sizeof(t->body));
	}
	return 0;
}

static struct post_test *post_init(struct kunit *test)
{
	struct rtrs_qp_params params = { .send_wr = 4, .send_reserve = 2 };
	struct post_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	INIT_LIST_HEAD(&t->path.cons);
	t->dev.ops.post_send = post_send;
	t->qp.device = &t->dev;
	t->cm_id.qp = &t->qp;
	t->con.cm_id = &t->cm_id;
	t->con.path = &t->path;
	rtrs_con_init_sq(&t->con, &params);
	return t;
}

/* As on the server's connection 0, where FENCED and heartbeats use the reserve. */
static void answers_leave_a_reserve(struct kunit *test)
{
	struct ib_send_wr wr[3] = { { .next = &wr[1] }, { .next = &wr[2] } };
	struct post_test *t = post_init(test);
	struct rtrs_con *queued = NULL;

	spin_lock_irq(&t->con.sq_lock);
	KUNIT_EXPECT_TRUE(test, rtrs_con_has_room(&t->con, 4));
	KUNIT_EXPECT_FALSE(test, rtrs_con_has_room(&t->con, 5));
	rtrs_con_post_locked(&t->con, &wr[0], 3);
	KUNIT_EXPECT_TRUE(test, rtrs_con_has_room(&t->con, 1));
	KUNIT_EXPECT_FALSE(test, rtrs_con_has_room(&t->con, 2));
	spin_unlock_irq(&t->con.sq_lock);
	KUNIT_EXPECT_EQ(test, t->posted, 3);

	rtrs_con_answer_imm(&t->con, 0);
	KUNIT_EXPECT_EQ(test, t->posted, 4);
	/* Only the reserve is left. */
	rtrs_con_answer_imm(&t->con, 0);
	KUNIT_EXPECT_EQ(test, t->posted, 4);
	KUNIT_EXPECT_EQ(test, rtrs_con_queue(&t->con, &wr[2], true, &queued), -EBUSY);
	KUNIT_EXPECT_EQ(test, rtrs_con_post_imm(&t->con, 0), 0);
	KUNIT_EXPECT_EQ(test, rtrs_con_post_imm(&t->con, 0), 0);
	KUNIT_EXPECT_EQ(test, rtrs_con_post_imm(&t->con, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, t->posted, 6);
	KUNIT_EXPECT_EQ(test, t->con.sq_posted, 6);
	KUNIT_EXPECT_EQ_MSG(test, t->con.sq_queued, 0, "none of it was a request");
}

static void ends(struct rtrs_path *path, int err, const char *why)
{
}

/*
 * Over iWARP, a completed send was only accepted by TCP, but a completed read was answered by the
 * peer.
 */
static void without_immediate_data_messages_are_sent(struct kunit *test)
{
	static const u8 body[] = { 7, 0, 0, 0, 0x21, 0x43, 0x65, 0x87 };
	struct ib_wc wc = { .status = IB_WC_SUCCESS };
	struct post_test *t = post_init(test);
	struct ib_pd pd = { .local_dma_lkey = 0x1234 };

	t->path.no_imm = true;
	t->path.pd = &pd;
	t->path.error = ends;
	KUNIT_ASSERT_EQ(test, rtrs_con_post_imm(&t->con, 0x87654321), 0);
	KUNIT_EXPECT_EQ(test, t->opcode, IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, t->flags, IB_SEND_INLINE);
	KUNIT_EXPECT_EQ(test, memcmp(t->body, body, sizeof(body)), 0);
	memset(t->body, 0, sizeof(t->body));
	rtrs_con_answer_imm(&t->con, 0x87654321);
	KUNIT_EXPECT_EQ(test, memcmp(t->body, body, sizeof(body)), 0);

	KUNIT_ASSERT_EQ(test, rtrs_con_probe(&t->con), 0);
	KUNIT_EXPECT_EQ(test, t->opcode, IB_WR_RDMA_READ);
	KUNIT_EXPECT_EQ(test, t->sge.length, 0);
	KUNIT_EXPECT_EQ_MSG(test, t->sge.lkey, 0, "the peer is told the key of all memory");
	wc.wr_cqe = &t->con.sq_cqe;
	t->con.sq_cqe.done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, t->con.moved, 0);
	wc.wr_cqe = &t->con.probe_cqe;
	wc.opcode = IB_WC_RDMA_READ;
	t->con.probe_cqe.done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, t->con.moved, 1);
	/* The completion entry of a send's data */
	wc.opcode = IB_WC_RDMA_WRITE;
	KUNIT_EXPECT_FALSE(test, rtrs_con_wc_failed(&t->con, &wc, "sending data"));
	KUNIT_EXPECT_EQ(test, t->con.moved, 1);
	wc.opcode = IB_WC_RECV;
	KUNIT_EXPECT_FALSE(test, rtrs_con_wc_failed(&t->con, &wc, "receive"));
	KUNIT_EXPECT_EQ(test, t->con.moved, 2);
	/* Over other devices, the peer has acknowledged both. */
	t->path.no_imm = false;
	wc.wr_cqe = &t->con.sq_cqe;
	wc.opcode = IB_WC_SEND;
	t->con.sq_cqe.done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, t->con.moved, 3);
}

static unsigned int rooms_seen;

/* Called when entries become free, and counts calls with room. */
static void sq_room(struct rtrs_con *con)
{
	spin_lock_irq(&con->sq_lock);
	rooms_seen += rtrs_con_has_room(con, 1);
	spin_unlock_irq(&con->sq_lock);
}

static void completions_give_room(struct kunit *test)
{
	struct post_test *t = post_init(test);
	struct rtrs_con *con = &t->con;
	struct rtrs_con *queued = NULL;
	struct ib_send_wr wr = { };
	unsigned int i;

	con->sq_room = sq_room;
	rooms_seen = 0;
	/* The counters wrap around. */
	con->sq_done = U32_MAX - 1;
	con->sq_posted = con->sq_done;
	con->sq_limit = con->sq_done + con->sq_size;
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rtrs_con_queue(con, &wr, true, &queued), 0);
	KUNIT_EXPECT_EQ(test, rtrs_con_queue(con, &wr, true, &queued), -EBUSY);
	rtrs_con_put_wr(con);
	KUNIT_EXPECT_EQ(test, rooms_seen, 1);
	KUNIT_EXPECT_EQ(test, rtrs_con_queue(con, &wr, true, &queued), 0);
	KUNIT_EXPECT_EQ(test, rtrs_con_queue(con, &wr, true, &queued), -EBUSY);
	for (i = 0; i < 4; i++)
		rtrs_con_put_wr(con);
	KUNIT_EXPECT_EQ(test, rooms_seen, 5);
	KUNIT_EXPECT_EQ(test, con->sq_done, con->sq_posted);
	KUNIT_EXPECT_EQ(test, con->sq_queued, 5);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, rtrs_con_post(con, &wr), 0);
	KUNIT_EXPECT_EQ(test, rtrs_con_post(con, &wr), -EBUSY);
	KUNIT_EXPECT_EQ(test, t->posted, 11);
}

/* The device of a crashed host still acknowledges probes, so rtrs_hb_probe_now() sends none. */
static void trial_begins_without_probes(struct kunit *test)
{
	struct post_test *t = post_init(test);

	t->con.cid = 1;
	t->con.sq_posted = 1;
	t->con.moved = 5;
	t->con.watch.still = true;
	rtrs_hb_forget_moves(&t->path);
	KUNIT_EXPECT_EQ(test, t->posted, 0);
	KUNIT_EXPECT_EQ(test, t->con.watch.moved, 5);
	KUNIT_EXPECT_FALSE(test, t->con.watch.still);
	/* The connection has made no progress since, and would otherwise be probed. */
	t->con.watch.still = true;
	rtrs_hb_forget_moves(&t->path);
	KUNIT_EXPECT_EQ(test, t->posted, 0);
	KUNIT_EXPECT_TRUE(test, t->con.watch.still);
}

static int last_err;

static void take_err(struct rtrs_path *path, int err, const char *why)
{
	last_err = err;
}

/* Frequent errors of one path don't suppress messages about another one. */
static void errors_of_a_path_have_a_limit(struct kunit *test)
{
	struct rtrs_path *path = kunit_kcalloc(test, 2, sizeof(*path), GFP_KERNEL);
	struct rtrs_con *con = kunit_kcalloc(test, 2, sizeof(*con), GFP_KERNEL);
	struct ratelimit_state log[2];
	struct ib_wc wc = { .status = IB_WC_LOC_LEN_ERR };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, con);
	for (i = 0; i < 2; i++) {
		ratelimit_state_init(&log[i], 1000 * HZ, 2);
		path[i].log = &log[i];
		path[i].error = take_err;
		con[i].path = &path[i];
	}
	KUNIT_EXPECT_TRUE(test, rtrs_con_wc_failed(&con[0], &wc, "test"));
	KUNIT_EXPECT_TRUE(test, rtrs_con_wc_failed(&con[0], &wc, "test"));
	KUNIT_EXPECT_TRUE(test, rtrs_con_wc_failed(&con[1], &wc, "test"));
	KUNIT_EXPECT_EQ(test, last_err, -ECONNRESET);
	KUNIT_EXPECT_FALSE(test, __ratelimit(&log[0]));
	KUNIT_EXPECT_TRUE(test, __ratelimit(&log[1]));
}

static struct kunit_case rtrs_con_cases[] = {
	KUNIT_CASE(answers_leave_a_reserve),
	KUNIT_CASE(without_immediate_data_messages_are_sent),
	KUNIT_CASE(completions_give_room),
	KUNIT_CASE(trial_begins_without_probes),
	KUNIT_CASE(errors_of_a_path_have_a_limit),
	{}
};

static struct kunit_suite rtrs_con_suite = {
	.name = "rtrs-core-con",
	.test_cases = rtrs_con_cases,
};

kunit_test_suite(rtrs_con_suite);
