// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of memory for DMA: the location of the pieces, the size, and registration. */
#include <kunit/test.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../core.h"

static const struct max_case {
	const char *desc;
	u32 size, pages, nr;
} max_cases[] = {
	{ "pages", 4096, 512, 512 },
	{ "a page", 4096, 1, 1 },
	{ "chunks of 128 KiB", 131072, 512, 16 },
	{ "a chunk of 128 KiB, a page too few", 131072, 31, 0 },
	{ "groups of nine pages", 4608, 512, 448 },
	{ "a group of nine pages", 4608, 9, 8 },
	{ "a group of nine pages, one too few", 4608, 8, 0 },
	{ "groups of one page", 512, 512, 4096 },
	{ "no pages", 4096, 0, 0 },
	{ "no more than a page has addresses of", 4096, 513, 512 },
	{ "as few of a device that takes any number", 131072, UINT_MAX, 16 },
	{ "the same, in groups", 4608, UINT_MAX, 448 },
	{ "a piece that is larger", 4194304, UINT_MAX, 1 },
	{ "a larger piece, and a device that takes fewer", 4194304, 1023, 0 },
};

KUNIT_ARRAY_PARAM_DESC(max_cases, max_cases, desc);

static void pieces_of_a_memory_region_are_whole_groups(struct kunit *test)
{
	const struct max_case *c = test->param_value;
	struct ib_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rtrs_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, path);
	dev->attrs.max_fast_reg_page_list_len = c->pages;
	path->dev = dev;
	KUNIT_EXPECT_EQ(test, rtrs_region_max_per_mr(path, c->size), c->nr);
}

static const struct bytes_case {
	const char *desc;
	u32 nr, size, per_mr;
	u64 bytes;
} bytes_cases[] = {
	{ "pages", 512, 4096, 0, 2105344 },
	{ "groups", 512, 4608, 0, 2360320 },
	{ "one piece of a group", 1, 4608, 0, 36880 },
	{ "one piece more than a group", 9, 4608, 0, 73760 },
	{ "groups in two memory regions", 512, 4608, 448, 2369424 },
	{ "groups in one with room for more", 512, 4608, 65536, 2365448 },
	{ "a memory region each", 16, 131072, 1, 2109824 },
	{ "more than 4 GiB", 2048, 4194304, 0, 8589967360 },
};

KUNIT_ARRAY_PARAM_DESC(bytes_cases, bytes_cases, desc);

static void bytes_are_those_of_groups_and_memory_regions(struct kunit *test)
{
	const struct bytes_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_region_bytes(c->nr, c->size, c->per_mr), c->bytes);
}

static const struct layout_case {
	const char *desc;
	u32 nr, size, nr_groups, per_group;
} layout_cases[] = {
	{ "pages", 5, 4096, 5, 1 },
	{ "three pages each", 3, 12288, 3, 1 },
	{ "128 KiB each", 2, 131072, 2, 1 },
	{ "groups", 16, 4608, 2, 8 },
	{ "one piece", 1, 4608, 1, 8 },
	{ "one piece more than a group", 9, 4608, 2, 8 },
	{ "groups of one page", 20, 512, 3, 8 },
	{ "groups of three pages", 8, 1536, 1, 8 },
	{ "pairs in a page", 3, 2048, 2, 2 },
	{ "messages of a few bytes", 513, 8, 2, 512 },
};

KUNIT_ARRAY_PARAM_DESC(layout_cases, layout_cases, desc);

static void expect_place(struct kunit *test, const struct rtrs_region *region,
			 const struct layout_case *c, u32 i)
{
	void *addr = rtrs_region_addr(region, i);

	if (i % c->per_group)
		KUNIT_EXPECT_PTR_EQ(test, addr, rtrs_region_addr(region, i - 1) + c->size);
	else
		KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(addr));
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(addr, 0, c->size), NULL);
	/* DMA addresses are virtual addresses here. */
	KUNIT_EXPECT_EQ(test, rtrs_region_dma(region, i), (u64)(uintptr_t)addr);
}

/* The device uses virtual addresses for DMA. */
static void pieces_lie_in_groups_of_whole_pages(struct kunit *test)
{
	const struct layout_case *c = test->param_value;
	struct ib_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rtrs_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_region region = {};
	int ret;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, path);
	if (!ib_uses_virt_dma(dev))
		kunit_skip(test, "needs CONFIG_INFINIBAND_VIRT_DMA");
	path->dev = dev;
	ret = rtrs_region_alloc(&region, path, c->nr, c->size, 0);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, region.nr_groups, c->nr_groups);
	KUNIT_EXPECT_EQ(test, region.nr_mrs, 0);
	for (i = 0; i < c->nr && !ret; i++) {
		expect_place(test, &region, c, i);
		memset(rtrs_region_addr(&region, i), i + 1, c->size);
	}
	for (i = 0; i < c->nr && !ret; i++)
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(rtrs_region_addr(&region, i), i + 1, c->size),
				    NULL);
	rtrs_region_free(&region);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(&region, 0, sizeof(region)), NULL);
}

