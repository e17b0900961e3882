// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /sys/class/rtrs-client; see Documentation/ABI/testing/sysfs-class-rtrs-client.
 *
 * A session is a device of the class, whose release frees it. A path has a directory from the end
 * of its first attempt to connect until it is destroyed. The release of the directory's kobject
 * frees the path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/ns_common.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "clt.h"

static struct rtrs_clt *to_clt(const struct device *dev)
{
	return container_of(dev, struct rtrs_clt, dev);
}

static void rtrs_clt_dev_release(struct device *dev)
{
	rtrs_clt_free(to_clt(dev));
}

static ssize_t add_path_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "Usage: echo [SRC,]DST > %s; ends are ip:ADDRESS or gid:GID\n",
			  attr->attr.name);
}

static ssize_t add_path_store(struct device *dev, struct device_attribute *attr,
			      const char *buf, size_t count)
{
	struct rtrs_clt *clt = to_clt(dev);
	struct rtrs_addr addr;
	char *str;
	int ret;

	str = kstrndup(buf, count, GFP_KERNEL);
	if (!str)
		return -ENOMEM;
	ret = rtrs_addr_parse(clt->net, strim(str), clt->port, &addr);
	kfree(str);
	return ret ?: rtrs_clt_add_path(clt, &addr) ?: count;
}
static DEVICE_ATTR_RW(add_path);

static const struct {
	const char *name;
	const char *short_name;
} rtrs_clt_policies[RTRS_CLT_NR_POLICIES] = {
	[RTRS_CLT_RR] = { "round-robin", "RR" },
	[RTRS_CLT_MI] = { "min-inflight", "MI" },
	[RTRS_CLT_ML] = { "min-latency", "ML" },
};

static ssize_t rtrs_clt_policy_show(struct device *dev, struct device_attribute *attr,
				    char *buf)
{
	enum rtrs_clt_policy policy = READ_ONCE(to_clt(dev)->policy);

	return sysfs_emit(buf, "%s (%s: %d)\n", rtrs_clt_policies[policy].name,
			  rtrs_clt_policies[policy].short_name, policy);
}

/**
 * rtrs_clt_parse_policy() - parse a policy
 * @str: its name, its two-letter abbreviation in upper or lower case, or its number
 *
 * Return: the policy, or -EINVAL.
 */
VISIBLE_IF_KUNIT int rtrs_clt_parse_policy(const char *str)
{
	char number[2] = "0";
	int i;

	for (i = 0; i < RTRS_CLT_NR_POLICIES; i++, number[0]++)
		if (sysfs_streq(str, rtrs_clt_policies[i].name) ||
		    sysfs_streq(str, number) ||
		    (!strncasecmp(str, rtrs_clt_policies[i].short_name, 2) &&
		     sysfs_streq(str + 2, "")))
			return i;
	return -EINVAL;
}

/**
 * struct rtrs_clt_setting - an attribute of a session that rtrs_clt_set() can change
 * @attr: attribute for sysfs
 * @offset: offset of the value, an int, in struct rtrs_clt
 * @min: minimum value
 * @max: maximum value
 * @parse: converts a string to a value or a negative errno; NULL if the value is a number
 * @changed: called after a change, under clt->lock; may be NULL
 */
struct rtrs_clt_setting {
	struct device_attribute attr;
	size_t offset;
	int min;
	int max;
	int (*parse)(const char *str);
	void (*changed)(struct rtrs_clt *clt);
};

static struct rtrs_clt_setting *to_setting(struct device_attribute *attr)
{
	return container_of(attr, struct rtrs_clt_setting, attr);
}

static int *rtrs_clt_value(struct rtrs_clt *clt, const struct rtrs_clt_setting *setting)
{
	return (void *)clt + setting->offset;
}

static ssize_t rtrs_clt_number_show(struct device *dev,
				    struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(*rtrs_clt_value(to_clt(dev), to_setting(attr))));
}

static int rtrs_clt_parse_setting(const struct rtrs_clt_setting *setting,
				  const char *str, int *value)
{
	int ret = 0;

	if (setting->parse)
		*value = setting->parse(str);
	else
		ret = kstrtoint(str, 0, value);
	if (!ret && (*value < setting->min || *value > setting->max))
		ret = -EINVAL;
	return ret;
}

