// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: OPEN.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/minmax.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

/**
 * rnbd_srv_map_answer() - answer the client's OPEN
 * @map: the open mapping
 * @msg: the client's message
 * @rsp: answer to fill in, zeroed
 *
 * Sets &rnbd_srv_map.flushes if the answer reports a write cache, and the client flushes it. With
 * RNBD_FEATURE_DISK_STATE, the client sets RNBD_OPEN_FLUSHES if it does. Other clients do if all
 * answers so far reported a cache: after an answer without, they may drop flushes.
 *
 * Context: rnbd_srv_lock is held.
 */
VISIBLE_IF_KUNIT void rnbd_srv_map_answer(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
					  struct rnbd_msg_open_rsp *rsp)
{
	bool flushes = map->flushes;

	/*
	 * The disk's cache may be turned on right after the answer has reported none. Writes that
	 * end from then on must be flushed: clear the flag before the disk's state is read.
	 */
	WRITE_ONCE(map->flushes, false);
	smp_mb(); /* see above */
	rnbd_srv_fill_rsp(map, rsp);
	if (READ_ONCE(map->sess->features) & RNBD_FEATURE_DISK_STATE)
		flushes = msg->flags & RNBD_OPEN_FLUSHES;
	WRITE_ONCE(map->flushes, flushes && rnbd_srv_has_cache(rsp));
}

/*
 * Find the session's mapping of the same name, and answer with its present size and limits. Another
 * name of the device gets its own mapping, since the client closes each name separately. Returns 1
 * if there is such a mapping, 0 if not, or -EBUSY if it is being closed or has another mode.
 */
static int rnbd_srv_open_again(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
			       const struct rnbd_srv_age *age, u32 starts,
			       struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	lockdep_assert_held(&rnbd_srv_lock);
	xa_for_each(&sess->maps, id, map) {
		if (strcmp(map->path, msg->dev_name))
			continue;
		if (map->mode != msg->access_mode || test_bit(0, &map->closing))
			return -EBUSY;
		map->starts = starts;
		rnbd_srv_writer_again(map, age);
		rnbd_srv_map_answer(map, msg, rsp);
		return 1;
	}
	return 0;
}

/*
 * Check whether the client has given up its OPEN, and so would not close the mapping: because the
 * path is closing, or SESS_INFO has arrived since. The latter is not checked for clients without
 * features, as in-tree clients send OPEN before SESS_INFO is answered.
 */
static bool rnbd_srv_open_is_late(const struct rnbd_srv_sess *sess,
				  const struct rtrs_srv_peer *peer, u32 starts)
{
	lockdep_assert_held(&rnbd_srv_lock);
	return rtrs_srv_peer_closing(peer) ||
	       (READ_ONCE(sess->features) && starts != READ_ONCE(sess->starts));
}

/*
 * Check whether the session is opening the same name. If so, @req waits until that has ended: an
 * open that hangs must not occupy more than one worker, however often the client repeats it.
 */
static bool rnbd_srv_open_waits(struct rnbd_srv_sess *sess, const char *name,
				struct rnbd_srv_req *req)
{
	struct rnbd_srv_map *map;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(map, &sess->opening, list) {
		if (!strcmp(map->path, name)) {
			list_add_tail(&req->parked, &map->waiting);
			return true;
		}
	}
	return false;
}

/* Queue the OPENs that wait until @map has been opened, or can't be opened. */
static void rnbd_srv_open_wake(struct rnbd_srv_map *map)
{
	struct rnbd_srv_req *req, *next;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry_safe(req, next, &map->waiting, parked) {
		list_del(&req->parked);
		queue_work(map->sess->open_wq, &req->work);
	}
}

