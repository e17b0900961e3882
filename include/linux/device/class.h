/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between kernels in <linux/device/class.h> */
#ifndef COMPAT_LINUX_DEVICE_CLASS_H
#define COMPAT_LINUX_DEVICE_CLASS_H

#include_next <linux/device/class.h>

/*
 * Before 7.1: class.namespace() returns a void pointer to the namespace; before 6.2, its device is
 * not const. This macro turns the driver's definition into two functions: one of the newest form,
 * and a wrapper that calls it.
 */
#ifdef COMPAT_CLASS_NS_VOID
#ifdef COMPAT_CLASS_NS_DEV
#define COMPAT_CLASS_DEV	struct device
#else
#define COMPAT_CLASS_DEV	const struct device
#endif

#define COMPAT_CLASS_NETNS(prefix, dev)						\
compat_##prefix##_netns(const struct device *);					\
static const void *prefix##_netns(COMPAT_CLASS_DEV *device)			\
{										\
	return container_of(compat_##prefix##_netns(device), struct net, ns);	\
}										\
static const struct ns_common *compat_##prefix##_netns(dev)

#define rtrs_clt_dev_netns(dev)	COMPAT_CLASS_NETNS(rtrs_clt_dev, dev)
#endif

#endif /* COMPAT_LINUX_DEVICE_CLASS_H */