static int rtrs_clt_change(struct rtrs_clt *clt,
			   const struct rtrs_clt_setting *setting,
			   const char *str)
{
	int value, ret;

	ret = rtrs_clt_parse_setting(setting, str, &value);
	if (ret)
		return ret;
	mutex_lock(&clt->lock);
	WRITE_ONCE(*rtrs_clt_value(clt, setting), value);
	/* A session that is being closed must not start work items. */
	if (setting->changed && !clt->closing)
		setting->changed(clt);
	mutex_unlock(&clt->lock);
	return 0;
}

static ssize_t rtrs_clt_setting_store(struct device *dev,
				      struct device_attribute *attr,
				      const char *buf, size_t count)
{
	return rtrs_clt_change(to_clt(dev), to_setting(attr), buf) ?: count;
}

/* Makes a new interval take effect at once, not after the next heartbeat. */
static void rtrs_clt_hb_changed(struct rtrs_clt *clt)
{
	struct rtrs_clt_path *path;

	list_for_each_entry(path, &clt->paths, entry)
		if (rtrs_clt_is_live(path))
			rtrs_hb_changed(&path->path);
}

#define RTRS_CLT_SETTING(_name, _show, _field, ...)			\
	static struct rtrs_clt_setting rtrs_clt_##_name = {		\
		.attr = __ATTR(_name, 0644, _show, rtrs_clt_setting_store), \
		.offset = offsetof(struct rtrs_clt, _field),		\
		__VA_ARGS__						\
	}
#define RTRS_CLT_POLICY(_name)						\
	RTRS_CLT_SETTING(_name, rtrs_clt_policy_show, policy,		\
			 .max = RTRS_CLT_NR_POLICIES - 1, .parse = rtrs_clt_parse_policy)
#define RTRS_CLT_NUMBER(_name, _field, _min, _max, _changed)		\
	RTRS_CLT_SETTING(_name, rtrs_clt_number_show, _field,		\
			 .min = _min, .max = _max, .changed = _changed)

RTRS_CLT_POLICY(mp_policy);
/* The same attribute under its name in the in-tree driver */
RTRS_CLT_POLICY(mpath_policy);
RTRS_CLT_NUMBER(max_reconnect_attempts, reconnect.max_tries, -1, INT_MAX, NULL);
RTRS_CLT_NUMBER(reconnect_delay_ms, reconnect.delay_ms, 1, 3600000, NULL);
RTRS_CLT_NUMBER(reconnect_delay_max_ms, reconnect.delay_max_ms, 1, 3600000, NULL);
RTRS_CLT_NUMBER(hb_interval_ms, hb.interval_ms, 10, 3600000, rtrs_clt_hb_changed);
RTRS_CLT_NUMBER(hb_max_missed, hb.max_missed, 1, 1000, NULL);
/* A new timeout also applies to requests that already wait. */
RTRS_CLT_NUMBER(failover_timeout, failover.timeout, -1, 1000000,
		rtrs_clt_failover_timeout_changed);
RTRS_CLT_NUMBER(unfenced_delay_ms, fences.unfenced_ms, 0, 3600000, NULL);

#define RTRS_CLT_SHOW(_name, _value)					\
	static ssize_t _name##_show(struct device *dev,			\
				    struct device_attribute *attr, char *buf) \
	{								\
		const struct rtrs_clt *clt = to_clt(dev);		\
									\
		return sysfs_emit(buf, "%u\n", _value);			\
	}								\
	static DEVICE_ATTR_RO(_name)

/* A server with fencing assigns an ID to each session, see rtrs_clt_same_session(). */
RTRS_CLT_SHOW(fencing, !!READ_ONCE(clt->sess_id));
RTRS_CLT_SHOW(nr_queues, clt->nr_queues);
RTRS_CLT_SHOW(queue_depth, READ_ONCE(clt->limits.queue_depth));

