// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on a path, from sending to the answer.
 *
 * enum rtrs_form names the forms in which data travel.
 *
 * Copied data: PUSH, READ, CHUNK_READ
 *
 * Each slot has a buffer that stays mapped for the device as long as the path is connected. The
 * data of a small write are copied into the buffer, followed by the headers, and both are sent by
 * one unsignalled RDMA WRITE WITH IMM. A small read names the buffer by its permanent remote key.
 * The server writes the data there before or with its answer, and the client copies them to the
 * caller's pages. Neither needs a memory region of its own.
 *
 * If an acknowledgment is lost, the device may send the buffer again after the answer, when it
 * already contains a later request. This is harmless: the server's device has received these
 * packets, and drops them by their sequence numbers.
 *
 * Writes in place: PUSH_PAGES
 *
 * An RDMA WRITE WITH IMM sends the caller's data in place, followed by the headers. Data with more
 * segments than a send has SGEs are registered, and sent through the memory region's local key.
 *
 * On iWARP, which has no immediate data, a SEND of a few bytes follows the RDMA WRITE of a request
 * in the same chain.
 *
 * Registered pages: READ_PAGES, FETCH, CHUNK_READ_PAGES
 *
 * A request is two work requests: one registers the caller's pages with a memory region of the
 * path, the other writes the headers, which contain its key. The server writes to the pages, or
 * reads from them. With RTRS_FEATURE_SLOTS, it answers with a SEND WITH INV that invalidates the
 * key and contains slot and errno. Without it, the answer is an immediate value, and the client
 * invalidates the key, as it does after a write in place that needed a memory region.
 *
 * Completion
 *
 * A request is complete when three conditions hold: The answer has arrived. The device has finished
 * sending the data of a write in place: if an acknowledgment is lost, it sends them again although
 * the server has received them. The key is invalid.
 *
 * Invalid keys
 *
 * Whether a key is invalid is decided by the device's report, never by the server's message. The
 * report of soft-iWARP is not reliable either: siw reports a key as invalidated even if the work
 * request that registers it is still in the send queue, and the peer can delay this queue. The key
 * would become valid later, when the pages are already in use for something else. So on siw the
 * client invalidates such a key again, in the same queue behind its registration, and completes the
 * request after that. siw accepts a LOCAL INV of an invalid key. Other devices check the key before
 * they report it.
 *
 * Without RTRS_FEATURE_SLOTS the client never requests a SEND WITH INV. If the server sends one all
 * the same, it is ignored, and the client invalidates the key after the answer in any case. A
 * device that rejects a LOCAL INV of an invalid key ends the path.
 *
 * Ordering
 *
 * All completion handlers of a slot run on one completion queue, hence never concurrently.
 *
 * A device keeps the order of work requests only within one queue pair. A request registers and
 * invalidates its memory region on its own connection. The next request to use the memory region
 * may be on another connection, but starts only after the completion that reports the key as
 * invalid.
 *
 * When a path ends, its queue pairs are drained. Requests that are left wait for another path; see
 * rtrs_clt_slots_reclaim() and failover.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>

#include "clt.h"
#include "trace.h"

/* Frees a slot, and returns its request. */
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

	this_cpu_inc(path->path.stats->done);
	if (cpu != submitted_on) {
		this_cpu_inc(path->stats.cpu->migrated_to);
		atomic_inc(&per_cpu_ptr(path->stats.cpu, submitted_on)->migrated_from);
	}
	put_cpu();
}

/**
 * rtrs_clt_io_form() - choose how a request's data travel
 * @path: path of the request, after negotiation
 * @io: the request
 *
 * Return: the form for &rtrs_clt_slot.form.
 */
VISIBLE_IF_KUNIT enum rtrs_form rtrs_clt_io_form(const struct rtrs_clt_path *path,
						 const struct rtrs_clt_io *io)
{
	bool fits = io->data_len <= path->neg.copy_size;
	bool chunks = !path->neg.slot_size;

	if (io->dir == DMA_FROM_DEVICE && chunks)
		return fits ? RTRS_FORM_CHUNK_READ : RTRS_FORM_CHUNK_READ_PAGES;
	if (io->dir == DMA_FROM_DEVICE)
		return fits ? RTRS_FORM_READ : RTRS_FORM_READ_PAGES;
	/* Copying more costs more than sending it in place. */
	if (fits && (io->data_len <= RTRS_CLT_PUSH_COPY || io->nents >= path->neg.max_sge))
		return RTRS_FORM_PUSH;
	return fits || chunks ? RTRS_FORM_PUSH_PAGES : RTRS_FORM_FETCH;
}

