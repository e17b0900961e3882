// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory regions of a path: a pool from which requests take one for their data.
 *
 * Regions are costly: the device keeps a page list for each. So the pool may begin with
 * fewer than there are slots. When the last one is taken, a work item adds as many as
 * there are, and requests that find none are tried again later. Regions that are there
 * stay as long as the path, so that some requests go on when no memory is left for more.
 *
 * A region belongs to its request until its key is invalid, as far as the device knows, or
 * until the path's queue pairs are drained. Only then another request may have it, on
 * whatever connection.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "clt.h"

/* After a failure, more are tried to be had no sooner. */
#define RTRS_CLT_MRS_RETRY_MS	1000

static void rtrs_clt_mr_init(struct rtrs_clt_mr *mr)
{
	mr->reg_wr.wr.opcode = IB_WR_REG_MR;
	mr->reg_wr.mr = mr->mr;
	mr->inv_wr.opcode = IB_WR_LOCAL_INV;
	mr->inv_wr.wr_cqe = &mr->inv_cqe;
	mr->inv_wr.send_flags = IB_SEND_SIGNALED;
}

static void rtrs_clt_mr_free(struct rtrs_clt_mr *mr)
{
	ib_dereg_mr(mr->mr);
	kfree(mr);
}

/* Adds one region to the pool. */
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
	rtrs_clt_mr_init(mr);
	/* The low byte of a key changes with each use, the rest stays. */
	ret = xa_insert(&mrs->by_key, mr->mr->rkey >> 8, mr, GFP_KERNEL);
	if (ret) {
		rtrs_clt_mr_free(mr);
		return ret;
	}
	spin_lock_irq(&mrs->lock);
	list_add_tail(&mr->entry, &mrs->free);
	mrs->nr++;
	spin_unlock_irq(&mrs->lock);
	return 0;
}

static int rtrs_clt_mrs_add_up_to(struct rtrs_clt_path *path, u32 nr)
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
	/* The end of the path waits for this. */
	unsigned int noio = memalloc_noio_save();
	int ret;

	ret = rtrs_clt_mrs_add_up_to(path, min(2 * mrs->nr, path->neg.nr_slots));
	WRITE_ONCE(mrs->delay, ret ? msecs_to_jiffies(RTRS_CLT_MRS_RETRY_MS) : 0);
	memalloc_noio_restore(noio);
}

/**
 * rtrs_clt_mr_get() - take a memory region from the pool
 * @path: path with slots
 * @slot: slot of a request, without a region
 *
 * Context: any; while requests are submitted to the path.
 * Return: whether @slot has one now.
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
	/* Handlers of other connections may look, see rtrs_clt_find_key(). */
	WRITE_ONCE(mr->slot, slot);
	slot->mr = mr;
	return true;
}

/**
 * rtrs_clt_mr_put() - give a memory region back to the pool
 * @path: path of @slot
 * @slot: slot whose region has no valid key, or whose path's queue pairs are drained;
 *	nothing is done if it has no region
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
	WRITE_ONCE(mr->slot, NULL);
	spin_lock_irqsave(&mrs->lock, flags);
	/* The device may still have in its caches what it knows of this one. */
	list_add(&mr->entry, &mrs->free);
	spin_unlock_irqrestore(&mrs->lock, flags);
}

/**
 * rtrs_clt_mr_find() - find the memory region that a key belongs to
 * @path: path with slots
 * @rkey: key, from the device or the peer
 *
 * Return: the region, which may have another key now, and may be in the pool; or NULL.
 */
struct rtrs_clt_mr *rtrs_clt_mr_find(struct rtrs_clt_path *path, u32 rkey)
{
	return xa_load(&path->mrs.by_key, rkey >> 8);
}

/**
 * rtrs_clt_mrs_alloc() - fill a path's pool
 * @path: path that is being connected, and has negotiated
 * @nr: number of memory regions to begin with
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno; rtrs_clt_mrs_free() cleans up either way.
 */
int rtrs_clt_mrs_alloc(struct rtrs_clt_path *path, u32 nr)
{
	path->mrs.delay = 0;
	return rtrs_clt_mrs_add_up_to(path, nr);
}

/**
 * rtrs_clt_mrs_free() - free all memory regions of a path's pool, if there are any
 * @path: path that takes no requests, has none, and whose queue pairs are destroyed
 *
 * Context: process, may sleep.
 */
void rtrs_clt_mrs_free(struct rtrs_clt_path *path)
{
	struct rtrs_clt_mrs *mrs = &path->mrs;
	struct rtrs_clt_mr *mr;
	unsigned long key;

	cancel_delayed_work_sync(&mrs->grow);
	xa_for_each(&mrs->by_key, key, mr)
		rtrs_clt_mr_free(mr);
	xa_destroy(&mrs->by_key);
	INIT_LIST_HEAD(&mrs->free);
	mrs->nr = 0;
}

/**
 * rtrs_clt_mrs_init() - initialize a path's pool
 * @path: new path
 */
void rtrs_clt_mrs_init(struct rtrs_clt_path *path)
{
	spin_lock_init(&path->mrs.lock);
	INIT_LIST_HEAD(&path->mrs.free);
	xa_init(&path->mrs.by_key);
	INIT_DELAYED_WORK(&path->mrs.grow, rtrs_clt_mrs_grow);
}
