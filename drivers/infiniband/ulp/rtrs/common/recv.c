// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receives of a connection. A queue pair completes receives in the order in which they were posted,
 * so one counter identifies the receive of a completion. All receives share one completion entry
 * and one chain of work requests, which is posted again whenever as many receives have completed.
 *
 * Receives for immediate data have no memory. Others have memory for a union rtrs_recv_msg.
 */
#include <linux/slab.h>

#include "core.h"

/* Initializes a work request for the memory of receive @i. */
static void rtrs_con_init_recv(struct rtrs_con *con, struct ib_recv_wr *wr, struct ib_sge *sge,
			       u32 i)
{
	const struct rtrs_recvs *r = &con->recvs;

	wr->wr_cqe = &con->recvs.cqe;
	if (!r->msgs.nr)
		return;
	sge->addr = rtrs_region_dma(&r->msgs, i);
	sge->length = sizeof(union rtrs_recv_msg);
	sge->lkey = con->path->pd->local_dma_lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;
}

/*
 * Posts all receives as one chain, which a device accepts atomically. Messages may arrive
 * meanwhile, and their handler reposts receives; those have to follow all others.
 */
static int rtrs_con_post_all_recvs(struct rtrs_con *con)
{
	struct rtrs_recvs *r = &con->recvs;
	struct {
		struct ib_recv_wr wr;
		struct ib_sge sge;
	} *all;
	int ret;
	u32 i;

	all = kvcalloc(r->nr, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	for (i = 0; i < r->nr; i++) {
		rtrs_con_init_recv(con, &all[i].wr, &all[i].sge, i);
		if (i)
			all[i - 1].wr.next = &all[i].wr;
	}
	ret = ib_post_recv(con->cm_id->qp, &all[0].wr, NULL);
	kvfree(all);
	return ret;
}

/**
 * rtrs_con_start_recvs() - post a connection's receives for the first time
 * @con: connection with its queue pair, possibly connected. Receives posted by the caller precede
 *	these, or are drained after them
 * @nr: number of receives, at least RTRS_RECV_BATCH
 * @msgs: receives have memory for messages; otherwise they are for immediate data only
 * @done: completion handler of the receives; it calls rtrs_con_repost() once for each success
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno. In either case, rtrs_path_destroy_qps() cleans up.
 */
int rtrs_con_start_recvs(struct rtrs_con *con, u32 nr, bool msgs,
			 void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct rtrs_recvs *r = &con->recvs;
	int ret;
	u32 i;

	/* Fewer receives would never be reposted. */
	if (WARN_ON_ONCE(nr < RTRS_RECV_BATCH))
		return -EINVAL;
	r->nr = nr;
	r->cqe.done = done;
	if (msgs) {
		ret = rtrs_region_alloc(&r->msgs, con->path, nr, sizeof(union rtrs_recv_msg), 0);
		if (ret)
			return ret;
	}
	for (i = 0; i < RTRS_RECV_BATCH; i++) {
		rtrs_con_init_recv(con, &r->wr[i], &r->sge[i], i);
		if (i)
			r->wr[i - 1].next = &r->wr[i];
	}
	return rtrs_con_post_all_recvs(con);
}
EXPORT_SYMBOL_GPL(rtrs_con_start_recvs);

/**
 * rtrs_con_recv_msg() - get the message of a receive
 * @con: connection whose receives have memory for messages
 *
 * Context: completion handler of the receive, before rtrs_con_repost().
 * Return: the received message; it may be overwritten after rtrs_con_repost().
 */
const union rtrs_recv_msg *rtrs_con_recv_msg(const struct rtrs_con *con)
{
	const struct rtrs_recvs *r = &con->recvs;
	u32 i = r->first + r->used;

	if (i >= r->nr)
		i -= r->nr;
	ib_dma_sync_single_for_cpu(con->path->dev, rtrs_region_dma(&r->msgs, i),
				   sizeof(union rtrs_recv_msg), DMA_BIDIRECTIONAL);
	return rtrs_region_addr(&r->msgs, i);
}
EXPORT_SYMBOL_GPL(rtrs_con_recv_msg);

/**
 * rtrs_con_repost() - repost a receive, together with others
 * @con: connection of the receive
 *
 * After a failure, nothing is posted any more, as receives would be out of order.
 *
 * Context: completion handler of the receive.
 * Return: 0 or the verb's errno.
 */
int rtrs_con_repost(struct rtrs_con *con)
{
	struct rtrs_recvs *r = &con->recvs;
	u32 i, first = r->first;
	int ret;

	if (++r->used != RTRS_RECV_BATCH)
		return 0;
	for (i = 0; r->msgs.nr && i < RTRS_RECV_BATCH; i++) {
		r->sge[i].addr = rtrs_region_dma(&r->msgs, first);
		if (++first == r->nr)
			first = 0;
	}
	ret = ib_post_recv(con->cm_id->qp, r->wr, NULL);
	if (ret)
		return ret;
	r->first = first;
	r->used = 0;
	/* Pairs with rtrs_con_nr_posts(). */
	smp_store_release(&r->nr_posts, r->nr_posts + 1);
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_con_repost);

/**
 * rtrs_con_free_recvs() - undo rtrs_con_start_recvs(), if it was called
 * @con: connection whose queue pair is drained or destroyed; its path still has the device
 */
void rtrs_con_free_recvs(struct rtrs_con *con)
{
	rtrs_region_free(&con->recvs.msgs);
}
