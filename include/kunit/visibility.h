/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels before 6.2 lack <kunit/visibility.h>. These are the parts in use. */
#ifndef COMPAT_KUNIT_VISIBILITY_H
#define COMPAT_KUNIT_VISIBILITY_H

/* Static, except on kernels with KUnit, where unit tests in other files call the function. */
#if IS_ENABLED(CONFIG_KUNIT)
#define VISIBLE_IF_KUNIT
#else
#define VISIBLE_IF_KUNIT static
#endif

#endif /* COMPAT_KUNIT_VISIBILITY_H */
