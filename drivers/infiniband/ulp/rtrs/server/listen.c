// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Listening, and handling of connection requests.
 *
 * The CM event handler of a request owns the new cm_id until rtrs_srv_con_add() assigns it to a
 * path. An error before that is reported to the client by a reject, and returned to the connection
 * manager, which destroys the cm_id. After that, the path's closing work destroys the cm_id, and
 * the handler always returns 0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib.h>

#include "srv.h"

MODULE_DESCRIPTION("RTRS server");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("RTRS_CORE");
MODULE_VERSION(RTRS_DRV_VERSION);

#define RTRS_SRV_BACKLOG	128

/**
 * rtrs_srv_check_req() - check the private data of a connection request
 * @data: private data, may be NULL
 * @len: length of @data
 * @req: set to a copy of @data
 *
 * Return: 0; -EPROTONOSUPPORT if the client's major version differs; or -EINVAL.
 */
int rtrs_srv_check_req(const void *data, u8 len, struct rtrs_cm_req *req)
{
	u16 cid_num;

	if (!data || len < sizeof(*req))
		return -EINVAL;
	memcpy(req, data, sizeof(*req));
	if (le16_to_cpu(req->magic) != RTRS_MAGIC)
		return -EINVAL;
	if (le16_to_cpu(req->version) >> 8 != RTRS_VERSION_MAJOR)
		return -EPROTONOSUPPORT;
	cid_num = le16_to_cpu(req->cid_num);
	if (cid_num < 2 || cid_num > RTRS_MAX_CONS ||
	    le16_to_cpu(req->cid) >= cid_num)
		return -EINVAL;
	if (req->features & cpu_to_le32(RTRS_FEATURE_FENCE) &&
	    (!req->path_id || rtrs_imm_payload(le32_to_cpu(req->path_id)) !=
			      le32_to_cpu(req->path_id)))
		return -EINVAL;
	return 0;
}

/**
 * rtrs_srv_form_ok() - check whether a device supports a client's messages
 * @iwarp: the device is an iWARP device, which doesn't support immediate data
 * @offered: features that the client offers
 *
 * Return: false if the request has to be rejected.
 */
bool rtrs_srv_form_ok(bool iwarp, u32 offered)
{
	return !iwarp || rtrs_srv_grant(offered) & RTRS_FEATURE_NO_IMM;
}

static int rtrs_srv_check_form(struct rtrs_srv *srv, const struct rdma_cm_id *id,
			       const struct rtrs_cm_req *req)
{
	u32 offered = le32_to_cpu(req->features);

	if (rtrs_srv_form_ok(rdma_protocol_iwarp(id->device, id->port_num), offered))
		return 0;
	if (__ratelimit(&srv->log))
		pr_warn("iWARP device %s has no immediate data: %s\n", dev_name(&id->device->dev),
			offered & RTRS_FEATURE_NO_IMM ? "slot_size must not be 0" :
							"the client requires it");
	return -EOPNOTSUPP;
}

static struct rtrs_srv_path *rtrs_srv_find_path(struct rtrs_srv_sess *sess,
						const uuid_t *uuid)
{
	struct rtrs_srv_path *path;

	lockdep_assert_held(&rtrs_srv_lock);
	/* The last one of several incarnations of a path. */
	list_for_each_entry_reverse(path, &sess->paths, entry)
		if (uuid_equal(&path->path.uuid, uuid))
			return path;
	return NULL;
}

/**
 * rtrs_srv_check_join() - check whether a connection request is for an existing path
 * @path: path with the UUID of the request
 * @req: valid private data of the request
 *
 * Return: 0; -ESTALE if the client reconnects the path, and so has given up @path; -EBUSY if the
 * request belongs to an earlier connect, or is another one for connection 0; -EINVAL if the number
 * of connections, the features, the path id or the queue depth differ.
 */
