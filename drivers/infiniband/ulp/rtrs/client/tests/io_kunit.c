// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of requests: their headers, and the checks of answers */
#include <kunit/test.h>

#include "../clt.h"

#define IOVA	0x1122334455667788
#define KEY	0xaabbcc01
#define RADDR	0x7000000
#define RKEY	0x0f0e0d0c
#define BUF_DMA	0xb00000

static const struct hdr_case {
	const char *desc;
	enum dma_data_direction dir;
	u32 data_len;
	u16 msg_len;
	u32 len;
	u8 bytes[32];
} hdr_cases[] = {
	{ "a write", DMA_TO_DEVICE, 4096, 5, 9, { 'h', 'e', 'l', 'l', 'o', 2, 0, 5, 0 } },
	{ "a write without data", DMA_TO_DEVICE, 0, 1, 5, { 'h', 2, 0, 1, 0 } },
	{ "a write without a message", DMA_TO_DEVICE, 512, 0, 4, { 2, 0, 0, 0 } },
	{ "a small read", DMA_FROM_DEVICE, 4096, 3, 27, { 'h', 'e', 'l', 3, 0, 3, 0, 0, 0, 1, 0,
	  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01, 0xcc, 0xbb, 0xaa, 0x00, 0x10, 0x00,
	  0x00 } },
	{ "a large read, without NEED_INVAL", DMA_FROM_DEVICE, 16896, 0, 24,
	  { 3, 0, 0, 0, 0, 0, 1, 0,
	  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01, 0xcc, 0xbb, 0xaa, 0x00, 0x42, 0x00,
	  0x00 } },
};

KUNIT_ARRAY_PARAM_DESC(hdr_cases, hdr_cases, desc);

/* A path with three slots, whose requests all wait for answers on connection 1 */
struct io_test {
	struct rtrs_clt_path path;
	struct rtrs_clt_con con[3];
	struct rtrs_clt_slot *slots[3];
	struct rtrs_clt_mr mr[3];
	struct ib_mr ib_mr[3];
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_device dev;
	struct ib_pd pd;
	const struct ib_send_wr *posted;
	struct scatterlist sg;
	u8 data[1024];
	u8 buf[2 * RTRS_SLOT_HDR_ROOM];
};

static int io_init(struct kunit *test)
{
	struct io_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	if (!t)
		return -ENOMEM;
	rtrs_clt_mrs_init(&t->path);
	/* This device needs neither DMA mapping nor synchronization. */
	t->path.path.dev = &t->dev;
	t->path.path.pd = &t->pd;
	memset(t->data, 0xda, sizeof(t->data));
	t->path.neg.depth = ARRAY_SIZE(t->slots);
	t->path.neg.nr_slots = ARRAY_SIZE(t->slots);
	t->path.slots = t->slots;
	for (i = 0; i < 3; i++) {
		t->con[i].con.path = &t->path.path;
		t->con[i].con.cid = i;
		t->slots[i] = kunit_kzalloc(test, struct_size(t->slots[i], sge, 2),
					    GFP_KERNEL);
		if (!t->slots[i])
			return -ENOMEM;
		t->slots[i]->con = &t->con[1];
		t->slots[i]->queued = &t->con[1].con;
		t->slots[i]->buf = t->buf;
		t->slots[i]->buf_dma = BUF_DMA;
		t->slots[i]->buf_iova = 0x10b00000;
		t->slots[i]->buf_rkey = 0x01020304;
		t->slots[i]->raddr = RADDR;
		t->slots[i]->rkey = RKEY;
		t->slots[i]->mr = &t->mr[i];
		t->mr[i].slot = t->slots[i];
		t->mr[i].mr = &t->ib_mr[i];
		t->ib_mr[i].iova = IOVA;
		t->ib_mr[i].rkey = KEY + (i << 8);
	}
	test->priv = t;
	return 0;
}

/* Data of up to 512 bytes are small. @slots: with RTRS_FEATURE_SLOTS */
static void io_copy_small(struct io_test *t, bool slots)
{
	t->path.neg.slot_size = slots ? 512 : 0;
	t->path.neg.copy_size = 512;
}

/* Initializes a request in slot 0, and the buffers and memory region of the slot. */
static void io_start(struct io_test *t, const struct hdr_case *c, struct rtrs_clt_io *io)
{
	*io = (struct rtrs_clt_io) {
		.dir = c->dir, .data_len = c->data_len, .nents = !!c->data_len,
		.msg = "hello", .msg_len = c->msg_len, .sgl = &t->sg,
	};
	sg_init_one(&t->sg, t->data, min_t(u32, c->data_len, sizeof(t->data)));
	sg_dma_address(&t->sg) = 0xd000;
	sg_dma_len(&t->sg) = c->data_len;
	t->ib_mr[0].length = c->data_len;
	memset(t->buf, 0x5a, sizeof(t->buf));
}

