// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fetching the data of large writes by RDMA READ into the request's buffer.
 *
 * A connection fetches at most RTRS_SRV_FETCH_BYTES at a time, in pieces of up to
 * RTRS_SRV_READ_BYTES, one piece of each of its requests in rotation. Thus small requests don't
 * wait behind large ones, and on a slow network heartbeats don't wait behind megabytes. The data
 * that all clients together fetch over a port are limited, too; see port.c. The kernel's rdma_rw
 * splits a piece according to the limits of the device, and registers memory if necessary. The send
 * queue has room for all of these work requests.
 *
 * A request is in its connection's list until its last piece has begun, or a piece has failed.
 * After that, the last piece in progress reports the end of the request, once. A piece also counts
 * as in progress while it is queued at the port, and while it waits to be retried after a temporary
 * lack of memory, memory regions or DMA mappings.
 */
#include "srv.h"

/*
 * Selects the next piece of the first request. Returns NULL if no piece may begin now: no data are
 * left, the connection fetches enough already, or the piece was queued at the port.
 */
VISIBLE_IF_KUNIT struct rtrs_srv_read *rtrs_srv_next_read(struct rtrs_srv_con *con)
{
	struct rtrs_srv_fetch *fetch = &con->fetch;
	struct rtrs_srv_read *read = fetch->reads;
	struct rtrs_srv_io *io;
	u32 bytes = 0, nents;

	lockdep_assert_held(&con->pend_lock);
	io = list_first_entry_or_null(&fetch->waiting, struct rtrs_srv_io, pending);
	while (read < fetch->reads + RTRS_SRV_READS && read->io)
		read++;
	if (!io || read == fetch->reads + RTRS_SRV_READS || fetch->queued)
		return NULL;
	for (nents = 0; io->fetched + nents < io->op.nents; nents++) {
		u32 more = io->op.sgl[io->fetched + nents].length;

		if (bytes + more > RTRS_SRV_READ_BYTES)
			break;
		bytes += more;
	}
	if (fetch->bytes && fetch->bytes + bytes > RTRS_SRV_FETCH_BYTES)
		return NULL;
	fetch->bytes += bytes;
	read->bytes = bytes;
	read->io = io;
	read->sg = &io->op.sgl[io->fetched];
	read->nents = nents;
	read->mapped = false;
	io->fetched += nents;
	io->reads++;
	if (io->fetched == io->op.nents)
		list_del_init(&io->pending);
	else
		list_move_tail(&io->pending, &fetch->waiting);
	if (rtrs_srv_budget_get(read))
		return read;
	fetch->queued = read;
	return NULL;
}

/* Ends a piece that completed, failed, or could not begin. */
VISIBLE_IF_KUNIT void rtrs_srv_end_read(struct rtrs_srv_read *read, bool failed)
{
	struct rtrs_srv_con *con = read->con;
	struct rtrs_srv_io *io;
	bool last;

	rtrs_srv_budget_put(read);
	spin_lock_irq(&con->pend_lock);
	io = read->io;
	read->io = NULL;
	con->fetch.bytes -= read->bytes;
	if (failed) {
		list_del_init(&io->pending);
		io->fetched = 0;
	}
	last = !--io->reads && list_empty(&io->pending);
	failed = io->fetched < io->op.nents;
	spin_unlock_irq(&con->pend_lock);
	if (last)
		con->fetch.done(io, !failed);
}

static u64 rtrs_srv_fetch_off(const struct rtrs_srv_read *read)
{
	const struct scatterlist *sg;
	u64 off = 0;

	for (sg = read->io->op.sgl; sg < read->sg; sg++)
		off += sg->length;
	return off;
}

static void rtrs_srv_read_over(struct rtrs_srv_read *read, bool failed)
{
	struct rdma_cm_id *id = read->con->con.cm_id;

	if (read->mapped)
		rdma_rw_ctx_destroy(&read->rw, id->qp, id->port_num, read->sg, read->nents,
				    DMA_FROM_DEVICE);
	rtrs_srv_end_read(read, failed);
}

/* Schedules another attempt to post a piece. Returns false if the connection is closing. */
static bool rtrs_srv_retry_read(struct rtrs_srv_read *read)
{
	struct rtrs_srv_con *con = read->con;
	bool closing;

	spin_lock_irq(&con->pend_lock);
	closing = con->closing;
	if (!closing) {
		read->again = true;
		queue_delayed_work(rtrs_srv_pull_wq, &con->fetch.work,
				   msecs_to_jiffies(RTRS_SRV_MAP_MS));
	}
	spin_unlock_irq(&con->pend_lock);
	return !closing;
}

static void rtrs_srv_post_read(struct rtrs_srv_read *read)
{
	struct rtrs_srv_con *con = read->con;
	struct rdma_cm_id *id = con->con.cm_id;
	int ret;

	ret = rtrs_srv_buf_map(read->io, &read->rw, read->sg, read->nents,
			       rtrs_srv_fetch_off(read));
	if (ret < 0) {
		if (!rtrs_srv_retry_read(read))
			rtrs_srv_read_over(read, true);
		return;
	}
	read->mapped = true;
	ret = rtrs_con_post(&con->con, rdma_rw_ctx_wrs(&read->rw, id->qp, id->port_num,
						       &read->cqe, NULL));
	/* The reserve of the send queue always has room, so this is a bug. */
	if (WARN_ON_ONCE(ret)) {
		rtrs_srv_path_error(&con->path->path, ret, "data can't be fetched");
		rtrs_srv_read_over(read, true);
	}
}

