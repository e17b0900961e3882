// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: devices, and opening and closing their mappings.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

/* The sizes and limits of devices are checked this often. */
#define RNBD_SRV_WATCH	HZ

static DEFINE_MUTEX(rnbd_srv_lock);
static LIST_HEAD(rnbd_srv_devs);
static LIST_HEAD(rnbd_srv_sessions);

static void rnbd_srv_watch_work(struct work_struct *work);
/* Runs while there are devices. */
static DECLARE_DELAYED_WORK(rnbd_srv_watch, rnbd_srv_watch_work);

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
 * Two files can have the same name in sysfs: a file was removed and created again while
 * the old one is open here, or paths differ only in ! and /.
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

static struct rnbd_srv_dev *rnbd_srv_dev_create(const struct rnbd_srv_map *map)
{
	struct rnbd_srv_dev *dev;
	char *name;
	int err;

	name = rnbd_srv_dev_name(map);
	if (IS_ERR(name))
		return ERR_CAST(name);

	err = -EBUSY;
	if (rnbd_srv_name_taken(name))
		goto free_name;

	err = -ENOMEM;
	dev = rnbd_srv_dev_alloc();
	if (!dev)
		goto free_name;

	err = rnbd_srv_dev_add(dev, name, map->bdev);
	if (err)
		goto free_name;
	list_add(&dev->list, &rnbd_srv_devs);
	queue_delayed_work(rnbd_srv_wq, &rnbd_srv_watch, RNBD_SRV_WATCH);
	kfree(name);
	return dev;

free_name:
	kfree(name);
	return ERR_PTR(err);
}

/*
 * What tells disks and files from each other. A file of an overlayfs is the one that has its data,
 * in a layer below, and another one once it has been copied up: so this is not kept.
 */
static const struct inode *rnbd_srv_inode(const struct rnbd_srv_map *map)
{
	if (map->bdev)
		return map->file->f_mapping->host;
	return d_real_inode(map->file->f_path.dentry);
}

static struct rnbd_srv_dev *rnbd_srv_dev_get(const struct rnbd_srv_map *map)
{
	const struct inode *inode = rnbd_srv_inode(map);
	const struct rnbd_srv_map *other;
	struct rnbd_srv_dev *dev;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		list_for_each_entry(other, &dev->maps, list) {
			if (rnbd_srv_inode(other) == inode)
				return dev;
		}
	}
	return rnbd_srv_dev_create(map);
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
	/* Mappings in mode handover fence each other, and no others. */
	if (dev->nr_handover != (mode == RNBD_ACCESS_HANDOVER ? dev->nr_writers : 0))
		return -EBUSY;
	return dev->nr_writers < max_writers[mode] ? 0 : -EBUSY;
}

/**
 * rnbd_srv_alone() - check whether a device may have one more session
 * @dev: device with its present mappings
 * @map: the new mapping
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0, or -EBUSY if another session has the device open, and one of the two is to have it
 * for itself.
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

/* Counts the device's mappings by what they may do. */
static void rnbd_srv_count_map(const struct rnbd_srv_map *map, struct rnbd_srv_dev *dev, int nr)
{
	if (map->mode != RNBD_ACCESS_RO)
		dev->nr_writers += nr;
	if (map->mode == RNBD_ACCESS_HANDOVER)
		dev->nr_handover += nr;
}

static void rnbd_srv_map_close_file(struct rnbd_srv_map *map)
{
	if (map->backend && map->backend->close)
		map->backend->close(map);
	__fput_sync(map->file);
}

/* Undo rnbd_srv_map_open(). May take as long as I/O does. */
static void rnbd_srv_map_release_file(struct rnbd_srv_map *map)
{
	rnbd_srv_queue_exit(&map->queue);
	mempool_exit(&map->vecs);
	rnbd_srv_css_set(map, NULL);
	rnbd_srv_map_close_file(map);
}

