// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of what the client makes of a server's list of volumes.
 */
#include <kunit/test.h>
#include <linux/unaligned.h>
#include <net/net_namespace.h>

#include "../rnbd-clt.h"

#define ROOM	4096

struct discover_test {
	struct rnbd_clt_list list;
	/* From kmalloc(): KASAN detects accesses beyond it. */
	u8 *rsp;
	size_t len;
};

static int discover_init(struct kunit *test)
{
	struct discover_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->rsp = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	t->list.volumes = kunit_kcalloc(test, RNBD_CLT_LIST_MAX, sizeof(*t->list.volumes),
					GFP_KERNEL);
	test->priv = t;
	return t->rsp && t->list.volumes ? 0 : -ENOMEM;
}

static void discover_exit(struct kunit *test)
{
	struct discover_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < t->list.nr_volumes; i++)
		kfree(t->list.volumes[i]);
}

static void begin(struct discover_test *t, u64 cursor)
{
	memset(t->rsp, 0, ROOM);
	t->rsp[0] = 7;
	put_unaligned_le64(cursor, t->rsp + 8);
	t->len = 16;
}

static u8 *add(struct discover_test *t, const char *name, u64 nsectors)
{
	u8 *entry = t->rsp + t->len;
	size_t len = strlen(name);

	put_unaligned_le64(nsectors, entry);
	entry[23] = 1;
	entry[24] = 3;
	entry[25] = len;
	memcpy(entry + 32, name, len);
	t->len += 32 + round_up(len, 8);
	t->rsp[4]++;
	return entry;
}

static int parse(struct discover_test *t)
{
	return rnbd_clt_parse_list(&t->list, t->rsp, ROOM);
}

static void good_list_is_read(struct kunit *test)
{
	static const char * const lines[] = {
		"a 0 ro,rw 00000000-0000-0000-0000-000000000001\n",
		"b 16 ro,rw -\n",
		"eightsgn 18014398509481983 - 00000000-0000-0000-0000-000000000001\n",
		"nine-sign 1 ro,rw,migration,handover 00000000-0000-0000-0000-000000000001\n",
	};
	struct discover_test *t = test->priv;
	char text[400];
	unsigned int i;

	begin(t, 5);
	add(t, "nine-sign", 1)[24] = 0xff;
	add(t, "a", 0);
	KUNIT_ASSERT_EQ(test, parse(t), 0);
	KUNIT_EXPECT_EQ(test, t->list.cursor, 5);
	/* A part may be empty. */
	begin(t, 6);
	KUNIT_ASSERT_EQ(test, parse(t), 0);
	begin(t, 0);
	add(t, "b", 16)[23] = 0;
	add(t, "eightsgn", LLONG_MAX >> 9)[24] = 0;
	KUNIT_ASSERT_EQ(test, parse(t), 0);
	KUNIT_EXPECT_EQ(test, t->list.cursor, 0);
	KUNIT_ASSERT_EQ(test, t->list.nr_volumes, ARRAY_SIZE(lines));
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		KUNIT_EXPECT_EQ(test, rnbd_clt_print_volume(t->list.volumes[i], text, sizeof(text)),
				strlen(lines[i]));
		KUNIT_EXPECT_STREQ(test, text, lines[i]);
	}
}

static void newer_volume_of_a_name_remains(struct kunit *test)
{
	struct discover_test *t = test->priv;

	begin(t, 0);
	add(t, "b", 1);
	add(t, "a", 2);
	add(t, "b", 3);
	add(t, "c", 4);
	add(t, "b", 5);
	KUNIT_ASSERT_EQ(test, parse(t), 0);
	KUNIT_ASSERT_EQ(test, t->list.nr_volumes, 3);
	KUNIT_EXPECT_EQ(test, t->list.volumes[0]->nsectors, 2);
	KUNIT_EXPECT_EQ(test, t->list.volumes[1]->nsectors, 5);
	KUNIT_EXPECT_EQ(test, t->list.volumes[2]->nsectors, 4);
}

static const struct name_case {
	const char *desc;
	const char *name;
	int ret;
	bool listed;
} name_cases[] = {
	{ "printable", "a!~%s%n/", 0, true },
	{ "with a blank", "a b", 0, false },
	{ "beyond ASCII", "\xc3\xa4", 0, false },
	{ "empty", "", -EPROTO, false },
	{ "with a line's end", "a\nb", -EPROTO, false },
	{ "with an escape", "\x1b[2J", -EPROTO, false },
	{ "with the last control character", "a\x7f", -EPROTO, false },
};

KUNIT_ARRAY_PARAM_DESC(name_cases, name_cases, desc);

