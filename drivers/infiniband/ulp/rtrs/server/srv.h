/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS server.
 *
 * Files, from top to bottom; each one calls only those below it. What fetch, port and buf have is
 * in pull.h, all else here:
 *
 *	listen	connection requests; opening and closing the server, the module
 *	path	the life of a path: creation and closing work
 *	con	its connections, and the connection manager
 *	setup	its handshake
 *	proof	what both ends prove in it
 *	sess	sessions: found, named, made known to the upper layer, ended
 *	sysfs	directories of sessions and paths
 *	recv	messages that come in on a connection
 *	fence	fencing: a path is ended by request over another one
 *	io	requests, until the upper layer has them
 *	send	what is sent for them: answers; and their end
 *	fetch	data of large writes are fetched from the client
 *	port	how much is fetched at a time over a port, and whose turn it is
 *	buf	buffers for data that are not in a chunk, and requests that wait for one
 *	limit	how many paths may be being set up, and in how much memory; how soon an address
 *		may try again
 *	slot	slots of sessions, and the requests that have them
 *	mem	a path's chunks and keys, and the limit to all paths' memory
 *	state	the state of a path; errors; waiting for changes
 *
 * A session is created by the first connection request that names it, and lives
 * as long as it has a path. A path is created by the request for its connection
 * 0, is set up (CONNECTING) until the client has been told where the chunks
 * are, carries requests (CONNECTED), and is taken down (CLOSING) by its closing
 * work, whatever the reason. All other code only asks for its end, by
 * rtrs_srv_path_error().
 *
 * No work item waits for I/O, or for another session's path, for the workers are
 * shared by all clients: where the closing work needs all requests to be finished,
 * the last one queues the rest of it, and a handshake that needs the end of another
 * path or session is parked, and queued again when something has changed.
 *
 * Locks, outer before inner; those in different lines of the list don't nest:
 *
 *	handler lock of a cm_id > rtrs_srv_lock > &sess->paths_lock >
 *		sq_lock of struct rtrs_con > &path->state_lock
 *	handler lock of a cm_id > &path->conns.lock > &path->state_lock
 *	rtrs_srv_lock > &sess->paths_lock > hb_lock of struct rtrs_path
 *	&sess->up_lock > whatever the upper layer takes in ->sess_up()
 *	whatever the upper layer holds in rtrs_srv_send_event() > &sess->paths_lock
 *	rtrs_srv_lock > whatever the upper layer takes for rtrs_srv_restrict_paths()
 *	&con->pend_lock > sq_lock of struct rtrs_con > &path->state_lock
 *	&con->pend_lock > sq_lock of struct rtrs_con > &sess->slots.lock
 *	&con->pend_lock > &port->lock
 *	rtrs_srv_lock, &path->conns.lock > the locks of parked handshakes (state.c) and
 *		of the memory in use (mem.c), which nothing nests in
 *
 * A cm_id is destroyed, and a path's directory removed, with none of them held.
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
#include <linux/wait.h>

#include "../common/core.h"
#include "pull.h"

/* While no more requests of a connection are under way, each begins by itself: that is sooner. */
#define RTRS_SRV_FEW		4
/*
 * Work requests of one I/O: LOCAL_INV, RDMA WRITE, SEND WITH INV, REG_MR and the
 * answer.
 */
#define RTRS_SRV_WR_PER_IO	5
/*
 * Work requests of a connection that fit in its send queue, unacknowledged by the client's
 * device: some 200 to 500 answers. Fewer if the device has no room for them.
 */
#define RTRS_SRV_SEND_WR	1024
/*
 * The same with RTRS_FEATURE_SLOTS, where a small answer takes one. With all else, a send queue has
 * less than 256 entries, and devices round up to powers of two.
 */
#define RTRS_SRV_SLOTS_SEND_WR	142
static_assert(RTRS_SRV_SLOTS_SEND_WR + RTRS_SIGNAL_EVERY + RTRS_SRV_READ_WR + 1 +
	      RTRS_SRV_READS * RTRS_RW_WR < 256);
#define RTRS_SRV_MIN_SEND_WR	(4 * RTRS_SIGNAL_EVERY)
static_assert(RTRS_SRV_MAX_DATA_WR + RTRS_SIGNAL_EVERY < RTRS_SRV_MIN_SEND_WR);
/*
 * Room in the send queue of connection 0 that neither answers to requests nor those to
 * heartbeats take: for FENCED, of which one is due at a time, heartbeats, and EVENT, once a
 * second at most.
 */
