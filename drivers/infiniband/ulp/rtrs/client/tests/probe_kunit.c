// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of the full-size packet that a path sends before it accepts requests */
#include <kunit/test.h>

#include "../clt.h"

#define NR_SLOTS	16

static const struct size_case {
	const char *desc;
	u32 chunk_size;
	u32 nr;		/* number of slots */
	u32 gap_at;	/* first slot that doesn't follow the previous one; 0: none */
	u32 key_at;	/* first slot with another key; 0: none */
	int mtu;
	u32 size;
} size_cases[] = {
	{ "a chunk has room for it", 65536, 1, 0, 0, 4096, 4096 },
	{ "the path MTU is lower", 65536, 1, 0, 0, 1024, 1024 },
	{ "no path MTU of InfiniBand", 65536, 1, 0, 0, -1, 4096 },
	{ "a larger path MTU", 65536, 1, 0, 0, 8192, 4096 },
	{ "some slots have room for it together", 700, NR_SLOTS, 0, 0, 4096, 4096 },
	{ "exactly", 1024, 4, 0, 0, 4096, 4096 },
	{ "all slots have less", 700, 3, 0, 0, 4096, 2100 },
	{ "some have, but there is a gap", 700, NR_SLOTS, 2, 0, 4096, 1400 },
	{ "some have, but with other keys", 700, NR_SLOTS, 0, 1, 4096, 700 },
};

KUNIT_ARRAY_PARAM_DESC(size_cases, size_cases, desc);

/* The packet must not be written to other memory. */
static void full_size_packet_fits_in_the_first_slots(struct kunit *test)
{
	const struct size_case *c = test->param_value;
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_clt_slot *slots[NR_SLOTS];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, path);
	for (i = 0; i < NR_SLOTS; i++) {
		slots[i] = kunit_kzalloc(test, sizeof(*slots[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, slots[i]);
		slots[i]->raddr = 0x10000 + i * c->chunk_size;
		slots[i]->rkey = 1;
		if (c->gap_at && i >= c->gap_at)
			slots[i]->raddr += SZ_4K;
		if (c->key_at && i >= c->key_at)
			slots[i]->rkey = 2;
	}
	path->slots = slots;
	path->neg.nr_slots = c->nr;
	path->neg.chunk_size = c->chunk_size;
	KUNIT_EXPECT_EQ(test, rtrs_clt_probe_size(path, c->mtu), c->size);
}

static const struct may_case {
	const char *desc;
	u32 features;
	bool no_imm;
	bool may;
} may_cases[] = {
	{ "paths with chunks of their own", RTRS_FEATURE_FENCE, false, true },
	{ "chunks that paths may share", (u32)~RTRS_FEATURE_FENCE, false, false },
	{ "the in-tree server", 0, false, false },
	{ "iWARP", RTRS_FEATURE_FENCE, true, false },
};

KUNIT_ARRAY_PARAM_DESC(may_cases, may_cases, desc);

/* Shared chunks may contain data of another path. */
static void chunks_that_paths_share_are_left_alone(struct kunit *test)
{
	const struct may_case *c = test->param_value;
	struct rtrs_clt_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	path->path.features = c->features;
	path->path.no_imm = c->no_imm;
	KUNIT_EXPECT_EQ(test, rtrs_clt_may_probe(path), c->may);
}

static struct kunit_case rtrs_clt_probe_cases[] = {
	KUNIT_CASE_PARAM(chunks_that_paths_share_are_left_alone, may_cases_gen_params),
	KUNIT_CASE_PARAM(full_size_packet_fits_in_the_first_slots, size_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_probe_suite = {
	.name = "rtrs-client-probe",
	.test_cases = rtrs_clt_probe_cases,
};

kunit_test_suite(rtrs_clt_probe_suite);
