// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the parser of map_device.
 */
#include <kunit/test.h>
#include <net/net_namespace.h>

#include "../rnbd-clt.h"

#define RO	RNBD_ACCESS_RO
#define RW	RNBD_ACCESS_RW
#define MIG	RNBD_ACCESS_MIGRATION

#define EACH_CPU	UINT_MAX

/* @first: the first of @nr_paths, formatted as in sysfs */
static const struct line_case {
	const char *desc;
	const char *line;
	const char *sessname, *dev_path;
	enum rnbd_access_mode mode;
	u16 port;
	unsigned int nr_paths;
	const char *first;
	unsigned int nr_settings;
	unsigned int nr_queues;
	bool poll_given;
	unsigned int nr_poll_queues;
	unsigned int queue_depth;
} line_cases[] = {
	{ "the usual", "sessname=s path=ip:10.0.0.1 device_path=/dev/sda",
	  "s", "/dev/sda", RW, 1234, 1, "ip:10.0.0.1" },
	{ "an open session", "sessname=s device_path=/dev/sda", "s", "/dev/sda", RW, 1234, 0 },
	{ "backwards", "device_path=/dev/sda path=gid:fe80::1 sessname=s",
	  "s", "/dev/sda", RW, 1234, 1, "gid:fe80:0000:0000:0000:0000:0000:0000:0001" },
	{ "a line's end", "sessname=s device_path=d\n", "s", "d", RW, 1234, 0 },
	{ "spaces all around", "  sessname=s \t\t device_path=d\n\n ", "s", "d", RW, 1234, 0 },
	{ "tabs in between", "sessname=s\tdevice_path=d", "s", "d", RW, 1234, 0 },
	{ "lines in between", "sessname=s\ndevice_path=d", "s", "d", RW, 1234, 0 },
	{ "read only", "sessname=s device_path=d access_mode=ro", "s", "d", RO, 1234, 0 },
	{ "read and write", "sessname=s device_path=d access_mode=rw", "s", "d", RW, 1234, 0 },
	{ "migration", "access_mode=migration sessname=s device_path=d", "s", "d", MIG, 1234, 0 },
	{ "handover", "access_mode=handover sessname=s device_path=d", "s", "d",
	  RNBD_ACCESS_HANDOVER, 1234, 0 },
	{ "a port", "sessname=s path=ip:10.0.0.1 device_path=d dest_port=4321",
	  "s", "d", RW, 4321, 1, "ip:10.0.0.1" },
	{ "a port before the path", "dest_port=1 sessname=s path=ip:10.0.0.1 device_path=d",
	  "s", "d", RW, 1, 1, "ip:10.0.0.1" },
	{ "the last port", "sessname=s path=ip:10.0.0.1 device_path=d dest_port=65535",
	  "s", "d", RW, 65535, 1, "ip:10.0.0.1" },
	{ "three paths",
	  "sessname=s path=ip:1.1.1.1,ip:2.2.2.2 path=ip:3.3.3.3 device_path=d path=ip:::1",
	  "s", "d", RW, 1234, 3, "ip:1.1.1.1@ip:2.2.2.2" },
	{ "the same path twice", "sessname=s path=ip:1.1.1.1 path=ip:1.1.1.1 device_path=d",
	  "s", "d", RW, 1234, 2, "ip:1.1.1.1" },
	{ "no poll queues", "sessname=s device_path=d nr_poll_queues=0", "s", "d", RW, 1234, 0,
	  .poll_given = true },
	{ "a poll queue for each CPU", "sessname=s device_path=d nr_poll_queues=-1",
	  "s", "d", RW, 1234, 0, .poll_given = true, .nr_poll_queues = EACH_CPU },
	{ "one poll queue", "sessname=s device_path=d nr_poll_queues=1", "s", "d", RW, 1234, 0,
	  .poll_given = true, .nr_poll_queues = 1 },
	{ "one queue", "sessname=s device_path=d nr_queues=1", "s", "d", RW, 1234, 0, NULL, 0, 1 },
	{ "one request in flight", "sessname=s device_path=d queue_depth=1", "s", "d", RW, 1234, 0,
	  .queue_depth = 1 },
	{ "as many as there may be", "sessname=s device_path=d queue_depth=4096", "s", "d", RW,
	  1234, 0, .queue_depth = 4096 },
	{ "signs in names", "sessname=a=b@c device_path=x=y,z", "a=b@c", "x=y,z", RW, 1234, 0 },
	{ "a percent sign for printing", "sessname=%s%n device_path=%p", "%s%n", "%p", RW, 1234,
	  0 },
	{ "a device called like an option", "sessname=s device_path=sessname=t",
	  "s", "sessname=t", RW, 1234, 0 },
	{ "a setting", "sessname=s device_path=d failover_timeout=-1", "s", "d", RW, 1234, 0,
	  NULL, 1 },
	{ "all settings",
	  "mp_policy=rr failover_timeout=0 hb_interval_ms=10 sessname=s hb_max_missed=1 device_path=d reconnect_delay_ms=1 reconnect_delay_max_ms=1 max_reconnect_attempts=0 unfenced_delay_ms=0",
	  "s", "d", RW, 1234, 0, NULL, 8 },
};