#define RTRS_SRV_SERVICE_RESERVE 16
/* From the request for connection 0 to the end of the handshake. */
#define RTRS_SRV_SETUP_MS	30000
/* A step of the setup work has to wait. Drivers of RDMA devices return all errnos. */
#define RTRS_SRV_SETUP_WAIT	1
/* No step follows: the client has been told why it can't have the path. */
#define RTRS_SRV_SETUP_REFUSED	2
/* For how long it may stay then. */
#define RTRS_SRV_REFUSED_MS	5000
/* For how long an old session may show no sign of life when a new one wants its name. */
#define RTRS_SRV_PROBE_MS	2000
/* From one such look to the next, however many clients want the name. */
#define RTRS_SRV_PROBE_PAUSE_MS	10000
/* Incarnations of a path that may be closing when it reconnects. */
#define RTRS_SRV_MAX_ENDING	4
/* Length of the reason for a path's end */
#define RTRS_SRV_WHY_LEN	96
/* Messages that a session may cause in DEFAULT_RATELIMIT_INTERVAL. */
#define RTRS_SRV_LOG_BURST	20

/* Hash tables of sessions */
#define RTRS_SRV_HASH_BITS	9

/* Bytes of data in a slot, 0 without slots. */
extern unsigned int rtrs_srv_slot_size;

/**
 * struct rtrs_srv - an upper layer and where it listens
 * @ops: functions of the upper layer
 * @owner: the upper layer's, for @ops
 * @net: network namespace in which it listens; its ids hold it
 * @scope: NULL, or what its sessions' names end in, in sysfs and in the log
 * @port: port that it listens on
 * @ip_id: listens for IPv4 addresses; NULL if that failed, and the server is being closed
 * @ip6_id: listens for IPv6 addresses, NULL if there are none
 * @ib_id: listens for GIDs, NULL if that can't be had
 * @uuid: tells it from other servers, and from those that were here before
 * @closing: no new paths; guarded by rtrs_srv_lock
 * @nr_sess: sessions; written under rtrs_srv_lock
 * @log: limits messages that peers cause before they have a session with a name
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
 * @holder: the struct rtrs_srv_io of the request that has it, or 0; see slot.c
 * @waiter: a request of another path that waits for it, under the slots' lock
 */
struct rtrs_srv_slot {
	unsigned long holder;
	struct rtrs_srv_io *waiter;
} ____cacheline_aligned_in_smp;

/**
 * struct rtrs_srv_slots - the slots of a session (slot.c)
 * @slot: one for each chunk, allocated when the session is up
 * @lock: guards &rtrs_srv_slot.waiter and @resumed; any context
 * @resumed: requests that have waited, and got their slot
 * @resume_work: begins the requests in @resumed
 */
struct rtrs_srv_slots {
	struct rtrs_srv_slot *slot;
	spinlock_t lock; /* waiters, resumed */
	struct list_head resumed;
	struct work_struct resume_work;
};

/**
 * struct rtrs_srv_sess - a session
 * @by_uuid: in the hash table of all sessions, guarded by rtrs_srv_lock
 * @by_name: in that of sessions with a name, likewise
 * @srv: where it came in
 * @uuid: chosen by the client
 * @id: tells it from the session that was there before under the same uuid
 * @name: set once, by the first path that is set up, under rtrs_srv_lock; empty
 *	before
 * @label: its name in sysfs and in the log, set with @name
 * @paths: its paths. Changed under rtrs_srv_lock and @paths_lock, so either of them keeps it as
 *	it is. A session without one is on its way out: its name is still in use, but it takes no
 *	path any more
 * @paths_lock: guards members of its paths for which this file says so. Nothing that is done
 *	under it waits for another session
 * @nr_paths: how many
 * @proves: its paths prove that the client knows a secret; set when it is created
 * @connected: a path of it has been connected; set under rtrs_srv_lock
 * @ending: takes no path any more, as no path of it is connected any more; under rtrs_srv_lock
 * @next_probe: not before that time, ns, is it looked at for the sake of another one
 *	that wants its name; guarded by rtrs_srv_lock
 * @log: limits messages that the client causes
 * @asked: number of slots that the client has asked for, 0 if it has not
 * @queue_depth: number of slots, hence of chunks of each path
 * @chunk_size: bytes of a chunk
 * @off_bits: bits for an offset in the immediate value of a request
 * @always_invalidate: a chunk's key is valid only while the client owns the
 *	chunk
 * @charged: bytes that it takes of the memory for clients, its slots included
 * @slots: slots of its requests
 * @bufs: buffers of its requests
 * @up_lock: guards the fields below while there are paths
 * @up: the upper layer knows the session
 * @priv: the upper layer's; doesn't change while a path is connected
 * @dev: the session's directory in sysfs
 * @paths_dir: the directory of its paths
 * @end_work: the end of the session; queued once, by rtrs_srv_sess_down_done()
 *
 * Kept alive by its paths. The last one's closing work has the upper layer end its
 * part, which may take long, and @end_work frees the session.
 */
