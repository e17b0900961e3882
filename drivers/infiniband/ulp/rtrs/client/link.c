// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Paths join their session and leave it; events tell the upper layer when the first one
 * has come and the last one has gone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "clt.h"

/* Sets the event to report. The next one has no effect before it has been reported. */
static void rtrs_clt_set_link(struct rtrs_clt *clt, enum rtrs_link_event ev)
{
	lockdep_assert_held(&clt->lock);
	clt->link.state = ev;
	queue_work(rtrs_clt_sess_wq, &clt->link.work);
}

/* An event has not been reported yet. */
static bool rtrs_clt_link_pending(const struct rtrs_clt *clt)
{
	const struct rtrs_clt_link *link = &clt->link;

	return link->opened && (link->notifying || link->reported != link->state);
}

/**
 * rtrs_clt_link_work() - report events to the upper layer
 * @work: &rtrs_clt_link.work of a session
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
 * rtrs_clt_same_session() - is a path in the same session as the others?
 * @path: path that has its INFO_RSP
 *
 * A server with fencing gives each session an ID. Without IDs, a server may have created
 * a new session for this path. If others are up, fail with -ESTALE; the retry joins
 * theirs.
 *
 * Context: under clt->lock; the session has paths.
 * Return: false if it is in another session, or may be.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_same_session(const struct rtrs_clt_path *path)
{
	if (path->neg.sess_id || path->clt->sess_id)
		return path->neg.sess_id == path->clt->sess_id;
	return !path->may_create;
}

/**
 * rtrs_clt_check_limits() - compare a path's limits with those of its session
 * @path: path that has negotiated; the first one of a session sets the limits, the others
 *	have to reach them
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
		limits->nr_poll_queues = clt->nr_poll_queues;
		limits->numa_node = ibdev_to_node(path->path.dev);
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

/* Return: 0 if a new path may take requests, -EAGAIN if it has to wait, or an errno. */
static int rtrs_clt_may_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	lockdep_assert_held(&clt->lock);
	if (clt->nr_up) {
		/* If this one is in a newer session, the others will end, and it is tried again. */
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

/* Adds a path to those that take requests, if it may; returns as rtrs_clt_may_link(). */
static int rtrs_clt_try_link(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	mutex_lock(&clt->lock);
	ret = rtrs_clt_may_link(path);
	if (ret)
		goto unlock;
	/* From here on an error takes it down again, as soon as this try is over. */
	if (!rtrs_clt_path_move(path, RTRS_CLT_EV_UP, 0)) {
		ret = -ECONNABORTED;
		goto unlock;
	}
	path->answered = rtrs_clt_nr_answered(path);
	ret = rtrs_clt_path_set_add(clt, path);
	if (ret)
		goto unlock;
	path->was_live = true;
	WRITE_ONCE(clt->sess_id, path->neg.sess_id);
	/* Waiters are woken by the path's result. */
	WRITE_ONCE(clt->nr_up, clt->nr_up + 1);
	if (clt->nr_up == 1) {
		rtrs_clt_first_path_up(clt);
		rtrs_clt_set_link(clt, RTRS_LINK_UP);
	}
unlock:
	mutex_unlock(&clt->lock);
	return ret;
}

/**
 * rtrs_clt_link_add() - let requests take a path
 * @path: path that has its INFO_RSP, slots and fence
 *
 * The first path of a session that has lost all paths takes no requests before the
 * upper layer knows of the loss, and before the lost paths are fenced: some of their
 * requests may have failed here, and have been repeated by their submitter.
 *
 * Context: the path's connect_work.
 * Return: 0, -ENOMEM, -EINVAL if the path can do less than the others, -ESTALE if it
 * is or may be in another session than they are, -ETIMEDOUT, or the path's error if it
 * has ended meanwhile.
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
	/* Fences and requests that have waited for a path. */
	rtrs_clt_kick_fencing(clt);
	rtrs_clt_resume(clt);
	return 0;
}

/**
 * rtrs_clt_link_del() - let no more requests take a path
 * @path: path that is ending; nothing is done if it doesn't take requests
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
		rtrs_clt_path_set_del(clt, path);
	mutex_unlock(&clt->lock);
	if (live)
		synchronize_rcu();
}

/**
 * rtrs_clt_wake_paths() - connect paths at once that wait to be tried again
 * @clt: session that has lost its last path
 * @lost: that path, which waits as set
 *
 * Context: process, under clt->lock.
 */
VISIBLE_IF_KUNIT void rtrs_clt_wake_paths(struct rtrs_clt *clt, struct rtrs_clt_path *lost)
{
	struct rtrs_clt_path *path;

	lockdep_assert_held(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry) {
		if (path == lost)
			continue;
		spin_lock_irq(&path->sm.lock);
		if (path->sm.state == RTRS_CLT_WAITING)
			mod_delayed_work(rtrs_clt_connect_wq, &path->sm.connect_work, 0);
		else
			/* If it fails now, it would wait as well. */
			path->sm.hurry = true;
		spin_unlock_irq(&path->sm.lock);
	}
}

/**
 * rtrs_clt_link_gone() - account for a path that has given back its requests
 * @path: path that is ending; nothing is done if it took no requests
 *
 * If it was the last one, failover.timeout counts from now on.
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
		rtrs_clt_wake_paths(clt, path);
		rtrs_clt_set_link(clt, RTRS_LINK_DOWN);
	}
	mutex_unlock(&clt->lock);
	/* One may have been lost with the path. */
	if (path->neg.features & RTRS_FEATURE_EVENT)
		clt->link.srv_event(clt->link.priv);
}
