// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: requests of disks, and messages about devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>

#include "rnbd-clt.h"

/*
 * A message without an answer after this time is logged; for SESS_INFO and LIST, the path is
 * closed.
 */
#define RNBD_CLT_ADMIN_TIMEOUT	(30 * HZ)

/* Get the protocol's number of an operation. The block layer's numbers may change. */
static int rnbd_clt_wire_op(enum req_op op)
{
	switch (op) {
	case REQ_OP_READ:
		return RNBD_OP_READ;
	case REQ_OP_WRITE:
		return RNBD_OP_WRITE;
	case REQ_OP_FLUSH:
		return RNBD_OP_FLUSH;
	case REQ_OP_DISCARD:
		return RNBD_OP_DISCARD;
	case REQ_OP_SECURE_ERASE:
		return RNBD_OP_SECURE_ERASE;
	case REQ_OP_WRITE_ZEROES:
		return RNBD_OP_WRITE_ZEROES;
	default:
		return -EOPNOTSUPP;
	}
}

static u32 rnbd_clt_wire_flags(const struct request *rq)
{
	blk_opf_t opf = rq->cmd_flags;
	u32 flags = 0;

	if (op_is_sync(opf))
		flags |= RNBD_F_SYNC;
	if (opf & REQ_FUA)
		flags |= RNBD_F_FUA;
	if (opf & REQ_PREFLUSH)
		flags |= RNBD_F_PREFLUSH;
	if (req_op(rq) == REQ_OP_WRITE_ZEROES && (opf & REQ_NOUNMAP))
		flags |= RNBD_F_NOUNMAP;
	return flags;
}

/*
 * Check whether write zeroes may be sent. The request may predate a restart of the server, which
 * may have another version now: without the feature, the operation has another meaning. While
 * writes need FUA, as users don't flush, write zeroes must fail: it has no FUA, but the writes of
 * zeroes that replace it do.
 */
static bool rnbd_clt_may_zero(const struct rnbd_clt_dev *dev)
{
	return (READ_ONCE(dev->sess->features) & RNBD_FEATURE_WRITE_ZEROES) &&
	       !(READ_ONCE(dev->write_flags) & RNBD_F_FUA);
}

/**
 * rnbd_clt_fill_msg() - write the message of a disk's request
 * @dev: the disk's device
 * @rq: request; its message is written to its rnbd_clt_pdu
 *
 * Return: 0; -EOPNOTSUPP if the protocol or the server doesn't support the operation; -EBADE if a
 * newer mapping has written; -ENODATA if the request is a flush, and writes that it covers were
 * lost.
 */
VISIBLE_IF_KUNIT int rnbd_clt_fill_msg(struct rnbd_clt_dev *dev, struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	bool flush = req_op(rq) == REQ_OP_FLUSH;
	int op = rnbd_clt_wire_op(req_op(rq));

	if (op < 0)
		return op;
	if (op == RNBD_OP_WRITE_ZEROES && !rnbd_clt_may_zero(dev))
		return -EOPNOTSUPP;
	if (unlikely(rnbd_clt_fenced(dev, rq)))
		return -EBADE;
	if (!flush)
		pdu->removals = READ_ONCE(dev->removals);
	else if (rnbd_clt_begin_flush(dev, rq))
		return -ENODATA;

	pdu->msg = (struct rnbd_msg_io) {
		.hdr.type = cpu_to_le16(RNBD_MSG_IO),
		.device_id = cpu_to_le32(dev->device_id),
		.sector = cpu_to_le64(flush ? 0 : blk_rq_pos(rq)),
		.rw = cpu_to_le32(op | rnbd_clt_wire_flags(rq) |
				  (op == RNBD_OP_WRITE ? READ_ONCE(dev->write_flags) : 0)),
		.bi_size = cpu_to_le32(blk_rq_bytes(rq)),
		.prio = cpu_to_le16(req_get_ioprio(rq)),
	};
	pdu->io.msg = &pdu->msg;
	pdu->io.msg_len = sizeof(pdu->msg);
	return 0;
}

/**
 * rnbd_clt_map_data() - list the data of a request for the transport
 * @rq: request
 *
 * More than a few entries are allocated: room for them in each tag would mostly be unused.
 *
 * Context: any.
 * Return: 0, or -EBUSY if the allocation fails.
 */