struct rtrs_srv_sess {
	struct hlist_node by_uuid;
	struct hlist_node by_name;
	struct rtrs_srv *srv;
	uuid_t uuid;
	u32 id;
	char name[RTRS_NAME_LEN];
	char label[RTRS_LABEL_LEN];
	struct list_head paths;
	struct mutex paths_lock; /* the list, and members of its paths */
	u32 nr_paths;
	bool proves;
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

	struct mutex up_lock; /* what follows, while there are paths */
	bool up;
	void *priv;
	struct device *dev;
	struct kobject *paths_dir;
	struct work_struct end_work;
};

/**
 * enum rtrs_srv_rival - what becomes of a session whose name another one wants
 * @RTRS_SRV_RIVAL_ENDING: it ends; the other one waits for that
 * @RTRS_SRV_RIVAL_ON_TRIAL: it may be dead, and is being looked at: the other one waits
 * @RTRS_SRV_RIVAL_SUSPECT: it may be dead: it is to be looked at
 * @RTRS_SRV_RIVAL_ALIVE: it stays; the other one is refused
 */
enum rtrs_srv_rival {
	RTRS_SRV_RIVAL_ENDING,
	RTRS_SRV_RIVAL_ON_TRIAL,
	RTRS_SRV_RIVAL_SUSPECT,
	RTRS_SRV_RIVAL_ALIVE,
};

/**
 * enum rtrs_srv_state - where a path is in its life
 * @RTRS_SRV_CONNECTING: from the request for connection 0
 * @RTRS_SRV_CONNECTED: takes requests
 * @RTRS_SRV_CLOSING: the closing work has been queued
 * @RTRS_SRV_NR_STATES: how many there are
 */
enum rtrs_srv_state {
	RTRS_SRV_CONNECTING,
	RTRS_SRV_CONNECTED,
	RTRS_SRV_CLOSING,
	RTRS_SRV_NR_STATES
};

/**
 * enum rtrs_srv_event - change of a path's state
 * @RTRS_SRV_EV_UP: its handshake is complete
 * @RTRS_SRV_EV_SETUP_TIMEOUT: the time limit of its handshake is over
 * @RTRS_SRV_EV_END: it has failed, or is to end
 * @RTRS_SRV_NR_EVENTS: how many there are
 */
enum rtrs_srv_event {
	RTRS_SRV_EV_UP,
	RTRS_SRV_EV_SETUP_TIMEOUT,
	RTRS_SRV_EV_END,
	RTRS_SRV_NR_EVENTS
};

/**
 * struct rtrs_srv_stats - counters of a path on one CPU
 * @reads: number of requests for data
 * @read_bytes: bytes that these asked for
 * @writes: number of all other requests
 * @write_bytes: bytes that came with these
 * @done: number of requests of both kinds that are finished
 *
 * One for each CPU, written by that CPU alone.
 */
struct rtrs_srv_stats {
	u64 reads;
	u64 read_bytes;
	u64 writes;
	u64 write_bytes;
	u64 done;
};

/**
 * struct rtrs_srv_conns - the connections of a path (con.c)
 * @lock: serializes setting up connections; guards what follows, until the closing work is
 *	alone with them
 * @nr: connections that the client announced; doesn't change
 * @nr_accepted: connections that were accepted
 * @con: the connections by cid, NULL before they are requested
 */
struct rtrs_srv_conns {
	struct mutex lock; /* what follows */
	u32 nr;
	u32 nr_accepted;
	struct rtrs_srv_con **con;
};

