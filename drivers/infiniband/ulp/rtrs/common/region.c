// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of a path for DMA: the server's chunks or slots, the client's headers or slots, and
 * messages of a few bytes. It consists of pieces of equal size, one for each request that may be in
 * flight, or for each receive.
 *
 * A memory region consists of pages. If a piece isn't a multiple of a page, pieces are allocated in
 * groups that are. Each piece is physically contiguous, as an upper layer may do I/O on its
 * contents.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

/* Page size of memory regions, independent of PAGE_SIZE. */
#define RTRS_REGION_PAGE	SZ_4K
/*
 * Maximum number of pages of a memory region, unless a piece or group has more. Drivers allocate a
 * physically contiguous list of the pages' addresses, so this number of addresses fits in a page.
 */
#define RTRS_REGION_MR_PAGES	512U
/* Estimated bytes of a memory region in the device and its driver, besides its page list. */
#define RTRS_REGION_MR_BYTES	512

static u32 rtrs_region_group_shift(u32 size)
{
	return max(ilog2(RTRS_REGION_PAGE) - (int)__ffs(size), 0);
}

static size_t rtrs_region_group_bytes(const struct rtrs_region *region)
{
	return (size_t)region->size << region->group_shift;
}

/**
 * rtrs_region_max_per_mr() - compute the maximum number of pieces of a memory region
 * @path: path with an open device
 * @size: bytes of a piece, a multiple of RTRS_SLOT_UNIT
 *
 * Return: the number; 0 if the device can't register a group of pieces.
 */
u32 rtrs_region_max_per_mr(const struct rtrs_path *path, u32 size)
{
	u32 shift = rtrs_region_group_shift(size);
	u32 group = (size << shift) / RTRS_REGION_PAGE;

	return min(path->dev->attrs.max_fast_reg_page_list_len,
		   max(RTRS_REGION_MR_PAGES, group)) / group << shift;
}
EXPORT_SYMBOL_GPL(rtrs_region_max_per_mr);

/**
 * rtrs_region_bytes() - estimate the memory of a region
 * @nr: number of pieces
 * @size: bytes of a piece
 * @per_mr: pieces per memory region, 0 without memory regions
 *
 * Return: estimated bytes, including the device's memory for memory regions.
 */
u64 rtrs_region_bytes(u32 nr, u32 size, u32 per_mr)
{
	u32 shift = rtrs_region_group_shift(size);
	u64 groups = DIV_ROUND_UP(nr, BIT(shift));
	u64 bytes = groups * (PAGE_ALIGN((u64)size << shift) + sizeof(void *) + sizeof(u64));
	u64 pages;

	if (!per_mr)
		return bytes;
	pages = (u64)min(per_mr, nr) * size / RTRS_REGION_PAGE;
	return bytes + DIV_ROUND_UP(nr, per_mr) *
	       (RTRS_REGION_MR_BYTES + sizeof(struct ib_mr *) + pages * sizeof(u64));
}
EXPORT_SYMBOL_GPL(rtrs_region_bytes);

/*
 * Allocates contiguous memory as separate pages, as the upper layer may take references on some of
 * them.
 */
static void *rtrs_region_pages(struct ib_device *dev, size_t bytes)
{
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	unsigned int order = get_order(bytes);
	unsigned long addr, end;
	struct page *page;

	page = alloc_pages_node(ibdev_to_node(dev), gfp, order);
	if (!page)
		return NULL;
	split_page(page, order);
	addr = (unsigned long)page_address(page);
	end = addr + (PAGE_SIZE << order);
	for (addr += PAGE_ALIGN(bytes); addr < end; addr += PAGE_SIZE)
		free_page(addr);
	return page_address(page);
}

static int rtrs_region_add_group(struct rtrs_region *region)
{
	struct ib_device *dev = region->path->dev;
	size_t bytes = rtrs_region_group_bytes(region);
	void *group = rtrs_region_pages(dev, bytes);
	u64 dma;

	if (!group)
		return -ENOMEM;
	dma = ib_dma_map_single(dev, group, bytes, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, dma)) {
		free_pages_exact(group, bytes);
		return -ENOMEM;
	}
	region->group[region->nr_groups] = group;
	region->dma[region->nr_groups++] = dma;
	return 0;
}

