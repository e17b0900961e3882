// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Paths join their session and leave it, and the upper layer hears when the first one
 * has come and the last one has gone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/* The upper layer hears of each change before the next one can have an effect. */
static void rtrs_clt_set_link(struct rtrs_clt *clt, enum rtrs_link_event ev)
{
	lockdep_assert_held(&clt->lock);
	clt->link.state = ev;
	queue_work(rtrs_clt_sess_wq, &clt->link.work);
}

/* The upper layer has yet to hear of a change. */
static bool rtrs_clt_link_pending(const struct rtrs_clt *clt)
{
	const struct rtrs_clt_link *link = &clt->link;

	return link->opened && (link->notifying || link->reported != link->state);
}

/**
 * rtrs_clt_link_work() - tell the upper layer what became of the session
 * @work: in the session
 */
void rtrs_clt_link_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(work, struct rtrs_clt, link.work);
	enum rtrs_link_event ev;

	mutex_lock(&clt->lock);
	while (clt->link.opened && clt->link.reported != clt->link.state) {
		ev = clt->link.state;
		clt->link.notifying = true;
		mutex_unlock(&clt->lock);
		clt->link.event(clt->link.priv, ev);
		mutex_lock(&clt->lock);
		clt->link.notifying = false;
		clt->link.reported = ev;
	}
	mutex_unlock(&clt->lock);
}

/**
 * rtrs_clt_same_session() - does a path lead to the session that the others are in?
 * @path: the path, connected
 *
 * A server with fencing gives each session an ID. Without IDs, a server may have created
 * a new session for this path. If others are up, fail with -ESTALE; the retry joins
 * theirs.
 *
 * Context: under clt->lock; the session has paths.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_same_session(const struct rtrs_clt_path *path)
{
	if (path->neg.sess_id || path->clt->sess_id)
		return path->neg.sess_id == path->clt->sess_id;
	return !path->may_create;
}

/**
 * rtrs_clt_check_limits() - can a path do what its session needs?
 * @path: the path; a session's first one sets the limits, the others have to
 *	reach them
 *
 * Context: under clt->lock.
 * Return: 0 or -EINVAL.
 */
VISIBLE_IF_KUNIT int rtrs_clt_check_limits(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_clt_limits *limits = &clt->limits;

	if (!clt->have_limits) {
		limits->queue_depth = path->neg.nr_slots;
		limits->max_io_size = path->neg.max_io_size;
		limits->max_segments = path->neg.max_segments;
		limits->nr_queues = clt->nr_queues;
		clt->have_limits = true;
		return 0;
	}
	if (path->neg.nr_slots >= limits->queue_depth &&
	    path->neg.max_io_size >= limits->max_io_size &&
	    path->neg.max_segments >= limits->max_segments)
		return 0;
	rtrs_clt_err(clt, "%s: the path can do less than the session's first path: queue depth %u of %u, %u of %u bytes, %u of %u segments per I/O\n",
		     path->path.name, path->neg.nr_slots, limits->queue_depth,
	       path->neg.max_io_size, limits->max_io_size,
	       path->neg.max_segments, limits->max_segments);
	return -EINVAL;
}

/*
 * Whether nothing stands against requests on a new path: -EAGAIN if something does
 * that is to be waited for.
 */
static int rtrs_clt_may_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	lockdep_assert_held(&clt->lock);
	if (clt->nr_up) {
		/* The others' session may be one that the server has lost, so they end. */
		if (!rtrs_clt_same_session(path))
			return -ESTALE;
	} else if (rtrs_clt_link_pending(clt)) {
		return -EAGAIN;
	} else if (rtrs_clt_unfenced(clt)) {
		return -EAGAIN;
	}
	return rtrs_clt_check_limits(path);
}

/* How many requests the server has answered over a path, ever. */
static u64 rtrs_clt_nr_answered(const struct rtrs_clt_path *path)
{
	u64 done = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		done += READ_ONCE(per_cpu_ptr(path->stats.cpu, cpu)->done);
	return done - path->stats.reclaimed;
}

/* What requests need is there; the first path begins a session with the server. */
static int rtrs_clt_try_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	mutex_lock(&clt->lock);
	ret = rtrs_clt_may_link(path);
	if (ret)
		goto unlock;
	/* From here on an error takes it down again, in the work item that we are in. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_UP, 0)) {
		ret = -ECONNABORTED;
		goto unlock;
	}
	ret = rtrs_clt_path_set_replace(clt, path, NULL);
	if (ret)
		goto unlock;
	rtrs_hb_start(&path->path, &path->cons[0].con);
	path->was_live = true;
	path->answered = rtrs_clt_nr_answered(path);
	WRITE_ONCE(clt->sess_id, path->neg.sess_id);
	/* Waiters are woken by the path's result. */
	WRITE_ONCE(clt->nr_up, clt->nr_up + 1);
	if (clt->nr_up == 1) {
		clt->failover.answered = false;
		rtrs_clt_arm_failover_timer(clt);
		rtrs_clt_set_link(clt, RTRS_LINK_UP);
	}
unlock:
	mutex_unlock(&clt->lock);
	return ret;
}

/**
 * rtrs_clt_link_add() - a path is connected: let requests take it
 * @path: the path
 *
 * The first one of a session that has lost all paths does not take any before the
 * upper layer has heard of that, and before what the lost ones have left behind on the
 * server is over: some of it may have failed here, and been made up for.
 *
 * Context: the path's work item.
 * Return: 0, -ENOMEM, -EINVAL if the path can do less than the others, -ESTALE if it
 * leads to another session than they do, or may, -ETIMEDOUT, or why it ended meanwhile.
 */
int rtrs_clt_link_add(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	while ((ret = rtrs_clt_try_link(path)) == -EAGAIN) {
		flush_work(&clt->link.work);
		ret = rtrs_clt_fence_via(path);
		if (ret)
			return ret;
	}
	if (ret)
		return ret;
	/* What has waited for a path. */
	rtrs_clt_kick_fencing(clt);
	rtrs_clt_resume(clt);
	return 0;
}

/**
 * rtrs_clt_link_del() - let no more requests take a path
 * @path: the path, whether it took any or not
 *
 * On return no rtrs_clt_submit() is on its way to it.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_link_del(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	bool live;

	mutex_lock(&clt->lock);
	live = rtrs_clt_is_live(path);
	if (live)
		rtrs_clt_path_set_replace(clt, NULL, path);
	mutex_unlock(&clt->lock);
	if (live)
		synchronize_rcu();
}

/**
 * rtrs_clt_link_gone() - a path has let go of its requests
 * @path: the path, whether it took any or not
 *
 * If it was the last one, this is the moment from which they wait for a path.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_link_gone(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	if (!path->was_live)
		return;
	path->was_live = false;
	mutex_lock(&clt->lock);
	clt->failover.answered |= rtrs_clt_nr_answered(path) != path->answered;
	WRITE_ONCE(clt->nr_up, clt->nr_up - 1);
	if (!clt->nr_up) {
		rtrs_clt_all_paths_lost(clt);
		rtrs_clt_set_link(clt, RTRS_LINK_DOWN);
	}
	mutex_unlock(&clt->lock);
}
