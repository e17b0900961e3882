// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers, and the end of requests. The answer is one chain of work requests: the data of a read;
 * invalidation of the client's key, if requested; and the errno.
 *
 * The client may reuse a slot as soon as it has the answer, possibly before the function that posts
 * the answer has returned. So the slot is released before its answer is posted. The chain is on the
 * stack, where a new request in the slot can't overwrite it.
 *
 * The send queue contains messages in transit to the client, not requests in the upper layer. So it
 * needs no room for all slots, and a disk that hangs doesn't occupy room that others need. If there
 * is no room for the answer of a request, the request waits in a list of its connection. Entries
 * become free as fast as the network delivers messages.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "srv.h"
#include "trace.h"

static struct rtrs_srv_io *to_srv_io(struct rtrs_srv_op *op)
{
	return container_of(op, struct rtrs_srv_io, op);
}

/**
 * rtrs_srv_op_priv() - get the upper layer's part of an op
 * @op: op that belongs to the upper layer
 *
 * Context: any.
 * Return: memory of rtrs_srv_ops.op_size bytes that belongs to the op.
 */
void *rtrs_srv_op_priv(struct rtrs_srv_op *op)
{
	return (void *)to_srv_io(op) + RTRS_SRV_IO_HEAD;
}
EXPORT_SYMBOL_GPL(rtrs_srv_op_priv);

/**
 * rtrs_srv_op_peer() - get the client that sent a request
 * @op: the request
 *
 * Context: any.
 * Return: the client of the request's path; valid until the request is completed.
 */
struct rtrs_srv_peer rtrs_srv_op_peer(struct rtrs_srv_op *op)
{
	return rtrs_srv_path_peer(to_srv_io(op)->con->path);
}
EXPORT_SYMBOL_GPL(rtrs_srv_op_peer);

/**
 * rtrs_srv_peer_closing() - check whether a client's path is closing
 * @peer: the client of the path
 *
 * Context: any, while the path exists, for example while it has a request.
 * Return: true if the path is closing, so no answer can reach the client over it.
 */
bool rtrs_srv_peer_closing(const struct rtrs_srv_peer *peer)
{
	return rtrs_srv_path_state(peer->path) == RTRS_SRV_CLOSING;
}
EXPORT_SYMBOL_GPL(rtrs_srv_peer_closing);

/**
 * rtrs_srv_op_from_priv() - undo rtrs_srv_op_priv()
 * @op_priv: the upper layer's part of an op
 *
 * Context: any.
 * Return: the op.
 */
struct rtrs_srv_op *rtrs_srv_op_from_priv(void *op_priv)
{
	struct rtrs_srv_io *io = op_priv - RTRS_SRV_IO_HEAD;

	return &io->op;
}
EXPORT_SYMBOL_GPL(rtrs_srv_op_from_priv);

/* Releases the slot; @io must not be accessed any more. */
static void rtrs_srv_io_release(struct rtrs_srv_io *io)
{
	this_cpu_inc(io->con->path->path.stats->done);
	rtrs_srv_slot_release(io);
}

/* Unmaps the data in a buffer, if they are mapped. The queue pair still exists. */
static void rtrs_srv_buf_unmap(struct rtrs_srv_con *con, struct rtrs_srv_buf *buf)
{
	struct rdma_cm_id *id = con->con.cm_id;

	if (buf->nr_mapped)
		rdma_rw_ctx_destroy(&buf->rw, id->qp, id->port_num, buf->sgl,
				    buf->nr_mapped, DMA_TO_DEVICE);
	buf->nr_mapped = 0;
}

/**
 * rtrs_srv_io_drop() - finish a request without an answer, because its path is closing
 * @io: request that no completion will finish; not accessed by the caller any more
 *
 * Context: any.
 */
void rtrs_srv_io_drop(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;

	trace_rtrs_srv_drop(io, -ECONNABORTED);
	if (io->buf)
		rtrs_srv_buf_unmap(io->con, io->buf);
	rtrs_srv_io_put_data(io);
	rtrs_srv_io_release(io);
	percpu_ref_put(&path->ios.ref);
}

/* Checks whether an answer's message is sent inline. */
static bool rtrs_srv_msg_inline(const struct rtrs_srv_io *io)
{
	return io->con->con.sq_inline >= sizeof(struct rtrs_msg_answer);
}

static void rtrs_srv_put_msg(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io,
			     struct ib_send_wr *wr)
{
	const struct rtrs_srv_path *path = io->con->path;

