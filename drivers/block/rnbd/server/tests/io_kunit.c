// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of I/O: parsing and checks of messages, operations on a disk, and the description
 * of data in several pieces.
 */
#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include "../rnbd-srv.h"

#define FROM	DMA_FROM_DEVICE
#define TO	DMA_TO_DEVICE

struct io_test {
	struct rtrs_srv_op op;
	struct rnbd_srv_req req;
	struct rnbd_srv_map map;
	struct rnbd_srv_backend backend;
	sector_t capacity;
	struct rnbd_srv_sess sess;
};

static sector_t fake_capacity(const struct rnbd_srv_map *map)
{
	return container_of(map, struct io_test, map)->capacity;
}

static int io_init(struct kunit *test)
{
	struct io_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->backend.capacity = fake_capacity;
	t->map.backend = &t->backend;
	t->req.map = &t->map;
	t->op.priv = &t->sess;
	test->priv = t;
	return 0;
}

static const struct parse_case {
	const char *desc;
	int ret;
	u8 ver;
	u16 msg_len;
	u8 bytes[32];
	u64 sector;
	u32 len;
	u8 op;
	u32 flags;
	u16 prio;
} parse_cases[] = {
	{ "a read", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22,
	  0x11,
	  0, 1, 0, 0, 0, 0x10, 0, 0, 0, 0 }, 0x1122334455667788, 4096, 0, 0x100, 0 },
	{ "a write, all flags", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0xf, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0xf00, 0x4003 },
	{ "unknown operation and flags", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 }, 8, U32_MAX, 255, 0xffffff00, 0 },
	{ "reserved bytes that are used", 0, 2, 32,
	  { 4, 0, 0xff, 0xff, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 8, 512, 1, 0, 0 },
	{ "a priority, and nothing behind", 0, 2, 26,
	  { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0, 0x4003 },
	{ "a real-time priority", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x20 }, 8, 512, 1, 0, 0x4000 },
	{ "the lowest priority", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 0, 0x60 }, 8, 512, 1, 0, 0x6000 },
	{ "half a priority", 0, 2, 25, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0, 0 },
	{ "no priority", 0, 2, 24, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0, 0 },
	{ "a priority of version 1", 0, 1, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0, 0 },
	{ "a priority before any version", 0, 0, 32,
	  { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 3, 0x40 }, 8, 512, 1, 0, 0 },
	{ "a priority of no class", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 0, 0x80 }, 8, 512, 1, 0, 0 },
	{ "a priority of all bits", 0, 2, 32, { 4, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
	  1, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xff }, 8, 512, 1, 0, 0 },
	{ "a byte is missing", -EINVAL, 2, 23, { 4 } },
	{ "only a header", -EINVAL, 2, 4, { 4 } },
};

KUNIT_ARRAY_PARAM_DESC(parse_cases, parse_cases, desc);

static void message_is_read(struct kunit *test)
{
	const struct parse_case *c = test->param_value;
	struct io_test *t = test->priv;

	/* Stale contents from an earlier message */
	memset(t->op.msg, 0x5a, sizeof(t->op.msg));
	memcpy(t->op.msg, c->bytes, sizeof(c->bytes));
	t->op.msg_len = c->msg_len;
	t->sess.ver = c->ver;
	KUNIT_ASSERT_EQ(test, rnbd_srv_parse(&t->req, &t->op), c->ret);
	if (c->ret)
		return;
	KUNIT_EXPECT_EQ(test, t->req.sector, c->sector);
	KUNIT_EXPECT_EQ(test, t->req.len, c->len);
	KUNIT_EXPECT_EQ(test, t->req.op, c->op);
	KUNIT_EXPECT_EQ(test, t->req.flags, c->flags);
	KUNIT_EXPECT_EQ(test, t->req.prio, c->prio);
}

#define RO	RNBD_ACCESS_RO
#define RW	RNBD_ACCESS_RW
#define MIG	RNBD_ACCESS_MIGRATION

