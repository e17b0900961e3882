// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: devices, and who has them open.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

#define RNBD_SRV_SESSNAME	"%SESSNAME%"

static DEFINE_MUTEX(rnbd_srv_lock);
static LIST_HEAD(rnbd_srv_devs);

static bool rnbd_srv_climbs(const char *path)
{
	size_t len;

	for (; *path; path += strspn(path, "/")) {
		len = strcspn(path, "/");
		if (len == 2 && !strncmp(path, "..", 2))
			return true;
		path += len;
	}
	return false;
}

/*
 * The folder to look in. Names of sessions have no '/' and no '.', so they lead
 * nowhere else; what is in them isn't replaced again.
 */
static char *rnbd_srv_folder(const struct rnbd_srv_sess *sess)
{
	char *folder = kstrdup(rnbd_srv_search_path, GFP_KERNEL);
	char *old, *var;
	size_t done = 0;

	while (folder && (var = strstr(folder + done, RNBD_SRV_SESSNAME))) {
		old = folder;
		folder = kasprintf(GFP_KERNEL, "%.*s%s%s", (int)(var - old),
				   old, sess->name,
				   var + strlen(RNBD_SRV_SESSNAME));
		done = var - old + strlen(sess->name);
		kfree(old);
	}
	return folder;
}

/**
 * rnbd_srv_full_path() - where a device is
 * @sess: session that asks for it
 * @path: what the client calls it
 *
 * Return: its path, for kfree(); ERR_PTR(-EINVAL) if the client's path would lead out
 * of the folder to look in; ERR_PTR(-ENOMEM).
 */
char *rnbd_srv_full_path(const struct rnbd_srv_sess *sess, const char *path)
{
	char *folder, *full = NULL;

	if (rnbd_srv_climbs(path))
		return ERR_PTR(-EINVAL);

	folder = rnbd_srv_folder(sess);
	if (folder)
		full = kasprintf(GFP_KERNEL, "%s/%s", folder, path);
	kfree(folder);
	return full ?: ERR_PTR(-ENOMEM);
}

/*
 * Looks before it opens: opening a FIFO, a character device or a file of tracefs can
 * hang or do things by itself. Filesystems on disks take direct I/O of the disk's blocks.
 */
static struct file *rnbd_srv_open_file(const char *path,
				       enum rnbd_access_mode mode)
{
	int flags = O_LARGEFILE;
	struct file *file;
	struct path found;
	bool direct, ok;
	umode_t type;
	int err;

	err = kern_path(path, LOOKUP_FOLLOW, &found);
	if (err)
		return ERR_PTR(err);
	type = d_backing_inode(found.dentry)->i_mode;
	direct = S_ISREG(type) && found.dentry->d_sb->s_bdev;
	ok = S_ISBLK(type) ||
	     (S_ISREG(type) && rnbd_srv_fs_ok(found.dentry->d_sb));
	path_put(&found);
	if (!ok)
		return ERR_PTR(-ENOTBLK);

	flags |= mode == RNBD_ACCESS_RO ? O_RDONLY : O_RDWR;
	if (direct) {
		file = filp_open(path, flags | O_DIRECT, 0);
		if (file != ERR_PTR(-EINVAL))
			return file;
	}
	return filp_open(path, flags, 0);
}

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
 * Two files can come to the same name: one was removed, and made again, while it is
 * open here, or names differ in ! and / only.
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

static int rnbd_srv_dev_add(struct rnbd_srv_dev *dev, const char *name,
			    struct block_device *bdev)
{
	int err;

	err = kobject_init_and_add(&dev->kobj, &rnbd_srv_dev_ktype,
				   rnbd_srv_devices, "%s", name);
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
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		goto free_name;
	INIT_LIST_HEAD(&dev->maps);
	dev->inode = map->file->f_mapping->host;

	err = rnbd_srv_dev_add(dev, name, map->bdev);
	if (err)
		goto free_name;
	list_add(&dev->list, &rnbd_srv_devs);
	kfree(name);
	return dev;

free_name:
	kfree(name);
	return ERR_PTR(err);
}

