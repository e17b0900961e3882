// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /sys/class/rtrs-client; see Documentation/ABI/testing/sysfs-class-rtrs-client.
 *
 * A session is a device of the class, and is freed by it. A path has a folder
 * from the first time that it is connected, since its name holds the source
 * address, until it is destroyed, and is freed with it.
 */
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "clt.h"

static void rtrs_clt_dev_release(struct device *dev)
{
	struct rtrs_clt *clt = container_of(dev, struct rtrs_clt, dev);

	free_percpu(clt->turn);
	kfree(clt);
}

static struct class rtrs_clt_class = {
	.name = "rtrs-client",
	.dev_release = rtrs_clt_dev_release,
};

/**
 * struct rtrs_clt_path_attr - an attribute in a path's folder
 * @attr: name and mode
 * @show: formats it
 */
struct rtrs_clt_path_attr {
	struct attribute attr;
	ssize_t (*show)(struct rtrs_clt_path *path, char *buf);
};

static ssize_t rtrs_clt_path_attr_show(struct kobject *kobj,
				       struct attribute *attr, char *buf)
{
	struct rtrs_clt_path *path = container_of(kobj, struct rtrs_clt_path,
						  kobj);

	return container_of(attr, struct rtrs_clt_path_attr, attr)->show(path,
									 buf);
}

static const struct sysfs_ops rtrs_clt_path_ops = {
	.show = rtrs_clt_path_attr_show,
};

static void rtrs_clt_path_release(struct kobject *kobj)
{
	struct rtrs_clt_path *path = container_of(kobj, struct rtrs_clt_path,
						  kobj);

	free_percpu(path->stats);
	kfree(path);
}

#define RTRS_CLT_PATH_ATTR(_name) \
	static struct rtrs_clt_path_attr rtrs_clt_path_attr_##_name = __ATTR_RO(_name)

static ssize_t state_show(struct rtrs_clt_path *path, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  READ_ONCE(path->state) == RTRS_CLT_CONNECTED ?
			  "connected" : "disconnected");
}
RTRS_CLT_PATH_ATTR(state);

static ssize_t hca_name_show(struct rtrs_clt_path *path, char *buf)
{
	return sysfs_emit(buf, "%s\n", path->hca_name);
}
RTRS_CLT_PATH_ATTR(hca_name);

static ssize_t hca_port_show(struct rtrs_clt_path *path, char *buf)
{
	return sysfs_emit(buf, "%u\n", path->hca_port);
}
RTRS_CLT_PATH_ATTR(hca_port);

static ssize_t rtrs_clt_end_show(const struct sockaddr_storage *end, char *buf)
{
	const struct rtrs_addr addr = { .dst = *end };
	char str[RTRS_PATH_STR_LEN];

	rtrs_addr_format(&addr, str, sizeof(str));
	return sysfs_emit(buf, "%s\n", str);
}

static ssize_t src_addr_show(struct rtrs_clt_path *path, char *buf)
{
	return rtrs_clt_end_show(&path->addr.src, buf);
}
RTRS_CLT_PATH_ATTR(src_addr);

static ssize_t dst_addr_show(struct rtrs_clt_path *path, char *buf)
{
	return rtrs_clt_end_show(&path->addr.dst, buf);
}
RTRS_CLT_PATH_ATTR(dst_addr);

static ssize_t cur_latency_show(struct rtrs_clt_path *path, char *buf)
{
	return sysfs_emit(buf, "%llu ns\n", READ_ONCE(path->path.hb_latency));
}
RTRS_CLT_PATH_ATTR(cur_latency);

static struct attribute *rtrs_clt_path_attrs[] = {
	&rtrs_clt_path_attr_state.attr,
	&rtrs_clt_path_attr_hca_name.attr,
	&rtrs_clt_path_attr_hca_port.attr,
	&rtrs_clt_path_attr_src_addr.attr,
	&rtrs_clt_path_attr_dst_addr.attr,
	&rtrs_clt_path_attr_cur_latency.attr,
	NULL
};

static const struct attribute_group rtrs_clt_path_group = {
	.attrs = rtrs_clt_path_attrs,
};

static ssize_t rdma_show(struct rtrs_clt_path *path, char *buf)
{
	struct rtrs_clt_stats sum = {}, *stats;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		stats = per_cpu_ptr(path->stats, cpu);
		for (i = 0; i < 2; i++) {
			sum.ops[i] += stats->ops[i];
			sum.bytes[i] += stats->bytes[i];
		}
		sum.done += stats->done;
	}
	/* Sums of counters that move meanwhile: never show less than none. */
	return sysfs_emit(buf, "%llu %llu %llu %llu %lld 0\n",
			  sum.ops[0], sum.bytes[0], sum.ops[1], sum.bytes[1],
			  max(0LL, (s64)(sum.ops[0] + sum.ops[1] - sum.done)));
}
RTRS_CLT_PATH_ATTR(rdma);