/**
 * union rtrs_srv_msg - message that goes with a slot's answer
 * @rkey: the chunk's new key, with always_invalidate and without RTRS_FEATURE_SLOTS
 * @answer: with RTRS_FEATURE_SLOTS
 */
union rtrs_srv_msg {
	struct rtrs_msg_rkey_rsp rkey;
	struct rtrs_msg_answer answer;
};

/**
 * struct rtrs_srv_mem - the memory that a client can write to over a path (mem.c)
 * @charged: bytes that the path takes of the memory for clients; written when it is created and
 *	by its setup work
 * @room: bytes of data in a chunk; headers follow
 * @hdr_room: bytes for headers
 * @max_io: most bytes of data of a request
 * @max_page: most bytes of data that have &rtrs_srv_io.page instead of a buffer; 0 without
 *	RTRS_FEATURE_SLOTS
 * @chunks: the chunks; with RTRS_FEATURE_SLOTS they are small
 * @msgs: message for each slot; there with always_invalidate or RTRS_FEATURE_SLOTS
 * @msgs_dma: their DMA address, 0 if they aren't there
 */
struct rtrs_srv_mem {
	u64 charged;
	u32 room;
	u32 hdr_room;
	u32 max_io;
	u32 max_page;
	struct rtrs_region chunks;
	union rtrs_srv_msg *msgs;
	u64 msgs_dma;
};

/**
 * struct rtrs_srv_ios - the requests of a path (io.c, send.c)
 * @mem: a struct rtrs_srv_io, with the upper layer's part, for each slot; there
 *	while the path is connected, and until its closing work has ended
 * @size: bytes from one to the next
 * @kept: pages may be kept in there, see rtrs_srv_bufs_age()
 * @ref: a reference for each request that isn't finished; its release queues the
 *	path's finish work
 * @stats: counters of each CPU
 */
struct rtrs_srv_ios {
	void *mem;
	size_t size;
	bool kept;
	struct percpu_ref ref;
	struct rtrs_srv_stats __percpu *stats;
};

/**
 * struct rtrs_srv_fence - fencing, as far as it concerns a path (fence.c)
 * @target: id of the path whose end the client has asked for over this one, or 0.
 *	Set when a FENCE comes, while it is 0; else under &rtrs_srv_sess.paths_lock
 * @work: ends the path with the id @target, or answers if it is dead
 * @dead: nothing that was sent on this path has any effect any more; guarded by
 *	&rtrs_srv_sess.paths_lock
 */
struct rtrs_srv_fence {
	u32 target;
	struct work_struct work;
	bool dead;
};

/**
 * struct rtrs_srv_setup - handshake of a path (setup.c)
 * @req: buffer for INFO_REQ, with a struct rtrs_proof behind it
 * @req_dma: DMA address of @req, 0 if it isn't mapped
 * @req_cqe: completion entry of the receive of INFO_REQ
 * @rsp: buffer with INFO_RSP
 * @rsp_len: length of @rsp
 * @rsp_dma: DMA address of @rsp, 0 if it isn't mapped
 * @rsp_cqe: completion entry of the send of INFO_RSP
 * @reg_cqe: completion entry of a batch of REG_MR
 * @reg_busy: a batch is posted and not completed
 * @nr_reg: memory regions that were in batches so far
 * @step: next step; used by @work only
 * @admitted: the client was admitted; under rtrs_srv_lock
 * @timeout: ends the path if the handshake takes longer than RTRS_SRV_SETUP_MS
 * @work: does the steps; queued again for each one that has to wait
 * @parked_by_uuid: in a hash table of paths that wait for a change, see rtrs_srv_setup_park()
 * @parked_by_name: in the other one of these
 * @stopped: @work is not queued any more
 * @handshake: in the list of paths that count in the limits of handshakes, until the client is
 *	admitted; guarded by rtrs_srv_lock
 * @began: when it came there, get_jiffies_64()
 */
struct rtrs_srv_setup {
	struct rtrs_info_req *req;
	u64 req_dma;
	struct ib_cqe req_cqe;
	struct rtrs_info_rsp *rsp;
	size_t rsp_len;
	u64 rsp_dma;
	struct ib_cqe rsp_cqe;
	struct ib_cqe reg_cqe;
	bool reg_busy;
	u32 nr_reg;
	unsigned int step;
	bool admitted;
	struct delayed_work timeout;
	struct work_struct work;
	struct hlist_node parked_by_uuid;
	struct hlist_node parked_by_name;
	bool stopped;
	struct list_head handshake;
	u64 began;
};

