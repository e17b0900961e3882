// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limit of the data that are fetched at a time over a port of an RDMA device, for all clients
 * together. Many clients that send to one port at once (incast) overflow the buffers of its switch.
 *
 * A piece (struct rtrs_srv_read) may begin if less than max_fetch is in progress over its port and
 * no other piece is queued at the port. Otherwise the piece is queued, at most one per connection.
 * The session with the least data in progress is served next, with one piece. Pieces of a session
 * are served in the order in which they were queued, so its connections are served in rotation.
 * Hence a session gets no larger share of a port by using more connections, or by being slow.
 *
 * The port's work selects a few pieces at a time, and the work of each piece's connection posts it.
 * The port's work accesses connections only under the port's lock. So the end of a connection waits
 * neither for this work nor for other connections.
 *
 * A piece that takes longer than RTRS_SRV_PORT_MS is slow for a reason other than the port: its
 * client is dead or behind a slow link, or the disk's driver blocks the handlers of the connection.
 * While other pieces are queued, such a piece no longer counts towards the limit. So no client can
 * block the port, and an unresponsive path doesn't block the other paths of its session.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "srv.h"

/*
 * 4 MiB are transferred in 80 us at 400 Gbit/s, four times a round trip of 20 us, and in 34 ms at 1
 * Gbit/s. Switches buffer a few megabytes per port.
 */
unsigned int rtrs_srv_max_fetch = 4096;
module_param_named(max_fetch, rtrs_srv_max_fetch, uint, 0644);
MODULE_PARM_DESC(max_fetch,
		 "KiB of large writes fetched at a time over a port of an RDMA device; 0: no limit (default 4096)");

/* Ports used by paths, and the sessions' shares of them. */
static LIST_HEAD(rtrs_srv_ports);
static DEFINE_MUTEX(rtrs_srv_ports_lock);

static bool rtrs_srv_port_full(const struct rtrs_srv_port *port)
{
	u64 max = (u64)READ_ONCE(rtrs_srv_max_fetch) << 10;

	return max && port->bytes >= max;
}

static void rtrs_srv_port_uncount(struct rtrs_srv_port *port, struct rtrs_srv_read *read)
{
	lockdep_assert_held(&port->lock);
	list_del_init(&read->counted);
	port->bytes -= read->bytes;
	read->con->path->share->bytes -= read->bytes;
}

static unsigned long rtrs_srv_read_expires(const struct rtrs_srv_read *read)
{
	return read->since + msecs_to_jiffies(RTRS_SRV_PORT_MS);
}

static void rtrs_srv_port_expire(struct rtrs_srv_port *port, unsigned long now)
{
	struct rtrs_srv_read *read, *next;

	list_for_each_entry_safe(read, next, &port->reads, counted) {
		if (time_before(now, rtrs_srv_read_expires(read)))
			break;
		rtrs_srv_port_uncount(port, read);
	}
}

static void rtrs_srv_port_count(struct rtrs_srv_port *port, struct rtrs_srv_read *read)
{
	lockdep_assert_held(&port->lock);
	read->since = jiffies;
	port->bytes += read->bytes;
	read->con->path->share->bytes += read->bytes;
	list_add_tail(&read->counted, &port->reads);
}

static void rtrs_srv_port_wait(struct rtrs_srv_port *port, struct rtrs_srv_read *read)
{
	struct rtrs_srv_share *share = read->con->path->share;

	lockdep_assert_held(&port->lock);
	list_add_tail(&read->queue_entry, &share->reads);
	if (list_empty(&share->queue_entry))
		list_add_tail(&share->queue_entry, &port->waiting);
	/* Retries even if no piece ends meanwhile. */
	queue_delayed_work(rtrs_srv_pull_wq, &port->work, msecs_to_jiffies(RTRS_SRV_PORT_MS));
}

static void rtrs_srv_port_unwait(struct rtrs_srv_read *read)
{
	struct rtrs_srv_share *share = read->con->path->share;

	list_del_init(&read->queue_entry);
	if (list_empty(&share->reads))
		list_del_init(&share->queue_entry);
}

/**
 * rtrs_srv_budget_get() - count a piece towards the limit of its port, or queue it
 * @read: the piece, with its size; no other piece of its connection is queued
 *
 * If the piece is queued, &rtrs_srv_fetch.work of its connection runs when the piece is selected.
 * In either case, rtrs_srv_budget_put() has to be called when the piece has ended.
 *
 * Context: any; under &rtrs_srv_con.pend_lock of a connection that isn't closing.
 * Return: true if the piece may begin; false if it is queued.
 */
