// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of generations: which mappings may write.
 */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/prandom.h>

#include "../rnbd-srv.h"

#define FENCED	RNBD_GEN_FENCED
#define WRITER	RNBD_GEN_WRITER

static struct rnbd_srv_writer *some_writer(struct kunit *test)
{
	struct rnbd_srv_writer *wr = kunit_kzalloc(test, sizeof(*wr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, wr);
	return wr;
}

/* A write to a disk with an owner, in most cases 5, and with writes in progress */
static const struct check_case {
	const char *desc;
	int ret;
	u64 generation;
	bool known;
	u64 writer;
	bool granted, settled;
	unsigned int nr_writes, nr_old;
	u64 new_writer;
	unsigned int new_writes, new_old;
	const char *state; /* before the write */
} check_cases[] = {
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
	{ "the greatest generation", 0, S64_MAX, false, 5, true, true, 0, 0, S64_MAX, 1, 0,
	  "newer" },
};

KUNIT_ARRAY_PARAM_DESC(check_cases, check_cases, desc);

static void newest_one_that_has_written_may_write(struct kunit *test)
{
	const struct check_case *c = test->param_value;
	struct rnbd_srv_age age = { .generation = c->generation, .known = c->known };
	struct rnbd_srv_writer *wr = some_writer(test);

	wr->owner = c->writer;
	wr->saved = c->new_writer;
	wr->granted = c->granted;
	wr->settled = c->settled;
	wr->nr_writes = c->nr_writes;
	wr->nr_old = c->nr_old;
	KUNIT_EXPECT_STREQ(test, rnbd_srv_writer_word(wr, &age), c->state);
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_HANDOVER, &age),
			c->ret);
	KUNIT_EXPECT_EQ(test, wr->owner, c->new_writer);
	KUNIT_EXPECT_EQ(test, wr->nr_writes, c->new_writes);
	KUNIT_EXPECT_EQ(test, wr->nr_old, c->new_old);
}

/* A mapping is opened of a disk with owner 5, newest mapping 7 and 2 writes in progress. */
static const struct add_case {
	const char *desc;
	u64 said;
	u8 flags;
	u64 owner;
	unsigned int nr_writes, nr_old;
} add_cases[] = {
	{ "that has not written", 6, 0, 5, 2, 0 },
	{ "that was the owner", 4, WRITER, 5, 2, 0 },
	{ "that is the owner", 5, WRITER, 5, 2, 0 },
	{ "that has become the owner", 6, WRITER, 6, 0, 2 },
	{ "that is fenced, as is known", 4, WRITER | FENCED, 5, 2, 0 },
	{ "that is fenced, as is not known", 5, WRITER | FENCED, 6, 0, 2 },
	{ "that is fenced, and newer", 6, FENCED, 7, 0, 2 },
	{ "with unknown flags", 4, 0xfc, 5, 2, 0 },
	{ "from the future", S64_MAX - 1, 0, 5, 2, 0 },
	{ "the writer is from the future", S64_MAX, WRITER, S64_MAX, 0, 2 },
	{ "fenced in the future", S64_MAX, FENCED, 1ULL << 63, 0, 2 },
	{ "from far ahead, as if older", U64_MAX, WRITER, 5, 2, 0 },
};

KUNIT_ARRAY_PARAM_DESC(add_cases, add_cases, desc);

static int save_and_write(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
			  const struct rnbd_srv_age *age)
{
	int ret = rnbd_srv_writer_check(wr, mode, age);

	if (ret != -EAGAIN || wr->saved == wr->owner)
		return ret;
	wr->saved = wr->owner;
	return rnbd_srv_writer_check(wr, mode, age);
}

/* Whatever the client reports, a later new mapping is newer, and may write. */
static void mapping_is_reopened(struct kunit *test)
{
	const struct add_case *c = test->param_value;
	struct rnbd_srv_age age = { .generation = c->said, .flags = c->flags };
	struct rnbd_srv_writer *wr = some_writer(test);
	struct rnbd_srv_age new = { };
	u64 generation;

	wr->owner = 5;
	wr->newest = 7;
	wr->nr_writes = 2;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_HANDOVER, &age), 0);
	KUNIT_EXPECT_EQ(test, age.generation, c->said);
	KUNIT_EXPECT_FALSE(test, age.known);
	KUNIT_EXPECT_EQ(test, wr->owner, c->owner);
	KUNIT_EXPECT_EQ(test, wr->nr_writes, c->nr_writes);
	KUNIT_EXPECT_EQ(test, wr->nr_old, c->nr_old);

	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_HANDOVER, &new), 0);
	KUNIT_EXPECT_TRUE(test, new.known);
	wr->nr_writes = 0;
	wr->nr_old = 0;
	wr->settled = true;
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &new), 0);
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &age), -EBADE);

	/* After a loss of the session, both mappings are reopened, the older one first. */
	age.generation = c->said;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_HANDOVER, &age), 0);
	generation = new.generation;
	new.flags = WRITER;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_HANDOVER, &new), 0);
	KUNIT_EXPECT_EQ(test, new.generation, generation);
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &new), 0);
}

