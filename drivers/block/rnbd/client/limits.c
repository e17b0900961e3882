// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: checks a server's description of a device, and converts it into limits of a
 * disk. No value is used unchecked: the block layer warns about unexpected values, or divides
 * by them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "rnbd-clt.h"

/**
 * rnbd_clt_nsectors_ok() - check whether a disk can be this large
 * @nsectors: capacity in sectors of 512 bytes
 *
 * Return: true if the capacity in bytes fits in a loff_t.
 */
bool rnbd_clt_nsectors_ok(u64 nsectors)
{
	return nsectors <= LLONG_MAX >> SECTOR_SHIFT;
}

/* Invalid ids count as missing. */
static void rnbd_clt_check_id(struct rnbd_msg_open_rsp *rsp)
{
	if (rsp->id_type && rsp->id_type <= RNBD_ID_NAA &&
	    rsp->id_len && rsp->id_len <= sizeof(rsp->id))
		return;
	rsp->id_type = RNBD_ID_NONE;
	rsp->id_len = 0;
}

/**
 * rnbd_clt_same_id() - check whether the server still has the same disk
 * @dev: device with a disk
 * @rsp: answer to RNBD_MSG_OPEN, whose id has been checked
 *
 * Return: false if both ids are known and differ, otherwise true.
 */
VISIBLE_IF_KUNIT bool
rnbd_clt_same_id(const struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	if (!dev->id_type || !rsp->id_type)
		return true;
	return dev->id_type == rsp->id_type && dev->id_len == rsp->id_len &&
	       !memcmp(dev->id, rsp->id, rsp->id_len);
}

/**
 * rnbd_clt_check_rsp() - check the answer to RNBD_MSG_OPEN
 * @dev: device that was opened. If it has a disk, the unique id must be the same, and the block
 *	size no larger
 * @rsp: the answer. Fields of features that were not granted, and an invalid id, are cleared. If
 *	its block size is smaller, it is set to the disk's
 * @features: RNBD_FEATURE_* that applied when OPEN was sent
 *
 * Return: 0, or a negative errno, which has been logged.
 */
int rnbd_clt_check_rsp(const struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp, u32 features)
{
	u32 lbs = le16_to_cpu(rsp->logical_block_size);
	u64 nsectors = le64_to_cpu(rsp->nsectors);

	if (rsp->hdr.type != cpu_to_le16(RNBD_MSG_OPEN_RSP)) {
		rnbd_clt_dev_err(dev, -EPROTO, "server's answer isn't one to an open\n");
		return -EPROTO;
	}
	if (!is_power_of_2(lbs) || lbs < SECTOR_SIZE || lbs > PAGE_SIZE) {
		rnbd_clt_dev_err(dev, -EINVAL, "blocks of %u bytes can't be used\n", lbs);
		return -EINVAL;
	}
	if (dev->disk && lbs > queue_logical_block_size(dev->disk->queue)) {
		rnbd_clt_dev_err(dev, -EINVAL, "its blocks are of %u bytes now; unmap it first\n",
				 lbs);
		return -EINVAL;
	}
	if (dev->disk)
		rsp->logical_block_size =
			cpu_to_le16(queue_logical_block_size(dev->disk->queue));
	if (!rnbd_clt_nsectors_ok(nsectors)) {
		rnbd_clt_dev_err(dev, -EFBIG, "a capacity of %llu sectors can't be used\n",
				 nsectors);
		return -EFBIG;
	}
	if (!(features & RNBD_FEATURE_WRITE_ZEROES))
		rsp->max_write_zeroes_sectors = 0;
	rnbd_drop_ungranted(rsp, dev->access_mode, features);
	rnbd_clt_check_id(rsp);
	if (dev->disk && !rnbd_clt_same_id(dev, rsp)) {
		rnbd_clt_dev_err(dev, -ESTALE,
				 "the server has another disk by that name now, %*phN; it was %*phN\n",
				 rsp->id_len, rsp->id, dev->id_len, dev->id);
		return -ESTALE;
	}
	return 0;
}

/**
 * rnbd_clt_new_write_flags() - get the flags that writes need after a change of limits
 * @old: answer to RNBD_MSG_OPEN with the old limits
 * @new: answer to RNBD_MSG_OPEN with the new limits
 *
 * While a disk has no write cache, the block layer removes flushes and FUA from requests. Such
 * writes may be sent after the server has turned on a write cache.
 *
 * Return: RNBD_F_FUA if the new limits have a write cache and the old ones don't, else 0.
 */
