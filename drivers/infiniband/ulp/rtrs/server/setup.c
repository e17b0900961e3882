// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The handshake of a path: the client sends the name of its session (INFO_REQ). The server prepares
 * the path and sends the addresses and keys of its chunks (INFO_RSP).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>

#include "srv.h"

static void rtrs_srv_info_req_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_path *path = container_of(wc->wr_cqe,
						  struct rtrs_srv_path,
						  setup.req_cqe);
	struct rtrs_con *c = &path->conns.con[0]->con;

	if (rtrs_con_wc_failed(c, wc, "receive of the client's first message"))
		return;
	if (wc->opcode != IB_WC_RECV || wc->byte_len != path->setup.req.size) {
		rtrs_srv_path_error(&path->path, -EPROTO,
				    "the client's first message is no INFO_REQ");
		return;
	}
	rtrs_long_received(&path->setup.req);
	rtrs_srv_setup_continue(path);
}

/**
 * rtrs_srv_setup_recv() - post the receive for the client's first message
 * @con: connection 0, on which no other receive has been posted
 *
 * Return: 0 or a negative errno. In either case, rtrs_srv_setup_free() cleans up.
 */
int rtrs_srv_setup_recv(struct rtrs_srv_con *con)
{
	struct rtrs_srv_path *path = con->path;
	u32 size = sizeof(struct rtrs_info_req);
	int ret;

	if (path->path.features & RTRS_FEATURE_PROOF)
		size += sizeof(struct rtrs_proof);
	ret = rtrs_long_alloc(&path->setup.req, &path->path, size);
	if (ret)
		return ret;
	path->setup.req_cqe.done = rtrs_srv_info_req_done;
	return rtrs_long_post_recv(&path->setup.req, &con->con, &path->setup.req_cqe);
}

/**
 * rtrs_srv_setup_free() - free the handshake's buffers
 * @path: path whose connections are drained
 */
void rtrs_srv_setup_free(struct rtrs_srv_path *path)
{
	rtrs_long_free(&path->setup.req);
	rtrs_long_free(&path->setup.rsp);
}

static void rtrs_srv_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_srv_path *path = container_of(wc->wr_cqe,
						  struct rtrs_srv_path,
						  setup.reg_cqe);
	struct rtrs_con *con = &path->conns.con[0]->con;

	if (rtrs_con_wc_failed(con, wc, "registration of chunks"))
		return;
	rtrs_con_put_wr(con);
	WRITE_ONCE(path->setup.reg_busy, false);
	rtrs_srv_setup_continue(path);
}

/* Registers memory regions in batches, as the service connection has a short send queue. */
static int rtrs_srv_register_mrs(struct rtrs_srv_path *path)
{
	struct rtrs_srv_setup *setup = &path->setup;
	int nr;

	if (READ_ONCE(setup->reg_busy))
		return RTRS_SRV_SETUP_WAIT;
	if (setup->nr_reg == path->mem.chunks.nr_mrs)
		return 0;
	setup->reg_cqe.done = rtrs_srv_reg_done;
	WRITE_ONCE(setup->reg_busy, true);
	nr = rtrs_region_register(&path->mem.chunks, &path->conns.con[0]->con, setup->nr_reg,
				  &setup->reg_cqe);
	if (nr < 0)
		return nr;
	setup->nr_reg += nr;
	return RTRS_SRV_SETUP_WAIT;
}

/**
 * rtrs_srv_check_info_req() - check an INFO_REQ
 * @req: message of valid length
 *
 * Return: 0; -EPROTO if it isn't an INFO_REQ; -EINVAL if the session's name is invalid.
 */
int rtrs_srv_check_info_req(const struct rtrs_info_req *req)
{
	if (le16_to_cpu(req->type) != RTRS_MSG_INFO_REQ)
		return -EPROTO;
	return rtrs_name_valid(req->name) ? 0 : -EINVAL;
}

/**
 * rtrs_srv_fill_info_rsp() - write an INFO_RSP
 * @rsp: message to fill in, zeroed by the caller
 * @chunks: the chunks, with their memory regions
 */
