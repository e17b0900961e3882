// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Paths are added to their session and removed from it. Events report to the upper layer when the
 * first path is added and the last one is removed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/*
 * Returns true if the state of the session is still to be reported. DOWN is always reported, since
 * rtrs_clt_may_link() waits for it. If a path is lost before UP has been reported, neither is
 * reported.
 */
static bool rtrs_clt_link_pending(const struct rtrs_clt *clt)
{
	switch (clt->link.reported) {
	case RTRS_CLT_REPORT_NONE:
		return false;
	case RTRS_CLT_REPORTING:
		return true;
	case RTRS_CLT_REPORTED_UP:
		return !rtrs_clt_sess_has_path(clt);
	case RTRS_CLT_REPORTED_DOWN:
		return rtrs_clt_sess_has_path(clt);
	}
	return false;
}

/**
 * rtrs_clt_link_work() - report events to the upper layer
 * @work: &rtrs_clt_link.work of a session
 */
void rtrs_clt_link_work(struct work_struct *work)
{
	struct rtrs_clt *clt = container_of(work, struct rtrs_clt, link.work);
	bool up;

	mutex_lock(&clt->lock);
	while (rtrs_clt_link_pending(clt)) {
		up = rtrs_clt_sess_has_path(clt);
		clt->link.reported = RTRS_CLT_REPORTING;
		mutex_unlock(&clt->lock);
		clt->link.event(clt->link.priv, up ? RTRS_LINK_UP : RTRS_LINK_DOWN);
		mutex_lock(&clt->lock);
		/* The session may be closing by now. */
		if (clt->link.reported == RTRS_CLT_REPORTING)
			clt->link.reported = up ? RTRS_CLT_REPORTED_UP : RTRS_CLT_REPORTED_DOWN;
	}
	mutex_unlock(&clt->lock);
}

/**
 * rtrs_clt_same_session() - check whether a path is in the same session as the others
 * @path: path that has received INFO_RSP
 *
 * A server with fencing assigns an ID to each session. Without IDs, a server that was allowed to
 * create a session for this path may have done so while other paths were connected. The attempt
 * then fails with -ESTALE, and the next one joins the other paths' session.
 *
 * Context: under clt->lock; the session has paths.
 * Return: false if the path is in another session, or may be.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_same_session(const struct rtrs_clt_path *path)
{
	if (path->neg.sess_id || path->clt->sess_id)
		return path->neg.sess_id == path->clt->sess_id;
	return !path->may_create;
}

/**
 * rtrs_clt_set_limits() - set the limits of a session by its first path
 * @path: path that is connected. Later paths change nothing
 *
 * Context: under clt->lock.
 */
VISIBLE_IF_KUNIT void rtrs_clt_set_limits(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	if (clt->have_limits)
		return;
	clt->limits = (struct rtrs_clt_limits) {
		.queue_depth	= path->neg.nr_slots,
		.max_io_size	= path->neg.max_io_size,
		.max_segments	= path->neg.max_segments,
		.nr_queues	= clt->nr_queues,
		.nr_poll_queues	= clt->nr_poll_queues,
		.numa_node	= ibdev_to_node(path->path.dev),
	};
	clt->have_limits = true;
}

/**
 * rtrs_clt_check_limits() - compare a path's limits with those of its session
 * @path: path after negotiation. Its limits must not be lower than the limits of the session's
 *	first path
 *
 * Context: under clt->lock.
 * Return: 0 or -EINVAL.
 */
VISIBLE_IF_KUNIT int rtrs_clt_check_limits(const struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	const struct rtrs_clt_limits *limits = &clt->limits;

	if (!clt->have_limits ||
	    (path->neg.nr_slots >= limits->queue_depth &&
	     path->neg.max_io_size >= limits->max_io_size &&
	     path->neg.max_segments >= limits->max_segments))
		return 0;
	rtrs_path_err(&path->path, "the path has lower limits than the session's first path: queue depth %u of %u, %u of %u bytes, %u of %u segments per I/O\n",
		      path->neg.nr_slots, limits->queue_depth, path->neg.max_io_size,
		      limits->max_io_size, path->neg.max_segments, limits->max_segments);
	return -EINVAL;
}

/* Returns 0 if a new path may accept requests, -EAGAIN if it must wait, or an errno. */
static int rtrs_clt_may_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	lockdep_assert_held(&clt->lock);
	/*
	 * If this path is in a newer session, the others will end, and this path is connected
	 * again.
	 */
	if (clt->nr_up && !rtrs_clt_same_session(path))
		return -ESTALE;
	if (!clt->nr_up && rtrs_clt_link_pending(clt))
		return -EAGAIN;
	ret = rtrs_clt_check_limits(path) ?: rtrs_clt_path_failed(path);
	if (ret || clt->nr_up)
		return ret;
	return rtrs_clt_allow_first_path(clt) ? 0 : -EAGAIN;
}

