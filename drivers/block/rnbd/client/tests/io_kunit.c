// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the bytes of the client's messages, and of the results of requests.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

/* @rest: bytes of the message after the device id 0x01020304 */
static const struct msg_case {
	const char *desc;
	int ret;
	blk_opf_t opf;
	sector_t sector;
	u32 len;
	u16 prio;
	u8 rest[18];
} msg_cases[] = {
	{ "a read", 0, REQ_OP_READ, 0x1122334455667788, 0x1000, 0,
	  { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 1, 0, 0, 0, 0x10, 0, 0, 0, 0 } },
	{ "a write", 0, REQ_OP_WRITE, 8, 0x1f000, 0,
	  { 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0xf0, 1, 0, 0, 0 } },
	{ "a write that somebody waits for", 0, REQ_OP_WRITE | REQ_SYNC, 8, 512, 0x4003,
	  { 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 1, 0, 0, 0, 2, 0, 0, 3, 0x40 } },
	{ "a write, FUA", 0, REQ_OP_WRITE | REQ_FUA, 8, 512, 0,
	  { 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 3, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "a write, flush before", 0, REQ_OP_WRITE | REQ_PREFLUSH, 8, 512, 0,
	  { 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 5, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "a write, all flags", 0, REQ_OP_WRITE | REQ_PREFLUSH | REQ_FUA | REQ_SYNC | REQ_NOUNMAP,
	  8, 512, 0,
	  { 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 7, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "a flush, which is nowhere", 0, REQ_OP_FLUSH | REQ_PREFLUSH, -1, 0, 0,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 5, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "a discard", 0, REQ_OP_DISCARD, 16, 0xfffff000, 0,
	  { 16, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0xf0, 0xff, 0xff, 0, 0 } },
	{ "a secure erase", 0, REQ_OP_SECURE_ERASE, 16, 512, 0,
	  { 16, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "write zeroes", 0, REQ_OP_WRITE_ZEROES, 16, 512, 0,
	  { 16, 0, 0, 0, 0, 0, 0, 0, 0x05, 0, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "write zeroes, keep the room", 0, REQ_OP_WRITE_ZEROES | REQ_NOUNMAP, 16, 512, 0,
	  { 16, 0, 0, 0, 0, 0, 0, 0, 0x05, 8, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "what only we know of is not told", 0, REQ_OP_READ | REQ_RAHEAD | REQ_META | REQ_NOWAIT,
	  0, 512, 0,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 1, 0, 0, 0, 2, 0, 0, 0, 0 } },
	{ "an append to a zone", -EOPNOTSUPP, REQ_OP_ZONE_APPEND, 0, 512, 0 },
	{ "a reset of a zone", -EOPNOTSUPP, REQ_OP_ZONE_RESET, 0, 512, 0 },
	{ "a command of a driver", -EOPNOTSUPP, REQ_OP_DRV_IN, 0, 512, 0 },
};

KUNIT_ARRAY_PARAM_DESC(msg_cases, msg_cases, desc);

/* Allocate a device of a session with all features. */
static struct rnbd_clt_dev *some_dev(struct kunit *test)
{
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rnbd_clt_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	sess->features = RNBD_FEATURE_WRITE_ZEROES;
	dev->sess = sess;
	return dev;
}

static void io_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 head[8] = { 4, 0, 0, 0, 4, 3, 2, 1 };
	const struct msg_case *c = test->param_value;
	struct rnbd_clt_dev *dev = some_dev(test);
	struct rnbd_clt_pdu *pdu;
	struct request *rq;
	u8 bytes[32] = { };

	rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(*pdu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	rq->bio = kunit_kzalloc(test, sizeof(*rq->bio), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rq->bio);
	dev->device_id = 0x01020304;
	pdu = blk_mq_rq_to_pdu(rq);
	memset(&pdu->msg, 0x5a, sizeof(pdu->msg));
	rq->cmd_flags = c->opf;
	rq->__sector = c->sector;
	rq->__data_len = c->len;
	rq->bio->bi_ioprio = c->prio;
	KUNIT_ASSERT_EQ(test, rnbd_clt_fill_msg(dev, rq), c->ret);
	if (c->ret)
		return;
	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 8, c->rest, sizeof(c->rest));
	KUNIT_EXPECT_EQ(test, pdu->io.msg_len, 32);
	KUNIT_EXPECT_EQ(test, memcmp(pdu->io.msg, bytes, sizeof(bytes)), 0);
}

/* Other operations don't get the flags, as the server rejects them there. */
static void writes_have_the_device_s_flags(struct kunit *test)
{
	struct rnbd_clt_dev *dev = some_dev(test);
	struct rnbd_clt_pdu *pdu;
	struct request *rq;

	rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(*pdu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	dev->write_flags = RNBD_F_FUA;
	pdu = blk_mq_rq_to_pdu(rq);
	rq->cmd_flags = REQ_OP_WRITE;
	KUNIT_ASSERT_EQ(test, rnbd_clt_fill_msg(dev, rq), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(pdu->msg.rw), 0x201);
	rq->cmd_flags = REQ_OP_DISCARD;
	KUNIT_ASSERT_EQ(test, rnbd_clt_fill_msg(dev, rq), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(pdu->msg.rw), 3);
	/* The block layer then sends writes of zeroes. */
	rq->cmd_flags = REQ_OP_WRITE_ZEROES;
	KUNIT_EXPECT_EQ(test, rnbd_clt_fill_msg(dev, rq), -EOPNOTSUPP);
}

/* The request was built before the server restarted with an older version. */
static void zeroes_need_the_feature(struct kunit *test)
{
	struct rnbd_clt_dev *dev = some_dev(test);
	struct request *rq;

	rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(struct rnbd_clt_pdu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	rq->cmd_flags = REQ_OP_WRITE_ZEROES;
	KUNIT_EXPECT_EQ(test, rnbd_clt_fill_msg(dev, rq), 0);
	dev->sess->features = 0;
	KUNIT_EXPECT_EQ(test, rnbd_clt_fill_msg(dev, rq), -EOPNOTSUPP);
}

static void sess_info_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 bytes[36] = { 0, 0, 0, 0, 2, 0, 0, 0, 127, 0, 0, 0, 4, 3, 2, 1 };
	struct rnbd_msg_sess_info msg;

	memset(&msg, 0x5a, sizeof(msg));
	rnbd_clt_fill_sess_info(&msg, 0x01020304);
	KUNIT_EXPECT_EQ(test, sizeof(msg), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&msg, bytes, sizeof(bytes)), 0);
}

static const struct granted_case {
	const char *desc;
	u32 granted;
	u8 rsp[8];
} granted_cases[] = {
	{ "write zeroes", BIT(0), { 1, 0, 0, 0, 4, 3, 2, 1 } },
	{ "none", 0, { 0, 0, 0, 0, 4, 3, 2, 1 } },
	{ "events of sizes", BIT(1), { 2, 0, 0, 0, 4, 3, 2, 1 } },
	{ "unique ids", BIT(2), { 4, 0, 0, 0, 4, 3, 2, 1 } },
	{ "access mode handover", BIT(3), { 8, 0, 0, 0, 4, 3, 2, 1 } },
	{ "generations", BIT(4), { 16, 0, 0, 0, 4, 3, 2, 1 } },
	{ "states of disks", BIT(5), { 32, 0, 0, 0, 4, 3, 2, 1 } },
	{ "lists of volumes", BIT(6), { 64, 0, 0, 0, 4, 3, 2, 1 } },
	{ "what was not offered", 127, { 0xff, 0xff, 0xff, 0xff, 4, 3, 2, 1 } },
	{ "no cookie", 0, { 1, 0, 0, 0, 0, 0, 0, 0 } },
	{ "another cookie", 0, { 1, 0, 0, 0, 4, 3, 2, 2 } },
};

KUNIT_ARRAY_PARAM_DESC(granted_cases, granted_cases, desc);

/* A server without features leaves arbitrary bytes in the rest of the answer. */
static void features_need_the_cookie(struct kunit *test)
{
	const struct granted_case *c = test->param_value;
	struct rnbd_msg_sess_info msg, rsp;

	rnbd_clt_fill_sess_info(&msg, 0x01020304);
	memset(&rsp, 0x5a, sizeof(rsp));
	memcpy((u8 *)&rsp + 8, c->rsp, sizeof(c->rsp));
	KUNIT_EXPECT_EQ(test, rnbd_clt_granted(&msg, &rsp), c->granted);
}

static const struct open_case {
	const char *desc;
	enum rnbd_access_mode mode;
	const char *path;
	u8 bytes[24];
} open_cases[] = {
	{ "read only", RNBD_ACCESS_RO, "/dev/sda",
	  { 2, 0, 0, 0, 0, 0, '/', 'd', 'e', 'v', '/', 's', 'd', 'a' } },
	{ "read and write", RNBD_ACCESS_RW, "a", { 2, 0, 0, 0, 1, 0, 'a' } },
	{ "migration", RNBD_ACCESS_MIGRATION, "b c", { 2, 0, 0, 0, 2, 0, 'b', ' ', 'c' } },
	{ "handover", RNBD_ACCESS_HANDOVER, "a", { 2, 0, 0, 0, 3, 0, 'a' } },
};

KUNIT_ARRAY_PARAM_DESC(open_cases, open_cases, desc);

static void open_is_on_the_wire_as_written_down(struct kunit *test)
{
	const struct open_case *c = test->param_value;
	struct rnbd_clt_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rnbd_msg_open_gen *msg = kunit_kmalloc(test, sizeof(*msg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	memset(msg, 0x5a, sizeof(*msg));
	dev->access_mode = c->mode;
	strscpy(dev->path, c->path, sizeof(dev->path));
	rnbd_clt_fill_open(msg, dev);
	KUNIT_EXPECT_EQ(test, sizeof(msg->open), 264);
	KUNIT_EXPECT_EQ(test, memcmp(msg, c->bytes, sizeof(c->bytes)), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv((u8 *)msg + 24, 0, 240));
}

static void open_of_the_longest_name_keeps_its_end(struct kunit *test)
{
	struct rnbd_clt_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rnbd_msg_open_gen *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	memset(dev->path, 'n', 254);
	rnbd_clt_fill_open(msg, dev);
	KUNIT_EXPECT_EQ(test, memcmp((u8 *)msg + 6, dev->path, 255), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv((u8 *)msg + 261, 0, 3));
}

static void close_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 bytes[8] = { 5, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde };
	struct rnbd_msg_close msg;

	memset(&msg, 0x5a, sizeof(msg));
	rnbd_clt_fill_close(&msg, 0xdeadbeef);
	KUNIT_EXPECT_EQ(test, sizeof(msg), sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&msg, bytes, sizeof(bytes)), 0);
}

static const struct state_case {
	const char *desc;
	enum rnbd_clt_dev_state state;
	int err, err_failfast;
} state_cases[] = {
	{ "open: sent", RNBD_DEV_OPEN, 0, 0 },
	{ "closed: waits if it may", RNBD_DEV_CLOSED, -EAGAIN, -ECONNABORTED },
	{ "gone: fails", RNBD_DEV_GONE, -EIO, -EIO },
	{ "unmapped: fails", RNBD_DEV_UNMAPPED, -EIO, -EIO },
	{ "never open so far: fails", RNBD_DEV_INIT, -EIO, -EIO },
};

KUNIT_ARRAY_PARAM_DESC(state_cases, state_cases, desc);

static void state_of_the_device_decides(struct kunit *test)
{
	const struct state_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rnbd_clt_dev_errno(c->state, false), c->err);
	KUNIT_EXPECT_EQ(test, rnbd_clt_dev_errno(c->state, true), c->err_failfast);
}

/* A request of a device whose id was 0x01020304 when the request was submitted */
struct retry_test {
	struct request_queue *q;
	struct rnbd_clt_dev *dev;
	struct request *rq;
	struct rnbd_clt_pdu *pdu;
};

static void retry_init(struct kunit *test, struct retry_test *t, blk_opf_t opf)
{
	t->q = kunit_kzalloc(test, sizeof(*t->q), GFP_KERNEL);
	t->dev = some_dev(test);
	t->rq = kunit_kzalloc(test, sizeof(*t->rq) + sizeof(*t->pdu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->q);
	KUNIT_ASSERT_NOT_NULL(test, t->rq);
	t->pdu = blk_mq_rq_to_pdu(t->rq);
	t->q->queuedata = t->dev;
	t->rq->q = t->q;
	t->rq->cmd_flags = opf;
	t->dev->device_id = 0x01020304;
	/* Stale contents from an earlier request */
	memset(&t->pdu->msg, 0x5a, sizeof(t->pdu->msg));
}

/* Write all of the message, which a parked request doesn't have yet, with the new device id. */
static void retry_writes_the_message(struct kunit *test)
{
	struct rnbd_msg_io want;
	struct retry_test t;

	retry_init(test, &t, REQ_OP_WRITE);
	KUNIT_ASSERT_EQ(test, rnbd_clt_fill_msg(t.dev, t.rq), 0);
	want = t.pdu->msg;
	want.device_id = cpu_to_le32(0x0a0b0c0d);

	retry_init(test, &t, REQ_OP_WRITE);
	t.dev->state = RNBD_DEV_OPEN;
	t.dev->device_id = 0x0a0b0c0d;
	KUNIT_EXPECT_EQ(test, rnbd_clt_prep_retry(&t.pdu->io), 0);
	KUNIT_EXPECT_PTR_EQ(test, t.pdu->io.msg, (const void *)&t.pdu->msg);
	KUNIT_EXPECT_EQ(test, t.pdu->io.msg_len, sizeof(t.pdu->msg));
	KUNIT_EXPECT_EQ(test, memcmp(&t.pdu->msg, &want, sizeof(want)), 0);
}

/* rnbd_clt_retry_ok() may run concurrently, and while the message is being sent. */
static void retry_question_changes_nothing(struct kunit *test)
{
	struct rnbd_clt_pdu pdu;
	struct retry_test t;

	retry_init(test, &t, REQ_OP_WRITE);
	t.dev->state = RNBD_DEV_OPEN;
	pdu = *t.pdu;
	KUNIT_EXPECT_EQ(test, rnbd_clt_retry_ok(&t.pdu->io), 0);
	KUNIT_EXPECT_EQ(test, memcmp(t.pdu, &pdu, sizeof(pdu)), 0);
}

static void retry_waits_for_a_closed_device(struct kunit *test)
{
	struct retry_test t;

	retry_init(test, &t, REQ_OP_WRITE);
	t.dev->state = RNBD_DEV_CLOSED;
	KUNIT_EXPECT_EQ(test, rnbd_clt_retry_ok(&t.pdu->io), -EAGAIN);
	t.pdu->io.failfast = true;
	KUNIT_EXPECT_EQ(test, rnbd_clt_retry_ok(&t.pdu->io), -ECONNABORTED);
}

/* The queue of messages about devices belongs to the session, not to a device. */
static void retry_sends_messages_to_their_session_only(struct kunit *test)
{
	struct blk_mq_tag_set *set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct retry_test t;

	KUNIT_ASSERT_NOT_NULL(test, set);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	retry_init(test, &t, REQ_OP_DRV_IN);
	t.q->queuedata = NULL;
	t.q->tag_set = set;
	set->driver_data = sess;
	t.pdu->io.failfast = true;
	t.pdu->generation = UINT_MAX;
	sess->generation = UINT_MAX;
	KUNIT_EXPECT_EQ(test, rnbd_clt_retry_ok(&t.pdu->io), 0);
	sess->generation++;
	KUNIT_EXPECT_EQ(test, rnbd_clt_retry_ok(&t.pdu->io), -ECONNABORTED);
}

static const struct data_case {
	const char *desc;
	enum req_op op;
	unsigned int segs;
	enum dma_data_direction dir;
} data_cases[] = {
	{ "no data", REQ_OP_DISCARD, 0, DMA_TO_DEVICE },
	{ "one piece", REQ_OP_WRITE, 1, DMA_TO_DEVICE },
	{ "the most without memory", REQ_OP_READ, RNBD_CLT_INLINE_SG, DMA_FROM_DEVICE },
	{ "the fewest with memory", REQ_OP_WRITE, RNBD_CLT_INLINE_SG + 1, DMA_TO_DEVICE },
	{ "two chunks of the pool", REQ_OP_READ, SG_CHUNK_SIZE + 10, DMA_FROM_DEVICE },
	{ "1 MiB", REQ_OP_WRITE, 256, DMA_TO_DEVICE },
};

KUNIT_ARRAY_PARAM_DESC(data_cases, data_cases, desc);

/* Create a request of @c->segs pages in descending order in memory, so that none are merged. */
static struct request *data_rq(struct kunit *test, const struct data_case *c, u8 **buf)
{
	struct request_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct bio *bio = kunit_kzalloc(test, sizeof(*bio), GFP_KERNEL);
	struct bio_vec *vecs = kunit_kcalloc(test, c->segs + 1, sizeof(*vecs), GFP_KERNEL);
	struct rnbd_clt_pdu *pdu;
	struct request *rq;
	unsigned int i;

	rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(*pdu), GFP_KERNEL);
	*buf = kunit_kzalloc(test, c->segs * PAGE_SIZE + 1, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, bio);
	KUNIT_ASSERT_NOT_NULL(test, vecs);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_ASSERT_NOT_NULL(test, *buf);
	for (i = 0; i < c->segs; i++)
		bvec_set_page(&vecs[i], virt_to_page(*buf + (c->segs - 1 - i) * PAGE_SIZE),
			      PAGE_SIZE, 0);
	bio_init(bio, NULL, vecs, c->segs, c->op);
	bio->bi_vcnt = c->segs;
	bio->bi_iter.bi_size = c->segs * PAGE_SIZE;
	q->limits.max_segment_size = UINT_MAX;
	q->limits.seg_boundary_mask = BLK_SEG_BOUNDARY_MASK;
	rq->q = q;
	rq->bio = bio;
	rq->cmd_flags = c->op;
	rq->nr_phys_segments = c->segs;
	rq->__data_len = c->segs * PAGE_SIZE;
	pdu = blk_mq_rq_to_pdu(rq);
	/* Stale contents from an earlier request */
	memset(pdu->sgl, 0x5a, sizeof(pdu->sgl));
	return rq;
}

static void data_are_listed_in_order(struct kunit *test)
{
	const struct data_case *c = test->param_value;
	struct rnbd_clt_pdu *pdu;
	struct scatterlist *sg;
	struct request *rq;
	unsigned int i;
	u8 *buf;

	rq = data_rq(test, c, &buf);
	pdu = blk_mq_rq_to_pdu(rq);
	KUNIT_ASSERT_EQ(test, rnbd_clt_map_data(rq), 0);
	KUNIT_EXPECT_EQ(test, pdu->io.dir, c->dir);
	KUNIT_EXPECT_EQ(test, pdu->io.nents, c->segs);
	KUNIT_EXPECT_EQ(test, pdu->io.data_len, c->segs * PAGE_SIZE);
	for_each_sg(pdu->io.sgl, sg, pdu->io.nents, i) {
		KUNIT_EXPECT_PTR_EQ(test, sg_virt(sg),
				    (void *)buf + (c->segs - 1 - i) * PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, sg->length, PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, !!sg_is_last(sg), i == c->segs - 1);
	}
	rnbd_clt_unmap_data(rq);
	KUNIT_EXPECT_EQ(test, pdu->io.nents, 0);
	/* A request that was not sent may be unmapped without having been mapped. */
	rnbd_clt_unmap_data(rq);
	KUNIT_EXPECT_EQ(test, rnbd_clt_map_data(rq), 0);
	KUNIT_EXPECT_EQ(test, pdu->io.nents, c->segs);
	rnbd_clt_unmap_data(rq);
}

/* Disks get most of the slots. Messages share them only if there is a single slot. */
static void slots_are_divided(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rnbd_clt_admin_slots(1), 0);
	KUNIT_EXPECT_EQ(test, rnbd_clt_admin_slots(2), 1);
	KUNIT_EXPECT_EQ(test, rnbd_clt_admin_slots(31), 1);
	KUNIT_EXPECT_EQ(test, rnbd_clt_admin_slots(32), 4);
	KUNIT_EXPECT_EQ(test, rnbd_clt_admin_slots(10240), 4);
}

static const struct queues_case {
	const char *desc;
	unsigned int nr_maps;
	u32 nr_queues, nr_poll_queues;
} queues_cases[] = {
	{ "one of each", HCTX_MAX_TYPES, 1, 1 },
	{ "fewer polled ones", HCTX_MAX_TYPES, 8, 2 },
	{ "more polled ones", HCTX_MAX_TYPES, 1, 64 },
	{ "none polled", 1, 8, 0 },
	{ "too little memory for polled ones, as in a crash dump's kernel", 1, 1, 4 },
};

KUNIT_ARRAY_PARAM_DESC(queues_cases, queues_cases, desc);

/* On each CPU, polled requests use separate connections. */
static void polled_queues_stand_behind_the_others(struct kunit *test)
{
	const struct queues_case *c = test->param_value;
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct blk_mq_tag_set *set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);
	unsigned int *map;
	int i, cpu;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, set);
	sess->limits.nr_queues = c->nr_queues;
	sess->limits.nr_poll_queues = c->nr_poll_queues;
	set->driver_data = sess;
	set->nr_maps = c->nr_maps;
	/* The block layer initializes the maps like this. */
	for (i = 0; i < c->nr_maps; i++) {
		map = kunit_kcalloc(test, nr_cpu_ids, sizeof(*map), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, map);
		set->map[i].mq_map = map;
		set->map[i].nr_queues = c->nr_queues;
	}
	rnbd_clt_map_queues(set);

	for_each_possible_cpu(cpu) {
		KUNIT_EXPECT_LT(test, set->map[HCTX_TYPE_DEFAULT].mq_map[cpu], c->nr_queues);
		if (c->nr_maps == 1)
			continue;
		KUNIT_EXPECT_GE(test, set->map[HCTX_TYPE_POLL].mq_map[cpu], c->nr_queues);
		KUNIT_EXPECT_LT(test, set->map[HCTX_TYPE_POLL].mq_map[cpu],
				c->nr_queues + c->nr_poll_queues);
	}
	KUNIT_EXPECT_EQ(test, set->map[HCTX_TYPE_READ].nr_queues, 0);
	KUNIT_EXPECT_EQ(test, set->map[HCTX_TYPE_POLL].nr_queues,
			c->nr_maps == 1 ? 0 : c->nr_poll_queues);
}

