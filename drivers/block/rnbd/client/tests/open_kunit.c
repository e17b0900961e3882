// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of device ids: those in answers to OPEN, and the lock for OPEN and CLOSE.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

#define GENERATION	3

static const struct id_case {
	const char *desc;
	enum rnbd_clt_dev_state other;
	bool other_opened;
	u32 id;
	unsigned int generation;
	int ret;
} id_cases[] = {
	{ "an id of its own", RNBD_DEV_OPEN, true, 8, GENERATION, 0 },
	{ "the id of another one", RNBD_DEV_OPEN, true, 7, GENERATION, -EEXIST },
	{ "the id of one that is being closed", RNBD_DEV_UNMAPPED, true, 7, GENERATION, -EEXIST },
	{ "the id of one that was closed", RNBD_DEV_UNMAPPED, false, 7, GENERATION, 0 },
	{ "the id of one that was taken away", RNBD_DEV_REVOKED, false, 7, GENERATION, 0 },
	{ "an id of the session before", RNBD_DEV_OPEN, true, 8, GENERATION - 1, -ECONNABORTED },
};

KUNIT_ARRAY_PARAM_DESC(id_cases, id_cases, desc);

static void id_is_that_of_one_device(struct kunit *test)
{
	const struct id_case *c = test->param_value;
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rnbd_clt_dev *dev = kunit_kcalloc(test, 2, sizeof(*dev), GFP_KERNEL);
	struct rnbd_clt_dev *other = dev + 1;
	struct rnbd_msg_open_rsp rsp = { .device_id = cpu_to_le32(c->id), .uuid = { 1 } };

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	spin_lock_init(&sess->lock);
	INIT_LIST_HEAD(&sess->devs);
	sess->generation = GENERATION;
	dev->sess = sess;
	list_add_tail(&dev->list, &sess->devs);
	other->sess = sess;
	other->state = c->other;
	other->opened = c->other_opened;
	other->device_id = 7;
	list_add_tail(&other->list, &sess->devs);

	/* Prevents the log message about a mapping by another name. */
	dev->open_err = -EEXIST;
	KUNIT_EXPECT_EQ(test, rnbd_clt_dev_set_open(dev, &rsp, c->generation), c->ret);
	KUNIT_EXPECT_EQ(test, dev->uuid.b[0], !c->ret);
	KUNIT_EXPECT_EQ(test, dev->opened, !c->ret);
	KUNIT_EXPECT_EQ(test, dev->state, c->ret ? RNBD_DEV_INIT : RNBD_DEV_OPEN);
}

static void other_servers_get_one_open_at_a_time(struct kunit *test)
{
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	bool locked;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	mutex_init(&sess->ids_lock);
	locked = rnbd_clt_lock_ids(sess);
	KUNIT_EXPECT_TRUE(test, locked);
	KUNIT_EXPECT_TRUE(test, mutex_is_locked(&sess->ids_lock));
	/* The features may be granted before the answer arrives. */
	sess->features = RNBD_FEATURE_UNIQUE_ID;
	rnbd_clt_unlock_ids(sess, locked);
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&sess->ids_lock));

	locked = rnbd_clt_lock_ids(sess);
	KUNIT_EXPECT_FALSE(test, locked);
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&sess->ids_lock));
	rnbd_clt_unlock_ids(sess, locked);
}

static struct kunit_case rnbd_clt_open_cases[] = {
	KUNIT_CASE_PARAM(id_is_that_of_one_device, id_cases_gen_params),
	KUNIT_CASE(other_servers_get_one_open_at_a_time),
	{}
};

static struct kunit_suite rnbd_clt_open_suite = {
	.name = "rnbd-client-open",
	.test_cases = rnbd_clt_open_cases,
};

kunit_test_suite(rnbd_clt_open_suite);
