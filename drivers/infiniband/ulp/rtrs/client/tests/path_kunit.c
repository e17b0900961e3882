// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of a path's life on the client: every event in each of its states, and delays between
 * attempts to connect; also of the parser for policies
 */
#include <kunit/test.h>

#include "../clt.h"

#define SAME		RTRS_CLT_NR_STATES
#define S(name)		RTRS_CLT_##name
#define E(name)		RTRS_CLT_EV_##name

static const struct move_case {
	const char *desc;
	enum rtrs_clt_state state;
	enum rtrs_clt_event event;
	enum rtrs_clt_state next;
} move_cases[] = {
	{ "idle: wanted, it waits for its time", S(IDLE), E(WANT), S(WAITING) },
	{ "idle: its time means nothing", S(IDLE), E(DUE), SAME },
	{ "idle: up is nothing", S(IDLE), E(UP), SAME },
	{ "idle: fail is nothing", S(IDLE), E(FAIL), SAME },
	{ "idle: stopped already", S(IDLE), E(STOP), SAME },
	{ "idle: ended is nothing", S(IDLE), E(ENDED), SAME },
	{ "waiting: wanted already", S(WAITING), E(WANT), SAME },
	{ "waiting: its time has come", S(WAITING), E(DUE), S(CONNECTING) },
	{ "waiting: up is nothing", S(WAITING), E(UP), SAME },
	{ "waiting: fail is nothing", S(WAITING), E(FAIL), SAME },
	{ "waiting: stop ends that", S(WAITING), E(STOP), S(IDLE) },
	{ "waiting: ended is nothing", S(WAITING), E(ENDED), SAME },
	{ "connecting: wanted already", S(CONNECTING), E(WANT), SAME },
	{ "connecting: at it already", S(CONNECTING), E(DUE), SAME },
	{ "connecting: up takes requests", S(CONNECTING), E(UP), S(CONNECTED) },
	{ "connecting: fail ends it", S(CONNECTING), E(FAIL), S(RESETTING) },
	{ "connecting: stop ends it for good", S(CONNECTING), E(STOP), S(CLOSING) },
	{ "connecting: ended is nothing", S(CONNECTING), E(ENDED), SAME },
	{ "connected: wanted already", S(CONNECTED), E(WANT), SAME },
	{ "connected: its time was before", S(CONNECTED), E(DUE), SAME },
	{ "connected: up already", S(CONNECTED), E(UP), SAME },
	{ "connected: fail ends it", S(CONNECTED), E(FAIL), S(RESETTING) },
	{ "connected: stop ends it for good", S(CONNECTED), E(STOP), S(CLOSING) },
	{ "connected: ended is nothing", S(CONNECTED), E(ENDED), SAME },
	{ "ending: it comes up again anyway", S(RESETTING), E(WANT), SAME },
	{ "ending: not before it has ended", S(RESETTING), E(DUE), SAME },
	{ "ending: up comes too late", S(RESETTING), E(UP), SAME },
	{ "ending: only the first fail counts", S(RESETTING), E(FAIL), SAME },
	{ "ending: stop makes it for good", S(RESETTING), E(STOP), S(CLOSING) },
	{ "ending: ended, it waits", S(RESETTING), E(ENDED), S(WAITING) },
	{ "closing: wanted, it comes up again", S(CLOSING), E(WANT), S(RESETTING) },
	{ "closing: not before it has ended", S(CLOSING), E(DUE), SAME },
	{ "closing: up comes too late", S(CLOSING), E(UP), SAME },
	{ "closing: fail changes nothing", S(CLOSING), E(FAIL), SAME },
	{ "closing: stopped already", S(CLOSING), E(STOP), SAME },
	{ "closing: ended, it is idle", S(CLOSING), E(ENDED), S(IDLE) },
};

KUNIT_ARRAY_PARAM_DESC(move_cases, move_cases, desc);

static void path_moves(struct kunit *test)
{
	const struct move_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_clt_next_state(c->state, c->event),
			c->next == SAME ? c->state : c->next);
}

static void path_moves_are_all_in_the_table(struct kunit *test)
{
	u64 seen = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(move_cases); i++)
		seen |= BIT_ULL(move_cases[i].state * RTRS_CLT_NR_EVENTS +
				move_cases[i].event);
	KUNIT_EXPECT_EQ(test, seen, BIT_ULL(RTRS_CLT_NR_STATES * RTRS_CLT_NR_EVENTS) - 1);
}

