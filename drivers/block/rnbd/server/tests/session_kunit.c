// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the server's checks of messages other than I/O.
 */
#include <kunit/test.h>
#include <linux/scatterlist.h>

#include "../rnbd-srv.h"

#define FROM	DMA_FROM_DEVICE
#define TO	DMA_TO_DEVICE

struct session_test {
	struct rtrs_srv_op op;
	struct scatterlist sg[2];
	u8 room[2][PAGE_SIZE];
	struct rnbd_srv_sess sess;
};

static int session_init(struct kunit *test)
{
	struct session_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->op.priv = &t->sess;
	test->priv = t;
	return 0;
}

/* Provide a buffer for an answer, in one or two entries, with stale contents. */
static void give_room(struct session_test *t, u32 first, u32 second)
{
	memset(t->room, 0x5a, sizeof(t->room));
	sg_init_table(t->sg, second ? 2 : 1);
	sg_set_buf(&t->sg[0], t->room[0], first);
	if (second)
		sg_set_buf(&t->sg[1], t->room[1], second);
	t->op.sgl = t->sg;
	t->op.nents = second ? 2 : first ? 1 : 0;
	t->op.dir = FROM;
	t->op.data_len = first + second;
}

static const struct info_case {
	const char *desc;
	int ret;
	u16 msg_len;
	u8 ver;
	enum dma_data_direction dir;
	u32 data_len;
	u8 told;
} info_cases[] = {
	{ "version 2", 0, 36, 2, FROM, 36, 2 },
	{ "version 1", 0, 36, 1, FROM, 36, 1 },
	{ "version 0", 0, 36, 0, FROM, 36, 0 },
	{ "a version to come", 0, 36, 3, FROM, 36, 2 },
	{ "the last version", 0, 36, 255, FROM, 36, 2 },
	{ "a longer message", 0, 40, 2, FROM, 36, 2 },
	{ "more room for the answer", 0, 36, 2, FROM, 4096, 2 },
	{ "a byte is missing", -EINVAL, 35, 2, FROM, 36 },
	{ "only a header", -EINVAL, 4, 2, FROM, 36 },
	{ "a byte of room is missing", -EINVAL, 36, 2, FROM, 35 },
	{ "no room for the answer", -EINVAL, 36, 2, FROM, 0 },
	{ "a write", -EINVAL, 36, 2, TO, 36 },
};

KUNIT_ARRAY_PARAM_DESC(info_cases, info_cases, desc);

static void sess_info_is_answered(struct kunit *test)
{
	static const u8 msg[5] = { 0, 0, 0, 0 };
	const struct info_case *c = test->param_value;
	struct session_test *t = test->priv;
	u8 answer[36] = { 1, 0, 0, 0, c->told };

	give_room(t, c->data_len, 0);
	memcpy(t->op.msg, msg, sizeof(msg));
	t->op.msg[4] = c->ver;
	t->op.msg_len = c->msg_len;
	t->op.dir = c->dir;
	KUNIT_ASSERT_EQ(test, rnbd_srv_sess_info(&t->op), c->ret);
	KUNIT_EXPECT_EQ(test, t->sess.ver, c->told);
	KUNIT_EXPECT_EQ(test, t->sess.starts, c->ret ? 0 : 1);
	KUNIT_EXPECT_EQ(test, ((u8 *)t->room)[c->data_len], 0x5a);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, memcmp(t->room[0], answer, sizeof(answer)), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(t->room[0] + 36, 0, c->data_len - 36));
}

static const struct answer_case {
	const char *desc;
	u32 first, second;
	size_t len;
} answer_cases[] = {
	{ "as long as the room", 64, 0, 64 },
	{ "shorter", 64, 0, 8 },
	{ "nothing", 64, 0, 0 },
	{ "nothing, and no room", 0, 0, 0 },
	{ "within the first entry", 4096, 512, 4000 },
	{ "the first entry", 4096, 512, 4096 },
	{ "across two entries", 4096, 512, 4100 },
	{ "both entries", 4096, 512, 4608 },
	{ "nothing of two entries", 4096, 512, 0 },
};

KUNIT_ARRAY_PARAM_DESC(answer_cases, answer_cases, desc);