static struct attribute *rtrs_clt_attrs[] = {
	&dev_attr_add_path.attr,
	&rtrs_clt_mp_policy.attr.attr,
	&rtrs_clt_mpath_policy.attr.attr,
	&rtrs_clt_max_reconnect_attempts.attr.attr,
	&rtrs_clt_reconnect_delay_ms.attr.attr,
	&rtrs_clt_reconnect_delay_max_ms.attr.attr,
	&rtrs_clt_hb_interval_ms.attr.attr,
	&rtrs_clt_hb_max_missed.attr.attr,
	&rtrs_clt_failover_timeout.attr.attr,
	&rtrs_clt_unfenced_delay_ms.attr.attr,
	&dev_attr_fencing.attr,
	&dev_attr_nr_queues.attr,
	&dev_attr_queue_depth.attr,
	NULL
};
ATTRIBUTE_GROUPS(rtrs_clt);

/* All except add_path, fencing, nr_queues, queue_depth and the terminating NULL */
static_assert(ARRAY_SIZE(rtrs_clt_attrs) == RTRS_CLT_NR_SETTINGS + 5);

static struct rtrs_clt_setting *rtrs_clt_find_setting(const char *name)
{
	struct device_attribute *attr;
	int i;

	for (i = 0; rtrs_clt_attrs[i]; i++) {
		attr = container_of(rtrs_clt_attrs[i], struct device_attribute,
				    attr);
		if (attr->store == rtrs_clt_setting_store &&
		    !strcmp(attr->attr.name, name))
			return to_setting(attr);
	}
	return NULL;
}

/**
 * rtrs_clt_check_setting() - check a setting of a session
 * @name: name of an attribute of sessions
 * @str: value that would be written to it
 *
 * Context: any.
 * Return: 0; -ENOENT if @name is not a setting; or the errno of the write.
 */
int rtrs_clt_check_setting(const char *name, const char *str)
{
	const struct rtrs_clt_setting *setting = rtrs_clt_find_setting(name);
	int value;

	return setting ? rtrs_clt_parse_setting(setting, str, &value) : -ENOENT;
}
EXPORT_SYMBOL_GPL(rtrs_clt_check_setting);

/**
 * rtrs_clt_set() - change a setting of a session, like a write to its attribute
 * @clt: an open session
 * @name: name of the attribute
 * @str: value to write
 *
 * Context: process, may sleep.
 * Return: as rtrs_clt_check_setting().
 */
int rtrs_clt_set(struct rtrs_clt *clt, const char *name, const char *str)
{
	const struct rtrs_clt_setting *setting = rtrs_clt_find_setting(name);

	return setting ? rtrs_clt_change(clt, setting, str) : -ENOENT;
}
EXPORT_SYMBOL_GPL(rtrs_clt_set);

static const struct ns_common *rtrs_clt_dev_netns(const struct device *dev)
{
	return to_ns_common(to_clt(dev)->net);
}

/* Each network namespace shows only its own sessions. */
struct class rtrs_clt_class = {
	.name = "rtrs-client",
	.ns_type = &net_ns_type_operations,
	.namespace = rtrs_clt_dev_netns,
	.dev_release = rtrs_clt_dev_release,
	.dev_groups = rtrs_clt_groups,
};

static void rtrs_clt_path_release(struct kobject *kobj)
{
	rtrs_clt_path_free(to_clt_path(container_of(kobj, struct rtrs_path, kobj)));
}

#define RTRS_CLT_PATH_SHOW(_name, _fmt, ...)				\
	static ssize_t _name##_show(struct rtrs_path *p, char *buf)	\
	{								\
		struct rtrs_clt_path *path = to_clt_path(p);		\
									\
		return sysfs_emit(buf, _fmt "\n", __VA_ARGS__);		\
	}								\
	RTRS_PATH_ATTR(_name)

RTRS_CLT_PATH_SHOW(state, "%s", READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTED ?
				"connected" : "disconnected");
RTRS_CLT_PATH_SHOW(last_error, "%d", READ_ONCE(path->sm.result));
RTRS_CLT_PATH_SHOW(cur_latency, "%llu ns", READ_ONCE(path->path.hb_latency));
RTRS_CLT_PATH_SHOW(reconnects, "%u %u", READ_ONCE(path->stats.reconnects[1]),
		   READ_ONCE(path->stats.reconnects[0]));

