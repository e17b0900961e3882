// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: files in sysfs. /sys/class/rnbd-client/ctl maps devices,
 * /sys/block/rnbd<N>/rnbd is about one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "rnbd-clt.h"

static struct class rnbd_clt_class = {
	.name = "rnbd-client",
};

/* ctl, from rnbd_clt_add_ctl() to rnbd_clt_del_ctl(), and ctl/devices. */
static struct device *rnbd_clt_ctl;
static struct kobject *rnbd_clt_devices;

/* Removing an attribute waits for its users, so a user finds the device there. */
static struct rnbd_clt_dev *to_dev(struct device *disk)
{
	return dev_to_disk(disk)->private_data;
}

static ssize_t state_show(struct device *disk, struct device_attribute *attr,
			  char *buf)
{
	static const char * const names[] = {
		[RNBD_DEV_INIT] = "init",
		[RNBD_DEV_OPEN] = "open",
		[RNBD_DEV_CLOSED] = "closed",
		[RNBD_DEV_GONE] = "closed",
		[RNBD_DEV_REVOKED] = "closed",
		[RNBD_DEV_UNMAPPED] = "unmapped",
	};

	return sysfs_emit(buf, "%s\n", names[READ_ONCE(to_dev(disk)->state)]);
}

static DEVICE_ATTR_RO(state);

static ssize_t session_show(struct device *disk, struct device_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", to_dev(disk)->sess->name);
}

static DEVICE_ATTR_RO(session);

static ssize_t mapping_path_show(struct device *disk, struct device_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "%s\n", to_dev(disk)->path);
}

static DEVICE_ATTR_RO(mapping_path);

static ssize_t access_mode_show(struct device *disk, struct device_attribute *attr,
				char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  rnbd_clt_access_names[to_dev(disk)->access_mode]);
}

static DEVICE_ATTR_RO(access_mode);

static ssize_t nr_poll_queues_show(struct device *disk, struct device_attribute *attr,
				   char *buf)
{
	return sysfs_emit(buf, "%d\n", to_dev(disk)->nr_poll_queues);
}

static DEVICE_ATTR_RO(nr_poll_queues);

static ssize_t unmap_device_show(struct device *disk, struct device_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "Usage: echo <normal|force> > %s\n",
			  attr->attr.name);
}

static ssize_t unmap_device_store(struct device *disk,
				  struct device_attribute *attr, const char *buf,
				  size_t count)
{
	struct rnbd_clt_dev *dev = to_dev(disk);
	bool force = sysfs_streq(buf, "force");
	int err;

	if (!force && !sysfs_streq(buf, "normal")) {
		pr_err("unmap_device: neither normal nor force\n");
		return -EINVAL;
	}
	/* Unloading removes what nobody else is removing. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = rnbd_clt_dev_claim(dev, force);
	if (!err)
		rnbd_clt_dev_unmap(dev, force);
	module_put(THIS_MODULE);
	return err ?: count;
}

static DEVICE_ATTR_RW(unmap_device);

static ssize_t remap_device_show(struct device *disk, struct device_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "Usage: echo <1> > %s\n", attr->attr.name);
}

static ssize_t remap_device_store(struct device *disk,
				  struct device_attribute *attr, const char *buf,
				  size_t count)
{
	int err;

	if (!sysfs_streq(buf, "1")) {
		pr_err("remap_device: not 1\n");
		return -EINVAL;
	}
	err = rnbd_clt_dev_remap(to_dev(disk));
	return err ?: count;
}

static DEVICE_ATTR_RW(remap_device);

static ssize_t resize_show(struct device *disk, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "Usage: echo <sectors of 512 bytes, 0: the server's> > %s\n",
			  attr->attr.name);
}

static ssize_t resize_store(struct device *disk,
			    struct device_attribute *attr, const char *buf,
			    size_t count)
{
	struct rnbd_clt_dev *dev = to_dev(disk);
	u64 sectors;
	int err;

	if (kstrtou64(buf, 10, &sectors) || !rnbd_clt_nsectors_ok(sectors)) {
		pr_err("resize: not a number of sectors that a disk can have\n");
		return -EINVAL;
	}
	if (!sectors) {
		err = rnbd_clt_dev_follow_size(dev);
		return err ?: count;
	}
	set_capacity_and_notify(dev->disk, sectors);
	return count;
}

static DEVICE_ATTR_RW(resize);

static struct attribute *rnbd_clt_dev_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_session.attr,
	&dev_attr_mapping_path.attr,
	&dev_attr_access_mode.attr,
	&dev_attr_nr_poll_queues.attr,
	&dev_attr_remap_device.attr,
	&dev_attr_resize.attr,
	&dev_attr_unmap_device.attr,
	NULL
};

static const struct attribute_group rnbd_clt_dev_group = {
	.name = "rnbd",
	.attrs = rnbd_clt_dev_attrs,
};

/* They come and go with the disk: they are there before udev hears of it. */
const struct attribute_group *rnbd_clt_dev_groups[] = {
	&rnbd_clt_dev_group,
	NULL
};

/* Return: "state" of a disk, with a reference; NULL if there's none. */
static struct kernfs_node *rnbd_clt_find_state(struct kobject *disk)
{
	struct kernfs_node *dir, *kn;

	dir = sysfs_get_dirent(disk->sd, rnbd_clt_dev_group.name);
	if (!dir)
		return NULL;
	kn = sysfs_get_dirent(dir, dev_attr_state.attr.name);
	sysfs_put(dir);
	return kn;
}

/**
 * rnbd_clt_dev_show() - show that a device is mapped
 * @dev: device whose disk has been added
 *
 * Afterwards anybody may unmap the device, so the caller doesn't touch it after success.
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_dev_show(struct rnbd_clt_dev *dev)
{
	struct kobject *disk = &disk_to_dev(dev->disk)->kobj;
	struct kernfs_node *kn;
	int err;

	kn = rnbd_clt_find_state(disk);
	if (!kn)
		return -ENOENT;
	/* Two names that differ in ! and / only make the same link. */
	err = sysfs_create_link_nowarn(rnbd_clt_devices, disk, dev->link);
	if (err) {
		sysfs_put(kn);
		return err;
	}
	rnbd_clt_dev_tell_state(dev, kn);
	return 0;
}