static void names_are_checked(struct kunit *test)
{
	const struct name_case *c = test->param_value;
	struct discover_test *t = test->priv;

	begin(t, 0);
	add(t, c->name, 1);
	KUNIT_EXPECT_EQ(test, parse(t), c->ret);
	KUNIT_EXPECT_EQ(test, t->list.nr_volumes, c->listed);
}

static void malformed_list_is_refused(struct kunit *test)
{
	struct discover_test *t = test->priv;
	char name[256];
	unsigned int i;

	/* Another message, and a cursor that leads nowhere */
	begin(t, 0);
	t->rsp[0] = 3;
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
	t->list.cursor = 7;
	begin(t, 7);
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
	begin(t, 6);
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
	begin(t, 8);
	KUNIT_EXPECT_EQ(test, parse(t), 0);

	/* More volumes than there are */
	begin(t, 0);
	add(t, "a", 1);
	t->rsp[4] = 2;
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
	t->rsp[5] = 0xff;
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);

	begin(t, 0);
	add(t, "a", (LLONG_MAX >> 9) + 1);
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);

	/* A NUL in the name, and a name that is too long */
	begin(t, 0);
	add(t, "abc", 1)[33] = 0;
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
	memset(name, 'n', 255);
	name[255] = '\0';
	begin(t, 0);
	add(t, name, 1);
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);

	/* A name that ends with the answer, and one that ends behind it */
	name[216] = '\0';
	begin(t, 0);
	for (i = 0; i < 16; i++)
		add(t, name, 1);
	KUNIT_ASSERT_EQ(test, t->len, 16 + 16 * 248);
	name[80] = '\0';
	add(t, name, 1);
	KUNIT_ASSERT_EQ(test, t->len, ROOM);
	KUNIT_EXPECT_EQ(test, parse(t), 0);
	t->rsp[ROOM - 112 + 25] = 81;
	KUNIT_EXPECT_EQ(test, parse(t), -EPROTO);
}

static void list_is_bounded(struct kunit *test)
{
	struct discover_test *t = test->priv;
	unsigned int i;

	for (i = 0; i < RNBD_CLT_LIST_MAX; i++) {
		begin(t, i + 1);
		/* Names that are left out count as well. */
		add(t, i & 1 ? "a" : "a b", 1);
		if (parse(t))
			break;
	}
	KUNIT_EXPECT_EQ(test, i, RNBD_CLT_LIST_MAX);
	begin(t, 0);
	KUNIT_EXPECT_EQ(test, parse(t), 0);
	add(t, "a", 1);
	KUNIT_EXPECT_EQ(test, parse(t), -E2BIG);
}

static const struct line_case {
	const char *desc;
	char *line;
	int ret;
} line_cases[] = {
	{ "a session", "sessname=s", 0 },
	{ "with a path", "sessname=s path=ip:10.0.0.1\n", 0 },
	{ "with options of the session",
	  "path=ip:10.0.0.1 sessname=s dest_port=1 nr_queues=1 queue_depth=8 key=rnbd:k nr_poll_queues=0",
	  0 },
	{ "nothing", "", -EINVAL },
	{ "no session", "path=ip:10.0.0.1", -EINVAL },
	{ "a device", "sessname=s device_path=d", -EINVAL },
	{ "an access mode", "sessname=s access_mode=rw", -EINVAL },
	{ "a setting", "sessname=s failover_timeout=1", -EINVAL },
	{ "a path that is none", "sessname=s path=10.0.0.1", -EINVAL },
	{ "an unknown word", "sessname=s x=y", -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(line_cases, line_cases, desc);

static void line_is_checked(struct kunit *test)
{
	const struct line_case *c = test->param_value;
	struct rnbd_clt_map_opts *opts = kunit_kzalloc(test, sizeof(*opts), GFP_KERNEL);
	char *line = kunit_kzalloc(test, strlen(c->line) + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, opts);
	KUNIT_ASSERT_NOT_NULL(test, line);
	strcpy(line, c->line);
	opts->net = &init_net;
	opts->discover = true;
	KUNIT_EXPECT_EQ(test, rnbd_clt_parse(line, opts), c->ret);
}

static struct kunit_case rnbd_clt_discover_cases[] = {
	KUNIT_CASE(good_list_is_read),
	KUNIT_CASE(newer_volume_of_a_name_remains),
	KUNIT_CASE_PARAM(names_are_checked, name_cases_gen_params),
	KUNIT_CASE(malformed_list_is_refused),
	KUNIT_CASE(list_is_bounded),
	KUNIT_CASE_PARAM(line_is_checked, line_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_clt_discover_suite = {
	.name = "rnbd-client-discover",
	.init = discover_init,
	.exit = discover_exit,
	.test_cases = rnbd_clt_discover_cases,
};

kunit_test_suite(rnbd_clt_discover_suite);