/* Allocates a memory region for @nr groups, starting with @first. */
static int rtrs_region_add_mr(struct rtrs_region *region, struct scatterlist *sgl,
			      u32 first, u32 nr)
{
	size_t bytes = rtrs_region_group_bytes(region);
	struct scatterlist *sg;
	struct ib_mr *mr;
	int ret;
	u32 i;

	mr = ib_alloc_mr(region->path->pd, IB_MR_TYPE_MEM_REG,
			 nr * (bytes / RTRS_REGION_PAGE));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	region->mrs[region->nr_mrs++] = mr;
	sg_init_table(sgl, nr);
	for_each_sg(sgl, sg, nr, i) {
		sg_set_buf(sg, region->group[first + i], bytes);
		sg_dma_address(sg) = region->dma[first + i];
		sg_dma_len(sg) = bytes;
	}
	ret = ib_map_mr_sg(mr, sgl, nr, NULL, RTRS_REGION_PAGE);
	if (ret != nr)
		return ret < 0 ? ret : -EINVAL;
	return 0;
}

static int rtrs_region_alloc_mrs(struct rtrs_region *region)
{
	u32 per_mr = region->per_mr >> region->group_shift;
	struct scatterlist *sgl;
	int ret = 0;
	u32 i;

	region->mrs = kvcalloc(DIV_ROUND_UP(region->nr_groups, per_mr),
			       sizeof(*region->mrs), GFP_KERNEL);
	sgl = kvcalloc(per_mr, sizeof(*sgl), GFP_KERNEL);
	if (!region->mrs || !sgl)
		ret = -ENOMEM;
	for (i = 0; i < region->nr_groups && !ret; i += per_mr)
		ret = rtrs_region_add_mr(region, sgl, i,
					 min(per_mr, region->nr_groups - i));
	kvfree(sgl);
	return ret;
}

/**
 * rtrs_region_alloc() - allocate a region, map it for DMA, and allocate its memory regions
 * @region: region, all zero
 * @path: path with an open device
 * @nr: number of pieces, not 0
 * @size: bytes of a piece; a multiple of RTRS_SLOT_UNIT, or a power of 2
 * @per_mr: pieces per memory region, at most rtrs_region_max_per_mr() and a multiple of the pieces
 *	of a group; 0 for no memory regions
 *
 * The memory is zeroed. The last group may have more pieces than requested, and the last memory
 * region covers them.
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno. In either case, rtrs_region_free() cleans up.
 */
int rtrs_region_alloc(struct rtrs_region *region, struct rtrs_path *path, u32 nr,
		      u32 size, u32 per_mr)
{
	u32 groups;
	int ret = 0;

	*region = (struct rtrs_region) {
		.path		= path,
		.nr		= nr,
		.size		= size,
		.group_shift	= rtrs_region_group_shift(size),
		.per_mr		= per_mr,
	};
	groups = DIV_ROUND_UP(nr, BIT(region->group_shift));
	region->group = kvcalloc(groups, sizeof(*region->group), GFP_KERNEL);
	region->dma = kvcalloc(groups, sizeof(*region->dma), GFP_KERNEL);
	if (!region->group || !region->dma)
		return -ENOMEM;
	while (region->nr_groups < groups && !ret)
		ret = rtrs_region_add_group(region);
	if (ret || !per_mr)
		return ret;
	return rtrs_region_alloc_mrs(region);
}
EXPORT_SYMBOL_GPL(rtrs_region_alloc);

/**
 * rtrs_long_alloc() - allocate a message of a handshake, and map it for DMA
 * @m: message, all zero
 * @path: path with an open device
 * @size: bytes of the message, not 0
 *
 * The message is zeroed.
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM.
 */
int rtrs_long_alloc(struct rtrs_long *m, struct rtrs_path *path, u32 size)
{
	void *msg = kzalloc(size, GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);

	if (!msg)
		return -ENOMEM;
	m->dma = ib_dma_map_single(path->dev, msg, size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(path->dev, m->dma)) {
		kfree(msg);
		return -ENOMEM;
	}
	m->path = path;
	m->size = size;
	m->msg = msg;
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_long_alloc);

/**
 * rtrs_long_free() - undo rtrs_long_alloc(), if it was called
 * @m: message that no queue pair uses any more, or all zero
 *
 * Context: process, may sleep.
 */
void rtrs_long_free(struct rtrs_long *m)
{
	if (m->msg)
		ib_dma_unmap_single(m->path->dev, m->dma, m->size, DMA_BIDIRECTIONAL);
	kfree(m->msg);
	m->msg = NULL;
}
EXPORT_SYMBOL_GPL(rtrs_long_free);