/**
 * rnbd_clt_dev_hide() - undo rnbd_clt_dev_show()
 * @dev: device
 */
void rnbd_clt_dev_hide(struct rnbd_clt_dev *dev)
{
	sysfs_remove_link(rnbd_clt_devices, dev->link);
}

static ssize_t map_device_show(struct device *ctl,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf,
			  "Usage: echo \"sessname=NAME path=[SRC,]DST [path=...] device_path=PATH [access_mode=ro|rw|migration] [dest_port=N] [nr_poll_queues=N]\" > %s\n",
			  attr->attr.name);
}

static ssize_t map_device_store(struct device *ctl,
				struct device_attribute *attr, const char *buf,
				size_t count)
{
	struct rnbd_clt_map_opts *opts;
	char *line;
	int err;

	/* A page is what a write is cut down to. */
	if (count >= PAGE_SIZE || strlen(buf) != count) {
		pr_err("map_device: more than a page, or a NUL in it\n");
		return -EINVAL;
	}

	opts = kvzalloc(sizeof(*opts), GFP_KERNEL);
	line = kstrdup(buf, GFP_KERNEL);
	err = -ENOMEM;
	if (opts && line)
		err = rnbd_clt_parse(line, opts);
	if (!err)
		err = rnbd_clt_dev_map(opts);
	kfree(line);
	kvfree(opts);
	return err ?: count;
}

static DEVICE_ATTR_RW(map_device);

/**
 * rnbd_clt_add_ctl() - make the directory in sysfs that maps devices
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

	err = device_create_file(rnbd_clt_ctl, &dev_attr_map_device);
	if (err)
		goto put_devices;
	return 0;

put_devices:
	kobject_put(rnbd_clt_devices);
unregister_ctl:
	device_unregister(rnbd_clt_ctl);
unregister_class:
	class_unregister(&rnbd_clt_class);
	return err;
}

/**
 * rnbd_clt_stop_mapping() - nothing is mapped any more when this returns
 */
void rnbd_clt_stop_mapping(void)
{
	device_remove_file(rnbd_clt_ctl, &dev_attr_map_device);
}

/**
 * rnbd_clt_del_ctl() - undo rnbd_clt_add_ctl(), after rnbd_clt_stop_mapping()
 */
void rnbd_clt_del_ctl(void)
{
	kobject_put(rnbd_clt_devices);
	device_unregister(rnbd_clt_ctl);
	class_unregister(&rnbd_clt_class);
}
