// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The handshake that turns a set of connections into a path: the client names
 * its session, the path is made ready, the client is told where the chunks are.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "srv.h"

/* Memory regions that are registered at once; the service queue takes them. */
#define RTRS_SRV_REG_BATCH	64

static void rtrs_srv_info_req_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_path *path = container_of(wc->wr_cqe,
						  struct rtrs_srv_path,
						  setup.req_cqe);
	struct rtrs_con *c = &path->conns.con[0]->con;

	if (rtrs_con_wc_failed(c, wc, "receive of the client's first message"))
		return;
	if (wc->opcode != IB_WC_RECV ||
	    wc->byte_len != sizeof(*path->setup.req)) {
		rtrs_srv_path_error(&path->path, -EPROTO,
				    "the client's first message isn't one");
		return;
	}
	queue_work(rtrs_srv_setup_wq, &path->setup.work);
}

/**
 * rtrs_srv_setup_recv() - post the receive for the client's first message
 * @con: connection 0, on which nothing else has been posted yet
 *
 * Return: 0, or a negative errno; rtrs_srv_setup_free() cleans up either way.
 */
int rtrs_srv_setup_recv(struct rtrs_srv_con *con)
{
	struct rtrs_srv_path *path = con->path;
	struct ib_device *dev = path->path.dev;
	struct ib_recv_wr wr = {
		.wr_cqe		= &path->setup.req_cqe,
		.num_sge	= 1,
	};
	struct ib_sge sge = {
		.length		= sizeof(*path->setup.req),
		.lkey		= path->path.pd->local_dma_lkey,
	};
	u64 dma;

	dma = ib_dma_map_single(dev, path->setup.req, sizeof(*path->setup.req),
				DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, dma))
		return -ENOMEM;
	path->setup.req_dma = dma;
	path->setup.req_cqe.done = rtrs_srv_info_req_done;
	sge.addr = dma;
	wr.sg_list = &sge;
	return ib_post_recv(con->con.cm_id->qp, &wr, NULL);
}

static void rtrs_srv_unmap_info_req(struct rtrs_srv_path *path)
{
	if (!path->setup.req_dma)
		return;
	ib_dma_unmap_single(path->path.dev, path->setup.req_dma,
			    sizeof(*path->setup.req), DMA_FROM_DEVICE);
	path->setup.req_dma = 0;
}

static void rtrs_srv_free_info_rsp(struct rtrs_srv_path *path)
{
	if (path->setup.rsp_dma)
		ib_dma_unmap_single(path->path.dev, path->setup.rsp_dma,
				    path->setup.rsp_len, DMA_TO_DEVICE);
	path->setup.rsp_dma = 0;
	kfree(path->setup.rsp);
	path->setup.rsp = NULL;
}

/**
 * rtrs_srv_setup_free() - free the handshake's buffers
 * @path: a path whose connections are drained
 */
void rtrs_srv_setup_free(struct rtrs_srv_path *path)
{
	rtrs_srv_unmap_info_req(path);
	rtrs_srv_free_info_rsp(path);
}

static void rtrs_srv_setup_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_path *path = container_of(wc->wr_cqe,
						  struct rtrs_srv_path,
						  setup.cqe);
	struct rtrs_con *c = &path->conns.con[0]->con;

	if (rtrs_con_wc_failed(c, wc, "work request of the handshake"))
		return;
	rtrs_con_put_wr(c);
	WRITE_ONCE(path->setup.busy, false);
	wake_up_all(&rtrs_srv_wait);
}

/*
 * Post work requests on connection 0 and wait until the last one, @last, is done. On
 * errors the device may still use what the chain refers to, until the path's
 * connections are drained.
 */
static int rtrs_srv_setup_post(struct rtrs_srv_path *path,
			       struct ib_send_wr *first, struct ib_send_wr *last)
{
	int ret;

	path->setup.cqe.done = rtrs_srv_setup_done;
	WRITE_ONCE(path->setup.busy, true);
	last->wr_cqe = &path->setup.cqe;
	last->send_flags |= IB_SEND_SIGNALED;
	ret = rtrs_con_post(&path->conns.con[0]->con, first, 0);
	if (ret)
		return ret;
	/* Any failure of the work requests makes the path end. */
	wait_event(rtrs_srv_wait,
		   !READ_ONCE(path->setup.busy) ||
		   rtrs_srv_path_state(path) == RTRS_SRV_CLOSING);
	return READ_ONCE(path->setup.busy) ? -ECONNABORTED : 0;
}