/* Generations increase across disks, too. One from the future affects only its own disk. */
static void new_mappings_are_ever_newer(struct kunit *test)
{
	struct rnbd_srv_age far = { .generation = S64_MAX }, ages[4] = { };
	struct rnbd_srv_writer *wr = some_writer(test);
	struct rnbd_srv_writer *other = some_writer(test);
	u64 now = ktime_get_real_ns();
	int i;

	for (i = 0; i < ARRAY_SIZE(ages); i++) {
		rnbd_srv_writer_add(i & 1 ? other : wr, RNBD_ACCESS_RW, &ages[i]);
		KUNIT_EXPECT_GT(test, ages[i].generation, i ? ages[i - 1].generation : now - 1);
	}
	rnbd_srv_writer_add(other, RNBD_ACCESS_RW, &far);
	ages[0].generation = 0;
	rnbd_srv_writer_add(wr, RNBD_ACCESS_RW, &ages[0]);
	KUNIT_EXPECT_LT(test, ages[0].generation, now + NSEC_PER_SEC * 3600);
}

/* There is always a newer generation, which is never 0. */
static const struct far_case {
	const char *desc;
	u64 generation;
} far_cases[] = {
	{ "the greatest signed number", S64_MAX },
	{ "the smallest one", 1ULL << 63 },
	{ "the greatest number", U64_MAX },
	{ "the one in front of that", U64_MAX - 1 },
};

KUNIT_ARRAY_PARAM_DESC(far_cases, far_cases, desc);

static void no_generation_is_the_last(struct kunit *test)
{
	const struct far_case *c = test->param_value;
	struct rnbd_srv_writer *wr = some_writer(test);
	struct rnbd_srv_age age = { };
	int i;

	wr->newest = c->generation;
	wr->owner = c->generation;
	for (i = 0; i < 4; i++) {
		u64 generation;

		age.generation = 0;
		KUNIT_ASSERT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_RW, &age), 0);
		generation = age.generation;
		KUNIT_EXPECT_NE(test, generation, 0);
		KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_RW, &age), 0);
		KUNIT_EXPECT_EQ(test, wr->owner, generation);
		KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_HANDOVER, &age), 0);
		KUNIT_EXPECT_EQ(test, age.generation, generation);
		KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, RNBD_ACCESS_RW, &age), 0);
		KUNIT_EXPECT_NE(test, age.generation, generation);
		KUNIT_EXPECT_EQ(test, wr->newest, age.generation);
	}
}

/* A mapping is reopened of a disk with owner 5 and newest mapping 7. */
static const struct reopen_case {
	const char *desc;
	enum rnbd_access_mode mode;
	int ret;
	u64 generation;
	u8 flags;
	bool keeps;
} reopen_cases[] = {
	{ "rw, older than the owner", RNBD_ACCESS_RW, -EBADE, 4, WRITER, true },
	{ "rw, the owner", RNBD_ACCESS_RW, 0, 5, WRITER, false },
	{ "rw, newer than the owner", RNBD_ACCESS_RW, 0, 6, 0, false },
	{ "rw, the newest", RNBD_ACCESS_RW, 0, 7, 0, false },
	{ "rw, unknown", RNBD_ACCESS_RW, 0, 8, WRITER, false },
	{ "migration, older than the owner", RNBD_ACCESS_MIGRATION, -EBADE, 4, WRITER, true },
	{ "migration, the owner", RNBD_ACCESS_MIGRATION, 0, 5, WRITER, true },
	{ "migration, newer than the owner", RNBD_ACCESS_MIGRATION, 0, 6, 0, true },
	{ "migration, the newest", RNBD_ACCESS_MIGRATION, 0, 7, 0, true },
	{ "handover, older than the owner", RNBD_ACCESS_HANDOVER, 0, 4, WRITER, true },
};

