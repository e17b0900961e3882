// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of immediate values. Messages are tested with the code that writes and reads them. */
#include <linux/unaligned.h>
#include <kunit/test.h>

#include "../proto.h"

#define ERR_MAX		511
#define SLOT_MAX	(BIT(19) - 1)

static u32 request(u32 depth, u32 slot, u32 off)
{
	return rtrs_imm_req(slot, off, rtrs_imm_off_bits(depth));
}

static u32 answer(u32 unused, u32 slot, u32 err)
{
	return rtrs_imm_rsp(slot, -(int)err);
}

static u32 plain(u32 payload, u32 unused, u32 unused2)
{
	return payload;
}

static const struct imm_case {
	const char *desc;
	u32 type;
	u32 (*payload)(u32 a, u32 b, u32 c);
	u32 arg[3];
	u8 bytes[4];
} imm_cases[] = {
	{ "request: slot 0 of 512, header at 0", 0, request, { 512, 0, 0 }, { 0, 0, 0, 0 } },
	{ "request: slot 3 of 512, header at 4096", 0, request, { 512, 3, 4096 },
	  { 0x00, 0x18, 0x10, 0x00 } },
	{ "request: last of 512, header behind 124 KiB", 0, request, { 512, 511, 0x1f020 },
	  { 0x0f, 0xf9, 0xf0, 0x20 } },
	{ "request: last of 513", 0, request, { 513, 512, 1 }, { 0x08, 0x00, 0x00, 0x01 } },
	{ "request: the only slot, header at 4096", 0, request, { 1, 0, 4096 },
	  { 0x00, 0x00, 0x10, 0x00 } },
	{ "request: the second of two", 0, request, { 2, 1, 32 }, { 0x08, 0x00, 0x00, 0x20 } },
	{ "request: last of 65535, last byte", 0, request, { 65535, 65534, 4095 },
	  { 0x0f, 0xff, 0xef, 0xff } },
	{ "answer: slot 5, success", 1, answer, { 0, 5, 0 }, { 0x10, 0x00, 0x00, 0x05 } },
	{ "answer: slot 511, EIO", 1, answer, { 0, 511, 5 }, { 0x10, 0x28, 0x01, 0xff } },
	{ "answer: slot 65534, largest errno", 1, answer, { 0, 65534, 511 },
	  { 0x1f, 0xf8, 0xff, 0xfe } },
	{ "answer, key invalidated: slot 1, success", 2, answer, { 0, 1, 0 },
	  { 0x20, 0x00, 0x00, 0x01 } },
	{ "answer, key invalidated: slot 2, EPERM", 2, answer, { 0, 2, 1 },
	  { 0x20, 0x08, 0x00, 0x02 } },
	{ "fence the first path", 3, plain, { 1 }, { 0x30, 0, 0, 0x01 } },
	{ "fence a path", 3, plain, { 0x2345678 }, { 0x32, 0x34, 0x56, 0x78 } },
	{ "the last path is fenced", 4, plain, { 0xfffffff }, { 0x4f, 0xff, 0xff, 0xff } },
	{ "heartbeat", 8, plain, { 0 }, { 0x80, 0, 0, 0 } },
	{ "answer to a heartbeat", 9, plain, { 0 }, { 0x90, 0, 0, 0 } },
	{ "a payload too wide leaves the type alone", 1, plain, { ~0u },
	  { 0x1f, 0xff, 0xff, 0xff } },
};

KUNIT_ARRAY_PARAM_DESC(imm_cases, imm_cases, desc);

static void imm_is_on_the_wire_as_written_down(struct kunit *test)
{
	const struct imm_case *c = test->param_value;
	u32 payload = c->payload(c->arg[0], c->arg[1], c->arg[2]);
	__be32 imm = cpu_to_be32(rtrs_imm(c->type, payload));

	KUNIT_EXPECT_EQ(test, be32_to_cpu(imm), get_unaligned_be32(c->bytes));
	KUNIT_EXPECT_EQ(test, memcmp(&imm, c->bytes, sizeof(imm)), 0);
}

/* The numbers are part of the wire format. */
static void imm_types_have_their_numbers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_IO_REQ, 0);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_IO_RSP, 1);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_IO_RSP_W_INV, 2);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_FENCE, 3);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_FENCED, 4);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_HB_MSG, 8);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IMM_HB_ACK, 9);
}

static void imm_of_each_type_keeps_its_payload(struct kunit *test)
{
	u32 type, bit, payload;

	for (type = 0; type < 16; type++)
		for (bit = 0; bit <= 28; bit++) {
			payload = BIT(bit) - 1;
			KUNIT_ASSERT_EQ(test, rtrs_imm_type(rtrs_imm(type, payload)), type);
			KUNIT_ASSERT_EQ(test, rtrs_imm_payload(rtrs_imm(type, payload)), payload);
		}
}