static void rest_of_an_answer_s_room_is_zero(struct kunit *test)
{
	const struct answer_case *c = test->param_value;
	struct session_test *t = test->priv;
	u8 *rsp = kunit_kmalloc(test, c->len + 1, GFP_KERNEL);
	size_t i;
	u8 byte;

	KUNIT_ASSERT_NOT_NULL(test, rsp);
	memset(rsp, 0xa5, c->len);
	give_room(t, c->first, c->second);
	rnbd_srv_answer(&t->op, rsp, c->len);
	for (i = 0; i < c->first + c->second; i++) {
		byte = i < c->first ? t->room[0][i] : t->room[1][i - c->first];
		KUNIT_ASSERT_EQ(test, byte, i < c->len ? 0xa5 : 0);
	}
	KUNIT_EXPECT_EQ(test, t->room[1][c->second], 0x5a);
}

static const struct feature_case {
	const char *desc;
	u32 offered;
	u32 cookie;
	u32 granted;
} feature_cases[] = {
	{ "none", 0, 0x12345678, 0 },
	{ "write zeroes", BIT(0), 0x12345678, BIT(0) },
	{ "events of sizes", BIT(1), 0x12345678, BIT(1) },
	{ "unique ids", BIT(2), 0x12345678, BIT(2) },
	{ "access mode handover", BIT(3), 0x12345678, BIT(3) },
	{ "generations", BIT(4), 0x12345678, BIT(4) },
	{ "lists of volumes", BIT(6), 0x12345678, BIT(6) },
	{ "all bits", U32_MAX, 1, 127 },
	{ "no cookie", BIT(0) | BIT(1), 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(feature_cases, feature_cases, desc);

static void features_are_granted(struct kunit *test)
{
	const struct feature_case *c = test->param_value;
	struct session_test *t = test->priv;
	__le32 offered[] = { cpu_to_le32(c->offered), cpu_to_le32(c->cookie) };
	__le32 granted[] = { cpu_to_le32(c->granted), cpu_to_le32(c->cookie) };
	u8 answer[36] = { 1, 0, 0, 0, 2 };

	give_room(t, sizeof(answer), 0);
	t->op.msg[4] = 2;
	memcpy(t->op.msg + 8, offered, sizeof(offered));
	t->op.msg_len = 36;
	KUNIT_ASSERT_EQ(test, rnbd_srv_sess_info(&t->op), 0);
	memcpy(answer + 8, granted, sizeof(granted));
	KUNIT_EXPECT_EQ(test, memcmp(t->room[0], answer, sizeof(answer)), 0);
}

static const struct open_case {
	const char *desc;
	int ret;
	u16 msg_len;
	u8 mode;
	enum dma_data_direction dir;
	u32 data_len;
	const char *name;
	u32 features;
} open_cases[] = {
	{ "read only", 0, 264, 0, FROM, 56, "/dev/sda" },
	{ "read and write", 0, 264, 1, FROM, 56, "a" },
	{ "migration", 0, 264, 2, FROM, 56, "a b" },
	{ "a longer message", 0, 320, 1, FROM, 56, "a" },
	{ "more room for the answer", 0, 264, 1, FROM, 4096, "a" },
	{ "a name beyond ASCII", 0, 264, 1, FROM, 56, "\xc3\xa4" },
	{ "a name for printing", 0, 264, 1, FROM, 56, "%s%n" },
	{ "no name, which is found out later", 0, 264, 1, FROM, 56, "" },
	{ "handover", 0, 280, 3, FROM, 96, "a", BIT(3) },
	{ "handover, a longer message", 0, 288, 3, FROM, 4096, "a", 15 },
	{ "handover, which was not granted", -EINVAL, 280, 3, FROM, 96, "a", 0x17 },
	{ "handover, a byte of the generation is missing", -EINVAL, 279, 3, FROM, 96, "a", BIT(3) },
	{ "handover, as long as in other modes", -EINVAL, 264, 3, FROM, 56, "a", BIT(3) },
	{ "handover, a byte of room is missing", -EINVAL, 280, 3, FROM, 95, "a", BIT(3) },
	{ "read only, generations are granted", 0, 264, 0, FROM, 56, "a", BIT(4) },
	{ "rw with a generation", 0, 280, 1, FROM, 96, "a", BIT(4) },
	{ "rw, a byte of the generation is missing", -EINVAL, 279, 1, FROM, 96, "a", BIT(4) },
	{ "rw, a byte of room is missing", -EINVAL, 280, 1, FROM, 95, "a", BIT(4) },
	{ "rw, generations were not granted", 0, 264, 1, FROM, 56, "a", 15 },
	{ "migration with a generation", 0, 280, 2, FROM, 96, "a", 31 },
	{ "migration without its generation", -EINVAL, 264, 2, FROM, 56, "a", 31 },
	{ "the first unknown mode", -EINVAL, 280, 4, FROM, 96, "a", 31 },
	{ "the last unknown mode", -EINVAL, 264, 255, FROM, 56, "a" },
	{ "a byte is missing", -EINVAL, 263, 1, FROM, 56, "a" },
	{ "only a header", -EINVAL, 4, 1, FROM, 56, "a" },
	{ "a byte of room is missing", -EINVAL, 264, 1, FROM, 55, "a" },
	{ "no room for the answer", -EINVAL, 264, 1, FROM, 0, "a" },
	{ "a write", -EINVAL, 264, 1, TO, 56, "a" },
	{ "a line's end in the name", -EINVAL, 264, 1, FROM, 56, "a\nkernel panic" },
	{ "an escape in the name", -EINVAL, 264, 1, FROM, 56, "\x1b[2J" },
	{ "the last control character in the name", -EINVAL, 264, 1, FROM, 56, "a\x7f" },
};

KUNIT_ARRAY_PARAM_DESC(open_cases, open_cases, desc);

static void open_is_checked(struct kunit *test)
{
	const struct open_case *c = test->param_value;
	struct session_test *t = test->priv;

	t->op.msg[0] = 2;
	t->op.msg[4] = c->mode;
	memcpy(t->op.msg + 6, c->name, strlen(c->name));
	t->op.msg_len = c->msg_len;
	t->op.dir = c->dir;
	t->op.data_len = c->data_len;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_open(&t->op, c->features), c->ret);
}

static void open_without_a_name_s_end_is_refused(struct kunit *test)
{
	struct session_test *t = test->priv;

	memset(t->op.msg + 6, 'n', 254);
	t->op.msg_len = 264;
	t->op.dir = FROM;
	t->op.data_len = 56;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_open(&t->op, 0), 0);
	t->op.msg[6 + 254] = 'n';
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_open(&t->op, 0), -EINVAL);
}

