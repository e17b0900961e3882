// SPDX-License-Identifier: GPL-2.0-or-later
/* Sessions: their names and paths. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/key.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "clt.h"

/* Sessions that are opened offer RTRS_FEATURE_FENCE to their server. Only tests clear it. */
bool rtrs_clt_fencing = true;

/* Guards rtrs_clt_list; names of sessions are unique in a network namespace */
static DEFINE_MUTEX(rtrs_clt_lock);
static LIST_HEAD(rtrs_clt_list);

/**
 * rtrs_clt_claim_name() - claim a session's name in its network namespace
 * @clt: a new session
 *
 * Context: process, may sleep.
 * Return: 0, or -EEXIST if another session has the same name.
 */
int rtrs_clt_claim_name(struct rtrs_clt *clt)
{
	struct rtrs_clt *other;
	int ret = 0;

	mutex_lock(&rtrs_clt_lock);
	list_for_each_entry(other, &rtrs_clt_list, entry)
		if (net_eq(other->net, clt->net) && !strcmp(other->name, clt->name))
			ret = -EEXIST;
	if (!ret)
		list_add_tail(&clt->entry, &rtrs_clt_list);
	mutex_unlock(&rtrs_clt_lock);
	return ret;
}

/**
 * rtrs_clt_release_name() - undo rtrs_clt_claim_name()
 * @clt: session that has claimed its name
 *
 * Context: process, may sleep.
 */
void rtrs_clt_release_name(struct rtrs_clt *clt)
{
	mutex_lock(&rtrs_clt_lock);
	list_del(&clt->entry);
	mutex_unlock(&rtrs_clt_lock);
}

/* Adds a path to its session. */
static int rtrs_clt_take_path(struct rtrs_clt *clt, struct rtrs_clt_path *path)
{
	int ret = 0;

	mutex_lock(&clt->lock);
	if (clt->closing)
		ret = -ENODEV;
	else if (clt->nr_paths == RTRS_MAX_PATHS)
		ret = -EMFILE;
	else
		ret = rtrs_clt_path_claim_locked(path);
	if (!ret) {
		list_add_tail(&path->entry, &clt->paths);
		clt->nr_paths++;
	}
	mutex_unlock(&clt->lock);
	if (ret == -EMFILE)
		pr_err("%s: there are %u paths, no more are possible: remove one first\n",
		       clt->label, RTRS_MAX_PATHS);
	return ret;
}

/**
 * rtrs_clt_remove_path() - remove a path from its session and destroy it
 * @path: path to which the caller holds a reference. Nothing is done if it is already being removed
 *
 * Context: process, may sleep.
 */
void rtrs_clt_remove_path(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	bool ours;

	get_device(&clt->dev);
	mutex_lock(&clt->lock);
	ours = !path->leaving;
	path->leaving = true;
	mutex_unlock(&clt->lock);
	if (ours) {
		rtrs_clt_path_destroy(path);
		mutex_lock(&clt->lock);
		/* From now on another path may use the same addresses. */
		list_del(&path->entry);
		clt->nr_paths--;
		mutex_unlock(&clt->lock);
		atomic_inc(&clt->results);
		wake_up_all(&clt->wait);
	}
	put_device(&clt->dev);
}

/* Creates a path and starts to connect it. The caller gets a reference. */
static struct rtrs_clt_path *rtrs_clt_begin_path(struct rtrs_clt *clt,
						 const struct rtrs_addr *addr,
						 u32 *tries)
{
	struct rtrs_clt_path *path;
	int ret;

	path = rtrs_clt_path_create(clt, addr);
	if (IS_ERR(path))
		return path;
	kobject_get(&path->path.kobj);
	ret = rtrs_clt_take_path(clt, path);
	if (ret) {
		rtrs_clt_path_destroy(path);
		kobject_put(&path->path.kobj);
		return ERR_PTR(ret);
	}
	*tries = rtrs_clt_path_connect_start(path);
	return path;
}

/**
 * rtrs_clt_add_path() - add a path to a session, and connect it
 * @clt: an open session
 * @addr: server's address, and optionally a source; copied
 *
 * Context: process, may sleep; any number of callers at a time.
 * Return: 0 when the path is connected; -EEXIST if there is a path between these addresses; -EMFILE
 * if there are RTRS_MAX_PATHS paths; -ENODEV if the session is being closed; -EINTR if killed; or
 * the error of the attempt.
 */
int rtrs_clt_add_path(struct rtrs_clt *clt, const struct rtrs_addr *addr)
{
	struct rtrs_clt_path *path;
	u32 tries;
	int ret;

	path = rtrs_clt_begin_path(clt, addr, &tries);
	if (IS_ERR(path))
		return PTR_ERR(path);
	ret = rtrs_clt_path_connect_wait(path, tries);
	if (ret)
		rtrs_clt_remove_path(path);
	kobject_put(&path->path.kobj);
	return ret;
}

