// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the unique id that a disk reports.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

static const struct unique_id_case {
	const char *desc;
	/* Type and length from the server; the next field is the type that the caller requests. */
	u8 id_type, id_len;
	enum blk_unique_id asked;
	int ret;
} unique_id_cases[] = {
	{ "an NAA id", RNBD_ID_NAA, 16, BLK_UID_NAA, 16 },
	{ "a short NAA id", RNBD_ID_NAA, 8, BLK_UID_NAA, 8 },
	{ "an EUI-64", RNBD_ID_EUI64, 8, BLK_UID_EUI64, 8 },
	{ "a T10 id", RNBD_ID_T10, 12, BLK_UID_T10, 12 },
	{ "an NAA id, asked for an EUI-64", RNBD_ID_NAA, 16, BLK_UID_EUI64, -ENXIO },
	{ "no id", 0, 0, BLK_UID_NAA, -ENXIO },
	{ "no id, asked for type 0", 0, 0, 0, -ENXIO },
};

KUNIT_ARRAY_PARAM_DESC(unique_id_cases, unique_id_cases, desc);

static void disk_reports_the_id_of_the_type_asked_for(struct kunit *test)
{
	const struct unique_id_case *c = test->param_value;
	struct rnbd_clt_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct gendisk *disk = kunit_kzalloc(test, sizeof(*disk), GFP_KERNEL);
	u8 id[16], want[16];

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, disk);
	disk->private_data = dev;
	dev->id_type = c->id_type;
	dev->id_len = c->id_len;
	memset(dev->id, 0xa5, c->id_len);
	memset(id, 0xff, sizeof(id));
	memcpy(want, c->ret < 0 ? id : dev->id, sizeof(want));
	KUNIT_EXPECT_EQ(test, rnbd_clt_get_unique_id(disk, id, c->asked), c->ret);
	KUNIT_EXPECT_EQ(test, memcmp(id, want, sizeof(id)), 0);
}

static struct kunit_case rnbd_clt_device_cases[] = {
	KUNIT_CASE_PARAM(disk_reports_the_id_of_the_type_asked_for, unique_id_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_clt_device_suite = {
	.name = "rnbd-client-device",
	.test_cases = rnbd_clt_device_cases,
};

kunit_test_suite(rnbd_clt_device_suite);