static struct rnbd_srv_dev *rnbd_srv_dev_get(const struct rnbd_srv_map *map)
{
	struct rnbd_srv_dev *dev;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		if (dev->inode == map->file->f_mapping->host)
			return dev;
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
 * rnbd_srv_access() - may a device be opened once more?
 * @dev: device
 * @mode: how
 *
 * Return: 0 or -EBUSY.
 */
int rnbd_srv_access(const struct rnbd_srv_dev *dev, enum rnbd_access_mode mode)
{
	unsigned int max_writers[] = {
		[RNBD_ACCESS_RO] = UINT_MAX,
		[RNBD_ACCESS_RW] = 1,
		[RNBD_ACCESS_MIGRATION] = 2,
	};

	return dev->nr_writers < max_writers[mode] ? 0 : -EBUSY;
}

static void rnbd_srv_drained(struct percpu_ref *ref)
{
	struct rnbd_srv_map *map = container_of(ref, struct rnbd_srv_map, ref);

	complete(&map->drained);
}

/*
 * Nothing waits here for what waits for rnbd_srv_lock: taking it at first makes sure
 * that the map has been shown and published before that is undone. The device goes
 * before the file that keeps the inode it is told by.
 */
static void rnbd_srv_close_work(struct work_struct *work)
{
	struct rnbd_srv_map *map =
		container_of(work, struct rnbd_srv_map, close_work);
	struct rnbd_srv_sess *sess = map->sess;

	mutex_lock(&rnbd_srv_lock);
	xa_erase(&sess->maps, map->id);
	mutex_unlock(&rnbd_srv_lock);

	percpu_ref_kill(&map->ref);
	wait_for_completion(&map->drained);
	kobject_del(&map->kobj);

	mutex_lock(&rnbd_srv_lock);
	list_del(&map->list);
	if (map->mode != RNBD_ACCESS_RO)
		map->dev->nr_writers--;
	rnbd_srv_dev_put(map->dev);
	mutex_unlock(&rnbd_srv_lock);
	__fput_sync(map->file);

	pr_info_ratelimited("%s: closed %s\n", sess->name, map->path);
	complete_all(&map->closed);
	if (atomic_dec_and_test(&sess->nr_maps))
		wake_up(&sess->idle);
	if (map->close_op)
		rtrs_srv_complete(map->close_op, 0);
	kobject_put(&map->kobj);
}

/**
 * rnbd_srv_close() - close a map
 * @map: map, kept by RCU, a reference or being open
 * @op: request to complete when it is closed, or NULL
 *
 * Any context; &rnbd_srv_map.closed can be waited for. Return: false if somebody
 * else is closing it, and will not complete @op.
 */
bool rnbd_srv_close(struct rnbd_srv_map *map, struct rtrs_srv_op *op)
{
	if (test_and_set_bit(0, &map->closing))
		return false;
	map->close_op = op;
	queue_work(rnbd_srv_wq, &map->close_work);
	return true;
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

	kref_get(&sess->kref);
	map->sess = sess;
	map->mode = mode;
	strscpy(map->path, path, sizeof(map->path));
	init_completion(&map->drained);
	init_completion(&map->closed);
	INIT_WORK(&map->close_work, rnbd_srv_close_work);
	kobject_init(&map->kobj, &rnbd_srv_map_ktype);
	return map;
}

/* Another look, as the name may have come to mean something else. */
static const struct rnbd_srv_backend *rnbd_srv_backend(const struct file *file)
{
	umode_t type = file_inode(file)->i_mode;

	if (S_ISBLK(type))
		return &rnbd_srv_bdev_backend;
	return S_ISREG(type) ? &rnbd_srv_file_backend : NULL;
}

/* Open the file of a map that nobody else knows yet. */
static int rnbd_srv_map_open(struct rnbd_srv_map *map)
{
	char *full = rnbd_srv_full_path(map->sess, map->path);
	int err;

	if (IS_ERR(full))
		return PTR_ERR(full);
	map->file = rnbd_srv_open_file(full, map->mode);
	kfree(full);
	if (IS_ERR(map->file))
		return PTR_ERR(map->file);

	map->backend = rnbd_srv_backend(map->file);
	err = map->backend ? map->backend->open(map) : -ENOTBLK;
	if (err)
		__fput_sync(map->file);
	return err;
}

/* Once it is shown it can be closed, and nothing fails any more. */
static int rnbd_srv_map_publish(struct rnbd_srv_map *map,
				struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_sess *sess = map->sess;
	int err;

	err = xa_alloc_cyclic(&sess->maps, &map->id, NULL,
			      XA_LIMIT(0, U16_MAX), &sess->next_id, GFP_KERNEL);
	if (err < 0)
		return err;
	err = kobject_add(&map->kobj, dev->sessions, "%s", sess->name);
	if (err) {
		xa_erase(&sess->maps, map->id);
		return err;
	}

	map->dev = dev;
	list_add(&map->list, &dev->maps);
	if (map->mode != RNBD_ACCESS_RO)
		dev->nr_writers++;
	atomic_inc(&sess->nr_maps);
	xa_store(&sess->maps, map->id, map, GFP_KERNEL);
	return 0;
}

static struct rnbd_srv_map *rnbd_srv_find_map(const struct rnbd_srv_dev *dev,
					      const char *sessname)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		if (!strcmp(map->sess->name, sessname))
			return map;
	}
	return NULL;
}

