/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts that client and server share: a path with its protection domain and
 * heartbeat, a connection with its queue pair.
 */
#ifndef RTRS_CORE_H
#define RTRS_CORE_H

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "proto.h"

struct crypto_shash;
struct key;
struct rtrs_con;

/* Buckets of the histogram of round trips; the last one counts all longer ones. */
#define RTRS_HB_BUCKETS		24

/**
 * enum rtrs_live - result of a check of a connection, once an interval
 * @RTRS_LIVE_MOVED: something was completed or received since the last look
 * @RTRS_LIVE_IDLE: nothing was, but nothing is outstanding
 * @RTRS_LIVE_PROBE: nothing was, and what was posted may be outstanding: send a probe
 * @RTRS_LIVE_WAIT: nothing was, and a probe is outstanding
 * @RTRS_LIVE_STUCK: this has gone on for too long: the connection is dead
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
 * @still: nothing has moved, though something may be outstanding
 * @still_ms: milliseconds since @still was set
 *
 * Used by the path's heartbeat work alone.
 */
struct rtrs_watch {
	u32 moved;
	u32 probed;
	bool still;
	u32 still_ms;
};

/**
 * struct rtrs_hb_params - heartbeats of paths
 * @interval_ms: milliseconds from one heartbeat to the next
 * @max_missed: number of intervals in a row without a sign of life after which a path
 *	is dead
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
 * @log: limit of messages about it that its peer can cause; set by its owner, outlives it
 * @dev: RDMA device, set with @pd
 * @no_imm: struct rtrs_msg_imm is sent in place of immediate data (RTRS_FEATURE_NO_IMM);
 *	set by its owner before the first queue pair is created
 * @pd: protection domain of this path alone, so that a peer's keys reach nothing
 *	but what this path set aside for it
 * @error: the path can't go on: ask for its end. Any context; may come any
 *	number of times, from several places at once. @err is negative
 * @probed: the path is alive, see rtrs_hb_probe_now(); process context. NULL if that is
 *	never called
 * @tick: called each interval of heartbeats while these are on; process context. Or NULL
 * @cons: its connections that have a queue pair. Changes only while one thread sets
 *	the path up or takes it down, without heartbeats
 * @hb: how often heartbeats are sent; outlives the path
 * @hb_lock: guards @hb_con and @hb_trial_ms; nothing nests in it
 * @hb_con: connection 0, from rtrs_hb_start() to rtrs_hb_stop()
 * @hb_work: looks at all connections and sends a heartbeat, each interval
 * @hb_missed: intervals in a row in which nothing moved on any connection
 * @hb_trial_ms: see rtrs_hb_probe_now(); 0 if nobody asked for it, or it is over
 * @hb_on_trial: the heartbeat of rtrs_hb_probe_now() has been sent; @hb_work alone
 * @hb_sent: counts heartbeats; written by @hb_work
 * @hb_answered: counts answers, which come in the same order; written by the handler
 *	of connection 0's receives
 * @hb_timed: the heartbeat, by @hb_sent, whose round trip is measured
 * @hb_timed_at: when that one was sent, ns
 * @hb_latency: the last round trip that was measured, ns; 0 before the first since @hb_con
 * @hb_hist: round trips that took less than 2^n microseconds
 *
 * Embedded in the client's or the server's path, which keeps it alive; see
 * rtrs_path_init().
 */
struct rtrs_path {
	char name[RTRS_LABEL_LEN + RTRS_PATH_STR_LEN];
	struct ratelimit_state *log;
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
};

