// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the generation of a mapping and of its flags, as the client stores them.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

#define FENCED	RNBD_GEN_FENCED
#define WRITER	RNBD_GEN_WRITER

struct generation_test {
	struct rnbd_clt_sess sess;
	struct rnbd_clt_dev dev;
	struct request rq;
	struct rnbd_msg_open_rsp rsp;
	struct rnbd_msg_open_gen msg;
};

static int generation_init(struct kunit *test)
{
	struct generation_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	spin_lock_init(&t->sess.lock);
	mutex_init(&t->dev.open_lock);
	t->dev.sess = &t->sess;
	t->dev.access_mode = RNBD_ACCESS_HANDOVER;
	test->priv = t;
	return 0;
}

static const struct end_case {
	const char *desc;
	blk_opf_t opf;
	int err;
	u8 before, after;
	bool fenced;
	enum rnbd_access_mode mode;
} end_cases[] = {
	{ "a write", REQ_OP_WRITE, 0, 0, WRITER, false },
	{ "a write with a flush", REQ_OP_WRITE | REQ_PREFLUSH, 0, 0, WRITER, false },
	{ "a discard", REQ_OP_DISCARD, 0, 0, WRITER, false },
	{ "a secure erase", REQ_OP_SECURE_ERASE, 0, 0, WRITER, false },
	{ "write zeroes", REQ_OP_WRITE_ZEROES, 0, 0, WRITER, false },
	{ "a read", REQ_OP_READ, 0, 0, 0, false },
	{ "a flush", REQ_OP_FLUSH | REQ_PREFLUSH, 0, 0, 0, false },
	{ "a write that fails", REQ_OP_WRITE, -EIO, 0, 0, false },
	{ "a write that is refused", REQ_OP_WRITE, -EBADE, WRITER, WRITER | FENCED, true },
	{ "a discard that is refused", REQ_OP_DISCARD, -EBADE, 0, FENCED, true },
	{ "a read that is refused", REQ_OP_READ, -EBADE, WRITER, WRITER, false },
	{ "a read, once writes are refused", REQ_OP_READ, 0, FENCED, FENCED, false },
	{ "a flush, once writes are refused", REQ_OP_FLUSH, 0, FENCED, FENCED, false },
	{ "a write that was on its way", REQ_OP_WRITE, 0, FENCED, WRITER | FENCED, true },
	{ "a write, rw", REQ_OP_WRITE, 0, 0, WRITER, false, RNBD_ACCESS_RW },
	{ "a write that the disk refuses, rw", REQ_OP_WRITE, -EBADE, 0, 0, false, RNBD_ACCESS_RW },
	{ "a write, migration", REQ_OP_WRITE, 0, 0, WRITER, false, RNBD_ACCESS_MIGRATION },
	{ "a write that the disk refuses, migration", REQ_OP_WRITE, -EBADE, 0, 0, false,
	  RNBD_ACCESS_MIGRATION },
};

KUNIT_ARRAY_PARAM_DESC(end_cases, end_cases, desc);

static void end_of_a_request_is_remembered(struct kunit *test)
{
	const struct end_case *c = test->param_value;
	struct generation_test *t = test->priv;

	if (c->mode)
		t->dev.access_mode = c->mode;
	t->rq.cmd_flags = c->opf;
	t->dev.gen_flags = c->before;
	rnbd_clt_note_write(&t->dev, &t->rq, c->err);
	KUNIT_EXPECT_EQ(test, t->dev.gen_flags, c->after);
	KUNIT_EXPECT_EQ(test, rnbd_clt_fenced(&t->dev, &t->rq), c->fenced);
}

