// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at what the drivers ask of RDMA devices as an IOMMU and a strict adapter would.
 * soft-RoCE takes memory that isn't mapped, or mapped for the other direction. Here
 *
 * - what a work request lists is mapped, in a direction that it may use, under a key of the
 *   queue pair's own domain
 * - a memory region is registered in its own domain, with the key and the rights that its
 *   memory allows
 * - memory is unmapped as it was mapped, when no work request uses it any more and no key
 *   gives access to it
 * - what is synced is mapped, in that direction
 *
 * Whatever isn't so is logged with "BUG: ", and where it was asked for.
 *
 * A work request is over when its completion is polled, or that of a later one in the same
 * queue; a queue pair that was drained reaches nothing any more.
 */
#include <linux/hashtable.h>
#include <linux/interval_tree_generic.h>
#include <linux/list.h>
#include <linux/module.h>

#include "faults.h"

/* Here they are the real ones. */
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

/* So many complaints are enough. */
#define RTRS_FAULTS_BUGS	10
/* Attempts to allocate a record. A test that has allocations fail does so with one of them. */
#define RTRS_FAULTS_TRIES	100

/* Memory that is mapped for a device. */
struct rtrs_faults_map {
	struct rb_node rb;
	u64 first;
	u64 last;
	u64 subtree_last;
	struct ib_device *dev;
	enum dma_data_direction dir;
	unsigned int busy;		/* work requests that list it */
	bool unmapped;			/* though it was busy */
	struct rtrs_faults_mr *mr;	/* memory region that it is part of */
	struct list_head entry;		/* in rtrs_faults_mr.maps */
};

struct rtrs_faults_mr {
	struct hlist_node node;
	struct ib_mr *mr;
	bool valid;			/* its keys give access */
	bool awaited;			/* it has memory, and is to be registered */
	struct list_head maps;
};

/* A work request that the device works on. */
struct rtrs_faults_wr {
	struct list_head entry;
	const void *wr;
	const struct ib_cqe *cqe;
	bool signaled;
	bool mark;			/* posted to see that all before it are over */
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

/* Guards all that is here. */
static DEFINE_SPINLOCK(rtrs_faults_lock);
static struct rb_root_cached rtrs_faults_maps = RB_ROOT_CACHED;
static DEFINE_HASHTABLE(rtrs_faults_mrs, 10);
static DEFINE_HASHTABLE(rtrs_faults_qps, 8);
static unsigned int rtrs_faults_bugs;
static bool rtrs_faults_exiting;

/* That of all devices that are looked at: soft-RoCE's or soft-iWARP's. */
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

/* The caller may hold spinlocks. It can't go on without the record. */
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

/* Which mapping has all of this memory? Best one that allows the direction. */
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

/* Queue pairs of the domain that can still use its keys. */
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

/* It is another one's, if there are several of the same memory, such as the page of zeroes. */
static bool rtrs_faults_awaited(const struct rtrs_faults_map *map)
{
	return map->mr && map->mr->awaited;
}

/* The mapping that was made just so; best one that nothing uses, or is about to use. */
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
	unsigned long flags;

	map->first = addr;
	map->last = addr + len - 1;
	map->dev = dev;
	map->dir = dir;
	spin_lock_irqsave(&rtrs_faults_lock, flags);
	rtrs_faults_tree_insert(map, &rtrs_faults_maps);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
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
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	map = rtrs_faults_exact(dev, addr, len, dir);
	if (!map) {
		rtrs_faults_bug("unmapped: %llu bytes that weren't mapped so, direction %d",
				len, dir);
		goto out;
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
out:
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
}

/* ib_dma_map_single() that is remembered */
u64 rtrs_faults_map_single(struct ib_device *dev, void *ptr, size_t size,
			   enum dma_data_direction dir)
{
	u64 addr = ib_dma_map_single(dev, ptr, size, dir);

	rtrs_faults_mapped(dev, addr, size, dir);
	return addr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_single);

/* ib_dma_map_page() that is remembered */
u64 rtrs_faults_map_page(struct ib_device *dev, struct page *page,
			 unsigned long off, size_t size,
			 enum dma_data_direction dir)
{
	u64 addr = ib_dma_map_page(dev, page, off, size, dir);

	rtrs_faults_mapped(dev, addr, size, dir);
	return addr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_page);

/* ib_dma_map_sg() that is remembered */
int rtrs_faults_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
		       enum dma_data_direction dir)
{
	int i, nr = ib_dma_map_sg(dev, sgl, nents, dir);
	struct scatterlist *sg;

