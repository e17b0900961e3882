// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the drivers' calls of RDMA devices like an IOMMU and a strict adapter. soft-RoCE accepts
 * memory that is not mapped, or mapped for the other direction. The rules:
 *
 * - memory in a work request is mapped for the direction of the request, under a key of the queue
 *   pair's own domain
 * - a memory region is registered in its own domain, with the key and the rights that its
 *   memory allows
 * - memory is unmapped as it was mapped, when no work request uses it and no key gives access to it
 * - memory is synced as it was mapped, for the same direction
 *
 * A violation is logged with "BUG: " and a stack trace.
 *
 * A work request ends when its completion is polled, or the completion of a later one in the same
 * queue. A drained queue pair accesses no memory.
 */
#include <linux/hashtable.h>
#include <linux/interval_tree_generic.h>
#include <linux/list.h>
#include <linux/module.h>

#include "faults.h"

/* This file calls the real functions. */
#undef ib_alloc_mr
#undef ib_map_mr_sg
#undef ib_dereg_mr
#undef ib_post_send
#undef ib_post_recv
#undef ib_drain_sq
#undef ib_drain_rq
#undef ib_modify_qp
#undef rdma_destroy_qp
#undef ib_dma_map_single
#undef ib_dma_map_page
#undef ib_dma_map_sg
#undef ib_dma_unmap_single
#undef ib_dma_unmap_page
#undef ib_dma_unmap_sg
#undef rdma_rw_ctx_init
#undef rdma_rw_ctx_destroy
#undef ib_dma_sync_single_for_cpu
#undef ib_dma_sync_single_for_device

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

/* Limit of messages */
#define RTRS_FAULTS_BUGS	10
/* Attempts to allocate a record. Fault injection makes one of them fail. */
#define RTRS_FAULTS_TRIES	100

/* Memory that is mapped for a device */
struct rtrs_faults_map {
	struct rb_node rb;
	u64 first;
	u64 last;
	u64 subtree_last;
	struct ib_device *dev;
	enum dma_data_direction dir;
	unsigned int busy;		/* work requests that list it */
	bool unmapped;			/* while it was busy */
	struct rtrs_faults_mr *mr;	/* memory region that it is part of */
	struct list_head entry;		/* in rtrs_faults_mr.maps */
};

struct rtrs_faults_mr {
	struct hlist_node node;
	struct ib_mr *mr;
	bool valid;			/* its keys give access */
	bool awaited;			/* has memory, and is not yet registered */
	struct list_head maps;
};

/* A work request in flight */
struct rtrs_faults_wr {
	struct list_head entry;
	const void *wr;
	const struct ib_cqe *cqe;
	bool signaled;
	bool mark;			/* posted to drain the queue pair */
	u32 invalidates;		/* a key, or 0 */
	unsigned int nr;
	struct rtrs_faults_map *maps[];
};

struct rtrs_faults_qp {
	struct hlist_node node;
	struct ib_qp *qp;
	bool ended;			/* moved to the error state, to be drained */
	bool drained;
	struct list_head sends;
	struct list_head recvs;
};

/* Guards all data of this file. */
static DEFINE_SPINLOCK(rtrs_faults_lock);
static struct rb_root_cached rtrs_faults_maps = RB_ROOT_CACHED;
static DEFINE_HASHTABLE(rtrs_faults_mrs, 10);
static DEFINE_HASHTABLE(rtrs_faults_qps, 8);
static unsigned int rtrs_faults_bugs;
static bool rtrs_faults_exiting;

/* poll_cq of all devices that are checked: soft-RoCE's or soft-iWARP's */
static int (*rtrs_faults_real_poll)(struct ib_cq *cq, int nr, struct ib_wc *wc);

#define RTRS_FAULTS_FIRST(map)	((map)->first)
#define RTRS_FAULTS_LAST(map)	((map)->last)
INTERVAL_TREE_DEFINE(struct rtrs_faults_map, rb, u64, subtree_last,
		     RTRS_FAULTS_FIRST, RTRS_FAULTS_LAST, static,
		     rtrs_faults_tree)

static __printf(1, 2) void rtrs_faults_bug(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (rtrs_faults_bugs++ >= RTRS_FAULTS_BUGS)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("BUG: %pV\n", &vaf);
	va_end(args);
	dump_stack();
}

