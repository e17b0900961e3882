// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: /sys/class/rnbd-client/ctl, and the links to disks in ctl/devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include "rnbd-clt.h"

static struct class rnbd_clt_class = {
	.name = "rnbd-client",
};

/* ctl and ctl/devices, from rnbd_clt_add_ctl() to rnbd_clt_del_ctl() */
struct device *rnbd_clt_ctl;
static struct kobject *rnbd_clt_devices;

/**
 * rnbd_clt_add_ctl() - create the directory in sysfs for map_device and links to disks
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_add_ctl(void)
{
	int err;

	err = class_register(&rnbd_clt_class);
	if (err)
		return err;

	rnbd_clt_ctl = device_create(&rnbd_clt_class, NULL, MKDEV(0, 0), NULL,
				     "ctl");
	if (IS_ERR(rnbd_clt_ctl)) {
		err = PTR_ERR(rnbd_clt_ctl);
		goto unregister_class;
	}

	err = -ENOMEM;
	rnbd_clt_devices = kobject_create_and_add("devices",
						  &rnbd_clt_ctl->kobj);
	if (!rnbd_clt_devices)
		goto unregister_ctl;
	return 0;

unregister_ctl:
	device_unregister(rnbd_clt_ctl);
unregister_class:
	class_unregister(&rnbd_clt_class);
	return err;
}

/**
 * rnbd_clt_del_ctl() - undo rnbd_clt_add_ctl()
 */
void rnbd_clt_del_ctl(void)
{
	kobject_put(rnbd_clt_devices);
	device_unregister(rnbd_clt_ctl);
	class_unregister(&rnbd_clt_class);
}

/**
 * rnbd_clt_dev_link() - create the link to a device's disk
 * @dev: device whose disk has been added
 *
 * Return: 0, or a negative errno; -EEXIST if another device has the same link, because the names
 * differ only in ! and /.
 */
int rnbd_clt_dev_link(struct rnbd_clt_dev *dev)
{
	return sysfs_create_link_nowarn(rnbd_clt_devices,
					&disk_to_dev(dev->disk)->kobj, dev->link);
}

/**
 * rnbd_clt_dev_unlink() - remove the link to a device's disk
 * @dev: device
 */
void rnbd_clt_dev_unlink(struct rnbd_clt_dev *dev)
{
	sysfs_remove_link(rnbd_clt_devices, dev->link);
}
