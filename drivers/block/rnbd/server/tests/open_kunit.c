// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of OPEN: whether the client flushes the write cache of the disk.
 */
#include <kunit/test.h>

#include "../rnbd-srv.h"

static sector_t fake_capacity(const struct rnbd_srv_map *map)
{
	return 8;
}

static void limits_of_a_disk_with_a_cache(const struct rnbd_srv_map *map,
					  struct rnbd_msg_open_rsp *rsp)
{
	rsp->cache_policy = RNBD_CACHE_WRITEBACK;
}

/* Value of flushes when the limits were read: the disk's cache may be turned on right then. */
static bool relied_on;

static void limits_before_a_change(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	relied_on = map->flushes;
}

static void client_is_not_relied_on_while_it_is_answered(struct kunit *test)
{
	static const struct rnbd_srv_backend backend = {
		.capacity = fake_capacity,
		.limits = limits_before_a_change,
	};
	struct rnbd_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	struct rnbd_msg_open msg = { .flags = RNBD_OPEN_FLUSHES };
	struct rnbd_msg_open_rsp rsp = { };

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, map);
	sess->features = RNBD_FEATURE_DISK_STATE;
	map->sess = sess;
	map->backend = &backend;
	map->flushes = true;
	relied_on = true;
	rnbd_srv_map_answer(map, &msg, &rsp);
	KUNIT_EXPECT_FALSE(test, relied_on);
	KUNIT_EXPECT_FALSE(test, map->flushes);
}

static const struct answered_case {
	const char *desc;
	u32 features;
	u8 flags;
	bool before, after;
} answered_cases[] = {
	{ "it flushes", RNBD_FEATURE_DISK_STATE, RNBD_OPEN_FLUSHES, false, true },
	{ "it has requests of before", RNBD_FEATURE_DISK_STATE, 0, true, false },
	{ "it has always flushed", 0, 0, true, true },
	{ "it was told of no cache once", 0, RNBD_OPEN_FLUSHES, false, false },
};

KUNIT_ARRAY_PARAM_DESC(answered_cases, answered_cases, desc);

static void client_that_flushes_is_relied_on(struct kunit *test)
{
	static const struct rnbd_srv_backend backend = {
		.capacity = fake_capacity,
		.limits = limits_of_a_disk_with_a_cache,
	};
	const struct answered_case *c = test->param_value;
	struct rnbd_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	struct rnbd_msg_open msg = { .flags = c->flags };
	struct rnbd_msg_open_rsp rsp = { };

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, map);
	sess->features = c->features;
	map->sess = sess;
	map->backend = &backend;
	map->flushes = c->before;
	rnbd_srv_map_answer(map, &msg, &rsp);
	KUNIT_EXPECT_EQ(test, map->flushes, c->after);
}

static struct kunit_case rnbd_srv_open_cases[] = {
	KUNIT_CASE(client_is_not_relied_on_while_it_is_answered),
	KUNIT_CASE_PARAM(client_that_flushes_is_relied_on, answered_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_open_suite = {
	.name = "rnbd-server-open",
	.test_cases = rnbd_srv_open_cases,
};

kunit_test_suite(rnbd_srv_open_suite);
