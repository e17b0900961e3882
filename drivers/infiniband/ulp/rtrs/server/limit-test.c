// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the limits of handshakes.
 */
#include <kunit/test.h>
#include <linux/sizes.h>

#include "srv.h"

/* Paths that one address after the other gets, if each takes all that it can */
static void each_address_gets_some(struct kunit *test)
{
	static const unsigned int share[] = { 512, 256, 128, 64, 32, 16, 8, 4, 2, 1 };
	unsigned int all = 0, nr, i;

	for (i = 0; i < ARRAY_SIZE(share); i++) {
		for (nr = 0; rtrs_srv_may_begin(nr, all, 1, 1024); nr++)
			all++;
		KUNIT_EXPECT_EQ(test, nr, share[i]);
	}
	KUNIT_EXPECT_EQ(test, all, 1023);
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, all, 1, 1024));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 1024, 1, 1024));
	/* It was made lower. */
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 1024, 1, 10));
}

/* Of memory, one path may take all that there is, if there is no other one. */
static void path_gets_what_others_leave(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, 0, SZ_16M, SZ_16M));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 0, SZ_16M + 1, SZ_16M));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(SZ_4M, SZ_4M, SZ_8M, SZ_16M));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(SZ_4M, SZ_4M, SZ_8M + 1, SZ_16M));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, SZ_4M, SZ_8M + SZ_4M, SZ_16M));
}

/* A new path of 100 bytes in a session that has others */
static const struct room_case {
	const char *desc;
	bool want;
	struct {
		enum rtrs_srv_state state;
		bool admitted;
		u64 cost;
		u64 charged;
	} path[3];
	unsigned int nr;
} room_cases[] = {
	{ "it is the first one", false },
	{ "one is connected", true, { { RTRS_SRV_CONNECTED, true, 100, 100 } }, 1 },
	{ "a smaller one is connected", false, { { RTRS_SRV_CONNECTED, true, 99, 99 } }, 1 },
	{ "one is closing", false, { { RTRS_SRV_CLOSING, true, 100, 100 } }, 1 },
	{ "one is admitted, but not connected", false,
	  { { RTRS_SRV_CONNECTING, true, 100, 100 } }, 1 },
	{ "a stranger has used up the room", false,
	  { { RTRS_SRV_CONNECTED, true, 100, 100 }, { RTRS_SRV_CONNECTING, false, 0, 1 } }, 2 },
	{ "so has one that is closing", false,
	  { { RTRS_SRV_CONNECTED, true, 100, 100 }, { RTRS_SRV_CLOSING, false, 0, 1 } }, 2 },
	{ "two are connected", true,
	  { { RTRS_SRV_CONNECTED, true, 100, 100 }, { RTRS_SRV_CONNECTED, true, 100, 100 },
	    { RTRS_SRV_CONNECTING, false, 0, 100 } }, 3 },
};

KUNIT_ARRAY_PARAM_DESC(room_cases, room_cases, desc);

static void session_that_is_up_has_room(struct kunit *test)
{
	const struct room_case *c = test->param_value;
	struct rtrs_srv_path *path, *other;
	struct rtrs_srv_sess *sess;
	unsigned int i;

	sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, sess && path);
	INIT_LIST_HEAD(&sess->paths);
	path->sess = sess;
	for (i = 0; i < c->nr; i++) {
		other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, other);
		other->state = c->path[i].state;
		other->setup.admitted = c->path[i].admitted;
		other->cost = c->path[i].cost;
		other->mem.charged = c->path[i].charged;
		list_add_tail(&other->entry, &sess->paths);
	}
	KUNIT_EXPECT_EQ(test, rtrs_srv_sess_has_room(path, 100), c->want);
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

static int delayed(const struct rtrs_srv_path *path)
{
	int ret;

	mutex_lock(&rtrs_srv_lock);
	ret = rtrs_srv_handshake_delayed(path->sess->srv, &path->addr.dst);
	mutex_unlock(&rtrs_srv_lock);
	return ret;
}

/* Of more than 1,024 addresses the one that was wrong longest ago may try again at once. */
static void oldest_wrong_address_is_forgotten(struct kunit *test)
{
	struct rtrs_srv_path *path = kunit_kcalloc(test, 2, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv *srv = kunit_kzalloc(test, sizeof(*srv), GFP_KERNEL);
	struct sockaddr_in *addr;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, srv);
	sess->srv = srv;
	for (i = 0; i < 2; i++) {
		path[i].sess = sess;
		path[i].addr.dst.ss_family = AF_INET;
	}
	for (i = 0; i < 12; i++)
		rtrs_srv_handshake_wrong(&path[0]);
	KUNIT_EXPECT_EQ(test, delayed(&path[0]), -EAGAIN);
	addr = (struct sockaddr_in *)&path[1].addr.dst;
	for (i = 1; i <= 1024; i++) {
		addr->sin_addr.s_addr = cpu_to_be32(i);
		rtrs_srv_handshake_wrong(&path[1]);
		if (i == 1023)
			KUNIT_EXPECT_EQ(test, delayed(&path[0]), -EAGAIN);
	}
	KUNIT_EXPECT_EQ(test, delayed(&path[0]), 0);
	KUNIT_EXPECT_EQ(test, delayed(&path[1]), 0);
	rtrs_srv_limit_forget(srv);
}

static struct kunit_case rtrs_srv_limit_cases[] = {
	KUNIT_CASE(each_address_gets_some),
	KUNIT_CASE(path_gets_what_others_leave),
	KUNIT_CASE_PARAM(session_that_is_up_has_room, room_cases_gen_params),
	KUNIT_CASE(who_is_wrong_waits_longer_each_time),
	KUNIT_CASE(oldest_wrong_address_is_forgotten),
	{}
};

static struct kunit_suite rtrs_srv_limit_suite = {
	.name = "rtrs-server-limit",
	.test_cases = rtrs_srv_limit_cases,
};

kunit_test_suite(rtrs_srv_limit_suite);
