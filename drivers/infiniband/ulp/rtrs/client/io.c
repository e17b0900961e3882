// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on a path, from sending to the answer.
 *
 * Small data
 *
 * Each slot has a buffer here, that the device knows as long as the path. A small write's
 * data are copied there, and go with the headers behind them, by one RDMA WRITE WITH IMM
 * without a signal. A small read names the buffer by a key that stays; the data come there
 * with the answer or before it, and are copied to the caller's pages. Neither needs anything
 * of the device but that write. Of writes into slots that are larger than most, only those of up
 * to RTRS_CLT_PUSH_COPY, or of more pieces than a send takes, are small in this sense.
 *
 * The device may send the buffer again after the answer, when an acknowledgment was lost,
 * and by then a later request may be in it. That is harmless: the server's device has the
 * packets already, and drops them by their numbers.
 *
 * On iWARP, which has no immediate data, a SEND of a few bytes follows the RDMA WRITE, in one
 * chain.
 *
 * Large data, with a server of small slots (RTRS_FEATURE_SLOTS)
 *
 * The caller's pages are registered with a memory region of the path, and the headers name
 * its key: the server writes to the pages, or fetches from them. Its answer is a SEND WITH
 * INV, which invalidates the key, with slot and errno. So the request is done when the answer
 * is there, be it a read or a write.
 *
 * With large slots, writes that fit there, and are not small, are sent as to a chunk.
 *
 * Large data, with a server of chunks
 *
 * A write is one work request: RDMA WRITE WITH IMM of the caller's data, from where it lies,
 * and of the headers behind it, into the server's chunk of that slot. A read is two: the
 * caller's pages are registered with a memory region, and the headers, which name its key, are
 * written. The server fills the pages by RDMA WRITE and, if we ask for it, invalidates the
 * key. We ask with larger reads: with others the message costs more than invalidating the key
 * here. A write of more segments than a send takes is registered as well, and sent through the
 * region's local key. The answer is an immediate value.
 *
 * The request is done when the answer is there, the device has done with the data
 * of a write (an acknowledgment may be lost, and then it is sent again, though the
 * server has it), and the key is invalid: by the server's SEND WITH INV, seen
 * before the answer, or by our own LOCAL INV.
 *
 * In either case
 *
 * The server's word that a key is invalid is not trusted, only the device's report. That of
 * soft-iWARP isn't either: siw reports a key invalid which it has still to register, by a work
 * request in the send queue, and the peer can hold up that queue. The pages would be somebody
 * else's when the key becomes valid. So we invalidate such a key once more, in the queue behind
 * its registration, and the request is done after that. siw accepts that a key is invalid
 * already. Others need none of it: they compare the key before they report.
 *
 * All handlers of a slot belong to one completion queue, so they never run at the same time.
 *
 * A device keeps the order of work requests in one queue pair only. A region is registered
 * and invalidated on one connection, that of the request. The next request that has the
 * region may take another connection: it comes after the completion that reports the key to
 * be invalid.
 *
 * When a path ends, its queue pairs are drained. Requests that are left then wait for
 * another path; see rtrs_clt_slots_reclaim() and failover.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>

#include "clt.h"
#include "trace.h"

/* Frees a slot, and returns the request that was in it. */
static struct rtrs_clt_io *rtrs_clt_slot_clear(struct rtrs_clt_path *path,
					       struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_io *io = slot->io;

	if (slot->nents)
		ib_dma_unmap_sg(path->path.dev, io->sgl, io->nents, io->dir);
	slot->nents = 0;
	slot->io = NULL;
	return io;
}

static void rtrs_clt_count_done(struct rtrs_clt_path *path, int submitted_on)
{
	int cpu = get_cpu();

	this_cpu_inc(path->stats.cpu->done);
	if (cpu != submitted_on) {
		this_cpu_inc(path->stats.cpu->migrated_to);
		atomic_inc(&per_cpu_ptr(path->stats.cpu, submitted_on)->migrated_from);
	}
	put_cpu();
}

/* Does the request bring its data, into the server's chunk or slot? Otherwise they are fetched. */
static bool rtrs_clt_is_push(const struct rtrs_clt_path *path, const struct rtrs_clt_io *io)
{
	return io->dir == DMA_TO_DEVICE &&
	       (!path->neg.slot_size || io->data_len <= path->neg.slot_size);
}