/*
 * Sync a mapping that is closed because the server stops: the machine may be about to lose its
 * power, and the client may not have flushed its last writes.
 */
static void rnbd_srv_map_sync(struct rnbd_srv_map *map)
{
	int err;

	if (map->mode == RNBD_ACCESS_RO || !READ_ONCE(map->sess->rules->stopping))
		return;
	err = vfs_fsync(map->file, 0);
	if (err)
		rnbd_srv_err(map->sess, "can't sync %s: %pe\n", map->path, ERR_PTR(err));
}

/*
 * No I/O is in progress. Taking rnbd_srv_lock first makes sure that
 * rnbd_srv_map_publish() has returned. The lock is not held while waiting for users of
 * the attributes, and for the file. The device is removed before the file is closed, as
 * the files of its mappings tell which one it is. The attributes are gone before what they
 * show is.
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
	/* First, since the session may end after this. */
	if (map->close_op)
		rtrs_srv_complete(map->close_op, 0);
	rnbd_srv_sess_put(sess);
	kobject_put(&map->kobj);
}

/* The last I/O of a mapping that is being closed has ended. Any context. */
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
	init_completion(&map->closed);
	INIT_WORK(&map->close_work, rnbd_srv_close_work);
	kobject_init(&map->kobj, &rnbd_srv_map_ktype);
	return map;
}

/* Checked again on the open file, as the name may have been reused in between. */
static const struct rnbd_srv_backend *rnbd_srv_backend(const struct rnbd_srv_map *map)
{
	umode_t type = file_inode(map->file)->i_mode;

	if (S_ISBLK(type))
		return &rnbd_srv_bdev_backend;
	return S_ISREG(type) && rnbd_srv_files_ok(map) ? &rnbd_srv_file_backend : NULL;
}

/* Load the saved generation of the last writer, which a restarted server does not know. */
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

static struct file *rnbd_srv_open_path(struct rnbd_srv_map *map, const char *path)
{
	int err = rnbd_srv_load_state(map, path);

	return err ? ERR_PTR(err) : rnbd_srv_open_file(map, path);
}

/* Open what the mapping's name stands for: a volume, or a path. */
static struct file *rnbd_srv_open_name(struct rnbd_srv_map *map)
{
	struct file *file;
	char *full;

	if (map->volume_path)
		return rnbd_srv_open_path(map, map->volume_path);
	full = rnbd_srv_full_path(map->sess, map->path);
	if (IS_ERR(full))
		return ERR_CAST(full);
	file = rnbd_srv_open_path(map, full);
	kfree(full);
	return file;
}

/* Find out which disk or file is open. The numbers of a disk are reused, but not its diskseq. */
static int rnbd_srv_identify(struct rnbd_srv_map *map)
{
	struct kstat stat;
	int err;

	if (map->bdev) {
		map->disk_id.dev = map->bdev->bd_dev;
		map->disk_id.nr = map->bdev->bd_disk->diskseq;
		return 0;
	}
	/* Subvolumes of btrfs share the superblock, and with it s_dev, but not inode numbers. */
	err = vfs_getattr(&map->file->f_path, &stat, STATX_INO, AT_STATX_DONT_SYNC);
	if (err)
		return err;
	map->disk_id.dev = stat.dev;
	map->disk_id.nr = stat.ino;
	map->disk_id.generation = file_inode(map->file)->i_generation;
	return 0;
}

static bool rnbd_srv_try_peer(const struct rtrs_srv_peer *peer, void *map)
{
	return !rnbd_srv_rules_apply(map, peer);
}

/*
 * Open the file of a mapping that isn't published yet. It doesn't matter over which of its paths
 * a client asks: those over which it may not have what it gets are ended.
 */
