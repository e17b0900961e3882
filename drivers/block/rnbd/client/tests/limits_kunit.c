// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the server's description of a device: checks, and conversion into limits.
 */
#include <kunit/test.h>
#include <linux/sizes.h>

#include "../rnbd-clt.h"

struct patch {
	size_t nr;
	const char *bytes;
};

#define B(bytes)	{ sizeof(bytes) - 1, bytes }
#define AS_IT_IS	B("")

/* Size 1 GiB, logical blocks of 512 bytes, physical blocks of 4 KiB, cache, FUA and discard */
static const u8 open_rsp[56] = {
	0x03, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01,
	0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00,
	0x00, 0x80, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00, 0x00, 0x03,
};

/* @put: bytes that overwrite open_rsp from offset @at on */
static const struct check_case {
	const char *desc;
	int ret;
	u8 at;
	struct patch put;
} check_cases[] = {
	{ "as it is", 0, 0, AS_IT_IS },
	{ "blocks of 1 KiB", 0, 38, B("\0\x04") },
	{ "blocks of 4 KiB", 0, 38, B("\0\x10") },
	{ "no capacity", 0, 8, B("\0\0\0\0\0\0\0\0") },
	{ "the largest capacity", 0, 8, B("\xff\xff\xff\xff\xff\xff\x3f\0") },
	{ "a sector more", -EFBIG, 8, B("\0\0\0\0\0\0\x40\0") },
	{ "a capacity of all bits", -EFBIG, 8, B("\xff\xff\xff\xff\xff\xff\xff\xff") },
	{ "an OPEN instead of its answer", -EPROTO, 0, B("\x02") },
	{ "zeros instead of an answer", -EPROTO, 0, B("\0\0\0\0") },
	{ "a type beyond a byte", -EPROTO, 0, B("\x03\x01") },
	{ "blocks of 0 bytes", -EINVAL, 38, B("\0\0") },
	{ "blocks of 1 byte", -EINVAL, 38, B("\x01\0") },
	{ "blocks of 256 bytes", -EINVAL, 38, B("\0\x01") },
	{ "blocks of 513 bytes", -EINVAL, 38, B("\x01\x02") },
	{ "blocks of 1536 bytes", -EINVAL, 38, B("\0\x06") },
	{ "blocks of 32 KiB", -EINVAL, 38, B("\0\x80") },
	{ "blocks of 65535 bytes", -EINVAL, 38, B("\xff\xff") },
};

KUNIT_ARRAY_PARAM_DESC(check_cases, check_cases, desc);

/* A device without a disk; its session supports I/O of 124 KiB in 32 segments. */
struct limits_test {
	struct rnbd_clt_sess sess;
	struct rnbd_clt_dev dev;
	struct rnbd_msg_open_rsp rsp;
};

static int limits_init(struct kunit *test)
{
	struct limits_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->sess.limits.max_io_size = 126976;
	t->sess.limits.max_segments = 32;
	t->sess.features = RNBD_FEATURE_WRITE_ZEROES;
	t->dev.sess = &t->sess;
	memcpy(&t->rsp, open_rsp, sizeof(open_rsp));
	test->priv = t;
	return 0;
}

static int check_rsp(struct limits_test *t)
{
	return rnbd_clt_check_rsp(&t->dev, &t->rsp, t->sess.features);
}

static void answer_is_checked(struct kunit *test)
{
	const struct check_case *c = test->param_value;
	struct limits_test *t = test->priv;

	memcpy((u8 *)&t->rsp + c->at, c->put.bytes, c->put.nr);
	KUNIT_EXPECT_EQ(test, check_rsp(t), c->ret);
}