static struct rtrs_clt_path *waiting_path(struct kunit *test)
{
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, clt);
	init_waitqueue_head(&clt->wait);
	path->clt = clt;
	path->path.log = &path->clt->ratelimit;
	spin_lock_init(&path->sm.lock);
	init_waitqueue_head(&path->sm.wait);
	path->sm.state = S(WAITING);
	return path;
}

#define MAX_LIVES	5

static const struct lives_case {
	const char *desc;
	unsigned int seconds[MAX_LIVES];	/* duration of each connection */
	u32 failures;	/* expected result before any failed attempt */
} lives_cases[] = {
	{ "an ordinary loss", { 10 }, 0 },
	{ "lost soon again", { 10, 10 }, 1 },
	{ "lost soon each time", { 1, 1, 1, 1, 1 }, 4 },
	{ "as long as the longest delay is too short", { 1, 30 }, 1 },
	{ "longer than the longest delay", { 1, 1, 1, 31 }, 0 },
	{ "an ordinary loss after that", { 1, 1, 1, 31, 1 }, 0 },
};

KUNIT_ARRAY_PARAM_DESC(lives_cases, lives_cases, desc);

/*
 * The delay of a path that connects but can't be used grows each time, until a user reconnects it.
 */
static void path_that_is_lost_soon_counts_as_failed(struct kunit *test)
{
	const struct lives_case *c = test->param_value;
	struct rtrs_clt_path *path = waiting_path(test);
	int i;

	path->clt->reconnect.delay_max_ms = 30000;
	for (i = 0; i < MAX_LIVES && c->seconds[i]; i++) {
		path->sm.up_since = jiffies - c->seconds[i] * HZ;
		rtrs_clt_path_lived(path);
	}
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), c->failures);
	path->sm.failures = 3;
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), c->failures + 3);
	path->sm.state = S(CONNECTING);
	rtrs_clt_path_connect_start(path);
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), 0);
}

/* A path that works, but waits for a server's disk, must not be given up. */
static void stuck_disk_is_no_failure_of_the_path(struct kunit *test)
{
	struct rtrs_clt_path *path = waiting_path(test);

	rtrs_clt_path_result(path, -ECONNREFUSED);
	rtrs_clt_path_result(path, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), 2);
	rtrs_clt_path_result(path, -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), 0);
	KUNIT_EXPECT_EQ(test, path->sm.result, -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, path->sm.tries, 3);
}

/* As after 25 days, with 32 bits and HZ=1000 */
static void path_that_was_up_for_weeks_has_not_failed(struct kunit *test)
{
	struct rtrs_clt_path *path = waiting_path(test);

	path->clt->reconnect.delay_max_ms = 30000;
	path->sm.short_lives = 5;
	path->sm.up_since = jiffies - (LONG_MAX + 100UL * HZ);
	rtrs_clt_path_lived(path);
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_failures(path), 0);
}

static void do_nothing(struct work_struct *work)
{
}

/* When the last path is lost, the delays of the other paths end. */
static void paths_are_tried_when_the_last_one_is_lost(struct kunit *test)
{
	struct workqueue_struct *connect_wq = rtrs_clt_connect_wq;
	struct rtrs_clt_path *lost = waiting_path(test);
	struct rtrs_clt_path *waits = waiting_path(test);
	struct rtrs_clt_path *ends = waiting_path(test);
	struct rtrs_clt *clt = lost->clt;

	ends->sm.state = S(RESETTING);
	mutex_init(&clt->lock);
	INIT_LIST_HEAD(&clt->paths);
	list_add(&lost->entry, &clt->paths);
	list_add(&waits->entry, &clt->paths);
	list_add(&ends->entry, &clt->paths);
	rtrs_clt_connect_wq = system_dfl_wq;
	INIT_DELAYED_WORK(&lost->sm.connect_work, do_nothing);
	INIT_DELAYED_WORK(&waits->sm.connect_work, do_nothing);
	queue_delayed_work(rtrs_clt_connect_wq, &lost->sm.connect_work, 3600 * HZ);
	queue_delayed_work(rtrs_clt_connect_wq, &waits->sm.connect_work, 3600 * HZ);
	mutex_lock(&clt->lock);
	lost->sm.short_lives = 1;
	rtrs_clt_wake_paths(clt, lost);
	KUNIT_EXPECT_FALSE_MSG(test, ends->sm.hurry, "the server drops each path");
	lost->sm.short_lives = 0;
	rtrs_clt_wake_paths(clt, lost);
	mutex_unlock(&clt->lock);
	flush_work(&waits->sm.connect_work.work);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&waits->sm.connect_work));
	KUNIT_EXPECT_TRUE_MSG(test, cancel_delayed_work_sync(&lost->sm.connect_work),
			      "it waits as set");
	KUNIT_EXPECT_TRUE_MSG(test, ends->sm.hurry, "it would wait next");
	cancel_delayed_work_sync(&waits->sm.connect_work);
	rtrs_clt_connect_wq = connect_wq;
}