/*
 * Data that fit go through the slot's buffer, and so does none at all; but not a write that is
 * large and of few pieces.
 */
static bool rtrs_clt_is_small(const struct rtrs_clt_path *path, const struct rtrs_clt_io *io)
{
	return io->data_len <= path->neg.copy_size &&
	       (io->data_len <= RTRS_CLT_PUSH_COPY || io->dir == DMA_FROM_DEVICE ||
		io->nents >= path->neg.max_sge);
}

/* Order matters: the upper layer may use the slot again as soon as done() is called. */
static void rtrs_clt_slot_done(struct rtrs_clt_path *path,
			       struct rtrs_clt_slot *slot, int err)
{
	struct rtrs_clt_con *con = slot->con;
	int cpu = slot->cpu;
	struct rtrs_clt_io *io;

	WRITE_ONCE(con->done, con->done + 1);
	io = rtrs_clt_slot_clear(path, slot);
	if (io->data_len)
		rtrs_hist_add(path->stats.latency, io->dir == DMA_TO_DEVICE,
			      ktime_get_ns() - slot->start);
	rtrs_clt_count_done(path, cpu);
	trace_rtrs_clt_complete(path->clt->label, io->slot, err);
	io->done(io, err);
}

/**
 * rtrs_clt_slot_reclaim() - free a slot of a dead path
 * @path: path whose queue pairs are drained
 * @slot: slot of @path
 *
 * Return: the request, NULL if there is none.
 */
struct rtrs_clt_io *rtrs_clt_slot_reclaim(struct rtrs_clt_path *path,
					  struct rtrs_clt_slot *slot)
{
	if (!slot->io)
		return NULL;
	this_cpu_inc(path->stats.cpu->done);
	path->stats.reclaimed++;
	rtrs_clt_mr_put(path, slot);
	return rtrs_clt_slot_clear(path, slot);
}

/* The key is invalid now, so the request is complete. */
static void rtrs_clt_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_mr *mr = container_of(wc->wr_cqe, struct rtrs_clt_mr, inv_cqe);
	struct rtrs_clt_slot *slot = mr->slot;
	struct rtrs_con *con = &slot->con->con;
	struct rtrs_clt_path *path = to_clt_path(con->path);

	if (rtrs_con_wc_failed(con, wc, "invalidating a key"))
		return;
	rtrs_con_put_wr(con);
	rtrs_clt_mr_put(path, slot);
	rtrs_clt_slot_done(path, slot, slot->err);
}

/* The answer has come: complete the request, or invalidate its key first. */
static void rtrs_clt_slot_answered(struct rtrs_clt_path *path,
				   struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_mr *mr = slot->mr;

	if (slot->sending)
		return;
	if (!mr) {
		rtrs_clt_slot_done(path, slot, slot->err);
		return;
	}
	mr->inv_cqe.done = rtrs_clt_inv_done;
	mr->inv_wr.ex.invalidate_rkey = mr->mr->rkey;
	/* The send queue keeps room for it; no room means a bug of ours. */
	if (WARN_ON_ONCE(rtrs_con_post(&slot->con->con, &mr->inv_wr)))
		rtrs_clt_path_error(&path->path, -EBUSY, "invalidating a key");
}

/* The device has done with the data of a write. */
static void rtrs_clt_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_slot *slot = container_of(wc->wr_cqe,
						  struct rtrs_clt_slot, send_cqe);
	struct rtrs_con *con = &slot->con->con;

	if (rtrs_con_wc_failed(con, wc, "write"))
		return;
	rtrs_con_put_wr(con);
	slot->sending = false;
	if (!slot->queued)
		rtrs_clt_slot_answered(to_clt_path(con->path), slot);
}

/**
 * rtrs_clt_slot_init() - fill in the parts of a slot that don't change
 * @path: path that the slot is for
 * @slot: new slot
 */
void rtrs_clt_slot_init(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot)
{
	slot->send_cqe.done = rtrs_clt_send_done;
	slot->wr.wr.opcode = path->path.no_imm ? IB_WR_RDMA_WRITE : IB_WR_RDMA_WRITE_WITH_IMM;
	slot->wr.wr.sg_list = slot->sge;
}

/**
 * rtrs_clt_find_key() - find the slot whose key the server invalidated
 * @con: connection on which SEND WITH INV came
 * @rkey: key that was invalidated
 *
 * Return: the slot; NULL if there is no request with this key that was sent on @con and
 * has no answer yet. The key of data that the device still sends was never the server's.
 */
