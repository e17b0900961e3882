// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: updates the size and the limits of disks from the server, at a user's request or
 * after an event of the server. Disks only grow this way, since shrinking loses data; a user may
 * set a smaller size.
 *
 * An event doesn't specify which device has changed. Each device of the session is queried by a
 * work item of its own, so that a device that hangs on the server delays no other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rnbd-clt.h"

static int rnbd_clt_dev_grow(struct rnbd_clt_dev *dev, u64 nsectors)
{
	if (nsectors < get_capacity(dev->disk)) {
		if (__ratelimit(&dev->sess->ratelimit))
			pr_err("%s: %s has %llu sectors on the server, less than rnbd%d: not shrunk\n",
			       dev->sess->label, dev->path, nsectors, dev->index);
		return -EFBIG;
	}
	rnbd_clt_dev_set_size(dev, nsectors);
	return 0;
}

/* Use an answer. Unless @always, a size that the server has reported before is ignored. */
static int rnbd_clt_dev_use_rsp(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp,
				bool always)
{
	u64 nsectors = le64_to_cpu(rsp->nsectors);

	if (rsp->flags & RNBD_DISK_GONE) {
		rnbd_clt_dev_lost(dev, le32_to_cpu(rsp->device_id));
		return -ENOTCONN;
	}
	rnbd_clt_dev_set_limits(dev, rsp);
	if (!always && nsectors == dev->nsectors)
		return 0;
	WRITE_ONCE(dev->nsectors, nsectors);
	return rnbd_clt_dev_grow(dev, nsectors);
}

/**
 * rnbd_clt_dev_follow() - grow a disk to the size on the server, and update its limits
 * @dev: device; cannot be freed meanwhile
 * @always: grow the disk even if the server has reported this size before
 *
 * Return: 0, -ENOTCONN if the device isn't open, -EFBIG if the size on the server is smaller, or
 * another negative errno.
 */
int rnbd_clt_dev_follow(struct rnbd_clt_dev *dev, bool always)
{
	/* I/O may wait for the reopening of the device, and so for open_lock. */
	unsigned int noio = memalloc_noio_save();
	struct rnbd_msg_open_rsp *rsp;
	int err = -ENOMEM;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		goto restore;
	mutex_lock(&dev->open_lock);
	err = rnbd_clt_dev_ask(dev, rsp);
	if (!err)
		err = rnbd_clt_dev_use_rsp(dev, rsp, always);
	mutex_unlock(&dev->open_lock);
	kfree(rsp);
restore:
	memalloc_noio_restore(noio);
	return err;
}

/**
 * rnbd_clt_follow_work() - update the size and the limits of a disk after an event
 * @work: &rnbd_clt_dev.follow
 *
 * A failed query is not retried: the next event repeats it, as does the loss of a path.
 */
void rnbd_clt_follow_work(struct work_struct *work)
{
	rnbd_clt_dev_follow(container_of(work, struct rnbd_clt_dev, follow), false);
}