/* With chunks and copies of up to 4 KiB, and with slots of 64 KiB; at most 8 SGEs in a send */
static const struct form_case {
	const char *desc;
	enum dma_data_direction dir;
	u32 data_len, nents;
	enum rtrs_form chunk, slot;
} form_cases[] = {
	{ "no data", DMA_TO_DEVICE, 0, 0, RTRS_FORM_PUSH, RTRS_FORM_PUSH },
	{ "a small write", DMA_TO_DEVICE, 4096, 1, RTRS_FORM_PUSH, RTRS_FORM_PUSH },
	{ "the largest write that is always copied into a slot", DMA_TO_DEVICE, 16384, 4,
	  RTRS_FORM_PUSH_PAGES, RTRS_FORM_PUSH },
	{ "a larger write", DMA_TO_DEVICE, 16896, 5, RTRS_FORM_PUSH_PAGES, RTRS_FORM_PUSH_PAGES },
	{ "a larger write in many segments", DMA_TO_DEVICE, 32768, 8,
	  RTRS_FORM_PUSH_PAGES, RTRS_FORM_PUSH },
	{ "the largest write that fits in a slot", DMA_TO_DEVICE, 65536, 7,
	  RTRS_FORM_PUSH_PAGES, RTRS_FORM_PUSH_PAGES },
	{ "a write that does not fit", DMA_TO_DEVICE, 66048, 1,
	  RTRS_FORM_PUSH_PAGES, RTRS_FORM_FETCH },
	{ "a small read", DMA_FROM_DEVICE, 4096, 1, RTRS_FORM_CHUNK_READ, RTRS_FORM_READ },
	{ "a larger read", DMA_FROM_DEVICE, 4608, 2, RTRS_FORM_CHUNK_READ_PAGES, RTRS_FORM_READ },
	{ "the largest read that fits in a slot", DMA_FROM_DEVICE, 65536, 16,
	  RTRS_FORM_CHUNK_READ_PAGES, RTRS_FORM_READ },
	{ "a read that does not fit", DMA_FROM_DEVICE, 66048, 1,
	  RTRS_FORM_CHUNK_READ_PAGES, RTRS_FORM_READ_PAGES },
};

KUNIT_ARRAY_PARAM_DESC(form_cases, form_cases, desc);

static void form_follows_from_the_request_and_the_path(struct kunit *test)
{
	const struct form_case *c = test->param_value;
	struct rtrs_clt_io io = { .dir = c->dir, .data_len = c->data_len, .nents = c->nents };
	struct io_test *t = test->priv;

	t->path.neg.max_sge = 8;
	t->path.neg.copy_size = 4096;
	KUNIT_EXPECT_EQ(test, rtrs_clt_io_form(&t->path, &io), c->chunk);
	t->path.neg.slot_size = 65536;
	t->path.neg.copy_size = 65536;
	KUNIT_EXPECT_EQ(test, rtrs_clt_io_form(&t->path, &io), c->slot);
}

/* Chooses the form of a request, and builds its work requests. */
static struct ib_send_wr *io_build(struct io_test *t, struct rtrs_clt_slot *slot,
				   const struct rtrs_clt_io *io)
{
	slot->form = rtrs_clt_io_form(&t->path, io);
	return rtrs_clt_build(&t->path, slot, io);
}

static void headers_are_on_the_wire_as_written_down(struct kunit *test)
{
	const struct hdr_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct ib_rdma_wr *wr = &t->slots[0]->wr;
	bool read = c->dir == DMA_FROM_DEVICE;
	struct ib_send_wr *first;
	struct rtrs_clt_io io;

	io_start(t, c, &io);
	t->slots[0]->nents = io.nents;
	if (!read)
		t->slots[0]->mr = NULL;
	first = io_build(t, t->slots[0], &io);
	KUNIT_EXPECT_PTR_EQ(test, first, read ? &t->mr[0].reg_wr.wr : &wr->wr);
	KUNIT_EXPECT_EQ(test, memcmp(t->buf, c->bytes, c->len), 0);
	KUNIT_EXPECT_EQ(test, t->buf[c->len], 0x5a);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, RADDR + (read ? c->data_len : 0));
	KUNIT_EXPECT_EQ(test, wr->rkey, RKEY);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wr->wr.ex.imm_data), c->data_len + c->msg_len);
	KUNIT_EXPECT_EQ(test, wr->wr.num_sge, !read && c->data_len ? 2 : 1);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sending, !read && c->data_len);
	KUNIT_EXPECT_EQ(test, wr->wr.send_flags, t->slots[0]->sending ? IB_SEND_SIGNALED : 0);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[wr->wr.num_sge - 1].addr, BUF_DMA);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[wr->wr.num_sge - 1].length, c->len);
}

