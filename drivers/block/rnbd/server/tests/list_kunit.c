// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the list of volumes that a client may open.
 */
#include <kunit/test.h>
#include <net/net_namespace.h>

#include "../rules.h"

#define VOLUMES	RNBD_FEATURE_VOLUMES

static const struct msg_case {
	const char *desc;
	int ret;
	u32 features;
	u16 msg_len;
	enum dma_data_direction dir;
	u32 data_len;
} msg_cases[] = {
	{ "the usual", 0, VOLUMES, 16, DMA_FROM_DEVICE, 4096 },
	{ "a longer message", 0, VOLUMES, 320, DMA_FROM_DEVICE, 4096 },
	{ "as little room as can be", 0, VOLUMES, 16, DMA_FROM_DEVICE, 304 },
	{ "more room than is used", 0, VOLUMES, 16, DMA_FROM_DEVICE, 1 << 20 },
	{ "no room for the longest name", -EINVAL, VOLUMES, 16, DMA_FROM_DEVICE, 303 },
	{ "no room", -EINVAL, VOLUMES, 16, DMA_FROM_DEVICE, 0 },
	{ "a byte is missing", -EINVAL, VOLUMES, 15, DMA_FROM_DEVICE, 4096 },
	{ "only a header", -EINVAL, VOLUMES, 4, DMA_FROM_DEVICE, 4096 },
	{ "a write", -EINVAL, VOLUMES, 16, DMA_TO_DEVICE, 4096 },
	{ "the feature was not granted", -EINVAL, 63, 16, DMA_FROM_DEVICE, 4096 },
};

KUNIT_ARRAY_PARAM_DESC(msg_cases, msg_cases, desc);

static void list_is_checked(struct kunit *test)
{
	const struct msg_case *c = test->param_value;
	struct rtrs_srv_op *op = kunit_kzalloc(test, sizeof(*op), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, op);
	op->msg_len = c->msg_len;
	op->dir = c->dir;
	op->data_len = c->data_len;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_list(op, c->features), c->ret);
}

struct list_test {
	struct rnbd_srv_rules rules;
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_list list;
	struct rtrs_addr addr;
	u64 nr;
};

static struct list_test *list_test(struct kunit *test)
{
	struct list_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	INIT_LIST_HEAD(&t->rules.volumes);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, "ip:192.168.1.2", 1, &t->addr), 0);
	t->sess = kunit_kzalloc(test, sizeof(*t->sess) + sizeof("s"), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->sess);
	t->sess->rules = &t->rules;
	strcpy(t->sess->name, "s");
	t->sess->client.addr = &t->addr.dst;
	return t;
}

/* Add a volume that any client may open. Its name has to last as long as the test. */
static struct rnbd_srv_volume *add_volume(struct kunit *test, struct list_test *t, char *name)
{
	struct rnbd_srv_volume *volume = kunit_kzalloc(test, sizeof(*volume), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, volume);
	INIT_LIST_HEAD(&volume->allowed);
	volume->group.cg_item.ci_name = name;
	volume->path = "/dev/x";
	volume->modes = RNBD_SRV_ALL_MODES;
	volume->enabled = true;
	volume->allow_any_host = true;
	volume->nr = t->nr += 10;
	volume->uuid.b[15] = volume->nr;
	list_add_tail(&volume->list, &t->rules.volumes);
	return volume;
}

/* Get an answer. Returns its cursor. */
static u64 fill(struct kunit *test, struct list_test *t, size_t room, u64 after)
{
	const struct rnbd_msg_list_rsp *rsp = (const void *)t->list.data;
	unsigned int i;

	memset(&t->list, 0, sizeof(t->list));
	t->list.room = room;
	KUNIT_ASSERT_EQ(test, rnbd_srv_list_fill(&t->list, t->sess, after), 0);
	for (i = 0; i < t->list.nr; i++) {
		KUNIT_EXPECT_STREQ(test, t->list.paths[i], "/dev/x");
		kfree(t->list.paths[i]);
	}
	KUNIT_EXPECT_LE(test, t->list.len, room);
	KUNIT_EXPECT_NULL(test, memchr_inv(t->list.data + t->list.len, 0,
					   sizeof(t->list.data) - t->list.len));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(rsp->nr), t->list.nr);
	return le64_to_cpu(rsp->cursor);
}

