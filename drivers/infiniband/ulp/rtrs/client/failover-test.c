// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of what becomes of requests that wait: which ones end when there is no
 * path, over which path a dead one is fenced, how they leave a dead path.
 */
#include <kunit/test.h>

#include "clt.h"

#define NR_IOS	64

struct failover_test {
	struct workqueue_struct *sess_wq;
	struct rtrs_clt clt;
	struct rtrs_clt_path path;
	struct rtrs_clt_io io[NR_IOS];
	unsigned int asked;
	unsigned int ended;
	unsigned int ended_wrong;
	int err;	/* of the last one that ended */
};

/* The later half is not to wait any longer. */
static int late_ones_fail(struct rtrs_clt_io *io)
{
	struct failover_test *t = (void *)io->msg;

	t->asked++;
	return io->slot < NR_IOS / 2 ? -EAGAIN : -EIO;
}

static void io_done(struct rtrs_clt_io *io, int err)
{
	struct failover_test *t = (void *)io->msg;

	t->ended++;
	t->err = err;
	/* Its owner may do anything here, such as park another one. */
	if (err == -EIO && io->slot >= NR_IOS / 2 &&
	    spin_trylock(&t->clt.failover.lock))
		spin_unlock(&t->clt.failover.lock);
	else
		t->ended_wrong++;
}

static int failover_init(struct kunit *test)
{
	struct failover_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	if (!t)
		return -ENOMEM;
	test->priv = t;
	/* The suites may run before the module has its own. */
	t->sess_wq = rtrs_clt_sess_wq;
	rtrs_clt_sess_wq = system_dfl_wq;
	rtrs_clt_failover_init(&t->clt);
	rtrs_clt_fence_init(&t->clt);
	t->clt.failover.retry_ok = late_ones_fail;
	t->path.clt = &t->clt;
	t->path.sm.state = RTRS_CLT_CONNECTING;
	init_waitqueue_head(&t->path.sm.wait);
	for (i = 0; i < NR_IOS; i++) {
		t->io[i].slot = i;
		t->io[i].msg = t;
		t->io[i].done = io_done;
	}
	return 0;
}

static void failover_exit(struct kunit *test)
{
	struct failover_test *t = test->priv;

	cancel_delayed_work_sync(&t->clt.fences.work);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	rtrs_clt_sess_wq = t->sess_wq;
}

static unsigned int nr_ios(const struct list_head *ios)
{
	struct list_head *entry;
	unsigned int nr = 0;

	list_for_each(entry, ios)
		nr++;
	return nr;
}

/* However many there are, interrupts are off for one look at each. */
static void each_waiting_request_is_asked_for_once(struct kunit *test)
{
	struct failover_test *t = test->priv;
	struct rtrs_clt_fence fence = { .id = 1 };
	unsigned int i;

	for (i = 0; i < NR_IOS; i++)
		KUNIT_ASSERT_EQ(test, rtrs_clt_park(&t->clt, &t->io[i]), 0);
	INIT_LIST_HEAD(&fence.ios);
	list_add(&fence.entry, &t->clt.fences.list);
	for (i = 0; i < NR_IOS; i += 4)
		list_move(&t->io[i].priv.entry, &fence.ios);

	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ_MSG(test, t->asked, 0, "there is a path");

	t->clt.failover.down = true;
	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ(test, t->asked, NR_IOS);
	KUNIT_EXPECT_EQ(test, t->ended, NR_IOS / 2);
	KUNIT_EXPECT_EQ(test, t->ended_wrong, 0);
	KUNIT_EXPECT_EQ(test, nr_ios(&fence.ios), NR_IOS / 8);
	KUNIT_EXPECT_EQ(test, nr_ios(&t->clt.failover.parked), NR_IOS / 8 * 3);
}

static const struct can_case {
	const char *desc;
	bool granted;
	u32 sess_id;
	u32 features;
	u32 path_sess_id;
	bool can;
	u8 srv;
	u8 path_srv;
} can_cases[] = {
	{ "the same session", true, 7, RTRS_FEATURE_FENCE, 7, true },
	{ "another session", true, 7, RTRS_FEATURE_FENCE, 8, false },
	{ "sessions without IDs", true, 0, RTRS_FEATURE_FENCE, 0, true },
	{ "an ID where there was none", true, 0, RTRS_FEATURE_FENCE, 8, false },
	{ "no ID any more", true, 7, RTRS_FEATURE_FENCE, 0, false },
	{ "not over this path", true, 7, 0, 7, false },
	{ "not granted for the dead path", false, 7, RTRS_FEATURE_FENCE, 7, false },
	{ "another session of the same server", true, 7, RTRS_FEATURE_FENCE, 8, true, 1, 1 },
	{ "another server", true, 7, RTRS_FEATURE_FENCE, 8, false, 1, 2 },
	{ "another server, by chance the same ID", true, 7, RTRS_FEATURE_FENCE, 7, false, 1, 2 },
	{ "a server without a UUID in its place", true, 7, RTRS_FEATURE_FENCE, 8, false, 1, 0 },
	{ "a server with a UUID in its place", true, 7, RTRS_FEATURE_FENCE, 8, false, 0, 1 },
	{ "the same server, no longer with fencing", true, 7, 0, 0, false, 1, 1 },
	{ "the same server, not granted for the dead path", false, 7, RTRS_FEATURE_FENCE, 8,
	  false, 1, 1 },
};

