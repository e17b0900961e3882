// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much is fetched at a time over a port of an RDMA device, from all clients together. What
 * many clients send to one port at once (incast) overflows the buffers of the switch before it.
 *
 * A piece (struct rtrs_srv_read) may begin if less than max_fetch is on its way over its port
 * and nobody waits. Otherwise it waits for its turn, one piece for each connection. Of the sessions
 * that wait, the one with the least on its way is next, for one piece, and within a session its
 * connections take turns. So a session has no more of a port for having more connections that
 * wait, nor for being slow.
 *
 * The port's work chooses pieces, a few at a time, and has the connection's own work post each of
 * them. It touches connections only under the port's lock, so that the end of a connection waits
 * for neither this work nor other connections.
 *
 * A piece that takes longer than RTRS_SRV_PORT_MS doesn't wait for the port: its client is gone,
 * or is behind a slow link, or the disk's driver doesn't return from what came before. It isn't
 * counted any more if others wait, so that no client can keep the port, and what doesn't answer
 * doesn't keep its session's other paths from it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "srv.h"

/*
 * 80 us of a port of 400 Gbit/s, four times what a round trip of 20 us takes, and a few
 * megabytes are what a switch can hold for a port. 34 ms of 1 Gbit/s.
 */
unsigned int rtrs_srv_max_fetch = 4096;
module_param_named(max_fetch, rtrs_srv_max_fetch, uint, 0644);
MODULE_PARM_DESC(max_fetch,
		 "KiB of large writes fetched at a time over a port of an RDMA device; 0: no limit (default 4096)");

/* Ports that paths have, and their sessions' shares. */
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
	list_add_tail(&read->turn, &share->reads);
	if (list_empty(&share->turn))
		list_add_tail(&share->turn, &port->waiting);
	/* In case no piece ends meanwhile. */
	queue_delayed_work(rtrs_srv_pull_wq, &port->work, msecs_to_jiffies(RTRS_SRV_PORT_MS));
}

static void rtrs_srv_port_unwait(struct rtrs_srv_read *read)
{
	struct rtrs_srv_share *share = read->con->path->share;

	list_del_init(&read->turn);
	if (list_empty(&share->reads))
		list_del_init(&share->turn);
}

/**
 * rtrs_srv_port_take() - may a piece begin?
 * @read: the piece, with its bytes; no other one of its connection waits for its turn
 *
 * If it may not, it waits for its turn, when &rtrs_srv_fetch.work of its connection is queued.
 * Either way rtrs_srv_port_put() is to be called when it has ended.
 *
 * Context: any; under &rtrs_srv_con.pend_lock of a connection that isn't closing.
 * Return: true if so.
 */
bool rtrs_srv_port_take(struct rtrs_srv_read *read)
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
 * rtrs_srv_port_put() - a piece isn't on its way any more
 * @read: piece that rtrs_srv_port_take() was called for, and that doesn't wait; it may come twice
 *
 * Context: any.
 */
void rtrs_srv_port_put(struct rtrs_srv_read *read)
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

/* The one with the least on its way; of several, the one that has waited for the longest time. */
static struct rtrs_srv_share *rtrs_srv_port_least(const struct rtrs_srv_port *port)
{
	struct rtrs_srv_share *share, *least = NULL;

	list_for_each_entry(share, &port->waiting, turn) {
		if (!least || share->bytes < least->bytes)
			least = share;
		/* No more have anything than there are pieces that count. */
		if (!least->bytes)
			break;
	}
	return least;
}

/**
 * rtrs_srv_port_next() - let the next waiting piece begin
 * @port: the port
 *
 * Its connection's work posts it. If the port is full, the port's work is queued for the time at
 * which its oldest piece doesn't count any more.
 *
 * Context: the port's work.
 * Return: the piece, which the caller may only compare; NULL if nobody waits, or too much is on
 * its way.
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
		read = list_first_entry(&share->reads, struct rtrs_srv_read, turn);
		list_move_tail(&share->turn, &port->waiting);
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

/* Others that have queued work go in between. */
VISIBLE_IF_KUNIT void rtrs_srv_port_work(struct work_struct *work)
{
	struct rtrs_srv_port *port = container_of(to_delayed_work(work), struct rtrs_srv_port,
						  work);
	u32 i;

	for (i = 0; i < RTRS_SRV_TURNS; i++)
		if (!rtrs_srv_port_next(port))
			return;
	mod_delayed_work(rtrs_srv_pull_wq, &port->work, 0);
}

/**
 * rtrs_srv_port_leave() - have no piece of a connection wait for its turn any more
 * @con: connection that is closing, and takes no further piece
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
		if (!list_empty(&con->fetch.reads[i].turn))
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
	INIT_LIST_HEAD(&share->turn);
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

static struct rtrs_srv_share *rtrs_srv_share_find(const struct rtrs_srv_port *port,
						  const struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_share *share;

	list_for_each_entry(share, &port->shares, entry)
		if (share->sess == sess)
			return share;
	return NULL;
}

static struct rtrs_srv_share *rtrs_srv_share_get(struct rtrs_srv_port *port,
						 const struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_share *share = rtrs_srv_share_find(port, sess);

	if (!share) {
		share = kzalloc(sizeof(*share), GFP_KERNEL);
		if (!share)
			return NULL;
		rtrs_srv_share_init(share, port);
		share->sess = sess;
		list_add(&share->entry, &port->shares);
	}
	share->nr_paths++;
	return share;
}

/**
 * rtrs_srv_path_join_port() - give a path its session's share of its port
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
 * rtrs_srv_path_leave_port() - undo rtrs_srv_path_join_port(), if it was done
 * @path: path that fetches nothing any more, with its device
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