/**
 * struct rtrs_srv_path_sysfs - a path in sysfs (sysfs.c)
 * @named: its directory exists or is about to; guarded by &rtrs_srv_sess.paths_lock
 * @stats_lock: guards @stats_base
 * @stats_base: sums of the path's statistics when they were last reset
 * @kobj: its directory; its count keeps the path alive for those who looked it up
 *	under rtrs_srv_lock
 * @released: @kobj is no more
 */
struct rtrs_srv_path_sysfs {
	bool named;
	struct mutex stats_lock; /* stats_base */
	struct rtrs_srv_stats stats_base;
	struct kobject kobj;
	struct completion released;
};

/**
 * struct rtrs_srv_path - a path
 * @path: the part that client and server share
 * @sess: session that it belongs to; valid until the path has left it
 * @entry: in the session's list, see &rtrs_srv_sess.paths
 * @uuid: chosen by the client
 * @recon_cnt: from the connection requests
 * @features: RTRS_FEATURE_* that the client was granted
 * @path_id: from the connection requests, 0 without RTRS_FEATURE_FENCE
 * @addr: local address, and the client's
 * @addr_str: @addr as text, for sysfs
 * @port_num: number of the port of the RDMA device
 * @share: the session's share of that port, from the first connection on
 * @key: secret that the client has proved to know, or NULL
 * @cost: bytes that it takes, set before the upper layer is asked about it
 * @known: the upper layer knows the path, and says whether it stays; guarded by rtrs_srv_lock
 * @unwanted: result of the last time that it was asked; under the same lock
 * @state_lock: innermost lock, taken in any context
 * @state: see enum rtrs_srv_state; written under @state_lock
 * @end_err: 0 if its end was requested, else a negative errno; written before @close_work is queued
 * @end_why: the reason, for the log; likewise
 * @close_work: begins to take the path down; queued once, by the change of @state
 * @finish_work: the rest of that; queued once, when all requests are finished
 * @conns: connections
 * @mem: chunks, memory regions and keys
 * @ios: requests and statistics
 * @fence: fencing
 * @setup: handshake
 * @sysfs: directory in sysfs
 *
 * Owned by its closing work: close_work, then finish_work, which frees it.
 */
struct rtrs_srv_path {
	struct rtrs_path path;
	struct rtrs_srv_sess *sess;
	struct list_head entry;

