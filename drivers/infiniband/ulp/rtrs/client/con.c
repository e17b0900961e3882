// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections of a path: addresses and routes, queue pairs, the CM.
 *
 * The path's connect_work performs each step for several connections at once and waits until all
 * have finished it. The CM handler only reports events. The service connection is connected first
 * and alone, because the size of the other queue pairs depends on the server's answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "clt.h"

/* Lowers the server's offer to the limits of the RDMA device and of this driver. */
static int rtrs_clt_fit_dev(struct rtrs_clt_path *path,
			    const struct ib_device_attr *attrs,
			    size_t max_mapping)
{
	bool small = path->neg.slot_size;
	int nr_slots;

	path->neg.max_sge = min_t(u32, attrs->max_send_sge, RTRS_CLT_MAX_SGE);
	/* Copied data and headers use one SGE, and the server fetches large data. */
	if (small && path->neg.slot_size <= RTRS_CLT_PUSH_COPY)
		path->neg.max_sge = 1;
	max_mapping = min_t(size_t, max_mapping, RTRS_CLT_MAX_IO);
	path->neg.max_io_size = min_t(u32, path->neg.max_io_size,
				      round_down(max_mapping, SZ_4K));
	/* Data that begin off a page boundary extend over one more page. */
	path->neg.max_segments = min(attrs->max_fast_reg_page_list_len,
				     path->neg.max_io_size / SZ_4K + 1);
	nr_slots = min_t(int, path->neg.depth, RTRS_CLT_MAX_SLOTS);
	/* Servers that ignore the client's queue depth may offer more. */
	if (path->clt->queue_depth)
		nr_slots = min_t(int, nr_slots, path->clt->queue_depth);
	if (small)
		/* Not fewer than the session already has */
		nr_slots = min_t(int, nr_slots, max_t(u32, path->clt->limits.queue_depth,
						      RTRS_CLT_MAX_BUFS / path->neg.chunk_size));
	nr_slots = min(nr_slots, rtrs_clt_dev_slots(attrs, small));
	if (attrs->max_send_sge < RTRS_CLT_MIN_SGE || path->neg.max_segments < 2 ||
	    nr_slots < 1) {
		rtrs_path_err(&path->path, "the limits of the RDMA device are too low: %d SGEs, %d pages in a memory region, queues of %d, completion queues of %d\n",
			      attrs->max_send_sge, attrs->max_fast_reg_page_list_len,
			      attrs->max_qp_wr, attrs->max_cqe);
		return -EOPNOTSUPP;
	}
	path->neg.max_io_size = min(path->neg.max_io_size,
				    (path->neg.max_segments - 1) * SZ_4K);
	path->neg.nr_slots = nr_slots;
	return 0;
}

/*
 * Returns the bytes of the server's chunks or slots, or 0 if the offer is invalid. With
 * RTRS_FEATURE_SLOTS, requests may have more data than fit in a slot.
 */
static u32 rtrs_clt_rep_chunk(const struct rtrs_cm_rep *rep, bool small)
{
	u32 depth = le16_to_cpu(rep->queue_depth);
	u32 io_size = le32_to_cpu(rep->max_io_size);
	u32 data = small ? le32_to_cpu(rep->slot_size) : io_size;
	u32 hdr = le32_to_cpu(rep->max_hdr_size);

	if (!depth || hdr < RTRS_MAX_HDR_LEN || hdr > SZ_1G || io_size < SZ_4K ||
	    io_size > SZ_1G || data > io_size)
		return 0;
	if (small && (!data || data % RTRS_SLOT_UNIT || data > RTRS_MAX_SLOT_SIZE ||
		      hdr != rtrs_slot_hdr_room(data) ||
		      le32_to_cpu(rep->flags) & RTRS_FLAG_NEW_RKEY))
		return 0;
	return data + hdr <= BIT(rtrs_imm_off_bits(depth)) ? data + hdr : 0;
}

/**
 * rtrs_clt_parse_rep() - parse the private data of an accept
 * @path: path of the connection; neg is filled in
 * @attrs: limits of the RDMA device
 * @max_mapping: maximum bytes of one DMA mapping for the device
 * @data: private data, may be NULL
 * @len: length of @data
 *
 * Context: CM event handler of the service connection.
 * Return: 0; -EPROTO if @data is invalid; -EKEYREJECTED if the server doesn't support
 * authentication; or -EOPNOTSUPP if the device's limits are too low, or the server lacks a feature
 * that the device needs.
 */
