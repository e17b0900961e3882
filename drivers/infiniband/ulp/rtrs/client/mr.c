// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory regions of a path: a pool that is shared by the path's requests.
 *
 * Memory regions are expensive: the device allocates a page list for each. So the pool may start
 * with fewer memory regions than there are slots. When its last free one is used, a work item
 * doubles the pool. Requests that find the pool empty are retried later. Memory regions are freed
 * only with the path, so that some requests can proceed if there is no memory for more.
 *
 * A request owns its memory region until the device has reported the key as invalid, or the path's
 * queue pairs are drained. Only then another request may use the memory region, on any connection.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "clt.h"

/* After a failed allocation, the pool grows no earlier than this. */
#define RTRS_CLT_MRS_RETRY_MS	1000

/* Adds one memory region to the pool. */
static int rtrs_clt_mrs_add(struct rtrs_clt_path *path)
{
	struct rtrs_clt_mrs *mrs = &path->mrs;
	struct rtrs_clt_mr *mr;
	int ret;

	mr = kzalloc_node(sizeof(*mr), GFP_KERNEL, ibdev_to_node(path->path.dev));
	if (!mr)
		return -ENOMEM;
	mr->mr = ib_alloc_mr(path->path.pd, IB_MR_TYPE_MEM_REG,
			     path->neg.max_segments);
	if (IS_ERR(mr->mr)) {
		ret = PTR_ERR(mr->mr);
		kfree(mr);
		return ret;
	}
	mr->reg_wr.wr.opcode = IB_WR_REG_MR;
	mr->reg_wr.mr = mr->mr;
	mr->inv_wr.opcode = IB_WR_LOCAL_INV;
	mr->inv_wr.wr_cqe = &mr->inv_cqe;
	mr->inv_wr.send_flags = IB_SEND_SIGNALED;
	spin_lock_irq(&mrs->lock);
	list_add_tail(&mr->entry, &mrs->free);
	mrs->nr++;
	spin_unlock_irq(&mrs->lock);
	return 0;
}

/**
 * rtrs_clt_mrs_alloc() - allocate memory regions of a path
 * @path: path that is being connected, after negotiation, or path whose pool grows
 * @nr: number of memory regions that the path shall have
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno; rtrs_clt_mrs_free() cleans up in both cases.
 */
int rtrs_clt_mrs_alloc(struct rtrs_clt_path *path, u32 nr)
{
	int ret = 0;

	while (!ret && path->mrs.nr < nr)
		ret = rtrs_clt_mrs_add(path);
	return ret;
}

static void rtrs_clt_mrs_grow(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(to_delayed_work(work),
						  struct rtrs_clt_path, mrs.grow);
	struct rtrs_clt_mrs *mrs = &path->mrs;
	/* Disconnecting the path waits for this work item. */
	unsigned int noio = memalloc_noio_save();
	int ret;

	ret = rtrs_clt_mrs_alloc(path, min(2 * mrs->nr, path->neg.nr_slots));
	WRITE_ONCE(mrs->delay, ret ? msecs_to_jiffies(RTRS_CLT_MRS_RETRY_MS) : 0);
	memalloc_noio_restore(noio);
}

/**
 * rtrs_clt_mr_get() - allocate a memory region from the pool
 * @path: path with slots
 * @slot: slot of a request, without a memory region
 *
 * Context: any; while requests are submitted to the path.
 * Return: true if @slot has a memory region now.
 */
bool rtrs_clt_mr_get(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_mrs *mrs = &path->mrs;
	struct rtrs_clt_mr *mr;
	unsigned long flags;
	bool grow;

	spin_lock_irqsave(&mrs->lock, flags);
	mr = list_first_entry_or_null(&mrs->free, struct rtrs_clt_mr, entry);
	if (likely(mr))
		list_del(&mr->entry);
	grow = list_empty(&mrs->free) && mrs->nr < path->neg.nr_slots;
	spin_unlock_irqrestore(&mrs->lock, flags);
	if (unlikely(grow))
		queue_delayed_work(rtrs_clt_connect_wq, &mrs->grow,
				   READ_ONCE(mrs->delay));
	if (unlikely(!mr))
		return false;
	mr->slot = slot;
	slot->mr = mr;
	return true;
}

/**
 * rtrs_clt_mr_put() - return a memory region to the pool
 * @path: path of @slot
 * @slot: slot whose memory region has no valid key, or whose path's queue pairs are drained;
 *	nothing is done if the slot has no memory region
 *
 * Context: any.
 */
void rtrs_clt_mr_put(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_mrs *mrs = &path->mrs;
	struct rtrs_clt_mr *mr = slot->mr;
	unsigned long flags;

	if (!mr)
		return;
	slot->mr = NULL;
	mr->slot = NULL;
	spin_lock_irqsave(&mrs->lock, flags);
	/* LIFO order, as the device may still have the memory region in its caches */
	list_add(&mr->entry, &mrs->free);
	spin_unlock_irqrestore(&mrs->lock, flags);
}

/**
 * rtrs_clt_mrs_free() - free all memory regions of a path
 * @path: path without requests, whose queue pairs are destroyed; it may have no memory regions
 *
 * Context: process, may sleep.
 */
void rtrs_clt_mrs_free(struct rtrs_clt_path *path)
{
	struct rtrs_clt_mrs *mrs = &path->mrs;
	struct rtrs_clt_mr *mr, *next;

	cancel_delayed_work_sync(&mrs->grow);
	list_for_each_entry_safe(mr, next, &mrs->free, entry) {
		list_del(&mr->entry);
		ib_dereg_mr(mr->mr);
		kfree(mr);
		mrs->nr--;
	}
	WARN_ON_ONCE(mrs->nr);
	mrs->delay = 0;
}

/**
 * rtrs_clt_mrs_init() - initialize a path's pool
 * @path: new path
 */
void rtrs_clt_mrs_init(struct rtrs_clt_path *path)
{
	spin_lock_init(&path->mrs.lock);
	INIT_LIST_HEAD(&path->mrs.free);
	INIT_DELAYED_WORK(&path->mrs.grow, rtrs_clt_mrs_grow);
}
