// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a path sets aside for each slot when it comes up: headers that are mapped
 * for DMA, a memory region, room for a scatter list. Nothing is allocated later.
 */
#include <linux/slab.h>

#include "clt.h"

static struct rtrs_clt_slot *rtrs_clt_slot_alloc(struct rtrs_clt_path *path)
{
	struct ib_device *dev = path->path.dev;
	struct rtrs_clt_slot *slot;
	int ret;

	slot = kzalloc_node(struct_size(slot, sge, path->max_sge), GFP_KERNEL,
			    ibdev_to_node(dev));
	if (!slot)
		return ERR_PTR(-ENOMEM);
	slot->mr = ib_alloc_mr(path->path.pd, IB_MR_TYPE_MEM_REG,
			       path->max_segments);
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

/**
 * rtrs_clt_slots_alloc() - allocate a path's slots
 * @path: a path that is being connected, its limits known
 *
 * Return: 0 or a negative errno; rtrs_clt_slots_free() undoes it either way.
 */
int rtrs_clt_slots_alloc(struct rtrs_clt_path *path)
{
	struct rtrs_clt_slot *slot;
	u32 i;

	path->slots = kvcalloc(path->nr_slots, sizeof(*path->slots), GFP_KERNEL);
	if (!path->slots)
		return -ENOMEM;
	for (i = 0; i < path->nr_slots; i++) {
		slot = rtrs_clt_slot_alloc(path);
		if (IS_ERR(slot))
			return PTR_ERR(slot);
		path->slots[i] = slot;
	}
	return 0;
}

/**
 * rtrs_clt_slots_free() - give requests back to their owner, and free the slots
 * @path: a path whose queue pairs, if any, are drained
 *
 * All keys are invalid before the first request is given back.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_slots_free(struct rtrs_clt_path *path)
{
	struct rtrs_clt_slot *slot;
	u32 i;

	if (!path->slots)
		return;
	for (i = 0; i < path->nr_slots && path->slots[i]; i++)
		ib_dereg_mr(path->slots[i]->mr);
	for (i = 0; i < path->nr_slots && path->slots[i]; i++) {
		slot = path->slots[i];
		rtrs_clt_slot_abort(path, slot);
		ib_dma_unmap_single(path->path.dev, slot->hdr_dma,
				    sizeof(slot->hdr), DMA_TO_DEVICE);
		kfree(slot);
	}
	xa_destroy(&path->mrs);
	kvfree(path->slots);
	path->slots = NULL;
}
