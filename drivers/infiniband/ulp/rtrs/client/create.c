// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Creation of the session on the server, one path at a time.
 *
 * While a session has no connected path, one path at a time may request its creation: an
 * in-tree server (6.1) that two paths ask for that at the same time creates it twice, and
 * then uses memory that it has freed.
 */
#include "clt.h"

/* Also false if @create_expires was so long ago that it seems to come. */
static bool rtrs_clt_create_blocked(const struct rtrs_clt *clt)
{
	lockdep_assert_held(&clt->park_lock);
	return clt->create_owner && time_in_range(clt->create_expires, jiffies + 1, jiffies +
					    msecs_to_jiffies(RTRS_CLT_CREATE_MS));
}

/**
 * rtrs_clt_end_create() - a path doesn't ask for the session, or has got it
 * @path: a path after rtrs_clt_begin_create()
 *
 * Context: process.
 */
void rtrs_clt_end_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	spin_lock_irq(&clt->park_lock);
	if (clt->create_owner == path->id)
		clt->create_owner = 0;
	spin_unlock_irq(&clt->park_lock);
	wake_up_all(&clt->wait);
}

/**
 * rtrs_clt_create_accepted() - the server has given a path its first connection
 * @path: a path after rtrs_clt_read_rep()
 *
 * If the server has named the session, others may ask for it. If not, the next path
 * couldn't tell whether it is given the same one; so it waits, once more as long at most,
 * until this path is up, and then asks for no other.
 *
 * Context: process.
 */
void rtrs_clt_create_accepted(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;

	if (path->sess_id) {
		rtrs_clt_end_create(path);
		return;
	}
	spin_lock_irq(&clt->park_lock);
	if (clt->create_owner == path->id)
		WRITE_ONCE(clt->create_expires,
			   jiffies + msecs_to_jiffies(RTRS_CLT_CREATE_MS));
	spin_unlock_irq(&clt->park_lock);
}

/**
 * rtrs_clt_begin_create() - may a path ask the server for its first connection now?
 * @path: a path that is being connected
 *
 * If the session has no path, the server is to make it if need be. An in-tree server that
 * two paths ask for that at the same time makes it twice, and then uses memory that it has
 * freed (6.1). So each has its turn, in the order in which they came here, until it has got
 * the session, or has failed with nothing left unanswered, or for so long.
 *
 * Context: the path's work item; doesn't sleep.
 * Return: false if it has to wait. Else, if the path has the turn, @path->may_create is set.
 */
VISIBLE_IF_KUNIT bool rtrs_clt_begin_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	unsigned int ms = READ_ONCE(clt->sess_id) ? RTRS_CLT_SHORT_CREATE_MS :
						    RTRS_CLT_CREATE_MS;
	bool waits;

	spin_lock_irq(&clt->park_lock);
	/* Who was the last to have the turn has counted itself before it ended that. */
	waits = !READ_ONCE(clt->nr_up) &&
		READ_ONCE(path->state) == RTRS_CLT_CONNECTING;
	if (waits && clt->create_owner != path->id && list_empty(&path->create_entry))
		list_add_tail(&path->create_entry, &clt->create_waiters);
	if (waits && list_is_first(&path->create_entry, &clt->create_waiters) &&
	    !rtrs_clt_create_blocked(clt)) {
		clt->create_owner = path->id;
		WRITE_ONCE(clt->create_expires, jiffies + msecs_to_jiffies(ms));
	}
	path->may_create = waits && clt->create_owner == path->id;
	if (!waits || path->may_create)
		list_del_init(&path->create_entry);
	spin_unlock_irq(&clt->park_lock);
	return !waits || path->may_create;
}

/**
 * rtrs_clt_wait_create() - wait until a path may ask the server for its first connection
 * @path: a path that is being connected
 *
 * Context: the path's work item.
 * Return: 0, or why the path ended meanwhile.
 */
int rtrs_clt_wait_create(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	long left;
	int ret;

	do {
		left = READ_ONCE(clt->create_expires) - jiffies;
		left = clamp(left, 1L, (long)msecs_to_jiffies(RTRS_CLT_CREATE_MS));
	} while (!wait_event_idle_timeout(clt->wait, rtrs_clt_begin_create(path),
					  left));
	/* It may have been stopped meanwhile. */
	ret = rtrs_clt_path_wait(path, 0);
	if (ret)
		rtrs_clt_end_create(path);
	return ret;
}