KUNIT_ARRAY_PARAM_DESC(can_cases, can_cases, desc);

static void path_is_fenced_by_the_server_that_knew_it(struct kunit *test)
{
	const struct can_case *c = test->param_value;
	struct rtrs_clt_fence fence = { .granted = c->granted, .sess_id = c->sess_id };
	struct failover_test *t = test->priv;

	t->path.neg.features = c->features;
	t->path.neg.sess_id = c->path_sess_id;
	fence.srv_uuid.b[0] = c->srv;
	t->path.neg.srv_uuid.b[0] = c->path_srv;
	KUNIT_EXPECT_EQ(test, rtrs_clt_can_fence(&t->path, &fence), c->can);
}

/* Its requests go on when the dead path's time has come, and nobody is asked. */
static void another_server_is_not_asked(struct kunit *test)
{
	struct rtrs_clt_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	struct failover_test *t = test->priv;
	unsigned long until = jiffies + HZ / 10;

	KUNIT_ASSERT_NOT_NULL(test, fence);
	fence->id = 1;
	fence->sess_id = 7;
	fence->granted = true;
	fence->until = until;
	INIT_LIST_HEAD(&fence->ios);
	list_add(&t->io[0].priv.entry, &fence->ios);
	list_add(&fence->entry, &t->clt.fences.list);
	t->clt.fences.unfenced_ms = 3600000;
	t->path.neg.features = RTRS_FEATURE_FENCE;
	t->path.neg.sess_id = 8;
	KUNIT_EXPECT_EQ(test, rtrs_clt_fence_via(&t->path), 0);
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, until));
	KUNIT_EXPECT_EQ(test, t->path.fence.asked, 0);
	KUNIT_EXPECT_FALSE(test, rtrs_clt_unfenced(&t->clt));
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	KUNIT_EXPECT_EQ(test, nr_ios(&t->clt.failover.parked), 1);
}

