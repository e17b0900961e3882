/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory /sys/class/<class>/ctl of each module, with a subdirectory "devices".
 */
#ifndef RNBD_CTL_H
#define RNBD_CTL_H

#include <linux/device.h>
#include <linux/err.h>
#include <linux/kdev_t.h>
#include <linux/kobject.h>

/**
 * rnbd_add_ctl() - register a class and create its directories
 * @class: class of the module
 * @ctl: set to the device "ctl"
 * @devices: set to its subdirectory "devices"
 *
 * Return: 0 or a negative errno.
 */
static inline int rnbd_add_ctl(struct class *class, struct device **ctl, struct kobject **devices)
{
	int err = class_register(class);

	if (err)
		return err;
	*ctl = device_create(class, NULL, MKDEV(0, 0), NULL, "ctl");
	if (IS_ERR(*ctl)) {
		err = PTR_ERR(*ctl);
		goto unregister_class;
	}
	*devices = kobject_create_and_add("devices", &(*ctl)->kobj);
	if (*devices)
		return 0;
	err = -ENOMEM;
	device_unregister(*ctl);
unregister_class:
	class_unregister(class);
	return err;
}

/**
 * rnbd_del_ctl() - undo rnbd_add_ctl()
 * @class: class of the module
 * @ctl: the device "ctl"
 * @devices: its subdirectory "devices"
 */
static inline void rnbd_del_ctl(struct class *class, struct device *ctl, struct kobject *devices)
{
	kobject_put(devices);
	device_unregister(ctl);
	class_unregister(class);
}

#endif /* RNBD_CTL_H */
