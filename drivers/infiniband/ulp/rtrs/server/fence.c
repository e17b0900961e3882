// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fencing: the client has given up a path. Over another one it asks the server to end it
 * (FENCE), and is told when it is dead (FENCED). Then it can send requests that were in
 * flight on the dead path again.
 *
 * The path is ended as for any other reason, and nothing waits for that: the path that
 * FENCE came on keeps the id, and the closing work of the path with that id answers once
 *
 * - its queue pairs are in the error state and drained, so that packets that the
 *   network still delivers are dropped;
 * - each request that came on it is finished, and its slot free.
 *
 * All of it happens under the lock of the session's paths, so no client waits for what another
 * one has rtrs_srv_lock for.
 *
 * If a client lets two paths fence each other, both end: a path that ends drops the FENCE
 * that came on it.
 *
 * An id that is not found in the session is dead as well:
 *
 * - A path that has left the list has finished all of the above. A session without
 *   paths is never found again: its client gets a new session, and no INFO_RSP there
 *   before the old one is gone. So the answer holds for paths of the old session, too.
 * - A path whose connection request comes after the FENCE is harmless: requests are
 *   taken only after INFO_RSP, which is sent when all connections of the path are
 *   established. A client without INFO_RSP has sent no request that it could repeat.
 */
#include "srv.h"
#include "trace.h"

/**
 * rtrs_srv_path_by_id() - look up a path of a session by its id
 * @sess: session to search
 * @id: rtrs_srv_path.path_id to find, not 0
 *
 * Context: under &sess->paths_lock or rtrs_srv_lock.
 * Return: the path, or NULL.
 */
struct rtrs_srv_path *rtrs_srv_path_by_id(struct rtrs_srv_sess *sess, u32 id)
{
	struct rtrs_srv_path *path;

	lockdep_assert(lockdep_is_held(&sess->paths_lock) || lockdep_is_held(&rtrs_srv_lock));
	list_for_each_entry(path, &sess->paths, entry)
		if (path->path_id == id)
			return path;
	return NULL;
}

/* A FENCE is open on @path, so its connection 0 isn't drained yet. */
static void rtrs_srv_fence_answer(struct rtrs_srv_path *path)
{
	u32 id = path->fence.target;

	lockdep_assert_held(&path->sess->paths_lock);
	trace_rtrs_srv_fenced(path, id);
	/* First, since the client may ask again as soon as it has the answer. */
	smp_store_release(&path->fence.target, 0);
	if (rtrs_con_post_imm(&path->conns.con[0]->con,
			      rtrs_imm(RTRS_IMM_FENCED, id)))
		rtrs_srv_path_error(&path->path, -EBUSY, "no room to answer a FENCE");
}

/**
 * rtrs_srv_fence_work() - end the path that a FENCE names, or answer if it is dead
 * @work: &rtrs_srv_fence.work of the path that the FENCE came on
 */
void rtrs_srv_fence_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  fence.work);
	struct rtrs_srv_path *target;
	u32 id;

	mutex_lock(&path->sess->paths_lock);
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
	mutex_unlock(&path->sess->paths_lock);
}

/**
 * rtrs_srv_fence_recv() - handle a FENCE
 * @con: connection that it came on
 * @id: its payload, the id of the path to end
 *
 * Context: handler of a receive's completion, on a connected path.
 * Return: false if the client violates the protocol by it.
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
	/* Not on the queue that sets paths up, where work may wait for long. */
	queue_work(system_dfl_wq, &path->fence.work);
	return true;
}

/**
 * rtrs_srv_fence_drop() - drop the FENCE that came on a path, if it isn't answered
 * @path: path that is closing, and receives nothing any more
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fence_drop(struct rtrs_srv_path *path)
{
	cancel_work_sync(&path->fence.work);
	mutex_lock(&path->sess->paths_lock);
	path->fence.target = 0;
	mutex_unlock(&path->sess->paths_lock);
}

/**
 * rtrs_srv_fence_done() - answer the FENCE that names a path
 * @path: path that is dead: it receives nothing any more, and its requests are finished
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fence_done(struct rtrs_srv_path *path)
{
	struct rtrs_srv_path *other;

	mutex_lock(&path->sess->paths_lock);
	path->fence.dead = true;
	if (path->path_id)
		list_for_each_entry(other, &path->sess->paths, entry)
			if (READ_ONCE(other->fence.target) == path->path_id)
				rtrs_srv_fence_answer(other);
	mutex_unlock(&path->sess->paths_lock);
}
