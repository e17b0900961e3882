// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: a device is opened on the server, and closed there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/string.h>

#include "rnbd-clt.h"

/* Under the session's lock: has an answer with that id to be undone? */
static bool rnbd_clt_dev_undoes(const struct rnbd_clt_dev *dev, u32 device_id)
{
	return dev->undoing && dev->undone_id == device_id;
}

/* Under the session's lock: is it open with that id? */
static bool rnbd_clt_dev_has(const struct rnbd_clt_dev *dev, u32 device_id)
{
	return dev->opened && dev->device_id == device_id;
}

/* Return: another of the session's devices that has that id, or closes it; NULL if none. */
static struct rnbd_clt_dev *rnbd_clt_id_owner(const struct rnbd_clt_dev *dev,
					      u32 device_id)
{
	struct rnbd_clt_sess *sess = dev->sess;
	struct rnbd_clt_dev *other;

	lockdep_assert_held(&sess->lock);
	list_for_each_entry(other, &sess->devs, list) {
		if (other != dev && (rnbd_clt_dev_has(other, device_id) ||
				     rnbd_clt_dev_undoes(other, device_id)))
			return other;
	}
	return NULL;
}

/**
 * rnbd_clt_fill_close() - write a message that closes a device
 * @msg: message
 * @device_id: the server's id of the device
 */
void rnbd_clt_fill_close(struct rnbd_msg_close *msg, u32 device_id)
{
	*msg = (struct rnbd_msg_close) {
		.hdr.type = cpu_to_le16(RNBD_MSG_CLOSE),
		.device_id = cpu_to_le32(device_id),
	};
}

static void rnbd_clt_close_id(struct rnbd_clt_sess *sess, unsigned int generation,
			      u32 device_id)
{
	struct rnbd_msg_close msg;

	rnbd_clt_fill_close(&msg, device_id);
	/* If this gets lost, so has the session, and the server closes it. */
	rnbd_clt_admin(sess, generation, &msg, sizeof(msg), NULL, 0);
}

/**
 * rnbd_clt_dev_close() - close a device on the server, if it is open there
 * @dev: device whose state is not RNBD_DEV_OPEN
 *
 * Context: under the device's open_lock.
 */
void rnbd_clt_dev_close(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned int generation;
	bool opened;

	lockdep_assert_held(&dev->open_lock);
	spin_lock_irq(&sess->lock);
	opened = dev->opened;
	generation = sess->generation;
	spin_unlock_irq(&sess->lock);
	if (opened)
		rnbd_clt_close_id(sess, generation, dev->device_id);
	/* The server may give the id to another one of the session's devices now. */
	spin_lock_irq(&sess->lock);
	dev->opened = false;
	spin_unlock_irq(&sess->lock);
}

/**
 * rnbd_clt_dev_undo_open() - close what an answer that can't be used has opened
 * @dev: device
 * @rsp: the answer; nothing is closed if it is none to an open, or if its id is in use,
 *	by another device or by this one
 * @generation: of the session, when the question was asked
 */
void rnbd_clt_dev_undo_open(struct rnbd_clt_dev *dev,
			    const struct rnbd_msg_open_rsp *rsp,
			    unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	u32 device_id = le32_to_cpu(rsp->device_id);
	struct rnbd_clt_dev *other;
	bool undo;

	if (rsp->hdr.type != cpu_to_le16(RNBD_MSG_OPEN_RSP))
		return;
	spin_lock_irq(&sess->lock);
	undo = sess->generation == generation;
	list_for_each_entry(other, &sess->devs, list)
		undo &= !rnbd_clt_dev_has(other, device_id);
	dev->undoing = undo;
	dev->undone_id = device_id;
	spin_unlock_irq(&sess->lock);
	if (!undo)
		return;
	rnbd_clt_close_id(sess, generation, device_id);
	/* That may have been sent twice, so nobody could have the id until now. */
	spin_lock_irq(&sess->lock);
	dev->undoing = false;
	spin_unlock_irq(&sess->lock);
}