static const struct age_case {
	const char *desc;
	u8 mode;
	u32 features;
	u64 generation;
	u8 flags;
} age_cases[] = {
	{ "read only", 0, BIT(4), 0, 0 },
	{ "rw", 1, BIT(4), 0x0102030405060708, 3 },
	{ "rw, generations were not granted", 1, 15, 0, 0 },
	{ "migration", 2, BIT(4), 0x0102030405060708, 3 },
	{ "handover", 3, BIT(3), 0x0102030405060708, 3 },
};

KUNIT_ARRAY_PARAM_DESC(age_cases, age_cases, desc);

static void generation_is_read(struct kunit *test)
{
	static const u8 bytes[16] = { 8, 7, 6, 5, 4, 3, 2, 1, 3 };
	const struct age_case *c = test->param_value;
	struct session_test *t = test->priv;
	struct rnbd_srv_age age;

	t->op.msg[4] = c->mode;
	memcpy(t->op.msg + 264, bytes, sizeof(bytes));
	age = rnbd_srv_parse_age(&t->op, c->features);
	KUNIT_EXPECT_EQ(test, age.generation, c->generation);
	KUNIT_EXPECT_EQ(test, age.flags, c->flags);
	KUNIT_EXPECT_FALSE(test, age.known);

	/* Flags of a new mapping are ignored, as it has not written. */
	memset(t->op.msg + 264, 0, 8);
	age = rnbd_srv_parse_age(&t->op, c->features);
	KUNIT_EXPECT_EQ(test, age.generation, 0);
	KUNIT_EXPECT_EQ(test, age.flags, 0);
}

#define SIZE	RNBD_FEATURE_RESIZE_EVENT
#define STATE	RNBD_FEATURE_DISK_STATE

/* Present state of a disk that was reported with 8 sectors and without a cache */
static const struct change_case {
	const char *desc;
	sector_t nsectors;
	u8 cache_policy;
	bool gone;
	u32 changed;
} change_cases[] = {
	{ "as it was", 8, 0, false, 0 },
	{ "grown", 9, 0, false, SIZE },
	{ "shrunk", 7, 0, false, SIZE },
	{ "emptied", 0, 0, false, SIZE },
	{ "with a cache", 8, RNBD_CACHE_WRITEBACK, false, STATE },
	{ "with FUA", 8, RNBD_CACHE_FUA, false, STATE },
	{ "grown, and with a cache", 9, RNBD_CACHE_WRITEBACK, false, SIZE | STATE },
	{ "removed", 0, 0, true, STATE },
};

KUNIT_ARRAY_PARAM_DESC(change_cases, change_cases, desc);

static const struct change_case *disk_now;