/* The caller may hold spinlocks, and needs the record. */
static void *rtrs_faults_zalloc(size_t size)
{
	void *record;
	int i;

	for (i = 0; i < RTRS_FAULTS_TRIES; i++) {
		record = rtrs_faults_kzalloc(size, GFP_ATOMIC);
		if (record)
			return record;
	}
	panic("rtrs-faults: can't keep a record of %zu bytes", size);
}

static struct rtrs_faults_qp *rtrs_faults_find_qp(const struct ib_qp *qp)
{
	struct rtrs_faults_qp *q;

	hash_for_each_possible(rtrs_faults_qps, q, node, (unsigned long)qp)
		if (q->qp == qp)
			return q;
	return NULL;
}

/* The low byte of a key changes with each use. */
static struct rtrs_faults_mr *rtrs_faults_find_mr(const struct ib_device *dev,
						  u32 key)
{
	struct rtrs_faults_mr *mr;

	hash_for_each_possible(rtrs_faults_mrs, mr, node, key >> 8)
		if (mr->mr->device == dev && mr->mr->rkey >> 8 == key >> 8)
			return mr;
	return NULL;
}

/* ---- mappings ---- */

static bool rtrs_faults_allows(const struct rtrs_faults_map *map,
			       enum dma_data_direction dir)
{
	return map->dir == DMA_BIDIRECTIONAL || map->dir == dir;
}

/* The mapping that contains this memory, preferably one that allows the direction */
static struct rtrs_faults_map *rtrs_faults_covers(const struct ib_device *dev,
						  u64 addr, u64 len,
						  enum dma_data_direction dir)
{
	struct rtrs_faults_map *map, *other = NULL;
	u64 last = addr + len - 1;

	for (map = rtrs_faults_tree_iter_first(&rtrs_faults_maps, addr, last); map;
	     map = rtrs_faults_tree_iter_next(map, addr, last)) {
		if (map->dev != dev || map->first > addr || map->last < last)
			continue;
		if (rtrs_faults_allows(map, dir))
			return map;
		other = map;
	}
	return other;
}

/* Has the domain queue pairs that can still use its keys? */
static bool rtrs_faults_pd_live(const struct ib_pd *pd)
{
	struct rtrs_faults_qp *q;
	int bucket;

	hash_for_each(rtrs_faults_qps, bucket, q, node)
		if (q->qp->pd == pd && !q->drained)
			return true;
	return false;
}

static bool rtrs_faults_in_use(const struct rtrs_faults_map *map)
{
	return map->busy || (map->mr && map->mr->valid &&
			     rtrs_faults_pd_live(map->mr->mr->pd));
}

/* Several mappings may have the same memory, such as the zero page: this one belongs to an MR. */
static bool rtrs_faults_awaited(const struct rtrs_faults_map *map)
{
	return map->mr && map->mr->awaited;
}

/* The mapping with these values, preferably one that is not in use or about to be used */
static struct rtrs_faults_map *rtrs_faults_exact(const struct ib_device *dev,
						 u64 addr, u64 len,
						 enum dma_data_direction dir)
{
	struct rtrs_faults_map *map, *used = NULL, *awaited = NULL;
	u64 last = addr + len - 1;

	for (map = rtrs_faults_tree_iter_first(&rtrs_faults_maps, addr, last); map;
	     map = rtrs_faults_tree_iter_next(map, addr, last)) {
		if (map->dev != dev || map->first != addr || map->last != last ||
		    (dir != DMA_NONE && map->dir != dir))
			continue;
		if (dir == DMA_NONE ? !!map->mr : rtrs_faults_in_use(map))
			used = map;
		else if (dir != DMA_NONE && rtrs_faults_awaited(map))
			awaited = map;
		else
			return map;
	}
	return awaited ?: used;
}

static void rtrs_faults_mapped(struct ib_device *dev, u64 addr, u64 len,
			       enum dma_data_direction dir)
{
	struct rtrs_faults_map *map = rtrs_faults_zalloc(sizeof(*map));

	map->first = addr;
	map->last = addr + len - 1;
	map->dev = dev;
	map->dir = dir;
	guard(spinlock_irqsave)(&rtrs_faults_lock);
	rtrs_faults_tree_insert(map, &rtrs_faults_maps);
}

