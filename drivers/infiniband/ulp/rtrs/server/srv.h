/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS server.
 *
 * The files form a stack, listed from the bottom to the top. Each file calls functions of files
 * listed before it only; calls in the other direction use pointers. The declarations of buf.c,
 * port.c and fetch.c are in pull.h, all others in this header:
 *
 *	state.c		the state of a path; errors; waiting for changes
 *	mem.c		a path's chunks and keys, and the limit on the memory of all paths
 *	qp.c		sizes of queue pairs, and the queue depth that fits
 *	slot.c		slots of sessions, and the requests that hold them
 *	limit.c		limits on the number and the memory of handshakes
 *	buf.c		buffers for data outside of chunks, and requests that wait for one
 *	port.c		how much is fetched at a time over a port, and fairness between sessions
 *	fetch.c		fetching the data of large writes from the client
 *	send.c		answers, and the end of requests
 *	io.c		requests, from their arrival until they are passed to the upper layer
 *	fence.c		fencing: the client ends a path by a message on another path
 *	recv.c		messages received on a connection
 *	sysfs.c		directories of sessions and paths, statistics of the module
 *	sess.c		sessions: lookup, naming, registration with the upper layer, end
 *	proof.c		mutual authentication during the handshake
 *	setup.c		the handshake of a path
 *	con.c		the connections of a path, and events of the connection manager
 *	path.c		the life of a path: creation and closing work
 *	listen.c	connection requests; opening and closing the server; module init and exit
 *
 * A session is created by the first connection request with its UUID, and lives as long as it has a
 * path. A path is created by the request for its connection 0. Its handshake runs in the state
 * CONNECTING, until the server sends the addresses of the chunks to the client. The path handles
 * requests in the state CONNECTED. In the state CLOSING, its closing work takes it down, whatever
 * the reason. All other code only requests the end of a path, by rtrs_srv_path_error().
 *
 * No work item waits for I/O or for another session's path, because all clients share the workers.
 * If the closing work needs all requests to be finished, the last request queues the rest of the
 * work. If a handshake needs the end of another path or session, it is parked, and queued again
 * after the next change.
 *
 * Locks, outer before inner. Locks on different lines of the list don't nest:
 *
 *	handler lock of a cm_id > rtrs_srv_lock > &sess->paths_lock >
 *		sq_lock of struct rtrs_con > &path->state_lock
 *	handler lock of a cm_id > &path->conns.lock > &path->state_lock
 *	rtrs_srv_lock > &sess->paths_lock > hb_lock of struct rtrs_path
 *	&sess->up_lock > locks that the upper layer takes in ->sess_up()
 *	locks that the upper layer holds in rtrs_srv_send_event() > &sess->paths_lock
 *	locks that the upper layer holds in rtrs_srv_each_path() > rtrs_srv_lock
 *	&con->pend_lock > sq_lock of struct rtrs_con > &path->state_lock
 *	&con->pend_lock > sq_lock of struct rtrs_con > &sess->slots.lock
 *	&con->pend_lock > &port->lock
 *	rtrs_srv_lock, &path->conns.lock > the locks of parked handshakes (state.c) and
 *		of the memory in use (mem.c); no other lock nests in these two
 *
 * No lock of this list is held while a cm_id is destroyed or a path's directory is removed.
 */
#ifndef RTRS_SRV_H
#define RTRS_SRV_H

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/ratelimit.h>
#include <linux/wait_bit.h>

#include "../common/sysfs.h"
#include "pull.h"

/* A connection with at most this many requests in progress begins each at once, for low latency. */
#define RTRS_SRV_FEW		4
/* Work requests of one answer: RDMA WRITE, SEND WITH INV, and the immediate value. */
#define RTRS_SRV_WR_PER_IO	3
/*
 * Size of a connection's send queue, in work requests that the client's device has not
 * acknowledged: enough for 200 to 500 answers. Lowered if the device supports less.
 */
#define RTRS_SRV_SEND_WR	1024
/*
 * The size with RTRS_FEATURE_SLOTS, where a small answer is one work request. Together with all
 * other work requests the send queue stays below 256 entries; devices round up to powers of two.
 */
#define RTRS_SRV_SLOTS_SEND_WR	142
static_assert(RTRS_SRV_SLOTS_SEND_WR + RTRS_SIGNAL_EVERY + RTRS_SRV_READ_WR + 1 +
	      RTRS_SRV_READS * RTRS_RW_WR < 256);
#define RTRS_SRV_MIN_SEND_WR	(4 * RTRS_SIGNAL_EVERY)
static_assert(RTRS_SRV_MAX_DATA_WR + RTRS_SIGNAL_EVERY < RTRS_SRV_MIN_SEND_WR);
/*
 * Send queue entries of connection 0 that are not available for answers to requests or heartbeats.
 * They are reserved for FENCED (one outstanding at a time), heartbeats, and EVENT (at most one per
 * second).
 */
