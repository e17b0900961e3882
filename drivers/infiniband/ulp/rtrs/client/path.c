// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Life of a path.
 *
 * One work item connects a path. Another one disconnects it, and queues the first one again. The
 * two run alternately, never at the same time. Other code changes the path's state (state.c) and
 * waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "clt.h"

/**
 * rtrs_clt_path_lived() - update sm.short_lives for a path that was lost
 * @path: path that was connected and has just been lost
 *
 * Context: process.
 */
VISIBLE_IF_KUNIT void rtrs_clt_path_lived(struct rtrs_clt_path *path)
{
	unsigned int max = READ_ONCE(path->clt->reconnect.delay_max_ms);

	spin_lock_irq(&path->sm.lock);
	/* With 32 bits, time_after() fails if the path was connected for weeks. */
	if (jiffies - path->sm.up_since > msecs_to_jiffies(max))
		path->sm.short_lives = 0;
	else
		path->sm.short_lives++;
	spin_unlock_irq(&path->sm.lock);
}

/**
 * rtrs_clt_path_claim_locked() - claim a path's addresses in its session
 * @path: path whose destination address, at least, is known
 *
 * Context: process, under clt->lock.
 * Return: 0, or -EEXIST if another path of the session has the same addresses.
 */
int rtrs_clt_path_claim_locked(struct rtrs_clt_path *path)
{
	char str[RTRS_PATH_STR_LEN];
	struct rtrs_clt_path *other;

	lockdep_assert_held(&path->clt->lock);
	rtrs_addr_format(&path->path.addr, str, sizeof(str));
	list_for_each_entry(other, &path->clt->paths, entry)
		if (other != path && !strcmp(other->path.addr_str, str))
			return -EEXIST;
	strscpy(path->path.addr_str, str, sizeof(path->path.addr_str));
	return 0;
}

/* Claims the path's addresses, including the source address, which is known by now. */
static int rtrs_clt_path_claim(struct rtrs_clt_path *path)
{
	int ret;

	mutex_lock(&path->clt->lock);
	ret = rtrs_clt_path_claim_locked(path);
	mutex_unlock(&path->clt->lock);
	return ret;
}

/* Prepares an attempt to connect: assigns a new ID and allocates the path's fence. */
static int rtrs_clt_path_begin(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	path->path.nr_connects++;
	path->neg.offered = RTRS_FEATURES;
	if (!clt->fencing)
		path->neg.offered &= ~RTRS_FEATURE_FENCE;
	if (clt->key)
		path->neg.offered |= RTRS_FEATURE_PROOF;
	path->fence.own = kzalloc(sizeof(*path->fence.own), GFP_KERNEL);
	if (!path->fence.own)
		return -ENOMEM;
	INIT_LIST_HEAD(&path->fence.own->ios);
	mutex_lock(&clt->lock);
	/* IDs repeat after 2^28 attempts; 0 is not a valid ID. */
	clt->last_id = clt->last_id % RTRS_MAX_PATH_ID + 1;
	WRITE_ONCE(path->path.id, clt->last_id);
	ret = rtrs_clt_proof_tag(path);
	mutex_unlock(&clt->lock);
	path->fence.own->id = path->path.id;
	path->fence.asked = 0;
	return ret;
}

static int rtrs_clt_path_show(struct rtrs_clt_path *path)
{
	return path->clt->view->show(path);
}

/* Starts heartbeats, as the next step may wait until dead paths are fenced. */
static int rtrs_clt_path_watch(struct rtrs_clt_path *path)
{
	rtrs_hb_start(&path->path, &path->cons[0].con);
	return 0;
}

static int rtrs_clt_path_try(struct rtrs_clt_path *path)
{
	/*
	 * The order of steps matters. Addresses are claimed before the server is contacted, because
	 * it regards a second path between the same addresses as the successor of the first.
	 * INFO_RSP is the first message on the service connection, so its receive is posted before
	 * all others; its size depends on the queue depth that the server offers.
	 */
	static int (*const steps[])(struct rtrs_clt_path *path) = {
		rtrs_clt_path_begin,
		rtrs_clt_conn_resolve,
		rtrs_clt_path_claim,
		rtrs_clt_conn_service,
		rtrs_clt_info_alloc,
		rtrs_clt_conn_io,
		rtrs_clt_slots_alloc,
		rtrs_clt_info_register,
		rtrs_clt_info_exchange,
		rtrs_clt_path_show,
		rtrs_clt_probe,
		rtrs_clt_path_watch,
		rtrs_clt_link_add,
	};
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		ret = steps[i](path);
		if (ret)
			return ret;
	}
	rtrs_clt_end_create(path);
	return 0;
}

