// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Life of a path.
 *
 * One work item of the path connects it, takes it down, and connects it again, so
 * none of these ever runs beside another. Whatever goes wrong, in whatever context,
 * calls rtrs_clt_path_error(), which does no more than move the state and see to it
 * that the work item runs, or wakes up if it is connecting. Whoever wants something
 * of a path moves its state too, and waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "clt.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * Where paths come up and go down, also when memory is short and a path is what
 * frees some.
 */
struct workqueue_struct *rtrs_clt_wq;
/* What waits for nothing but RCU and rtrs_clt.lock, and is waited for by paths. */
struct workqueue_struct *rtrs_clt_sess_wq;

/**
 * rtrs_clt_next_state() - the state table
 * @state: where a path is
 * @ev: what happens
 *
 * Return: where it goes; @state if the event means nothing to it.
 */
enum rtrs_clt_state rtrs_clt_next_state(enum rtrs_clt_state state,
					enum rtrs_clt_event ev)
{
	/* One more than the next state, so that 0 is what is missing. */
	static const u8 next[RTRS_CLT_NR_STATES][RTRS_CLT_NR_EVENTS] = {
		[RTRS_CLT_IDLE] = {
			[RTRS_CLT_EV_WANT]	= RTRS_CLT_WAITING + 1,
		},
		[RTRS_CLT_WAITING] = {
			[RTRS_CLT_EV_DUE]	= RTRS_CLT_CONNECTING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_IDLE + 1,
		},
		[RTRS_CLT_CONNECTING] = {
			[RTRS_CLT_EV_UP]	= RTRS_CLT_CONNECTED + 1,
			[RTRS_CLT_EV_FAIL]	= RTRS_CLT_ENDING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
		},
		[RTRS_CLT_CONNECTED] = {
			[RTRS_CLT_EV_FAIL]	= RTRS_CLT_ENDING + 1,
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
		},
		[RTRS_CLT_ENDING] = {
			[RTRS_CLT_EV_STOP]	= RTRS_CLT_CLOSING + 1,
			[RTRS_CLT_EV_ENDED]	= RTRS_CLT_WAITING + 1,
		},
		[RTRS_CLT_CLOSING] = {
			[RTRS_CLT_EV_WANT]	= RTRS_CLT_ENDING + 1,
			[RTRS_CLT_EV_ENDED]	= RTRS_CLT_IDLE + 1,
		},
	};

	return next[state][ev] ? next[state][ev] - 1 : state;
}

/* The one place where a path's state changes. */
static bool rtrs_clt_path_move_locked(struct rtrs_clt_path *path,
				      enum rtrs_clt_event ev, int err)
{
	enum rtrs_clt_state old = path->state;
	enum rtrs_clt_state new = rtrs_clt_next_state(old, ev);

	lockdep_assert_held(&path->state_lock);
	if (new == old)
		return false;
	/* What follows from the end of a path is no reason for it. */
	if (old == RTRS_CLT_CONNECTING || old == RTRS_CLT_CONNECTED)
		path->err = err;
	WRITE_ONCE(path->state, new);
	trace_rtrs_clt_path_state(path->path.name, old, new, err);
	/* In other states the work item runs, or is due later. */
	if (old == RTRS_CLT_CONNECTED || old == RTRS_CLT_IDLE)
		mod_delayed_work(rtrs_clt_wq, &path->work, 0);
	wake_up_all(&path->wait);
	wake_up_all(&path->clt->wait);
	return true;
}

/**
 * rtrs_clt_path_move() - let something happen to a path
 * @path: the path
 * @ev: what happened
 * @err: why, for RTRS_CLT_EV_FAIL and RTRS_CLT_EV_STOP
 *
 * Context: any.
 * Return: true if the event changed the state.
 */
bool rtrs_clt_path_move(struct rtrs_clt_path *path, enum rtrs_clt_event ev,
			int err)
{
	unsigned long flags;
	bool moved;

	spin_lock_irqsave(&path->state_lock, flags);
	moved = rtrs_clt_path_move_locked(path, ev, err);
	spin_unlock_irqrestore(&path->state_lock, flags);
	return moved;
}