VISIBLE_IF_KUNIT int rnbd_clt_map_data(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rtrs_clt_io *io = &pdu->io;

	io->dir = DMA_TO_DEVICE;
	io->nents = 0;
	io->data_len = 0;
	if (!bio_has_data(rq->bio))
		return 0;

	pdu->sgt.sgl = pdu->sgl;
	if (sg_alloc_table_chained(&pdu->sgt, blk_rq_nr_phys_segments(rq),
				   pdu->sgl, RNBD_CLT_INLINE_SG))
		return -EBUSY;
	io->dir = rq_dma_dir(rq);
	io->sgl = pdu->sgt.sgl;
	io->nents = blk_rq_map_sg(rq, io->sgl);
	io->data_len = blk_rq_bytes(rq);
	return 0;
}

/**
 * rnbd_clt_unmap_data() - undo rnbd_clt_map_data()
 * @rq: request that does not belong to the transport; may be unmapped already
 *
 * Context: any.
 */
VISIBLE_IF_KUNIT void rnbd_clt_unmap_data(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!pdu->io.nents)
		return;
	sg_free_table_chained(&pdu->sgt, RNBD_CLT_INLINE_SG);
	pdu->io.nents = 0;
}

static void rnbd_clt_done(struct rtrs_clt_io *io, int err)
{
	struct rnbd_clt_pdu *pdu = container_of(io, struct rnbd_clt_pdu, io);

	pdu->err = err;
	blk_mq_complete_request(blk_mq_rq_from_pdu(pdu));
}

/*
 * Check whether a request fails when there is no path, rather than waiting. Messages about devices
 * do, since device ids become invalid when the session is lost. So does I/O that multipath can
 * send elsewhere, and all I/O of a session with one slot, as reopening devices needs that slot.
 */
static bool rnbd_clt_failfast(struct request *rq)
{
	const struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;

	return blk_rq_is_passthrough(rq) || blk_noretry_request(rq) ||
	       !sess->admin_slot;
}

/* Returns 0, or -EBUSY if an allocation fails. */
static int rnbd_clt_fill_io(struct request *rq)
{
	const struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rtrs_clt_io *io = &pdu->io;

	io->slot = rq->tag + (blk_rq_is_passthrough(rq) ? sess->admin_slot : 0);
	io->queue = rq->mq_hctx->queue_num;
	io->failfast = rnbd_clt_failfast(rq);
	io->done = rnbd_clt_done;
	return rnbd_clt_map_data(rq);
}

/**
 * rnbd_clt_dev_errno() - decide whether I/O is sent, waits or fails
 * @state: state of the device
 * @failfast: the I/O fails rather than waiting
 *
 * Return: 0 to send the I/O, -EAGAIN to let it wait, or the errno with which it fails.
 */
int rnbd_clt_dev_errno(enum rnbd_clt_dev_state state, bool failfast)
{
	switch (state) {
	case RNBD_DEV_OPEN:
		return 0;
	case RNBD_DEV_CLOSED:
		return failfast ? -ECONNABORTED : -EAGAIN;
	default:
		return -EIO;
	}
}

/*
 * Check whether a request may be sent now. Returns 0, -EAGAIN if it has to wait, or the errno with
 * which it fails. Called on the RCU read side: rnbd_clt_sess_down() changes the state and then
 * synchronizes, so the result stays valid until the request is posted.
 */
static int rnbd_clt_rq_errno(struct request *rq, bool failfast)
{
	const struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	const struct rnbd_clt_dev *dev = rq->q->queuedata;
	const struct rnbd_clt_sess *sess;

	/*
	 * A message about devices is valid in one generation of the session, as device ids are.
	 * Within it, sending the message twice does no harm.
	 */
	if (blk_rq_is_passthrough(rq)) {
		sess = rq->q->tag_set->driver_data;
		return READ_ONCE(sess->generation) == pdu->generation ? 0 : -ECONNABORTED;
	}
	/* pairs with rnbd_clt_dev_set_state(), for device_id */
	return rnbd_clt_dev_errno(smp_load_acquire(&dev->state), failfast);
}

/* Write the message of a request that may be sent. Messages about devices are complete. */
static int rnbd_clt_prep_rq(struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return 0;
	return rnbd_clt_fill_msg(rq->q->queuedata, rq);
}