static void rtrs_faults_put_map(struct rtrs_faults_map *map)
{
	map->busy--;
	if (map->unmapped && !map->busy)
		kfree(map);
}

static void rtrs_faults_unmapped(struct ib_device *dev, u64 addr, u64 len,
				 enum dma_data_direction dir)
{
	struct rtrs_faults_map *map;

	guard(spinlock_irqsave)(&rtrs_faults_lock);
	map = rtrs_faults_exact(dev, addr, len, dir);
	if (!map) {
		rtrs_faults_bug("unmapped: %llu bytes that weren't mapped so, direction %d",
				len, dir);
		return;
	}
	if (map->busy)
		rtrs_faults_bug("unmapped: %llu bytes that a work request uses", len);
	else if (rtrs_faults_in_use(map))
		rtrs_faults_bug("unmapped: %llu bytes that a valid key gives access to", len);
	rtrs_faults_tree_remove(map, &rtrs_faults_maps);
	if (map->mr)
		list_del(&map->entry);
	map->mr = NULL;
	map->unmapped = true;
	if (!map->busy)
		kfree(map);
}

static void rtrs_faults_mapped_sg(struct ib_device *dev, struct scatterlist *sgl, int nr,
				  enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nr, i)
		rtrs_faults_mapped(dev, sg_dma_address(sg), sg_dma_len(sg), dir);
}

static void rtrs_faults_unmapped_sg(struct ib_device *dev, struct scatterlist *sgl, int nr,
				    enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nr, i)
		rtrs_faults_unmapped(dev, sg_dma_address(sg), sg_dma_len(sg), dir);
}

/* Records ib_dma_map_single(). */
u64 rtrs_faults_map_single(struct ib_device *dev, void *ptr, size_t size,
			   enum dma_data_direction dir)
{
	u64 addr = ib_dma_map_single(dev, ptr, size, dir);

	rtrs_faults_mapped(dev, addr, size, dir);
	return addr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_single);

/* Records ib_dma_map_page(). */
u64 rtrs_faults_map_page(struct ib_device *dev, struct page *page,
			 unsigned long off, size_t size,
			 enum dma_data_direction dir)
{
	u64 addr = ib_dma_map_page(dev, page, off, size, dir);

	rtrs_faults_mapped(dev, addr, size, dir);
	return addr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_page);

/* Records ib_dma_map_sg(). */
int rtrs_faults_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
		       enum dma_data_direction dir)
{
	int nr = ib_dma_map_sg(dev, sgl, nents, dir);

	rtrs_faults_mapped_sg(dev, sgl, nr, dir);
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_sg);

/* ib_dma_unmap_single() or _page(), which do nothing for a software device */
void rtrs_faults_unmap(struct ib_device *dev, u64 addr, size_t size,
		       enum dma_data_direction dir)
{
	rtrs_faults_unmapped(dev, addr, size, dir);
	ib_dma_unmap_single(dev, addr, size, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_unmap);

/* Checks ib_dma_unmap_sg(). */
void rtrs_faults_unmap_sg(struct ib_device *dev, struct scatterlist *sgl,
			  int nents, enum dma_data_direction dir)
{
	rtrs_faults_unmapped_sg(dev, sgl, nents, dir);
	ib_dma_unmap_sg(dev, sgl, nents, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_unmap_sg);

/* Records mappings of rdma_rw_ctx_init(); its memory regions, for soft-iWARP, are not checked. */
int rtrs_faults_rw_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			struct scatterlist *sgl, u32 nents, u32 off, u64 remote,
			u32 rkey, enum dma_data_direction dir)
{
	int ret = rdma_rw_ctx_init(ctx, qp, port, sgl, nents, off, remote, rkey, dir);

	rtrs_faults_mapped_sg(qp->device, sgl, ret < 0 ? 0 : nents, dir);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_faults_rw_init);

/* Checks rdma_rw_ctx_destroy(). */
void rtrs_faults_rw_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			    struct scatterlist *sgl, u32 nents,
			    enum dma_data_direction dir)
{
	rtrs_faults_unmapped_sg(qp->device, sgl, nents, dir);
	rdma_rw_ctx_destroy(ctx, qp, port, sgl, nents, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_rw_destroy);

/* Checks a sync. */
void rtrs_faults_sync(struct ib_device *dev, u64 addr, size_t size,
		      enum dma_data_direction dir)
{
	struct rtrs_faults_map *map;

