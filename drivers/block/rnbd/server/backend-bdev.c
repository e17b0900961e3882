// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: I/O on a disk. Each request is one bio; the block layer splits it by the
 * disk's limits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "rnbd-srv.h"

static bool rnbd_srv_claim = true;
module_param_named(claim, rnbd_srv_claim, bool, 0644);
MODULE_PARM_DESC(claim,
		 "Keep this machine from mounting, formatting or otherwise claiming what is exported for writing, and the other way round (default: Y)");

/* Holder of all claims: clients may share a disk, as far as access modes allow. */
static u8 rnbd_srv_holder;

static int rnbd_srv_bdev_check(const struct rnbd_srv_map *map, struct block_device *bdev)
{
	if (map->mode != RNBD_ACCESS_RO && bdev_read_only(bdev))
		return -EROFS;
	/* An array may not be assembled yet: the client retries. */
	if (map->age.generation && !bdev_nr_sectors(bdev))
		return -ENXIO;
	/* The protocol supports neither the rules for writing to zones nor blocks of 64 KiB. */
	return bdev_is_zoned(bdev) || bdev_logical_block_size(bdev) > U16_MAX ? -EOPNOTSUPP : 0;
}

/* Open and check a disk. Returns the disk or an ERR_PTR(). */
static struct file *rnbd_srv_bdev_try(const struct rnbd_srv_map *map, dev_t dev, void *holder)
{
	bool write = map->mode != RNBD_ACCESS_RO;
	struct file *disk;
	int err;

	disk = bdev_file_open_by_dev(dev, write ? BLK_OPEN_READ | BLK_OPEN_WRITE : BLK_OPEN_READ,
				     holder, NULL);
	if (disk == ERR_PTR(-EBUSY) && holder)
		rnbd_srv_err(map->sess, "%s is mounted, part of another device or otherwise claimed on this machine; so may be its disk, or a partition of it\n",
			     map->path);
	if (IS_ERR(disk))
		return disk;
	err = rnbd_srv_bdev_check(map, file_bdev(disk));
	if (!err)
		return disk;
	__fput_sync(disk);
	return ERR_PTR(err);
}

/*
 * The disk is opened by its number rather than by its node: udev reads a disk again when a node
 * that was open for writing is closed. A disk is claimed after it was checked without a claim:
 * clients that reopen a disk retry once a second, and each claim would make its assembly fail.
 */
static int rnbd_srv_bdev_open(struct rnbd_srv_map *map, const char *path)
{
	bool claim = READ_ONCE(rnbd_srv_claim) && map->mode != RNBD_ACCESS_RO;
	struct file *disk;
	dev_t dev;
	int err;

	err = lookup_bdev(path, &dev);
	if (err)
		return err;
	disk = rnbd_srv_bdev_try(map, dev, NULL);
	if (!IS_ERR(disk) && claim) {
		__fput_sync(disk);
		disk = rnbd_srv_bdev_try(map, dev, &rnbd_srv_holder);
	}
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	map->disk = disk;
	map->bdev = file_bdev(disk);
	map->block_size = bdev_logical_block_size(map->bdev);
	/* Disk numbers are reused, but the diskseq is not. */
	map->disk_id.dev = dev;
	map->disk_id.nr = map->bdev->bd_disk->diskseq;
	return 0;
}

static void rnbd_srv_bdev_close(struct rnbd_srv_map *map)
{
	__fput_sync(map->disk);
}

static int rnbd_srv_bdev_sync_all(const struct rnbd_srv_map *map)
{
	int err = sync_blockdev(map->bdev) ?: blkdev_issue_flush(map->bdev);

	/* As for fsync(2), a disk without flushes has nothing to flush. */
	return err == -EOPNOTSUPP ? 0 : err;
}

static sector_t rnbd_srv_bdev_capacity(const struct rnbd_srv_map *map)
{
	return bdev_nr_sectors(map->bdev);
}

/*
 * Check whether a device may be only a part of the disk whose id it reports. The device mapper
 * reports the id of the underlying disk. Only request-based multipath maps a whole disk.
 */
