/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that older kernels lack in <linux/workqueue.h> */
#ifndef COMPAT_LINUX_WORKQUEUE_H
#define COMPAT_LINUX_WORKQUEUE_H

#include_next <linux/workqueue.h>

/* Before 6.18 */
#ifdef COMPAT_DFL_WQ
#define system_dfl_wq	system_unbound_wq
#define WQ_PERCPU	0
#endif

#endif /* COMPAT_LINUX_WORKQUEUE_H */
