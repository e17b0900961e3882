// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of devices: which mappings exclude each other.
 */
#include <kunit/test.h>

#include "../rnbd-srv.h"

static const struct access_case {
	const char *desc;
	int ret;
	unsigned int nr_writers, nr_handover;
	enum rnbd_access_mode mode;
} access_cases[] = {
	{ "read only, nobody writes", 0, 0, 0, RNBD_ACCESS_RO },
	{ "read only, one writes", 0, 1, 0, RNBD_ACCESS_RO },
	{ "read only, two write", 0, 2, 0, RNBD_ACCESS_RO },
	{ "read only, it is handed over", 0, 2, 2, RNBD_ACCESS_RO },
	{ "read and write, nobody writes", 0, 0, 0, RNBD_ACCESS_RW },
	{ "read and write, one writes", -EBUSY, 1, 0, RNBD_ACCESS_RW },
	{ "read and write, two write", -EBUSY, 2, 0, RNBD_ACCESS_RW },
	{ "read and write, it is handed over", -EBUSY, 1, 1, RNBD_ACCESS_RW },
	{ "migration, nobody writes", 0, 0, 0, RNBD_ACCESS_MIGRATION },
	{ "migration, one writes", 0, 1, 0, RNBD_ACCESS_MIGRATION },
	{ "migration, two write", -EBUSY, 2, 0, RNBD_ACCESS_MIGRATION },
	{ "migration, it is handed over", -EBUSY, 1, 1, RNBD_ACCESS_MIGRATION },
	{ "handover, nobody writes", 0, 0, 0, RNBD_ACCESS_HANDOVER },
	{ "handover, one writes", -EBUSY, 1, 0, RNBD_ACCESS_HANDOVER },
	{ "handover, two write", -EBUSY, 2, 0, RNBD_ACCESS_HANDOVER },
	{ "handover, from one", 0, 1, 1, RNBD_ACCESS_HANDOVER },
	{ "handover, from many", 0, 1000, 1000, RNBD_ACCESS_HANDOVER },
};

KUNIT_ARRAY_PARAM_DESC(access_cases, access_cases, desc);

static void device_is_opened_by_some(struct kunit *test)
{
	const struct access_case *c = test->param_value;
	struct rnbd_srv_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->nr_writers = c->nr_writers;
	dev->nr_handover = c->nr_handover;
	KUNIT_EXPECT_EQ(test, rnbd_srv_access(dev, c->mode), c->ret);
}

static const struct shared_case {
	const char *desc;
	bool same_session;
	/* Names of the sessions; only old sessions of a client have the name of another one. */
	const char *old_name, *new_name;
	bool old_exclusive, new_exclusive;
	int ret;
} shared_cases[] = {
	{ "none is exclusive", false, "a", "b", false, false, 0 },
	{ "the old one is", false, "a", "b", true, false, -EBUSY },
	{ "the new one is", false, "a", "b", false, true, -EBUSY },
	{ "both are", false, "a", "b", true, true, -EBUSY },
	{ "both are, of one session", true, "a", "a", true, true, 0 },
	{ "an old session of the client has it", false, "a", "a", false, false, -EBUSY },
};

KUNIT_ARRAY_PARAM_DESC(shared_cases, shared_cases, desc);

static struct rnbd_srv_sess *sess_of(struct kunit *test, const char *name)
{
	struct rnbd_srv_sess *sess;

	sess = kunit_kzalloc(test, struct_size(sess, name, strlen(name) + 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	memcpy(sess->name, name, strlen(name) + 1);
	return sess;
}

static void device_is_shared_with_some_sessions(struct kunit *test)
{
	const struct shared_case *c = test->param_value;
	struct rnbd_srv_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rnbd_srv_map *maps = kunit_kcalloc(test, 2, sizeof(*maps), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, maps);
	INIT_LIST_HEAD(&dev->maps);
	maps[0].sess = sess_of(test, c->old_name);
	maps[0].exclusive = c->old_exclusive;
	maps[1].sess = c->same_session ? maps[0].sess : sess_of(test, c->new_name);
	maps[1].exclusive = c->new_exclusive;
	KUNIT_EXPECT_EQ(test, rnbd_srv_shared(dev, &maps[1]), 0);
	list_add(&maps[0].list, &dev->maps);
	KUNIT_EXPECT_EQ(test, rnbd_srv_shared(dev, &maps[1]), c->ret);
}

static struct kunit_case rnbd_srv_dev_cases[] = {
	KUNIT_CASE_PARAM(device_is_opened_by_some, access_cases_gen_params),
	KUNIT_CASE_PARAM(device_is_shared_with_some_sessions, shared_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_dev_suite = {
	.name = "rnbd-server-dev",
	.test_cases = rnbd_srv_dev_cases,
};

kunit_test_suite(rnbd_srv_dev_suite);
