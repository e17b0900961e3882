/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of client and server: a path with its protection domain and heartbeat, and a
 * connection with its queue pair.
 *
 * The files form a stack, listed from the bottom to the top. Each file calls functions of files
 * listed before it only. Calls to the client and the server use pointers in struct rtrs_path and
 * struct rtrs_con.
 *
 *	addr.c		text formats of addresses and names
 *	hist.c		histograms of latencies
 *	proof.c		proofs that an end knows a secret
 *	con.c		device of a path, and posting to a connection
 *	poll.c		polled connections
 *	region.c	memory for DMA, and its registration; messages of the handshake
 *	recv.c		receives of a connection
 *	qp.c		queue pairs and completion queues
 *	drain.c		disconnecting a path, and draining its queues
 *	hb.c		heartbeats, dead paths
 *	sysfs.c		attributes and counters of a path
 *
 * Lifetimes: struct rtrs_path is a part of the client's or the server's path, and struct rtrs_con
 * is a part of its connection. A path outlives its connections.
 *
 * Locks: rtrs_con.sq_lock and rtrs_path.hb_lock (spinlocks) and rtrs_path.stats_lock (mutex). They
 * do not nest in each other.
 */
#ifndef RTRS_CORE_H
#define RTRS_CORE_H

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "proto.h"

struct crypto_shash;
struct key;
struct rtrs_con;

/**
 * enum rtrs_form - how the data of a request travel
 * @RTRS_FORM_PUSH: the client sends the data, if any, together with the headers. It has copied them
 * @RTRS_FORM_PUSH_PAGES: the same, but the device reads the data from the upper layer's pages. This
 *	makes no difference to the server
 * @RTRS_FORM_FETCH: the server reads the data of a write from the client's pages. Its answer
 *	invalidates their key
 * @RTRS_FORM_READ: the server writes the data to a buffer of the client, whose key remains valid
 * @RTRS_FORM_READ_PAGES: the server writes the data to the client's pages. Its answer invalidates
 *	their key
 * @RTRS_FORM_CHUNK_READ: as RTRS_FORM_READ, but in a chunk, where the headers follow room for the
 *	data
 * @RTRS_FORM_CHUNK_READ_PAGES: as RTRS_FORM_CHUNK_READ, but to the client's pages. The answer is an
 *	immediate value
 *
 * Chosen once for each request. The forms FETCH, READ and READ_PAGES need RTRS_FEATURE_SLOTS; the
 * two CHUNK forms are used without it.
 */
enum rtrs_form {
	RTRS_FORM_PUSH,
	RTRS_FORM_PUSH_PAGES,
	RTRS_FORM_FETCH,
	RTRS_FORM_READ,
	RTRS_FORM_READ_PAGES,
	RTRS_FORM_CHUNK_READ,
	RTRS_FORM_CHUNK_READ_PAGES,
};

/* Buckets of the histogram of round trips. The last bucket has no upper limit. */
#define RTRS_HB_BUCKETS		24

/**
 * enum rtrs_live - result of the periodic check of a connection
 * @RTRS_LIVE_MOVED: something was completed or received since the last check
 * @RTRS_LIVE_IDLE: no progress, but nothing is outstanding
 * @RTRS_LIVE_PROBE: no progress, and work requests may be outstanding: send a probe
 * @RTRS_LIVE_WAIT: no progress, and a probe is outstanding
 * @RTRS_LIVE_STUCK: no progress for too long: the connection is dead
 */
enum rtrs_live {
	RTRS_LIVE_MOVED,
	RTRS_LIVE_IDLE,
	RTRS_LIVE_PROBE,
	RTRS_LIVE_WAIT,
	RTRS_LIVE_STUCK,
};

/**
 * struct rtrs_watch - state of a connection at its last check
 * @moved: value of rtrs_con.moved
 * @probed: value of rtrs_con.sq_posted after the last probe was sent
 * @still: no progress, although work requests may be outstanding
 * @still_ms: milliseconds since @still was set
 *
 * Used by the path's heartbeat work only.
 */