static const struct may_case {
	const char *desc;
	char *name;
	const char *host;
	unsigned long modes;
	bool enabled, any_host, listed;
	bool is;
} may_cases[] = {
	{ "for its host", "v", "s", 15, true, false, true, true },
	{ "for its host, the policy is open", "v", "s", 15, true, false, false, true },
	{ "for all hosts", "v", NULL, 15, true, true, true, true },
	{ "of others", "v", "t", 15, true, false, true, false },
	{ "of others, the policy is open", "v", "t", 15, true, false, false, false },
	{ "of nobody", "v", NULL, 15, true, false, true, false },
	{ "off", "v", "s", 15, false, false, true, false },
	{ "off, for all hosts", "v", NULL, 15, false, true, false, false },
	{ "read only", "v", "s", 1, true, false, true, true },
	{ "without a mode", "v", "s", 0, true, false, true, false },
	{ "with a line's end in its name", "v\nw", "s", 15, true, false, true, false },
};

KUNIT_ARRAY_PARAM_DESC(may_cases, may_cases, desc);

static void volume_is_listed_if_it_can_be_opened(struct kunit *test)
{
	static const u8 rsp[56] = {
		7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* answer */
		0, 0, 0, 0, 0, 0, 0, 0, /* size */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, /* UUID */
		0, 1, 0, 0, 0, 0, 0, 0, 'v',
	};
	static const u8 none[16] = { 7 };
	const struct may_case *c = test->param_value;
	struct rnbd_srv_host *host = kunit_kzalloc(test, sizeof(*host), GFP_KERNEL);
	struct rnbd_srv_allow allow = { .host = host };
	struct list_test *t = list_test(test);
	struct rnbd_srv_volume *volume = add_volume(test, t, c->name);

	KUNIT_ASSERT_NOT_NULL(test, host);
	volume->modes = c->modes;
	volume->enabled = c->enabled;
	volume->allow_any_host = c->any_host;
	t->rules.listed = c->listed;
	if (c->host) {
		strscpy(host->sessions, c->host, sizeof(host->sessions));
		list_add(&allow.list, &volume->allowed);
	}
	KUNIT_EXPECT_EQ(test, fill(test, t, 4096, 0), 0);
	KUNIT_ASSERT_EQ(test, t->list.nr, c->is);
	KUNIT_ASSERT_EQ(test, t->list.len, c->is ? sizeof(rsp) : sizeof(none));
	if (c->is) {
		KUNIT_EXPECT_EQ(test, t->list.data[40], c->modes);
		t->list.data[40] = 0;
	}
	KUNIT_EXPECT_EQ(test, memcmp(t->list.data, c->is ? rsp : none, t->list.len), 0);
}

static void long_list_comes_in_parts(struct kunit *test)
{
	struct list_test *t = list_test(test);
	struct rnbd_srv_volume *second;
	char name[RNBD_NAME_LEN];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	add_volume(test, t, name);
	second = add_volume(test, t, name);
	add_volume(test, t, "hidden")->enabled = false;
	add_volume(test, t, "last");
	/* There is room for one of the longest names. */
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, 0), 10);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, 10), 20);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, 20), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);
	KUNIT_EXPECT_EQ(test, fill(test, t, 4096, 0), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 3);

	/* The volume at which a client continues may have been removed. */
	list_del(&second->list);
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, 20), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);
	/* Cursors that the server has not sent */
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, 15), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);
	KUNIT_EXPECT_EQ(test, fill(test, t, 304, U64_MAX), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 0);
}

static void list_passes_over_other_volumes(struct kunit *test)
{
	struct list_test *t = list_test(test);
	unsigned int i;

	for (i = 0; i <= RNBD_SRV_LIST_SCAN; i++)
		add_volume(test, t, "off")->enabled = false;
	KUNIT_EXPECT_EQ(test, fill(test, t, 4096, 0), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 0);
	add_volume(test, t, "on");
	KUNIT_EXPECT_EQ(test, fill(test, t, 4096, 0), 0);
	KUNIT_EXPECT_EQ(test, t->list.nr, 1);

	/* More short names than an answer has room for */
	for (i = 0; i < RNBD_SRV_LIST_VOLUMES; i++)
		add_volume(test, t, "v");
	KUNIT_EXPECT_EQ(test, fill(test, t, 4096, 0), t->nr - 10);
	KUNIT_EXPECT_EQ(test, t->list.nr, RNBD_SRV_LIST_VOLUMES);
}

static struct kunit_case rnbd_srv_list_cases[] = {
	KUNIT_CASE_PARAM(list_is_checked, msg_cases_gen_params),
	KUNIT_CASE_PARAM(volume_is_listed_if_it_can_be_opened, may_cases_gen_params),
	KUNIT_CASE(long_list_comes_in_parts),
	KUNIT_CASE(list_passes_over_other_volumes),
	{}
};

static struct kunit_suite rnbd_srv_list_suite = {
	.name = "rnbd-server-list",
	.test_cases = rnbd_srv_list_cases,
};

kunit_test_suite(rnbd_srv_list_suite);