#define RTRS_SRV_SERVICE_RESERVE 16
/* Time limit of a handshake, from the request for connection 0. */
#define RTRS_SRV_SETUP_MS	30000
/* A step of the setup work has to wait. Positive, as RDMA drivers may return any errno. */
#define RTRS_SRV_SETUP_WAIT	1
/* The setup work is finished: the client was sent the reason why its path is refused. */
#define RTRS_SRV_SETUP_REFUSED	2
/* Time limit for the client to disconnect a refused path. */
#define RTRS_SRV_REFUSED_MS	5000
/* Time limit for an old session to show a sign of life when a new session requests its name. */
#define RTRS_SRV_PROBE_MS	2000
/* Minimum time between two such probes of a session, however many clients request its name. */
#define RTRS_SRV_PROBE_PAUSE_MS	10000
/*
 * A request is stuck if the upper layer has not finished it this long after its path began to
 * close. A client with fencing may then join the session again.
 */
#define RTRS_SRV_LATE_MS	2000
/* Maximum number of incarnations of a path, including the one that is being connected. */
#define RTRS_SRV_MAX_ENDING	4
/* Length of the reason why a path ends or can't be added */
#define RTRS_SRV_WHY_LEN	192
/* Messages that a session may cause in DEFAULT_RATELIMIT_INTERVAL. */
#define RTRS_SRV_LOG_BURST	20

/* Hash tables of sessions and of parked handshakes */
#define RTRS_SRV_HASH_BITS	9

/* Bytes of data in a slot, 0 without slots. */
extern unsigned int rtrs_srv_slot_size;

/**
 * struct rtrs_srv - an upper layer and where it listens
 * @ops: functions of the upper layer
 * @owner: private data of the upper layer, passed to @ops
 * @net: network namespace in which it listens; referenced by the cm_ids
 * @scope: NULL, or suffix of the names of its sessions, in sysfs and in the log
 * @port: port that it listens on
 * @ip_id: listens for IPv4 addresses; NULL only if that failed, and the server is being closed
 * @ip6_id: listens for IPv6 addresses, NULL without IPv6
 * @ib_id: listens for GIDs, NULL if that is not possible
 * @uuid: identifies this server; a restarted server has another one
 * @closing: new paths are refused; guarded by rtrs_srv_lock
 * @nr_sess: number of sessions; written under rtrs_srv_lock
 * @log: rate limit of messages that peers cause before their session has a name
 *
 * Owned by the upper layer, from rtrs_srv_open() to rtrs_srv_close().
 */
struct rtrs_srv {
	const struct rtrs_srv_ops *ops;
	void *owner;
	struct net *net;
	const char *scope;
	u16 port;
	struct rdma_cm_id *ip_id;
	struct rdma_cm_id *ip6_id;
	struct rdma_cm_id *ib_id;
	uuid_t uuid;
	bool closing;
	u32 nr_sess;
	struct ratelimit_state log;
};

/**
 * struct rtrs_srv_slot - a slot of a session
 * @holder: the struct rtrs_srv_io of the request that holds the slot, or 0; see slot.c
 * @waiter: a request of another path that waits for the slot; guarded by the slots' lock
 */
struct rtrs_srv_slot {
	unsigned long holder;
	struct rtrs_srv_io *waiter;
} ____cacheline_aligned_in_smp;

/**
 * struct rtrs_srv_slots - the slots of a session (slot.c)
 * @slot: one for each chunk; allocated when the session comes up
 * @lock: guards &rtrs_srv_slot.waiter and @resumed; any context
 * @resumed: requests that waited for their slot and now hold it
 * @resume_work: begins the requests in @resumed
 */
struct rtrs_srv_slots {
	struct rtrs_srv_slot *slot;
	spinlock_t lock; /* waiter, resumed */
	struct list_head resumed;
	struct work_struct resume_work;
};

