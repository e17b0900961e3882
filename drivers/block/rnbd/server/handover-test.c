// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of access mode handover: who may write, by the ages of mappings.
 */
#include <kunit/test.h>
#include <linux/ktime.h>

#include "rnbd-srv.h"

#define FENCED	RNBD_HANDOVER_FENCED
#define WRITER	RNBD_HANDOVER_WRITER

static struct rnbd_srv_handover *some_handover(struct kunit *test)
{
	struct rnbd_srv_handover *ho = kunit_kzalloc(test, sizeof(*ho), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ho);
	return ho;
}

/* The writer is 5, unless that is another one, with writes in hand; then somebody's write comes. */
static const struct judge_case {
	const char *desc;
	int ret;
	u64 generation;
	bool known;
	u64 writer;
	bool granted, settled;
	unsigned int nr_writes, nr_old;
	u64 new_writer;
	unsigned int new_writes, new_old;
	const char *state; /* before */
} judge_cases[] = {
	{ "the first write of all", 0, 5, true, 0, false, false, 0, 0, 5, 1, 0, "newer" },
	{ "the writer's next", 0, 5, true, 5, true, true, 3, 0, 5, 4, 0, "writer" },
	{ "an older one's", -EBADE, 4, true, 5, true, true, 3, 0, 5, 3, 0, "fenced" },
	{ "an older one's, nothing is in hand", -EBADE, 4, true, 5, true, true, 0, 0,
	  5, 0, 0, "fenced" },
	{ "an older one's, of earlier times", -EBADE, 4, false, 5, true, false, 0, 0,
	  5, 0, 0, "fenced" },
	{ "a newer one's, nothing is in hand", 0, 6, true, 5, true, true, 0, 0, 6, 1, 0, "newer" },
	{ "a newer one's, the old one's are in hand", -EAGAIN, 6, true, 5, true, true, 3, 0,
	  6, 0, 3, "newer" },
	{ "once more, they still are", -EAGAIN, 6, true, 6, true, true, 0, 3, 6, 0, 3, "writer" },
	{ "once more, they are done", 0, 6, true, 6, true, true, 0, 0, 6, 1, 0, "writer" },
	{ "a third one's, while the second waits", -EAGAIN, 7, true, 6, true, true, 0, 3,
	  7, 0, 3, "newer" },
	{ "the second one's, the third waits", -EBADE, 6, true, 7, true, true, 0, 3,
	  7, 0, 3, "fenced" },
	{ "a third one's, the second's are in hand", -EAGAIN, 7, true, 6, true, true, 2, 0,
	  7, 0, 2, "newer" },
	{ "of earlier times, newer ones may come", -EAGAIN, 5, false, 0, false, false, 0, 0,
	  0, 0, 0, "waiting" },
	{ "of earlier times, the last known writer", -EAGAIN, 5, false, 5, false, false, 0, 0,
	  5, 0, 0, "waiting" },
	{ "of earlier times, newer than the writer", -EAGAIN, 6, false, 5, true, false, 2, 0,
	  5, 2, 0, "waiting" },
	{ "of earlier times, the writer of these", 0, 5, false, 5, true, false, 0, 0,
	  5, 1, 0, "writer" },
	{ "of earlier times, nobody has come", 0, 5, false, 0, false, true, 0, 0,
	  5, 1, 0, "newer" },
	{ "of earlier times, the only writer", 0, 5, false, 5, false, true, 0, 0,
	  5, 1, 0, "writer" },
	{ "new, newer ones may come", 0, 6, true, 5, false, false, 0, 0, 6, 1, 0, "newer" },
	{ "the greatest age", 0, S64_MAX, false, 5, true, true, 0, 0, S64_MAX, 1, 0, "newer" },
};

KUNIT_ARRAY_PARAM_DESC(judge_cases, judge_cases, desc);

static void newest_one_that_has_written_may_write(struct kunit *test)
{
	const struct judge_case *c = test->param_value;
	struct rnbd_srv_age age = { .generation = c->generation, .known = c->known };
	struct rnbd_srv_handover *ho = some_handover(test);

	ho->writer = c->writer;
	ho->granted = c->granted;
	ho->settled = c->settled;
	ho->nr_writes = c->nr_writes;
	ho->nr_old = c->nr_old;
	KUNIT_EXPECT_STREQ(test, rnbd_srv_handover_word(ho, &age), c->state);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &age), c->ret);
	KUNIT_EXPECT_EQ(test, ho->writer, c->new_writer);
	KUNIT_EXPECT_EQ(test, ho->nr_writes, c->new_writes);
	KUNIT_EXPECT_EQ(test, ho->nr_old, c->new_old);
}