/*
 * The answer counts if the session hasn't been lost since the question was asked. Two names
 * of one device get the same id; the second is turned down, but not closed, as that would
 * close the first. But the server may also have closed the first one just now, and given
 * its id to the second. Once the first one's owner knows that it is closed, or has closed it, the
 * server can be asked again.
 *
 * Return: 0, -ECONNABORTED, -EEXIST, or -EAGAIN.
 */
VISIBLE_IF_KUNIT int rnbd_clt_dev_set_open(struct rnbd_clt_dev *dev, u32 device_id,
					   unsigned int generation)
{
	struct rnbd_clt_sess *sess = dev->sess;
	struct rnbd_clt_dev *other;
	int err = 0;

	spin_lock_irq(&sess->lock);
	other = rnbd_clt_id_owner(dev, device_id);
	if (sess->generation != generation) {
		err = -ECONNABORTED;
	} else if (other) {
		err = other->state == RNBD_DEV_UNMAPPED || rnbd_clt_dev_undoes(other, device_id) ?
		      -EAGAIN : -EEXIST;
	} else {
		dev->opened = true;
		dev->device_id = device_id;
		/* Whoever is unmapping it closes it on the server as well. */
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
 * @msg: message
 * @dev: device
 */
void rnbd_clt_fill_open(struct rnbd_msg_open *msg,
			const struct rnbd_clt_dev *dev)
{
	*msg = (struct rnbd_msg_open) {
		.hdr.type = cpu_to_le16(RNBD_MSG_OPEN),
		.access_mode = dev->access_mode,
	};
	strscpy(msg->dev_name, dev->path, sizeof(msg->dev_name));
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
 * Does the device's disk send flushes after writes? While it had no write cache, the block layer
 * dropped them, and writes have RNBD_F_FUA until nobody can have any more that were made then.
 */
static bool rnbd_clt_dev_flushes(const struct rnbd_clt_dev *dev)
{
	return !dev->disk || ((dev->limits.cache_policy & RNBD_CACHE_WRITEBACK) &&
			      !dev->write_flags);
}

static int rnbd_clt_send_open(const struct rnbd_clt_dev *dev,
			      struct rnbd_msg_open_rsp *rsp,
			      unsigned int generation, u32 features)
{
	size_t msg_len = sizeof(struct rnbd_msg_open);
	size_t len = RNBD_MSG_OPEN_RSP_MIN;
	struct rnbd_msg_open_gen msg;
	int err;

	err = rnbd_clt_mode_known(dev, features);
	if (err)
		return err;
	if (features & RNBD_FEATURE_UNIQUE_ID)
		len = RNBD_MSG_OPEN_RSP_ID;
	if (rnbd_has_generation(dev->access_mode, features)) {
		msg_len = sizeof(msg);
		len = sizeof(*rsp);
	}
	rnbd_clt_fill_generation(&msg, dev);
	if ((features & RNBD_FEATURE_DISK_STATE) && rnbd_clt_dev_flushes(dev))
		msg.open.flags |= RNBD_OPEN_FLUSHES;
	return rnbd_clt_admin(dev->sess, generation, &msg, msg_len, rsp, len);
}

static int rnbd_clt_check_answer(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
				 u32 features)
{
	int err = rnbd_clt_check_rsp(dev, rsp);

	if (!err && rnbd_has_generation(dev->access_mode, features))
		err = rnbd_clt_check_generation(dev, rsp);
	return err;
}

/* Tells the server, which flushes after each write so far, that the client flushes from now on. */
static void rnbd_clt_dev_confirm(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;

	WRITE_ONCE(dev->write_flags, 0);
	if (!(READ_ONCE(sess->features) & RNBD_FEATURE_DISK_STATE))
		return;
	spin_lock_irq(&sess->lock);
	if (dev->state != RNBD_DEV_UNMAPPED)
		queue_work(sess->news_wq, &dev->follow);
	spin_unlock_irq(&sess->lock);
}

/*
 * While the disk has no user, no request is left that was made under older limits. Devices on top
 * of the disk, which copy its limits, are users.
 */
static void rnbd_clt_dev_try_confirm(struct rnbd_clt_dev *dev,
				     const struct rnbd_msg_open_rsp *rsp)
{
	mutex_lock(&dev->open_lock);
	if (dev->write_flags && rnbd_same_limits(rsp, &dev->limits) && !disk_openers(dev->disk))
		rnbd_clt_dev_confirm(dev);
	mutex_unlock(&dev->open_lock);
}

/* What a user has set stays, unless the server's disk changes. */
static void rnbd_clt_dev_follow_ro(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	bool ro = rsp->flags & RNBD_DISK_READ_ONLY;

	if (ro == dev->read_only || dev->access_mode == RNBD_ACCESS_RO)
		return;
	dev->read_only = ro;
	set_disk_ro(dev->disk, ro);
}

/*
 * Give the disk the limits that the server has told last, and look for partitions if it was empty.
 *
 * A user who writes one of the queue's attributes may hold the lock of the limits while the
 * queue is being frozen, and so wait for I/O that waits for the device. Hence a work item of
 * its own, for which nothing waits but the removal of the disk.
 *
 * The queue isn't frozen: freezing it would wait for I/O that waits for the device, and would hold
 * up I/O that has to fail at once. The limits that memory depends on never change: those of the
 * transport, and the block size. The other limits are those of the server's disk, and the server
 * splits or refuses I/O that was made under older ones. rnbd_clt_dev.write_flags makes up for
 * flushes that the block layer, or a device on top, omits.
 */
static void rnbd_clt_limits_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev,
						limits_work);
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
		compat_touch_disk(dev->disk);
}

/**
 * rnbd_clt_dev_init_open() - prepare a new device for being opened
 * @dev: device
 */
void rnbd_clt_dev_init_open(struct rnbd_clt_dev *dev)
{
	mutex_init(&dev->open_lock);
	INIT_WORK(&dev->limits_work, rnbd_clt_limits_work);
}

/**
 * rnbd_clt_dev_queue_limits() - have a disk get its limits soon
 * @dev: device with a disk
 *
 * Context: any, while the device is a user of its session or state is RNBD_DEV_UNMAPPED.
 */
void rnbd_clt_dev_queue_limits(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned long flags;

	spin_lock_irqsave(&sess->lock, flags);
	if (dev->state != RNBD_DEV_UNMAPPED)
		queue_work(sess->news_wq, &dev->limits_work);
	spin_unlock_irqrestore(&sess->lock, flags);
}

/**
 * rnbd_clt_dev_set_limits() - give a disk the limits that the server tells
 * @dev: device; nothing is done if it has no disk yet
 * @rsp: the server's answer, which has been checked
 *
 * They come a little later, but writes are durable from here on, if they have to be.
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

/* As the block layer's event */
static char *rnbd_clt_resize_env[] = { "RESIZE=1", NULL };

/**
 * rnbd_clt_dev_set_size() - give a disk another size, and notify users
 * @dev: device with a disk
 * @nsectors: the size
 *
 * The block layer does not send a uevent for a disk that was empty, and has not found partitions.
 */
void rnbd_clt_dev_set_size(struct rnbd_clt_dev *dev, u64 nsectors)
{
	struct gendisk *disk = dev->disk;
	bool first = nsectors && !get_capacity(disk);

	set_capacity_and_notify(disk, nsectors);
	if (!first)
		return;
	/* Not before: an open in between would scan no sectors, and clear it. */
	set_bit(GD_NEED_PART_SCAN, &disk->state);
	kobject_uevent_env(&disk_to_dev(disk)->kobj, KOBJ_CHANGE, rnbd_clt_resize_env);
	rnbd_clt_dev_queue_limits(dev);
}

/* Has the server's disk no sectors any more? An array has none before it is assembled. */
static bool rnbd_clt_dev_is_empty(const struct rnbd_clt_dev *dev,
				  const struct rnbd_msg_open_rsp *rsp)
{
	if (!(rsp->flags & RNBD_DISK_GONE) &&
	    (rsp->nsectors || !dev->disk || !get_capacity(dev->disk)))
		return false;
	rnbd_clt_dev_err(dev, -ENXIO, "the server's disk is empty\n");
	return true;
}

/**
 * rnbd_clt_dev_open() - open a device on the server
 * @dev: device
 * @rsp: where to put the answer, from kmalloc()
 * @generation: how often the session had been lost when the caller began
 *
 * Under the device's open_lock. If it has a disk, that gets the device's limits a little
 * later, and keeps its size.
 *
 * Return: 0, -EAGAIN if another device is just closing that id, -ESTALE if
 * the server has another disk by that name now, -EBADE if a newer mapping has written to the
 * disk, -ENXIO if the server's disk is empty and was not before, or another negative errno.
 */
int rnbd_clt_dev_open(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
		      unsigned int generation)
{
	u32 features;
	int err;

	lockdep_assert_held(&dev->open_lock);
	err = rnbd_clt_sess_introduce(dev->sess);
	features = READ_ONCE(dev->sess->features);
	if (!err)
		err = rnbd_clt_send_open(dev, rsp, generation, features);
	if (err == -EBADE && !rnbd_has_generation(dev->access_mode, features))
		err = -EIO;
	if (err) {
		rnbd_clt_dev_err(dev, err, "server can't open it (%s): %pe%s\n",
				 rnbd_clt_access_names[dev->access_mode], ERR_PTR(err),
				 err == -EBADE ? ", a newer mapping has written to it" : "");
		return err;
	}

	err = rnbd_clt_check_answer(dev, rsp, features);
	if (!err && rnbd_clt_dev_is_empty(dev, rsp))
		err = -ENXIO;
	if (err) {
		rnbd_clt_dev_undo_open(dev, rsp, generation);
		return err;
	}
	rnbd_clt_dev_set_limits(dev, rsp);
	return rnbd_clt_dev_set_open(dev, le32_to_cpu(rsp->device_id), generation);
}

/* Is the device open as it was when the session was of that generation? */
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
 * rnbd_clt_dev_ask() - ask the server for what it says of an open device
 * @dev: device
 * @rsp: where to put the answer, from kmalloc()
 *
 * An open device is opened once more: the same name in the same session has the same id.
 * Nothing of the device changes, unless the server turns out to have closed it.
 *
 * Context: under the device's open_lock.
 * Return: 0, -ENOTCONN if the device isn't open, or another negative errno.
 */
int rnbd_clt_dev_ask(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp)
{
	unsigned int generation = rnbd_clt_sess_generation(dev->sess);
	u32 features = READ_ONCE(dev->sess->features);
	u32 device_id = dev->device_id;
	int err;

	lockdep_assert_held(&dev->open_lock);
	/* No disk: it could not be made, and mapping is about to fail. */
	if (READ_ONCE(dev->state) != RNBD_DEV_OPEN || !dev->disk)
		return -ENOTCONN;

	err = rnbd_clt_send_open(dev, rsp, generation, features);
	if (err)
		return err;
	err = rnbd_clt_check_answer(dev, rsp, features);
	if (!err && le32_to_cpu(rsp->device_id) == device_id &&
	    rnbd_clt_dev_open_as(dev, device_id, generation))
		return 0;
	rnbd_clt_dev_undo_open(dev, rsp, generation);
	if (err)
		return err;
	if (rnbd_clt_dev_open_as(dev, device_id, generation))
		rnbd_clt_dev_revoke(dev, device_id);
	return -ENOTCONN;
}