static void headers_of_the_longest_message_fit(struct kunit *test)
{
	struct io_test *t = test->priv;
	struct rtrs_clt_io io = { .dir = DMA_FROM_DEVICE, .msg_len = 320 };

	io.msg = kunit_kzalloc(test, io.msg_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, io.msg);
	io_build(t, t->slots[0], &io);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[0].length, 344);
	KUNIT_EXPECT_LE(test, 344, RTRS_SLOT_HDR_ROOM);
}

/* With slots of 512 bytes: small data are in the slot's buffer. */
static const struct hdr_case slot_cases[] = {
	{ "a small write", DMA_TO_DEVICE, 100, 5, 9, { 'h', 'e', 'l', 'l', 'o', 2, 0, 5, 0 } },
	{ "the largest small write", DMA_TO_DEVICE, 512, 1, 5, { 'h', 2, 0, 1, 0 } },
	{ "a write without data", DMA_TO_DEVICE, 0, 1, 5, { 'h', 2, 0, 1, 0 } },
	{ "a small read", DMA_FROM_DEVICE, 512, 3, 27, { 'h', 'e', 'l', 3, 0, 3, 0, 0, 0, 1, 0,
	  0, 0, 0xb0, 0x10, 0, 0, 0, 0, 0x04, 0x03, 0x02, 0x01, 0x00, 0x02, 0x00, 0x00 } },
	{ "a large read", DMA_FROM_DEVICE, 513, 0, 24, { 3, 0, 0, 0, 1, 0, 1, 0,
	  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01, 0xcc, 0xbb, 0xaa, 0x01, 0x02, 0x00,
	  0x00 } },
	{ "a large write", DMA_TO_DEVICE, 1024, 1, 25, { 'h', 5, 0, 1, 0, 1, 0, 1, 0,
	  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01, 0xcc, 0xbb, 0xaa, 0x00, 0x04, 0x00,
	  0x00 } },
};

KUNIT_ARRAY_PARAM_DESC(slot_cases, slot_cases, desc);

static void request_fills_a_small_slot_as_written_down(struct kunit *test)
{
	const struct hdr_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct ib_rdma_wr *wr = &t->slots[0]->wr;
	struct ib_send_wr *first;
	u32 data = 0, at = 512;
	struct rtrs_clt_io io;
	bool large;

	io_copy_small(t, true);
	io_start(t, c, &io);
	large = c->data_len > 512;
	if (!large)
		t->slots[0]->mr = NULL;
	if (!large && c->dir == DMA_TO_DEVICE) {
		data = c->data_len;
		at = 0;
	}
	t->mr[0].reg_wr.wr.send_flags = IB_SEND_SIGNALED;
	first = io_build(t, t->slots[0], &io);
	KUNIT_EXPECT_EQ_MSG(test, first->send_flags, 0, "left from the last time");
	KUNIT_EXPECT_PTR_EQ(test, first, large ? &t->mr[0].reg_wr.wr : &wr->wr);
	if (large)
		KUNIT_EXPECT_PTR_EQ(test, first->next, &wr->wr);
	KUNIT_EXPECT_NULL(test, wr->wr.next);
	KUNIT_EXPECT_EQ(test, memcmp(t->buf, t->data, data), 0);
	KUNIT_EXPECT_EQ(test, memcmp(t->buf + at + data, c->bytes, c->len), 0);
	KUNIT_EXPECT_EQ(test, t->buf[at + data + c->len], 0x5a);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, RADDR);
	KUNIT_EXPECT_EQ(test, wr->rkey, RKEY);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wr->wr.ex.imm_data), data + c->msg_len);
	KUNIT_EXPECT_EQ(test, wr->wr.send_flags, 0);
	KUNIT_EXPECT_FALSE(test, t->slots[0]->sending);
	KUNIT_ASSERT_EQ(test, wr->wr.num_sge, 1);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[0].addr, BUF_DMA + at);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[0].length, data + c->len);
}

/*
 * The same small requests without RTRS_FEATURE_SLOTS: a read's headers follow the room for its
 * data.
 */
