// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: devices; opening and closing of their mappings.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

static LIST_HEAD(rnbd_srv_sessions);

static char *rnbd_srv_dev_name(const struct rnbd_srv_map *map)
{
	char *buf, *path, *name;

	if (map->bdev) {
		name = kasprintf(GFP_KERNEL, "%pg", map->bdev);
	} else {
		buf = kmalloc(PATH_MAX, GFP_KERNEL);
		if (!buf)
			return ERR_PTR(-ENOMEM);
		path = file_path(map->file, buf, PATH_MAX);
		if (IS_ERR(path)) {
			kfree(buf);
			return path;
		}
		name = kstrdup(path, GFP_KERNEL);
		kfree(buf);
	}
	if (!name)
		return ERR_PTR(-ENOMEM);
	strreplace(name, '/', '!');
	return name;
}

/*
 * Check whether a name in sysfs is in use. Two files can have the same name: if a file was removed
 * and created again while the old one is open here, or if paths differ only in ! and /.
 */
static bool rnbd_srv_name_taken(const char *name)
{
	struct rnbd_srv_dev *dev;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		if (!strcmp(kobject_name(&dev->kobj), name))
			return true;
	}
	return false;
}

static void rnbd_srv_dev_del(struct rnbd_srv_dev *dev)
{
	if (dev->sessions) {
		kobject_del(dev->sessions);
		kobject_put(dev->sessions);
	}
	kobject_del(&dev->kobj);
	kobject_put(&dev->kobj);
}

static struct rnbd_srv_dev *rnbd_srv_dev_alloc(void)
{
	struct rnbd_srv_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	kobject_init(&dev->kobj, &rnbd_srv_dev_ktype);
	INIT_LIST_HEAD(&dev->maps);
	dev->wait = alloc_percpu(struct rtrs_hist);
	dev->disk = alloc_percpu(struct rtrs_hist);
	if (!dev->wait || !dev->disk) {
		kobject_put(&dev->kobj);
		return NULL;
	}
	return dev;
}

static int rnbd_srv_dev_add(struct rnbd_srv_dev *dev, const char *name,
			    struct block_device *bdev)
{
	int err;

	err = kobject_add(&dev->kobj, rnbd_srv_devices, "%s", name);
	if (err) {
		kobject_put(&dev->kobj);
		return err;
	}

	err = -ENOMEM;
	dev->sessions = kobject_create_and_add("sessions", &dev->kobj);
	if (dev->sessions)
		err = bdev ? sysfs_create_link(&dev->kobj, bdev_kobj(bdev),
					       "block_dev") : 0;
	if (err)
		rnbd_srv_dev_del(dev);
	return err;
}

/*
 * Add the device @spare. The caller has allocated it before taking the lock: the allocation of
 * per-CPU memory may fail where it must not wait for I/O.
 */
static struct rnbd_srv_dev *rnbd_srv_dev_create(const struct rnbd_srv_map *map,
						struct rnbd_srv_dev **spare)
{
	struct rnbd_srv_dev *dev = *spare;
	char *name;
	int err;

	name = rnbd_srv_dev_name(map);
	if (IS_ERR(name))
		return ERR_CAST(name);

	err = -EBUSY;
	if (rnbd_srv_name_taken(name))
		goto free_name;

	*spare = NULL;
	err = rnbd_srv_dev_add(dev, name, map->bdev);
	if (err)
		goto free_name;
	list_add(&dev->list, &rnbd_srv_devs);
	rnbd_srv_start_watch();
	kfree(name);
	return dev;

free_name:
	kfree(name);
	return ERR_PTR(err);
}

/*
 * Check whether two mappings have the same disk or file open. For overlayfs, the inode in the layer
 * that has the data identifies a file. Copying the file up changes that inode, so the inode must
 * not be stored.
 */
static bool rnbd_srv_same_backing(const struct rnbd_srv_map *a, const struct rnbd_srv_map *b)
{
	if (a->bdev || b->bdev)
		return a->bdev == b->bdev;
	return d_real_inode(a->file->f_path.dentry) == d_real_inode(b->file->f_path.dentry);
}

static struct rnbd_srv_dev *rnbd_srv_dev_get(const struct rnbd_srv_map *map,
					     struct rnbd_srv_dev **spare)
{
	const struct rnbd_srv_map *other;
	struct rnbd_srv_dev *dev;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		list_for_each_entry(other, &dev->maps, list) {
			if (rnbd_srv_same_backing(other, map))
				return dev;
		}
	}
	return rnbd_srv_dev_create(map, spare);
}

