// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of waiting requests: which of them fail while there is no path, over which path a
 * dead path is fenced, and how requests are reclaimed from a dead path
 */
#include <kunit/test.h>

#include "../clt.h"

#define NR_IOS	64

struct failover_test {
	struct workqueue_struct *sess_wq;
	struct rtrs_clt clt;
	struct rtrs_clt_path path;
	struct rtrs_clt_io io[NR_IOS];
	unsigned int asked;
	unsigned int ended;
	unsigned int ended_wrong;
	int err;	/* of the last completed request */
};

/* Fails the requests in the second half of the slots. */
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
	/* The owner may park another request here, so the lock must not be held. */
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
	/* The suites may run before the module has allocated its workqueue. */
	t->sess_wq = rtrs_clt_sess_wq;
	rtrs_clt_sess_wq = system_dfl_wq;
	rtrs_clt_failover_init(&t->clt);
	rtrs_clt_fence_init(&t->clt);
	t->clt.failover.retry_ok = late_ones_fail;
	t->path.clt = &t->clt;
	t->path.path.log = &t->path.clt->ratelimit;
	t->path.sm.state = RTRS_CLT_CONNECTING;
	init_waitqueue_head(&t->path.sm.wait);
	spin_lock_init(&t->path.sm.lock);
	mutex_init(&t->clt.lock);
	init_waitqueue_head(&t->clt.wait);
	INIT_WORK(&t->clt.link.work, rtrs_clt_link_work);
	INIT_LIST_HEAD(&t->clt.paths);
	list_add(&t->path.entry, &t->clt.paths);
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
	cancel_delayed_work_sync(&t->clt.failover.work);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_work_sync(&t->clt.link.work);
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

/* Interrupts are disabled only for one check of each request. */
static void each_waiting_request_is_asked_for_once(struct kunit *test)
{
	struct failover_test *t = test->priv;
	struct rtrs_clt_fence fence = { .id = 1, .until = get_jiffies_64() + 3600 * HZ };
	unsigned int i;

	for (i = 0; i < NR_IOS; i++)
		KUNIT_ASSERT_EQ(test, rtrs_clt_park(&t->clt, &t->io[i]), 0);
	INIT_LIST_HEAD(&fence.ios);
	list_add(&fence.entry, &t->clt.fences.list);
	for (i = 0; i < NR_IOS; i += 4)
		list_move(&t->io[i].priv.entry, &fence.ios);

	t->clt.failover.state = RTRS_CLT_SESS_UP;
	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ_MSG(test, t->asked, 0, "there is a path");

	t->clt.failover.state = RTRS_CLT_SESS_DOWN;
	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ(test, t->asked, NR_IOS);
	KUNIT_EXPECT_EQ(test, t->ended, NR_IOS / 2);
	KUNIT_EXPECT_EQ(test, t->ended_wrong, 0);
	KUNIT_EXPECT_EQ(test, nr_ios(&fence.ios), NR_IOS / 8);
	KUNIT_EXPECT_EQ(test, nr_ios(&t->clt.failover.parked), NR_IOS / 8 * 3);
	cancel_delayed_work_sync(&t->clt.fences.work);
	INIT_LIST_HEAD(&t->clt.fences.list);
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

	t->path.path.features = c->features;
	t->path.neg.sess_id = c->path_sess_id;
	fence.srv_uuid.b[0] = c->srv;
	t->path.neg.srv_uuid.b[0] = c->path_srv;
	KUNIT_EXPECT_EQ(test, rtrs_clt_can_fence(&t->path, &fence), c->can);
}

/* The dead path's requests are sent after its delay, and no FENCE is sent. */
static void another_server_is_not_asked(struct kunit *test)
{
	struct rtrs_clt_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	struct failover_test *t = test->priv;
	u64 until = get_jiffies_64() + HZ / 10;

	KUNIT_ASSERT_NOT_NULL(test, fence);
	fence->id = 1;
	fence->sess_id = 7;
	fence->granted = true;
	fence->failed = true;
	fence->until = until;
	INIT_LIST_HEAD(&fence->ios);
	list_add(&t->io[0].priv.entry, &fence->ios);
	list_add(&fence->entry, &t->clt.fences.list);
	t->clt.fences.unfenced_ms = 3600000;
	t->path.path.features = RTRS_FEATURE_FENCE;
	t->path.neg.sess_id = 8;
	KUNIT_EXPECT_EQ(test, rtrs_clt_fence_via(&t->path), 0);
	KUNIT_EXPECT_EQ(test, t->clt.fences.nr_changes, 2);
	KUNIT_EXPECT_GE(test, get_jiffies_64(), until);
	KUNIT_EXPECT_EQ(test, t->path.fence.asked, 0);
	KUNIT_EXPECT_FALSE(test, t->path.fence.ready);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->clt.fences.list));
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	KUNIT_EXPECT_EQ(test, nr_ios(&t->clt.failover.parked), 1);
}

