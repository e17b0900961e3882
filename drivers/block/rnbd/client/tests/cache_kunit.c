// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the loss of writes in a removed disk's write cache.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

enum { RQ_WRITE, RQ_FLUSH_A, RQ_FLUSH_B, NR_RQS };

struct cache_test {
	struct rnbd_clt_sess sess;
	struct rnbd_clt_dev dev;
	struct request *rqs[NR_RQS];
};

static struct request *make_rq(struct kunit *test, enum req_op op)
{
	struct request *rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(struct rnbd_clt_pdu),
					   GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	rq->cmd_flags = op;
	return rq;
}

static int cache_init(struct kunit *test)
{
	struct cache_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	strscpy(t->sess.label, "kunit", sizeof(t->sess.label));
	strscpy(t->dev.path, "disk", sizeof(t->dev.path));
	t->dev.sess = &t->sess;
	t->dev.limits.cache_policy = RNBD_CACHE_WRITEBACK;
	mutex_init(&t->dev.open_lock);
	t->rqs[RQ_WRITE] = make_rq(test, REQ_OP_WRITE);
	t->rqs[RQ_FLUSH_A] = make_rq(test, REQ_OP_FLUSH);
	t->rqs[RQ_FLUSH_B] = make_rq(test, REQ_OP_FLUSH);
	return 0;
}

/* Begin a flush or a write that is sent now. */
static int begin(struct cache_test *t, unsigned int rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(t->rqs[rq]);

	pdu->removals = READ_ONCE(t->dev.removals);
	return rq == RQ_WRITE ? 0 : rnbd_clt_begin_flush(&t->dev, t->rqs[rq]);
}

static void reopen(struct cache_test *t)
{
	mutex_lock(&t->dev.open_lock);
	rnbd_clt_check_cache(&t->dev);
	mutex_unlock(&t->dev.open_lock);
}

/*
 * w: send a write; W: acknowledge the write; a, b: begin flush a or b; A, B: flush a or b succeeds;
 * x, y: flush a or b fails; r: remove the disk; o: reopen the device.
 */
static int step(struct cache_test *t, char c)
{
	switch (c) {
	case 'w':
		return begin(t, RQ_WRITE);
	case 'W':
		rnbd_clt_note_cached(&t->dev, t->rqs[RQ_WRITE]);
		return 0;
	case 'a':
	case 'b':
		return begin(t, c == 'a' ? RQ_FLUSH_A : RQ_FLUSH_B);
	case 'A':
	case 'B':
		rnbd_clt_end_flush(&t->dev, t->rqs[c == 'A' ? RQ_FLUSH_A : RQ_FLUSH_B], 0);
		return 0;
	case 'x':
	case 'y':
		rnbd_clt_end_flush(&t->dev, t->rqs[c == 'x' ? RQ_FLUSH_A : RQ_FLUSH_B], -ENODEV);
		return 0;
	case 'r':
		t->dev.removals++;
		return 0;
	default:
		reopen(t);
		return 0;
	}
}

static void run_steps(struct kunit *test, const char *steps)
{
	for (; *steps; steps++)
		KUNIT_ASSERT_EQ(test, step(test->priv, *steps), 0);
}

/* Let the time pass in which flushes fail after a loss. */
static void let_time_pass(struct cache_test *t)
{
	t->dev.cache_lost_at = ktime_get_seconds() - 11;
}

/*
 * After @steps, flushes fail with @err, at first because of the time. Later the first flush fails
 * unless one has failed before, and then flushes succeed.
 */
static const struct lost_case {
	const char *desc;
	const char *steps;
	int err;
} lost_cases[] = {
	{ "nothing was written", "ro", 0 },
	{ "written", "wWro", -ENODATA },
	{ "written and flushed", "wWaAro", 0 },
	{ "written after the flush", "wWaAwWro", -ENODATA },
	{ "written during the flush", "wWawWAro", -ENODATA },
	{ "the flush has failed", "wWaxro", -ENODATA },
	{ "the flush is in progress", "wWaro", -ENODATA },
	{ "the flush ends with the removal", "wWarxo", -ENODATA },
	{ "a flush in progress that covers nothing", "aro", 0 },
	{ "two flushes, the older one has ended", "wWabAro", -ENODATA },
	{ "two flushes, the newer one has ended", "wWabBro", 0 },
	{ "two flushes and a write between, the older one has ended", "wWawWbAro", -ENODATA },
	{ "two flushes, the newer one has failed", "wWabAyro", -ENODATA },
	{ "acknowledged after the removal", "wrWo", -ENODATA },
	{ "acknowledged after it was opened again", "wroW", -ENODATA },
	{ "sent after it was opened again", "rowW", 0 },
	{ "lost and opened again, not removed", "wWo", 0 },
	{ "lost, opened again and then removed", "wWoro", -ENODATA },
	{ "removed twice", "wWroro", -ENODATA },
};

