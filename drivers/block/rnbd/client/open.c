// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: opening and closing of devices on the server.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/string.h>

#include "rnbd-clt.h"

/*
 * Begin to open or close a device. This driver's servers, which grant features, allocate ids
 * cyclically, so an id isn't reused before the client knows that its device is closed. Other
 * servers reuse ids at once. Towards them, only one OPEN or CLOSE of the session is in progress at
 * a time, so the id in an answer belongs to one device. Returns whether the lock is held.
 */
VISIBLE_IF_KUNIT bool rnbd_clt_lock_ids(struct rnbd_clt_sess *sess)
{
	if (READ_ONCE(sess->features))
		return false;
	mutex_lock(&sess->ids_lock);
	return true;
}

VISIBLE_IF_KUNIT void rnbd_clt_unlock_ids(struct rnbd_clt_sess *sess, bool locked)
{
	if (locked)
		mutex_unlock(&sess->ids_lock);
}

/* Find a device of the session that is open with an id. */
static struct rnbd_clt_dev *rnbd_clt_id_owner(struct rnbd_clt_sess *sess, u32 device_id)
{
	struct rnbd_clt_dev *dev;

	lockdep_assert_held(&sess->lock);
	list_for_each_entry(dev, &sess->devs, list) {
		if (dev->opened && dev->device_id == device_id)
			return dev;
	}
	return NULL;
}

/**
 * rnbd_clt_fill_close() - write a message that closes a device
 * @msg: message
 * @device_id: the server's id of the device
 */
VISIBLE_IF_KUNIT void rnbd_clt_fill_close(struct rnbd_msg_close *msg, u32 device_id)
{
	*msg = (struct rnbd_msg_close) {
		.hdr.type = cpu_to_le16(RNBD_MSG_CLOSE),
		.device_id = cpu_to_le32(device_id),
	};
}

static void rnbd_clt_close_id(struct rnbd_clt_sess *sess, unsigned int generation, u32 device_id)
{
	struct rnbd_msg_close msg;

	rnbd_clt_fill_close(&msg, device_id);
	/* If CLOSE is lost, the server closes the device when the session ends or is resumed. */
	rnbd_clt_admin(sess, generation, &msg, sizeof(msg), NULL, 0);
}

/**
 * rnbd_clt_dev_close() - close a device on the server, if the device is open there
 * @dev: device whose state is not RNBD_DEV_OPEN
 *
 * Context: under the device's open_lock.
 */
void rnbd_clt_dev_close(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned int generation;
	bool locked, opened;

	lockdep_assert_held(&dev->open_lock);
	/* It is set only under open_lock. Do not wait for another device's OPEN in vain. */
	if (!READ_ONCE(dev->opened))
		return;
	locked = rnbd_clt_lock_ids(sess);
	spin_lock_irq(&sess->lock);
	opened = dev->opened;
	generation = sess->generation;
	spin_unlock_irq(&sess->lock);
	if (opened)
		rnbd_clt_close_id(sess, generation, dev->device_id);
	/* From now on the server may assign the id to another device of the session. */
	spin_lock_irq(&sess->lock);
	dev->opened = false;
	spin_unlock_irq(&sess->lock);
	rnbd_clt_unlock_ids(sess, locked);
}

/*
 * Close a device after an answer that can't be used. Nothing is closed if the answer's type is
 * invalid, or if a device of the session, perhaps @dev, is open with its id.
 */
static void rnbd_clt_dev_undo_open(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp,
				   unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	u32 device_id = le32_to_cpu(rsp->device_id);
	bool undo;

	if (rsp->hdr.type != cpu_to_le16(RNBD_MSG_OPEN_RSP))
		return;
	spin_lock_irq(&sess->lock);
	undo = sess->generation == generation && !rnbd_clt_id_owner(sess, device_id);
	spin_unlock_irq(&sess->lock);
	if (undo)
		rnbd_clt_close_id(sess, generation, device_id);
}

/*
 * Make a device open with the id and the UUID from an answer. The answer is valid if the session
 * was not lost since OPEN was sent. The in-tree server returns the same id for two names of one
 * device: the second mapping fails with -EEXIST, but is not closed, as that would close the first
 * one.
 *
 * Return: 0, -ECONNABORTED or -EEXIST.
 */
