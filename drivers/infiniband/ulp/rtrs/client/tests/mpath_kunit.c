// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the selection of a path, and of the array of paths to select from */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../clt.h"

#define MAX_PATHS	5

/* A session with only the fields that selection uses */
struct mpath_test {
	struct rtrs_clt clt;
	struct rtrs_clt_path paths[MAX_PATHS];
	struct rtrs_clt_con cons[MAX_PATHS][2];
};

static int mpath_init(struct kunit *test)
{
	struct mpath_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	if (!t)
		return -ENOMEM;
	for (i = 0; i < MAX_PATHS; i++)
		t->paths[i].cons = t->cons[i];
	mutex_init(&t->clt.lock);
	t->clt.rr_next = alloc_percpu(unsigned int);
	test->priv = t;
	return t->clt.rr_next ? 0 : -ENOMEM;
}

static void mpath_exit(struct kunit *test)
{
	struct mpath_test *t = test->priv;
	int i;

	for (i = 0; i < MAX_PATHS; i++)
		kfree(t->paths[i].spare);
	kfree(rcu_access_pointer(t->clt.path_set));
	free_percpu(t->clt.rr_next);
}

static int replace(struct mpath_test *t, struct rtrs_clt_path *add,
		   struct rtrs_clt_path *del)
{
	struct rtrs_clt_path_set *new;
	int ret = 0;

	mutex_lock(&t->clt.lock);
	if (add) {
		new = rtrs_clt_path_set_alloc(add);
		if (new)
			rtrs_clt_path_set_add(&t->clt, add, new);
		ret = new ? 0 : -ENOMEM;
	} else {
		rtrs_clt_path_set_del(&t->clt, del);
	}
	mutex_unlock(&t->clt.lock);
	return ret;
}

static void add_paths(struct kunit *test, int nr)
{
	struct mpath_test *t = test->priv;
	int i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, replace(t, &t->paths[i], NULL), 0);
}

/* Returns the index of the selected path. */
static int pick(struct mpath_test *t)
{
	struct rtrs_clt_path *path;

	rcu_read_lock();
	path = rtrs_clt_pick_path(&t->clt, rcu_dereference(t->clt.path_set), 0);
	rcu_read_unlock();
	return path - t->paths;
}

static void no_paths_are_no_array(struct kunit *test)
{
	struct mpath_test *t = test->priv;

	add_paths(test, 1);
	replace(t, NULL, &t->paths[0]);
	KUNIT_EXPECT_NULL(test, (void *)rcu_access_pointer(t->clt.path_set));
}

/* For paths with the given costs, the ones in @picked are selected in turn. */
static const struct cost_case {
	const char *desc;
	enum rtrs_clt_policy policy;
	int nr;
	unsigned int cost[MAX_PATHS];
	const char *picked;
} cost_cases[] = {
	{ "fewest in flight", RTRS_CLT_MI, 3, { 2, 1, 3 }, "b" },
	{ "fewest in flight, the first", RTRS_CLT_MI, 3, { 0, 1, 1 }, "a" },
	{ "fewest in flight, the last", RTRS_CLT_MI, 5, { 9, 8, 7, 6, 5 }, "e" },
	{ "as many in flight on all", RTRS_CLT_MI, 3, { 4, 4, 4 }, "abc" },
	{ "none in flight", RTRS_CLT_MI, 2, { 0, 0 }, "ab" },
	{ "as few on two of three", RTRS_CLT_MI, 3, { 1, 5, 1 }, "ac" },
	{ "one path, many in flight", RTRS_CLT_MI, 1, { 512 }, "a" },
	{ "least latency", RTRS_CLT_ML, 3, { 2000, 1000, 3000 }, "b" },
	{ "same latency", RTRS_CLT_ML, 2, { 1000, 1000 }, "ab" },
	{ "latency not known yet", RTRS_CLT_ML, 2, { 0, 1000000 }, "b" },
	{ "no latency known yet", RTRS_CLT_ML, 3, { 0, 0, 0 }, "abc" },
	{ "round-robin asks for neither", RTRS_CLT_RR, 3, { 1, 2, 3 }, "abc" },
};

KUNIT_ARRAY_PARAM_DESC(cost_cases, cost_cases, desc);