bool rtrs_srv_budget_get(struct rtrs_srv_read *read)
{
	struct rtrs_srv_port *port = read->con->path->share->port;
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&port->lock, flags);
	may = list_empty(&port->waiting) && !rtrs_srv_port_full(port);
	if (may)
		rtrs_srv_port_count(port, read);
	else
		rtrs_srv_port_wait(port, read);
	spin_unlock_irqrestore(&port->lock, flags);
	return may;
}

/**
 * rtrs_srv_budget_put() - stop counting a piece towards the limit of its port
 * @read: piece after rtrs_srv_budget_get(), not queued any more; repeated calls have no effect
 *
 * Context: any.
 */
void rtrs_srv_budget_put(struct rtrs_srv_read *read)
{
	struct rtrs_srv_port *port = read->con->path->share->port;
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	if (!list_empty(&read->counted))
		rtrs_srv_port_uncount(port, read);
	if (!list_empty(&port->waiting) && !rtrs_srv_port_full(port))
		mod_delayed_work(rtrs_srv_pull_wq, &port->work, 0);
	spin_unlock_irqrestore(&port->lock, flags);
}

/* Returns the queued share with the least data in progress; of several, the first one. */
static struct rtrs_srv_share *rtrs_srv_port_least(const struct rtrs_srv_port *port)
{
	struct rtrs_srv_share *share, *least = NULL;

	list_for_each_entry(share, &port->waiting, queue_entry) {
		if (!least || share->bytes < least->bytes)
			least = share;
		/* Bounds the search: at most one share per counted piece has data in progress. */
		if (!least->bytes)
			break;
	}
	return least;
}

/**
 * rtrs_srv_port_next() - select the next queued piece
 * @port: the port
 *
 * The work of the piece's connection posts it. If the port's limit is reached, the port's work is
 * queued for the time when the oldest piece no longer counts.
 *
 * Context: the port's work.
 * Return: the piece, which may be freed at any time, so the caller must not access it; NULL if no
 * piece is queued, or the limit is reached.
 */
VISIBLE_IF_KUNIT const struct rtrs_srv_read *rtrs_srv_port_next(struct rtrs_srv_port *port)
{
	struct rtrs_srv_read *first, *read = NULL;
	unsigned long flags, now = jiffies;
	struct rtrs_srv_share *share;

	spin_lock_irqsave(&port->lock, flags);
	if (list_empty(&port->waiting))
		goto unlock;
	rtrs_srv_port_expire(port, now);
	if (!rtrs_srv_port_full(port)) {
		share = rtrs_srv_port_least(port);
		read = list_first_entry(&share->reads, struct rtrs_srv_read, queue_entry);
		list_move_tail(&share->queue_entry, &port->waiting);
		rtrs_srv_port_unwait(read);
		rtrs_srv_port_count(port, read);
		mod_delayed_work(rtrs_srv_pull_wq, &read->con->fetch.work, 0);
	} else {
		first = list_first_entry(&port->reads, struct rtrs_srv_read, counted);
		queue_delayed_work(rtrs_srv_pull_wq, &port->work,
				   rtrs_srv_read_expires(first) - now);
	}
unlock:
	spin_unlock_irqrestore(&port->lock, flags);
	return read;
}

/* Requeues itself after RTRS_SRV_WORK_BATCH pieces, so that other work items run in between. */
VISIBLE_IF_KUNIT void rtrs_srv_port_work(struct work_struct *work)
{
	struct rtrs_srv_port *port = container_of(to_delayed_work(work), struct rtrs_srv_port,
						  work);
	u32 i;

	for (i = 0; i < RTRS_SRV_WORK_BATCH; i++)
		if (!rtrs_srv_port_next(port))
			return;
	mod_delayed_work(rtrs_srv_pull_wq, &port->work, 0);
}

/**
 * rtrs_srv_port_leave() - remove the pieces of a connection from the port's queue
 * @con: connection that is closing and begins no piece any more
 *
 * After this, the port doesn't queue &rtrs_srv_fetch.work any more.
 *
 * Context: the path's closing work.
 */