static int rtrs_srv_register_mrs(struct rtrs_srv_path *path)
{
	struct ib_reg_wr *wrs;
	int ret = 0;
	u32 i, n;

	wrs = kcalloc(RTRS_SRV_REG_BATCH, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return -ENOMEM;
	for (i = 0; i < path->mem.nr_mrs && !ret; i += n) {
		memset(wrs, 0, RTRS_SRV_REG_BATCH * sizeof(*wrs));
		for (n = 0; n < RTRS_SRV_REG_BATCH && i + n < path->mem.nr_mrs;
		     n++) {
			wrs[n].wr.opcode = IB_WR_REG_MR;
			wrs[n].mr = path->mem.mrs[i + n];
			wrs[n].key = path->mem.mrs[i + n]->rkey;
			wrs[n].access = IB_ACCESS_LOCAL_WRITE |
					IB_ACCESS_REMOTE_WRITE;
			if (n)
				wrs[n - 1].wr.next = &wrs[n].wr;
		}
		ret = rtrs_srv_setup_post(path, &wrs[0].wr, &wrs[n - 1].wr);
	}
	kfree(wrs);
	return ret;
}

/**
 * rtrs_srv_check_info_req() - check an INFO_REQ
 * @req: the message, all of it
 *
 * Return: 0, -EPROTO if it is none, -EINVAL if the session's name is no good.
 */
int rtrs_srv_check_info_req(const struct rtrs_info_req *req)
{
	if (le16_to_cpu(req->type) != RTRS_MSG_INFO_REQ)
		return -EPROTO;
	return rtrs_name_valid(req->name) ? 0 : -EINVAL;
}

/* Take the session's name, if all announced connections are there. */
static int rtrs_srv_take_info_req(struct rtrs_srv_path *path)
{
	const struct rtrs_info_req *req = path->setup.req;
	bool all_there;
	int ret;

	rtrs_srv_unmap_info_req(path);
	mutex_lock(&path->conns.lock);
	all_there = path->conns.nr_accepted == path->conns.nr;
	mutex_unlock(&path->conns.lock);
	ret = all_there ? rtrs_srv_check_info_req(req) : -EPROTO;
	if (ret) {
		if (ret == -EINVAL)
			pr_warn_ratelimited("%s: the client's name for its session is not valid\n",
					    path->addr_str);
		return ret;
	}
	ret = rtrs_srv_sess_claim(path, req->name);
	if (ret) {
		if (ret != -ECONNABORTED)
			pr_warn_ratelimited("%s: the session's name \"%s\" is refused: %pe\n",
					    path->addr_str, req->name,
					    ERR_PTR(ret));
		return ret;
	}
	/* A message that is printed at the same time may show a mix of both names. */
	snprintf(path->path.name, sizeof(path->path.name), "%s %s", req->name,
		 path->addr_str);
	return 0;
}

/* As soon as this is out, requests come. */
static int rtrs_srv_send_info_rsp(struct rtrs_srv_path *path)
{
	struct ib_device *dev = path->path.dev;
	struct ib_sge sge = {
		.addr		= path->setup.rsp_dma,
		.length		= path->setup.rsp_len,
		.lkey		= path->path.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode		= IB_WR_SEND,
		.sg_list	= &sge,
		.num_sge	= 1,
	};
	int ret;

	ib_dma_sync_single_for_device(dev, path->setup.rsp_dma,
				      path->setup.rsp_len, DMA_TO_DEVICE);
	ret = rtrs_srv_setup_post(path, &wr, &wr);
	if (!ret)
		rtrs_srv_free_info_rsp(path);
	return ret;
}

/**
 * rtrs_srv_fill_info_rsp() - write an INFO_RSP
 * @rsp: what is written, zeroed
 * @mrs: memory regions of the chunks, in order
 * @nr_mrs: how many
 */
void rtrs_srv_fill_info_rsp(struct rtrs_info_rsp *rsp,
			    struct ib_mr * const *mrs, u32 nr_mrs)
{
	u32 i;

	rsp->type = cpu_to_le16(RTRS_MSG_INFO_RSP);
	rsp->nr_desc = cpu_to_le16(nr_mrs);
	for (i = 0; i < nr_mrs; i++) {
		rsp->desc[i].addr = cpu_to_le64(mrs[i]->iova);
		rsp->desc[i].key = cpu_to_le32(mrs[i]->rkey);
		rsp->desc[i].len = cpu_to_le32(mrs[i]->length);
	}
}

static int rtrs_srv_prepare_info_rsp(struct rtrs_srv_path *path)
{
	struct rtrs_info_rsp *rsp;
	u64 dma;

	path->setup.rsp_len = struct_size(rsp, desc, path->mem.nr_mrs);
	rsp = kzalloc(path->setup.rsp_len, GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;
	path->setup.rsp = rsp;
	rtrs_srv_fill_info_rsp(rsp, path->mem.mrs, path->mem.nr_mrs);
	dma = ib_dma_map_single(path->path.dev, rsp, path->setup.rsp_len,
				DMA_TO_DEVICE);
	if (ib_dma_mapping_error(path->path.dev, dma))
		return -ENOMEM;
	path->setup.rsp_dma = dma;
	return 0;
}

static int rtrs_srv_setup(struct rtrs_srv_path *path)
{
	int ret;

	ret = rtrs_srv_take_info_req(path);
	if (ret)
		return ret;
	ret = rtrs_srv_sess_up(path);
	if (ret)
		return ret;
	ret = rtrs_srv_mem_setup(path);
	if (ret)
		return ret;
	rtrs_srv_ios_init(path);
	ret = rtrs_srv_register_mrs(path);
	if (ret)
		return ret;
	ret = rtrs_srv_prepare_info_rsp(path);
	if (ret)
		return ret;
	ret = rtrs_srv_sysfs_add_path(path);
	if (ret)
		return ret;
	if (!rtrs_srv_path_move(path, RTRS_SRV_EV_UP))
		return -ECONNABORTED;
	/* Before the answer: a client that doesn't take it has to be noticed. */
	rtrs_hb_start(&path->path, &path->conns.con[0]->con);
	return rtrs_srv_send_info_rsp(path);
}

/**
 * rtrs_srv_info_work() - set a path up, as its client has asked for by INFO_REQ
 * @work: in the path; queued once, by the arrival of that message
 *
 * After an error, the path's closing work undoes the parts that were done.
 */
void rtrs_srv_info_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  setup.work);
	int ret;

	ret = rtrs_srv_setup(path);
	if (ret) {
		rtrs_srv_path_error(&path->path, ret, "setting the path up");
		return;
	}
	pr_info_ratelimited("%s: connected, %u connections, %u chunks of %u bytes, on %s port %u\n",
			    path->path.name, path->conns.nr,
			    path->sess->queue_depth, path->sess->chunk_size,
			    dev_name(&path->path.dev->dev), path->port_num);
}
