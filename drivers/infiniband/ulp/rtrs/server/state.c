// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state of a path: its transition table, the only function that changes it, and the function
 * that ends a path after an error. Any file can request the end of a path here; the closing work
 * itself calls most other files, see path.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hashtable.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/siphash.h>

#include "srv.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Guards the tables of sessions, the names of sessions, and members as documented in srv.h. */
DEFINE_MUTEX(rtrs_srv_lock);
/*
 * Paths whose handshake waits for a change of another path or session, by the UUID of their session
 * and by the name that they request. If all clients reconnect at once, each parks a handshake.
 */
static DEFINE_HASHTABLE(rtrs_srv_parked_by_uuid, RTRS_SRV_HASH_BITS);
static DEFINE_HASHTABLE(rtrs_srv_parked_by_name, RTRS_SRV_HASH_BITS);
static DEFINE_SPINLOCK(rtrs_srv_parked_lock); /* parked handshakes, rtrs_srv_setup.stopped */

/*
 * Workqueues that set paths up and take them down. No work item waits for another one or for I/O.
 */
struct workqueue_struct *rtrs_srv_setup_wq;
struct workqueue_struct *rtrs_srv_close_wq;
/* Begins requests in batches, and sends answers with data from buffers. */
struct workqueue_struct *rtrs_srv_io_wq;
/* Continues requests that waited for memory, and pieces that waited for a port. */
struct workqueue_struct *rtrs_srv_pull_wq;

/**
 * rtrs_srv_hash() - compute a keyed hash
 * @data: what clients choose, a UUID or a name
 * @len: its length in bytes
 *
 * Clients must not be able to provoke collisions.
 *
 * Return: the key for hash tables.
 */
u64 rtrs_srv_hash(const void *data, size_t len)
{
	static siphash_aligned_key_t key;

	net_get_random_once(&key, sizeof(key));
	return siphash(data, len, &key);
}

static void rtrs_srv_unpark(struct rtrs_srv_path *path)
{
	lockdep_assert_held(&rtrs_srv_parked_lock);
	hash_del(&path->setup.parked_by_uuid);
	hash_del(&path->setup.parked_by_name);
}

static void rtrs_srv_resume_setup(struct rtrs_srv_path *path)
{
	rtrs_srv_unpark(path);
	queue_work(rtrs_srv_setup_wq, &path->setup.work);
}

/**
 * rtrs_srv_may_await() - check whether a parked handshake may wait for a session
 * @path: path whose handshake is parked, by rtrs_srv_sess_claim()
 * @sess: a session
 *
 * Return: true if @sess is the path's own session, or has the same UUID, or the requested name.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_may_await(const struct rtrs_srv_path *path,
					 const struct rtrs_srv_sess *sess)
{
	const struct rtrs_info_req *req = path->setup.req.msg;

	return path->sess->srv == sess->srv &&
	       (uuid_equal(&path->sess->uuid, &sess->uuid) || !strcmp(req->name, sess->name));
}

/**
 * rtrs_srv_changed() - announce a change of a session, or of one of its paths
 * @sess: the session, which can't be freed during the call
 *
 * Resumes the handshakes that may wait for the session. Other handshakes stay parked: when many
 * clients reconnect at once, each waits for an old session of its own.
 *
 * Context: process.
 */
void rtrs_srv_changed(const struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_path *path;
	struct hlist_node *next;

	spin_lock(&rtrs_srv_parked_lock);
	/*
	 * Either this function sees the name that @sess gets concurrently, or the handshake that
	 * requests that name sees the change.
	 */
	smp_mb();
	hash_for_each_possible_safe(rtrs_srv_parked_by_uuid, path, next, setup.parked_by_uuid,
				    rtrs_srv_hash(&sess->uuid, sizeof(sess->uuid)))
		if (rtrs_srv_may_await(path, sess))
			rtrs_srv_resume_setup(path);
	hash_for_each_possible_safe(rtrs_srv_parked_by_name, path, next, setup.parked_by_name,
				    rtrs_srv_hash(sess->name, strlen(sess->name)))
		if (rtrs_srv_may_await(path, sess))
			rtrs_srv_resume_setup(path);
	spin_unlock(&rtrs_srv_parked_lock);
}