static const struct status_case {
	const char *desc;
	int err;
	blk_status_t status;
} status_cases[] = {
	{ "success", 0, BLK_STS_OK },
	{ "there is no path, and it is not to wait", -ECONNABORTED, BLK_STS_TRANSPORT },
	{ "there has been no path for too long", -EHOSTUNREACH, BLK_STS_IOERR },
	{ "no room", -ENOSPC, BLK_STS_NOSPC },
	{ "not supported", -EOPNOTSUPP, BLK_STS_NOTSUPP },
	{ "the disk took too long", -ETIMEDOUT, BLK_STS_TIMEOUT },
	{ "an error of the target", -EREMOTEIO, BLK_STS_TARGET },
	{ "a reservation of somebody else", -EBADE, BLK_STS_RESV_CONFLICT },
	{ "a medium error", -ENODATA, BLK_STS_MEDIUM },
	{ "a checksum", -EILSEQ, BLK_STS_PROTECTION },
	{ "an I/O error", -EIO, BLK_STS_IOERR },
	{ "read only", -EROFS, BLK_STS_IOERR },
};

KUNIT_ARRAY_PARAM_DESC(status_cases, status_cases, desc);

static void request_ends_with_a_status(struct kunit *test)
{
	const struct status_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, (__force u8)rnbd_clt_status(c->err), (__force u8)c->status);
}

