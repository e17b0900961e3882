// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of a path: creation, and the closing work that takes it down.
 *
 * Order of closing: nothing is received any more; all requests are finished; the hardware has
 * access to nothing any more. The cm_ids are destroyed last, because the removal of an RDMA device
 * waits for them only.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/key.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "srv.h"

static const struct rtrs_hb_params rtrs_srv_hb = {
	.interval_ms	= RTRS_HB_INTERVAL_MS,
	.max_missed	= RTRS_HB_MAX_MISSED,
};

static void rtrs_srv_setup_timeout(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(to_delayed_work(work),
						  struct rtrs_srv_path,
						  setup.timeout);

	rtrs_srv_path_move(path, RTRS_SRV_EV_SETUP_TIMEOUT, -ETIMEDOUT,
			   "its handshake was not over in time");
}

/* Queues the finish work when the last request is finished. Any context. */
static void rtrs_srv_ios_released(struct percpu_ref *ref)
{
	struct rtrs_srv_path *path = container_of(ref, struct rtrs_srv_path,
						  ios.ref);

	queue_work(rtrs_srv_close_wq, &path->finish_work);
}

/* Resumes handshakes that wait for the result of the probe. */
static void rtrs_srv_path_probed(struct rtrs_path *path)
{
	rtrs_srv_changed(to_srv_path(path)->sess);
}

static void rtrs_srv_path_tick(struct rtrs_path *path)
{
	rtrs_srv_bufs_age(to_srv_path(path));
}

/**
 * rtrs_srv_path_free() - free a path
 * @path: path without connections, which is not in a session
 */
void rtrs_srv_path_free(struct rtrs_srv_path *path)
{
	rtrs_srv_path_leave_port(path);
	free_percpu(path->path.stats);
	percpu_ref_exit(&path->ios.ref);
	key_put(path->key);
	kvfree(path->conns.con);
	mutex_destroy(&path->conns.lock);
	mutex_destroy(&path->path.stats_lock);
	rtrs_srv_mem_uncharge(&path->mem.charged);
	kfree(path);
}

/*
 * Disconnects a path. After this, the client can't access any memory over the path, no request is
 * received, and each received request has begun, or waits for memory or for its slot. Sends may
 * still be posted.
 */
static void rtrs_srv_path_stop(struct rtrs_srv_path *path)
{
	struct rtrs_con *con;

	/*
	 * Waits for a connection that is being set up. In the state CLOSING, no other one follows.
	 */
	mutex_lock(&path->conns.lock);
	mutex_unlock(&path->conns.lock);

	rtrs_path_disconnect(&path->path);
	list_for_each_entry(con, &path->path.cons, entry)
		flush_work(&to_srv_con(con)->begin_work);

	rtrs_srv_setup_stop(path);
	rtrs_srv_fence_drop(path);
	rtrs_hb_stop(&path->path);
}

/* Ends all requests that are not in the upper layer. */
static void rtrs_srv_path_drop_ios(struct rtrs_srv_path *path)
{
	struct rtrs_con *con;

	/* Wait for work that may still have seen the path in the state CONNECTED. */
	flush_work(&path->sess->slots.resume_work);
	flush_delayed_work(&path->sess->bufs.work);
	list_for_each_entry(con, &path->path.cons, entry) {
		rtrs_srv_con_drop_pending(to_srv_con(con));
		rtrs_srv_fetch_stop(to_srv_con(con));
	}
	rtrs_path_drain_send(&path->path);
	list_for_each_entry(con, &path->path.cons, entry)
		rtrs_srv_fetch_drained(to_srv_con(con));
	rtrs_srv_drop_orphans(path);
}

static void rtrs_srv_path_destroy_cons(struct rtrs_srv_path *path)
{
	u32 i;

	rtrs_path_close_dev(&path->path);
	for (i = 0; i < path->path.nr_cons; i++) {
		if (!path->conns.con[i])
			continue;
		rdma_destroy_id(path->conns.con[i]->con.cm_id);
		kfree(path->conns.con[i]);
		path->conns.con[i] = NULL;
	}
}