static int rnbd_srv_map_open(struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer)
{
	int err = rnbd_srv_rules_apply(map, peer);

	if (err == -ENOENT && rtrs_srv_any_path(map->sess->rtrs, rnbd_srv_try_peer, map))
		err = 0;
	if (err)
		return err;
	map->file = rnbd_srv_open_name(map);
	if (IS_ERR(map->file))
		return PTR_ERR(map->file);

	map->backend = rnbd_srv_backend(map);
	err = map->backend ? map->backend->open(map) : -ENOTBLK;
	if (!err)
		err = rnbd_srv_identify(map);
	if (err)
		goto close_file;

	err = mempool_init_kmalloc_pool(&map->vecs, 1,
					BIO_MAX_VECS * sizeof(struct bio_vec));
	if (err)
		goto close_file;

	rnbd_srv_queue_init(&map->queue, map->backend->is_disk ? map->sess->disk_wq :
							       map->sess->file_wq);
	return 0;

close_file:
	rnbd_srv_map_close_file(map);
	return err;
}

static bool rnbd_srv_has_cache(const struct rnbd_msg_open_rsp *rsp)
{
	return rsp->cache_policy & RNBD_CACHE_WRITEBACK;
}

/*
 * Answer the client's OPEN. From then on the client flushes the write cache of which the answer
 * tells: if it says so by RNBD_OPEN_FLUSHES or, without RNBD_FEATURE_DISK_STATE, if all answers so
 * far told of a cache. A client that is told that there is none may drop flushes.
 */
static void rnbd_srv_map_answer(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
				struct rnbd_msg_open_rsp *rsp)
{
	bool flushes = map->flushes;

	rnbd_srv_fill_rsp(map, rsp);
	if (READ_ONCE(map->sess->features) & RNBD_FEATURE_DISK_STATE)
		flushes = msg->flags & RNBD_OPEN_FLUSHES;
	WRITE_ONCE(map->flushes, flushes && rnbd_srv_has_cache(rsp));
}

/*
 * Find a mapping that the session has by the same name, and answer with its present size and
 * limits. Another name of the device gets a mapping of its own, since the client closes each name.
 * Returns 1 if there is a mapping; 0 if not; -EBUSY if it is being closed, or is open in another
 * mode.
 */
static int rnbd_srv_open_again(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
			       const struct rnbd_srv_age *age, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	lockdep_assert_held(&rnbd_srv_lock);
	xa_for_each(&sess->maps, id, map) {
		if (strcmp(map->path, msg->dev_name))
			continue;
		if (map->mode != msg->access_mode || test_bit(0, &map->closing))
			return -EBUSY;
		rnbd_srv_writer_again(map, age);
		rnbd_srv_map_answer(map, msg, rsp);
		return 1;
	}
	return 0;
}

/* A tenant's clients have sessions of different names. */
static bool rnbd_srv_same_client(const struct rnbd_srv_sess *a, const struct rnbd_srv_sess *b)
{
	return a->rules == b->rules && !strcmp(a->name, b->name);
}

/* Has a session of the same name, which hasn't ended yet, the device open? */
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

/* sessions/<session>, or sessions/<session>.<id> if the session has that already */
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

/* kobject_add() is the last step that can fail: from then on it can be closed. */
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
	list_add(&map->list, &dev->maps);
	rnbd_srv_count_map(map, dev, 1);
	refcount_inc(&sess->users);
	sess->nr_maps++;
	xa_store(&sess->maps, map->id, map, GFP_KERNEL);
	return 0;
}

static bool rnbd_srv_peer_ok(const struct rtrs_srv_peer *peer, void *map)
{
	return rnbd_srv_rules_hold(map, peer);
}

/* Do the rules allow a mapping? Over some paths of its session only: the others are ended. */
static bool rnbd_srv_allowed(struct rnbd_srv_map *map)
{
	lockdep_assert_held(&rnbd_srv_lock);
	return rtrs_srv_restrict_paths(map->sess->rtrs, rnbd_srv_peer_ok, map);
}

