/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS server: data of requests in slots: buffers (buf.c), fetching in pieces (fetch.c), and the
 * order of sessions at a port (port.c).
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
 * Data that are fetched at a time over a connection, and with one chain of RDMA READs. On a
 * slow network what is fetched is ahead of what others send, heartbeats too.
 */
#define RTRS_SRV_FETCH_BYTES	SZ_256K
#define RTRS_SRV_READ_BYTES	SZ_128K
/* Chains of RDMA READs in flight on a connection. */
#define RTRS_SRV_READS		8
/* For so long a piece counts as being on its way over a port, if others wait for that. */
#define RTRS_SRV_PORT_MS	250
/* Most pieces or requests that one run of a work item lets go on; others' work is next then. */
#define RTRS_SRV_TURNS		16
/* Buffers are of pieces of this order, of the second one if memory is fragmented. */
#define RTRS_SRV_BUF_ORDER	(16 - PAGE_SHIFT)
#define RTRS_SRV_BUF_MIN_ORDER	max(14 - PAGE_SHIFT, 0)
/* From a failure of rtrs_srv_buf_map() to the next try. */
#define RTRS_SRV_MAP_MS		10
/* Most data of a request with RTRS_FEATURE_SLOTS. */
#define RTRS_SRV_MAX_IO		SZ_1M
/* Most work requests that send the data of an answer. */
#define RTRS_SRV_MAX_DATA_WR	(RTRS_SRV_MAX_IO / SZ_16K)
/* Room in the send queue for all RDMA READs; it is given back in batches. */
#define RTRS_SRV_READ_WR	(RTRS_SRV_FETCH_BYTES / SZ_16K + RTRS_SRV_READS + \
				 RTRS_SIGNAL_EVERY)

/**
 * struct rtrs_srv_buf - a buffer for the data of a request (buf.c)
 * @sess: session of the request
 * @bytes: bytes of memory that are allocated for @sgl
 * @reserve: it is the session's reserve
 * @io: request whose answer is on its way, until it is posted
 * @con: connection on which the answer was posted
 * @rw: how its data are sent
 * @sent_cqe: completion entry of the answer with its data
 * @sending: in &rtrs_srv_con.sending, from when the answer is posted until it is sent
 * @work: sends the answer with its data
 * @nr_mapped: entries of @sgl that are mapped for that
 * @nents: entries of @sgl
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
	u32 nents;
	struct scatterlist sgl[];
};

/**
 * struct rtrs_srv_bufs - buffers of a session (buf.c)
 * @reserve: what one request can have if there is no other memory; NULL if none needs it
 * @charged: the session is charged for it
 * @used: bytes of memory of buffers that requests have, the reserve not included
 * @lock: guards what follows; any context
 * @reserve_used: a request has the reserve
 * @small: requests that wait for memory whose data fit in a slot; these are first
 * @large: others. While there are any in these two lists, a request has the reserve, or @work is
 *	queued
 * @turn: in the list of sessions that wait for memory, under that list's lock
 * @work: lets them go on
 */
struct rtrs_srv_bufs {
	struct rtrs_srv_buf *reserve;
	bool charged;
	atomic64_t used;
	spinlock_t lock; /* what follows */
	bool reserve_used;
	struct list_head small;
	struct list_head large;
	struct list_head turn;
	struct delayed_work work;
};

/**
 * struct rtrs_srv_port - a port of an RDMA device (port.c)
 * @entry: in the list of ports
 * @dev: the device
 * @num: number of the port
 * @shares: shares of it
 * @work: chooses the pieces that may begin
 * @lock: guards what follows, and &rtrs_srv_read.turn, &rtrs_srv_read.counted,
 *	&rtrs_srv_share.reads and &rtrs_srv_share.turn; any context
 * @bytes: bytes of @reads
 * @reads: pieces that are on their way, in the order in which they began
 * @waiting: shares of sessions that wait for their turn
 *
 * There as long as paths have it. What isn't under @lock is under the list's lock.
 */