int rtrs_srv_check_join(const struct rtrs_srv_path *path,
			const struct rtrs_cm_req *req)
{
	s16 newer = le16_to_cpu(req->recon_cnt) - path->path.nr_connects;

	if (newer > 0)
		return -ESTALE;
	if (newer || !req->cid)
		return -EBUSY;
	if (le16_to_cpu(req->cid_num) != path->path.nr_cons ||
	    rtrs_srv_grant(le32_to_cpu(req->features)) != path->path.features)
		return -EINVAL;
	if (path->path.features & RTRS_FEATURE_FENCE &&
	    le32_to_cpu(req->path_id) != path->path.id)
		return -EINVAL;
	if (le16_to_cpu(req->queue_depth) != path->sess->asked)
		return -EINVAL;
	return 0;
}

/* Objects that a request for connection 0 may need, allocated before rtrs_srv_lock is taken */
struct rtrs_srv_new {
	struct rtrs_srv_sess *sess;
	struct rtrs_srv_path *path;
};

/* Ends a path that the client reconnects. Returns -EBUSY if too many incarnations are ending. */
static int rtrs_srv_replace_path(struct rtrs_srv_path *path, const struct rtrs_srv_new *new)
{
	struct rtrs_srv_path *other;
	unsigned int nr = 0;

	/* An authenticated path ends after the client's proof, see rtrs_srv_must_wait_for() */
	if (!path->key)
		rtrs_srv_path_error(&path->path, -ECONNRESET, "the client reconnects it");
	list_for_each_entry(other, &path->sess->paths, entry)
		nr += uuid_equal(&other->path.uuid, &path->path.uuid);
	if (nr < RTRS_SRV_MAX_ENDING)
		return 0;
	if (new->path)
		snprintf(new->path->end_why, sizeof(new->path->end_why),
			 "can't be reconnected while %u earlier connects of it are ending", nr);
	return -EBUSY;
}

/*
 * Returns the path if the request is for one of its connections; NULL if the request needs a new
 * path; or an ERR_PTR().
 */
static struct rtrs_srv_path *rtrs_srv_join_path(struct rtrs_srv_path *path,
						const struct rtrs_srv_new *new,
						const struct rdma_cm_id *id,
						const struct rtrs_cm_req *req)
{
	int ret = rtrs_srv_check_join(path, req);
	struct rtrs_addr addr;

	/* The upper layer's permissions depend on the client's address. */
	rtrs_addr_from_id(id, &addr);
	if (!ret && !rtrs_addr_same_host(&path->path.addr.dst, &addr.dst))
		ret = -EINVAL;
	if (!ret) {
		kobject_get(&path->path.kobj);
		return path;
	}
	if (ret == -ESTALE)
		ret = rtrs_srv_replace_path(path, new);
	return ERR_PTR(ret);
}

static int rtrs_srv_new_path(struct rtrs_srv *srv, struct rtrs_srv_sess *sess,
			     struct rtrs_srv_new *new, const struct rdma_cm_id *id,
			     const struct rtrs_cm_req *req)
{
	bool new_sess = !sess;
	int ret;

	if (srv->closing)
		return -ESHUTDOWN;
	if (!sess && !(req->first_conn & BIT(0)))
		return -ENXIO;
	if (req->cid)
		return -ENOTCONN;
	if (!sess) {
		sess = new->sess;
		ret = rtrs_srv_sess_create(srv, sess, new->path->end_why);
		if (ret)
			return ret;
		new->sess = NULL;
	}
	if (le16_to_cpu(req->queue_depth) != sess->asked)
		return -EINVAL;
	/* The path id has to be unique in the session, for FENCE. */
	if (req->features & cpu_to_le32(RTRS_FEATURE_FENCE) &&
	    rtrs_srv_path_by_id(sess, le32_to_cpu(req->path_id)))
		return -EINVAL;
	ret = rtrs_srv_path_add(sess, new->path, id->device);
	if (ret && new_sess)
		rtrs_srv_sess_discard(sess);
	return ret;
}

/* Looks up the path of a request, or adds the new one. The caller gets a reference on it. */
static struct rtrs_srv_path *rtrs_srv_find_or_add(struct rtrs_srv *srv, struct rtrs_srv_new *new,
						  const struct rdma_cm_id *id,
						  const struct rtrs_cm_req *req)
{
	bool may_create = req->first_conn & BIT(0);
	struct rtrs_srv_path *path = NULL;
	struct rtrs_srv_sess *sess;
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	sess = rtrs_srv_sess_find(srv, req, may_create);
	if (sess)
		path = rtrs_srv_find_path(sess, &req->path_uuid);
	if (path)
		path = rtrs_srv_join_path(path, new, id, req);
	if (path)
		return path;
	/* The path that was just ended may have been the last connected one of its session. */
	sess = rtrs_srv_sess_find(srv, req, may_create);
	ret = rtrs_srv_new_path(srv, sess, new, id, req);
	if (ret)
		return ERR_PTR(ret);
	path = new->path;
	new->path = NULL;
	return path;
}