static int rtrs_clt_path_reconnect_store(struct rtrs_path *path)
{
	return rtrs_clt_path_reconnect(to_clt_path(path));
}

RTRS_PATH_ACTION(reconnect, rtrs_clt_path_reconnect_store);

static int rtrs_clt_path_disconnect_store(struct rtrs_path *path)
{
	return rtrs_clt_path_disconnect(to_clt_path(path));
}

RTRS_PATH_ACTION(disconnect, rtrs_clt_path_disconnect_store);

static int rtrs_clt_path_remove(struct rtrs_path *p);

RTRS_PATH_ACTION(remove_path, rtrs_clt_path_remove);

static int rtrs_clt_path_remove(struct rtrs_path *p)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	struct device *dev = &path->clt->dev;
	int ret = -ENODEV;

	/*
	 * Removing the file drops the references through which it keeps module, session and path.
	 */
	if (!try_module_get(THIS_MODULE))
		return ret;
	get_device(dev);
	kobject_get(&path->path.kobj);
	/*
	 * The directory can't be removed while this file is in use, so the file removes itself
	 * first.
	 */
	if (sysfs_remove_file_self(&path->path.kobj,
				   &rtrs_path_attr_remove_path.attr)) {
		pr_info("%s: path is removed\n", path->path.name);
		rtrs_clt_remove_path(path);
		ret = 0;
	}
	kobject_put(&path->path.kobj);
	put_device(dev);
	module_put(THIS_MODULE);
	return ret;
}

static struct attribute *rtrs_clt_path_attrs[] = {
	&rtrs_path_attr_state.attr,
	&rtrs_path_attr_last_error.attr,
	&rtrs_path_attr_cur_latency.attr,
	&rtrs_path_attr_reconnect.attr,
	&rtrs_path_attr_disconnect.attr,
	&rtrs_path_attr_remove_path.attr,
	NULL
};

static const struct attribute_group rtrs_clt_path_group = {
	.attrs = rtrs_clt_path_attrs,
};

static ssize_t rdma_show(struct rtrs_path *path, char *buf)
{
	int len = rtrs_stats_emit(path, buf);

	return len + sysfs_emit_at(buf, len, " %llu\n",
				   READ_ONCE(to_clt_path(path)->stats.failed_over));
}
RTRS_PATH_ATTR(rdma);

#define RTRS_CLT_PATH_PER_CPU(_name, _value)				\
	static ssize_t _name##_show(struct rtrs_path *p, char *buf)	\
	{								\
		struct rtrs_clt_path *path = to_clt_path(p);		\
		struct rtrs_clt_stats *stats;				\
		int cpu, len = 0;					\
									\
		for_each_possible_cpu(cpu) {				\
			stats = per_cpu_ptr(path->stats.cpu, cpu);	\
			len += sysfs_emit_at(buf, len, "%u ", _value);	\
		}							\
		return len + sysfs_emit_at(buf, len, "\n");		\
	}								\
	RTRS_PATH_ATTR(_name)

RTRS_CLT_PATH_PER_CPU(cpu_migration_from, atomic_read(&stats->migrated_from));
RTRS_CLT_PATH_PER_CPU(cpu_migration_to, READ_ONCE(stats->migrated_to));

static ssize_t hb_latency_show(struct rtrs_path *path, char *buf)
{
	int i, len = 0;

	for (i = 0; i < RTRS_HB_BUCKETS; i++)
		len += sysfs_emit_at(buf, len, i ? " %u" : "%u",
				     READ_ONCE(path->hb_hist[i]));
	return len + sysfs_emit_at(buf, len, "\n");
}
RTRS_PATH_ATTR(hb_latency);

static ssize_t io_latency_show(struct rtrs_path *path, char *buf)
{
	return rtrs_hist_emit(to_clt_path(path)->stats.latency, buf);
}
RTRS_PATH_ATTR(io_latency);

/*
 * Resets the counters of a path. Events during the reset may not be counted; requests in flight
 * still are.
 */