KUNIT_ARRAY_PARAM_DESC(line_cases, line_cases, desc);

/* Parse a copy of the line, of its exact length: KASAN detects accesses beyond it. */
static int parse(struct kunit *test, const char *line, struct rnbd_clt_map_opts **opts)
{
	char *copy = kunit_kzalloc(test, strlen(line) + 1, GFP_KERNEL);

	*opts = kunit_kzalloc(test, sizeof(**opts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *opts);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, line, strlen(line));
	(*opts)->net = &init_net;
	return rnbd_clt_parse(copy, *opts);
}

static void line_is_read(struct kunit *test)
{
	const struct line_case *c = test->param_value;
	struct rnbd_clt_map_opts *opts;
	struct rtrs_addr again;
	char shown[RTRS_PATH_STR_LEN];

	if (IS_ENABLED(CONFIG_PREEMPT_RT) && c->nr_poll_queues) {
		KUNIT_EXPECT_EQ(test, parse(test, c->line, &opts), -EOPNOTSUPP);
		return;
	}
	KUNIT_ASSERT_EQ(test, parse(test, c->line, &opts), 0);
	KUNIT_EXPECT_STREQ(test, opts->sessname, c->sessname);
	KUNIT_EXPECT_STREQ(test, opts->dev_path, c->dev_path);
	KUNIT_EXPECT_EQ(test, opts->access_mode, c->mode);
	KUNIT_EXPECT_EQ(test, opts->port, c->port);
	KUNIT_EXPECT_EQ(test, opts->nr_settings, c->nr_settings);
	KUNIT_EXPECT_EQ(test, opts->nr_queues, c->nr_queues);
	KUNIT_EXPECT_EQ(test, opts->poll_given, c->poll_given);
	KUNIT_EXPECT_EQ(test, opts->nr_poll_queues,
			c->nr_poll_queues == EACH_CPU ?
			min_t(unsigned int, num_online_cpus(), RNBD_CLT_MAX_QUEUES) :
			c->nr_poll_queues);
	KUNIT_EXPECT_EQ(test, opts->queue_depth, c->queue_depth);
	KUNIT_ASSERT_EQ(test, opts->nr_paths, c->nr_paths);
	if (!c->nr_paths)
		return;
	rtrs_addr_format(&opts->paths[0], shown, sizeof(shown));
	KUNIT_EXPECT_STREQ(test, shown, c->first);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->first, c->port, &again), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&opts->paths[0], &again, sizeof(again)), 0);
}

