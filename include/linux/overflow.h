/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that older kernels lack in <linux/overflow.h> */
#ifndef COMPAT_LINUX_OVERFLOW_H
#define COMPAT_LINUX_OVERFLOW_H

#include_next <linux/overflow.h>

#ifndef struct_size_t
#define struct_size_t(type, member, count)	\
	struct_size((type *)NULL, member, count)
#endif

#endif /* COMPAT_LINUX_OVERFLOW_H */