/**
 * rtrs_srv_setup_park() - queue a path's setup work again after the next change
 * @path: path whose setup work has to wait
 *
 * A sleeping worker would not be available to other clients. Has to be called before the condition
 * is checked, so that no change is missed.
 *
 * Context: the path's setup work.
 */
void rtrs_srv_setup_park(struct rtrs_srv_path *path)
{
	const struct rtrs_info_req *req = path->setup.req.msg;

	spin_lock(&rtrs_srv_parked_lock);
	if (!path->setup.stopped && !hash_hashed(&path->setup.parked_by_uuid)) {
		hash_add(rtrs_srv_parked_by_uuid, &path->setup.parked_by_uuid,
			 rtrs_srv_hash(&path->sess->uuid, sizeof(path->sess->uuid)));
		hash_add(rtrs_srv_parked_by_name, &path->setup.parked_by_name,
			 rtrs_srv_hash(req->name, strlen(req->name)));
	}
	spin_unlock(&rtrs_srv_parked_lock);
}

/**
 * rtrs_srv_setup_unpark() - undo rtrs_srv_setup_park()
 * @path: path whose setup work doesn't have to wait
 *
 * Context: the path's setup work, which may already have been queued once more.
 */
void rtrs_srv_setup_unpark(struct rtrs_srv_path *path)
{
	spin_lock(&rtrs_srv_parked_lock);
	rtrs_srv_unpark(path);
	spin_unlock(&rtrs_srv_parked_lock);
}

/**
 * rtrs_srv_setup_continue() - queue a path's setup work, unless it is stopped
 * @path: path whose handshake can continue
 *
 * Context: process.
 */
void rtrs_srv_setup_continue(struct rtrs_srv_path *path)
{
	spin_lock(&rtrs_srv_parked_lock);
	if (!path->setup.stopped)
		rtrs_srv_resume_setup(path);
	spin_unlock(&rtrs_srv_parked_lock);
}

/**
 * rtrs_srv_setup_stop() - stop a path's setup work permanently
 * @path: path that is closing
 *
 * Context: the path's closing work.
 */
void rtrs_srv_setup_stop(struct rtrs_srv_path *path)
{
	spin_lock(&rtrs_srv_parked_lock);
	path->setup.stopped = true;
	rtrs_srv_unpark(path);
	spin_unlock(&rtrs_srv_parked_lock);
	/* In this order, as the work restarts the timeout when it refuses a client. */
	cancel_work_sync(&path->setup.work);
	cancel_delayed_work_sync(&path->setup.timeout);
}

/**
 * rtrs_srv_next_state() - look up the next state of a path
 * @state: state of a path
 * @event: event
 *
 * Return: the next state; @state if the event doesn't change it.
 */
enum rtrs_srv_state rtrs_srv_next_state(enum rtrs_srv_state state,
					enum rtrs_srv_event event)
{
	static const u8 next[RTRS_SRV_NR_STATES][RTRS_SRV_NR_EVENTS] = {
		[RTRS_SRV_CONNECTING] = {
			[RTRS_SRV_EV_UP]		= RTRS_SRV_CONNECTED,
			[RTRS_SRV_EV_SETUP_TIMEOUT]	= RTRS_SRV_CLOSING,
			[RTRS_SRV_EV_END]		= RTRS_SRV_CLOSING,
		},
		[RTRS_SRV_CONNECTED] = {
			[RTRS_SRV_EV_UP]		= RTRS_SRV_CONNECTED,
			[RTRS_SRV_EV_SETUP_TIMEOUT]	= RTRS_SRV_CONNECTED,
			[RTRS_SRV_EV_END]		= RTRS_SRV_CLOSING,
		},
		[RTRS_SRV_CLOSING] = {
			[RTRS_SRV_EV_UP]		= RTRS_SRV_CLOSING,
			[RTRS_SRV_EV_SETUP_TIMEOUT]	= RTRS_SRV_CLOSING,
			[RTRS_SRV_EV_END]		= RTRS_SRV_CLOSING,
		},
	};

	return next[state][event];
}