/* A session's paths are looked at for a cgroup. */
struct rnbd_srv_css_search {
	const struct rnbd_srv_sess *sess;
	struct cgroup_subsys_state *css;
	bool any_path;
};

static bool rnbd_srv_find_css(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_css_search *search = arg;

	search->any_path = true;
	return rnbd_srv_cgroup(search->sess, peer, &search->css);
}

/*
 * That of its first path which is of a host with one; without a path it stays what it was. Who
 * reads the old one does so under RCU.
 */
static void rnbd_srv_choose_css(struct rnbd_srv_map *map)
{
	struct rnbd_srv_css_search search = { .sess = map->sess };

	lockdep_assert_held(&rnbd_srv_lock);
	rtrs_srv_any_path(map->sess->rtrs, rnbd_srv_find_css, &search);
	if (search.any_path)
		rnbd_srv_css_set(map, search.css);
}

/*
 * Add @map to its device. Returns 0; 1 if somebody was faster with the same name, so that
 * @map isn't needed; or a negative errno.
 */
static int rnbd_srv_map_attach(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
			       struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_dev *dev;
	int ret;

	lockdep_assert_held(&rnbd_srv_lock);
	ret = rnbd_srv_open_again(map->sess, msg, &map->age, rsp);
	if (ret)
		return ret;
	dev = rnbd_srv_dev_get(map);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	rnbd_srv_rules_refresh(map);
	rnbd_srv_choose_css(map);
	/* Before -EBUSY: the client retries after that, and a refused one must not. */
	ret = map->mode == RNBD_ACCESS_RO ? 0 : rnbd_srv_writer_join(map);
	if (!ret && rnbd_srv_held_by_old(dev, map->sess))
		ret = -EBUSY;
	if (!ret)
		ret = rnbd_srv_access(dev, map->mode);
	if (!ret)
		ret = rnbd_srv_alone(dev, map);
	if (!ret)
		ret = rnbd_srv_room(map->sess);
	/* Changes of rules, and new paths, find it among the device's mappings later. */
	if (!ret && !rnbd_srv_allowed(map))
		ret = -ENOENT;
	if (!ret)
		ret = rnbd_srv_map_publish(map, dev);
	if (ret) {
		rnbd_srv_writer_leave(map);
		rnbd_srv_dev_put(dev);
		return ret;
	}
	/* No answer has told of a disk without a cache yet. */
	map->flushes = true;
	rnbd_srv_map_answer(map, msg, rsp);
	return 0;
}

static bool rnbd_srv_size_changed(const struct rnbd_srv_map *map,
				  const struct rnbd_msg_open_rsp *now)
{
	u64 is = le64_to_cpu(now->nsectors), was = le64_to_cpu(map->told.nsectors);

	if (is == was)
		return false;
	rnbd_srv_info(map->sess, "%s has %s from %llu to %llu sectors\n", map->path,
		      is > was ? "grown" : "shrunk", was, is);
	return true;
}

static bool rnbd_srv_limits_changed(const struct rnbd_srv_map *map,
				    const struct rnbd_msg_open_rsp *now)
{
	if (rnbd_same_limits(now, &map->told))
		return false;
	if (rnbd_srv_has_cache(now) && !READ_ONCE(map->flushes))
		rnbd_srv_info(map->sess, "%s has a write cache now: writes are flushed until the client does that\n",
			      map->path);
	else
		rnbd_srv_info(map->sess, "%s has other limits now\n", map->path);
	return true;
}

/**
 * rnbd_srv_changed() - check whether a mapping's disk or file is as its client was told
 * @map: mapping
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0 if it is; otherwise RNBD_FEATURE_* of the events that report the changes. Each change
 * is returned once.
 */