static void rnbd_srv_dev_put(struct rnbd_srv_dev *dev)
{
	lockdep_assert_held(&rnbd_srv_lock);
	if (!list_empty(&dev->maps))
		return;
	list_del(&dev->list);
	rnbd_srv_dev_del(dev);
}

/**
 * rnbd_srv_access() - check whether access modes allow one more mapping
 * @dev: device with its present mappings
 * @mode: access mode of the new mapping
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0 or -EBUSY.
 */
int rnbd_srv_access(const struct rnbd_srv_dev *dev, enum rnbd_access_mode mode)
{
	static const unsigned int max_writers[RNBD_ACCESS_MODES] = {
		[RNBD_ACCESS_RO] = UINT_MAX,
		[RNBD_ACCESS_RW] = 1,
		[RNBD_ACCESS_MIGRATION] = 2,
		[RNBD_ACCESS_HANDOVER] = UINT_MAX,
	};

	if (mode == RNBD_ACCESS_RO)
		return 0;
	/* Mappings in mode handover fence each other, but not writers in other modes. */
	if (dev->nr_handover != (mode == RNBD_ACCESS_HANDOVER ? dev->nr_writers : 0))
		return -EBUSY;
	return dev->nr_writers < max_writers[mode] ? 0 : -EBUSY;
}

/**
 * rnbd_srv_alone() - check whether exclusive mappings allow one more mapping
 * @dev: device with its present mappings
 * @map: the new mapping
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0, or -EBUSY if another session has the device open, and its mapping or @map is
 * exclusive.
 */
int rnbd_srv_alone(const struct rnbd_srv_dev *dev, const struct rnbd_srv_map *map)
{
	struct rnbd_srv_map *old;

	list_for_each_entry(old, &dev->maps, list) {
		if (old->sess != map->sess && (old->exclusive || map->exclusive))
			return -EBUSY;
	}
	return 0;
}

/* Add @nr, 1 or -1, to the device's counts of mappings that may write. */
static void rnbd_srv_count_map(const struct rnbd_srv_map *map, struct rnbd_srv_dev *dev, int nr)
{
	if (map->mode != RNBD_ACCESS_RO)
		dev->nr_writers += nr;
	if (map->mode == RNBD_ACCESS_HANDOVER)
		dev->nr_handover += nr;
}

/* Undo rnbd_srv_map_open(). May wait for I/O of the disk or filesystem. */
static void rnbd_srv_map_release_file(struct rnbd_srv_map *map)
{
	rnbd_srv_queue_exit(&map->queue);
	mempool_exit(&map->vecs);
	rnbd_srv_css_set(map, NULL);
	map->backend->close(map);
}

/*
 * Sync a mapping that is closed because the server stops: the machine may be about to be powered
 * off, and the client may not have flushed its last writes.
 */
static void rnbd_srv_map_sync(struct rnbd_srv_map *map)
{
	int err;

	if (map->mode == RNBD_ACCESS_RO || !READ_ONCE(map->sess->rules->stopping))
		return;
	err = map->backend->sync(map);
	if (err)
		rnbd_srv_err(map->sess, "can't sync %s: %pe\n", map->path, ERR_PTR(err));
}

/*
 * Close a mapping without I/O in progress. Taking rnbd_srv_lock first ensures that
 * rnbd_srv_map_publish() has returned. The lock is not held while waiting for users of the
 * attributes, and for the file. Order matters: the attributes are removed before the state that
 * they show, and the device before the disk or file, which identifies the device.
 */
static void rnbd_srv_close_work(struct work_struct *work)
{
	struct rnbd_srv_map *map =
		container_of(work, struct rnbd_srv_map, close_work);
	struct rnbd_srv_sess *sess = map->sess;

	mutex_lock(&rnbd_srv_lock);
	xa_erase(&sess->maps, map->id);
	sess->nr_maps--;
	mutex_unlock(&rnbd_srv_lock);

	kobject_del(&map->kobj);

	mutex_lock(&rnbd_srv_lock);
	list_del(&map->list);
	rnbd_srv_count_map(map, map->dev, -1);
	rnbd_srv_writer_leave(map);
	rnbd_srv_dev_put(map->dev);
	mutex_unlock(&rnbd_srv_lock);
	rnbd_srv_map_sync(map);
	rnbd_srv_map_release_file(map);

	rnbd_srv_info(sess, "closed %s\n", map->path);
	complete_all(&map->closed);
	/* Before the reference is dropped, since the session may end then. */
	if (map->close_op)
		rtrs_srv_complete(map->close_op, 0);
	rnbd_srv_sess_put(sess);
	kobject_put(&map->kobj);
}