/* Returns true if the server writes the data of a read to the slot's buffer. */
static bool rtrs_clt_reads_buf(enum rtrs_form form)
{
	return form == RTRS_FORM_READ || form == RTRS_FORM_CHUNK_READ;
}

/* Returns true if the answer is a SEND WITH INV, which invalidates the request's key. */
static bool rtrs_clt_answer_invalidates(enum rtrs_form form)
{
	return form == RTRS_FORM_FETCH || form == RTRS_FORM_READ_PAGES;
}

/* Completes a request. The slot is freed first: done() allows the upper layer to reuse it. */
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
	this_cpu_inc(path->path.stats->done);
	path->stats.reclaimed++;
	rtrs_clt_mr_put(path, slot);
	return rtrs_clt_slot_clear(path, slot);
}

/* Completes the request, as its key is invalid now. */
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

/*
 * Called when the answer has arrived, and when the device has sent the data. Completes the request,
 * or invalidates its key first.
 */
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
	/* The send queue reserves room for this work request, so a failure is a bug. */
	if (WARN_ON_ONCE(rtrs_con_post(&slot->con->con, &mr->inv_wr)))
		rtrs_clt_path_error(&path->path, -EBUSY, "invalidating a key");
}

/* Called when the device has finished sending the data of a write. */
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
 * rtrs_clt_slot_init() - initialize the constant fields of a slot
 * @path: path of the slot
 * @slot: new slot
 */
void rtrs_clt_slot_init(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot)
{
	slot->send_cqe.done = rtrs_clt_send_done;
	slot->wr.wr.opcode = path->path.no_imm ? IB_WR_RDMA_WRITE : IB_WR_RDMA_WRITE_WITH_IMM;
	slot->wr.wr.sg_list = slot->sge;
}

/**
 * rtrs_clt_find_slot() - find the slot of an answered request
 * @con: connection on which the answer was received
 * @nr: number of the slot, from the server
 *
 * Return: the slot, or NULL unless its request was sent on @con and is unanswered.
 */
VISIBLE_IF_KUNIT struct rtrs_clt_slot *
rtrs_clt_find_slot(struct rtrs_clt_con *con, u32 nr)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot **slots;

	/* Pairs with rtrs_clt_slots_alloc(). */
	slots = smp_load_acquire(&path->slots);
	if (unlikely(!slots || nr >= path->neg.nr_slots))
		return NULL;
	/* Pairs with rtrs_con_queue(). */
	if (unlikely(smp_load_acquire(&slots[nr]->queued) != &con->con))
		return NULL;
	return slots[nr];
}

/**
 * rtrs_clt_key_matches() - check the key that an answer has invalidated
 * @slot: slot of the answered request
 * @rkey: invalidated key, as reported by the device; NULL: the answer is an immediate value
 *
 * Return: true if the answer has the type that the request's form requires, and @rkey is the
 * request's key.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_key_matches(const struct rtrs_clt_slot *slot, const u32 *rkey)
{
	if (!rtrs_clt_answer_invalidates(slot->form))
		return !rkey;
	return rkey && slot->mr->mr->rkey == *rkey;
}

/**
 * rtrs_clt_copy_back() - copy the data of a small read to the caller's pages
 * @path: path of the request
 * @slot: slot of a request that the server has answered with 0; nothing is done unless the slot's
 *	buffer contains the data of a read
 *
 * The server may still write to the buffer, but this no longer affects the request.
 */
VISIBLE_IF_KUNIT void rtrs_clt_copy_back(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot)
{
	struct rtrs_clt_io *io = slot->io;

	if (!rtrs_clt_reads_buf(slot->form))
		return;
	ib_dma_sync_single_for_cpu(path->path.dev, slot->buf_dma, io->data_len,
				   DMA_BIDIRECTIONAL);
	sg_copy_from_buffer(io->sgl, io->nents, slot->buf, io->data_len);
}

/**
 * rtrs_clt_answer() - handle the answer to a request
 * @con: connection on which the answer was received
 * @answer: the answer
 *
 * Context: completion handlers of the connection.
 */
