// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receives of a connection. A queue pair completes them in the order in which they were posted, so
 * one counter tells which of them a completion is of. All have one completion entry, and one chain
 * of work requests, which is posted again when as many have been used.
 *
 * Receives of immediate data are empty. Others have memory for a message of 8 bytes each, in single
 * pages: a path has to be set up also when memory is fragmented.
 */
#include <linux/slab.h>

#include "core.h"

#define RTRS_MSGS_PER_PAGE	((u32)(PAGE_SIZE / sizeof(union rtrs_recv_msg)))

static u32 rtrs_recv_msgs_pages(u32 nr)
{
	return DIV_ROUND_UP(nr, RTRS_MSGS_PER_PAGE);
}

/* Address for the device of the message of receive @i. */
static u64 rtrs_recv_msg_dma(const struct rtrs_recvs *r, u32 i)
{
	return rtrs_region_dma(&r->msgs, i / RTRS_MSGS_PER_PAGE) +
	       i % RTRS_MSGS_PER_PAGE * sizeof(union rtrs_recv_msg);
}

/* Lets a work request receive into the memory of receive @i. */
static void rtrs_con_init_recv(struct rtrs_con *con, struct ib_recv_wr *wr, struct ib_sge *sge,
			       u32 i)
{
	const struct rtrs_recvs *r = &con->recvs;

	wr->wr_cqe = &con->recvs.cqe;
	if (!r->msgs.nr)
		return;
	sge->addr = rtrs_recv_msg_dma(r, i);
	sge->length = sizeof(union rtrs_recv_msg);
	sge->lkey = con->path->pd->local_dma_lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;
}

/*
 * Posts all of them. Messages may come in meanwhile, and their handler posts receives again: these
 * come behind ours only if all of ours are one chain, which a device takes under a lock.
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
 * rtrs_recv_msgs_bytes() - compute the memory of receives with messages
 * @nr: number of receives
 *
 * Return: bytes.
 */
u64 rtrs_recv_msgs_bytes(u32 nr)
{
	return rtrs_region_bytes(rtrs_recv_msgs_pages(nr), PAGE_SIZE, 0);
}
EXPORT_SYMBOL_GPL(rtrs_recv_msgs_bytes);

/**
 * rtrs_con_start_recvs() - post a connection's receives for the first time
 * @con: connection that has its queue pair, and may be connected; receives that others have posted
 *	on it come before these, or are drained after them
 * @nr: number of receives, at least RTRS_RECV_BATCH
 * @msgs: they have memory for messages; otherwise they are for immediate data alone
 * @done: handler of their completions; those that are good call rtrs_con_repost(), once
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno; rtrs_con_free_recvs() cleans up either way.
 */
int rtrs_con_start_recvs(struct rtrs_con *con, u32 nr, bool msgs,
			 void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct rtrs_recvs *r = &con->recvs;
	int ret;
	u32 i;

	/* They would never be posted again. */
	if (WARN_ON_ONCE(nr < RTRS_RECV_BATCH))
		return -EINVAL;
	r->nr = nr;
	r->cqe.done = done;
	if (msgs) {
		ret = rtrs_region_alloc(&r->msgs, con->path, rtrs_recv_msgs_pages(nr), PAGE_SIZE,
					0);
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
 * @con: connection whose receives have memory
 *
 * Context: handler of the receive's completion, before rtrs_con_repost().
 * Return: what was received; it may be overwritten after rtrs_con_repost().
 */
const union rtrs_recv_msg *rtrs_con_recv_msg(const struct rtrs_con *con)
{
	const struct rtrs_recvs *r = &con->recvs;
	const union rtrs_recv_msg *page;
	u32 i = r->first + r->used;

	if (i >= r->nr)
		i -= r->nr;
	ib_dma_sync_single_for_cpu(con->path->dev, rtrs_recv_msg_dma(r, i),
				   sizeof(union rtrs_recv_msg), DMA_BIDIRECTIONAL);
	page = rtrs_region_addr(&r->msgs, i / RTRS_MSGS_PER_PAGE);
	return &page[i % RTRS_MSGS_PER_PAGE];
}
EXPORT_SYMBOL_GPL(rtrs_con_recv_msg);

/**
 * rtrs_con_repost() - post a receive again, together with others
 * @con: connection of the receive
 *
 * Once that has failed nothing is posted any more, as it would not be next to what is posted.
 *
 * Context: handler of the receive's completion.
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
		r->sge[i].addr = rtrs_recv_msg_dma(r, first);
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
EXPORT_SYMBOL_GPL(rtrs_con_free_recvs);
