// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions: created and looked up by UUID; named and registered with the upper layer when their
 * first path is set up; ended with their last path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "srv.h"

unsigned int rtrs_srv_chunk_size = 128 << 10;
module_param_named(max_chunk_size, rtrs_srv_chunk_size, uint, 0444);
MODULE_PARM_DESC(max_chunk_size,
		 "Bytes in a chunk, a power of 2; I/O is up to 4096 less (default 131072)");

unsigned int rtrs_srv_queue_depth = 512;
module_param_named(sess_queue_depth, rtrs_srv_queue_depth, uint, 0444);
MODULE_PARM_DESC(sess_queue_depth,
		 "Chunks, hence requests in flight, of a session (default 512)");

unsigned int rtrs_srv_slot_size = SZ_4K;
module_param_named(slot_size, rtrs_srv_slot_size, uint, 0444);
MODULE_PARM_DESC(slot_size,
		 "Most bytes of data that travel with a request, a multiple of 512; 0: chunks of max_chunk_size (default 4096)");

static bool rtrs_srv_always_invalidate = true;
module_param_named(always_invalidate, rtrs_srv_always_invalidate, bool, 0444);
MODULE_PARM_DESC(always_invalidate,
		 "Copy data, so that clients cannot change them while a request is processed (default Y)");

/* All sessions by UUID. Guarded by rtrs_srv_lock */
static DEFINE_HASHTABLE(rtrs_srv_sessions, RTRS_SRV_HASH_BITS);

/* Number of sessions of all listeners that are up; they share the memory for requests */
atomic_t rtrs_srv_nr_sess;

/**
 * rtrs_srv_check_params() - check the module's parameters
 * @chunk_size: value of max_chunk_size
 * @queue_depth: value of sess_queue_depth
 * @slot_size: value of slot_size
 *
 * Return: 0, or -EINVAL after a message in the log.
 */
int rtrs_srv_check_params(unsigned int chunk_size, unsigned int queue_depth,
			  unsigned int slot_size)
{
	if (slot_size > RTRS_MAX_SLOT_SIZE || slot_size % RTRS_SLOT_UNIT) {
		pr_err("slot_size=%u: must be a multiple of %u, at most %u\n", slot_size,
		       RTRS_SLOT_UNIT, RTRS_MAX_SLOT_SIZE);
		return -EINVAL;
	}
	if (!is_power_of_2(chunk_size) || chunk_size < RTRS_MIN_CHUNK_SIZE ||
	    chunk_size < PAGE_SIZE || chunk_size > KMALLOC_MAX_SIZE) {
		pr_err("max_chunk_size=%u: must be a power of 2 from %lu to %lu\n",
		       chunk_size,
		       max_t(unsigned long, RTRS_MIN_CHUNK_SIZE, PAGE_SIZE),
		       (unsigned long)KMALLOC_MAX_SIZE);
		return -EINVAL;
	}
	if (!queue_depth || queue_depth > RTRS_MAX_QUEUE_DEPTH) {
		pr_err("sess_queue_depth=%u: must be from 1 to %u\n",
		       queue_depth, RTRS_MAX_QUEUE_DEPTH);
		return -EINVAL;
	}
	if (max(chunk_size, slot_size + rtrs_slot_hdr_room(slot_size)) >
	    BIT(rtrs_imm_off_bits(queue_depth))) {
		pr_err("sess_queue_depth=%u with max_chunk_size=%u and slot_size=%u: lower one, as the first and the larger of the others must fit in %u bits\n",
		       queue_depth, chunk_size, slot_size, RTRS_IMM_PAYLOAD_BITS);
		return -EINVAL;
	}
	return 0;
}

static u64 rtrs_srv_hash_uuid(const uuid_t *uuid)
{
	return rtrs_srv_hash(uuid, sizeof(*uuid));
}