int rtrs_clt_parse_rep(struct rtrs_clt_path *path,
		       const struct ib_device_attr *attrs, size_t max_mapping,
		       const void *data, u8 len)
{
	const struct rtrs_cm_rep *rep = data;
	bool small;

	if (!data || len < sizeof(*rep) ||
	    le16_to_cpu(rep->magic) != RTRS_MAGIC) {
		rtrs_path_err(&path->path, "the peer is not an RTRS server\n");
		return -EPROTO;
	}
	if (le16_to_cpu(rep->version) >> 8 != RTRS_VERSION_MAJOR) {
		rtrs_path_err(&path->path, "the server speaks RTRS %u, this driver %u\n",
			      le16_to_cpu(rep->version) >> 8, RTRS_VERSION_MAJOR);
		return -EPROTO;
	}
	path->path.features = le32_to_cpu(rep->features) & path->neg.offered;
	if (path->neg.offered & RTRS_FEATURE_NO_IMM &&
	    ~path->path.features & (RTRS_FEATURE_NO_IMM | RTRS_FEATURE_SLOTS)) {
		rtrs_path_err(&path->path, "the server requires immediate data, which iWARP doesn't have: it must run this driver, with slots\n");
		return -EOPNOTSUPP;
	}
	if (path->neg.offered & ~path->path.features & RTRS_FEATURE_PROOF) {
		rtrs_path_err(&path->path, "the server can't prove that it knows the session's key: it must run this driver\n");
		return -EKEYREJECTED;
	}
	small = path->path.features & RTRS_FEATURE_SLOTS;
	path->neg.slot_size = small ? le32_to_cpu(rep->slot_size) : 0;
	path->neg.copy_size = small ? path->neg.slot_size : RTRS_CLT_COPY_SIZE;
	path->neg.depth = le16_to_cpu(rep->queue_depth);
	path->neg.max_io_size = le32_to_cpu(rep->max_io_size);
	path->neg.new_rkey = le32_to_cpu(rep->flags) & RTRS_FLAG_NEW_RKEY;
	path->neg.chunk_size = rtrs_clt_rep_chunk(rep, small);
	if (!path->neg.chunk_size) {
		rtrs_path_err(&path->path, "the server's offer is invalid: queue depth %u, %u bytes per I/O, slots of %u bytes\n",
			      path->neg.depth, path->neg.max_io_size, path->neg.slot_size);
		return -EPROTO;
	}
	path->neg.sess_id = 0;
	uuid_copy(&path->neg.srv_uuid, &uuid_null);
	if (path->path.features & RTRS_FEATURE_FENCE) {
		path->neg.sess_id = le32_to_cpu(rep->sess_id);
		uuid_copy(&path->neg.srv_uuid, &rep->srv_uuid);
	}
	return rtrs_clt_fit_dev(path, attrs, max_mapping);
}

/**
 * rtrs_clt_peer_errno() - sanitize an errno with which a server refuses a path
 * @err: the errno
 *
 * Return: @err; -ECONNREFUSED if it is not a valid errno, or if this driver uses it with another
 * meaning: a signal, an attempt in progress, a duplicate path.
 */
int rtrs_clt_peer_errno(int err)
{
	if (err >= 0 || err <= -ERESTARTSYS)
		return -ECONNREFUSED;
	switch (err) {
	case -EINTR:
	case -ESHUTDOWN:
	case -EINPROGRESS:
	case -EEXIST:
		return -ECONNREFUSED;
	default:
		return err;
	}
}

/**
 * rtrs_clt_rep_err() - parse the private data of a reject
 * @rep: private data, may be NULL
 * @len: length of @rep
 *
 * Return: as rtrs_clt_peer_errno().
 */
int rtrs_clt_rep_err(const struct rtrs_cm_rep *rep, u8 len)
{
	if (!rep || len < sizeof(*rep) || le16_to_cpu(rep->magic) != RTRS_MAGIC)
		return -ECONNREFUSED;
	return rtrs_clt_peer_errno((s16)le16_to_cpu(rep->err));
}

/*
 * On iWARP, the reason may not show that the reject came from the server rather than from its CM,
 * so the private data is used in any case.
 */
static const struct rtrs_cm_rep *rtrs_clt_reject_data(struct rdma_cm_id *id,
						      struct rdma_cm_event *ev, u8 *len)
{
	if (!rdma_protocol_iwarp(id->device, id->port_num))
		return rdma_consumer_reject_data(id, ev, len);
	*len = ev->param.conn.private_data_len;
	return ev->param.conn.private_data;
}