/* Called in any context when the last I/O of a mapping that is being closed has ended. */
static void rnbd_srv_drained(struct percpu_ref *ref)
{
	struct rnbd_srv_map *map = container_of(ref, struct rnbd_srv_map, ref);

	queue_work(map->sess->close_wq, &map->close_work);
}

static struct rnbd_srv_map *rnbd_srv_map_alloc(struct rnbd_srv_sess *sess,
					       const char *path,
					       enum rnbd_access_mode mode)
{
	struct rnbd_srv_map *map;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	if (percpu_ref_init(&map->ref, rnbd_srv_drained, 0, GFP_KERNEL)) {
		kfree(map);
		return ERR_PTR(-ENOMEM);
	}

	map->sess = sess;
	map->mode = mode;
	strscpy(map->path, path, sizeof(map->path));
	INIT_LIST_HEAD(&map->waiting);
	init_completion(&map->closed);
	INIT_WORK(&map->close_work, rnbd_srv_close_work);
	kobject_init(&map->kobj, &rnbd_srv_map_ktype);
	return map;
}

/* Load the generation of the last writer, which the server may have saved before a restart. */
static int rnbd_srv_load_state(struct rnbd_srv_map *map, const char *path)
{
	char *name;

	if (map->mode == RNBD_ACCESS_RO)
		return 0;
	name = rnbd_srv_state_name(path);
	if (name == ERR_PTR(-ENAMETOOLONG)) {
		rnbd_srv_err(map->sess, "%s: the last writer is forgotten with a restart: %pe\n",
			     map->path, name);
		return 0;
	}
	if (IS_ERR(name))
		return PTR_ERR(name);
	map->state_name = name;
	return rnbd_srv_state_load(name, &map->saved);
}

static int rnbd_srv_open_path(struct rnbd_srv_map *map, const char *path)
{
	int err = rnbd_srv_load_state(map, path);

	if (err)
		return err;
	map->backend = &rnbd_srv_bdev_backend;
	err = map->backend->open(map, path);
	if (err == -ENOTBLK) {
		map->backend = &rnbd_srv_file_backend;
		err = map->backend->open(map, path);
	}
	return err;
}

/* Open the volume or the path that the mapping's name denotes. */
static int rnbd_srv_open_name(struct rnbd_srv_map *map)
{
	char *full;
	int err;

	if (map->volume_path)
		return rnbd_srv_open_path(map, map->volume_path);
	full = rnbd_srv_full_path(map->sess, map->path);
	if (IS_ERR(full))
		return PTR_ERR(full);
	err = rnbd_srv_open_path(map, full);
	kfree(full);
	return err;
}

/* A mapping that isn't published yet, and whether the rules allow it over any path */
struct rnbd_srv_try {
	struct rnbd_srv_map *map;
	int err;
};

static bool rnbd_srv_try_peer(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_try *try = arg;

	if (try->err && !peer->closing && !rnbd_srv_rules_apply(try->map, peer))
		try->err = 0;
	return false;
}

/*
 * Open the disk or file of a mapping that isn't published yet. The rules must allow the mapping
 * over at least one path of the session, which need not be the path that received OPEN. The server
 * later closes paths over which the mapping is not allowed.
 */
static int rnbd_srv_map_open(struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_try try = { .map = map, .err = rnbd_srv_rules_apply(map, peer) };
	int err;

	if (try.err == -ENOENT)
		rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_try_peer, &try);
	if (try.err)
		return try.err;
	err = rnbd_srv_open_name(map);
	if (err)
		return err;

	err = mempool_init_kmalloc_pool(&map->vecs, 1,
					BIO_MAX_VECS * sizeof(struct bio_vec));
	if (err) {
		map->backend->close(map);
		return err;
	}

	rnbd_srv_queue_init(&map->queue, map->backend->is_disk ? map->sess->disk_wq :
							       map->sess->file_wq);
	return 0;
}

