// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client's path states: every state, every event.
 */
#include <kunit/test.h>

#include "clt.h"

#define SAME		RTRS_CLT_NR_STATES
#define S(name)		RTRS_CLT_##name
#define E(name)		RTRS_CLT_EV_##name

static const struct move_case {
	const char *desc;
	enum rtrs_clt_state state;
	enum rtrs_clt_event event;
	enum rtrs_clt_state next;
} move_cases[] = {
	{ "disconnected: connect begins", S(DISCONNECTED), E(CONNECT), S(CONNECTING) },
	{ "disconnected: connected is nothing", S(DISCONNECTED), E(CONNECTED), SAME },
	{ "disconnected: fail is nothing", S(DISCONNECTED), E(FAIL), SAME },
	{ "disconnected: ended is nothing", S(DISCONNECTED), E(ENDED), SAME },
	{ "connecting: connect is refused", S(CONNECTING), E(CONNECT), SAME },
	{ "connecting: connected takes requests", S(CONNECTING), E(CONNECTED), S(CONNECTED) },
	{ "connecting: fail ends it", S(CONNECTING), E(FAIL), S(ENDING) },
	{ "connecting: ended is nothing", S(CONNECTING), E(ENDED), SAME },
	{ "connected: connect is refused", S(CONNECTED), E(CONNECT), SAME },
	{ "connected: connected is nothing", S(CONNECTED), E(CONNECTED), SAME },
	{ "connected: fail ends it", S(CONNECTED), E(FAIL), S(ENDING) },
	{ "connected: ended is nothing", S(CONNECTED), E(ENDED), SAME },
	{ "ending: connect is refused", S(ENDING), E(CONNECT), SAME },
	{ "ending: connected comes too late", S(ENDING), E(CONNECTED), SAME },
	{ "ending: only the first fail counts", S(ENDING), E(FAIL), SAME },
	{ "ending: ended frees it for connect", S(ENDING), E(ENDED), S(DISCONNECTED) },
};

KUNIT_ARRAY_PARAM_DESC(move_cases, move_cases, desc);

static void path_moves(struct kunit *test)
{
	const struct move_case *c = test->param_value;
	enum rtrs_clt_state state = c->state;
	bool moved = rtrs_clt_next_state(&state, c->event);

	KUNIT_EXPECT_EQ(test, moved, c->next != SAME);
	KUNIT_EXPECT_EQ(test, state, c->next == SAME ? c->state : c->next);
}

static void path_moves_are_all_in_the_table(struct kunit *test)
{
	unsigned long seen = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(move_cases); i++)
		__set_bit(move_cases[i].state * RTRS_CLT_NR_EVENTS +
			  move_cases[i].event, &seen);
	KUNIT_EXPECT_EQ(test, seen, BIT(RTRS_CLT_NR_STATES * RTRS_CLT_NR_EVENTS) - 1);
}

/* Those who wait are told the first reason, not what follows from it. */
static void path_keeps_the_reason_of_its_end(struct kunit *test)
{
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	spin_lock_init(&path->state_lock);
	init_waitqueue_head(&path->wait);
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(CONNECT), 0));
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(FAIL), -EPROTO));
	KUNIT_EXPECT_FALSE(test, rtrs_clt_path_move(path, E(FAIL), -ECONNRESET));
	KUNIT_EXPECT_FALSE(test, rtrs_clt_path_move(path, E(CONNECTED), 0));
	KUNIT_EXPECT_EQ(test, path->err, -EPROTO);
	KUNIT_EXPECT_TRUE(test, rtrs_clt_path_move(path, E(ENDED), 0));
	KUNIT_EXPECT_EQ(test, path->state, S(DISCONNECTED));
}

static struct kunit_case rtrs_clt_path_cases[] = {
	KUNIT_CASE_PARAM(path_moves, move_cases_gen_params),
	KUNIT_CASE(path_moves_are_all_in_the_table),
	KUNIT_CASE(path_keeps_the_reason_of_its_end),
	{}
};

static struct kunit_suite rtrs_clt_path_suite = {
	.name = "rtrs-client-path",
	.test_cases = rtrs_clt_path_cases,
};

kunit_test_suite(rtrs_clt_path_suite);
