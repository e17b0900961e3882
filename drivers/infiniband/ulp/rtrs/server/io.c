// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests. One arrives as an RDMA WRITE WITH IMM into the chunk of its slot.
 * The immediate value tells where in the chunk its header is. If the client is
 * to be kept out of the chunk, its key is invalidated first. Then the header and
 * the user message are copied, checked, and handed to the upper layer, together
 * with the place of the data. The answer goes out as one chain of work requests:
 * data, if the client reads; invalidation of the client's key, if it wishes so;
 * registration of the chunk under a new key, if the old one was invalidated;
 * and the errno.
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

static void rtrs_srv_dispatch(struct rtrs_srv_io *io);

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

/* Bytes of the chunk that a request may use: data, then headers. */
static u32 rtrs_srv_io_used(const struct rtrs_srv_io *io)
{
	return io->hdr_off + sizeof(struct rtrs_msg_read) +
	       sizeof(struct rtrs_desc);
}

/* Gives the slot back; @io isn't the caller's any more. */
static void rtrs_srv_io_release(struct rtrs_srv_io *io)
{
	this_cpu_inc(io->con->path->ios.stats->done);
	io->stage = RTRS_SRV_IO_WAIT;
	rtrs_srv_slot_release(io);
}

/* Finishes a request without an answer, as its path is closing. */
static void rtrs_srv_io_drop(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;

	trace_rtrs_srv_drop(io, -ECONNABORTED);
	rtrs_srv_io_release(io);
	percpu_ref_put(&path->ios.ref);
}

/* The last message of an answer: the errno, and the chunk's new key if it has one. */
static void rtrs_srv_build_imm(struct rtrs_srv_answer *a,
			       const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;
	enum rtrs_imm_type type = io->need_inval ? RTRS_IMM_IO_RSP_W_INV :
						   RTRS_IMM_IO_RSP;
	u32 imm = rtrs_imm(type, rtrs_imm_rsp(io->slot, io->err));

	a->imm.wr.ex.imm_data = cpu_to_be32(imm);
	if (!io->mr) {
		a->imm.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		return;
	}
	a->imm_sge.addr = path->mem.rkeys_dma + io->slot * sizeof(*path->mem.rkeys);
	a->imm_sge.length = sizeof(*path->mem.rkeys);
	a->imm_sge.lkey = path->path.pd->local_dma_lkey;
	a->imm.wr.opcode = IB_WR_SEND_WITH_IMM;
	a->imm.wr.sg_list = &a->imm_sge;
	a->imm.wr.num_sge = 1;
}

/**
 * rtrs_srv_build_answer() - build the work requests of an answer
 * @a: work requests to fill in
 * @io: request that is answered
 *
 * Return: the first of the chain.
 */
VISIBLE_IF_KUNIT struct ib_send_wr *
rtrs_srv_build_answer(struct rtrs_srv_answer *a, const struct rtrs_srv_io *io)
{
	struct ib_send_wr *first = NULL, **next = &first;

	memset(a, 0, sizeof(*a));
	if (io->desc_len && !io->err) {
		a->data_sge.addr = io->dma;
		a->data_sge.length = io->desc_len;
		a->data_sge.lkey = io->con->con.path->pd->local_dma_lkey;
		a->data.wr.opcode = IB_WR_RDMA_WRITE;
		a->data.wr.sg_list = &a->data_sge;
		a->data.wr.num_sge = 1;
		a->data.remote_addr = io->desc_addr;
		a->data.rkey = io->desc_key;
		*next = &a->data.wr;
		next = &a->data.wr.next;
	}
	if (io->need_inval) {
		a->inv.opcode = IB_WR_SEND_WITH_INV;
		a->inv.ex.invalidate_rkey = io->desc_key;
		*next = &a->inv;
		next = &a->inv.next;
	}
	if (io->mr) {
		a->reg.wr.opcode = IB_WR_REG_MR;
		a->reg.mr = io->mr;
		a->reg.key = io->mr->rkey;
		a->reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
		*next = &a->reg.wr;
		next = &a->reg.wr.next;
	}
	rtrs_srv_build_imm(a, io);
	*next = &a->imm.wr;
	return first;
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
		rtrs_srv_io_release(io);
		rtrs_con_post_locked(&con->con, first);
	}
	spin_unlock_irqrestore(&con->con.sq_lock, flags);
	if (likely(room))
		percpu_ref_put(&path->ios.ref);
	return room;
}