static void small_request_fills_a_chunk(struct kunit *test)
{
	const struct hdr_case *c = test->param_value;
	bool read = c->dir == DMA_FROM_DEVICE;
	struct io_test *t = test->priv;
	struct ib_rdma_wr *wr = &t->slots[0]->wr;
	u32 data = read ? 0 : c->data_len;
	u32 at = read ? 512 : 0;
	struct rtrs_clt_io io;

	if (c->data_len > 512)
		return;
	io_copy_small(t, false);
	io_start(t, c, &io);
	t->slots[0]->mr = NULL;
	KUNIT_EXPECT_PTR_EQ(test, io_build(t, t->slots[0], &io), &wr->wr);
	KUNIT_EXPECT_EQ(test, memcmp(t->buf, t->data, data), 0);
	KUNIT_EXPECT_EQ(test, memcmp(t->buf + at + data, c->bytes, c->len), 0);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, RADDR + (read ? c->data_len : 0));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wr->wr.ex.imm_data), c->data_len + c->msg_len);
	KUNIT_EXPECT_EQ(test, wr->wr.send_flags, 0);
	KUNIT_EXPECT_FALSE(test, t->slots[0]->sending);
	KUNIT_ASSERT_EQ(test, wr->wr.num_sge, 1);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[0].addr, BUF_DMA + at);
	KUNIT_EXPECT_EQ(test, t->slots[0]->sge[0].length, data + c->len);
}

/* The RDMA WRITE is followed by a SEND that replaces the immediate value, in the same chain. */
static void request_without_immediate_data_is_two_messages(struct kunit *test)
{
	static const u8 body[] = { 7, 0, 0, 0, 0x01, 0x02, 0, 0x04 };
	struct io_test *t = test->priv;
	struct rtrs_clt_slot *slot = t->slots[0];
	const struct hdr_case *c;
	struct ib_send_wr *wr;
	struct rtrs_clt_io io;
	int i;

	io_copy_small(t, true);
	t->path.path.no_imm = true;
	rtrs_clt_slot_init(&t->path, slot);
	for (i = 0; i < ARRAY_SIZE(slot_cases); i++) {
		c = &slot_cases[i];
		io_start(t, c, &io);
		io.slot = 1;
		slot->mr = c->data_len > 512 ? &t->mr[0] : NULL;
		wr = io_build(t, slot, &io);
		if (slot->mr)
			wr = wr->next;
		KUNIT_ASSERT_PTR_EQ(test, wr, &slot->wr.wr);
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_RDMA_WRITE);
		KUNIT_EXPECT_EQ(test, wr->send_flags, 0);
		wr = wr->next;
		KUNIT_ASSERT_PTR_EQ(test, wr, &slot->imm.wr.wr);
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_SEND);
		KUNIT_EXPECT_EQ(test, wr->send_flags, IB_SEND_INLINE);
		KUNIT_ASSERT_EQ(test, wr->num_sge, 1);
		KUNIT_ASSERT_EQ(test, wr->sg_list->length, sizeof(body));
		KUNIT_EXPECT_NULL(test, wr->next);
	}
	/*
	 * The second of three slots: the RTRS header follows 512 bytes of data and one byte of
	 * message.
	 */
	io_start(t, &slot_cases[1], &io);
	io.slot = 1;
	slot->mr = NULL;
	wr = io_build(t, slot, &io)->next;
	KUNIT_EXPECT_EQ(test, memcmp((void *)(uintptr_t)wr->sg_list->addr, body, 8), 0);
}

/* With slots of 64 KiB. @sge: maximum number of SGEs; @pages: sent in place */
static const struct push_case {
	const char *desc;
	u32 data_len;
	u32 sge;
	bool pages;
} push_cases[] = {
	{ "the largest that is copied", 16384, 2, false },
	{ "a larger one", 16896, 2, true },
	{ "the largest that fits", 65536, 2, true },
	{ "a send takes one piece only", 65536, 1, false },
};

KUNIT_ARRAY_PARAM_DESC(push_cases, push_cases, desc);

