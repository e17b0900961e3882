// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The RDMA device of a path, and posting to a connection's queue pair.
 *
 * Client and server build chains of work requests for rtrs_con_queue(). The connection collects
 * chains until one is marked as the last of a batch, and then posts all of them with one doorbell.
 * Send queue entries are counted, so that the queue can't overflow; see struct rtrs_con.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "core.h"

MODULE_DESCRIPTION("RTRS: what client and server have in common");
MODULE_LICENSE("GPL");
MODULE_VERSION(RTRS_DRV_VERSION);

/*
 * Time until a device retransmits an unacknowledged packet: 4 us * 2^n.
 *
 * On connection 0, 268 ms: a lost heartbeat or answer has to be retransmitted before the path
 * counts as dead. On I/O connections, 2.1 s: behind the queues of all connections on a slow link, a
 * packet is late, not lost, and a device retransmits at most seven times. The connection does not
 * count as dead meanwhile, see RTRS_HB_STUCK_MS.
 */
#define RTRS_ACK_TIMEOUT_HB	16
#define RTRS_ACK_TIMEOUT_IO	19

/**
 * rtrs_path_open_dev() - open an RDMA device for a path
 * @path: path that is being set up
 * @id: cm_id of one of the path's connections; all of them have to use the same device
 *
 * Context: process; one thread sets up the path.
 * Return: 0; -EXDEV if the path uses another device; -EOPNOTSUPP if the device can't register
 * memory by work requests; or an errno of the verbs.
 */
int rtrs_path_open_dev(struct rtrs_path *path, const struct rdma_cm_id *id)
{
	struct ib_device *dev = id->device;
	struct ib_pd *pd;

	if (path->pd)
		return path->dev == dev ? 0 : -EXDEV;
	if (!(dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		rtrs_path_err(path, "device %s can't register memory by work request\n",
			      dev_name(&dev->dev));
		return -EOPNOTSUPP;
	}
	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	path->pd = pd;
	path->dev = dev;
	path->port_num = id->port_num;
	strscpy(path->hca_name, dev_name(&dev->dev), sizeof(path->hca_name));
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_path_open_dev);

/**
 * rtrs_path_close_dev() - undo rtrs_path_open_dev(), if it was called
 * @path: path whose queue pairs and memory regions are freed
 */
void rtrs_path_close_dev(struct rtrs_path *path)
{
	if (!path->pd)
		return;
	ib_dealloc_pd(path->pd);
	path->pd = NULL;
	path->dev = NULL;
}
EXPORT_SYMBOL_GPL(rtrs_path_close_dev);

/**
 * rtrs_con_wc_failed() - check a completion's status
 * @con: connection of the work request
 * @wc: completion of the work request
 * @what: kind of the work request, for the log
 *
 * Success counts as a sign of life if the peer took part. A failure ends the path. Flushed work
 * requests are not logged: the path was ending, or its connection broke before the CM reported it.
 *
 * Context: completion handler.
 * Return: true if the work request failed.
 */
bool rtrs_con_wc_failed(struct rtrs_con *con, const struct ib_wc *wc,
			const char *what)
{
	if (likely(wc->status == IB_WC_SUCCESS)) {
		/* Over iWARP, other work requests complete when TCP has accepted the data. */
		if (likely(!con->path->no_imm || wc->opcode & IB_WC_RECV ||
			   wc->opcode == IB_WC_RDMA_READ))
			WRITE_ONCE(con->moved, con->moved + 1);
		return false;
	}
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		what = "a connection broke";
	else
		rtrs_path_err(con->path, "connection %u: %s failed: %s (vendor error %#x)\n",
			      con->cid, what, ib_wc_status_msg(wc->status),
			      wc->vendor_err);
	con->path->error(con->path, -ECONNRESET, what);
	return true;
}
EXPORT_SYMBOL_GPL(rtrs_con_wc_failed);

/* Frees send queue entries. Context: completion handlers, which run one at a time. */
static void rtrs_con_give_room(struct rtrs_con *con, u32 nr)
{
	/* Pairs with rtrs_con_room(): the device's writes are visible before the free entries. */
	smp_store_release(&con->sq_done, con->sq_done + nr);
	if (!con->sq_room)
		return;
	/* Pairs with rtrs_con_wait_mb(). */
	smp_mb();
	con->sq_room(con);
}

/* Frees the entries of the last RTRS_SIGNAL_EVERY work requests. */
static void rtrs_con_sent_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *con = container_of(wc->wr_cqe, struct rtrs_con, sq_cqe);

	if (!rtrs_con_wc_failed(con, wc, "send"))
		rtrs_con_give_room(con, RTRS_SIGNAL_EVERY);
}