/*
 * The chunk may have been registered on another connection, with the last answer, and a device
 * keeps the order of work requests in one queue pair only. But the message with the key was
 * sent after the registration, so a request that has used the key comes later than that. A
 * write of no bytes needs no key and may come too early; then the device refuses this, and
 * the path ends, or the chunk stays open to a client that has chosen that.
 *
 * Return: false if there is no room; else @io is the handler's of LOCAL_INV.
 */
static bool rtrs_srv_post_inv(struct rtrs_srv_io *io)
{
	struct rtrs_con *con = &io->con->con;
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

/**
 * rtrs_srv_sq_room() - go on with requests that wait for room in a send queue
 * @c: connection, which not only the waiting requests keep alive
 *
 * Context: any.
 */
void rtrs_srv_sq_room(struct rtrs_con *c)
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
		/*
		 * Room may have come free before @io was in the list. It is
		 * given under sq_lock, which is taken in here, too: either we
		 * see the room, or the giver sees the list.
		 */
		rtrs_srv_sq_room(&con->con);
	}
	percpu_ref_put(&path->ios.ref);
}

/**
 * rtrs_srv_io_begin() - begin a request, now or when there is room to invalidate its key
 * @io: request that has its slot and a reference of its path; not the caller's any more
 *
 * Context: process.
 */
void rtrs_srv_io_begin(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = io->con;

	if (unlikely(rtrs_srv_path_state(con->path) != RTRS_SRV_CONNECTED))
		rtrs_srv_io_drop(io);
	else if (!io->mr)
		rtrs_srv_dispatch(io);
	else if (unlikely(!list_empty(&con->pending) || !rtrs_srv_post_inv(io)))
		rtrs_srv_wait_for_room(con, io);
}

/**
 * rtrs_srv_resume_work() - begin requests that have waited for their slots
 * @work: &rtrs_srv_slots.resume_work of a session
 */