static const struct via_case {
	const char *desc;
	enum rtrs_clt_state state;
	bool live, ready, failed, may;
} via_cases[] = {
	{ "no INFO_RSP yet", RTRS_CLT_CONNECTING, false, false, true, false },
	{ "being connected, a write has failed", RTRS_CLT_CONNECTING, false, true, true, true },
	{ "being connected, no write has failed", RTRS_CLT_CONNECTING, false, true, false, false },
	{ "failed while being connected", RTRS_CLT_RESETTING, false, true, true, false },
	{ "removed while being connected", RTRS_CLT_CLOSING, false, true, true, false },
	{ "connected, not in the array", RTRS_CLT_CONNECTED, false, false, true, false },
	{ "connected, in the array", RTRS_CLT_CONNECTED, true, false, true, true },
	{ "connected, no write has failed", RTRS_CLT_CONNECTED, true, false, false, true },
	{ "lost, still in the array", RTRS_CLT_RESETTING, true, false, true, false },
	{ "not connected any more", RTRS_CLT_WAITING, false, false, true, false },
};

KUNIT_ARRAY_PARAM_DESC(via_cases, via_cases, desc);

static void path_carries_fence_while_it_has_connections(struct kunit *test)
{
	const struct via_case *c = test->param_value;
	struct rtrs_clt_fence fence = { .id = 1, .failed = c->failed };
	struct failover_test *t = test->priv;
	struct rtrs_clt_path_set *set;

	set = kunit_kzalloc(test, struct_size(set, path, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, set);
	set->nr = 1;
	set->path[0] = &t->path;
	rcu_assign_pointer(t->clt.path_set, c->live ? set : NULL);
	t->path.sm.state = c->state;
	t->path.fence.ready = c->ready;
	mutex_lock(&t->clt.lock);
	KUNIT_EXPECT_EQ(test, rtrs_clt_may_fence_via(&t->path, &fence), c->may);
	mutex_unlock(&t->clt.lock);
}

/* A path that fails while it waits for a fence gives up at once. */
static void failing_path_waits_for_no_fence(struct kunit *test)
{
	struct failover_test *t = test->priv;
	struct rtrs_clt_fence fence = {
		.id = 1, .failed = true, .until = get_jiffies_64() + 3600 * HZ,
	};

	INIT_LIST_HEAD(&fence.ios);
	list_add(&fence.entry, &t->clt.fences.list);
	t->path.sm.state = RTRS_CLT_RESETTING;
	t->path.sm.err = -ENODEV;
	KUNIT_EXPECT_EQ(test, rtrs_clt_fence_via(&t->path), -ENODEV);
	KUNIT_EXPECT_FALSE(test, t->path.fence.ready);
	cancel_delayed_work_sync(&t->clt.fences.work);
	INIT_LIST_HEAD(&t->clt.fences.list);
}

/* A path that is being connected may wait for the fence, so the work item must run. */
static void fence_is_processed_when_a_write_fails(struct kunit *test)
{
	struct rtrs_clt_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	struct failover_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, fence);
	fence->id = 1;
	fence->until = get_jiffies_64();
	INIT_LIST_HEAD(&fence->ios);
	list_add(&t->io[NR_IOS - 1].priv.entry, &fence->ios);
	list_add(&fence->entry, &t->clt.fences.list);
	t->clt.failover.state = RTRS_CLT_SESS_DOWN;
	rtrs_clt_fail_expired(&t->clt);
	flush_delayed_work(&t->clt.fences.work);
	KUNIT_EXPECT_EQ(test, t->ended, 1);
	KUNIT_EXPECT_EQ(test, t->clt.fences.nr_changes, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->clt.fences.list));
	rtrs_clt_fence_exit(&t->clt);
}