	if (rtrs_srv_msg_inline(io)) {
		a->msg_sge.addr = (uintptr_t)rtrs_srv_msg(path, io->slot);
		wr->send_flags = IB_SEND_INLINE;
	} else {
		a->msg_sge.addr = rtrs_region_dma(&path->mem.msgs, io->slot);
	}
	a->msg_sge.length = sizeof(struct rtrs_msg_answer);
	a->msg_sge.lkey = path->path.pd->local_dma_lkey;
	wr->sg_list = &a->msg_sge;
	wr->num_sge = 1;
}

/* Builds the work request with the immediate value, which contains the errno. */
static struct ib_send_wr *rtrs_srv_build_imm(struct rtrs_srv_answer *a,
					     const struct rtrs_srv_io *io)
{
	enum rtrs_imm_type type = io->need_inval ? RTRS_IMM_IO_RSP_W_INV :
						   RTRS_IMM_IO_RSP;

	return rtrs_con_build_imm(&io->con->con, &a->imm,
				  rtrs_imm(type, rtrs_imm_rsp(io->slot, io->err)));
}

/* Adds the data of a read, which are in the chunk, to a work request. */
static void rtrs_srv_put_data(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io,
			      struct ib_rdma_wr *wr)
{
	a->data_sge.addr = io->dma;
	a->data_sge.length = io->desc_len;
	a->data_sge.lkey = io->con->con.path->pd->local_dma_lkey;
	wr->wr.sg_list = &a->data_sge;
	wr->wr.num_sge = 1;
	wr->remote_addr = io->desc_addr;
	wr->rkey = io->desc_key;
}

static void rtrs_srv_data_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_con *con = container_of(wc->wr_cqe, struct rtrs_srv_con, data_cqe);

	if (!rtrs_con_wc_failed(&con->con, wc, "sending data"))
		rtrs_con_put_wr(&con->con);
}

/*
 * Prepends the data in a buffer to an answer, whose completion handler releases the buffer. Over
 * iWARP, TCP may not have sent the data by then, and soft-iWARP lets TCP send unsignalled data in
 * place. So each work request with data is signalled, which makes soft-iWARP copy them.
 */
static struct ib_send_wr *rtrs_srv_build_buf(const struct rtrs_srv_io *io,
					     struct ib_send_wr *answer)
{
	struct rdma_cm_id *id = io->con->con.cm_id;
	struct ib_send_wr *first, *wr;

	answer->wr_cqe = &io->buf->sent_cqe;
	answer->send_flags |= IB_SEND_SIGNALED;
	first = rdma_rw_ctx_wrs(&io->buf->rw, id->qp, id->port_num, NULL, answer);
	if (io->con->path->path.no_imm)
		for (wr = first; wr != answer; wr = wr->next) {
			wr->wr_cqe = &io->con->data_cqe;
			wr->send_flags |= IB_SEND_SIGNALED;
		}
	return first;
}

/**
 * rtrs_srv_build_answer() - build the work requests of an answer
 * @a: work requests; only those that the answer needs are filled in
 * @io: request that is answered; its buffer, if it has one, contains data to be sent
 *
 * The message of an answer carries the data of a read in a slot if it is an immediate value. All
 * other data precede it.
 *
 * Return: the first of the chain.
 */
VISIBLE_IF_KUNIT struct ib_send_wr *
rtrs_srv_build_answer(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;
	bool slots = rtrs_srv_has_slots(path);
	struct ib_send_wr *answer;

	if (io->need_inval) {
		a->inv = (struct ib_send_wr) {
			.opcode			= IB_WR_SEND_WITH_INV,
			.ex.invalidate_rkey	= io->desc_key,
		};
		answer = &a->inv;
		if (slots)
			rtrs_srv_put_msg(a, io, answer);
		else
			answer->next = rtrs_srv_build_imm(a, io);
	} else {
		answer = rtrs_srv_build_imm(a, io);
	}
	if (io->buf)
		return rtrs_srv_build_buf(io, answer);
	if (!io->desc_len || io->op.dir != DMA_FROM_DEVICE || io->err)
		return answer;
	if (slots && !io->need_inval && !path->path.no_imm) {
		rtrs_srv_put_data(a, io, &a->imm.wr);
		return answer;
	}
	a->data = (struct ib_rdma_wr) { .wr.opcode = IB_WR_RDMA_WRITE, .wr.next = answer };
	rtrs_srv_put_data(a, io, &a->data);
	return &a->data.wr;
}

/* Releases a buffer whose data have been sent, or never will be. */
static void rtrs_srv_buf_sent(struct rtrs_srv_buf *buf)
{
	rtrs_srv_buf_unmap(buf->con, buf);
	rtrs_srv_buf_put(buf);
}