/**
 * struct rtrs_srv_sess - a session
 * @by_uuid: in the hash table of all sessions, guarded by rtrs_srv_lock
 * @srv: server that accepted the session
 * @uuid: chosen by the client
 * @id: distinguishes this session from an earlier one with the same @uuid
 * @name: set once under rtrs_srv_lock, by the first path that is set up; empty before
 * @label: its name in sysfs and in the log, set with @name
 * @paths: list of its paths, changed under both rtrs_srv_lock and @paths_lock and stable under
 *	either. A session whose list became empty is ending: it still occupies its name, but accepts
 *	no path
 * @paths_lock: guards @paths, and members of its paths as documented in this file. Code that holds
 *	it never waits for another session
 * @nr_paths: number of paths
 * @proves: its clients prove that they know a secret; set when the session is created
 * @tag: tag from the connection requests if @proves, else 0; set when the session is created
 * @connected: a path of the session has been connected; set under rtrs_srv_lock
 * @ending: no path is connected any more, so new paths are refused, unless a request is stuck;
 *	guarded by rtrs_srv_lock
 * @next_probe: earliest time, in ns, of the next probe on behalf of a session that requests this
 *	name; guarded by rtrs_srv_lock
 * @log: rate limit of messages that the client causes
 * @asked: number of slots that the client requested, 0 if it did not
 * @queue_depth: number of slots, and of chunks of each path
 * @chunk_size: bytes of a chunk
 * @off_bits: number of bits for the offset in the immediate value of a request
 * @always_invalidate: the client has no access to the data of a request while the server processes
 *	it
 * @charged: bytes charged to the session itself: this struct, its slots, its reserve buffer
 * @slots: slots of its requests
 * @bufs: buffers of its requests
 * @up_lock: guards the members below while the session has paths
 * @up: the upper layer has accepted the session
 * @priv: private data of the upper layer; constant while a path is connected
 * @dev: the session's directory in sysfs
 * @paths_dir: the directory of its paths in sysfs
 * @end_work: frees the session; queued once, by rtrs_srv_sess_down_done()
 *
 * Kept alive by its paths. The closing work of the last path calls ->sess_down(), whose end may
 * take long; then @end_work frees the session.
 */
struct rtrs_srv_sess {
	struct hlist_node by_uuid;
	struct rtrs_srv *srv;
	uuid_t uuid;
	u32 id;
	char name[RTRS_NAME_LEN];
	char label[RTRS_LABEL_LEN];
	struct list_head paths;
	struct mutex paths_lock; /* @paths, and members of its paths */
	u32 nr_paths;
	bool proves;
	u16 tag;
	bool connected;
	bool ending;
	u64 next_probe;
	struct ratelimit_state log;
	u16 asked;
	u32 queue_depth;
	u32 chunk_size;
	u32 off_bits;
	bool always_invalidate;
	u64 charged;
	struct rtrs_srv_slots slots;
	struct rtrs_srv_bufs bufs;

	struct mutex up_lock; /* the members below, while there are paths */
	bool up;
	void *priv;
	struct device *dev;
	struct kobject *paths_dir;
	struct work_struct end_work;
};

/**
 * enum rtrs_srv_name_owner - result of checking a session whose name another session requests
 * @RTRS_SRV_OWNER_ENDING: the session is ending; the other one waits for its end
 * @RTRS_SRV_OWNER_PROBED: the session is being probed; the other one waits for the result
 * @RTRS_SRV_OWNER_UNCHECKED: the session may be dead and has to be probed
 * @RTRS_SRV_OWNER_ALIVE: the session keeps its name; the other one is refused
 */
enum rtrs_srv_name_owner {
	RTRS_SRV_OWNER_ENDING,
	RTRS_SRV_OWNER_PROBED,
	RTRS_SRV_OWNER_UNCHECKED,
	RTRS_SRV_OWNER_ALIVE,
};

/**
 * enum rtrs_srv_state - state of a path
 * @RTRS_SRV_CONNECTING: the handshake is in progress
 * @RTRS_SRV_CONNECTED: requests are accepted
 * @RTRS_SRV_CLOSING: the closing work has been queued
 * @RTRS_SRV_NR_STATES: number of states
 */
enum rtrs_srv_state {
	RTRS_SRV_CONNECTING,
	RTRS_SRV_CONNECTED,
	RTRS_SRV_CLOSING,
	RTRS_SRV_NR_STATES
};

/**
 * enum rtrs_srv_event - event that may change a path's state
 * @RTRS_SRV_EV_UP: the handshake is complete
 * @RTRS_SRV_EV_SETUP_TIMEOUT: the handshake timed out
 * @RTRS_SRV_EV_END: the path failed, or its end was requested
 * @RTRS_SRV_NR_EVENTS: number of events
 */
enum rtrs_srv_event {
	RTRS_SRV_EV_UP,
	RTRS_SRV_EV_SETUP_TIMEOUT,
	RTRS_SRV_EV_END,
	RTRS_SRV_NR_EVENTS
};

/**
 * struct rtrs_srv_conns - the connections of a path (con.c)
 * @lock: serializes the setup of connections; guards the members below, until only the closing work
 *	uses them
 * @nr_accepted: number of accepted connections
 * @con: the connections by cid; NULL until requested
 */
struct rtrs_srv_conns {
	struct mutex lock; /* the members below */
	u32 nr_accepted;
	struct rtrs_srv_con **con;
};

/**
 * struct rtrs_srv_mem - the memory that a client can write to over a path (mem.c)
 * @charged: bytes charged to the path; written when the path is created and by its setup work
 * @room: bytes of data in a chunk; the headers follow them
 * @hdr_room: bytes for headers
 * @max_io: maximum bytes of data of a request
 * @max_page: maximum bytes of data for which &rtrs_srv_io.page is used instead of a buffer
 * @chunks: the chunks; with RTRS_FEATURE_SLOTS they are small
 * @msgs: a struct rtrs_msg_answer for each slot; allocated with RTRS_FEATURE_SLOTS
 */
