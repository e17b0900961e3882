// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of requests: checks of a request, and the answer. */
#include <kunit/test.h>

#include "../srv.h"

static const struct imm_case {
	const char *desc;
	bool ok;
	u32 depth, chunk_size, payload, slot, off, hdr_room;
} imm_cases[] = {
	{ "slot 0, header at 0", true, 512, 131072, 0, 0, 0 },
	{ "the last slot, header behind a message", true, 512, 131072, 511 << 19 | 32, 511, 32 },
	{ "the last place for a header", true, 512, 131072, 1 << 19 | 127296, 1, 127296 },
	{ "a byte behind that", false, 512, 131072, 127297 },
	{ "the last byte of the chunk", false, 512, 131072, 131071 },
	{ "the first byte of the next chunk", false, 512, 131072, 131072 },
	{ "as far as an offset goes", false, 512, 131072, (1 << 19) - 1 },
	{ "the last of 500", true, 500, 131072, 499 << 19, 499, 0 },
	{ "a slot behind the last of 500", false, 500, 131072, 500 << 19 },
	{ "as far as a slot goes", false, 500, 131072, 511 << 19 },
	{ "the only slot", true, 1, 131072, 127296, 0, 127296 },
	{ "the only slot, a byte too far", false, 1, 131072, 127297 },
	{ "the only slot, all bits", false, 1, 131072, 0xfffffff },
	{ "the second of two", true, 2, 8192, 1 << 27 | 4416, 1, 4416 },
	{ "all bits, as deep as 8 KiB can be", false, 32768, 8192, 0xfffffff },
	{ "the last slot as deep as 8 KiB can be", true, 32768, 8192, 32767 << 13 | 4416, 32767,
	  4416 },
	{ "a small slot, header behind a message", true, 512, 4608, 511 << 19 | 32, 511, 32, 512 },
	{ "a small slot, the last place", true, 512, 4608, 1 << 19 | 4416, 1, 4416, 512 },
	{ "a small slot, a byte behind that", false, 512, 4608, 4417, 0, 0, 512 },
	{ "a small slot, the first byte of the next", false, 512, 4608, 4608, 0, 0, 512 },
	{ "the smallest slot, the last place", true, 512, 1024, 832, 0, 832, 512 },
	{ "the smallest slot, a byte behind that", false, 512, 1024, 833, 0, 0, 512 },
};

KUNIT_ARRAY_PARAM_DESC(imm_cases, imm_cases, desc);

static void immediate_value_is_checked(struct kunit *test)
{
	const struct imm_case *c = test->param_value;
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	u32 slot, off;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, path);
	path->sess = sess;
	path->mem.hdr_room = c->hdr_room ?: RTRS_HDR_ROOM;
	path->mem.room = c->chunk_size - path->mem.hdr_room;
	sess->queue_depth = c->depth;
	sess->off_bits = rtrs_imm_off_bits(c->depth);
	KUNIT_ASSERT_EQ(test, rtrs_srv_parse_imm(path, c->payload, &slot, &off), c->ok);
	if (!c->ok)
		return;
	KUNIT_EXPECT_EQ(test, slot, c->slot);
	KUNIT_EXPECT_EQ(test, off, c->off);
}

#define CHUNK_SIZE	8192
#define WR		DMA_TO_DEVICE
#define RD		DMA_FROM_DEVICE

/* A session with a slot, the chunk of the slot, and a request in the slot. */
struct io_test {
	struct rtrs_srv_sess sess;
	struct rtrs_srv_path path;
	struct rtrs_srv_con con;
	struct rtrs_srv_io io;
	struct ib_pd pd;
	struct rtrs_msg_answer msgs[4];
	void *msgs_page;
	u64 msgs_dma;
};