/**
 * rnbd_srv_fill_rsp() - write the answer to a request to open a device
 * @map: the device, open
 * @rsp: answer, zeroed
 */
void rnbd_srv_fill_rsp(const struct rnbd_srv_map *map,
		       struct rnbd_msg_open_rsp *rsp)
{
	rsp->hdr.type = cpu_to_le16(RNBD_MSG_OPEN_RSP);
	rsp->device_id = cpu_to_le32(map->id);
	rsp->nsectors = cpu_to_le64(map->backend->capacity(map));
	rsp->logical_block_size = cpu_to_le16(map->block_size);
	map->backend->limits(map, rsp);
}

/*
 * Make @map one of its device. Return: 0, 1 if it isn't needed since the session has
 * the device open the same way, or a negative errno.
 */
static int rnbd_srv_map_attach(struct rnbd_srv_map *map,
			       struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *old;
	struct rnbd_srv_dev *dev;
	int err;

	lockdep_assert_held(&rnbd_srv_lock);
	dev = rnbd_srv_dev_get(map);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	old = rnbd_srv_find_map(dev, map->sess->name);
	if (old) {
		/* Another session of that name is about to end. */
		if (old->sess != map->sess || old->mode != map->mode ||
		    test_bit(0, &old->closing))
			return -EBUSY;
		rnbd_srv_fill_rsp(old, rsp);
		return 1;
	}

	err = rnbd_srv_access(dev, map->mode);
	if (!err)
		err = rnbd_srv_map_publish(map, dev);
	if (err) {
		rnbd_srv_dev_put(dev);
		return err;
	}
	rnbd_srv_fill_rsp(map, rsp);
	return 0;
}

/**
 * rnbd_srv_open() - open a device for a session
 * @sess: session
 * @path: what the client calls it
 * @mode: what the client wants to do
 * @rsp: what to tell the client, zeroed
 *
 * Context: a kernel thread, as the file is closed at once if it isn't needed.
 * Return: 0 or a negative errno.
 */
int rnbd_srv_open(struct rnbd_srv_sess *sess, const char *path,
		  enum rnbd_access_mode mode, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	int ret;

	map = rnbd_srv_map_alloc(sess, path, mode);
	if (IS_ERR(map))
		return PTR_ERR(map);

	ret = rnbd_srv_map_open(map);
	if (!ret) {
		mutex_lock(&rnbd_srv_lock);
		ret = rnbd_srv_map_attach(map, rsp);
		mutex_unlock(&rnbd_srv_lock);
		if (!ret) {
			pr_info_ratelimited("%s: opened %s (%s)\n",
					    sess->name, path,
					    rnbd_srv_access_names[mode]);
			return 0;
		}
		__fput_sync(map->file);
	}
	kobject_put(&map->kobj);
	return min(ret, 0);
}