/*
 * Looks up or creates the path of a request. After an error, @why may contain a reason for the log.
 */
static struct rtrs_srv_path *rtrs_srv_get_path(struct rtrs_srv *srv,
					       const struct rdma_cm_id *id,
					       const struct rtrs_cm_req *req, char *why)
{
	struct rtrs_srv_path *path = NULL;
	struct rtrs_srv_new new = {};

	if (!req->cid) {
		new.path = rtrs_srv_path_alloc(id, req);
		new.sess = rtrs_srv_sess_alloc(req, id->device);
		if (!new.path || !new.sess)
			path = ERR_PTR(-ENOMEM);
	}
	if (!path) {
		mutex_lock(&rtrs_srv_lock);
		path = rtrs_srv_find_or_add(srv, &new, id, req);
		mutex_unlock(&rtrs_srv_lock);
	}
	kfree(new.sess);
	if (new.path) {
		strscpy(why, new.path->end_why, RTRS_SRV_WHY_LEN);
		rtrs_srv_path_free(new.path);
	}
	return path;
}

static int rtrs_srv_connect_request(struct rtrs_srv *srv, struct rdma_cm_id *id,
				    const struct rdma_conn_param *param)
{
	struct rtrs_addr peer;
	char peer_str[RTRS_PATH_STR_LEN];
	char why[RTRS_SRV_WHY_LEN] = "";
	struct rtrs_srv_path *path;
	struct rtrs_cm_req req;
	int ret;

	ret = rtrs_srv_check_req(param->private_data, param->private_data_len,
				 &req);
	if (!ret)
		ret = rtrs_srv_check_form(srv, id, &req);
	if (ret)
		goto reject;
	path = rtrs_srv_get_path(srv, id, &req, why);
	if (IS_ERR(path)) {
		ret = PTR_ERR(path);
		goto reject;
	}
	ret = rtrs_srv_con_add(path, id, &req, param);
	kobject_put(&path->path.kobj);
	if (ret)
		goto reject;
	return 0;

reject:
	rtrs_addr_from_id(id, &peer);
	peer.src.ss_family = AF_UNSPEC;
	rtrs_addr_format(&peer, peer_str, sizeof(peer_str));
	if (__ratelimit(&srv->log))
		pr_info("%s%sconnection request from %s refused: %pe%s%s\n", srv->scope ?: "",
			srv->scope ? ": " : "", peer_str, ERR_PTR(ret), *why ? ": " : "", why);
	rtrs_srv_con_reject(id, ret);
	return ret;
}

static int rtrs_srv_listen_event(struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	unsigned int noio;
	int ret;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		pr_debug("listening: %s (%d)\n", rdma_event_msg(event->event), event->status);
		return 0;
	}
	/* Memory reclaim may depend on a client that is connecting. */
	noio = memalloc_noio_save();
	ret = rtrs_srv_connect_request(id->context, id, &event->param.conn);
	memalloc_noio_restore(noio);
	return ret;
}

/* Listens on the server's port at @addr_str, the unspecified address of a family. */
static int rtrs_srv_listen(struct rtrs_srv *srv, const char *addr_str,
			   struct rdma_cm_id **listener)
{
	struct rdma_cm_id *id;
	struct rtrs_addr addr;
	int ret;