	for_each_sg(sgl, sg, nr, i)
		rtrs_faults_mapped(dev, sg_dma_address(sg), sg_dma_len(sg), dir);
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_sg);

/* ib_dma_unmap_single() or _page(): a software device has nothing to do for either. */
void rtrs_faults_unmap(struct ib_device *dev, u64 addr, size_t size,
		       enum dma_data_direction dir)
{
	rtrs_faults_unmapped(dev, addr, size, dir);
	ib_dma_unmap_single(dev, addr, size, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_unmap);

/* ib_dma_unmap_sg() of what was remembered */
void rtrs_faults_unmap_sg(struct ib_device *dev, struct scatterlist *sgl,
			  int nents, enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		rtrs_faults_unmapped(dev, sg_dma_address(sg), sg_dma_len(sg), dir);
	ib_dma_unmap_sg(dev, sgl, nents, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_unmap_sg);

/*
 * rdma_rw_ctx_init(), whose mappings are remembered; soft-RoCE needs no memory regions for it, and
 * those for soft-iWARP aren't looked at
 */
int rtrs_faults_rw_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			struct scatterlist *sgl, u32 nents, u32 off, u64 remote,
			u32 rkey, enum dma_data_direction dir)
{
	int i, ret = rdma_rw_ctx_init(ctx, qp, port, sgl, nents, off, remote, rkey, dir);
	struct scatterlist *sg;

	for_each_sg(sgl, sg, ret < 0 ? 0 : nents, i)
		rtrs_faults_mapped(qp->device, sg_dma_address(sg), sg_dma_len(sg), dir);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_faults_rw_init);

/* rdma_rw_ctx_destroy() of what was remembered */
void rtrs_faults_rw_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			    struct scatterlist *sgl, u32 nents,
			    enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		rtrs_faults_unmapped(qp->device, sg_dma_address(sg), sg_dma_len(sg), dir);
	rdma_rw_ctx_destroy(ctx, qp, port, sgl, nents, dir);
}
EXPORT_SYMBOL_GPL(rtrs_faults_rw_destroy);

/* Look at what is to be synced */
void rtrs_faults_sync(struct ib_device *dev, u64 addr, size_t size,
		      enum dma_data_direction dir)
{
	struct rtrs_faults_map *map;
	unsigned long flags;

	/* An empty message may have come. */
	if (!size)
		return;
	spin_lock_irqsave(&rtrs_faults_lock, flags);
	map = rtrs_faults_covers(dev, addr, size, dir);
	if (!map || map->dir != dir)
		rtrs_faults_bug("synced: %zu bytes that aren't mapped so, direction %d",
				size, dir);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
}
EXPORT_SYMBOL_GPL(rtrs_faults_sync);

/* ---- memory regions ---- */

/* ib_alloc_mr() of a region that is looked at */
struct ib_mr *rtrs_faults_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				   u32 max_nr_sg)
{
	struct ib_mr *real = ib_alloc_mr(pd, type, max_nr_sg);
	struct rtrs_faults_mr *mr;
	unsigned long flags;