void rtrs_srv_fill_info_rsp(struct rtrs_info_rsp *rsp,
			    const struct rtrs_region *chunks)
{
	u32 i, nr;

	rsp->type = cpu_to_le16(RTRS_MSG_INFO_RSP);
	rsp->nr_desc = cpu_to_le16(chunks->nr_mrs);
	for (i = 0; i < chunks->nr_mrs; i++) {
		/* The last memory region may cover more pieces than are used. */
		nr = min(chunks->per_mr, chunks->nr - i * chunks->per_mr);
		rsp->desc[i].addr = cpu_to_le64(chunks->mrs[i]->iova);
		rsp->desc[i].key = cpu_to_le32(chunks->mrs[i]->rkey);
		rsp->desc[i].len = cpu_to_le32(nr * chunks->size);
	}
}

static int rtrs_srv_prepare_info_rsp(struct rtrs_srv_path *path)
{
	struct rtrs_info_rsp *rsp;
	size_t len = struct_size(rsp, desc, path->mem.chunks.nr_mrs);
	int ret;

	ret = rtrs_long_alloc(&path->setup.rsp, &path->path,
			      len + (path->key ? RTRS_PROOF_MAC : 0));
	if (ret)
		return ret;
	rsp = path->setup.rsp.msg;
	rtrs_srv_fill_info_rsp(rsp, &path->mem.chunks);
	return path->key ? rtrs_srv_proof(path, (u8 *)rsp + len) : 0;
}

/*
 * Sends the client the reason why its path is refused, if the client supports that. The client then
 * disconnects, so that it is certain to receive the reason; otherwise a timeout ends the path.
 */
static int rtrs_srv_refuse(struct rtrs_srv_path *path, int err)
{
	struct rtrs_info_rsp *rsp;
	int ret;

	if (!(path->path.features & (RTRS_FEATURE_PROOF | RTRS_FEATURE_REASON)))
		return err;
	ret = rtrs_long_alloc(&path->setup.rsp, &path->path, sizeof(*rsp));
	if (ret)
		return ret;
	rsp = path->setup.rsp.msg;
	rsp->type = cpu_to_le16(RTRS_MSG_INFO_RSP);
	rsp->err = cpu_to_le32(err);
	ret = rtrs_long_send(&path->setup.rsp, &path->conns.con[0]->con, NULL);
	if (ret)
		return ret;
	mutex_lock(&rtrs_srv_lock);
	path->setup.refused = true;
	mutex_unlock(&rtrs_srv_lock);
	mod_delayed_work(rtrs_srv_setup_wq, &path->setup.timeout,
			 msecs_to_jiffies(RTRS_SRV_REFUSED_MS));
	return RTRS_SRV_SETUP_REFUSED;
}

/* Handles an INFO_REQ. All announced connections have to be established by then. */
static int rtrs_srv_handle_info_req(struct rtrs_srv_path *path)
{
	const struct rtrs_info_req *req = path->setup.req.msg;
	struct rtrs_srv_peer peer;
	const struct rtrs_srv *srv = path->sess->srv;
	bool all_there;
	int ret;

	mutex_lock(&path->conns.lock);
	all_there = path->conns.nr_accepted == path->path.nr_cons;
	mutex_unlock(&path->conns.lock);
	ret = all_there ? rtrs_srv_check_info_req(req) : -EPROTO;
	if (ret) {
		if (ret == -EINVAL)
			rtrs_srv_warn(path, "the client's name for its session is not valid\n");
		return ret;
	}
	ret = path->path.features & RTRS_FEATURE_PROOF ? rtrs_srv_proof(path, NULL) : 0;
	if (!ret) {
		peer = rtrs_srv_path_peer(path);
		ret = srv->ops->admit(srv->owner, req->name, &peer);
	}
	if (!ret)
		return 0;
	if (ret == -EKEYREJECTED)
		rtrs_srv_warn(path, "the client has not proved that it may use session \"%s\"\n",
			      req->name);
	else
		rtrs_srv_warn(path, "the client is not allowed to use session \"%s\": %pe\n",
			      req->name, ERR_PTR(ret));
	return rtrs_srv_refuse(path, ret);
}