static void rtrs_srv_fetch_more(struct rtrs_srv_con *con)
{
	struct rtrs_srv_read *read;

	do {
		spin_lock_irq(&con->pend_lock);
		read = rtrs_srv_next_read(con);
		spin_unlock_irq(&con->pend_lock);
		if (read)
			rtrs_srv_post_read(read);
	} while (read);
}

/* Checks whether to post a piece: the port has selected it, or its mapping has to be retried. */
VISIBLE_IF_KUNIT bool rtrs_srv_read_due(struct rtrs_srv_read *read)
{
	struct rtrs_srv_con *con = read->con;
	bool due;

	spin_lock_irq(&con->pend_lock);
	due = read->again;
	read->again = false;
	if (con->fetch.queued == read && list_empty(&read->queue_entry)) {
		con->fetch.queued = NULL;
		due = true;
	}
	spin_unlock_irq(&con->pend_lock);
	return due;
}

static void rtrs_srv_fetch_work(struct work_struct *work)
{
	struct rtrs_srv_con *con = container_of(to_delayed_work(work),
						struct rtrs_srv_con, fetch.work);
	u32 i;

	for (i = 0; i < RTRS_SRV_READS; i++)
		if (rtrs_srv_read_due(&con->fetch.reads[i]))
			rtrs_srv_post_read(&con->fetch.reads[i]);
	rtrs_srv_fetch_more(con);
}

static void rtrs_srv_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_read *read = container_of(wc->wr_cqe, struct rtrs_srv_read, cqe);
	struct rtrs_srv_con *con = read->con;

	/*
	 * Over iWARP, the client may still write into the buffer while any connection of the path
	 * works. So rtrs_srv_fetch_drained() ends a failed piece.
	 */
	if (rtrs_con_wc_failed(&con->con, wc, "fetching data")) {
		rtrs_srv_budget_put(read);
		return;
	}
	rtrs_con_put_wr(&con->con);
	rtrs_srv_read_over(read, false);
	rtrs_srv_fetch_more(con);
}

/**
 * rtrs_srv_fetch_init() - initialize a connection's members for fetching
 * @con: new connection
 * @done: see &rtrs_srv_fetch.done
 */
void rtrs_srv_fetch_init(struct rtrs_srv_con *con,
			 void (*done)(struct rtrs_srv_io *io, bool fetched))
{
	u32 i;

	con->fetch.done = done;
	INIT_LIST_HEAD(&con->fetch.waiting);
	INIT_DELAYED_WORK(&con->fetch.work, rtrs_srv_fetch_work);
	for (i = 0; i < RTRS_SRV_READS; i++) {
		con->fetch.reads[i].con = con;
		INIT_LIST_HEAD(&con->fetch.reads[i].queue_entry);
		INIT_LIST_HEAD(&con->fetch.reads[i].counted);
		con->fetch.reads[i].cqe.done = rtrs_srv_read_done;
	}
}

/**
 * rtrs_srv_fetch() - fetch a request's data
 * @io: request with its buffer; not accessed by the caller until &rtrs_srv_fetch.done
 *
 * Context: process.
 */
void rtrs_srv_fetch(struct rtrs_srv_io *io)
{
	struct rtrs_srv_con *con = io->con;
	bool closing;

	io->fetched = 0;
	io->reads = 0;
	spin_lock_irq(&con->pend_lock);
	closing = con->closing;
	if (!closing)
		list_add_tail(&io->pending, &con->fetch.waiting);
	spin_unlock_irq(&con->pend_lock);
	if (closing)
		con->fetch.done(io, false);
	else
		rtrs_srv_fetch_more(con);
}

/**
 * rtrs_srv_fetch_stop() - stop beginning and retrying pieces
 * @con: connection that is closing; &rtrs_srv_con.closing is set
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fetch_stop(struct rtrs_srv_con *con)
{
	struct rtrs_srv_io *io;
	bool last;

	do {
		spin_lock_irq(&con->pend_lock);
		io = list_first_entry_or_null(&con->fetch.waiting, struct rtrs_srv_io,
					      pending);
		if (io) {
			list_del_init(&io->pending);
			io->fetched = 0;
			last = !io->reads;
		}
		spin_unlock_irq(&con->pend_lock);
		if (io && last)
			con->fetch.done(io, false);
	} while (io);
	rtrs_srv_port_leave(con);
	cancel_delayed_work_sync(&con->fetch.work);
}

/**
 * rtrs_srv_fetch_drained() - end pieces that no completion will end
 * @con: connection that is closing and whose send queue is drained
 *
 * Such pieces failed, were refused by the device (for example because it is being removed), could
 * not be mapped, or were still queued at the port.
 *
 * Context: the path's closing work, after all connections of the path have stopped working.
 */
void rtrs_srv_fetch_drained(struct rtrs_srv_con *con)
{
	u32 i;

	for (i = 0; i < RTRS_SRV_READS; i++)
		if (con->fetch.reads[i].io)
			rtrs_srv_read_over(&con->fetch.reads[i], true);
}
