// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: mapping and unmapping of devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/hdreg.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

/* Interval of the checks for network namespaces without processes */
#define RNBD_CLT_NET_WATCH	HZ

/* Removes disks. */
static struct workqueue_struct *rnbd_clt_wq;

static void rnbd_clt_watch_nets(struct work_struct *work);
static DECLARE_DELAYED_WORK(rnbd_clt_net_work, rnbd_clt_watch_nets);

static DEFINE_IDA(rnbd_clt_index);

/* Number of devices that are not freed yet, plus 1 for the module */
static atomic_t rnbd_clt_nr_devs = ATOMIC_INIT(1);
static DECLARE_COMPLETION(rnbd_clt_no_devs);

static void rnbd_clt_dev_uncount(void)
{
	if (atomic_dec_and_test(&rnbd_clt_nr_devs))
		complete(&rnbd_clt_no_devs);
}

static void rnbd_clt_dev_free(struct rnbd_clt_dev *dev)
{
	ida_free(&rnbd_clt_index, dev->index);
	kfree(dev->link);
	kfree(dev);
	/* Last, as the module may be unloaded afterwards. */
	rnbd_clt_dev_uncount();
}

/**
 * rnbd_clt_init_devs() - prepare for devices
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_init_devs(void)
{
	rnbd_clt_wq = alloc_workqueue("rnbd_client", WQ_UNBOUND, 0);
	return rnbd_clt_wq ? 0 : -ENOMEM;
}

/**
 * rnbd_clt_exit_devs() - wait until all devices have been freed
 *
 * Called once, when no device is mapped or can be mapped. The wait is needed because closing a disk
 * drops the reference to the module before the reference to the disk, which frees the device.
 */
void rnbd_clt_exit_devs(void)
{
	rnbd_clt_dev_uncount();
	wait_for_completion(&rnbd_clt_no_devs);
	destroy_workqueue(rnbd_clt_wq);
}

static void rnbd_clt_free_disk(struct gendisk *disk)
{
	rnbd_clt_dev_free(disk->private_data);
}

/* There are no cylinders. This geometry makes old tools align partitions to 1 MiB. */
static int rnbd_clt_getgeo(struct gendisk *disk, struct hd_geometry *geo)
{
	geo->heads = 64;
	geo->sectors = 32;
	geo->cylinders = min_t(sector_t, get_capacity(disk) / (64 * 32), U16_MAX);
	return 0;
}

/* Types of ids have the same numbers in messages and in the block layer. */
static_assert(RNBD_ID_T10 == (int)BLK_UID_T10 &&
	      RNBD_ID_EUI64 == (int)BLK_UID_EUI64 && RNBD_ID_NAA == (int)BLK_UID_NAA);

VISIBLE_IF_KUNIT int rnbd_clt_get_unique_id(struct gendisk *disk, u8 id[16],
					    enum blk_unique_id type)
{
	const struct rnbd_clt_dev *dev = disk->private_data;

	if (!dev->id_type || dev->id_type != type)
		return -ENXIO;
	memcpy(id, dev->id, sizeof(dev->id));
	return dev->id_len;
}

/*
 * When the last user has closed the disk, writes need no flags any more. The caller holds the
 * disk's open_mutex, which del_gendisk() takes: so the session exists, unless the device was
 * unmapped before.
 */
static void rnbd_clt_release(struct gendisk *disk)
{
	struct rnbd_clt_dev *dev = disk->private_data;

	if (unlikely(READ_ONCE(dev->write_flags)) && !disk_openers(disk) &&
	    READ_ONCE(dev->state) != RNBD_DEV_UNMAPPED)
		rnbd_clt_dev_queue_limits(dev);
}

static const struct block_device_operations rnbd_clt_fops = {
	.owner = THIS_MODULE,
	.release = rnbd_clt_release,
	.getgeo = rnbd_clt_getgeo,
	.get_unique_id = rnbd_clt_get_unique_id,
	.free_disk = rnbd_clt_free_disk,
};

