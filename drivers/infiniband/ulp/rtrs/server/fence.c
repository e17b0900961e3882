// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fencing. A client that has given up a path sends a FENCE over another path, by which it asks the
 * server to end the first path. When that path is dead, the server answers with FENCED. Then the
 * client can resend the requests that were in flight on the dead path.
 *
 * The path ends as for any other reason, and no work item waits for that. The path that received
 * the FENCE stores the id. The closing work of the path with that id sends FENCED when
 *
 * - its queue pairs are in the error state and drained, so packets that the network still delivers
 *   are dropped;
 * - all requests that arrived on it are finished, and their slots are released.
 *
 * All of this happens under the lock of the session's paths, so no client waits for other clients
 * that hold rtrs_srv_lock.
 *
 * If a client lets two paths fence each other, both end: a closing path drops the FENCE that it
 * received.
 *
 * If the session has no path with the id, the path counts as dead:
 *
 * - A path that has left the session's list has completed all of the above. A session without paths
 *   is never found again: its client gets a new session, which receives no INFO_RSP before the old
 *   session is freed. So the answer also holds for paths of the old session.
 * - If the connection request of the path arrives after the FENCE, the path is harmless. Requests
 *   are accepted only after INFO_RSP, which is sent when all connections of the path are
 *   established. A client that has not received INFO_RSP has sent no request that it could resend.
 */
#include "srv.h"
#include "trace.h"

/**
 * rtrs_srv_path_by_id() - look up a path of a session by its id
 * @sess: session to search
 * @id: &rtrs_path.id to find, not 0
 *
 * Context: under &sess->paths_lock or rtrs_srv_lock.
 * Return: the path, or NULL.
 */
struct rtrs_srv_path *rtrs_srv_path_by_id(struct rtrs_srv_sess *sess, u32 id)
{
	struct rtrs_srv_path *path;

	lockdep_assert(lockdep_is_held(&sess->paths_lock) || lockdep_is_held(&rtrs_srv_lock));
	list_for_each_entry(path, &sess->paths, entry)
		if (path->path.id == id)
			return path;
	return NULL;
}

/* Answers the unanswered FENCE of @path. The connection 0 of such a path is not drained yet. */
static void rtrs_srv_fence_answer(struct rtrs_srv_path *path)
{
	u32 id = path->fence.target;

	lockdep_assert_held(&path->sess->paths_lock);
	trace_rtrs_srv_fenced(path, id);
	/* First, as the client may send the next FENCE as soon as it has the answer. */
	smp_store_release(&path->fence.target, 0);
	if (rtrs_con_post_imm(&path->conns.con[0]->con,
			      rtrs_imm(RTRS_IMM_FENCED, id)))
		rtrs_srv_path_error(&path->path, -EBUSY, "no room to answer a FENCE");
}

/**
 * rtrs_srv_fence_work() - end the path that a FENCE names, or answer if that path is dead
 * @work: &rtrs_srv_fence.work of the path that received the FENCE
 */
void rtrs_srv_fence_work(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path,
						  fence.work);
	struct rtrs_srv_path *target;
	u32 id;

	mutex_lock(&path->sess->paths_lock);
	/* The FENCE may be answered already, if its target was closing for another reason. */
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
 * @con: connection that received the FENCE
 * @id: payload of the FENCE, the id of the path to end
 *
 * Context: completion handler of a receive, on a connected path.
 * Return: false if the FENCE violates the protocol.
 */
bool rtrs_srv_fence_recv(struct rtrs_srv_con *con, u32 id)
{
	struct rtrs_srv_path *path = con->path;

	if (con->con.cid || !(path->path.features & RTRS_FEATURE_FENCE) || !id ||
	    id == path->path.id)
		return false;
	/* Pairs with rtrs_srv_fence_answer(). */
	if (cmpxchg(&path->fence.target, 0, id))
		return false;
	trace_rtrs_srv_fence(path, id);
	/* Not on rtrs_srv_setup_wq, whose work items may be slow. */
	queue_work(system_dfl_wq, &path->fence.work);
	return true;
}

/**
 * rtrs_srv_fence_drop() - drop the unanswered FENCE of a path, if there is one
 * @path: path that is closing and receives nothing any more
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
 * rtrs_srv_fence_done() - answer FENCEs that name a path
 * @path: path that is dead: nothing is received any more, and its requests are finished
 *
 * Context: the path's closing work.
 */
void rtrs_srv_fence_done(struct rtrs_srv_path *path)
{
	struct rtrs_srv_path *other;

	mutex_lock(&path->sess->paths_lock);
	path->fence.dead = true;
	if (path->path.id)
		list_for_each_entry(other, &path->sess->paths, entry)
			if (READ_ONCE(other->fence.target) == path->path.id)
				rtrs_srv_fence_answer(other);
	mutex_unlock(&path->sess->paths_lock);
}