	ret = rtrs_addr_parse(srv->net, addr_str, srv->port, &addr);
	if (ret)
		return ret;
	id = rdma_create_id(srv->net, rtrs_srv_listen_event, srv,
			    addr.dst.ss_family == AF_IB ? RDMA_PS_IB : RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rdma_set_afonly(id, 1);
	if (!ret)
		ret = rdma_bind_addr(id, (struct sockaddr *)&addr.dst);
	if (!ret)
		ret = rdma_listen(id, RTRS_SRV_BACKLOG);
	if (ret)
		rdma_destroy_id(id);
	else
		*listener = id;
	return ret;
}

/**
 * rtrs_srv_close() - stop listening and end all sessions
 * @srv: handle from rtrs_srv_open()
 *
 * Waits until the upper layer has completed its requests, and called rtrs_srv_sess_down_done() for
 * every session.
 *
 * Context: process, may sleep; the caller holds no lock that the upper layer's callbacks take.
 */
void rtrs_srv_close(struct rtrs_srv *srv)
{
	mutex_lock(&rtrs_srv_lock);
	srv->closing = true;
	mutex_unlock(&rtrs_srv_lock);

	if (srv->ib_id)
		rdma_destroy_id(srv->ib_id);
	if (srv->ip6_id)
		rdma_destroy_id(srv->ip6_id);
	if (srv->ip_id)
		rdma_destroy_id(srv->ip_id);

	rtrs_srv_sess_end_all(srv);
	wait_var_event(&srv->nr_sess, !READ_ONCE(srv->nr_sess));
	/* The work item that freed the last session still uses @srv. */
	flush_workqueue(rtrs_srv_close_wq);
	kfree(srv);
}
EXPORT_SYMBOL_GPL(rtrs_srv_close);

/**
 * rtrs_srv_open() - listen for sessions
 * @params: parameters; only the objects that it points to have to remain valid
 *
 * Context: process, may sleep.
 * Return: a handle for rtrs_srv_close(); or an ERR_PTR(), after all sessions that clients created
 * meanwhile have ended, as by rtrs_srv_close().
 */
struct rtrs_srv *rtrs_srv_open(const struct rtrs_srv_params *params)
{
	struct rtrs_srv *srv;
	int ret;

	if (!params->port)
		return ERR_PTR(-EINVAL);
	srv = kzalloc(sizeof(*srv), GFP_KERNEL);
	if (!srv)
		return ERR_PTR(-ENOMEM);
	srv->ops = params->ops;
	srv->owner = params->owner;
	srv->net = params->net;
	srv->scope = params->scope;
	srv->port = params->port;
	uuid_gen(&srv->uuid);
	ratelimit_state_init(&srv->log, DEFAULT_RATELIMIT_INTERVAL,
			     RTRS_SRV_LOG_BURST);

	/* One cm_id per family: over iWARP, a common one would report IPv4 addresses as IPv6. */
	ret = rtrs_srv_listen(srv, "ip:0.0.0.0", &srv->ip_id);
	if (!ret) {
		ret = rtrs_srv_listen(srv, "ip:::", &srv->ip6_id);
		if (ret == -EAFNOSUPPORT)
			ret = 0;
	}
	if (ret) {
		pr_err("can't listen on port %u: %pe\n", srv->port, ERR_PTR(ret));
		/* Clients may have connected by the other address family. */
		rtrs_srv_close(srv);
		return ERR_PTR(ret);
	}
	/* GIDs are not available in other network namespaces than the initial one. */
	ret = rtrs_srv_listen(srv, "gid:::", &srv->ib_id);
	if (ret && ret != -EADDRNOTAVAIL)
		pr_info("not listening for GIDs, only for IP addresses: %pe\n", ERR_PTR(ret));
	return srv;
}
EXPORT_SYMBOL_GPL(rtrs_srv_open);

static int __init rtrs_srv_init(void)
{
	int ret;

	ret = rtrs_srv_check_params(rtrs_srv_chunk_size, rtrs_srv_queue_depth,
				    rtrs_srv_slot_size);
	if (ret)
		return ret;
	ret = rtrs_srv_mem_module_init();
	if (ret)
		return ret;
	ret = rtrs_srv_state_init();
	if (!ret)
		ret = rtrs_srv_sysfs_init();
	if (ret) {
		rtrs_srv_state_exit();
		rtrs_srv_mem_exit();
	}
	return ret;
}

static void __exit rtrs_srv_exit(void)
{
	rtrs_srv_sysfs_exit();
	rtrs_srv_state_exit();
	rtrs_srv_mem_exit();
}

module_init(rtrs_srv_init);
module_exit(rtrs_srv_exit);