/**
 * rtrs_srv_sess_add() - make a session known
 * @sess: session with its UUID
 *
 * Context: under rtrs_srv_lock.
 */
VISIBLE_IF_KUNIT void rtrs_srv_sess_add(struct rtrs_srv_sess *sess)
{
	hash_add(rtrs_srv_sessions, &sess->by_uuid, rtrs_srv_hash_uuid(&sess->uuid));
}

/*
 * Checks whether a session has a connected path, or will have one: a path whose handshake is in
 * progress and whose client is admitted. Until the first path of the session is connected, the
 * client need not be admitted. After that, a client that is never admitted must not keep a dead
 * session and its open devices alive. Neither must a client whose paths are refused.
 */
static bool rtrs_srv_sess_alive(const struct rtrs_srv_sess *sess)
{
	const struct rtrs_srv_path *path;

	list_for_each_entry(path, &sess->paths, entry) {
		switch (rtrs_srv_path_state(path)) {
		case RTRS_SRV_CONNECTED:
			return true;
		case RTRS_SRV_CONNECTING:
			if (!path->setup.refused && (!sess->connected || path->setup.admitted))
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

/*
 * Checks whether a request of a dead path is stuck in the upper layer. A client with fencing may
 * rejoin such a session: it has the dead paths fenced, so only the stuck request waits. In a new
 * session all of its requests would wait, see rtrs_srv_sess_predecessor().
 */
static bool rtrs_srv_sess_stuck(const struct rtrs_srv_sess *sess)
{
	const struct rtrs_srv_path *path;

	list_for_each_entry(path, &sess->paths, entry)
		if (path->ios.late)
			return true;
	return false;
}

static bool rtrs_srv_req_proves(const struct rtrs_cm_req *req)
{
	return rtrs_srv_grant(le32_to_cpu(req->features)) & RTRS_FEATURE_PROOF;
}

static u16 rtrs_srv_req_tag(const struct rtrs_cm_req *req)
{
	return req->tag_hi << RTRS_TAG_LO_BITS | req->first_conn >> 1;
}

/**
 * rtrs_srv_sess_matches() - check whether a connection request may be for a session
 * @sess: session
 * @srv: upper layer that the request is for
 * @req: connection request
 *
 * A session is never shared by clients that authenticate and clients that don't. Otherwise, a
 * client that knows the UUID of another client's session could join it, or keep its owner from
 * creating it. For the same reason, a session without a name only accepts requests with the same
 * queue depth as the first one. The tag keeps a client from creating a session that clients with
 * another name or secret would join, see rtrs_proof_tag().
 *
 * Context: under rtrs_srv_lock.
 * Return: true if it may be.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_sess_matches(const struct rtrs_srv_sess *sess,
					    const struct rtrs_srv *srv,
					    const struct rtrs_cm_req *req)
{
	return sess->srv == srv && uuid_equal(&sess->uuid, &req->sess_uuid) &&
	       sess->proves == rtrs_srv_req_proves(req) &&
	       (!sess->proves || sess->tag == rtrs_srv_req_tag(req)) &&
	       (sess->name[0] || sess->asked == le16_to_cpu(req->queue_depth));
}

/**
 * rtrs_srv_sess_find() - look up the session of a connection request
 * @srv: upper layer that the request is for
 * @req: connection request
 * @may_create: the client has no connected path in the session, and the request may create it
 *
 * If @may_create is set, sessions whose paths are all closing are skipped, unless a request is
 * stuck there.
 *
 * Context: under rtrs_srv_lock.
 * Return: the session, or NULL. Sessions without paths are never returned.
 */
struct rtrs_srv_sess *rtrs_srv_sess_find(struct rtrs_srv *srv, const struct rtrs_cm_req *req,
					 bool may_create)
{
	bool fences = le32_to_cpu(req->features) & RTRS_FEATURE_FENCE;
	struct rtrs_srv_sess *sess, *alive = NULL, *stuck = NULL, *ending = NULL;
	bool joins;

	lockdep_assert_held(&rtrs_srv_lock);
	/* The newest session comes first. */
	hash_for_each_possible(rtrs_srv_sessions, sess, by_uuid,
			       rtrs_srv_hash_uuid(&req->sess_uuid)) {
		joins = fences && rtrs_srv_sess_stuck(sess);
		if (list_empty(&sess->paths) || (sess->ending && !joins) ||
		    !rtrs_srv_sess_matches(sess, srv, req))
			continue;
		if (rtrs_srv_sess_alive(sess))
			alive = sess;
		else if (joins && !stuck)
			stuck = sess;
		else if (!may_create && !ending)
			ending = sess;
	}
	/*
	 * A new session can't come up before the stuck one has ended, and another client may have
	 * created it.
	 */
	if (alive && alive->connected)
		return alive;
	return stuck ?: alive ?: ending;
}

/**
 * rtrs_srv_sess_discard() - free a session
 * @sess: session without paths, after ->sess_down() if it was up
 *
 * Context: under rtrs_srv_lock.
 */
void rtrs_srv_sess_discard(struct rtrs_srv_sess *sess)
{
	lockdep_assert_held(&rtrs_srv_lock);
	hash_del(&sess->by_uuid);
	WRITE_ONCE(sess->srv->nr_sess, sess->srv->nr_sess - 1);
	/* wake_up_var() checks for waiters without a lock. */
	smp_mb();
	wake_up_var(&sess->srv->nr_sess);
	if (sess->up)
		atomic_dec(&rtrs_srv_nr_sess);
	rtrs_srv_changed(sess);
	mutex_destroy(&sess->up_lock);
	mutex_destroy(&sess->paths_lock);
	rtrs_srv_mem_uncharge(&sess->charged);
	kfree(sess);
}

static void rtrs_srv_sess_end_work(struct work_struct *work)
{
	struct rtrs_srv_sess *sess = container_of(work, struct rtrs_srv_sess,
						  end_work);
	/* Memory reclaim may depend on a client that waits for the end of its old session. */
	unsigned int noio = memalloc_noio_save();

	rtrs_srv_sysfs_del_sess(sess);
	rtrs_srv_slots_free(sess);
	rtrs_srv_bufs_free(sess);
	mutex_lock(&rtrs_srv_lock);
	rtrs_srv_sess_discard(sess);
	mutex_unlock(&rtrs_srv_lock);
	memalloc_noio_restore(noio);
}

/**
 * rtrs_srv_sess_alloc() - allocate a session
 * @req: connection request
 * @dev: device of its first path
 *
 * Context: process, may sleep; not under rtrs_srv_lock, so that other clients need not wait.
 * Return: the session, for rtrs_srv_sess_create() or kfree(); or NULL.
 */
struct rtrs_srv_sess *rtrs_srv_sess_alloc(const struct rtrs_cm_req *req,
					  const struct ib_device *dev)
{
	u32 depth = min(rtrs_srv_queue_depth, rtrs_srv_dev_depth(dev));
	u16 asked = le16_to_cpu(req->queue_depth);
	struct rtrs_srv_sess *sess;

	if (asked)
		depth = min_t(u32, depth, asked);
	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return NULL;
	uuid_copy(&sess->uuid, &req->sess_uuid);
	sess->id = get_random_u32() ?: 1;
	sess->proves = rtrs_srv_req_proves(req);
	if (sess->proves)
		sess->tag = rtrs_srv_req_tag(req);
	sess->asked = asked;
	sess->queue_depth = depth;
	sess->chunk_size = rtrs_srv_chunk_size;
	sess->off_bits = rtrs_imm_off_bits(depth);
	sess->always_invalidate = rtrs_srv_always_invalidate;
	INIT_LIST_HEAD(&sess->paths);
	mutex_init(&sess->up_lock);
	mutex_init(&sess->paths_lock);
	ratelimit_state_init(&sess->log, DEFAULT_RATELIMIT_INTERVAL,
			     RTRS_SRV_LOG_BURST);
	rtrs_srv_slots_init(sess);
	rtrs_srv_bufs_init(sess);
	INIT_WORK(&sess->slots.resume_work, rtrs_srv_resume_work);
	INIT_WORK(&sess->end_work, rtrs_srv_sess_end_work);
	return sess;
}

/**
 * rtrs_srv_sess_create() - add a new session
 * @srv: server that received the request
 * @sess: session from rtrs_srv_sess_alloc(); other sessions that match the request are ending
 * @why: set to the reason of a failure, for the log; RTRS_SRV_WHY_LEN bytes
 *
 * The session ends with its last path, or by rtrs_srv_sess_discard() if it never had one.
 *
 * Context: under rtrs_srv_lock.
 * Return: 0; or -ENOMEM, and the caller frees the session.
 */
int rtrs_srv_sess_create(struct rtrs_srv *srv, struct rtrs_srv_sess *sess, char *why)
{
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	ret = rtrs_srv_mem_try_charge(&sess->charged, sizeof(*sess), why);
	if (ret)
		return ret;
	sess->srv = srv;
	rtrs_srv_sess_add(sess);
	WRITE_ONCE(srv->nr_sess, srv->nr_sess + 1);
	return 0;
}

static bool rtrs_srv_sess_on_trial(const struct rtrs_srv_sess *sess)
{
	const struct rtrs_srv_path *path;

	list_for_each_entry(path, &sess->paths, entry)
		if (rtrs_srv_path_state(path) == RTRS_SRV_CONNECTED &&
		    rtrs_hb_on_trial(&path->path))
			return true;
	return false;
}

static bool rtrs_srv_same_host(const struct rtrs_srv_sess *a,
			       const struct rtrs_srv_sess *b)
{
	const struct rtrs_srv_path *p, *q;

	list_for_each_entry(p, &a->paths, entry)
		list_for_each_entry(q, &b->paths, entry)
			if (rtrs_addr_same_host(&p->path.addr.dst, &q->path.addr.dst))
				return true;
	return false;
}

/**
 * rtrs_srv_check_name_owner() - check whether a session may lose its name to another session
 * @sess: new session that requests the name
 * @owner: session that has the name
 * @now: current time in ns
 *
 * If a client crashes and restarts, its old session still exists until heartbeats time out. So if
 * both sessions have a path from the same address, the old one has to show a sign of life. Probes
 * are rate-limited, because a late answer to a probe ends the session.
 *
 * Context: under rtrs_srv_lock.
 * Return: the result, see enum rtrs_srv_name_owner.
 */
VISIBLE_IF_KUNIT enum rtrs_srv_name_owner
rtrs_srv_check_name_owner(const struct rtrs_srv_sess *sess,
			  const struct rtrs_srv_sess *owner, u64 now)
{
	if (!rtrs_srv_sess_alive(owner))
		return RTRS_SRV_OWNER_ENDING;
	if (rtrs_srv_sess_on_trial(owner))
		return RTRS_SRV_OWNER_PROBED;
	if (now < owner->next_probe || !rtrs_srv_same_host(sess, owner))
		return RTRS_SRV_OWNER_ALIVE;
	return RTRS_SRV_OWNER_UNCHECKED;
}

/*
 * Checks the session that has the requested name, and probes it if it may be dead. Returns -EEXIST
 * if it is alive, or RTRS_SRV_SETUP_WAIT to check again after the next change.
 */
static int rtrs_srv_probe_name_owner(const struct rtrs_srv_sess *sess,
				     struct rtrs_srv_sess *owner, bool *probed)
{
	u64 now = ktime_get_ns();
	struct rtrs_srv_path *path;

	if (rtrs_srv_check_name_owner(sess, owner, now) == RTRS_SRV_OWNER_UNCHECKED) {
		owner->next_probe = now + RTRS_SRV_PROBE_PAUSE_MS * (u64)NSEC_PER_MSEC;
		/* Paths that are not connected have the time limit of their handshake. */
		list_for_each_entry(path, &owner->paths, entry)
			rtrs_hb_probe_now(&path->path, RTRS_SRV_PROBE_MS);
		*probed = true;
	}
	return rtrs_srv_check_name_owner(sess, owner, now) == RTRS_SRV_OWNER_ALIVE ?
	       -EEXIST : RTRS_SRV_SETUP_WAIT;
}

/**
 * rtrs_srv_sess_by_name() - look up a session by its name
 * @srv: upper layer of the session
 * @name: the name
 *
 * Context: under rtrs_srv_lock.
 * Return: the session, possibly an ending one, or NULL.
 */
VISIBLE_IF_KUNIT struct rtrs_srv_sess *rtrs_srv_sess_by_name(const struct rtrs_srv *srv,
							     const char *name)
{
	struct rtrs_srv_sess *sess;
	unsigned int i;

	lockdep_assert_held(&rtrs_srv_lock);
	hash_for_each(rtrs_srv_sessions, i, sess, by_uuid)
		if (sess->srv == srv && !strcmp(sess->name, name))
			return sess;
	return NULL;
}

/**
 * rtrs_srv_sess_predecessor() - look up the earlier session of a client
 * @sess: new session, which has no name yet
 * @name: name that the new session requests
 *
 * All paths of the old session must be dead before a path of the new one is connected: clients rely
 * on rtrs_cm_rep.srv_uuid, see fence.c.
 *
 * Context: under rtrs_srv_lock.
 * Return: the old session, or NULL.
 */
VISIBLE_IF_KUNIT struct rtrs_srv_sess *
rtrs_srv_sess_predecessor(const struct rtrs_srv_sess *sess, const char *name)
{
	struct rtrs_srv_sess *other;

	lockdep_assert_held(&rtrs_srv_lock);
	hash_for_each_possible(rtrs_srv_sessions, other, by_uuid, rtrs_srv_hash_uuid(&sess->uuid))
		if (other != sess && other->srv == sess->srv && !strcmp(other->name, name) &&
		    other->proves == sess->proves && uuid_equal(&other->uuid, &sess->uuid))
			return other;
	return NULL;
}

/*
 * Checks whether a session may have a name. Returns RTRS_SRV_SETUP_WAIT if another session with
 * that name is ending or may be dead, or if an earlier session of the client is ending;
 * -ECONNABORTED if the client may rejoin its earlier session by another attempt.
 */
static int rtrs_srv_check_name(struct rtrs_srv_path *path, const char *name, bool *probed)
{
	struct rtrs_srv_sess *sess = path->sess, *other;

	if (sess->name[0])
		return strcmp(sess->name, name) ? -EINVAL : 0;
	other = rtrs_srv_sess_predecessor(sess, name);
	if (other)
		return (path->path.features & RTRS_FEATURE_FENCE) && rtrs_srv_sess_stuck(other) ?
		       -ECONNABORTED : RTRS_SRV_SETUP_WAIT;
	other = rtrs_srv_sess_by_name(sess->srv, name);
	return other ? rtrs_srv_probe_name_owner(sess, other, probed) : 0;
}

/**
 * rtrs_srv_is_older() - check whether a path is an earlier connect of another one
 * @path: path
 * @other: the other path
 *
 * Context: any.
 * Return: true if it is.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_is_older(const struct rtrs_srv_path *path,
					const struct rtrs_srv_path *other)
{
	return uuid_equal(&path->path.uuid, &other->path.uuid) &&
	       (s16)(path->path.nr_connects - other->path.nr_connects) < 0;
}

/**
 * rtrs_srv_must_wait_for() - check whether a path has to wait for the end of another one
 * @path: path that is to be set up
 * @other: another path of its session
 *
 * A path has to wait for another one with the same addresses, as both have the same directory in
 * sysfs. It has to wait for, and end, an authenticated path with the same UUID: that path was not
 * ended by the connection request, which is not authenticated. The path of a client without fencing
 * has to wait for a predecessor that is closing, because such a client resends requests as soon as
 * a path is connected.
 *
 * Context: under &rtrs_srv_sess.paths_lock.
 * Return: true if it has to wait.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_must_wait_for(const struct rtrs_srv_path *path,
					     const struct rtrs_srv_path *other)
{
	bool same_addr = !strcmp(other->path.addr_str, path->path.addr_str);

	if (other->sysfs.named && same_addr)
		return true;
	if (other->key && uuid_equal(&other->path.uuid, &path->path.uuid) &&
	    rtrs_srv_path_state(other) != RTRS_SRV_CLOSING)
		return true;
	return !(path->path.features & RTRS_FEATURE_FENCE) &&
	       rtrs_srv_path_state(other) == RTRS_SRV_CLOSING &&
	       (same_addr || uuid_equal(&other->path.uuid, &path->path.uuid));
}

/*
 * Ends another path for which @path must wait, and returns RTRS_SRV_SETUP_WAIT if there was such a
 * path. A client has one path between two addresses, so it has given up the other path. Returns
 * -ECONNABORTED if the client has given up this path.
 */
static int rtrs_srv_check_addr(struct rtrs_srv_path *path)
{
	struct rtrs_srv_path *other;

	lockdep_assert_held(&path->sess->paths_lock);
	list_for_each_entry(other, &path->sess->paths, entry) {
		if (other == path || !rtrs_srv_must_wait_for(path, other))
			continue;
		if (rtrs_srv_is_older(path, other))
			return -ECONNABORTED;
		rtrs_srv_path_error(&other->path, -ECONNRESET,
				    "the client has a new path between these addresses");
		return RTRS_SRV_SETUP_WAIT;
	}
	return 0;
}

/* Returns -ENAMETOOLONG if the label is too long for the name of a directory. */
static int rtrs_srv_set_name(struct rtrs_srv_sess *sess, const char *name)
{
	const char *scope = sess->srv->scope;
	int len;

	if (sess->name[0])
		return 0;
	len = snprintf(sess->label, sizeof(sess->label), "%s%s%s", name, scope ? "." : "",
		       scope ?: "");
	if (len >= sizeof(sess->label))
		return -ENAMETOOLONG;
	strscpy(sess->name, name, sizeof(sess->name));
	return 0;
}

/**
 * rtrs_srv_sess_claim() - claim a session's name and a path's addresses
 * @path: the path
 * @name: valid name of the session
 *
 * If a client reconnects soon after a failure, its old session or path may still exist.
 *
 * Context: the path's setup work.
 * Return: 0; RTRS_SRV_SETUP_WAIT if an old session or path has to end first, or an old session is
 * being probed, and the setup work is queued again after the next change; -EEXIST if another
 * session has the name; -EINVAL if the session has another name; -ENAMETOOLONG if the session's
 * label is too long; -ECONNABORTED if the path is closing or the client has given it up.
 */
int rtrs_srv_sess_claim(struct rtrs_srv_path *path, const char *name)
{
	struct rtrs_srv_sess *sess = path->sess;
	bool probed = false;
	int ret;

	rtrs_srv_setup_park(path);
	mutex_lock(&rtrs_srv_lock);
	path->setup.admitted = true;
	list_del_init(&path->setup.handshake);
	/* Even if the next incarnation of the path exists already. */
	ret = rtrs_srv_path_state(path) == RTRS_SRV_CLOSING ? -ECONNABORTED : 0;
	if (!ret) {
		sess->ending = false;
		ret = rtrs_srv_check_name(path, name, &probed);
	}
	mutex_lock(&sess->paths_lock);
	if (!ret)
		ret = rtrs_srv_check_addr(path) ?: rtrs_srv_set_name(sess, name);
	if (!ret)
		path->sysfs.named = true;
	mutex_unlock(&sess->paths_lock);
	mutex_unlock(&rtrs_srv_lock);
	if (probed)
		rtrs_srv_info(path, "session \"%s\" from the same host has %u ms to show that it is alive\n",
			      name, RTRS_SRV_PROBE_MS);
	if (ret != RTRS_SRV_SETUP_WAIT)
		rtrs_srv_setup_unpark(path);
	return ret;
}

/**
 * rtrs_srv_sess_up() - prepare a path's session for requests, unless it is up
 * @path: path that has claimed the session's name
 *
 * After an error, the completed parts remain, for the next path or until the session ends.
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int rtrs_srv_sess_up(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	void *priv;
	int ret = 0;

	mutex_lock(&sess->up_lock);
	if (sess->up)
		goto unlock;
	ret = rtrs_srv_slots_alloc(sess);
	if (ret)
		goto unlock;
	ret = rtrs_srv_sysfs_add_sess(sess);
	if (ret)
		goto unlock;
	priv = sess->srv->ops->sess_up(sess->srv->owner, sess);
	if (IS_ERR(priv)) {
		ret = PTR_ERR(priv);
		goto unlock;
	}
	sess->priv = priv;
	sess->up = true;
	atomic_inc(&rtrs_srv_nr_sess);
unlock:
	mutex_unlock(&sess->up_lock);
	return ret;
}

/**
 * rtrs_srv_track_path() - include a path in rtrs_srv_each_path()
 * @peer: the client on that path, as &rtrs_srv_ops.path_up got it
 *
 * The upper layer holds a lock while it decides about the path and calls this function, and also
 * while it checks its paths after a change of its rules. So either the decision sees the change, or
 * the check sees the path.
 *
 * Context: process, may sleep; within &rtrs_srv_ops.path_up.
 */
void rtrs_srv_track_path(const struct rtrs_srv_peer *peer)
{
	mutex_lock(&rtrs_srv_lock);
	peer->path->known = true;
	mutex_unlock(&rtrs_srv_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_track_path);

/**
 * rtrs_srv_sess_down_done() - report that the upper layer has finished with a session
 * @sess: session after rtrs_srv_ops.sess_down(); not accessed by the upper layer any more
 *
 * Context: any.
 */
void rtrs_srv_sess_down_done(struct rtrs_srv_sess *sess)
{
	queue_work(rtrs_srv_close_wq, &sess->end_work);
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_down_done);

/**
 * rtrs_srv_send_event() - notify a session's client of changes in the upper layer
 * @sess: a session that is up
 *
 * The event is sent over all paths of the session, as some of them may be failing. Clients without
 * RTRS_FEATURE_EVENT receive nothing. If the send queue of a path has no room, the path ends. A
 * client treats the loss of a path as an event, so no event is lost.
 *
 * Context: process, may sleep; not from rtrs_srv_ops.sess_up().
 */
void rtrs_srv_send_event(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_path *path;

	/*
	 * A connected path keeps its connections while the lock is held, see rtrs_srv_fence_drop().
	 */
	mutex_lock(&sess->paths_lock);
	list_for_each_entry(path, &sess->paths, entry)
		if (path->path.features & RTRS_FEATURE_EVENT &&
		    rtrs_srv_path_state(path) == RTRS_SRV_CONNECTED &&
		    rtrs_con_post_imm(&path->conns.con[0]->con,
				      rtrs_imm(RTRS_IMM_EVENT, 0)))
			rtrs_srv_path_error(&path->path, -EBUSY, "no room to send an EVENT");
	mutex_unlock(&sess->paths_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_send_event);

/**
 * rtrs_srv_each_path() - call a function for all paths of a session that the upper layer knows
 * @sess: a session that is up
 * @unwanted: called also for paths that are closing; may sleep. Returns true to end the path of
 *	@peer. The path then accepts no requests any more. Requests of the path that the upper layer
 *	is processing continue
 * @arg: passed to @unwanted
 *
 * The upper layer is asked about other new paths by ->path_up().
 *
 * Context: process, may sleep.
 */
void rtrs_srv_each_path(struct rtrs_srv_sess *sess,
			bool (*unwanted)(const struct rtrs_srv_peer *peer, void *arg), void *arg)
{
	struct rtrs_srv_path *path;
	struct rtrs_srv_peer peer;

	mutex_lock(&rtrs_srv_lock);
	list_for_each_entry(path, &sess->paths, entry) {
		if (!path->known)
			continue;
		peer = rtrs_srv_path_peer(path);
		if (unwanted(&peer, arg))
			rtrs_srv_path_error(&path->path, -EACCES,
					    "the client is not allowed to use that path");
	}
	mutex_unlock(&rtrs_srv_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_each_path);

/**
 * rtrs_srv_sess_leave() - remove a path from its session
 * @path: path that nothing else can look up or use any more
 *
 * The session ends with its last path.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_sess_leave(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	struct rtrs_srv_path *other;
	bool last;

	mutex_lock(&rtrs_srv_lock);
	mutex_lock(&sess->paths_lock);
	list_del(&path->entry);
	mutex_unlock(&sess->paths_lock);
	sess->nr_paths--;
	list_del_init(&path->setup.handshake);
	last = list_empty(&sess->paths);
	/*
	 * If the last connected path has ended, the client reconnects the others in a new session.
	 * Only the end of an admitted path can leave a session without connected paths; the end of
	 * any other client's path must not end other handshakes.
	 */
	if (path->setup.admitted && sess->connected && !rtrs_srv_sess_alive(sess)) {
		sess->ending = true;
		list_for_each_entry(other, &sess->paths, entry)
			rtrs_srv_path_error(&other->path, -ECONNABORTED,
					    "its session has no other path");
	}
	/* Under the lock, without which the session could be freed together with its last path. */
	rtrs_srv_changed(sess);
	mutex_unlock(&rtrs_srv_lock);
	if (!last)
		return;

	/* The session can't be looked up any more. */
	if (sess->up)
		sess->srv->ops->sess_down(sess, sess->priv);
	else
		rtrs_srv_sess_down_done(sess);
}

/**
 * rtrs_srv_sess_end_all() - request the end of all paths of a server
 * @srv: server that accepts no new paths any more
 *
 * Context: process, may sleep.
 */
void rtrs_srv_sess_end_all(struct rtrs_srv *srv)
{
	struct rtrs_srv_sess *sess;
	struct rtrs_srv_path *path;
	unsigned int i;

	mutex_lock(&rtrs_srv_lock);
	hash_for_each(rtrs_srv_sessions, i, sess, by_uuid) {
		if (sess->srv != srv)
			continue;
		list_for_each_entry(path, &sess->paths, entry)
			rtrs_srv_path_error(&path->path, 0, "the server is closing");
	}
	mutex_unlock(&rtrs_srv_lock);
}

/**
 * rtrs_srv_sess_name() - get the name of a session
 * @sess: session that is up
 *
 * Context: any.
 * Return: the name that the client chose; valid as long as the session.
 */
const char *rtrs_srv_sess_name(const struct rtrs_srv_sess *sess)
{
	return sess->name;
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_name);

/**
 * rtrs_srv_sess_label() - get the name of a session in sysfs and in the log
 * @sess: session that is up
 *
 * Context: any.
 * Return: the session's name, followed by &rtrs_srv_params.scope if there is one; valid as long as
 * the session.
 */
const char *rtrs_srv_sess_label(const struct rtrs_srv_sess *sess)
{
	return sess->label;
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_label);