static struct attribute *rtrs_clt_path_stats_attrs[] = {
	&rtrs_clt_path_attr_rdma.attr,
	NULL
};

static const struct attribute_group rtrs_clt_path_stats_group = {
	.name = "stats",
	.attrs = rtrs_clt_path_stats_attrs,
};

static const struct attribute_group *rtrs_clt_path_groups[] = {
	&rtrs_clt_path_group,
	&rtrs_clt_path_stats_group,
	NULL
};

static const struct kobj_type rtrs_clt_path_type = {
	.sysfs_ops = &rtrs_clt_path_ops,
	.default_groups = rtrs_clt_path_groups,
	.release = rtrs_clt_path_release,
};

/**
 * rtrs_clt_path_sysfs_init() - make a path freeable
 * @path: a new path; rtrs_clt_path_sysfs_del() frees it from now on
 */
void rtrs_clt_path_sysfs_init(struct rtrs_clt_path *path)
{
	kobject_init(&path->kobj, &rtrs_clt_path_type);
}

/**
 * rtrs_clt_path_shown() - has the session another path between these addresses?
 * @path: the path, both its addresses known
 */
bool rtrs_clt_path_shown(const struct rtrs_clt_path *path)
{
	const struct rtrs_clt *clt = path->clt;
	char name[RTRS_PATH_STR_LEN];
	unsigned int i;

	rtrs_addr_format(&path->addr, name, sizeof(name));
	for (i = 0; i < clt->nr_paths; i++)
		if (clt->paths[i] != path && clt->paths[i]->in_sysfs &&
		    !strcmp(kobject_name(&clt->paths[i]->kobj), name))
			return true;
	return false;
}

/**
 * rtrs_clt_path_sysfs_add() - show a path
 * @path: the path, all its connections established
 *
 * Context: process, the thread that connects it.
 * Return: 0, also if it is shown already, or a negative errno.
 */
int rtrs_clt_path_sysfs_add(struct rtrs_clt_path *path)
{
	char name[RTRS_PATH_STR_LEN];
	int ret;

	if (path->in_sysfs)
		return 0;
	strscpy(path->hca_name, dev_name(&path->path.dev->dev),
		sizeof(path->hca_name));
	path->hca_port = path->cons[0].con.cm_id->port_num;
	rtrs_addr_format(&path->addr, name, sizeof(name));
	ret = kobject_add(&path->kobj, path->clt->paths_kobj, "%s", name);
	path->in_sysfs = !ret;
	return ret;
}

/**
 * rtrs_clt_path_sysfs_del() - hide a path and drop it
 * @path: the path, disconnected; freed when nobody has its folder open
 */
void rtrs_clt_path_sysfs_del(struct rtrs_clt_path *path)
{
	if (path->in_sysfs)
		kobject_del(&path->kobj);
	kobject_put(&path->kobj);
}

/**
 * rtrs_clt_sysfs_init_sess() - make a session freeable
 * @clt: a new session; the last reference of its device frees it from now on
 */
void rtrs_clt_sysfs_init_sess(struct rtrs_clt *clt)
{
	clt->dev.class = &rtrs_clt_class;
	device_initialize(&clt->dev);
}

/**
 * rtrs_clt_sysfs_add() - show a session
 * @clt: the session
 *
 * Return: 0 or a negative errno.
 */
int rtrs_clt_sysfs_add(struct rtrs_clt *clt)
{
	int ret;

	ret = dev_set_name(&clt->dev, "%s", clt->name);
	if (ret)
		return ret;
	/* Users hear of it when it is complete. */
	dev_set_uevent_suppress(&clt->dev, true);
	ret = device_add(&clt->dev);
	if (ret)
		return ret;
	clt->paths_kobj = kobject_create_and_add("paths", &clt->dev.kobj);
	if (!clt->paths_kobj) {
		device_del(&clt->dev);
		return -ENOMEM;
	}
	dev_set_uevent_suppress(&clt->dev, false);
	kobject_uevent(&clt->dev.kobj, KOBJ_ADD);
	return 0;
}

/**
 * rtrs_clt_sysfs_del() - hide a session
 * @clt: the session, without paths
 */
void rtrs_clt_sysfs_del(struct rtrs_clt *clt)
{
	kobject_put(clt->paths_kobj);
	device_del(&clt->dev);
}

/**
 * rtrs_clt_sysfs_init() - register the class
 *
 * Return: 0 or a negative errno.
 */
int rtrs_clt_sysfs_init(void)
{
	return class_register(&rtrs_clt_class);
}

/**
 * rtrs_clt_sysfs_exit() - undo rtrs_clt_sysfs_init()
 */
void rtrs_clt_sysfs_exit(void)
{
	class_unregister(&rtrs_clt_class);
}
