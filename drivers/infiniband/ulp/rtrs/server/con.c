// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections: added to a path, set up with a queue pair and receives, and accepted. Later events
 * of the connection manager end the path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "srv.h"

/**
 * rtrs_srv_fill_rep() - fill in the private data of a reject
 * @rep: private data to fill in
 * @err: reason of the reject, a negative errno
 */
void rtrs_srv_fill_rep(struct rtrs_cm_rep *rep, int err)
{
	memset(rep, 0, sizeof(*rep));
	rep->magic = cpu_to_le16(RTRS_MAGIC);
	rep->version = cpu_to_le16(RTRS_VERSION);
	rep->err = cpu_to_le16(err);
}

/**
 * rtrs_srv_con_reject() - reject a connection request
 * @id: cm_id of the request
 * @err: reason of the reject, a negative errno
 */
void rtrs_srv_con_reject(struct rdma_cm_id *id, int err)
{
	struct rtrs_cm_rep rep;

	rtrs_srv_fill_rep(&rep, err);
	rdma_reject(id, &rep, sizeof(rep), IB_CM_REJ_CONSUMER_DEFINED);
}

/**
 * rtrs_srv_fill_accept() - fill in the private data of an accept
 * @rep: private data to fill in
 * @path: path of the connection
 */
void rtrs_srv_fill_accept(struct rtrs_cm_rep *rep,
			  const struct rtrs_srv_path *path)
{
	const struct rtrs_srv_sess *sess = path->sess;

	rtrs_srv_fill_rep(rep, 0);
	rep->queue_depth = cpu_to_le16(sess->queue_depth);
	rep->max_io_size = cpu_to_le32(path->mem.max_io);
	rep->max_hdr_size = cpu_to_le32(path->mem.hdr_room);
	rep->features = cpu_to_le32(path->path.features);
	if (rtrs_srv_has_slots(path))
		rep->slot_size = cpu_to_le32(path->mem.room);
	if (!(path->path.features & RTRS_FEATURE_FENCE))
		return;
	rep->sess_id = cpu_to_le32(sess->id);
	uuid_copy(&rep->srv_uuid, &sess->srv->uuid);
}

static int rtrs_srv_con_accept(struct rtrs_srv_con *con)
{
	struct rtrs_cm_rep rep;
	struct rdma_conn_param param = {
		.private_data		= &rep,
		.private_data_len	= sizeof(rep),
		.initiator_depth	= con->fetch.max_reads,
		.responder_resources	= con->con.cid && con->path->path.no_imm,
		.flow_control		= 1,
		.rnr_retry_count	= RTRS_CM_RETRIES,
	};

	rtrs_srv_fill_accept(&rep, con->path);
	memcpy(rep.nonce, con->con.nonce, sizeof(rep.nonce));
	return rdma_accept(con->con.cm_id, &param);
}

/*
 * Ends the path when a connection is lost. Since the server disconnects only paths that are
 * closing, a connected path was disconnected by the client.
 */
static int rtrs_srv_con_event(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	struct rtrs_srv_con *con = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		rtrs_srv_path_error(&con->path->path, 0, "the client disconnected");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rtrs_srv_path_error(&con->path->path, -ENODEV, "its RDMA device is being removed");
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		rtrs_srv_path_error(&con->path->path, -ECONNRESET,
				    rdma_event_msg(event->event));
		break;
	default:
		pr_debug("%s: connection %u: %s (%d)\n", con->path->path.name,
			 con->con.cid, rdma_event_msg(event->event),
			 event->status);
	}
	return 0;
}

static int rtrs_srv_con_setup(struct rtrs_srv_con *con)
{
	struct rdma_cm_id *id = con->con.cm_id;
	struct rtrs_qp_params params;
	int ret;

	ret = rtrs_path_open_dev(&con->path->path, id);
	if (ret)
		goto reject;
	params = rtrs_srv_qp_params(con->path, id->device, con->con.cid);
	ret = rtrs_con_create_qp(&con->con, &params);
	if (ret)
		goto reject;
	/* The first posted receive is for the client's first message. */
	if (!con->con.cid)
		ret = rtrs_srv_setup_recv(con);
	if (!ret)
		ret = rtrs_srv_recv_start(con);
	if (ret)
		goto reject;
	rtrs_con_set_ack_timeout(&con->con);
	/* rdma_accept() sends a reject if it fails. */
	return rtrs_srv_con_accept(con);

reject:
	rtrs_srv_con_reject(id, ret);
	return ret;
}

static struct rtrs_srv_con *rtrs_srv_con_alloc(struct rtrs_srv_path *path,
					       const struct rdma_cm_id *id, u16 cid)
{
	struct rtrs_srv_con *con;

	if (!path->share && rtrs_srv_path_join_port(path, id->device, path->path.port_num))
		return NULL;
	con = kzalloc(sizeof(*con), GFP_KERNEL);
	if (!con)
		return NULL;
	con->path = path;
	con->con.path = &path->path;
	con->con.cid = cid;
	rtrs_srv_con_init_send(con);
	rtrs_srv_con_init_io(con);
	return con;
}

/**
 * rtrs_srv_con_add() - add a requested connection to a path, and accept it
 * @path: path that the request is for
 * @id: cm_id of the request
 * @req: private data of the request, checked
 * @param: connection parameters of the request
 *
 * Context: CM event handler of the request.
 * Return: a negative errno if the connection is not added, and the caller still owns @id; 0 if the
 * path owns @id, even if an error ends the path.
 */
int rtrs_srv_con_add(struct rtrs_srv_path *path, struct rdma_cm_id *id,
		     const struct rtrs_cm_req *req, const struct rdma_conn_param *param)
{
	u16 cid = le16_to_cpu(req->cid);
	struct rtrs_srv_con *con;
	int ret = -EBUSY;

	mutex_lock(&path->conns.lock);
	if (rtrs_srv_path_state(path) != RTRS_SRV_CONNECTING || path->conns.con[cid])
		goto unlock;
	con = rtrs_srv_con_alloc(path, id, cid);
	if (!con) {
		rtrs_srv_path_error(&path->path, -ENOMEM, "no memory for a connection");
		ret = -ENOMEM;
		goto unlock;
	}
	con->con.cm_id = id;
	con->con.peer_qpn = param->qp_num;
	if (path->path.features & RTRS_FEATURE_PROOF)
		get_random_bytes(con->con.nonce, sizeof(con->con.nonce));
	if (cid && rtrs_srv_has_slots(path))
		con->fetch.max_reads = min_t(int, param->initiator_depth,
					     id->device->attrs.max_qp_init_rd_atom);
	id->context = con;
	id->event_handler = rtrs_srv_con_event;
	path->conns.con[cid] = con;
	ret = rtrs_srv_con_setup(con);
	if (ret)
		rtrs_srv_path_error(&path->path, ret, "a connection can't be set up");
	else
		path->conns.nr_accepted++;
	ret = 0;
unlock:
	mutex_unlock(&path->conns.lock);
	return ret;
}
