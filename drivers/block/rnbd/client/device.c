// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: the life of a device, from map to unmap.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/hdreg.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

/* How often, in milliseconds, a device is opened whose id another one is about to lose. */
#define RNBD_CLT_ID_MS		20

/* How often it is looked whether there is still somebody in sessions' namespaces */
#define RNBD_CLT_NET_WATCH	HZ

/* Removes disks. */
static struct workqueue_struct *rnbd_clt_wq;

static void rnbd_clt_watch_nets(struct work_struct *work);
static DECLARE_DELAYED_WORK(rnbd_clt_net_work, rnbd_clt_watch_nets);

static DEFINE_IDA(rnbd_clt_index);

/* Devices that aren't freed yet, and one for the module. */
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
	sysfs_put(dev->state_kn);
	kfree(dev->link);
	kfree(dev);
	/* Last, as the module may go then. */
	rnbd_clt_dev_uncount();
}

/**
 * rnbd_clt_init_devs() - get ready for devices
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
 * Called once, when nothing is mapped and nothing can be. Closing a disk puts the
 * module before it puts the disk, which frees the device.
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

/* There are no cylinders; what old tools make of this is aligned to 1 MiB. */
static int rnbd_clt_getgeo(struct gendisk *disk, struct hd_geometry *geo)
{
	geo->heads = 64;
	geo->sectors = 32;
	geo->cylinders = min_t(sector_t, get_capacity(disk) / (64 * 32),
			       U16_MAX);
	return 0;
}

/* The numbers of the message's kinds of ids are those of the block layer's. */
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
 * Writes need no flags any more once the last user has closed the disk. The disk's open_mutex is
 * held, which removing the disk takes: so the session exists unless the device was unmapped.
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

static bool rnbd_clt_mapped(struct rnbd_clt_sess *sess, const char *path)
{
	struct rnbd_clt_dev *dev;

	lockdep_assert_held(&sess->lock);
	list_for_each_entry(dev, &sess->devs, list) {
		if (!strcmp(dev->path, path))
			return true;
	}
	return false;
}

/* From here until rnbd_clt_dev_detach(), the device's name is taken. */
static int rnbd_clt_dev_attach(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	int err = 0;

	spin_lock_irq(&sess->lock);
	if (rnbd_clt_mapped(sess, dev->path))
		err = -EEXIST;
	else
		list_add_tail(&dev->list, &sess->devs);
	spin_unlock_irq(&sess->lock);
	return err;
}

/* The device's name is free afterwards. Its disk still needs the session. */
static void rnbd_clt_dev_detach(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;

	/* A user may still be opening it, by an attribute; nobody does afterwards. */
	mutex_lock(&dev->open_lock);
	rnbd_clt_dev_close(dev);
	mutex_unlock(&dev->open_lock);
	spin_lock_irq(&sess->lock);
	list_del(&dev->list);
	spin_unlock_irq(&sess->lock);
	rnbd_clt_sess_leave(sess);
}

/* The session's tags serve the disk until that is gone. */
static void rnbd_clt_del_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev,
						del_work);
	struct gendisk *disk = dev->disk;

	cancel_work_sync(&dev->limits_work);
	del_gendisk(disk);
	rnbd_clt_sess_put(dev->sess);
	put_disk(disk);
}

/* Each has its own, as a server that doesn't answer may hold it up. */
static void rnbd_clt_orphan_work(struct work_struct *work)
{
	rnbd_clt_dev_unmap(container_of(work, struct rnbd_clt_dev, orphan_work), true);
}