static void rtrs_srv_log_end(const struct rtrs_srv_path *path)
{
	if (path->end_err)
		rtrs_srv_warn(path, "path ends: %s (%pe)\n", path->end_why,
			      ERR_PTR(path->end_err));
	else
		rtrs_srv_info(path, "path ends: %s\n", path->end_why);
}

static void rtrs_srv_late_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(to_delayed_work(work), struct rtrs_srv_path,
						  ios.late_work);

	if (path->path.features & RTRS_FEATURE_FENCE)
		rtrs_srv_slots_abandon(path);
	mutex_lock(&rtrs_srv_lock);
	path->ios.late = true;
	/* Resumes a new session that waits for this one: its client may rejoin this one instead. */
	rtrs_srv_changed(path->sess);
	mutex_unlock(&rtrs_srv_lock);
}

static void rtrs_srv_close_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  close_work);
	/* Memory reclaim may depend on a client whose new path waits for the end of this one. */
	unsigned int noio = memalloc_noio_save();

	rtrs_srv_log_end(path);
	rtrs_srv_path_stop(path);
	rtrs_srv_sysfs_del_path(path);
	rtrs_srv_path_drop_ios(path);
	queue_delayed_work(rtrs_srv_close_wq, &path->ios.late_work,
			   msecs_to_jiffies(RTRS_SRV_LATE_MS));
	/* The end of the last request queues the finish work. */
	percpu_ref_kill(&path->ios.ref);
	memalloc_noio_restore(noio);
}

static void rtrs_srv_finish_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  finish_work);
	unsigned int noio = memalloc_noio_save();
	struct rtrs_con *con;

	cancel_delayed_work_sync(&path->ios.late_work);
	/* Again: the upper layer may have completed requests since the send queues were drained. */
	rtrs_path_drain_send(&path->path);
	list_for_each_entry(con, &path->path.cons, entry)
		rtrs_srv_con_drained(to_srv_con(con));
	rtrs_srv_fence_done(path);
	rtrs_path_destroy_qps(&path->path);
	rtrs_srv_bufs_forget_pages(path);
	rtrs_srv_mem_free(path);
	rtrs_srv_setup_free(path);
	rtrs_srv_path_leave_port(path);
	rtrs_srv_path_destroy_cons(path);
	rtrs_srv_sess_leave(path);

	kobject_put(&path->path.kobj);
	wait_for_completion(&path->sysfs.released);
	rtrs_srv_path_free(path);
	memalloc_noio_restore(noio);
}

/*
 * Returns the memory of a path until its client is admitted, including all announced connections.
 */
static u64 rtrs_srv_path_bytes(const struct rtrs_srv_path *path, const struct ib_device *dev)
{
	return sizeof(*path) + sizeof(struct rtrs_info_req) + sizeof(struct rtrs_proof) +
	       sizeof(*path->share) + path->path.nr_cons * sizeof(*path->conns.con) +
	       num_possible_cpus() * sizeof(*path->path.stats) + rtrs_srv_cons_bytes(path, dev);
}

/**
 * rtrs_srv_path_alloc() - allocate a path
 * @id: cm_id of the request for connection 0
 * @req: private data of that request, checked
 *
 * Context: process, may sleep; not under rtrs_srv_lock, so that other clients need not wait.
 * Return: the path, for rtrs_srv_path_add() or rtrs_srv_path_free(); or NULL.
 */