struct rtrs_srv_port {
	struct list_head entry;
	const struct ib_device *dev;
	u32 num;
	struct list_head shares;
	struct delayed_work work;
	spinlock_t lock; /* what follows */
	u64 bytes;
	struct list_head reads;
	struct list_head waiting;
};

/**
 * struct rtrs_srv_share - the share that a session has of a port (port.c)
 * @entry: in &rtrs_srv_port.shares
 * @port: the port
 * @sess: the session, to find it
 * @nr_paths: paths that have it
 * @bytes: of these paths' pieces, the bytes that the port counts, under the port's lock
 * @reads: these paths' pieces that wait for their turn
 * @turn: in &rtrs_srv_port.waiting, if there are any
 */
struct rtrs_srv_share {
	struct list_head entry;
	struct rtrs_srv_port *port;
	const struct rtrs_srv_sess *sess;
	u32 nr_paths;
	u64 bytes;
	struct list_head reads;
	struct list_head turn;
};

/**
 * struct rtrs_srv_read - a chain of RDMA READs (fetch.c)
 * @cqe: completion entry of the last one
 * @rw: work requests, and the mapping of the memory
 * @con: connection that it is posted on
 * @io: request whose data it fetches, NULL if there is none
 * @sg: where they go
 * @nents: entries of @sg
 * @bytes: how many they are
 * @turn: in &rtrs_srv_share.reads, while it waits for its turn at the port
 * @counted: in &rtrs_srv_port.reads, while it counts there
 * @since: when the port let it begin, jiffies
 * @mapped: @rw is initialized
 * @again: it could not be mapped, and &rtrs_srv_fetch.work is to try again; under
 *	&rtrs_srv_con.pend_lock
 */
struct rtrs_srv_read {
	struct ib_cqe cqe;
	struct rdma_rw_ctx rw;
	struct rtrs_srv_con *con;
	struct rtrs_srv_io *io;
	struct scatterlist *sg;
	u32 nents;
	u32 bytes;
	struct list_head turn;
	struct list_head counted;
	unsigned long since;
	bool mapped;
	bool again;
};

/**
 * struct rtrs_srv_fetch - fetching over a connection (fetch.c)
 * @max_reads: RDMA READs that the client's device takes at a time; 0 if there can be none
 * @bytes: bytes that are being fetched, under &rtrs_srv_con.pend_lock
 * @waiting: requests that have data to be fetched, likewise. Each is in turn for a piece
 * @in_line: the one of @reads that waits for its turn at the port, or has got it and is to be
 *	posted by @work; NULL if there is none. Likewise
 * @reads: chains of RDMA READs, under &rtrs_srv_con.pend_lock
 * @work: posts those that have got their turn, tries those again that could not be mapped
 * @done: called once for each request when all its data are there, or (false) it is not
 *	fetched as the path is closing; process context
 */
struct rtrs_srv_fetch {
	u8 max_reads;
	u32 bytes;
	struct list_head waiting;
	struct rtrs_srv_read *in_line;
	struct rtrs_srv_read reads[RTRS_SRV_READS];
	struct delayed_work work;
	void (*done)(struct rtrs_srv_io *io, bool fetched);
};

/* buf.c */
#if IS_ENABLED(CONFIG_KUNIT)
extern struct work_struct rtrs_srv_buf_chooser;
#endif
void rtrs_srv_bufs_init(struct rtrs_srv_sess *sess);
int rtrs_srv_bufs_setup(struct rtrs_srv_path *path);
void rtrs_srv_bufs_free(struct rtrs_srv_sess *sess);
int rtrs_srv_buf_get(struct rtrs_srv_io *io);
int rtrs_srv_buf_map(const struct rtrs_srv_io *io, struct rdma_rw_ctx *rw,
		     struct scatterlist *sg, u32 nents, u64 off);
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
bool rtrs_srv_port_take(struct rtrs_srv_read *read);
void rtrs_srv_port_put(struct rtrs_srv_read *read);
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
