// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is sent for a request, and its end. Before the upper layer gets a write, the key of its
 * chunk may have to be invalidated. The answer goes out as one chain of work requests:
 * data, if the client reads; invalidation of the client's key, if it wishes so;
 * registration of the chunk under a new key, if the old one was invalidated;
 * and the errno, with the chunk's key, be it new or not.
 *
 * The client may use a slot again as soon as it has the answer, which can be
 * before the function that posts it has returned. So a slot is given back before
 * its answer is posted, and the chain stands on the stack, which a request that
 * comes too early can't reach.
 *
 * The send queue holds messages on their way to the client, not requests that the upper
 * layer has, so it need not have room for all slots: a disk that hangs takes no room from
 * others. A request waits in a list of its connection if there is no room to invalidate
 * its key, or for its answer; room comes free as fast as the network takes messages.
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
 * @op: op that the upper layer has
 *
 * Context: any.
 * Return: rtrs_srv_ops.op_size bytes that belong to the op.
 */
void *rtrs_srv_op_priv(struct rtrs_srv_op *op)
{
	return (void *)to_srv_io(op) + RTRS_SRV_IO_HEAD;
}
EXPORT_SYMBOL_GPL(rtrs_srv_op_priv);

/**
 * rtrs_srv_op_peer() - who has sent a request?
 * @op: the request
 *
 * Context: any.
 * Return: who is at the other end of its path, which lives until the request is completed.
 */
struct rtrs_srv_peer rtrs_srv_op_peer(struct rtrs_srv_op *op)
{
	return rtrs_srv_path_peer(to_srv_io(op)->con->path);
}
EXPORT_SYMBOL_GPL(rtrs_srv_op_peer);

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

/* Gives the slot back; @io isn't the caller's any more. */
static void rtrs_srv_io_release(struct rtrs_srv_io *io)
{
	this_cpu_inc(io->con->path->ios.stats->done);
	io->stage = RTRS_SRV_IO_WAIT;
	rtrs_srv_slot_release(io);
}

/* Undoes the mapping of data in a buffer, if it was done. The queue pair is still there. */
static void rtrs_srv_buf_unmap(struct rtrs_srv_con *con, struct rtrs_srv_buf *buf)
{
	struct rdma_cm_id *id = con->con.cm_id;

	if (buf->nr_mapped)
		rdma_rw_ctx_destroy(&buf->rw, id->qp, id->port_num, buf->sgl,
				    buf->nr_mapped, DMA_TO_DEVICE);
	buf->nr_mapped = 0;
}

/**
 * rtrs_srv_io_drop() - finish a request without an answer, as its path is closing
 * @io: request that no completion will end; not the caller's any more
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

/* Does the device take the message of an answer with the work request? */
static bool rtrs_srv_msg_inline(const struct rtrs_srv_io *io)
{
	return io->con->con.sq_inline >= sizeof(union rtrs_srv_msg);
}

static void rtrs_srv_put_msg(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io,
			     struct ib_send_wr *wr)
{
	const struct rtrs_srv_path *path = io->con->path;

	if (rtrs_srv_msg_inline(io)) {
		a->msg_sge.addr = (uintptr_t)&path->mem.msgs[io->slot];
		wr->send_flags = IB_SEND_INLINE;
	} else {
		a->msg_sge.addr = path->mem.msgs_dma + io->slot * sizeof(*path->mem.msgs);
	}
	a->msg_sge.length = sizeof(*path->mem.msgs);
	a->msg_sge.lkey = path->path.pd->local_dma_lkey;
	wr->sg_list = &a->msg_sge;
	wr->num_sge = 1;
}

/* The answer with an immediate value: the errno, and the chunk's new key if it has one. */
static struct ib_send_wr *rtrs_srv_build_imm(struct rtrs_srv_answer *a,
					     const struct rtrs_srv_io *io)
{
	enum rtrs_imm_type type = io->need_inval ? RTRS_IMM_IO_RSP_W_INV :
						   RTRS_IMM_IO_RSP;
	u32 imm = rtrs_imm(type, rtrs_imm_rsp(io->slot, io->err));

	if (io->con->path->path.no_imm) {
		a->imm = (struct ib_rdma_wr) {};
		rtrs_put_msg_imm(&a->imm.wr, &a->msg_sge, &a->msg, imm);
		return &a->imm.wr;
	}
	a->imm = (struct ib_rdma_wr) {
		.wr.opcode	= io->mr ? IB_WR_SEND_WITH_IMM : IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(imm),
	};
	if (io->mr)
		rtrs_srv_put_msg(a, io, &a->imm.wr);
	return &a->imm.wr;
}

