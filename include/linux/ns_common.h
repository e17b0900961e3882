/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that older kernels lack in <linux/ns_common.h> */
#ifndef COMPAT_LINUX_NS_COMMON_H
#define COMPAT_LINUX_NS_COMMON_H

#include_next <linux/ns_common.h>

/* Before 6.19: namespaces have no active count, so each one counts as active. */
#ifndef ns_ref_active_read
#define ns_ref_active_read(ns)	((void)(ns), 1)
#endif

#endif /* COMPAT_LINUX_NS_COMMON_H */