/**
 * rtrs_long_send() - send a message of a handshake
 * @m: the message
 * @con: connection 0 of the path
 * @cqe: completion entry, whose handler calls rtrs_con_put_wr(); or NULL
 *
 * Return: as rtrs_con_post().
 */
int rtrs_long_send(const struct rtrs_long *m, struct rtrs_con *con, struct ib_cqe *cqe)
{
	struct ib_sge sge = {
		.addr		= m->dma,
		.length		= m->size,
		.lkey		= m->path->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe		= cqe,
		.opcode		= IB_WR_SEND,
		.send_flags	= cqe ? IB_SEND_SIGNALED : 0,
		.sg_list	= &sge,
		.num_sge	= 1,
	};

	ib_dma_sync_single_for_device(m->path->dev, m->dma, m->size, DMA_BIDIRECTIONAL);
	return rtrs_con_post(con, &wr);
}
EXPORT_SYMBOL_GPL(rtrs_long_send);

/**
 * rtrs_long_post_recv() - post the receive of a message of a handshake
 * @m: the message
 * @con: connection 0 of the path
 * @cqe: completion entry; its handler calls rtrs_long_received()
 *
 * Return: 0 or the verb's errno.
 */
int rtrs_long_post_recv(const struct rtrs_long *m, struct rtrs_con *con, struct ib_cqe *cqe)
{
	struct ib_sge sge = {
		.addr		= m->dma,
		.length		= m->size,
		.lkey		= m->path->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe		= cqe,
		.sg_list	= &sge,
		.num_sge	= 1,
	};

	return ib_post_recv(con->cm_id->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rtrs_long_post_recv);

/**
 * rtrs_long_received() - make a received message visible to the CPU
 * @m: the message, which the device doesn't write to any more
 */
void rtrs_long_received(const struct rtrs_long *m)
{
	ib_dma_sync_single_for_cpu(m->path->dev, m->dma, m->size, DMA_BIDIRECTIONAL);
}
EXPORT_SYMBOL_GPL(rtrs_long_received);

/**
 * rtrs_region_register() - post the registration of a region's next memory regions
 * @region: region with memory regions
 * @con: connection on which to post; its send queue has room for 2 * RTRS_SIGNAL_EVERY work
 *	requests, so that it has room for a batch whenever the previous one is complete
 * @first: index of the first memory region
 * @cqe: completion entry of the last work request; its handler calls rtrs_con_put_wr()
 *
 * Context: process, may sleep.
 * Return: the number of memory regions in the batch, or a negative errno.
 */
int rtrs_region_register(const struct rtrs_region *region, struct rtrs_con *con, u32 first,
			 struct ib_cqe *cqe)
{
	u32 i, nr = min_t(u32, region->nr_mrs - first, RTRS_SIGNAL_EVERY);
	struct ib_reg_wr *wrs;
	int ret;

	wrs = kcalloc(nr, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		wrs[i].wr.opcode = IB_WR_REG_MR;
		wrs[i].mr = region->mrs[first + i];
		wrs[i].key = wrs[i].mr->rkey;
		wrs[i].access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
		if (i)
			wrs[i - 1].wr.next = &wrs[i].wr;
	}
	wrs[nr - 1].wr.wr_cqe = cqe;
	wrs[nr - 1].wr.send_flags = IB_SEND_SIGNALED;
	ret = rtrs_con_post(con, &wrs[0].wr);
	kfree(wrs);
	return ret ?: nr;
}
EXPORT_SYMBOL_GPL(rtrs_region_register);

/**
 * rtrs_region_free() - undo rtrs_region_alloc(), even if it failed
 * @region: region that no queue pair uses any more, or all zero
 *
 * Context: process, may sleep.
 */
void rtrs_region_free(struct rtrs_region *region)
{
	size_t bytes = rtrs_region_group_bytes(region);

	while (region->nr_mrs)
		ib_dereg_mr(region->mrs[--region->nr_mrs]);
	while (region->nr_groups) {
		region->nr_groups--;
		ib_dma_unmap_single(region->path->dev, region->dma[region->nr_groups],
				    bytes, DMA_BIDIRECTIONAL);
		free_pages_exact(region->group[region->nr_groups], bytes);
	}
	kvfree(region->mrs);
	kvfree(region->dma);
	kvfree(region->group);
	*region = (struct rtrs_region) {};
}
EXPORT_SYMBOL_GPL(rtrs_region_free);