u32 rnbd_clt_new_write_flags(const struct rnbd_msg_open_rsp *old,
			     const struct rnbd_msg_open_rsp *new)
{
	u8 gained = new->cache_policy & ~old->cache_policy;

	return gained & RNBD_CACHE_WRITEBACK ? RNBD_F_FUA : 0;
}

/* Limit an operation without data: its length in bytes has 32 bits, and is a multiple of @lbs. */
static unsigned int rnbd_clt_max_sectors(__le32 sectors, unsigned int lbs)
{
	return round_down(min_t(u32, le32_to_cpu(sectors),
				U32_MAX >> SECTOR_SHIFT), lbs >> SECTOR_SHIFT);
}

static void rnbd_clt_fill_discard(const struct rnbd_msg_open_rsp *rsp, struct queue_limits *lim)
{
	u32 granularity = le32_to_cpu(rsp->discard_granularity);
	u32 alignment = le32_to_cpu(rsp->discard_alignment);
	unsigned int lbs = lim->logical_block_size;
	unsigned int max;

	max = rnbd_clt_max_sectors(rsp->max_discard_sectors, lbs);
	/* Missing or invalid: the server's block layer splits discards as needed. */
	if (!granularity || !IS_ALIGNED(granularity, lbs) || granularity >> SECTOR_SHIFT > max) {
		granularity = lbs;
		alignment = 0;
	}
	if (alignment >= granularity || !IS_ALIGNED(alignment, lbs))
		alignment = 0;

	lim->max_hw_discard_sectors = max;
	lim->discard_granularity = max ? granularity : 0;
	lim->discard_alignment = max ? alignment : 0;
	lim->max_secure_erase_sectors = rsp->secure_discard ? max : 0;
}

/* Largest accepted io_min and io_opt. The block layer reads ahead twice io_opt. */
#define RNBD_CLT_MAX_HINT	SZ_64M

/* Sizes that are not multiples of the block size, or too large, count as unknown. */
static u32 rnbd_clt_io_hint(__le32 bytes, unsigned int lbs)
{
	u32 hint = le32_to_cpu(bytes);

	return IS_ALIGNED(hint, lbs) && hint <= RNBD_CLT_MAX_HINT ? hint : 0;
}

static void rnbd_clt_fill_topology(const struct rnbd_msg_open_rsp *rsp, struct queue_limits *lim)
{
	u32 offset = (u32)le16_to_cpu(rsp->alignment_offset) << SECTOR_SHIFT;
	unsigned int lbs = lim->logical_block_size;

	lim->io_min = max(rnbd_clt_io_hint(rsp->io_min, lbs), lim->physical_block_size);
	lim->io_opt = rnbd_clt_io_hint(rsp->io_opt, lbs);
	lim->alignment_offset = IS_ALIGNED(offset, lbs) && offset < lim->physical_block_size ?
				offset : 0;
}

/**
 * rnbd_clt_fill_limits() - convert an answer into limits
 * @dev: device that was opened
 * @rsp: answer to RNBD_MSG_OPEN that passed rnbd_clt_check_rsp()
 * @lim: limits to set; limits that don't depend on @rsp are kept
 */
void rnbd_clt_fill_limits(const struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp,
			  struct queue_limits *lim)
{
	const struct rtrs_clt_limits *max = &dev->sess->limits;
	u32 max_io = max->max_io_size >> SECTOR_SHIFT;
	unsigned int lbs = le16_to_cpu(rsp->logical_block_size);
	unsigned int pbs = le16_to_cpu(rsp->physical_block_size);

	lim->logical_block_size = lbs;
	lim->physical_block_size = is_power_of_2(pbs) ? max(pbs, lbs) : lbs;

	/*
	 * The transport's limits, not the disk's max_segments and max_hw_sectors: the server's
	 * block layer splits requests, which needs no further messages.
	 */
	lim->max_segments = max->max_segments;
	lim->virt_boundary_mask = SZ_4K - 1;
	lim->max_hw_sectors = max_t(u32, max_io, PAGE_SIZE >> SECTOR_SHIFT);

	rnbd_clt_fill_discard(rsp, lim);
	lim->max_write_zeroes_sectors =
		rnbd_clt_max_sectors(rsp->max_write_zeroes_sectors, lbs);

	rnbd_clt_fill_topology(rsp, lim);
	lim->features &= ~(BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA | BLK_FEAT_ROTATIONAL);
	if (rsp->flags & RNBD_DISK_ROTATIONAL)
		lim->features |= BLK_FEAT_ROTATIONAL;
	if (rsp->cache_policy & RNBD_CACHE_WRITEBACK)
		lim->features |= BLK_FEAT_WRITE_CACHE;
	if (rsp->cache_policy & RNBD_CACHE_FUA)
		lim->features |= BLK_FEAT_FUA;
}
