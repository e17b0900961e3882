// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: reopening of devices, after a loss of the session, which may have been closed on
 * the server, or after the removal of the server's disk. Each device is reopened by its own work
 * item.
 *
 * If the session is lost again meanwhile, I/O keeps waiting. If memory is short, if a booting
 * server does not have the device yet, or if a removed disk has not completed its last I/O,
 * requests wait until the session's failover_timeout has passed. If the server refuses for another
 * reason, or for longer, the device is gone: I/O fails, and reopening is retried every few seconds.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rnbd-clt.h"

/* Delay between attempts to reopen a device */
#define RNBD_CLT_RETRY		(5 * HZ)
/* The same while I/O waits for the device */
#define RNBD_CLT_RETRY_SOON	HZ

/**
 * rnbd_clt_refused() - check whether I/O has to fail after a failure to reopen a device
 * @err: negative errno
 * @may_wait: I/O may still wait for a server that is booting
 *
 * Return: true if I/O has to fail; false if a retry may succeed soon.
 */
bool rnbd_clt_refused(int err, bool may_wait)
{
	switch (err) {
	/* From the client: the session was lost */
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

/* Fail the device's I/O from now on, unless the session has been lost since @generation. */
static void rnbd_clt_dev_gone(struct rnbd_clt_dev *dev, unsigned int generation,
			      enum rnbd_clt_dev_state state)
{
	struct rnbd_clt_sess *sess = dev->sess;
	bool gone;

	spin_lock_irq(&sess->lock);
	/* Without a path, the transport limits the time that I/O waits. */
	gone = sess->up && sess->generation == generation &&
	       (dev->state == RNBD_DEV_CLOSED || dev->state == RNBD_DEV_GONE) &&
	       dev->state != state;
	if (gone)
		rnbd_clt_dev_set_gone(dev, state);
	spin_unlock_irq(&sess->lock);
}

static int rnbd_clt_dev_try_open(struct rnbd_clt_dev *dev)
{
	unsigned int generation = READ_ONCE(dev->sess->generation);
	struct rnbd_msg_open_rsp *rsp;
	int err;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	/* Wait for submitters that saw the device open: they must not use its new id. */
	synchronize_rcu();
	rnbd_clt_check_cache(dev);
	/* A removed disk keeps its name until it is closed. */
	rnbd_clt_dev_close(dev);
	err = rnbd_clt_dev_open(dev, rsp, generation);
	dev->open_err = err;
	if (!err) {
		pr_info("%s: %s is open again\n", dev->sess->label, dev->path);
		rnbd_clt_dev_wake(dev);
		WRITE_ONCE(dev->nsectors, le64_to_cpu(rsp->nsectors));
		/* After the wake-up, as notified users may do I/O. */
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
 * Reopen a device; a revoked one only at a user's request. It then becomes a new mapping, which may
 * write, unless its access mode is handover.
 *
 * Return: 0 if the device is open now, whoever opened it, or a negative errno.
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
			rnbd_clt_set_generation(dev, 0);
		fallthrough;
	case RNBD_DEV_CLOSED:
	case RNBD_DEV_GONE:
		/* Without a disk, the mapping is about to fail. */
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

/**
 * rnbd_clt_reopen_work() - reopen a device, and retry later if that fails
 * @work: &rnbd_clt_dev.reopen
 */
void rnbd_clt_reopen_work(struct work_struct *work)
{
	struct rnbd_clt_dev *dev = container_of(to_delayed_work(work), struct rnbd_clt_dev, reopen);

	if (!rnbd_clt_dev_reopen(dev, false))
		return;
	spin_lock_irq(&dev->sess->lock);
	/* Has no effect if rnbd_clt_sess_up() has queued the work already. */
	if (rnbd_clt_dev_wants_reopen(dev))
		queue_delayed_work(dev->sess->wq, &dev->reopen,
				   dev->state == RNBD_DEV_CLOSED ?
				   RNBD_CLT_RETRY_SOON : RNBD_CLT_RETRY);
	spin_unlock_irq(&dev->sess->lock);
}

/**
 * rnbd_clt_dev_remap() - reopen a device at a user's request
 * @dev: device; cannot be freed while the caller uses one of its attributes
 *
 * Return: 0, -EALREADY if the device is open, -ENOTCONN if there is no path to the server, or
 * another negative errno.
 */
int rnbd_clt_dev_remap(struct rnbd_clt_dev *dev)
{
	if (READ_ONCE(dev->state) == RNBD_DEV_OPEN)
		return -EALREADY;
	return rnbd_clt_dev_reopen(dev, true);
}