static const struct go_on_case {
	const char *desc;
	unsigned int slot;	/* of the request that waits for a fence */
	bool down;		/* no path at the first check */
	enum dma_data_direction dir;
	bool ends;
	bool may;
} go_on_cases[] = {
	{ "it may wait", 0, true, DMA_TO_DEVICE, false, true },
	{ "its time has come, but there is a path", NR_IOS - 1, false, DMA_TO_DEVICE, false, true },
	{ "a write has failed", NR_IOS - 1, true, DMA_TO_DEVICE, true, false },
	{ "a read has failed", NR_IOS - 1, true, DMA_FROM_DEVICE, true, true },
};

KUNIT_ARRAY_PARAM_DESC(go_on_cases, go_on_cases, desc);

/*
 * The first path accepts requests while others wait for a fence, unless a write among these has
 * failed. After that, no more of them fail. A fence without waiting requests is moved to the end of
 * the list.
 */
static void first_path_waits_for_fences_of_failed_requests(struct kunit *test)
{
	const struct go_on_case *c = test->param_value;
	u64 until = get_jiffies_64() + 3600 * HZ;
	struct rtrs_clt_fence fence = { .id = 1, .until = until };
	struct rtrs_clt_fence other = { .id = 2, .until = until };
	struct failover_test *t = test->priv;
	bool may;

	INIT_LIST_HEAD(&fence.ios);
	INIT_LIST_HEAD(&other.ios);
	t->io[c->slot].dir = c->dir;
	list_add(&t->io[c->slot].priv.entry, &fence.ios);
	list_add(&t->io[4].priv.entry, &other.ios);
	list_add(&other.entry, &t->clt.fences.list);
	list_add(&fence.entry, &t->clt.fences.list);
	t->clt.failover.state = c->down ? RTRS_CLT_SESS_DOWN : RTRS_CLT_SESS_UP;
	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ(test, t->ended, c->ends);
	KUNIT_EXPECT_EQ(test, list_is_last(&fence.entry, &t->clt.fences.list), c->ends && c->may);
	t->clt.failover.state = RTRS_CLT_SESS_DOWN;
	mutex_lock(&t->clt.lock);
	may = rtrs_clt_allow_first_path(&t->clt);
	mutex_unlock(&t->clt.lock);
	KUNIT_EXPECT_EQ(test, may, c->may);
	KUNIT_EXPECT_EQ(test, t->clt.failover.state,
			c->may ? RTRS_CLT_SESS_TRIAL : RTRS_CLT_SESS_DOWN);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	rtrs_clt_fail_expired(&t->clt);
	KUNIT_EXPECT_EQ(test, t->ended, c->ends);
	cancel_delayed_work_sync(&t->clt.fences.work);
	INIT_LIST_HEAD(&t->clt.fences.list);
}

/* The path needs neither a device nor memory regions for this. */
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
	t->path.path.stats = &t->path.stats.cpu->io;
	slot[1]->io = &t->io[1];
	rtrs_clt_slots_reclaim(&t->path, &ios);
	free_percpu(t->path.stats.cpu);
	KUNIT_EXPECT_EQ(test, nr_ios(&ios), 1);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry_or_null(&ios, struct rtrs_clt_io,
							   priv.entry), &t->io[1]);
	KUNIT_EXPECT_EQ_MSG(test, t->path.stats.reclaimed, 1, "given back without an answer");
	KUNIT_EXPECT_NULL(test, slot[1]->io);
}

/* A request waits for nothing, for a path, or for a fence. */
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
	u64 before = get_jiffies_64() - 10 * HZ;

	INIT_LIST_HEAD(&fence.ios);
	t->clt.failover.timeout = 3600;
	atomic64_set(&t->clt.failover.down_since, before);
	t->clt.failover.state = c->answered ? RTRS_CLT_SESS_UP : RTRS_CLT_SESS_TRIAL;
	if (c->waits == PARKED)
		KUNIT_ASSERT_EQ(test, rtrs_clt_park(&t->clt, &t->io[0]), 0);
	if (c->waits == FENCED) {
		list_add(&t->io[0].priv.entry, &fence.ios);
		list_add(&fence.entry, &t->clt.fences.list);
	}
	mutex_lock(&t->clt.lock);
	rtrs_clt_all_paths_lost(&t->clt);
	mutex_unlock(&t->clt.lock);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_delayed_work_sync(&t->clt.failover.work);
	INIT_LIST_HEAD(&t->clt.fences.list);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->clt.failover.down_since) != before, c->restarts);
}

