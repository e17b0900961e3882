// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: attributes. /sys/class/rnbd-client/ctl/map_device maps devices;
 * /sys/block/rnbd<N>/rnbd has the attributes of a device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

/* The device exists, since removing an attribute waits for its users. */
static struct rnbd_clt_dev *to_dev(struct device *disk)
{
	return dev_to_disk(disk)->private_data;
}

/* Define an attribute that shows a value of the device @dev. */
#define RNBD_CLT_ATTR(name, fmt, val)						\
static ssize_t name##_show(struct device *disk, struct device_attribute *attr,	\
			   char *buf)						\
{										\
	const struct rnbd_clt_dev *dev = to_dev(disk);				\
										\
	return sysfs_emit(buf, fmt "\n", (val));				\
}										\
static DEVICE_ATTR_RO(name)

RNBD_CLT_ATTR(session, "%s", dev->sess->name);
RNBD_CLT_ATTR(mapping_path, "%s", dev->path);
RNBD_CLT_ATTR(access_mode, "%s", rnbd_clt_access_names[dev->access_mode]);
RNBD_CLT_ATTR(nr_poll_queues, "%u", dev->sess->limits.nr_poll_queues);
RNBD_CLT_ATTR(server_sectors, "%llu", READ_ONCE(dev->nsectors));

static ssize_t state_show(struct device *disk, struct device_attribute *attr, char *buf)
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

/* An empty line stands for the reader's own namespace. */
static ssize_t netns_show(struct device *disk, struct device_attribute *attr, char *buf)
{
	const struct net *net = to_dev(disk)->sess->net;

	if (net_eq(net, current->nsproxy->net_ns))
		return sysfs_emit(buf, "\n");
	return sysfs_emit(buf, "%u\n", net->ns.inum);
}

static DEVICE_ATTR_RO(netns);

static ssize_t wwid_show(struct device *disk, struct device_attribute *attr, char *buf)
{
	static const char * const prefixes[] = {
		[RNBD_ID_T10] = "t10.",
		[RNBD_ID_EUI64] = "eui.",
		[RNBD_ID_NAA] = "naa.",
	};
	const struct rnbd_clt_dev *dev = to_dev(disk);

	if (!dev->id_type)
		return sysfs_emit(buf, "\n");
	return sysfs_emit(buf, "%s%*phN\n", prefixes[dev->id_type], dev->id_len, dev->id);
}

static DEVICE_ATTR_RO(wwid);

/* An empty line stands for a device that is no volume of the server. */
static ssize_t uuid_show(struct device *disk, struct device_attribute *attr, char *buf)
{
	uuid_t uuid = to_dev(disk)->uuid;

	if (uuid_is_null(&uuid))
		return sysfs_emit(buf, "\n");
	return sysfs_emit(buf, "%pU\n", &uuid);
}

static DEVICE_ATTR_RO(uuid);

/* Define an attribute that is written; reading it shows the usage. */
#define RNBD_CLT_ATTR_USAGE(_name, usage)					\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr,	\
			   char *buf)						\
{										\
	return sysfs_emit(buf, "Usage: echo %s > %s\n", usage, attr->attr.name);	\
}										\
static DEVICE_ATTR_RW(_name)

static ssize_t unmap_device_store(struct device *disk,
				  struct device_attribute *attr, const char *buf, size_t count)
{
	struct rnbd_clt_dev *dev = to_dev(disk);
	bool force = sysfs_streq(buf, "force");
	int err;

	if (!force && !sysfs_streq(buf, "normal")) {
		pr_err("unmap_device: neither normal nor force\n");
		return -EINVAL;
	}
	/* Delays unloading, which unmaps the devices that are left then. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = rnbd_clt_dev_claim(dev, force);
	if (!err)
		rnbd_clt_dev_unmap(dev, force);
	module_put(THIS_MODULE);
	return err ?: count;
}

RNBD_CLT_ATTR_USAGE(unmap_device, "<normal|force>");

static ssize_t remap_device_store(struct device *disk,
				  struct device_attribute *attr, const char *buf, size_t count)
{
	int err;

	if (!sysfs_streq(buf, "1")) {
		pr_err("remap_device: not 1\n");
		return -EINVAL;
	}
	err = rnbd_clt_dev_remap(to_dev(disk));
	return err ?: count;
}

RNBD_CLT_ATTR_USAGE(remap_device, "<1>");

static ssize_t resize_store(struct device *disk, struct device_attribute *attr, const char *buf,
			    size_t count)
{
	struct rnbd_clt_dev *dev = to_dev(disk);
	u64 sectors;
	int err = 0;

	if (kstrtou64(buf, 10, &sectors) || !rnbd_clt_nsectors_ok(sectors)) {
		pr_err("resize: not a number of sectors that a disk can have\n");
		return -EINVAL;
	}
	if (sectors)
		rnbd_clt_dev_set_size(dev, sectors);
	else
		err = rnbd_clt_dev_follow(dev, true);
	return err ?: count;
}

RNBD_CLT_ATTR_USAGE(resize, "<sectors of 512 bytes, 0: the server's>");

static struct attribute *rnbd_clt_dev_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_session.attr,
	&dev_attr_netns.attr,
	&dev_attr_mapping_path.attr,
	&dev_attr_access_mode.attr,
	&dev_attr_nr_poll_queues.attr,
	&dev_attr_remap_device.attr,
	&dev_attr_resize.attr,
	&dev_attr_server_sectors.attr,
	&dev_attr_unmap_device.attr,
	&dev_attr_uuid.attr,
	&dev_attr_wwid.attr,
	NULL
};

static const struct attribute_group rnbd_clt_dev_group = {
	.name = RNBD_CLT_DEV_GROUP,
	.attrs = rnbd_clt_dev_attrs,
};

/* Added and removed together with the disk, so that they exist when udev learns of it */
static const struct attribute_group *rnbd_clt_dev_groups[] = {
	&rnbd_clt_dev_group,
	NULL
};

static ssize_t map_device_store(struct device *ctl, struct device_attribute *attr, const char *buf,
				size_t count)
{
	struct rnbd_clt_map_opts *opts;
	char *line;
	int err;

	/* Longer writes are truncated to a page. */
	if (count >= PAGE_SIZE || strlen(buf) != count) {
		pr_err("map_device: more than a page, or a NUL in it\n");
		return -EINVAL;
	}

	opts = kvzalloc(sizeof(*opts), GFP_KERNEL);
	line = kstrdup(buf, GFP_KERNEL);
	err = -ENOMEM;
	if (opts && line) {
		opts->net = current->nsproxy->net_ns;
		err = rnbd_clt_parse(line, opts);
	}
	if (!err)
		err = rnbd_clt_dev_map(opts, rnbd_clt_dev_groups);
	kfree(line);
	kvfree(opts);
	return err ?: count;
}

RNBD_CLT_ATTR_USAGE(map_device,
		    "\"sessname=NAME path=[SRC,]DST [path=...] device_path=PATH [access_mode=ro|rw|migration|handover] [dest_port=N] [nr_queues=N] [queue_depth=N] [nr_poll_queues=N] [key=NAME] [SETTING=VALUE ...]\"");

/**
 * rnbd_clt_start_mapping() - let users map devices
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_start_mapping(void)
{
	return device_create_file(rnbd_clt_ctl, &dev_attr_map_device);
}

/**
 * rnbd_clt_stop_mapping() - prevent further mapping, and wait for mapping in progress
 */
void rnbd_clt_stop_mapping(void)
{
	device_remove_file(rnbd_clt_ctl, &dev_attr_map_device);
}