/* The disk has 1000 sectors, unless @capacity is set. */
static const struct check_case {
	const char *desc;
	int ret;
	u8 op;
	u32 flags;
	enum rnbd_access_mode mode;
	u32 block_size;
	u64 sector;
	u32 len;
	enum dma_data_direction dir;
	u32 data_len;
	sector_t capacity;
} check_cases[] = {
	{ "a read", 0, 0, 0x100, RO, 512, 0, 4096, FROM, 4096 },
	{ "a read of the last sector", 0, 0, 0, RW, 512, 999, 512, FROM, 512 },
	{ "a read of all", 0, 0, 0, RW, 512, 0, 512000, FROM, 512000 },
	{ "a write", 0, 1, 0xf00, RW, 512, 0, 4096, TO, 4096 },
	{ "a write for migration", 0, 1, 0, MIG, 512, 0, 4096, TO, 4096 },
	{ "a write after a handover", 0, 1, 0, RNBD_ACCESS_HANDOVER, 512, 0, 4096, TO, 4096 },
	{ "a write in blocks of 4 KiB", 0, 1, 0, RW, 4096, 8, 4096, TO, 4096 },
	{ "a flush", 0, 2, 0x500, RW, 512, 0, 0, TO, 0 },
	{ "a flush of a read-only device", 0, 2, 0, RO, 512, 0, 0, TO, 0 },
	{ "a flush of nowhere", 0, 2, 0, RW, 512, U64_MAX, U32_MAX, TO, 0 },
	{ "a discard", 0, 3, 0, RW, 512, 0, 512000, TO, 0 },
	{ "a secure erase", 0, 4, 0, RW, 512, 0, 512000, TO, 0 },
	{ "write zeroes", 0, 5, 0x800, RW, 512, 0, 512000, TO, 0 },
	{ "a discard of 4 GiB less a sector", 0, 3, 0, RW, 512, 0, 0xfffffe00, TO, 0, U64_MAX },
	{ "a read without data", -EINVAL, 0, 0, RW, 512, 0, 4096, TO, 0 },
	{ "a read as a write", -EINVAL, 0, 0, RW, 512, 0, 4096, TO, 4096 },
	{ "a read of less than is asked for", -EINVAL, 0, 0, RW, 512, 0, 4096, FROM, 3584 },
	{ "a read of more than is asked for", -EINVAL, 0, 0, RW, 512, 0, 4096, FROM, 4608 },
	{ "a write without data", -EINVAL, 1, 0, RW, 512, 0, 4096, TO, 0 },
	{ "a write as a read", -EINVAL, 1, 0, RW, 512, 0, 4096, FROM, 4096 },
	{ "a write of more than came", -EINVAL, 1, 0, RW, 512, 0, 4096, TO, 3584 },
	{ "a write of less than came", -EINVAL, 1, 0, RW, 512, 0, 3584, TO, 4096 },
	{ "a read of nothing", -EINVAL, 0, 0, RW, 512, 0, 0, FROM, 0 },
	{ "a write of nothing", -EINVAL, 1, 0, RW, 512, 0, 0, TO, 0 },
	{ "a discard of nothing", -EINVAL, 3, 0, RW, 512, 0, 0, TO, 0 },
	{ "a read of half a sector", -EINVAL, 0, 0, RW, 512, 0, 256, FROM, 256 },
	{ "a read of half a block", -EINVAL, 0, 0, RW, 4096, 0, 2048, FROM, 2048 },
	{ "a read from within a block", -EINVAL, 0, 0, RW, 4096, 1, 4096, FROM, 4096 },
	{ "a discard from within a block", -EINVAL, 3, 0, RW, 4096, 4, 4096, TO, 0 },
	{ "a read of a sector too many", -EINVAL, 0, 0, RW, 512, 999, 1024, FROM, 1024 },
	{ "a read behind the end", -EINVAL, 0, 0, RW, 512, 1000, 512, FROM, 512 },
	{ "a read far behind the end", -EINVAL, 0, 0, RW, 512, 1001, 512, FROM, 512 },
	{ "a write across the end", -EINVAL, 1, 0, RW, 512, 996, 4096, TO, 4096 },
	{ "a discard across the end", -EINVAL, 3, 0, RW, 512, 1, 512000, TO, 0 },
	{ "a discard of 4 GiB less a sector, too much", -EINVAL, 3, 0, RW, 512, 0, 0xfffffe00, TO,
	  0 },
	{ "a discard of 4 GiB less a byte", -EINVAL, 3, 0, RW, 512, 0, U32_MAX, TO, 0, U64_MAX },
	{ "a sector of all bits", -EINVAL, 0, 0, RW, 512, U64_MAX, 512, FROM, 512 },
	{ "a sector whose end wraps to 0", -EINVAL, 1, 0, RW, 512, U64_MAX - 7, 4096, TO, 4096 },
	{ "a sector whose end wraps to 1", -EINVAL, 1, 0, RW, 512, U64_MAX - 6, 4096, TO, 4096 },
	{ "a sector whose byte is 0 in 64 bits", -EINVAL, 1, 0, RW, 512, 1ULL << 55, 512, TO, 512 },
	{ "a sector whose byte is negative", -EINVAL, 1, 0, RW, 512, 1ULL << 54, 512, TO, 512 },
	{ "a write of a read-only device", -EROFS, 1, 0, RO, 512, 0, 4096, TO, 4096 },
	{ "a discard of a read-only device", -EROFS, 3, 0, RO, 512, 0, 4096, TO, 0 },
	{ "a secure erase of a read-only device", -EROFS, 4, 0, RO, 512, 0, 4096, TO, 0 },
	{ "write zeroes of a read-only device", -EROFS, 5, 0, RO, 512, 0, 4096, TO, 0 },
	{ "write same of zeroes or not", -EOPNOTSUPP, 5, 0, RW, 512, 0, 512000, TO, 512 },
	{ "write same, as a read", -EOPNOTSUPP, 5, 0, RW, 512, 0, 4096, FROM, 512 },
	{ "the first unknown operation", -EOPNOTSUPP, 6, 0, RW, 512, 0, 512, TO, 0 },
	{ "the last unknown operation", -EOPNOTSUPP, 255, 0, RW, 512, 0, 512, TO, 0 },
	{ "an unknown operation of a read-only device", -EOPNOTSUPP, 6, 0, RO, 512, 0, 512, TO, 0 },
	{ "the first unknown flag", -EINVAL, 1, 0x1000, RW, 512, 0, 4096, TO, 4096 },
	{ "the last unknown flag", -EINVAL, 1, 0x80000000, RW, 512, 0, 4096, TO, 4096 },
	{ "an unknown flag with a flush", -EINVAL, 2, 0x1000, RW, 512, 0, 0, TO, 0 },
};