static int io_init(struct kunit *test)
{
	struct io_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u8 *chunk = kunit_kzalloc(test, CHUNK_SIZE, GFP_KERNEL);
	u32 i;

	if (!t || !chunk)
		return -ENOMEM;
	for (i = 0; i < CHUNK_SIZE; i++)
		chunk[i] = i ^ i >> 8;
	t->sess.queue_depth = 16;
	t->path.sess = &t->sess;
	t->path.path.pd = &t->pd;
	t->path.mem.room = CHUNK_SIZE - RTRS_HDR_ROOM;
	t->path.mem.hdr_room = RTRS_HDR_ROOM;
	t->path.mem.max_io = t->path.mem.room;
	t->msgs_page = t->msgs;
	t->msgs_dma = 0x10000;
	t->path.mem.msgs.group = &t->msgs_page;
	t->path.mem.msgs.dma = &t->msgs_dma;
	t->path.mem.msgs.size = sizeof(t->msgs[0]);
	t->path.mem.msgs.group_shift = ilog2(ARRAY_SIZE(t->msgs));
	t->pd.local_dma_lkey = 0x1234;
	t->con.path = &t->path;
	t->con.con.path = &t->path.path;
	t->con.fetch.max_reads = 1;
	t->io.con = &t->con;
	t->io.slot = 3;
	t->io.dma = 0x20000;
	t->io.chunk = chunk;
	/* Values of an earlier request in the slot. */
	t->io.need_inval = true;
	t->io.desc_len = 99;
	t->io.fetch = true;
	t->io.op.data_len = 99;
	test->priv = t;
	return 0;
}

/* Turns the chunk into a slot for 4096 bytes of data, as before. */
static void use_slots(struct io_test *t)
{
	t->path.path.features = RTRS_FEATURE_SLOTS;
	t->path.mem.hdr_room = RTRS_SLOT_HDR_ROOM;
	t->path.mem.max_io = SZ_1M;
}

static const u8 addr_and_key[12] = {
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xdd, 0xcc, 0xbb, 0xaa,
};

/* The bytes above are between @hdr and @len. */
static const struct parse_case {
	const char *desc;
	int ret;
	u32 hdr_off;
	u8 hdr[8], len[4];
	enum dma_data_direction dir;
	u32 data_len;
	bool need_inval, no_reads;
} parse_cases[] = {
	{ "a write", 0, 517, { 2, 0, 5, 0 }, { }, WR, 512 },
	{ "a write of one byte", 0, 6, { 2, 0, 5, 0 }, { }, WR, 1 },
	{ "a write without data", 0, 5, { 2, 0, 5, 0 }, { }, WR, 0 },
	{ "a write of nothing at all", 0, 0, { 2, 0, 0, 0 }, { }, WR, 0 },
	{ "a write without a message", 0, 4096, { 2, 0, 0, 0 }, { }, WR, 4096 },
	{ "the largest write, the longest message", 0, 4416, { 2, 0, 0x40, 1 }, { }, WR, 4096 },
	{ "a write, with flags where a read has them", 0, 517,
	  { 2, 0, 5, 0, 0xff, 0xff, 0xff, 0xff }, { }, WR, 512 },
	{ "a write of a byte too many", -EPROTO, 4097, { 2, 0, 0, 0 } },
	{ "a byte too many, with a message", -EPROTO, 4102, { 2, 0, 5, 0 } },
	{ "a message of a byte too many", -EPROTO, 512, { 2, 0, 0x41, 1 } },
	{ "the longest message that can be told", -EPROTO, 4416, { 2, 0, 0xff, 0xff } },
	{ "a message that begins before the chunk", -EPROTO, 4, { 2, 0, 5, 0 } },
	{ "a message before a header at 0", -EPROTO, 0, { 2, 0, 1, 0 } },
	{ "of type INFO_REQ", -EPROTO, 517, { 0, 0, 5, 0 } },
	{ "of type INFO_RSP", -EPROTO, 517, { 1, 0, 5, 0 } },
	{ "of type RKEY_RSP", -EPROTO, 517, { 4, 0, 5, 0 } },
	{ "of type FETCH", -EPROTO, 517, { 5, 0, 5, 0, 0, 0, 1, 0 }, { 0, 2, 0, 0 } },
	{ "of type FETCH, without data before it", -EPROTO, 5, { 5, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 } },
	{ "of type ANSWER", -EPROTO, 517, { 6, 0, 5, 0 } },
	{ "of a type beyond a byte", -EPROTO, 517, { 2, 1, 5, 0 } },
	{ "of type 65535", -EPROTO, 517, { 0xff, 0xff, 5, 0 } },
	{ "a read", 0, 517, { 3, 0, 5, 0, 0, 0, 1, 0 }, { 0, 2, 0, 0 }, RD, 512 },
	{ "a read, invalidate", 0, 517, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 0, 2, 0, 0 }, RD, 512, true },
	{ "a read of less than there is room", 0, 517, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0, 0, 0 },
	  RD, 1, true },
	{ "a read of nothing, invalidate", 0, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 0, 0, 0, 0 }, RD, 0,
	  true },
	{ "a read without a descriptor", 0, 517, { 3, 0, 5, 0, 0, 0, 0, 0 }, { 0, 2, 0, 0 }, RD,
	  0 },
	{ "the largest read, the longest message", 0, 4416, { 3, 0, 0x40, 1, 1, 0, 1, 0 },
	  { 0, 0x10, 0, 0 }, RD, 4096, true },
	{ "a read of a byte more than there is room", -EINVAL, 517, { 3, 0, 5, 0, 0, 0, 1, 0 },
	  { 1, 2, 0, 0 }, RD, 0 },
	{ "a read of a byte, no room", -EINVAL, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0, 0, 0 }, RD,
	  0 },
	{ "a read of 4 GiB less one byte", -EINVAL, 517, { 3, 0, 5, 0, 0, 0, 1, 0 },
	  { 0xff, 0xff, 0xff, 0xff }, RD, 0 },
	{ "a read of two descriptors", -EINVAL, 517, { 3, 0, 5, 0, 0, 0, 2, 0 }, { 0, 2, 0, 0 }, RD,
	  0 },
	{ "a read of 65535 descriptors", -EINVAL, 517, { 3, 0, 5, 0, 1, 0, 0xff, 0xff },
	  { 0, 2, 0, 0 }, RD, 0 },
	{ "a read with an unknown flag", -EINVAL, 517, { 3, 0, 5, 0, 2, 0, 1, 0 }, { 0, 2, 0, 0 },
	  RD, 0 },
	{ "a read with all flags", -EINVAL, 517, { 3, 0, 5, 0, 0xff, 0xff, 1, 0 }, { 0, 2, 0, 0 },
	  RD, 0 },
	{ "a read, invalidate no descriptor", -EINVAL, 517, { 3, 0, 5, 0, 1, 0, 0, 0 },
	  { 0, 2, 0, 0 }, RD, 0 },
	{ "a read of a byte too much room", -EPROTO, 4097, { 3, 0, 0, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 } },
	{ "a read with a message before the chunk", -EPROTO, 4, { 3, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 0, 0, 0 } },
};

