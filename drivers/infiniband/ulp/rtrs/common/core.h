/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What client and server have in common below the protocol: a path with its
 * protection domain and heartbeat, a connection with its queue pair.
 */
#ifndef RTRS_CORE_H
#define RTRS_CORE_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "proto.h"

struct rtrs_con;

/* The last one is for all that takes longer. */
#define RTRS_HB_BUCKETS		24

/**
 * struct rtrs_hb_params - when a path's peer is taken for dead
 * @interval_ms: milliseconds from one heartbeat to the next
 * @max_missed: so many in a row stay unanswered
 *
 * May be changed at any time; see rtrs_hb_changed().
 */
struct rtrs_hb_params {
	unsigned int interval_ms;
	unsigned int max_missed;
};

/**
 * struct rtrs_path - what a path is on either side
 * @name: for messages: the session's name, as soon as it is known, and the
 *	addresses
 * @dev: RDMA device, set with @pd
 * @pd: protection domain of this path alone, so that a peer's keys reach nothing
 *	but what this path set aside for it
 * @error: the path can't go on: ask for its end. Any context; may come any
 *	number of times, from several places at once. @err is negative
 * @probe: see that no connection for I/O stands still, see rtrs_con_probe(). False if
 *	one does. Called with each heartbeat
 * @hb: how often heartbeats are sent; outlives the path
 * @hb_con: connection 0, from rtrs_hb_start() to rtrs_hb_stop()
 * @hb_work: sends a heartbeat each interval
 * @hb_missed: heartbeats sent since the last answer
 * @hb_sent: when the last one was sent, ns
 * @hb_latency: how long the last answer took, ns; 0 before the first
 * @hb_hist: answers by how long they took: less than 2^n microseconds
 *
 * Embedded in the client's or the server's path, which keeps it alive.
 */
struct rtrs_path {
	char name[RTRS_NAME_LEN + RTRS_PATH_STR_LEN];
	struct ib_device *dev;
	struct ib_pd *pd;
	void (*error)(struct rtrs_path *path, int err, const char *why);
	bool (*probe)(struct rtrs_path *path);
	const struct rtrs_hb_params *hb;
	struct rtrs_con *hb_con;
	struct delayed_work hb_work;
	atomic_t hb_missed;
	u64 hb_sent;
	u64 hb_latency;
	u32 hb_hist[RTRS_HB_BUCKETS];
};

/**
 * struct rtrs_con - a connection, one queue pair
 * @path: the path that it is part of, and that outlives it
 * @cm_id: its connection manager id; owns the queue pair
 * @cq: its own, for both queues of the pair; NULL if it has no queue pair
 * @cid: index in the path, 0 for the service connection
 * @sq_lock: guards @sq_wr_avail to @sq_posted; taken in any context; in it nest the
 *	locks of the RDMA driver and what rtrs_path.error() takes
 * @sq_wr_avail: work requests for which the send queue has room that isn't reserved
 * @sq_reserve: room that rtrs_con_queue() leaves to rtrs_con_post()
 * @sq_seq: work requests posted without a signal of their own
 * @sq_head: chain that waits for the doorbell, NULL if none does
 * @sq_tail: its last work request
 * @sq_posted: counts chains; written under @sq_lock, read without
 * @sq_cqe: of all work requests without a signal of their own
 * @probe_cqe: of the last probe
 * @probe_seq: @sq_posted when it was sent; used by the heartbeat alone
 * @probe_busy: it has not been acknowledged yet; set by the heartbeat, cleared by the
 *	probe's handler
 * @probe_missed: heartbeats since it was sent, or should have been
 * @sq_room: called when room in the send queue came free, may be NULL; context
 *	of the completion queue
 *
 * Embedded in the client's or the server's connection.
 *
 * Only every RTRS_SIGNAL_EVERY-th work request is signalled. Its completion
 * tells that as many have left the queue. Work requests that ask for a signal
 * themselves have a cqe of their own, whose handler calls rtrs_con_put_wr().
 */
struct rtrs_con {
	struct rtrs_path *path;
	struct rdma_cm_id *cm_id;
	struct ib_cq *cq;
	u16 cid;
	spinlock_t sq_lock; /* sq_wr_avail to sq_posted */
	u32 sq_wr_avail;
	u32 sq_reserve;
	u32 sq_seq;
	struct ib_send_wr *sq_head;
	struct ib_send_wr *sq_tail;
	u32 sq_posted;
	struct ib_cqe sq_cqe;
	struct ib_cqe probe_cqe;
	u32 probe_seq;
	bool probe_busy;
	u32 probe_missed;
	void (*sq_room)(struct rtrs_con *con);
};

#define RTRS_SIGNAL_EVERY	32

/**
 * struct rtrs_qp_params - size and kind of a queue pair
 * @send_wr: work requests that rtrs_con_queue() takes before it says -EBUSY
 * @send_reserve: as many more for rtrs_con_post()
 * @recv_wr: receives that are posted at most
 * @send_sge: entries in the list of a send
 * @min_send_wr: @send_wr may be lowered to that, if the device wants it
 * @min_send_sge: and @send_sge to that
 * @nr_io: connections for I/O that the path has
 * @poll: where completions are handled
 */
struct rtrs_qp_params {
	u32 send_wr;
	u32 send_reserve;
	u32 recv_wr;
	u32 send_sge;
	u32 min_send_wr;
	u32 min_send_sge;
	u32 nr_io;
	enum ib_poll_context poll;
};

int rtrs_path_open_dev(struct rtrs_path *path, struct ib_device *dev);
void rtrs_path_close_dev(struct rtrs_path *path);

/* The device has no room for this size. */
static inline bool rtrs_qp_refused(int err)
{
	return err == -ENOMEM || err == -EINVAL;
}

u64 rtrs_qp_bytes(const struct rtrs_qp_params *params);
int rtrs_con_create_qp(struct rtrs_con *con, struct rtrs_qp_params *params);
void rtrs_con_destroy_qp(struct rtrs_con *con);
void rtrs_con_drain_recv(struct rtrs_con *con);
void rtrs_con_drain_send(struct rtrs_con *con);
int rtrs_con_post(struct rtrs_con *con, struct ib_send_wr *first, u32 reserve);
int rtrs_con_reserve(struct rtrs_con *con, u32 nr);
void rtrs_con_post_reserved(struct rtrs_con *con, struct ib_send_wr *first,
			    u32 nr);
int rtrs_con_queue(struct rtrs_con *con, struct ib_send_wr *first, bool last,
		   struct rtrs_con **queued);
void rtrs_con_flush(struct rtrs_con *con);
void rtrs_con_put_wr(struct rtrs_con *con);
int rtrs_con_post_imm(struct rtrs_con *con, u32 imm);
bool rtrs_con_probe(struct rtrs_con *con);
bool rtrs_con_wc_failed(struct rtrs_con *con, const struct ib_wc *wc,
			const char *what);

void rtrs_hb_start(struct rtrs_path *path, struct rtrs_con *con);
void rtrs_hb_stop(struct rtrs_path *path);
void rtrs_hb_changed(struct rtrs_path *path);
bool rtrs_hb_recv(struct rtrs_con *con, u32 imm);

#endif /* RTRS_CORE_H */