/**
 * rtrs_clt_path_result() - record the result of an attempt to connect, and wake its waiters
 * @path: path
 * @result: 0 or a negative errno. -EINPROGRESS, like 0, resets the count of failures: the path
 *	works, but a dead path could not be fenced over it in time, see rtrs_clt_fence_via()
 *
 * Context: process.
 */
VISIBLE_IF_KUNIT void rtrs_clt_path_result(struct rtrs_clt_path *path, int result)
{
	bool failed = result && result != -EINPROGRESS;

	spin_lock_irq(&path->sm.lock);
	path->sm.failures = failed ? path->sm.failures + 1 : 0;
	path->sm.result = result;
	path->sm.tries++;
	spin_unlock_irq(&path->sm.lock);
	if (!result) {
		WRITE_ONCE(path->sm.logged, 0);
		if (path->stats.ever_up && __ratelimit(&path->clt->ratelimit))
			pr_info("%s: path is connected again\n", path->path.name);
	}
	if (result || path->stats.ever_up)
		WRITE_ONCE(path->stats.reconnects[!result], path->stats.reconnects[!result] + 1);
	path->stats.ever_up |= !result;
	wake_up_all(&path->sm.wait);
	atomic_inc(&path->clt->results);
	wake_up_all(&path->clt->wait);
}

/*
 * Starts an attempt to connect, if it is due. The path isn't disconnected until
 * rtrs_clt_path_try_over().
 */
static bool rtrs_clt_path_try_due(struct rtrs_clt_path *path)
{
	bool due;

	spin_lock_irq(&path->sm.lock);
	due = rtrs_clt_path_move_locked(path, RTRS_CLT_EV_DUE, 0);
	path->sm.trying |= due;
	path->sm.begun += due;
	spin_unlock_irq(&path->sm.lock);
	return due;
}

/* Ends an attempt, and queues end_work if the attempt or the path has failed. */
static void rtrs_clt_path_try_over(struct rtrs_clt_path *path)
{
	spin_lock_irq(&path->sm.lock);
	path->sm.trying = false;
	if (path->sm.state != RTRS_CLT_CONNECTED)
		queue_work(rtrs_clt_end_wq, &path->sm.end_work);
	spin_unlock_irq(&path->sm.lock);
}

static void rtrs_clt_connect_work(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(to_delayed_work(work),
						  struct rtrs_clt_path, sm.connect_work);
	/* Memory reclaim may wait for a request that waits for this path. */
	unsigned int noio = memalloc_noio_save();

	if (rtrs_clt_path_try_due(path)) {
		path->sm.try_err = rtrs_clt_path_try(path);
		if (path->sm.try_err)
			rtrs_clt_path_error(&path->path, path->sm.try_err, "connecting");
		else
			rtrs_clt_path_result(path, 0);
		rtrs_clt_path_try_over(path);
	}
	memalloc_noio_restore(noio);
}

/*
 * Disconnects a path. Order matters: no new requests; nothing from the wire; no handler. Only then
 * may requests that were in flight be sent over another path or be completed, as their pages may be
 * reused right after that; see rtrs_clt_slots_reclaim(). Slow steps follow. The CM ids are
 * destroyed last, because the removal of an RDMA device waits only for them.
 */
static void rtrs_clt_path_end(struct rtrs_clt_path *path)
{
	bool live = rtrs_clt_link_del(path);
	LIST_HEAD(ios);

	rtrs_hb_stop(&path->path);
	rtrs_clt_cons_disconnect(path);
	rtrs_clt_slots_reclaim(path, &ios);
	rtrs_clt_failover_path(path, &ios);
	if (live)
		rtrs_clt_link_gone(path);
	rtrs_path_destroy_qps(&path->path);
	rtrs_clt_info_free(path);
	rtrs_clt_slots_free(path);
	rtrs_clt_cons_destroy(path);
}

/*
 * Schedules the next attempt to connect, if there is to be one. This is the last step of @end_work,
 * since the path may be connected again as soon as its state changes.
 */
