// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: division of a session's slots. The first slots are the tags of the disks'
 * requests. The last slots are the tags of messages about devices, in a tag set of their
 * own, so that busy disks leave tags for messages, and a message without an answer does not
 * block the adding or removing of disks.
 *
 * The block layer freezes all queues of a tag set, and so waits for their requests, when the
 * second queue is added and when the last but one is removed. Each set therefore has a queue
 * that belongs to no disk: the set is shared from the first disk on, and adding or removing
 * a disk freezes nothing. With a single disk, this costs each request two atomic operations
 * on a counter of the disk's own queue. Without the extra queue, mapping a second device
 * would wait for requests of the first one, which may wait without limit for a path or for
 * a disk of the server.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "rnbd-clt.h"

/**
 * rnbd_clt_admin_slots() - get the number of slots for messages about devices
 * @depth: number of slots of the session
 *
 * If this many messages hang on the server, other devices can't be opened or closed. Towards
 * servers that reuse ids at once, one message is enough, see rnbd_clt_lock_ids().
 *
 * Return: a number below @depth; 0 if @depth is 1, and disks and messages share the slot.
 */
unsigned int rnbd_clt_admin_slots(unsigned int depth)
{
	return depth >= 32 ? 4 : depth > 1;
}

static int rnbd_clt_tags_init(struct rnbd_clt_sess *sess,
			      struct rnbd_clt_tags *tags, unsigned int depth,
			      unsigned int nr_queues, unsigned int nr_poll)
{
	struct blk_mq_tag_set *set = &tags->set;
	struct request_queue *q;
	int err;

	set->ops = &rnbd_clt_mq_ops;
	set->driver_data = sess;
	set->queue_depth = depth;
	set->nr_hw_queues = nr_queues + nr_poll;
	set->nr_maps = nr_poll ? HCTX_MAX_TYPES : 1;
	set->numa_node = sess->limits.numa_node;
	/* BLK_MQ_F_STACKING: a CPU can go offline while requests wait for a path. */
	set->flags = BLK_MQ_F_TAG_HCTX_SHARED | BLK_MQ_F_NO_SCHED_BY_DEFAULT |
		     BLK_MQ_F_STACKING;
	set->cmd_size = sizeof(struct rnbd_clt_pdu);
	err = blk_mq_alloc_tag_set(set);
	if (err)
		return err;

	q = blk_mq_alloc_queue(set, NULL, sess);
	if (IS_ERR(q)) {
		blk_mq_free_tag_set(set);
		return PTR_ERR(q);
	}
	tags->q = q;
	return 0;
}

static void rnbd_clt_tags_stop(struct rnbd_clt_tags *tags)
{
	if (!tags->q)
		return;
	blk_mq_destroy_queue(tags->q);
	blk_put_queue(tags->q);
}

/**
 * rnbd_clt_alloc_tags() - allocate a session's tag sets and the queues without a disk
 * @sess: session, its limits known
 *
 * Return: 0 or a negative errno.
 */
int rnbd_clt_alloc_tags(struct rnbd_clt_sess *sess)
{
	u32 depth = min_t(u32, sess->limits.queue_depth, BLK_MQ_MAX_DEPTH);
	unsigned int nr_admin = rnbd_clt_admin_slots(depth);
	int err;

	err = rnbd_clt_tags_init(sess, &sess->disks, depth - nr_admin,
				 sess->limits.nr_queues, sess->limits.nr_poll_queues);
	if (err)
		return err;
	sess->admin_q = sess->disks.q;
	if (!nr_admin)
		return 0;

	err = rnbd_clt_tags_init(sess, &sess->admin, nr_admin, 1, 0);
	if (err) {
		rnbd_clt_stop_queues(sess);
		rnbd_clt_free_tags(sess);
		return err;
	}
	sess->admin_q = sess->admin.q;
	sess->admin_slot = depth - nr_admin;
	return 0;
}

/**
 * rnbd_clt_stop_queues() - remove the queues that belong to no disk
 * @sess: session without disks. Timeout handlers of requests may call the transport until
 *	this returns
 */
void rnbd_clt_stop_queues(struct rnbd_clt_sess *sess)
{
	rnbd_clt_tags_stop(&sess->admin);
	rnbd_clt_tags_stop(&sess->disks);
}

/**
 * rnbd_clt_free_tags() - free a session's tag sets
 * @sess: session without queues; nothing in the transport refers to its requests
 */
void rnbd_clt_free_tags(struct rnbd_clt_sess *sess)
{
	if (sess->admin.q)
		blk_mq_free_tag_set(&sess->admin.set);
	blk_mq_free_tag_set(&sess->disks.set);
}