/**
 * rtrs_clt_path_error() - a path can't go on
 * @p: the path
 * @err: negative errno
 * @why: for the log
 *
 * Context: any, any number of times.
 */
void rtrs_clt_path_error(struct rtrs_path *p, int err, const char *why)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	bool again = READ_ONCE(path->state) == RTRS_CLT_CONNECTING &&
		     READ_ONCE(path->logged) == err;

	/* One that is tried again and again says the same only once. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_FAIL, err) || again)
		return;
	WRITE_ONCE(path->logged, err);
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
 * @path: the path; path->nr_pending was set before the step was started
 * @timeout_ms: for how long
 *
 * Context: the path's work item.
 * Return: 0, the errno of what went wrong, or -ETIMEDOUT.
 */
int rtrs_clt_path_wait(struct rtrs_clt_path *path, unsigned int timeout_ms)
{
	long left = msecs_to_jiffies(timeout_ms);
	int ret;

	left = wait_event_idle_timeout(path->wait, rtrs_clt_path_woken(path), left);
	ret = rtrs_clt_path_failed(path);
	if (ret)
		return ret;
	return left ? 0 : -ETIMEDOUT;
}

/**
 * rtrs_clt_backoff() - how long to wait before the next try
 * @first: milliseconds before the first try that follows a connected path
 * @max: the longest delay
 * @failures: tries that have failed since
 *
 * Clients that have lost the same server don't come back in the same instant.
 *
 * Return: milliseconds: @first doubled with each failure, or @max; of that, between
 * half and all.
 */
unsigned int rtrs_clt_backoff(unsigned int first, unsigned int max,
			      unsigned int failures)
{
	u64 ms = min_t(u64, (u64)first << min(failures, 31U), max);

	return ms / 2 + get_random_u32_below(ms / 2 + 1);
}

/* Set up anew what a connect needs; the path holds nothing from before. */
static int rtrs_clt_path_begin(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	spin_lock_irq(&path->state_lock);
	path->at_once = false;
	spin_unlock_irq(&path->state_lock);
	path->nr_connects++;
	path->offered = clt->fencing ? RTRS_FEATURES : 0;
	path->fence = kzalloc(sizeof(*path->fence), GFP_KERNEL);
	if (!path->fence)
		return -ENOMEM;
	INIT_LIST_HEAD(&path->fence->ios);
	mutex_lock(&clt->lock);
	/* Ids come again after 2^28 connects; 0 is none. */
	clt->last_id = clt->last_id % RTRS_MAX_PATH_ID + 1;
	WRITE_ONCE(path->id, clt->last_id);
	mutex_unlock(&clt->lock);
	path->fence->id = path->id;
	path->fence_asked = 0;
	return 0;
}

static int rtrs_clt_path_try(struct rtrs_clt_path *path)
{
	int ret;

	ret = rtrs_clt_path_begin(path);
	if (!ret)
		ret = rtrs_clt_cons_connect(path);
	if (!ret)
		ret = rtrs_clt_info_exchange(path);
	if (!ret)
		ret = rtrs_clt_path_sysfs_add(path);
	if (!ret)
		ret = rtrs_clt_live_add(path);
	if (!ret)
		rtrs_clt_end_turn(path);
	return ret;
}

/* A try has come to its end. */
static void rtrs_clt_path_result(struct rtrs_clt_path *path, int result)
{
	spin_lock_irq(&path->state_lock);
	path->failures = result ? path->failures + 1 : 0;
	path->result = result;
	path->tries++;
	spin_unlock_irq(&path->state_lock);
	if (!result)
		WRITE_ONCE(path->logged, 0);
	if (result || path->ever_up)
		WRITE_ONCE(path->reconnects[!result], path->reconnects[!result] + 1);
	path->ever_up |= !result;
	wake_up_all(&path->wait);
	atomic_inc(&path->clt->results);
	wake_up_all(&path->clt->wait);
}

/*
 * Takes a path down. Order matters: no new requests; nothing from the wire; no
 * handler; no valid key. Only then may requests that were in flight go elsewhere or
 * back to their owner, for their pages may be somebody else's right after that. The
 * ids go last, since a device that is being removed waits for them alone.
 */