/* Publish @map, whose disk or file is open. Returns 0 or a negative errno. */
static int rnbd_srv_open_publish(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
				 const struct rtrs_srv_peer *peer, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_dev *spare = rnbd_srv_dev_alloc();
	unsigned int noio;
	int ret;

	if (!spare)
		return -ENOMEM;
	mutex_lock(&rnbd_srv_lock);
	noio = memalloc_noio_save();
	ret = rnbd_srv_open_is_late(map->sess, peer, map->starts) ? -ECONNABORTED :
	      rnbd_srv_map_attach(map, &spare);
	if (!ret) {
		rnbd_srv_map_answer(map, msg, rsp);
		rnbd_srv_open_wake(map);
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&rnbd_srv_lock);
	if (spare)
		kobject_put(&spare->kobj);
	return ret;
}

/*
 * Open the disk or file of @map, which is in &rnbd_srv_sess.opening, and publish @map. If that
 * fails, the OPENs that wait are queued after the disk or file was closed, as it may be claimed.
 * Returns 0 or a negative errno.
 */
static int rnbd_srv_open_map(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
			     const struct rtrs_srv_peer *peer, struct rnbd_msg_open_rsp *rsp)
{
	int ret = rnbd_srv_map_open(map);

	if (!ret) {
		ret = rnbd_srv_open_publish(map, msg, peer, rsp);
		if (!ret)
			return 0;
		rnbd_srv_map_release_file(map);
	} else if (ret == -EBADE) {
		/* From opening the file. To the client, it means that a newer mapping wrote. */
		ret = -EIO;
	}
	mutex_lock(&rnbd_srv_lock);
	list_del(&map->list);
	rnbd_srv_open_wake(map);
	mutex_unlock(&rnbd_srv_lock);
	return ret;
}

/*
 * Answer OPEN if the session has the name open, or queue @req if the name is being opened. Returns
 * 1 if OPEN is answered, -EIOCBQUEUED if @req is queued, or another negative errno for the client.
 * Returns 0 if the name has to be opened: by @map, if it isn't NULL.
 */
static int rnbd_srv_open_known(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
			       const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
			       struct rnbd_srv_req *req, struct rnbd_srv_map *map,
			       struct rnbd_msg_open_rsp *rsp)
{
	int ret = -ECONNABORTED;

	mutex_lock(&rnbd_srv_lock);
	if (!rnbd_srv_open_is_late(sess, peer, req->starts))
		ret = rnbd_srv_open_again(sess, msg, age, req->starts, rsp) ?:
		      (rnbd_srv_open_waits(sess, msg->dev_name, req) ? -EIOCBQUEUED : 0);
	if (!ret && map)
		list_add(&map->list, &sess->opening);
	mutex_unlock(&rnbd_srv_lock);
	return ret;
}

/**
 * rnbd_srv_open() - open a device for a session
 * @sess: session of the client
 * @msg: the client's message, checked
 * @age: age of the mapping as the client reported it; all 0 if the message has none
 * @peer: the client on the path of the message
 * @req: request of the message
 * @rsp: answer to fill in, zeroed by the caller
 *
 * Context: kernel thread, as required by __fput_sync(); may sleep.
 * Return: 0; -EIOCBQUEUED if @req waits for another OPEN of the same name, after which its work is
 * queued again; or another negative errno, for the client.
 */
int rnbd_srv_open(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
		  const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
		  struct rnbd_srv_req *req, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_map *map;
	int ret;

	/* An answer for a device that is open must not need memory: allocate afterwards. */
	ret = rnbd_srv_open_known(sess, msg, age, peer, req, NULL, rsp);
	if (ret)
		return min(ret, 0);

	map = rnbd_srv_map_alloc(sess, msg->dev_name, msg->access_mode);
	if (IS_ERR(map))
		return PTR_ERR(map);
	map->age = *age;
	map->starts = req->starts;

	ret = rnbd_srv_open_known(sess, msg, age, peer, req, map, rsp) ?:
	      rnbd_srv_open_map(map, msg, peer, rsp);
	if (ret)
		kobject_put(&map->kobj);
	else
		rnbd_srv_info(sess, "opened %s (%s)\n", msg->dev_name,
			      rnbd_srv_access_names[msg->access_mode]);
	return min(ret, 0);
}