static int rtrs_clt_rejected(struct rtrs_clt_con *con,
			     struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = con->con.cm_id;
	const struct rtrs_cm_rep *rep;
	u8 len = 0;
	int err;

	rep = rtrs_clt_reject_data(id, ev, &len);
	err = rtrs_clt_rep_err(rep, len);
	/* Repeated attempts log the same error once. */
	if (READ_ONCE(to_clt_path(con->con.path)->sm.logged) != err)
		rtrs_path_err(con->con.path, "connection %u: the server refused it: %s (%pe)\n",
			      con->con.cid, rdma_reject_msg(id, ev->status), ERR_PTR(err));
	return err;
}

static int rtrs_clt_established(struct rtrs_clt_con *con,
				const struct rdma_conn_param *param)
{
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	const struct rtrs_cm_rep *rep = param->private_data;
	struct ib_device *dev = con->con.cm_id->device;
	int ret;

	WRITE_ONCE(con->established, true);
	con->con.peer_qpn = param->qp_num;
	if (rep && param->private_data_len >= sizeof(*rep))
		memcpy(con->con.nonce, rep->nonce, sizeof(con->con.nonce));
	if (con->con.cid)
		return 0;
	ret = rtrs_clt_parse_rep(path, &dev->attrs, ib_uses_virt_dma(dev) ? SIZE_MAX :
				 dma_max_mapping_size(dev->dma_device),
				 param->private_data, param->private_data_len);
	rtrs_clt_create_accepted(path);
	return ret;
}

/* Reports events of the CM. Only the path's end_work destroys the id. */
static int rtrs_clt_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct rtrs_clt_con *con = id->context;
	struct rtrs_clt_path *path = to_clt_path(con->con.path);
	int err = 0;

	switch (ev->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		err = rtrs_clt_established(con, &ev->param.conn);
		fallthrough;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (!err)
			rtrs_clt_path_step_done(path);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rtrs_clt_end_create(path);
		err = rtrs_clt_rejected(con, ev);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTED) {
			/*
			 * A neighbour has another hardware address. It may be another neighbour
			 * than the server, as the CM doesn't distinguish network namespaces here.
			 */
			rtrs_hb_probe_now(&path->path, RTRS_CLT_PROBE_MS);
			break;
		}
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		err = -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* The server accepted, but the connection could not be established. */
		rtrs_clt_end_create(path);
		err = -ECONNABORTED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		err = -ECONNRESET;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		err = -ENODEV;
		break;
	default:
		break;
	}
	if (err)
		rtrs_clt_path_error(&path->path, err, rdma_event_msg(ev->event));
	return 0;
}

