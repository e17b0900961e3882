// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory for the data of requests that the client cannot access. With RTRS_FEATURE_SLOTS, a request
 * whose data fit in a slot has one page, possibly compound; if a slot is larger than PAGE_SIZE and
 * memory is fragmented, a buffer of single pages. A larger request has a buffer of equal pieces.
 * The data of a write are fetched into it. The data of a read are sent from it, and it is released
 * when they have been sent. Without slots, the data of a write are copied from the chunk to a page
 * or a buffer, and the data of a read are copied to the chunk.
 *
 * A page stays with its slot for the next request, as long as memory is plentiful and the slot is
 * used at least once between two heartbeats.
 *
 * Each session has a reserve, which one request at a time can use. A request waits if no other
 * memory is available and the reserve is in use. It is retried when its session releases a buffer;
 * when any session releases one, if its own session is selected to be served next; and every
 * RTRS_SRV_BUF_MS, since other users of memory may free some. So each session makes progress, even
 * if the machine can only free memory by writing the data of that session. Small requests don't
 * wait behind large ones, as a page is easier to allocate.
 *
 * While sessions wait, only one of them may get memory beyond its fair share, for one request: the
 * session that uses the least memory. Otherwise, a session that releases a buffer would get it back
 * before others retry, or a session that never releases buffers would get all of them. A work item
 * selects that session.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "srv.h"

/* Delay between two attempts to allocate memory. */
#define RTRS_SRV_BUF_MS		20

/*
 * The queue of sessions that wait for memory, the session that is served next, and the number of
 * requests that had to wait since the module was loaded. The lock is taken in process context only.
 */
static LIST_HEAD(rtrs_srv_buf_queue);
static const struct rtrs_srv_bufs *rtrs_srv_buf_next;
unsigned long rtrs_srv_buf_waits;
static DEFINE_SPINLOCK(rtrs_srv_buf_queue_lock);

/*
 * Selects the waiting session with the least memory; of several, the one that has waited longest.
 */
static void rtrs_srv_buf_choose(struct work_struct *work)
{
	struct rtrs_srv_bufs *bufs, *least = NULL;
	s64 used, least_used = S64_MAX;

	spin_lock(&rtrs_srv_buf_queue_lock);
	list_for_each_entry(bufs, &rtrs_srv_buf_queue, queue_entry) {
		used = atomic64_read(&bufs->used);
		if (used < least_used) {
			least = bufs;
			least_used = used;
		}
		if (!used)
			break;
	}
	WRITE_ONCE(rtrs_srv_buf_next, least);
	if (least)
		mod_delayed_work(rtrs_srv_pull_wq, &least->work, 0);
	spin_unlock(&rtrs_srv_buf_queue_lock);
}

VISIBLE_IF_KUNIT DECLARE_WORK(rtrs_srv_buf_chooser, rtrs_srv_buf_choose);

/* Queues the work item that chooses the next session. */
static void rtrs_srv_buf_choose_next(void)
{
	if (!list_empty(&rtrs_srv_buf_queue))
		queue_work(rtrs_srv_pull_wq, &rtrs_srv_buf_chooser);
}

/* Queues the session unless it is queued. @new: its request waits for the first time. */
static void rtrs_srv_bufs_enqueue(struct rtrs_srv_bufs *bufs, bool new)
{
	bool added;

	spin_lock(&rtrs_srv_buf_queue_lock);
	WRITE_ONCE(rtrs_srv_buf_waits, rtrs_srv_buf_waits + new);
	added = list_empty(&bufs->queue_entry);
	if (added)
		list_add_tail(&bufs->queue_entry, &rtrs_srv_buf_queue);
	spin_unlock(&rtrs_srv_buf_queue_lock);
	if (added)
		rtrs_srv_buf_choose_next();
}

/* Removes the session from the queue: it got memory, or doesn't need any more. */
static void rtrs_srv_bufs_dequeue(struct rtrs_srv_bufs *bufs)
{
	if (list_empty(&bufs->queue_entry))
		return;
	spin_lock(&rtrs_srv_buf_queue_lock);
	list_del_init(&bufs->queue_entry);
	if (rtrs_srv_buf_next == bufs)
		WRITE_ONCE(rtrs_srv_buf_next, NULL);
	spin_unlock(&rtrs_srv_buf_queue_lock);
	rtrs_srv_buf_choose_next();
}

/**
 * rtrs_srv_bufs_init() - initialize a session's members for buffers
 * @sess: a new session
 */