static int rtrs_srv_claim(struct rtrs_srv_path *path)
{
	const struct rtrs_info_req *req = path->setup.req.msg;
	int ret = rtrs_srv_sess_claim(path, req->name);

	if (ret) {
		if (ret < 0 && ret != -ECONNABORTED)
			rtrs_srv_warn(path, "the session's name \"%s\" is refused: %pe\n",
				      req->name, ERR_PTR(ret));
		return ret;
	}
	/* The session has a name, hence its own rate limit. */
	WRITE_ONCE(path->path.log, &path->sess->log);
	/* A message that is printed concurrently may show a mix of both names. */
	snprintf(path->path.name, sizeof(path->path.name), "%s %s", path->sess->label,
		 path->path.addr_str);
	return 0;
}

static int rtrs_srv_prepare(struct rtrs_srv_path *path)
{
	struct rtrs_srv_peer peer;
	int ret;

	ret = rtrs_srv_sess_up(path);
	if (ret)
		return ret;
	path->cost = rtrs_srv_mem_cost(path);
	peer = rtrs_srv_path_peer(path);
	ret = path->sess->srv->ops->path_up(path->sess->priv, &peer);
	if (ret)
		return rtrs_srv_refuse(path, ret);
	return rtrs_srv_bufs_setup(path) ?: rtrs_srv_mem_setup(path) ?:
	       rtrs_srv_prepare_info_rsp(path) ?: rtrs_srv_sysfs_add_path(path);
}

/* Connects the path. paths_lock keeps an EVENT from being sent before INFO_RSP. */
static int rtrs_srv_connected(struct rtrs_srv_path *path)
{
	struct rtrs_con *con = &path->conns.con[0]->con;
	struct rtrs_srv_sess *sess = path->sess;
	int ret = -ECONNABORTED;
	bool moved;

	mutex_lock(&rtrs_srv_lock);
	mutex_lock(&sess->paths_lock);
	moved = rtrs_srv_path_move(path, RTRS_SRV_EV_UP, 0, NULL);
	if (moved)
		sess->connected = true;
	mutex_unlock(&rtrs_srv_lock);
	if (moved) {
		rtrs_srv_info(path, "connected, %u connections, %u chunks of %u bytes, on %s port %u\n",
			      path->path.nr_cons, sess->queue_depth, path->mem.chunks.size,
			      dev_name(&path->path.dev->dev), path->path.port_num);
		/* First, so that a client that doesn't receive INFO_RSP is detected. */
		rtrs_hb_start(&path->path, con);
		ret = rtrs_long_send(&path->setup.rsp, con, NULL);
	}
	mutex_unlock(&sess->paths_lock);
	return ret;
}

/**
 * rtrs_srv_setup_work() - perform the steps of a path's handshake after INFO_REQ
 * @work: &rtrs_srv_setup.work of the path; queued when INFO_REQ has arrived, and each time a step
 *	may continue
 *
 * A step that has to wait returns RTRS_SRV_SETUP_WAIT and is repeated. After an error or
 * RTRS_SRV_SETUP_REFUSED, the closing work undoes the steps.
 */
void rtrs_srv_setup_work(struct work_struct *work)
{
	static int (* const steps[])(struct rtrs_srv_path *path) = {
		rtrs_srv_handle_info_req,
		rtrs_srv_claim,
		rtrs_srv_prepare,
		rtrs_srv_register_mrs,
		rtrs_srv_connected,
	};
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  setup.work);
	/* Memory reclaim may depend on a client that is connecting. */
	unsigned int noio = memalloc_noio_save();
	int ret;

	while (path->setup.step < ARRAY_SIZE(steps)) {
		ret = steps[path->setup.step](path);
		if (ret == RTRS_SRV_SETUP_WAIT)
			break;
		path->setup.step = ret ? ARRAY_SIZE(steps) : path->setup.step + 1;
		if (ret < 0) {
			rtrs_srv_path_error(&path->path, ret,
					    "the path can't be set up");
		}
	}
	memalloc_noio_restore(noio);
}
