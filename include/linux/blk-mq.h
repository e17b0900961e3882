/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions that older kernels lack in <linux/blk-mq.h>
 *
 * The preprocessor detects missing macros. For arguments and enumerators, which it can't see,
 * Kbuild defines COMPAT_*.
 */
#ifndef COMPAT_LINUX_BLK_MQ_H
#define COMPAT_LINUX_BLK_MQ_H

#include_next <linux/blk-mq.h>

/* Before 6.1.168: blk_mq_destroy_queue() also drops its caller's reference. */
#ifdef COMPAT_DESTROY_PUTS
static inline void compat_destroy_queue(struct request_queue *q)
{
	WARN_ON_ONCE(!blk_get_queue(q));
	blk_mq_destroy_queue(q);
}

#define blk_mq_destroy_queue compat_destroy_queue
#endif

/* Before 6.11: no struct queue_limits with features */
#ifndef BLK_FEAT_WRITE_CACHE

static_assert(__builtin_types_compatible_p(typeof(__blk_mq_alloc_disk),
					   struct gendisk *(struct blk_mq_tag_set *, void *,
							    struct lock_class_key *)),
	      "struct queue_limits without features (Linux 6.9, 6.10) is not supported");

#define BLK_FEAT_WRITE_CACHE	BIT(0)
#define BLK_FEAT_FUA		BIT(1)
#define BLK_FEAT_ROTATIONAL	BIT(2)

/* The members that the drivers set */
struct compat_queue_limits {
	unsigned long virt_boundary_mask;
	unsigned int features;
	unsigned int max_hw_sectors;
	unsigned int physical_block_size;
	unsigned int logical_block_size;
	unsigned int max_hw_discard_sectors;
	unsigned int max_secure_erase_sectors;
	unsigned int max_write_zeroes_sectors;
	unsigned int discard_granularity;
	unsigned int discard_alignment;
	unsigned int io_min;
	unsigned int io_opt;
	unsigned int alignment_offset;
	unsigned short max_segments;
};

static inline void
compat_set_limits(struct request_queue *q, const struct compat_queue_limits *lim)
{
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_io_min(q, lim->io_min);
	blk_queue_io_opt(q, lim->io_opt);
	blk_queue_alignment_offset(q, lim->alignment_offset);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_max_segments(q, lim->max_segments);
	blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
	blk_queue_max_secure_erase_sectors(q, lim->max_secure_erase_sectors);
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
	q->limits.discard_granularity = lim->discard_granularity;
	q->limits.discard_alignment = lim->discard_alignment;
	blk_queue_write_cache(q, lim->features & BLK_FEAT_WRITE_CACHE,
			      lim->features & BLK_FEAT_FUA);
	if (lim->features & BLK_FEAT_ROTATIONAL)
		blk_queue_flag_clear(QUEUE_FLAG_NONROT, q);
	else
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
}

#define queue_limits compat_queue_limits

static inline struct queue_limits
queue_limits_start_update(struct request_queue *q)
{
	return (struct queue_limits) { };
}

static inline int queue_limits_commit_update(struct request_queue *q,
					     const struct queue_limits *lim)
{
	compat_set_limits(q, lim);
	return 0;
}

#undef blk_mq_alloc_disk
#define blk_mq_alloc_disk(set, lim, queuedata)				\
({									\
	static struct lock_class_key __key;				\
	struct gendisk *__disk = __blk_mq_alloc_disk(set, queuedata, &__key); \
									\
	if (!IS_ERR(__disk))						\
		compat_set_limits(__disk->queue, lim);			\
	__disk;								\
})

static inline struct request_queue *
blk_mq_alloc_queue(struct blk_mq_tag_set *set, const struct queue_limits *lim,
		   void *queuedata)
{
	struct request_queue *q = blk_mq_init_queue(set);

	if (!IS_ERR(q)) {
		q->queuedata = queuedata;
		if (lim)
			compat_set_limits(q, lim);
	}
	return q;
}

#endif /* BLK_FEAT_WRITE_CACHE */

/* Before 6.14: a tag set must request merging. */
#ifdef COMPAT_SHOULD_MERGE
static inline int compat_alloc_tag_set(struct blk_mq_tag_set *set)
{
	set->flags |= BLK_MQ_F_SHOULD_MERGE;
	return blk_mq_alloc_tag_set(set);
}

#define blk_mq_alloc_tag_set compat_alloc_tag_set
#endif

/* Before 6.14: freezing a queue doesn't return memalloc flags. */
#ifdef COMPAT_FREEZE_VOID
static inline unsigned int compat_freeze_queue(struct request_queue *q)
{
	blk_mq_freeze_queue(q);
	return 0;
}

static inline void compat_unfreeze_queue(struct request_queue *q,
					 unsigned int memflags)
{
	blk_mq_unfreeze_queue(q);
}

#define blk_mq_freeze_queue	compat_freeze_queue
#define blk_mq_unfreeze_queue	compat_unfreeze_queue
#endif

/* Before 6.15 or 6.16: the request's queue is a separate argument. */
#ifdef COMPAT_MAP_SG_QUEUE
static inline int compat_map_sg(struct request *rq, struct scatterlist *sgl)
{
	return blk_rq_map_sg(rq->q, rq, sgl);
}

#define blk_rq_map_sg	compat_map_sg
#endif

#ifdef COMPAT_MAP_KERN_QUEUE
static inline int compat_map_kern(struct request *rq, void *buf,
				  unsigned int len, gfp_t gfp)
{
	return blk_rq_map_kern(rq->q, rq, buf, len, gfp);
}

#define blk_rq_map_kern	compat_map_kern
#endif

/* Before 6.12: a request has a copy of its bio's priority. Reading the bio gives the same value. */
#ifdef COMPAT_RQ_IOPRIO
static inline unsigned short compat_get_ioprio(struct request *rq)
{
	return rq->bio ? rq->bio->bi_ioprio : 0;
}

#define req_get_ioprio	compat_get_ioprio
#endif

#endif /* COMPAT_LINUX_BLK_MQ_H */