/* The time limit restarts, unless a request was already waiting when the path came back. */
static void time_limit_is_not_that_of_an_older_loss(struct kunit *test)
{
	struct failover_test *t = test->priv;
	u64 before = get_jiffies_64() - 10 * HZ;

	t->clt.failover.timeout = 3600;
	atomic64_set(&t->clt.failover.down_since, before);
	mutex_lock(&t->clt.lock);
	t->clt.failover.state = RTRS_CLT_SESS_TRIAL;
	rtrs_clt_first_path_up(&t->clt);
	KUNIT_EXPECT_EQ(test, rtrs_clt_park(&t->clt, &t->io[0]), 0);
	rtrs_clt_all_paths_lost(&t->clt);
	KUNIT_EXPECT_NE(test, atomic64_read(&t->clt.failover.down_since), before);

	atomic64_set(&t->clt.failover.down_since, before);
	rtrs_clt_sess_move(&t->clt, RTRS_CLT_SESS_EV_PATH);
	rtrs_clt_first_path_up(&t->clt);
	rtrs_clt_all_paths_lost(&t->clt);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->clt.failover.down_since), before);

	/* The request is in the list of rtrs_clt_send_parked(). */
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	INIT_LIST_HEAD(&t->clt.failover.parked);
	t->clt.failover.resuming = true;
	rtrs_clt_sess_move(&t->clt, RTRS_CLT_SESS_EV_PATH);
	rtrs_clt_first_path_up(&t->clt);
	KUNIT_EXPECT_EQ(test, t->clt.failover.state, RTRS_CLT_SESS_TRIAL);
	rtrs_clt_all_paths_lost(&t->clt);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->clt.failover.down_since), before);
	mutex_unlock(&t->clt.lock);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_delayed_work_sync(&t->clt.failover.work);
}

static const struct wait_case {
	const char *desc;
	int timeout;
	/* jiffies ago */
	unsigned long down, since;
	bool may_wait;
} wait_cases[] = {
	{ "both just now", 30, 0, 0, true },
	{ "both long ago", 30, 3600 * HZ, 3600 * HZ, false },
	{ "the path was lost just now", 30, 29 * HZ, 3600 * HZ, true },
	{ "something else was lost just now", 30, 3600 * HZ, 29 * HZ, true },
	{ "both a little too long ago", 30, 31 * HZ, 31 * HZ, false },
	{ "not at all", 0, 0, 0, false },
	{ "for ever", -1, 3600 * HZ, 3600 * HZ, true },
	/* As after 25 days, with 32 bits and HZ=1000 */
	{ "both longer ago than signed numbers tell", 30, LONG_MAX + 100UL * HZ,
	  LONG_MAX + 100UL * HZ, false },
	{ "the path so long ago, something else a minute ago", 30, LONG_MAX + 100UL * HZ, 60 * HZ,
	  false },
	{ "something else so long ago, the path a minute ago", 30, 60 * HZ, LONG_MAX + 100UL * HZ,
	  false },
	{ "the path so long ago, something else just now", 30, LONG_MAX + 100UL * HZ, 0, true },
	{ "something else so long ago, the path just now", 30, 0, LONG_MAX + 100UL * HZ, true },
};

KUNIT_ARRAY_PARAM_DESC(wait_cases, wait_cases, desc);

static void requests_wait_since_the_later_loss(struct kunit *test)
{
	const struct wait_case *c = test->param_value;
	struct failover_test *t = test->priv;

	t->clt.failover.timeout = c->timeout;
	atomic64_set(&t->clt.failover.down_since, get_jiffies_64() - c->down);
	KUNIT_EXPECT_EQ(test, rtrs_clt_may_wait(&t->clt, jiffies - c->since), c->may_wait);
}

/* Seconds ago; as after 25 days, with 32 bits and HZ=1000 */
#define LONG_AGO	(LONG_MAX / HZ + 100UL)

static const struct expired_case {
	const char *desc;
	int timeout;		/* seconds */
	unsigned long down;	/* seconds ago */
	bool expired;
} expired_cases[] = {
	{ "a second too short", 30, 29, false },
	{ "a second too long", 30, 31, true },
	{ "longer than signed numbers tell", 30, LONG_AGO, true },
	{ "at once", 0, 0, true },
	{ "never", -1, LONG_AGO, false },
};