VISIBLE_IF_KUNIT int rnbd_clt_dev_set_open(struct rnbd_clt_dev *dev,
					   const struct rnbd_msg_open_rsp *rsp,
					   unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	u32 device_id = le32_to_cpu(rsp->device_id);
	int err = 0;

	spin_lock_irq(&sess->lock);
	if (sess->generation != generation) {
		err = -ECONNABORTED;
	} else if (rnbd_clt_id_owner(sess, device_id)) {
		err = -EEXIST;
	} else {
		dev->opened = true;
		dev->device_id = device_id;
		/* Before the change of the state is notified */
		import_uuid(&dev->uuid, rsp->uuid);
		rnbd_clt_restart_loss_time(dev);
		/* Unmapping the device also closes it on the server. */
		if (dev->state != RNBD_DEV_UNMAPPED)
			rnbd_clt_dev_set_state(dev, RNBD_DEV_OPEN);
	}
	spin_unlock_irq(&sess->lock);
	if (err == -EEXIST)
		rnbd_clt_dev_err(dev, err, "mapped already, by another name\n");
	return err;
}

/**
 * rnbd_clt_fill_open() - write a message that opens a device
 * @msg: message; only @msg->open is sent unless rnbd_has_generation()
 * @dev: device
 *
 * Context: under the device's open_lock.
 */
VISIBLE_IF_KUNIT void rnbd_clt_fill_open(struct rnbd_msg_open_gen *msg,
					 const struct rnbd_clt_dev *dev)
{
	*msg = (struct rnbd_msg_open_gen) {
		.open.hdr.type = cpu_to_le16(RNBD_MSG_OPEN),
		.open.access_mode = dev->access_mode,
		.generation = cpu_to_le64(dev->generation),
		.flags = READ_ONCE(dev->gen_flags),
	};
	strscpy(msg->open.dev_name, dev->path, sizeof(msg->open.dev_name));
}

static int rnbd_clt_mode_known(const struct rnbd_clt_dev *dev, u32 features)
{
	if (dev->access_mode != RNBD_ACCESS_HANDOVER || (features & RNBD_FEATURE_HANDOVER))
		return 0;
	rnbd_clt_dev_err(dev, -EOPNOTSUPP,
			 "server doesn't know access_mode=handover: it has to be newer\n");
	return -EOPNOTSUPP;
}

/*
 * Check whether users flush the writes of a device. While the disk had no write cache, the block
 * layer dropped flushes. Writes have RNBD_F_FUA until no request from that time can remain.
 */
static bool rnbd_clt_dev_flushes(const struct rnbd_clt_dev *dev)
{
	return !dev->disk || ((dev->limits.cache_policy & RNBD_CACHE_WRITEBACK) &&
			      !dev->write_flags);
}

static int rnbd_clt_send_open(const struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
			      unsigned int generation, u32 features)
{
	bool has_generation = rnbd_has_generation(dev->access_mode, features);
	struct rnbd_msg_open_gen msg;
	int err;

	err = rnbd_clt_mode_known(dev, features);
	if (err)
		return err;
	rnbd_clt_fill_open(&msg, dev);
	if ((features & RNBD_FEATURE_DISK_STATE) && rnbd_clt_dev_flushes(dev))
		msg.open.flags |= RNBD_OPEN_FLUSHES;
	return rnbd_clt_admin(dev->sess, generation, &msg,
			      has_generation ? sizeof(msg) : sizeof(msg.open), rsp,
			      rnbd_open_rsp_len(dev->access_mode, features));
}

static int rnbd_clt_check_answer(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
				 u32 features)
{
	int err = rnbd_clt_check_rsp(dev, rsp, features);

	if (!err && rnbd_has_generation(dev->access_mode, features))
		err = rnbd_clt_check_generation(dev, rsp);
	return err;
}

/*
 * Queue work that needs the session, unless the device is being unmapped. Any context, while the
 * device keeps its session.
 */
static void rnbd_clt_dev_queue(struct rnbd_clt_dev *dev, struct work_struct *work)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned long flags;

	spin_lock_irqsave(&sess->lock, flags);
	if (dev->state != RNBD_DEV_UNMAPPED)
		queue_work(sess->news_wq, work);
	spin_unlock_irqrestore(&sess->lock, flags);
}

/*
 * Stop forcing FUA if the disk is not open, since then no request remains that was built with older
 * limits. Devices stacked on the disk, which copy its limits, keep it open. The next query tells
 * the server, which has flushed after each write, that the client flushes from now on.
 */
static void rnbd_clt_dev_try_confirm(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	mutex_lock(&dev->open_lock);
	if (dev->write_flags && rnbd_same_limits(rsp, &dev->limits) && !disk_openers(dev->disk)) {
		WRITE_ONCE(dev->write_flags, 0);
		if (READ_ONCE(dev->sess->features) & RNBD_FEATURE_DISK_STATE)
			rnbd_clt_dev_queue(dev, &dev->follow);
	}
	mutex_unlock(&dev->open_lock);
}