	/* A received message may be empty. */
	if (!size)
		return;
	guard(spinlock_irqsave)(&rtrs_faults_lock);
	map = rtrs_faults_covers(dev, addr, size, dir);
	if (!map || map->dir != dir)
		rtrs_faults_bug("synced: %zu bytes that aren't mapped so, direction %d",
				size, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_sync);

/* ---- memory regions ---- */

/* Records ib_alloc_mr(). */
struct ib_mr *rtrs_faults_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				   u32 max_nr_sg)
{
	struct ib_mr *real = ib_alloc_mr(pd, type, max_nr_sg);
	struct rtrs_faults_mr *mr;

	if (IS_ERR(real))
		return real;
	mr = rtrs_faults_zalloc(sizeof(*mr));
	mr->mr = real;
	INIT_LIST_HEAD(&mr->maps);
	guard(spinlock_irqsave)(&rtrs_faults_lock);
	hash_add(rtrs_faults_mrs, &mr->node, real->rkey >> 8);
	return real;
}
EXPORT_SYMBOL_GPL(rtrs_faults_alloc_mr);

static void rtrs_faults_empty_mr(struct rtrs_faults_mr *mr)
{
	struct rtrs_faults_map *map, *next;

	list_for_each_entry_safe(map, next, &mr->maps, entry) {
		list_del(&map->entry);
		map->mr = NULL;
	}
}

/* Checks that the memory of ib_map_mr_sg() is mapped. */
int rtrs_faults_map_mr_sg(struct ib_mr *real, struct scatterlist *sgl, int nents,
			  unsigned int *off, unsigned int page_size)
{
	int i, nr = ib_map_mr_sg(real, sgl, nents, off, page_size);
	struct rtrs_faults_map *map;
	struct rtrs_faults_mr *mr;
	struct scatterlist *sg;

	guard(spinlock_irqsave)(&rtrs_faults_lock);
	mr = rtrs_faults_find_mr(real->device, real->rkey);
	if (mr->valid)
		rtrs_faults_bug("a memory region gets other memory, but its key is valid");
	rtrs_faults_empty_mr(mr);
	mr->awaited = true;
	for_each_sg(sgl, sg, max(nr, 0), i) {
		map = rtrs_faults_exact(real->device, sg_dma_address(sg),
					sg_dma_len(sg), DMA_NONE);
		if (!map) {
			rtrs_faults_bug("a memory region is given memory that isn't mapped");
		} else if (!map->mr) {
			map->mr = mr;
			list_add_tail(&map->entry, &mr->maps);
		}
	}
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_mr_sg);

/* ib_dereg_mr() */
int rtrs_faults_dereg_mr(struct ib_mr *real)
{
	struct rtrs_faults_mr *mr;

	scoped_guard(spinlock_irqsave, &rtrs_faults_lock) {
		mr = rtrs_faults_find_mr(real->device, real->rkey);
		rtrs_faults_empty_mr(mr);
		hash_del(&mr->node);
	}
	kfree(mr);
	return ib_dereg_mr(real);
}
EXPORT_SYMBOL_GPL(rtrs_faults_dereg_mr);

static void rtrs_faults_invalidate(const struct rtrs_faults_qp *q, u32 key)
{
	struct rtrs_faults_mr *mr = rtrs_faults_find_mr(q->qp->device, key);

	if (mr && mr->mr->pd == q->qp->pd)
		mr->valid = false;
}

/* ---- work requests ---- */

static void rtrs_faults_check_mr(const struct rtrs_faults_mr *mr,
				 enum dma_data_direction dir)
{
	struct rtrs_faults_map *map;