static void rtrs_clt_path_ended(struct rtrs_clt_path *path)
{
	int max = READ_ONCE(path->clt->reconnect.max_tries);
	bool given_up = false;

	spin_lock_irq(&path->sm.lock);
	if (!path->sm.at_once && max >= 0 && rtrs_clt_path_failures(path) >= max)
		given_up = rtrs_clt_path_move_locked(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	rtrs_clt_path_move_locked(path, RTRS_CLT_EV_ENDED, 0);
	spin_unlock_irq(&path->sm.lock);
	if (given_up && max)
		rtrs_path_err(&path->path, "could not be connected in %d tries, given up\n", max);
}

static void rtrs_clt_end_work(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(work, struct rtrs_clt_path,
						  sm.end_work);
	unsigned int noio = memalloc_noio_save();
	int err = path->sm.try_err;

	rtrs_clt_path_end(path);
	/* Also shows a path that has never been connected, so that users can remove it. */
	rtrs_clt_path_show(path);
	path->sm.try_err = 0;
	if (err)
		rtrs_clt_path_result(path, err);
	else
		rtrs_clt_path_lived(path);
	rtrs_clt_path_ended(path);
	memalloc_noio_restore(noio);
}

/*
 * Makes the next attempt to connect start without delay. Returns the number of attempts started so
 * far: the result of an attempt that is already running doesn't count.
 */
static u32 rtrs_clt_path_want_locked(struct rtrs_clt_path *path)
{
	lockdep_assert_held(&path->sm.lock);
	if (!path->sm.gone) {
		path->sm.failures = 0;
		path->sm.short_lives = 0;
		path->sm.at_once = true;
		rtrs_clt_path_queue_attempt(path);
		rtrs_clt_path_move_locked(path, RTRS_CLT_EV_WANT, 0);
	}
	return path->sm.begun;
}

/**
 * rtrs_clt_path_connect_start() - start to connect a path, without delay
 * @path: path that isn't connected; nothing is done if it is being destroyed
 *
 * Context: process.
 * Return: number of attempts started so far, for rtrs_clt_path_connect_status().
 */
u32 rtrs_clt_path_connect_start(struct rtrs_clt_path *path)
{
	u32 tries;

	spin_lock_irq(&path->sm.lock);
	tries = rtrs_clt_path_want_locked(path);
	spin_unlock_irq(&path->sm.lock);
	return tries;
}

/* Get the error of an attempt for its waiters. To them, -EINPROGRESS means that there is none. */
static int rtrs_clt_path_errno(int result)
{
	return result == -EINPROGRESS ? -ETIMEDOUT : result ?: -ECONNABORTED;
}

/**
 * rtrs_clt_path_connect_status() - get the result of rtrs_clt_path_connect_start()
 * @path: path that was started
 * @tries: value that rtrs_clt_path_connect_start() returned
 *
 * Return: -EINPROGRESS while the path is being connected, 0 if it is connected, the error of the
 * attempt, or -ECONNABORTED if the path was disconnected since.
 */
int rtrs_clt_path_connect_status(struct rtrs_clt_path *path, u32 tries)
{
	int ret = -EINPROGRESS;

	spin_lock_irq(&path->sm.lock);
	if (path->sm.state == RTRS_CLT_CONNECTED)
		ret = 0;
	else if ((s32)(path->sm.tries - tries) > 0)
		ret = rtrs_clt_path_errno(path->sm.result);
	else if (path->sm.state == RTRS_CLT_IDLE)
		ret = -ECONNABORTED;
	spin_unlock_irq(&path->sm.lock);
	return ret;
}

/**
 * rtrs_clt_path_connect_wait() - wait for the result of rtrs_clt_path_connect_start()
 * @path: path that was started
 * @tries: value that rtrs_clt_path_connect_start() returned
 *
 * Only fatal signals interrupt the wait. After any other one, the system call would be restarted
 * and disconnect a path that has been connected meanwhile. An attempt always ends by itself.
 *
 * Context: process, may sleep.
 * Return: as rtrs_clt_path_connect_status(), but -EINTR instead of -EINPROGRESS, if killed.
 */
int rtrs_clt_path_connect_wait(struct rtrs_clt_path *path, u32 tries)
{
	int ret;

	while ((ret = rtrs_clt_path_connect_status(path, tries)) == -EINPROGRESS)
		if (wait_event_killable(path->sm.wait,
					rtrs_clt_path_connect_status(path, tries) !=
					-EINPROGRESS))
			return -EINTR;
	return ret;
}

/**
 * rtrs_clt_path_reconnect() - connect a path; disconnect it first if it is connected
 * @path: path in any state
 *
 * Context: process, may sleep; any number of callers at a time.
 * Return: 0 when the path is connected, the error of the attempt, or -EINTR if killed.
 */
int rtrs_clt_path_reconnect(struct rtrs_clt_path *path)
{
	bool was_up;
	u32 tries;

	/*
	 * Checked under the lock, so that a path that connects at this moment is either accepted as
	 * the result or disconnected once.
	 */
	spin_lock_irq(&path->sm.lock);
	was_up = path->sm.state == RTRS_CLT_CONNECTED && !path->sm.gone;
	if (was_up)
		rtrs_clt_path_move_locked(path, RTRS_CLT_EV_FAIL, -ECONNRESET);
	tries = rtrs_clt_path_want_locked(path);
	spin_unlock_irq(&path->sm.lock);
	if (was_up)
		pr_info("%s: path is being reconnected\n", path->path.name);
	return rtrs_clt_path_connect_wait(path, tries);
}

static bool rtrs_clt_path_settled(struct rtrs_clt_path *path)
{
	enum rtrs_clt_state state = READ_ONCE(path->sm.state);

	return state != RTRS_CLT_CLOSING && state != RTRS_CLT_RESETTING;
}

/**
 * rtrs_clt_path_disconnect() - disconnect a path until rtrs_clt_path_connect_start() is called
 * @path: path in any state
 *
 * Context: process, may sleep; any number of callers at a time.
 * Return: 0 when the path is disconnected, or -EINTR if killed.
 */
int rtrs_clt_path_disconnect(struct rtrs_clt_path *path)
{
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	return wait_event_killable(path->sm.wait, rtrs_clt_path_settled(path)) ?
		-EINTR : 0;
}

/**
 * rtrs_clt_path_free() - free a path
 * @path: path whose last reference has been dropped
 */
void rtrs_clt_path_free(struct rtrs_clt_path *path)
{
	mutex_destroy(&path->path.stats_lock);
	free_percpu(path->stats.latency);
	free_percpu(path->stats.cpu);
	kfree(path);
}

/**
 * rtrs_clt_path_create() - allocate a path
 * @clt: session of the path; the path isn't added to the session's list
 * @addr: server's address, and optionally a source; copied
 *
 * Return: the path in state RTRS_CLT_IDLE, or an ERR_PTR().
 */
struct rtrs_clt_path *rtrs_clt_path_create(struct rtrs_clt *clt,
					   const struct rtrs_addr *addr)
{
	struct rtrs_clt_path *path;
	char str[RTRS_PATH_STR_LEN];

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->stats.cpu = alloc_percpu(struct rtrs_clt_stats);
	path->stats.latency = alloc_percpu(struct rtrs_hist);
	if (!path->stats.cpu || !path->stats.latency) {
		rtrs_clt_path_free(path);
		return ERR_PTR(-ENOMEM);
	}
	path->path.stats = &path->stats.cpu->io;
	path->clt = clt;
	path->path.addr = *addr;
	rtrs_path_init(&path->path, &clt->hb, rtrs_clt_path_error);
	path->path.log = &clt->ratelimit;
	rtrs_addr_format(addr, str, sizeof(str));
	snprintf(path->path.name, sizeof(path->path.name), "%s %s", clt->label,
		 str);
	uuid_gen(&path->path.uuid);
	INIT_LIST_HEAD(&path->entry);
	INIT_LIST_HEAD(&path->create_entry);
	spin_lock_init(&path->sm.lock);
	init_waitqueue_head(&path->sm.wait);
	INIT_DELAYED_WORK(&path->sm.connect_work, rtrs_clt_connect_work);
	INIT_WORK(&path->sm.end_work, rtrs_clt_end_work);
	rtrs_clt_mrs_init(path);
	kobject_init(&path->path.kobj, clt->view->ktype);
	return path;
}

/**
 * rtrs_clt_path_destroy() - disconnect a path if needed, and drop a reference
 * @path: the path. The caller removes it from its session's list only afterwards, so that no other
 *	path can get its name earlier
 *
 * Context: process, may sleep.
 */
void rtrs_clt_path_destroy(struct rtrs_clt_path *path)
{
	/* From here on rtrs_clt_path_connect_start() does nothing. */
	spin_lock_irq(&path->sm.lock);
	WRITE_ONCE(path->sm.gone, true);
	spin_unlock_irq(&path->sm.lock);
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	path->clt->view->hide(path);
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	wait_event(path->sm.wait, READ_ONCE(path->sm.state) == RTRS_CLT_IDLE);
	cancel_delayed_work_sync(&path->sm.connect_work);
	cancel_work_sync(&path->sm.end_work);
	kobject_put(&path->path.kobj);
}