static bool rnbd_srv_bdev_is_part(struct block_device *bdev)
{
	return bdev_is_partition(bdev) ||
	       (strstarts(bdev->bd_disk->disk_name, "dm-") && !queue_is_mq(bdev_get_queue(bdev)));
}

static void rnbd_srv_bdev_id(struct block_device *bdev, struct rnbd_msg_open_rsp *rsp)
{
	static const struct {
		u8 id_type;
		enum blk_unique_id uid;
	} types[] = {
		{ RNBD_ID_NAA, BLK_UID_NAA },
		{ RNBD_ID_EUI64, BLK_UID_EUI64 },
		{ RNBD_ID_T10, BLK_UID_T10 },
	};
	struct gendisk *disk = bdev->bd_disk;
	int i, len;

	if (!disk->fops->get_unique_id || rnbd_srv_bdev_is_part(bdev))
		return;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		len = disk->fops->get_unique_id(disk, rsp->id, types[i].uid);
		if (len > 0) {
			rsp->id_type = types[i].id_type;
			rsp->id_len = min_t(int, len, sizeof(rsp->id));
			return;
		}
	}
	memset(rsp->id, 0, sizeof(rsp->id));
}

/* Removal of a disk has several steps. Each of these conditions makes new I/O fail. */
static bool rnbd_srv_bdev_gone(const struct rnbd_srv_map *map)
{
	struct gendisk *disk = map->bdev->bd_disk;

	return test_bit(GD_DEAD, &disk->state) || !disk_live(disk);
}

static void rnbd_srv_bdev_topology(struct block_device *bdev, struct rnbd_msg_open_rsp *rsp)
{
	/* bdev_alignment_offset() is -1 if the device is misaligned. */
	int offset = max(bdev_alignment_offset(bdev), 0);

	rsp->alignment_offset = cpu_to_le16(min_t(u32, offset >> SECTOR_SHIFT, U16_MAX));
	rsp->io_min = cpu_to_le32(bdev_io_min(bdev));
	rsp->io_opt = cpu_to_le32(bdev_io_opt(bdev));
	if (bdev_rot(bdev))
		rsp->flags |= RNBD_DISK_ROTATIONAL;
	if (bdev_read_only(bdev))
		rsp->flags |= RNBD_DISK_READ_ONLY;
}

static void rnbd_srv_bdev_limits(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	struct block_device *bdev = map->bdev;
	struct request_queue *q = bdev_get_queue(bdev);

	/*
	 * The block size of a device-mapper device may have grown since it was opened. 64 KiB
	 * become 0, which clients reject.
	 */
	rsp->logical_block_size = cpu_to_le16(bdev_logical_block_size(bdev));
	rsp->max_hw_sectors = cpu_to_le32(queue_max_hw_sectors(q));
	rsp->max_segments = cpu_to_le16(bdev_max_segments(bdev));
	rsp->physical_block_size =
		cpu_to_le16(min_t(u32, bdev_physical_block_size(bdev), SZ_32K));
	rsp->max_write_zeroes_sectors =
		cpu_to_le32(bdev_write_zeroes_sectors(bdev));
	rsp->max_discard_sectors = cpu_to_le32(bdev_max_discard_sectors(bdev));
	rsp->discard_granularity = cpu_to_le32(bdev_discard_granularity(bdev));
	rsp->discard_alignment = cpu_to_le32(bdev_discard_alignment(bdev));
	/* The block layer splits a secure erase by the limit for discards. */
	if (bdev_max_secure_erase_sectors(bdev) >= max(bdev_max_discard_sectors(bdev), 1U))
		rsp->secure_discard = cpu_to_le16(1);
	if (bdev_write_cache(bdev))
		rsp->cache_policy |= RNBD_CACHE_WRITEBACK;
	if (bdev_fua(bdev))
		rsp->cache_policy |= RNBD_CACHE_FUA;
	rnbd_srv_bdev_topology(bdev, rsp);
	rnbd_srv_bdev_id(bdev, rsp);
}

/**
 * rnbd_srv_bdev_opf() - convert a request's operation and flags for the block layer
 * @req: request that passed rnbd_srv_check()
 *
 * Flags that are meaningless for an operation are dropped, as the block layer warns about them.
 * REQ_IDLE exempts writes from writeback throttling: the client's kernel has already throttled its
 * background writes.
 *
 * Return: &bio.bi_opf.
 */