/**
 * rnbd_clt_retry_ok() - check whether the transport may send a request again
 * @io: request that was submitted or parked
 *
 * See rtrs_clt_params.retry_ok.
 *
 * Context: any, RCU read side.
 * Return: 0, -EAGAIN if the request has to wait, or the errno with which it fails.
 */
int rnbd_clt_retry_ok(struct rtrs_clt_io *io)
{
	struct rnbd_clt_pdu *pdu = container_of(io, struct rnbd_clt_pdu, io);
	struct request *rq = blk_mq_rq_from_pdu(pdu);

	/* A server that doesn't answer LIST must not end one path after the other. */
	if (blk_rq_is_passthrough(rq) && pdu->admin == RNBD_MSG_LIST)
		return -ECONNABORTED;
	return rnbd_clt_rq_errno(rq, io->failfast);
}

/**
 * rnbd_clt_prep_retry() - write the message of a request that the transport sends again
 * @io: request; rnbd_clt_retry_ok() has returned 0
 *
 * The id of the device may have changed since the request was submitted.
 *
 * Context: process, within the same RCU read side as rnbd_clt_retry_ok().
 * Return: 0, or the errno with which the request fails.
 */
int rnbd_clt_prep_retry(struct rtrs_clt_io *io)
{
	struct rnbd_clt_pdu *pdu = container_of(io, struct rnbd_clt_pdu, io);

	return rnbd_clt_prep_rq(blk_mq_rq_from_pdu(pdu));
}

/* Hand a request to the transport, to wait until rnbd_clt_retry_ok() lets it be sent or fail. */
static int rnbd_clt_park(struct rnbd_clt_dev *dev, struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rtrs_clt *clt = dev->sess->clt;
	int err;

	err = rnbd_clt_fill_io(rq);
	if (!err)
		err = rtrs_clt_park(clt, &pdu->io);
	if (err)
		return err;
	/*
	 * Pairs with rnbd_clt_dev_wake(), which misses the request if the state changed
	 * before the request was parked.
	 */
	smp_mb();
	if (READ_ONCE(dev->state) != RNBD_DEV_CLOSED)
		rtrs_clt_resume(clt);
	return 0;
}

static int rnbd_clt_submit(struct rtrs_clt *clt, struct request *rq, bool last)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	unsigned int queue = rq->mq_hctx->queue_num;
	int err;

	rcu_read_lock();
	err = rnbd_clt_rq_errno(rq, rnbd_clt_failfast(rq));
	if (likely(!err))
		err = rnbd_clt_prep_rq(rq);
	if (likely(!err))
		err = rnbd_clt_fill_io(rq);
	if (likely(!err)) {
		err = rtrs_clt_submit(clt, &pdu->io, last);
	} else {
		if (err == -EAGAIN)
			err = rnbd_clt_park(rq->q->queuedata, rq);
		/* The requests before this one in the batch may not be posted yet. */
		if (last)
			rtrs_clt_commit(clt, queue);
	}
	rcu_read_unlock();
	return err;
}

/**
 * rnbd_clt_status() - get the status with which a request ends
 * @err: errno from the transport or the server
 *
 * BLK_STS_TRANSPORT makes multipath retry a failfast request on another path. A request that
 * has waited too long fails with BLK_STS_IOERR. The server's errnos are passed on if they describe
 * the disk; the client's block layer would misinterpret others, such as -EAGAIN.
 *
 * Return: the status for the block layer.
 */
blk_status_t rnbd_clt_status(int err)
{
	switch (err) {
	case -ECONNABORTED:
		return BLK_STS_TRANSPORT;
	case 0:
	case -ENOSPC:
	case -EOPNOTSUPP:
	case -ETIMEDOUT:
	case -EREMOTEIO:
	case -EBADE:
	case -ENODATA:
	case -EILSEQ:
		return errno_to_blk_status(err);
	default:
		return BLK_STS_IOERR;
	}
}

/* Check whether the server reports removed disks, and lets the client close their devices. */
static bool rnbd_clt_knows_lost(const struct rnbd_clt_dev *dev)
{
	return READ_ONCE(dev->sess->features) & RNBD_FEATURE_DISK_STATE;
}