	if (list_empty(&mr->maps))
		rtrs_faults_bug("a memory region's memory isn't mapped");
	list_for_each_entry(map, &mr->maps, entry)
		if (!rtrs_faults_allows(map, dir))
			rtrs_faults_bug("a memory region's memory is mapped the other way");
}

static void rtrs_faults_check_reg(const struct rtrs_faults_qp *q,
				  const struct ib_reg_wr *wr)
{
	struct rtrs_faults_mr *mr = rtrs_faults_find_mr(q->qp->device,
							wr->mr->rkey);

	/* A memory region of rdma_rw */
	if (!mr && rdma_protocol_iwarp(q->qp->device, 1))
		return;
	if (!mr || mr->mr != wr->mr) {
		rtrs_faults_bug("a memory region is registered that isn't there");
		return;
	}
	if (wr->mr->pd != q->qp->pd)
		rtrs_faults_bug("a memory region is registered in another domain");
	if (wr->key != wr->mr->rkey && wr->key != wr->mr->lkey)
		rtrs_faults_bug("a memory region is registered under another one's key");
	if (mr->valid)
		rtrs_faults_bug("a memory region is registered, but its old key is valid");
	rtrs_faults_check_mr(mr, wr->access & IB_ACCESS_REMOTE_WRITE ?
			     DMA_FROM_DEVICE : DMA_TO_DEVICE);
	mr->valid = true;
	mr->awaited = false;
}

/* @dir: direction of the work request */
static void rtrs_faults_check_sge(const struct rtrs_faults_qp *q,
				  const struct ib_sge *sge,
				  enum dma_data_direction dir,
				  struct rtrs_faults_wr *entry)
{
	const struct ib_pd *pd = q->qp->pd;
	struct rtrs_faults_map *map;
	struct rtrs_faults_mr *mr;

