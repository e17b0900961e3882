/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What older kernels lack in <linux/ns_common.h>. */
#ifndef COMPAT_LINUX_NS_COMMON_H
#define COMPAT_LINUX_NS_COMMON_H

#include_next <linux/ns_common.h>

/* Before 6.19 nobody knows whether there is somebody in a namespace. */
#ifndef ns_ref_active_read
#define ns_ref_active_read(ns)	((void)(ns), 1)
#endif

#endif /* COMPAT_LINUX_NS_COMMON_H */