/* Waiters get the first error, not errors that follow from it. */
static void path_keeps_the_reason_of_its_end(struct kunit *test)
{
	struct rtrs_clt_path *path = waiting_path(test);

	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(DUE), 0));
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(FAIL), -EPROTO));
	KUNIT_EXPECT_FALSE(test, rtrs_clt_path_move(path, E(FAIL), -ECONNRESET));
	KUNIT_EXPECT_FALSE(test, rtrs_clt_path_move(path, E(UP), 0));
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(STOP), -ECONNABORTED));
	KUNIT_EXPECT_EQ(test, path->sm.err, -EPROTO);
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(ENDED), 0));
	KUNIT_EXPECT_EQ(test, path->sm.state, S(IDLE));
}

/* A path that is lost later is reconnected after the usual delay, or not at all. */
static void wish_to_connect_ends_when_it_is_connected(struct kunit *test)
{
	struct rtrs_clt_path *path = waiting_path(test);

	path->sm.at_once = true;
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(DUE), 0));
	KUNIT_EXPECT_FALSE_MSG(test, path->sm.at_once, "this is the try");
	rtrs_clt_path_connect_start(path);
	KUNIT_EXPECT_TRUE_MSG(test, path->sm.at_once, "for the try after this one");
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(UP), 0));
	KUNIT_EXPECT_FALSE(test, path->sm.at_once);
}

static int show_nothing(struct rtrs_clt_path *path)
{
	return 0;
}

static void release_nothing(struct kobject *kobj)
{
}

struct slow_work {
	struct work_struct work;
	struct completion over;
};

static void be_slow(struct work_struct *work)
{
	wait_for_completion(&container_of(work, struct slow_work, work)->over);
}

/* Paths that are being connected fill their workqueue. Another path must end without delay. */
static void path_ends_while_others_connect(struct kunit *test)
{
	static const struct kobj_type ktype = { .release = release_nothing };
	static const struct rtrs_clt_view view = { .ktype = &ktype, .show = show_nothing };
	struct workqueue_struct *connect_wq = rtrs_clt_connect_wq;
	struct workqueue_struct *end_wq = rtrs_clt_end_wq;
	struct rtrs_clt_params params = {
		.sessname = "busy", .label = "busy", .net = &init_net,
	};
	struct slow_work *other;
	struct rtrs_addr addr = { };
	struct rtrs_clt_path *path;
	struct rtrs_clt *clt;

	other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	init_completion(&other->over);
	INIT_WORK(&other->work, be_slow);
	params.paths = &addr;
	clt = rtrs_clt_alloc(&params);
	KUNIT_ASSERT_FALSE(test, IS_ERR(clt));
	clt->view = &view;
	path = rtrs_clt_path_create(clt, &addr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(path));

	rtrs_clt_connect_wq = alloc_workqueue("rtrs-test-busy", WQ_UNBOUND, 1);
	KUNIT_ASSERT_NOT_NULL(test, rtrs_clt_connect_wq);
	rtrs_clt_end_wq = alloc_workqueue("rtrs-test-end", WQ_UNBOUND, 1);
	KUNIT_ASSERT_NOT_NULL(test, rtrs_clt_end_wq);
	queue_work(rtrs_clt_connect_wq, &other->work);
	path->sm.state = S(CONNECTED);
	rtrs_clt_path_move(path, E(STOP), -ECONNABORTED);
	KUNIT_EXPECT_TRUE(test, wait_event_timeout(path->sm.wait, READ_ONCE(path->sm.state) ==
						   S(IDLE), 10 * HZ));
	complete(&other->over);
	wait_event(path->sm.wait, READ_ONCE(path->sm.state) == S(IDLE));
	cancel_work_sync(&path->sm.end_work);
	destroy_workqueue(rtrs_clt_connect_wq);
	destroy_workqueue(rtrs_clt_end_wq);
	rtrs_clt_connect_wq = connect_wq;
	rtrs_clt_end_wq = end_wq;
	rtrs_clt_path_free(path);
	rtrs_clt_free(clt);
}

