// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions: created and found by uuid, named and made known to the upper layer
 * when their first path is set up, gone with their last path.
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
		 "Keep clients from changing a chunk while its request is processed (default Y)");

/* Sessions of all upper layers, and those of them that have a name. Under rtrs_srv_lock */
static DEFINE_HASHTABLE(rtrs_srv_by_uuid, RTRS_SRV_HASH_BITS);
static DEFINE_HASHTABLE(rtrs_srv_by_name, RTRS_SRV_HASH_BITS);

/* Sessions of all listeners that are up, as those share the memory */
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
	if (slot_size + rtrs_slot_hdr_room(slot_size) > BIT(rtrs_imm_off_bits(queue_depth))) {
		pr_err("sess_queue_depth=%u with slot_size=%u: lower one, as both must fit in %u bits\n",
		       queue_depth, slot_size, RTRS_IMM_PAYLOAD_BITS);
		return -EINVAL;
	}
	if (ilog2(chunk_size) > rtrs_imm_off_bits(queue_depth)) {
		pr_err("sess_queue_depth=%u with max_chunk_size=%u: lower one, as both must fit in %u bits\n",
		       queue_depth, chunk_size, RTRS_IMM_PAYLOAD_BITS);
		return -EINVAL;
	}
	return 0;
}

/**
 * rtrs_srv_sess_add() - have a session found by its UUID
 * @sess: session with its UUID
 *
 * Context: under rtrs_srv_lock.
 */
VISIBLE_IF_KUNIT void rtrs_srv_sess_add(struct rtrs_srv_sess *sess)
{
	hash_add(rtrs_srv_by_uuid, &sess->by_uuid, rtrs_srv_hash_uuid(&sess->uuid));
}

/**
 * rtrs_srv_sess_add_name() - have a session found by its name as well
 * @sess: session that has just got its name
 *
 * Context: under rtrs_srv_lock.
 */
VISIBLE_IF_KUNIT void rtrs_srv_sess_add_name(struct rtrs_srv_sess *sess)
{
	hash_add(rtrs_srv_by_name, &sess->by_name, rtrs_srv_hash_name(sess->name));
}

/**
 * rtrs_srv_sess_del() - undo rtrs_srv_sess_add() and rtrs_srv_sess_add_name()
 * @sess: the session
 *
 * Context: under rtrs_srv_lock.
 */
VISIBLE_IF_KUNIT void rtrs_srv_sess_del(struct rtrs_srv_sess *sess)
{
	hash_del(&sess->by_uuid);
	hash_del(&sess->by_name);
}

/*
 * Has a session a path that takes requests, or one whose client was admitted and that will? Before
 * the first path did, all paths that are being set up count. Later they don't: otherwise a client
 * that is never admitted could keep a dead session, with all that the session has open.
 */
