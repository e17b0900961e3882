// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: requests, of disks and about them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>

#include "rnbd-clt.h"

/* After this time without an answer there is a message, or the path is given up. */
#define RNBD_CLT_ADMIN_TIMEOUT	(30 * HZ)

/* The protocol's number of an operation; the block layer's may change. */
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
 * A request may have been made for another server than the one that has the device now.
 * Without the feature, the operation has another meaning. And while writes have to reach
 * the medium, as the disk's users don't flush, zeroes have to be written as well.
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
 * Return: 0; -EOPNOTSUPP if the protocol has no such operation, or the server; or -EBADE if a
 * newer mapping has the right to write.
 */
VISIBLE_IF_KUNIT int rnbd_clt_fill_msg(const struct rnbd_clt_dev *dev,
				       struct request *rq)
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

static bool rnbd_clt_has_data(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
	case REQ_OP_DRV_IN:
		return true;
	default:
		return false;
	}
}

/**
 * rnbd_clt_map_data() - list the data of a request for the transport
 * @rq: request
 *
 * Most requests are short, and tags are many: more than a few entries are allocated.
 *
 * Context: any.
 * Return: 0, or -EBUSY if there is no memory now.
 */
VISIBLE_IF_KUNIT int rnbd_clt_map_data(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rtrs_clt_io *io = &pdu->io;

	io->dir = DMA_TO_DEVICE;
	io->nents = 0;
	io->data_len = 0;
	if (!rnbd_clt_has_data(rq))
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
 * @rq: request that the transport doesn't have; its data are listed or not
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
 * Messages about devices don't wait for a path, since ids of devices change when the
 * session is lost. Neither does I/O that can take another way (multipath), nor any I/O of
 * a session with one slot, which is needed to open the device again.
 */
static bool rnbd_clt_failfast(struct request *rq)
{
	const struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;

	return blk_rq_is_passthrough(rq) || blk_noretry_request(rq) ||
	       !sess->admin_slot;
}

static u16 rnbd_clt_slot(struct request *rq)
{
	const struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;

	return rq->tag + (blk_rq_is_passthrough(rq) ? sess->admin_slot : 0);
}

/* Returns 0, or -EBUSY if there is no memory now. */
static int rnbd_clt_fill_io(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rtrs_clt_io *io = &pdu->io;

	io->slot = rnbd_clt_slot(rq);
	io->queue = rq->mq_hctx->queue_num;
	io->failfast = rnbd_clt_failfast(rq);
	io->done = rnbd_clt_done;
	return rnbd_clt_map_data(rq);
}

/**
 * rnbd_clt_dev_errno() - decide whether I/O is sent, waits or fails
 * @state: state of its device
 * @failfast: it fails rather than wait
 *
 * Return: 0 to send it, -EAGAIN to let it wait, or the errno it ends with.
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
 * A message about devices is valid in one generation of the session, as ids are. In that,
 * it can be sent twice: the second time it changes nothing.
 */
static int rnbd_clt_admin_errno(const struct rnbd_clt_sess *sess,
				const struct rnbd_clt_pdu *pdu)
{
	return READ_ONCE(sess->generation) == pdu->generation ? 0 : -ECONNABORTED;
}

/*
 * May a request be sent now? 0 if so, -EAGAIN if it has to wait, or the errno it ends
 * with. RCU read side: rnbd_clt_sess_down() changes the state, then synchronizes, so the
 * verdict holds until the request is posted.
 */
static int rnbd_clt_rq_errno(struct request *rq, bool failfast)
{
	struct rnbd_clt_dev *dev = rq->q->queuedata;

	if (blk_rq_is_passthrough(rq))
		return rnbd_clt_admin_errno(rq->q->tag_set->driver_data,
					    blk_mq_rq_to_pdu(rq));
	/* pairs with rnbd_clt_dev_set_state(), for device_id */
	return rnbd_clt_dev_errno(smp_load_acquire(&dev->state), failfast);
}

/* Writes the message of a request that may be sent; admin messages have theirs. */
static int rnbd_clt_prep_rq(struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return 0;
	return rnbd_clt_fill_msg(rq->q->queuedata, rq);
}

/**
 * rnbd_clt_retry_ok() - may the transport send a request that it has?
 * @io: request
 *
 * See rtrs_clt_params.retry_ok.
 *
 * Context: any, RCU read side.
 * Return: 0, -EAGAIN if it has to wait, or the errno it ends with.
 */
int rnbd_clt_retry_ok(struct rtrs_clt_io *io)
{
	struct rnbd_clt_pdu *pdu = container_of(io, struct rnbd_clt_pdu, io);

	return rnbd_clt_rq_errno(blk_mq_rq_from_pdu(pdu), io->failfast);
}

/**
 * rnbd_clt_prep_retry() - write the message of a request that the transport sends
 * @io: request; rnbd_clt_retry_ok() has returned 0
 *
 * The device may have another id than when the request was submitted.
 *
 * Context: process, the same RCU read side.
 * Return: 0, or the errno it ends with.
 */
int rnbd_clt_prep_retry(struct rtrs_clt_io *io)
{
	struct rnbd_clt_pdu *pdu = container_of(io, struct rnbd_clt_pdu, io);

	return rnbd_clt_prep_rq(blk_mq_rq_from_pdu(pdu));
}

/* Has the transport keep a request until rnbd_clt_retry_ok() lets it go on, or fail. */
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
	 * Pairs with rnbd_clt_dev_wake(): who changed the state before the request
	 * was there to be found did not wake it.
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
		/* What went before in this batch may wait for its last one. */
		if (last)
			rtrs_clt_commit(clt, queue);
	}
	rcu_read_unlock();
	return err;
}

