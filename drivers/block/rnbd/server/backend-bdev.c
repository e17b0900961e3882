// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: I/O on a disk. Each request is one bio; the block layer splits it by the
 * disk's limits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
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

/* Holds all that is claimed: so clients may share a disk, as access modes allow. */
static u8 rnbd_srv_holder;

static int rnbd_srv_bdev_claim(struct rnbd_srv_map *map)
{
	struct bdev_claim *claim;

	if (map->mode == RNBD_ACCESS_RO || !READ_ONCE(rnbd_srv_claim))
		return 0;
	claim = compat_bdev_claim(map->bdev, &rnbd_srv_holder);
	if (IS_ERR(claim)) {
		if (claim == ERR_PTR(-EBUSY))
			rnbd_srv_err(map->sess, "%s is mounted, part of another device or otherwise claimed on this machine; so may be its disk, or a partition of it\n",
				     map->path);
		return PTR_ERR(claim);
	}
	map->claim = claim;
	return 0;
}

static int rnbd_srv_bdev_open(struct rnbd_srv_map *map)
{
	map->bdev = I_BDEV(map->file->f_mapping->host);
	if (map->mode != RNBD_ACCESS_RO && bdev_read_only(map->bdev))
		return -EROFS;
	/* An array may not be assembled yet: its client waits, and nothing is claimed. */
	if (map->age.generation && !bdev_nr_sectors(map->bdev))
		return -ENXIO;
	/* The protocol can't convey the rules for writing to zones. */
	if (bdev_is_zoned(map->bdev))
		return -EOPNOTSUPP;
	map->block_size = bdev_logical_block_size(map->bdev);
	return rnbd_srv_bdev_claim(map);
}

static void rnbd_srv_bdev_close(struct rnbd_srv_map *map)
{
	if (map->claim)
		compat_bdev_unclaim(map->claim);
}

static sector_t rnbd_srv_bdev_capacity(const struct rnbd_srv_map *map)
{
	return bdev_nr_sectors(map->bdev);
}

/*
 * Is a device, or can it be, a part of a disk only? The device mapper tells the id of the
 * disk below; only multipath, which works on requests, has a disk for itself.
 */
static bool rnbd_srv_bdev_is_part(struct block_device *bdev)
{
	return bdev_is_partition(bdev) ||
	       (strstarts(bdev->bd_disk->disk_name, "dm-") &&
		!queue_is_mq(bdev_get_queue(bdev)));
}

static void rnbd_srv_bdev_id(struct block_device *bdev,
			     struct rnbd_msg_open_rsp *rsp)
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

/* A disk is removed in several steps; in each of them new I/O fails. */
static bool rnbd_srv_bdev_gone(const struct rnbd_srv_map *map)
{
	struct gendisk *disk = map->bdev->bd_disk;

	return test_bit(GD_DEAD, &disk->state) || !disk_live(disk);
}

static void rnbd_srv_bdev_topology(struct block_device *bdev, struct rnbd_msg_open_rsp *rsp)
{
	/* -1 if nothing of it is aligned */
	int offset = max(bdev_alignment_offset(bdev), 0);

	rsp->alignment_offset = cpu_to_le16(min_t(u32, offset >> SECTOR_SHIFT, U16_MAX));
	rsp->io_min = cpu_to_le32(bdev_io_min(bdev));
	rsp->io_opt = cpu_to_le32(bdev_io_opt(bdev));
	if (bdev_rot(bdev))
		rsp->flags |= RNBD_DISK_ROTATIONAL;
	if (bdev_read_only(bdev))
		rsp->flags |= RNBD_DISK_READ_ONLY;
}

static void rnbd_srv_bdev_limits(const struct rnbd_srv_map *map,
				 struct rnbd_msg_open_rsp *rsp)
{
	struct block_device *bdev = map->bdev;
	struct request_queue *q = bdev_get_queue(bdev);