static void imm_of_answers_keeps_each_errno_and_slot(struct kunit *test)
{
	static const u32 slots[] = { 0, 1, 2, 255, 256, 511, 512, 32767, 65534, 65535, SLOT_MAX };
	u32 err, i, payload;

	for (err = 0; err <= ERR_MAX; err++)
		for (i = 0; i < ARRAY_SIZE(slots); i++) {
			payload = rtrs_imm_rsp(slots[i], -(int)err);
			KUNIT_ASSERT_LT(test, payload, BIT(28));
			KUNIT_ASSERT_EQ(test, payload, err << 19 | slots[i]);
			KUNIT_ASSERT_EQ(test, rtrs_imm_rsp_slot(payload), slots[i]);
			KUNIT_ASSERT_EQ(test, rtrs_imm_rsp_err(payload), -(int)err);
		}
}

static void one_request(struct kunit *test, u32 bits, u32 slot, u32 off)
{
	u32 payload = rtrs_imm_req(slot, off, bits);

	KUNIT_ASSERT_LT(test, payload, BIT(28));
	KUNIT_ASSERT_EQ(test, rtrs_imm_req_slot(payload, bits), slot);
	KUNIT_ASSERT_EQ(test, rtrs_imm_req_off(payload, bits), off);
}

static void imm_of_requests_fits_each_depth(struct kunit *test)
{
	u32 depth, bits, slot_bits = 0;

	for (depth = 1; depth <= 65535; depth++) {
		if (depth > BIT(slot_bits))
			slot_bits++;
		bits = rtrs_imm_off_bits(depth);
		KUNIT_ASSERT_EQ_MSG(test, bits, 28 - slot_bits, "depth %u", depth);
		one_request(test, bits, 0, 0);
		one_request(test, bits, 0, BIT(bits) - 1);
		one_request(test, bits, depth - 1, 0);
		one_request(test, bits, depth - 1, BIT(bits) - 1);
		one_request(test, bits, depth / 2, BIT(bits) / 2);
	}
}

static const struct msg_case {
	const char *desc;
	u8 bytes[8];
	u32 len;
	bool ok;
} msg_cases[] = {
	{ "a heartbeat", { 7, 0, 0, 0, 0, 0, 0, 0x80 }, 8, true },
	{ "of type 0", { 0, 0, 0, 0, 0, 0, 0, 0x80 }, 8 },
	{ "an answer's type", { 6, 0, 0, 0, 0, 0, 0, 0x80 }, 8 },
	{ "of type 0x107", { 7, 1, 0, 0, 0, 0, 0, 0x80 }, 8 },
	{ "something where 0 is due", { 7, 0, 1, 0, 0, 0, 0, 0x80 }, 8 },
	{ "and in the byte behind", { 7, 0, 0, 1, 0, 0, 0, 0x80 }, 8 },
	{ "too short", { 7, 0, 0, 0, 0, 0, 0, 0x80 }, 7 },
	{ "empty", { 7, 0, 0, 0, 0, 0, 0, 0x80 }, 0 },
	{ "too long", { 7, 0, 0, 0, 0, 0, 0, 0x80 }, 9 },
};

KUNIT_ARRAY_PARAM_DESC(msg_cases, msg_cases, desc);

static void message_in_place_of_immediate_data_is_checked(struct kunit *test)
{
	const struct msg_case *c = test->param_value;
	struct rtrs_msg_imm msg;

	memcpy(&msg, c->bytes, sizeof(msg));
	KUNIT_EXPECT_EQ(test, rtrs_msg_imm_valid(&msg, c->len), c->ok);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(msg.imm), rtrs_imm(RTRS_IMM_HB_MSG, 0));
}

static struct kunit_case rtrs_proto_cases[] = {
	KUNIT_CASE_PARAM(imm_is_on_the_wire_as_written_down, imm_cases_gen_params),
	KUNIT_CASE(imm_types_have_their_numbers),
	KUNIT_CASE_PARAM(message_in_place_of_immediate_data_is_checked, msg_cases_gen_params),
	KUNIT_CASE(imm_of_each_type_keeps_its_payload),
	KUNIT_CASE(imm_of_answers_keeps_each_errno_and_slot),
	KUNIT_CASE(imm_of_requests_fits_each_depth),
	{}
};

static struct kunit_suite rtrs_proto_suite = {
	.name = "rtrs-proto",
	.test_cases = rtrs_proto_cases,
};

kunit_test_suite(rtrs_proto_suite);
