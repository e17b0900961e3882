// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the server's path states: every state, every event.
 */
#include <kunit/test.h>

#include "srv.h"

#define S(name)		RTRS_SRV_##name

static const struct move_case {
	const char *desc;
	enum rtrs_srv_state state;
	enum rtrs_srv_event event;
	enum rtrs_srv_state next;
} move_cases[] = {
	{ "connecting: up takes requests", S(CONNECTING), S(UP), S(CONNECTED) },
	{ "connecting: timeout closes it", S(CONNECTING), S(SETUP_TIMEOUT), S(CLOSING) },
	{ "connecting: end closes it", S(CONNECTING), S(END), S(CLOSING) },
	{ "connected: up is nothing", S(CONNECTED), S(UP), S(CONNECTED) },
	{ "connected: timeout comes too late", S(CONNECTED), S(SETUP_TIMEOUT), S(CONNECTED) },
	{ "connected: end closes it", S(CONNECTED), S(END), S(CLOSING) },
	{ "closing: up comes too late", S(CLOSING), S(UP), S(CLOSING) },
	{ "closing: timeout is nothing", S(CLOSING), S(SETUP_TIMEOUT), S(CLOSING) },
	{ "closing: only the first end counts", S(CLOSING), S(END), S(CLOSING) },
};

KUNIT_ARRAY_PARAM_DESC(move_cases, move_cases, desc);

static void path_moves(struct kunit *test)
{
	const struct move_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_srv_next_state(c->state, c->event), c->next);
}

static void path_moves_are_all_in_the_table(struct kunit *test)
{
	unsigned long seen = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(move_cases); i++)
		__set_bit(move_cases[i].state * RTRS_SRV_NR_EVENTS +
			  move_cases[i].event, &seen);
	KUNIT_EXPECT_EQ(test, seen, BIT(RTRS_SRV_NR_STATES * RTRS_SRV_NR_EVENTS) - 1);
}

static struct kunit_case rtrs_srv_path_cases[] = {
	KUNIT_CASE_PARAM(path_moves, move_cases_gen_params),
	KUNIT_CASE(path_moves_are_all_in_the_table),
	{}
};

static struct kunit_suite rtrs_srv_path_suite = {
	.name = "rtrs-server-path",
	.test_cases = rtrs_srv_path_cases,
};

kunit_test_suite(rtrs_srv_path_suite);