struct rtrs_clt_slot *rtrs_clt_find_key(struct rtrs_clt_con *con, u32 rkey)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot *slot = NULL;
	struct rtrs_clt_mr *mr = NULL;

	/* Pairs with rtrs_clt_slots_alloc(). */
	if (smp_load_acquire(&path->slots))
		mr = rtrs_clt_mr_find(path, rkey);
	/* A request of another connection may give it back at any time. */
	if (mr)
		slot = READ_ONCE(mr->slot);
	/* Pairs with rtrs_con_queue(). */
	if (!slot || smp_load_acquire(&slot->queued) != &con->con ||
	    slot->mr != mr || mr->mr->rkey != rkey || slot->sending)
		return NULL;
	return slot;
}

/**
 * rtrs_clt_invalidated() - handle a SEND WITH INV, as the device reports it
 * @con: connection on which it came
 * @rkey: key that it has invalidated
 *
 * Context: handlers of the connection.
 */
void rtrs_clt_invalidated(struct rtrs_clt_con *con, u32 rkey)
{
	struct rtrs_clt_slot *slot = rtrs_clt_find_key(con, rkey);

	if (unlikely(!slot)) {
		rtrs_clt_path_error(con->con.path, -EPROTO,
				    "the server invalidated a key that is not in use");
		return;
	}
	rtrs_clt_mr_put(to_clt_path(con->con.path), slot);
}

/**
 * rtrs_clt_find_slot() - find the slot that an answer is for
 * @con: connection on which the answer came
 * @nr: number of the slot, from the server
 *
 * Return: the slot; NULL if it has no request that was sent on @con and has no answer yet, or
 * one that the server has to answer by rtrs_clt_answer_inv().
 */
VISIBLE_IF_KUNIT struct rtrs_clt_slot *
rtrs_clt_find_slot(struct rtrs_clt_con *con, u32 nr)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot **slots, *slot;

	/* Pairs with rtrs_clt_slots_alloc(). */
	slots = smp_load_acquire(&path->slots);
	if (unlikely(!slots || nr >= path->neg.nr_slots))
		return NULL;
	slot = slots[nr];
	/* Pairs with rtrs_con_queue(). */
	if (unlikely(smp_load_acquire(&slot->queued) != &con->con))
		return NULL;
	return unlikely(path->neg.slot_size && slot->mr) ? NULL : slot;
}

/**
 * rtrs_clt_copy_back() - copy what a small read has brought
 * @slot: slot of a request with small data, to which the server has answered 0; its buffer is
 *	the CPU's
 *
 * The server may write to the buffer later, which changes nothing any more.
 */
VISIBLE_IF_KUNIT void rtrs_clt_copy_back(struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_io *io = slot->io;

	if (io->dir == DMA_FROM_DEVICE)
		sg_copy_from_buffer(io->sgl, io->nents, slot->buf, io->data_len);
}

/**
 * rtrs_clt_answer() - handle the answer to a request
 * @con: connection on which the answer came
 * @nr: number of the slot, from the server
 * @err: errno of the answer, 0 or negative
 * @rkey: new key of the slot's chunk, or NULL
 *
 * Context: handlers of the connection.
 */
void rtrs_clt_answer(struct rtrs_clt_con *con, u32 nr, int err, const u32 *rkey)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot *slot = rtrs_clt_find_slot(con, nr);

	if (unlikely(!slot)) {
		rtrs_clt_path_error(&path->path, -EPROTO,
				    "the server answered what was not asked");
		return;
	}
	/*
	 * An answer to what was never sent is the server's own invention, but
	 * the work request must be out of the chain before the slot is free.
	 */
	rtrs_con_flush(&con->con);

	trace_rtrs_clt_answer(path->path.name, nr, err);
	WRITE_ONCE(slot->queued, NULL);
	if (rkey)
		slot->rkey = *rkey;
	slot->err = err;
	if (rtrs_clt_is_small(path, slot->io) && !err) {
		ib_dma_sync_single_for_cpu(path->path.dev, slot->buf_dma,
					   slot->io->data_len, DMA_BIDIRECTIONAL);
		rtrs_clt_copy_back(slot);
	}
	rtrs_clt_slot_answered(path, slot);
}