/**
 * rnbd_clt_status() - get the status with which a request ends
 * @err: the transport's errno, or the server's
 *
 * One that was not to wait for a path fails so that its sender looks for another way;
 * one that has waited for too long just fails. Of the server's errnos those are passed
 * on that tell something of the disk; others would be taken for states of the block
 * layer here.
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

/* Does the server close a device only if the client or an administrator says so? */
static bool rnbd_clt_knows_lost(const struct rnbd_clt_dev *dev)
{
	return READ_ONCE(dev->sess->features) & RNBD_FEATURE_DISK_STATE;
}

/* What the end of a disk's request tells of its device */
static void rnbd_clt_note_end(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rnbd_clt_dev *dev = rq->q->queuedata;

	/* In the words of this driver's server, and of those that grant no features */
	if (unlikely(pdu->err == -ENOENT ||
		     (pdu->err == -ENOTCONN && !READ_ONCE(dev->sess->features))))
		rnbd_clt_dev_revoke(dev, le32_to_cpu(pdu->msg.device_id));
	if (unlikely(pdu->err == -ENODEV && rnbd_clt_knows_lost(dev)))
		rnbd_clt_dev_lost(dev, le32_to_cpu(pdu->msg.device_id));
	if (op_is_write(req_op(rq)))
		rnbd_clt_note_write(dev, rq, pdu->err);
}

/*
 * Is a disk's request sent again, as the server's disk was removed under it? Its device's state
 * decides what happens to it then. -ENOENT: it came after the device was closed for that. How long
 * it waits in all is counted, as the disk may be removed time and again. A flush fails: it covers
 * writes that may have been lost with the disk's cache.
 */
static bool rnbd_clt_requeue(struct request *rq)
{
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct rnbd_clt_dev *dev = rq->q->queuedata;

	if (likely(pdu->err != -ENODEV && pdu->err != -ENOENT) || !rnbd_clt_knows_lost(dev))
		return false;
	if (req_op(rq) == REQ_OP_FLUSH || rq->cmd_flags & REQ_PREFLUSH)
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
	err = rnbd_clt_submit(sess->clt, rq, bd->last);
	if (likely(!err))
		return BLK_STS_OK;
	if (err == -EBUSY) {
		rnbd_clt_unmap_data(rq);
		return BLK_STS_RESOURCE;
	}

	/* Ends the way all others do, so that one place decides. */
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
 * Polled queues stand behind the others, as in the transport. If the block layer has
 * reduced the maps to one, there are none.
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
 * I/O may take as long as the server's disk does, and so may opening and closing it:
 * heartbeats tell whether the server is there. How long I/O waits for a path is for the
 * transport to count. One device that hangs must not take the session's others with it.
 * But the server needs nothing to tell its version; if it doesn't, its path is given up,
 * and that completes the request.
 */
static enum blk_eh_timer_return rnbd_clt_timeout(struct request *rq)
{
	struct rnbd_clt_sess *sess = rq->q->tag_set->driver_data;
	struct rnbd_clt_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!blk_rq_is_passthrough(rq))
		return BLK_EH_RESET_TIMER;

	if (pdu->admin == RNBD_MSG_SESS_INFO) {
		if (__ratelimit(&sess->ratelimit))
			pr_err("%s: server doesn't answer, giving the path up\n",
			       sess->label);
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
 * rnbd_clt_admin() - send a message that is no I/O, and wait for the answer
 * @sess: session
 * @generation: see rnbd_clt_sess_generation(), from when the caller learned what the
 *	message says
 * @msg: message, begins with a struct rnbd_msg_hdr
 * @msg_len: its length
 * @rsp: where to put the answer, from kmalloc(), or NULL if there's none
 * @rsp_len: its length
 *
 * Return: 0, the server's errno, or that of a failure on the way there, but never -EAGAIN or
 * -ESTALE; -ECONNABORTED also if the session has been lost since.
 */
int rnbd_clt_admin(struct rnbd_clt_sess *sess, unsigned int generation,
		   const void *msg, size_t msg_len, void *rsp, size_t rsp_len)
{
	const struct rnbd_msg_hdr *hdr = msg;
	struct rnbd_clt_pdu *pdu;
	struct request *rq;
	blk_status_t status;
	int err = 0;

	rq = blk_mq_alloc_request(sess->admin_q,
				  rsp ? REQ_OP_DRV_IN : REQ_OP_DRV_OUT, 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);

	rq->timeout = RNBD_CLT_ADMIN_TIMEOUT;
	pdu = blk_mq_rq_to_pdu(rq);
	pdu->err = 0;
	pdu->admin = le16_to_cpu(hdr->type);
	pdu->generation = generation;
	pdu->io.msg = msg;
	pdu->io.msg_len = msg_len;
	if (rsp)
		/* Others may wait for the tag, to open what frees memory. */
		err = blk_rq_map_kern(rq, rsp, rsp_len, GFP_NOIO);
	if (!err) {
		status = blk_execute_rq(rq, true);
		err = pdu->err ?: blk_status_to_errno(status);
	}
	blk_mq_free_request(rq);
	/* These two are rnbd_clt_dev_open()'s own. */
	return err == -EAGAIN || err == -ESTALE ? -EIO : err;
}