/*
 * Returns the result of the first attempts of all paths: 0 if one is connected, or an errno.
 * -EINPROGRESS while attempts are running and no path is connected; if @patient, also if one is.
 */
static int rtrs_clt_paths_tried(struct rtrs_clt *clt, bool patient)
{
	struct rtrs_clt_path *path;
	bool up = false, busy = false;
	int ret, err = 0;

	mutex_lock(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		ret = rtrs_clt_path_connect_status(path, 0);
		if (!ret)
			up = true;
		else if (ret == -EINPROGRESS)
			busy = true;
		else if (!err || ret == -EEXIST)
			err = ret;
	}
	mutex_unlock(&clt->lock);
	if (err == -EEXIST)
		return err;
	if (busy && (patient || !up))
		return -EINPROGRESS;
	/* All paths may have been removed meanwhile. */
	return up ? 0 : err ?: -ECONNABORTED;
}

static int rtrs_clt_wait_tried(struct rtrs_clt *clt)
{
	long left = msecs_to_jiffies(RTRS_CLT_OPEN_MS);
	long ret;
	int seen;

	for (;;) {
		/* Results after this point end the wait below. */
		seen = atomic_read(&clt->results);
		ret = rtrs_clt_paths_tried(clt, left);
		if (ret != -EINPROGRESS)
			return ret;
		ret = wait_event_interruptible_timeout(clt->wait,
						       atomic_read(&clt->results) != seen,
						       left ?: MAX_SCHEDULE_TIMEOUT);
		if (ret < 0)
			return -ERESTARTSYS;
		if (left)
			left = ret;
	}
}

/**
 * rtrs_clt_connect_paths() - create a session's first paths, and connect them
 * @clt: session without paths
 * @params: parameters of rtrs_clt_open(), with the paths
 *
 * Context: process, may sleep; interrupted by signals.
 * Return: 0 when one path is connected, and either all paths have been tried or RTRS_CLT_OPEN_MS
 * have passed; or a negative errno, see rtrs_clt_open().
 */
int rtrs_clt_connect_paths(struct rtrs_clt *clt,
			   const struct rtrs_clt_params *params)
{
	struct rtrs_clt_path *path;
	unsigned int i;
	u32 tries;

	for (i = 0; i < params->nr_paths; i++) {
		path = rtrs_clt_begin_path(clt, &params->paths[i], &tries);
		if (IS_ERR(path))
			return PTR_ERR(path);
		kobject_put(&path->path.kobj);
	}
	return rtrs_clt_wait_tried(clt);
}

static void rtrs_clt_defaults(struct rtrs_clt *clt)
{
	clt->policy = RTRS_CLT_MI;
	clt->hb.interval_ms = RTRS_HB_INTERVAL_MS;
	clt->hb.max_missed = RTRS_HB_MAX_MISSED;
	clt->reconnect.max_tries = -1;
	clt->reconnect.delay_ms = RTRS_CLT_RECONNECT_MS;
	clt->reconnect.delay_max_ms = RTRS_CLT_RECONNECT_MAX_MS;
	clt->failover.timeout = RTRS_CLT_FAILOVER_S;
	clt->fences.unfenced_ms = RTRS_CLT_UNFENCED_MS;
}

/**
 * rtrs_clt_free() - free a session
 * @clt: session whose last reference has been dropped
 */
void rtrs_clt_free(struct rtrs_clt *clt)
{
	ratelimit_state_exit(&clt->ratelimit);
	free_percpu(clt->rr_next);
	key_put(clt->key);
	if (clt->proof_tfm)
		rtrs_proof_free(clt->proof_tfm);
	put_net(clt->net);
	kfree(clt);
}

/**
 * rtrs_clt_alloc() - allocate a session
 * @params: parameters of rtrs_clt_open(), checked by the caller
 *
 * Return: the session, without paths, or an ERR_PTR().
 */
struct rtrs_clt *rtrs_clt_alloc(const struct rtrs_clt_params *params)
{
	struct rtrs_clt *clt;
	int ret;

