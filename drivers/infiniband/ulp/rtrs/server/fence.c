// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fencing: the client has given up a path, and asks over another one of the session
 * to be told when it is dead, so that it can repeat elsewhere what was in flight
 * there. The path is ended as for any other reason. Nobody waits for that: a path
 * keeps in mind which one its client asks for, and that one's closing work looks
 * who does, once it has made sure that
 *
 * - its queue pairs are in the error state and drained, so that whatever the network
 *   still delivers is not taken;
 * - each request that was taken is finished, and its slot free.
 *
 * So two paths whose client has them fence each other just end, and a path that ends
 * with a question open drops it.
 *
 * A path that isn't in the session's list is dead: it leaves after that, and a session
 * without paths is never found again: its client gets another one, but no INFO_RSP
 * there before this one is gone. A path whose connection request comes only after
 * the question isn't known yet, but can do no harm either: a request is taken only
 * after INFO_RSP was on its way, for which all of the path's connections must have
 * been there. A client that has had no INFO_RSP of a path has sent nothing there
 * that it could repeat.
 */
#include "srv.h"
#include "trace.h"

/**
 * rtrs_srv_path_by_id() - look a path of a session up by its id
 * @sess: the session
 * @id: its id, not 0
 *
 * Context: under rtrs_srv_lock.
 * Return: the path, or NULL.
 */
struct rtrs_srv_path *rtrs_srv_path_by_id(struct rtrs_srv_sess *sess, u32 id)
{
	struct rtrs_srv_path *path;

	lockdep_assert_held(&rtrs_srv_lock);
	list_for_each_entry(path, &sess->paths, entry)
		if (path->path_id == id)
			return path;
	return NULL;
}

/* @path has an open question, so its connection 0 isn't drained yet. */
static void rtrs_srv_fence_answer(struct rtrs_srv_path *path)
{
	u32 id = path->fence.target;

	lockdep_assert_held(&rtrs_srv_lock);
	trace_rtrs_srv_fenced(path, id);
	/* First, since the client may ask again as soon as it has the answer. */
	smp_store_release(&path->fence.target, 0);
	if (rtrs_con_post_imm(&path->conns.con[0]->con,
			      rtrs_imm(RTRS_IMM_FENCED, id)))
		rtrs_srv_path_error(&path->path, -EBUSY, "no room to answer a FENCE");
}

/**
 * rtrs_srv_fence_work() - end the path that is asked for, or say that it is dead
 * @work: in the path that the question came on
 */
void rtrs_srv_fence_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  fence.work);
	struct rtrs_srv_path *target;
	u32 id;

	mutex_lock(&rtrs_srv_lock);
	/* It may have been answered already, if the path was dying by itself. */
	id = READ_ONCE(path->fence.target);
	if (id) {
		target = rtrs_srv_path_by_id(path->sess, id);
		if (target && !target->fence.dead)
			rtrs_srv_path_error(&target->path, -ECONNRESET,
					    "the client has given it up");
		else
			rtrs_srv_fence_answer(path);
	}
	mutex_unlock(&rtrs_srv_lock);
}

/**
 * rtrs_srv_fence_recv() - a FENCE came
 * @con: where
 * @id: of the path that is to end
 *
 * Context: handler of a receive's completion, on a connected path.
 * Return: false if a client would never do that.
 */
bool rtrs_srv_fence_recv(struct rtrs_srv_con *con, u32 id)
{
	struct rtrs_srv_path *path = con->path;

	if (con->con.cid || !(path->features & RTRS_FEATURE_FENCE) || !id ||
	    id == path->path_id)
		return false;
	/* Pairs with rtrs_srv_fence_answer(). */
	if (cmpxchg(&path->fence.target, 0, id))
		return false;
	trace_rtrs_srv_fence(path, id);
	/* Not where paths are set up: those may wait for others, for long. */
	queue_work(system_unbound_wq, &path->fence.work);
	return true;
}

/**
 * rtrs_srv_fence_drop() - drop the question that is open on a path, if one is
 * @path: a path that is closing; it receives nothing any more
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fence_drop(struct rtrs_srv_path *path)
{
	cancel_work_sync(&path->fence.work);
	mutex_lock(&rtrs_srv_lock);
	path->fence.target = 0;
	mutex_unlock(&rtrs_srv_lock);
}

/**
 * rtrs_srv_fence_done() - a path is dead: tell those who ask for it
 * @path: the path; it takes nothing any more, and no request is in hand
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fence_done(struct rtrs_srv_path *path)
{
	struct rtrs_srv_path *other;

	mutex_lock(&rtrs_srv_lock);
	path->fence.dead = true;
	if (path->path_id)
		list_for_each_entry(other, &path->sess->paths, entry)
			if (READ_ONCE(other->fence.target) == path->path_id)
				rtrs_srv_fence_answer(other);
	mutex_unlock(&rtrs_srv_lock);
}
