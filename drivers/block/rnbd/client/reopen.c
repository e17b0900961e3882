// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: devices are opened again. When a session was lost and has a path again, the
 * server may have created it again, without devices; or the server's disk was removed. Each
 * device is opened again by its own work item. If that can't be done right now, as the session
 * has been lost once more, I/O goes on waiting. Memory may be short, and a server that is still
 * booting may not have the device yet: I/O waits for the rest of the session's failover_timeout.
 * If the server refuses it for another reason, or for longer, the device is gone: I/O fails, and
 * every few seconds it is tried again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rnbd-clt.h"

/* Delay before the server is asked again to open a device that it has refused. */
#define RNBD_CLT_RETRY		(5 * HZ)
/* Delay if I/O waits for the device meanwhile. */
#define RNBD_CLT_RETRY_SOON	HZ

/**
 * rnbd_clt_refused() - does an errno mean that the server doesn't open a device?
 * @err: negative errno
 * @may_wait: I/O may go on waiting for a server that is booting
 *
 * Return: false if the answer may well be another one in a moment.
 */
bool rnbd_clt_refused(int err, bool may_wait)
{
	switch (err) {
	/* Our own, more likely than the server's: its id is being closed, or the session lost */
	case -EAGAIN:
	case -ECONNABORTED:
		return false;
	case -EHOSTUNREACH:
	case -ENOTCONN:
	case -ENOMEM:
	/*
	 * The server's disk is not ready: it does not exist yet, has no driver or no medium, is
	 * being checked, or is read-only until an array or a mirror is complete.
	 */
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
	case -EBUSY:
	case -EROFS:
	case -ENOMEDIUM:
	case -EMEDIUMTYPE:
		return !may_wait;
	default:
		return true;
	}
}

/**
 * rnbd_clt_dev_wake() - let waiting I/O see that a device's state has changed
 * @dev: device, of whose session the caller, or the device, is a user
 */
void rnbd_clt_dev_wake(struct rnbd_clt_dev *dev)
{
	/* pairs with rnbd_clt_park() */
	smp_mb();
	rtrs_clt_resume(dev->sess->clt);
}

/* I/O waits no longer. From @state REVOKED on only a user opens the device again. */
static void rnbd_clt_dev_gone(struct rnbd_clt_dev *dev, unsigned int generation,
			      enum rnbd_clt_dev_state state)
{
	struct rnbd_clt_sess *sess = dev->sess;
	bool gone;

	spin_lock_irq(&sess->lock);
	/* While there is no path, the transport decides for how long I/O waits. */
	gone = sess->up && sess->generation == generation &&
	       (dev->state == RNBD_DEV_CLOSED || dev->state == RNBD_DEV_GONE) &&
	       dev->state != state;
	if (gone)
		rnbd_clt_dev_set_state(dev, state);
	spin_unlock_irq(&sess->lock);
	if (!gone)
		return;
	pr_err("%s: %s: I/O fails until %s\n", sess->label, dev->path,
	       state == RNBD_DEV_REVOKED ? "remap_device opens it" :
					   "the server can open it");
	rnbd_clt_dev_wake(dev);
}

static int rnbd_clt_dev_try_open(struct rnbd_clt_dev *dev)
{
	unsigned int generation = rnbd_clt_sess_generation(dev->sess);
	struct rnbd_msg_open_rsp *rsp;
	int err;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	/* Submitters that saw the device open before must not use its new id. */
	synchronize_rcu();
	/* A disk that was removed, and keeps its name until it is closed */
	rnbd_clt_dev_close(dev);
	err = rnbd_clt_dev_open(dev, rsp, generation);
	dev->open_err = err;
	if (!err) {
		pr_info("%s: %s is open again\n", dev->sess->label, dev->path);
		rnbd_clt_dev_wake(dev);
		WRITE_ONCE(dev->nsectors, le64_to_cpu(rsp->nsectors));
		/* Only now, as those notified may do I/O. */
		rnbd_clt_dev_set_size(dev, le64_to_cpu(rsp->nsectors));
	} else if (err == -ESTALE || err == -EBADE) {
		rnbd_clt_dev_gone(dev, generation, RNBD_DEV_REVOKED);
	} else if (rnbd_clt_refused(err, rtrs_clt_may_wait(dev->sess->clt, dev->lost_at))) {
		rnbd_clt_dev_gone(dev, generation, RNBD_DEV_GONE);
	}
	kfree(rsp);
	return err;
}

/*
 * Only a user opens a device again that the server has closed by force, or that a newer mapping
 * has written to: as a new mapping, so that it may write.
 *
 * Return: 0 if the device is open now, whoever did it, or a negative errno.
 */
static int rnbd_clt_dev_reopen(struct rnbd_clt_dev *dev, bool by_user)
{
	unsigned int noio = memalloc_noio_save();
	int err = -ENODEV;

	mutex_lock(&dev->open_lock);
	switch (READ_ONCE(dev->state)) {
	case RNBD_DEV_REVOKED:
		if (!by_user)
			break;
		if (dev->access_mode != RNBD_ACCESS_HANDOVER)
			rnbd_clt_new_generation(dev);
		fallthrough;
	case RNBD_DEV_CLOSED:
	case RNBD_DEV_GONE:
		/* There is no disk if mapping the device is about to fail. */
		if (dev->disk)
			err = rnbd_clt_dev_try_open(dev);
		break;
	case RNBD_DEV_OPEN:
		err = 0;
		break;
	default:
		break;
	}
	mutex_unlock(&dev->open_lock);
	memalloc_noio_restore(noio);
	return err;
}

static void rnbd_clt_reopen_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(to_delayed_work(work),
						struct rnbd_clt_dev, reopen);

	if (!rnbd_clt_dev_reopen(dev, false))
		return;
	spin_lock_irq(&dev->sess->lock);
	/* Has no effect if a new path has queued it at once. */
	if (rnbd_clt_dev_wants_reopen(dev))
		queue_delayed_work(dev->sess->wq, &dev->reopen,
				   dev->state == RNBD_DEV_CLOSED ?
				   RNBD_CLT_RETRY_SOON : RNBD_CLT_RETRY);
	spin_unlock_irq(&dev->sess->lock);
}

/**
 * rnbd_clt_dev_init_reopen() - prepare a new device for being opened again
 * @dev: device
 */
void rnbd_clt_dev_init_reopen(struct rnbd_clt_dev *dev)
{
	INIT_DELAYED_WORK(&dev->reopen, rnbd_clt_reopen_work);
}

/**
 * rnbd_clt_dev_remap() - open a device again on the server, because a user says so
 * @dev: device, kept by the caller's use of its attributes
 *
 * Return: 0, -EALREADY if it is open, -ENOTCONN if there is no path to the server, or
 * another negative errno.
 */
int rnbd_clt_dev_remap(struct rnbd_clt_dev *dev)
{
	if (READ_ONCE(dev->state) == RNBD_DEV_OPEN)
		return -EALREADY;
	return rnbd_clt_dev_reopen(dev, true);
}