static const struct tried_case {
	const char *desc;
	enum rtrs_clt_state state;
	u32 tries;
	int result, tried;
} tried_cases[] = {
	{ "not yet", S(WAITING), 7, -EPROTO, -EINPROGRESS },
	{ "at it", S(CONNECTING), 7, -EPROTO, -EINPROGRESS },
	{ "connected", S(CONNECTED), 7, -EPROTO, 0 },
	{ "connected, counted", S(CONNECTED), 8, 0, 0 },
	{ "failed, to be tried again", S(WAITING), 8, -ECONNREFUSED, -ECONNREFUSED },
	{ "the server's disk is late", S(WAITING), 8, -EINPROGRESS, -ETIMEDOUT },
	{ "the server's disk is late, given up", S(IDLE), 8, -EINPROGRESS, -ETIMEDOUT },
	{ "failed, given up", S(IDLE), 8, -ECONNREFUSED, -ECONNREFUSED },
	{ "connected for a moment", S(RESETTING), 8, 0, -ECONNABORTED },
	{ "stopped before it was tried", S(IDLE), 7, -EPROTO, -ECONNABORTED },
	{ "an earlier try has failed", S(WAITING), 6, -ECONNREFUSED, -EINPROGRESS },
	{ "the counter wraps", S(WAITING), 0x80000006, -EHOSTUNREACH, -EHOSTUNREACH },
};

KUNIT_ARRAY_PARAM_DESC(tried_cases, tried_cases, desc);

static void path_is_waited_for(struct kunit *test)
{
	const struct tried_case *c = test->param_value;
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	spin_lock_init(&path->sm.lock);
	path->sm.state = c->state;
	path->sm.tries = c->tries;
	path->sm.result = c->result;
	KUNIT_EXPECT_EQ(test, rtrs_clt_path_connect_status(path, 7), c->tried);
}

static const struct has_case {
	const char *desc;
	const char *own, *asked;
	u16 port;
	bool leaving, found;
} has_cases[] = {
	{ "the same", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.1@ip:10.0.0.2", 1234, false, true },
	{ "any source", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.2", 1234, false, true },
	{ "no source yet", "ip:10.0.0.2", "ip:10.0.0.2", 1234, false, true },
	{ "perhaps this source", "ip:10.0.0.2", "ip:10.0.0.1@ip:10.0.0.2", 1234, false, false },
	{ "other source", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.3@ip:10.0.0.2", 1234,
	  false, false },
	{ "other destination", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.3", 1234, false, false },
	{ "source as destination", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.1", 1234, false, false },
	{ "other port", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.2", 1235, false, false },
	{ "on its way out", "ip:10.0.0.1@ip:10.0.0.2", "ip:10.0.0.2", 1234, true, false },
	{ "IPv6", "ip:fe80::1@ip:fe80::2", "ip:fe80::2", 1234, false, true },
	{ "the same link", "ip:fe80::1%1@ip:fe80::2%1", "ip:fe80::2%lo", 1234, false, true },
	{ "another link", "ip:fe80::1%1@ip:fe80::2%1", "ip:fe80::2%2", 1234, false, false },
};

KUNIT_ARRAY_PARAM_DESC(has_cases, has_cases, desc);

static void session_knows_its_paths(struct kunit *test)
{
	const struct has_case *c = test->param_value;
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);
	struct rtrs_addr addr;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, clt);
	mutex_init(&clt->lock);
	INIT_LIST_HEAD(&clt->paths);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->asked, c->port, &addr), 0);
	KUNIT_EXPECT_FALSE(test, rtrs_clt_has_path(clt, &addr));

	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->own, 1234, &path->path.addr), 0);
	rtrs_addr_format(&path->path.addr, path->path.addr_str, sizeof(path->path.addr_str));
	path->leaving = c->leaving;
	list_add(&path->entry, &clt->paths);
	KUNIT_EXPECT_EQ(test, rtrs_clt_has_path(clt, &addr), c->found);
}

static const struct backoff_case {
	const char *desc;
	unsigned int first, max, failures, most;
} backoff_cases[] = {
	{ "the first try", 1000, 30000, 0, 1000 },
	{ "after a failure", 1000, 30000, 1, 2000 },
	{ "after four", 1000, 30000, 4, 16000 },
	{ "no more than the most", 1000, 30000, 5, 30000 },
	{ "failures without end", 1000, 30000, UINT_MAX, 30000 },
	{ "the most below the first", 1000, 10, 0, 10 },
	{ "the least of all", 1, 1, 0, 1 },
};

KUNIT_ARRAY_PARAM_DESC(backoff_cases, backoff_cases, desc);

