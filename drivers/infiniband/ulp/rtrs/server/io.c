// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests, from their arrival until they are passed to the upper layer; send.c handles them from
 * there on. A request arrives as an RDMA WRITE WITH IMM into the chunk of its slot. The immediate
 * value contains the offset of the request's header in the chunk. The server copies the header and
 * the user message, and checks the copies. Then it passes the request and the location of its data
 * to the upper layer.
 *
 * With always_invalidate, the client cannot change data that the upper layer uses: storage stacks
 * that checksum or repair data, such as btrfs or dm-integrity, must not see concurrent changes. The
 * keys of chunks stay valid as long as the path, so the upper layer uses other memory. The data of
 * a write are copied there before the upper layer gets the request; the data of a read are copied
 * to the chunk when the read is complete. Without always_invalidate, the data stay in the chunk.
 *
 * With RTRS_FEATURE_SLOTS, chunks are small, and only small data go through them. Large data are
 * fetched into a buffer, or sent from one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>

#include "srv.h"
#include "trace.h"

/*
 * Parses a request with a descriptor: a read, or a request whose data have to be fetched. @hdr and
 * @desc are copies. Returns 0, or -EINVAL for the answer.
 */
static int rtrs_srv_parse_desc(struct rtrs_srv_io *io, const struct rtrs_msg_read *hdr,
			       const struct rtrs_desc *desc, u32 max)
{
	u16 nr_desc = le16_to_cpu(hdr->nr_desc);
	u16 flags = le16_to_cpu(hdr->flags);

	io->op.dir = io->fetch ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	io->op.data_len = 0;
	if (nr_desc > 1 || flags & ~RTRS_READ_NEED_INVAL ||
	    (!nr_desc && (flags || io->fetch)))
		return -EINVAL;
	if (!nr_desc)
		return 0;
	io->desc_addr = le64_to_cpu(desc->addr);
	io->desc_key = le32_to_cpu(desc->key);
	if (rtrs_srv_has_slots(io->con->path))
		io->need_inval = flags & RTRS_READ_NEED_INVAL;
	if (le32_to_cpu(desc->len) > max || (io->fetch && !desc->len))
		return -EINVAL;
	io->desc_len = le32_to_cpu(desc->len);
	io->need_inval = flags & RTRS_READ_NEED_INVAL;
	io->op.data_len = io->desc_len;
	return 0;
}

/**
 * rtrs_srv_parse() - copy and check a request's headers
 * @io: request whose hdr_off has been checked by rtrs_srv_parse_imm()
 *
 * Each byte of the chunk is read once, as the client may change it at any time.
 *
 * Return: 0; -EINVAL if the request has to be answered with that errno; -EPROTO if the message is
 * invalid.
 */
VISIBLE_IF_KUNIT int rtrs_srv_parse(struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;
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
	if (type != RTRS_MSG_WRITE && type != RTRS_MSG_READ &&
	    !(type == RTRS_MSG_FETCH && rtrs_srv_has_slots(path) && io->con->fetch.max_reads))
		return -EPROTO;
	if (usr_len > RTRS_MAX_MSG_LEN || usr_len > io->hdr_off)
		return -EPROTO;
	data_len = io->hdr_off - usr_len;
	if (data_len > path->mem.room)
		return -EPROTO;

	op->msg_len = usr_len;
	memcpy(op->msg, io->chunk + data_len, usr_len);
	io->desc_len = 0;
	io->need_inval = false;
	io->fetch = type == RTRS_MSG_FETCH;
	if (type != RTRS_MSG_WRITE) {
		if (rtrs_srv_has_slots(path) && data_len)
			return -EPROTO;
		return rtrs_srv_parse_desc(io, &h.hdr, &h.desc,
					   rtrs_srv_has_slots(path) ? path->mem.max_io :
								      data_len);
	}
	op->dir = DMA_TO_DEVICE;
	op->data_len = data_len;
	return 0;
}

static void rtrs_srv_count(const struct rtrs_srv_path *path,
			   const struct rtrs_srv_op *op)
{
	bool write = op->dir != DMA_FROM_DEVICE;

	this_cpu_inc(path->path.stats->ops[write]);
	this_cpu_add(path->path.stats->bytes[write], op->data_len);
}