/* Logs an error that a peer can cause: limited for each session on its own. */
#define rtrs_path_err(path, fmt, ...)					\
do {									\
	struct rtrs_path *__path = (path);				\
									\
	if (__ratelimit(READ_ONCE(__path->log)))			\
		pr_err("%s: " fmt, __path->name, ##__VA_ARGS__);	\
} while (0)

/**
 * struct rtrs_region - equal pieces of memory for a path's device (region.c)
 * @path: path whose device and protection domain it is for
 * @nr: number of pieces
 * @size: bytes of a piece
 * @group_shift: pieces of a group, which is physically contiguous: 1 << @group_shift
 * @per_mr: pieces of a memory region, a multiple of those of a group; 0 without memory regions
 * @nr_groups: groups that are allocated and mapped
 * @group: the groups' addresses
 * @dma: the groups' addresses for the device
 * @nr_mrs: number of @mrs
 * @mrs: memory regions over the groups, in order; the owner registers them. For the peer the
 *	pieces of a region lie in a row
 *
 * Belongs to the client's or the server's path. All zero until rtrs_region_alloc().
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

/* Receives that are posted again at once. */
#define RTRS_RECV_BATCH		16

/**
 * union rtrs_recv_msg - memory of a receive
 * @rkey: key that comes with an answer
 * @answer: answer that invalidates a key
 * @imm: with RTRS_FEATURE_NO_IMM, what would be an immediate value
 */
union rtrs_recv_msg {
	struct rtrs_msg_rkey_rsp rkey;
	struct rtrs_msg_answer answer;
	struct rtrs_msg_imm imm;
};

/**
 * struct rtrs_recvs - receives of a connection (recv.c)
 * @nr: how many there are
 * @used: receives taken since the chain was last posted
 * @first: index of the first of these, if they have memory
 * @nr_posts: counts chains that were posted
 * @msgs: pages of their memory, in the order in which they are posted; all zero without
 * @cqe: completion entry of all of them
 * @wr: the chain
 * @sge: where @wr receive
 *
 * Handlers of the completion queue alone touch it from when the first receive is posted.
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
 * struct rtrs_drain_mark - work request behind all others of a queue (drain.c)
 * @cqe: its completion entry
 * @done: its handler has run
 * @posted: the device has taken it
 * @stuck: the queue pair could not be moved to the error state, so no mark would complete
 * @set: it is a mark of this queue pair's life
 * @recv: of the receive queue, else of the send queue
 * @due: it is being waited for
 * @nr_posts: number of posts to the queue before it
 *
 * Belongs to the thread that drains the path.
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
 * struct rtrs_con - a connection, one queue pair
 * @path: the path that it is part of, and that outlives it
 * @cm_id: its connection manager id; owns the queue pair
 * @cq: its own, for both queues of the pair; NULL if it has no queue pair
 * @cid: index in the path, 0 for the service connection
 * @polled: @cq raises no interrupts: see rtrs_con_poll()
 * @entry: in @path's list, while it has a queue pair
 * @watch: belongs to the path's heartbeats
 * @probe_busy: the last probe has not been acknowledged yet; set by the heartbeat, cleared
 *	by the probe's handler
 * @probe_cqe: of the last probe
 * @mark: for draining one of its queues
 * @peer_qpn: number of the peer's queue pair, 0 over iWARP
 * @nonce: with RTRS_FEATURE_PROOF: from the accept
 * @sq_cqe: of all work requests without a signal of their own
 * @sq_room: called when room in the send queue came free, may be NULL; context
 *	of the completion queue. Who waits for room calls rtrs_con_wait_mb() before it looks
 *	for the last time
 * @sq_size: work requests that the send queue has room for
 * @sq_reserve: as much of that is left to rtrs_con_post(), see rtrs_con_has_room()
 * @sq_inline: most bytes of a send with IB_SEND_INLINE, of which the CPU's address is given
 * @polling: bit 0: a thread handles completions of a polled @cq
 * @moved: counts completions of any kind that were good; written by the handlers of
 *	@cq, of which one runs at a time
 * @sq_done: counts work requests that have left the send queue; written by the same
 * @recvs: its receives, but for that of the first message
 * @sq_lock: guards what follows; taken in any context; in it nest the locks of the RDMA
 *	driver and what rtrs_path.error() takes
 * @sq_posted: counts work requests; read without the lock, too
 * @sq_queued: counts chains of rtrs_con_queue(); likewise
 * @nr_answered: the server's: counts answers to requests; likewise
 * @sq_limit: value up to which @sq_posted may go: @sq_size more than @sq_done when that was
 *	looked at last
 * @sq_seq: work requests posted without a signal of their own
 * @sq_head: chain that waits for the doorbell, NULL if none does
 * @sq_tail: its last work request
 *
 * Embedded in the client's or the server's connection. What handlers of completions write,
 * and what is written with each post, have cache lines of their own.
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

	spinlock_t sq_lock ____cacheline_aligned_in_smp; /* what follows */
	u32 sq_posted;
	u32 sq_queued;
	u32 nr_answered;
	u32 sq_limit;
	u32 sq_seq;
	struct ib_send_wr *sq_head;
	struct ib_send_wr *sq_tail;
} ____cacheline_aligned_in_smp;