static int rtrs_clt_con_resolve(struct rtrs_clt_path *path, unsigned int cid)
{
	struct rtrs_clt_con *con = &path->cons[cid];
	struct sockaddr *src = (struct sockaddr *)&path->path.addr.src;
	struct rdma_cm_id *id;
	enum rdma_ucm_port_space ps;

	ps = path->path.addr.dst.ss_family == AF_IB ? RDMA_PS_IB : RDMA_PS_TCP;
	con->con.path = &path->path;
	con->con.cid = cid;
	id = rdma_create_id(path->clt->net, rtrs_clt_cm_handler, con, ps, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	con->con.cm_id = id;
	path->path.nr_cons = cid + 1;
	rdma_set_reuseaddr(id, 1);
	rtrs_con_set_ack_timeout(&con->con);
	return rdma_resolve_addr(id, src->sa_family == AF_UNSPEC ? NULL : src,
				 (struct sockaddr *)&path->path.addr.dst,
				 RTRS_CLT_RESOLVE_MS);
}

/**
 * rtrs_clt_choose_form() - choose the message formats that the RDMA device requires
 * @path: path that is being connected; its service connection has a device
 */
VISIBLE_IF_KUNIT void rtrs_clt_choose_form(struct rtrs_clt_path *path)
{
	const struct rdma_cm_id *id = path->cons[0].con.cm_id;

	path->path.no_imm = rdma_protocol_iwarp(id->device, id->port_num);
	if (path->path.no_imm)
		path->neg.offered |= RTRS_FEATURE_NO_IMM;
	/* See "Invalid keys" in io.c. */
	path->neg.own_inv = id->device->ops.driver_id == RDMA_DRIVER_SIW;
}

static int rtrs_clt_con_setup(struct rtrs_clt_path *path, unsigned int cid)
{
	struct rtrs_clt_con *con = &path->cons[cid];
	u32 recv_wr;
	int ret;

	ret = rtrs_path_open_dev(&path->path, con->con.cm_id);
	if (ret)
		return ret;
	if (!cid)
		rtrs_clt_choose_form(path);
	ret = rtrs_clt_create_qp(path, cid, &recv_wr);
	if (ret || !cid)
		return ret;
	return rtrs_clt_recvs_start(con, recv_wr);
}

/**
 * rtrs_clt_fill_req() - write the private data of a connection request
 * @path: path of the connection
 * @cid: index of the connection
 * @req: private data to fill in
 */
void rtrs_clt_fill_req(const struct rtrs_clt_path *path, unsigned int cid,
		       struct rtrs_cm_req *req)
{
	const struct rtrs_clt *clt = path->clt;

	*req = (struct rtrs_cm_req) {
		.magic		= cpu_to_le16(RTRS_MAGIC),
		.version	= cpu_to_le16(RTRS_VERSION),
		.cid		= cpu_to_le16(cid),
		.cid_num	= cpu_to_le16(rtrs_clt_nr_cons(clt)),
		.recon_cnt	= cpu_to_le16(path->path.nr_connects),
		.path_uuid	= path->path.uuid,
		.sess_uuid	= clt->uuid,
		.first_conn	= path->may_create && !cid,
	};
	req->queue_depth = cpu_to_le16(clt->queue_depth);
	req->features = cpu_to_le32(path->neg.offered);
	if (path->neg.offered & RTRS_FEATURE_PROOF) {
		req->first_conn |= path->neg.tag << 1;
		req->tag_hi = path->neg.tag >> RTRS_TAG_LO_BITS;
	}
	if (path->neg.offered & RTRS_FEATURE_FENCE)
		req->path_id = cpu_to_le32(path->path.id);
}

/*
 * Returns the number of RDMA READs that the server may have outstanding to fetch data; 0 if it
 * fetches none.
 */
static u8 rtrs_clt_max_fetch(const struct rtrs_clt_path *path, unsigned int cid)
{
	u32 features = cid ? path->path.features : path->neg.offered;

	if (!(features & RTRS_FEATURE_SLOTS))
		return 0;
	return min(path->path.dev->attrs.max_qp_rd_atom, RTRS_CLT_MAX_FETCH);
}

static int rtrs_clt_con_request(struct rtrs_clt_path *path, unsigned int cid)
{
	struct rtrs_cm_req req;
	struct rdma_conn_param param = {
		.private_data		= &req,
		.private_data_len	= sizeof(req),
		.retry_count		= RTRS_CM_RETRIES,
		.rnr_retry_count	= RTRS_CM_RETRIES,
	};
	int ret;

	ret = rtrs_clt_con_setup(path, cid);
	if (!ret) {
		rtrs_clt_fill_req(path, cid, &req);
		param.initiator_depth = cid && path->path.no_imm;
		param.responder_resources = rtrs_clt_max_fetch(path, cid);
		ret = rdma_connect(path->cons[cid].con.cm_id, &param);
	}
	/* No request was sent, so no answer will release creation. */
	if (ret)
		rtrs_clt_end_create(path);
	return ret;
}

static int rtrs_clt_con_route(struct rtrs_clt_path *path, unsigned int cid)
{
	return rdma_resolve_route(path->cons[cid].con.cm_id,
				  RTRS_CLT_RESOLVE_MS);
}

/* Performs a step for connections @first to @end - 1, and waits until all have finished it. */
static int rtrs_clt_cons_step(struct rtrs_clt_path *path, unsigned int first,
			      unsigned int end, unsigned int timeout_ms,
			      int (*step)(struct rtrs_clt_path *, unsigned int))
{
	unsigned int cid;
	int ret;

	atomic_set(&path->sm.nr_pending, end - first);
	for (cid = first; cid < end; cid++) {
		ret = step(path, cid);
		if (ret)
			return ret;
	}
	return rtrs_clt_path_wait(path, timeout_ms);
}

/**
 * rtrs_clt_answer_ms() - get the timeout for the answer to a path's first connection request
 * @path: path that is being connected
 *
 * Return: milliseconds.
 */
VISIBLE_IF_KUNIT unsigned int rtrs_clt_answer_ms(const struct rtrs_clt_path *path)
{
	return path->stats.ever_up && path->sm.failures < RTRS_CLT_ANSWER_TRIES ?
	       RTRS_CLT_ANSWER_MS : RTRS_CLT_CONNECT_MS;
}

static int rtrs_clt_cons_establish(struct rtrs_clt_path *path,
				   unsigned int first, unsigned int end)
{
	int ret;

	ret = rtrs_clt_cons_step(path, first, end, 2 * RTRS_CLT_RESOLVE_MS,
				 rtrs_clt_con_route);
	if (!ret && !first)
		ret = rtrs_clt_wait_create(path);
	if (ret)
		return ret;
	return rtrs_clt_cons_step(path, first, end,
				  first ? RTRS_CLT_CONNECT_MS : rtrs_clt_answer_ms(path),
				  rtrs_clt_con_request);
}

/*
 * Stores the resolved addresses, so that all connections use the same source address, hence the
 * same device. Source ports are cleared. A link-local destination gets the scope selected by
 * routing.
 */
static void rtrs_clt_keep_addr(struct rtrs_clt_path *path)
{
	rtrs_addr_from_id(path->cons[0].con.cm_id, &path->path.addr);
	if (path->path.addr.src.ss_family == AF_INET)
		((struct sockaddr_in *)&path->path.addr.src)->sin_port = 0;
	else if (path->path.addr.src.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&path->path.addr.src)->sin6_port = 0;
}

/**
 * rtrs_clt_conn_resolve() - resolve the addresses of a path
 * @path: path that is being connected
 *
 * On success, the path's source address is known.
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno. In both cases, rtrs_clt_cons_disconnect(),
 * rtrs_path_destroy_qps() and rtrs_clt_cons_destroy() undo this step.
 */
int rtrs_clt_conn_resolve(struct rtrs_clt_path *path)
{
	unsigned int nr = rtrs_clt_nr_cons(path->clt);
	int ret;

	path->cons = kvcalloc(nr, sizeof(*path->cons), GFP_KERNEL);
	if (!path->cons)
		return -ENOMEM;
	ret = rtrs_clt_cons_step(path, 0, 1, 2 * RTRS_CLT_RESOLVE_MS, rtrs_clt_con_resolve);
	if (ret)
		return ret;
	rtrs_clt_keep_addr(path);
	return 0;
}

/**
 * rtrs_clt_conn_service() - connect the service connection
 * @path: path after rtrs_clt_conn_resolve()
 *
 * On success, the path's neg is filled in.
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno.
 */
int rtrs_clt_conn_service(struct rtrs_clt_path *path)
{
	return rtrs_clt_cons_establish(path, 0, 1);
}

/**
 * rtrs_clt_conn_io() - connect the connections for I/O
 * @path: path after rtrs_clt_conn_service(); the receive for INFO_RSP is posted
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno.
 */
int rtrs_clt_conn_io(struct rtrs_clt_path *path)
{
	unsigned int nr = rtrs_clt_nr_cons(path->clt);
	int ret;

	ret = rtrs_clt_recvs_start(&path->cons[0], RTRS_SERVICE_WR - 1);
	if (ret)
		return ret;
	return rtrs_clt_cons_step(path, 1, nr, 2 * RTRS_CLT_RESOLVE_MS, rtrs_clt_con_resolve) ?:
	       rtrs_clt_cons_establish(path, 1, nr);
}

/**
 * rtrs_clt_cons_disconnect() - end all traffic of a path
 * @path: path that is ending; no requests are submitted to it any more
 *
 * On return no completion handler of the path runs or will run.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_cons_disconnect(struct rtrs_clt_path *path)
{
	/* Handlers of receives post sends, so send queues are drained last. */
	rtrs_path_disconnect(&path->path);
	rtrs_path_drain_send(&path->path);
}

/**
 * rtrs_clt_cons_destroy() - free all connections of a path, and release its device
 * @path: path that is ending; its queue pairs are destroyed and its slots freed
 *
 * Context: process, may sleep.
 */
void rtrs_clt_cons_destroy(struct rtrs_clt_path *path)
{
	unsigned int i;

	rtrs_path_close_dev(&path->path);
	for (i = 0; i < path->path.nr_cons; i++)
		rdma_destroy_id(path->cons[i].con.cm_id);
	/*
	 * An unanswered request may still make the server create a session, so creation isn't
	 * released in that case. A reject has already released it.
	 */
	if (path->path.nr_cons && path->cons[0].established)
		rtrs_clt_end_create(path);
	path->path.nr_cons = 0;
	kvfree(path->cons);
	path->cons = NULL;
}
