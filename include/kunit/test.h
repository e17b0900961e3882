/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernels before 6.8 lack in <kunit/test.h>.
 */
#ifndef COMPAT_KUNIT_TEST_H
#define COMPAT_KUNIT_TEST_H

#include_next <kunit/test.h>

#ifndef KUNIT_ARRAY_PARAM_DESC
/* A case for each entry of a table, called what its member @desc_member says. */
#define KUNIT_ARRAY_PARAM_DESC(name, array, desc_member)		\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof((array)[0]) *entry = prev;				\
									\
	entry = entry ? entry + 1 : (array);				\
	if (entry == (array) + ARRAY_SIZE(array))			\
		return NULL;						\
	strscpy(desc, entry->desc_member, KUNIT_PARAM_DESC_SIZE);	\
	return entry;							\
}
#endif

#endif /* COMPAT_KUNIT_TEST_H */