KUNIT_ARRAY_PARAM_DESC(check_cases, check_cases, desc);

static void io_is_checked(struct kunit *test)
{
	const struct check_case *c = test->param_value;
	struct io_test *t = test->priv;

	t->map.mode = c->mode;
	t->map.block_size = c->block_size;
	t->capacity = c->capacity ?: 1000;
	t->req.op = c->op;
	t->req.flags = c->flags;
	t->req.sector = c->sector;
	t->req.len = c->len;
	t->op.dir = c->dir;
	t->op.data_len = c->data_len;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check(&t->req, &t->op), c->ret);
}

static const struct opf_case {
	const char *desc;
	u8 op;
	u32 flags;
	blk_opf_t opf;
} opf_cases[] = {
	{ "a read", 0, 0, REQ_OP_READ | REQ_SYNC },
	{ "a read, all flags", 0, 0xf00, REQ_OP_READ | REQ_SYNC },
	{ "a write", 1, 0, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE },
	{ "a write, SYNC", 1, 0x100, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE },
	{ "a write, FUA", 1, 0x200, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | REQ_FUA },
	{ "a write, PREFLUSH", 1, 0x400, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | REQ_PREFLUSH },
	{ "a write, all flags", 1, 0xf00,
	  REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | REQ_FUA | REQ_PREFLUSH },
	{ "a flush", 2, 0, REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH },
	{ "a flush, all flags", 2, 0xf00, REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH },
	{ "a discard, all flags", 3, 0xf00, REQ_OP_DISCARD | REQ_SYNC },
	{ "a secure erase, all flags", 4, 0xf00, REQ_OP_SECURE_ERASE | REQ_SYNC },
	{ "write zeroes", 5, 0x700, REQ_OP_WRITE_ZEROES | REQ_SYNC },
	{ "write zeroes, NOUNMAP", 5, 0xf00, REQ_OP_WRITE_ZEROES | REQ_SYNC | REQ_NOUNMAP },
};

KUNIT_ARRAY_PARAM_DESC(opf_cases, opf_cases, desc);

static void disk_is_asked_for_what_the_client_wants(struct kunit *test)
{
	const struct opf_case *c = test->param_value;
	struct io_test *t = test->priv;

	t->req.op = c->op;
	t->req.flags = c->flags;
	KUNIT_EXPECT_EQ(test, (__force u32)rnbd_srv_bdev_opf(&t->req), (__force u32)c->opf);
}

/* Data of @nents entries of a page each, except for the last one, which has a sector */
static const struct data_case {
	const char *desc;
	u32 nents;
	bool inlined;
} data_cases[] = {
	{ "one entry", 1, true },
	{ "the most without memory", RNBD_SRV_INLINE_VECS, true },
	{ "the fewest with memory", RNBD_SRV_INLINE_VECS + 1, false },
	{ "the most", BIO_MAX_VECS, false },
};

KUNIT_ARRAY_PARAM_DESC(data_cases, data_cases, desc);