KUNIT_ARRAY_PARAM_DESC(parse_cases, parse_cases, desc);

/* The same for a path with slots. */
static const struct parse_case slot_parse_cases[] = {
	{ "a write", 0, 517, { 2, 0, 5, 0 }, { }, WR, 512 },
	{ "a write without data", 0, 5, { 2, 0, 5, 0 }, { }, WR, 0 },
	{ "a write of a slot", 0, 4101, { 2, 0, 5, 0 }, { }, WR, 4096 },
	{ "a write of a slot, the longest message", 0, 4416, { 2, 0, 0x40, 1 }, { }, WR, 4096 },
	{ "a write of a byte too many", -EPROTO, 4102, { 2, 0, 5, 0 } },
	{ "a write when nothing can be fetched", 0, 517, { 2, 0, 5, 0 }, { }, WR, 512, false,
	  true },
	{ "a message that begins before the slot", -EPROTO, 4, { 2, 0, 5, 0 } },
	{ "of type RKEY_RSP", -EPROTO, 5, { 4, 0, 5, 0 } },
	{ "of type ANSWER", -EPROTO, 5, { 6, 0, 5, 0 } },
	{ "of a type beyond a byte", -EPROTO, 5, { 5, 1, 5, 0, 0, 0, 1, 0 }, { 0, 2, 0, 0 } },
	{ "a read", 0, 5, { 3, 0, 5, 0, 0, 0, 1, 0 }, { 0, 2, 0, 0 }, RD, 512 },
	{ "a read, invalidate", 0, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 0, 2, 0, 0 }, RD, 512, true },
	{ "a read when nothing can be fetched", 0, 5, { 3, 0, 5, 0, 0, 0, 1, 0 }, { 0, 2, 0, 0 },
	  RD, 512, false, true },
	{ "a read of a slot, the longest message", 0, 320, { 3, 0, 0x40, 1, 0, 0, 1, 0 },
	  { 0, 0x10, 0, 0 }, RD, 4096 },
	{ "a read of more than a slot", 0, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0x10, 0, 0 }, RD,
	  4097, true },
	{ "a read of 1 MiB", 0, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { 0, 0, 0x10, 0 }, RD, SZ_1M, true },
	{ "a read of nothing, invalidate", 0, 5, { 3, 0, 5, 0, 1, 0, 1, 0 }, { }, RD, 0, true },
	{ "a read without a descriptor", 0, 5, { 3, 0, 5, 0, 0, 0, 0, 0 }, { 0, 2, 0, 0 }, RD, 0 },
	{ "a read of a byte too many", -EINVAL, 5, { 3, 0, 5, 0, 0, 0, 1, 0 }, { 1, 0, 0x10, 0 },
	  RD, 0 },
	{ "a read of a byte too many, invalidate", -EINVAL, 5, { 3, 0, 5, 0, 1, 0, 1, 0 },
	  { 1, 0, 0x10, 0 }, RD, 0, true },
	{ "a read of two descriptors", -EINVAL, 5, { 3, 0, 5, 0, 0, 0, 2, 0 }, { 0, 2, 0, 0 }, RD,
	  0 },
	{ "a read with an unknown flag", -EINVAL, 5, { 3, 0, 5, 0, 2, 0, 1, 0 }, { 0, 2, 0, 0 },
	  RD, 0 },
	{ "a read, invalidate no descriptor", -EINVAL, 5, { 3, 0, 5, 0, 1, 0, 0, 0 },
	  { 0, 2, 0, 0 }, RD, 0 },
	{ "a read with a byte before the message", -EPROTO, 6, { 3, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 } },
	{ "a read with room before the message", -EPROTO, 517, { 3, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 } },
	{ "a fetch", 0, 5, { 5, 0, 5, 0, 0, 0, 1, 0 }, { 1, 0x10, 0, 0 }, WR, 4097 },
	{ "a fetch, invalidate", 0, 5, { 5, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0x10, 0, 0 }, WR, 4097,
	  true },
	{ "a fetch of what a slot has room for", 0, 5, { 5, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0, 0, 0 },
	  WR, 1, true },
	{ "a fetch of 1 MiB, the longest message", 0, 320, { 5, 0, 0x40, 1, 1, 0, 1, 0 },
	  { 0, 0, 0x10, 0 }, WR, SZ_1M, true },
	{ "a fetch of a byte too many", -EINVAL, 5, { 5, 0, 5, 0, 1, 0, 1, 0 }, { 1, 0, 0x10, 0 },
	  WR, 0, true },
	{ "a fetch of 4 GiB less one byte", -EINVAL, 5, { 5, 0, 5, 0, 0, 0, 1, 0 },
	  { 0xff, 0xff, 0xff, 0xff }, WR, 0 },
	{ "a fetch of nothing", -EINVAL, 5, { 5, 0, 5, 0, 0, 0, 1, 0 }, { }, WR, 0 },
	{ "a fetch of nothing, invalidate", -EINVAL, 5, { 5, 0, 5, 0, 1, 0, 1, 0 }, { }, WR, 0,
	  true },
	{ "a fetch without a descriptor", -EINVAL, 5, { 5, 0, 5, 0, 0, 0, 0, 0 }, { 0, 2, 0, 0 },
	  WR, 0 },
	{ "a fetch of two descriptors", -EINVAL, 5, { 5, 0, 5, 0, 0, 0, 2, 0 }, { 0, 2, 0, 0 }, WR,
	  0 },
	{ "a fetch with an unknown flag", -EINVAL, 5, { 5, 0, 5, 0, 2, 0, 1, 0 }, { 0, 2, 0, 0 },
	  WR, 0 },
	{ "a fetch with a byte before the message", -EPROTO, 6, { 5, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 } },
	{ "a fetch when nothing can be fetched", -EPROTO, 5, { 5, 0, 5, 0, 0, 0, 1, 0 },
	  { 0, 2, 0, 0 }, WR, 0, false, true },
};