static bool rtrs_srv_sess_alive(const struct rtrs_srv_sess *sess)
{
	const struct rtrs_srv_path *path;

	list_for_each_entry(path, &sess->paths, entry) {
		switch (rtrs_srv_path_state(path)) {
		case RTRS_SRV_CONNECTED:
			return true;
		case RTRS_SRV_CONNECTING:
			if (!sess->connected || path->setup.admitted)
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

static bool rtrs_srv_req_proves(const struct rtrs_cm_req *req)
{
	return rtrs_srv_grant(le32_to_cpu(req->features)) & RTRS_FEATURE_PROOF;
}

/**
 * rtrs_srv_sess_matches() - check whether a request may be for a session
 * @sess: session
 * @srv: upper layer that the request is for
 * @req: request
 *
 * Clients that prove who they are and clients that don't never share a session: whoever knows a
 * UUID could join the session of its owner, or keep the owner from creating it. For the same
 * reason a session that has no name yet only takes requests like its first one.
 *
 * Context: under rtrs_srv_lock.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_sess_matches(const struct rtrs_srv_sess *sess,
					    const struct rtrs_srv *srv,
					    const struct rtrs_cm_req *req)
{
	return sess->srv == srv && uuid_equal(&sess->uuid, &req->sess_uuid) &&
	       sess->proves == rtrs_srv_req_proves(req) &&
	       (sess->name[0] || sess->asked == le16_to_cpu(req->queue_depth));
}

/**
 * rtrs_srv_sess_find() - look up a session
 * @srv: upper layer that the request is for
 * @req: request
 * @may_create: the client has no path in the session, and may create one
 *
 * A client with no path assumes that its devices are closed, so it is never given a
 * session whose paths are all closing.
 *
 * Context: under rtrs_srv_lock.
 * Return: the session, or NULL; one without paths can't be found any more.
 */
struct rtrs_srv_sess *rtrs_srv_sess_find(struct rtrs_srv *srv, const struct rtrs_cm_req *req,
					 bool may_create)
{
	struct rtrs_srv_sess *sess, *found = NULL, *ending = NULL;

	lockdep_assert_held(&rtrs_srv_lock);
	/* The newest one comes first. */
	hash_for_each_possible(rtrs_srv_by_uuid, sess, by_uuid,
			       rtrs_srv_hash_uuid(&req->sess_uuid)) {
		if (list_empty(&sess->paths) || sess->ending ||
		    !rtrs_srv_sess_matches(sess, srv, req))
			continue;
		if (rtrs_srv_sess_alive(sess))
			found = sess;
		else if (!may_create && !ending)
			ending = sess;
	}
	return found ?: ending;
}

/**
 * rtrs_srv_dev_depth() - compute the largest queue depth for an RDMA device
 * @dev: device of a path
 *
 * One connection may have to carry all requests of a session, with a receive posted for
 * each. Answers can wait for room in the send queue.
 *
 * Return: the queue depth, 0 if the device can't be used.
 */
u32 rtrs_srv_dev_depth(const struct ib_device *dev)
{
	/* One work request of each kind is for draining. */
	int wr = dev->attrs.max_qp_wr - 1;
	int by_recv = wr - 2 * RTRS_RECV_BATCH;
	int send = RTRS_SRV_MIN_SEND_WR;
	int by_cq;

	if (rtrs_srv_slot_size)
		send += RTRS_SRV_READ_WR + RTRS_SRV_READS * RTRS_RW_WR;
	by_cq = dev->attrs.max_cqe - send - 2 * RTRS_RECV_BATCH - 2;
	if (wr < send)
		return 0;
	return clamp(min(by_recv, by_cq), 0, RTRS_MAX_QUEUE_DEPTH);
}

/**
 * rtrs_srv_sess_discard() - free a session
 * @sess: session without paths, and that isn't up
 *
 * Context: under rtrs_srv_lock.
 */
void rtrs_srv_sess_discard(struct rtrs_srv_sess *sess)
{
	lockdep_assert_held(&rtrs_srv_lock);
	rtrs_srv_sess_del(sess);
	WRITE_ONCE(sess->srv->nr_sess, sess->srv->nr_sess - 1);
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
	/* Memory reclaim may wait for a client that waits for the end of its old session. */
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
 * @req: request
 * @dev: device of its first path
 *
 * Context: process, may sleep; not under rtrs_srv_lock, as others wait for that.
 * Return: the session for rtrs_srv_sess_create() or kfree(); or an ERR_PTR().
 */
struct rtrs_srv_sess *rtrs_srv_sess_alloc(const struct rtrs_cm_req *req,
					  const struct ib_device *dev)
{
	u32 depth = min(rtrs_srv_queue_depth, rtrs_srv_dev_depth(dev));
	u16 asked = le16_to_cpu(req->queue_depth);
	struct rtrs_srv_sess *sess;

	if (!depth)
		return ERR_PTR(-EOPNOTSUPP);
	if (asked)
		depth = min_t(u32, depth, asked);
	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return ERR_PTR(-ENOMEM);
	uuid_copy(&sess->uuid, &req->sess_uuid);
	sess->id = get_random_u32() ?: 1;
	sess->proves = rtrs_srv_req_proves(req);
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
 * rtrs_srv_sess_create() - take a new session into use
 * @srv: upper layer that the request is for
 * @sess: session from rtrs_srv_sess_alloc(); others that the request matches are ending
 *
 * Context: under rtrs_srv_lock; it ends with its last path, or by
 * rtrs_srv_sess_discard() if it got none.
 * Return: 0, or -ENOMEM, and the caller frees it.
 */
int rtrs_srv_sess_create(struct rtrs_srv *srv, struct rtrs_srv_sess *sess)
{
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	ret = rtrs_srv_mem_charge(&sess->charged, sizeof(*sess), "new session", &srv->log);
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
			if (rtrs_addr_same_host(&p->addr.dst, &q->addr.dst))
				return true;
	return false;
}

/**
 * rtrs_srv_judge_rival() - what becomes of a session whose name another one wants?
 * @sess: the other one, new
 * @rival: the session that has the name
 * @now: the time, ns
 *
 * A client that crashed and is back at once finds its old session there, until heartbeats
 * give up. So if both have a path from the same address, the old one has to show a sign
 * of life. It is not asked for that all the time: an answer that is late would end it.
 *
 * Context: under rtrs_srv_lock.
 * Return: see enum rtrs_srv_rival.
 */
VISIBLE_IF_KUNIT enum rtrs_srv_rival
rtrs_srv_judge_rival(const struct rtrs_srv_sess *sess,
		     const struct rtrs_srv_sess *rival, u64 now)
{
	if (!rtrs_srv_sess_alive(rival))
		return RTRS_SRV_RIVAL_ENDING;
	if (rtrs_srv_sess_on_trial(rival))
		return RTRS_SRV_RIVAL_ON_TRIAL;
	if (now < rival->next_probe || !rtrs_srv_same_host(sess, rival))
		return RTRS_SRV_RIVAL_ALIVE;
	return RTRS_SRV_RIVAL_SUSPECT;
}

/* A path that isn't connected yet has a time limit of its own. */
static void rtrs_srv_probe(struct rtrs_srv_sess *sess, u64 now)
{
	struct rtrs_srv_path *path;

	sess->next_probe = now + RTRS_SRV_PROBE_PAUSE_MS * (u64)NSEC_PER_MSEC;
	list_for_each_entry(path, &sess->paths, entry)
		rtrs_hb_probe_now(&path->path, RTRS_SRV_PROBE_MS);
}

/* RTRS_SRV_SETUP_WAIT: see what has become of it after the next change. */
static int rtrs_srv_check_rival(struct rtrs_srv_path *path,
				struct rtrs_srv_sess *rival)
{
	u64 now = ktime_get_ns();

	if (rtrs_srv_judge_rival(path->sess, rival, now) == RTRS_SRV_RIVAL_SUSPECT) {
		rtrs_srv_info(path, "session \"%s\" from the same host has %u ms to show that it is alive\n",
			      rival->label, RTRS_SRV_PROBE_MS);
		rtrs_srv_probe(rival, now);
	}
	return rtrs_srv_judge_rival(path->sess, rival, now) == RTRS_SRV_RIVAL_ALIVE ?
	       -EEXIST : RTRS_SRV_SETUP_WAIT;
}

/**
 * rtrs_srv_sess_by_name() - look up a session by its name
 * @srv: upper layer of the session
 * @name: the name
 *
 * Context: under rtrs_srv_lock.
 * Return: the session, which may be ending, or NULL.
 */
VISIBLE_IF_KUNIT struct rtrs_srv_sess *rtrs_srv_sess_by_name(const struct rtrs_srv *srv,
							     const char *name)
{
	struct rtrs_srv_sess *sess;

	lockdep_assert_held(&rtrs_srv_lock);
	hash_for_each_possible(rtrs_srv_by_name, sess, by_name, rtrs_srv_hash_name(name))
		if (sess->srv == srv && !strcmp(sess->name, name))
			return sess;
	return NULL;
}

/**
 * rtrs_srv_sess_predecessor() - look up the session that a client had before
 * @sess: its new session, without a name yet
 *
 * The paths of the old one must be dead before one of the new one takes requests: clients rely on
 * rtrs_cm_rep.srv_uuid, see fence.c.
 *
 * Context: under rtrs_srv_lock.
 * Return: the old session, or NULL.
 */
VISIBLE_IF_KUNIT struct rtrs_srv_sess *
rtrs_srv_sess_predecessor(const struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_sess *other;

	lockdep_assert_held(&rtrs_srv_lock);
	hash_for_each_possible(rtrs_srv_by_uuid, other, by_uuid,
			       rtrs_srv_hash_uuid(&sess->uuid))
		if (other != sess && other->srv == sess->srv && other->name[0] &&
		    other->proves == sess->proves && uuid_equal(&other->uuid, &sess->uuid))
			return other;
	return NULL;
}

/*
 * RTRS_SRV_SETUP_WAIT: a session of that name, or of the same uuid, is closing, or may be
 * dead.
 */
static int rtrs_srv_check_name(struct rtrs_srv_path *path, const char *name)
{
	struct rtrs_srv_sess *sess = path->sess, *other;

	if (sess->name[0])
		return strcmp(sess->name, name) ? -EINVAL : 0;
	if (rtrs_srv_sess_predecessor(sess))
		return RTRS_SRV_SETUP_WAIT;
	other = rtrs_srv_sess_by_name(sess->srv, name);
	return other ? rtrs_srv_check_rival(path, other) : 0;
}

/**
 * rtrs_srv_is_older() - check whether a path is an earlier attempt to connect another one
 * @path: path
 * @other: the other path
 *
 * Context: any.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_is_older(const struct rtrs_srv_path *path,
					const struct rtrs_srv_path *other)
{
	return uuid_equal(&path->uuid, &other->uuid) &&
	       (s16)(path->recon_cnt - other->recon_cnt) < 0;
}

/**
 * rtrs_srv_in_the_way() - does a path have to wait for the end of another one?
 * @path: path that is to be set up
 * @other: another path of its session
 *
 * It does if both have the same addresses, and so the same directory in sysfs; or if it takes the
 * place of one that has a key, and that was left alone until now, to have that end. A client
 * without fencing repeats requests as soon as a path is up, so the path's predecessor must
 * have ended by then.
 *
 * Context: under &rtrs_srv_sess.paths_lock.
 * Return: true if it has to wait.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_in_the_way(const struct rtrs_srv_path *path,
					  const struct rtrs_srv_path *other)
{
	bool same_addr = !strcmp(other->addr_str, path->addr_str);

	if (other->sysfs.named && same_addr)
		return true;
	if (other->key && uuid_equal(&other->uuid, &path->uuid) &&
	    rtrs_srv_path_state(other) != RTRS_SRV_CLOSING)
		return true;
	return !(path->features & RTRS_FEATURE_FENCE) &&
	       rtrs_srv_path_state(other) == RTRS_SRV_CLOSING &&
	       (same_addr || uuid_equal(&other->uuid, &path->uuid));
}

/*
 * RTRS_SRV_SETUP_WAIT: a path is in the way, and closing by now: a client has one path between two
 * addresses, so it must have given up the other one. -ECONNABORTED: it has given up this one.
 */
static int rtrs_srv_check_addr(struct rtrs_srv_path *path)
{
	struct rtrs_srv_path *other;

	lockdep_assert_held(&path->sess->paths_lock);
	list_for_each_entry(other, &path->sess->paths, entry) {
		if (other == path || !rtrs_srv_in_the_way(path, other))
			continue;
		if (rtrs_srv_is_older(path, other))
			return -ECONNABORTED;
		rtrs_srv_path_error(&other->path, -ECONNRESET,
				    "the client has a new path between these addresses");
		return RTRS_SRV_SETUP_WAIT;
	}
	return 0;
}

/* -ENAMETOOLONG if it is no name of a directory */
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
	rtrs_srv_sess_add_name(sess);
	return 0;
}

static int rtrs_srv_try_claim(struct rtrs_srv_path *path, const char *name)
{
	struct rtrs_srv_sess *sess = path->sess;
	int ret;

	mutex_lock(&rtrs_srv_lock);
	path->setup.admitted = true;
	rtrs_srv_handshake_end(path);
	/* Even if its next incarnation exists by now. */
	ret = rtrs_srv_path_state(path) == RTRS_SRV_CLOSING ? -ECONNABORTED : 0;
	if (!ret)
		ret = rtrs_srv_check_name(path, name);
	mutex_lock(&sess->paths_lock);
	if (!ret)
		ret = rtrs_srv_check_addr(path);
	if (!ret)
		ret = rtrs_srv_set_name(sess, name);
	if (!ret)
		path->sysfs.named = true;
	mutex_unlock(&sess->paths_lock);
	mutex_unlock(&rtrs_srv_lock);
	return ret;
}

/**
 * rtrs_srv_sess_claim() - take a session's name and a path's into use
 * @path: the path
 * @name: the session's name, a valid one
 *
 * A client that went away and comes back at once may meet the rest of its old session
 * or path.
 *
 * Context: the path's setup work.
 * Return: 0; RTRS_SRV_SETUP_WAIT if the rest of an old session or path is in the way, or an old
 * session that may be dead, and the setup work is queued again when something has
 * changed; -EEXIST if another session has the name; -EINVAL if the session has another
 * name; -ENAMETOOLONG if its label is too long; -ECONNABORTED.
 */
int rtrs_srv_sess_claim(struct rtrs_srv_path *path, const char *name)
{
	int ret;

	rtrs_srv_setup_park(path);
	ret = rtrs_srv_try_claim(path, name);
	if (ret != RTRS_SRV_SETUP_WAIT)
		rtrs_srv_setup_unpark(path);
	return ret;
}

/**
 * rtrs_srv_sess_up() - make a path's session ready for requests, if it isn't
 * @path: path that has claimed the session's name
 *
 * After an error, the parts that were set up stay for the session's next path, or its
 * end.
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
 * rtrs_srv_path_up() - ask the upper layer whether it takes a path
 * @path: path whose session is up
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int rtrs_srv_path_up(struct rtrs_srv_path *path)
{
	struct rtrs_srv_peer peer;

	path->cost = rtrs_srv_mem_cost(path);
	peer = rtrs_srv_path_peer(path);
	return path->sess->srv->ops->path_up(path->sess->priv, &peer);
}

/**
 * rtrs_srv_know_path() - have a path among those that the upper layer is asked about
 * @peer: the client on that path, as &rtrs_srv_ops.path_up got it
 * @known: from now on, or no more
 *
 * If it is known before the upper layer decides, and this lock orders the decision and later
 * changes of its rules, then either the decision sees a change, or the change sees the path.
 *
 * Context: process, may sleep; within &rtrs_srv_ops.path_up.
 */
void rtrs_srv_know_path(const struct rtrs_srv_peer *peer, bool known)
{
	mutex_lock(&rtrs_srv_lock);
	peer->path->known = known;
	mutex_unlock(&rtrs_srv_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_know_path);

/**
 * rtrs_srv_sess_down_done() - report that the upper layer has finished with a session
 * @sess: session for which rtrs_srv_ops.sess_down() has been called; not the upper
 *	layer's any more
 *
 * Context: any.
 */
void rtrs_srv_sess_down_done(struct rtrs_srv_sess *sess)
{
	queue_work(rtrs_srv_close_wq, &sess->end_work);
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_down_done);

/**
 * rtrs_srv_send_event() - tell a session's client that there is news
 * @sess: a session that is up
 *
 * Over all of its paths, as one may be dying; a client that doesn't know the feature is
 * told nothing. A path on which it can't be sent ends, and a client that loses a path
 * takes that for an event, so none is lost.
 *
 * Context: process, may sleep; not from rtrs_srv_ops.sess_up().
 */
void rtrs_srv_send_event(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_path *path;

	/* A connected path keeps its connections while the lock is held: rtrs_srv_fence_drop() */
	mutex_lock(&sess->paths_lock);
	list_for_each_entry(path, &sess->paths, entry)
		if (path->features & RTRS_FEATURE_EVENT &&
		    rtrs_srv_path_state(path) == RTRS_SRV_CONNECTED &&
		    rtrs_con_post_imm(&path->conns.con[0]->con,
				      rtrs_imm(RTRS_IMM_EVENT, 0)))
			rtrs_srv_path_error(&path->path, -EBUSY, "no room to send an EVENT");
	mutex_unlock(&sess->paths_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_send_event);

/* The upper layer knows it, and it isn't ending. One that isn't up yet it will be asked about. */
static bool rtrs_srv_path_counts(const struct rtrs_srv_path *path)
{
	lockdep_assert_held(&rtrs_srv_lock);
	return path->known && rtrs_srv_path_state(path) != RTRS_SRV_CLOSING;
}

/* Ask about all paths that count. Returns how many there are, and how many may stay. */
static unsigned int rtrs_srv_judge_paths(struct rtrs_srv_sess *sess,
					 bool (*ok)(const struct rtrs_srv_peer *peer, void *arg),
					 void *arg, unsigned int *nr_stay)
{
	struct rtrs_srv_path *path;
	struct rtrs_srv_peer peer;
	unsigned int nr = 0;

	*nr_stay = 0;
	list_for_each_entry(path, &sess->paths, entry) {
		path->unwanted = false;
		if (!rtrs_srv_path_counts(path))
			continue;
		peer = rtrs_srv_path_peer(path);
		path->unwanted = !ok(&peer, arg);
		nr++;
		*nr_stay += !path->unwanted;
	}
	return nr;
}

static void rtrs_srv_end_unwanted(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_path *path;

	list_for_each_entry(path, &sess->paths, entry)
		if (path->unwanted)
			rtrs_srv_path_error(&path->path, -EACCES,
					    "the client may not have that path");
}

/**
 * rtrs_srv_end_paths() - end paths that a session may not have
 * @sess: a session that is up
 * @ok: may the client have a path on which it is @peer? May sleep
 * @arg: handed to @ok
 *
 * A path that is ended takes no request from then on; what the upper layer has of it goes on.
 *
 * Context: process, may sleep.
 */
void rtrs_srv_end_paths(struct rtrs_srv_sess *sess,
			bool (*ok)(const struct rtrs_srv_peer *peer, void *arg), void *arg)
{
	unsigned int nr_stay;

	mutex_lock(&rtrs_srv_lock);
	rtrs_srv_judge_paths(sess, ok, arg, &nr_stay);
	rtrs_srv_end_unwanted(sess);
	mutex_unlock(&rtrs_srv_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_end_paths);

/**
 * rtrs_srv_any_path() - has a session a path of some kind?
 * @sess: a session that is up
 * @is: is it one on which the client is @peer? May sleep; asked about paths that are not ending,
 *	until it says so of one
 * @arg: handed to @is
 *
 * Context: process, may sleep.
 * Return: true if it has.
 */
bool rtrs_srv_any_path(struct rtrs_srv_sess *sess,
		       bool (*is)(const struct rtrs_srv_peer *peer, void *arg), void *arg)
{
	struct rtrs_srv_path *path;
	struct rtrs_srv_peer peer;
	bool found = false;

	mutex_lock(&rtrs_srv_lock);
	list_for_each_entry(path, &sess->paths, entry) {
		if (!rtrs_srv_path_counts(path))
			continue;
		peer = rtrs_srv_path_peer(path);
		found = is(&peer, arg);
		if (found)
			break;
	}
	mutex_unlock(&rtrs_srv_lock);
	return found;
}
EXPORT_SYMBOL_GPL(rtrs_srv_any_path);

/**
 * rtrs_srv_each_path() - look at all paths of a session that it was allowed to have
 * @sess: a session that is up
 * @fn: called for each, also for those that are closing; may sleep
 * @arg: handed to @fn
 *
 * Context: process, may sleep.
 */
void rtrs_srv_each_path(struct rtrs_srv_sess *sess,
			void (*fn)(const struct rtrs_srv_peer *peer, void *arg), void *arg)
{
	struct rtrs_srv_path *path;
	struct rtrs_srv_peer peer;

	mutex_lock(&rtrs_srv_lock);
	list_for_each_entry(path, &sess->paths, entry) {
		if (!path->known)
			continue;
		peer = rtrs_srv_path_peer(path);
		fn(&peer, arg);
	}
	mutex_unlock(&rtrs_srv_lock);
}
EXPORT_SYMBOL_GPL(rtrs_srv_each_path);

/**
 * rtrs_srv_restrict_paths() - end those paths that a session may not have, unless it may have none
 * @sess: a session that is up
 * @ok: as for rtrs_srv_end_paths()
 * @arg: handed to @ok
 *
 * This is about paths that are not ending. If it may have none of them, all stay.
 *
 * Context: process, may sleep.
 * Return: false if there are such paths, and it may have none of them.
 */
bool rtrs_srv_restrict_paths(struct rtrs_srv_sess *sess,
			     bool (*ok)(const struct rtrs_srv_peer *peer, void *arg), void *arg)
{
	unsigned int nr, nr_stay;

	mutex_lock(&rtrs_srv_lock);
	nr = rtrs_srv_judge_paths(sess, ok, arg, &nr_stay);
	if (nr_stay)
		rtrs_srv_end_unwanted(sess);
	mutex_unlock(&rtrs_srv_lock);
	return nr_stay || !nr;
}
EXPORT_SYMBOL_GPL(rtrs_srv_restrict_paths);

/*
 * The last path that took requests has gone. Paths that are being set up end as well: their client
 * connects them again, in a new session.
 */
static void rtrs_srv_sess_end_half_open(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_path *path;

	if (!sess->connected || rtrs_srv_sess_alive(sess))
		return;
	sess->ending = true;
	list_for_each_entry(path, &sess->paths, entry)
		rtrs_srv_path_error(&path->path, -ECONNABORTED, "its session has no other path");
}

/**
 * rtrs_srv_sess_leave() - part a path from its session
 * @path: the path; nothing of it can reach the session any more
 *
 * The session ends with its last path.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_sess_leave(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	bool last;

	mutex_lock(&rtrs_srv_lock);
	mutex_lock(&sess->paths_lock);
	list_del(&path->entry);
	mutex_unlock(&sess->paths_lock);
	sess->nr_paths--;
	rtrs_srv_handshake_end(path);
	last = list_empty(&sess->paths);
	rtrs_srv_sess_end_half_open(sess);
	/* Under the lock: without it, the session may end with its last path. */
	rtrs_srv_changed(sess);
	mutex_unlock(&rtrs_srv_lock);
	if (!last)
		return;

	/* The session can't be found any more. */
	if (sess->up)
		sess->srv->ops->sess_down(sess, sess->priv);
	else
		rtrs_srv_sess_down_done(sess);
}

/**
 * rtrs_srv_sess_end_all() - ask for the end of all paths of an upper layer
 * @srv: upper layer that takes no new paths any more
 *
 * Context: process, may sleep.
 */
void rtrs_srv_sess_end_all(struct rtrs_srv *srv)
{
	struct rtrs_srv_sess *sess;
	struct rtrs_srv_path *path;
	unsigned int i;

	mutex_lock(&rtrs_srv_lock);
	hash_for_each(rtrs_srv_by_uuid, i, sess, by_uuid) {
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
 * Return: the name that its client gave it; lives as long as the session.
 */
const char *rtrs_srv_sess_name(const struct rtrs_srv_sess *sess)
{
	return sess->name;
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_name);

/**
 * rtrs_srv_sess_label() - get what sysfs and the log call a session
 * @sess: session that is up
 *
 * Context: any.
 * Return: its name, and &rtrs_srv_params.scope if there is one; lives as long as the session.
 */
const char *rtrs_srv_sess_label(const struct rtrs_srv_sess *sess)
{
	return sess->label;
}
EXPORT_SYMBOL_GPL(rtrs_srv_sess_label);
