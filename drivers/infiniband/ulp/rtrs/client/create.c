// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Creation of the session on the server, one path at a time.
 *
 * While a session has no connected path, only one path at a time may request its creation. If two
 * paths request it at the same time, an in-tree server (Linux 6.1) creates the session twice, and
 * then uses memory after freeing it.
 */
#include "clt.h"

/*
 * Returns true while a path owns creation and has not timed out. Also returns false if jiffies have
 * wrapped since create.expires, so that this time seems to be in the future.
 */
static bool rtrs_clt_create_blocked(const struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->create.lock);
	return clt->create.owner &&
	       time_in_range(clt->create.expires, jiffies + 1,
			     jiffies + msecs_to_jiffies(RTRS_CLT_CREATE_MS));
}

/**
 * rtrs_clt_end_create() - release creation, so that the next path can own it
 * @path: path that is connected or has no unanswered request; nothing is done unless it owns
 *	creation
 *
 * Context: process.
 */
void rtrs_clt_end_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	spin_lock_irq(&clt->create.lock);
	if (clt->create.owner == path->path.id)
		clt->create.owner = 0;
	spin_unlock_irq(&clt->create.lock);
	wake_up_all(&clt->wait);
}

/**
 * rtrs_clt_create_accepted() - handle the accept of a request for connection 0
 * @path: path of the connection, after rtrs_clt_parse_rep()
 *
 * If the server has sent a session ID, creation is released. Without an ID, the next path could not
 * check that it joins the same session. So it waits until this path is connected, or until
 * RTRS_CLT_CREATE_MS have passed again.
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
	if (clt->create.owner == path->path.id)
		WRITE_ONCE(clt->create.expires,
			   jiffies + msecs_to_jiffies(RTRS_CLT_CREATE_MS));
	spin_unlock_irq(&clt->create.lock);
}

/**
 * rtrs_clt_begin_create() - check whether a path may request its connection 0 now
 * @path: path that is being connected
 *
 * While the session has no connected path, a request may create the session on the server. Then
 * only one path at a time may send a request, in the order of their first call of this function.
 * The path owns creation until it is connected, has failed without an unanswered request, or has
 * timed out.
 *
 * Context: the path's connect_work; doesn't sleep.
 * Return: false if the path must wait. If true, @path->may_create is set if it owns creation.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_begin_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	unsigned int ms = READ_ONCE(clt->sess_id) ? RTRS_CLT_SHORT_CREATE_MS :
						    RTRS_CLT_CREATE_MS;
	bool waits;

	spin_lock_irq(&clt->create.lock);
	/* A successful owner increments nr_up before it releases creation. */
	waits = !READ_ONCE(clt->nr_up) &&
		READ_ONCE(path->sm.state) == RTRS_CLT_CONNECTING;
	if (waits && clt->create.owner != path->path.id && list_empty(&path->create_entry))
		list_add_tail(&path->create_entry, &clt->create.waiters);
	if (waits && list_is_first(&path->create_entry, &clt->create.waiters) &&
	    !rtrs_clt_create_blocked(clt)) {
		clt->create.owner = path->path.id;
		WRITE_ONCE(clt->create.expires, jiffies + msecs_to_jiffies(ms));
	}
	path->may_create = waits && clt->create.owner == path->path.id;
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
	/* The path may have been stopped meanwhile. */
	ret = rtrs_clt_path_wait(path, 0);
	if (ret)
		rtrs_clt_end_create(path);
	return ret;
}

/**
 * rtrs_clt_create_init() - initialize the fields used by create.c
 * @clt: a new session
 */
void rtrs_clt_create_init(struct rtrs_clt *clt)
{
	spin_lock_init(&clt->create.lock);
	INIT_LIST_HEAD(&clt->create.waiters);
}