void rtrs_srv_bufs_init(struct rtrs_srv_sess *sess)
{
	spin_lock_init(&sess->bufs.lock);
	INIT_LIST_HEAD(&sess->bufs.small);
	INIT_LIST_HEAD(&sess->bufs.large);
	INIT_LIST_HEAD(&sess->bufs.queue_entry);
	INIT_DELAYED_WORK(&sess->bufs.work, rtrs_srv_bufs_work);
}

static void rtrs_srv_buf_free(struct rtrs_srv_buf *buf)
{
	sgl_free_order(buf->sgl, buf->order);
	kfree(buf);
}

/* Returns the bytes of memory of a buffer for @data_len bytes in pieces of up to @order. */
static u32 rtrs_srv_buf_bytes(u32 data_len, unsigned int order)
{
	return round_up(data_len, PAGE_SIZE << min_t(unsigned int, order, get_order(data_len)));
}

static struct rtrs_srv_buf *rtrs_srv_buf_alloc(struct rtrs_srv_sess *sess, u32 data_len,
					       unsigned int order, gfp_t gfp)
{
	struct rtrs_srv_buf *buf;

	buf = kzalloc(sizeof(*buf), gfp);
	if (!buf)
		return NULL;
	buf->sess = sess;
	buf->bytes = rtrs_srv_buf_bytes(data_len, order);
	buf->order = min_t(unsigned int, order, get_order(data_len));
	/* Compound pages, as the upper layer may take references on parts of them. */
	buf->sgl = sgl_alloc_order(data_len, buf->order, false, gfp | __GFP_COMP, NULL);
	if (!buf->sgl) {
		kfree(buf);
		return NULL;
	}
	return buf;
}

/**
 * rtrs_srv_bufs_setup() - allocate a session's reserve, unless it exists
 * @path: path of the session; nothing is done if the data of its requests stay in chunks
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM. rtrs_srv_bufs_free() undoes it.
 */
int rtrs_srv_bufs_setup(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	/* Large enough for all paths of the session, with and without RTRS_FEATURE_SLOTS. */
	u32 bytes = max_t(u32, RTRS_SRV_MAX_IO, sess->chunk_size);
	struct rtrs_srv_buf *buf;
	int ret = 0;

	if (!rtrs_srv_has_slots(path) && !sess->always_invalidate)
		return 0;
	mutex_lock(&sess->up_lock);
	if (sess->bufs.reserve)
		goto unlock;
	if (!sess->bufs.charged)
		ret = rtrs_srv_mem_charge(&sess->charged, bytes, path->path.name,
					  path->path.log);
	if (ret)
		goto unlock;
	sess->bufs.charged = true;
	buf = rtrs_srv_buf_alloc(sess, bytes, RTRS_SRV_BUF_MIN_ORDER, GFP_KERNEL);
	if (buf) {
		buf->reserve = true;
		sess->bufs.reserve = buf;
	} else {
		ret = -ENOMEM;
	}
unlock:
	mutex_unlock(&sess->up_lock);
	return ret;
}

/**
 * rtrs_srv_bufs_free() - undo rtrs_srv_bufs_setup(), if it was called
 * @sess: session without paths
 */
void rtrs_srv_bufs_free(struct rtrs_srv_sess *sess)
{
	rtrs_srv_bufs_dequeue(&sess->bufs);
	cancel_delayed_work_sync(&sess->bufs.work);
	if (sess->bufs.reserve)
		rtrs_srv_buf_free(sess->bufs.reserve);
	sess->bufs.reserve = NULL;
}

/* Copies data; whole pages as fast as the architecture can. */
static void rtrs_srv_copy(void *to, void *from, u32 bytes)
{
	if (PAGE_ALIGNED(to) && PAGE_ALIGNED(from))
		for (; bytes >= PAGE_SIZE; bytes -= PAGE_SIZE, to += PAGE_SIZE, from += PAGE_SIZE)
			copy_page(to, from);
	memcpy(to, from, bytes);
}

/**
 * rtrs_srv_buf_copy() - copy the data of a write from its chunk, or of a read to its chunk
 * @io: request that has memory for its data, and whose data fit in the chunk
 *
 * Context: any.
 */
void rtrs_srv_buf_copy(const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_op *op = &io->op;
	struct scatterlist *sg;
	void *chunk = io->chunk;

	for (sg = op->sgl; sg < op->sgl + op->nents; sg++) {
		if (op->dir == DMA_TO_DEVICE)
			rtrs_srv_copy(sg_virt(sg), chunk, sg->length);
		else
			rtrs_srv_copy(chunk, sg_virt(sg), sg->length);
		chunk += sg->length;
	}
}

