// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of mappings: the answer to OPEN on the wire, and mappings that are overdue.
 */
#include <kunit/test.h>

#include "../rnbd-srv.h"

static sector_t fake_capacity(const struct rnbd_srv_map *map)
{
	return 0x1122334455667788;
}

static void fake_limits(const struct rnbd_srv_map *map,
			struct rnbd_msg_open_rsp *rsp)
{
	rsp->logical_block_size = cpu_to_le16(map->block_size);
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
	static const u8 bytes[112] = {
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
		0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
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
	KUNIT_ASSERT_EQ(test, uuid_parse("12345678-9abc-def0-0102-030405060708", &map->uuid), 0);
	rnbd_srv_fill_rsp(map, &rsp);
	KUNIT_EXPECT_EQ(test, sizeof(rsp), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&rsp, bytes, sizeof(bytes)), 0);
}

static const struct overdue_case {
	const char *desc;
	u32 features;
	bool gone, started;
	/* Number of rounds after which the mapping is closed; 0: never */
	unsigned int rounds;
} overdue_cases[] = {
	{ "in use", RNBD_FEATURE_DISK_STATE, false, false, 0 },
	{ "its disk was removed", RNBD_FEATURE_DISK_STATE, true, false, 31 },
	{ "its disk was removed, which the client can't know", 0, true, false, 1 },
	{ "not opened again", RNBD_FEATURES, false, true, 31 },
	{ "not opened again by a client that gets no events", 0, false, true, 0 },
	{ "not opened again, and its disk was removed", RNBD_FEATURES, true, true, 31 },
};

KUNIT_ARRAY_PARAM_DESC(overdue_cases, overdue_cases, desc);

static void mapping_without_a_user_is_closed(struct kunit *test)
{
	const struct overdue_case *c = test->param_value;
	struct rnbd_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	unsigned int round;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, map);
	sess->features = c->features;
	sess->starts = 1 + c->started;
	map->sess = sess;
	map->starts = 1;
	if (c->gone)
		map->told.flags = RNBD_DISK_GONE;
	for (round = 1; round <= 100 && !rnbd_srv_overdue(map); round++)
		;
	KUNIT_EXPECT_EQ(test, round, c->rounds ?: 101);

	/* Another OPEN restarts the time limit. */
	map->told.flags = 0;
	map->starts = sess->starts;
	KUNIT_EXPECT_FALSE(test, rnbd_srv_overdue(map));
	KUNIT_EXPECT_EQ(test, map->overdue, 0);
}

static struct kunit_case rnbd_srv_map_cases[] = {
	KUNIT_CASE(answer_is_on_the_wire_as_written_down),
	KUNIT_CASE_PARAM(mapping_without_a_user_is_closed, overdue_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_map_suite = {
	.name = "rnbd-server-map",
	.test_cases = rnbd_srv_map_cases,
};

kunit_test_suite(rnbd_srv_map_suite);
