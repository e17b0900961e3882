// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: detects the loss of acknowledged writes in the volatile write cache of a disk that
 * was removed from the server. This reports the loss to users who rely on flushes. These flushes
 * fail:
 *
 * - flushes that were submitted before the removal;
 * - all flushes within RNBD_CLT_LOSS_TIME after the device was opened again: the block layer merges
 *   flushes, and queues them behind others, so these may have been requested before the removal;
 * - at least one flush that is submitted after the removal.
 *
 * A flush may be queued for longer, behind writes of the same CPU that the disk delays, and then
 * succeed.
 *
 * &rnbd_clt_dev.unflushed records whether there are unflushed writes. It is 0, RNBD_CLT_WRITTEN,
 * or the address of the newest flush in progress, which covers all writes acknowledged before the
 * flush was sent. A later acknowledgment replaces the address by RNBD_CLT_WRITTEN. A flush sets 0
 * only if its own address is still there. So no write counts as flushed before a flush covers it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/timekeeping.h>

#include "rnbd-clt.h"

/* Value of &rnbd_clt_dev.unflushed: unflushed writes, not covered by a flush in progress */
#define RNBD_CLT_WRITTEN	1UL

/* In seconds. The block layer usually queues a flush behind other requests for up to five. */
#define RNBD_CLT_LOSS_TIME	10

/* Check whether the data of a successful write may be in a volatile cache. */
static bool rnbd_clt_is_volatile(const struct rnbd_clt_dev *dev, struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	return (READ_ONCE(dev->limits.cache_policy) & RNBD_CACHE_WRITEBACK) &&
	       !(pdu->msg.rw & cpu_to_le32(RNBD_F_FUA)) &&
	       (req_op(rq) == REQ_OP_WRITE || req_op(rq) == REQ_OP_WRITE_ZEROES);
}

static void rnbd_clt_lose_cache(struct rnbd_clt_dev *dev)
{
	WRITE_ONCE(dev->cache_lost_at, ktime_get_seconds());
	WRITE_ONCE(dev->lost_removal, READ_ONCE(dev->removals));
	/* The flush that clears the bit sees the members above, as both operations are ordered. */
	if (!test_and_set_bit(0, &dev->cache_lost))
		pr_err("%s: %s: the removed disk had acknowledged writes in its cache that were not flushed: failing flushes. Check file systems\n",
		       dev->sess->label, dev->path);
}

/**
 * rnbd_clt_note_cached() - record that a write may be in the disk's write cache
 * @dev: device
 * @rq: successful request of the device's disk that has changed data
 *
 * The answer may arrive after the disk was removed, and even after the device was reopened.
 *
 * Context: any, before the request is completed.
 */
void rnbd_clt_note_cached(struct rnbd_clt_dev *dev, struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!rnbd_clt_is_volatile(dev, rq))
		return;
	/* rnbd_clt_check_cache() follows a grace period: readers that miss the removal are done. */
	rcu_read_lock();
	if (unlikely(pdu->removals != READ_ONCE(dev->removals)))
		rnbd_clt_lose_cache(dev);
	else if (READ_ONCE(dev->unflushed) != RNBD_CLT_WRITTEN)
		WRITE_ONCE(dev->unflushed, RNBD_CLT_WRITTEN);
	rcu_read_unlock();
}

/* Check whether a flush may cover writes that were lost. There was such a loss. */
static bool rnbd_clt_flush_fails(struct rnbd_clt_dev *dev, struct request *rq)
{
	const struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	/* Submitted before the loss. Checked first, so that such a flush doesn't clear the bit. */
	if ((int)(pdu->removals - READ_ONCE(dev->lost_removal)) < 0)
		return true;
	if (READ_ONCE(dev->cache_lost) && test_and_clear_bit(0, &dev->cache_lost))
		return true;
	return (u32)ktime_get_seconds() - READ_ONCE(dev->cache_lost_at) <= RNBD_CLT_LOSS_TIME;
}

/**
 * rnbd_clt_begin_flush() - check whether a flush may be sent
 * @dev: open device
 * @rq: flush of the device's disk; may have been sent before
 *
 * Context: any.
 * Return: 0, or -ENODATA if the flush may cover acknowledged writes that were lost with the cache
 * of a removed disk. dm-multipath would retry after -EIO.
 */
int rnbd_clt_begin_flush(struct rnbd_clt_dev *dev, struct request *rq)
{
	if (unlikely(READ_ONCE(dev->lost_removal)) && rnbd_clt_flush_fails(dev, rq))
		return -ENODATA;
	if (READ_ONCE(dev->unflushed))
		WRITE_ONCE(dev->unflushed, (unsigned long)rq);
	return 0;
}

/**
 * rnbd_clt_end_flush() - account for the end of a flush
 * @dev: device
 * @rq: flush of the device's disk
 * @err: 0, or a negative errno if the flush has failed or will be sent again
 *
 * Context: any, before the request is completed.
 */
void rnbd_clt_end_flush(struct rnbd_clt_dev *dev, const struct request *rq, int err)
{
	cmpxchg(&dev->unflushed, (unsigned long)rq, err ? RNBD_CLT_WRITTEN : 0);
}

/**
 * rnbd_clt_check_cache() - detect the loss of writes in a removed disk's cache
 * @dev: device that is not open
 *
 * Context: under the device's open_lock, after synchronize_rcu().
 */
void rnbd_clt_check_cache(struct rnbd_clt_dev *dev)
{
	unsigned int removals = READ_ONCE(dev->removals);

	lockdep_assert_held(&dev->open_lock);
	if (dev->removals_seen == removals)
		return;
	dev->removals_seen = removals;
	if (xchg(&dev->unflushed, 0))
		rnbd_clt_lose_cache(dev);
}

/**
 * rnbd_clt_restart_loss_time() - prolong the time in which flushes fail after a loss
 * @dev: device that is about to become open; requests may have waited for long
 *
 * Does nothing unless there was a loss since the last flush.
 *
 * Context: under the session's lock, before the state changes.
 */
void rnbd_clt_restart_loss_time(struct rnbd_clt_dev *dev)
{
	if (READ_ONCE(dev->cache_lost))
		WRITE_ONCE(dev->cache_lost_at, ktime_get_seconds());
}
