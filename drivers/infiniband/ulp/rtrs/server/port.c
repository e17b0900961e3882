// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much is fetched at a time over a port of an RDMA device, from all clients together. What
 * many clients send to one port at once (incast) overflows the buffers of the switch before it.
 *
 * A piece (struct rtrs_srv_read) may begin if less than max_fetch is on its way over its port
 * and nobody waits. Otherwise its connection waits for its turn. Of the sessions that wait, the one
 * with the least on its way is next, for one piece, and within a session its connections take
 * turns; the port's work calls them. So a session has no more of a port for having more
 * connections that wait, nor for being slow.
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

/* Has a connection wait for its turn, if it doesn't. */
static void rtrs_srv_port_wait(struct rtrs_srv_port *port, struct rtrs_srv_con *con)
{
	struct rtrs_srv_share *share = con->path->share;

	lockdep_assert_held(&port->lock);
	if (!list_empty(&con->fetch.turn))
		return;
	list_add_tail(&con->fetch.turn, &share->cons);
	if (list_empty(&share->turn))
		list_add_tail(&share->turn, &port->waiting);
	/* In case no piece ends meanwhile. */
	queue_delayed_work(rtrs_srv_io_wq, &port->work, msecs_to_jiffies(RTRS_SRV_PORT_MS));
}

/**
 * rtrs_srv_port_take() - may a piece begin?
 * @con: connection of the piece
 * @read: the piece, with its bytes
 * @in_turn: it is the connection's turn, by rtrs_srv_port_next()
 *
 * If it may not, the connection waits for its turn.
 *
 * Context: any; under &rtrs_srv_con.pend_lock of a connection that isn't closing.
 * Return: true if so; rtrs_srv_port_put() is to be called when it has ended.
 */
bool rtrs_srv_port_take(struct rtrs_srv_con *con, struct rtrs_srv_read *read, bool in_turn)
{
	struct rtrs_srv_port *port = con->path->share->port;
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&port->lock, flags);
	may = in_turn || (list_empty(&port->waiting) && !rtrs_srv_port_full(port));
	if (may) {
		read->since = jiffies;
		port->bytes += read->bytes;
		con->path->share->bytes += read->bytes;
		list_add_tail(&read->counted, &port->reads);
	} else {
		rtrs_srv_port_wait(port, con);
	}
	spin_unlock_irqrestore(&port->lock, flags);
	return may;
}

/**
 * rtrs_srv_port_put() - a piece isn't on its way any more
 * @read: piece that rtrs_srv_port_take() let begin; it may come twice
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
		mod_delayed_work(rtrs_srv_io_wq, &port->work, 0);
	spin_unlock_irqrestore(&port->lock, flags);
}

static void rtrs_srv_port_unwait(struct rtrs_srv_con *con)
{
	struct rtrs_srv_share *share = con->path->share;

	list_del_init(&con->fetch.turn);
	if (list_empty(&share->cons))
		list_del_init(&share->turn);
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
 * rtrs_srv_port_next() - whose turn is it?
 * @port: the port
 *
 * If the port is full, this says when the port's work is to look again.
 *
 * Context: the port's work.
 * Return: a connection that may begin one piece, now. It doesn't wait any more, and is there
 * until rtrs_srv_port_leave() of it returns, which waits for the work. NULL if nobody waits, or
 * too much is on its way.
 */
struct rtrs_srv_con *rtrs_srv_port_next(struct rtrs_srv_port *port)
{
	struct rtrs_srv_con *con = NULL;
	struct rtrs_srv_share *share;
	unsigned long flags, now = jiffies;
	struct rtrs_srv_read *first;

	spin_lock_irqsave(&port->lock, flags);
	if (list_empty(&port->waiting))
		goto unlock;
	rtrs_srv_port_expire(port, now);
	if (!rtrs_srv_port_full(port)) {
		share = rtrs_srv_port_least(port);
		con = list_first_entry(&share->cons, struct rtrs_srv_con, fetch.turn);
		list_move_tail(&share->turn, &port->waiting);
		rtrs_srv_port_unwait(con);
	} else {
		first = list_first_entry(&port->reads, struct rtrs_srv_read, counted);
		queue_delayed_work(rtrs_srv_io_wq, &port->work,
				   rtrs_srv_read_expires(first) - now);
	}
unlock:
	spin_unlock_irqrestore(&port->lock, flags);
	return con;
}

/**
 * rtrs_srv_port_leave() - have a connection wait for no turn any more
 * @con: connection that is closing, with no piece to begin with
 *
 * Context: the path's closing work.
 */
void rtrs_srv_port_leave(struct rtrs_srv_con *con)
{
	struct rtrs_srv_port *port = con->path->share->port;

	spin_lock_irq(&port->lock);
	if (!list_empty(&con->fetch.turn))
		rtrs_srv_port_unwait(con);
	spin_unlock_irq(&port->lock);
	/* It may be its turn. */
	flush_delayed_work(&port->work);
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
	INIT_LIST_HEAD(&share->cons);
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
