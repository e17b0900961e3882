/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS server: memory for the data of requests: buffers (buf.c), fetching in pieces (fetch.c), and
 * fairness between the sessions at a port (port.c).
 */
#ifndef RTRS_SRV_PULL_H
#define RTRS_SRV_PULL_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/rw.h>

#include "../common/core.h"

struct rtrs_srv_con;
struct rtrs_srv_io;
struct rtrs_srv_path;
struct rtrs_srv_sess;

/*
 * Maximum bytes that are fetched at a time over a connection, and by one chain of RDMA READs. On a
 * slow network, data that are being fetched delay all other messages, heartbeats included.
 */
#define RTRS_SRV_FETCH_BYTES	SZ_256K
#define RTRS_SRV_READ_BYTES	SZ_128K
/* Maximum number of RDMA READ chains in progress on a connection. */
#define RTRS_SRV_READS		8
/* Time for which a piece counts towards the limit of its port while other pieces are queued. */
#define RTRS_SRV_PORT_MS	250
/* Maximum number of pieces or requests that a work item handles before it requeues itself. */
#define RTRS_SRV_WORK_BATCH		16
/*
 * Maximum page order of the pieces of a buffer, and the order to which it is lowered if memory is
 * fragmented.
 */
#define RTRS_SRV_BUF_ORDER	(16 - PAGE_SHIFT)
#define RTRS_SRV_BUF_MIN_ORDER	max(14 - PAGE_SHIFT, 0)
/* Delay between a failure of rtrs_srv_buf_map() and the next attempt. */
#define RTRS_SRV_MAP_MS		10
/* Maximum bytes of data of a request with RTRS_FEATURE_SLOTS. */
#define RTRS_SRV_MAX_IO		SZ_1M
/* Maximum number of work requests that send the data of an answer. */
#define RTRS_SRV_MAX_DATA_WR	(RTRS_SRV_MAX_IO / SZ_16K)
/* Send queue entries for all RDMA READs. Entries are freed in batches of RTRS_SIGNAL_EVERY. */
#define RTRS_SRV_READ_WR	(RTRS_SRV_FETCH_BYTES / SZ_16K + RTRS_SRV_READS + \
				 RTRS_SIGNAL_EVERY)

/**
 * struct rtrs_srv_buf - a buffer for the data of a request (buf.c)
 * @sess: session of the request
 * @bytes: bytes of memory allocated for @sgl
 * @reserve: the buffer is the session's reserve
 * @io: request whose answer sends the buffer, until the answer is posted
 * @con: connection on which the answer was posted
 * @rw: work requests that send the data, and their mapping
 * @sent_cqe: completion entry of the answer that sends the data
 * @sending: in &rtrs_srv_con.sending while the posted answer has not completed
 * @work: maps the buffer and posts the answer
 * @nr_mapped: number of entries of @sgl that are mapped for @rw
 * @order: page order of the pieces
 * @sgl: the memory, in pieces
 */
struct rtrs_srv_buf {
	struct rtrs_srv_sess *sess;
	u32 bytes;
	bool reserve;
	struct rtrs_srv_io *io;
	struct rtrs_srv_con *con;
	struct rdma_rw_ctx rw;
	struct ib_cqe sent_cqe;
	struct list_head sending;
	struct delayed_work work;
	u32 nr_mapped;
	unsigned int order;
	struct scatterlist *sgl;
};

/**
 * struct rtrs_srv_bufs - buffers of a session (buf.c)
 * @reserve: buffer for one request at a time when no other memory is available; NULL if not needed
 * @charged: the reserve is charged to the session
 * @used: bytes of all buffers that requests use, except the reserve
 * @lock: guards the members below; any context
 * @reserve_used: a request uses the reserve
 * @small: waiting requests whose data fit in a slot; served before @large
 * @large: all other waiting requests. While one of the two lists is not empty, a request uses the
 *	reserve or @work is queued
 * @queue_entry: in the queue of sessions that wait for memory; guarded by that queue's lock
 * @work: allocates memory for waiting requests
 */
struct rtrs_srv_bufs {
	struct rtrs_srv_buf *reserve;
	bool charged;
	atomic64_t used;
	spinlock_t lock; /* the members below */
	bool reserve_used;
	struct list_head small;
	struct list_head large;
	struct list_head queue_entry;
	struct delayed_work work;
};

/**
 * struct rtrs_srv_port - a port of an RDMA device (port.c)
 * @entry: in the list of all ports
 * @dev: the device
 * @num: port number
 * @shares: the sessions' shares of the port
 * @work: selects the pieces that may begin
 * @lock: guards the members below, and &rtrs_srv_read.queue_entry, &rtrs_srv_read.counted,
 *	&rtrs_srv_share.reads and &rtrs_srv_share.queue_entry; any context
 * @bytes: bytes of the pieces in @reads
 * @reads: pieces that count towards the limit, in the order in which they began
 * @waiting: queue of shares that have queued pieces
 *
 * Exists while a path uses the port. Members not guarded by @lock are guarded by the lock of the
 * list of ports.
 */
struct rtrs_srv_port {
	struct list_head entry;
	const struct ib_device *dev;
	u32 num;
	struct list_head shares;
	struct delayed_work work;
	spinlock_t lock; /* the members below */
	u64 bytes;
	struct list_head reads;
	struct list_head waiting;
};

/**
 * struct rtrs_srv_share - a session's share of a port (port.c)
 * @entry: in &rtrs_srv_port.shares
 * @port: the port
 * @sess: the session, for lookup only
 * @nr_paths: number of paths that use the share
 * @bytes: bytes of these paths' pieces that count towards the port's limit; guarded by the port's
 *	lock
 * @reads: queue of these paths' pieces that may not begin yet
 * @queue_entry: in &rtrs_srv_port.waiting while @reads is not empty
 */