/* Of a disk whose writer is 5, whose newest mapping is 7, and that has 2 writes in hand */
static const struct add_case {
	const char *desc;
	u64 said;
	u8 flags;
	u64 generation;
	u64 writer;
	unsigned int nr_writes, nr_old;
} add_cases[] = {
	{ "that has not written", 6, 0, 6, 5, 2, 0 },
	{ "that was the writer", 4, WRITER, 4, 5, 2, 0 },
	{ "that is the writer", 5, WRITER, 5, 5, 2, 0 },
	{ "that has become the writer", 6, WRITER, 6, 6, 0, 2 },
	{ "that can't write, as is known", 4, WRITER | FENCED, 4, 5, 2, 0 },
	{ "that can't write, as is not known", 5, WRITER | FENCED, 5, 6, 0, 2 },
	{ "that can't write, and is newer", 6, FENCED, 6, 7, 0, 2 },
	{ "with flags that there are not", 4, 0xfc, 4, 5, 2, 0 },
	{ "from the future", S64_MAX - 1, 0, S64_MAX - 1, 5, 2, 0 },
	{ "from the end of time", U64_MAX, 0, S64_MAX, 5, 2, 0 },
	{ "that writes from the end of time", U64_MAX, WRITER, S64_MAX, S64_MAX, 0, 2 },
	{ "that can't write at the end of time", U64_MAX, FENCED, S64_MAX, 1ULL << 63, 0, 2 },
};

KUNIT_ARRAY_PARAM_DESC(add_cases, add_cases, desc);

/* Whatever it says: one that is new afterwards is newer, and may write. */
static void mapping_comes_back(struct kunit *test)
{
	const struct add_case *c = test->param_value;
	struct rnbd_srv_age age = { .generation = c->said, .flags = c->flags };
	struct rnbd_srv_age new = { };
	struct rnbd_srv_handover *ho = some_handover(test);

	ho->writer = 5;
	ho->newest = 7;
	ho->nr_writes = 2;
	rnbd_srv_handover_add(ho, &age);
	KUNIT_EXPECT_EQ(test, age.generation, c->generation);
	KUNIT_EXPECT_FALSE(test, age.known);
	KUNIT_EXPECT_EQ(test, ho->writer, c->writer);
	KUNIT_EXPECT_EQ(test, ho->nr_writes, c->nr_writes);
	KUNIT_EXPECT_EQ(test, ho->nr_old, c->nr_old);

	rnbd_srv_handover_add(ho, &new);
	KUNIT_EXPECT_TRUE(test, new.known);
	KUNIT_EXPECT_GT(test, new.generation, age.generation);
	ho->nr_writes = 0;
	ho->nr_old = 0;
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &new), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &age), -EBADE);
}

/* Of one disk, and of one after the other: that an age is too great stays with its disk. */
static void new_mappings_are_ever_newer(struct kunit *test)
{
	struct rnbd_srv_age far = { .generation = U64_MAX }, ages[4] = { };
	struct rnbd_srv_handover *ho = some_handover(test);
	struct rnbd_srv_handover *other = some_handover(test);
	u64 now = ktime_get_real_ns();
	int i;

	for (i = 0; i < ARRAY_SIZE(ages); i++) {
		rnbd_srv_handover_add(i & 1 ? other : ho, &ages[i]);
		KUNIT_EXPECT_GT(test, ages[i].generation, i ? ages[i - 1].generation : now - 1);
	}
	rnbd_srv_handover_add(other, &far);
	rnbd_srv_handover_add(ho, &ages[0]);
	KUNIT_EXPECT_LT(test, ages[0].generation, now + NSEC_PER_SEC * 3600);
}

/* A takes writes, B comes, and C before B's turn. */
static void old_writes_end_first(struct kunit *test)
{
	struct rnbd_srv_age a = { .generation = 1, .known = true };
	struct rnbd_srv_age b = { .generation = 2, .known = true };
	struct rnbd_srv_age c = { .generation = 3, .known = true };
	struct rnbd_srv_handover *ho = some_handover(test);

	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &a), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &a), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &b), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, rnbd_srv_handover_done(ho, 1));
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &c), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, rnbd_srv_handover_done(ho, 1));
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &b), -EBADE);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &c), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &c), 0);
	KUNIT_EXPECT_FALSE(test, rnbd_srv_handover_done(ho, 3));
	KUNIT_EXPECT_EQ(test, rnbd_srv_handover_judge(ho, &a), -EBADE);
	KUNIT_EXPECT_EQ(test, ho->nr_writes, 1);
	KUNIT_EXPECT_EQ(test, ho->nr_old, 0);
}

static struct kunit_case rnbd_srv_handover_cases[] = {
	KUNIT_CASE_PARAM(newest_one_that_has_written_may_write, judge_cases_gen_params),
	KUNIT_CASE_PARAM(mapping_comes_back, add_cases_gen_params),
	KUNIT_CASE(new_mappings_are_ever_newer),
	KUNIT_CASE(old_writes_end_first),
	{}
};

static struct kunit_suite rnbd_srv_handover_suite = {
	.name = "rnbd-server-handover",
	.test_cases = rnbd_srv_handover_cases,
};

kunit_test_suite(rnbd_srv_handover_suite);
