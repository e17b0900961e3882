// SPDX-License-Identifier: GPL-2.0-or-later
/* A path's directory in sysfs: attributes that client and server have in common, and counters. */
#include <linux/export.h>

#include "sysfs.h"

static struct rtrs_path *to_path(struct kobject *kobj)
{
	return container_of(kobj, struct rtrs_path, kobj);
}

static struct rtrs_path_attr *to_path_attr(struct attribute *attr)
{
	return container_of(attr, struct rtrs_path_attr, attr);
}

static ssize_t rtrs_path_attr_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	if (!to_path_attr(attr)->show)
		return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->name);
	return to_path_attr(attr)->show(to_path(kobj), buf);
}

static ssize_t rtrs_path_attr_store(struct kobject *kobj, struct attribute *attr,
				    const char *buf, size_t count)
{
	/* root can change the mode of a read-only file. */
	if (!to_path_attr(attr)->store)
		return -EIO;
	if (!sysfs_streq(buf, "1"))
		return -EINVAL;
	return to_path_attr(attr)->store(to_path(kobj)) ?: count;
}

const struct sysfs_ops rtrs_path_sysfs_ops = {
	.show = rtrs_path_attr_show,
	.store = rtrs_path_attr_store,
};
EXPORT_SYMBOL_GPL(rtrs_path_sysfs_ops);

static ssize_t hca_name_show(struct rtrs_path *path, char *buf)
{
	return sysfs_emit(buf, "%s\n", path->hca_name);
}
RTRS_PATH_ATTR(hca_name);

static ssize_t hca_port_show(struct rtrs_path *path, char *buf)
{
	return sysfs_emit(buf, "%u\n", path->port_num);
}
RTRS_PATH_ATTR(hca_port);

static ssize_t rtrs_path_show_end(const struct sockaddr_storage *end, char *buf)
{
	const struct rtrs_addr addr = { .dst = *end };
	char str[RTRS_PATH_STR_LEN];

	rtrs_addr_format(&addr, str, sizeof(str));
	return sysfs_emit(buf, "%s\n", str);
}

static ssize_t src_addr_show(struct rtrs_path *path, char *buf)
{
	return rtrs_path_show_end(&path->addr.src, buf);
}
RTRS_PATH_ATTR(src_addr);

static ssize_t dst_addr_show(struct rtrs_path *path, char *buf)
{
	return rtrs_path_show_end(&path->addr.dst, buf);
}
RTRS_PATH_ATTR(dst_addr);

static struct attribute *rtrs_path_attrs[] = {
	&rtrs_path_attr_hca_name.attr,
	&rtrs_path_attr_hca_port.attr,
	&rtrs_path_attr_src_addr.attr,
	&rtrs_path_attr_dst_addr.attr,
	NULL
};

const struct attribute_group rtrs_path_group = {
	.attrs = rtrs_path_attrs,
};
EXPORT_SYMBOL_GPL(rtrs_path_group);

/**
 * rtrs_stats_sum() - sum up the counters of a path
 * @path: the path
 * @sum: set to the sums; the counters may change meanwhile
 */
void rtrs_stats_sum(const struct rtrs_path *path, struct rtrs_stats *sum)
{
	const struct rtrs_stats *stats;
	int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		stats = per_cpu_ptr(path->stats, cpu);
		for (i = 0; i < 2; i++) {
			sum->ops[i] += READ_ONCE(stats->ops[i]);
			sum->bytes[i] += READ_ONCE(stats->bytes[i]);
		}
		sum->done += READ_ONCE(stats->done);
	}
}
EXPORT_SYMBOL_GPL(rtrs_stats_sum);

/**
 * rtrs_stats_emit() - format the counters of a path for sysfs
 * @path: the path
 * @buf: page that is filled in
 *
 * Number and bytes of reads, and of writes, since the last reset; number of requests in flight. The
 * caller adds the end of the line.
 *
 * Return: number of bytes in @buf.
 */
int rtrs_stats_emit(struct rtrs_path *path, char *buf)
{
	struct rtrs_stats base, sum;
	s64 in_flight;
	int len;

	mutex_lock(&path->stats_lock);
	base = path->stats_base;
	mutex_unlock(&path->stats_lock);
	rtrs_stats_sum(path, &sum);
	/* The counters may change while they are summed up, so the difference may be negative. */
	in_flight = max(0LL, (s64)(sum.ops[0] + sum.ops[1] - sum.done));
	len = sysfs_emit(buf, "%llu %llu %llu %llu %lld",
			 sum.ops[0] - base.ops[0], sum.bytes[0] - base.bytes[0],
			 sum.ops[1] - base.ops[1], sum.bytes[1] - base.bytes[1], in_flight);
	return len;
}
EXPORT_SYMBOL_GPL(rtrs_stats_emit);

/**
 * rtrs_stats_reset() - have rtrs_stats_emit() count from 0 again
 * @path: the path
 *
 * Requests that are counted meanwhile may be lost. Requests in flight remain counted as such.
 *
 * Return: 0, for &rtrs_path_attr.store.
 */
int rtrs_stats_reset(struct rtrs_path *path)
{
	mutex_lock(&path->stats_lock);
	rtrs_stats_sum(path, &path->stats_base);
	mutex_unlock(&path->stats_lock);
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_stats_reset);
