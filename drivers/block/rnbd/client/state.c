// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: states of a session and of its devices, and how users learn of them: the
 * attribute "state" can be polled, and uevents tell udev whether a disk can be used. When
 * the server sends an event, the size and the limits of each device are asked for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sysfs.h>

#include "rnbd-clt.h"

/* Events of the server within this time cause one request for sizes, not one each. */
#define RNBD_CLT_EVENT_DELAY	(HZ / 10)

/* A device may change faster than uevents are sent. Each change gets its own, in order. */
static bool rnbd_clt_next_uevent(struct rnbd_clt_dev *dev,
				 enum kobject_action *action)
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

static void rnbd_clt_uevent_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(work, struct rnbd_clt_dev,
						uevent_work);
	unsigned int noio = memalloc_noio_save();
	enum kobject_action action;

	while (rnbd_clt_next_uevent(dev, &action))
		kobject_uevent(&disk_to_dev(dev->disk)->kobj, action);
	memalloc_noio_restore(noio);
}

/**
 * rnbd_clt_dev_init_state() - prepare a new device for changes of its state
 * @dev: device
 */
void rnbd_clt_dev_init_state(struct rnbd_clt_dev *dev)
{
	INIT_WORK(&dev->uevent_work, rnbd_clt_uevent_work);
}

/**
 * rnbd_clt_dev_set_state() - change a device's state, and notify users
 * @dev: device
 * @state: new state
 *
 * Context: any, under the session's lock.
 */
void rnbd_clt_dev_set_state(struct rnbd_clt_dev *dev,
			    enum rnbd_clt_dev_state state)
{
	bool was_open = dev->state == RNBD_DEV_OPEN;
	bool open = state == RNBD_DEV_OPEN;

	lockdep_assert_held(&dev->sess->lock);
	if (state != RNBD_DEV_UNMAPPED && open != was_open)
		dev->flips++;
	/* pairs with rnbd_clt_rq_errno(), for device_id */
	smp_store_release(&dev->state, state);

	if (!dev->state_kn)
		return;
	sysfs_notify_dirent(dev->state_kn);
	if (state != RNBD_DEV_UNMAPPED)
		queue_work(dev->sess->news_wq, &dev->uevent_work);
}

/**
 * rnbd_clt_dev_set_claimed() - make a device unmapped, if nobody else has
 * @dev: device
 * @force: even if its disk is in use
 *
 * Context: under the session's lock; without @force under the disk's open_mutex as well.
 * Return: 0 if it is the caller's to unmap, -EALREADY if it is another one's, -EBUSY if the disk
 * is in use, or the device is still being mapped.
 */
int rnbd_clt_dev_set_claimed(struct rnbd_clt_dev *dev, bool force)
{
	lockdep_assert_held(&dev->sess->lock);
	if (!force)
		lockdep_assert_held(&dev->disk->open_mutex);
	if (dev->state == RNBD_DEV_UNMAPPED)
		return -EALREADY;
	if (!dev->state_kn || (!force && disk_openers(dev->disk)))
		return -EBUSY;
	rnbd_clt_dev_set_state(dev, RNBD_DEV_UNMAPPED);
	return 0;
}

/* Return: "state" of a disk, with a reference; NULL if there's none. */
static struct kernfs_node *rnbd_clt_find_state(struct kobject *disk)
{
	struct kernfs_node *dir, *kn;

	dir = sysfs_get_dirent(disk->sd, RNBD_CLT_DEV_GROUP);
	if (!dir)
		return NULL;
	kn = sysfs_get_dirent(dir, "state");
	sysfs_put(dir);
	return kn;
}

/**
 * rnbd_clt_dev_tell_state() - notify users of a device's state from now on
 * @dev: device whose disk has been added
 *
 * Afterwards anybody may unmap the device.
 *
 * Return: 0, or -ENOENT if it has no attributes.
 */
int rnbd_clt_dev_tell_state(struct rnbd_clt_dev *dev)
{
	struct rnbd_clt_sess *sess = dev->sess;
	struct kernfs_node *kn;

	kn = rnbd_clt_find_state(&disk_to_dev(dev->disk)->kobj);
	if (!kn)
		return -ENOENT;

	spin_lock_irq(&sess->lock);
	dev->state_kn = kn;
	queue_work(sess->news_wq, &dev->uevent_work);
	spin_unlock_irq(&sess->lock);
	return 0;
}