static const struct bad_case {
	const char *desc;
	const char *line;
} bad_cases[] = {
	{ "nothing", "" },
	{ "a line's end", "\n" },
	{ "spaces", " \t " },
	{ "no session", "device_path=d" },
	{ "no device", "sessname=s path=ip:10.0.0.1" },
	{ "neither", "path=ip:10.0.0.1" },
	{ "a session without a name", "sessname= device_path=d" },
	{ "a device without a name", "sessname=s device_path=" },
	{ "an option without a value", "sessname=s device_path=d access_mode" },
	{ "an unknown option", "sessname=s device_path=d queue_size=1" },
	{ "an option in capitals", "SESSNAME=s device_path=d" },
	{ "half an option", "sess=s device_path=d" },
	{ "an option and more", "sessnames=s device_path=d" },
	{ "a word", "sessname=s device_path=d now" },
	{ "spaces around the sign", "sessname = s device_path=d" },
	{ "quotes around spaces", "sessname=\"a b\" device_path=d" },
	{ "commas in between", "sessname=s,device_path=d" },
	{ "two sessions", "sessname=s sessname=t device_path=d" },
	{ "the same session twice", "sessname=s sessname=s device_path=d" },
	{ "two devices", "sessname=s device_path=d device_path=e" },
	{ "two modes", "sessname=s device_path=d access_mode=ro access_mode=rw" },
	{ "two ports", "sessname=s device_path=d dest_port=1 dest_port=2" },
	{ "queues twice", "sessname=s device_path=d nr_queues=1 nr_queues=1" },
	{ "poll queues twice", "sessname=s device_path=d nr_poll_queues=0 nr_poll_queues=0" },
	{ "a session with a slash", "sessname=a/b device_path=d" },
	{ "a session with a dot", "sessname=a.b device_path=d" },
	{ "an unknown mode", "sessname=s device_path=d access_mode=wo" },
	{ "a mode in capitals", "sessname=s device_path=d access_mode=RW" },
	{ "a mode and more", "sessname=s device_path=d access_mode=rwx" },
	{ "half a mode", "sessname=s device_path=d access_mode=r" },
	{ "port 0", "sessname=s device_path=d dest_port=0" },
	{ "port 65536", "sessname=s device_path=d dest_port=65536" },
	{ "port -1", "sessname=s device_path=d dest_port=-1" },
	{ "a port beyond 64 bits", "sessname=s device_path=d dest_port=18446744073709552850" },
	{ "a port in hexadecimal", "sessname=s device_path=d dest_port=0x4d2" },
	{ "a port and more", "sessname=s device_path=d dest_port=1234a" },
	{ "a port by name", "sessname=s device_path=d dest_port=http" },
	{ "no queues", "sessname=s device_path=d nr_queues=0" },
	{ "-1 queues", "sessname=s device_path=d nr_queues=-1" },
	{ "more queues than there may be", "sessname=s device_path=d nr_queues=65" },
	{ "queues beyond 32 bits", "sessname=s device_path=d nr_queues=4294967297" },
	{ "no requests in flight", "sessname=s device_path=d queue_depth=0" },
	{ "-1 requests in flight", "sessname=s device_path=d queue_depth=-1" },
	{ "more than there may be", "sessname=s device_path=d queue_depth=4097" },
	{ "a depth beyond 32 bits", "sessname=s device_path=d queue_depth=4294967297" },
	{ "depth twice", "sessname=s device_path=d queue_depth=1 queue_depth=1" },
	{ "-2 poll queues", "sessname=s device_path=d nr_poll_queues=-2" },
	{ "more poll queues than there may be", "sessname=s device_path=d nr_poll_queues=65" },
	{ "poll queues beyond 32 bits", "sessname=s device_path=d nr_poll_queues=4294967297" },
	{ "a path of no kind", "sessname=s device_path=d path=10.0.0.1" },
	{ "a path without a value", "sessname=s device_path=d path=" },
	{ "the second path is bad", "sessname=s device_path=d path=ip:1.1.1.1 path=ip:1" },
	{ "a path of two families", "sessname=s device_path=d path=ip:1.1.1.1,ip:fd00::1" },
	{ "a setting beyond its limits", "sessname=s device_path=d hb_max_missed=0" },
	{ "a setting of letters", "sessname=s device_path=d failover_timeout=x" },
	{ "a setting and more", "sessname=s device_path=d failover_timeout=1s" },
	{ "a setting without a value", "sessname=s device_path=d failover_timeout=" },
	{ "a setting alone", "sessname=s device_path=d failover_timeout" },
	{ "an unknown policy", "sessname=s device_path=d mp_policy=best" },
	{ "a setting twice", "sessname=s device_path=d hb_max_missed=1 hb_max_missed=1" },
	{ "an attribute that is no setting", "sessname=s device_path=d add_path=ip:1.1.1.1" },
	{ "a control character", "sessname=s device_path=d\x01" },
	{ "a carriage return", "sessname=s device_path=d\r\n" },
	{ "a vertical tab", "sessname=s device_path=d\ve" },
	{ "a form feed in between", "sessname=s\fdevice_path=d device_path=d" },
	{ "an escape", "sessname=s device_path=\x1b[2J" },
	{ "the last control character", "sessname=s device_path=d\x7f" },
	{ "a byte above ASCII that can't be printed", "sessname=s device_path=d\x80" },
	{ "a byte above ASCII that Latin-1 prints", "sessname=s device_path=d\xe4" },
};

KUNIT_ARRAY_PARAM_DESC(bad_cases, bad_cases, desc);

static void line_is_refused(struct kunit *test)
{
	const struct bad_case *c = test->param_value;
	struct rnbd_clt_map_opts *opts;

	KUNIT_EXPECT_EQ(test, parse(test, c->line, &opts), -EINVAL);
}

