// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Creation of the session on the server, one path at a time.
 *
 * While a session has no connected path, one path at a time may request its creation: an
 * in-tree server (6.1) that two paths ask for that at the same time creates it twice, and
 * then uses memory that it has freed.
 */
#include "clt.h"

/* False also when jiffies have wrapped since create.expires, so that it seems to be ahead. */
static bool rtrs_clt_create_blocked(const struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->create.lock);
	return clt->create.owner &&
	       time_in_range(clt->create.expires, jiffies + 1,
			     jiffies + msecs_to_jiffies(RTRS_CLT_CREATE_MS));
}

/**
 * rtrs_clt_end_create() - let the next path request creation
 * @path: path that is connected, or that has no unanswered request. Nothing is done if it
 *	doesn't own creation
 *
 * Context: process.
 */
void rtrs_clt_end_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	spin_lock_irq(&clt->create.lock);
	if (clt->create.owner == path->neg.id)
		clt->create.owner = 0;
	spin_unlock_irq(&clt->create.lock);
	wake_up_all(&clt->wait);
}

/**
 * rtrs_clt_create_accepted() - account for an accepted request for connection 0
 * @path: path of the connection, after rtrs_clt_read_rep()
 *
 * If the server has sent an ID of the session, other paths may request it. Without an ID
 * the next path couldn't tell whether it joins the same session. So it waits until this
 * path is up and joins its session, or until RTRS_CLT_CREATE_MS have passed again.
 *
 * Context: process.
 */
void rtrs_clt_create_accepted(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	if (path->neg.sess_id) {
		rtrs_clt_end_create(path);
		return;
	}
	spin_lock_irq(&clt->create.lock);
	if (clt->create.owner == path->neg.id)
		WRITE_ONCE(clt->create.expires,
			   jiffies + msecs_to_jiffies(RTRS_CLT_CREATE_MS));
	spin_unlock_irq(&clt->create.lock);
}

/**
 * rtrs_clt_begin_create() - may a path request its connection 0 now?
 * @path: path that is being connected
 *
 * While the session has no connected path, a request makes the server create it if need
 * be, and one path at a time may send that, in the order in which they came here. The
 * path owns creation until it is up, or has failed with nothing left unanswered, or
 * until that has taken too long.
 *
 * Context: the path's connect_work; doesn't sleep.
 * Return: false if it has to wait. Else @path->may_create says whether it owns creation.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_begin_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	unsigned int ms = READ_ONCE(clt->sess_id) ? RTRS_CLT_SHORT_CREATE_MS :
						    RTRS_CLT_CREATE_MS;
	bool waits;

	spin_lock_irq(&clt->create.lock);
	/* A successful creator bumps nr_up before releasing creation. */
	waits = !READ_ONCE(clt->nr_up) &&
		READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTING;
	if (waits && clt->create.owner != path->neg.id && list_empty(&path->create_entry))
		list_add_tail(&path->create_entry, &clt->create.waiters);
	if (waits && list_is_first(&path->create_entry, &clt->create.waiters) &&
	    !rtrs_clt_create_blocked(clt)) {
		clt->create.owner = path->neg.id;
		WRITE_ONCE(clt->create.expires, jiffies + msecs_to_jiffies(ms));
	}
	path->may_create = waits && clt->create.owner == path->neg.id;
	if (!waits || path->may_create)
		list_del_init(&path->create_entry);
	spin_unlock_irq(&clt->create.lock);
	return !waits || path->may_create;
}

/**
 * rtrs_clt_wait_create() - wait until a path may request its connection 0
 * @path: path that is being connected
 *
 * Context: the path's connect_work.
 * Return: 0, or the path's error if it has ended meanwhile.
 */
int rtrs_clt_wait_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	long left;
	int ret;

	do {
		left = READ_ONCE(clt->create.expires) - jiffies;
		left = clamp(left, 1L, (long)msecs_to_jiffies(RTRS_CLT_CREATE_MS));
	} while (!wait_event_idle_timeout(clt->wait, rtrs_clt_begin_create(path),
					  left));
	/* It may have been stopped meanwhile. */
	ret = rtrs_clt_path_wait(path, 0);
	if (ret)
		rtrs_clt_end_create(path);
	return ret;
}

/**
 * rtrs_clt_create_init() - prepare a session for being created
 * @clt: a new session
 */
void rtrs_clt_create_init(struct rtrs_clt *clt)
{
	spin_lock_init(&clt->create.lock);
	INIT_LIST_HEAD(&clt->create.waiters);
}