struct rtrs_watch {
	u32 moved;
	u32 probed;
	bool still;
	u32 still_ms;
};

/**
 * struct rtrs_hb_params - parameters of heartbeats
 * @interval_ms: milliseconds between two heartbeats
 * @max_missed: number of consecutive intervals without progress after which a path is dead
 *
 * May be changed at any time; see rtrs_hb_changed().
 */
struct rtrs_hb_params {
	unsigned int interval_ms;
	unsigned int max_missed;
};

/**
 * struct rtrs_stats - counters of a path on one CPU
 * @ops: number of requests: reads, all others
 * @bytes: bytes of data of these requests
 * @done: number of requests that are finished
 *
 * One instance per CPU, written by that CPU only.
 */
struct rtrs_stats {
	u64 ops[2];
	u64 bytes[2];
	u64 done;
};

/**
 * struct rtrs_path - common part of a client's and a server's path
 * @name: for messages: the addresses, after the session's name as soon as that is known
 * @log: rate limit of messages that the peer can cause; set by the owner, outlives the path
 * @addr: addresses of this end and of the peer
 * @addr_str: @addr as text, unique in the session
 * @uuid: chosen by the client; identifies the path to the server across reconnects
 * @id: number of this connect of the path, chosen by the client; no other connect of any path of
 *	the session has it. On the server 0 without RTRS_FEATURE_FENCE
 * @nr_connects: number of attempts of the client to connect the path, including the current one
 * @nr_cons: number of connections: on the client those that are set up, on the server those that
 *	the client announced
 * @hca_name: name of the last @dev
 * @port_num: number of the port of @dev
 * @features: RTRS_FEATURE_* that the server granted
 * @stats: counters; allocated and freed by the owner
 * @dev: RDMA device, set together with @pd
 * @no_imm: struct rtrs_msg_imm is sent instead of immediate data (RTRS_FEATURE_NO_IMM); set by the
 *	owner before the first queue pair is created
 * @pd: protection domain of this path only, so that the peer's keys give access to nothing but the
 *	memory registered for this path
 * @error: requests the end of the path after an error; @err is negative. Called in any context, any
 *	number of times, possibly concurrently
 * @probed: called when a path has made progress after rtrs_hb_probe_now(); process context. NULL if
 *	that is never called
 * @tick: called in each heartbeat interval; process context. May be NULL
 * @cons: connections that have a queue pair. Changed only by the thread that sets the path up or
 *	takes it down, while heartbeats are stopped
 * @hb: parameters of heartbeats; outlives the path
 * @hb_lock: guards @hb_con and @hb_trial_ms; no other lock nests in it
 * @hb_con: connection 0, from rtrs_hb_start() to rtrs_hb_stop()
 * @hb_work: checks all connections and sends a heartbeat, once per interval
 * @hb_missed: number of consecutive intervals without progress on any connection
 * @hb_trial_ms: timeout of the probe of rtrs_hb_probe_now(); 0 if none is requested or in progress
 * @hb_on_trial: the heartbeat of rtrs_hb_probe_now() has been sent; used by @hb_work only
 * @hb_sent: number of heartbeats sent; written by @hb_work
 * @hb_answered: number of answers received, in the order of the heartbeats; written by the receive
 *	handler of connection 0
 * @hb_timed: number, as in @hb_sent, of the heartbeat whose round trip is measured
 * @hb_timed_at: time in ns when the heartbeat @hb_timed was sent
 * @hb_latency: last measured round trip in ns; 0 before the first one since rtrs_hb_start()
 * @hb_hist: histogram of round trips; bucket n counts those shorter than 2^n microseconds
 * @stats_lock: guards @stats_base
 * @stats_base: sums of @stats when they were last reset
 * @kobj: directory in sysfs, initialized by the owner. Its reference count keeps the path alive
 *
 * Embedded in the client's or the server's path, which determines its lifetime; see
 * rtrs_path_init().
 */