	if (!sge->length)
		return;
	if (sge->lkey != pd->local_dma_lkey) {
		mr = rtrs_faults_find_mr(pd->device, sge->lkey);
		if (!mr && rdma_protocol_iwarp(pd->device, 1))
			return;
		if (!mr || mr->mr->pd != pd || mr->mr->lkey != sge->lkey)
			rtrs_faults_bug("a work request has key %#x, which isn't of its domain",
					sge->lkey);
		else if (!mr->valid)
			rtrs_faults_bug("a work request has a key that isn't valid");
		else
			rtrs_faults_check_mr(mr, dir);
		return;
	}
	map = rtrs_faults_covers(pd->device, sge->addr, sge->length, dir);
	if (!map) {
		rtrs_faults_bug("a work request has %u bytes that aren't mapped",
				sge->length);
		return;
	}
	if (!rtrs_faults_allows(map, dir))
		rtrs_faults_bug("a work request has %u bytes that are mapped the other way",
				sge->length);
	map->busy++;
	entry->maps[entry->nr++] = map;
}

static struct rtrs_faults_wr *rtrs_faults_new_wr(const void *wr, int nr_sge,
						 const struct ib_cqe *cqe)
{
	struct rtrs_faults_wr *entry;

	entry = rtrs_faults_zalloc(struct_size(entry, maps, nr_sge));
	entry->wr = wr;
	entry->cqe = cqe;
	return entry;
}

static void rtrs_faults_check_send(struct rtrs_faults_qp *q,
				   const struct ib_send_wr *wr)
{
	/* The device copies inline data. */
	int i, nr_sge = wr->send_flags & IB_SEND_INLINE ? 0 : wr->num_sge;
	struct rtrs_faults_wr *entry;

	entry = rtrs_faults_new_wr(wr, nr_sge, wr->wr_cqe);
	entry->signaled = wr->send_flags & IB_SEND_SIGNALED;
	entry->mark = q->ended && wr->opcode == IB_WR_RDMA_WRITE && !wr->num_sge;
	list_add_tail(&entry->entry, &q->sends);
	if (wr->opcode == IB_WR_REG_MR)
		rtrs_faults_check_reg(q, reg_wr(wr));
	if (wr->opcode == IB_WR_LOCAL_INV)
		entry->invalidates = wr->ex.invalidate_rkey;
	for (i = 0; i < nr_sge; i++)
		rtrs_faults_check_sge(q, &wr->sg_list[i],
				      wr->opcode == IB_WR_RDMA_READ ?
				      DMA_FROM_DEVICE : DMA_TO_DEVICE, entry);
}

static void rtrs_faults_check_recv(struct rtrs_faults_qp *q,
				   const struct ib_recv_wr *wr)
{
	struct rtrs_faults_wr *entry;
	int i;

	if (!wr->num_sge)
		return;
	entry = rtrs_faults_new_wr(wr, wr->num_sge, wr->wr_cqe);
	list_add_tail(&entry->entry, &q->recvs);
	for (i = 0; i < wr->num_sge; i++)
		rtrs_faults_check_sge(q, &wr->sg_list[i], DMA_FROM_DEVICE, entry);
}

static void rtrs_faults_end_wr(struct rtrs_faults_wr *entry)
{
	list_del(&entry->entry);
	while (entry->nr)
		rtrs_faults_put_map(entry->maps[--entry->nr]);
	kfree(entry);
}

static void rtrs_faults_end_all(struct list_head *list)
{
	struct rtrs_faults_wr *entry, *next;

	list_for_each_entry_safe(entry, next, list, entry)
		rtrs_faults_end_wr(entry);
}

/* The device refused this work request. */
static void rtrs_faults_refused(struct list_head *list, const void *wr)
{
	struct rtrs_faults_wr *entry;

	list_for_each_entry_reverse(entry, list, entry)
		if (entry->wr == wr) {
			rtrs_faults_end_wr(entry);
			return;
		}
}

/* Checks ib_post_send() and ib_post_recv(). */
#define RTRS_FAULTS_POST(what)						\
int rtrs_faults_post_##what(struct ib_qp *qp, const struct ib_##what##_wr *first, \
			    const struct ib_##what##_wr **bad)		\
{									\
	const struct ib_##what##_wr *wr, *refused = NULL;		\
	struct rtrs_faults_qp *q;					\
	int ret;							\
									\
	scoped_guard(spinlock_irqsave, &rtrs_faults_lock) {		\
		q = rtrs_faults_find_qp(qp);				\
		for (wr = first; wr && q; wr = wr->next)		\
			rtrs_faults_check_##what(q, wr);		\
	}								\
	ret = ib_post_##what(qp, first, &refused);			\
	if (ret && q) {							\
		guard(spinlock_irqsave)(&rtrs_faults_lock);		\
		for (wr = refused; wr; wr = wr->next)			\
			rtrs_faults_refused(&q->what##s, wr);		\
	}								\
	if (bad)							\
		*bad = refused;						\
	return ret;							\
}									\
EXPORT_SYMBOL_GPL(rtrs_faults_post_##what)

RTRS_FAULTS_POST(send);
RTRS_FAULTS_POST(recv);

/* ---- completions ---- */

static struct rtrs_faults_wr *rtrs_faults_of_cqe(struct list_head *list,
						 const struct ib_cqe *cqe,
						 bool signaled)
{
	struct rtrs_faults_wr *entry;

	list_for_each_entry(entry, list, entry)
		if (entry->cqe == cqe && (entry->signaled || !signaled))
			return entry;
	return NULL;
}

/* All sends up to this one have ended. A flushed send has invalidated nothing. */
static void rtrs_faults_sent(struct rtrs_faults_qp *q, const struct ib_cqe *cqe, bool flushed)
{
	struct rtrs_faults_wr *entry, *next, *last;
	bool end = false;

	last = rtrs_faults_of_cqe(&q->sends, cqe, !flushed);
	if (!last)
		return;
	list_for_each_entry_safe(entry, next, &q->sends, entry) {
		if (end)
			return;
		end = entry == last;
		if (entry->invalidates && !flushed)
			rtrs_faults_invalidate(q, entry->invalidates);
		q->drained |= entry->mark;
		rtrs_faults_end_wr(entry);
	}
}

static void rtrs_faults_completed(const struct ib_wc *wc)
{
	struct rtrs_faults_qp *q = rtrs_faults_find_qp(wc->qp);
	struct rtrs_faults_wr *entry;

	if (!q)
		return;
	if (wc->status == IB_WC_SUCCESS && !(wc->opcode & IB_WC_RECV)) {
		rtrs_faults_sent(q, wc->wr_cqe, false);
		return;
	}
	/* After an error, the completion does not tell the queue. */
	entry = rtrs_faults_of_cqe(&q->recvs, wc->wr_cqe, false);
	if (entry)
		rtrs_faults_end_wr(entry);
	else if (wc->status != IB_WC_SUCCESS)
		rtrs_faults_sent(q, wc->wr_cqe, true);
	if (wc->status == IB_WC_SUCCESS && wc->wc_flags & IB_WC_WITH_INVALIDATE)
		rtrs_faults_invalidate(q, wc->ex.invalidate_rkey);
}

static int rtrs_faults_poll_cq(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	int i, ret = rtrs_faults_real_poll(cq, nr, wc);

	guard(spinlock_irqsave)(&rtrs_faults_lock);
	for (i = 0; i < ret; i++)
		rtrs_faults_completed(&wc[i]);
	return ret;
}

/* ---- queue pairs ---- */

/* Records a new queue pair. */
void rtrs_faults_add_qp(struct ib_qp *qp)
{
	struct rtrs_faults_qp *q;

	if (qp->device->ops.poll_cq != rtrs_faults_poll_cq)
		return;
	q = rtrs_faults_zalloc(sizeof(*q));
	q->qp = qp;
	INIT_LIST_HEAD(&q->sends);
	INIT_LIST_HEAD(&q->recvs);
	guard(spinlock_irqsave)(&rtrs_faults_lock);
	hash_add(rtrs_faults_qps, &q->node, (unsigned long)qp);
}

static void rtrs_faults_drained(struct ib_qp *qp, bool sends)
{
	struct rtrs_faults_qp *q;

	guard(spinlock_irqsave)(&rtrs_faults_lock);
	q = rtrs_faults_find_qp(qp);
	if (q) {
		q->drained = true;
		rtrs_faults_end_all(sends ? &q->sends : &q->recvs);
	}
}

/* ib_modify_qp(); a caller that drains a queue pair itself posts a mark afterwards */
int rtrs_faults_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct rtrs_faults_qp *q;

	scoped_guard(spinlock_irqsave, &rtrs_faults_lock) {
		q = rtrs_faults_find_qp(qp);
		if (q && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
			q->ended = true;
	}
	return ib_modify_qp(qp, attr, mask);
}
EXPORT_SYMBOL_GPL(rtrs_faults_modify_qp);

/* ib_drain_sq(), after which all sends have ended */
void rtrs_faults_drain_sq(struct ib_qp *qp)
{
	ib_drain_sq(qp);
	rtrs_faults_drained(qp, true);
}
EXPORT_SYMBOL_GPL(rtrs_faults_drain_sq);

/* ib_drain_rq(), after which all receives have ended */
void rtrs_faults_drain_rq(struct ib_qp *qp)
{
	ib_drain_rq(qp);
	rtrs_faults_drained(qp, false);
}
EXPORT_SYMBOL_GPL(rtrs_faults_drain_rq);

/* rdma_destroy_qp(). The record is removed first, as the address may be reused at once. */
void rtrs_faults_destroy_qp(struct rdma_cm_id *id)
{
	struct rtrs_faults_qp *q;

	scoped_guard(spinlock_irqsave, &rtrs_faults_lock) {
		q = rtrs_faults_find_qp(id->qp);
		if (q)
			hash_del(&q->node);
	}
	rdma_destroy_qp(id);
	if (!q)
		return;
	scoped_guard(spinlock_irqsave, &rtrs_faults_lock) {
		rtrs_faults_end_all(&q->sends);
		rtrs_faults_end_all(&q->recvs);
	}
	kfree(q);
}
EXPORT_SYMBOL_GPL(rtrs_faults_destroy_qp);

/* ---- devices ---- */

static int rtrs_faults_look_at(struct ib_device *dev)
{
	if (rtrs_faults_real_poll && rtrs_faults_real_poll != dev->ops.poll_cq)
		return -EOPNOTSUPP;
	rtrs_faults_real_poll = dev->ops.poll_cq;
	dev->ops.poll_cq = rtrs_faults_poll_cq;
	return 0;
}

/*
 * A device that is removed still has connections, which end before the removal. When this module is
 * unloaded, the modules that depend on it, and their completion queues, do not exist any more.
 */
static void rtrs_faults_look_away(struct ib_device *dev, void *data)
{
	if (rtrs_faults_exiting)
		dev->ops.poll_cq = rtrs_faults_real_poll;
}

static struct ib_client rtrs_faults_verbs_client = {
	.name	= "rtrs-faults-verbs",
	.add	= rtrs_faults_look_at,
	.remove	= rtrs_faults_look_away,
};

/* Checks all present and future devices. */
int rtrs_faults_verbs_init(void)
{
	return ib_register_client(&rtrs_faults_verbs_client);
}

/* Ends the checks. */
void rtrs_faults_verbs_exit(void)
{
	rtrs_faults_exiting = true;
	ib_unregister_client(&rtrs_faults_verbs_client);
}
