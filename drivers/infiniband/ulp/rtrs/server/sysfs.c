// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sysfs: /sys/class/rtrs-server/<session>/paths/<SRC@DST>/, and statistics of the module in
 * /sys/devices/rtrs_server/stats/; see Documentation/ABI/testing/sysfs-class-rtrs-server.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>

#include "srv.h"

static struct class rtrs_srv_class = {
	.name	= "rtrs-server",
};

/* The statistics are not in the class's directory, where clients choose the names of sessions. */
static struct device *rtrs_srv_root;

static ssize_t memory_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", rtrs_srv_mem_total());
}

static DEVICE_ATTR_RO(memory_used);

static ssize_t memory_waits_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(rtrs_srv_buf_waits));
}

static DEVICE_ATTR_RO(memory_waits);

static struct attribute *rtrs_srv_memory_attrs[] = {
	&dev_attr_memory_used.attr,
	&dev_attr_memory_waits.attr,
	NULL
};

static const struct attribute_group rtrs_srv_memory_group = {
	.name	= "stats",
	.attrs	= rtrs_srv_memory_attrs,
};

/* Doesn't wait for the end of the path: its closing work waits for writers of attributes. */
static int rtrs_srv_disconnect(struct rtrs_path *path)
{
	rtrs_srv_path_error(path, 0, "disconnected through sysfs");
	return 0;
}

RTRS_PATH_ACTION(disconnect, rtrs_srv_disconnect);

static struct attribute *rtrs_srv_path_attrs[] = {
	&rtrs_path_attr_disconnect.attr,
	NULL
};

static const struct attribute_group rtrs_srv_path_group = {
	.attrs	= rtrs_srv_path_attrs,
};

static ssize_t rdma_show(struct rtrs_path *path, char *buf)
{
	int len = rtrs_stats_emit(path, buf);

	return len + sysfs_emit_at(buf, len, "\n");
}
RTRS_PATH_ATTR(rdma);

RTRS_PATH_ACTION(reset_all, rtrs_stats_reset);

static struct attribute *rtrs_srv_stats_attrs[] = {
	&rtrs_path_attr_rdma.attr,
	&rtrs_path_attr_reset_all.attr,
	NULL
};

static const struct attribute_group rtrs_srv_stats_group = {
	.name	= "stats",
	.attrs	= rtrs_srv_stats_attrs,
};

static const struct attribute_group *rtrs_srv_path_groups[] = {
	&rtrs_path_group,
	&rtrs_srv_path_group,
	&rtrs_srv_stats_group,
	NULL
};

static void rtrs_srv_path_released(struct kobject *kobj)
{
	struct rtrs_path *path = container_of(kobj, struct rtrs_path, kobj);

	complete(&to_srv_path(path)->sysfs.released);
}

/* The release function doesn't free the path. The closing work frees it, after the release. */
const struct kobj_type rtrs_srv_path_ktype = {
	.release	= rtrs_srv_path_released,
	.sysfs_ops	= &rtrs_path_sysfs_ops,
	.default_groups	= rtrs_srv_path_groups,
};

/**
 * rtrs_srv_sysfs_add_sess() - create a session's directory
 * @sess: session with a name; nothing is done if it has a directory
 *
 * Context: process, under the session's up_lock.
 * Return: 0 or a negative errno.
 */
int rtrs_srv_sysfs_add_sess(struct rtrs_srv_sess *sess)
{
	struct kobject *paths_dir;
	struct device *dev;

	lockdep_assert_held(&sess->up_lock);
	if (sess->dev)
		return 0;
	dev = device_create(&rtrs_srv_class, NULL, MKDEV(0, 0), NULL, "%s",
			    sess->label);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	paths_dir = kobject_create_and_add("paths", &dev->kobj);
	if (!paths_dir) {
		device_unregister(dev);
		return -ENOMEM;
	}
	sess->dev = dev;
	sess->paths_dir = paths_dir;
	return 0;
}

/**
 * rtrs_srv_sysfs_del_sess() - undo rtrs_srv_sysfs_add_sess(), if it was called
 * @sess: session without paths
 */
void rtrs_srv_sysfs_del_sess(struct rtrs_srv_sess *sess)
{
	if (!sess->dev)
		return;
	kobject_put(sess->paths_dir);
	device_unregister(sess->dev);
	sess->dev = NULL;
}

/**
 * rtrs_srv_sysfs_add_path() - create a path's directory
 * @path: path that has claimed its addresses, see rtrs_srv_sess_claim()
 *
 * Context: the path's setup work.
 * Return: 0 or a negative errno.
 */
int rtrs_srv_sysfs_add_path(struct rtrs_srv_path *path)
{
	return kobject_add(&path->path.kobj, path->sess->paths_dir, "%s",
			   path->path.addr_str);
}

/**
 * rtrs_srv_sysfs_del_path() - remove a path's directory, if it has one
 * @path: path that is closing
 *
 * Waits for readers and writers of its attributes.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_sysfs_del_path(struct rtrs_srv_path *path)
{
	if (path->path.kobj.state_in_sysfs)
		kobject_del(&path->path.kobj);
	mutex_lock(&path->sess->paths_lock);
	path->sysfs.named = false;
	mutex_unlock(&path->sess->paths_lock);
	rtrs_srv_changed(path->sess);
}

int __init rtrs_srv_sysfs_init(void)
{
	int ret;

	ret = class_register(&rtrs_srv_class);
	if (ret)
		return ret;
	rtrs_srv_root = root_device_register("rtrs_server");
	if (IS_ERR(rtrs_srv_root)) {
		ret = PTR_ERR(rtrs_srv_root);
		goto unregister_class;
	}
	ret = sysfs_create_group(&rtrs_srv_root->kobj, &rtrs_srv_memory_group);
	if (!ret)
		return 0;
	root_device_unregister(rtrs_srv_root);
unregister_class:
	class_unregister(&rtrs_srv_class);
	return ret;
}

void rtrs_srv_sysfs_exit(void)
{
	sysfs_remove_group(&rtrs_srv_root->kobj, &rtrs_srv_memory_group);
	root_device_unregister(rtrs_srv_root);
	class_unregister(&rtrs_srv_class);
}