struct rtrs_path {
	char name[RTRS_LABEL_LEN + RTRS_PATH_STR_LEN];
	struct ratelimit_state *log;
	struct rtrs_addr addr;
	char addr_str[RTRS_PATH_STR_LEN];
	uuid_t uuid;
	u32 id;
	u16 nr_connects;
	u32 nr_cons;
	char hca_name[IB_DEVICE_NAME_MAX];
	u32 port_num;
	u32 features;
	struct rtrs_stats __percpu *stats;
	struct ib_device *dev;
	bool no_imm;
	struct ib_pd *pd;
	void (*error)(struct rtrs_path *path, int err, const char *why);
	void (*probed)(struct rtrs_path *path);
	void (*tick)(struct rtrs_path *path);
	struct list_head cons;
	const struct rtrs_hb_params *hb;
	spinlock_t hb_lock; /* hb_con, hb_trial_ms */
	struct rtrs_con *hb_con;
	struct delayed_work hb_work;
	unsigned int hb_missed;
	unsigned int hb_trial_ms;
	bool hb_on_trial;
	u32 hb_sent;
	u32 hb_answered;
	u32 hb_timed;
	u64 hb_timed_at;
	u64 hb_latency;
	u32 hb_hist[RTRS_HB_BUCKETS];
	struct mutex stats_lock; /* stats_base */
	struct rtrs_stats stats_base;
	struct kobject kobj;
};

