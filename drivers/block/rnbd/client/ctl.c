// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: /sys/class/rnbd-client/ctl, and the links to disks in ctl/devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/sysfs.h>

#include "../common/rnbd-ctl.h"
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
	return rnbd_add_ctl(&rnbd_clt_class, &rnbd_clt_ctl, &rnbd_clt_devices);
}

/**
 * rnbd_clt_del_ctl() - undo rnbd_clt_add_ctl()
 */
void rnbd_clt_del_ctl(void)
{
	rnbd_del_ctl(&rnbd_clt_class, rnbd_clt_ctl, rnbd_clt_devices);
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