/* Update the state of a device from the result of a request. */
static void rnbd_clt_note_end(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rnbd_clt_dev *dev = rq->q->queuedata;

	/* -ENOTCONN comes from servers without features, such as the in-tree driver's. */
	if (unlikely(pdu->err == -ENOENT ||
		     (pdu->err == -ENOTCONN && !READ_ONCE(dev->sess->features))))
		rnbd_clt_dev_revoke(dev, le32_to_cpu(pdu->msg.device_id));
	if (unlikely(pdu->err == -ENODEV && rnbd_clt_knows_lost(dev)))
		rnbd_clt_dev_lost(dev, le32_to_cpu(pdu->msg.device_id));
	if (op_is_write(req_op(rq))) {
		rnbd_clt_note_write(dev, rq, pdu->err);
		if (likely(!pdu->err))
			rnbd_clt_note_cached(dev, rq);
	} else if (req_op(rq) == REQ_OP_FLUSH) {
		rnbd_clt_end_flush(dev, rq, pdu->err);
	}
}

/*
 * Requeue a request that failed because the server's disk was removed; the device's state then
 * decides whether it waits. -ENOENT means that the request arrived after the device was closed for
 * that reason. The time limit counts from the first removal, as there may be several.
 */
static bool rnbd_clt_requeue(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rnbd_clt_dev *dev = rq->q->queuedata;

	if (likely(pdu->err != -ENODEV && pdu->err != -ENOENT) || !rnbd_clt_knows_lost(dev))
		return false;
	if (!(rq->rq_flags & RQF_DONTPREP)) {
		rq->rq_flags |= RQF_DONTPREP;
		pdu->lost_at = jiffies;
	}
	if (!rtrs_clt_may_wait(dev->sess->clt, pdu->lost_at))
		return false;
	rnbd_clt_unmap_data(rq);
	blk_mq_requeue_request(rq, true);
	return true;
}

static void rnbd_clt_complete(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!blk_rq_is_passthrough(rq)) {
		rnbd_clt_note_end(rq);
		if (rnbd_clt_requeue(rq))
			return;
	}
	rnbd_clt_unmap_data(rq);
	blk_mq_end_request(rq, rnbd_clt_status(pdu->err));
}

static blk_status_t rnbd_clt_queue_rq(struct blk_mq_hw_ctx *hctx,
				      const struct blk_mq_queue_data *bd)
{
	struct rnbd_clt_sess *sess = hctx->queue->tag_set->driver_data;
	struct request *rq = bd->rq;
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	int err;

	blk_mq_start_request(rq);
	if (req_op(rq) == REQ_OP_FLUSH && !(rq->rq_flags & RQF_DONTPREP))
		pdu->removals = READ_ONCE(((struct rnbd_clt_dev *)rq->q->queuedata)->removals);
	err = rnbd_clt_submit(sess->clt, rq, bd->last);
	if (likely(!err))
		return BLK_STS_OK;
	if (err == -EBUSY) {
		rnbd_clt_unmap_data(rq);
		return BLK_STS_RESOURCE;
	}

	/* Completed like sent requests, so that only rnbd_clt_complete() handles errors. */
	pdu->err = err;
	blk_mq_complete_request_direct(rq, rnbd_clt_complete);
	return BLK_STS_OK;
}

static void rnbd_clt_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct rnbd_clt_sess *sess = hctx->queue->tag_set->driver_data;

	rtrs_clt_commit(sess->clt, hctx->queue_num);
}

/**
 * rnbd_clt_map_queues() - divide the queues of a tag set among CPUs
 * @set: tag set of a session; see rnbd_clt_alloc_tags()
 *
 * Polled queues have the highest numbers, as in the transport. If the block layer has reduced
 * the maps to one, no queue is polled.
 */
VISIBLE_IF_KUNIT void rnbd_clt_map_queues(struct blk_mq_tag_set *set)
{
	const struct rnbd_clt_sess *sess = set->driver_data;
	struct blk_mq_queue_map *map = set->map;

	if (set->nr_maps > HCTX_TYPE_POLL) {
		map[HCTX_TYPE_DEFAULT].nr_queues = sess->limits.nr_queues;
		map[HCTX_TYPE_READ].nr_queues = 0;
		map[HCTX_TYPE_POLL].nr_queues = sess->limits.nr_poll_queues;
		map[HCTX_TYPE_POLL].queue_offset = sess->limits.nr_queues;
		blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
	}
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
}

static int rnbd_clt_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	struct rnbd_clt_sess *sess = hctx->queue->tag_set->driver_data;

	return rtrs_clt_poll(sess->clt, hctx->queue_num);
}