static const struct id_case {
	const char *desc;
	u8 type, len;
	bool granted, known;
} id_cases[] = {
	{ "NAA", RNBD_ID_NAA, 16, true, true },
	{ "EUI-64", RNBD_ID_EUI64, 8, true, true },
	{ "not granted", RNBD_ID_NAA, 16, false, false },
	{ "none", RNBD_ID_NONE, 0, true, false },
	{ "no kind", RNBD_ID_NONE, 16, true, false },
	{ "unknown kind", 4, 16, true, false },
	{ "empty", RNBD_ID_NAA, 0, true, false },
	{ "too long", RNBD_ID_NAA, 17, true, false },
};

KUNIT_ARRAY_PARAM_DESC(id_cases, id_cases, desc);

static void unique_id_is_checked(struct kunit *test)
{
	const struct id_case *c = test->param_value;
	struct limits_test *t = test->priv;

	t->sess.features = c->granted ? RNBD_FEATURE_UNIQUE_ID : 0;
	t->rsp.id_type = c->type;
	t->rsp.id_len = c->len;
	KUNIT_EXPECT_EQ(test, check_rsp(t), 0);
	KUNIT_EXPECT_EQ(test, t->rsp.id_type, c->known ? c->type : 0);
	KUNIT_EXPECT_EQ(test, t->rsp.id_len, c->known ? c->len : 0);
}

static const struct same_id_case {
	const char *desc;
	u8 was_type, was_len, was, type, len, now;
	bool same;
} same_id_cases[] = {
	{ "the same", RNBD_ID_NAA, 8, 5, RNBD_ID_NAA, 8, 5, true },
	{ "another id", RNBD_ID_NAA, 8, 5, RNBD_ID_NAA, 8, 6, false },
	{ "another kind", RNBD_ID_NAA, 8, 5, RNBD_ID_EUI64, 8, 5, false },
	{ "another length", RNBD_ID_NAA, 8, 5, RNBD_ID_NAA, 16, 5, false },
	{ "none before", RNBD_ID_NONE, 0, 0, RNBD_ID_NAA, 8, 5, true },
	{ "none now", RNBD_ID_NAA, 8, 5, RNBD_ID_NONE, 0, 0, true },
};

KUNIT_ARRAY_PARAM_DESC(same_id_cases, same_id_cases, desc);

static void known_id_must_stay_the_same(struct kunit *test)
{
	const struct same_id_case *c = test->param_value;
	struct limits_test *t = test->priv;

	t->dev.id_type = c->was_type;
	t->dev.id_len = c->was_len;
	memset(t->dev.id, c->was, c->was_len);
	t->rsp.id_type = c->type;
	t->rsp.id_len = c->len;
	memset(t->rsp.id, c->now, c->len);
	KUNIT_EXPECT_EQ(test, rnbd_clt_same_id(&t->dev, &t->rsp), c->same);
}

static void capacity_is_one_that_a_file_can_have(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, rnbd_clt_nsectors_ok(0));
	KUNIT_EXPECT_TRUE(test, rnbd_clt_nsectors_ok(0x3fffffffffffff));
	KUNIT_EXPECT_FALSE(test, rnbd_clt_nsectors_ok(0x40000000000000));
	KUNIT_EXPECT_FALSE(test, rnbd_clt_nsectors_ok(U64_MAX));
}

#define WC	BLK_FEAT_WRITE_CACHE
#define FUA	BLK_FEAT_FUA
#define ROT	BLK_FEAT_ROTATIONAL

struct want {
	u32 hw, zeroes, discard, granularity, alignment, erase, pbs, features;
	u32 io_min, io_opt, offset;
};

#define USUAL	{ 248, 65535, 32768, 4096, 0, 0, 4096, WC | FUA }

