/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between kernels in <linux/device/class.h>. */
#ifndef COMPAT_LINUX_DEVICE_CLASS_H
#define COMPAT_LINUX_DEVICE_CLASS_H

#include_next <linux/device/class.h>

/* Makes &class.namespace, of a class whose devices are in network namespaces: @net is that of @dev. */
#ifdef COMPAT_CLASS_NS_DEV
#define DEFINE_CLASS_NETNS(name, dev, net)			\
	static const void *name(struct device *dev) { return net; }
#elif defined(COMPAT_CLASS_NS_VOID)
#define DEFINE_CLASS_NETNS(name, dev, net)			\
	static const void *name(const struct device *dev) { return net; }
#else
#define DEFINE_CLASS_NETNS(name, dev, net)			\
	static const struct ns_common *name(const struct device *dev) { return to_ns_common(net); }
#endif

#endif /* COMPAT_LINUX_DEVICE_CLASS_H */