/* Invalidation of the client's key. */
static void rtrs_srv_build_inv(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io)
{
	a->inv = (struct ib_send_wr) {
		.opcode			= IB_WR_SEND_WITH_INV,
		.ex.invalidate_rkey	= io->desc_key,
	};
}

/* Makes a work request send what was read and is in the chunk. */
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

static void rtrs_srv_build_data(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io)
{
	a->data = (struct ib_rdma_wr) { .wr.opcode = IB_WR_RDMA_WRITE };
	rtrs_srv_put_data(a, io, &a->data);
}

/* Without RTRS_FEATURE_SLOTS. */
static struct ib_send_wr *rtrs_srv_build_chunk_answer(struct rtrs_srv_answer *a,
						      const struct rtrs_srv_io *io)
{
	struct ib_send_wr *first = NULL, **next = &first;

	if (io->desc_len && !io->err) {
		rtrs_srv_build_data(a, io);
		*next = &a->data.wr;
		next = &a->data.wr.next;
	}
	if (io->need_inval) {
		rtrs_srv_build_inv(a, io);
		*next = &a->inv;
		next = &a->inv.next;
	}
	if (io->shut) {
		a->reg = (struct ib_reg_wr) {
			.wr.opcode	= IB_WR_REG_MR,
			.mr		= io->mr,
			.key		= io->mr->rkey,
			.access		= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		};
		*next = &a->reg.wr;
		next = &a->reg.wr.next;
	}
	*next = rtrs_srv_build_imm(a, io);
	return first;
}

static void rtrs_srv_data_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_con *con = container_of(wc->wr_cqe, struct rtrs_srv_con, data_cqe);

	if (!rtrs_con_wc_failed(&con->con, wc, "sending data"))
		rtrs_con_put_wr(&con->con);
}

/*
 * Data to be sent from a buffer; its handler gives the buffer back. By then TCP, on iWARP, may
 * have all that to send yet. Soft-iWARP has it send data from where they are, instead of a
 * copy, if they have no signal of their own.
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

/* With RTRS_FEATURE_SLOTS, one message, after large data and those with a key to invalidate. */
static struct ib_send_wr *rtrs_srv_build_slot_answer(struct rtrs_srv_answer *a,
						     const struct rtrs_srv_io *io)
{
	bool data = io->desc_len && io->op.dir == DMA_FROM_DEVICE && !io->err;
	struct ib_send_wr *answer;

	if (io->need_inval) {
		answer = &a->inv;
		rtrs_srv_build_inv(a, io);
		rtrs_srv_put_msg(a, io, &a->inv);
	} else {
		answer = rtrs_srv_build_imm(a, io);
	}
	if (io->buf)
		return rtrs_srv_build_buf(io, answer);
	if (!data)
		return answer;
	if (!io->need_inval && !io->con->path->path.no_imm) {
		rtrs_srv_put_data(a, io, &a->imm);
		return answer;
	}
	rtrs_srv_build_data(a, io);
	a->data.wr.next = answer;
	return &a->data.wr;
}

/**
 * rtrs_srv_build_answer() - build the work requests of an answer
 * @a: work requests, of which those that the answer needs are filled in
 * @io: request that is answered; its buffer is one with data to be sent, or NULL
 *
 * Return: the first of the chain.
 */
VISIBLE_IF_KUNIT struct ib_send_wr *
rtrs_srv_build_answer(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io)
{
	return rtrs_srv_has_slots(io->con->path) ? rtrs_srv_build_slot_answer(a, io) :
						   rtrs_srv_build_chunk_answer(a, io);
}

/* Data in a buffer have been sent, or never will be. */
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

/* From here on the buffer is its completion's, and not the request's. */
static void rtrs_srv_hand_over_buf(struct rtrs_srv_io *io)
{
	struct rtrs_srv_buf *buf = io->buf;

	if (!buf)
		return;
	lockdep_assert_held(&io->con->con.sq_lock);
	io->buf = NULL;
	buf->con = io->con;
	list_add_tail(&buf->sending, &io->con->sending);
}