static const struct fill_case {
	const char *desc;
	u8 at;
	struct patch put;
	struct want want;
} fill_cases[] = {
	{ "as it is", 0, AS_IT_IS, USUAL },
	/* The server's block layer splits larger I/O. */
	{ "smaller I/O than the session's", 16, B("\x40\0\0\0"), USUAL },
	{ "larger I/O than the session's", 16, B("\xff\xff\xff\xff"), USUAL },
	{ "I/O of unknown size", 16, B("\0\0\0\0"), USUAL },
	{ "I/O of less than a page", 16, B("\x01\0\0\0"), USUAL },
	{ "no write zeroes", 20, B("\0\0\0\0"), { 248, 0, 32768, 4096, 0, 0, 4096, WC | FUA } },
	{ "write zeroes beyond 4 GiB", 20, B("\xff\xff\xff\xff"),
	  { 248, 8388607, 32768, 4096, 0, 0, 4096, WC | FUA } },
	{ "no discard, though secure", 24,
	  B("\0\0\0\0\0\x10\0\0\0\x02\0\0\0\x10\0\x02\x80\0\x01\0"),
	  { 248, 65535, 0, 0, 0, 0, 4096, WC | FUA } },
	{ "discard beyond 4 GiB", 24, B("\xff\xff\xff\xff"),
	  { 248, 65535, 8388607, 4096, 0, 0, 4096, WC | FUA } },
	{ "no granularity", 28, B("\0\0\0\0"), { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "granularity below a block", 28, B("\0\x01\0\0"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "granularity of no power of 2", 28, B("\0\x30\0\0"),
	  { 248, 65535, 32768, 12288, 0, 0, 4096, WC | FUA } },
	{ "granularity of one and a half blocks", 28, B("\0\x03\0\0"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "granularity of all that can be discarded", 28, B("\0\0\0\x01"),
	  { 248, 65535, 32768, 16777216, 0, 0, 4096, WC | FUA } },
	{ "granularity above that", 28, B("\0\0\0\x02"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "granularity of 2 GiB", 28, B("\0\0\0\x80"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "granularity of all bits", 28, B("\xff\xff\xff\xff"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "an alignment", 32, B("\0\x02\0\0"), { 248, 65535, 32768, 4096, 512, 0, 4096,
	  WC | FUA } },
	{ "an alignment of the granularity", 32, B("\0\x10\0\0"), USUAL },
	{ "an alignment off a block", 32, B("\x01\0\0\0"), USUAL },
	{ "an alignment of all bits", 32, B("\xff\xff\xff\xff"), USUAL },
	{ "no granularity, but an alignment", 28, B("\0\0\0\0\0\x02\0\0"),
	  { 248, 65535, 32768, 512, 0, 0, 4096, WC | FUA } },
	{ "no physical block size", 36, B("\0\0"),
	  { 248, 65535, 32768, 4096, 0, 0, 512, WC | FUA } },
	{ "a physical block below a logical one", 36, B("\0\x01"),
	  { 248, 65535, 32768, 4096, 0, 0, 512, WC | FUA } },
	{ "a physical block of 3000 bytes", 36, B("\xb8\x0b"),
	  { 248, 65535, 32768, 4096, 0, 0, 512, WC | FUA } },
	{ "a physical block of 32 KiB", 36, B("\0\x80"),
	  { 248, 65535, 32768, 4096, 0, 0, 32768, WC | FUA } },
	{ "blocks of 4 KiB", 38, B("\0\x10"), { 248, 65528, 32768, 4096, 0, 0, 4096, WC | FUA } },
	{ "blocks of 4 KiB, granularity below", 28, B("\0\x02\0\0\0\0\0\0\0\x10\0\x10"),
	  { 248, 65528, 32768, 4096, 0, 0, 4096, WC | FUA } },
	{ "no segments", 40, B("\0\0"), USUAL },
	{ "secure erase", 42, B("\x01\0"), { 248, 65535, 32768, 4096, 0, 32768, 4096, WC | FUA } },
	{ "no cache", 45, B("\0"), { 248, 65535, 32768, 4096, 0, 0, 4096, 0 } },
	{ "FUA alone", 45, B("\x01"), { 248, 65535, 32768, 4096, 0, 0, 4096, FUA } },
	{ "a cache without FUA", 45, B("\x02"), { 248, 65535, 32768, 4096, 0, 0, 4096, WC } },
	{ "bits of the future", 44, B("\xfe\xfc"),
	  { 248, 65535, 32768, 4096, 0, 0, 4096, 0 } },
	{ "rotational", 44, B("\x01"),
	  { 248, 65535, 32768, 4096, 0, 0, 4096, WC | FUA | ROT } },
	{ "sizes of I/O", 48, B("\0\0\x01\0\0\0\x08\0"),
	  { 248, 65535, 32768, 4096, 0, 0, 4096, WC | FUA, 65536, 524288 } },
	{ "sizes of I/O off a block", 48, B("\x01\0\x01\0\x01\0\x08\0"), USUAL },
	{ "an optimal size of 64 MiB", 52, B("\0\0\0\x04"),
	  { 248, 65535, 32768, 4096, 0, 0, 4096, WC | FUA, 4096, SZ_64M } },
	{ "a larger one", 52, B("\0\x10\0\x04"), USUAL },
	{ "sizes of I/O of all bits", 48, B("\xff\xff\xff\xff\xff\xff\xff\xff"), USUAL },
	{ "smallest I/O below a physical block", 48, B("\0\x02\0\0"), USUAL },
	{ "an offset of the blocks", 46, B("\x07\0"),
	  { 248, 65535, 32768, 4096, 0, 0, 4096, WC | FUA, 4096, 0, 3584 } },
	{ "an offset of a physical block", 46, B("\x08\0"), USUAL },
	{ "an offset of all bits", 46, B("\xff\xff"), USUAL },
};

KUNIT_ARRAY_PARAM_DESC(fill_cases, fill_cases, desc);

static void limits_are_made_of_the_answer(struct kunit *test)
{
	const struct fill_case *c = test->param_value;
	struct limits_test *t = test->priv;
	struct queue_limits lim = { };

	lim.features = ROT | WC | FUA;
	t->sess.features |= RNBD_FEATURE_DISK_STATE;
	memcpy((u8 *)&t->rsp + c->at, c->put.bytes, c->put.nr);
	KUNIT_ASSERT_EQ(test, check_rsp(t), 0);
	rnbd_clt_fill_limits(&t->dev, &t->rsp, &lim);
	KUNIT_EXPECT_EQ(test, lim.max_hw_sectors, c->want.hw);
	KUNIT_EXPECT_EQ(test, lim.max_write_zeroes_sectors, c->want.zeroes);
	KUNIT_EXPECT_EQ(test, lim.max_hw_discard_sectors, c->want.discard);
	KUNIT_EXPECT_EQ(test, lim.discard_granularity, c->want.granularity);
	KUNIT_EXPECT_EQ(test, lim.discard_alignment, c->want.alignment);
	KUNIT_EXPECT_EQ(test, lim.max_secure_erase_sectors, c->want.erase);
	KUNIT_EXPECT_EQ(test, lim.physical_block_size, c->want.pbs);
	KUNIT_EXPECT_EQ(test, lim.logical_block_size, le16_to_cpu(t->rsp.logical_block_size));
	KUNIT_EXPECT_EQ(test, lim.features, c->want.features);
	KUNIT_EXPECT_EQ(test, lim.io_min, c->want.io_min ?: c->want.pbs);
	KUNIT_EXPECT_EQ(test, lim.io_opt, c->want.io_opt);
	KUNIT_EXPECT_EQ(test, lim.alignment_offset, c->want.offset);
	KUNIT_EXPECT_EQ(test, lim.max_segments, 32);
	KUNIT_EXPECT_EQ(test, lim.virt_boundary_mask, 4095);
}

/* Servers without the feature leave arbitrary bytes in these fields. */
static void disk_state_needs_the_feature(struct kunit *test)
{
	struct limits_test *t = test->priv;
	struct queue_limits lim = { };

	t->rsp.flags = 0xff;
	t->rsp.alignment_offset = cpu_to_le16(1);
	t->rsp.io_min = cpu_to_le32(65536);
	t->rsp.io_opt = cpu_to_le32(65536);
	KUNIT_ASSERT_EQ(test, check_rsp(t), 0);
	KUNIT_EXPECT_EQ(test, t->rsp.flags, 0);
	rnbd_clt_fill_limits(&t->dev, &t->rsp, &lim);
	KUNIT_EXPECT_EQ(test, lim.features, WC | FUA);
	KUNIT_EXPECT_EQ(test, lim.io_min, 4096);
	KUNIT_EXPECT_EQ(test, lim.io_opt, 0);
	KUNIT_EXPECT_EQ(test, lim.alignment_offset, 0);
}

/* To an old server, operation 5 is write same. */
static void write_zeroes_need_a_server_that_knows_them(struct kunit *test)
{
	struct limits_test *t = test->priv;
	struct queue_limits lim = { };

	t->sess.features = (u32)~RNBD_FEATURE_WRITE_ZEROES;
	KUNIT_ASSERT_EQ(test, check_rsp(t), 0);
	rnbd_clt_fill_limits(&t->dev, &t->rsp, &lim);
	KUNIT_EXPECT_EQ(test, lim.max_write_zeroes_sectors, 0);
	KUNIT_EXPECT_EQ(test, lim.max_hw_discard_sectors, 32768);
}

/* While there is no cache, the block layer removes flushes and FUA from requests. */
static void writes_need_fua_when_a_cache_has_come(struct kunit *test)
{
	struct rnbd_msg_open_rsp none = { }, fua = { .cache_policy = 1 };
	struct rnbd_msg_open_rsp cache = { .cache_policy = 2 }, both = { .cache_policy = 3 };

	KUNIT_EXPECT_EQ(test, rnbd_clt_new_write_flags(&none, &cache), RNBD_F_FUA);
	KUNIT_EXPECT_EQ(test, rnbd_clt_new_write_flags(&fua, &both), RNBD_F_FUA);
	KUNIT_EXPECT_EQ(test, rnbd_clt_new_write_flags(&none, &fua), 0);
	KUNIT_EXPECT_EQ(test, rnbd_clt_new_write_flags(&cache, &both), 0);
	KUNIT_EXPECT_EQ(test, rnbd_clt_new_write_flags(&both, &none), 0);
}

/* The header, the device's id and size, the unique id and the generation are not limits. */
static void limits_are_the_same_if_the_answer_is(struct kunit *test)
{
	struct limits_test *t = test->priv;
	struct rnbd_msg_open_rsp other;
	size_t at;

	for (at = 0; at < sizeof(other); at++) {
		other = t->rsp;
		((u8 *)&other)[at] ^= 1;
		KUNIT_EXPECT_EQ(test, rnbd_same_limits(&t->rsp, &other),
				at < 16 || at >= 56);
	}
}

static struct kunit_case rnbd_clt_limits_cases[] = {
	KUNIT_CASE_PARAM(answer_is_checked, check_cases_gen_params),
	KUNIT_CASE_PARAM(unique_id_is_checked, id_cases_gen_params),
	KUNIT_CASE_PARAM(known_id_must_stay_the_same, same_id_cases_gen_params),
	KUNIT_CASE(capacity_is_one_that_a_file_can_have),
	KUNIT_CASE_PARAM(limits_are_made_of_the_answer, fill_cases_gen_params),
	KUNIT_CASE(disk_state_needs_the_feature),
	KUNIT_CASE(writes_need_fua_when_a_cache_has_come),
	KUNIT_CASE(write_zeroes_need_a_server_that_knows_them),
	KUNIT_CASE(limits_are_the_same_if_the_answer_is),
	{}
};

static struct kunit_suite rnbd_clt_limits_suite = {
	.name = "rnbd-client-limits",
	.init = limits_init,
	.test_cases = rnbd_clt_limits_cases,
};

kunit_test_suite(rnbd_clt_limits_suite);
