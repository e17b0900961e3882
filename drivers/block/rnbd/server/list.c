// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: list of the volumes that a client may open. An answer has room for some volumes; the
 * client continues after the last one of them. Volumes are ordered by the time of their creation,
 * so a list stays complete if volumes are added and removed meanwhile.
 *
 * The rules decide as they do for OPEN. Nothing here opens a disk or waits for one. Each session
 * handles one LIST at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/minmax.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

/**
 * rnbd_srv_check_list() - check RNBD_MSG_LIST
 * @op: op with the message
 * @features: RNBD_FEATURE_* that the client was granted
 *
 * Return: 0, or -EINVAL if a length is invalid, or the client was not granted the feature.
 */
VISIBLE_IF_KUNIT int rnbd_srv_check_list(const struct rtrs_srv_op *op, u32 features)
{
	if (!(features & RNBD_FEATURE_VOLUMES) || op->msg_len < sizeof(struct rnbd_msg_list) ||
	    op->dir != DMA_FROM_DEVICE || op->data_len < RNBD_MSG_LIST_RSP_MIN)
		return -EINVAL;
	return 0;
}

static bool rnbd_srv_is_listed(struct rnbd_srv_volume *volume, const struct rnbd_srv_sess *sess)
{
	const char *name = config_item_name(&volume->group.cg_item);

	return volume->enabled && volume->modes && rnbd_name_ok(name, strlen(name)) &&
	       rnbd_srv_host_ok(volume, sess);
}

/* Add a volume to the answer. Returns 0, -ENOSPC if there is no room for it, or -ENOMEM. */
static int rnbd_srv_list_add(struct rnbd_srv_list *list, struct rnbd_srv_volume *volume)
{
	struct rnbd_list_entry *entry = (void *)(list->data + list->len);
	const char *name = config_item_name(&volume->group.cg_item);
	size_t name_len = strlen(name), len = rnbd_list_entry_len(name_len);
	char *path;

	if (len > list->room - list->len || list->nr == RNBD_SRV_LIST_VOLUMES)
		return -ENOSPC;
	path = kstrdup(volume->path, GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	list->paths[list->nr++] = path;
	export_uuid(entry->uuid, &volume->uuid);
	entry->modes = volume->modes;
	entry->name_len = name_len;
	memcpy(entry->name, name, name_len);
	list->len += len;
	return 0;
}

/*
 * Add volumes after *@after to the answer. At most RNBD_SRV_LIST_SCAN volumes are checked, and
 * *@after advances past them. Returns 0 if no volume is left, -EAGAIN if others have to be checked,
 * or an errno of rnbd_srv_list_add().
 */
static int rnbd_srv_list_scan(struct rnbd_srv_list *list, const struct rnbd_srv_sess *sess,
			      u64 *after)
{
	struct rnbd_srv_volume *volume;
	unsigned int checked = 0;
	int err;

	lockdep_assert_held(&rnbd_srv_rules_lock);
	list_for_each_entry(volume, &sess->rules->volumes, list) {
		if (volume->nr <= *after)
			continue;
		if (checked++ == RNBD_SRV_LIST_SCAN)
			return -EAGAIN;
		if (rnbd_srv_is_listed(volume, sess)) {
			err = rnbd_srv_list_add(list, volume);
			if (err)
				return err;
			list->cursor = volume->nr;
		}
		*after = volume->nr;
	}
	return 0;
}

/**
 * rnbd_srv_list_fill() - write an answer to RNBD_MSG_LIST, without the sizes of volumes
 * @list: list, zeroed except for its room, which is at least RNBD_MSG_LIST_RSP_MIN
 * @sess: session of the client
 * @after: cursor of the message
 *
 * The last volume in the answer determines its cursor. So the cursor reveals nothing about volumes
 * that the client may not open. The first volume always fits, so the cursor advances.
 *
 * Context: process, may sleep; memory reclaim must not start I/O.
 * Return: 0 or -ENOMEM.
 */
VISIBLE_IF_KUNIT int rnbd_srv_list_fill(struct rnbd_srv_list *list,
					const struct rnbd_srv_sess *sess, u64 after)
{
	struct rnbd_msg_list_rsp *rsp = (void *)list->data;
	int err;

	list->len = sizeof(*rsp);
	do {
		mutex_lock(&rnbd_srv_rules_lock);
		err = rnbd_srv_list_scan(list, sess, &after);
		mutex_unlock(&rnbd_srv_rules_lock);
		cond_resched();
	} while (err == -EAGAIN);
	if (err && err != -ENOSPC)
		return err;
	rsp->hdr.type = cpu_to_le16(RNBD_MSG_LIST_RSP);
	rsp->nr = cpu_to_le16(list->nr);
	rsp->cursor = cpu_to_le64(err ? list->cursor : 0);
	return 0;
}

static void rnbd_srv_list_sizes(struct rnbd_srv_list *list)
{
	size_t at = sizeof(struct rnbd_msg_list_rsp);
	struct rnbd_list_entry *entry;
	unsigned int i;

	for (i = 0; i < list->nr; i++) {
		entry = (void *)(list->data + at);
		entry->nsectors = cpu_to_le64(rnbd_srv_cached_sectors(list->paths[i]));
		at += rnbd_list_entry_len(entry->name_len);
	}
}

static int rnbd_srv_list_msg(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_list *msg = (const void *)op->msg;
	const struct rtrs_srv_peer peer = rtrs_srv_op_peer(op);
	struct rnbd_srv_sess *sess = op->priv;
	struct rnbd_srv_list *list;
	unsigned int i;
	int err;

	if (rtrs_srv_peer_closing(&peer))
		return -ECONNABORTED;
	err = rnbd_srv_check_list(op, READ_ONCE(sess->features));
	if (err)
		return err;
	list = kzalloc(sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	list->room = min_t(size_t, op->data_len, sizeof(list->data));
	err = rnbd_srv_list_fill(list, sess, le64_to_cpu(msg->cursor));
	if (!err) {
		rnbd_srv_list_sizes(list);
		rnbd_srv_answer(op, list->data, list->len);
	}
	for (i = 0; i < list->nr; i++)
		kfree(list->paths[i]);
	kfree(list);
	return err;
}

static void rnbd_srv_list_work(struct work_struct *work)
{
	struct rnbd_srv_req *req = container_of(work, struct rnbd_srv_req, work);
	struct rtrs_srv_op *op = rtrs_srv_op_from_priv(req);
	unsigned int noio;
	int err;

	/* A client ends a path over which LIST stays unanswered, so LIST must not wait for I/O. */
	noio = memalloc_noio_save();
	err = rnbd_srv_list_msg(op);
	memalloc_noio_restore(noio);
	rtrs_srv_complete(op, err);
}

/**
 * rnbd_srv_queue_list() - handle RNBD_MSG_LIST
 * @op: op with the message; completed by a work item
 */
void rnbd_srv_queue_list(struct rtrs_srv_op *op)
{
	struct rnbd_srv_req *req = rtrs_srv_op_priv(op);
	struct rnbd_srv_sess *sess = op->priv;

	INIT_WORK(&req->work, rnbd_srv_list_work);
	queue_work(sess->list_wq, &req->work);
}