static void large_write_into_a_slot_is_sent_from_its_pages(struct kunit *test)
{
	const struct push_case *c = test->param_value;
	struct hdr_case hdr = { .dir = DMA_TO_DEVICE, .data_len = c->data_len, .msg_len = 5 };
	struct io_test *t = test->priv;
	struct rtrs_clt_slot *slot = t->slots[0];
	struct ib_rdma_wr *wr = &slot->wr;
	struct rtrs_clt_io io;
	u8 *buf, *data;

	buf = kunit_kzalloc(test, 65536 + RTRS_SLOT_HDR_ROOM, GFP_KERNEL);
	data = kunit_kzalloc(test, c->data_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_NOT_NULL(test, data);
	slot->buf = buf;
	slot->mr = NULL;
	t->path.neg.slot_size = 65536;
	t->path.neg.copy_size = 65536;
	t->path.neg.max_sge = c->sge;
	io_start(t, &hdr, &io);
	sg_init_one(&t->sg, data, c->data_len);
	sg_dma_address(&t->sg) = 0xd000;
	sg_dma_len(&t->sg) = c->data_len;
	slot->nents = c->pages;
	io_build(t, slot, &io);
	KUNIT_EXPECT_EQ(test, slot->sending, c->pages);
	KUNIT_EXPECT_EQ(test, wr->wr.send_flags, c->pages ? IB_SEND_SIGNALED : 0);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, RADDR);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wr->wr.ex.imm_data), c->data_len + 5);
	KUNIT_ASSERT_EQ(test, wr->wr.num_sge, c->pages ? 2 : 1);
	if (!c->pages) {
		KUNIT_EXPECT_EQ(test, slot->sge[0].addr, BUF_DMA);
		KUNIT_EXPECT_EQ(test, slot->sge[0].length, c->data_len + 9);
		KUNIT_EXPECT_EQ(test, memcmp(buf + c->data_len, "hello", 5), 0);
		return;
	}
	KUNIT_EXPECT_EQ(test, slot->sge[0].addr, 0xd000);
	KUNIT_EXPECT_EQ(test, slot->sge[0].length, c->data_len);
	KUNIT_EXPECT_EQ(test, slot->sge[1].addr, BUF_DMA + 65536);
	KUNIT_EXPECT_EQ(test, slot->sge[1].length, 9);
	KUNIT_EXPECT_EQ(test, memcmp(buf + 65536, "hello", 5), 0);
}

static void server_may_do_what_the_request_needs(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rtrs_clt_reg_access(RTRS_FORM_PUSH_PAGES), IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, rtrs_clt_reg_access(RTRS_FORM_FETCH),
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, rtrs_clt_reg_access(RTRS_FORM_READ_PAGES),
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, rtrs_clt_reg_access(RTRS_FORM_CHUNK_READ_PAGES),
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
}

static void small_read_brings_its_data(struct kunit *test)
{
	struct hdr_case c = { .dir = DMA_FROM_DEVICE, .data_len = 100 };
	struct io_test *t = test->priv;
	struct rtrs_clt_io io;

	io_start(t, &c, &io);
	t->slots[0]->io = &io;
	t->slots[0]->form = RTRS_FORM_READ;
	t->slots[0]->buf_dma = ib_dma_map_single(&t->dev, t->buf, sizeof(t->buf),
						 DMA_BIDIRECTIONAL);
	memset(t->data, 0xee, sizeof(t->data));
	rtrs_clt_copy_back(&t->path, t->slots[0]);
	KUNIT_EXPECT_NULL(test, memchr_inv(t->data, 0x5a, 100));
	KUNIT_EXPECT_EQ(test, t->data[100], 0xee);

	memset(t->data, 0xee, sizeof(t->data));
	t->slots[0]->form = RTRS_FORM_PUSH;
	rtrs_clt_copy_back(&t->path, t->slots[0]);
	KUNIT_EXPECT_EQ_MSG(test, t->data[0], 0xee, "a write's data stay");
	ib_dma_unmap_single(&t->dev, t->slots[0]->buf_dma, sizeof(t->buf), DMA_BIDIRECTIONAL);
}

/* The request's key is KEY; it has one unless @form is RTRS_FORM_PUSH. 0: an immediate value */
static const struct match_case {
	const char *desc;
	enum rtrs_form form;
	u32 inv_rkey;
	bool ok;
} match_cases[] = {
	{ "a large read's key", RTRS_FORM_READ_PAGES, KEY, true },
	{ "a key to fetch data", RTRS_FORM_FETCH, KEY, true },
	{ "a key that the request had before", RTRS_FORM_FETCH, KEY - 1, false },
	{ "a key that it will have", RTRS_FORM_READ_PAGES, KEY + 1, false },
	{ "another request's key", RTRS_FORM_FETCH, KEY + 0x100, false },
	{ "an immediate value in place of a key", RTRS_FORM_READ_PAGES, 0, false },
	{ "an immediate value in place of a key to fetch data", RTRS_FORM_FETCH, 0, false },
	{ "an immediate value", RTRS_FORM_PUSH, 0, true },
	{ "a key where there is none", RTRS_FORM_PUSH, KEY, false },
	{ "an immediate value, in a chunk", RTRS_FORM_CHUNK_READ_PAGES, 0, true },
	{ "a key that the client invalidates", RTRS_FORM_CHUNK_READ_PAGES, KEY, false },
	{ "a key that the server was never given", RTRS_FORM_PUSH_PAGES, KEY, false },
};