KUNIT_ARRAY_PARAM_DESC(slot_parse_cases, slot_parse_cases, desc);

static void request_is_parsed(struct kunit *test)
{
	const struct parse_case *c = test->param_value;
	u16 msg_len = c->hdr[2] | c->hdr[3] << 8;
	struct io_test *t = test->priv;
	struct rtrs_srv_io *io = &t->io;
	bool fetch = c->hdr[0] == RTRS_MSG_FETCH;

	if (c->no_reads)
		t->con.fetch.max_reads = 0;
	io->hdr_off = c->hdr_off;
	memcpy(io->chunk + c->hdr_off, c->hdr, 8);
	memcpy(io->chunk + c->hdr_off + 8, addr_and_key, 12);
	memcpy(io->chunk + c->hdr_off + 20, c->len, 4);
	KUNIT_ASSERT_EQ(test, rtrs_srv_parse(io), c->ret);
	if (c->ret == -EPROTO)
		return;
	KUNIT_EXPECT_EQ(test, io->op.dir, c->dir);
	KUNIT_EXPECT_EQ(test, io->op.data_len, c->data_len);
	KUNIT_EXPECT_EQ(test, io->fetch, fetch);
	KUNIT_EXPECT_EQ(test, io->need_inval, c->need_inval);
	KUNIT_EXPECT_EQ(test, io->op.msg_len, msg_len);
	KUNIT_EXPECT_EQ(test, memcmp(io->op.msg, io->chunk + c->hdr_off - msg_len, msg_len), 0);
	KUNIT_EXPECT_EQ(test, io->desc_len, c->dir == RD || fetch ? c->data_len : 0);
	if (io->desc_len || io->need_inval) {
		KUNIT_EXPECT_EQ(test, io->desc_addr, 0x1122334455667788);
		KUNIT_EXPECT_EQ(test, io->desc_key, 0xaabbccdd);
	}
}

