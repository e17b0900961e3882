// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the detection of dead connections and paths. */
#include <kunit/test.h>

#include "../core.h"

#define MAX_LOOKS	8
#define LIMIT_MS	1000

/* A check of a connection, and its result. */
struct look {
	u32 moved;
	u32 posted;
	bool probing;
	u32 ms;
	enum rtrs_live live;
};

#define LOOK(_moved, _posted, _probing, _ms, _live) \
	{ _moved, _posted, _probing, _ms, RTRS_LIVE_##_live }

/* After RTRS_LIVE_PROBE, the test updates @probed as a caller does. */
static const struct con_case {
	const char *desc;
	struct look looks[MAX_LOOKS];
	unsigned int nr;
} con_cases[] = {
	{ "nothing was ever posted", {
		LOOK(0, 0, false, 200, IDLE),
		LOOK(0, 0, false, 5000, IDLE),
	}, 2 },
	{ "busy: each look finds that something moved", {
		LOOK(1, 64, false, 200, MOVED),
		LOOK(2, 65, false, 900, MOVED),
		LOOK(3, 66, false, 5000, MOVED),
	}, 3 },
	{ "one completion in a while is life", {
		LOOK(1, 64, false, 900, MOVED),
		LOOK(1, 64, false, 900, PROBE),
		LOOK(1, 65, true, 900, WAIT),
		LOOK(2, 65, true, 900, MOVED),
		LOOK(2, 65, true, 900, WAIT),
		LOOK(2, 65, true, 900, WAIT),
		LOOK(3, 65, false, 900, MOVED),
		LOOK(3, 65, false, 900, IDLE),
	}, 8 },
	{ "idle after the probe is acknowledged, however long", {
		LOOK(0, 1, false, 200, PROBE),
		LOOK(1, 2, false, 200, MOVED),
		LOOK(1, 2, false, 5000, IDLE),
		LOOK(1, 2, false, 5000, IDLE),
	}, 4 },
	{ "posted again after that: another probe", {
		LOOK(0, 1, false, 200, PROBE),
		LOOK(1, 2, false, 200, MOVED),
		LOOK(1, 3, false, 200, PROBE),
		LOOK(1, 4, true, 200, WAIT),
	}, 4 },
	{ "a probe that stays outstanding", {
		LOOK(7, 9, false, 200, MOVED),
		LOOK(7, 9, false, 500, PROBE),
		LOOK(7, 10, true, 500, WAIT),
		LOOK(7, 10, true, 500, STUCK),
	}, 4 },
	{ "one look is too few, even after a long interval", {
		LOOK(0, 1, false, 5000, PROBE),
		LOOK(0, 2, true, 999, WAIT),
		LOOK(0, 2, true, 1, STUCK),
	}, 3 },
	{ "the time before a movement doesn't count", {
		LOOK(0, 1, false, 200, PROBE),
		LOOK(0, 2, true, 900, WAIT),
		LOOK(1, 2, true, 50, MOVED),
		LOOK(1, 2, true, 900, WAIT),
		LOOK(1, 2, true, 900, WAIT),
		LOOK(1, 2, true, 99, WAIT),
		LOOK(1, 2, true, 1, STUCK),
	}, 7 },
	{ "the counters wrap", {
		LOOK(~0u, ~0u, false, 200, MOVED),
		LOOK(~0u, ~0u, false, 200, PROBE),
		LOOK(0, 0, false, 200, MOVED),
		LOOK(0, 0, false, 200, IDLE),
	}, 4 },
};

KUNIT_ARRAY_PARAM_DESC(con_cases, con_cases, desc);

static void con_is_checked(struct kunit *test)
{
	const struct con_case *c = test->param_value;
	struct rtrs_watch watch = {};
	const struct look *look;
	enum rtrs_live live;
	unsigned int i;

	for (i = 0; i < c->nr; i++) {
		look = &c->looks[i];
		live = rtrs_hb_check_con(&watch, look->moved, look->posted,
					 look->probing, look->ms, LIMIT_MS);
		KUNIT_EXPECT_EQ_MSG(test, live, look->live, "%s: look %u",
				    c->desc, i);
		if (live == RTRS_LIVE_PROBE)
			watch.probed = look->posted + 1;
	}
}

/* No probe can be posted to a full queue, which is no sign of life. */
static void con_with_a_full_queue_dies(struct kunit *test)
{
	struct rtrs_watch watch = { .moved = 5 };
	unsigned int i;

	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, RTRS_LIVE_PROBE,
				rtrs_hb_check_con(&watch, 5, 100, false, 200,
						  LIMIT_MS));
	KUNIT_EXPECT_EQ(test, RTRS_LIVE_STUCK,
			rtrs_hb_check_con(&watch, 5, 100, false, 200,
					  LIMIT_MS));
}

static const struct path_case {
	const char *desc;
	unsigned int max_missed;
	const char *moved;	/* progress in each interval: y or n */
	bool alive;		/* result after the last interval; true after all others */
} path_cases[] = {
	{ "something moves in each", 3, "yyyyyyy", true },
	{ "nothing in two of three", 3, "ynn", true },
	{ "nothing in three", 3, "ynnn", false },
	{ "three, not in a row", 3, "nnynnynn", true },
	{ "three in a row, after others", 3, "nnynnynnn", false },
	{ "one is enough", 1, "yyn", false },
	{ "something in the only one", 1, "yyy", true },
	{ "five by default", 5, "nnnn", true },
	{ "the fifth", 5, "nnnnn", false },
};

KUNIT_ARRAY_PARAM_DESC(path_cases, path_cases, desc);

static void path_is_checked(struct kunit *test)
{
	const struct path_case *c = test->param_value;
	unsigned int missed = 0;
	const char *p;

	for (p = c->moved; *p; p++)
		KUNIT_EXPECT_EQ_MSG(test, p[1] || c->alive,
				    rtrs_hb_check_path(&missed, *p == 'y',
						       c->max_missed),
				    "%s: interval %td", c->desc, p - c->moved);
}

/* A new connection may use another device, or another server. */
static void round_trip_is_that_of_the_connection(struct kunit *test)
{
	struct rtrs_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	path->hb_latency = 12345;
	rtrs_hb_reset(path);
	KUNIT_EXPECT_EQ(test, path->hb_latency, 0);
}

static struct kunit_case rtrs_hb_cases[] = {
	KUNIT_CASE_PARAM(con_is_checked, con_cases_gen_params),
	KUNIT_CASE(con_with_a_full_queue_dies),
	KUNIT_CASE_PARAM(path_is_checked, path_cases_gen_params),
	KUNIT_CASE(round_trip_is_that_of_the_connection),
	{}
};

static struct kunit_suite rtrs_hb_suite = {
	.name = "rtrs-hb",
	.test_cases = rtrs_hb_cases,
};

kunit_test_suite(rtrs_hb_suite);
