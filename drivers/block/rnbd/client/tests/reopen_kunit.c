// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of errnos of a failure to reopen a device.
 */
#include <kunit/test.h>

#include "../rnbd-clt.h"

/* Whether I/O must fail: @refused: while it may wait for a booting server; @later: after that */
static const struct refused_case {
	const char *desc;
	int err;
	bool refused, later;
} refused_cases[] = {
	{ "the session is lost again", -ECONNABORTED, false, false },
	{ "there has been no path for too long", -EHOSTUNREACH, false, true },
	{ "there is no path", -ENOTCONN, false, true },
	{ "memory is short", -ENOMEM, false, true },
	{ "no such device", -ENOENT, false, true },
	{ "not permitted", -EPERM, true, true },
	{ "no access", -EACCES, true, true },
	{ "somebody else has it", -EBUSY, false, true },
	{ "read only for now", -EROFS, false, true },
	{ "no medium", -ENOMEDIUM, false, true },
	{ "a medium that cannot be used for now", -EMEDIUMTYPE, false, true },
	{ "no device behind it", -ENXIO, false, true },
	{ "no driver for it", -ENODEV, false, true },
	{ "no disk", -ENOTBLK, true, true },
	{ "an I/O error", -EIO, true, true },
	{ "an answer that makes no sense", -EPROTO, true, true },
	{ "other blocks", -EINVAL, true, true },
	{ "mapped by another name", -EEXIST, true, true },
};

KUNIT_ARRAY_PARAM_DESC(refused_cases, refused_cases, desc);

static void errno_means_that_the_device_is_gone(struct kunit *test)
{
	const struct refused_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rnbd_clt_refused(c->err, true), c->refused);
	KUNIT_EXPECT_EQ(test, rnbd_clt_refused(c->err, false), c->later);
}

static struct kunit_case rnbd_clt_reopen_cases[] = {
	KUNIT_CASE_PARAM(errno_means_that_the_device_is_gone, refused_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_clt_reopen_suite = {
	.name = "rnbd-client-reopen",
	.test_cases = rnbd_clt_reopen_cases,
};

kunit_test_suite(rnbd_clt_reopen_suite);
