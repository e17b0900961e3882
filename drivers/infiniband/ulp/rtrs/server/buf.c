// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory for the data of requests, out of the client's reach. With RTRS_FEATURE_SLOTS, data of up
 * to a slot's size have a page of their own; if the slot is larger than a page and memory is
 * fragmented, a buffer of single pages. Larger ones have a buffer of several pieces: those of
 * a write are fetched into it; those of a read are sent from it, so that it is given back only when
 * they are sent. Without slots, what is read has a buffer until it is copied to the chunk.
 *
 * A page stays with its slot, for the next request, as long as memory is plentiful and the slot
 * is used at least once between two heartbeats.
 *
 * Each session has a reserve for one request at a time. If there is no other memory, and the
 * reserve is in use, a request waits until a buffer is given back, of its session, or of any
 * when it is its session's turn; and it looks for memory every RTRS_SRV_BUF_MS, as that may be
 * other than buffers. So each session goes on, even if writing what it sends is what frees
 * memory. Small requests don't wait behind large ones: a page is sooner to be had.
 *
 * Of the sessions that wait, the one that has least is next to get memory beyond its fair share,
 * for one request: the releasing session would win the buffer back before others look, and
 * one that releases nothing would collect all. One work item chooses the session.
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "srv.h"

/* From one look for memory to the next. */
#define RTRS_SRV_BUF_MS		20

/*
 * Sessions that wait for memory, the one that is next to get some, and the number of requests that
 * have waited since the module was loaded. The lock is taken in process context only.
 */
static LIST_HEAD(rtrs_srv_buf_turns);
static const struct rtrs_srv_bufs *rtrs_srv_buf_turn;
static unsigned long rtrs_srv_buf_waits;
static DEFINE_SPINLOCK(rtrs_srv_buf_turns_lock);

static int rtrs_srv_buf_waits_show(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(rtrs_srv_buf_waits));
}

static const struct kernel_param_ops rtrs_srv_buf_waits_ops = {
	.set = rtrs_srv_param_refuse,
	.get = rtrs_srv_buf_waits_show,
};

module_param_cb(memory_waits, &rtrs_srv_buf_waits_ops, NULL, 0444);
MODULE_PARM_DESC(memory_waits, "Requests that had to wait for memory");

/* Selects the waiting session with the least memory; of several, the one that waits longest. */
static void rtrs_srv_buf_choose(struct work_struct *work)
{
	struct rtrs_srv_bufs *bufs, *least = NULL;
	s64 used, least_used = S64_MAX;

	spin_lock(&rtrs_srv_buf_turns_lock);
	list_for_each_entry(bufs, &rtrs_srv_buf_turns, turn) {
		used = atomic64_read(&bufs->used);
		if (used < least_used) {
			least = bufs;
			least_used = used;
		}
		if (!used)
			break;
	}
	WRITE_ONCE(rtrs_srv_buf_turn, least);
	if (least)
		mod_delayed_work(rtrs_srv_pull_wq, &least->work, 0);
	spin_unlock(&rtrs_srv_buf_turns_lock);
}

VISIBLE_IF_KUNIT DECLARE_WORK(rtrs_srv_buf_chooser, rtrs_srv_buf_choose);

/* Queues the work item that chooses the next session. */
static void rtrs_srv_buf_call_next(void)
{
	if (!list_empty(&rtrs_srv_buf_turns))
		queue_work(rtrs_srv_pull_wq, &rtrs_srv_buf_chooser);
}

static void rtrs_srv_bufs_wait_turn(struct rtrs_srv_bufs *bufs, bool new)
{
	bool added;

	spin_lock(&rtrs_srv_buf_turns_lock);
	WRITE_ONCE(rtrs_srv_buf_waits, rtrs_srv_buf_waits + new);
	added = list_empty(&bufs->turn);
	if (added)
		list_add_tail(&bufs->turn, &rtrs_srv_buf_turns);
	spin_unlock(&rtrs_srv_buf_turns_lock);
	if (added)
		rtrs_srv_buf_call_next();
}

/* The session has got memory, or wants none any more. */
static void rtrs_srv_bufs_end_turn(struct rtrs_srv_bufs *bufs)
{
	if (list_empty(&bufs->turn))
		return;
	spin_lock(&rtrs_srv_buf_turns_lock);
	list_del_init(&bufs->turn);
	if (rtrs_srv_buf_turn == bufs)
		WRITE_ONCE(rtrs_srv_buf_turn, NULL);
	spin_unlock(&rtrs_srv_buf_turns_lock);
	rtrs_srv_buf_call_next();
}

static void rtrs_srv_bufs_look_again(struct rtrs_srv_bufs *bufs)
{
	queue_delayed_work(rtrs_srv_pull_wq, &bufs->work, msecs_to_jiffies(RTRS_SRV_BUF_MS));
}

/**
 * rtrs_srv_bufs_init() - initialize the members of buf.c
 * @sess: a new session
 */
