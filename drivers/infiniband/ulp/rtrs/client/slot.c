// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots of a path: headers that are mapped for DMA, a memory region and a list of SGEs
 * for each request. All of it is allocated when the path is connected.
 */
#include <linux/slab.h>

#include "clt.h"

static struct rtrs_clt_slot *rtrs_clt_slot_alloc(struct rtrs_clt_path *path)
{
	struct ib_device *dev = path->path.dev;
	struct rtrs_clt_slot *slot;
	int ret;

	slot = kzalloc_node(struct_size(slot, sge, path->neg.max_sge), GFP_KERNEL,
			    ibdev_to_node(dev));
	if (!slot)
		return ERR_PTR(-ENOMEM);
	slot->mr = ib_alloc_mr(path->path.pd, IB_MR_TYPE_MEM_REG,
			       path->neg.max_segments);
	if (IS_ERR(slot->mr)) {
		ret = PTR_ERR(slot->mr);
		goto free_slot;
	}
	slot->hdr_dma = ib_dma_map_single(dev, slot->hdr, sizeof(slot->hdr),
					  DMA_TO_DEVICE);
	if (ib_dma_mapping_error(dev, slot->hdr_dma)) {
		ret = -ENOMEM;
		goto free_mr;
	}
	/* The low byte of a key changes with each use, the rest stays. */
	ret = xa_insert(&path->mrs, slot->mr->rkey >> 8, slot, GFP_KERNEL);
	if (ret)
		goto unmap_hdr;
	rtrs_clt_slot_init(path, slot);
	return slot;

unmap_hdr:
	ib_dma_unmap_single(dev, slot->hdr_dma, sizeof(slot->hdr),
			    DMA_TO_DEVICE);
free_mr:
	ib_dereg_mr(slot->mr);
free_slot:
	kfree(slot);
	return ERR_PTR(ret);
}

static void rtrs_clt_slot_free(struct rtrs_clt_path *path,
			       struct rtrs_clt_slot *slot)
{
	ib_dereg_mr(slot->mr);
	ib_dma_unmap_single(path->path.dev, slot->hdr_dma, sizeof(slot->hdr),
			    DMA_TO_DEVICE);
	kfree(slot);
}

static void rtrs_clt_slots_drop(struct rtrs_clt_path *path,
				struct rtrs_clt_slot **slots)
{
	u32 i;

	for (i = 0; i < path->neg.nr_slots && slots[i]; i++)
		rtrs_clt_slot_free(path, slots[i]);
	xa_destroy(&path->mrs);
	kvfree(slots);
}

/**
 * rtrs_clt_slots_alloc() - allocate a path's slots
 * @path: path that is being connected, and has negotiated
 *
 * Handlers that run already find all slots or none.
 *
 * Return: 0 or a negative errno; rtrs_clt_slots_free() undoes success.
 */
int rtrs_clt_slots_alloc(struct rtrs_clt_path *path)
{
	struct rtrs_clt_slot **slots;
	int ret;
	u32 i;

	slots = kvcalloc(path->neg.nr_slots, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < path->neg.nr_slots; i++) {
		slots[i] = rtrs_clt_slot_alloc(path);
		if (IS_ERR(slots[i])) {
			ret = PTR_ERR(slots[i]);
			slots[i] = NULL;
			rtrs_clt_slots_drop(path, slots);
			return ret;
		}
	}
	/* Pairs with rtrs_clt_find_slot(). */
	smp_store_release(&path->slots, slots);
	return 0;
}

/**
 * rtrs_clt_slots_reclaim() - take the requests of a dead path out of its slots
 * @path: path whose queue pairs, if any, are drained
 * @ios: list that the requests are added to
 *
 * Memory regions are still registered, as deregistering them can take long. But their keys
 * can't be used: each is valid only in the path's own protection domain, all of whose queue
 * pairs are in the error state, and so neither receive nor send. Hence the device can't
 * access the pages of a request any more, and the request may go elsewhere.
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