	uuid_t uuid;
	u16 recon_cnt;
	u32 features;
	u32 path_id;
	struct rtrs_addr addr;
	char addr_str[RTRS_PATH_STR_LEN];
	u32 port_num;
	struct rtrs_srv_share *share;
	struct key *key;
	u64 cost;
	bool known;
	bool unwanted;

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
 * @con: the part that client and server share
 * @path: path that owns it
 * @nr_arrived: counts requests; only the completion queue's context touches this and the next
 * @nr_answered: what &rtrs_con.nr_answered was when that was last looked at
 * @arrived: requests that are to begin together
 * @begin_work: begins them
 * @data_cqe: with RTRS_FEATURE_NO_IMM, of RDMA WRITEs of data in buffers
 * @pend_lock: guards @pending and @closing; taken in any context
 * @pending: requests that wait for room in the send queue
 * @closing: nothing may wait any more
 * @sending: buffers whose data are being sent, under &rtrs_con.sq_lock
 * @fetch: data that are fetched
 *
 * Each answer looks at @pending, so it is apart from what each receive writes.
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
 * enum rtrs_srv_io_stage - progress of a request, by the event that it waits for
 * @RTRS_SRV_IO_WAIT: its slot, or room in the send queue to invalidate its chunk's key;
 *	or there is no request
 * @RTRS_SRV_IO_INVALIDATE: that key to be invalid
 * @RTRS_SRV_IO_BUF: a buffer
 * @RTRS_SRV_IO_FETCH: its data to be fetched
 * @RTRS_SRV_IO_WORK: the upper layer, then room in the send queue for its answer
 */
enum rtrs_srv_io_stage {
	RTRS_SRV_IO_WAIT,
	RTRS_SRV_IO_INVALIDATE,
	RTRS_SRV_IO_BUF,
	RTRS_SRV_IO_FETCH,
	RTRS_SRV_IO_WORK,
};

/**
 * struct rtrs_srv_io - a slot of a path, and the request in it
 * @stage: progress of the request
 * @slot: index of the slot
 * @con: connection that it came on
 * @mr: the chunk's own memory region, if its key is changed with each write, else NULL
 * @reg_con: connection on which @mr was last registered with an answer, NULL if with none yet
 * @chunk: the chunk
 * @dma: the chunk's address for the path's device
 * @hdr_off: where the request's header is in the chunk
 * @err: 0 or a negative errno for the answer
 * @shut: the chunk's key is invalid
 * @need_inval: the client's key is to be invalidated with the answer
 * @fetch: the request's data are to be fetched
 * @page_used: a request has used @kept since rtrs_srv_bufs_age() looked last
 * @fetched: entries of @buf into which data were or are being fetched, under the
 *	connection's pend_lock
 * @reads: chains of RDMA READs that fetch them, likewise
 * @desc_key: key of the client's memory
 * @desc_len: length of the client's memory, 0 if there is nothing to send
 * @desc_addr: address of the client's memory
 * @page: memory for the data of a small request, NULL if it has none of its own
 * @kept: the page of an earlier request, for the next one; whoever takes it by xchg() has it
 * @buf: buffer for data, NULL if there is none
 * @sg: data in the chunk or in @page
 * @inv_cqe: completion entry of LOCAL_INV
 * @pending: in &rtrs_srv_con.pending, &rtrs_srv_slots.resumed, &rtrs_srv_bufs.small,
 *	&rtrs_srv_bufs.large or &rtrs_srv_fetch.waiting
 * @arrived: in &rtrs_srv_con.arrived
 * @op: what the upper layer sees; its own part follows this struct
 *
 * In the array of its path, 512 bytes on most machines. Owned by the holder of the session's slot,
 * see rtrs_srv_slot_take().
 */
struct rtrs_srv_io {
	enum rtrs_srv_io_stage stage;
	u32 slot;
	struct rtrs_srv_con *con;
	struct ib_mr *mr;
	struct rtrs_srv_con *reg_con;
	void *chunk;
	u64 dma;
	u32 hdr_off;
	int err;
	bool shut;
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
	struct ib_cqe inv_cqe;
	struct list_head pending;
	struct llist_node arrived;
	struct rtrs_srv_op op;
};

/**
 * struct rtrs_srv_answer - work requests of an answer
 * @data: RDMA WRITE of what was read
 * @data_sge: the chunk's part with these data
 * @inv: SEND WITH INV of the client's key
 * @reg: REG_MR of the chunk
 * @msg: what is sent in place of immediate data, with RTRS_FEATURE_NO_IMM
 * @imm: RDMA WRITE WITH IMM, SEND WITH IMM or SEND of @msg, with the errno
 * @msg_sge: the slot's message, or @msg
 */
struct rtrs_srv_answer {
	struct ib_rdma_wr data;
	struct ib_sge data_sge;
	struct ib_send_wr inv;
	union {
		struct ib_reg_wr reg;
		struct rtrs_msg_imm msg;
	};
	struct ib_rdma_wr imm;
	struct ib_sge msg_sge;
};

/* The upper layer's part begins on a cache line of its own. */
#define RTRS_SRV_IO_HEAD	ALIGN(sizeof(struct rtrs_srv_io), L1_CACHE_BYTES)

/* Bytes of the chunk that a request uses: data, then headers. */
static inline u32 rtrs_srv_io_used(const struct rtrs_srv_io *io)
{
	return io->hdr_off + sizeof(struct rtrs_msg_read) +
	       sizeof(struct rtrs_desc);
}

static inline struct rtrs_srv_path *to_srv_path(struct rtrs_path *p)
{
	return container_of(p, struct rtrs_srv_path, path);
}

static inline struct rtrs_srv_con *to_srv_con(struct rtrs_con *c)
{
	return container_of(c, struct rtrs_srv_con, con);
}

/* The features that are granted to a client that offers @offered. */
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
	return path->features & RTRS_FEATURE_SLOTS;
}

static inline enum rtrs_srv_state
rtrs_srv_path_state(const struct rtrs_srv_path *path)
{
	/* Pairs with the store of the state: a connected path's slots are there. */
	return smp_load_acquire(&path->state);
}