void rtrs_srv_bufs_init(struct rtrs_srv_sess *sess)
{
	spin_lock_init(&sess->bufs.lock);
	INIT_LIST_HEAD(&sess->bufs.small);
	INIT_LIST_HEAD(&sess->bufs.large);
	INIT_LIST_HEAD(&sess->bufs.turn);
	INIT_DELAYED_WORK(&sess->bufs.work, rtrs_srv_bufs_work);
}

static void rtrs_srv_buf_free_pages(struct rtrs_srv_buf *buf)
{
	struct page *page;
	u32 i;

	for (i = 0; i < buf->nents; i++) {
		page = sg_page(&buf->sgl[i]);
		__free_pages(page, compound_order(page));
	}
	kfree(buf);
}

/* Bytes of memory that a buffer for so many bytes of data takes, in pieces of that order. */
static u32 rtrs_srv_buf_bytes(u32 data_len, unsigned int order)
{
	u32 rest = data_len % (PAGE_SIZE << order);

	return data_len - rest + (rest ? PAGE_SIZE << get_order(rest) : 0);
}

static struct rtrs_srv_buf *rtrs_srv_buf_alloc(struct rtrs_srv_sess *sess, u32 data_len,
					       unsigned int order, gfp_t gfp)
{
	u32 piece = PAGE_SIZE << order, left = data_len;
	u32 nents = DIV_ROUND_UP(data_len, piece);
	struct rtrs_srv_buf *buf;
	struct page *page;

	buf = kzalloc(struct_size(buf, sgl, nents), gfp);
	if (!buf)
		return NULL;
	buf->sess = sess;
	buf->bytes = rtrs_srv_buf_bytes(data_len, order);
	sg_init_table(buf->sgl, nents);
	while (buf->nents < nents) {
		piece = min(piece, left);
		/* Compound pages, as the upper layer may hand parts of them on. */
		page = alloc_pages(gfp | __GFP_COMP, get_order(piece));
		if (!page) {
			rtrs_srv_buf_free_pages(buf);
			return NULL;
		}
		sg_set_page(&buf->sgl[buf->nents++], page, piece, 0);
		left -= piece;
	}
	return buf;
}

/**
 * rtrs_srv_bufs_setup() - allocate a session's reserve, if it has none
 * @path: path of the session; nothing is done if its requests' data stay in chunks
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM. rtrs_srv_bufs_free() undoes it.
 */
int rtrs_srv_bufs_setup(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	/* Other paths of the session may be of the other kind. */
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
					  rtrs_srv_log(path));
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
 * rtrs_srv_bufs_free() - undo rtrs_srv_bufs_setup(), if it was done
 * @sess: session without paths
 */
void rtrs_srv_bufs_free(struct rtrs_srv_sess *sess)
{
	rtrs_srv_bufs_end_turn(&sess->bufs);
	cancel_delayed_work_sync(&sess->bufs.work);
	if (sess->bufs.reserve)
		rtrs_srv_buf_free_pages(sess->bufs.reserve);
	sess->bufs.reserve = NULL;
}

/**
 * rtrs_srv_buf_map() - map a part of a buffer, and prepare to fetch or send its data
 * @io: request with the buffer, and the client's memory
 * @rw: initialized
 * @sg: first entry of the part; &rtrs_srv_op.sgl of @io or a later one
 * @nents: entries of the part
 * @off: bytes of the buffer before it
 *
 * The space of an IOMMU, of bounce buffers, or memory regions may be used up for a moment: it is
 * to be tried again after RTRS_SRV_MAP_MS. rdma_rw_ctx_destroy() undoes it.
 *
 * Context: process. Doesn't wait for I/O, as what the client writes, or what waits for this
 * buffer, may be what frees memory.
 * Return: negative errno if it failed.
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

/* Sets the list of an op to the first bytes of a buffer. */
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
	rtrs_srv_mem_use(-(int)(PAGE_SIZE << order));
}

static struct page *rtrs_srv_alloc_page(unsigned int order)
{
	struct page *page = alloc_pages(GFP_NOWAIT | __GFP_NOWARN | __GFP_COMP, order);

	if (page)
		rtrs_srv_mem_use(PAGE_SIZE << order);
	return page;
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
	if (unlikely(!io->page))
		io->page = rtrs_srv_alloc_page(order);
	if (unlikely(!io->page))
		return false;
	sg_init_table(&io->sg, 1);
	sg_set_page(&io->sg, io->page, bytes, 0);
	io->op.sgl = &io->sg;
	io->op.nents = 1;
	return true;
}

/* Gets a buffer in pieces of that order, of which @charged bytes are in the memory in use. */
static bool rtrs_srv_buf_pieces(struct rtrs_srv_io *io, unsigned int order, u32 charged)
{
	struct rtrs_srv_sess *sess = io->con->path->sess;
	struct rtrs_srv_buf *buf;

	buf = rtrs_srv_buf_alloc(sess, io->op.data_len, order, GFP_NOWAIT | __GFP_NOWARN);
	if (!buf)
		return false;
	if (buf->bytes != charged)
		rtrs_srv_mem_use((int)buf->bytes - (int)charged);
	atomic64_add(buf->bytes, &sess->bufs.used);
	rtrs_srv_use_buf(io, buf);
	return true;
}