/* Fill each entry with its index. The entries are in reverse order in memory. */
static u8 *data_init(struct kunit *test, u32 nents)
{
	struct io_test *t = test->priv;
	u8 *buf = kunit_kzalloc(test, nents * PAGE_SIZE, GFP_KERNEL);
	u8 *at;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	t->op.sgl = kunit_kcalloc(test, nents, sizeof(*t->op.sgl), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->op.sgl);
	sg_init_table(t->op.sgl, nents);
	for (i = 0; i < nents; i++) {
		at = buf + (nents - 1 - i) * PAGE_SIZE;
		memset(at, i, PAGE_SIZE);
		sg_set_buf(&t->op.sgl[i], at, i < nents - 1 ? PAGE_SIZE : 512);
	}
	t->op.nents = nents;
	t->op.data_len = (nents - 1) * PAGE_SIZE + 512;
	t->req.len = t->op.data_len;
	t->req.sector = 8;
	return buf;
}

static void vecs_init(struct kunit *test)
{
	struct io_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0,
			mempool_init_kmalloc_pool(&t->map.vecs, 1,
						  BIO_MAX_VECS * sizeof(struct bio_vec)));
}

static void vecs_exit(struct io_test *t)
{
	rnbd_srv_put_vecs(&t->req);
	mempool_exit(&t->map.vecs);
}

static void disk_gets_all_entries(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 bytes = 0;

	data_init(test, c->nents);
	vecs_init(test);
	t->req.op = RNBD_OP_WRITE;
	KUNIT_EXPECT_TRUE(test, rnbd_srv_get_vecs(&t->req, &t->op, GFP_NOWAIT));
	KUNIT_EXPECT_EQ(test, t->req.vecs == t->req.inline_vecs, c->inlined);
	rnbd_srv_bdev_fill_bio(&t->req, &t->op, 0);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_iter.bi_sector, 8);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_iter.bi_size, t->op.data_len);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_vcnt, c->nents);
	bio_for_each_segment(bv, &t->req.bio, iter) {
		u8 *at = bvec_virt(&bv);

		KUNIT_EXPECT_EQ(test, at[0], (u8)(bytes / PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, at[bv.bv_len - 1], (u8)(bytes / PAGE_SIZE));
		bytes += bv.bv_len;
	}
	KUNIT_EXPECT_EQ(test, bytes, t->op.data_len);
	bio_uninit(&t->req.bio);
	vecs_exit(t);
}

static void disk_gets_no_data_with_a_discard(struct kunit *test)
{
	struct io_test *t = test->priv;

	data_init(test, 1);
	t->req.op = RNBD_OP_DISCARD;
	rnbd_srv_bdev_fill_bio(&t->req, &t->op, 0);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_vcnt, 0);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_iter.bi_size, 512);
	t->req.op = RNBD_OP_FLUSH;
	rnbd_srv_bdev_fill_bio(&t->req, &t->op, 0);
	KUNIT_EXPECT_EQ(test, t->req.bio.bi_iter.bi_size, 0);
	bio_uninit(&t->req.bio);
}

static void file_gets_all_entries(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct iov_iter iter;
	u8 *written;
	u32 i;

	data_init(test, c->nents);
	vecs_init(test);
	written = kunit_kzalloc(test, t->op.data_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, written);
	t->req.op = RNBD_OP_WRITE;
	rnbd_srv_file_iter(&t->req, &t->op, &iter);
	KUNIT_EXPECT_EQ(test, copy_from_iter(written, t->op.data_len, &iter), t->op.data_len);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&iter), 0);
	for (i = 0; i < t->op.data_len; i++)
		KUNIT_ASSERT_EQ(test, written[i], (u8)(i / PAGE_SIZE));
	vecs_exit(t);
}

static void file_fills_all_entries(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct iov_iter iter;
	u8 *buf, *read;
	size_t rest;

	buf = data_init(test, c->nents);
	vecs_init(test);
	read = kunit_kzalloc(test, t->op.data_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, read);
	memset(read, 0xa5, t->op.data_len);
	t->req.op = RNBD_OP_READ;
	rnbd_srv_file_iter(&t->req, &t->op, &iter);
	KUNIT_EXPECT_EQ(test, copy_to_iter(read, t->op.data_len, &iter), t->op.data_len);
	/* The last entry is the first one in memory. */
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0xa5, 512));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 512, (u8)(c->nents - 1), PAGE_SIZE - 512));
	rest = (c->nents - 1) * PAGE_SIZE;
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + PAGE_SIZE, 0xa5, rest));
	vecs_exit(t);
}