/* Follow changes of the server's disk to or from read-only; otherwise keep the user's setting. */
static void rnbd_clt_dev_follow_ro(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	bool ro = rsp->flags & RNBD_DISK_READ_ONLY;

	if (ro == dev->read_only || dev->access_mode == RNBD_ACCESS_RO)
		return;
	dev->read_only = ro;
	set_disk_ro(dev->disk, ro);
}

/* Open and close a disk, which scans its partitions if it is marked for that. */
static void rnbd_clt_dev_scan_partitions(struct gendisk *disk)
{
	struct file *file = bdev_file_open_by_dev(disk_devt(disk), BLK_OPEN_READ, NULL, NULL);

	if (!IS_ERR(file))
		__fput_sync(file);
}

/**
 * rnbd_clt_limits_work() - set the limits of a disk to those last reported by the server
 * @work: &rnbd_clt_dev.limits_work
 *
 * Also scans for partitions if the disk was empty.
 *
 * A write to an attribute of the queue holds the lock of the limits while it freezes the queue, and
 * so may wait for I/O that waits for the device. This work item may wait for that lock: only the
 * removal of the disk waits for the work item.
 *
 * The queue isn't frozen: that would wait for I/O that waits for the device, and would delay I/O
 * that must fail at once. The block size and the transport's limits, on which memory safety
 * depends, never change. The other limits describe the server's disk; the server splits or
 * rejects I/O that was built with older limits. rnbd_clt_dev.write_flags compensates for flushes
 * that the block layer or a stacked device omits.
 */
void rnbd_clt_limits_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev, limits_work);
	struct request_queue *q = dev->disk->queue;
	struct rnbd_msg_open_rsp rsp;
	struct queue_limits lim;
	int err;

	mutex_lock(&dev->open_lock);
	rsp = dev->limits;
	mutex_unlock(&dev->open_lock);
	lim = queue_limits_start_update(q);
	rnbd_clt_fill_limits(dev, &rsp, &lim);
	err = queue_limits_commit_update(q, &lim);
	if (err && __ratelimit(&dev->sess->ratelimit))
		pr_err("%s: %s keeps its old limits: %pe\n", dev->sess->label,
		       dev->path, ERR_PTR(err));
	if (!err)
		rnbd_clt_dev_try_confirm(dev, &rsp);
	rnbd_clt_dev_follow_ro(dev, &rsp);
	if (test_bit(GD_NEED_PART_SCAN, &dev->disk->state))
		rnbd_clt_dev_scan_partitions(dev->disk);
}

/**
 * rnbd_clt_dev_queue_limits() - queue the update of a disk's limits
 * @dev: device with a disk
 *
 * Context: any, while the device keeps its session.
 */
void rnbd_clt_dev_queue_limits(struct rnbd_clt_dev *dev)
{
	rnbd_clt_dev_queue(dev, &dev->limits_work);
}

/**
 * rnbd_clt_dev_set_limits() - set the limits of a disk from the server's answer
 * @dev: device; nothing happens if it has no disk yet
 * @rsp: the server's answer, which has been checked
 *
 * A work item sets the limits later. If the server's disk has a new write cache, writes have
 * RNBD_F_FUA when this returns.
 *
 * Context: under the device's open_lock.
 */
void rnbd_clt_dev_set_limits(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	lockdep_assert_held(&dev->open_lock);
	if (!dev->disk || rnbd_same_limits(rsp, &dev->limits))
		return;
	WRITE_ONCE(dev->write_flags,
		   dev->write_flags | rnbd_clt_new_write_flags(&dev->limits, rsp));
	dev->limits = *rsp;
	rnbd_clt_dev_queue_limits(dev);
}

/* The same event as the block layer's */
static char *rnbd_clt_resize_env[] = { "RESIZE=1", NULL };

/**
 * rnbd_clt_dev_set_size() - set the size of a disk, and notify users
 * @dev: device with a disk
 * @nsectors: size in sectors
 *
 * If the disk was empty, the block layer sends no uevent, and has not scanned for partitions.
 */
void rnbd_clt_dev_set_size(struct rnbd_clt_dev *dev, u64 nsectors)
{
	struct gendisk *disk = dev->disk;
	bool first = nsectors && !get_capacity(disk);

	set_capacity_and_notify(disk, nsectors);
	if (!first)
		return;
	/* Set after the capacity: an open before would scan no sectors, and clear the bit. */
	set_bit(GD_NEED_PART_SCAN, &disk->state);
	kobject_uevent_env(&disk_to_dev(disk)->kobj, KOBJ_CHANGE, rnbd_clt_resize_env);
	rnbd_clt_dev_queue_limits(dev);
}