/**
 * rnbd_srv_map_answer() - answer the client's OPEN
 * @map: the open mapping
 * @msg: the client's message
 * @rsp: answer to fill in, zeroed
 *
 * Sets &rnbd_srv_map.flushes if the answer reports a write cache, and the client flushes it. With
 * RNBD_FEATURE_DISK_STATE, the client sets RNBD_OPEN_FLUSHES if it does. Other clients do if all
 * answers so far reported a cache: after an answer without, they may drop flushes.
 *
 * Context: rnbd_srv_lock is held.
 */
VISIBLE_IF_KUNIT void rnbd_srv_map_answer(struct rnbd_srv_map *map,
					  const struct rnbd_msg_open *msg,
					  struct rnbd_msg_open_rsp *rsp)
{
	bool flushes = map->flushes;

	/*
	 * The disk's cache may be turned on right after the answer has reported none. Writes that
	 * end from then on must be flushed: clear the flag before the disk's state is read.
	 */
	WRITE_ONCE(map->flushes, false);
	smp_mb(); /* see above */
	rnbd_srv_fill_rsp(map, rsp);
	if (READ_ONCE(map->sess->features) & RNBD_FEATURE_DISK_STATE)
		flushes = msg->flags & RNBD_OPEN_FLUSHES;
	WRITE_ONCE(map->flushes, flushes && rnbd_srv_has_cache(rsp));
}

/*
 * Find the session's mapping of the same name, and answer with its present size and limits. Another
 * name of the device gets its own mapping, since the client closes each name separately. Returns 1
 * if there is such a mapping, 0 if not, or -EBUSY if it is being closed or has another mode.
 */
static int rnbd_srv_open_again(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
			       const struct rnbd_srv_age *age, u32 starts,
			       struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	lockdep_assert_held(&rnbd_srv_lock);
	xa_for_each(&sess->maps, id, map) {
		if (strcmp(map->path, msg->dev_name))
			continue;
		if (map->mode != msg->access_mode || test_bit(0, &map->closing))
			return -EBUSY;
		map->starts = starts;
		rnbd_srv_writer_again(map, age);
		rnbd_srv_map_answer(map, msg, rsp);
		return 1;
	}
	return 0;
}

/* Check whether two sessions belong to one client: clients of a tenant differ in session names. */
static bool rnbd_srv_same_client(const struct rnbd_srv_sess *a, const struct rnbd_srv_sess *b)
{
	return a->rules == b->rules && !strcmp(a->name, b->name);
}

/* Check whether an old session of the client, which is still ending, has the device open. */
static bool rnbd_srv_held_by_old(const struct rnbd_srv_dev *dev,
				 const struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		if (map->sess != sess && rnbd_srv_same_client(map->sess, sess))
			return true;
	}
	return false;
}

/* Add sessions/<session> or, if the session has another mapping there, sessions/<session>.<id>. */
static int rnbd_srv_map_show(struct rnbd_srv_map *map, struct rnbd_srv_dev *dev)
{
	const char *name = map->sess->label;
	struct rnbd_srv_map *old;

	list_for_each_entry(old, &dev->maps, list) {
		if (!strcmp(kobject_name(&old->kobj), name))
			return kobject_add(&map->kobj, dev->sessions, "%s.%u",
					   name, map->id);
	}
	return kobject_add(&map->kobj, dev->sessions, "%s", name);
}

static int rnbd_srv_room(struct rnbd_srv_sess *sess)
{
	if (sess->nr_maps < RNBD_SRV_SESS_MAPS)
		return 0;
	rnbd_srv_err(sess, "%u devices are open, no more are possible: unmap one first\n",
		     sess->nr_maps);
	return -EMFILE;
}

/* Make a mapping visible. After kobject_add(), it may be closed, and no step may fail. */
static int rnbd_srv_map_publish(struct rnbd_srv_map *map,
				struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_sess *sess = map->sess;
	int err;

	err = xa_alloc_cyclic(&sess->maps, &map->id, NULL,
			      XA_LIMIT(0, U16_MAX), &sess->next_id, GFP_KERNEL);
	if (err < 0)
		return err;
	err = rnbd_srv_map_show(map, dev);
	if (err) {
		xa_erase(&sess->maps, map->id);
		return err;
	}

	map->dev = dev;
	list_move(&map->list, &dev->maps);
	rnbd_srv_count_map(map, dev, 1);
	refcount_inc(&sess->users);
	sess->nr_maps++;
	xa_store(&sess->maps, map->id, map, GFP_KERNEL);
	return 0;
}

