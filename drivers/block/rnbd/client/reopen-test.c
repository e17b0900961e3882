// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of what an errno means for a device that is opened again.
 */
#include <kunit/test.h>

#include "rnbd-clt.h"

static const struct refused_case {
	const char *desc;
	int err;
	bool refused;
} refused_cases[] = {
	{ "the session is lost again", -ECONNABORTED, false },
	{ "there is no path", -ENOTCONN, false },
	{ "memory is short", -ENOMEM, false },
	{ "no such device", -ENOENT, true },
	{ "not permitted", -EPERM, true },
	{ "no access", -EACCES, true },
	{ "somebody else has it", -EBUSY, true },
	{ "read only", -EROFS, true },
	{ "no device behind it", -ENXIO, true },
	{ "no disk", -ENOTBLK, true },
	{ "an I/O error", -EIO, true },
	{ "an answer that makes no sense", -EPROTO, true },
	{ "other blocks", -EINVAL, true },
	{ "mapped by another name", -EEXIST, true },
};

KUNIT_ARRAY_PARAM_DESC(refused_cases, refused_cases, desc);

static void errno_means_that_the_device_is_gone(struct kunit *test)
{
	const struct refused_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rnbd_clt_refused(c->err), c->refused);
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