/**
 * rtrs_clt_find_answered() - find the slot that a SEND WITH INV answers
 * @con: connection on which it came
 * @rkey: key that it has invalidated, as the device reports it
 * @nr: number of the slot, from the server
 *
 * Return: the slot; NULL if its request doesn't have this key, see rtrs_clt_find_key().
 */
VISIBLE_IF_KUNIT struct rtrs_clt_slot *
rtrs_clt_find_answered(struct rtrs_clt_con *con, u32 rkey, u32 nr)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot *slot = rtrs_clt_find_key(con, rkey);

	if (!slot || nr >= path->neg.nr_slots || path->slots[nr] != slot)
		return NULL;
	return slot;
}

/**
 * rtrs_clt_answer_inv() - handle the answer to a request with a memory region
 * @con: connection on which the answer came; its path has small slots
 * @rkey: key that the answer has invalidated, as the device reports it
 * @nr: number of the slot, from the server
 * @err: errno of the answer, 0 or negative
 *
 * Context: handlers of the connection.
 */
void rtrs_clt_answer_inv(struct rtrs_clt_con *con, u32 rkey, u32 nr, int err)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot *slot = rtrs_clt_find_answered(con, rkey, nr);

	if (unlikely(!slot)) {
		rtrs_clt_path_error(&path->path, -EPROTO,
				    "the server invalidated a key that is not the slot's");
		return;
	}
	/* As in rtrs_clt_answer(). */
	rtrs_con_flush(&con->con);

	trace_rtrs_clt_answer(path->path.name, nr, err);
	WRITE_ONCE(slot->queued, NULL);
	slot->err = err;
	if (likely(!path->neg.own_inv))
		rtrs_clt_mr_put(path, slot);
	rtrs_clt_slot_answered(path, slot);
}

/**
 * rtrs_clt_reg_access() - tell what a request's memory region allows
 * @path: path of the request
 * @io: the request
 *
 * Return: IB_ACCESS_*. The server may fetch a write's data only if it has small slots.
 */
VISIBLE_IF_KUNIT u32 rtrs_clt_reg_access(const struct rtrs_clt_path *path,
					 const struct rtrs_clt_io *io)
{
	if (io->dir == DMA_FROM_DEVICE)
		return IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	return IB_ACCESS_LOCAL_WRITE |
	       (path->neg.slot_size ? IB_ACCESS_REMOTE_READ : 0);
}

/* Registers the request's pages; they lie as struct rtrs_clt_limits demands. */
static int rtrs_clt_map_mr(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
			   struct rtrs_clt_io *io)
{
	struct ib_mr *mr;
	int n;

	if (unlikely(!rtrs_clt_mr_get(path, slot)))
		return -EBUSY;
	mr = slot->mr->mr;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	n = ib_map_mr_sg(mr, io->sgl, slot->nents, NULL, SZ_4K);
	if (unlikely(n != slot->nents)) {
		rtrs_clt_mr_put(path, slot);
		return n < 0 ? n : -EINVAL;
	}
	slot->mr->reg_wr.key = mr->rkey;
	slot->mr->reg_wr.access = rtrs_clt_reg_access(path, io);
	return 0;
}

/* The memory for a read's data, or with small slots of those that the server fetches. */
static void rtrs_clt_put_desc(const struct rtrs_clt_slot *slot,
			      const struct rtrs_clt_io *io, struct rtrs_desc *desc)
{
	const struct ib_mr *mr = slot->mr ? slot->mr->mr : NULL;

	desc->addr = cpu_to_le64(mr ? mr->iova : slot->buf_iova);
	desc->key = cpu_to_le32(mr ? mr->rkey : slot->buf_rkey);
	desc->len = cpu_to_le32(mr ? mr->length : io->data_len);
}

/* With small slots, the server invalidates each key that a request has of its own. */
static bool rtrs_clt_need_inval(const struct rtrs_clt_path *path,
				const struct rtrs_clt_slot *slot,
				const struct rtrs_clt_io *io)
{
	return path->neg.slot_size ? !!slot->mr : io->data_len > RTRS_CLT_LOCAL_INV;
}