/*
 * Check of a mapping: @keep is a path over which the rules allow it, and stays even if the rules
 * change during the check. @others: there are paths over which they don't allow it. @end: end
 * these.
 */
struct rnbd_srv_verdict {
	const struct rnbd_srv_map *map;
	const struct rtrs_srv_path *keep;
	bool others;
	bool end;
};

static bool rnbd_srv_check_peer(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_verdict *verdict = arg;

	if (peer->closing || peer->path == verdict->keep)
		return false;
	if (!rnbd_srv_rules_hold(verdict->map, peer)) {
		verdict->others = true;
		return verdict->end;
	}
	verdict->keep = verdict->keep ?: peer->path;
	return false;
}

/* Check whether the rules allow a mapping over any path. If so, end the session's other paths. */
static bool rnbd_srv_allowed(struct rnbd_srv_map *map)
{
	struct rnbd_srv_verdict verdict = { .map = map };

	lockdep_assert_held(&rnbd_srv_lock);
	rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_check_peer, &verdict);
	verdict.end = verdict.keep && verdict.others;
	if (verdict.end)
		rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_check_peer, &verdict);
	return verdict.keep || !verdict.others;
}

/* Search for the cgroup of a session: a host that one of its paths matches may name one. */
struct rnbd_srv_css_search {
	const struct rnbd_srv_sess *sess;
	struct cgroup_subsys_state *css;
	bool any_path;
};

static bool rnbd_srv_find_css(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_css_search *search = arg;

	if (!peer->closing && !search->css) {
		search->css = rnbd_srv_cgroup(search->sess, peer);
		search->any_path = true;
	}
	return false;
}

/*
 * Set the cgroup of a mapping. The first path whose host names a cgroup decides. A session without
 * paths keeps the cgroup.
 */
static void rnbd_srv_choose_css(struct rnbd_srv_map *map)
{
	struct rnbd_srv_css_search search = { .sess = map->sess };

	lockdep_assert_held(&rnbd_srv_lock);
	rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_find_css, &search);
	if (search.any_path)
		rnbd_srv_css_set(map, search.css);
}

/*
 * Add @map to its device, which is *@spare if no mapping has the disk or file open yet. Returns 0
 * or a negative errno.
 */
static int rnbd_srv_map_attach(struct rnbd_srv_map *map, struct rnbd_srv_dev **spare,
			       const struct rnbd_msg_open *msg, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_dev *dev;
	int ret;

	lockdep_assert_held(&rnbd_srv_lock);
	dev = rnbd_srv_dev_get(map, spare);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	rnbd_srv_rules_refresh(map);
	rnbd_srv_choose_css(map);
	/*
	 * A newer writer is checked before the causes of -EBUSY, after which a fenced client would
	 * retry. Later changes of rules, and new paths, check the published mapping.
	 */
	ret = (map->mode == RNBD_ACCESS_RO ? 0 : rnbd_srv_writer_join(map)) ?:
	      (rnbd_srv_held_by_old(dev, map->sess) ? -EBUSY : 0) ?:
	      rnbd_srv_access(dev, map->mode) ?:
	      rnbd_srv_alone(dev, map) ?:
	      rnbd_srv_room(map->sess) ?:
	      (rnbd_srv_allowed(map) ? 0 : -ENOENT) ?:
	      rnbd_srv_map_publish(map, dev);
	if (ret) {
		rnbd_srv_writer_leave(map);
		rnbd_srv_dev_put(dev);
		return ret;
	}
	/* No answer has reported a disk without a cache yet. */
	map->flushes = true;
	rnbd_srv_map_answer(map, msg, rsp);
	return 0;
}

static bool rnbd_srv_peer_refused(const struct rtrs_srv_peer *peer, void *arg)
{
	const struct rnbd_srv_sess *sess = arg;

	return !peer->closing && rnbd_srv_admit(sess->rules, sess->name, peer);
}