KUNIT_ARRAY_PARAM_DESC(match_cases, match_cases, desc);

static void answer_has_to_have_the_right_form(struct kunit *test)
{
	const struct match_case *c = test->param_value;
	struct io_test *t = test->priv;

	t->slots[0]->form = c->form;
	if (c->form == RTRS_FORM_PUSH)
		t->slots[0]->mr = NULL;
	KUNIT_EXPECT_EQ(test, rtrs_clt_key_matches(t->slots[0], c->inv_rkey ? &c->inv_rkey : NULL),
			c->ok);
}

static const struct inv_case {
	const char *desc;
	bool ok;
	u32 len, slot;
	int err;
	u8 bytes[8];
} inv_cases[] = {
	{ "success", true, 8, 0x102, 0, { 6, 0, 2, 1, 0, 0, 0, 0 } },
	{ "an errno", true, 8, 0x102, -5, { 6, 0, 2, 1, 5, 0, 0, 0 } },
	{ "the largest errno", true, 8, 0, -511, { 6, 0, 0, 0, 0xff, 1, 0, 0 } },
	{ "a larger errno", false, 8, 0, 0, { 6, 0, 0, 0, 0, 2, 0, 0 } },
	{ "a negative errno", false, 8, 0, 0, { 6, 0, 0, 0, 0xfb, 0xff, 0, 0 } },
	{ "reserved bytes that are used", true, 8, 0xffff, 0, { 6, 0, 0xff, 0xff, 0, 0, 1, 1 } },
	{ "a key", false, 8, 0, 0, { 4, 0, 2, 1, 0, 0, 0, 0 } },
	{ "of a type beyond a byte", false, 8, 0, 0, { 6, 1, 2, 1, 0, 0, 0, 0 } },
	{ "a byte is missing", false, 7, 0, 0, { 6, 0, 2, 1, 0, 0, 0, 0 } },
	{ "nothing", false, 0, 0, 0, { 6, 0, 2, 1, 0, 0, 0, 0 } },
};

KUNIT_ARRAY_PARAM_DESC(inv_cases, inv_cases, desc);

static void answer_with_invalidation_is_read(struct kunit *test)
{
	const struct inv_case *c = test->param_value;
	struct rtrs_clt_answer answer = {};
	struct rtrs_msg_answer msg;

	KUNIT_ASSERT_EQ(test, sizeof(msg), sizeof(c->bytes));
	memcpy(&msg, c->bytes, sizeof(msg));
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_answer(&msg, c->len, &answer), c->ok);
	KUNIT_EXPECT_EQ(test, answer.slot, c->slot);
	KUNIT_EXPECT_EQ(test, answer.err, c->err);
}

static const struct answer_case {
	const char *desc;
	int cid;
	u32 slot;
	bool found;
} answer_cases[] = {
	{ "the first slot", 1, 0, true },
	{ "the last slot", 1, 2, true },
	{ "a slot beyond the last", 1, 3, false },
	{ "the last slot that an answer can name", 1, (1 << 19) - 1, false },
	{ "a request of another connection", 2, 0, false },
	{ "a request of I/O, on the service connection", 0, 0, false },
	{ "a request that waits for nothing", 1, 1, false },
};

KUNIT_ARRAY_PARAM_DESC(answer_cases, answer_cases, desc);

static void answer_finds_its_request(struct kunit *test)
{
	const struct answer_case *c = test->param_value;
	struct io_test *t = test->priv;
	struct rtrs_clt_slot *slot;

	t->slots[1]->queued = NULL;
	slot = rtrs_clt_find_slot(&t->con[c->cid], c->slot);
	KUNIT_EXPECT_PTR_EQ(test, slot, c->found ? t->slots[c->slot] : NULL);
}

/*
 * Slot 0 is being reused: its previous request was on connection 1, and a new one is being
 * submitted on connection 2. Handlers that saw the previous request must not regard the new one as
 * queued.
 */
static void answer_finds_no_request_that_is_being_submitted(struct kunit *test)
{
	struct io_test *t = test->priv;

	t->slots[0]->con = &t->con[2];
	KUNIT_EXPECT_NULL(test, rtrs_clt_find_slot(&t->con[2], 0));
}