static void request_in_a_slot_is_parsed(struct kunit *test)
{
	use_slots(test->priv);
	request_is_parsed(test);
}

/* @chain: W, RDMA WRITE of data; V, SEND WITH INV; I, RDMA WRITE WITH IMM; M, SEND */
static const struct answer_case {
	const char *desc;
	bool need_inval;
	u32 desc_len;
	int err;
	const char *chain;
	u8 imm[4];
} answer_cases[] = {
	{ "a write", false, 0, 0, "I", { 0x10, 0, 0, 3 } },
	{ "a write that failed", false, 0, -EIO, "I", { 0x10, 0x28, 0, 3 } },
	{ "a write that failed, the largest errno", false, 0, -511, "I", { 0x1f, 0xf8, 0, 3 } },
	{ "a read", false, 512, 0, "WI", { 0x10, 0, 0, 3 } },
	{ "a read, invalidate", true, 512, 0, "WVI", { 0x20, 0, 0, 3 } },
	{ "a read that failed", false, 512, -EIO, "I", { 0x10, 0x28, 0, 3 } },
	{ "a read of nothing, invalidate", true, 0, 0, "VI", { 0x20, 0, 0, 3 } },
};

KUNIT_ARRAY_PARAM_DESC(answer_cases, answer_cases, desc);

static char letter_of(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
		return 'W';
	case IB_WR_SEND_WITH_INV:
		return 'V';
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return 'I';
	case IB_WR_SEND:
		return 'M';
	default:
		return '?';
	}
}

static void answer_is_built(struct kunit *test)
{
	const struct answer_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct rtrs_srv_answer *a = kunit_kmalloc(test, sizeof(*a), GFP_KERNEL);
	const struct ib_send_wr *wr, *last = NULL;
	char chain[8] = "";
	int n = 0;

	KUNIT_ASSERT_NOT_NULL(test, a);
	memset(a, 0x5a, sizeof(*a));
	t->io.op.dir = RD;
	t->io.need_inval = c->need_inval;
	t->io.desc_len = c->desc_len;
	t->io.desc_key = 0xaabbccdd;
	t->io.desc_addr = 0x1122334455667788;
	t->io.err = c->err;
	for (wr = rtrs_srv_build_answer(a, &t->io); wr && n < 7; last = wr, wr = wr->next)
		chain[n++] = letter_of(wr);
	KUNIT_ASSERT_STREQ(test, chain, c->chain);
	KUNIT_EXPECT_PTR_EQ(test, last, (const struct ib_send_wr *)&a->imm.wr);
	KUNIT_EXPECT_EQ(test, memcmp(&last->ex.imm_data, c->imm, 4), 0);
	if (strchr(chain, 'W')) {
		KUNIT_EXPECT_EQ(test, a->data.remote_addr, 0x1122334455667788);
		KUNIT_EXPECT_EQ(test, a->data.rkey, 0xaabbccdd);
		KUNIT_EXPECT_EQ(test, a->data_sge.addr, 0x20000);
		KUNIT_EXPECT_EQ(test, a->data_sge.length, c->desc_len);
	}
	if (strchr(chain, 'V'))
		KUNIT_EXPECT_EQ(test, a->inv.ex.invalidate_rkey, 0xaabbccdd);
	KUNIT_EXPECT_EQ(test, last->num_sge, 0);
}