static void rtrs_srv_sent_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_buf *buf = container_of(wc->wr_cqe, struct rtrs_srv_buf, sent_cqe);
	struct rtrs_con *con = &buf->con->con;
	unsigned long flags;

	spin_lock_irqsave(&con->sq_lock, flags);
	list_del(&buf->sending);
	spin_unlock_irqrestore(&con->sq_lock, flags);
	rtrs_srv_buf_sent(buf);
	if (!rtrs_con_wc_failed(con, wc, "sending data"))
		rtrs_con_put_wr(con);
}

/*
 * Posts the answer of a request if the send queue has room. A waiting request leaves its list only
 * then, because rtrs_srv_sq_room() checks the list without its lock.
 * Return: true if the request is finished; false if there is no room.
 */
static bool rtrs_srv_post_answer(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = io->con;
	struct rtrs_srv_path *path = con->path;
	struct rtrs_srv_answer answer;
	struct ib_send_wr *first = rtrs_srv_build_answer(&answer, io), *wr;
	unsigned long flags;
	bool room;
	u32 nr = 0;

	for (wr = first; wr; wr = wr->next)
		nr++;
	spin_lock_irqsave(&con->con.sq_lock, flags);
	room = rtrs_con_has_room(&con->con, nr);
	if (likely(room)) {
		list_del_init(&io->pending);
		trace_rtrs_srv_answer(io, io->err);
		WRITE_ONCE(con->con.nr_answered, con->con.nr_answered + 1);
		if (io->buf) {
			/* From now on, the answer's completion handler owns the buffer. */
			io->buf->con = con;
			list_add_tail(&io->buf->sending, &con->sending);
			io->buf = NULL;
		}
		rtrs_srv_io_release(io);
		rtrs_con_post_locked(&con->con, first, nr);
	}
	spin_unlock_irqrestore(&con->con.sq_lock, flags);
	if (likely(room))
		percpu_ref_put(&path->ios.ref);
	return room;
}

/*
 * Answers the first request that waits for room. Returns false if none waits or there is no room.
 */
static bool rtrs_srv_post_pending(struct rtrs_srv_con *con)
{
	struct rtrs_srv_io *io;
	unsigned long flags;
	bool posted = false;

	spin_lock_irqsave(&con->pend_lock, flags);
	io = list_first_entry_or_null(&con->pending, struct rtrs_srv_io,
				      pending);
	if (io)
		posted = rtrs_srv_post_answer(io);
	spin_unlock_irqrestore(&con->pend_lock, flags);
	return posted;
}

/*
 * Answers requests that wait for room in a send queue. Any context. The caller ensures that the
 * connection exists even after these requests have finished.
 */
static void rtrs_srv_sq_room(struct rtrs_con *c)
{
	struct rtrs_srv_con *con = to_srv_con(c);

	while (!list_empty(&con->pending) && rtrs_srv_post_pending(con))
		;
}

static void rtrs_srv_wait_for_room(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = io->con;
	struct rtrs_srv_path *path = con->path;
	unsigned long flags;

	trace_rtrs_srv_wait(io, 0);
	/* As soon as @io is in the list, the request's own reference may be dropped. */
	percpu_ref_get(&path->ios.ref);
	spin_lock_irqsave(&con->pend_lock, flags);
	if (con->closing) {
		spin_unlock_irqrestore(&con->pend_lock, flags);
		rtrs_srv_io_drop(io);
	} else {
		list_add_tail(&io->pending, &con->pending);
		spin_unlock_irqrestore(&con->pend_lock, flags);
		/* Room may have become free before @io was in the list. */
		rtrs_con_wait_mb();
		rtrs_srv_sq_room(&con->con);
	}
	percpu_ref_put(&path->ios.ref);
}

/**
 * rtrs_srv_answer_err() - convert an errno for the answer
 * @err: errno from the upper layer, 0 or negative
 *
 * Return: @err; -EIO if it doesn't fit in an answer, like some errnos internal to the kernel.
 */
VISIBLE_IF_KUNIT int rtrs_srv_answer_err(int err)
{
	return err > 0 || err < -(int)RTRS_IMM_ERR_MASK ? -EIO : err;
}

static void rtrs_srv_sync_msg(const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;

	if (!rtrs_srv_msg_inline(io))
		ib_dma_sync_single_for_device(path->path.dev,
					      rtrs_region_dma(&path->mem.msgs, io->slot),
					      sizeof(struct rtrs_msg_answer), DMA_BIDIRECTIONAL);
}

