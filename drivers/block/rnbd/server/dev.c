// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: devices, and their mappings: creation and closing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

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

/**
 * rnbd_srv_dev_alloc() - allocate a device
 *
 * Context: process, may sleep.
 * Return: the device, for rnbd_srv_map_attach(), or NULL. Its last reference frees it.
 */
struct rnbd_srv_dev *rnbd_srv_dev_alloc(void)
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

/*
 * Add the device @spare. The caller has allocated it before taking the lock: the allocation of
 * per-CPU memory may fail where it must not wait for I/O.
 */
static struct rnbd_srv_dev *rnbd_srv_dev_create(const struct rnbd_srv_map *map,
						struct rnbd_srv_dev **spare)
{
	struct rnbd_srv_dev *dev = *spare;
	char *name = rnbd_srv_dev_name(map);
	int err = -EBUSY;

	if (IS_ERR(name))
		return ERR_CAST(name);
	if (!rnbd_srv_name_taken(name))
		err = kobject_add(&dev->kobj, rnbd_srv_devices, "%s", name);
	kfree(name);
	if (err)
		return ERR_PTR(err);

	*spare = NULL;
	err = -ENOMEM;
	dev->sessions = kobject_create_and_add("sessions", &dev->kobj);
	if (dev->sessions)
		err = map->bdev ? sysfs_create_link(&dev->kobj, bdev_kobj(map->bdev),
						    "block_dev") : 0;
	if (err) {
		rnbd_srv_dev_del(dev);
		return ERR_PTR(err);
	}
	list_add(&dev->list, &rnbd_srv_devs);
	rnbd_srv_start_watch();
	return dev;
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
 * rnbd_srv_shared() - check whether other sessions' mappings allow one more mapping
 * @dev: device with its present mappings
 * @map: the new mapping
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0, or -EBUSY if another session has the device open, and its mapping or @map is
 * exclusive, or it is an old session of the same client, which is still ending.
 */
int rnbd_srv_shared(const struct rnbd_srv_dev *dev, const struct rnbd_srv_map *map)
{
	struct rnbd_srv_map *old;

	list_for_each_entry(old, &dev->maps, list) {
		if (old->sess != map->sess &&
		    (old->exclusive || map->exclusive ||
		     rnbd_srv_same_client(old->sess, map->sess)))
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

/**
 * rnbd_srv_map_release_file() - undo rnbd_srv_map_open()
 * @map: mapping that belongs to no device, or does not any more
 *
 * Context: process; may wait for I/O of the disk or filesystem.
 */
void rnbd_srv_map_release_file(struct rnbd_srv_map *map)
{
	rnbd_srv_queue_exit(&map->queue);
	mempool_exit(&map->vecs);
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
 * rnbd_srv_map_attach() has returned. The lock is not held while waiting for users of the
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

/**
 * rnbd_srv_map_alloc() - allocate a mapping
 * @sess: the session
 * @path: name of the device, as sent by the client
 * @mode: access mode
 *
 * Context: process, may sleep.
 * Return: the mapping, which is freed with its kobject, or ERR_PTR(-ENOMEM).
 */
struct rnbd_srv_map *rnbd_srv_map_alloc(struct rnbd_srv_sess *sess, const char *path,
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
	/* No answer has reported a disk without a cache yet. */
	map->flushes = true;
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

/**
 * rnbd_srv_map_open() - open the disk or file of a mapping
 * @map: mapping from rnbd_srv_map_alloc()
 *
 * Context: kernel thread, as required by __fput_sync(); may sleep.
 * Return: 0 or a negative errno.
 */
int rnbd_srv_map_open(struct rnbd_srv_map *map)
{
	int err;

	err = rnbd_srv_rules_apply(map) ?: rnbd_srv_open_name(map);
	if (err)
		return err;

	err = mempool_init_kmalloc_pool(&map->vecs, 1, BIO_MAX_VECS * sizeof(struct bio_vec));
	if (err) {
		map->backend->close(map);
		return err;
	}

	rnbd_srv_queue_init(&map->queue, map->backend->is_disk ? map->sess->disk_wq :
							       map->sess->file_wq);
	return 0;
}

/* Add sessions/<session> or, if the session has another mapping there, sessions/<session>.<id>. */
static int rnbd_srv_map_show(struct rnbd_srv_map *map, struct rnbd_srv_dev *dev)
{
	const char *name = map->sess->label;
	struct rnbd_srv_map *old;

	list_for_each_entry(old, &dev->maps, list) {
		if (!strcmp(kobject_name(&old->kobj), name))
			return kobject_add(&map->kobj, dev->sessions, "%s.%u", name, map->id);
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
static int rnbd_srv_map_publish(struct rnbd_srv_map *map, struct rnbd_srv_dev *dev)
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

/**
 * rnbd_srv_map_attach() - add a mapping to its device, and make it visible
 * @map: mapping after rnbd_srv_map_open()
 * @spare: from rnbd_srv_dev_alloc(). Set to NULL if it becomes the device, because no mapping has
 *	the disk or file open yet
 *
 * Context: rnbd_srv_lock is held; when it is released, the mapping may be closed.
 * Return: 0 or a negative errno.
 */
int rnbd_srv_map_attach(struct rnbd_srv_map *map, struct rnbd_srv_dev **spare)
{
	struct rnbd_srv_dev *dev;
	int allowed, ret;

	lockdep_assert_held(&rnbd_srv_lock);
	dev = rnbd_srv_dev_get(map, spare);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	allowed = rnbd_srv_rules_refresh(map);
	/*
	 * A newer writer is checked before the causes of -EBUSY, after which a fenced client would
	 * retry.
	 */
	ret = (map->mode == RNBD_ACCESS_RO ? 0 : rnbd_srv_writer_join(map)) ?:
	      rnbd_srv_access(dev, map->mode) ?:
	      rnbd_srv_shared(dev, map) ?:
	      rnbd_srv_room(map->sess) ?:
	      allowed ?:
	      rnbd_srv_map_publish(map, dev);
	if (ret) {
		rnbd_srv_writer_leave(map);
		rnbd_srv_dev_put(dev);
	}
	return ret;
}