/* Passes a request to the upper layer. With always_invalidate, the client can't access its data. */
static void rtrs_srv_hand_up(struct rtrs_srv_io *io)
{
	io->con->path->sess->srv->ops->request(&io->op);
}

static void rtrs_srv_fetched(struct rtrs_srv_io *io, bool fetched)
{
	if (likely(fetched))
		rtrs_srv_hand_up(io);
	else
		rtrs_srv_io_drop(io);
}

/* Fetches or copies the data of a write, now that the request has memory for them. */
static void rtrs_srv_data_in(struct rtrs_srv_io *io)
{
	if (io->fetch) {
		rtrs_srv_fetch(io);
		return;
	}
	if (io->op.dir == DMA_TO_DEVICE)
		rtrs_srv_buf_copy(io);
	rtrs_srv_hand_up(io);
}

/* Checks whether the data stay in the chunk. */
static bool rtrs_srv_in_place(const struct rtrs_srv_io *io)
{
	const struct rtrs_srv_path *path = io->con->path;

	return !path->sess->always_invalidate && !io->fetch && io->op.data_len <= path->mem.room;
}

static void rtrs_srv_get_data(struct rtrs_srv_io *io)
{
	struct rtrs_srv_op *op = &io->op;

	op->nents = 0;
	if (!op->data_len) {
		rtrs_srv_hand_up(io);
	} else if (rtrs_srv_in_place(io)) {
		sg_init_one(&io->sg, io->chunk, op->data_len);
		op->sgl = &io->sg;
		op->nents = 1;
		rtrs_srv_hand_up(io);
	} else if (likely(!rtrs_srv_buf_get(io))) {
		rtrs_srv_data_in(io);
	}
}

