// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the limits of handshakes.
 */
#include <kunit/test.h>

#include "srv.h"

/* Paths that one address after the other gets, if each takes all that it can */
static void each_address_gets_some(struct kunit *test)
{
	static const unsigned int share[] = { 512, 256, 128, 64, 32, 16, 8, 4, 2, 1 };
	unsigned int all = 0, nr, i;

	for (i = 0; i < ARRAY_SIZE(share); i++) {
		for (nr = 0; rtrs_srv_may_begin(nr, all, 1024); nr++)
			all++;
		KUNIT_EXPECT_EQ(test, nr, share[i]);
	}
	KUNIT_EXPECT_EQ(test, all, 1023);
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, all, 1024));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 1024, 1024));
	/* It was made lower. */
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 1024, 10));
}

static void who_is_wrong_waits_longer_each_time(struct kunit *test)
{
	static const struct { unsigned int nr, ms; } cases[] = {
		{ 0, 0 }, { 1, 0 }, { 4, 0 }, { 5, 100 }, { 6, 200 }, { 11, 6400 },
		{ 12, 12800 }, { 13, 12800 }, { UINT_MAX, 12800 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, rtrs_srv_delay_ms(cases[i].nr), cases[i].ms);
}

static struct kunit_case rtrs_srv_limit_cases[] = {
	KUNIT_CASE(each_address_gets_some),
	KUNIT_CASE(who_is_wrong_waits_longer_each_time),
	{}
};

static struct kunit_suite rtrs_srv_limit_suite = {
	.name = "rtrs-server-limit",
	.test_cases = rtrs_srv_limit_cases,
};

kunit_test_suite(rtrs_srv_limit_suite);