KUNIT_ARRAY_PARAM_DESC(lost_cases, lost_cases, desc);

static void flush_fails_after_a_loss(struct kunit *test)
{
	const struct lost_case *c = test->param_value;
	struct cache_test *t = test->priv;

	run_steps(test, c->steps);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), c->err);
	rnbd_clt_end_flush(&t->dev, t->rqs[RQ_FLUSH_A], c->err);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_B), c->err);
	rnbd_clt_end_flush(&t->dev, t->rqs[RQ_FLUSH_B], c->err);
	let_time_pass(t);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), 0);
}

/* Requests that waited for the disk are sent when the device is open, however long that took. */
static void time_counts_from_the_reopening(struct kunit *test)
{
	struct cache_test *t = test->priv;

	run_steps(test, "wWro");
	let_time_pass(t);
	rnbd_clt_restart_loss_time(&t->dev);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), -ENODATA);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_B), -ENODATA);
	/* The loss was reported: a lost session does not prolong the time. */
	let_time_pass(t);
	rnbd_clt_restart_loss_time(&t->dev);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), 0);
}

/* However late it comes, a flush that was submitted after the loss fails. */
static void the_first_flush_fails(struct kunit *test)
{
	struct cache_test *t = test->priv;

	run_steps(test, "wWro");
	let_time_pass(t);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), -ENODATA);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_B), 0);
}

/*
 * Flushes that were submitted before the loss fail when they are sent again. The next flush fails
 * as well, as it may have been queued behind one of them.
 */
static void flushes_in_progress_fail(struct kunit *test)
{
	struct cache_test *t = test->priv;

	run_steps(test, "wWabrxyo");
	let_time_pass(t);
	KUNIT_EXPECT_EQ(test, rnbd_clt_begin_flush(&t->dev, t->rqs[RQ_FLUSH_A]), -ENODATA);
	KUNIT_EXPECT_EQ(test, rnbd_clt_begin_flush(&t->dev, t->rqs[RQ_FLUSH_B]), -ENODATA);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), -ENODATA);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), 0);
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_B), 0);
}

static const struct volatile_case {
	const char *desc;
	enum req_op op;
	u32 flags;
	u8 cache_policy;
	int err;
} volatile_cases[] = {
	{ "a write", REQ_OP_WRITE, 0, RNBD_CACHE_WRITEBACK, -ENODATA },
	{ "write zeroes", REQ_OP_WRITE_ZEROES, 0, RNBD_CACHE_WRITEBACK, -ENODATA },
	{ "a discard", REQ_OP_DISCARD, 0, RNBD_CACHE_WRITEBACK, 0 },
	{ "a durable write", REQ_OP_WRITE, RNBD_F_FUA, RNBD_CACHE_WRITEBACK, 0 },
	{ "a write to a disk without a cache", REQ_OP_WRITE, 0, RNBD_CACHE_FUA, 0 },
};

KUNIT_ARRAY_PARAM_DESC(volatile_cases, volatile_cases, desc);

static void only_what_is_in_the_cache_is_lost(struct kunit *test)
{
	const struct volatile_case *c = test->param_value;
	struct cache_test *t = test->priv;
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(t->rqs[RQ_WRITE]);

	t->rqs[RQ_WRITE]->cmd_flags = c->op;
	pdu->msg.rw = cpu_to_le32(c->flags);
	t->dev.limits.cache_policy = c->cache_policy;
	step(t, 'W');
	step(t, 'r');
	step(t, 'o');
	KUNIT_EXPECT_EQ(test, begin(t, RQ_FLUSH_A), c->err);
}

static struct kunit_case rnbd_clt_cache_cases[] = {
	KUNIT_CASE_PARAM(flush_fails_after_a_loss, lost_cases_gen_params),
	KUNIT_CASE(time_counts_from_the_reopening),
	KUNIT_CASE(the_first_flush_fails),
	KUNIT_CASE(flushes_in_progress_fail),
	KUNIT_CASE_PARAM(only_what_is_in_the_cache_is_lost, volatile_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_clt_cache_suite = {
	.name = "rnbd-client-cache",
	.init = cache_init,
	.test_cases = rnbd_clt_cache_cases,
};

kunit_test_suite(rnbd_clt_cache_suite);
