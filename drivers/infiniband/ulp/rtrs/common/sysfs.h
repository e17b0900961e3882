/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of a path's directory in sysfs */
#ifndef RTRS_SYSFS_H
#define RTRS_SYSFS_H

#include <linux/sysfs.h>

#include "core.h"

/**
 * struct rtrs_path_attr - an attribute in a path's directory
 * @attr: attribute for sysfs
 * @show: formats the value; NULL to show the usage
 * @store: called when 1 is written; returns 0 or a negative errno. NULL if read-only
 */
struct rtrs_path_attr {
	struct attribute attr;
	ssize_t (*show)(struct rtrs_path *path, char *buf);
	int (*store)(struct rtrs_path *path);
};

#define RTRS_PATH_ATTR(_name) \
	static struct rtrs_path_attr rtrs_path_attr_##_name = __ATTR_RO(_name)
#define RTRS_PATH_ACTION(_name, _store)					\
	static struct rtrs_path_attr rtrs_path_attr_##_name = {		\
		.attr = { .name = #_name, .mode = 0644 },		\
		.store = _store,					\
	}

/* Functions of attributes, for the types of &rtrs_path.kobj */
extern const struct sysfs_ops rtrs_path_sysfs_ops;
/* The attributes hca_name, hca_port, src_addr and dst_addr */
extern const struct attribute_group rtrs_path_group;

void rtrs_stats_sum(const struct rtrs_path *path, struct rtrs_stats *sum);
int rtrs_stats_emit(struct rtrs_path *path, char *buf);
int rtrs_stats_reset(struct rtrs_path *path);

#endif /* RTRS_SYSFS_H */