/* Logs a message that a peer can cause, with the rate limit of the path's session. */
#define rtrs_path_log(pr, path, fmt, ...)				\
do {									\
	const struct rtrs_path *__path = (path);			\
									\
	if (__ratelimit(READ_ONCE(__path->log)))			\
		pr("%s: " fmt, __path->name, ##__VA_ARGS__);		\
} while (0)
#define rtrs_path_err(path, fmt, ...)					\
	rtrs_path_log(pr_err, path, fmt, ##__VA_ARGS__)

/**
 * struct rtrs_region - memory of a path for DMA, divided into pieces of equal size (region.c)
 * @path: path whose device and protection domain are used
 * @nr: number of pieces
 * @size: bytes per piece
 * @group_shift: a group of 1 << @group_shift pieces is physically contiguous
 * @per_mr: pieces per memory region, a multiple of those per group; 0 without memory regions
 * @nr_groups: number of groups that are allocated and mapped
 * @group: addresses of the groups
 * @dma: DMA addresses of the groups
 * @nr_mrs: number of @mrs
 * @mrs: memory regions over the groups, in order; registered by the owner. The pieces of a memory
 *	region are contiguous in its remote address space
 *
 * Part of a client's or server's path, or of a connection. All zero before rtrs_region_alloc().
 */
struct rtrs_region {
	struct rtrs_path *path;
	u32 nr;
	u32 size;
	u32 group_shift;
	u32 per_mr;
	u32 nr_groups;
	void **group;
	u64 *dma;
	u32 nr_mrs;
	struct ib_mr **mrs;
};

/**
 * struct rtrs_long - a message of a handshake (region.c)
 * @path: path whose device and protection domain are used
 * @msg: the message; NULL if it isn't allocated
 * @size: bytes of @msg
 * @dma: DMA address of @msg
 */
struct rtrs_long {
	struct rtrs_path *path;
	void *msg;
	u32 size;
	u64 dma;
};

/**
 * struct rtrs_proof_data - data of a proof
 * @nr_cons: number of @con
 * @head: what the proof is computed from, together with @con, which follows without padding
 * @con: data of each connection of the path
 */
struct rtrs_proof_data {
	u32 nr_cons;
	struct rtrs_proof_head head;
	struct rtrs_proof_con con[];
};

static_assert(offsetof(struct rtrs_proof_data, con) ==
	      offsetof(struct rtrs_proof_data, head) + sizeof(struct rtrs_proof_head));

/* Number of receives that are reposted as one chain. */
#define RTRS_RECV_BATCH		16

/**
 * union rtrs_recv_msg - memory of a receive
 * @rkey: answer with the chunk's key
 * @answer: answer that invalidated a key of the client
 * @imm: message that replaces immediate data, with RTRS_FEATURE_NO_IMM
 */
union rtrs_recv_msg {
	struct rtrs_msg_rkey_rsp rkey;
	struct rtrs_msg_answer answer;
	struct rtrs_msg_imm imm;
};

/**
 * struct rtrs_recvs - receives of a connection (recv.c)
 * @nr: number of receives
 * @used: number of completed receives since a chain was last posted
 * @first: index of the first of the @used receives, if receives have memory
 * @nr_posts: number of posted chains
 * @msgs: memory of the receives, in posting order; all zero if they have none
 * @cqe: completion entry shared by all receives
 * @wr: chain that reposts receives
 * @sge: SGEs of @wr
 *
 * After the first receive is posted, used by handlers of the completion queue only.
 */
struct rtrs_recvs {
	u32 nr;
	u32 used;
	u32 first;
	u32 nr_posts;
	struct rtrs_region msgs;
	struct ib_cqe cqe;
	struct ib_recv_wr wr[RTRS_RECV_BATCH];
	struct ib_sge sge[RTRS_RECV_BATCH];
};

/**
 * struct rtrs_drain_mark - marker work request posted after all others of a queue (drain.c)
 * @cqe: completion entry of the mark
 * @done: completed by the mark's handler
 * @posted: the mark was posted successfully
 * @stuck: the queue pair could not be moved to the error state, so a mark would not complete
 * @set: the queue pair has had a mark
 * @recv: the mark is for the receive queue, else for the send queue
 * @due: the mark has to be waited for
 * @nr_posts: number of posts to the queue before the mark
 *
 * Used only by the thread that drains the path.
 */
struct rtrs_drain_mark {
	struct ib_cqe cqe;
	struct completion done;
	bool posted;
	bool stuck;
	bool set;
	bool recv;
	bool due;
	u32 nr_posts;
};

/**
 * struct rtrs_con - a connection with its queue pair
 * @path: path of the connection; outlives it
 * @cm_id: connection manager id; owns the queue pair
 * @cq: completion queue of both queues of the pair; NULL without a queue pair
 * @cid: index in the path, 0 for the service connection
 * @polled: @cq raises no interrupts, see rtrs_con_poll()
 * @entry: in &rtrs_path.cons while the connection has a queue pair
 * @watch: state of the last check; used by the path's heartbeat
 * @probe_busy: the last probe is not acknowledged yet; set by the heartbeat, cleared by the probe's
 *	completion handler
 * @probe_cqe: completion entry of the probe
 * @mark: marker for draining one of the two queues
 * @peer_qpn: number of the peer's queue pair, 0 over iWARP
 * @nonce: nonce from the accept message, with RTRS_FEATURE_PROOF
 * @sq_cqe: completion entry of all work requests without one of their own
 * @sq_room: called when send queue entries become free, or NULL; context of the completion queue. A
 *	caller that waits for room calls rtrs_con_wait_mb() before its last check for room
 * @sq_size: number of send queue entries
 * @sq_reserve: number of entries that only rtrs_con_post() may use, see rtrs_con_has_room()
 * @sq_inline: maximum bytes of a send with IB_SEND_INLINE; such data need no DMA mapping
 * @polling: bit 0: a thread is processing completions of a polled @cq
 * @moved: number of successful completions that count as a sign of life, see rtrs_con_wc_failed();
 *	written by the handlers of @cq, which run one at a time
 * @sq_done: number of work requests that have left the send queue; written by the handlers of @cq
 * @recvs: all receives except the one for the first message
 * @sq_lock: guards the members below; taken in any context. Locks of the RDMA driver and of
 *	rtrs_path.error() nest in it
 * @sq_posted: number of work requests added to the send queue; also read without the lock
 * @sq_queued: number of chains added by rtrs_con_queue(); also read without the lock
 * @nr_answered: server only: number of answered requests; also read without the lock
 * @sq_limit: maximum value of @sq_posted, from the value of @sq_done that was last read
 * @sq_seq: number of work requests posted without a signal of their own
 * @sq_head: chain that waits for the doorbell, or NULL
 * @sq_tail: last work request of @sq_head
 *
 * Embedded in the client's or the server's connection. Members written by completion handlers and
 * members written by each post are in separate cache lines.
 *
 * Only every RTRS_SIGNAL_EVERY-th work request is signalled; its completion reports that as many
 * have left the queue. Work requests that request a signal themselves have their own cqe, whose
 * handler calls rtrs_con_put_wr().
 */
struct rtrs_con {
	struct rtrs_path *path;
	struct rdma_cm_id *cm_id;
	struct ib_cq *cq;
	u16 cid;
	bool polled;
	u32 peer_qpn;
	u8 nonce[8];
	struct list_head entry;
	struct rtrs_watch watch;
	bool probe_busy;
	struct ib_cqe probe_cqe;
	struct rtrs_drain_mark mark;
	struct ib_cqe sq_cqe;
	void (*sq_room)(struct rtrs_con *con);
	u32 sq_size;
	u32 sq_reserve;
	u32 sq_inline;

	unsigned long polling ____cacheline_aligned_in_smp;
	u32 moved;
	u32 sq_done;
	struct rtrs_recvs recvs;

	spinlock_t sq_lock ____cacheline_aligned_in_smp; /* the members below */
	u32 sq_posted;
	u32 sq_queued;
	u32 nr_answered;
	u32 sq_limit;
	u32 sq_seq;
	struct ib_send_wr *sq_head;
	struct ib_send_wr *sq_tail;
} ____cacheline_aligned_in_smp;

#define RTRS_SIGNAL_EVERY	32
/* Maximum number of completions per rtrs_con_poll(), which disables preemption. */
#define RTRS_POLL_BUDGET	64
/* Maximum number of send queue entries that rdma_rw adds for each of its contexts. */
#define RTRS_RW_WR		3

/**
 * struct rtrs_imm_wr - work request that sends an immediate value, or a message in its place
 * @wr: the work request
 * @sge: SGE of @msg
 * @msg: the message, with RTRS_FEATURE_NO_IMM; the device copies it when the work request is posted
 */
struct rtrs_imm_wr {
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	struct rtrs_msg_imm msg;
};

/*
 * Size of each queue of a service connection that carries no requests, only first messages,
 * heartbeats and fencing. With one more entry for draining, and one that rdma_rxe keeps free, the
 * queue has a power of two entries.
 */
#define RTRS_SERVICE_WR		126

/**
 * struct rtrs_qp_params - size and kind of a queue pair
 * @send_wr: send queue entries that rtrs_con_has_room() makes available
 * @send_reserve: additional entries for rtrs_con_post()
 * @recv_wr: maximum number of posted receives
 * @send_sge: maximum number of SGEs of a send
 * @send_inline: bytes of inline data of a send; lowered to 0 if the device supports less
 * @min_send_wr: minimum to which @send_wr may be lowered
 * @min_send_sge: minimum to which @send_sge may be lowered
 * @rdma_ctxs: maximum number of rdma_rw contexts in use. Their RDMA READs or WRITEs are included in
 *	@send_wr and @send_reserve; the entries that rdma_rw adds for memory regions are not
 * @nr_io: number of I/O connections of the path
 * @poll: context in which completions are handled
 */
struct rtrs_qp_params {
	u32 send_wr;
	u32 send_reserve;
	u32 recv_wr;
	u32 send_sge;
	u32 send_inline;
	u32 min_send_wr;
	u32 min_send_sge;
	u32 rdma_ctxs;
	u32 nr_io;
	enum ib_poll_context poll;
};

static inline u32 rtrs_region_off(const struct rtrs_region *region, u32 i)
{
	return (i & (BIT(region->group_shift) - 1)) * region->size;
}

/* Returns the address of a piece. */
static inline void *rtrs_region_addr(const struct rtrs_region *region, u32 i)
{
	return region->group[i >> region->group_shift] + rtrs_region_off(region, i);
}

/* Returns the DMA address of a piece. */
static inline u64 rtrs_region_dma(const struct rtrs_region *region, u32 i)
{
	return region->dma[i >> region->group_shift] + rtrs_region_off(region, i);
}

/* Returns the memory region of a piece, in a region that has memory regions. */
static inline struct ib_mr *rtrs_region_mr(const struct rtrs_region *region, u32 i)
{
	return region->mrs[i / region->per_mr];
}

/* Returns the address of a piece for RDMA by the peer. */
static inline u64 rtrs_region_iova(const struct rtrs_region *region, u32 i)
{
	return rtrs_region_mr(region, i)->iova + (u64)(i % region->per_mr) * region->size;
}

/* addr.c */
const u8 *rtrs_addr_bytes(const struct sockaddr_storage *ss, size_t *len);
void rtrs_addr_from_id(const struct rdma_cm_id *id, struct rtrs_addr *addr);

/* con.c */
int rtrs_path_open_dev(struct rtrs_path *path, const struct rdma_cm_id *id);
void rtrs_path_close_dev(struct rtrs_path *path);
bool rtrs_con_wc_failed(struct rtrs_con *con, const struct ib_wc *wc,
			const char *what);
void rtrs_con_put_wr(struct rtrs_con *con);
void rtrs_con_set_ack_timeout(struct rtrs_con *con);
void rtrs_con_init_sq(struct rtrs_con *con, const struct rtrs_qp_params *params);
void rtrs_con_ring(struct rtrs_con *con);
bool rtrs_con_has_room(struct rtrs_con *con, u32 nr);
int rtrs_con_queue(struct rtrs_con *con, struct ib_send_wr *first, bool last,
		   struct rtrs_con **queued);
int rtrs_con_post(struct rtrs_con *con, struct ib_send_wr *first);
void rtrs_con_post_locked(struct rtrs_con *con, struct ib_send_wr *first, u32 nr);
void rtrs_con_flush(struct rtrs_con *con);
int rtrs_con_probe(struct rtrs_con *con);
void rtrs_put_msg_imm(struct ib_send_wr *wr, struct ib_sge *sge,
		      struct rtrs_msg_imm *msg, u32 imm);
int rtrs_con_post_imm(struct rtrs_con *con, u32 imm);
void rtrs_con_answer_imm(struct rtrs_con *con, u32 imm);

/* Builds the work request that sends an immediate value, without data. */
static inline struct ib_send_wr *rtrs_con_build_imm(const struct rtrs_con *con,
						    struct rtrs_imm_wr *imm_wr, u32 imm)
{
	struct ib_send_wr *wr = &imm_wr->wr.wr;

	imm_wr->wr = (struct ib_rdma_wr) {};
	if (con->path->no_imm) {
		rtrs_put_msg_imm(wr, &imm_wr->sge, &imm_wr->msg, imm);
	} else {
		wr->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr->ex.imm_data = cpu_to_be32(imm);
	}
	return wr;
}

/*
 * Memory barrier for callers that wait for send queue entries: after they become visible to
 * sq_room(), and before they check for room the last time.
 */
static inline void rtrs_con_wait_mb(void)
{
	/*
	 * Pairs with rtrs_con_give_room(), which first frees the entries and then calls sq_room():
	 * either the caller sees the free entries, or sq_room() sees the waiting caller.
	 */
	smp_mb();
}

/* region.c */
u32 rtrs_region_max_per_mr(const struct rtrs_path *path, u32 size);
u64 rtrs_region_bytes(u32 nr, u32 size, u32 per_mr);
int rtrs_region_alloc(struct rtrs_region *region, struct rtrs_path *path, u32 nr,
		      u32 size, u32 per_mr);
int rtrs_region_register(const struct rtrs_region *region, struct rtrs_con *con, u32 first,
			 struct ib_cqe *cqe);
void rtrs_region_free(struct rtrs_region *region);
int rtrs_long_alloc(struct rtrs_long *m, struct rtrs_path *path, u32 size);
void rtrs_long_free(struct rtrs_long *m);
int rtrs_long_send(const struct rtrs_long *m, struct rtrs_con *con, struct ib_cqe *cqe);
int rtrs_long_post_recv(const struct rtrs_long *m, struct rtrs_con *con, struct ib_cqe *cqe);
void rtrs_long_received(const struct rtrs_long *m);

/* recv.c */
int rtrs_con_start_recvs(struct rtrs_con *con, u32 nr, bool msgs,
			 void (*done)(struct ib_cq *cq, struct ib_wc *wc));
const union rtrs_recv_msg *rtrs_con_recv_msg(const struct rtrs_con *con);
int rtrs_con_repost(struct rtrs_con *con);
void rtrs_con_free_recvs(struct rtrs_con *con);

/* qp.c */
/* Checks whether an errno of rdma_create_qp() may mean that the requested size is too large. */
static inline bool rtrs_qp_refused(int err)
{
	return err == -ENOMEM || err == -EINVAL || err == -EAGAIN;
}

u64 rtrs_qp_bytes(const struct rtrs_qp_params *params);
int rtrs_con_create_qp(struct rtrs_con *con, struct rtrs_qp_params *params);
void rtrs_path_destroy_qps(struct rtrs_path *path);

/* poll.c */
int rtrs_con_poll(struct rtrs_con *con);

/* drain.c */
void rtrs_path_disconnect(struct rtrs_path *path);
void rtrs_path_drain_send(struct rtrs_path *path);

/* hb.c */
void rtrs_path_init(struct rtrs_path *path, const struct rtrs_hb_params *hb,
		    void (*error)(struct rtrs_path *path, int err,
				  const char *why));
enum rtrs_live rtrs_hb_check_con(struct rtrs_watch *watch, u32 moved, u32 posted,
				 bool probing, u32 ms, u32 limit_ms);
bool rtrs_hb_check_path(unsigned int *missed, bool moved,
			unsigned int max_missed);
void rtrs_hb_start(struct rtrs_path *path, struct rtrs_con *con);
void rtrs_hb_stop(struct rtrs_path *path);
void rtrs_hb_changed(struct rtrs_path *path);
void rtrs_hb_probe_now(struct rtrs_path *path, unsigned int timeout_ms);
bool rtrs_hb_on_trial(const struct rtrs_path *path);
bool rtrs_hb_recv(struct rtrs_con *con, u32 imm);

/* proof.c */
struct rtrs_proof_data *rtrs_proof_data_alloc(const struct rtrs_path *path,
					      enum rtrs_proof_role role, const char *name);
struct crypto_shash *rtrs_proof_alloc(void);
void rtrs_proof_free(struct crypto_shash *tfm);
int rtrs_proof_tag(struct crypto_shash *tfm, struct key *key, const char *name,
		   const uuid_t *sess_uuid, u16 *tag);
int rtrs_proof_make(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		    struct rtrs_proof_data *data, u8 *mac);
int rtrs_proof_check(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		     struct rtrs_proof_data *data, const u8 *mac);

#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_qp_fit(struct rtrs_qp_params *params, const struct ib_device_attr *attrs);
bool rtrs_qp_shrink(struct rtrs_qp_params *params);
u32 rtrs_qp_vector(u32 nr_vectors, u32 nr_io, u32 cid, atomic_t *next);
void rtrs_path_drain_recv(struct rtrs_path *path);
void rtrs_hb_forget_moves(struct rtrs_path *path);
void rtrs_hb_reset(struct rtrs_path *path);
void rtrs_proof_fill(struct rtrs_proof_head *head, const char *name,
		     const struct sockaddr_storage *client,
		     const struct sockaddr_storage *server);
#endif

#endif /* RTRS_CORE_H */