	if (IS_ERR(real))
		return real;
	mr = rtrs_faults_zalloc(sizeof(*mr));
	mr->mr = real;
	INIT_LIST_HEAD(&mr->maps);
	spin_lock_irqsave(&rtrs_faults_lock, flags);
	hash_add(rtrs_faults_mrs, &mr->node, real->rkey >> 8);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
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

/* ib_map_mr_sg() of memory that has to be mapped */
int rtrs_faults_map_mr_sg(struct ib_mr *real, struct scatterlist *sgl, int nents,
			  unsigned int *off, unsigned int page_size)
{
	int i, nr = ib_map_mr_sg(real, sgl, nents, off, page_size);
	struct rtrs_faults_map *map;
	struct rtrs_faults_mr *mr;
	struct scatterlist *sg;
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
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
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
	return nr;
}
EXPORT_SYMBOL_GPL(rtrs_faults_map_mr_sg);

/* ib_dereg_mr(), and forget it */
int rtrs_faults_dereg_mr(struct ib_mr *real)
{
	struct rtrs_faults_mr *mr;
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	mr = rtrs_faults_find_mr(real->device, real->rkey);
	rtrs_faults_empty_mr(mr);
	hash_del(&mr->node);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
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

	/* rdma_rw has some of its own. */
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

/* @dir: what the work request does with the memory */
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
	/* What is inline, the device copies. */
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

/* The device refused this one. */
static void rtrs_faults_refused(struct list_head *list, const void *wr)
{
	struct rtrs_faults_wr *entry;

	list_for_each_entry_reverse(entry, list, entry)
		if (entry->wr == wr) {
			rtrs_faults_end_wr(entry);
			return;
		}
}

/* ib_post_send() and ib_post_recv(), with a look at each work request */
#define RTRS_FAULTS_POST(what)						\
int rtrs_faults_post_##what(struct ib_qp *qp, const struct ib_##what##_wr *first, \
			    const struct ib_##what##_wr **bad)		\
{									\
	const struct ib_##what##_wr *wr, *refused = NULL;		\
	struct rtrs_faults_qp *q;					\
	unsigned long flags;						\
	int ret;							\
									\
	spin_lock_irqsave(&rtrs_faults_lock, flags);			\
	q = rtrs_faults_find_qp(qp);					\
	for (wr = first; wr && q; wr = wr->next)			\
		rtrs_faults_check_##what(q, wr);			\
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);		\
	ret = ib_post_##what(qp, first, &refused);			\
	if (ret && q) {							\
		spin_lock_irqsave(&rtrs_faults_lock, flags);		\
		for (wr = refused; wr; wr = wr->next)			\
			rtrs_faults_refused(&q->what##s, wr);		\
		spin_unlock_irqrestore(&rtrs_faults_lock, flags);	\
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

/* All sends before it are done with it. What was flushed has invalidated nothing. */
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
	/* After an error, nothing says of which queue it is. */
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
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	for (i = 0; i < ret; i++)
		rtrs_faults_completed(&wc[i]);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
	return ret;
}

/* ---- queue pairs ---- */

/* Look at a new queue pair */
void rtrs_faults_add_qp(struct ib_qp *qp)
{
	struct rtrs_faults_qp *q;
	unsigned long flags;

	if (qp->device->ops.poll_cq != rtrs_faults_poll_cq)
		return;
	q = rtrs_faults_zalloc(sizeof(*q));
	q->qp = qp;
	INIT_LIST_HEAD(&q->sends);
	INIT_LIST_HEAD(&q->recvs);
	spin_lock_irqsave(&rtrs_faults_lock, flags);
	hash_add(rtrs_faults_qps, &q->node, (unsigned long)qp);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
}

static void rtrs_faults_drained(struct ib_qp *qp, bool sends)
{
	struct rtrs_faults_qp *q;
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	q = rtrs_faults_find_qp(qp);
	if (q) {
		q->drained = true;
		rtrs_faults_end_all(sends ? &q->sends : &q->recvs);
	}
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
}

/* ib_modify_qp(): a caller that sees to draining itself posts a mark after that */
int rtrs_faults_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct rtrs_faults_qp *q;
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	q = rtrs_faults_find_qp(qp);
	if (q && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
		q->ended = true;
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
	return ib_modify_qp(qp, attr, mask);
}
EXPORT_SYMBOL_GPL(rtrs_faults_modify_qp);

/* ib_drain_sq(), after which no send is outstanding */
void rtrs_faults_drain_sq(struct ib_qp *qp)
{
	ib_drain_sq(qp);
	rtrs_faults_drained(qp, true);
}
EXPORT_SYMBOL_GPL(rtrs_faults_drain_sq);

/* ib_drain_rq(), after which no receive is outstanding */
void rtrs_faults_drain_rq(struct ib_qp *qp)
{
	ib_drain_rq(qp);
	rtrs_faults_drained(qp, false);
}
EXPORT_SYMBOL_GPL(rtrs_faults_drain_rq);

/*
 * rdma_destroy_qp(), and forget the queue pair: before it is freed, as another one may be created at
 * the same address right after.
 */
void rtrs_faults_destroy_qp(struct rdma_cm_id *id)
{
	struct rtrs_faults_qp *q;
	unsigned long flags;

	spin_lock_irqsave(&rtrs_faults_lock, flags);
	q = rtrs_faults_find_qp(id->qp);
	if (q)
		hash_del(&q->node);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
	rdma_destroy_qp(id);
	if (!q)
		return;
	spin_lock_irqsave(&rtrs_faults_lock, flags);
	rtrs_faults_end_all(&q->sends);
	rtrs_faults_end_all(&q->recvs);
	spin_unlock_irqrestore(&rtrs_faults_lock, flags);
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
 * A device that goes away still has connections, all of which end before it is gone. When
 * this module goes, nobody polls: the modules that depend on it went before, and so did their
 * completion queues.
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

/* Look at all devices, those to come, too */
int rtrs_faults_verbs_init(void)
{
	return ib_register_client(&rtrs_faults_verbs_client);
}

/* Look at them no longer */
void rtrs_faults_verbs_exit(void)
{
	rtrs_faults_exiting = true;
	ib_unregister_client(&rtrs_faults_verbs_client);
}