static const struct answer_case {
	const char *desc;
	int ret;
	u64 before;
	u64 generation;
	u8 said;
	u64 after;
	u8 flags;
	enum rnbd_access_mode mode;
	u8 flags_before;
} answer_cases[] = {
	{ "the first one", 0, 0, 0x1122334455667788, 0, 0x1122334455667788, 0 },
	{ "the same again", 0, 7, 7, 0, 7, 0 },
	{ "another one", 0, 7, 8, 0, 7, 0 },
	{ "a newer one has written", 0, 7, 7, FENCED, 7, FENCED },
	{ "it has written, which we know better", 0, 7, 7, WRITER, 7, 0 },
	{ "flags that there are not", 0, 7, 7, 0xfc, 7, 0 },
	{ "no generation", -EPROTO, 0, 0, FENCED, 0, 0 },
	{ "no generation any more", -EPROTO, 7, 0, 0, 7, 0 },
	{ "the first one, rw", 0, 0, 7, 0, 7, 0, RNBD_ACCESS_RW },
	{ "a later one, rw", 0, 7, 8, 0, 8, 0, RNBD_ACCESS_RW, WRITER },
	{ "the same one, rw", 0, 7, 7, 0, 7, WRITER, RNBD_ACCESS_RW, WRITER },
	{ "another one, handover, it has written", 0, 7, 8, 0, 7, WRITER, RNBD_ACCESS_HANDOVER,
	  WRITER },
	{ "no generation, rw", -EPROTO, 7, 0, 0, 7, 0, RNBD_ACCESS_RW },
	{ "fenced, which there isn't, rw", 0, 7, 7, FENCED, 7, 0, RNBD_ACCESS_RW },
	{ "another one, migration", 0, 7, 8, 0, 7, 0, RNBD_ACCESS_MIGRATION },
};

KUNIT_ARRAY_PARAM_DESC(answer_cases, answer_cases, desc);

static void answer_has_the_generation(struct kunit *test)
{
	const struct answer_case *c = test->param_value;
	struct generation_test *t = test->priv;

	if (c->mode)
		t->dev.access_mode = c->mode;
	t->dev.generation = c->before;
	t->dev.gen_flags = c->flags_before;
	/* Prevents log messages about the expected error. */
	t->dev.open_err = -EPROTO;
	t->rsp.generation = cpu_to_le64(c->generation);
	t->rsp.gen_flags = c->said;
	KUNIT_EXPECT_EQ(test, rnbd_clt_check_generation(&t->dev, &t->rsp), c->ret);
	KUNIT_EXPECT_EQ(test, t->dev.generation, c->after);
	KUNIT_EXPECT_EQ(test, t->dev.gen_flags, c->flags);
}

static void generation_is_on_the_wire_as_written_down(struct kunit *test)
{
	static const u8 bytes[16] = { 8, 7, 6, 5, 4, 3, 2, 1, 3 };
	struct generation_test *t = test->priv;

	memset(&t->msg, 0x5a, sizeof(t->msg));
	t->dev.generation = 0x0102030405060708;
	t->dev.gen_flags = WRITER | FENCED;
	rnbd_clt_fill_open(&t->msg, &t->dev);
	KUNIT_EXPECT_EQ(test, sizeof(t->msg), 280);
	KUNIT_EXPECT_EQ(test, t->msg.open.access_mode, 3);
	KUNIT_EXPECT_EQ(test, memcmp((u8 *)&t->msg + 264, bytes, sizeof(bytes)), 0);
}

static void new_mapping_has_no_generation(struct kunit *test)
{
	struct generation_test *t = test->priv;

	t->dev.access_mode = RNBD_ACCESS_RW;
	t->dev.generation = 7;
	t->dev.gen_flags = WRITER;
	rnbd_clt_set_generation(&t->dev, 0);
	KUNIT_EXPECT_EQ(test, t->dev.generation, 0);
	KUNIT_EXPECT_EQ(test, t->dev.gen_flags, 0);
}

static struct kunit_case rnbd_clt_generation_cases[] = {
	KUNIT_CASE_PARAM(end_of_a_request_is_remembered, end_cases_gen_params),
	KUNIT_CASE_PARAM(answer_has_the_generation, answer_cases_gen_params),
	KUNIT_CASE(generation_is_on_the_wire_as_written_down),
	KUNIT_CASE(new_mapping_has_no_generation),
	{}
};

static struct kunit_suite rnbd_clt_generation_suite = {
	.name = "rnbd-client-generation",
	.init = generation_init,
	.test_cases = rnbd_clt_generation_cases,
};

kunit_test_suite(rnbd_clt_generation_suite);