/**
 * rnbd_srv_recheck() - close paths and mappings that the rules don't allow any more
 *
 * New I/O on them is refused when this returns; I/O in progress is finished. A path is closed if
 * its client would not be admitted now. The client may connect again with the proof that is
 * required now, and resume its session or open its devices in a new one.
 *
 * Context: process, may sleep; after the change of the rules, without rnbd_srv_rules_lock.
 */
void rnbd_srv_recheck(void)
{
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;
	struct rnbd_srv_map *map;

	mutex_lock(&rnbd_srv_lock);
	list_for_each_entry(sess, &rnbd_srv_sessions, list)
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_peer_refused, sess);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		list_for_each_entry(map, &dev->maps, list) {
			/* A mapping that is being closed must not close paths. */
			if (test_bit(0, &map->closing))
				continue;
			rnbd_srv_choose_css(map);
			if (!rnbd_srv_allowed(map) && rnbd_srv_close(map, NULL))
				rnbd_srv_info(map->sess, "may not have %s (%s) any more\n",
					      map->path, rnbd_srv_access_names[map->mode]);
		}
	}
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_add_sess() - add a session to those that rnbd_srv_recheck() checks
 * @sess: session whose first path is not up yet
 */
void rnbd_srv_add_sess(struct rnbd_srv_sess *sess)
{
	mutex_lock(&rnbd_srv_lock);
	list_add(&sess->list, &rnbd_srv_sessions);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_del_sess() - undo rnbd_srv_add_sess()
 * @sess: session that has no paths any more
 */
void rnbd_srv_del_sess(struct rnbd_srv_sess *sess)
{
	mutex_lock(&rnbd_srv_lock);
	list_del(&sess->list);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_add_host() - add a host to the rules of its tenant
 * @host: the new host
 */
void rnbd_srv_add_host(struct rnbd_srv_host *host)
{
	mutex_lock(&rnbd_srv_lock);
	mutex_lock(&rnbd_srv_rules_lock);
	list_add_tail(&host->list, &host->rules->hosts);
	mutex_unlock(&rnbd_srv_rules_lock);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_del_host() - undo rnbd_srv_add_host()
 * @host: the host
 */
void rnbd_srv_del_host(struct rnbd_srv_host *host)
{
	mutex_lock(&rnbd_srv_lock);
	mutex_lock(&rnbd_srv_rules_lock);
	list_del(&host->list);
	mutex_unlock(&rnbd_srv_rules_lock);
	mutex_unlock(&rnbd_srv_lock);
	rnbd_srv_recheck();
}

/*
 * Count of what a host uses: the session that is being walked, the one that was counted last, and
 * the one that requests one more path, or NULL
 */
struct rnbd_srv_count {
	const struct rnbd_srv_host *host;
	const struct rnbd_srv_sess *sess;
	const struct rnbd_srv_sess *counted;
	const struct rnbd_srv_sess *asks;
	u64 *used;
};

static bool rnbd_srv_count_path(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_count *count = arg;

	/* The new path may replace closing paths of the same client. */
	if (peer->closing && count->asks && rnbd_srv_same_client(count->sess, count->asks))
		return false;
	if (!rnbd_srv_is_host(count->host, count->sess, peer))
		return false;
	count->used[RNBD_SRV_MAX_SESSIONS] += count->counted != count->sess;
	count->used[RNBD_SRV_MAX_MEMORY] += peer->memory;
	count->counted = count->sess;
	return false;
}

/* Count what a host uses, in @used, by walking all paths. */
static void rnbd_srv_count_paths(const struct rnbd_srv_host *host, const struct rnbd_srv_sess *asks,
				 u64 *used)
{
	struct rnbd_srv_count count = { .host = host, .asks = asks, .used = used };
	struct rnbd_srv_sess *sess;

	lockdep_assert_held(&rnbd_srv_lock);
	memset(used, 0, RNBD_SRV_NR_LIMITS * sizeof(*used));
	list_for_each_entry(sess, &rnbd_srv_sessions, list) {
		count.sess = sess;
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_count_path, &count);
	}
}

/**
 * rnbd_srv_count_host() - count what a host uses
 * @host: the host
 * @used: set to the counts, indexed by enum rnbd_srv_limit
 *
 * Context: process, may sleep.
 */
void rnbd_srv_count_host(const struct rnbd_srv_host *host, u64 *used)
{
	mutex_lock(&rnbd_srv_lock);
	rnbd_srv_count_paths(host, NULL, used);
	mutex_unlock(&rnbd_srv_lock);
}

/* Check the limits of the hosts to which a new path belongs. */
static int rnbd_srv_check_limits(const struct rnbd_srv_sess *sess,
				 const struct rtrs_srv_peer *peer)
{
	u64 used[RNBD_SRV_NR_LIMITS];
	struct rnbd_srv_host *host;
	int err;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (!rnbd_srv_has_limits(host) || !rnbd_srv_is_host(host, sess, peer))
			continue;
		rnbd_srv_count_paths(host, sess, used);
		err = rnbd_srv_in_limits(host, sess, used);
		if (err)
			return err;
	}
	return 0;
}

static bool rnbd_srv_note_path(const struct rtrs_srv_peer *peer, void *any)
{
	*(bool *)any |= !peer->closing;
	return false;
}

/*
 * Check whether the rules allow the session's mappings over a new path. The rules may have changed
 * while the session had no path. In that case the first path closes forbidden mappings, since the
 * client has closed its devices. A further path is rejected instead, to keep mappings in use.
 */
static int rnbd_srv_may_join(struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer,
			     bool others)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	xa_for_each(&sess->maps, id, map) {
		if (test_bit(0, &map->closing) || rnbd_srv_rules_hold(map, peer))
			continue;
		if (others || !peer->first)
			return -EACCES;
		rnbd_srv_close(map, NULL);
	}
	return 0;
}

