// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: states of a session and of its devices, and notification of users: the
 * attribute "state" can be polled, and uevents tell udev whether a disk can be used. When
 * the server sends an event, the client queries the size and the limits of each device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sysfs.h>

#include "rnbd-clt.h"

/* Events of the server within this time cause one query of the sizes. */
#define RNBD_CLT_EVENT_DELAY	(HZ / 10)

/* The server has at least this time to reopen a device, whatever failover_timeout is. */
#define RNBD_CLT_MIN_REOPEN	(5 * HZ)
/* Interval of the checks for I/O that has waited too long, after that time */
#define RNBD_CLT_EXPIRE		HZ

/* Get the next uevent to send. Each change gets one, in order, however late it is sent. */
static bool rnbd_clt_next_uevent(struct rnbd_clt_dev *dev, enum kobject_action *action)
{
	struct rnbd_clt_sess *sess = dev->sess;
	bool more;

	spin_lock_irq(&sess->lock);
	more = dev->flips_told != dev->flips;
	if (more)
		*action = ++dev->flips_told & 1 ? KOBJ_ONLINE : KOBJ_OFFLINE;
	spin_unlock_irq(&sess->lock);
	return more;
}

/**
 * rnbd_clt_uevent_work() - notify users of changes of a device's state
 * @work: &rnbd_clt_dev.uevent_work
 */
void rnbd_clt_uevent_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev, uevent_work);
	unsigned int noio = memalloc_noio_save();
	enum kobject_action action;

	sysfs_notify(&disk_to_dev(dev->disk)->kobj, RNBD_CLT_DEV_GROUP, "state");
	while (rnbd_clt_next_uevent(dev, &action))
		kobject_uevent(&disk_to_dev(dev->disk)->kobj, action);
	memalloc_noio_restore(noio);
}

/**
 * rnbd_clt_dev_set_state() - change a device's state, and notify users
 * @dev: device
 * @state: new state
 *
 * Context: any, under the session's lock.
 */
void rnbd_clt_dev_set_state(struct rnbd_clt_dev *dev, enum rnbd_clt_dev_state state)
{
	bool was_open = dev->state == RNBD_DEV_OPEN;
	bool open = state == RNBD_DEV_OPEN;

	lockdep_assert_held(&dev->sess->lock);
	if (state != RNBD_DEV_UNMAPPED && open != was_open)
		dev->flips++;
	/* pairs with rnbd_clt_rq_errno(), for device_id */
	smp_store_release(&dev->state, state);

	if (dev->mapped && state != RNBD_DEV_UNMAPPED)
		queue_work(system_dfl_wq, &dev->uevent_work);
}

/**
 * rnbd_clt_dev_wake() - have waiting I/O checked again after a change of a device's state
 * @dev: device; the caller or the device is a user of its session
 */
void rnbd_clt_dev_wake(struct rnbd_clt_dev *dev)
{
	/* pairs with rnbd_clt_park() */
	smp_mb();
	rtrs_clt_resume(dev->sess->clt);
}

/**
 * rnbd_clt_dev_set_gone() - end the wait for a device to be opened again
 * @dev: device that is closed or gone, of a session with a path
 * @state: RNBD_DEV_GONE, or RNBD_DEV_REVOKED if only a user may reopen the device
 *
 * Context: under the session's lock.
 */
void rnbd_clt_dev_set_gone(struct rnbd_clt_dev *dev, enum rnbd_clt_dev_state state)
{
	rnbd_clt_dev_set_state(dev, state);
	pr_err("%s: %s: I/O fails until %s\n", dev->sess->label, dev->path,
	       state == RNBD_DEV_REVOKED ? "remap_device opens it" :
					   "the server can open it");
	rnbd_clt_dev_wake(dev);
}

/* Find a device for which I/O has waited too long. @waits is set if I/O waits for another one. */
static struct rnbd_clt_dev *rnbd_clt_expired_dev(struct rnbd_clt_sess *sess, bool *waits)
{
	struct rnbd_clt_dev *dev;

	lockdep_assert_held(&sess->lock);
	*waits = false;
	/* Without a path, the transport limits the time that I/O waits. */
	if (!sess->up)
		return NULL;
	list_for_each_entry(dev, &sess->devs, list) {
		if (dev->state != RNBD_DEV_CLOSED)
			continue;
		if (jiffies - dev->reopen_at >= RNBD_CLT_MIN_REOPEN &&
		    !rtrs_clt_may_wait(sess->clt, dev->lost_at))
			return dev;
		*waits = true;
	}
	return NULL;
}