/**
 * rtrs_con_put_wr() - free the send queue entry of a work request with its own signal
 * @con: connection on which the work request was posted
 *
 * Context: the work request's completion handler.
 */
void rtrs_con_put_wr(struct rtrs_con *con)
{
	rtrs_con_give_room(con, 1);
}
EXPORT_SYMBOL_GPL(rtrs_con_put_wr);

static void rtrs_con_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *con = container_of(wc->wr_cqe, struct rtrs_con,
					    probe_cqe);

	if (rtrs_con_wc_failed(con, wc, "probe"))
		return;
	rtrs_con_put_wr(con);
	WRITE_ONCE(con->probe_busy, false);
}

/**
 * rtrs_con_set_ack_timeout() - set the time until the device retransmits packets
 * @con: connection whose cm_id is not resolved (client) or not accepted (server) yet
 */
void rtrs_con_set_ack_timeout(struct rtrs_con *con)
{
	/* rdma_set_ack_timeout() fails only for cm_ids that are not of reliable connections. */
	rdma_set_ack_timeout(con->cm_id, con->cid ? RTRS_ACK_TIMEOUT_IO :
						    RTRS_ACK_TIMEOUT_HB);
}
EXPORT_SYMBOL_GPL(rtrs_con_set_ack_timeout);

/**
 * rtrs_con_init_sq() - initialize a connection's send queue accounting
 * @con: connection with a new queue pair; added to &rtrs_path.cons
 * @params: size of the queue pair
 */
void rtrs_con_init_sq(struct rtrs_con *con, const struct rtrs_qp_params *params)
{
	con->sq_size = params->send_wr + params->send_reserve;
	con->sq_reserve = params->send_reserve;
	con->sq_inline = params->send_inline;
	con->sq_done = 0;
	con->sq_posted = 0;
	con->sq_queued = 0;
	con->sq_limit = con->sq_size;
	con->sq_seq = 0;
	con->sq_head = NULL;
	con->sq_cqe.done = rtrs_con_sent_done;
	con->probe_cqe.done = rtrs_con_probe_done;
	con->probe_busy = false;
	con->mark.set = false;
	con->moved = 0;
	con->watch = (struct rtrs_watch) {};
	spin_lock_init(&con->sq_lock);
	list_add_tail(&con->entry, &con->path->cons);
}

/**
 * rtrs_con_ring() - ring the doorbell for queued work requests
 * @con: connection with the queued work requests
 *
 * Context: under sq_lock.
 */
void rtrs_con_ring(struct rtrs_con *con)
{
	struct ib_send_wr *first = con->sq_head;
	int ret;

	lockdep_assert_held(&con->sq_lock);
	if (!first)
		return;
	ret = ib_post_send(con->cm_id->qp, first, NULL);
	/* rtrs_con_flush() reads @sq_head without the lock; NULL means posted. */
	smp_store_release(&con->sq_head, NULL);
	if (unlikely(ret))
		con->path->error(con->path, ret, "posting a send");
}

/*
 * Checks whether the send queue has room for @nr work requests. Reads the cache line of the
 * completion handlers only if the cached limit is reached.
 */
static bool rtrs_con_room(struct rtrs_con *con, u32 nr)
{
	lockdep_assert_held(&con->sq_lock);
	if (likely(con->sq_limit - con->sq_posted >= nr))
		return true;
	/* Pairs with rtrs_con_give_room(). */
	con->sq_limit = smp_load_acquire(&con->sq_done) + con->sq_size;
	return con->sq_limit - con->sq_posted >= nr;
}

