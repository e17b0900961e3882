// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Test of a path with a full-size packet, before it accepts requests.
 *
 * If MTUs differ, small messages arrive and full-size packets are dropped silently: the path would
 * connect, accept requests, and fail with them. So one path MTU of data is written to the path's
 * first chunks or slots on the server, and must be acknowledged by the server's device.
 *
 * Servers with RTRS_FEATURE_FENCE give each path chunks of its own, which are still empty. Other
 * servers, such as the in-tree one, may share chunks between the paths of a session. There, the
 * test could overwrite the data of another path's request, so it is skipped. It is also skipped on
 * iWARP, as TCP discovers the MTU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sizes.h>

#include "clt.h"

/* The first group of buffers is at least as large as the maximum path MTU. */
static_assert(RTRS_SLOT_UNIT * 8 >= SZ_4K);

static void rtrs_clt_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_path *path = container_of(wc->wr_cqe, struct rtrs_clt_path, probe_cqe);
	struct rtrs_con *con = wc->qp->qp_context;

	if (wc->status == IB_WC_RETRY_EXC_ERR) {
		rtrs_clt_path_error(&path->path, -EMSGSIZE,
				    "a full-size packet is not acknowledged");
		return;
	}
	if (rtrs_con_wc_failed(con, wc, "write of a full-size packet"))
		return;
	rtrs_con_put_wr(con);
	rtrs_clt_path_step_done(path);
}

/**
 * rtrs_clt_probe_size() - compute how many bytes to write
 * @path: path that has received INFO_RSP
 * @mtu: path MTU; negative if it is not an InfiniBand MTU, as on Omni-Path
 *
 * Return: @mtu, but at most 4096, and at most the size of the contiguous slots at the beginning.
 */
VISIBLE_IF_KUNIT u32 rtrs_clt_probe_size(const struct rtrs_clt_path *path, int mtu)
{
	u32 max = mtu > 0 ? min(mtu, SZ_4K) : SZ_4K;
	struct rtrs_clt_slot **slots = path->slots;
	u32 i, len = path->neg.chunk_size;

	for (i = 1; i < path->neg.nr_slots && len < max; i++) {
		if (slots[i]->rkey != slots[0]->rkey || slots[i]->raddr != slots[0]->raddr + len)
			break;
		len += path->neg.chunk_size;
	}
	return min(len, max);
}

/**
 * rtrs_clt_may_probe() - check whether writing to a path's first chunks is safe and useful
 * @path: path after negotiation
 *
 * Return: true if so.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_may_probe(const struct rtrs_clt_path *path)
{
	return !path->path.no_imm && path->path.features & RTRS_FEATURE_FENCE;
}

/**
 * rtrs_clt_probe() - write a full-size packet, and wait until it is acknowledged
 * @path: path that is being connected, and has received INFO_RSP
 *
 * Heartbeats would be queued behind the packet, so they are started later.
 *
 * Context: the path's connect_work.
 * Return: 0, also if the test was skipped; -EMSGSIZE if the write is not acknowledged; or another
 * negative errno.
 */
int rtrs_clt_probe(struct rtrs_clt_path *path)
{
	struct rdma_cm_id *id = path->cons[0].con.cm_id;
	bool again = READ_ONCE(path->sm.logged) == -EMSGSIZE;
	struct ib_sge sge = {
		.addr	= rtrs_region_dma(&path->bufs, 0),
		.lkey	= path->path.pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &path->probe_cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.send_flags	= IB_SEND_SIGNALED,
		.wr.sg_list	= &sge,
		.wr.num_sge	= 1,
		.remote_addr	= path->slots[0]->raddr,
		.rkey		= path->slots[0]->rkey,
	};
	int ret;

	if (!rtrs_clt_may_probe(path))
		return 0;
	sge.length = rtrs_clt_probe_size(path, ib_mtu_enum_to_int(id->route.path_rec->mtu));
	path->probe_cqe.done = rtrs_clt_probe_done;
	atomic_set(&path->sm.nr_pending, 1);
	/* Connection 0 has the shortest acknowledgment timeout. */
	ret = rtrs_con_post(&path->cons[0].con, &wr.wr);
	if (!ret)
		ret = rtrs_clt_path_wait(path, RTRS_CLT_SIZE_MS);
	if (ret == -ETIMEDOUT)
		ret = -EMSGSIZE;
	if (ret == -EMSGSIZE && !again)
		rtrs_path_err(&path->path, "packets of %u bytes of data are lost, smaller ones are not: is the MTU the same on both ends, and not lower between them?\n",
			      sge.length);
	return ret;
}