struct rtrs_srv_mem {
	u64 charged;
	u32 room;
	u32 hdr_room;
	u32 max_io;
	u32 max_page;
	struct rtrs_region chunks;
	struct rtrs_region msgs;
};

/**
 * struct rtrs_srv_ios - the requests of a path (io.c, send.c)
 * @mem: array with a struct rtrs_srv_io and the upper layer's part for each slot; allocated by the
 *	setup work, freed by the closing work
 * @size: bytes of an array element
 * @kept: a slot may have a page in &rtrs_srv_io.kept, see rtrs_srv_bufs_age()
 * @ref: counts requests that are not finished; its release queues the path's finish work
 * @late_work: sets @late; queued when the path is closing and only the upper layer has requests
 * @late: the upper layer has not finished the requests within RTRS_SRV_LATE_MS; guarded by
 *	rtrs_srv_lock
 */
struct rtrs_srv_ios {
	void *mem;
	size_t size;
	bool kept;
	struct percpu_ref ref;
	struct delayed_work late_work;
	bool late;
};

/**
 * struct rtrs_srv_fence - fencing state of a path (fence.c)
 * @target: id of the path that the client asked to fence by a message on this path, or 0. Set by
 *	the handler of the FENCE message if it is 0; cleared under &rtrs_srv_sess.paths_lock
 * @work: ends the path with the id @target, or answers if that path is dead
 * @dead: nothing that was sent on this path can have an effect any more; guarded by
 *	&rtrs_srv_sess.paths_lock
 */
struct rtrs_srv_fence {
	u32 target;
	struct work_struct work;
	bool dead;
};

/**
 * struct rtrs_srv_setup - handshake of a path (setup.c)
 * @req: INFO_REQ, followed by a struct rtrs_proof with RTRS_FEATURE_PROOF
 * @req_cqe: completion entry of the receive of INFO_REQ
 * @rsp: INFO_RSP
 * @reg_cqe: completion entry of a batch of REG_MR
 * @reg_busy: a batch is posted and has not completed
 * @nr_reg: number of memory regions in all batches so far
 * @step: next step of the handshake; used by @work only
 * @admitted: the client was admitted; guarded by rtrs_srv_lock
 * @refused: the client was sent the reason why the path is refused; guarded by rtrs_srv_lock
 * @timeout: ends the path after RTRS_SRV_SETUP_MS, or RTRS_SRV_REFUSED_MS if it was refused
 * @work: performs the steps; queued again after each step that has to wait
 * @parked_by_uuid: in a hash table of parked handshakes, see rtrs_srv_setup_park()
 * @parked_by_name: in the other hash table of parked handshakes
 * @stopped: @work is never queued again
 * @handshake: in the list of paths that count towards the limits of handshakes, until the client is
 *	admitted; guarded by rtrs_srv_lock
 * @began: time when the handshake began, in jiffies
 */
struct rtrs_srv_setup {
	struct rtrs_long req;
	struct ib_cqe req_cqe;
	struct rtrs_long rsp;
	struct ib_cqe reg_cqe;
	bool reg_busy;
	u32 nr_reg;
	unsigned int step;
	bool admitted;
	bool refused;
	struct delayed_work timeout;
	struct work_struct work;
	struct hlist_node parked_by_uuid;
	struct hlist_node parked_by_name;
	bool stopped;
	struct list_head handshake;
	unsigned long began;
};

/**
 * struct rtrs_srv_path_sysfs - a path in sysfs (sysfs.c)
 * @named: its directory exists or is about to; guarded by &rtrs_srv_sess.paths_lock
 * @released: completed when &rtrs_path.kobj is released. Callers that look the path up under
 *	rtrs_srv_lock get a reference to the kobject
 */
struct rtrs_srv_path_sysfs {
	bool named;
	struct completion released;
};

/**
 * struct rtrs_srv_path - a path
 * @path: common part of client and server
 * @sess: its session; valid until the path has left it
 * @entry: in &rtrs_srv_sess.paths
 * @first: see &rtrs_srv_peer.first
 * @share: the session's share of that port; set with the first connection
 * @key: secret that the client has proved to know, or NULL
 * @cost: memory of the path in bytes; set before the upper layer decides about the path
 * @known: the upper layer knows the path, and may decide to end it; guarded by rtrs_srv_lock
 * @state_lock: innermost lock, taken in any context
 * @state: see enum rtrs_srv_state; written under @state_lock
 * @end_err: 0 if its end was requested, else a negative errno; written before @close_work is queued
 * @end_why: reason for the end, for the log; written with @end_err. If the path can't be added to a
 *	session, the reason for that
 * @close_work: first part of taking the path down; queued once, when @state becomes CLOSING
 * @finish_work: second part; queued once, when all requests are finished
 * @conns: connections
 * @mem: chunks, memory regions and keys
 * @ios: requests and statistics
 * @fence: fencing
 * @setup: handshake
 * @sysfs: directory in sysfs
 *
 * Owned by its closing work: @close_work, then @finish_work, which frees the path.
 */