static void rtrs_clt_path_end(struct rtrs_clt_path *path)
{
	LIST_HEAD(stranded);

	rtrs_clt_live_del(path);
	rtrs_hb_stop(&path->path);
	rtrs_clt_cons_disconnect(path);
	rtrs_clt_info_free(path);
	rtrs_clt_slots_free(path, &stranded);
	rtrs_clt_strand(path, &stranded);
	rtrs_clt_live_gone(path);
	rtrs_clt_cons_destroy(path);
	rtrs_clt_path_move(path, RTRS_CLT_EV_ENDED, 0);
}

/* The path is down; when does it come up again, if ever? */
static void rtrs_clt_path_retry(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int max = READ_ONCE(clt->max_reconnects);
	unsigned int delay = 0;
	bool given_up = false;

	spin_lock_irq(&path->state_lock);
	if (!path->at_once) {
		delay = rtrs_clt_backoff(READ_ONCE(clt->reconnect_ms),
					 READ_ONCE(clt->reconnect_max_ms),
					 path->failures);
		if (max >= 0 && path->failures >= max)
			given_up = rtrs_clt_path_move_locked(path,
							     RTRS_CLT_EV_STOP,
							     -ECONNABORTED);
	}
	path->at_once = false;
	if (path->state == RTRS_CLT_WAITING)
		mod_delayed_work(rtrs_clt_wq, &path->work,
				 msecs_to_jiffies(delay));
	spin_unlock_irq(&path->state_lock);
	if (given_up && max)
		pr_err("%s: could not be connected in %d tries, given up\n",
		       path->path.name, max);
}

static void rtrs_clt_path_work(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(to_delayed_work(work),
						  struct rtrs_clt_path, work);
	/* Who frees memory may wait for a request that waits for this path. */
	unsigned int noio = memalloc_noio_save();
	int ret = 0;

	if (rtrs_clt_path_move(path, RTRS_CLT_EV_DUE, 0)) {
		ret = rtrs_clt_path_try(path);
		if (ret)
			rtrs_clt_path_error(&path->path, ret, "connecting");
		else
			rtrs_clt_path_result(path, 0);
	}
	switch (READ_ONCE(path->state)) {
	case RTRS_CLT_ENDING:
	case RTRS_CLT_CLOSING:
		rtrs_clt_path_end(path);
		/* Shown even though it has never been up, so that it can be removed. */
		rtrs_clt_path_sysfs_add(path);
		if (ret)
			rtrs_clt_path_result(path, ret);
		rtrs_clt_path_retry(path);
		break;
	default:
		break;
	}
	memalloc_noio_restore(noio);
}

/**
 * rtrs_clt_path_want() - have a path connected, now
 * @path: the path
 *
 * Context: any.
 * Return: for rtrs_clt_path_tried(), to learn what comes of it.
 */
u32 rtrs_clt_path_want(struct rtrs_clt_path *path)
{
	u32 tries;

	spin_lock_irq(&path->state_lock);
	tries = path->tries;
	if (!path->gone) {
		path->failures = 0;
		path->at_once = true;
		if (path->state == RTRS_CLT_WAITING)
			mod_delayed_work(rtrs_clt_wq, &path->work, 0);
		rtrs_clt_path_move_locked(path, RTRS_CLT_EV_WANT, 0);
	}
	spin_unlock_irq(&path->state_lock);
	return tries;
}

/**
 * rtrs_clt_path_tried() - what has come of wanting a path?
 * @path: the path
 * @tries: from rtrs_clt_path_want()
 *
 * Return: -EINPROGRESS while it is tried, 0 if it is connected, why it couldn't be, or
 * -ECONNABORTED if somebody wanted it otherwise since.
 */
int rtrs_clt_path_tried(struct rtrs_clt_path *path, u32 tries)
{
	int ret = -EINPROGRESS;

	spin_lock_irq(&path->state_lock);
	if (path->state == RTRS_CLT_CONNECTED)
		ret = 0;
	else if (path->tries != tries)
		ret = path->result ?: -ECONNABORTED;
	else if (path->state == RTRS_CLT_IDLE)
		ret = -ECONNABORTED;
	spin_unlock_irq(&path->state_lock);
	return ret;
}