static void rnbd_srv_choose_all_css(struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	xa_for_each(&sess->maps, id, map)
		rnbd_srv_choose_css(map);
}

/**
 * rnbd_srv_path_up() - check whether a path may join a session
 * @priv: the session
 * @peer: the client on the path
 *
 * Devices that the session opens later close the paths over which they are not allowed.
 *
 * Context: see &rtrs_srv_ops.path_up.
 * Return: 0; -EACCES if the session has another path, and a mapping that is not allowed over this
 * one; or an errno of rnbd_srv_admit() or rnbd_srv_in_limits().
 */
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_sess *sess = priv;
	bool others = false;
	int err;

	mutex_lock(&rnbd_srv_lock);
	rtrs_srv_each_path(sess->rtrs, rnbd_srv_note_path, &others);
	rtrs_srv_know_path(peer, true);
	/* Checked again, as keys may have changed since the transport's call. */
	err = rnbd_srv_admit(sess->rules, sess->name, peer) ?:
	      rnbd_srv_may_join(sess, peer, others) ?:
	      rnbd_srv_check_limits(sess, peer);
	if (err)
		rtrs_srv_know_path(peer, false);
	else
		rnbd_srv_choose_all_css(sess);
	mutex_unlock(&rnbd_srv_lock);
	return err;
}

/*
 * Check whether the client has given up its OPEN, and so would not close the mapping: because the
 * path is closing, or SESS_INFO has arrived since. The latter is not checked for clients without
 * features, as in-tree clients send OPEN before SESS_INFO is answered.
 */
static bool rnbd_srv_open_is_late(const struct rnbd_srv_sess *sess,
				  const struct rtrs_srv_peer *peer, u32 starts)
{
	lockdep_assert_held(&rnbd_srv_lock);
	return rtrs_srv_peer_closing(peer) ||
	       (READ_ONCE(sess->features) && starts != READ_ONCE(sess->starts));
}

/*
 * Check whether the session is opening the same name. If so, @req waits until that has ended: an
 * open that hangs must not occupy more than one worker, however often the client repeats it.
 */
static bool rnbd_srv_open_waits(struct rnbd_srv_sess *sess, const char *name,
				struct rnbd_srv_req *req)
{
	struct rnbd_srv_map *map;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(map, &sess->opening, list) {
		if (!strcmp(map->path, name)) {
			list_add_tail(&req->parked, &map->waiting);
			return true;
		}
	}
	return false;
}

/* Queue the OPENs that wait until @map has been opened, or can't be opened. */
static void rnbd_srv_open_wake(struct rnbd_srv_map *map)
{
	struct rnbd_srv_req *req, *next;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry_safe(req, next, &map->waiting, parked) {
		list_del(&req->parked);
		queue_work(map->sess->open_wq, &req->work);
	}
}