void rtrs_clt_answer(struct rtrs_clt_con *con, const struct rtrs_clt_answer *answer)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	struct rtrs_clt_slot *slot = rtrs_clt_find_slot(con, answer->slot);

	if (unlikely(!slot || !rtrs_clt_key_matches(slot, answer->inv_rkey))) {
		rtrs_clt_path_error(&path->path, -EPROTO, answer->inv_rkey ?
				    "the server invalidated a key that is not the slot's" :
				    "the server answered a request that was not sent");
		return;
	}
	/*
	 * A malicious server may answer a request whose work requests are still queued. They must
	 * be posted before the slot is freed.
	 */
	rtrs_con_flush(&con->con);

	trace_rtrs_clt_answer(path->path.name, answer->slot, answer->err);
	WRITE_ONCE(slot->queued, NULL);
	if (answer->new_rkey)
		slot->rkey = *answer->new_rkey;
	slot->err = answer->err;
	if (!answer->err)
		rtrs_clt_copy_back(path, slot);
	if (answer->inv_rkey && likely(!path->neg.own_inv))
		rtrs_clt_mr_put(path, slot);
	rtrs_clt_slot_answered(path, slot);
}

/**
 * rtrs_clt_reg_access() - get the access rights of a request's memory region
 * @form: form of the request
 *
 * Return: IB_ACCESS_*.
 */
VISIBLE_IF_KUNIT u32 rtrs_clt_reg_access(enum rtrs_form form)
{
	switch (form) {
	case RTRS_FORM_FETCH:
		return IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ;
	case RTRS_FORM_READ_PAGES:
	case RTRS_FORM_CHUNK_READ_PAGES:
		return IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	default:
		return IB_ACCESS_LOCAL_WRITE;
	}
}

/*
 * Maps the request's pages to a memory region. The caller has aligned them, see struct
 * rtrs_clt_limits.
 */
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
	slot->mr->reg_wr.access = rtrs_clt_reg_access(slot->form);
	return 0;
}

/* Writes the header of a read, or of a write whose data the server fetches. Returns its length. */
static u32 rtrs_clt_put_desc_hdr(const struct rtrs_clt_slot *slot,
				 const struct rtrs_clt_io *io, struct rtrs_msg_read *msg)
{
	bool buf = rtrs_clt_reads_buf(slot->form);

	msg->type = cpu_to_le16(slot->form == RTRS_FORM_FETCH ? RTRS_MSG_FETCH : RTRS_MSG_READ);
	msg->usr_len = cpu_to_le16(io->msg_len);
	msg->flags = cpu_to_le16(rtrs_clt_answer_invalidates(slot->form) ?
				 RTRS_READ_NEED_INVAL : 0);
	msg->nr_desc = cpu_to_le16(1);
	msg->desc[0].addr = cpu_to_le64(buf ? slot->buf_iova : slot->mr->mr->iova);
	msg->desc[0].key = cpu_to_le32(buf ? slot->buf_rkey : slot->mr->mr->rkey);
	msg->desc[0].len = cpu_to_le32(io->data_len);
	return struct_size(msg, desc, 1);
}

/* Writes the headers to @hdr and returns their length. The memory region, if any, is mapped. */
static u32 rtrs_clt_put_hdr(const struct rtrs_clt_slot *slot,
			    const struct rtrs_clt_io *io, void *hdr)
{
	struct rtrs_msg_write *msg = hdr + io->msg_len;

	memcpy(hdr, io->msg, io->msg_len);
	if (slot->form != RTRS_FORM_PUSH && slot->form != RTRS_FORM_PUSH_PAGES)
		return io->msg_len + rtrs_clt_put_desc_hdr(slot, io, (void *)msg);
	msg->type = cpu_to_le16(RTRS_MSG_WRITE);
	msg->usr_len = cpu_to_le16(io->msg_len);
	return io->msg_len + sizeof(*msg);
}

/* Fills in the SGEs of a write's data, and returns their number. */
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

/*
 * Fills in the slot's buffer and SGEs, and returns the offset of the headers in the server's chunk
 * or slot.
 *
 * In a chunk or slot, a write's headers follow its data, whether these are copied or sent in place.
 * In a chunk, a read's headers also follow room for its data. In the slot's buffer, the headers of
 * a write with copied data follow these; all other headers follow the room for data.
 */