KUNIT_ARRAY_PARAM_DESC(reopen_cases, reopen_cases, desc);

static void older_mapping_is_not_reopened(struct kunit *test)
{
	const struct reopen_case *c = test->param_value;
	struct rnbd_srv_age age = { .generation = c->generation, .flags = c->flags };
	struct rnbd_srv_writer *wr = some_writer(test);

	wr->owner = 5;
	wr->newest = 7;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_add(wr, c->mode, &age), c->ret);
	if (c->keeps)
		KUNIT_EXPECT_EQ(test, age.generation, c->generation);
	else
		KUNIT_EXPECT_GT(test, age.generation, 8);
}

/* In mode rw, writes wait only until the owner is saved. */
static void owner_is_saved_first(struct kunit *test)
{
	struct rnbd_srv_age age = { .generation = 8 };
	struct rnbd_srv_writer *wr = some_writer(test);

	wr->owner = 5;
	wr->saved = 5;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_RW, &age), -EAGAIN);
	KUNIT_EXPECT_EQ(test, wr->owner, 8);
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_RW, &age), -EAGAIN);
	wr->saved = 8;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_RW, &age), 0);
	KUNIT_EXPECT_EQ(test, wr->nr_writes, 0);

	/* In mode migration, the older mapping may write, and the owner does not change. */
	age.generation = 7;
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_MIGRATION, &age), 0);
	KUNIT_EXPECT_EQ(test, wr->owner, 8);
}

/* B and C write while writes of A are in progress. */
static void old_writes_end_first(struct kunit *test)
{
	struct rnbd_srv_age a = { .generation = 1, .known = true };
	struct rnbd_srv_age b = { .generation = 2, .known = true };
	struct rnbd_srv_age c = { .generation = 3, .known = true };
	struct rnbd_srv_writer *wr = some_writer(test);

	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &a), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_HANDOVER, &a), 0);
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &b), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, rnbd_srv_writer_done(wr, 1));
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &c), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, rnbd_srv_writer_done(wr, 1));
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &b), -EBADE);
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &c), 0);
	KUNIT_EXPECT_EQ(test, save_and_write(wr, RNBD_ACCESS_HANDOVER, &c), 0);
	KUNIT_EXPECT_FALSE(test, rnbd_srv_writer_done(wr, 3));
	KUNIT_EXPECT_EQ(test, rnbd_srv_writer_check(wr, RNBD_ACCESS_HANDOVER, &a), -EBADE);
	KUNIT_EXPECT_EQ(test, wr->nr_writes, 1);
	KUNIT_EXPECT_EQ(test, wr->nr_old, 0);
}

/*
 * Random schedules of three clients of one disk, compared with a model: a mapping does not write
 * again once a newer mapping has written.
 */
struct client {
	bool mapped, open;
	enum rnbd_access_mode mode;
	struct rnbd_srv_age age;	/* on the server */
	u64 generation;			/* on the client, as are the flags */
	u8 flags;
	u64 order;			/* time of mapping or, in mode rw, of reopening */
	bool replaced;
};

struct schedule {
	struct rnd_state rnd;
	struct rnbd_srv_writer wr;
	struct rnbd_srv_dev dev;
	struct client clients[3];
	u64 saved, clock;
	unsigned int writes, refused;
};

static unsigned int below(struct schedule *s, unsigned int n)
{
	return prandom_u32_state(&s->rnd) % n;
}

static void count_open(struct schedule *s, const struct client *c, int nr)
{
	s->dev.nr_writers += nr;
	if (c->mode == RNBD_ACCESS_HANDOVER)
		s->dev.nr_handover += nr;
}

static void close_client(struct schedule *s, struct client *c)
{
	if (!c->open)
		return;
	c->open = false;
	count_open(s, c, -1);
}

static int open_client(struct schedule *s, struct client *c)
{
	int ret;

	c->age = (struct rnbd_srv_age){ .generation = c->generation, .flags = c->flags };
	if (!c->generation)
		c->age.flags = 0;
	ret = rnbd_srv_writer_add(&s->wr, c->mode, &c->age) ?: rnbd_srv_access(&s->dev, c->mode);
	if (ret)
		return ret;
	if (!c->generation || c->mode == RNBD_ACCESS_RW) {
		c->order = ++s->clock;
		c->generation = c->age.generation;
		c->flags = 0;
	}
	c->open = true;
	count_open(s, c, 1);
	return 0;
}