VISIBLE_IF_KUNIT blk_opf_t rnbd_srv_bdev_opf(const struct rnbd_srv_req *req)
{
	blk_opf_t opf;

	switch (req->op) {
	case RNBD_OP_READ:
		return REQ_OP_READ | REQ_SYNC;
	case RNBD_OP_WRITE:
		opf = REQ_OP_WRITE | REQ_SYNC | REQ_IDLE;
		if (req->flags & RNBD_F_FUA)
			opf |= REQ_FUA;
		if (req->flags & RNBD_F_PREFLUSH)
			opf |= REQ_PREFLUSH;
		return opf;
	case RNBD_OP_DISCARD:
		return REQ_OP_DISCARD | REQ_SYNC;
	case RNBD_OP_SECURE_ERASE:
		return REQ_OP_SECURE_ERASE | REQ_SYNC;
	case RNBD_OP_WRITE_ZEROES:
		opf = REQ_OP_WRITE_ZEROES | REQ_SYNC;
		if (req->flags & RNBD_F_NOUNMAP)
			opf |= REQ_NOUNMAP;
		return opf;
	default:
		return REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH;
	}
}

static void rnbd_srv_bdev_run(struct rnbd_srv_req *req);

/* Any context. */
static void rnbd_srv_bdev_defer(struct rnbd_srv_req *req)
{
	req->run = rnbd_srv_bdev_run;
	rnbd_srv_queue_add(req);
}

/*
 * Check whether a REQ_NOWAIT bio has to be submitted again without the flag: after BLK_STS_AGAIN,
 * or after BLK_STS_NOTSUPP, if a lower device doesn't support REQ_NOWAIT. If the bio was split,
 * parts of it may have been executed; all of it is repeated.
 */
static bool rnbd_srv_bdev_would_wait(const struct bio *bio)
{
	return (bio->bi_opf & REQ_NOWAIT) &&
	       (bio->bi_status == BLK_STS_AGAIN || bio->bi_status == BLK_STS_NOTSUPP);
}

/*
 * Check whether a successful write may be in a volatile cache that the client does not flush. The
 * cache may have been turned on while the write was in progress.
 */
static bool rnbd_srv_bdev_unsafe(const struct rnbd_srv_req *req)
{
	if (likely(READ_ONCE(req->map->flushes)))
		return false;
	return (req->op == RNBD_OP_WRITE || req->op == RNBD_OP_WRITE_ZEROES) &&
	       !(req->flags & RNBD_F_FUA) && bdev_write_cache(req->map->bdev);
}

/*
 * A driver may learn only from a failed command that a disk doesn't support write zeroes, and then
 * clears the limit. As in blkdev_issue_zeroout(), that is not an I/O error: the client writes
 * zeroes instead.
 */
static int rnbd_srv_bdev_errno(const struct rnbd_srv_req *req, blk_status_t status)
{
	if (unlikely(status && req->op == RNBD_OP_WRITE_ZEROES &&
		     !bdev_write_zeroes_sectors(req->map->bdev)))
		return -EOPNOTSUPP;
	return blk_status_to_errno(status);
}

static void rnbd_srv_bdev_end_io(struct bio *bio)
{
	struct rnbd_srv_req *req = container_of(bio, struct rnbd_srv_req, bio);
	int err = rnbd_srv_bdev_errno(req, bio->bi_status);
	bool would_wait = rnbd_srv_bdev_would_wait(bio);

	bio_uninit(bio);
	if (would_wait) {
		/* The array may be the mapping's reserve, so don't keep it until a worker runs. */
		rnbd_srv_put_vecs(req);
		rnbd_srv_bdev_defer(req);
	} else if (unlikely(!err && rnbd_srv_bdev_unsafe(req))) {
		/* The answer follows the flush. */
		rnbd_srv_put_vecs(req);
		req->op = RNBD_OP_FLUSH;
		rnbd_srv_bdev_defer(req);
	} else {
		rnbd_srv_end(req, err);
	}
}