KUNIT_ARRAY_PARAM_DESC(expired_cases, expired_cases, desc);

/* Requests that have begun to fail go on to do so. */
static void session_without_a_path_stays_expired(struct kunit *test)
{
	const struct expired_case *c = test->param_value;
	struct failover_test *t = test->priv;

	t->clt.failover.timeout = c->timeout;
	t->clt.failover.state = RTRS_CLT_SESS_EXPIRED;
	atomic64_set(&t->clt.failover.down_since, get_jiffies_64() - (u64)c->down * HZ);
	mutex_lock(&t->clt.lock);
	rtrs_clt_failover_timeout_changed(&t->clt);
	mutex_unlock(&t->clt.lock);
	cancel_delayed_work_sync(&t->clt.failover.resume_work);
	cancel_delayed_work_sync(&t->clt.failover.work);
	KUNIT_EXPECT_EQ(test, t->clt.failover.state,
			c->expired ? RTRS_CLT_SESS_EXPIRED : RTRS_CLT_SESS_DOWN);
}

static const struct loss_case {
	const char *desc;
	int timeout;		/* seconds */
	unsigned int nr;	/* paths that died, one after the other */
	unsigned long first;	/* seconds since the first one died */
	bool ends;
} loss_cases[] = {
	{ "seven paths, long ago", 30, 7, 3600, false },
	{ "eight, longer ago than it may wait", 30, 8, 31, true },
	{ "eight, not as long ago", 30, 8, 29, false },
	{ "nine", 30, 9, 31, true },
	{ "eight, longer ago than signed numbers tell", 30, 8, LONG_AGO, true },
	{ "eight, all of them now", 30, 8, 0, false },
	{ "eight, and it may not wait", 0, 8, 0, true },
	{ "seven, and it may not wait", 0, 7, 0, false },
	{ "any number, and it may wait for ever", -1, 1000, 3600, false },
};

KUNIT_ARRAY_PARAM_DESC(loss_cases, loss_cases, desc);

/* The request is reclaimed from each dead path and would be sent over the next one. */
static void request_ends_after_eight_paths(struct kunit *test)
{
	const struct loss_case *c = test->param_value;
	struct failover_test *t = test->priv;
	struct rtrs_clt_io *io = &t->io[0];
	struct rtrs_clt_fence *fence;
	unsigned int i;
	LIST_HEAD(ios);

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

/* By state: the next one for each event, in the order of enum rtrs_clt_sess_event */
static const enum rtrs_clt_sess_state sess_table[][RTRS_CLT_SESS_NR_EVENTS] = {
	[RTRS_CLT_SESS_DOWN] = { RTRS_CLT_SESS_TRIAL, RTRS_CLT_SESS_DOWN, RTRS_CLT_SESS_DOWN,
				 RTRS_CLT_SESS_EXPIRED, RTRS_CLT_SESS_DOWN },
	[RTRS_CLT_SESS_EXPIRED] = { RTRS_CLT_SESS_TRIAL, RTRS_CLT_SESS_EXPIRED,
				    RTRS_CLT_SESS_EXPIRED, RTRS_CLT_SESS_EXPIRED,
				    RTRS_CLT_SESS_DOWN },
	[RTRS_CLT_SESS_TRIAL] = { RTRS_CLT_SESS_TRIAL, RTRS_CLT_SESS_UP, RTRS_CLT_SESS_DOWN,
				  RTRS_CLT_SESS_TRIAL, RTRS_CLT_SESS_TRIAL },
	[RTRS_CLT_SESS_UP] = { RTRS_CLT_SESS_UP, RTRS_CLT_SESS_UP, RTRS_CLT_SESS_DOWN,
			       RTRS_CLT_SESS_UP, RTRS_CLT_SESS_UP },
};

static void session_moves_by_its_table(struct kunit *test)
{
	enum rtrs_clt_sess_state state, next;
	enum rtrs_clt_sess_event ev;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(sess_table), RTRS_CLT_SESS_NR_STATES);
	for (state = 0; state < RTRS_CLT_SESS_NR_STATES; state++)
		for (ev = 0; ev < RTRS_CLT_SESS_NR_EVENTS; ev++) {
			next = rtrs_clt_sess_next_state(state, ev);
			KUNIT_EXPECT_EQ_MSG(test, next, sess_table[state][ev], "state %d event %d",
					    state, ev);
		}
}