struct rtrs_srv_share {
	struct list_head entry;
	struct rtrs_srv_port *port;
	const struct rtrs_srv_sess *sess;
	u32 nr_paths;
	u64 bytes;
	struct list_head reads;
	struct list_head queue_entry;
};

/**
 * struct rtrs_srv_read - a chain of RDMA READs, which fetches a piece of a request's data (fetch.c)
 * @cqe: completion entry of the last READ of the chain
 * @rw: work requests, and the mapping of the memory
 * @con: connection on which the chain is posted
 * @io: request whose data the chain fetches, NULL if the chain is unused
 * @sg: first scatterlist entry of the piece
 * @nents: number of entries of the piece
 * @bytes: bytes of the piece
 * @queue_entry: in &rtrs_srv_share.reads while the piece is queued at the port
 * @counted: in &rtrs_srv_port.reads while the piece counts towards the port's limit
 * @since: when the piece began, jiffies
 * @mapped: @rw is initialized
 * @again: mapping failed, and &rtrs_srv_fetch.work retries it; guarded by &rtrs_srv_con.pend_lock
 */
struct rtrs_srv_read {
	struct ib_cqe cqe;
	struct rdma_rw_ctx rw;
	struct rtrs_srv_con *con;
	struct rtrs_srv_io *io;
	struct scatterlist *sg;
	u32 nents;
	u32 bytes;
	struct list_head queue_entry;
	struct list_head counted;
	unsigned long since;
	bool mapped;
	bool again;
};

/**
 * struct rtrs_srv_fetch - fetching over a connection (fetch.c)
 * @max_reads: maximum number of outstanding RDMA READs that the client's device accepts; 0 if
 *	fetching is not possible
 * @bytes: bytes that are being fetched; guarded by &rtrs_srv_con.pend_lock
 * @waiting: queue of requests with data left to fetch; guarded by &rtrs_srv_con.pend_lock. The
 *	first request begins one piece and moves to the tail
 * @queued: the piece that is queued at the port, or was selected by the port and is not posted
 *	yet; NULL if there is none. Guarded by &rtrs_srv_con.pend_lock
 * @reads: chains of RDMA READs; guarded by &rtrs_srv_con.pend_lock
 * @work: posts pieces selected by the port, and retries pieces whose mapping failed
 * @done: called once per request: with true when all its data have been fetched, with false when
 *	fetching stopped because the path is closing; process context
 */
struct rtrs_srv_fetch {
	u8 max_reads;
	u32 bytes;
	struct list_head waiting;
	struct rtrs_srv_read *queued;
	struct rtrs_srv_read reads[RTRS_SRV_READS];
	struct delayed_work work;
	void (*done)(struct rtrs_srv_io *io, bool fetched);
};

/* buf.c */
extern unsigned long rtrs_srv_buf_waits;
#if IS_ENABLED(CONFIG_KUNIT)
extern struct work_struct rtrs_srv_buf_chooser;
#endif
void rtrs_srv_bufs_init(struct rtrs_srv_sess *sess);
int rtrs_srv_bufs_setup(struct rtrs_srv_path *path);
void rtrs_srv_bufs_free(struct rtrs_srv_sess *sess);
int rtrs_srv_buf_get(struct rtrs_srv_io *io);
int rtrs_srv_buf_map(const struct rtrs_srv_io *io, struct rdma_rw_ctx *rw,
		     struct scatterlist *sg, u32 nents, u64 off);
void rtrs_srv_buf_copy(const struct rtrs_srv_io *io);
void rtrs_srv_buf_put(struct rtrs_srv_buf *buf);
void rtrs_srv_io_put_data(struct rtrs_srv_io *io);
struct rtrs_srv_io *rtrs_srv_bufs_next(struct rtrs_srv_sess *sess);
struct rtrs_srv_io *rtrs_srv_bufs_forget(struct rtrs_srv_path *path);
void rtrs_srv_bufs_age(struct rtrs_srv_path *path);
void rtrs_srv_bufs_forget_pages(struct rtrs_srv_path *path);

/* port.c */
extern unsigned int rtrs_srv_max_fetch;
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_srv_port_init(struct rtrs_srv_port *port);
void rtrs_srv_share_init(struct rtrs_srv_share *share, struct rtrs_srv_port *port);
const struct rtrs_srv_read *rtrs_srv_port_next(struct rtrs_srv_port *port);
void rtrs_srv_port_work(struct work_struct *work);
#endif
bool rtrs_srv_budget_get(struct rtrs_srv_read *read);
void rtrs_srv_budget_put(struct rtrs_srv_read *read);
void rtrs_srv_port_leave(struct rtrs_srv_con *con);
int rtrs_srv_path_join_port(struct rtrs_srv_path *path, const struct ib_device *dev, u32 num);
void rtrs_srv_path_leave_port(struct rtrs_srv_path *path);

/* fetch.c */
#if IS_ENABLED(CONFIG_KUNIT)
struct rtrs_srv_read *rtrs_srv_next_read(struct rtrs_srv_con *con);
void rtrs_srv_end_read(struct rtrs_srv_read *read, bool failed);
bool rtrs_srv_read_due(struct rtrs_srv_read *read);
#endif
void rtrs_srv_fetch_init(struct rtrs_srv_con *con,
			 void (*done)(struct rtrs_srv_io *io, bool fetched));
void rtrs_srv_fetch(struct rtrs_srv_io *io);
void rtrs_srv_fetch_stop(struct rtrs_srv_con *con);
void rtrs_srv_fetch_drained(struct rtrs_srv_con *con);

#endif /* RTRS_SRV_PULL_H */