static void policy_picks_the_best(struct kunit *test)
{
	const struct cost_case *c = test->param_value;
	struct mpath_test *t = test->priv;
	char picked[MAX_PATHS + 1] = "";
	int i, nr = 0, count[MAX_PATHS] = { };

	add_paths(test, c->nr);
	t->clt.policy = c->policy;
	for (i = 0; i < c->nr; i++) {
		t->cons[i][1].con.sq_queued = c->cost[i] + 7;
		t->cons[i][1].done = 7;
		t->paths[i].path.hb_latency = c->cost[i];
	}
	for (i = 0; i < 60; i++)
		count[pick(t)]++;
	for (i = 0; i < c->nr; i++)
		if (count[i])
			picked[nr++] = 'a' + i;
	KUNIT_EXPECT_STREQ(test, picked, c->picked);
}

static const struct tie_case {
	const char *desc;
	int nr;
	unsigned int inflight[MAX_PATHS];
	u64 latency[MAX_PATHS];
	const char *picked;
} tie_cases[] = {
	{ "ten times slower", 2, { 0, 0 }, { 10000, 100000 }, "a" },
	{ "slower than the two others", 3, { 2, 2, 2 }, { 10000, 100000, 15000 }, "ac" },
	{ "a little slower", 2, { 1, 1 }, { 10000, 15000 }, "ab" },
	{ "slower, but fewer in flight", 2, { 2, 1 }, { 10000, 100000 }, "b" },
	{ "one not measured yet", 2, { 0, 0 }, { 0, 100000 }, "ab" },
	{ "none measured yet", 2, { 0, 0 }, { 0, 0 }, "ab" },
	{ "minutes", 2, { 0, 0 }, { 60 * NSEC_PER_SEC, 1000 }, "b" },
};

KUNIT_ARRAY_PARAM_DESC(tie_cases, tie_cases, desc);

/* At low queue depth, nothing is in flight on either path, and the slow one isn't used. */
static void ties_go_to_the_faster(struct kunit *test)
{
	const struct tie_case *c = test->param_value;
	struct mpath_test *t = test->priv;
	char picked[MAX_PATHS + 1] = "";
	int i, nr = 0, count[MAX_PATHS] = { };

	add_paths(test, c->nr);
	t->clt.policy = RTRS_CLT_MI;
	for (i = 0; i < c->nr; i++) {
		t->cons[i][1].con.sq_queued = c->inflight[i] + U32_MAX;
		t->cons[i][1].done = U32_MAX;
		t->paths[i].path.hb_latency = c->latency[i];
	}
	for (i = 0; i < 60; i++)
		count[pick(t)]++;
	for (i = 0; i < c->nr; i++)
		if (count[i])
			picked[nr++] = 'a' + i;
	KUNIT_EXPECT_STREQ(test, picked, c->picked);
}

static const struct pick_case {
	const char *desc;
	int nr;
	unsigned int turn;
} pick_cases[] = {
	{ "one path takes all", 1, 0 },
	{ "two paths take turns", 2, 0 },
	{ "three paths take turns", 3, 1 },
	{ "five paths take turns", 5, 3 },
	{ "two paths, the counter wraps", 2, UINT_MAX - 7 },
	{ "four paths, the counter wraps", 4, UINT_MAX - 1 },
};

KUNIT_ARRAY_PARAM_DESC(pick_cases, pick_cases, desc);

static void paths_are_picked_equally(struct kunit *test)
{
	const struct pick_case *c = test->param_value;
	struct mpath_test *t = test->priv;
	int i, path, first, count[MAX_PATHS] = { };

	add_paths(test, c->nr);
	get_cpu();
	this_cpu_write(*t->clt.rr_next, c->turn);
	first = pick(t);
	for (i = 1; i <= 10 * c->nr; i++) {
		path = pick(t);
		if (path >= 0)
			count[path]++;
		if (path != (first + i) % c->nr)
			break;
	}
	put_cpu();
	for (i = 0; i < MAX_PATHS; i++)
		KUNIT_EXPECT_EQ(test, count[i], i < c->nr ? 10 : 0);
}