static const struct link_case {
	const char *desc;
	enum rtrs_clt_reported reported;
	enum rtrs_clt_sess_state state;
	unsigned int events;
	enum rtrs_link_event last;
	bool close;	/* the session is closed while the event is reported */
	enum rtrs_clt_reported then;
} link_cases[] = {
	{ "not open yet", RTRS_CLT_REPORT_NONE, RTRS_CLT_SESS_UP, 0, 0, false,
	  RTRS_CLT_REPORT_NONE },
	{ "lost", RTRS_CLT_REPORTED_UP, RTRS_CLT_SESS_DOWN, 1, RTRS_LINK_DOWN, false,
	  RTRS_CLT_REPORTED_DOWN },
	{ "expired meanwhile", RTRS_CLT_REPORTED_UP, RTRS_CLT_SESS_EXPIRED, 1, RTRS_LINK_DOWN,
	  false, RTRS_CLT_REPORTED_DOWN },
	{ "lost before it was reported", RTRS_CLT_REPORTED_DOWN, RTRS_CLT_SESS_DOWN, 0, 0, false,
	  RTRS_CLT_REPORTED_DOWN },
	{ "a path again", RTRS_CLT_REPORTED_DOWN, RTRS_CLT_SESS_TRIAL, 1, RTRS_LINK_UP, false,
	  RTRS_CLT_REPORTED_UP },
	{ "still a path", RTRS_CLT_REPORTED_UP, RTRS_CLT_SESS_UP, 0, 0, false,
	  RTRS_CLT_REPORTED_UP },
	{ "closed meanwhile", RTRS_CLT_REPORTED_UP, RTRS_CLT_SESS_DOWN, 1, RTRS_LINK_DOWN, true,
	  RTRS_CLT_REPORT_NONE },
};

KUNIT_ARRAY_PARAM_DESC(link_cases, link_cases, desc);

struct link_seen {
	struct failover_test *t;
	const struct link_case *c;
	unsigned int events;
	enum rtrs_link_event last;
};

static void link_event(void *priv, enum rtrs_link_event ev)
{
	struct link_seen *seen = priv;

	seen->events++;
	seen->last = ev;
	mutex_lock(&seen->t->clt.lock);
	if (seen->c->close)
		seen->t->clt.link.reported = RTRS_CLT_REPORT_NONE;
	mutex_unlock(&seen->t->clt.lock);
}

static void events_follow_the_state(struct kunit *test)
{
	const struct link_case *c = test->param_value;
	struct failover_test *t = test->priv;
	struct link_seen seen = { .t = t, .c = c };

	t->clt.link.event = link_event;
	t->clt.link.priv = &seen;
	t->clt.link.reported = c->reported;
	t->clt.failover.state = c->state;
	rtrs_clt_link_work(&t->clt.link.work);
	KUNIT_EXPECT_EQ(test, seen.events, c->events);
	if (c->events)
		KUNIT_EXPECT_EQ(test, seen.last, c->last);
	KUNIT_EXPECT_EQ(test, t->clt.link.reported, c->then);
}

static struct kunit_case rtrs_clt_failover_cases[] = {
	KUNIT_CASE(session_moves_by_its_table),
	KUNIT_CASE_PARAM(events_follow_the_state, link_cases_gen_params),
	KUNIT_CASE_PARAM(requests_wait_since_the_later_loss, wait_cases_gen_params),
	KUNIT_CASE(each_waiting_request_is_asked_for_once),
	KUNIT_CASE_PARAM(session_without_a_path_stays_expired, expired_cases_gen_params),
	KUNIT_CASE_PARAM(request_ends_after_eight_paths, loss_cases_gen_params),
	KUNIT_CASE_PARAM(path_is_fenced_by_the_server_that_knew_it, can_cases_gen_params),
	KUNIT_CASE(another_server_is_not_asked),
	KUNIT_CASE_PARAM(path_carries_fence_while_it_has_connections, via_cases_gen_params),
	KUNIT_CASE(failing_path_waits_for_no_fence),
	KUNIT_CASE(fence_is_processed_when_a_write_fails),
	KUNIT_CASE_PARAM(first_path_waits_for_fences_of_failed_requests, go_on_cases_gen_params),
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