struct rtrs_srv_path {
	struct rtrs_path path;
	struct rtrs_srv_sess *sess;
	struct list_head entry;

	bool first;
	struct rtrs_srv_share *share;
	struct key *key;
	u64 cost;
	bool known;

	spinlock_t state_lock; /* state */
	enum rtrs_srv_state state;
	int end_err;
	char end_why[RTRS_SRV_WHY_LEN];
	struct work_struct close_work;
	struct work_struct finish_work;

	struct rtrs_srv_conns conns;
	struct rtrs_srv_mem mem;
	struct rtrs_srv_ios ios;
	struct rtrs_srv_fence fence;
	struct rtrs_srv_setup setup;
	struct rtrs_srv_path_sysfs sysfs;
};

/**
 * struct rtrs_srv_con - a connection
 * @con: common part of client and server
 * @path: path of the connection
 * @nr_arrived: counts requests; like @nr_answered, used by the completion handler only
 * @nr_answered: cached value of &rtrs_con.nr_answered
 * @arrived: requests that will begin together
 * @begin_work: begins the requests in @arrived
 * @data_cqe: completion entry of RDMA WRITEs of data in buffers, with RTRS_FEATURE_NO_IMM
 * @pend_lock: guards @pending and @closing; taken in any context
 * @pending: requests that wait for room in the send queue
 * @closing: no request may be added to a list of waiting requests any more
 * @sending: buffers whose data are being sent; guarded by &rtrs_con.sq_lock
 * @fetch: fetching of data over this connection
 *
 * Each answer reads @pending, so @pending is not in a cache line that each receive writes.
 *
 * Exists from the connection request to the path's closing work.
 */
struct rtrs_srv_con {
	struct rtrs_con con;
	struct rtrs_srv_path *path;
	u32 nr_arrived;
	u32 nr_answered;
	struct llist_head arrived;
	struct work_struct begin_work;
	struct ib_cqe data_cqe;
	spinlock_t pend_lock ____cacheline_aligned_in_smp; /* pending, closing */
	struct list_head pending;
	bool closing;
	struct list_head sending;
	struct rtrs_srv_fetch fetch;
};

/**
 * struct rtrs_srv_io - a slot of a path, and the request in it
 * @slot: index of the slot
 * @con: connection on which the request arrived
 * @chunk: the chunk
 * @dma: DMA address of the chunk
 * @hdr_off: offset of the request's header in the chunk
 * @err: errno of the answer, 0 or negative
 * @need_inval: the answer has to invalidate the client's key
 * @fetch: the server fetches the request's data
 * @page_used: a request has used @kept since the last rtrs_srv_bufs_age()
 * @fetched: entries of @buf whose fetching has begun; guarded by the connection's pend_lock
 * @reads: number of RDMA READ chains in progress; guarded by the connection's pend_lock
 * @desc_key: remote key of the client's memory
 * @desc_len: length of the client's memory, 0 if there is nothing to send
 * @desc_addr: address of the client's memory
 * @page: memory for the data of a small request; NULL if the data are elsewhere
 * @kept: page of an earlier request, for reuse; xchg() transfers the ownership
 * @buf: buffer for the data, NULL if there is none
 * @sg: scatterlist for data in the chunk or in @page
 * @pending: in &rtrs_srv_con.pending, &rtrs_srv_slots.resumed, &rtrs_srv_bufs.small,
 *	&rtrs_srv_bufs.large or &rtrs_srv_fetch.waiting; empty if in none of them
 * @arrived: in &rtrs_srv_con.arrived until the request begins; @pending is invalid meanwhile
 * @op: the request as seen by the upper layer, whose own part follows this struct
 *
 * Element of the array &rtrs_srv_ios.mem, 512 bytes on most machines. Owned by the request that
 * holds the session's slot, see rtrs_srv_slot_take().
 */
struct rtrs_srv_io {
	u32 slot;
	struct rtrs_srv_con *con;
	void *chunk;
	u64 dma;
	u32 hdr_off;
	int err;
	bool need_inval;
	bool fetch;
	bool page_used;
	u16 fetched;
	u16 reads;
	u32 desc_key;
	u32 desc_len;
	u64 desc_addr;
	struct page *page;
	struct page *kept;
	struct rtrs_srv_buf *buf;
	struct scatterlist sg;
	union {
		struct list_head pending;
		struct llist_node arrived;
	};
	struct rtrs_srv_op op;
};