/* Parse a line of @begin and @count times @word. */
static int parse_many(struct kunit *test, const char *begin, const char *word, int count,
		      struct rnbd_clt_map_opts **opts)
{
	size_t size = strlen(begin) + count * strlen(word) + 1;
	char *line = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, line);
	strscpy(line, begin, size);
	while (count--)
		strcat(line, word);
	return parse(test, line, opts);
}

static const struct many_case {
	const char *desc;
	int ret;
	const char *begin, *word;
	int count;
} many_cases[] = {
	{ "128 paths", 0, "sessname=s device_path=d", " path=ip:1.1.1.1", 128 },
	{ "129 paths", -EINVAL, "sessname=s device_path=d", " path=ip:1.1.1.1", 129 },
	{ "a session's name of 253 characters", 0, "device_path=d sessname=", "n", 253 },
	{ "a session's name of 254 characters", -ENAMETOOLONG, "device_path=d sessname=", "n",
	  254 },
	{ "a session's name of 255 characters", -EINVAL, "device_path=d sessname=", "n", 255 },
	{ "a device's name of 253 characters", 0, "sessname=s device_path=", "n", 253 },
	{ "a device's name of 254 characters", -ENAMETOOLONG, "sessname=s device_path=", "n",
	  254 },
	{ "a device's name of 255 characters", -EINVAL, "sessname=s device_path=", "n", 255 },
	{ "a device's name of 4000 characters", -EINVAL, "sessname=s device_path=", "n", 4000 },
	{ "a path of 4000 characters", -EINVAL, "sessname=s device_path=d path=ip:", "1", 4000 },
	{ "a mode of 4000 characters", -EINVAL, "sessname=s device_path=d access_mode=", "r",
	  4000 },
	{ "a word of 4000 characters", -EINVAL, "sessname=s device_path=d ", "n", 4000 },
	{ "4000 spaces", 0, "sessname=s device_path=d", " ", 4000 },
};

KUNIT_ARRAY_PARAM_DESC(many_cases, many_cases, desc);

static void line_has_as_much_as_may_be(struct kunit *test)
{
	const struct many_case *c = test->param_value;
	struct rnbd_clt_map_opts *opts;

	KUNIT_EXPECT_EQ(test, parse_many(test, c->begin, c->word, c->count, &opts), c->ret);
}

/* Labels, which the log and links to disks contain, are unique among all namespaces. */
static void session_of_another_namespace_has_its_own_label(struct kunit *test)
{
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rnbd_clt_map_opts *opts = kunit_kzalloc(test, sizeof(*opts), GFP_KERNEL);
	char line[320] = "sessname=s device_path=d path=ip:10.0.0.1";

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_NOT_NULL(test, opts);
	other->ns.inum = 4026532207U;
	opts->net = other;
	KUNIT_ASSERT_EQ(test, rnbd_clt_parse(line, opts), 0);
	KUNIT_EXPECT_STREQ(test, opts->sessname, "s");
	KUNIT_EXPECT_STREQ(test, opts->label, "s.4026532207");

	/* The namespace's number makes the name of the link one character too long. */
	memset(opts, 0, sizeof(*opts));
	opts->net = other;
	snprintf(line, sizeof(line), "sessname=s device_path=%0*d", 255 - 12, 0);
	KUNIT_EXPECT_EQ(test, rnbd_clt_parse(line, opts), -ENAMETOOLONG);
	memset(opts, 0, sizeof(*opts));
	opts->net = other;
	snprintf(line, sizeof(line), "sessname=s device_path=%0*d", 255 - 13, 0);
	KUNIT_EXPECT_EQ(test, rnbd_clt_parse(line, opts), 0);

	memset(opts, 0, sizeof(*opts));
	opts->net = other;
	strscpy(line, "sessname=s device_path=d path=gid:fe80::1", sizeof(line));
	KUNIT_EXPECT_EQ(test, rnbd_clt_parse(line, opts), -EADDRNOTAVAIL);
}

static struct kunit_case rnbd_clt_map_cases[] = {
	KUNIT_CASE_PARAM(line_is_read, line_cases_gen_params),
	KUNIT_CASE_PARAM(line_is_refused, bad_cases_gen_params),
	KUNIT_CASE_PARAM(line_has_as_much_as_may_be, many_cases_gen_params),
	KUNIT_CASE(session_of_another_namespace_has_its_own_label),
	{}
};

static struct kunit_suite rnbd_clt_map_suite = {
	.name = "rnbd-client-map",
	.test_cases = rnbd_clt_map_cases,
};

kunit_test_suite(rnbd_clt_map_suite);