/**
 * rtrs_srv_buf_map() - map a part of a buffer, and prepare to fetch or send its data
 * @io: request with the buffer and the address of the client's memory
 * @rw: context to be initialized
 * @sg: first entry of the part, in &rtrs_srv_op.sgl of @io
 * @nents: number of entries of the part
 * @off: offset of the part in the data, in bytes
 *
 * IOMMU space, bounce buffers or memory regions may be exhausted temporarily: callers retry after
 * RTRS_SRV_MAP_MS. rdma_rw_ctx_destroy() undoes the mapping.
 *
 * Context: process. Doesn't wait for I/O: freeing memory may depend on the write that uses this
 * buffer, or on a request that waits for it.
 * Return: a negative errno on failure.
 */
int rtrs_srv_buf_map(const struct rtrs_srv_io *io, struct rdma_rw_ctx *rw,
		     struct scatterlist *sg, u32 nents, u64 off)
{
	enum dma_data_direction dir = io->fetch ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	struct rdma_cm_id *id = io->con->con.cm_id;
	unsigned int noio = memalloc_noio_save();
	int ret;

	ret = rdma_rw_ctx_init(rw, id->qp, id->port_num, sg, nents, 0, io->desc_addr + off,
			       io->desc_key, dir);
	memalloc_noio_restore(noio);
	return ret;
}

/* Sets the scatterlist of an op to the beginning of a buffer, as long as the op's data. */
static void rtrs_srv_use_buf(struct rtrs_srv_io *io, struct rtrs_srv_buf *buf)
{
	u32 left = io->op.data_len;
	struct scatterlist *sg;

	io->buf = buf;
	io->op.sgl = buf->sgl;
	io->op.nents = 0;
	for (sg = buf->sgl; left; sg++) {
		sg->length = min_t(u32, page_size(sg_page(sg)), left);
		left -= sg->length;
		io->op.nents++;
	}
}

static void rtrs_srv_free_page(struct page *page)
{
	unsigned int order = compound_order(page);

	__free_pages(page, order);
	rtrs_srv_mem_account(-(int)(PAGE_SIZE << order));
}

static bool rtrs_srv_buf_page(struct rtrs_srv_io *io)
{
	u32 bytes = io->op.data_len;
	unsigned int order = get_order(bytes);

	io->page = xchg(&io->kept, NULL);
	if (unlikely(io->page && compound_order(io->page) < order)) {
		rtrs_srv_free_page(io->page);
		io->page = NULL;
	}
	if (unlikely(!io->page)) {
		io->page = alloc_pages(GFP_NOWAIT | __GFP_NOWARN | __GFP_COMP, order);
		if (!io->page)
			return false;
		rtrs_srv_mem_account(PAGE_SIZE << order);
	}
	sg_init_table(&io->sg, 1);
	sg_set_page(&io->sg, io->page, bytes, 0);
	io->op.sgl = &io->sg;
	io->op.nents = 1;
	return true;
}

/* Allocates a buffer in pieces of @order. @charged bytes of it are already counted as in use. */
static bool rtrs_srv_buf_pieces(struct rtrs_srv_io *io, unsigned int order, u32 charged)
{
	struct rtrs_srv_sess *sess = io->con->path->sess;
	struct rtrs_srv_buf *buf;

	buf = rtrs_srv_buf_alloc(sess, io->op.data_len, order, GFP_NOWAIT | __GFP_NOWARN);
	if (!buf)
		return false;
	if (buf->bytes != charged)
		rtrs_srv_mem_account((int)buf->bytes - (int)charged);
	atomic64_add(buf->bytes, &sess->bufs.used);
	rtrs_srv_use_buf(io, buf);
	return true;
}

static bool rtrs_srv_buf_large(struct rtrs_srv_io *io)
{
	u32 bytes = rtrs_srv_buf_bytes(io->op.data_len, RTRS_SRV_BUF_ORDER);
	struct rtrs_srv_sess *sess = io->con->path->sess;
	bool served_next = list_empty(&rtrs_srv_buf_queue) ||
			   READ_ONCE(rtrs_srv_buf_next) == &sess->bufs;

	if (!rtrs_srv_mem_try_account(sess, bytes, served_next))
		return false;
	if (rtrs_srv_buf_pieces(io, RTRS_SRV_BUF_ORDER, bytes) ||
	    rtrs_srv_buf_pieces(io, RTRS_SRV_BUF_MIN_ORDER, bytes))
		return true;
	rtrs_srv_mem_account(-(int)bytes);
	return false;
}