/* Header with a descriptor, of a read or of a write whose data the server is to fetch. */
static u32 rtrs_clt_put_desc_hdr(const struct rtrs_clt_path *path,
				 const struct rtrs_clt_slot *slot,
				 const struct rtrs_clt_io *io, struct rtrs_msg_read *msg)
{
	msg->type = cpu_to_le16(io->dir == DMA_FROM_DEVICE ? RTRS_MSG_READ :
							     RTRS_MSG_FETCH);
	msg->usr_len = cpu_to_le16(io->msg_len);
	msg->flags = cpu_to_le16(rtrs_clt_need_inval(path, slot, io) ?
				 RTRS_READ_NEED_INVAL : 0);
	msg->nr_desc = cpu_to_le16(1);
	rtrs_clt_put_desc(slot, io, &msg->desc[0]);
	return struct_size(msg, desc, 1);
}

static u32 rtrs_clt_put_write_hdr(const struct rtrs_clt_io *io,
				  struct rtrs_msg_write *msg)
{
	msg->type = cpu_to_le16(RTRS_MSG_WRITE);
	msg->usr_len = cpu_to_le16(io->msg_len);
	return sizeof(*msg);
}

/* Writes a request's headers to @hdr; its region, if any, is mapped. Returns their length. */
static u32 rtrs_clt_put_hdr(const struct rtrs_clt_path *path,
			    const struct rtrs_clt_slot *slot,
			    const struct rtrs_clt_io *io, void *hdr)
{
	void *msg = hdr + io->msg_len;

	memcpy(hdr, io->msg, io->msg_len);
	if (io->dir == DMA_FROM_DEVICE || (path->neg.slot_size && slot->mr))
		return io->msg_len + rtrs_clt_put_desc_hdr(path, slot, io, msg);
	return io->msg_len + rtrs_clt_put_write_hdr(io, msg);
}

/* Lists a write's data; returns the number of entries. */
static u32 rtrs_clt_put_data(struct rtrs_clt_path *path,
			     struct rtrs_clt_slot *slot,
			     const struct rtrs_clt_io *io)
{
	struct scatterlist *sg;
	int i;

	if (slot->mr) {
		slot->sge[0].addr = slot->mr->mr->iova;
		slot->sge[0].length = slot->mr->mr->length;
		slot->sge[0].lkey = slot->mr->mr->lkey;
		return 1;
	}
	for_each_sg(io->sgl, sg, slot->nents, i) {
		slot->sge[i].addr = sg_dma_address(sg);
		slot->sge[i].length = sg_dma_len(sg);
		slot->sge[i].lkey = path->path.pd->local_dma_lkey;
	}
	return slot->nents;
}

/* Adds @len bytes of the slot's buffer, from @off on, to what is sent. */
static void rtrs_clt_add_buf(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
			     u32 off, u32 len)
{
	struct ib_sge *sge = &slot->sge[slot->wr.wr.num_sge++];

	sge->addr = slot->buf_dma + off;
	sge->length = len;
	sge->lkey = path->path.pd->local_dma_lkey;
}

/*
 * What is sent to the server: the headers, behind a write's data, be they copied to the
 * buffer or sent from where they lie. Those of other requests are behind the room for data in
 * our buffer; in a chunk, the data of a read have the same room as a write's. Returns where
 * the headers are in the chunk or slot.
 */
static u32 rtrs_clt_fill(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
			 const struct rtrs_clt_io *io)
{
	bool small = rtrs_clt_is_small(path, io), push = rtrs_clt_is_push(path, io);
	u32 data = push && small ? io->data_len : 0;
	u32 off = push && small ? 0 : path->neg.copy_size;
	bool chunk = !path->neg.slot_size;
	struct ib_rdma_wr *wr = &slot->wr;
	u32 len;

	if (data)
		sg_copy_to_buffer(io->sgl, io->nents, slot->buf, data);
	len = rtrs_clt_put_hdr(path, slot, io, slot->buf + off + data);
	wr->wr.num_sge = push && !small ? rtrs_clt_put_data(path, slot, io) : 0;
	slot->sending = wr->wr.num_sge;
	if (chunk && !push)
		wr->remote_addr += io->data_len;
	rtrs_clt_add_buf(path, slot, off, data + len);
	return chunk || push ? io->data_len : 0;
}

/**
 * rtrs_clt_build() - build a request's work requests
 * @path: path of the request
 * @slot: its slot; data that need a memory region are mapped
 * @io: the request
 *
 * Return: the first of the chain.
 */