/**
 * rtrs_srv_path_move() - apply an event to a path's state
 * @path: path that the caller keeps from being freed
 * @event: event
 * @err: if the event ends the path: see rtrs_srv_path_error()
 * @why: if the event ends the path: see rtrs_srv_path_error()
 *
 * No other function changes the state.
 *
 * Context: any.
 * Return: true if the state changed.
 */
bool rtrs_srv_path_move(struct rtrs_srv_path *path, enum rtrs_srv_event event, int err,
			const char *why)
{
	enum rtrs_srv_state old, new;
	unsigned long flags;

	spin_lock_irqsave(&path->state_lock, flags);
	old = path->state;
	new = rtrs_srv_next_state(old, event);
	/* Pairs with rtrs_srv_path_state(). */
	smp_store_release(&path->state, new);
	if (new != old)
		trace_rtrs_srv_path_state(path, old, new);
	if (new != old && new == RTRS_SRV_CLOSING) {
		path->end_err = err;
		strscpy(path->end_why, why, sizeof(path->end_why));
		queue_work(rtrs_srv_close_wq, &path->close_work);
	}
	spin_unlock_irqrestore(&path->state_lock, flags);

	return new != old;
}

/**
 * rtrs_srv_path_error() - request the end of a path
 * @path: path that the caller keeps from being freed
 * @err: 0 if the end was requested, else a negative errno
 * @why: reason, for the log. Only the first reason is logged, by the closing work, since callers
 *	may hold locks for which other clients wait
 *
 * Context: any.
 */
void rtrs_srv_path_error(struct rtrs_path *path, int err, const char *why)
{
	rtrs_srv_path_move(to_srv_path(path), RTRS_SRV_EV_END, err, why);
}

/**
 * rtrs_srv_proto_error() - end a path whose client violates the protocol
 * @path: path on which the violation occurred
 * @fmt: description of the violation, for the log
 *
 * Context: any.
 */
void rtrs_srv_proto_error(struct rtrs_srv_path *path, const char *fmt, ...)
{
	char why[RTRS_SRV_WHY_LEN];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	rtrs_srv_path_error(&path->path, -EPROTO, why);
}

/*
 * Memory reclaim may write to a disk exported by another host, whose setup of a path may in turn
 * wait for reclaim that writes to a disk of this host, and thus for rtrs_srv_lock. So allocations
 * under that lock, and in the work that sets up and takes down paths, must not wait for I/O.
 * Teaches lockdep the rule about the lock.
 */
static void __init rtrs_srv_prime_lockdep(void)
{
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&rtrs_srv_lock);
	fs_reclaim_release(GFP_KERNEL);
}

/**
 * rtrs_srv_state_exit() - undo rtrs_srv_state_init(), even if it failed
 */
void rtrs_srv_state_exit(void)
{
	if (rtrs_srv_pull_wq)
		destroy_workqueue(rtrs_srv_pull_wq);
	if (rtrs_srv_io_wq)
		destroy_workqueue(rtrs_srv_io_wq);
	if (rtrs_srv_close_wq)
		destroy_workqueue(rtrs_srv_close_wq);
	if (rtrs_srv_setup_wq)
		destroy_workqueue(rtrs_srv_setup_wq);
}

/**
 * rtrs_srv_state_init() - create the workqueues of paths
 *
 * Return: 0 or -ENOMEM. In either case, rtrs_srv_state_exit() cleans up.
 */
int __init rtrs_srv_state_init(void)
{
	rtrs_srv_prime_lockdep();
	rtrs_srv_setup_wq = alloc_workqueue("rtrs-server-setup", WQ_UNBOUND | WQ_SYSFS, 0);
	rtrs_srv_close_wq = alloc_workqueue("rtrs-server-close", WQ_UNBOUND | WQ_SYSFS, 0);
	rtrs_srv_io_wq = alloc_workqueue("rtrs-server-io",
					 WQ_PERCPU | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	/* Unbound, as the CPU whose completion handler queues the work is busy. */
	rtrs_srv_pull_wq = alloc_workqueue("rtrs-server-pull",
					   WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	return rtrs_srv_setup_wq && rtrs_srv_close_wq && rtrs_srv_io_wq && rtrs_srv_pull_wq ?
	       0 : -ENOMEM;
}