static void region_without_memory_is_freed(struct kunit *test)
{
	struct rtrs_region region = {};

	rtrs_region_free(&region);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(&region, 0, sizeof(region)), NULL);
}

/* Twenty pieces, eight per memory region. */
static const struct iova_case {
	const char *desc;
	u32 piece, mr;
	u64 iova;
} iova_cases[] = {
	{ "the first piece", 0, 0, 0x1122334455660000 },
	{ "the second piece", 1, 0, 0x1122334455661200 },
	{ "the last piece of a memory region", 7, 0, 0x1122334455667e00 },
	{ "the first piece of the next", 8, 1, 0x10000 },
	{ "the last piece of that", 15, 1, 0x17e00 },
	{ "the last piece of all", 19, 2, 0xfffffffff0003600 },
};

KUNIT_ARRAY_PARAM_DESC(iova_cases, iova_cases, desc);

static void pieces_lie_in_a_row_for_the_peer(struct kunit *test)
{
	static const u64 iova[] = { 0x1122334455660000, 0x10000, 0xfffffffff0000000 };
	const struct iova_case *c = test->param_value;
	struct ib_mr *mr = kunit_kcalloc(test, 3, sizeof(*mr), GFP_KERNEL);
	struct ib_mr *mrs[] = { &mr[0], &mr[1], &mr[2] };
	const struct rtrs_region region = {
		.nr = 20, .size = 4608, .group_shift = 3, .per_mr = 8, .nr_mrs = 3, .mrs = mrs,
	};
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = 0; i < 3; i++)
		mr[i].iova = iova[i];
	KUNIT_EXPECT_PTR_EQ(test, rtrs_region_mr(&region, c->piece), &mr[c->mr]);
	KUNIT_EXPECT_EQ(test, rtrs_region_iova(&region, c->piece), c->iova);
}

#define NR_MRS	100

/* A device whose queue pair accepts all posted work requests. */
struct reg_test {
	struct rtrs_path path;
	struct rtrs_con con;
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_device dev;
	struct ib_mr mr[NR_MRS];
	struct ib_mr *mrs[NR_MRS];
	struct ib_cqe cqe;
	const struct ib_cqe *last;
	u32 nr, wrong, batches_to_complete;
};

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct reg_test *t = container_of(qp, struct reg_test, qp);

	for (; wr; wr = wr->next, t->nr++) {
		t->wrong += wr->opcode != IB_WR_REG_MR || reg_wr(wr)->mr != &t->mr[t->nr] ||
			    reg_wr(wr)->key != t->nr;
		t->last = wr->send_flags & IB_SEND_SIGNALED ? wr->wr_cqe : NULL;
		t->batches_to_complete += t->last == &t->con.sq_cqe;
	}
	return 0;
}

/* The shortest send queue has room for a batch when the previous one is complete. */
static void registrations_fit_in_a_short_queue(struct kunit *test)
{
	struct rtrs_qp_params params = { .send_wr = 2 * RTRS_SIGNAL_EVERY };
	struct reg_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct rtrs_region region = { .nr_mrs = NR_MRS };
	struct ib_wc wc = { .status = IB_WC_SUCCESS };
	u32 i, first;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, t);
	INIT_LIST_HEAD(&t->path.cons);
	t->dev.ops.post_send = post_send;
	t->qp.device = &t->dev;
	t->cm_id.qp = &t->qp;
	t->con.cm_id = &t->cm_id;
	t->con.path = &t->path;
	rtrs_con_init_sq(&t->con, &params);
	for (i = 0; i < NR_MRS; i++) {
		t->mr[i].rkey = i;
		t->mrs[i] = &t->mr[i];
	}
	region.mrs = t->mrs;
	for (first = 0; first < NR_MRS; first += ret) {
		ret = rtrs_region_register(&region, &t->con, first, &t->cqe);
		KUNIT_ASSERT_EQ(test, ret, min_t(int, NR_MRS - first, RTRS_SIGNAL_EVERY));
		KUNIT_EXPECT_EQ(test, t->nr, first + ret);
		KUNIT_EXPECT_PTR_EQ(test, t->last, &t->cqe);
		wc.wr_cqe = &t->con.sq_cqe;
		for (; t->batches_to_complete; t->batches_to_complete--)
			t->con.sq_cqe.done(NULL, &wc);
		rtrs_con_put_wr(&t->con);
	}
	KUNIT_EXPECT_EQ(test, t->wrong, 0);
}

static struct kunit_case rtrs_region_cases[] = {
	KUNIT_CASE_PARAM(pieces_of_a_memory_region_are_whole_groups, max_cases_gen_params),
	KUNIT_CASE_PARAM(bytes_are_those_of_groups_and_memory_regions, bytes_cases_gen_params),
	KUNIT_CASE_PARAM(pieces_lie_in_groups_of_whole_pages, layout_cases_gen_params),
	KUNIT_CASE(region_without_memory_is_freed),
	KUNIT_CASE(registrations_fit_in_a_short_queue),
	KUNIT_CASE_PARAM(pieces_lie_in_a_row_for_the_peer, iova_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_region_suite = {
	.name = "rtrs-region",
	.test_cases = rtrs_region_cases,
};

kunit_test_suite(rtrs_region_suite);