/* All other errnos become BLK_STS_IOERR, which never makes the block layer retry the request. */
static void request_never_ends_with_another_status(struct kunit *test)
{
	int err;
	size_t i;

	for (err = -4096; err <= 4096; err++) {
		for (i = 0; i < ARRAY_SIZE(status_cases); i++)
			if (status_cases[i].err == err)
				break;
		if (i == ARRAY_SIZE(status_cases))
			KUNIT_ASSERT_EQ(test, (__force u8)rnbd_clt_status(err),
					(__force u8)BLK_STS_IOERR);
	}
}

/* The server can say any errno. What means something else on the way to the user is replaced. */
static void server_errnos_have_no_other_meaning(struct kunit *test)
{
	int err;

	for (err = -511; err <= 0; err++)
		KUNIT_ASSERT_EQ(test, rnbd_clt_admin_err(err),
				err == -EAGAIN || err == -EINTR || err == -ESTALE ? -EIO : err);
}

/*
 * OPEN and CLOSE have no time limit, as the server's disk may take any time. A warning is logged;
 * tools/testing/tests/kunit.sh checks the log for it.
 */
static void open_and_close_wait_for_the_server(struct kunit *test)
{
	struct rnbd_clt_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct blk_mq_tag_set *set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);
	struct request_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct rnbd_clt_pdu *pdu;
	struct request *rq;

	rq = kunit_kzalloc(test, sizeof(*rq) + sizeof(*pdu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, set);
	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	strscpy(sess->name, "kunit", sizeof(sess->name));
	strscpy(sess->label, "kunit", sizeof(sess->label));
	ratelimit_state_init(&sess->ratelimit, HZ, 2);
	set->driver_data = sess;
	q->tag_set = set;
	rq->q = q;
	pdu = blk_mq_rq_to_pdu(rq);

	rq->cmd_flags = REQ_OP_READ;
	KUNIT_EXPECT_EQ(test, rnbd_clt_mq_ops.timeout(rq), BLK_EH_RESET_TIMER);
	rq->cmd_flags = REQ_OP_DRV_IN;
	pdu->admin = RNBD_MSG_OPEN;
	KUNIT_EXPECT_EQ(test, rnbd_clt_mq_ops.timeout(rq), BLK_EH_RESET_TIMER);
	rq->cmd_flags = REQ_OP_DRV_OUT;
	pdu->admin = RNBD_MSG_CLOSE;
	KUNIT_EXPECT_EQ(test, rnbd_clt_mq_ops.timeout(rq), BLK_EH_RESET_TIMER);
}