/* Parses a request, once, and begins to process it. */
static void rtrs_srv_dispatch(struct rtrs_srv_io *io)
{
	struct rtrs_srv_path *path = io->con->path;
	int ret;

	/* Data and user message, then headers */
	ib_dma_sync_single_for_cpu(path->path.dev, io->dma, io->hdr_off +
				   sizeof(struct rtrs_msg_read) + sizeof(struct rtrs_desc),
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
		rtrs_srv_get_data(io);
}

/* Begins a request that holds its slot and a reference on its path. */
static void rtrs_srv_io_begin(struct rtrs_srv_io *io)
{
	if (unlikely(rtrs_srv_path_state(io->con->path) != RTRS_SRV_CONNECTED))
		rtrs_srv_io_drop(io);
	else
		rtrs_srv_dispatch(io);
}

/*
 * Begins requests under one plug, so that disks receive them as a batch and contiguous requests are
 * merged. Nothing here may wait, nor may the end of the plug: requests for other disks follow. Data
 * of up to all slots are copied, so other tasks may run in between.
 */
static void rtrs_srv_begin_work(struct work_struct *work)
{
	struct rtrs_srv_con *con = container_of(work, struct rtrs_srv_con, begin_work);
	struct llist_node *arrived = llist_reverse_order(llist_del_all(&con->arrived));
	struct rtrs_srv_io *io, *next;
	struct blk_plug plug;

	blk_start_plug(&plug);
	llist_for_each_entry_safe(io, next, arrived, arrived) {
		INIT_LIST_HEAD(&io->pending);
		rtrs_srv_io_begin(io);
		cond_resched();
	}
	blk_finish_plug(&plug);
}

/*
 * Checks whether more than RTRS_SRV_FEW requests are in progress. The number of answers, in another
 * cache line, is read only if the cached number exceeds the limit.
 */
static bool rtrs_srv_many(struct rtrs_srv_con *con)
{
	if (con->nr_arrived - con->nr_answered > RTRS_SRV_FEW)
		con->nr_answered = READ_ONCE(con->con.nr_answered);
	return con->nr_arrived - con->nr_answered > RTRS_SRV_FEW;
}

/*
 * Begins a request that holds its slot, now or together with others that the device has reported. A
 * completion handler doesn't know which request is the last one of a batch, so a work item provides
 * the plug.
 */
static void rtrs_srv_io_arrived(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = io->con;

	if (!rtrs_srv_many(con))
		rtrs_srv_io_begin(io);
	else if (llist_add(&io->arrived, &con->arrived))
		queue_work(rtrs_srv_io_wq, &con->begin_work);
}

/**
 * rtrs_srv_resume_work() - begin requests that waited for their slots
 * @work: &rtrs_srv_slots.resume_work of a session
 */
void rtrs_srv_resume_work(struct work_struct *work)
{
	struct rtrs_srv_sess *sess = container_of(work, struct rtrs_srv_sess,
						  slots.resume_work);
	struct rtrs_srv_io *io;

	while ((io = rtrs_srv_slot_next_resumed(sess))) {
		rtrs_srv_io_begin(io);
		cond_resched();
	}
}

/**
 * rtrs_srv_bufs_work() - continue requests that waited for memory
 * @work: &rtrs_srv_bufs.work of a session
 */
void rtrs_srv_bufs_work(struct work_struct *work)
{
	struct rtrs_srv_sess *sess = container_of(to_delayed_work(work),
						  struct rtrs_srv_sess, bufs.work);
	struct rtrs_srv_io *io;
	u32 i;

	for (i = 0; i < RTRS_SRV_WORK_BATCH; i++) {
		io = rtrs_srv_bufs_next(sess);
		if (!io)
			return;
		if (rtrs_srv_path_state(io->con->path) == RTRS_SRV_CONNECTED)
			rtrs_srv_data_in(io);
		else
			rtrs_srv_io_drop(io);
	}
	mod_delayed_work(rtrs_srv_pull_wq, &sess->bufs.work, 0);
}

/**
 * rtrs_srv_con_init_io() - initialize a connection's members for arriving requests
 * @con: new connection
 */
void rtrs_srv_con_init_io(struct rtrs_srv_con *con)
{
	init_llist_head(&con->arrived);
	INIT_WORK(&con->begin_work, rtrs_srv_begin_work);
	rtrs_srv_fetch_init(con, rtrs_srv_fetched);
}

/**
 * rtrs_srv_drop_orphans() - drop requests that no completion will end
 * @path: path that is closing, with no outstanding receives, and no outstanding sends except
 *	answers
 *
 * Such requests wait for another path to release their slot, or for memory.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_drop_orphans(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	u32 i;

	if (!path->ios.mem)
		return;
	while ((io = rtrs_srv_bufs_forget(path)))
		rtrs_srv_io_drop(io);
	for (i = 0; i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		if (rtrs_srv_slot_forget(path->sess, io))
			percpu_ref_put(&path->ios.ref);
	}
}

/**
 * rtrs_srv_parse_imm() - parse the payload of a request's immediate value
 * @path: path of the request
 * @payload: payload of the immediate value
 * @slot: set to the slot of the request
 * @off: set to the offset of the header in the slot's chunk
 *
 * Return: false if the slot does not exist, or the headers would not fit in the chunk.
 */
bool rtrs_srv_parse_imm(const struct rtrs_srv_path *path, u32 payload, u32 *slot,
			u32 *off)
{
	const struct rtrs_srv_sess *sess = path->sess;

	*slot = rtrs_imm_req_slot(payload, sess->off_bits);
	*off = rtrs_imm_req_off(payload, sess->off_bits);
	return *slot < sess->queue_depth && *off <= path->mem.room + RTRS_MAX_MSG_LEN;
}

/**
 * rtrs_srv_request() - handle the arrival of a request
 * @con: connection on which the request arrived; its path is connected
 * @payload: payload of its immediate value
 *
 * Context: completion handler of a receive.
 */
void rtrs_srv_request(struct rtrs_srv_con *con, u32 payload)
{
	struct rtrs_srv_path *path = con->path;
	struct rtrs_srv_io *io;
	u32 slot, off;

	if (!rtrs_srv_parse_imm(path, payload, &slot, &off)) {
		rtrs_srv_proto_error(path,
				     "slot or offset out of range: slot %u, header at %u",
				     slot, off);
		return;
	}
	trace_rtrs_srv_receive(con, slot, off);
	percpu_ref_get(&path->ios.ref);
	con->nr_arrived++;
	io = rtrs_srv_path_io(path, slot);
	switch (rtrs_srv_slot_take(io, con, off)) {
	case 0:
		rtrs_srv_io_arrived(io);
		break;
	case -EINPROGRESS:
		break;
	default:
		percpu_ref_put(&path->ios.ref);
		rtrs_srv_proto_error(path, "slot used again before its answer: %u",
				     slot);
	}
}