/* Add a device to its session. Its name is in use until rnbd_clt_dev_detach(). */
static int rnbd_clt_dev_attach(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	struct rnbd_clt_dev *other;
	int err = 0;

	spin_lock_irq(&sess->lock);
	list_for_each_entry(other, &sess->devs, list) {
		if (!strcmp(other->path, dev->path))
			err = -EEXIST;
	}
	if (!err)
		list_add_tail(&dev->list, &sess->devs);
	spin_unlock_irq(&sess->lock);
	return err;
}

/* Remove a device from its session, and release its name. Its disk still needs the session. */
static void rnbd_clt_dev_detach(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;

	/* A user may be reopening the device by its attribute. Later attempts fail. */
	mutex_lock(&dev->open_lock);
	rnbd_clt_dev_close(dev);
	mutex_unlock(&dev->open_lock);
	spin_lock_irq(&sess->lock);
	list_del(&dev->list);
	spin_unlock_irq(&sess->lock);
	rnbd_clt_sess_leave(sess);
}

/* Remove the disk, then drop the session, whose tags the disk uses. */
static void rnbd_clt_del_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev, del_work);
	struct gendisk *disk = dev->disk;

	cancel_work_sync(&dev->limits_work);
	del_gendisk(disk);
	rnbd_clt_sess_put(dev->sess);
	put_disk(disk);
}

/* A work item of each device, as a server that doesn't answer may delay it. */
static void rnbd_clt_orphan_work(struct work_struct *work)
{
	rnbd_clt_dev_unmap(container_of(work, struct rnbd_clt_dev, orphan_work), true);
}

/* Allocate a device. On success, it takes over the caller's use of the session. */
static struct rnbd_clt_dev *
rnbd_clt_dev_alloc(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_dev *dev;
	int err = -ENOMEM;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->sess = sess;
	dev->access_mode = opts->access_mode;
	dev->lost_at = jiffies - HZ;
	mutex_init(&dev->open_lock);
	INIT_WORK(&dev->limits_work, rnbd_clt_limits_work);
	INIT_WORK(&dev->uevent_work, rnbd_clt_uevent_work);
	INIT_DELAYED_WORK(&dev->reopen, rnbd_clt_reopen_work);
	INIT_WORK(&dev->follow, rnbd_clt_follow_work);
	INIT_WORK(&dev->del_work, rnbd_clt_del_work);
	INIT_WORK(&dev->orphan_work, rnbd_clt_orphan_work);
	strscpy(dev->path, opts->dev_path, sizeof(dev->path));

	dev->index = ida_alloc(&rnbd_clt_index, GFP_KERNEL);
	if (dev->index < 0) {
		err = dev->index;
		goto free_dev;
	}
	dev->link = kasprintf(GFP_KERNEL, "%s@%s", dev->path, sess->label);
	if (!dev->link)
		goto free_index;
	strreplace(dev->link, '/', '!');

	err = rnbd_clt_dev_attach(dev);
	if (err) {
		pr_err("%s: %s is mapped already\n", sess->label, dev->path);
		goto free_link;
	}
	atomic_inc(&rnbd_clt_nr_devs);
	return dev;

free_link:
	kfree(dev->link);
free_index:
	ida_free(&rnbd_clt_index, dev->index);
free_dev:
	kfree(dev);
	return ERR_PTR(err);
}

static int rnbd_clt_dev_alloc_disk(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	struct queue_limits lim = { };
	struct gendisk *disk;

	rnbd_clt_fill_limits(dev, rsp, &lim);
	disk = blk_mq_alloc_disk(&dev->sess->disks.set, &lim, dev);
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	disk->fops = &rnbd_clt_fops;
	disk->private_data = dev;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "rnbd%d", dev->index);
	set_capacity(disk, le64_to_cpu(rsp->nsectors));
	dev->read_only = rsp->flags & RNBD_DISK_READ_ONLY;
	set_disk_ro(disk, dev->read_only || dev->access_mode == RNBD_ACCESS_RO);
	dev->limits = *rsp;
	dev->id_type = rsp->id_type;
	dev->id_len = rsp->id_len;
	memcpy(dev->id, rsp->id, rsp->id_len);
	dev->nsectors = le64_to_cpu(rsp->nsectors);
	dev->disk = disk;
	return 0;
}

