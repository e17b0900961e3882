/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that older kernels lack in <linux/nsproxy.h> or, since 6.18, <linux/ns_common.h> */
#ifndef COMPAT_LINUX_NSPROXY_H
#define COMPAT_LINUX_NSPROXY_H

#include_next <linux/nsproxy.h>
#include <linux/ns_common.h>

/* Before 6.11 */
#ifndef to_ns_common
#define to_ns_common(net)	(&(net)->ns)
#endif

#endif /* COMPAT_LINUX_NSPROXY_H */