VISIBLE_IF_KUNIT struct ib_send_wr *rtrs_clt_build(struct rtrs_clt_path *path,
						   struct rtrs_clt_slot *slot,
						   const struct rtrs_clt_io *io)
{
	struct ib_rdma_wr *wr = &slot->wr;
	u32 off, payload, imm;

	wr->remote_addr = slot->raddr;
	wr->rkey = slot->rkey;
	off = rtrs_clt_fill(path, slot, io);
	wr->wr.next = NULL;
	wr->wr.send_flags = slot->sending ? IB_SEND_SIGNALED : 0;
	wr->wr.wr_cqe = &slot->send_cqe;
	payload = rtrs_imm_req(io->slot, off + io->msg_len,
			       rtrs_imm_off_bits(path->neg.depth));
	imm = rtrs_imm(RTRS_IMM_IO_REQ, payload);
	wr->wr.ex.imm_data = cpu_to_be32(imm);
	if (unlikely(path->path.no_imm)) {
		rtrs_put_msg_imm(&slot->imm.wr.wr, &slot->imm.sge, &slot->imm.msg, imm);
		slot->imm.wr.wr.next = NULL;
		wr->wr.next = &slot->imm.wr.wr;
	}
	if (!slot->mr)
		return &wr->wr;
	/* rtrs_con_queue() may have asked for a signal the last time. */
	slot->mr->reg_wr.wr.send_flags = 0;
	slot->mr->reg_wr.wr.next = &wr->wr;
	return &slot->mr->reg_wr.wr;
}

/* Makes the request's data ready for the device. */
static int rtrs_clt_map_data(struct rtrs_clt_path *path,
			     struct rtrs_clt_slot *slot, struct rtrs_clt_io *io)
{
	int ret;

	if (!io->nents || rtrs_clt_is_small(path, io))
		return 0;
	slot->nents = ib_dma_map_sg(path->path.dev, io->sgl, io->nents, io->dir);
	/* The space of an IOMMU, or of bounce buffers, may be used up for a moment. */
	if (unlikely(!slot->nents))
		return -EBUSY;
	if (rtrs_clt_is_push(path, io) && slot->nents < path->neg.max_sge)
		return 0;
	ret = rtrs_clt_map_mr(path, slot, io);
	if (unlikely(ret)) {
		ib_dma_unmap_sg(path->path.dev, io->sgl, io->nents, io->dir);
		slot->nents = 0;
	}
	return ret;
}

static void rtrs_clt_count(struct rtrs_clt_path *path, bool write, u32 bytes)
{
	this_cpu_inc(path->stats.cpu->ops[write]);
	this_cpu_add(path->stats.cpu->bytes[write], bytes);
}

/**
 * rtrs_clt_send_over() - send a request over a path
 * @path: path that takes requests
 * @io: the request
 * @last: ring the doorbell; otherwise the request may wait for rtrs_con_flush()
 *
 * Context: any, RCU read side.
 * Return: 0, -EBUSY if the queue is full, there is no free memory region, or the data can't
 * be mapped for the device right now, or the errno of registering it.
 */
int rtrs_clt_send_over(struct rtrs_clt_path *path, struct rtrs_clt_io *io,
		       bool last)
{
	struct rtrs_clt_con *con = &path->cons[io->queue + 1];
	struct rtrs_clt_slot *slot = path->slots[io->slot];
	bool write = io->dir == DMA_TO_DEVICE;
	u32 bytes = io->data_len;
	u16 nr = io->slot;
	struct ib_send_wr *first;
	struct ib_sge *sge;
	int ret;

	ret = rtrs_clt_map_data(path, slot, io);
	if (unlikely(ret))
		return ret;
	slot->io = io;
	slot->con = con;
	slot->cpu = raw_smp_processor_id();
	slot->start = ktime_get_ns();
	io->priv.path = path;
	first = rtrs_clt_build(path, slot, io);
	/* What comes from the slot's buffer stands last. */
	sge = &slot->sge[slot->wr.wr.num_sge - 1];
	ib_dma_sync_single_for_device(path->path.dev, sge->addr, sge->length,
				      DMA_BIDIRECTIONAL);
	ret = rtrs_con_queue(&con->con, first, last, &slot->queued);
	trace_rtrs_clt_post(path->path.name, nr, ret);
	if (likely(!ret)) {
		/* @io may be done and gone by now. */
		rtrs_clt_count(path, write, bytes);
		return 0;
	}
	rtrs_clt_mr_put(path, slot);
	rtrs_clt_slot_clear(path, slot);
	/* If it waits and is given up, that isn't this path's fault. */
	io->priv.path = NULL;
	return ret;
}