#define RTRS_SIGNAL_EVERY	32
/* Most completions that rtrs_con_poll() handles, as it isn't preempted meanwhile. */
#define RTRS_POLL_BUDGET	64
/* Most work requests that rdma_rw adds to a send queue for each of its contexts. */
#define RTRS_RW_WR		3

/**
 * struct rtrs_imm_wr - work request that sends an immediate value, or a message in its place
 * @wr: the work request
 * @sge: lists @msg
 * @msg: with RTRS_FEATURE_NO_IMM, the message; the device copies it when it is posted
 */
struct rtrs_imm_wr {
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	struct rtrs_msg_imm msg;
};

/*
 * Work requests of each kind on a service connection that carries no requests: first messages,
 * heartbeats, fencing. With one more for draining, and one that rdma_rxe keeps free, they fill a
 * queue of a power of two.
 */
#define RTRS_SERVICE_WR		126

/**
 * struct rtrs_qp_params - size and kind of a queue pair
 * @send_wr: work requests that rtrs_con_has_room() lets in the send queue
 * @send_reserve: as many more for rtrs_con_post()
 * @recv_wr: most receives that are posted at a time
 * @send_sge: most SGEs of a send
 * @send_inline: bytes of a send that the device is to take with the work request; lowered to 0
 *	if it can't
 * @min_send_wr: least value that @send_wr may be lowered to
 * @min_send_sge: least value that @send_sge may be lowered to
 * @rdma_ctxs: chains of RDMA READs or WRITEs that rdma_rw makes at a time; they are in
 *	@send_wr and @send_reserve. What rdma_rw adds for memory regions is not
 * @nr_io: number of connections for I/O of the path
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

/* A piece's address. */
static inline void *rtrs_region_addr(const struct rtrs_region *region, u32 i)
{
	return region->group[i >> region->group_shift] + rtrs_region_off(region, i);
}

/* Its address for the device. */
static inline u64 rtrs_region_dma(const struct rtrs_region *region, u32 i)
{
	return region->dma[i >> region->group_shift] + rtrs_region_off(region, i);
}

/* Its memory region, if there are any. */
static inline struct ib_mr *rtrs_region_mr(const struct rtrs_region *region, u32 i)
{
	return region->mrs[i / region->per_mr];
}

/* Its address for the peer. */
static inline u64 rtrs_region_iova(const struct rtrs_region *region, u32 i)
{
	return rtrs_region_mr(region, i)->iova + (u64)(i % region->per_mr) * region->size;
}

u32 rtrs_region_max_per_mr(const struct rtrs_path *path, u32 size);
u64 rtrs_region_bytes(u32 nr, u32 size, u32 per_mr);
int rtrs_region_alloc(struct rtrs_region *region, struct rtrs_path *path, u32 nr,
		      u32 size, u32 per_mr);
void rtrs_region_free(struct rtrs_region *region);

void rtrs_path_init(struct rtrs_path *path, const struct rtrs_hb_params *hb,
		    void (*error)(struct rtrs_path *path, int err,
				  const char *why));
int rtrs_path_open_dev(struct rtrs_path *path, struct ib_device *dev);
void rtrs_path_close_dev(struct rtrs_path *path);

/* Whether an errno of rdma_create_qp() may mean that the size is too large. */
static inline bool rtrs_qp_refused(int err)
{
	return err == -ENOMEM || err == -EINVAL || err == -EAGAIN;
}