/* Appends a chain of @nr work requests. Those without their own signal get the connection's cqe. */
static void rtrs_con_add(struct rtrs_con *con, struct ib_send_wr *first, u32 nr)
{
	struct ib_send_wr *wr;

	lockdep_assert_held(&con->sq_lock);
	if (con->sq_head)
		con->sq_tail->next = first;
	else
		WRITE_ONCE(con->sq_head, first);
	for (wr = first; wr; wr = wr->next) {
		con->sq_tail = wr;
		if (wr->send_flags & IB_SEND_SIGNALED)
			continue;
		wr->wr_cqe = &con->sq_cqe;
		if (++con->sq_seq % RTRS_SIGNAL_EVERY == 0)
			wr->send_flags |= IB_SEND_SIGNALED;
	}
	WRITE_ONCE(con->sq_posted, con->sq_posted + nr);
}

/* Returns the number of work requests in a chain. */
static u32 rtrs_con_chain(const struct ib_send_wr *wr)
{
	u32 nr = 0;

	for (; wr; wr = wr->next)
		nr++;
	return nr;
}

/**
 * rtrs_con_has_room() - check whether the send queue has room for a chain, without its reserve
 * @con: connection with the send queue
 * @nr: number of work requests in the chain
 *
 * Context: under sq_lock.
 * Return: true if it has; then rtrs_con_post_locked() may post the chain under the same lock.
 */
bool rtrs_con_has_room(struct rtrs_con *con, u32 nr)
{
	return rtrs_con_room(con, nr + con->sq_reserve);
}
EXPORT_SYMBOL_GPL(rtrs_con_has_room);

/*
 * Adds a chain if the send queue has room for it and for @spare more work requests, and rings the
 * doorbell if @last, or if there is no room. Sets *@queued unless @queued is NULL. Inlined, so that
 * the compiler removes what constant arguments make superfluous.
 */
static __always_inline int __rtrs_con_post(struct rtrs_con *con, struct ib_send_wr *first,
					   u32 spare, bool last, struct rtrs_con **queued)
{
	u32 nr = rtrs_con_chain(first);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&con->sq_lock, flags);
	if (likely(rtrs_con_room(con, nr + spare))) {
		rtrs_con_add(con, first, nr);
		if (queued) {
			WRITE_ONCE(con->sq_queued, con->sq_queued + 1);
			/* Pairs with readers of @queued: they see the chain, too. */
			smp_store_release(queued, con);
		}
	} else {
		ret = -EBUSY;
	}
	if (last || ret)
		rtrs_con_ring(con);
	spin_unlock_irqrestore(&con->sq_lock, flags);
	return ret;
}

/**
 * rtrs_con_queue() - queue a chain of work requests
 * @con: connection to queue it on
 * @first: first work request of the chain. The caller keeps the chain unchanged until a call with
 *	@last set, or rtrs_con_flush(), has returned
 * @last: ring the doorbell for this and all earlier chains
 * @queued: NULL, or set to @con before the chain can be posted. A caller that reads @con there
 *	(acquire) and then calls rtrs_con_flush() can rely on the chain being posted
 *
 * Leaves room for rtrs_qp_params.send_reserve work requests, for rtrs_con_post(). If the device
 * refuses the chain, the path ends, but the function returns 0.
 *
 * Context: any.
 * Return: 0, or -EBUSY if the send queue has no room for the whole chain.
 */
int rtrs_con_queue(struct rtrs_con *con, struct ib_send_wr *first, bool last,
		   struct rtrs_con **queued)
{
	return __rtrs_con_post(con, first, con->sq_reserve, last, queued);
}
EXPORT_SYMBOL_GPL(rtrs_con_queue);

/**
 * rtrs_con_post() - post a chain of work requests
 * @con: connection to post it on
 * @first: first work request of the chain
 *
 * May use the whole send queue, including rtrs_qp_params.send_reserve. Rings the doorbell, also for
 * chains of rtrs_con_queue(). If the device refuses the chain, the path ends, but the function
 * returns 0.
 *
 * Context: any.
 * Return: 0, or -EBUSY if the send queue has no room for the whole chain.
 */
int rtrs_con_post(struct rtrs_con *con, struct ib_send_wr *first)
{
	return __rtrs_con_post(con, first, 0, true, NULL);
}
EXPORT_SYMBOL_GPL(rtrs_con_post);

/**
 * rtrs_con_post_locked() - post a chain after a check for room
 * @con: connection to post it on
 * @first: first work request of the chain
 * @nr: number of work requests in the chain
 *
 * Otherwise like rtrs_con_post().
 *
 * Context: under sq_lock, after rtrs_con_has_room().
 */