static bool rtrs_srv_io_small(const struct rtrs_srv_io *io)
{
	return io->op.data_len <= io->con->path->mem.max_page;
}

static bool rtrs_srv_buf_any(struct rtrs_srv_io *io)
{
	if (!rtrs_srv_io_small(io))
		return rtrs_srv_buf_large(io);
	if (likely(rtrs_srv_buf_page(io)))
		return true;
	/* Not for fetching: the send queue has no room for RDMA READs into single pages. */
	return io->op.data_len > PAGE_SIZE && !io->fetch && rtrs_srv_buf_pieces(io, 0, 0);
}

/*
 * Takes the session's reserve, or queues the request to wait for memory. @again: the request has
 * waited before and returns to the head of its queue.
 */
static int rtrs_srv_buf_reserve(struct rtrs_srv_io *io, bool again)
{
	struct rtrs_srv_bufs *bufs = &io->con->path->sess->bufs;
	struct list_head *waiting = rtrs_srv_io_small(io) ? &bufs->small : &bufs->large;
	bool taken;

	spin_lock_irq(&bufs->lock);
	/* New requests leave the reserve to waiting requests. */
	taken = !bufs->reserve_used &&
		(again || (list_empty(&bufs->small) && list_empty(&bufs->large)));
	if (taken)
		bufs->reserve_used = true;
	else if (again)
		list_add(&io->pending, waiting);
	else
		list_add_tail(&io->pending, waiting);
	spin_unlock_irq(&bufs->lock);
	if (taken) {
		rtrs_srv_use_buf(io, bufs->reserve);
		return 0;
	}
	rtrs_srv_bufs_enqueue(bufs, !again);
	queue_delayed_work(rtrs_srv_pull_wq, &bufs->work, msecs_to_jiffies(RTRS_SRV_BUF_MS));
	return -EINPROGRESS;
}

/**
 * rtrs_srv_buf_get() - allocate memory for the data of a request
 * @io: request with &rtrs_srv_op.data_len, which is from 1 to &rtrs_srv_mem.max_io
 *
 * Sets the scatterlist of the op.
 *
 * Context: process.
 * Return: 0; or -EINPROGRESS if no memory is available: then @io must not be accessed until
 * rtrs_srv_bufs_next() or rtrs_srv_bufs_forget() returns it.
 */
int rtrs_srv_buf_get(struct rtrs_srv_io *io)
{
	const struct rtrs_srv_bufs *bufs = &io->con->path->sess->bufs;

	/* A large request doesn't overtake large requests that wait. */
	if ((rtrs_srv_io_small(io) || list_empty(&bufs->large)) && rtrs_srv_buf_any(io))
		return 0;
	return rtrs_srv_buf_reserve(io, false);
}

/**
 * rtrs_srv_bufs_next() - allocate memory for the next waiting request
 * @sess: session of the request
 *
 * Context: the session's &rtrs_srv_bufs.work, which is never concurrent with itself.
 * Return: a request that got memory, or whose path isn't connected any more; or NULL.
 */
struct rtrs_srv_io *rtrs_srv_bufs_next(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_bufs *bufs = &sess->bufs;
	struct rtrs_srv_io *io;

	spin_lock_irq(&bufs->lock);
	io = list_first_entry_or_null(list_empty(&bufs->small) ? &bufs->large : &bufs->small,
				      struct rtrs_srv_io, pending);
	if (io)
		list_del_init(&io->pending);
	spin_unlock_irq(&bufs->lock);
	/*
	 * The session leaves the queue after one request. Requests that still wait queue it again.
	 */
	if (!io) {
		rtrs_srv_bufs_dequeue(bufs);
	} else if (rtrs_srv_path_state(io->con->path) == RTRS_SRV_CONNECTED) {
		if (rtrs_srv_buf_any(io))
			rtrs_srv_bufs_dequeue(bufs);
		else if (rtrs_srv_buf_reserve(io, true))
			return NULL;
	}
	return io;
}

static struct rtrs_srv_io *rtrs_srv_find_of_path(struct list_head *waiting,
						 const struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;

	list_for_each_entry(io, waiting, pending)
		if (io->con->path == path)
			return io;
	return NULL;
}

