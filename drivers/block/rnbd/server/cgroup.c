// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: who pays for a mapping's I/O. It belongs to the cgroup that its host names, so
 * that io.max, io.weight and io.stat of that are about the host.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/cgroup.h>
#include <linux/kthread.h>

#include "rnbd-srv.h"

#if IS_ENABLED(CONFIG_BLK_CGROUP)
/**
 * rnbd_srv_css_find() - get the I/O controller of a cgroup
 * @path: of the cgroup, below where cgroup2 is mounted
 *
 * Context: process, may sleep.
 * Return: the controller, with a reference; ERR_PTR(-ENOENT) if there is no such cgroup,
 * ERR_PTR(-ENOTDIR) if that is a file, ERR_PTR(-EOPNOTSUPP) if it has no such controller.
 */
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;

	cgroup = cgroup_get_from_path(path);
	if (IS_ERR(cgroup))
		return ERR_CAST(cgroup);
	/* Its own, or that of the next one above which has it */
	css = cgroup_get_e_css(cgroup, &io_cgrp_subsys);
	if (css->cgroup != cgroup) {
		css_put(css);
		css = ERR_PTR(-EOPNOTSUPP);
	}
	cgroup_put(cgroup);
	return css;
}

/**
 * rnbd_srv_css_get() - get one more reference
 * @css: from rnbd_srv_css_find()
 */
void rnbd_srv_css_get(struct cgroup_subsys_state *css)
{
	css_get(css);
}

/**
 * rnbd_srv_css_put() - drop a reference; whoever has found @css under RCU may go on with it there
 * @css: from rnbd_srv_css_find(), or NULL
 */
void rnbd_srv_css_put(struct cgroup_subsys_state *css)
{
	if (css)
		css_put(css);
}

/**
 * rnbd_srv_css_bio() - have a bio paid by its mapping's cgroup, if it has one
 * @map: the mapping
 * @bio: bio that has its device, and isn't submitted yet
 */
void rnbd_srv_css_bio(const struct rnbd_srv_map *map, struct bio *bio)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css = rcu_dereference(map->css);
	if (css)
		bio_associate_blkg_from_css(bio, css);
	rcu_read_unlock();
}

/**
 * rnbd_srv_css_begin() - have what this worker reads and writes paid by a mapping's cgroup
 * @map: the mapping
 *
 * Context: work item; rnbd_srv_css_end() follows.
 */
void rnbd_srv_css_begin(const struct rnbd_srv_map *map)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css = rcu_dereference(map->css);
	/* That of a cgroup which has gone is the one above's. */
	while (css && !css_tryget_online(css))
		css = css->parent;
	rcu_read_unlock();
	if (!css)
		return;
	/* It takes a reference of its own. */
	kthread_associate_blkcg(css);
	css_put(css);
}

/**
 * rnbd_srv_css_end() - undo rnbd_srv_css_begin()
 *
 * Context: the same work item.
 */
void rnbd_srv_css_end(void)
{
	kthread_associate_blkcg(NULL);
}
#else
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void rnbd_srv_css_get(struct cgroup_subsys_state *css) { }
void rnbd_srv_css_put(struct cgroup_subsys_state *css) { }
void rnbd_srv_css_bio(const struct rnbd_srv_map *map, struct bio *bio) { }
void rnbd_srv_css_begin(const struct rnbd_srv_map *map) { }
void rnbd_srv_css_end(void) { }
#endif

/**
 * rnbd_srv_css_set() - have another cgroup pay for a mapping's I/O
 * @map: mapping
 * @css: from rnbd_srv_css_find(), whose reference is the mapping's from now on, or NULL
 *
 * Context: rnbd_srv_lock is held, or the mapping is nobody else's.
 */
void rnbd_srv_css_set(struct rnbd_srv_map *map, struct cgroup_subsys_state *css)
{
	rnbd_srv_css_put(rcu_replace_pointer(map->css, css, true));
}