/* @with_data: the work request that sends the data of the read, 0 if none does */
static const struct slot_answer_case {
	const char *desc;
	enum dma_data_direction dir;
	bool need_inval;
	u32 desc_len;
	int err;
	const char *chain;
	char with_data;
	u8 imm[4];
} slot_answer_cases[] = {
	{ "a write", WR, false, 0, 0, "I", 0, { 0x10, 0, 0, 3 } },
	{ "a write that failed", WR, false, 0, -EIO, "I", 0, { 0x10, 0x28, 0, 3 } },
	{ "a fetch", WR, false, 8192, 0, "I", 0, { 0x10, 0, 0, 3 } },
	{ "a fetch, invalidate", WR, true, 8192, 0, "V", 0 },
	{ "a fetch that failed, invalidate", WR, true, 8192, -EIO, "V", 0 },
	{ "a read", RD, false, 512, 0, "I", 'I', { 0x10, 0, 0, 3 } },
	{ "a read of a slot", RD, false, 4096, 0, "I", 'I', { 0x10, 0, 0, 3 } },
	{ "a read that failed", RD, false, 512, -EIO, "I", 0, { 0x10, 0x28, 0, 3 } },
	{ "a read of nothing", RD, false, 0, 0, "I", 0, { 0x10, 0, 0, 3 } },
	{ "a read, invalidate", RD, true, 512, 0, "WV", 'W' },
	{ "a read that failed, invalidate", RD, true, 512, -EIO, "V", 0 },
	{ "a read of nothing, invalidate", RD, true, 0, 0, "V", 0 },
};

KUNIT_ARRAY_PARAM_DESC(slot_answer_cases, slot_answer_cases, desc);

static void expect_data(struct kunit *test, const struct ib_send_wr *wr, u32 len)
{
	KUNIT_ASSERT_EQ(test, wr->num_sge, 1);
	KUNIT_EXPECT_EQ(test, wr->sg_list->addr, 0x20000);
	KUNIT_EXPECT_EQ(test, wr->sg_list->length, len);
	KUNIT_EXPECT_EQ(test, wr->sg_list->lkey, 0x1234);
	KUNIT_EXPECT_EQ(test, rdma_wr(wr)->remote_addr, 0x1122334455667788);
	KUNIT_EXPECT_EQ(test, rdma_wr(wr)->rkey, 0xaabbccdd);
}

static void expect_message(struct kunit *test, const struct ib_send_wr *wr)
{
	KUNIT_EXPECT_EQ(test, wr->ex.invalidate_rkey, 0xaabbccdd);
	KUNIT_ASSERT_EQ(test, wr->num_sge, 1);
	KUNIT_EXPECT_EQ(test, wr->sg_list->addr, 0x10000 + 3 * 8);
	KUNIT_EXPECT_EQ(test, wr->sg_list->length, 8);
	KUNIT_EXPECT_EQ(test, wr->sg_list->lkey, 0x1234);
}

static void answer_of_a_slot_is_built(struct kunit *test)
{
	const struct slot_answer_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct rtrs_srv_answer *a = kunit_kmalloc(test, sizeof(*a), GFP_KERNEL);
	const struct ib_send_wr *wr;
	char chain[8] = "";
	int n = 0;

	KUNIT_ASSERT_NOT_NULL(test, a);
	memset(a, 0x5a, sizeof(*a));
	use_slots(t);
	t->sess.always_invalidate = true;
	t->io.op.dir = c->dir;
	t->io.need_inval = c->need_inval;
	t->io.desc_len = c->desc_len;
	t->io.desc_key = 0xaabbccdd;
	t->io.desc_addr = 0x1122334455667788;
	t->io.err = c->err;
	for (wr = rtrs_srv_build_answer(a, &t->io); wr && n < 7; wr = wr->next) {
		chain[n] = letter_of(wr);
		if (chain[n] == c->with_data)
			expect_data(test, wr, c->desc_len);
		else if (chain[n] == 'V')
			expect_message(test, wr);
		else
			KUNIT_EXPECT_EQ(test, wr->num_sge, 0);
		if (chain[n++] == 'I')
			KUNIT_EXPECT_EQ(test, memcmp(&wr->ex.imm_data, c->imm, 4), 0);
	}
	KUNIT_EXPECT_STREQ(test, chain, c->chain);
}

