// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: accounting of I/O to cgroups. The I/O of a session is charged to the cgroup that is
 * configured for the session's host, so that io.max, io.weight and io.stat apply to the host.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/cgroup.h>
#include <linux/kthread.h>

#include "rnbd-srv.h"

#if IS_ENABLED(CONFIG_BLK_CGROUP)
/**
 * rnbd_srv_css_find() - get the I/O controller of a cgroup
 * @path: path of the cgroup, relative to the mount of cgroup2
 *
 * Context: process, may sleep.
 * Return: the controller, with a reference; ERR_PTR(-ENOENT) if the cgroup does not exist,
 * ERR_PTR(-ENOTDIR) if @path names a file, ERR_PTR(-EOPNOTSUPP) if the I/O controller is
 * not enabled for the cgroup.
 */
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;

	cgroup = cgroup_get_from_path(path);
	if (IS_ERR(cgroup))
		return ERR_CAST(cgroup);
	/* The controller of the nearest ancestor, if it is not enabled for the cgroup itself */
	css = cgroup_get_e_css(cgroup, &io_cgrp_subsys);
	if (css->cgroup != cgroup) {
		css_put(css);
		css = ERR_PTR(-EOPNOTSUPP);
	}
	cgroup_put(cgroup);
	return css;
}

/**
 * rnbd_srv_css_begin() - charge this worker's reads and writes to the cgroup of a mapping
 * @map: the mapping
 *
 * Context: work item; kthread_associate_blkcg(NULL) undoes it.
 */
void rnbd_srv_css_begin(const struct rnbd_srv_map *map)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css = rcu_dereference(map->sess->css);
	/* I/O of a removed cgroup is charged to its parent. */
	while (css && !css_tryget_online(css))
		css = css->parent;
	rcu_read_unlock();
	if (!css)
		return;
	/* kthread_associate_blkcg() takes its own reference. */
	kthread_associate_blkcg(css);
	css_put(css);
}

#else
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void rnbd_srv_css_begin(const struct rnbd_srv_map *map) { }
#endif

/**
 * rnbd_srv_css_bio() - charge a bio to the cgroup of a mapping, if it has one
 * @map: the mapping
 * @bio: bio with its device set, not submitted yet
 */
void rnbd_srv_css_bio(const struct rnbd_srv_map *map, struct bio *bio)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css = rcu_dereference(map->sess->css);
	if (css)
		bio_associate_blkg_from_css(bio, css);
	rcu_read_unlock();
}

/**
 * rnbd_srv_css_set() - change the cgroup to which a session's I/O is charged
 * @sess: session
 * @css: from rnbd_srv_css_find(), or NULL; the session takes a reference of its own
 *
 * Context: rnbd_srv_lock is held, or the session has ended.
 */
void rnbd_srv_css_set(struct rnbd_srv_sess *sess, struct cgroup_subsys_state *css)
{
	if (css)
		css_get(css);
	css = rcu_replace_pointer(sess->css, css, true);
	/* RCU readers may still use it: the struct is freed after a grace period. */
	if (css)
		css_put(css);
}
