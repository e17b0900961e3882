// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of a path that its device uses: chunks or slots of a server, headers or slots of a
 * client. It is equal pieces, one for each request that may be in flight.
 *
 * A memory region is made of pages, so pieces that aren't are allocated in groups that are.
 * Each is contiguous, as an upper layer may do I/O on what is in one.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

/* Page size of memory regions, whatever PAGE_SIZE is. */
#define RTRS_REGION_PAGE	SZ_4K
/* Estimated bytes of a memory region in the device and its driver, besides its page list. */
#define RTRS_REGION_MR_BYTES	512

static u32 rtrs_region_group_shift(u32 size)
{
	return IS_ALIGNED(size, RTRS_REGION_PAGE) ? 0 :
	       ilog2(RTRS_REGION_PAGE / RTRS_SLOT_UNIT);
}

static size_t rtrs_region_group_bytes(const struct rtrs_region *region)
{
	return (size_t)region->size << region->group_shift;
}

/**
 * rtrs_region_max_per_mr() - compute how many pieces a memory region may have
 * @path: path that has its device
 * @size: bytes of a piece, a multiple of RTRS_SLOT_UNIT
 *
 * Return: the number; 0 if the device can't register a group of them.
 */
u32 rtrs_region_max_per_mr(const struct rtrs_path *path, u32 size)
{
	u32 shift = rtrs_region_group_shift(size);
	u64 group = (u64)size << shift;
	u64 max = (u64)path->dev->attrs.max_fast_reg_page_list_len * RTRS_REGION_PAGE;

	/* A descriptor's length has 32 bits, and so have most devices' MRs. */
	return (u32)div64_u64(min_t(u64, max, SZ_1G), group) << shift;
}
EXPORT_SYMBOL_GPL(rtrs_region_max_per_mr);

/**
 * rtrs_region_bytes() - estimate the memory of a region
 * @nr: number of pieces
 * @size: bytes of a piece
 * @per_mr: pieces of a memory region, 0 without
 *
 * Return: bytes, with what the device takes for memory regions.
 */
u64 rtrs_region_bytes(u32 nr, u32 size, u32 per_mr)
{
	u32 shift = rtrs_region_group_shift(size);
	u64 groups = DIV_ROUND_UP(nr, BIT(shift));
	u64 bytes = groups * (((u64)size << shift) + sizeof(void *) + sizeof(u64));
	u64 pages;

	if (!per_mr)
		return bytes;
	pages = (u64)min(per_mr, nr) * size / RTRS_REGION_PAGE;
	return bytes + DIV_ROUND_UP(nr, per_mr) *
	       (RTRS_REGION_MR_BYTES + sizeof(struct ib_mr *) + pages * sizeof(u64));
}
EXPORT_SYMBOL_GPL(rtrs_region_bytes);

/* Pages of their own, as the upper layer may hand parts of them on. */
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

/* Makes a memory region of the groups from @first on. */
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
 * rtrs_region_alloc() - allocate a region, map it for the device, make memory regions
 * @region: region, all zero
 * @path: path that has its device
 * @nr: number of pieces, not 0
 * @size: bytes of a piece, a multiple of RTRS_SLOT_UNIT
 * @per_mr: pieces of a memory region, at most rtrs_region_max_per_mr() and a multiple of the
 *	pieces of a group; 0 for none
 *
 * The memory is zeroed. The last group may have more pieces than are needed, and the last
 * memory region covers them.
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno; rtrs_region_free() cleans up either way.
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
 * rtrs_region_free() - undo rtrs_region_alloc(), as far as it came
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
