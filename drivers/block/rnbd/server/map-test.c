// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of mappings: access modes, and the answer to OPEN.
 */
#include <kunit/test.h>

#include "rnbd-srv.h"

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

static sector_t fake_capacity(const struct rnbd_srv_map *map)
{
	return 0x1122334455667788;
}

static void fake_limits(const struct rnbd_srv_map *map,
			struct rnbd_msg_open_rsp *rsp)
{
	rsp->max_hw_sectors = cpu_to_le32(0x01020304);
	rsp->max_write_zeroes_sectors = cpu_to_le32(0x11121314);
	rsp->max_discard_sectors = cpu_to_le32(0x21222324);
	rsp->discard_granularity = cpu_to_le32(0x31323334);
	rsp->discard_alignment = cpu_to_le32(0x41424344);
	rsp->physical_block_size = cpu_to_le16(0x5152);
	rsp->max_segments = cpu_to_le16(0x7172);
	rsp->secure_discard = cpu_to_le16(0x8182);
	rsp->cache_policy = RNBD_CACHE_FUA | RNBD_CACHE_WRITEBACK;
	rsp->id_type = RNBD_ID_NAA;
	rsp->id_len = 8;
	memcpy(rsp->id, "\x50\x01\x02\x03\x04\x05\x06\x07", 8);
}

static void answer_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const struct rnbd_srv_backend backend = {
		.capacity = fake_capacity,
		.limits = fake_limits,
	};
	static const u8 bytes[96] = {
		0x03, 0x00, 0x00, 0x00, 0xdd, 0xcc, 0xbb, 0xaa,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11,
		0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,
		0x44, 0x43, 0x42, 0x41, 0x52, 0x51, 0x00, 0x10,
		0x72, 0x71, 0x82, 0x81, 0x00, 0x03, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x03, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x50, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	struct rnbd_srv_writer *wr = kunit_kzalloc(test, sizeof(*wr), GFP_KERNEL);
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	struct rnbd_msg_open_rsp rsp = { };

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	rnbd_srv_writer_init(wr);
	wr->owner = 0x0102030405060709;
	map->writer = wr;
	map->mode = RNBD_ACCESS_HANDOVER;
	map->age.generation = 0x0102030405060708;
	map->backend = &backend;
	map->id = 0xaabbccdd;
	map->block_size = 4096;
	rnbd_srv_fill_rsp(map, &rsp);
	KUNIT_EXPECT_EQ(test, sizeof(rsp), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&rsp, bytes, sizeof(bytes)), 0);
}

static struct kunit_case rnbd_srv_map_cases[] = {
	KUNIT_CASE_PARAM(device_is_opened_by_some, access_cases_gen_params),
	KUNIT_CASE(answer_is_on_the_wire_as_written_down),
	{}
};

static struct kunit_suite rnbd_srv_map_suite = {
	.name = "rnbd-server-map",
	.test_cases = rnbd_srv_map_cases,
};

kunit_test_suite(rnbd_srv_map_suite);