static struct kunit_case rnbd_clt_io_cases[] = {
	KUNIT_CASE(open_and_close_wait_for_the_server),
	KUNIT_CASE_PARAM(io_is_on_the_wire_as_written_down, msg_cases_gen_params),
	KUNIT_CASE(writes_have_the_device_s_flags),
	KUNIT_CASE(zeroes_need_the_feature),
	KUNIT_CASE(sess_info_is_on_the_wire_as_written_down),
	KUNIT_CASE_PARAM(features_need_the_cookie, granted_cases_gen_params),
	KUNIT_CASE_PARAM(open_is_on_the_wire_as_written_down, open_cases_gen_params),
	KUNIT_CASE(open_of_the_longest_name_keeps_its_end),
	KUNIT_CASE(close_is_on_the_wire_as_written_down),
	KUNIT_CASE_PARAM(state_of_the_device_decides, state_cases_gen_params),
	KUNIT_CASE(retry_writes_the_message),
	KUNIT_CASE(retry_question_changes_nothing),
	KUNIT_CASE(retry_waits_for_a_closed_device),
	KUNIT_CASE(retry_sends_messages_to_their_session_only),
	KUNIT_CASE_PARAM(data_are_listed_in_order, data_cases_gen_params),
	KUNIT_CASE(slots_are_divided),
	KUNIT_CASE_PARAM(polled_queues_stand_behind_the_others, queues_cases_gen_params),
	KUNIT_CASE_PARAM(request_ends_with_a_status, status_cases_gen_params),
	KUNIT_CASE(request_never_ends_with_another_status),
	KUNIT_CASE(server_errnos_have_no_other_meaning),
	{}
};

static struct kunit_suite rnbd_clt_io_suite = {
	.name = "rnbd-client-io",
	.test_cases = rnbd_clt_io_cases,
};

kunit_test_suite(rnbd_clt_io_suite);