/* A message replaces the immediate value, and data precede it. */
static const struct slot_answer_case no_imm_answer_cases[] = {
	{ "a write", WR, false, 0, 0, "M", 0, { 3, 0, 0, 0x10 } },
	{ "a write that failed", WR, false, 0, -EIO, "M", 0, { 3, 0, 0x28, 0x10 } },
	{ "a fetch, invalidate", WR, true, 8192, 0, "V", 0 },
	{ "a read", RD, false, 512, 0, "WM", 'W', { 3, 0, 0, 0x10 } },
	{ "a read that failed", RD, false, 512, -EIO, "M", 0, { 3, 0, 0x28, 0x10 } },
	{ "a read, invalidate", RD, true, 512, 0, "WV", 'W' },
};

KUNIT_ARRAY_PARAM_DESC(no_imm_answer_cases, no_imm_answer_cases, desc);

static void expect_body(struct kunit *test, const struct ib_send_wr *wr, const u8 *imm)
{
	static const u8 head[] = { 7, 0, 0, 0 };
	const u8 *body;

	KUNIT_EXPECT_EQ(test, wr->send_flags, IB_SEND_INLINE);
	KUNIT_ASSERT_EQ(test, wr->num_sge, 1);
	KUNIT_ASSERT_EQ(test, wr->sg_list->length, 8);
	body = (const u8 *)(uintptr_t)wr->sg_list->addr;
	KUNIT_EXPECT_EQ(test, memcmp(body, head, 4), 0);
	KUNIT_EXPECT_EQ(test, memcmp(body + 4, imm, 4), 0);
}

static void answer_without_immediate_data_is_built(struct kunit *test)
{
	const struct slot_answer_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct rtrs_srv_answer *a = kunit_kmalloc(test, sizeof(*a), GFP_KERNEL);
	const struct ib_send_wr *wr;
	char chain[8] = "";
	int n = 0;

	KUNIT_ASSERT_NOT_NULL(test, a);
	use_slots(t);
	t->path.path.no_imm = true;
	t->io.op.dir = c->dir;
	t->io.need_inval = c->need_inval;
	t->io.desc_len = c->desc_len;
	t->io.desc_key = 0xaabbccdd;
	t->io.desc_addr = 0x1122334455667788;
	t->io.err = c->err;
	for (wr = rtrs_srv_build_answer(a, &t->io); wr && n < 7; wr = wr->next) {
		chain[n] = letter_of(wr);
		if (chain[n] == c->with_data)
			expect_data(test, wr, c->desc_len);
		else if (chain[n] == 'V')
			expect_message(test, wr);
		else
			expect_body(test, wr, c->imm);
		n++;
	}
	KUNIT_EXPECT_STREQ(test, chain, c->chain);
}

/* The message is copied from its virtual address when it is posted. */
static void message_of_an_answer_is_inline(struct kunit *test)
{
	struct io_test *t = test->priv;
	struct rtrs_srv_answer *a = kunit_kmalloc(test, sizeof(*a), GFP_KERNEL);
	const struct ib_send_wr *wr;

	KUNIT_ASSERT_NOT_NULL(test, a);
	use_slots(t);
	t->io.need_inval = true;
	t->con.con.sq_inline = 7;
	wr = rtrs_srv_build_answer(a, &t->io);
	KUNIT_EXPECT_EQ(test, wr->send_flags, 0);
	KUNIT_EXPECT_EQ(test, wr->sg_list->addr, 0x10000 + 3 * 8);
	t->con.con.sq_inline = 8;
	wr = rtrs_srv_build_answer(a, &t->io);
	KUNIT_EXPECT_EQ(test, wr->send_flags, IB_SEND_INLINE);
	KUNIT_EXPECT_EQ(test, wr->sg_list->addr, (uintptr_t)&t->msgs[3]);
	KUNIT_EXPECT_EQ(test, wr->sg_list->length, 8);
}