	clt = kzalloc(sizeof(*clt), GFP_KERNEL);
	if (!clt)
		return ERR_PTR(-ENOMEM);
	clt->rr_next = alloc_percpu(unsigned int);
	if (!clt->rr_next) {
		kfree(clt);
		return ERR_PTR(-ENOMEM);
	}
	if (params->key) {
		clt->proof_tfm = rtrs_proof_alloc();
		if (IS_ERR(clt->proof_tfm)) {
			ret = PTR_ERR(clt->proof_tfm);
			free_percpu(clt->rr_next);
			kfree(clt);
			return ERR_PTR(ret);
		}
		clt->key = key_get(params->key);
	}
	mutex_init(&clt->proof_lock);
	strscpy(clt->name, params->sessname, sizeof(clt->name));
	strscpy(clt->label, params->label, sizeof(clt->label));
	clt->net = get_net(params->net);
	uuid_gen(&clt->uuid);
	clt->nr_queues = params->nr_queues;
	clt->nr_poll_queues = params->nr_poll_queues;
	clt->queue_depth = params->queue_depth;
	clt->fencing = rtrs_clt_fencing;
	clt->port = rtrs_addr_port(&params->paths[0]);
	clt->link.event = params->link_event;
	clt->link.srv_event = params->srv_event;
	clt->failover.retry_ok = params->retry_ok;
	clt->failover.prep_retry = params->prep_retry;
	clt->link.priv = params->priv;
	atomic64_set(&clt->failover.down_since, get_jiffies_64());
	ratelimit_state_init(&clt->ratelimit, DEFAULT_RATELIMIT_INTERVAL,
			     DEFAULT_RATELIMIT_BURST);
	ratelimit_set_flags(&clt->ratelimit, RATELIMIT_MSG_ON_RELEASE);
	mutex_init(&clt->lock);
	init_waitqueue_head(&clt->wait);
	INIT_LIST_HEAD(&clt->paths);
	INIT_WORK(&clt->link.work, rtrs_clt_link_work);
	rtrs_clt_failover_init(clt);
	rtrs_clt_fence_init(clt);
	rtrs_clt_create_init(clt);
	rtrs_clt_defaults(clt);
	return clt;
}

/* Finds a path that isn't being removed. The caller gets a reference. */
static struct rtrs_clt_path *rtrs_clt_any_path(struct rtrs_clt *clt)
{
	struct rtrs_clt_path *path, *found = NULL;

	mutex_lock(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry)
		if (!path->leaving)
			found = path;
	if (found)
		kobject_get(&found->path.kobj);
	mutex_unlock(&clt->lock);
	return found;
}

/**
 * rtrs_clt_end_paths() - end all paths of a session, all fences and all waiting requests
 * @clt: session that is being closed; no path can be added to it any more
 *
 * link_event() isn't called any more once this function has started to end paths.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_end_paths(struct rtrs_clt *clt)
{
	struct rtrs_clt_path *path;

	mutex_lock(&clt->lock);
	clt->link.reported = RTRS_CLT_REPORT_NONE;
	clt->closing = true;
	mutex_unlock(&clt->lock);
	/* A path that is being connected may wait until an event is reported. */
	flush_work(&clt->link.work);
	/* Stop all paths first, so that they end in parallel. */
	mutex_lock(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry)
		rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	mutex_unlock(&clt->lock);
	while ((path = rtrs_clt_any_path(clt))) {
		rtrs_clt_remove_path(path);
		kobject_put(&path->path.kobj);
	}
	/*
	 * Paths may also be removed through sysfs. The task that removes the last one may still
	 * hold the lock at this point, so wait until it has been released, too.
	 */
	wait_event(clt->wait, !READ_ONCE(clt->nr_paths));
	mutex_lock(&clt->lock);
	mutex_unlock(&clt->lock);
	rtrs_clt_fence_exit(clt);
	rtrs_clt_failover_exit(clt);
	cancel_work_sync(&clt->link.work);
}

/* Checks whether a path is between the given addresses. Without a source, any source matches. */
static bool rtrs_clt_path_matches(const struct rtrs_clt_path *path,
				  const struct rtrs_addr *addr, const char *str)
{
	const char *own = path->path.addr_str;
	const char *dst = strchr(own, '@');

	if (rtrs_addr_port(&path->path.addr) != rtrs_addr_port(addr))
		return false;
	if (addr->src.ss_family == AF_UNSPEC && dst)
		own = dst + 1;
	return !strcmp(own, str);
}

/**
 * rtrs_clt_has_path() - check whether a session has a path between these addresses
 * @clt: an open session
 * @addr: result of rtrs_addr_parse(). Without a source, any path to the destination address and
 *	port matches; with one, a path whose source routing has not selected yet doesn't match
 *
 * Context: process, may sleep.
 * Return: true if there is such a path, connected or not.
 */
bool rtrs_clt_has_path(struct rtrs_clt *clt, const struct rtrs_addr *addr)
{
	char str[RTRS_PATH_STR_LEN];
	struct rtrs_clt_path *path;
	bool found = false;

	rtrs_addr_format(addr, str, sizeof(str));
	mutex_lock(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry)
		if (!path->leaving && rtrs_clt_path_matches(path, addr, str))
			found = true;
	mutex_unlock(&clt->lock);
	return found;
}
EXPORT_SYMBOL_GPL(rtrs_clt_has_path);

/**
 * rtrs_clt_limits() - get the limits of a session's requests
 * @clt: an open session
 * @limits: filled in; constant while the session is open
 *
 * Context: any.
 */
void rtrs_clt_limits(const struct rtrs_clt *clt, struct rtrs_clt_limits *limits)
{
	*limits = clt->limits;
}
EXPORT_SYMBOL_GPL(rtrs_clt_limits);