/* The path has neither a device nor memory regions to give back before that. */
static void requests_leave_a_path_that_is_drained(struct kunit *test)
{
	struct failover_test *t = test->priv;
	struct rtrs_clt_slot *slot[2];
	struct rtrs_clt_con *con;
	LIST_HEAD(ios);
	int i;

	con = kunit_kzalloc(test, sizeof(*con), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, con);
	rtrs_clt_slots_reclaim(&t->path, &ios);
	KUNIT_EXPECT_TRUE(test, list_empty(&ios));

	for (i = 0; i < 2; i++) {
		slot[i] = kunit_kzalloc(test, sizeof(*slot[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, slot[i]);
		slot[i]->con = con;
	}
	t->path.slots = slot;
	t->path.neg.nr_slots = 2;
	t->path.stats.cpu = alloc_percpu(struct rtrs_clt_stats);
	KUNIT_ASSERT_NOT_NULL(test, (void *)t->path.stats.cpu);
	slot[1]->io = &t->io[1];
	rtrs_clt_slots_reclaim(&t->path, &ios);
	free_percpu(t->path.stats.cpu);
	KUNIT_EXPECT_EQ(test, nr_ios(&ios), 1);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry_or_null(&ios, struct rtrs_clt_io,
							   priv.entry), &t->io[1]);
	KUNIT_EXPECT_EQ_MSG(test, t->path.stats.reclaimed, 1, "given back without an answer");
	KUNIT_EXPECT_NULL(test, slot[1]->io);
}

/* What waits: nothing, a request for a path, one for a fence */
enum { NOTHING, PARKED, FENCED };

static const struct lost_case {
	const char *desc;
	bool answered;
	int waits;
	bool restarts;
} lost_cases[] = {
	{ "a path has answered", true, NOTHING, true },
	{ "a path has answered, a request waits for one", true, PARKED, true },
	{ "a path has answered, a request waits for a fence", true, FENCED, true },
	{ "no answer, nothing waits", false, NOTHING, true },
	{ "no answer, a request waits for a path", false, PARKED, false },
	{ "no answer, a request waits for a fence", false, FENCED, false },
};

KUNIT_ARRAY_PARAM_DESC(lost_cases, lost_cases, desc);

static void time_limit_begins_again_after_an_answer(struct kunit *test)
{
	const struct lost_case *c = test->param_value;
	struct rtrs_clt_fence fence = { .id = 1 };
	struct failover_test *t = test->priv;
	unsigned long before = jiffies - 10 * HZ;

	mutex_init(&t->clt.lock);
	INIT_LIST_HEAD(&fence.ios);
	t->clt.failover.timeout = 3600;
	t->clt.failover.down_since = before;
	t->clt.failover.answered = c->answered;
	if (c->waits == PARKED)
		KUNIT_ASSERT_EQ(test, rtrs_clt_park(&t->clt, &t->io[0]), 0);
	if (c->waits == FENCED)
		list_add(&fence.entry, &t->clt.fences.list);
	mutex_lock(&t->clt.lock);
	rtrs_clt_all_paths_lost(&t->clt);
	mutex_unlock(&t->clt.lock);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_delayed_work_sync(&t->clt.failover.work);
	INIT_LIST_HEAD(&t->clt.fences.list);
	KUNIT_EXPECT_EQ(test, t->clt.failover.down_since != before, c->restarts);
}

/* One that waited when a path came back, or one that was sent later */
static void time_limit_is_not_that_of_an_older_loss(struct kunit *test)
{
	struct failover_test *t = test->priv;
	unsigned long before = jiffies - 10 * HZ;

	mutex_init(&t->clt.lock);
	t->clt.failover.timeout = 3600;
	t->clt.failover.down_since = before;
	mutex_lock(&t->clt.lock);
	t->clt.nr_up = 1;
	rtrs_clt_first_path_up(&t->clt);
	t->clt.nr_up = 0;
	KUNIT_EXPECT_EQ(test, rtrs_clt_park(&t->clt, &t->io[0]), 0);
	rtrs_clt_all_paths_lost(&t->clt);
	KUNIT_EXPECT_NE(test, t->clt.failover.down_since, before);

	t->clt.failover.down_since = before;
	t->clt.nr_up = 1;
	rtrs_clt_first_path_up(&t->clt);
	t->clt.nr_up = 0;
	rtrs_clt_all_paths_lost(&t->clt);
	KUNIT_EXPECT_EQ(test, t->clt.failover.down_since, before);
	mutex_unlock(&t->clt.lock);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_delayed_work_sync(&t->clt.failover.work);
}

static const struct loss_case {
	const char *desc;
	int timeout;		/* seconds */
	unsigned int nr;	/* paths that die under it, one after the other */
	unsigned int first;	/* seconds since the first of them did */
	bool ends;
} loss_cases[] = {
	{ "seven paths, long ago", 30, 7, 3600, false },
	{ "eight, longer ago than it may wait", 30, 8, 31, true },
	{ "eight, not as long ago", 30, 8, 29, false },
	{ "nine", 30, 9, 31, true },
	{ "eight, all of them now", 30, 8, 0, false },
	{ "eight, and it may not wait", 0, 8, 0, true },
	{ "seven, and it may not wait", 0, 7, 0, false },
	{ "any number, and it may wait for ever", -1, 1000, 3600, false },
};

KUNIT_ARRAY_PARAM_DESC(loss_cases, loss_cases, desc);

/* Each path gives back what was on it, to be sent again; then there may be another one. */
static void request_ends_after_eight_paths(struct kunit *test)
{
	const struct loss_case *c = test->param_value;
	struct failover_test *t = test->priv;
	struct rtrs_clt_io *io = &t->io[0];
	struct rtrs_clt_fence *fence;
	unsigned int i;
	LIST_HEAD(ios);

	mutex_init(&t->clt.lock);
	t->clt.failover.timeout = c->timeout;
	t->clt.fences.unfenced_ms = 3600000;
	for (i = 0; i < c->nr; i++) {
		fence = kzalloc(sizeof(*fence), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, fence);
		INIT_LIST_HEAD(&fence->ios);
		list_add(&io->priv.entry, &ios);
		t->path.fence.own = fence;
		rtrs_clt_failover_path(&t->path, &ios);
		cancel_delayed_work_sync(&t->clt.fences.work);
		if (!i)
			io->priv.first_failure -= c->first * HZ;
		INIT_LIST_HEAD(&ios);
		list_del(&fence->entry);
		kfree(fence);
	}
	KUNIT_EXPECT_EQ(test, t->path.stats.failed_over, c->nr);

	list_add(&io->priv.entry, &t->clt.failover.parked);
	rtrs_clt_resume(&t->clt);
	flush_delayed_work(&t->clt.failover.resume_work);
	KUNIT_EXPECT_EQ(test, t->ended, c->ends);
	KUNIT_EXPECT_EQ(test, t->err, c->ends ? -EHOSTUNREACH : 0);
	KUNIT_EXPECT_EQ(test, nr_ios(&t->clt.failover.parked), !c->ends);
}

static struct kunit_case rtrs_clt_failover_cases[] = {
	KUNIT_CASE(each_waiting_request_is_asked_for_once),
	KUNIT_CASE_PARAM(request_ends_after_eight_paths, loss_cases_gen_params),
	KUNIT_CASE_PARAM(path_is_fenced_by_the_server_that_knew_it, can_cases_gen_params),
	KUNIT_CASE(another_server_is_not_asked),
	KUNIT_CASE_PARAM(time_limit_begins_again_after_an_answer, lost_cases_gen_params),
	KUNIT_CASE(time_limit_is_not_that_of_an_older_loss),
	KUNIT_CASE(requests_leave_a_path_that_is_drained),
	{}
};

static struct kunit_suite rtrs_clt_failover_suite = {
	.name = "rtrs-client-failover",
	.init = failover_init,
	.exit = failover_exit,
	.test_cases = rtrs_clt_failover_cases,
};

kunit_test_suite(rtrs_clt_failover_suite);
