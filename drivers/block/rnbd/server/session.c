// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: sessions, and messages other than I/O. OPEN may sleep for long, so a work item
 * handles it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

static void rnbd_srv_sess_free(struct rnbd_srv_sess *sess)
{
	struct workqueue_struct *wqs[] = {
		sess->open_wq, sess->close_wq, sess->list_wq, sess->disk_wq, sess->file_wq
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wqs); i++)
		if (wqs[i])
			destroy_workqueue(wqs[i]);
	kfree(sess);
}

static void rnbd_srv_sess_end_work(struct work_struct *work)
{
	struct rnbd_srv_sess *sess =
		container_of(work, struct rnbd_srv_sess, end_work);
	struct rtrs_srv_sess *rtrs = sess->rtrs;

	rnbd_srv_info(sess, "disconnected\n");
	rnbd_srv_css_set(sess, NULL);
	xa_destroy(&sess->maps);
	rnbd_srv_sess_free(sess);
	rtrs_srv_sess_down_done(rtrs);
}

/*
 * The workqueue for disks has a rescuer, since memory reclaim may depend on writes to disks. The
 * workqueue for files can't have one: filesystems flush work on workqueues without WQ_MEM_RECLAIM.
 */
static bool rnbd_srv_sess_alloc_wqs(struct rnbd_srv_sess *sess)
{
	sess->open_wq = alloc_workqueue("rnbd_srv_open", WQ_UNBOUND, RNBD_SRV_SESS_OPENS);
	sess->close_wq = alloc_workqueue("rnbd_srv_close", WQ_UNBOUND, RNBD_SRV_SESS_CLOSES);
	sess->list_wq = alloc_ordered_workqueue("rnbd_srv_list", 0);
	sess->disk_wq = alloc_workqueue("rnbd_srv_disk", WQ_UNBOUND | WQ_MEM_RECLAIM,
					WQ_MAX_ACTIVE);
	sess->file_wq = alloc_workqueue("rnbd_srv_file", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return sess->open_wq && sess->close_wq && sess->list_wq && sess->disk_wq && sess->file_wq;
}

/**
 * rnbd_srv_sess_up() - create a session
 * @owner: rules of the tenant to which the client has connected
 * @rtrs: session of the transport, with its first path
 *
 * Context: see &rtrs_srv_ops.sess_up.
 * Return: the session, or ERR_PTR(-ENOMEM).
 */
void *rnbd_srv_sess_up(void *owner, struct rtrs_srv_sess *rtrs)
{
	const char *name = rtrs_srv_sess_name(rtrs);
	size_t len = strlen(name) + 1;
	struct rnbd_srv_sess *sess;

	sess = kzalloc(struct_size(sess, name, len), GFP_KERNEL);
	if (!sess)
		return ERR_PTR(-ENOMEM);
	if (!rnbd_srv_sess_alloc_wqs(sess)) {
		rnbd_srv_sess_free(sess);
		return ERR_PTR(-ENOMEM);
	}

	refcount_set(&sess->users, 1);
	xa_init_flags(&sess->maps, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&sess->opening);
	sess->rules = owner;
	sess->rtrs = rtrs;
	sess->label = rtrs_srv_sess_label(rtrs);
	INIT_WORK(&sess->end_work, rnbd_srv_sess_end_work);
	ratelimit_state_init(&sess->log, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
	/* Random, so that an id from an earlier session is most likely invalid here. */
	sess->next_id = get_random_u32() & U16_MAX;
	memcpy(sess->name, name, len);
	rnbd_srv_add_sess(sess);
	rnbd_srv_info(sess, "connected\n");
	return sess;
}

/**
 * rnbd_srv_sess_down() - end a session
 * @rtrs: session of the transport, without paths
 * @priv: session that rnbd_srv_sess_up() returned
 *
 * Closes the session's mappings. After the last one, rtrs_srv_sess_down_done() is called.
 *
 * Context: see &rtrs_srv_ops.sess_down.
 */
void rnbd_srv_sess_down(struct rtrs_srv_sess *rtrs, void *priv)
{
	struct rnbd_srv_sess *sess = priv;
	struct rnbd_srv_map *map;
	unsigned long id;

	rnbd_srv_del_sess(sess);
	rcu_read_lock();
	xa_for_each(&sess->maps, id, map)
		rnbd_srv_close(map, NULL);
	rcu_read_unlock();

	rnbd_srv_sess_put(sess);
}

/**
 * rnbd_srv_sess_info() - handle RNBD_MSG_SESS_INFO
 * @op: op with the message; its buffer receives the answer
 *
 * Return: 0, or -EINVAL if the message or the buffer is too small.
 */
int rnbd_srv_sess_info(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_sess_info *msg = (const void *)op->msg;
	struct rnbd_srv_sess *sess = op->priv;
	struct rnbd_msg_sess_info rsp;

	if (op->msg_len < sizeof(*msg) || op->dir != DMA_FROM_DEVICE || op->data_len < sizeof(rsp))
		return -EINVAL;

	WRITE_ONCE(sess->ver, min_t(u8, msg->ver, RNBD_VER_MAJOR));
	WRITE_ONCE(sess->features, msg->cookie ? le32_to_cpu(msg->features) & RNBD_FEATURES : 0);
	WRITE_ONCE(sess->starts, sess->starts + 1);
	rsp = (struct rnbd_msg_sess_info) {
		.hdr.type = cpu_to_le16(RNBD_MSG_SESS_INFO_RSP),
		.ver = sess->ver,
		.features = cpu_to_le32(sess->features),
		.cookie = msg->cookie,
	};
	rnbd_srv_answer(op, &rsp, sizeof(rsp));
	return 0;
}

/**
 * rnbd_srv_check_open() - check RNBD_MSG_OPEN
 * @op: op with the message
 * @features: RNBD_FEATURE_* that the client was granted
 *
 * Return: 0, or -EINVAL if a length, the access mode or the name is invalid.
 */
int rnbd_srv_check_open(const struct rtrs_srv_op *op, u32 features)
{
	const struct rnbd_msg_open *msg = (const void *)op->msg;

	if (op->msg_len < sizeof(*msg) || op->dir != DMA_FROM_DEVICE ||
	    op->data_len < RNBD_MSG_OPEN_RSP_MIN ||
	    msg->access_mode >= RNBD_ACCESS_MODES ||
	    !rnbd_name_ok(msg->dev_name, strnlen(msg->dev_name, RNBD_NAME_LEN)))
		return -EINVAL;
	if (msg->access_mode == RNBD_ACCESS_HANDOVER && !(features & RNBD_FEATURE_HANDOVER))
		return -EINVAL;
	/* A generation has to fit into both messages. */
	if (rnbd_has_generation(msg->access_mode, features) &&
	    (op->msg_len < sizeof(struct rnbd_msg_open_gen) ||
	     op->data_len < RNBD_MSG_OPEN_RSP_GEN))
		return -EINVAL;
	return 0;
}

/**
 * rnbd_srv_parse_age() - parse the age of a mapping that a client reports
 * @op: op with RNBD_MSG_OPEN that passed rnbd_srv_check_open()
 * @features: the same as for rnbd_srv_check_open()
 *
 * Return: the age, all 0 if the message has no generation.
 */
VISIBLE_IF_KUNIT struct rnbd_srv_age rnbd_srv_parse_age(const struct rtrs_srv_op *op, u32 features)
{
	const struct rnbd_msg_open_gen *msg = (const void *)op->msg;
	struct rnbd_srv_age age = { };

	if (rnbd_has_generation(msg->open.access_mode, features)) {
		age.generation = le64_to_cpu(msg->generation);
		/* A new mapping has not written. */
		age.flags = age.generation ? msg->flags : 0;
	}
	return age;
}

/* Handle OPEN. Returns 0, -EIOCBQUEUED if the message waits, or another negative errno. */
static int rnbd_srv_open_msg(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_open *msg = (const void *)op->msg;
	struct rnbd_srv_req *req = rtrs_srv_op_priv(op);
	struct rtrs_srv_peer peer = rtrs_srv_op_peer(op);
	struct rnbd_srv_sess *sess = op->priv;
	struct rnbd_msg_open_rsp rsp = { };
	/* Read once, as SESS_INFO may change the features at any time. */
	u32 features = READ_ONCE(sess->features);
	struct rnbd_srv_age age;
	int err;

	err = rnbd_srv_check_open(op, features);
	if (err)
		return err;

	age = rnbd_srv_parse_age(op, features);
	err = rnbd_srv_open(sess, msg, &age, &peer, req, &rsp);
	if (err == -EIOCBQUEUED)
		return err;
	if (err) {
		rnbd_srv_err(sess, "can't open %s (%s): %pe%s\n", msg->dev_name,
			     rnbd_srv_access_names[msg->access_mode], ERR_PTR(err),
			     err == -EBADE ? ", a newer mapping has written to it" : "");
		return err;
	}
	rnbd_drop_ungranted(&rsp, msg->access_mode, features);
	rnbd_srv_answer(op, &rsp, min_t(size_t, op->data_len,
					rnbd_open_rsp_len(msg->access_mode, features)));
	return 0;
}

static void rnbd_srv_open_work(struct work_struct *work)
{
	struct rnbd_srv_req *req =
		container_of(work, struct rnbd_srv_req, work);
	struct rtrs_srv_op *op = rtrs_srv_op_from_priv(req);
	int err = rnbd_srv_open_msg(op);

	if (err != -EIOCBQUEUED)
		rtrs_srv_complete(op, err);
}

static void rnbd_srv_queue_open(struct rtrs_srv_op *op)
{
	struct rnbd_srv_req *req = rtrs_srv_op_priv(op);
	struct rnbd_srv_sess *sess = op->priv;

	INIT_WORK(&req->work, rnbd_srv_open_work);
	req->starts = READ_ONCE(sess->starts);
	queue_work(sess->open_wq, &req->work);
}

/* Handle CLOSE. If this returns 0, @op is completed when the mapping is closed. */
static int rnbd_srv_close_msg(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_close *msg = (const void *)op->msg;
	struct rnbd_srv_sess *sess = op->priv;
	struct rnbd_srv_map *map;
	bool ours = false;

	if (op->msg_len < sizeof(*msg))
		return -EINVAL;
	if (op->dir == DMA_FROM_DEVICE)
		rnbd_srv_answer(op, NULL, 0);

	rcu_read_lock();
	map = xa_load(&sess->maps, le32_to_cpu(msg->device_id));
	if (map)
		ours = rnbd_srv_close(map, op);
	rcu_read_unlock();
	return ours ? 0 : -ENOENT;
}

/**
 * rnbd_srv_request() - handle a message
 * @op: op with the message; completed by this function or later
 *
 * Context: see &rtrs_srv_ops.request.
 */
void rnbd_srv_request(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_hdr *hdr = (const void *)op->msg;
	struct rnbd_srv_sess *sess = op->priv;
	u16 type = U16_MAX;
	int err = 0;

	if (op->msg_len >= sizeof(*hdr))
		type = le16_to_cpu(hdr->type);

	switch (type) {
	case RNBD_MSG_IO:
		err = rnbd_srv_io(op);
		break;
	case RNBD_MSG_OPEN:
		rnbd_srv_queue_open(op);
		break;
	case RNBD_MSG_CLOSE:
		err = rnbd_srv_close_msg(op);
		break;
	case RNBD_MSG_LIST:
		rnbd_srv_queue_list(op);
		break;
	case RNBD_MSG_SESS_INFO:
		rtrs_srv_complete(op, rnbd_srv_sess_info(op));
		break;
	default:
		rnbd_srv_err(sess, "message of unknown type %u, %u bytes\n", type, op->msg_len);
		err = -EINVAL;
		break;
	}
	if (err)
		rtrs_srv_complete(op, err);
}