/* Allocated for each slot of each path: one more cache line costs 32 KiB with 512 slots. */
static_assert(sizeof(struct rtrs_srv_io) <= 512);

/**
 * struct rtrs_srv_answer - work requests of an answer
 * @data: RDMA WRITE of the data that were read
 * @data_sge: the data in the chunk
 * @inv: SEND WITH INV of the client's key; with RTRS_FEATURE_SLOTS the answer itself
 * @msg_sge: the slot's message in @inv
 * @imm: the answer itself
 */
struct rtrs_srv_answer {
	struct ib_rdma_wr data;
	struct ib_sge data_sge;
	struct ib_send_wr inv;
	struct ib_sge msg_sge;
	struct rtrs_imm_wr imm;
};

/* The upper layer's part begins on a cache line of its own. */
#define RTRS_SRV_IO_HEAD	ALIGN(sizeof(struct rtrs_srv_io), L1_CACHE_BYTES)

static inline struct rtrs_msg_answer *rtrs_srv_msg(const struct rtrs_srv_path *path, u32 slot)
{
	return rtrs_region_addr(&path->mem.msgs, slot);
}

static inline struct rtrs_srv_path *to_srv_path(struct rtrs_path *p)
{
	return container_of(p, struct rtrs_srv_path, path);
}

static inline struct rtrs_srv_con *to_srv_con(struct rtrs_con *c)
{
	return container_of(c, struct rtrs_srv_con, con);
}

/* Features that the server grants to a client that offers @offered. */
static inline u32 rtrs_srv_grant(u32 offered)
{
	u32 granted = offered & (RTRS_FEATURES | RTRS_FEATURE_NO_IMM | RTRS_FEATURE_PROOF);

	if (!rtrs_srv_slot_size)
		granted &= ~RTRS_FEATURE_SLOTS;
	if (!(granted & RTRS_FEATURE_SLOTS))
		granted &= ~RTRS_FEATURE_NO_IMM;
	return granted;
}

static inline bool rtrs_srv_has_slots(const struct rtrs_srv_path *path)
{
	return path->path.features & RTRS_FEATURE_SLOTS;
}

static inline enum rtrs_srv_state
rtrs_srv_path_state(const struct rtrs_srv_path *path)
{
	/* Pairs with rtrs_srv_path_move(): the slots of a connected path are visible. */
	return smp_load_acquire(&path->state);
}

/* Describes the client of a path to the upper layer. */
static inline struct rtrs_srv_peer rtrs_srv_path_peer(struct rtrs_srv_path *path)
{
	return (struct rtrs_srv_peer) {
		.addr = &path->path.addr.dst,
		.key = path->key,
		.path = path,
		.closing = rtrs_srv_path_state(path) == RTRS_SRV_CLOSING,
		.first = path->first,
		.memory = path->cost,
	};
}

static inline struct rtrs_srv_io *
rtrs_srv_path_io(const struct rtrs_srv_path *path, u32 slot)
{
	return path->ios.mem + slot * path->ios.size;
}

/*
 * Messages that a peer can cause have a rate limit per session, so that one noisy client does not
 * suppress the messages about others. They must not be printed under rtrs_srv_lock: a console may
 * be slow, and all clients wait for that lock. @srv_path: the path that the message is about.
 */