static sector_t get_size_now(const struct rnbd_srv_map *map)
{
	return disk_now->nsectors;
}

static void get_limits_now(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	rsp->cache_policy = disk_now->cache_policy;
}

static bool is_gone_now(const struct rnbd_srv_map *map)
{
	return disk_now->gone;
}

static void change_of_a_disk_is_told_once(struct kunit *test)
{
	static const struct rnbd_srv_backend backend = {
		.capacity = get_size_now,
		.limits = get_limits_now,
		.gone = is_gone_now,
	};
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	const struct change_case *c = test->param_value;
	struct session_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, map);
	map->backend = &backend;
	map->sess = &t->sess;
	map->told.nsectors = cpu_to_le64(8);
	disk_now = c;
	KUNIT_EXPECT_EQ(test, rnbd_srv_changed(map), c->changed);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(map->told.nsectors), c->nsectors);
	KUNIT_EXPECT_EQ(test, map->told.cache_policy, c->cache_policy);
	KUNIT_EXPECT_EQ(test, rnbd_srv_changed(map), 0);
}

static const struct drop_case {
	const char *desc;
	u32 features;
	u8 mode;
	bool state, id, generation, uuid;
} drop_cases[] = {
	{ "none", 0, RNBD_ACCESS_RW },
	{ "state of a disk", RNBD_FEATURE_DISK_STATE, RNBD_ACCESS_RW, .state = true },
	{ "unique ids", RNBD_FEATURE_UNIQUE_ID, RNBD_ACCESS_RW, .id = true },
	{ "generations", RNBD_FEATURE_GENERATION, RNBD_ACCESS_RW, .generation = true },
	{ "generations, but ro", RNBD_FEATURE_GENERATION, RNBD_ACCESS_RO },
	{ "handover", RNBD_FEATURE_HANDOVER, RNBD_ACCESS_HANDOVER, .generation = true },
	{ "volumes", RNBD_FEATURE_VOLUMES, RNBD_ACCESS_RW, .uuid = true },
	{ "all", RNBD_FEATURES, RNBD_ACCESS_RW, true, true, true, true },
};

KUNIT_ARRAY_PARAM_DESC(drop_cases, drop_cases, desc);

static void fields_of_other_features_are_zero(struct kunit *test)
{
	const struct drop_case *c = test->param_value;
	struct rnbd_msg_open_rsp rsp;

	memset(&rsp, 0x5a, sizeof(rsp));
	rnbd_drop_ungranted(&rsp, c->mode, c->features);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(rsp.nsectors), 0x5a5a5a5a5a5a5a5a);
	KUNIT_EXPECT_EQ(test, !!rsp.flags, c->state);
	KUNIT_EXPECT_EQ(test, !!rsp.alignment_offset, c->state);
	KUNIT_EXPECT_EQ(test, !!rsp.io_min, c->state);
	KUNIT_EXPECT_EQ(test, !!rsp.io_opt, c->state);
	KUNIT_EXPECT_EQ(test, !!rsp.id_type, c->id);
	KUNIT_EXPECT_EQ(test, !!rsp.id_len, c->id);
	KUNIT_EXPECT_EQ(test, !!memchr_inv(rsp.id, 0, sizeof(rsp.id)), c->id);
	KUNIT_EXPECT_EQ(test, !!rsp.generation, c->generation);
	KUNIT_EXPECT_EQ(test, !!rsp.gen_flags, c->generation);
	KUNIT_EXPECT_EQ(test, !!memchr_inv(rsp.uuid, 0, sizeof(rsp.uuid)), c->uuid);
}

static struct kunit_case rnbd_srv_session_cases[] = {
	KUNIT_CASE_PARAM(fields_of_other_features_are_zero, drop_cases_gen_params),
	KUNIT_CASE_PARAM(sess_info_is_answered, info_cases_gen_params),
	KUNIT_CASE_PARAM(rest_of_an_answer_s_room_is_zero, answer_cases_gen_params),
	KUNIT_CASE_PARAM(features_are_granted, feature_cases_gen_params),
	KUNIT_CASE_PARAM(change_of_a_disk_is_told_once, change_cases_gen_params),
	KUNIT_CASE_PARAM(open_is_checked, open_cases_gen_params),
	KUNIT_CASE(open_without_a_name_s_end_is_refused),
	KUNIT_CASE_PARAM(generation_is_read, age_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_session_suite = {
	.name = "rnbd-server-session",
	.init = session_init,
	.test_cases = rnbd_srv_session_cases,
};

kunit_test_suite(rnbd_srv_session_suite);