/* Open a device and allocate its disk. open_lock blocks reopen work until dev->disk is set. */
static int rnbd_clt_dev_make_disk(struct rnbd_clt_dev *dev)
{
	struct rnbd_msg_open_rsp *rsp;
	int err;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	mutex_lock(&dev->open_lock);
	err = rnbd_clt_dev_open(dev, rsp, READ_ONCE(dev->sess->generation));
	if (!err)
		err = rnbd_clt_dev_alloc_disk(dev, rsp);
	mutex_unlock(&dev->open_lock);
	kfree(rsp);
	return err;
}

static void rnbd_clt_dev_set_unmapped(struct rnbd_clt_dev *dev)
{
	spin_lock_irq(&dev->sess->lock);
	rnbd_clt_dev_set_state(dev, RNBD_DEV_UNMAPPED);
	spin_unlock_irq(&dev->sess->lock);
}

/* Release a device whose disk has not been added. */
static void rnbd_clt_dev_discard(struct rnbd_clt_dev *dev)
{
	rnbd_clt_dev_set_unmapped(dev);
	cancel_delayed_work_sync(&dev->reopen);
	cancel_work_sync(&dev->follow);
	cancel_work_sync(&dev->limits_work);
	if (dev->disk)
		put_disk(dev->disk);
	rnbd_clt_dev_detach(dev);
	rnbd_clt_sess_put(dev->sess);
	rnbd_clt_dev_free(dev);
}

/*
 * Remove a device whose state is RNBD_DEV_UNMAPPED. A work item removes the disk, since the caller
 * may be writing to an attribute of the disk: del_gendisk() would wait for the end of that write.
 */
static void rnbd_clt_dev_remove(struct rnbd_clt_dev *dev, bool force)
{
	struct gendisk *disk = dev->disk;
	unsigned int memflags;

	sysfs_notify(&disk_to_dev(disk)->kobj, RNBD_CLT_DEV_GROUP, "state");
	/*
	 * Fail all I/O that waits for the device, as processes may wait for it. After the grace
	 * period this includes I/O that saw the device open and found no path.
	 */
	synchronize_rcu();
	rnbd_clt_dev_wake(dev);
	/* After that, as newer kernels call filesystems here, which may wait for that I/O. */
	if (force)
		blk_mark_disk_dead(disk);
	cancel_delayed_work_sync(&dev->reopen);
	cancel_work_sync(&dev->follow);
	cancel_work_sync(&dev->uevent_work);
	/* Wait for requests in flight; no new ones are sent. */
	memflags = blk_mq_freeze_queue(disk->queue);
	blk_mq_unfreeze_queue(disk->queue, memflags);
	rnbd_clt_dev_detach(dev);
	queue_work(rnbd_clt_wq, &dev->del_work);
}

/**
 * rnbd_clt_dev_map() - map a device
 * @opts: parsed line from the user
 * @groups: attributes of the disk
 *
 * Return: 0 when the disk has been added and scanned for partitions, or a negative errno.
 */