/**
 * rtrs_srv_bufs_forget() - end a request's wait for memory
 * @path: path that is closing
 *
 * Context: the path's closing work, after it has flushed &rtrs_srv_bufs.work. If that work finds a
 * request of the path later, it drops the request, as the path is closing.
 * Return: a request of @path that waited and now belongs to the caller; or NULL.
 */
struct rtrs_srv_io *rtrs_srv_bufs_forget(struct rtrs_srv_path *path)
{
	struct rtrs_srv_bufs *bufs = &path->sess->bufs;
	struct rtrs_srv_io *io;

	spin_lock_irq(&bufs->lock);
	io = rtrs_srv_find_of_path(&bufs->small, path) ?:
	     rtrs_srv_find_of_path(&bufs->large, path);
	if (io)
		list_del_init(&io->pending);
	spin_unlock_irq(&bufs->lock);
	return io;
}

static void rtrs_srv_bufs_wake(struct rtrs_srv_bufs *bufs)
{
	if (!list_empty(&bufs->small) || !list_empty(&bufs->large))
		mod_delayed_work(rtrs_srv_pull_wq, &bufs->work, 0);
}

/**
 * rtrs_srv_buf_put() - release a buffer
 * @buf: buffer that neither a request nor the device uses
 *
 * Context: any; the session can't be freed meanwhile.
 */
void rtrs_srv_buf_put(struct rtrs_srv_buf *buf)
{
	struct rtrs_srv_bufs *bufs = &buf->sess->bufs;
	unsigned long flags;

	if (!buf->reserve) {
		rtrs_srv_mem_account(-(int)buf->bytes);
		atomic64_sub(buf->bytes, &bufs->used);
		rtrs_srv_buf_free(buf);
		rtrs_srv_bufs_wake(bufs);
		rtrs_srv_buf_choose_next();
		return;
	}
	spin_lock_irqsave(&bufs->lock, flags);
	bufs->reserve_used = false;
	rtrs_srv_bufs_wake(bufs);
	spin_unlock_irqrestore(&bufs->lock, flags);
}

/* Keeps a page for the slot's next request, unless memory is scarce or the page has other users. */
static void rtrs_srv_put_page(struct rtrs_srv_io *io)
{
	struct rtrs_srv_ios *ios = &io->con->path->ios;
	struct page *page = io->page;

	io->page = NULL;
	if (unlikely(page_count(page) != 1 || !rtrs_srv_mem_plenty())) {
		rtrs_srv_free_page(page);
		return;
	}
	WRITE_ONCE(io->page_used, true);
	/*
	 * xchg() is a barrier: either rtrs_srv_bufs_age() sees the page, or this function sees its
	 * change of @kept.
	 */
	xchg(&io->kept, page);
	if (unlikely(!READ_ONCE(ios->kept)))
		WRITE_ONCE(ios->kept, true);
}

/**
 * rtrs_srv_bufs_age() - free pages that no request has used since the last call
 * @path: path whose requests are allocated
 *
 * Context: process; never concurrent for a path.
 */
void rtrs_srv_bufs_age(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	struct page *page;
	u32 i;

	if (!READ_ONCE(path->ios.kept))
		return;
	WRITE_ONCE(path->ios.kept, false);
	/* Pairs with rtrs_srv_put_page(). */
	smp_mb();
	for (i = 0; i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		if (!READ_ONCE(io->kept))
			continue;
		if (READ_ONCE(io->page_used)) {
			WRITE_ONCE(io->page_used, false);
			WRITE_ONCE(path->ios.kept, true);
			continue;
		}
		page = xchg(&io->kept, NULL);
		if (page)
			rtrs_srv_free_page(page);
	}
}

/**
 * rtrs_srv_bufs_forget_pages() - free all pages that are kept for requests
 * @path: path whose requests are finished
 */
void rtrs_srv_bufs_forget_pages(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	u32 i;

	for (i = 0; path->ios.mem && i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		if (io->kept)
			rtrs_srv_free_page(io->kept);
		io->kept = NULL;
	}
}

/**
 * rtrs_srv_io_put_data() - release the memory of a request's data
 * @io: request whose data are not used any more
 *
 * Context: any.
 */
void rtrs_srv_io_put_data(struct rtrs_srv_io *io)
{
	if (io->page)
		rtrs_srv_put_page(io);
	if (io->buf) {
		rtrs_srv_buf_put(io->buf);
		io->buf = NULL;
	}
}