static void answer_before_there_are_slots_finds_none(struct kunit *test)
{
	struct io_test *t = test->priv;

	t->path.slots = NULL;
	KUNIT_EXPECT_NULL(test, rtrs_clt_find_slot(&t->con[1], 0));
}

struct done_io {
	struct rtrs_clt_io io;
	unsigned int nr;
	int err;
};

static void count_done(struct rtrs_clt_io *io, int err)
{
	struct done_io *d = container_of(io, struct done_io, io);

	d->nr++;
	d->err = err;
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct io_test *t = container_of(qp, struct io_test, qp);

	t->posted = wr;
	return 0;
}

/* @form: of a request with a memory region; @inv: its key has been invalidated with the answer */
static const struct own_inv_case {
	const char *desc;
	enum rtrs_form form;
	bool inv, own_inv, posts;
} own_inv_cases[] = {
	{ "soft-iWARP", RTRS_FORM_FETCH, true, true, true },
	{ "all others", RTRS_FORM_FETCH, true, false, false },
	{ "a read from a chunk", RTRS_FORM_CHUNK_READ_PAGES, false, false, true },
	{ "a write in many segments", RTRS_FORM_PUSH_PAGES, false, false, true },
};

KUNIT_ARRAY_PARAM_DESC(own_inv_cases, own_inv_cases, desc);