static void delay_grows_and_jitters(struct kunit *test)
{
	const struct backoff_case *c = test->param_value;
	unsigned int i, ms, least = UINT_MAX, most = 0;

	for (i = 0; i < 1000; i++) {
		ms = rtrs_clt_backoff(c->first, c->max, c->failures);
		least = min(least, ms);
		most = max(most, ms);
	}
	KUNIT_EXPECT_LE(test, most, c->most);
	KUNIT_EXPECT_GE(test, least, c->most / 2);
	/* Delays are spread over half of the maximum. */
	KUNIT_EXPECT_GE(test, (most - least) * 10, c->most / 2 * 9);
}

static const struct policy_case {
	const char *desc;
	const char *str;
	int policy;
} policy_cases[] = {
	{ "name", "round-robin", RTRS_CLT_RR },
	{ "name, with the newline", "min-inflight\n", RTRS_CLT_MI },
	{ "another name", "min-latency\n", RTRS_CLT_ML },
	{ "capital letters", "RR\n", RTRS_CLT_RR },
	{ "small letters", "mi", RTRS_CLT_MI },
	{ "letters of either kind", "mL\n", RTRS_CLT_ML },
	{ "number", "0\n", RTRS_CLT_RR },
	{ "number 1", "1", RTRS_CLT_MI },
	{ "number 2", "2\n", RTRS_CLT_ML },
	{ "no such number", "3", -EINVAL },
	{ "one letter", "r", -EINVAL },
	{ "three letters", "rrr", -EINVAL },
	{ "nothing", "", -EINVAL },
	{ "a newline", "\n", -EINVAL },
	{ "part of a name", "round", -EINVAL },
	{ "what reading shows", "round-robin (RR: 0)", -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(policy_cases, policy_cases, desc);

static void policy_is_written_in_three_ways(struct kunit *test)
{
	const struct policy_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_policy(c->str), c->policy);
}

static const struct setting_case {
	const char *desc;
	const char *name;
	const char *str;
	int ret;
} setting_cases[] = {
	{ "a policy", "mp_policy", "rr", 0 },
	{ "a policy, by its other name", "mpath_policy", "rr", 0 },
	{ "no policy", "mp_policy", "3", -EINVAL },
	{ "the least", "hb_interval_ms", "10", 0 },
	{ "less", "hb_interval_ms", "9", -EINVAL },
	{ "the most", "hb_max_missed", "1000", 0 },
	{ "more", "hb_max_missed", "1001", -EINVAL },
	{ "below 0", "failover_timeout", "-1", 0 },
	{ "beyond 32 bits", "failover_timeout", "4294967295", -ERANGE },
	{ "no number", "max_reconnect_attempts", "x", -EINVAL },
	{ "nothing", "reconnect_delay_ms", "", -EINVAL },
	{ "an attribute that is none", "add_path", "ip:1.1.1.1", -ENOENT },
	{ "part of a name", "hb", "1", -ENOENT },
	{ "no name", "", "1", -ENOENT },
};

KUNIT_ARRAY_PARAM_DESC(setting_cases, setting_cases, desc);

static void setting_is_checked(struct kunit *test)
{
	const struct setting_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_clt_check_setting(c->name, c->str), c->ret);
}

static struct kunit_case rtrs_clt_path_cases[] = {
	KUNIT_CASE_PARAM(path_moves, move_cases_gen_params),
	KUNIT_CASE(path_moves_are_all_in_the_table),
	KUNIT_CASE(path_keeps_the_reason_of_its_end),
	KUNIT_CASE(wish_to_connect_ends_when_it_is_connected),
	KUNIT_CASE_PARAM(path_that_is_lost_soon_counts_as_failed, lives_cases_gen_params),
	KUNIT_CASE(stuck_disk_is_no_failure_of_the_path),
	KUNIT_CASE(path_that_was_up_for_weeks_has_not_failed),
	KUNIT_CASE(paths_are_tried_when_the_last_one_is_lost),
	KUNIT_CASE(path_ends_while_others_connect),
	KUNIT_CASE_PARAM(path_is_waited_for, tried_cases_gen_params),
	KUNIT_CASE_PARAM(session_knows_its_paths, has_cases_gen_params),
	KUNIT_CASE_PARAM(delay_grows_and_jitters, backoff_cases_gen_params),
	KUNIT_CASE_PARAM(policy_is_written_in_three_ways, policy_cases_gen_params),
	KUNIT_CASE_PARAM(setting_is_checked, setting_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_path_suite = {
	.name = "rtrs-client-path",
	.test_cases = rtrs_clt_path_cases,
};

kunit_test_suite(rtrs_clt_path_suite);