/*
 * A request leaves the list of those that wait when it has got its room, not before: who
 * gives room looks without the list's lock.
 *
 * Return: false if there is no room; else the request is over.
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
		rtrs_srv_hand_over_buf(io);
		if (io->shut)
			io->reg_con = con;
		rtrs_srv_io_release(io);
		rtrs_con_post_locked(&con->con, first);
	}
	spin_unlock_irqrestore(&con->con.sq_lock, flags);
	if (likely(room))
		percpu_ref_put(&path->ios.ref);
	return room;
}

/**
 * rtrs_srv_inv_con() - find the connection that has to invalidate a chunk's key
 * @io: request in the chunk
 *
 * A device keeps the order of work requests in one queue pair only. So it is the one on which the
 * key was registered with the last answer, wherever the request came. A request may come before
 * that answer: a write of no bytes needs no key, and the queue waits for as long as the client
 * posts no receives.
 *
 * Return: the connection; its send queue, its list of those that wait for room and its
 * completions are those of the work request.
 */
struct rtrs_srv_con *rtrs_srv_inv_con(const struct rtrs_srv_io *io)
{
	return io->reg_con ?: io->con;
}

/* Returns false if there is no room; else @io is the handler's of LOCAL_INV. */
static bool rtrs_srv_post_inv(struct rtrs_srv_io *io)
{
	struct rtrs_con *con = &rtrs_srv_inv_con(io)->con;
	struct ib_send_wr wr = {
		.wr_cqe			= &io->inv_cqe,
		.opcode			= IB_WR_LOCAL_INV,
		.send_flags		= IB_SEND_SIGNALED,
		.ex.invalidate_rkey	= io->mr->rkey,
	};
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&con->sq_lock, flags);
	room = rtrs_con_has_room(con, 1);
	if (likely(room)) {
		list_del_init(&io->pending);
		io->stage = RTRS_SRV_IO_INVALIDATE;
		rtrs_con_post_locked(con, &wr);
	}
	spin_unlock_irqrestore(&con->sq_lock, flags);
	return room;
}

/* The first request that waits for room goes on, if there is room for it now. */
static bool rtrs_srv_post_pending(struct rtrs_srv_con *con)
{
	struct rtrs_srv_io *io;
	unsigned long flags;
	bool posted = false;

	spin_lock_irqsave(&con->pend_lock, flags);
	io = list_first_entry_or_null(&con->pending, struct rtrs_srv_io,
				      pending);
	if (io)
		posted = io->stage == RTRS_SRV_IO_WORK ?
			 rtrs_srv_post_answer(io) : rtrs_srv_post_inv(io);
	spin_unlock_irqrestore(&con->pend_lock, flags);
	return posted;
}

/*
 * Go on with requests that wait for room in a send queue. Any context; not only the waiting
 * requests keep the connection alive.
 */
static void rtrs_srv_sq_room(struct rtrs_con *c)
{
	struct rtrs_srv_con *con = to_srv_con(c);

	while (!list_empty(&con->pending) && rtrs_srv_post_pending(con))
		;
}

static void rtrs_srv_wait_for_room(struct rtrs_srv_con *con,
				   struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = con->path;
	unsigned long flags;

	trace_rtrs_srv_wait(io, 0);
	/* Once @io is in the list, its own reference may be dropped at any time. */
	percpu_ref_get(&path->ios.ref);
	spin_lock_irqsave(&con->pend_lock, flags);
	if (con->closing) {
		spin_unlock_irqrestore(&con->pend_lock, flags);
		rtrs_srv_io_drop(io);
	} else {
		list_add_tail(&io->pending, &con->pending);
		spin_unlock_irqrestore(&con->pend_lock, flags);
		/* Room may have come free before @io was in the list. */
		rtrs_con_wait_mb();
		rtrs_srv_sq_room(&con->con);
	}
	percpu_ref_put(&path->ios.ref);
}

/**
 * rtrs_srv_shut() - keep the client out of a chunk, now or when there is room to send that
 * @io: request in the chunk, whose inv_cqe is called then; not the caller's any more
 *
 * Context: any.
 */
void rtrs_srv_shut(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = rtrs_srv_inv_con(io);

	io->stage = RTRS_SRV_IO_WAIT;
	if (unlikely(!list_empty(&con->pending) || !rtrs_srv_post_inv(io)))
		rtrs_srv_wait_for_room(con, io);
}

/**
 * rtrs_srv_answer_err() - the errno of an answer
 * @err: errno from the upper layer, 0 or negative
 *
 * Return: @err; -EIO if it doesn't fit in an answer, as some of the kernel's own errnos.
 */