/**
 * rnbd_srv_bdev_fill_bio() - prepare a request's bio
 * @req: request, with its array of struct bio_vec if it has data
 * @op: op of the request
 * @nowait: REQ_NOWAIT or 0
 */
VISIBLE_IF_KUNIT void rnbd_srv_bdev_fill_bio(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
					     blk_opf_t nowait)
{
	unsigned int nr_vecs = req->vecs ? op->nents : 0;
	struct bio *bio = &req->bio;

	bio_init(bio, req->map->bdev, req->vecs, nr_vecs, rnbd_srv_bdev_opf(req) | nowait);
	bio->bi_end_io = rnbd_srv_bdev_end_io;
	bio->bi_ioprio = req->prio;
	bio->bi_vcnt = nr_vecs;
	if (req->op != RNBD_OP_FLUSH) {
		bio->bi_iter.bi_sector = req->sector;
		bio->bi_iter.bi_size = req->len;
	}
}

static void rnbd_srv_bdev_submit_bio(struct rnbd_srv_req *req, blk_opf_t nowait)
{
	req->submitted = ktime_get_ns();
	rnbd_srv_bdev_fill_bio(req, rtrs_srv_op_from_priv(req), nowait);
	if (!nowait)
		rnbd_srv_css_bio(req->map, &req->bio);
	submit_bio(&req->bio);
}

static void rnbd_srv_bdev_run(struct rnbd_srv_req *req)
{
	if (rnbd_srv_has_data(req))
		rnbd_srv_get_vecs(req, rtrs_srv_op_from_priv(req), GFP_NOIO);
	rnbd_srv_bdev_submit_bio(req, 0);
}

/*
 * Check whether submission to a disk may sleep in spite of REQ_NOWAIT. Drivers with
 * BLK_MQ_F_BLOCKING may sleep, for example nbd and nvme-tcp. md claims support for REQ_NOWAIT but,
 * before Linux 7.2, may wait for its superblock, for a tag of a lower disk, for a stripe or, at the
 * end of a plug, for its bitmap. The lower devices of md and the device mapper, which are not
 * visible here, may also be of these kinds.
 */
static bool rnbd_srv_bdev_blocking(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);
	const char *name = bdev->bd_disk->disk_name;

	if (queue_is_mq(q))
		return q->tag_set->flags & BLK_MQ_F_BLOCKING;
	return strstarts(name, "md") || strstarts(name, "dm-");
}

/* Check that a request isn't split: the block layer does not split a REQ_NOWAIT bio. */
static bool rnbd_srv_bdev_whole(const struct rnbd_srv_req *req)
{
	return req->len >> SECTOR_SHIFT <= queue_max_sectors(bdev_get_queue(req->map->bdev));
}

/*
 * The caller also serves other disks and sessions, and must not wait for a tag of this disk, or for
 * memory. A worker submits requests that have to be split, and operations without data, which are
 * rare and may be split into many requests. It also submits requests that are charged to a cgroup,
 * which may be throttled, and would be charged twice if they were repeated.
 */
static void rnbd_srv_bdev_submit(struct rnbd_srv_req *req)
{
	struct block_device *bdev = req->map->bdev;

	if (rnbd_srv_has_data(req) && rnbd_srv_bdev_whole(req) && bdev_nowait(bdev) &&
	    !rnbd_srv_bdev_blocking(bdev) && !rcu_access_pointer(req->map->sess->css) &&
	    rnbd_srv_get_vecs(req, rtrs_srv_op_from_priv(req), GFP_NOWAIT))
		rnbd_srv_bdev_submit_bio(req, REQ_NOWAIT);
	else
		rnbd_srv_bdev_defer(req);
}

const struct rnbd_srv_backend rnbd_srv_bdev_backend = {
	.is_disk = true,
	.open = rnbd_srv_bdev_open,
	.close = rnbd_srv_bdev_close,
	.sync = rnbd_srv_bdev_sync_all,
	.capacity = rnbd_srv_bdev_capacity,
	.limits = rnbd_srv_bdev_limits,
	.gone = rnbd_srv_bdev_gone,
	.submit = rnbd_srv_bdev_submit,
};