void rtrs_srv_resume_work(struct work_struct *work)
{
	struct rtrs_srv_sess *sess = container_of(work, struct rtrs_srv_sess,
						  slots.resume_work);
	struct rtrs_srv_io *io;

	while ((io = rtrs_srv_slot_next_resumed(sess)))
		rtrs_srv_io_begin(io);
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

/**
 * rtrs_srv_drop_orphans() - drop requests that no completion will end
 * @path: path that is closing. No receive is outstanding, and no send except answers
 *
 * These are requests that wait for another path to give back their slot, and those whose
 * LOCAL_INV the device refused, for example as it is being removed.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_drop_orphans(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	u32 i;

	if (!path->ios.mem)
		return;
	for (i = 0; i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		if (rtrs_srv_slot_forget(path->sess, io))
			percpu_ref_put(&path->ios.ref);
		else if (READ_ONCE(io->stage) == RTRS_SRV_IO_INVALIDATE)
			rtrs_srv_io_drop(io);
	}
}

/**
 * rtrs_srv_answer_err() - the errno of an answer
 * @err: errno from the upper layer, 0 or negative
 *
 * Return: @err; -EIO if it doesn't fit in an answer, as some of the kernel's own errnos.
 */
int rtrs_srv_answer_err(int err)
{
	return err > 0 || err < -(int)RTRS_IMM_ERR_MASK ? -EIO : err;
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
	struct ib_device *dev = path->path.dev;

	if (unlikely(rtrs_srv_path_state(path) != RTRS_SRV_CONNECTED)) {
		rtrs_srv_io_drop(io);
		return;
	}
	err = rtrs_srv_answer_err(err);
	io->err = err;
	/* Without new keys, the client itself invalidates its key after an error. */
	if (err && !io->mr)
		io->need_inval = false;

	ib_dma_sync_single_for_device(dev, io->dma, rtrs_srv_io_used(io),
				      DMA_BIDIRECTIONAL);
	if (io->mr) {
		ib_update_fast_reg_key(io->mr, ib_inc_rkey(io->mr->rkey));
		path->mem.rkeys[io->slot].rkey = cpu_to_le32(io->mr->rkey);
		ib_dma_sync_single_for_device(dev, path->mem.rkeys_dma +
					      io->slot * sizeof(*path->mem.rkeys),
					      sizeof(*path->mem.rkeys),
					      DMA_TO_DEVICE);
	}
	if (unlikely(!list_empty(&io->con->pending) || !rtrs_srv_post_answer(io)))
		rtrs_srv_wait_for_room(io->con, io);
}
EXPORT_SYMBOL_GPL(rtrs_srv_complete);

static void rtrs_srv_set_data(struct rtrs_srv_io *io, u32 len)
{
	io->sg.length = len;
	io->op.nents = len ? 1 : 0;
	io->op.data_len = len;
}

/* @hdr and @desc are copies. Returns 0, or -EINVAL as the answer. */
static int rtrs_srv_parse_read(struct rtrs_srv_io *io,
			       const struct rtrs_msg_read *hdr,
			       const struct rtrs_desc *desc, u32 room)
{
	u16 nr_desc = le16_to_cpu(hdr->nr_desc);
	u16 flags = le16_to_cpu(hdr->flags);

	io->op.dir = DMA_FROM_DEVICE;
	rtrs_srv_set_data(io, 0);
	if (nr_desc > 1 || flags & ~RTRS_READ_NEED_INVAL ||
	    (!nr_desc && flags))
		return -EINVAL;
	if (!nr_desc)
		return 0;
	if (le32_to_cpu(desc->len) > room)
		return -EINVAL;
	io->desc_addr = le64_to_cpu(desc->addr);
	io->desc_key = le32_to_cpu(desc->key);
	io->desc_len = le32_to_cpu(desc->len);
	io->need_inval = flags & RTRS_READ_NEED_INVAL;
	rtrs_srv_set_data(io, io->desc_len);
	return 0;
}

/**
 * rtrs_srv_parse() - copy and check a request's headers
 * @io: request whose hdr_off has been checked by rtrs_srv_read_imm()
 *
 * Each byte of the chunk is read once, as the client may be able to change it at
 * any time.
 *
 * Return: 0; -EINVAL as the answer; or -EPROTO if it isn't a valid message.
 */
VISIBLE_IF_KUNIT int rtrs_srv_parse(struct rtrs_srv_io *io)
{
	const struct rtrs_srv_sess *sess = io->con->path->sess;
	struct rtrs_srv_op *op = &io->op;
	struct {
		struct rtrs_msg_read hdr;
		struct rtrs_desc desc;
	} h;
	u16 type, usr_len;
	u32 data_len;

	memcpy(&h, io->chunk + io->hdr_off, sizeof(h));
	/* Keeps the compiler from reading the chunk again instead of the copy. */
	barrier();
	type = le16_to_cpu(h.hdr.type);
	usr_len = le16_to_cpu(h.hdr.usr_len);
	if (type != RTRS_MSG_WRITE && type != RTRS_MSG_READ)
		return -EPROTO;
	if (usr_len > RTRS_MAX_MSG_LEN || usr_len > io->hdr_off)
		return -EPROTO;
	data_len = io->hdr_off - usr_len;
	if (data_len > rtrs_srv_max_io_size(sess))
		return -EPROTO;

	op->msg_len = usr_len;
	memcpy(op->msg, io->chunk + data_len, usr_len);
	io->desc_len = 0;
	io->need_inval = false;
	if (type == RTRS_MSG_READ)
		return rtrs_srv_parse_read(io, &h.hdr, &h.desc, data_len);
	op->dir = DMA_TO_DEVICE;
	rtrs_srv_set_data(io, data_len);
	return 0;
}

static void rtrs_srv_count(const struct rtrs_srv_path *path,
			   const struct rtrs_srv_op *op)
{
	if (op->dir == DMA_FROM_DEVICE) {
		this_cpu_inc(path->ios.stats->reads);
		this_cpu_add(path->ios.stats->read_bytes, op->data_len);
	} else {
		this_cpu_inc(path->ios.stats->writes);
		this_cpu_add(path->ios.stats->write_bytes, op->data_len);
	}
}

/* Hands a request to the upper layer. With always_invalidate, the chunk's key is invalid. */
static void rtrs_srv_dispatch(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;
	int ret;

	io->stage = RTRS_SRV_IO_WORK;
	ib_dma_sync_single_for_cpu(path->path.dev, io->dma, rtrs_srv_io_used(io),
				   DMA_BIDIRECTIONAL);
	ret = rtrs_srv_parse(io);
	if (unlikely(ret == -EPROTO)) {
		rtrs_srv_proto_error(path, "malformed request in slot %u, header at %u",
				     io->slot, io->hdr_off);
		rtrs_srv_io_drop(io);
		return;
	}
	trace_rtrs_srv_dispatch(io, ret);
	rtrs_srv_count(path, &io->op);
	if (unlikely(ret))
		rtrs_srv_complete(&io->op, ret);
	else
		path->sess->srv->ops->request(&io->op);
}

/* A chunk's key is invalid. */
static void rtrs_srv_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_io *io = container_of(wc->wr_cqe, struct rtrs_srv_io,
					      inv_cqe);
	struct rtrs_srv_con *con = io->con;

	if (rtrs_con_wc_failed(&con->con, wc, "invalidation of a chunk's key")) {
		rtrs_srv_io_drop(io);
		return;
	}
	rtrs_con_put_wr(&con->con);
	rtrs_srv_dispatch(io);
}