void rtrs_con_post_locked(struct rtrs_con *con, struct ib_send_wr *first, u32 nr)
{
	rtrs_con_add(con, first, nr);
	rtrs_con_ring(con);
}
EXPORT_SYMBOL_GPL(rtrs_con_post_locked);

/**
 * rtrs_con_flush() - ring the doorbell for chains queued without @last
 * @con: connection on which they were queued
 *
 * Context: any.
 */
void rtrs_con_flush(struct rtrs_con *con)
{
	unsigned long flags;

	/* Pairs with rtrs_con_ring(). */
	if (!smp_load_acquire(&con->sq_head))
		return;
	spin_lock_irqsave(&con->sq_lock, flags);
	rtrs_con_ring(con);
	spin_unlock_irqrestore(&con->sq_lock, flags);
}
EXPORT_SYMBOL_GPL(rtrs_con_flush);

/**
 * rtrs_con_probe() - send a message that the peer's device has to acknowledge
 * @con: connected I/O connection without an outstanding probe
 *
 * The message is an RDMA WRITE without data. Over iWARP, where writes complete before the peer
 * acknowledges them, it is an RDMA READ without data. It follows all work requests that were posted
 * before, and has no effect on the peer. A READ contains the key of its local buffer; no buffer is
 * used, so that key is 0.
 *
 * Context: the path's heartbeats.
 * Return: 0, or -EBUSY if the send queue is full.
 */
int rtrs_con_probe(struct rtrs_con *con)
{
	struct ib_sge nothing = {};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &con->probe_cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.send_flags	= IB_SEND_SIGNALED,
	};
	int ret;

	if (con->path->no_imm) {
		wr.wr.opcode = IB_WR_RDMA_READ;
		wr.wr.sg_list = &nothing;
		wr.wr.num_sge = 1;
	}
	WRITE_ONCE(con->probe_busy, true);
	ret = rtrs_con_queue(con, &wr.wr, true, NULL);
	if (ret)
		WRITE_ONCE(con->probe_busy, false);
	return ret;
}

/**
 * rtrs_put_msg_imm() - fill in a work request that sends a message instead of an immediate value
 * @wr: work request, zeroed except for members that are set here
 * @sge: set to @msg; has to remain valid until @wr is posted
 * @msg: filled in; has to remain valid until @wr is posted. Sent inline, so it needs no mapping
 * @imm: immediate value, in the CPU's byte order
 */
void rtrs_put_msg_imm(struct ib_send_wr *wr, struct ib_sge *sge,
		      struct rtrs_msg_imm *msg, u32 imm)
{
	msg->type = cpu_to_le16(RTRS_MSG_IMM);
	msg->reserved = 0;
	msg->imm = cpu_to_le32(imm);
	sge->addr = (uintptr_t)msg;
	sge->length = sizeof(*msg);
	sge->lkey = 0;
	wr->opcode = IB_WR_SEND;
	wr->send_flags = IB_SEND_INLINE;
	wr->sg_list = sge;
	wr->num_sge = 1;
}
EXPORT_SYMBOL_GPL(rtrs_put_msg_imm);

/**
 * rtrs_con_post_imm() - send an immediate value without data
 * @con: connection on which it is sent
 * @imm: immediate value, in the CPU's byte order
 *
 * Context: any.
 * Return: as rtrs_con_post().
 */
int rtrs_con_post_imm(struct rtrs_con *con, u32 imm)
{
	struct rtrs_imm_wr wr;

	return rtrs_con_post(con, rtrs_con_build_imm(con, &wr, imm));
}
EXPORT_SYMBOL_GPL(rtrs_con_post_imm);

/**
 * rtrs_con_answer_imm() - send an immediate value in answer to a message of the peer
 * @con: connection on which it is sent
 * @imm: immediate value, in the CPU's byte order
 *
 * Leaves the reserve of the send queue alone. If there is no other room, the answer is dropped, so
 * that a peer can't fill the queue. Answers to a peer that waits for them are never dropped, see
 * RTRS_HB_MAX_UNANSWERED.
 *
 * Context: any.
 */
void rtrs_con_answer_imm(struct rtrs_con *con, u32 imm)
{
	struct rtrs_imm_wr wr;

	rtrs_con_queue(con, rtrs_con_build_imm(con, &wr, imm), true, NULL);
}