/* Who is at the other end of a path */
static inline struct rtrs_srv_peer rtrs_srv_path_peer(struct rtrs_srv_path *path)
{
	return (struct rtrs_srv_peer) {
		.addr = &path->addr.dst,
		.key = path->key,
		.path = path,
		.admitted = path->setup.admitted,
		.closing = rtrs_srv_path_state(path) == RTRS_SRV_CLOSING,
		.nr_cons = path->conns.nr,
		.nr_slots = path->sess->queue_depth,
		.memory = path->cost,
	};
}

static inline struct rtrs_srv_io *
rtrs_srv_path_io(const struct rtrs_srv_path *path, u32 slot)
{
	return path->ios.mem + slot * path->ios.size;
}

/*
 * Messages that a peer can cause are limited for each session, so that none is lost for
 * a client that causes many. @srv_path: the path that the message is about.
 */
#define rtrs_srv_warn(srv_path, fmt, ...) \
do { \
	const struct rtrs_srv_path *__path = (srv_path); \
\
	if (__ratelimit(rtrs_srv_log(__path))) \
		pr_warn("%s: " fmt, __path->path.name, ##__VA_ARGS__); \
} while (0)

#define rtrs_srv_info(srv_path, fmt, ...) \
do { \
	const struct rtrs_srv_path *__path = (srv_path); \
\
	if (__ratelimit(rtrs_srv_log(__path))) \
		pr_info("%s: " fmt, __path->path.name, ##__VA_ARGS__); \
} while (0)

/* state.c */
extern struct mutex rtrs_srv_lock;
extern struct wait_queue_head rtrs_srv_wait;
extern struct workqueue_struct *rtrs_srv_setup_wq;
extern struct workqueue_struct *rtrs_srv_close_wq;
extern struct workqueue_struct *rtrs_srv_io_wq;
extern struct workqueue_struct *rtrs_srv_pull_wq;
int __init rtrs_srv_state_init(void);
void rtrs_srv_state_exit(void);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_srv_may_await(const struct rtrs_srv_path *path, const struct rtrs_srv_sess *sess);
#endif
u64 rtrs_srv_hash_uuid(const uuid_t *uuid);
u64 rtrs_srv_hash_name(const char *name);
void rtrs_srv_changed(const struct rtrs_srv_sess *sess);
struct ratelimit_state *rtrs_srv_log(const struct rtrs_srv_path *path);
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
unsigned int rtrs_srv_delay_ms(unsigned int nr);
#endif
int rtrs_srv_handshake_delayed(const struct rtrs_srv *srv, const struct sockaddr_storage *from);
int rtrs_srv_handshake_begin(struct rtrs_srv_path *path, u64 bytes);
void rtrs_srv_handshake_end(struct rtrs_srv_path *path);
void rtrs_srv_handshake_wrong(const struct rtrs_srv_path *path);
void rtrs_srv_handshake_right(const struct rtrs_srv_path *path);
void rtrs_srv_limit_forget(const struct rtrs_srv *srv);

/* slot.c */
void rtrs_srv_slots_init(struct rtrs_srv_sess *sess);
int rtrs_srv_slots_alloc(struct rtrs_srv_sess *sess);
void rtrs_srv_slots_free(struct rtrs_srv_sess *sess);
int rtrs_srv_slot_take(struct rtrs_srv_io *io, struct rtrs_srv_con *con,
		       u32 off);
void rtrs_srv_slot_release(struct rtrs_srv_io *io);
bool rtrs_srv_slot_forget(struct rtrs_srv_sess *sess, struct rtrs_srv_io *io);
struct rtrs_srv_io *rtrs_srv_slot_next_resumed(struct rtrs_srv_sess *sess);

/* mem.c */
int rtrs_srv_param_refuse(const char *val, const struct kernel_param *kp);
void rtrs_srv_mem_init(struct rtrs_srv_path *path);
u32 rtrs_srv_chunks_per_mr(const struct rtrs_srv_path *path);
int rtrs_srv_mem_charge(u64 *account, u64 bytes, const char *name,
			struct ratelimit_state *log);
int rtrs_srv_path_charge(struct rtrs_srv_path *path, u64 bytes);
void rtrs_srv_mem_uncharge(u64 *account);
u64 rtrs_srv_mem_handshakes(void);
bool rtrs_srv_mem_plenty(void);
bool rtrs_srv_mem_take(struct rtrs_srv_sess *sess, u32 bytes, bool in_turn);
void rtrs_srv_mem_use(int bytes);
#if IS_ENABLED(CONFIG_KUNIT)
u64 rtrs_srv_mem_total(void);
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
struct rtrs_srv_con *rtrs_srv_inv_con(const struct rtrs_srv_io *io);
void rtrs_srv_shut(struct rtrs_srv_io *io);
void rtrs_srv_con_init_send(struct rtrs_srv_con *con);
void rtrs_srv_con_drop_pending(struct rtrs_srv_con *con);
void rtrs_srv_con_drained(struct rtrs_srv_con *con);

/* io.c */
bool rtrs_srv_read_imm(const struct rtrs_srv_path *path, u32 payload, u32 *slot,
		       u32 *off);
#if IS_ENABLED(CONFIG_KUNIT)
int rtrs_srv_parse(struct rtrs_srv_io *io);
#endif
void rtrs_srv_ios_init(struct rtrs_srv_path *path);
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

/* recv.c */
u32 rtrs_srv_service_wr(const struct rtrs_srv_path *path);
u32 rtrs_srv_nr_recvs(const struct rtrs_srv_path *path, const struct ib_device *dev, u16 cid);
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
void rtrs_srv_sess_add_name(struct rtrs_srv_sess *sess);
void rtrs_srv_sess_del(struct rtrs_srv_sess *sess);
struct rtrs_srv_sess *rtrs_srv_sess_by_name(const struct rtrs_srv *srv, const char *name);
struct rtrs_srv_sess *rtrs_srv_sess_predecessor(const struct rtrs_srv_sess *sess);
bool rtrs_srv_sess_matches(const struct rtrs_srv_sess *sess, const struct rtrs_srv *srv,
			   const struct rtrs_cm_req *req);
bool rtrs_srv_is_older(const struct rtrs_srv_path *path, const struct rtrs_srv_path *other);
bool rtrs_srv_in_the_way(const struct rtrs_srv_path *path,
			 const struct rtrs_srv_path *other);
enum rtrs_srv_rival rtrs_srv_judge_rival(const struct rtrs_srv_sess *sess,
					 const struct rtrs_srv_sess *rival,
					 u64 now);
#endif
struct rtrs_srv_sess *rtrs_srv_sess_find(struct rtrs_srv *srv, const struct rtrs_cm_req *req,
					 bool may_create);
struct rtrs_srv_sess *rtrs_srv_sess_alloc(const struct rtrs_cm_req *req,
					  const struct ib_device *dev);
int rtrs_srv_sess_create(struct rtrs_srv *srv, struct rtrs_srv_sess *sess);
void rtrs_srv_sess_discard(struct rtrs_srv_sess *sess);
u32 rtrs_srv_dev_depth(const struct ib_device *dev);
int rtrs_srv_sess_claim(struct rtrs_srv_path *path, const char *name);
int rtrs_srv_sess_up(struct rtrs_srv_path *path);
int rtrs_srv_path_up(struct rtrs_srv_path *path);
void rtrs_srv_sess_leave(struct rtrs_srv_path *path);
void rtrs_srv_sess_end_all(struct rtrs_srv *srv);

/* proof.c */
int rtrs_srv_proof_check(struct rtrs_srv_path *path);
int rtrs_srv_proof_make(struct rtrs_srv_path *path, u8 *mac);

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
u64 rtrs_srv_cons_bytes(const struct rtrs_srv_path *path, const struct ib_device *dev);
int rtrs_srv_con_add(struct rtrs_srv_path *path, struct rdma_cm_id *id,
		     const struct rtrs_cm_req *req, const struct rdma_conn_param *param);
void rtrs_srv_con_reject(struct rdma_cm_id *id, int err);

/* path.c */
struct rtrs_srv_path *rtrs_srv_path_alloc(const struct rdma_cm_id *id,
					  const struct rtrs_cm_req *req);
int rtrs_srv_path_add(struct rtrs_srv_sess *sess, struct rtrs_srv_path *path,
		      const struct ib_device *dev);
void rtrs_srv_path_free(struct rtrs_srv_path *path);
void rtrs_srv_path_put(struct rtrs_srv_path *path);

/* listen.c */
int rtrs_srv_check_req(const void *data, u8 len, struct rtrs_cm_req *req);
bool rtrs_srv_form_ok(bool iwarp, u32 offered);
int rtrs_srv_check_join(const struct rtrs_srv_path *path,
			const struct rtrs_cm_req *req);

#endif /* RTRS_SRV_H */
