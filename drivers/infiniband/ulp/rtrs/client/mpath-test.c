// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the choice of a path, and of the array that it is chosen from.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "clt.h"

#define MAX_PATHS	5

/* A session that has nothing but what the choice looks at. */
struct mpath_test {
	struct rtrs_clt clt;
	struct rtrs_clt_path paths[MAX_PATHS];
};

static int mpath_init(struct kunit *test)
{
	struct mpath_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	mutex_init(&t->clt.lock);
	t->clt.turn = alloc_percpu(unsigned int);
	test->priv = t;
	return t->clt.turn ? 0 : -ENOMEM;
}

static void mpath_exit(struct kunit *test)
{
	struct mpath_test *t = test->priv;

	kfree(rcu_access_pointer(t->clt.live));
	free_percpu(t->clt.turn);
}

static int replace(struct mpath_test *t, struct rtrs_clt_path *add,
		   struct rtrs_clt_path *del)
{
	int ret;

	mutex_lock(&t->clt.lock);
	ret = rtrs_clt_live_replace(&t->clt, add, del);
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

/* Index of the path that is picked, -1 for none. */
static int pick(struct mpath_test *t)
{
	struct rtrs_clt_path *path;

	rcu_read_lock();
	path = rtrs_clt_pick_path(&t->clt);
	rcu_read_unlock();
	return path ? path - t->paths : -1;
}

static void no_path_is_picked_of_none(struct kunit *test)
{
	struct mpath_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, pick(t), -1);
	add_paths(test, 1);
	replace(t, NULL, &t->paths[0]);
	KUNIT_EXPECT_EQ(test, pick(t), -1);
	KUNIT_EXPECT_NULL(test, (void *)rcu_access_pointer(t->clt.live));
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
	this_cpu_write(*t->clt.turn, c->turn);
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

/* With three paths the order breaks when the counter wraps, and nothing else. */
static void counter_wraps_within_the_paths(struct kunit *test)
{
	struct mpath_test *t = test->priv;
	int i, path;

	add_paths(test, 3);
	get_cpu();
	this_cpu_write(*t->clt.turn, UINT_MAX - 3);
	for (i = 0, path = 0; i < 9 && path >= 0 && path < 3; i++)
		path = pick(t);
	put_cpu();
	KUNIT_EXPECT_EQ(test, i, 9);
}

/* Letters are paths, capitals come, the others go; in the end there are @left. */
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
	struct rtrs_clt_live *live;
	char left[MAX_PATHS + 1] = "";
	const char *m;
	unsigned int i;

	for (m = c->moves; *m; m++)
		if (*m >= 'a')
			KUNIT_ASSERT_EQ(test, replace(t, NULL, &t->paths[*m - 'a']), 0);
		else
			KUNIT_ASSERT_EQ(test, replace(t, &t->paths[*m - 'A'], NULL), 0);

	mutex_lock(&t->clt.lock);
	live = rcu_dereference_protected(t->clt.live, lockdep_is_held(&t->clt.lock));
	for (i = 0; live && i < live->nr && i < MAX_PATHS; i++)
		left[i] = 'a' + (live->path[i] - t->paths);
	mutex_unlock(&t->clt.lock);
	KUNIT_EXPECT_STREQ(test, left, c->left);
}

static struct kunit_case rtrs_clt_mpath_cases[] = {
	KUNIT_CASE(no_path_is_picked_of_none),
	KUNIT_CASE_PARAM(paths_are_picked_equally, pick_cases_gen_params),
	KUNIT_CASE(counter_wraps_within_the_paths),
	KUNIT_CASE_PARAM(paths_come_and_go, live_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_mpath_suite = {
	.name = "rtrs-client-mpath",
	.init = mpath_init,
	.exit = mpath_exit,
	.test_cases = rtrs_clt_mpath_cases,
};

kunit_test_suite(rtrs_clt_mpath_suite);
