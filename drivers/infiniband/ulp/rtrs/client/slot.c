// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots of a path: for each request, memory for headers and small data, and a list of SGEs. All of
 * them, and the first memory regions, are allocated when the path is connected.
 */
#include <linux/slab.h>

#include "clt.h"

/* The number of buffers in a memory region is a multiple of this, see rtrs_region_alloc(). */
#define RTRS_CLT_GROUP		8

/* Allocates buffers of @size bytes, with memory regions over them. */
static int rtrs_clt_bufs_alloc_mrs(struct rtrs_clt_path *path, u32 size)
{
	u32 nr = path->neg.nr_slots;
	u32 per_mr = min_t(u32, rtrs_region_max_per_mr(&path->path, size),
			   roundup(nr, RTRS_CLT_GROUP));

	if (!per_mr)
		return -EOPNOTSUPP;
	return rtrs_region_alloc(&path->bufs, &path->path, nr, size, per_mr);
}

/* Allocates the slots' buffers. rtrs_clt_info_register() registers their memory regions. */
static int rtrs_clt_bufs_alloc(struct rtrs_clt_path *path)
{
	struct rtrs_region *bufs = &path->bufs;
	u32 size = path->neg.copy_size + rtrs_slot_hdr_room(path->neg.copy_size);
	int ret;
	u32 i;

	ret = rtrs_clt_bufs_alloc_mrs(path, size);
	/*
	 * Groups of buffers may be too large for fragmented memory, or for a memory region. Buffers
	 * of whole pages need no groups, but use more memory.
	 */
	if (ret && !IS_ALIGNED(size, SZ_4K)) {
		rtrs_region_free(bufs);
		ret = rtrs_clt_bufs_alloc_mrs(path, ALIGN(size, SZ_4K));
	}
	for (i = 0; i < bufs->nr_mrs; i++)
		ib_update_fast_reg_key(bufs->mrs[i], ib_inc_rkey(bufs->mrs[i]->rkey));
	return ret;
}

static struct rtrs_clt_slot *rtrs_clt_slot_alloc(struct rtrs_clt_path *path, u32 i)
{
	struct rtrs_clt_slot *slot;

	slot = kzalloc_node(struct_size(slot, sge, path->neg.max_sge), GFP_KERNEL,
			    ibdev_to_node(path->path.dev));
	if (!slot)
		return NULL;
	slot->buf = rtrs_region_addr(&path->bufs, i);
	slot->buf_dma = rtrs_region_dma(&path->bufs, i);
	slot->buf_iova = rtrs_region_iova(&path->bufs, i);
	slot->buf_rkey = rtrs_region_mr(&path->bufs, i)->rkey;
	rtrs_clt_slot_init(path, slot);
	return slot;
}

static void rtrs_clt_slots_drop(struct rtrs_clt_path *path,
				struct rtrs_clt_slot **slots)
{
	u32 i;

	rtrs_clt_mrs_free(path);
	for (i = 0; slots && i < path->neg.nr_slots && slots[i]; i++)
		kfree(slots[i]);
	kvfree(slots);
	rtrs_region_free(&path->bufs);
}

/**
 * rtrs_clt_slots_alloc() - allocate a path's slots
 * @path: path that is being connected, after negotiation
 *
 * Completion handlers may already run. They see either all slots or none.
 *
 * Return: 0 or a negative errno; rtrs_clt_slots_free() undoes success.
 */
int rtrs_clt_slots_alloc(struct rtrs_clt_path *path)
{
	u32 nr_mrs = min_t(u32, path->neg.nr_slots, RTRS_CLT_MIN_MRS);
	struct rtrs_clt_slot **slots;
	int ret;
	u32 i;

	slots = kvcalloc(path->neg.nr_slots, sizeof(*slots), GFP_KERNEL);
	ret = slots ? 0 : -ENOMEM;
	if (!ret)
		ret = rtrs_clt_bufs_alloc(path);
	for (i = 0; !ret && i < path->neg.nr_slots; i++) {
		slots[i] = rtrs_clt_slot_alloc(path, i);
		ret = slots[i] ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = rtrs_clt_mrs_alloc(path, nr_mrs);
	if (ret) {
		rtrs_clt_slots_drop(path, slots);
		return ret;
	}
	/* Pairs with rtrs_clt_find_slot(). */
	smp_store_release(&path->slots, slots);
	return 0;
}

/**
 * rtrs_clt_slots_reclaim() - remove the requests of a dead path from its slots
 * @path: path whose queue pairs, if any, are drained
 * @ios: list to which the requests are added
 *
 * Memory regions are still registered, as deregistering them can take long. But their keys can't be
 * used: each key is valid only in the path's own protection domain, and all queue pairs of this
 * domain are in the error state, in which they neither receive nor send. So the device can't access
 * a request's pages any more, and the request may be sent over another path.
 *
 * Context: process.
 */
void rtrs_clt_slots_reclaim(struct rtrs_clt_path *path, struct list_head *ios)
{
	struct rtrs_clt_io *io;
	u32 i;

	for (i = 0; path->slots && i < path->neg.nr_slots; i++) {
		io = rtrs_clt_slot_reclaim(path, path->slots[i]);
		if (io)
			list_add_tail(&io->priv.entry, ios);
	}
}

/**
 * rtrs_clt_slots_free() - free the slots, if there are any
 * @path: path after rtrs_clt_slots_reclaim(), whose queue pairs are destroyed
 *
 * Context: process, may sleep.
 */
void rtrs_clt_slots_free(struct rtrs_clt_path *path)
{
	struct rtrs_clt_slot **slots = path->slots;

	path->slots = NULL;
	if (slots)
		rtrs_clt_slots_drop(path, slots);
}