static int rtrs_clt_reset_stats(struct rtrs_path *p)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	struct rtrs_clt_stats *stats;
	int cpu;

	rtrs_stats_reset(p);
	WRITE_ONCE(path->stats.failed_over, 0);
	for_each_possible_cpu(cpu) {
		stats = per_cpu_ptr(path->stats.cpu, cpu);
		WRITE_ONCE(stats->migrated_to, 0);
		atomic_set(&stats->migrated_from, 0);
	}
	memset(path->stats.reconnects, 0, sizeof(path->stats.reconnects));
	memset(p->hb_hist, 0, sizeof(p->hb_hist));
	return 0;
}

RTRS_PATH_ACTION(reset_all, rtrs_clt_reset_stats);

static struct attribute *rtrs_clt_path_stats_attrs[] = {
	&rtrs_path_attr_rdma.attr,
	&rtrs_path_attr_reconnects.attr,
	&rtrs_path_attr_cpu_migration_from.attr,
	&rtrs_path_attr_cpu_migration_to.attr,
	&rtrs_path_attr_hb_latency.attr,
	&rtrs_path_attr_io_latency.attr,
	&rtrs_path_attr_reset_all.attr,
	NULL
};

static const struct attribute_group rtrs_clt_path_stats_group = {
	.name = "stats",
	.attrs = rtrs_clt_path_stats_attrs,
};

static const struct attribute_group *rtrs_clt_path_groups[] = {
	&rtrs_path_group,
	&rtrs_clt_path_group,
	&rtrs_clt_path_stats_group,
	NULL
};

static const struct kobj_type rtrs_clt_path_type = {
	.sysfs_ops = &rtrs_path_sysfs_ops,
	.default_groups = rtrs_clt_path_groups,
	.release = rtrs_clt_path_release,
};

/* Implements rtrs_clt_view.show(). */
static int rtrs_clt_path_sysfs_add(struct rtrs_clt_path *path)
{
	struct kobject *kobj = &path->path.kobj;
	struct rtrs_clt *clt = path->clt;
	int ret = 0;

	mutex_lock(&clt->lock);
	if (READ_ONCE(path->sm.gone) || !clt->paths_kobj) {
		ret = -ENODEV;
	} else if (!path->added) {
		ret = kobject_add(kobj, clt->paths_kobj, "%s", path->path.addr_str);
		path->added = !ret;
	} else if (strcmp(kobject_name(kobj), path->path.addr_str)) {
		ret = kobject_rename(kobj, path->path.addr_str);
	}
	mutex_unlock(&clt->lock);
	return ret;
}

/* Implements rtrs_clt_view.hide(). */
static void rtrs_clt_path_sysfs_hide(struct rtrs_clt_path *path)
{
	bool shown;

	mutex_lock(&path->clt->lock);
	shown = path->added;
	path->added = false;
	mutex_unlock(&path->clt->lock);
	if (shown)
		kobject_del(&path->path.kobj);
}

static const struct rtrs_clt_view rtrs_clt_sysfs_view = {
	.ktype = &rtrs_clt_path_type,
	.show = rtrs_clt_path_sysfs_add,
	.hide = rtrs_clt_path_sysfs_hide,
};

/**
 * rtrs_clt_sysfs_init_sess() - initialize a session's device
 * @clt: a new session; from now on, dropping the last reference to its device frees it
 */
void rtrs_clt_sysfs_init_sess(struct rtrs_clt *clt)
{
	clt->view = &rtrs_clt_sysfs_view;
	clt->dev.class = &rtrs_clt_class;
	device_initialize(&clt->dev);
}

/**
 * rtrs_clt_sysfs_add() - add a session to sysfs
 * @clt: session that has claimed its name
 *
 * Return: 0 or a negative errno.
 */
int rtrs_clt_sysfs_add(struct rtrs_clt *clt)
{
	int ret;

	ret = dev_set_name(&clt->dev, "%s", clt->name);
	if (ret)
		return ret;
	/* The uevent is sent once the directory is complete. */
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
 * rtrs_clt_sysfs_del() - undo rtrs_clt_sysfs_add()
 * @clt: session without paths
 */
void rtrs_clt_sysfs_del(struct rtrs_clt *clt)
{
	kobject_put(clt->paths_kobj);
	device_del(&clt->dev);
}