static bool no_memory;

static void *alloc_if_there_is_memory(gfp_t gfp, void *data)
{
	return no_memory ? NULL : kmalloc(BIO_MAX_VECS * sizeof(struct bio_vec), gfp);
}

static void free_memory(void *element, void *data)
{
	kfree(element);
}

/* Without memory, one request gets the reserve, and a second one gets it after the first. */
static void data_need_no_memory(struct kunit *test)
{
	struct io_test *t = test->priv;
	struct rnbd_srv_req *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, other);
	other->map = &t->map;
	data_init(test, RNBD_SRV_INLINE_VECS + 1);
	no_memory = false;
	KUNIT_ASSERT_EQ(test, 0, mempool_init(&t->map.vecs, 1, alloc_if_there_is_memory,
					      free_memory, NULL));
	no_memory = true;
	KUNIT_EXPECT_TRUE(test, rnbd_srv_get_vecs(&t->req, &t->op, GFP_NOWAIT));
	KUNIT_EXPECT_FALSE(test, rnbd_srv_get_vecs(other, &t->op, GFP_NOWAIT));
	KUNIT_EXPECT_NULL(test, other->vecs);
	rnbd_srv_put_vecs(&t->req);
	KUNIT_EXPECT_NULL(test, t->req.vecs);
	KUNIT_EXPECT_TRUE(test, rnbd_srv_get_vecs(other, &t->op, GFP_NOIO));
	rnbd_srv_put_vecs(other);
	vecs_exit(t);
}

/* A request that would block is submitted again, and keeps the array. */
static void data_are_described_once(struct kunit *test)
{
	struct io_test *t = test->priv;
	struct bio_vec *vecs;

	data_init(test, RNBD_SRV_INLINE_VECS + 1);
	vecs_init(test);
	KUNIT_EXPECT_TRUE(test, rnbd_srv_get_vecs(&t->req, &t->op, GFP_NOWAIT));
	vecs = t->req.vecs;
	KUNIT_EXPECT_TRUE(test, rnbd_srv_get_vecs(&t->req, &t->op, GFP_NOIO));
	KUNIT_EXPECT_PTR_EQ(test, t->req.vecs, vecs);
	vecs_exit(t);
}

static void too_many_entries_are_refused(struct kunit *test)
{
	struct io_test *t = test->priv;

	t->capacity = 1000000;
	t->map.block_size = 512;
	t->map.mode = RW;
	t->req.op = RNBD_OP_READ;
	t->req.len = 1 << 20;
	t->op.dir = FROM;
	t->op.data_len = 1 << 20;
	t->op.nents = BIO_MAX_VECS;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check(&t->req, &t->op), 0);
	t->op.nents++;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check(&t->req, &t->op), -EINVAL);
}

static const struct file_errno_case {
	const char *desc;
	int err, ret;
} file_errno_cases[] = {
	{ "success", 0, 0 },
	{ "no space", -ENOSPC, -ENOSPC },
	{ "no space within a quota", -EDQUOT, -ENOSPC },
	{ "the largest file", -EFBIG, -ENOSPC },
	{ "an I/O error", -EIO, -EIO },
};

KUNIT_ARRAY_PARAM_DESC(file_errno_cases, file_errno_cases, desc);

static void errno_of_a_file_is_that_of_a_disk(struct kunit *test)
{
	const struct file_errno_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rnbd_srv_file_errno(c->err), c->ret);
}

static struct kunit_case rnbd_srv_io_cases[] = {
	KUNIT_CASE_PARAM(message_is_read, parse_cases_gen_params),
	KUNIT_CASE_PARAM(io_is_checked, check_cases_gen_params),
	KUNIT_CASE_PARAM(disk_is_asked_for_what_the_client_wants, opf_cases_gen_params),
	KUNIT_CASE_PARAM(disk_gets_all_entries, data_cases_gen_params),
	KUNIT_CASE(disk_gets_no_data_with_a_discard),
	KUNIT_CASE_PARAM(file_gets_all_entries, data_cases_gen_params),
	KUNIT_CASE_PARAM(file_fills_all_entries, data_cases_gen_params),
	KUNIT_CASE(data_need_no_memory),
	KUNIT_CASE(data_are_described_once),
	KUNIT_CASE(too_many_entries_are_refused),
	KUNIT_CASE_PARAM(errno_of_a_file_is_that_of_a_disk, file_errno_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_io_suite = {
	.name = "rnbd-server-io",
	.init = io_init,
	.test_cases = rnbd_srv_io_cases,
};

kunit_test_suite(rnbd_srv_io_suite);