/**
 * rnbd_clt_expire_work() - end the wait for devices that have been closed for failover_timeout
 * @work: &rnbd_clt_sess.expire_work
 *
 * The work items that reopen devices can't do that while they wait for the server, whose disk may
 * hang when it is opened or, after its removal, closed. The lock is dropped after each device, as
 * logging takes time.
 */
void rnbd_clt_expire_work(struct work_struct *work)
{
	struct rnbd_clt_sess *sess = container_of(to_delayed_work(work),
						  struct rnbd_clt_sess, expire_work);
	struct rnbd_clt_dev *dev;
	bool waits;

	do {
		spin_lock_irq(&sess->lock);
		dev = rnbd_clt_expired_dev(sess, &waits);
		if (dev)
			rnbd_clt_dev_set_gone(dev, RNBD_DEV_GONE);
		else if (waits)
			queue_delayed_work(system_dfl_wq, &sess->expire_work, RNBD_CLT_EXPIRE);
		spin_unlock_irq(&sess->lock);
	} while (dev);
}

/* Queue the reopening of a device. The session's lock is held. */
static void rnbd_clt_dev_queue_reopen(struct rnbd_clt_dev *dev, unsigned long delay)
{
	struct rnbd_clt_sess *sess = dev->sess;

	lockdep_assert_held(&sess->lock);
	dev->reopen_at = jiffies;
	mod_delayed_work(sess->wq, &dev->reopen, delay);
	/* Not on @wq, where all running work items may wait for the server. */
	queue_delayed_work(system_dfl_wq, &sess->expire_work, RNBD_CLT_MIN_REOPEN);
}

/**
 * rnbd_clt_dev_set_claimed() - claim a device for unmapping
 * @dev: device
 * @force: claim the device even if its disk is in use
 *
 * Context: under the session's lock; without @force under the disk's open_mutex as well.
 * Return: 0 if the caller has to unmap the device, -EALREADY if another caller does, -EBUSY if the
 * disk is in use, or the device is still being mapped.
 */
int rnbd_clt_dev_set_claimed(struct rnbd_clt_dev *dev, bool force)
{
	lockdep_assert_held(&dev->sess->lock);
	if (!force)
		lockdep_assert_held(&dev->disk->open_mutex);
	if (dev->state == RNBD_DEV_UNMAPPED)
		return -EALREADY;
	if (!dev->mapped || (!force && disk_openers(dev->disk)))
		return -EBUSY;
	rnbd_clt_dev_set_state(dev, RNBD_DEV_UNMAPPED);
	return 0;
}

/**
 * rnbd_clt_dev_set_mapped() - begin to notify users of changes of a device's state
 * @dev: device whose disk has been added
 *
 * From then on the device may be unmapped.
 */
void rnbd_clt_dev_set_mapped(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;

	spin_lock_irq(&sess->lock);
	dev->mapped = true;
	queue_work(system_dfl_wq, &dev->uevent_work);
	spin_unlock_irq(&sess->lock);
}

/**
 * rnbd_clt_dev_revoke() - handle a device that the server has closed
 * @dev: device
 * @device_id: id that is not valid on the server
 *
 * As the session was not lost, the server's administrator has closed the device: by
 * force_close, or by a change of the rules. It is reopened only when a user writes to
 * remap_device.
 *
 * Context: any.
 */
void rnbd_clt_dev_revoke(struct rnbd_clt_dev *dev, u32 device_id)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned long flags;
	bool revoked;

	spin_lock_irqsave(&sess->lock, flags);
	revoked = dev->state == RNBD_DEV_OPEN && dev->device_id == device_id;
	if (revoked) {
		dev->opened = false;
		rnbd_clt_dev_set_state(dev, RNBD_DEV_REVOKED);
	}
	spin_unlock_irqrestore(&sess->lock, flags);

	if (revoked && __ratelimit(&sess->ratelimit))
		pr_err("%s: %s: the server has closed it; I/O fails until remap_device opens it\n",
		       sess->label, dev->path);
}