VISIBLE_IF_KUNIT u32 rnbd_srv_changed(struct rnbd_srv_map *map)
{
	struct rnbd_msg_open_rsp now = { };
	u32 changed = 0;

	if (map->told.flags & RNBD_DISK_GONE)
		return 0;
	rnbd_srv_fill_disk(map, &now);
	if (now.flags & RNBD_DISK_GONE) {
		rnbd_srv_info(map->sess, "%s was removed\n", map->path);
		changed = RNBD_FEATURE_DISK_STATE;
	} else {
		if (rnbd_srv_size_changed(map, &now))
			changed |= RNBD_FEATURE_RESIZE_EVENT;
		if (rnbd_srv_limits_changed(map, &now))
			changed |= RNBD_FEATURE_DISK_STATE;
	}
	map->told = now;
	return changed;
}

/*
 * A session gets one event, however many of its devices have changed. Clients with
 * RNBD_FEATURE_DISK_STATE close the mapping of a removed disk themselves. For other clients the
 * server closes it, so that the disk's name is free when the disk returns.
 */
static void rnbd_srv_watch_dev(struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		map->sess->event_due |= rnbd_srv_changed(map);
		if ((map->told.flags & RNBD_DISK_GONE) &&
		    !(READ_ONCE(map->sess->features) & RNBD_FEATURE_DISK_STATE))
			rnbd_srv_close(map, NULL);
	}
}

static void rnbd_srv_tell_changes(struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		if (map->sess->event_due & READ_ONCE(map->sess->features))
			rtrs_srv_send_event(map->sess->rtrs);
		map->sess->event_due = 0;
	}
}

/*
 * Compare the size and limits of all devices with what their clients were told: no notifier reports
 * all such changes. This doesn't sleep in a filesystem, as a file's size is the one in memory.
 */