struct rtrs_srv_path *rtrs_srv_path_alloc(const struct rdma_cm_id *id,
					  const struct rtrs_cm_req *req)
{
	struct rtrs_srv_path *path;

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return NULL;
	rtrs_path_init(&path->path, &rtrs_srv_hb, rtrs_srv_path_error);
	path->path.probed = rtrs_srv_path_probed;
	path->path.tick = rtrs_srv_path_tick;
	spin_lock_init(&path->state_lock);
	mutex_init(&path->conns.lock);
	init_completion(&path->sysfs.released);
	INIT_DELAYED_WORK(&path->setup.timeout, rtrs_srv_setup_timeout);
	INIT_WORK(&path->setup.work, rtrs_srv_setup_work);
	INIT_LIST_HEAD(&path->setup.handshake);
	INIT_WORK(&path->fence.work, rtrs_srv_fence_work);
	INIT_WORK(&path->close_work, rtrs_srv_close_work);
	INIT_WORK(&path->finish_work, rtrs_srv_finish_work);
	INIT_DELAYED_WORK(&path->ios.late_work, rtrs_srv_late_work);
	rtrs_addr_from_id(id, &path->path.addr);
	path->path.port_num = id->port_num;
	rtrs_addr_format(&path->path.addr, path->path.addr_str, sizeof(path->path.addr_str));
	uuid_copy(&path->path.uuid, &req->path_uuid);
	path->path.nr_connects = le16_to_cpu(req->recon_cnt);
	path->path.features = rtrs_srv_grant(le32_to_cpu(req->features));
	path->path.no_imm = path->path.features & RTRS_FEATURE_NO_IMM;
	if (path->path.features & RTRS_FEATURE_FENCE) {
		path->path.id = le32_to_cpu(req->path_id);
		path->first = req->first_conn & BIT(0);
	}
	path->path.nr_cons = le16_to_cpu(req->cid_num);
	path->conns.con = kvcalloc(path->path.nr_cons, sizeof(*path->conns.con), GFP_KERNEL);
	path->path.stats = alloc_percpu(struct rtrs_stats);
	if (path->conns.con && path->path.stats &&
	    !percpu_ref_init(&path->ios.ref, rtrs_srv_ios_released, 0, GFP_KERNEL))
		return path;
	rtrs_srv_path_free(path);
	return NULL;
}

/**
 * rtrs_srv_path_add() - add a new path without connections to a session
 * @sess: the session
 * @path: path from rtrs_srv_path_alloc()
 * @dev: device of the path
 *
 * The path ends if its handshake takes longer than RTRS_SRV_SETUP_MS.
 *
 * Context: under rtrs_srv_lock.
 * Return: 0, and the caller holds a reference; or a negative errno. Then the caller releases the
 * lock, logs &rtrs_srv_path.end_why, which may be empty, and frees @path.
 */
int rtrs_srv_path_add(struct rtrs_srv_sess *sess, struct rtrs_srv_path *path,
		      const struct ib_device *dev)
{
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	if (sess->nr_paths >= RTRS_MAX_PATHS) {
		snprintf(path->end_why, sizeof(path->end_why),
			 "session \"%.64s\" has %u paths, no more are possible: remove some on the client",
			 sess->label, sess->nr_paths);
		return -EMFILE;
	}
	if (!sess->queue_depth || rtrs_srv_dev_depth(dev) < sess->queue_depth)
		return -EOPNOTSUPP;
	path->sess = sess;
	/* A peer can create many sessions without a name. */
	path->path.log = sess->name[0] ? &sess->log : &sess->srv->log;
	snprintf(path->path.name, sizeof(path->path.name), "%s%s%s", sess->srv->scope ?: "",
		 sess->srv->scope ? " " : "", path->path.addr_str);
	ret = rtrs_srv_handshake_begin(path, rtrs_srv_path_bytes(path, dev));
	if (ret)
		return ret;
	rtrs_srv_mem_init(path);

	kobject_init(&path->path.kobj, &rtrs_srv_path_ktype);
	kobject_get(&path->path.kobj);
	mutex_lock(&sess->paths_lock);
	list_add_tail(&path->entry, &sess->paths);
	mutex_unlock(&sess->paths_lock);
	sess->nr_paths++;
	schedule_delayed_work(&path->setup.timeout,
			      msecs_to_jiffies(RTRS_SRV_SETUP_MS));
	return 0;
}