/**
 * rnbd_clt_dev_lost() - handle the removal of the server's disk
 * @dev: device
 * @device_id: id for which the server reported the removal
 *
 * I/O waits until the device has been closed and reopened. If the removal is reported again within
 * a second, reopening is delayed by a second.
 *
 * Context: any.
 */
void rnbd_clt_dev_lost(struct rnbd_clt_dev *dev, u32 device_id)
{
	struct rnbd_clt_sess *sess = dev->sess;
	unsigned long flags, last;
	bool lost;

	spin_lock_irqsave(&sess->lock, flags);
	lost = dev->state == RNBD_DEV_OPEN && dev->device_id == device_id;
	if (lost) {
		last = dev->lost_at;
		dev->lost_at = jiffies;
		WRITE_ONCE(dev->removals, dev->removals + 1);
		rnbd_clt_dev_set_state(dev, RNBD_DEV_CLOSED);
		rnbd_clt_dev_queue_reopen(dev, jiffies - last < HZ ? HZ : 0);
	}
	spin_unlock_irqrestore(&sess->lock, flags);

	if (lost && __ratelimit(&sess->ratelimit))
		pr_warn("%s: %s: the server's disk was removed; I/O waits until it is back\n",
			sess->label, dev->path);
}

/**
 * rnbd_clt_sess_down() - handle the loss of a session's last path
 * @sess: session
 *
 * Before the session has a path again, the server may close its devices and reuse their ids. So
 * no I/O with an old id may be sent later. When this returns, all requests that saw the old state
 * have been submitted. As there is no path, the transport calls rnbd_clt_retry_ok() before it
 * sends any of them.
 */
void rnbd_clt_sess_down(struct rnbd_clt_sess *sess)
{
	struct rnbd_clt_dev *dev;

	spin_lock_irq(&sess->lock);
	WRITE_ONCE(sess->generation, sess->generation + 1);
	sess->up = false;
	sess->introduced = false;
	list_for_each_entry(dev, &sess->devs, list) {
		dev->opened = false;
		if (dev->state == RNBD_DEV_OPEN)
			rnbd_clt_dev_set_state(dev, RNBD_DEV_CLOSED);
	}
	spin_unlock_irq(&sess->lock);
	synchronize_rcu();
}

/**
 * rnbd_clt_dev_wants_reopen() - check whether a device should be reopened
 * @dev: device
 *
 * Context: under the session's lock.
 * Return: true if the session has a path, and the device's state is CLOSED or GONE.
 */
bool rnbd_clt_dev_wants_reopen(const struct rnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->sess->lock);
	return dev->sess->up && (dev->state == RNBD_DEV_CLOSED || dev->state == RNBD_DEV_GONE);
}

/**
 * rnbd_clt_sess_up() - reopen the devices of a session that has a path again
 * @sess: session
 */
void rnbd_clt_sess_up(struct rnbd_clt_sess *sess)
{
	struct rnbd_clt_dev *dev;

	spin_lock_irq(&sess->lock);
	sess->up = true;
	list_for_each_entry(dev, &sess->devs, list) {
		if (rnbd_clt_dev_wants_reopen(dev))
			rnbd_clt_dev_queue_reopen(dev, 0);
	}
	spin_unlock_irq(&sess->lock);
}

/**
 * rnbd_clt_event_work() - query the sizes and limits of a session's devices
 * @work: &rnbd_clt_sess.event_work
 */
void rnbd_clt_event_work(struct work_struct *work)
{
	struct rnbd_clt_sess *sess = container_of(to_delayed_work(work),
						  struct rnbd_clt_sess, event_work);
	struct rnbd_clt_dev *dev;

	spin_lock_irq(&sess->lock);
	/* Includes devices that are being opened: the answer to that may predate the event. */
	list_for_each_entry(dev, &sess->devs, list) {
		if (dev->state != RNBD_DEV_UNMAPPED)
			queue_work(sess->news_wq, &dev->follow);
	}
	spin_unlock_irq(&sess->lock);
}

/**
 * rnbd_clt_srv_event() - handle an event of the server
 * @priv: the session; the size or the limits of its devices may have changed
 *
 * Context: any, any number of times.
 */
void rnbd_clt_srv_event(void *priv)
{
	struct rnbd_clt_sess *sess = priv;

	queue_delayed_work(sess->news_wq, &sess->event_work, RNBD_CLT_EVENT_DELAY);
}