static void map_client(struct schedule *s, struct client *c)
{
	*c = (struct client){ .mode = 1 + below(s, 3) };
	c->mapped = !open_client(s, c);
}

static void reopen_client(struct kunit *test, struct schedule *s, struct client *c)
{
	bool refused = c->replaced && c->mode != RNBD_ACCESS_HANDOVER;
	int ret = open_client(s, c);

	KUNIT_EXPECT_EQ(test, ret == -EBADE, refused);
	if (ret == -EBADE) {
		c->mapped = false;
		s->refused++;
	}
}

static void write_client(struct kunit *test, struct schedule *s, struct client *c)
{
	bool refused = c->replaced && c->mode == RNBD_ACCESS_HANDOVER;
	struct client *other;
	int ret;

	ret = save_and_write(&s->wr, c->mode, &c->age);
	s->saved = s->wr.saved;
	/* The write is held back. */
	if (ret == -EAGAIN)
		return;
	KUNIT_EXPECT_EQ(test, ret, refused ? -EBADE : 0);
	if (ret) {
		c->flags |= FENCED;
		s->refused++;
		return;
	}
	if (c->mode == RNBD_ACCESS_HANDOVER)
		rnbd_srv_writer_done(&s->wr, c->generation);
	c->flags |= WRITER;
	s->writes++;
	for (other = s->clients; other < s->clients + 3; other++) {
		bool both_rw = c->mode == RNBD_ACCESS_RW && other->mode == RNBD_ACCESS_RW;

		if (other != c && (both_rw || other->order < c->order))
			other->replaced = true;
	}
}

static void restart_server(struct schedule *s)
{
	int i;

	for (i = 0; i < 3; i++)
		close_client(s, &s->clients[i]);
	memset(&s->wr, 0, sizeof(s->wr));
	rnbd_srv_writer_init(&s->wr);
	s->wr.owner = s->saved;
	s->wr.saved = s->saved;
	s->wr.newest = s->saved;
}

static void do_step(struct kunit *test, struct schedule *s)
{
	struct client *c = &s->clients[below(s, 3)];

	if (!c->mapped)
		map_client(s, c);
	else if (!c->open)
		reopen_client(test, s, c);
	else
		write_client(test, s, c);

	switch (below(s, 16)) {
	case 0:
		restart_server(s);
		break;
	case 1:
		s->wr.settled = true;
		break;
	case 2:
	case 3:
	case 4:
		close_client(s, c);
		break;
	case 5:
		close_client(s, c);
		c->mapped = false;
		break;
	}
}

static void replaced_mapping_never_writes(struct kunit *test)
{
	struct schedule *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	unsigned int writes = 0, refused = 0;
	int i, step;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < 1000; i++) {
		memset(s, 0, sizeof(*s));
		prandom_seed_state(&s->rnd, i);
		rnbd_srv_writer_init(&s->wr);
		for (step = 0; step < 100; step++)
			do_step(test, s);
		writes += s->writes;
		refused += s->refused;
		if (test->status == KUNIT_FAILURE) {
			kunit_info(test, "schedule %d\n", i);
			break;
		}
	}
	/* Ensure that the schedules cover both cases. */
	KUNIT_EXPECT_GT(test, writes, 10000);
	KUNIT_EXPECT_GT(test, refused, 1000);
}

static struct kunit_case rnbd_srv_writer_cases[] = {
	KUNIT_CASE_PARAM(newest_one_that_has_written_may_write, check_cases_gen_params),
	KUNIT_CASE_PARAM(mapping_is_reopened, add_cases_gen_params),
	KUNIT_CASE(new_mappings_are_ever_newer),
	KUNIT_CASE_PARAM(no_generation_is_the_last, far_cases_gen_params),
	KUNIT_CASE_PARAM(older_mapping_is_not_reopened, reopen_cases_gen_params),
	KUNIT_CASE(owner_is_saved_first),
	KUNIT_CASE(old_writes_end_first),
	KUNIT_CASE(replaced_mapping_never_writes),
	{}
};

static struct kunit_suite rnbd_srv_writer_suite = {
	.name = "rnbd-server-writer",
	.test_cases = rnbd_srv_writer_cases,
};

kunit_test_suite(rnbd_srv_writer_suite);
