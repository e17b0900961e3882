// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Life of a path.
 *
 * One thread sets a path up, in rtrs_clt_path_connect(), and one work item takes
 * it down, rtrs_clt_path_end(). Whatever goes wrong in between, in whatever
 * context, calls rtrs_clt_path_error(), which does no more than move the state
 * and see to it that the work item runs. While the path is being connected the
 * connecting thread owns all of it, so there the error only wakes that thread.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "clt.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

/* Paths end here, also when memory is short and the end is what frees some. */
struct workqueue_struct *rtrs_clt_wq;

/**
 * rtrs_clt_next_state() - the state table
 * @state: where a path is; where it goes, if the event means something there
 * @ev: what happens
 *
 * Return: true if the event means something to the state.
 */
bool rtrs_clt_next_state(enum rtrs_clt_state *state, enum rtrs_clt_event ev)
{
	/* Events that a state ignores are missing. */
	static const struct {
		bool valid;
		enum rtrs_clt_state next;
	} moves[RTRS_CLT_NR_STATES][RTRS_CLT_NR_EVENTS] = {
		[RTRS_CLT_DISCONNECTED][RTRS_CLT_EV_CONNECT] = {
			true, RTRS_CLT_CONNECTING },
		[RTRS_CLT_CONNECTING][RTRS_CLT_EV_CONNECTED] = {
			true, RTRS_CLT_CONNECTED },
		[RTRS_CLT_CONNECTING][RTRS_CLT_EV_FAIL] = {
			true, RTRS_CLT_ENDING },
		[RTRS_CLT_CONNECTED][RTRS_CLT_EV_FAIL] = {
			true, RTRS_CLT_ENDING },
		[RTRS_CLT_ENDING][RTRS_CLT_EV_ENDED] = {
			true, RTRS_CLT_DISCONNECTED },
	};

	if (!moves[*state][ev].valid)
		return false;
	*state = moves[*state][ev].next;
	return true;
}

/**
 * rtrs_clt_path_move() - the one place where a path's state changes
 * @path: the path
 * @ev: what happened
 * @err: why, for RTRS_CLT_EV_FAIL
 *
 * Context: any.
 * Return: true if the event changed the state; who gets true acts on it.
 */
bool rtrs_clt_path_move(struct rtrs_clt_path *path, enum rtrs_clt_event ev,
			int err)
{
	enum rtrs_clt_state old;
	unsigned long flags;
	bool moved;

	spin_lock_irqsave(&path->state_lock, flags);
	old = path->state;
	moved = rtrs_clt_next_state(&path->state, ev);
	if (moved) {
		path->err = err;
		trace_rtrs_clt_path_state(path->path.name, old, path->state, err);
		if (old == RTRS_CLT_CONNECTED && ev == RTRS_CLT_EV_FAIL)
			queue_work(rtrs_clt_wq, &path->end_work);
	}
	spin_unlock_irqrestore(&path->state_lock, flags);
	if (moved)
		wake_up_all(&path->wait);
	return moved;
}

/**
 * rtrs_clt_path_error() - a path can't go on
 * @p: the path
 * @err: negative errno; -ESHUTDOWN when we want it to end
 * @why: for the log
 *
 * Context: any, any number of times.
 */
void rtrs_clt_path_error(struct rtrs_path *p, int err, const char *why)
{
	if (rtrs_clt_path_move(to_clt_path(p), RTRS_CLT_EV_FAIL, err) &&
	    err != -ESHUTDOWN)
		pr_err("%s: path ends: %s (%pe)\n", p->name, why, ERR_PTR(err));
}

/**
 * rtrs_clt_path_step_done() - a connection has finished the step at hand
 * @path: its path
 *
 * Context: any.
 */
void rtrs_clt_path_step_done(struct rtrs_clt_path *path)
{
	if (atomic_dec_and_test(&path->nr_pending))
		wake_up_all(&path->wait);
}

/* What handlers wrote before their step was done is read after this. */
static bool rtrs_clt_path_woken(struct rtrs_clt_path *path)
{
	return !atomic_read_acquire(&path->nr_pending) ||
	       READ_ONCE(path->state) != RTRS_CLT_CONNECTING;
}