static u32 rtrs_clt_fill(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
			 const struct rtrs_clt_io *io)
{
	u32 buf_off = path->neg.copy_size, copied = 0, off = 0;
	struct ib_rdma_wr *wr = &slot->wr;
	struct ib_sge *sge;

	slot->sending = false;
	wr->wr.num_sge = 0;
	switch (slot->form) {
	case RTRS_FORM_PUSH:
		buf_off = 0;
		off = io->data_len;
		copied = off;
		if (copied)
			sg_copy_to_buffer(io->sgl, io->nents, slot->buf, copied);
		break;
	case RTRS_FORM_PUSH_PAGES:
		off = io->data_len;
		wr->wr.num_sge = rtrs_clt_put_data(path, slot, io);
		slot->sending = true;
		break;
	case RTRS_FORM_CHUNK_READ:
	case RTRS_FORM_CHUNK_READ_PAGES:
		off = io->data_len;
		wr->remote_addr += off;
		break;
	case RTRS_FORM_FETCH:
	case RTRS_FORM_READ:
	case RTRS_FORM_READ_PAGES:
		break;
	}
	sge = &slot->sge[wr->wr.num_sge++];
	sge->addr = slot->buf_dma + buf_off;
	sge->length = copied + rtrs_clt_put_hdr(slot, io, slot->buf + buf_off + copied);
	sge->lkey = path->path.pd->local_dma_lkey;
	return off;
}

/**
 * rtrs_clt_build() - build the work requests of a request
 * @path: path of the request
 * @slot: slot of the request, with its form; data that need a memory region are mapped
 * @io: the request
 *
 * Return: the first work request of the chain.
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
	/* rtrs_con_queue() may have set IB_SEND_SIGNALED when the memory region was last used. */
	slot->mr->reg_wr.wr.send_flags = 0;
	slot->mr->reg_wr.wr.next = &wr->wr;
	return &slot->mr->reg_wr.wr;
}

/* Maps the request's data, unless they are copied, for DMA and, if needed, to a memory region. */
static int rtrs_clt_map_data(struct rtrs_clt_path *path,
			     struct rtrs_clt_slot *slot, struct rtrs_clt_io *io)
{
	int ret;

	if (slot->form == RTRS_FORM_PUSH || rtrs_clt_reads_buf(slot->form))
		return 0;
	slot->nents = ib_dma_map_sg(path->path.dev, io->sgl, io->nents, io->dir);
	/* The IOMMU or the bounce buffers may be exhausted temporarily. */
	if (unlikely(!slot->nents))
		return -EBUSY;
	if (slot->form == RTRS_FORM_PUSH_PAGES && slot->nents < path->neg.max_sge)
		return 0;
	ret = rtrs_clt_map_mr(path, slot, io);
	if (unlikely(ret)) {
		ib_dma_unmap_sg(path->path.dev, io->sgl, io->nents, io->dir);
		slot->nents = 0;
	}
	return ret;
}

/**
 * rtrs_clt_send_over() - send a request over a path
 * @path: path that accepts requests
 * @io: the request
 * @last: ring the doorbell; otherwise the request may stay queued until rtrs_con_flush()
 *
 * Context: any, RCU read side.
 * Return: 0; -EBUSY if the send queue is full, no memory region is free, or the data can't be
 * mapped for DMA at the moment; or the errno of mapping them to a memory region.
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

	slot->form = rtrs_clt_io_form(path, io);
	ret = rtrs_clt_map_data(path, slot, io);
	if (unlikely(ret))
		return ret;
	slot->io = io;
	slot->con = con;
	slot->cpu = raw_smp_processor_id();
	slot->start = ktime_get_ns();
	io->priv.path = path;
	first = rtrs_clt_build(path, slot, io);
	/* The last SGE is the part of the slot's buffer. */
	sge = &slot->sge[slot->wr.wr.num_sge - 1];
	ib_dma_sync_single_for_device(path->path.dev, sge->addr, sge->length,
				      DMA_BIDIRECTIONAL);
	ret = rtrs_con_queue(&con->con, first, last, &slot->queued);
	trace_rtrs_clt_post(path->path.name, nr, ret);
	if (likely(!ret)) {
		/* @io may be completed and freed by now. */
		this_cpu_inc(path->path.stats->ops[write]);
		this_cpu_add(path->path.stats->bytes[write], bytes);
		return 0;
	}
	rtrs_clt_mr_put(path, slot);
	rtrs_clt_slot_clear(path, slot);
	/* If the request waits and rtrs_clt_give_up() is called, this path must not be ended. */
	io->priv.path = NULL;
	return ret;
}