static void rnbd_srv_watch_work(struct work_struct *work)
{
	struct rnbd_srv_dev *dev;

	mutex_lock(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list)
		rnbd_srv_watch_dev(dev);
	list_for_each_entry(dev, &rnbd_srv_devs, list)
		rnbd_srv_tell_changes(dev);
	if (!list_empty(&rnbd_srv_devs))
		queue_delayed_work(rnbd_srv_wq, &rnbd_srv_watch, RNBD_SRV_WATCH);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_stop_watch() - stop checking sizes and limits
 *
 * Context: process, may sleep; there are no devices, and will be none.
 */
void rnbd_srv_stop_watch(void)
{
	cancel_delayed_work_sync(&rnbd_srv_watch);
}

static bool rnbd_srv_peer_admitted(const struct rtrs_srv_peer *peer, void *arg)
{
	const struct rnbd_srv_sess *sess = arg;

	return !rnbd_srv_admit(sess->rules, sess->name, peer);
}

/**
 * rnbd_srv_recheck() - close what the rules don't allow any more
 *
 * New I/O is refused when this returns; what the server has in hand is finished. Paths of clients
 * that would have to prove something else today end, and what they had open stays so if they do
 * that, on another path or, after their session is lost, in a new one.
 *
 * Context: process, may sleep, after the change of the rules, without their lock.
 */
void rnbd_srv_recheck(void)
{
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;
	struct rnbd_srv_map *map;

	mutex_lock(&rnbd_srv_lock);
	list_for_each_entry(sess, &rnbd_srv_sessions, list)
		rtrs_srv_end_paths(sess->rtrs, rnbd_srv_peer_admitted, sess);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		list_for_each_entry(map, &dev->maps, list) {
			/* It ends no path any more. */
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
 * rnbd_srv_add_sess() - have rnbd_srv_recheck() look at a session
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

/* A session that is counted, and the one that asks, or NULL */
struct rnbd_srv_count {
	const struct rnbd_srv_sess *sess;
	const struct rnbd_srv_sess *asks;
};

/* A client may take the place of its old paths before these have ended. */
static void rnbd_srv_count_path(const struct rtrs_srv_peer *peer, void *arg)
{
	const struct rnbd_srv_count *count = arg;

	if (!peer->closing || !count->asks ||
	    !rnbd_srv_same_client(count->sess, count->asks))
		rnbd_srv_rules_count(count->sess, peer);
}

static void rnbd_srv_count_paths(const struct rnbd_srv_sess *asks)
{
	struct rnbd_srv_count count = { .asks = asks };
	struct rnbd_srv_sess *sess;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(sess, &rnbd_srv_sessions, list) {
		count.sess = sess;
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_count_path, &count);
	}
}

/**
 * rnbd_srv_count_host() - count what a host has
 * @host: a host
 * @used: set to that, by enum rnbd_srv_limit
 *
 * Context: process, may sleep.
 */
void rnbd_srv_count_host(struct rnbd_srv_host *host, u64 *used)
{
	mutex_lock(&rnbd_srv_lock);
	rnbd_srv_begin_count_of(host);
	rnbd_srv_count_paths(NULL);
	rnbd_srv_end_count_of(host, used);
	mutex_unlock(&rnbd_srv_lock);
}

static int rnbd_srv_may_join(struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	xa_for_each(&sess->maps, id, map) {
		if (!test_bit(0, &map->closing) && !rnbd_srv_rules_hold(map, peer))
			return -EACCES;
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
 * rnbd_srv_path_up() - may a path join a session?
 * @priv: the session
 * @peer: the client on the path
 *
 * What the session opens later ends the paths over which it may not.
 *
 * Context: see &rtrs_srv_ops.path_up.
 * Return: 0; -EACCES if the session has something open that it may not open over that path; or an
 * errno of rnbd_srv_admit() or rnbd_srv_in_limits().
 */
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_sess *sess = priv;
	int err;

	mutex_lock(&rnbd_srv_lock);
	rtrs_srv_know_path(peer, true);
	/* Again, as keys may have been changed since. */
	err = rnbd_srv_admit(sess->rules, sess->name, peer) ?: rnbd_srv_may_join(sess, peer);
	if (!err && rnbd_srv_begin_count(sess, peer)) {
		rnbd_srv_count_paths(sess);
		err = rnbd_srv_in_limits(sess);
	}
	if (err)
		rtrs_srv_know_path(peer, false);
	else
		rnbd_srv_choose_all_css(sess);
	mutex_unlock(&rnbd_srv_lock);
	return err;
}

/**
 * rnbd_srv_open() - open a device for a session
 * @sess: session of the client
 * @msg: the client's message, checked
 * @age: what it reports of the mapping's age, all 0 if nothing
 * @peer: the client on the path on which it asks
 * @rsp: answer to fill in, zeroed by the caller
 *
 * Context: kernel thread, may sleep (__fput_sync() if the file isn't needed).
 * Return: 0 or a negative errno for the client.
 */
int rnbd_srv_open(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
		  const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
		  struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	int ret;

	mutex_lock(&rnbd_srv_lock);
	ret = rnbd_srv_open_again(sess, msg, age, rsp);
	mutex_unlock(&rnbd_srv_lock);
	if (ret)
		return min(ret, 0);

	map = rnbd_srv_map_alloc(sess, msg->dev_name, msg->access_mode);
	if (IS_ERR(map))
		return PTR_ERR(map);

	map->age = *age;
	ret = rnbd_srv_map_open(map, peer);
	/* It would tell the client that a newer mapping has written. */
	if (ret == -EBADE)
		ret = -EIO;
	if (!ret) {
		mutex_lock(&rnbd_srv_lock);
		ret = rnbd_srv_map_attach(map, msg, rsp);
		mutex_unlock(&rnbd_srv_lock);
		if (!ret) {
			rnbd_srv_info(sess, "opened %s (%s)\n", msg->dev_name,
				      rnbd_srv_access_names[msg->access_mode]);
			return 0;
		}
		rnbd_srv_map_release_file(map);
	}
	kobject_put(&map->kobj);
	return min(ret, 0);
}