VISIBLE_IF_KUNIT int rtrs_srv_answer_err(int err)
{
	return err > 0 || err < -(int)RTRS_IMM_ERR_MASK ? -EIO : err;
}

static void rtrs_srv_sync_msg(const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;

	if (!rtrs_srv_msg_inline(io))
		ib_dma_sync_single_for_device(path->path.dev, path->mem.msgs_dma +
					      io->slot * sizeof(*path->mem.msgs),
					      sizeof(*path->mem.msgs), DMA_TO_DEVICE);
}

/* Prepares the answer but for data in a buffer. */
static void rtrs_srv_prepare_slot_answer(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;

	if (io->op.dir == DMA_FROM_DEVICE && io->op.data_len && !io->buf) {
		if (io->page && !io->err)
			memcpy(io->chunk, page_address(io->page), io->op.data_len);
		ib_dma_sync_single_for_device(path->path.dev, io->dma, io->op.data_len,
					      DMA_BIDIRECTIONAL);
	}
	rtrs_srv_io_put_data(io);
	if (io->need_inval) {
		path->mem.msgs[io->slot].answer.err = cpu_to_le16(-io->err);
		rtrs_srv_sync_msg(io);
	}
}

static void rtrs_srv_prepare_chunk_answer(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;

	/* Without new keys, the client itself invalidates its key after an error. */
	if (io->err && !io->mr)
		io->need_inval = false;
	if (io->buf && !io->err)
		sg_copy_to_buffer(io->op.sgl, io->op.nents, io->chunk, io->op.data_len);
	rtrs_srv_io_put_data(io);
	ib_dma_sync_single_for_device(path->path.dev, io->dma, rtrs_srv_io_used(io),
				      DMA_BIDIRECTIONAL);
	if (io->shut)
		ib_update_fast_reg_key(io->mr, ib_inc_rkey(io->mr->rkey));
	if (io->mr) {
		path->mem.msgs[io->slot].rkey.rkey = cpu_to_le32(io->mr->rkey);
		rtrs_srv_sync_msg(io);
	}
}

static void rtrs_srv_answer(struct rtrs_srv_io *io)
{
	if (unlikely(!list_empty(&io->con->pending) || !rtrs_srv_post_answer(io)))
		rtrs_srv_wait_for_room(io->con, io);
}

/* Sends an answer with data in a buffer. Mapping them may sleep. */
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

static void rtrs_srv_send_buf(struct rtrs_srv_io *io)
{
	struct rtrs_srv_buf *buf = io->buf;

	buf->io = io;
	buf->sent_cqe.done = rtrs_srv_sent_done;
	INIT_DELAYED_WORK(&buf->work, rtrs_srv_buf_work);
	rtrs_srv_sync_msg(io);
	queue_delayed_work(rtrs_srv_io_wq, &buf->work, 0);
}

/**
 * rtrs_srv_complete() - answer a request
 * @op: op that the upper layer has; it isn't the upper layer's any more
 * @err: 0 or a negative errno. Data that were read are sent only with 0
 *
 * Context: any, hard interrupts too.
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
	if (!rtrs_srv_has_slots(path)) {
		rtrs_srv_prepare_chunk_answer(io);
		rtrs_srv_answer(io);
	} else if (io->buf && op->dir == DMA_FROM_DEVICE && !io->err) {
		path->mem.msgs[io->slot].answer.err = 0;
		rtrs_srv_send_buf(io);
	} else {
		rtrs_srv_prepare_slot_answer(io);
		rtrs_srv_answer(io);
	}
}
EXPORT_SYMBOL_GPL(rtrs_srv_complete);

/**
 * rtrs_srv_con_init_send() - initialize the part of a connection that sends for requests use
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
 * rtrs_srv_con_drained() - give back buffers that no completion of a send will give back
 * @con: connection of a path without requests, whose sends are drained
 *
 * The device has refused their sends, for example as it is being removed. As long as there are
 * requests, more may be sent behind the mark that was waited for.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_con_drained(struct rtrs_srv_con *con)
{
	struct rtrs_srv_buf *buf, *next;

	if (!con->con.cq)
		return;
	list_for_each_entry_safe(buf, next, &con->sending, sending) {
		list_del(&buf->sending);
		rtrs_srv_buf_sent(buf);
	}
}

/**
 * rtrs_srv_con_drop_pending() - drop requests that wait for room, now and later
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