int rnbd_clt_dev_map(const struct rnbd_clt_map_opts *opts, const struct attribute_group **groups)
{
	struct rnbd_clt_sess *sess;
	struct rnbd_clt_dev *dev;
	int err;

	sess = rnbd_clt_sess_get(opts);
	if (IS_ERR(sess))
		return PTR_ERR(sess);

	dev = rnbd_clt_dev_alloc(sess, opts);
	if (IS_ERR(dev)) {
		rnbd_clt_sess_leave(sess);
		rnbd_clt_sess_put(sess);
		return PTR_ERR(dev);
	}

	err = rnbd_clt_dev_make_disk(dev);
	if (!err)
		err = rnbd_clt_sess_set(sess, opts);
	if (!err)
		err = device_add_disk(NULL, dev->disk, groups);
	if (err) {
		rnbd_clt_dev_discard(dev);
		return err;
	}

	/* Logged now, since the device may be unmapped and freed once it is visible. */
	pr_info("%s: mapped %s (%s) as rnbd%d\n", opts->label,
		opts->dev_path, rnbd_clt_access_names[opts->access_mode], dev->index);
	/* Fails if another device's link has the same name: names may differ only in ! and /. */
	err = sysfs_create_link_nowarn(rnbd_clt_devices, &disk_to_dev(dev->disk)->kobj, dev->link);
	if (!err)
		rnbd_clt_dev_set_mapped(dev);
	if (!net_eq(opts->net, &init_net))
		queue_delayed_work(rnbd_clt_wq, &rnbd_clt_net_work, RNBD_CLT_NET_WATCH);
	if (err) {
		pr_err("%s: can't show %s in sysfs: %pe\n", opts->label,
		       opts->dev_path, ERR_PTR(err));
		rnbd_clt_dev_set_unmapped(dev);
		rnbd_clt_dev_remove(dev, false);
	}
	return err;
}

/**
 * rnbd_clt_dev_claim() - claim the right to unmap a device
 * @dev: device
 * @force: claim the device even if its disk is in use
 *
 * From then on all I/O fails, also for users who open the disk after the check. With @force,
 * open_mutex is not taken, as a hanging partition scan may hold it.
 *
 * Return: 0 if the caller has to call rnbd_clt_dev_unmap(), -EALREADY if another caller does,
 * -EBUSY if the disk is in use, or the device is still being mapped.
 */
int rnbd_clt_dev_claim(struct rnbd_clt_dev *dev, bool force)
{
	struct rnbd_clt_sess *sess = dev->sess;
	int err;

	if (!force)
		mutex_lock(&dev->disk->open_mutex);
	spin_lock_irq(&sess->lock);
	err = rnbd_clt_dev_set_claimed(dev, force);
	spin_unlock_irq(&sess->lock);
	if (!force)
		mutex_unlock(&dev->disk->open_mutex);
	return err;
}

/**
 * rnbd_clt_dev_unmap() - remove a device
 * @dev: device, claimed by the caller
 * @force: the disk may be in use: mark it dead, so that the block layer fails new I/O at once
 *
 * Returns when the device's requests have ended and the server has closed the device. The disk is
 * removed soon afterwards. The device is freed when the last user has closed the disk.
 */
void rnbd_clt_dev_unmap(struct rnbd_clt_dev *dev, bool force)
{
	pr_info("%s: unmapping %s, rnbd%d\n", dev->sess->label, dev->path, dev->index);
	sysfs_remove_link(rnbd_clt_devices, dev->link);
	rnbd_clt_dev_remove(dev, force);
}

/* Sessions hold their network namespaces, so no callback reports that the last process left. */
static void rnbd_clt_watch_nets(struct work_struct *work)
{
	struct rnbd_clt_dev *dev;
	bool others;

	while ((dev = rnbd_clt_claim_next(true, &others))) {
		pr_info("%s: its network namespace is gone\n", dev->sess->label);
		queue_work(rnbd_clt_wq, &dev->orphan_work);
	}
	if (others)
		queue_delayed_work(rnbd_clt_wq, &rnbd_clt_net_work, RNBD_CLT_NET_WATCH);
}

/**
 * rnbd_clt_stop_watch() - stop checking network namespaces
 *
 * Context: process, may sleep; no device can be mapped any more.
 */
void rnbd_clt_stop_watch(void)
{
	cancel_delayed_work_sync(&rnbd_clt_net_work);
	/* Wait for the removal of devices that it has claimed. */
	flush_workqueue(rnbd_clt_wq);
}