/* Publish @map, whose disk or file is open. Returns 0 or a negative errno. */
static int rnbd_srv_open_publish(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
				 const struct rtrs_srv_peer *peer, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_dev *spare = rnbd_srv_dev_alloc();
	unsigned int noio;
	int ret;

	if (!spare)
		return -ENOMEM;
	mutex_lock(&rnbd_srv_lock);
	noio = memalloc_noio_save();
	ret = rnbd_srv_open_is_late(map->sess, peer, map->starts) ? -ECONNABORTED :
	      rnbd_srv_map_attach(map, &spare, msg, rsp);
	/* Once published, the mapping may be closed when the lock is released. */
	if (!ret)
		rnbd_srv_open_wake(map);
	memalloc_noio_restore(noio);
	mutex_unlock(&rnbd_srv_lock);
	if (spare)
		kobject_put(&spare->kobj);
	return ret;
}

/*
 * Open the disk or file of @map, which is in &rnbd_srv_sess.opening, and publish @map. If that
 * fails, the OPENs that wait are queued after the disk or file was closed, as it may be claimed.
 * Returns 0 or a negative errno.
 */
static int rnbd_srv_open_map(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
			     const struct rtrs_srv_peer *peer, struct rnbd_msg_open_rsp *rsp)
{
	int ret = rnbd_srv_map_open(map, peer);

	if (!ret) {
		ret = rnbd_srv_open_publish(map, msg, peer, rsp);
		if (!ret)
			return 0;
		rnbd_srv_map_release_file(map);
	} else if (ret == -EBADE) {
		/* From opening the file. To the client, it means that a newer mapping wrote. */
		ret = -EIO;
	}
	mutex_lock(&rnbd_srv_lock);
	list_del(&map->list);
	rnbd_srv_open_wake(map);
	mutex_unlock(&rnbd_srv_lock);
	return ret;
}

/*
 * Answer OPEN if the session has the name open, or queue @req if the name is being opened. Returns
 * 0 if the name has to be opened, 1 if OPEN is answered, -EIOCBQUEUED if @req is queued, or another
 * negative errno for the client.
 */
static int rnbd_srv_open_known(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
			       const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
			       struct rnbd_srv_req *req, struct rnbd_msg_open_rsp *rsp)
{
	lockdep_assert_held(&rnbd_srv_lock);
	if (rnbd_srv_open_is_late(sess, peer, req->starts))
		return -ECONNABORTED;
	return rnbd_srv_open_again(sess, msg, age, req->starts, rsp) ?:
	       (rnbd_srv_open_waits(sess, msg->dev_name, req) ? -EIOCBQUEUED : 0);
}

/**
 * rnbd_srv_open() - open a device for a session
 * @sess: session of the client
 * @msg: the client's message, checked
 * @age: age of the mapping as the client reported it; all 0 if the message has none
 * @peer: the client on the path of the message
 * @req: request of the message
 * @rsp: answer to fill in, zeroed by the caller
 *
 * Context: kernel thread, as required by __fput_sync(); may sleep.
 * Return: 0; -EIOCBQUEUED if @req waits for another OPEN of the same name, after which its work is
 * queued again; or another negative errno, for the client.
 */
int rnbd_srv_open(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
		  const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
		  struct rnbd_srv_req *req, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	int ret;

	/* An answer for a device that is open must not need memory: allocate afterwards. */
	mutex_lock(&rnbd_srv_lock);
	ret = rnbd_srv_open_known(sess, msg, age, peer, req, rsp);
	mutex_unlock(&rnbd_srv_lock);
	if (ret)
		return min(ret, 0);

	map = rnbd_srv_map_alloc(sess, msg->dev_name, msg->access_mode);
	if (IS_ERR(map))
		return PTR_ERR(map);
	map->age = *age;
	map->starts = req->starts;

	mutex_lock(&rnbd_srv_lock);
	ret = rnbd_srv_open_known(sess, msg, age, peer, req, rsp);
	if (!ret)
		list_add(&map->list, &sess->opening);
	mutex_unlock(&rnbd_srv_lock);
	if (!ret) {
		ret = rnbd_srv_open_map(map, msg, peer, rsp);
		if (!ret) {
			rnbd_srv_info(sess, "opened %s (%s)\n", msg->dev_name,
				      rnbd_srv_access_names[msg->access_mode]);
			return 0;
		}
	}
	kobject_put(&map->kobj);
	return min(ret, 0);
}