/* On success, the caller's use of the session has passed to the device. */
static struct rnbd_clt_dev *
rnbd_clt_dev_alloc(struct rnbd_clt_sess *sess,
		   const struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_dev *dev;
	int err = -ENOMEM;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->sess = sess;
	dev->access_mode = opts->access_mode;
	dev->lost_at = jiffies - HZ;
	rnbd_clt_dev_init_open(dev);
	rnbd_clt_dev_init_state(dev);
	rnbd_clt_dev_init_reopen(dev);
	INIT_WORK(&dev->del_work, rnbd_clt_del_work);
	INIT_WORK(&dev->orphan_work, rnbd_clt_orphan_work);
	rnbd_clt_dev_init_follow(dev);
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

static int rnbd_clt_dev_alloc_disk(struct rnbd_clt_dev *dev,
				   const struct rnbd_msg_open_rsp *rsp)
{
	struct queue_limits lim = { };
	struct gendisk *disk;

	rnbd_clt_fill_limits(dev, rsp, &lim);
	disk = blk_mq_alloc_disk(&dev->sess->disks.set, &lim, dev);
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	disk->fops = &rnbd_clt_fops;
	disk->private_data = dev;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "rnbd%d",
		 dev->index);
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

/* open_lock keeps reopen work out until dev->disk is set. */
static int rnbd_clt_dev_make_disk(struct rnbd_clt_dev *dev)
{
	struct rnbd_msg_open_rsp *rsp;
	int err;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	mutex_lock(&dev->open_lock);
	do {
		err = rnbd_clt_dev_open(dev, rsp, rnbd_clt_sess_generation(dev->sess));
		if (err == -EAGAIN &&
		    schedule_timeout_killable(msecs_to_jiffies(RNBD_CLT_ID_MS)))
			err = -EINTR;
	} while (err == -EAGAIN);
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

/* Undo the making of a device whose disk has not been added. */
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
 * Remove a device whose state is RNBD_DEV_UNMAPPED. The caller may be a write to one of the
 * disk's attributes, whose end del_gendisk() waits for. So a work item removes the disk.
 */
static void rnbd_clt_dev_remove(struct rnbd_clt_dev *dev, bool force)
{
	struct gendisk *disk = dev->disk;
	unsigned int memflags;

	/*
	 * Fails all I/O that waits for the device, as processes may wait for that. After the
	 * grace period this includes I/O that saw the device open and found no path.
	 */
	synchronize_rcu();
	rnbd_clt_dev_wake(dev);
	/* Newer kernels notify filesystems, which may have waited for that I/O. */
	if (force)
		blk_mark_disk_dead(disk);
	cancel_delayed_work_sync(&dev->reopen);
	cancel_work_sync(&dev->follow);
	cancel_work_sync(&dev->uevent_work);
	/* Wait for requests in flight; there will be no more of them. */
	memflags = blk_mq_freeze_queue(disk->queue);
	blk_mq_unfreeze_queue(disk->queue, memflags);
	rnbd_clt_dev_detach(dev);
	queue_work(rnbd_clt_wq, &dev->del_work);
}

/* From here on users can see the device, and may unmap it. */
static int rnbd_clt_dev_publish(struct rnbd_clt_dev *dev)
{
	int err;

	err = rnbd_clt_dev_link(dev);
	if (err)
		return err;
	err = rnbd_clt_dev_tell_state(dev);
	if (err)
		rnbd_clt_dev_unlink(dev);
	return err;
}

/**
 * rnbd_clt_dev_map() - map a device
 * @opts: what the user wants
 * @groups: attributes of the disk
 *
 * Return: 0 when the disk is there and its partitions have been looked for, or a
 * negative errno.
 */
int rnbd_clt_dev_map(const struct rnbd_clt_map_opts *opts,
		     const struct attribute_group **groups)
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

	/* Before it is visible, since it may be unmapped and freed as soon as it is. */
	pr_info("%s: mapped %s (%s) as rnbd%d\n", opts->label,
		opts->dev_path, rnbd_clt_access_names[opts->access_mode],
		dev->index);
	err = rnbd_clt_dev_publish(dev);
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
 * @force: even if it is in use
 *
 * From here on I/O fails. A disk that is opened after its openers were checked fails all
 * I/O, as one that is opened a little later. A partition scan that hangs holds
 * open_mutex, so with @force that isn't waited for.
 *
 * Return: 0 if the caller has to call rnbd_clt_dev_unmap(), -EALREADY if another one does,
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
 * @force: the disk may be in use; fail I/O at once rather than when it gets here
 *
 * Returns when its requests have ended, and the server has closed it. The disk goes soon
 * after that, and the device is freed with the last one who has the disk open.
 */
void rnbd_clt_dev_unmap(struct rnbd_clt_dev *dev, bool force)
{
	pr_info("%s: unmapping %s, rnbd%d\n", dev->sess->label, dev->path,
		dev->index);
	rnbd_clt_dev_unlink(dev);
	rnbd_clt_dev_remove(dev, force);
}

/* Sessions keep a network namespace from being freed, so nobody hears that all others have gone. */
static void rnbd_clt_watch_nets(struct work_struct *work)
{
	struct rnbd_clt_dev *dev;
	bool others;

	while ((dev = rnbd_clt_claim_orphan(&others))) {
		pr_info("%s: its network namespace is gone\n", dev->sess->label);
		queue_work(rnbd_clt_wq, &dev->orphan_work);
	}
	if (others)
		queue_delayed_work(rnbd_clt_wq, &rnbd_clt_net_work, RNBD_CLT_NET_WATCH);
}

/**
 * rnbd_clt_stop_watch() - look at network namespaces no more
 *
 * Context: process, may sleep; nothing can be mapped any more.
 */
void rnbd_clt_stop_watch(void)
{
	cancel_delayed_work_sync(&rnbd_clt_net_work);
	/* Devices that it has claimed are being removed. */
	flush_workqueue(rnbd_clt_wq);
}
