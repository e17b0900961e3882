/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernels before 6.2 lack: <kunit/visibility.h>, as far as it is used here.
 */
#ifndef COMPAT_KUNIT_VISIBILITY_H
#define COMPAT_KUNIT_VISIBILITY_H

/* Static, but on kernels with KUnit, where unit tests call it from their own files. */
#if IS_ENABLED(CONFIG_KUNIT)
#define VISIBLE_IF_KUNIT
#else
#define VISIBLE_IF_KUNIT static
#endif

#endif /* COMPAT_KUNIT_VISIBILITY_H */