/* Returns the number of requests that the server has ever answered over a path. */
static u64 rtrs_clt_nr_answered(const struct rtrs_clt_path *path)
{
	struct rtrs_stats sum;

	rtrs_stats_sum(&path->path, &sum);
	return sum.done - path->stats.reclaimed;
}

/*
 * Adds a path to the array of paths that accept requests, if allowed. Returns as
 * rtrs_clt_may_link().
 */
static int rtrs_clt_try_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt_path_set *set;
	struct rtrs_clt *clt = path->clt;
	int ret;

	mutex_lock(&clt->lock);
	/* Waiters act as soon as they see the new state, so nothing may fail after the change. */
	ret = -ENOMEM;
	set = rtrs_clt_path_set_alloc(path);
	if (!set)
		goto unlock;
	ret = rtrs_clt_may_link(path);
	if (ret)
		goto free;
	/* From here on, an error disconnects the path, as soon as this attempt is over. */
	ret = -ECONNABORTED;
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_UP, 0)) {
		if (!clt->nr_up)
			rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_LOST);
		goto free;
	}
	path->answered = rtrs_clt_nr_answered(path);
	rtrs_clt_path_set_add(clt, path, set);
	rtrs_clt_set_limits(path);
	WRITE_ONCE(clt->sess_id, path->neg.sess_id);
	/* Waiters for nr_up are woken by rtrs_clt_path_result(). */
	WRITE_ONCE(clt->nr_up, clt->nr_up + 1);
	if (clt->nr_up == 1) {
		clt->tag = path->neg.tag;
		rtrs_clt_first_path_up(clt);
	}
	mutex_unlock(&clt->lock);
	return 0;

free:
	rtrs_clt_path_set_free(path, set);
unlock:
	mutex_unlock(&clt->lock);
	return ret;
}

/**
 * rtrs_clt_link_add() - make a path accept requests
 * @path: path that has received INFO_RSP, with slots and fence
 *
 * If a session has lost all paths, its first path accepts no requests until the upper layer has
 * been informed of the loss, and until dead paths with failed requests are fenced, as the submitter
 * may repeat these requests.
 *
 * Context: the path's connect_work.
 * Return: 0; -ENOMEM; -EINVAL if the path has lower limits than the session; -ESTALE if it is or
 * may be in another session than the other paths; or an errno of rtrs_clt_fence_via().
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
	/* Fence dead paths, and send requests that have waited for a path. */
	rtrs_clt_kick_fencing(clt);
	rtrs_clt_resume(clt);
	return 0;
}

/**
 * rtrs_clt_link_del() - make a path accept no more requests
 * @path: path that is ending; nothing is done if it doesn't accept requests
 *
 * On return no rtrs_clt_submit() is sending over the path.
 *
 * Context: process, may sleep.
 * Return: true if the path accepted requests; rtrs_clt_link_gone() must follow.
 */
bool rtrs_clt_link_del(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	bool live;

	mutex_lock(&clt->lock);
	live = rtrs_clt_is_live(path);
	if (live)
		rtrs_clt_path_set_del(clt, path);
	mutex_unlock(&clt->lock);
	if (live)
		synchronize_rcu();
	return live;
}

/**
 * rtrs_clt_wake_paths() - connect waiting paths without further delay
 * @clt: session that has lost its last path
 * @lost: that path, whose delay is unchanged
 *
 * Nothing is done if the path was lost soon after it was connected, and not for the first time:
 * a server that accepts paths and drops them must not be contacted without delay again and again.
 *
 * Context: process, under clt->lock.
 */
VISIBLE_IF_KUNIT void rtrs_clt_wake_paths(struct rtrs_clt *clt, struct rtrs_clt_path *lost)
{
	struct rtrs_clt_path *path;

	lockdep_assert_held(&clt->lock);
	if (READ_ONCE(lost->sm.short_lives))
		return;
	list_for_each_entry(path, &clt->paths, entry) {
		if (path == lost)
			continue;
		spin_lock_irq(&path->sm.lock);
		path->sm.hurry = true;
		rtrs_clt_path_queue_attempt(path);
		spin_unlock_irq(&path->sm.lock);
	}
}

/**
 * rtrs_clt_link_gone() - account for a path whose requests have been reclaimed
 * @path: path that is ending, for which rtrs_clt_link_del() returned true
 *
 * If this was the last path, requests wait, subject to failover.timeout, from now on.
 *
 * Context: process, may sleep.
 */
void rtrs_clt_link_gone(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	mutex_lock(&clt->lock);
	if (rtrs_clt_nr_answered(path) != path->answered)
		rtrs_clt_sess_move(clt, RTRS_CLT_SESS_EV_ANSWER);
	WRITE_ONCE(clt->nr_up, clt->nr_up - 1);
	if (!clt->nr_up) {
		rtrs_clt_all_paths_lost(clt);
		rtrs_clt_wake_paths(clt, path);
	}
	mutex_unlock(&clt->lock);
	/* An event from the server may have been lost with the path. */
	if (path->path.features & RTRS_FEATURE_EVENT)
		clt->link.srv_event(clt->link.priv);
}
