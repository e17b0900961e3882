// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots of a path: memory for headers and a list of SGEs for each request. All of it is
 * allocated when the path is connected, and so are memory regions.
 */
#include <linux/slab.h>

#include "clt.h"

static struct rtrs_clt_slot *rtrs_clt_slot_alloc(struct rtrs_clt_path *path, u32 i)
{
	struct rtrs_clt_slot *slot;

	slot = kzalloc_node(struct_size(slot, sge, path->neg.max_sge), GFP_KERNEL,
			    ibdev_to_node(path->path.dev));
	if (!slot)
		return NULL;
	slot->buf = rtrs_region_addr(&path->bufs, i);
	slot->buf_dma = rtrs_region_dma(&path->bufs, i);
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
	ret = slots ? 0 : -ENOMEM;
	if (!ret)
		ret = rtrs_region_alloc(&path->bufs, &path->path, path->neg.nr_slots,
					RTRS_SLOT_HDR_ROOM, 0);
	for (i = 0; !ret && i < path->neg.nr_slots; i++) {
		slots[i] = rtrs_clt_slot_alloc(path, i);
		ret = slots[i] ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = rtrs_clt_mrs_alloc(path, path->neg.nr_slots);
	if (ret) {
		rtrs_clt_slots_drop(path, slots);
		return ret;
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
