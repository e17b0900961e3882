/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that kernels before 6.8 lack in <kunit/test.h> */
#ifndef COMPAT_KUNIT_TEST_H
#define COMPAT_KUNIT_TEST_H

#include_next <kunit/test.h>

#ifndef KUNIT_ARRAY_PARAM_DESC
static inline const void *
compat_next_param(const void *array, size_t size, const void *end,
		  size_t desc_offset, const void *prev, char *desc)
{
	const void *next = prev ? prev + size : array;
	const char * const *name = next + desc_offset;

	if (next == end)
		return NULL;
	strscpy(desc, *name, KUNIT_PARAM_DESC_SIZE);
	return next;
}

/* Generates a test case for each entry of a table, named by a member of the entry. */
#define KUNIT_ARRAY_PARAM_DESC(name, array, desc_member)		\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof(array) *table = &(array);				\
									\
	return compat_next_param(*table, sizeof(**table),		\
				 *table + ARRAY_SIZE(*table),		\
				 offsetof(typeof(**table), desc_member), \
				 prev, desc);				\
}
#endif

#endif /* COMPAT_KUNIT_TEST_H */
