// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the conversion of a device's name to its path, and to the name of its state file.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/slab.h>

#include "../rnbd-srv.h"

static const struct path_case {
	const char *desc;
	const char *dir, *sessname, *path, *full;
} path_cases[] = {
	{ "of all", "/", "s", "/dev/sda", "///dev/sda" },
	{ "of a directory", "/srv", "s", "disk", "/srv/disk" },
	{ "deeper in a directory", "/srv", "s", "a/b/c", "/srv/a/b/c" },
	{ "of the session's directory", "/srv/%SESSNAME%", "s", "disk", "/srv/s/disk" },
	{ "the session's name twice", "/%SESSNAME%/%SESSNAME%x", "ab", "d", "/ab/abx/d" },
	{ "the session's name side by side", "/%SESSNAME%%SESSNAME%", "ab", "d", "/abab/d" },
	{ "a session that has the variable's name", "/srv/%SESSNAME%", "%SESSNAME%", "d",
	  "/srv/%SESSNAME%/d" },
	{ "a session with it in its name", "/%SESSNAME%/%SESSNAME%", "a%SESSNAME%", "d",
	  "/a%SESSNAME%/a%SESSNAME%/d" },
	{ "a session for printing", "/srv/%SESSNAME%", "%s%n", "d", "/srv/%s%n/d" },
	{ "half a variable", "/srv/%SESSNAME", "s", "d", "/srv/%SESSNAME/d" },
	{ "the variable in the client's path", "/srv", "s", "%SESSNAME%", "/srv/%SESSNAME%" },
	{ "no name", "/srv", "s", "", "/srv/" },
	{ "a dot", "/srv", "s", "./a/.", "/srv/./a/." },
	{ "three dots", "/srv", "s", ".../a", "/srv/.../a" },
	{ "dots at a name's end", "/srv", "s", "a../b", "/srv/a../b" },
	{ "dots at a name's beginning", "/srv", "s", "..a/b", "/srv/..a/b" },
	{ "two dots", "/srv", "s", "..", NULL },
	{ "two dots in front", "/srv", "s", "../a", NULL },
	{ "two dots behind a slash", "/srv", "s", "/..", NULL },
	{ "two dots behind slashes", "/srv", "s", "//..", NULL },
	{ "two dots at the end", "/srv", "s", "a/..", NULL },
	{ "two dots and a slash at the end", "/srv", "s", "a/../", NULL },
	{ "two dots in the middle", "/srv", "s", "a/../b", NULL },
	{ "two dots between slashes", "/srv", "s", "a//..//b", NULL },
	{ "two dots behind three", "/srv", "s", ".../..", NULL },
	{ "two dots behind one", "/srv", "s", "./..", NULL },
};

KUNIT_ARRAY_PARAM_DESC(path_cases, path_cases, desc);

static int path_init(struct kunit *test)
{
	test->priv = kstrdup(rnbd_srv_search_path, GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void path_exit(struct kunit *test)
{
	strscpy(rnbd_srv_search_path, test->priv, PATH_MAX);
	kfree(test->priv);
}

static void device_is_in_its_directory(struct kunit *test)
{
	const struct path_case *c = test->param_value;
	size_t len = strlen(c->sessname) + 1;
	struct rnbd_srv_sess *sess;
	char *full;

	sess = kunit_kzalloc(test, struct_size(sess, name, len), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	memcpy(sess->name, c->sessname, len);
	strscpy(rnbd_srv_search_path, c->dir, PATH_MAX);
	full = rnbd_srv_full_path(sess, c->path);
	if (!c->full) {
		KUNIT_EXPECT_PTR_EQ(test, full, (char *)ERR_PTR(-EINVAL));
	} else {
		KUNIT_ASSERT_FALSE(test, IS_ERR(full));
		KUNIT_EXPECT_STREQ(test, full, c->full);
	}
	if (!IS_ERR(full))
		kfree(full);
}

static const struct state_case {
	const char *desc;
	const char *path, *name;
} state_cases[] = {
	{ "a file", "/a", "!!a" },
	{ "a name with the replacement of a slash", "/a!b", "!!a\\x21b" },
	{ "a name that looks escaped", "/a\\x21b", "!!a\\x5cx21b" },
	{ "no such directory", "/no such directory/a", NULL },
};

KUNIT_ARRAY_PARAM_DESC(state_cases, state_cases, desc);

static void state_file_belongs_to_one_path(struct kunit *test)
{
	const struct state_case *c = test->param_value;
	char *name = rnbd_srv_state_name(c->path);

	if (!c->name) {
		KUNIT_EXPECT_PTR_EQ(test, name, (char *)ERR_PTR(-ENOENT));
		return;
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(name));
	KUNIT_EXPECT_STREQ(test, name, c->name);
	kfree(name);
}

/* Each escaped character takes four bytes. */
static void name_of_a_state_file_has_a_maximum(struct kunit *test)
{
	char path[NAME_MAX + 1] = "/", *name;

	memset(path + 1, 'a', NAME_MAX - 2);
	name = rnbd_srv_state_name(path);
	KUNIT_ASSERT_FALSE(test, IS_ERR(name));
	KUNIT_EXPECT_EQ(test, strlen(name), NAME_MAX);
	kfree(name);
	path[1] = '!';
	KUNIT_EXPECT_PTR_EQ(test, rnbd_srv_state_name(path), (char *)ERR_PTR(-ENAMETOOLONG));
}

static struct kunit_case rnbd_srv_path_cases[] = {
	KUNIT_CASE_PARAM(device_is_in_its_directory, path_cases_gen_params),
	KUNIT_CASE_PARAM(state_file_belongs_to_one_path, state_cases_gen_params),
	KUNIT_CASE(name_of_a_state_file_has_a_maximum),
	{}
};

static struct kunit_suite rnbd_srv_path_suite = {
	.name = "rnbd-server-path",
	.init = path_init,
	.exit = path_exit,
	.test_cases = rnbd_srv_path_cases,
};

kunit_test_suite(rnbd_srv_path_suite);