/**
 * rtrs_srv_ios_init() - prepare a path's slots for requests
 * @path: path that has its memory and isn't connected yet
 */
void rtrs_srv_ios_init(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	u32 i;

	for (i = 0; i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		INIT_LIST_HEAD(&io->pending);
		io->inv_cqe.done = rtrs_srv_inv_done;
	}
}

/**
 * rtrs_srv_read_imm() - read the immediate value of a request
 * @sess: session of the request
 * @payload: payload of the immediate value
 * @slot: set to the slot of the request
 * @off: set to the offset of the header in the chunk of the slot
 *
 * Return: false if there is no such slot, or the longest header would not fit in the chunk.
 */
bool rtrs_srv_read_imm(const struct rtrs_srv_sess *sess, u32 payload, u32 *slot,
		       u32 *off)
{
	*slot = rtrs_imm_req_slot(payload, sess->off_bits);
	*off = rtrs_imm_req_off(payload, sess->off_bits);
	return *slot < sess->queue_depth &&
	       *off <= rtrs_srv_max_io_size(sess) + RTRS_MAX_MSG_LEN;
}

/**
 * rtrs_srv_request() - handle the arrival of a request
 * @con: connection that it came on; its path is connected
 * @payload: payload of its immediate value
 *
 * Context: handler of a receive's completion.
 */
void rtrs_srv_request(struct rtrs_srv_con *con, u32 payload)
{
	struct rtrs_srv_path *path = con->path;
	struct rtrs_srv_io *io;
	u32 slot, off;

	if (!rtrs_srv_read_imm(path->sess, payload, &slot, &off)) {
		rtrs_srv_proto_error(path,
				     "request for memory it doesn't have: slot %u, header at %u",
				     slot, off);
		return;
	}
	trace_rtrs_srv_receive(con, slot, off);
	percpu_ref_get(&path->ios.ref);
	io = rtrs_srv_path_io(path, slot);
	switch (rtrs_srv_slot_take(io, con, off)) {
	case 0:
		rtrs_srv_io_begin(io);
		break;
	case -EINPROGRESS:
		break;
	default:
		percpu_ref_put(&path->ios.ref);
		rtrs_srv_proto_error(path, "slot used again before its answer: %u",
				     slot);
	}
}