/**
 * rnbd_clt_dev_revoke() - the server says that it doesn't have a device open
 * @dev: device
 * @device_id: the id that the server didn't know
 *
 * As the session is the same, the server's administrator has closed it (force_close). So
 * it isn't opened again until a user writes to remap_device.
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
 * rnbd_clt_dev_lost() - the server's disk was removed
 * @dev: device
 * @device_id: the id with which the server says that
 *
 * I/O waits, and the device is closed and opened again. A disk that can be opened, but does nothing
 * else, is not opened more than once a second.
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
		rnbd_clt_dev_set_state(dev, RNBD_DEV_CLOSED);
		mod_delayed_work(sess->wq, &dev->reopen,
				 time_before(jiffies, last + HZ) ? HZ : 0);
	}
	spin_unlock_irqrestore(&sess->lock, flags);

	if (lost && __ratelimit(&sess->ratelimit))
		pr_warn("%s: %s: the server's disk was removed; I/O waits until it is back\n",
			sess->label, dev->path);
}

/**
 * rnbd_clt_sess_generation() - get the generation of a session
 * @sess: session
 *
 * Return: a number; what the server said holds as long as it stays the same.
 */
unsigned int rnbd_clt_sess_generation(struct rnbd_clt_sess *sess)
{
	unsigned int generation;

	spin_lock_irq(&sess->lock);
	generation = sess->generation;
	spin_unlock_irq(&sess->lock);
	return generation;
}

/**
 * rnbd_clt_sess_down() - a session has lost its last path
 * @sess: session
 *
 * The server has forgotten the devices by the time it sees a path again, and may
 * give their ids to others. So no I/O with an old id may follow. When this returns, all
 * requests that saw the old state have been submitted. As there is no path, the transport
 * calls rnbd_clt_retry_ok() before it sends any of them.
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
 * rnbd_clt_dev_wants_reopen() - is it time to open a device again?
 * @dev: device
 *
 * Context: under the session's lock.
 * Return: whether it is closed, and the session has a path.
 */
bool rnbd_clt_dev_wants_reopen(const struct rnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->sess->lock);
	return dev->sess->up && (dev->state == RNBD_DEV_CLOSED ||
				 dev->state == RNBD_DEV_GONE);
}

/**
 * rnbd_clt_sess_up() - a session has a path again
 * @sess: session
 */
void rnbd_clt_sess_up(struct rnbd_clt_sess *sess)
{
	struct rnbd_clt_dev *dev;

	spin_lock_irq(&sess->lock);
	sess->up = true;
	list_for_each_entry(dev, &sess->devs, list) {
		if (rnbd_clt_dev_wants_reopen(dev))
			mod_delayed_work(sess->wq, &dev->reopen, 0);
	}
	spin_unlock_irq(&sess->lock);
}

static void rnbd_clt_event_work(struct work_struct *work)
{
	struct rnbd_clt_sess *sess = container_of(to_delayed_work(work),
						  struct rnbd_clt_sess, event_work);
	struct rnbd_clt_dev *dev;

	spin_lock_irq(&sess->lock);
	/* One that is being opened is asked for after that: the answer may be older. */
	list_for_each_entry(dev, &sess->devs, list) {
		if (dev->state != RNBD_DEV_UNMAPPED)
			queue_work(sess->news_wq, &dev->follow);
	}
	spin_unlock_irq(&sess->lock);
}

/**
 * rnbd_clt_sess_init_event() - prepare a new session for events
 * @sess: session
 */
void rnbd_clt_sess_init_event(struct rnbd_clt_sess *sess)
{
	INIT_DELAYED_WORK(&sess->event_work, rnbd_clt_event_work);
}

/**
 * rnbd_clt_srv_event() - the size or the limits of a device may have changed
 * @priv: the session
 *
 * Context: any, any number of times.
 */
void rnbd_clt_srv_event(void *priv)
{
	struct rnbd_clt_sess *sess = priv;

	queue_delayed_work(sess->news_wq, &sess->event_work, RNBD_CLT_EVENT_DELAY);
}