/* The request owns its pages and its memory region as long as the key may become valid. */
static void answered_request_keeps_its_key_until_we_invalidated_it(struct kunit *test)
{
	const struct own_inv_case *c = test->param_value;
	u32 key = KEY;
	struct rtrs_clt_answer answer = { .err = -ENOSPC, .inv_rkey = c->inv ? &key : NULL };
	struct ib_wc wc = { .status = IB_WC_SUCCESS };
	struct io_test *t = test->priv;
	struct done_io d = { .io.done = count_done };
	struct rtrs_clt_con *con = &t->con[1];
	struct rtrs_clt *clt = kunit_kzalloc(test, sizeof(*clt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clt);
	t->path.clt = clt;
	t->path.path.log = &t->path.clt->ratelimit;
	t->path.stats.cpu = alloc_percpu(struct rtrs_clt_stats);
	KUNIT_ASSERT_NOT_NULL(test, (void *)t->path.stats.cpu);
	t->path.path.stats = &t->path.stats.cpu->io;
	t->path.neg.own_inv = c->own_inv;
	t->dev.ops.post_send = post_send;
	t->qp.device = &t->dev;
	t->cm_id.qp = &t->qp;
	con->con.cm_id = &t->cm_id;
	spin_lock_init(&con->con.sq_lock);
	con->con.sq_limit = 1;
	t->slots[0]->io = &d.io;
	t->slots[0]->form = c->form;
	rtrs_clt_answer(con, &answer);
	KUNIT_EXPECT_NULL_MSG(test, rtrs_clt_find_slot(con, 0), "answered twice");
	KUNIT_ASSERT_PTR_EQ(test, t->posted, c->posts ? &t->mr[0].inv_wr : NULL);
	if (c->posts) {
		KUNIT_EXPECT_EQ(test, t->mr[0].inv_wr.ex.invalidate_rkey, KEY);
		KUNIT_EXPECT_EQ_MSG(test, d.nr, 0, "done too early");
		KUNIT_EXPECT_PTR_EQ(test, t->slots[0]->mr, &t->mr[0]);
		wc.wr_cqe = &t->mr[0].inv_cqe;
		wc.wr_cqe->done(NULL, &wc);
		KUNIT_EXPECT_EQ(test, con->con.sq_done, 1);
	}
	KUNIT_EXPECT_EQ(test, d.nr, 1);
	KUNIT_EXPECT_EQ(test, d.err, -ENOSPC);
	KUNIT_EXPECT_NULL(test, t->slots[0]->mr);
	KUNIT_EXPECT_NULL(test, t->slots[0]->io);
	free_percpu(t->path.stats.cpu);
}

/* Slots 0 and 1 return their memory regions; slot 2 keeps the third one. */
static void region_has_one_request_at_a_time(struct kunit *test)
{
	struct io_test *t = test->priv;

	t->path.mrs.nr = 3;
	rtrs_clt_mr_put(&t->path, t->slots[0]);
	KUNIT_EXPECT_NULL(test, t->slots[0]->mr);
	KUNIT_EXPECT_NULL(test, t->mr[0].slot);
	rtrs_clt_mr_put(&t->path, t->slots[0]);
	KUNIT_ASSERT_TRUE(test, rtrs_clt_mr_get(&t->path, t->slots[0]));
	KUNIT_EXPECT_PTR_EQ(test, t->slots[0]->mr, &t->mr[0]);
	rtrs_clt_mr_put(&t->path, t->slots[1]);
	rtrs_clt_mr_put(&t->path, t->slots[0]);
	KUNIT_ASSERT_TRUE(test, rtrs_clt_mr_get(&t->path, t->slots[1]));
	KUNIT_EXPECT_PTR_EQ_MSG(test, t->slots[1]->mr, &t->mr[0], "the one used last");
	KUNIT_EXPECT_PTR_EQ(test, t->mr[0].slot, t->slots[1]);
	KUNIT_ASSERT_TRUE(test, rtrs_clt_mr_get(&t->path, t->slots[0]));
	t->slots[2]->mr = NULL;
	KUNIT_EXPECT_FALSE(test, rtrs_clt_mr_get(&t->path, t->slots[2]));
	KUNIT_EXPECT_NULL(test, t->slots[2]->mr);
}

/* The answer is for slot 0x0102. */
static const struct rkey_case {
	const char *desc;
	bool ok;
	u32 len;
	u8 bytes[8];
} rkey_cases[] = {
	{ "a key for the slot", true, 8, { 4, 0, 2, 1, 0x78, 0x56, 0x34, 0x12 } },
	{ "of another type", false, 8, { 1, 0, 2, 1, 0x78, 0x56, 0x34, 0x12 } },
	{ "of a type beyond a byte", false, 8, { 4, 1, 2, 1, 0x78, 0x56, 0x34, 0x12 } },
	{ "for another slot", false, 8, { 4, 0, 2, 0, 0x78, 0x56, 0x34, 0x12 } },
	{ "a byte is missing", false, 7, { 4, 0, 2, 1, 0x78, 0x56, 0x34, 0x12 } },
	{ "nothing but an immediate value", false, 0, { 4, 0, 2, 1, 0x78, 0x56, 0x34, 0x12 } },
};

KUNIT_ARRAY_PARAM_DESC(rkey_cases, rkey_cases, desc);

static void new_key_is_read(struct kunit *test)
{
	const struct rkey_case *c = test->param_value;
	struct rtrs_msg_rkey_rsp msg;
	u32 rkey = 0;

	KUNIT_ASSERT_EQ(test, sizeof(msg), sizeof(c->bytes));
	memcpy(&msg, c->bytes, sizeof(msg));
	KUNIT_EXPECT_EQ(test, rtrs_clt_parse_rkey(&msg, c->len, 0x102, &rkey), c->ok);
	KUNIT_EXPECT_EQ(test, rkey, c->ok ? 0x12345678 : 0);
	/* A slot number has more bits in an answer than in the message. */
	KUNIT_EXPECT_FALSE(test, rtrs_clt_parse_rkey(&msg, c->len, 0x10102, &rkey));
}

static struct kunit_case rtrs_clt_io_cases[] = {
	KUNIT_CASE_PARAM(form_follows_from_the_request_and_the_path, form_cases_gen_params),
	KUNIT_CASE_PARAM(headers_are_on_the_wire_as_written_down, hdr_cases_gen_params),
	KUNIT_CASE(headers_of_the_longest_message_fit),
	KUNIT_CASE_PARAM(request_fills_a_small_slot_as_written_down, slot_cases_gen_params),
	KUNIT_CASE_PARAM(small_request_fills_a_chunk, slot_cases_gen_params),
	KUNIT_CASE(request_without_immediate_data_is_two_messages),
	KUNIT_CASE_PARAM(large_write_into_a_slot_is_sent_from_its_pages, push_cases_gen_params),
	KUNIT_CASE(server_may_do_what_the_request_needs),
	KUNIT_CASE(small_read_brings_its_data),
	KUNIT_CASE_PARAM(answer_has_to_have_the_right_form, match_cases_gen_params),
	KUNIT_CASE_PARAM(answer_with_invalidation_is_read, inv_cases_gen_params),
	KUNIT_CASE_PARAM(answer_finds_its_request, answer_cases_gen_params),
	KUNIT_CASE(answer_finds_no_request_that_is_being_submitted),
	KUNIT_CASE(answer_before_there_are_slots_finds_none),
	KUNIT_CASE_PARAM(answered_request_keeps_its_key_until_we_invalidated_it,
			 own_inv_cases_gen_params),
	KUNIT_CASE(region_has_one_request_at_a_time),
	KUNIT_CASE_PARAM(new_key_is_read, rkey_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_io_suite = {
	.name = "rtrs-client-io",
	.init = io_init,
	.test_cases = rtrs_clt_io_cases,
};

kunit_test_suite(rtrs_clt_io_suite);