#define rtrs_srv_log(pr, srv_path, fmt, ...) \
do { \
	lockdep_assert_not_held(&rtrs_srv_lock); \
	rtrs_path_log(pr, &(srv_path)->path, fmt, ##__VA_ARGS__); \
} while (0)
#define rtrs_srv_warn(srv_path, fmt, ...) rtrs_srv_log(pr_warn, srv_path, fmt, ##__VA_ARGS__)
#define rtrs_srv_info(srv_path, fmt, ...) rtrs_srv_log(pr_info, srv_path, fmt, ##__VA_ARGS__)

/* state.c */
extern struct mutex rtrs_srv_lock;
extern struct workqueue_struct *rtrs_srv_setup_wq;
extern struct workqueue_struct *rtrs_srv_close_wq;
extern struct workqueue_struct *rtrs_srv_io_wq;
extern struct workqueue_struct *rtrs_srv_pull_wq;
int __init rtrs_srv_state_init(void);
void rtrs_srv_state_exit(void);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_srv_may_await(const struct rtrs_srv_path *path, const struct rtrs_srv_sess *sess);
#endif
u64 rtrs_srv_hash(const void *data, size_t len);
void rtrs_srv_changed(const struct rtrs_srv_sess *sess);
void rtrs_srv_setup_park(struct rtrs_srv_path *path);
void rtrs_srv_setup_unpark(struct rtrs_srv_path *path);
void rtrs_srv_setup_continue(struct rtrs_srv_path *path);
void rtrs_srv_setup_stop(struct rtrs_srv_path *path);
enum rtrs_srv_state rtrs_srv_next_state(enum rtrs_srv_state state,
					enum rtrs_srv_event event);
bool rtrs_srv_path_move(struct rtrs_srv_path *path, enum rtrs_srv_event event, int err,
			const char *why);
void rtrs_srv_path_error(struct rtrs_path *path, int err, const char *why);
__printf(2, 3)
void rtrs_srv_proto_error(struct rtrs_srv_path *path, const char *fmt, ...);

/* limit.c */
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_srv_may_begin(u64 own, u64 all, u64 more, u64 max);
bool rtrs_srv_sess_has_room(const struct rtrs_srv_path *path, u64 bytes);
#endif
int rtrs_srv_handshake_begin(struct rtrs_srv_path *path, u64 bytes);

/* slot.c */
void rtrs_srv_slots_init(struct rtrs_srv_sess *sess);
int rtrs_srv_slots_alloc(struct rtrs_srv_sess *sess);
void rtrs_srv_slots_free(struct rtrs_srv_sess *sess);
int rtrs_srv_slot_take(struct rtrs_srv_io *io, struct rtrs_srv_con *con,
		       u32 off);
void rtrs_srv_slot_release(struct rtrs_srv_io *io);
void rtrs_srv_slots_abandon(struct rtrs_srv_path *path);
bool rtrs_srv_slot_forget(struct rtrs_srv_sess *sess, struct rtrs_srv_io *io);
struct rtrs_srv_io *rtrs_srv_slot_next_resumed(struct rtrs_srv_sess *sess);

/* mem.c */
#if IS_ENABLED(CONFIG_KUNIT)
extern struct percpu_counter rtrs_srv_mem_bufs;
#endif
void rtrs_srv_mem_init(struct rtrs_srv_path *path);
u32 rtrs_srv_chunks_per_mr(const struct rtrs_srv_path *path);
int rtrs_srv_mem_try_charge(u64 *account, u64 bytes, char *why);
int rtrs_srv_mem_charge(u64 *account, u64 bytes, const char *name,
			struct ratelimit_state *log);
void rtrs_srv_mem_uncharge(u64 *account);
u64 rtrs_srv_mem_handshakes(void);
bool rtrs_srv_mem_plenty(void);
bool rtrs_srv_mem_try_account(struct rtrs_srv_sess *sess, u32 bytes, bool served_next);
void rtrs_srv_mem_account(int bytes);
u64 rtrs_srv_mem_total(void);
#if IS_ENABLED(CONFIG_KUNIT)
u64 rtrs_srv_mem_bytes(const struct rtrs_srv_path *path, u32 per_mr, size_t io_size);
#endif
u64 rtrs_srv_mem_cost(struct rtrs_srv_path *path);
int rtrs_srv_mem_setup(struct rtrs_srv_path *path);
void rtrs_srv_mem_free(struct rtrs_srv_path *path);
int __init rtrs_srv_mem_module_init(void);
void rtrs_srv_mem_exit(void);

/* send.c */
#if IS_ENABLED(CONFIG_KUNIT)
int rtrs_srv_answer_err(int err);
struct ib_send_wr *rtrs_srv_build_answer(struct rtrs_srv_answer *a,
					 const struct rtrs_srv_io *io);
#endif
void rtrs_srv_io_drop(struct rtrs_srv_io *io);
void rtrs_srv_con_init_send(struct rtrs_srv_con *con);
void rtrs_srv_con_drop_pending(struct rtrs_srv_con *con);
void rtrs_srv_con_drained(struct rtrs_srv_con *con);

/* io.c */
bool rtrs_srv_parse_imm(const struct rtrs_srv_path *path, u32 payload, u32 *slot,
			u32 *off);
#if IS_ENABLED(CONFIG_KUNIT)
int rtrs_srv_parse(struct rtrs_srv_io *io);
#endif
void rtrs_srv_request(struct rtrs_srv_con *con, u32 payload);
void rtrs_srv_resume_work(struct work_struct *work);
void rtrs_srv_bufs_work(struct work_struct *work);
void rtrs_srv_con_init_io(struct rtrs_srv_con *con);
void rtrs_srv_drop_orphans(struct rtrs_srv_path *path);

/* fence.c */
struct rtrs_srv_path *rtrs_srv_path_by_id(struct rtrs_srv_sess *sess, u32 id);
void rtrs_srv_fence_work(struct work_struct *work);
bool rtrs_srv_fence_recv(struct rtrs_srv_con *con, u32 id);
void rtrs_srv_fence_drop(struct rtrs_srv_path *path);
void rtrs_srv_fence_done(struct rtrs_srv_path *path);

/* qp.c */
u32 rtrs_srv_nr_recvs(const struct rtrs_srv_path *path, const struct ib_device *dev, u16 cid);
u32 rtrs_srv_dev_depth(const struct ib_device *dev);
struct rtrs_qp_params rtrs_srv_qp_params(const struct rtrs_srv_path *path,
					 const struct ib_device *dev, u16 cid);
u64 rtrs_srv_cons_bytes(const struct rtrs_srv_path *path, const struct ib_device *dev);

/* recv.c */
int rtrs_srv_recv_start(struct rtrs_srv_con *con);

/* sysfs.c */
extern const struct kobj_type rtrs_srv_path_ktype;
int __init rtrs_srv_sysfs_init(void);
void rtrs_srv_sysfs_exit(void);
int rtrs_srv_sysfs_add_sess(struct rtrs_srv_sess *sess);
void rtrs_srv_sysfs_del_sess(struct rtrs_srv_sess *sess);
int rtrs_srv_sysfs_add_path(struct rtrs_srv_path *path);
void rtrs_srv_sysfs_del_path(struct rtrs_srv_path *path);

/* sess.c */
extern atomic_t rtrs_srv_nr_sess;
extern unsigned int rtrs_srv_chunk_size;
extern unsigned int rtrs_srv_queue_depth;
int rtrs_srv_check_params(unsigned int chunk_size, unsigned int queue_depth,
			  unsigned int slot_size);
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_srv_sess_add(struct rtrs_srv_sess *sess);
struct rtrs_srv_sess *rtrs_srv_sess_by_name(const struct rtrs_srv *srv, const char *name);
struct rtrs_srv_sess *rtrs_srv_sess_predecessor(const struct rtrs_srv_sess *sess, const char *name);
bool rtrs_srv_sess_matches(const struct rtrs_srv_sess *sess, const struct rtrs_srv *srv,
			   const struct rtrs_cm_req *req);
bool rtrs_srv_is_older(const struct rtrs_srv_path *path, const struct rtrs_srv_path *other);
bool rtrs_srv_must_wait_for(const struct rtrs_srv_path *path,
			    const struct rtrs_srv_path *other);
enum rtrs_srv_name_owner rtrs_srv_check_name_owner(const struct rtrs_srv_sess *sess,
						   const struct rtrs_srv_sess *owner,
						   u64 now);
#endif
struct rtrs_srv_sess *rtrs_srv_sess_find(struct rtrs_srv *srv, const struct rtrs_cm_req *req,
					 bool may_create);
struct rtrs_srv_sess *rtrs_srv_sess_alloc(const struct rtrs_cm_req *req,
					  const struct ib_device *dev);
int rtrs_srv_sess_create(struct rtrs_srv *srv, struct rtrs_srv_sess *sess, char *why);
void rtrs_srv_sess_discard(struct rtrs_srv_sess *sess);
int rtrs_srv_sess_claim(struct rtrs_srv_path *path, const char *name);
int rtrs_srv_sess_up(struct rtrs_srv_path *path);
void rtrs_srv_sess_leave(struct rtrs_srv_path *path);
void rtrs_srv_sess_end_all(struct rtrs_srv *srv);

/* proof.c */
int rtrs_srv_proof(struct rtrs_srv_path *path, u8 *ours);

/* setup.c */
int rtrs_srv_check_info_req(const struct rtrs_info_req *req);
void rtrs_srv_fill_info_rsp(struct rtrs_info_rsp *rsp,
			    const struct rtrs_region *chunks);
int rtrs_srv_setup_recv(struct rtrs_srv_con *con);
void rtrs_srv_setup_free(struct rtrs_srv_path *path);
void rtrs_srv_setup_work(struct work_struct *work);

/* con.c */
void rtrs_srv_fill_rep(struct rtrs_cm_rep *rep, int err);
void rtrs_srv_fill_accept(struct rtrs_cm_rep *rep,
			  const struct rtrs_srv_path *path);
int rtrs_srv_con_add(struct rtrs_srv_path *path, struct rdma_cm_id *id,
		     const struct rtrs_cm_req *req, const struct rdma_conn_param *param);
void rtrs_srv_con_reject(struct rdma_cm_id *id, int err);

/* path.c */
struct rtrs_srv_path *rtrs_srv_path_alloc(const struct rdma_cm_id *id,
					  const struct rtrs_cm_req *req);
int rtrs_srv_path_add(struct rtrs_srv_sess *sess, struct rtrs_srv_path *path,
		      const struct ib_device *dev);
void rtrs_srv_path_free(struct rtrs_srv_path *path);

/* listen.c */
int rtrs_srv_check_req(const void *data, u8 len, struct rtrs_cm_req *req);
bool rtrs_srv_form_ok(bool iwarp, u32 offered);
int rtrs_srv_check_join(const struct rtrs_srv_path *path,
			const struct rtrs_cm_req *req);

#endif /* RTRS_SRV_H */