/*
 * I/O, OPEN and CLOSE may take as long as the server's disk does. Heartbeats detect a dead server,
 * and the transport limits how long I/O waits for a path. So these requests never time out: a
 * device that hangs must not end paths that the session's other devices use. SESS_INFO and LIST
 * need no disk. If the server does not answer one of them, the path is closed, which completes the
 * request.
 */
static enum blk_eh_timer_return rnbd_clt_timeout(struct request *rq)
{
	struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!blk_rq_is_passthrough(rq))
		return BLK_EH_RESET_TIMER;

	if (pdu->admin == RNBD_MSG_SESS_INFO || pdu->admin == RNBD_MSG_LIST) {
		if (__ratelimit(&sess->ratelimit))
			pr_err("%s: server doesn't answer, giving the path up\n", sess->label);
		rtrs_clt_give_up(sess->clt, &pdu->io);
	} else if (__ratelimit(&sess->ratelimit)) {
		pr_warn("%s: still waiting for the server to %s a device\n",
			sess->label,
			pdu->admin == RNBD_MSG_OPEN ? "open" : "close");
	}
	return BLK_EH_RESET_TIMER;
}

const struct blk_mq_ops rnbd_clt_mq_ops = {
	.queue_rq = rnbd_clt_queue_rq,
	.commit_rqs = rnbd_clt_commit_rqs,
	.complete = rnbd_clt_complete,
	.timeout = rnbd_clt_timeout,
	.map_queues = rnbd_clt_map_queues,
	.poll = rnbd_clt_poll,
};

/**
 * rnbd_clt_admin_err() - convert the errno of a message other than I/O for the caller
 * @err: errno of the server's answer or of the transport
 *
 * Return: @err, but -EIO instead of errnos with another meaning here: rnbd_clt_dev_open() itself
 * returns -ESTALE, and programs repeat a write() that fails with -EAGAIN or -EINTR.
 */
VISIBLE_IF_KUNIT int rnbd_clt_admin_err(int err)
{
	switch (err) {
	case -EAGAIN:
	case -EINTR:
	case -ESTALE:
		return -EIO;
	default:
		return err;
	}
}

/**
 * rnbd_clt_admin() - send a message other than I/O, and wait for the answer
 * @sess: session
 * @generation: &rnbd_clt_sess.generation in which the contents of the message are valid
 * @msg: message, begins with a struct rnbd_msg_hdr
 * @msg_len: length of @msg
 * @rsp: buffer for the answer, from kmalloc(); NULL if the answer has no data
 * @rsp_len: length of @rsp
 *
 * Return: 0, or the errno from rnbd_clt_admin_err(). -ECONNABORTED if there is no path, or the
 * session has been lost since @generation; -EBUSY for LIST if too many messages are unanswered.
 */
int rnbd_clt_admin(struct rnbd_clt_sess *sess, unsigned int generation,
		   const void *msg, size_t msg_len, void *rsp, size_t rsp_len)
{
	const struct rnbd_msg_hdr *hdr = msg;
	struct rnbd_clt_pdu *pdu;
	struct request *rq;
	blk_status_t status;
	int err = 0;

	/* LIST must not wait for OPENs of disks that hang. */
	rq = blk_mq_alloc_request(sess->admin_q, rsp ? REQ_OP_DRV_IN : REQ_OP_DRV_OUT,
				  hdr->type == cpu_to_le16(RNBD_MSG_LIST) ? BLK_MQ_REQ_NOWAIT : 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq) == -EWOULDBLOCK ? -EBUSY : PTR_ERR(rq);

	rq->timeout = RNBD_CLT_ADMIN_TIMEOUT;
	pdu = blk_mq_rq_to_pdu(rq);
	pdu->err = 0;
	pdu->admin = le16_to_cpu(hdr->type);
	pdu->generation = generation;
	pdu->io.msg = msg;
	pdu->io.msg_len = msg_len;
	if (rsp)
		/* Reopening a disk for memory reclaim may wait for the tag. */
		err = blk_rq_map_kern(rq, rsp, rsp_len, GFP_NOIO);
	if (!err) {
		status = blk_execute_rq(rq, true);
		err = pdu->err ?: blk_status_to_errno(status);
	}
	blk_mq_free_request(rq);
	return rnbd_clt_admin_err(err);
}