/* With three paths, the order changes when the counter wraps, but each index stays valid. */
static void counter_wraps_within_the_paths(struct kunit *test)
{
	struct mpath_test *t = test->priv;
	int i, path;

	add_paths(test, 3);
	get_cpu();
	this_cpu_write(*t->clt.rr_next, UINT_MAX - 3);
	for (i = 0, path = 0; i < 9 && path >= 0 && path < 3; i++)
		path = pick(t);
	put_cpu();
	KUNIT_EXPECT_EQ(test, i, 9);
}

/* Letters are paths: upper case adds one, lower case removes it. @left are the remaining ones. */
static const struct live_case {
	const char *desc;
	const char *moves;
	const char *left;
} live_cases[] = {
	{ "a path comes", "A", "a" },
	{ "the only path goes", "Aa", "" },
	{ "the only path goes and comes", "AaA", "a" },
	{ "the first of three goes", "ABCa", "bc" },
	{ "the second of three goes", "ABCb", "ac" },
	{ "the last of three goes", "ABCc", "ab" },
	{ "a path that comes again is the last", "ABCaA", "bca" },
	{ "all come, all go, in order", "ABCDEabcde", "" },
	{ "all come, all go, backwards", "ABCDEedcba", "" },
};

KUNIT_ARRAY_PARAM_DESC(live_cases, live_cases, desc);

static void paths_come_and_go(struct kunit *test)
{
	const struct live_case *c = test->param_value;
	struct mpath_test *t = test->priv;
	struct rtrs_clt_path_set *set;
	char left[MAX_PATHS + 1] = "";
	const char *m;
	unsigned int i;

	for (m = c->moves; *m; m++)
		if (*m >= 'a')
			KUNIT_ASSERT_EQ(test, replace(t, NULL, &t->paths[*m - 'a']), 0);
		else
			KUNIT_ASSERT_EQ(test, replace(t, &t->paths[*m - 'A'], NULL), 0);

	mutex_lock(&t->clt.lock);
	set = rcu_dereference_protected(t->clt.path_set, lockdep_is_held(&t->clt.lock));
	for (i = 0; set && i < set->nr && i < MAX_PATHS; i++)
		left[i] = 'a' + (set->path[i] - t->paths);
	mutex_unlock(&t->clt.lock);
	KUNIT_EXPECT_STREQ(test, left, c->left);
}

static const struct session_case {
	const char *desc;
	bool may_create;
	u32 others, path;
	bool same;
} session_cases[] = {
	{ "the same id", false, 5, 5, true },
	{ "the same id, it may have been made anew", true, 5, 5, true },
	{ "another id", false, 5, 6, false },
	{ "an id beside none", false, 0, 5, false },
	{ "none beside an id", false, 5, 0, false },
	{ "no ids", false, 0, 0, true },
	{ "no ids, it may have been made anew", true, 0, 0, false },
};

KUNIT_ARRAY_PARAM_DESC(session_cases, session_cases, desc);

static void path_belongs_to_the_session_of_the_others(struct kunit *test)
{
	const struct session_case *c = test->param_value;
	struct mpath_test *t = test->priv;

	t->clt.sess_id = c->others;
	t->paths[0].clt = &t->clt;
	t->paths[0].neg.sess_id = c->path;
	t->paths[0].may_create = c->may_create;
	KUNIT_EXPECT_EQ(test, rtrs_clt_same_session(&t->paths[0]), c->same);
}

static struct kunit_case rtrs_clt_mpath_cases[] = {
	KUNIT_CASE(no_paths_are_no_array),
	KUNIT_CASE_PARAM(policy_picks_the_best, cost_cases_gen_params),
	KUNIT_CASE_PARAM(ties_go_to_the_faster, tie_cases_gen_params),
	KUNIT_CASE_PARAM(paths_are_picked_equally, pick_cases_gen_params),
	KUNIT_CASE(counter_wraps_within_the_paths),
	KUNIT_CASE_PARAM(paths_come_and_go, live_cases_gen_params),
	KUNIT_CASE_PARAM(path_belongs_to_the_session_of_the_others, session_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_mpath_suite = {
	.name = "rtrs-client-mpath",
	.init = mpath_init,
	.exit = mpath_exit,
	.test_cases = rtrs_clt_mpath_cases,
};

kunit_test_suite(rtrs_clt_mpath_suite);