	/* A device-mapper device may have larger blocks than when it was opened. */
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
	if (bdev_max_secure_erase_sectors(bdev) >=
	    max(bdev_max_discard_sectors(bdev), 1U))
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
 * Flags that are meaningless for an operation are dropped, as the block layer warns
 * about them. REQ_IDLE keeps writeback throttling off: the client's kernel has throttled
 * its background writes.
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
 * A REQ_NOWAIT bio fails with AGAIN if it would have had to wait, and with NOTSUPP if a
 * lower device doesn't support REQ_NOWAIT. If the bio was split, some of it may have been
 * carried out; it is all repeated.
 */
static bool rnbd_srv_bdev_would_wait(const struct bio *bio)
{
	return (bio->bi_opf & REQ_NOWAIT) &&
	       (bio->bi_status == BLK_STS_AGAIN ||
		bio->bi_status == BLK_STS_NOTSUPP);
}

/*
 * Is a write that has succeeded in a volatile cache of which the client does not know? The disk may
 * have got the cache while the write was in progress.
 */
static bool rnbd_srv_bdev_unsafe(const struct rnbd_srv_req *req)
{
	if (likely(READ_ONCE(req->map->flushes)))
		return false;
	return (req->op == RNBD_OP_WRITE || req->op == RNBD_OP_WRITE_ZEROES) &&
	       !(req->flags & RNBD_F_FUA) && bdev_write_cache(req->map->bdev);
}

/*
 * Drivers find out by trying that a disk has no write zeroes, and then have none. As in
 * blkdev_issue_zeroout(), that is no error of the disk: the client writes zeroes instead.
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
		/* The mapping's last ones must not wait for a worker. */
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
 * @req: request that has its vecs, if it is with data
 * @op: op of the request
 * @nowait: REQ_NOWAIT or 0
 */
VISIBLE_IF_KUNIT void rnbd_srv_bdev_fill_bio(struct rnbd_srv_req *req,
					     const struct rtrs_srv_op *op,
					     blk_opf_t nowait)
{
	unsigned int nr_vecs = req->vecs ? op->nents : 0;
	struct bio *bio = &req->bio;

	bio_init(bio, req->map->bdev, req->vecs, nr_vecs,
		 rnbd_srv_bdev_opf(req) | nowait);
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

static bool rnbd_srv_bdev_has_data(const struct rnbd_srv_req *req)
{
	return req->op == RNBD_OP_READ || req->op == RNBD_OP_WRITE;
}

static void rnbd_srv_bdev_run(struct rnbd_srv_req *req)
{
	if (rnbd_srv_bdev_has_data(req))
		rnbd_srv_get_vecs(req, rtrs_srv_op_from_priv(req), GFP_NOIO);
	rnbd_srv_bdev_submit_bio(req, 0);
}

/*
 * Some drivers sleep when they are handed a request, whatever its flags, as those whose
 * disks are at the other end of a TCP connection. md says that it doesn't, and before Linux 7.2
 * waits: for its superblock before the first write in a while, for a tag of the disks below, for a
 * stripe, and at the end of a plug for its bitmap. What md and the device mapper are on can't be
 * seen: it may be any of these.
 */
static bool rnbd_srv_bdev_blocking(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);
	const char *name = bdev->bd_disk->disk_name;

	if (queue_is_mq(q))
		return q->tag_set->flags & BLK_MQ_F_BLOCKING;
	return strstarts(name, "md") || strstarts(name, "dm-");
}

/* The block layer refuses to split what is REQ_NOWAIT. */
static bool rnbd_srv_bdev_whole(const struct rnbd_srv_req *req)
{
	return req->len >> SECTOR_SHIFT <= queue_max_sectors(bdev_get_queue(req->map->bdev));
}

/*
 * The caller also serves other disks and sessions, and must not wait for a tag of this
 * one, or for memory. What is to be split, and operations without data, which are rare and may be
 * split into many requests, are always submitted from a work item; so is what a cgroup pays for,
 * which may have to wait, and would be charged again when it is repeated.
 */
static void rnbd_srv_bdev_submit(struct rnbd_srv_req *req)
{
	struct block_device *bdev = req->map->bdev;

	if (rnbd_srv_bdev_has_data(req) && rnbd_srv_bdev_whole(req) && bdev_nowait(bdev) &&
	    !rnbd_srv_bdev_blocking(bdev) && !rcu_access_pointer(req->map->css) &&
	    rnbd_srv_get_vecs(req, rtrs_srv_op_from_priv(req), GFP_NOWAIT))
		rnbd_srv_bdev_submit_bio(req, REQ_NOWAIT);
	else
		rnbd_srv_bdev_defer(req);
}

const struct rnbd_srv_backend rnbd_srv_bdev_backend = {
	.is_disk = true,
	.open = rnbd_srv_bdev_open,
	.close = rnbd_srv_bdev_close,
	.capacity = rnbd_srv_bdev_capacity,
	.limits = rnbd_srv_bdev_limits,
	.gone = rnbd_srv_bdev_gone,
	.submit = rnbd_srv_bdev_submit,
};
