// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: attributes in /sys/class/rnbd-server/ctl/devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "rnbd-srv.h"

static struct rnbd_srv_dev *to_dev(struct kobject *kobj)
{
	return container_of(kobj, struct rnbd_srv_dev, kobj);
}

/* Define an attribute that shows a histogram of the device @dev. */
#define RNBD_SRV_DEV_ATTR(name, hist)						\
static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attr,	\
			   char *buf)						\
{										\
	const struct rnbd_srv_dev *dev = to_dev(kobj);				\
										\
	return rtrs_hist_emit(hist, buf);					\
}										\
static struct kobj_attribute name##_attr = __ATTR_RO(name)

RNBD_SRV_DEV_ATTR(wait_latency, dev->wait);
RNBD_SRV_DEV_ATTR(disk_latency, dev->disk);

static struct attribute *rnbd_srv_dev_stats_attrs[] = {
	&wait_latency_attr.attr,
	&disk_latency_attr.attr,
	NULL
};

static const struct attribute_group rnbd_srv_dev_stats_group = {
	.name = "stats",
	.attrs = rnbd_srv_dev_stats_attrs,
};

static const struct attribute_group *rnbd_srv_dev_groups[] = {
	&rnbd_srv_dev_stats_group,
	NULL
};

static void rnbd_srv_dev_release(struct kobject *kobj)
{
	struct rnbd_srv_dev *dev = to_dev(kobj);

	free_percpu(dev->wait);
	free_percpu(dev->disk);
	kfree(dev);
}

const struct kobj_type rnbd_srv_dev_ktype = {
	.release = rnbd_srv_dev_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = rnbd_srv_dev_groups,
};

static struct rnbd_srv_map *to_map(struct kobject *kobj)
{
	return container_of(kobj, struct rnbd_srv_map, kobj);
}

/* Define an attribute that shows a value of the mapping @map. */
#define RNBD_SRV_MAP_ATTR(name, fmt, val)					\
static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attr,	\
			   char *buf)						\
{										\
	struct rnbd_srv_map *map = to_map(kobj);				\
										\
	return sysfs_emit(buf, fmt "\n", (val));				\
}										\
static struct kobj_attribute name##_attr = __ATTR_RO(name)

RNBD_SRV_MAP_ATTR(read_only, "%d", map->mode == RNBD_ACCESS_RO);
RNBD_SRV_MAP_ATTR(mapping_path, "%s", map->path);
RNBD_SRV_MAP_ATTR(access_mode, "%s", rnbd_srv_access_names[map->mode]);
RNBD_SRV_MAP_ATTR(handover, "%s", rnbd_srv_writer_state(map));

static ssize_t force_close_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

/*
 * Closing the mapping removes this attribute, and would wait for this function if it did not break
 * the active protection. sysfs_break_active_protection() also takes a reference to the kobject, and
 * so to the mapping. The reference to the module prevents unloading meanwhile.
 */
static ssize_t force_close_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t count)
{
	struct rnbd_srv_map *map = to_map(kobj);
	struct kernfs_node *kn;

	if (!sysfs_streq(buf, "1")) {
		pr_err("force_close: not 1\n");
		return -EINVAL;
	}
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;

	kn = sysfs_break_active_protection(kobj, &attr->attr);
	if (kn) {
		rnbd_srv_close(map, NULL);
		wait_for_completion(&map->closed);
		sysfs_unbreak_active_protection(kn);
	}
	module_put(THIS_MODULE);
	return kn ? count : -ENODEV;
}

static struct kobj_attribute force_close_attr = __ATTR_RW(force_close);

static struct attribute *rnbd_srv_map_attrs[] = {
	&read_only_attr.attr,
	&mapping_path_attr.attr,
	&access_mode_attr.attr,
	&handover_attr.attr,
	&force_close_attr.attr,
	NULL
};

static umode_t rnbd_srv_map_attr_mode(struct kobject *kobj, struct attribute *attr, int n)
{
	if (attr == &handover_attr.attr && to_map(kobj)->mode != RNBD_ACCESS_HANDOVER)
		return 0;
	return attr->mode;
}

static const struct attribute_group rnbd_srv_map_group = {
	.attrs = rnbd_srv_map_attrs,
	.is_visible = rnbd_srv_map_attr_mode,
};
__ATTRIBUTE_GROUPS(rnbd_srv_map);

/*
 * Free a mapping. I/O may still look it up under RCU, and find its reference dead. The session may
 * be freed already.
 */
static void rnbd_srv_map_release(struct kobject *kobj)
{
	struct rnbd_srv_map *map = to_map(kobj);

	percpu_ref_exit(&map->ref);
	kfree(map->state_name);
	kfree(map->volume_path);
	kfree_rcu(map, rcu);
}

const struct kobj_type rnbd_srv_map_ktype = {
	.release = rnbd_srv_map_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = rnbd_srv_map_groups,
};