u64 rtrs_qp_bytes(const struct rtrs_qp_params *params);
void rtrs_con_set_ack_timeout(struct rtrs_con *con);
int rtrs_con_create_qp(struct rtrs_con *con, struct rtrs_qp_params *params);
void rtrs_con_destroy_qp(struct rtrs_con *con);
u64 rtrs_recv_msgs_bytes(u32 nr);
int rtrs_con_start_recvs(struct rtrs_con *con, u32 nr, bool msgs,
			 void (*done)(struct ib_cq *cq, struct ib_wc *wc));
const union rtrs_recv_msg *rtrs_con_recv_msg(const struct rtrs_con *con);
int rtrs_con_repost(struct rtrs_con *con);
void rtrs_con_free_recvs(struct rtrs_con *con);
int rtrs_con_post(struct rtrs_con *con, struct ib_send_wr *first);
bool rtrs_con_has_room(struct rtrs_con *con, u32 nr);
void rtrs_con_post_locked(struct rtrs_con *con, struct ib_send_wr *first);
int rtrs_con_queue(struct rtrs_con *con, struct ib_send_wr *first, bool last,
		   struct rtrs_con **queued);
void rtrs_con_flush(struct rtrs_con *con);
void rtrs_con_put_wr(struct rtrs_con *con);
void rtrs_put_msg_imm(struct ib_send_wr *wr, struct ib_sge *sge,
		      struct rtrs_msg_imm *msg, u32 imm);

/*
 * To be called between making known that one waits for room, where sq_room() sees it, and the
 * last look for room.
 */
static inline void rtrs_con_wait_mb(void)
{
	/*
	 * Pairs with rtrs_con_give_room(), which first counts the room and then calls
	 * sq_room(): either we see the room, or that sees us.
	 */
	smp_mb();
}

int rtrs_con_post_imm(struct rtrs_con *con, u32 imm);
void rtrs_con_answer_imm(struct rtrs_con *con, u32 imm);
int rtrs_con_probe(struct rtrs_con *con);
void rtrs_path_drain_recv(struct rtrs_path *path);
void rtrs_path_drain_send(struct rtrs_path *path);
int rtrs_con_poll(struct rtrs_con *con);
bool rtrs_con_wc_failed(struct rtrs_con *con, const struct ib_wc *wc,
			const char *what);

void rtrs_hb_init(struct rtrs_path *path);
void rtrs_hb_start(struct rtrs_path *path, struct rtrs_con *con);
void rtrs_hb_stop(struct rtrs_path *path);
void rtrs_hb_changed(struct rtrs_path *path);
void rtrs_hb_probe_now(struct rtrs_path *path, unsigned int timeout_ms);
bool rtrs_hb_on_trial(const struct rtrs_path *path);
bool rtrs_hb_recv(struct rtrs_con *con, u32 imm);

enum rtrs_live rtrs_hb_judge_con(struct rtrs_watch *watch, u32 moved, u32 posted,
				 bool probing, u32 ms, u32 limit_ms);
bool rtrs_hb_judge_path(unsigned int *missed, bool moved,
			unsigned int max_missed);
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_hb_forget_moves(struct rtrs_path *path);
void rtrs_hb_reset(struct rtrs_path *path);
#endif

/* addr.c */
void rtrs_addr_from_id(const struct rdma_cm_id *id, struct rtrs_addr *addr);

/* proof.c */
void rtrs_proof_fill(struct rtrs_proof_head *head, const char *name,
		     const struct sockaddr_storage *client,
		     const struct sockaddr_storage *server);
void rtrs_proof_fill_con(struct rtrs_proof_con *to, const struct rtrs_con *con,
			 enum rtrs_proof_role role);
struct crypto_shash *rtrs_proof_alloc(void);
void rtrs_proof_free(struct crypto_shash *tfm);
int rtrs_proof_make(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		    struct rtrs_proof_head *head, const struct rtrs_proof_con *cons,
		    unsigned int nr_cons, u8 *mac);
int rtrs_proof_check(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		     struct rtrs_proof_head *head, const struct rtrs_proof_con *cons,
		     unsigned int nr_cons, const u8 *mac);

#endif /* RTRS_CORE_H */