void rtrs_srv_port_leave(struct rtrs_srv_con *con)
{
	struct rtrs_srv_port *port = con->path->share->port;
	u32 i;

	spin_lock_irq(&port->lock);
	for (i = 0; i < RTRS_SRV_READS; i++)
		if (!list_empty(&con->fetch.reads[i].queue_entry))
			rtrs_srv_port_unwait(&con->fetch.reads[i]);
	spin_unlock_irq(&port->lock);
}

/**
 * rtrs_srv_port_init() - initialize a port
 * @port: port, zeroed
 */
VISIBLE_IF_KUNIT void rtrs_srv_port_init(struct rtrs_srv_port *port)
{
	spin_lock_init(&port->lock);
	INIT_LIST_HEAD(&port->reads);
	INIT_LIST_HEAD(&port->waiting);
	INIT_LIST_HEAD(&port->shares);
	INIT_DELAYED_WORK(&port->work, rtrs_srv_port_work);
}

/**
 * rtrs_srv_share_init() - initialize a session's share
 * @share: share, zeroed
 * @port: its port
 */
VISIBLE_IF_KUNIT void rtrs_srv_share_init(struct rtrs_srv_share *share,
					  struct rtrs_srv_port *port)
{
	share->port = port;
	INIT_LIST_HEAD(&share->reads);
	INIT_LIST_HEAD(&share->queue_entry);
}

static struct rtrs_srv_port *rtrs_srv_port_get(const struct ib_device *dev, u32 num)
{
	struct rtrs_srv_port *port;

	lockdep_assert_held(&rtrs_srv_ports_lock);
	list_for_each_entry(port, &rtrs_srv_ports, entry)
		if (port->dev == dev && port->num == num)
			return port;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return NULL;
	rtrs_srv_port_init(port);
	port->dev = dev;
	port->num = num;
	list_add(&port->entry, &rtrs_srv_ports);
	return port;
}

static void rtrs_srv_port_free_unused(struct rtrs_srv_port *port)
{
	lockdep_assert_held(&rtrs_srv_ports_lock);
	if (!list_empty(&port->shares))
		return;
	list_del(&port->entry);
	cancel_delayed_work_sync(&port->work);
	WARN_ON_ONCE(port->bytes || !list_empty(&port->waiting));
	kfree(port);
}

static struct rtrs_srv_share *rtrs_srv_share_get(struct rtrs_srv_port *port,
						 const struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_share *share;

	list_for_each_entry(share, &port->shares, entry)
		if (share->sess == sess)
			goto found;
	share = kzalloc(sizeof(*share), GFP_KERNEL);
	if (!share)
		return NULL;
	rtrs_srv_share_init(share, port);
	share->sess = sess;
	list_add(&share->entry, &port->shares);
found:
	share->nr_paths++;
	return share;
}

/**
 * rtrs_srv_path_join_port() - assign a path to its session's share of a port
 * @path: new path with its session
 * @dev: RDMA device of the path
 * @num: number of the port
 *
 * Context: process.
 * Return: 0 or -ENOMEM. rtrs_srv_path_leave_port() undoes it.
 */
int rtrs_srv_path_join_port(struct rtrs_srv_path *path, const struct ib_device *dev, u32 num)
{
	struct rtrs_srv_port *port;

	mutex_lock(&rtrs_srv_ports_lock);
	port = rtrs_srv_port_get(dev, num);
	if (port) {
		path->share = rtrs_srv_share_get(port, path->sess);
		rtrs_srv_port_free_unused(port);
	}
	mutex_unlock(&rtrs_srv_ports_lock);
	return path->share ? 0 : -ENOMEM;
}

/**
 * rtrs_srv_path_leave_port() - undo rtrs_srv_path_join_port(), if it was called
 * @path: path that has stopped fetching and whose device still exists
 *
 * Context: process.
 */
void rtrs_srv_path_leave_port(struct rtrs_srv_path *path)
{
	struct rtrs_srv_share *share = path->share;
	struct rtrs_srv_port *port;

	if (!share)
		return;
	path->share = NULL;
	mutex_lock(&rtrs_srv_ports_lock);
	if (!--share->nr_paths) {
		port = share->port;
		list_del(&share->entry);
		kfree(share);
		rtrs_srv_port_free_unused(port);
	}
	mutex_unlock(&rtrs_srv_ports_lock);
}