/**
 * rtrs_clt_path_await() - wait for what comes of wanting a path
 * @path: the path
 * @tries: from rtrs_clt_path_want()
 *
 * Context: process, may sleep.
 * Return: as rtrs_clt_path_tried(), but -EINTR for -EINPROGRESS.
 */
int rtrs_clt_path_await(struct rtrs_clt_path *path, u32 tries)
{
	int ret;

	while ((ret = rtrs_clt_path_tried(path, tries)) == -EINPROGRESS)
		if (wait_event_interruptible(path->wait,
					     rtrs_clt_path_tried(path, tries) !=
					     -EINPROGRESS))
			return -EINTR;
	return ret;
}

/**
 * rtrs_clt_path_reconnect() - connect a path, anew if it is connected
 * @path: the path
 *
 * Context: process, may sleep; any number of them at a time.
 * Return: 0 when it is connected, why it can't be, or -EINTR.
 */
int rtrs_clt_path_reconnect(struct rtrs_clt_path *path)
{
	u32 tries = rtrs_clt_path_want(path);

	if (READ_ONCE(path->state) == RTRS_CLT_CONNECTED &&
	    rtrs_clt_path_move(path, RTRS_CLT_EV_FAIL, -ECONNRESET))
		pr_info("%s: path is connected anew\n", path->path.name);
	return rtrs_clt_path_await(path, tries);
}

static bool rtrs_clt_path_down(struct rtrs_clt_path *path)
{
	enum rtrs_clt_state state = READ_ONCE(path->state);

	return state != RTRS_CLT_CLOSING && state != RTRS_CLT_ENDING;
}

/**
 * rtrs_clt_path_disconnect() - disconnect a path, until somebody wants it again
 * @path: the path
 *
 * Context: process, may sleep; any number of them at a time.
 * Return: 0 when it is disconnected, or -EINTR.
 */
int rtrs_clt_path_disconnect(struct rtrs_clt_path *path)
{
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	return wait_event_interruptible(path->wait, rtrs_clt_path_down(path)) ?
		-EINTR : 0;
}

static bool rtrs_clt_path_probe(struct rtrs_path *p)
{
	struct rtrs_clt_path *path = to_clt_path(p);
	bool ok = true;
	unsigned int i;

	for (i = 1; i < path->nr_cons; i++)
		ok &= rtrs_con_probe(&path->cons[i].con);
	return ok;
}

/**
 * rtrs_clt_path_create() - make a path of a session
 * @clt: the session
 * @addr: where it goes
 *
 * Return: the path, idle, or an ERR_PTR().
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
	path->path.probe = rtrs_clt_path_probe;
	path->path.hb = &clt->hb;
	rtrs_addr_format(addr, str, sizeof(str));
	snprintf(path->path.name, sizeof(path->path.name), "%s %s", clt->name,
		 str);
	uuid_gen(&path->uuid);
	INIT_LIST_HEAD(&path->entry);
	INIT_LIST_HEAD(&path->asks);
	spin_lock_init(&path->state_lock);
	init_waitqueue_head(&path->wait);
	INIT_DELAYED_WORK(&path->work, rtrs_clt_path_work);
	xa_init(&path->mrs);
	rtrs_clt_path_sysfs_init(path);
	return path;
}

/**
 * rtrs_clt_path_destroy() - end a path if need be, and drop it
 * @path: the path, taken out of its session's list by the caller
 *
 * Context: process, may sleep.
 */
void rtrs_clt_path_destroy(struct rtrs_clt_path *path)
{
	/* Who wants it from now on wants it in vain, but for those just at it. */
	spin_lock_irq(&path->state_lock);
	path->gone = true;
	spin_unlock_irq(&path->state_lock);
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	rtrs_clt_path_sysfs_hide(path);
	rtrs_clt_path_move(path, RTRS_CLT_EV_STOP, -ECONNABORTED);
	wait_event(path->wait, READ_ONCE(path->state) == RTRS_CLT_IDLE);
	cancel_delayed_work_sync(&path->work);
	kobject_put(&path->kobj);
}