/* Prepares an answer, except data that are sent from a buffer. */
static void rtrs_srv_prepare_answer(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;

	if (io->op.dir == DMA_FROM_DEVICE && io->op.data_len && !io->err) {
		/*
		 * The disk may complete its I/O in an interrupt. The time for copying there is
		 * limited by the maximum size of a request in a chunk, as with bounce buffers.
		 */
		if (io->page || io->buf)
			rtrs_srv_buf_copy(io);
		ib_dma_sync_single_for_device(path->path.dev, io->dma, io->op.data_len,
					      DMA_BIDIRECTIONAL);
	}
	rtrs_srv_io_put_data(io);
	if (!rtrs_srv_has_slots(path)) {
		/* After an error, the client invalidates its key itself. */
		if (io->err)
			io->need_inval = false;
	} else if (io->need_inval) {
		rtrs_srv_msg(path, io->slot)->err = cpu_to_le16(-io->err);
		rtrs_srv_sync_msg(io);
	}
}

static void rtrs_srv_answer(struct rtrs_srv_io *io)
{
	if (unlikely(!list_empty(&io->con->pending) || !rtrs_srv_post_answer(io)))
		rtrs_srv_wait_for_room(io);
}

/* Sends an answer with data in a buffer. A work item, because mapping the data may sleep. */
static void rtrs_srv_buf_work(struct work_struct *work)
{
	struct rtrs_srv_buf *buf = container_of(to_delayed_work(work),
						struct rtrs_srv_buf, work);
	struct rtrs_srv_io *io = buf->io;

	if (rtrs_srv_path_state(io->con->path) != RTRS_SRV_CONNECTED) {
		rtrs_srv_io_drop(io);
		return;
	}
	if (rtrs_srv_buf_map(io, &buf->rw, buf->sgl, io->op.nents, 0) < 0) {
		queue_delayed_work(rtrs_srv_io_wq, &buf->work,
				   msecs_to_jiffies(RTRS_SRV_MAP_MS));
		return;
	}
	buf->nr_mapped = io->op.nents;
	rtrs_srv_answer(io);
}

/**
 * rtrs_srv_complete() - answer a request
 * @op: op that belongs to the upper layer, which must not access it any more
 * @err: 0 or a negative errno. The data of a read are sent only if it is 0
 *
 * Context: any, including hard interrupts.
 */
void rtrs_srv_complete(struct rtrs_srv_op *op, int err)
{
	struct rtrs_srv_io *io = to_srv_io(op);
	struct rtrs_srv_path *path = io->con->path;

	if (unlikely(rtrs_srv_path_state(path) != RTRS_SRV_CONNECTED)) {
		rtrs_srv_io_drop(io);
		return;
	}
	io->err = rtrs_srv_answer_err(err);
	if (rtrs_srv_has_slots(path) && io->buf && op->dir == DMA_FROM_DEVICE && !io->err) {
		rtrs_srv_msg(path, io->slot)->err = 0;
		rtrs_srv_sync_msg(io);
		io->buf->io = io;
		io->buf->sent_cqe.done = rtrs_srv_sent_done;
		INIT_DELAYED_WORK(&io->buf->work, rtrs_srv_buf_work);
		queue_delayed_work(rtrs_srv_io_wq, &io->buf->work, 0);
	} else {
		rtrs_srv_prepare_answer(io);
		rtrs_srv_answer(io);
	}
}
EXPORT_SYMBOL_GPL(rtrs_srv_complete);

/**
 * rtrs_srv_con_init_send() - initialize a connection's members for sending
 * @con: new connection
 */
void rtrs_srv_con_init_send(struct rtrs_srv_con *con)
{
	spin_lock_init(&con->pend_lock);
	INIT_LIST_HEAD(&con->pending);
	INIT_LIST_HEAD(&con->sending);
	con->con.sq_room = rtrs_srv_sq_room;
	con->data_cqe.done = rtrs_srv_data_done;
}

/**
 * rtrs_srv_con_drained() - release buffers that no completion of a send will release
 * @con: connection of a path whose requests are finished, with a drained send queue
 *
 * The device has refused to send these buffers, for example because it is being removed. The
 * function must not be called while the path has requests, as their answers may be posted after the
 * drain mark.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_con_drained(struct rtrs_srv_con *con)
{
	struct rtrs_srv_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &con->sending, sending) {
		list_del(&buf->sending);
		rtrs_srv_buf_sent(buf);
	}
}

/**
 * rtrs_srv_con_drop_pending() - drop requests that wait for room, and keep others from waiting
 * @con: connection of a path that is closing
 *
 * Context: the path's closing work.
 */
void rtrs_srv_con_drop_pending(struct rtrs_srv_con *con)
{
	struct rtrs_srv_io *io, *next;
	LIST_HEAD(dropped);

	spin_lock_irq(&con->pend_lock);
	con->closing = true;
	list_splice_init(&con->pending, &dropped);
	spin_unlock_irq(&con->pend_lock);
	list_for_each_entry_safe(io, next, &dropped, pending)
		rtrs_srv_io_drop(io);
}