static void errno_of_an_answer_fits(struct kunit *test)
{
	int err;

	for (err = -MAX_ERRNO; err <= 4096; err++)
		KUNIT_ASSERT_EQ(test, rtrs_srv_answer_err(err), err < -511 || err > 0 ? -EIO : err);
	KUNIT_EXPECT_EQ(test, rtrs_srv_answer_err(INT_MIN), -EIO);
	KUNIT_EXPECT_EQ(test, rtrs_srv_answer_err(INT_MAX), -EIO);
}

static void no_work(struct work_struct *work)
{
}

/*
 * A stuck request loses its slot to a waiting request, or to the next one that arrives. When it
 * ends, it does not release the slot of the other request.
 */
static void slot_leaves_a_stuck_request(struct kunit *test)
{
	struct io_test *t = test->priv;
	struct rtrs_srv_path *path = kunit_kcalloc(test, 2, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv_con *con = kunit_kcalloc(test, 2, sizeof(*con), GFP_KERNEL);
	struct rtrs_srv_slot *slot;
	struct rtrs_srv_io *old, *new;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, con);
	rtrs_srv_slots_init(&t->sess);
	INIT_WORK(&t->sess.slots.resume_work, no_work);
	t->sess.queue_depth = 1;
	t->sess.slots.slot = kunit_kcalloc(test, 1, sizeof(*slot), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->sess.slots.slot);
	for (i = 0; i < 2; i++) {
		path[i].sess = &t->sess;
		path[i].ios.size = sizeof(*old);
		path[i].ios.mem = kunit_kzalloc(test, sizeof(*old), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, path[i].ios.mem);
		con[i].path = &path[i];
	}
	slot = t->sess.slots.slot;
	old = rtrs_srv_path_io(&path[0], 0);
	new = rtrs_srv_path_io(&path[1], 0);

	KUNIT_EXPECT_EQ(test, rtrs_srv_slot_take(old, &con[0], 0), 0);
	rtrs_srv_slots_abandon(&path[0]);
	KUNIT_EXPECT_EQ(test, rtrs_srv_slot_take(new, &con[1], 0), 0);
	rtrs_srv_slot_release(old);
	KUNIT_EXPECT_EQ(test, slot->holder, (unsigned long)new);
	rtrs_srv_slot_release(new);
	KUNIT_EXPECT_EQ(test, slot->holder, 0);

	KUNIT_EXPECT_EQ(test, rtrs_srv_slot_take(old, &con[0], 0), 0);
	KUNIT_EXPECT_EQ(test, rtrs_srv_slot_take(new, &con[1], 0), -EINPROGRESS);
	rtrs_srv_slots_abandon(&path[0]);
	flush_work(&t->sess.slots.resume_work);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_slot_next_resumed(&t->sess), new);
	rtrs_srv_slot_release(old);
	KUNIT_EXPECT_EQ(test, slot->holder, (unsigned long)new);
	rtrs_srv_slot_release(new);
	KUNIT_EXPECT_EQ(test, slot->holder, 0);
	/* A path that was never set up has no requests. */
	path[0].ios.mem = NULL;
	rtrs_srv_slots_abandon(&path[0]);
}

static struct kunit_case rtrs_srv_io_cases[] = {
	KUNIT_CASE_PARAM(immediate_value_is_checked, imm_cases_gen_params),
	KUNIT_CASE_PARAM(request_is_parsed, parse_cases_gen_params),
	KUNIT_CASE_PARAM(request_in_a_slot_is_parsed, slot_parse_cases_gen_params),
	KUNIT_CASE_PARAM(answer_is_built, answer_cases_gen_params),
	KUNIT_CASE_PARAM(answer_of_a_slot_is_built, slot_answer_cases_gen_params),
	KUNIT_CASE_PARAM(answer_without_immediate_data_is_built, no_imm_answer_cases_gen_params),
	KUNIT_CASE(message_of_an_answer_is_inline),
	KUNIT_CASE(errno_of_an_answer_fits),
	KUNIT_CASE(slot_leaves_a_stuck_request),
	{}
};

static struct kunit_suite rtrs_srv_io_suite = {
	.name = "rtrs-server-io",
	.init = io_init,
	.test_cases = rtrs_srv_io_cases,
};

kunit_test_suite(rtrs_srv_io_suite);
