// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the limits of handshakes.
 */
#include <kunit/test.h>
#include <linux/sizes.h>

#include "../srv.h"

/* Several addresses in a row use as many paths as they can */
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
	/* The limit was lowered. */
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 1024, 1, 10));
}

/* A single path may use all memory if there is no other path. */
static void path_gets_what_others_leave(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, 0, SZ_16M, SZ_16M));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(0, 0, SZ_16M + 1, SZ_16M));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(SZ_4M, SZ_4M, SZ_8M, SZ_16M));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_may_begin(SZ_4M, SZ_4M, SZ_8M + 1, SZ_16M));
	KUNIT_EXPECT_TRUE(test, rtrs_srv_may_begin(0, SZ_4M, SZ_8M + SZ_4M, SZ_16M));
}

/* A new path of 100 bytes in a session with other paths */
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

/* A listener, and a session whose paths have addresses chosen by the tests */
struct limit_test {
	struct rtrs_srv srv;
	struct rtrs_srv_sess sess;
	unsigned int nr;
	struct rtrs_srv_path *path[1024];
};

static struct limit_test *limit_test_new(struct kunit *test)
{
	struct limit_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->sess.srv = &t->srv;
	INIT_LIST_HEAD(&t->sess.paths);
	return t;
}

/* Begins the handshake of a path of one byte, from an IPv4 address and any port. */
static int begin(struct kunit *test, struct limit_test *t, u32 addr)
{
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct sockaddr_in *sin = (struct sockaddr_in *)&path->path.addr.dst;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, path);
	t->path[t->nr] = path;
	path->sess = &t->sess;
	INIT_LIST_HEAD(&path->setup.handshake);
	sin->sin_family = AF_INET;
	sin->sin_port = cpu_to_be16(t->nr);
	sin->sin_addr.s_addr = cpu_to_be32(addr);
	mutex_lock(&rtrs_srv_lock);
	ret = rtrs_srv_handshake_begin(path, 1);
	mutex_unlock(&rtrs_srv_lock);
	if (!ret)
		t->nr++;
	return ret;
}

/* Ends the handshake of the last path. */
static void end(struct limit_test *t)
{
	struct rtrs_srv_path *path = t->path[--t->nr];

	list_del_init(&path->setup.handshake);
	rtrs_srv_mem_uncharge(&path->mem.charged);
}

static unsigned int begin_all(struct kunit *test, struct limit_test *t, u32 addr)
{
	unsigned int nr = 0;

	while (t->nr < ARRAY_SIZE(t->path) && !begin(test, t, addr))
		nr++;
	return nr;
}

static void paths_are_counted_by_address(struct kunit *test)
{
	struct limit_test *t = limit_test_new(test);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, begin_all(test, t, 1), 512);
	KUNIT_EXPECT_EQ(test, begin_all(test, t, 2), 256);
	KUNIT_EXPECT_EQ(test, begin(test, t, 1), -EAGAIN);
	for (i = 0; i < 255; i++)
		end(t);
	/* Ended handshakes of the second address don't count. */
	KUNIT_EXPECT_EQ(test, begin(test, t, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, begin_all(test, t, 2), 255);
	while (t->nr)
		end(t);
	KUNIT_EXPECT_EQ(test, begin_all(test, t, 1), 512);
	while (t->nr)
		end(t);
}

static struct kunit_case rtrs_srv_limit_cases[] = {
	KUNIT_CASE(each_address_gets_some),
	KUNIT_CASE(path_gets_what_others_leave),
	KUNIT_CASE_PARAM(session_that_is_up_has_room, room_cases_gen_params),
	KUNIT_CASE(paths_are_counted_by_address),
	{}
};

static struct kunit_suite rtrs_srv_limit_suite = {
	.name = "rtrs-server-limit",
	.test_cases = rtrs_srv_limit_cases,
};

kunit_test_suite(rtrs_srv_limit_suite);