/* Check whether the server's disk was removed, or is empty, as an array before its assembly. */
static bool rnbd_clt_dev_is_empty(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	if (rsp->flags & RNBD_DISK_GONE) {
		spin_lock_irq(&dev->sess->lock);
		WRITE_ONCE(dev->removals, dev->removals + 1);
		spin_unlock_irq(&dev->sess->lock);
	} else if (rsp->nsectors || !dev->disk || !get_capacity(dev->disk)) {
		return false;
	}
	rnbd_clt_dev_err(dev, -ENXIO, "the server's disk is empty\n");
	return true;
}

/**
 * rnbd_clt_dev_open() - open a device on the server
 * @dev: device
 * @rsp: buffer for the answer, from kmalloc()
 * @generation: generation of the session when the caller began
 *
 * If the device has a disk, a work item sets the limits of the disk later; its size does not
 * change.
 *
 * Context: under the device's open_lock.
 * Return: 0, -ESTALE if the server has another disk by that name now, -EBADE if a newer mapping has
 * written to the disk, -ENXIO if the server's disk was removed, or is empty and was not before, or
 * another negative errno.
 */
int rnbd_clt_dev_open(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
		      unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	bool locked = false;
	u32 features;
	int err;

	lockdep_assert_held(&dev->open_lock);
	err = rnbd_clt_sess_introduce(sess);
	features = READ_ONCE(sess->features);
	if (!err) {
		locked = rnbd_clt_lock_ids(sess);
		err = rnbd_clt_send_open(dev, rsp, generation, features);
	}
	if (err == -EBADE && !rnbd_has_generation(dev->access_mode, features))
		err = -EIO;
	if (err) {
		rnbd_clt_dev_err(dev, err, "server can't open it (%s): %pe%s\n",
				 rnbd_clt_access_names[dev->access_mode], ERR_PTR(err),
				 err == -EBADE ? ", a newer mapping has written to it" : "");
		goto unlock;
	}

	err = rnbd_clt_check_answer(dev, rsp, features);
	if (!err && rnbd_clt_dev_is_empty(dev, rsp))
		err = -ENXIO;
	if (err) {
		rnbd_clt_dev_undo_open(dev, rsp, generation);
		goto unlock;
	}
	rnbd_clt_dev_set_limits(dev, rsp);
	err = rnbd_clt_dev_set_open(dev, rsp, generation);
unlock:
	rnbd_clt_unlock_ids(sess, locked);
	return err;
}

/* Check whether a device is still open with an id from a generation of the session. */
static bool rnbd_clt_dev_open_as(const struct rnbd_clt_dev *dev, u32 device_id,
				 unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	bool same;

	spin_lock_irq(&sess->lock);
	same = sess->generation == generation && dev->opened &&
	       dev->device_id == device_id;
	spin_unlock_irq(&sess->lock);
	return same;
}

/**
 * rnbd_clt_dev_ask() - query the present size and limits of an open device
 * @dev: device
 * @rsp: buffer for the answer, from kmalloc()
 *
 * Sends OPEN again: within a session, the same name has the same id. If the answer has another id,
 * the server has closed the device in between, and the device is revoked.
 *
 * Context: under the device's open_lock.
 * Return: 0, -ENOTCONN if the device isn't open, or another negative errno.
 */
int rnbd_clt_dev_ask(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp)
{
	u32 features = READ_ONCE(dev->sess->features);
	u32 device_id = dev->device_id;
	unsigned int generation;
	bool locked, open;
	int err;

	lockdep_assert_held(&dev->open_lock);
	/* A lost session gets its next generation before its devices are closed, under the lock. */
	spin_lock_irq(&dev->sess->lock);
	generation = dev->sess->generation;
	open = dev->state == RNBD_DEV_OPEN;
	spin_unlock_irq(&dev->sess->lock);
	/* Without a disk, its allocation has failed, and the mapping is about to fail. */
	if (!open || !dev->disk)
		return -ENOTCONN;

	locked = rnbd_clt_lock_ids(dev->sess);
	err = rnbd_clt_send_open(dev, rsp, generation, features);
	if (err)
		goto unlock;
	err = rnbd_clt_check_answer(dev, rsp, features);
	if (!err && le32_to_cpu(rsp->device_id) == device_id &&
	    rnbd_clt_dev_open_as(dev, device_id, generation))
		goto unlock;
	rnbd_clt_dev_undo_open(dev, rsp, generation);
	if (!err) {
		if (rnbd_clt_dev_open_as(dev, device_id, generation))
			rnbd_clt_dev_revoke(dev, device_id);
		err = -ENOTCONN;
	}
unlock:
	rnbd_clt_unlock_ids(dev->sess, locked);
	return err;
}
