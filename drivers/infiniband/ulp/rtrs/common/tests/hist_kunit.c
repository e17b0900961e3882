// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of histograms.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <rdma/rtrs-hist.h>

struct hist_test {
	struct rtrs_hist __percpu *hist;
	char *buf;
};

static const struct bucket_case {
	u64 ns;
	unsigned int bucket;
} bucket_cases[] = {
	{ 0, 0 }, { 999, 0 }, { 1000, 1 }, { 1999, 1 }, { 2000, 2 }, { 3000, 3 },
	{ 4000, 4 }, { 5999, 4 }, { 6000, 5 }, { 8000, 6 }, { 12000, 7 },
	{ 1000000, 19 }, { 1000000000, 39 }, { 50331647999, 50 }, { 50331648000, 51 },
	{ U64_MAX, 51 },
};

static void latency_is_counted_in_its_bucket(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bucket_cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, rtrs_hist_bucket(bucket_cases[i].ns),
				    bucket_cases[i].bucket, "%llu ns",
				    bucket_cases[i].ns);
}

static void buckets_begin_where_the_one_before_ends(struct kunit *test)
{
	unsigned int i;
	u64 ns;

	KUNIT_EXPECT_EQ(test, rtrs_hist_start(0), 0U);
	for (i = 1; i < RTRS_HIST_BUCKETS; i++) {
		ns = rtrs_hist_start(i) * 1000ULL;
		KUNIT_EXPECT_EQ(test, rtrs_hist_bucket(ns), i);
		KUNIT_EXPECT_EQ(test, rtrs_hist_bucket(ns - 1), i - 1);
	}
}

static int init(struct kunit *test)
{
	struct hist_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->hist = alloc_percpu(struct rtrs_hist);
	t->buf = (char *)get_zeroed_page(GFP_KERNEL);
	return t->hist && t->buf ? 0 : -ENOMEM;
}

static void hist_exit(struct kunit *test)
{
	struct hist_test *t = test->priv;

	free_percpu(t->hist);
	free_page((unsigned long)t->buf);
}

static const char *line(struct hist_test *t, const char *name)
{
	char *at = strstr(t->buf, name), *end = at ? strchr(at, '\n') : NULL;

	if (end)
		*end = '\0';
	return end ? at : "none";
}

static void sums_and_numbers_are_shown(struct kunit *test)
{
	struct hist_test *t = test->priv;

	rtrs_hist_add(t->hist, false, 5000);
	rtrs_hist_add(t->hist, false, 5001);
	rtrs_hist_add(t->hist, true, 5002);
	rtrs_hist_add(t->hist, true, 70000000000);
	KUNIT_EXPECT_EQ(test, rtrs_hist_emit(t->hist, t->buf), (int)strlen(t->buf));
	KUNIT_EXPECT_STREQ(test, line(t, "sum "), "sum 10 70000005");
	KUNIT_EXPECT_TRUE(test, strstarts(line(t, "write "), "write 0 0 0 0 1 0 0 "));
}

static void all_buckets_fit_in_a_page(struct kunit *test)
{
	struct hist_test *t = test->priv;
	int len;

	memset(per_cpu_ptr(t->hist, 0), 0xff, sizeof(struct rtrs_hist));
	len = rtrs_hist_emit(t->hist, t->buf);
	KUNIT_EXPECT_LT(test, len, (int)PAGE_SIZE - 1);
	KUNIT_EXPECT_STREQ(test, line(t, "sum "), "sum 18446744073709551 18446744073709551");
}

static struct kunit_case rtrs_hist_cases[] = {
	KUNIT_CASE(latency_is_counted_in_its_bucket),
	KUNIT_CASE(buckets_begin_where_the_one_before_ends),
	KUNIT_CASE(sums_and_numbers_are_shown),
	KUNIT_CASE(all_buckets_fit_in_a_page),
	{}
};

static struct kunit_suite rtrs_hist_suite = {
	.name = "rtrs-hist",
	.init = init,
	.exit = hist_exit,
	.test_cases = rtrs_hist_cases,
};

kunit_test_suite(rtrs_hist_suite);