static bool rtrs_srv_buf_large(struct rtrs_srv_io *io)
{
	u32 bytes = rtrs_srv_buf_bytes(io->op.data_len, RTRS_SRV_BUF_ORDER);
	struct rtrs_srv_sess *sess = io->con->path->sess;
	bool turn = list_empty(&rtrs_srv_buf_turns) ||
		    READ_ONCE(rtrs_srv_buf_turn) == &sess->bufs;

	if (!rtrs_srv_mem_take(sess, bytes, turn))
		return false;
	if (rtrs_srv_buf_pieces(io, RTRS_SRV_BUF_ORDER, bytes) ||
	    rtrs_srv_buf_pieces(io, RTRS_SRV_BUF_MIN_ORDER, bytes))
		return true;
	rtrs_srv_mem_use(-(int)bytes);
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
	/* The send queue has no room for RDMA READs into single pages. */
	return io->op.data_len > PAGE_SIZE && !io->fetch && rtrs_srv_buf_pieces(io, 0, 0);
}

/* Takes the session's reserve, or waits for memory; @again: in front, as it has waited before. */
static int rtrs_srv_buf_reserve(struct rtrs_srv_io *io, bool again)
{
	struct rtrs_srv_bufs *bufs = &io->con->path->sess->bufs;
	struct list_head *waiting = rtrs_srv_io_small(io) ? &bufs->small : &bufs->large;
	bool taken;

	spin_lock_irq(&bufs->lock);
	/* Nor do new ones take the reserve from those that wait. */
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
	rtrs_srv_bufs_wait_turn(bufs, !again);
	rtrs_srv_bufs_look_again(bufs);
	return -EINPROGRESS;
}

/**
 * rtrs_srv_buf_get() - get memory for the data of a request
 * @io: request with &rtrs_srv_op.data_len, not 0 and at most &rtrs_srv_mem.max_io
 *
 * Sets the list of its op.
 *
 * Context: process.
 * Return: 0; or -EINPROGRESS if there is none. Then @io is not the caller's any more:
 * rtrs_srv_bufs_next() or rtrs_srv_bufs_forget() returns it.
 */
int rtrs_srv_buf_get(struct rtrs_srv_io *io)
{
	const struct rtrs_srv_bufs *bufs = &io->con->path->sess->bufs;

	io->stage = RTRS_SRV_IO_BUF;
	/* Large ones don't overtake those that wait. */
	if ((rtrs_srv_io_small(io) || list_empty(&bufs->large)) && rtrs_srv_buf_any(io))
		return 0;
	return rtrs_srv_buf_reserve(io, false);
}

/**
 * rtrs_srv_bufs_next() - get memory for a request that waits for it
 * @sess: session of the request
 *
 * Context: the session's work for this, of which one runs at a time.
 * Return: a request that has got its memory, or whose path isn't connected; or NULL.
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
	/* If more wait than this one, the session waits for its next turn. */
	if (!io) {
		rtrs_srv_bufs_end_turn(bufs);
	} else if (rtrs_srv_path_state(io->con->path) == RTRS_SRV_CONNECTED) {
		if (rtrs_srv_buf_any(io))
			rtrs_srv_bufs_end_turn(bufs);
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
 * Context: the path's closing work, after it has flushed the session's work for waiting requests:
 * if that finds one of this path later, it sees that the path is closing, and drops it.
 * Return: a request of @path that has waited, the caller's now; or NULL.
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
 * rtrs_srv_buf_put() - give a buffer back
 * @buf: buffer that neither a request nor the device uses
 *
 * Context: any; the session is there.
 */
void rtrs_srv_buf_put(struct rtrs_srv_buf *buf)
{
	struct rtrs_srv_bufs *bufs = &buf->sess->bufs;
	unsigned long flags;

	if (!buf->reserve) {
		rtrs_srv_mem_use(-(int)buf->bytes);
		atomic64_sub(buf->bytes, &bufs->used);
		rtrs_srv_buf_free_pages(buf);
		rtrs_srv_bufs_wake(bufs);
		rtrs_srv_buf_call_next();
		return;
	}
	spin_lock_irqsave(&bufs->lock, flags);
	bufs->reserve_used = false;
	rtrs_srv_bufs_wake(bufs);
	spin_unlock_irqrestore(&bufs->lock, flags);
}

/* Keeps a page for the next request of the slot. If others still use it, it is theirs. */
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
	/* A barrier: rtrs_srv_bufs_age() sees the page, or we that it has begun. */
	xchg(&io->kept, page);
	if (unlikely(!READ_ONCE(ios->kept)))
		WRITE_ONCE(ios->kept, true);
}

/**
 * rtrs_srv_bufs_age() - free pages that no request has used since the last call
 * @path: path that has its requests
 *
 * Context: process; one at a time.
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
 * @path: path without requests
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
 * rtrs_srv_io_put_data() - give back the memory of a request's data
 * @io: request whose data nobody uses any more
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
