/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between kernels in <linux/device/class.h> */
#ifndef COMPAT_LINUX_DEVICE_CLASS_H
#define COMPAT_LINUX_DEVICE_CLASS_H

#include_next <linux/device/class.h>

/* Argument and return type of &class.namespace, and conversion of a network namespace to it */
#ifdef COMPAT_CLASS_NS_DEV
#define compat_class_dev	struct device
#else
#define compat_class_dev	const struct device
#endif
#ifdef COMPAT_CLASS_NS_VOID
#define compat_class_ns		const void
#define compat_class_netns(net)	((compat_class_ns *)(net))
#else
#define compat_class_ns		const struct ns_common
#define compat_class_netns(net)	to_ns_common(net)
#endif

#endif /* COMPAT_LINUX_DEVICE_CLASS_H */