static int rtrs_clt_path_failed(struct rtrs_clt_path *path)
{
	int ret;

	spin_lock_irq(&path->state_lock);
	ret = path->state == RTRS_CLT_CONNECTING ? 0 : path->err;
	spin_unlock_irq(&path->state_lock);
	return ret;
}

/**
 * rtrs_clt_path_wait() - wait until all have finished the step at hand
 * @path: a path that this thread connects; path->nr_pending was set before the
 *	step was started
 * @timeout_ms: for how long
 *
 * Return: 0, the errno of what went wrong, -ETIMEDOUT, or -EINTR if the thread
 * is to die.
 */
int rtrs_clt_path_wait(struct rtrs_clt_path *path, unsigned int timeout_ms)
{
	long left = msecs_to_jiffies(timeout_ms);
	int ret;

	left = wait_event_interruptible_timeout(path->wait,
						rtrs_clt_path_woken(path), left);
	ret = rtrs_clt_path_failed(path);
	if (ret)
		return ret;
	if (left < 0)
		return -EINTR;
	return left ? 0 : -ETIMEDOUT;
}

/*
 * Takes a path down. Order matters: no new requests; nothing from the wire; no
 * handler; no valid key. Only then do requests that were in flight go back to
 * their owner, for their pages may be somebody else's right after that. The ids
 * go last, since a device that is being removed waits for them alone.
 */
static void rtrs_clt_path_end(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(work, struct rtrs_clt_path,
						  end_work);

	rtrs_clt_live_del(path);
	rtrs_hb_stop(&path->path);
	rtrs_clt_cons_disconnect(path);
	rtrs_clt_info_free(path);
	rtrs_clt_slots_free(path);
	rtrs_clt_live_gone(path);
	rtrs_clt_cons_destroy(path);
	rtrs_clt_path_move(path, RTRS_CLT_EV_ENDED, 0);
}

/**
 * rtrs_clt_path_connect() - connect a path
 * @path: a path that is disconnected
 *
 * Context: process; returns when requests can go over the path.
 * Return: 0, -EALREADY if it is not disconnected, or what went wrong.
 */
int rtrs_clt_path_connect(struct rtrs_clt_path *path)
{
	int ret;

	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_CONNECT, 0))
		return -EALREADY;
	path->nr_connects++;
	ret = rtrs_clt_cons_connect(path);
	if (!ret)
		ret = rtrs_clt_info_exchange(path);
	if (!ret)
		ret = rtrs_clt_path_sysfs_add(path);
	if (!ret)
		ret = rtrs_clt_live_add(path);
	if (!ret)
		return 0;

	rtrs_clt_path_error(&path->path, ret, "connecting");
	queue_work(rtrs_clt_wq, &path->end_work);
	flush_work(&path->end_work);
	return ret;
}

/**
 * rtrs_clt_path_create() - make a path of a session
 * @clt: the session
 * @addr: where it goes
 *
 * Return: the path, disconnected, or an ERR_PTR().
 */
struct rtrs_clt_path *rtrs_clt_path_create(struct rtrs_clt *clt,
					   const struct rtrs_addr *addr)
{
	struct rtrs_clt_path *path;
	char str[RTRS_PATH_STR_LEN];

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->stats = alloc_percpu(struct rtrs_clt_stats);
	if (!path->stats) {
		kfree(path);
		return ERR_PTR(-ENOMEM);
	}
	path->clt = clt;
	path->addr = *addr;
	path->path.error = rtrs_clt_path_error;
	rtrs_addr_format(addr, str, sizeof(str));
	snprintf(path->path.name, sizeof(path->path.name), "%s %s", clt->name,
		 str);
	uuid_gen(&path->uuid);
	spin_lock_init(&path->state_lock);
	init_waitqueue_head(&path->wait);
	INIT_WORK(&path->end_work, rtrs_clt_path_end);
	xa_init(&path->mrs);
	rtrs_clt_path_sysfs_init(path);
	return path;
}

/**
 * rtrs_clt_path_destroy() - end a path if need be, and free it
 * @path: the path; nobody connects it at the same time
 *
 * Context: process, may sleep.
 */
void rtrs_clt_path_destroy(struct rtrs_clt_path *path)
{
	rtrs_clt_path_error(&path->path, -ESHUTDOWN, "closing");
	flush_work(&path->end_work);
	rtrs_clt_path_sysfs_del(path);
}
