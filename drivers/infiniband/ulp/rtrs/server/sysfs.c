// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sysfs: /sys/class/rtrs-server/<session>/paths/<SRC@DST>/, and statistics of the module in
 * /sys/devices/rtrs_server/stats/; see Documentation/ABI/testing/sysfs-class-rtrs-server.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/sysfs.h>

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

static struct rtrs_srv_path *to_path(struct kobject *kobj)
{
	return container_of(kobj, struct rtrs_srv_path, sysfs.kobj);
}

static ssize_t disconnect_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

/* Doesn't wait for the end of the path: its closing work waits for writers of attributes. */
static ssize_t disconnect_store(struct kobject *kobj,
				struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	if (!sysfs_streq(buf, "1"))
		return -EINVAL;
	rtrs_srv_path_error(&to_path(kobj)->path, 0, "disconnected through sysfs");
	return count;
}

static struct kobj_attribute disconnect_attr = __ATTR_RW(disconnect);

static ssize_t hca_name_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%s\n", dev_name(&to_path(kobj)->path.dev->dev));
}

static struct kobj_attribute hca_name_attr = __ATTR_RO(hca_name);

static ssize_t hca_port_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%u\n", to_path(kobj)->port_num);
}

static struct kobj_attribute hca_port_attr = __ATTR_RO(hca_port);

static ssize_t rtrs_srv_show_addr(const struct sockaddr_storage *ss, char *buf)
{
	struct rtrs_addr addr = { .dst = *ss };
	char str[RTRS_PATH_STR_LEN];

	rtrs_addr_format(&addr, str, sizeof(str));
	return sysfs_emit(buf, "%s\n", str);
}

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return rtrs_srv_show_addr(&to_path(kobj)->addr.src, buf);
}

static struct kobj_attribute src_addr_attr = __ATTR_RO(src_addr);

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return rtrs_srv_show_addr(&to_path(kobj)->addr.dst, buf);
}

static struct kobj_attribute dst_addr_attr = __ATTR_RO(dst_addr);

static struct attribute *rtrs_srv_path_attrs[] = {
	&disconnect_attr.attr,
	&hca_name_attr.attr,
	&hca_port_attr.attr,
	&src_addr_attr.attr,
	&dst_addr_attr.attr,
	NULL
};

static const struct attribute_group rtrs_srv_path_group = {
	.attrs	= rtrs_srv_path_attrs,
};

static void rtrs_srv_sum_stats(const struct rtrs_srv_path *path,
			       struct rtrs_srv_stats *sum)
{
	const struct rtrs_srv_stats *s;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		s = per_cpu_ptr(path->ios.stats, cpu);
		sum->reads += READ_ONCE(s->reads);
		sum->read_bytes += READ_ONCE(s->read_bytes);
		sum->writes += READ_ONCE(s->writes);
		sum->write_bytes += READ_ONCE(s->write_bytes);
		sum->done += READ_ONCE(s->done);
	}
}

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct rtrs_srv_path *path = to_path(kobj);
	struct rtrs_srv_stats base, sum;
	s64 inflight;

	mutex_lock(&path->sysfs.stats_lock);
	base = path->sysfs.stats_base;
	mutex_unlock(&path->sysfs.stats_lock);
	rtrs_srv_sum_stats(path, &sum);
	/* The counters change while they are summed up, so the difference may be negative. */
	inflight = max_t(s64, sum.reads + sum.writes - sum.done, 0);
	return sysfs_emit(buf, "%llu %llu %llu %llu %lld\n",
			  sum.reads - base.reads,
			  sum.read_bytes - base.read_bytes,
			  sum.writes - base.writes,
			  sum.write_bytes - base.write_bytes, inflight);
}

static struct kobj_attribute rdma_attr = __ATTR_RO(rdma);

static ssize_t reset_all_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

static ssize_t reset_all_store(struct kobject *kobj,
			       struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	struct rtrs_srv_path *path = to_path(kobj);

	if (!sysfs_streq(buf, "1"))
		return -EINVAL;
	mutex_lock(&path->sysfs.stats_lock);
	rtrs_srv_sum_stats(path, &path->sysfs.stats_base);
	mutex_unlock(&path->sysfs.stats_lock);
	return count;
}

static struct kobj_attribute reset_all_attr = __ATTR_RW(reset_all);

static struct attribute *rtrs_srv_stats_attrs[] = {
	&rdma_attr.attr,
	&reset_all_attr.attr,
	NULL
};

static const struct attribute_group rtrs_srv_stats_group = {
	.name	= "stats",
	.attrs	= rtrs_srv_stats_attrs,
};

static const struct attribute_group *rtrs_srv_path_groups[] = {
	&rtrs_srv_path_group,
	&rtrs_srv_stats_group,
	NULL
};

static void rtrs_srv_path_released(struct kobject *kobj)
{
	complete(&to_path(kobj)->sysfs.released);
}

/* The release function doesn't free the path. The closing work frees it, after the release. */
const struct kobj_type rtrs_srv_path_ktype = {
	.release	= rtrs_srv_path_released,
	.sysfs_ops	= &kobj_sysfs_ops,
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
	return kobject_add(&path->sysfs.kobj, path->sess->paths_dir, "%s",
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
	if (path->sysfs.kobj.state_in_sysfs)
		kobject_del(&path->sysfs.kobj);
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
