/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internal interfaces of the client: sessions, paths, and the slots of a path.
 *
 * The files form a stack, listed here from the bottom to the top. A file calls functions only of
 * files listed before it. Calls in the other direction go through pointers.
 *
 *	state.c		state of a path: table, transitions, errors, waiting for a step
 *	mr.c		memory regions of a path
 *	io.c		requests on a path
 *	slot.c		memory that a path allocates for each request
 *	mpath.c		selection of a path for a request
 *	failover.c	state of a session, requests that wait
 *	fence.c		fencing of dead paths before their requests are sent again
 *	submit.c	requests from the upper layer
 *	recv.c		messages from the server
 *	create.c	creation of the session on the server, one path at a time
 *	qp.c		sizes of queue pairs, and the number of slots that fit
 *	con.c		connections
 *	proof.c		mutual authentication during the handshake
 *	setup.c		the handshake: registration of buffers, INFO_REQ and INFO_RSP
 *	probe.c		test of a path with a full-size packet
 *	link.c		adding paths to their session and removing them
 *	path.c		life of a path: its work items
 *	sess.c		sessions and their paths
 *	sysfs.c		attributes of sessions and paths
 *	main.c		opening and closing of sessions, the module
 *
 * Lifetimes: a session exists from rtrs_clt_open() to rtrs_clt_close() and outlives its paths. A
 * path has connections and slots unless it is RTRS_CLT_IDLE or RTRS_CLT_WAITING. One work item of
 * the path allocates them, another one frees them.
 *
 * Locks, outermost first:
 *
 *	rtrs_clt_lock		names of sessions; nests with no other lock
 *	rtrs_clt.lock		a session's paths; the only one that is held for long
 *	rtrs_clt.proof_lock	transform that computes proofs
 *	rtrs_clt_failover.lock	state of the session, requests that wait, fences
 *	rtrs_clt_create.lock	permission to request the session; nests with no other lock
 *	rtrs_con.sq_lock	a connection's send queue
 *	rtrs_clt_path_sm.lock	state of a path
 *	rtrs_clt_mrs.lock	a path's free memory regions; nests with no other lock
 *
 * Of these, sending and completing a request uses only sq_lock and, if the request needs a memory
 * region, rtrs_clt_mrs.lock.
 */
#ifndef RTRS_CLT_H
#define RTRS_CLT_H

#include <kunit/visibility.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <rdma/rtrs-hist.h>

#include "../common/sysfs.h"

#define RTRS_CLT_RESOLVE_MS	2000
/* Time for a sign of life after the CM has reported a connected path's server as unreachable */
#define RTRS_CLT_PROBE_MS	2000
#define RTRS_CLT_CONNECT_MS	30000
/*
 * Time to wait for the answer to the first connection request, on a path that was connected before
 * and has failed to reconnect fewer than ANSWER_TRIES times. The address may have resolved to a
 * neighbour that is gone, and each attempt resolves it again. Later attempts wait
 * RTRS_CLT_CONNECT_MS, in case the server is slow.
 */
#define RTRS_CLT_ANSWER_MS	5000
#define RTRS_CLT_ANSWER_TRIES	3
/* Most devices stop retransmitting an unacknowledged packet after 2 to 9 s. */
#define RTRS_CLT_SIZE_MS	10000
/*
 * While a session has no connected path, only one path at a time may request its creation. An
 * unanswered request blocks the next one for CREATE_MS, or for SHORT_CREATE_MS if the server has
 * sent a session ID before. If the server accepts without a session ID, the time starts again. RoCE
 * CM retransmits after 4.6 or 6.1 s.
 */
#define RTRS_CLT_CREATE_MS	7000
#define RTRS_CLT_SHORT_CREATE_MS	1000
/* rtrs_clt_open() waits for further paths only until this time has passed since it began */
#define RTRS_CLT_OPEN_MS	5000
/* Default values of a session's attributes; see struct rtrs_clt */
#define RTRS_CLT_RECONNECT_MS	1000
#define RTRS_CLT_RECONNECT_MAX_MS 30000
#define RTRS_CLT_FAILOVER_S	30
#define RTRS_CLT_UNFENCED_MS	5000
/*
 * Maximum and minimum number of SGEs of a send: one for each segment of the data, and one for the
 * headers. Data with more segments use a memory region. The maximum is enough for 64 KiB in single
 * pages.
 */
#define RTRS_CLT_MAX_SGE	17
#define RTRS_CLT_MIN_SGE	2
/* Maximum bytes of data in a request, even if the server offers more */
#define RTRS_CLT_MAX_IO		SZ_4M
/* Maximum requests in flight on a path, even if the server offers more: each one needs memory */
#define RTRS_CLT_MAX_SLOTS	4096
/* Without RTRS_FEATURE_SLOTS: data up to this size are copied */
#define RTRS_CLT_COPY_SIZE	SZ_4K
/* Larger writes into a slot are sent in place: copying would cost more. */
#define RTRS_CLT_PUSH_COPY	SZ_16K
/* With RTRS_FEATURE_SLOTS: maximum memory of a path's buffers */
#define RTRS_CLT_MAX_BUFS	SZ_64M
/* Initial number of memory regions of a path */
#define RTRS_CLT_MIN_MRS	8
/* Maximum number of outstanding RDMA READs of the server on a connection */
#define RTRS_CLT_MAX_FETCH	16

/**
 * enum rtrs_clt_state - state of a path; see rtrs_clt_next_state()
 * @RTRS_CLT_IDLE: disconnected, and stays so; only the addresses are kept
 * @RTRS_CLT_WAITING: disconnected until connect_work is due
 * @RTRS_CLT_CONNECTING: connect_work is connecting the path
 * @RTRS_CLT_CONNECTED: the path accepts requests
 * @RTRS_CLT_RESETTING: end_work disconnects the path; RTRS_CLT_WAITING follows
 * @RTRS_CLT_CLOSING: end_work disconnects the path; RTRS_CLT_IDLE follows
 * @RTRS_CLT_NR_STATES: number of states
 */
enum rtrs_clt_state {
	RTRS_CLT_IDLE,
	RTRS_CLT_WAITING,
	RTRS_CLT_CONNECTING,
	RTRS_CLT_CONNECTED,
	RTRS_CLT_RESETTING,
	RTRS_CLT_CLOSING,
	RTRS_CLT_NR_STATES
};

/**
 * enum rtrs_clt_event - event that changes the state of a path
 * @RTRS_CLT_EV_WANT: the path shall be connected
 * @RTRS_CLT_EV_DUE: the delay before the next attempt is over
 * @RTRS_CLT_EV_UP: the path is connected
 * @RTRS_CLT_EV_FAIL: the path has failed, or could not be connected
 * @RTRS_CLT_EV_STOP: the path shall be disconnected
 * @RTRS_CLT_EV_ENDED: end_work has finished
 * @RTRS_CLT_NR_EVENTS: number of events
 */
enum rtrs_clt_event {
	RTRS_CLT_EV_WANT,
	RTRS_CLT_EV_DUE,
	RTRS_CLT_EV_UP,
	RTRS_CLT_EV_FAIL,
	RTRS_CLT_EV_STOP,
	RTRS_CLT_EV_ENDED,
	RTRS_CLT_NR_EVENTS
};

/**
 * enum rtrs_clt_sess_state - state of a session; see rtrs_clt_sess_next_state()
 * @RTRS_CLT_SESS_DOWN: no path; requests wait until failover_timeout has passed
 * @RTRS_CLT_SESS_EXPIRED: no path for too long; requests fail
 * @RTRS_CLT_SESS_TRIAL: there is a path, for which requests have waited. Whether the server has
 *	answered any is checked when a path is lost
 * @RTRS_CLT_SESS_UP: there is a path
 * @RTRS_CLT_SESS_NR_STATES: number of states
 */
enum rtrs_clt_sess_state {
	RTRS_CLT_SESS_DOWN,
	RTRS_CLT_SESS_EXPIRED,
	RTRS_CLT_SESS_TRIAL,
	RTRS_CLT_SESS_UP,
	RTRS_CLT_SESS_NR_STATES
};

/**
 * enum rtrs_clt_sess_event - event that changes the state of a session
 * @RTRS_CLT_SESS_EV_PATH: the first path is about to accept requests
 * @RTRS_CLT_SESS_EV_ANSWER: a path was lost and the server had answered a request over it, or no
 *	request waits
 * @RTRS_CLT_SESS_EV_LOST: the last path is lost, or the first one could not be added
 * @RTRS_CLT_SESS_EV_EXPIRE: failover_timeout has passed
 * @RTRS_CLT_SESS_EV_EXTEND: failover_timeout was changed, and has not passed
 * @RTRS_CLT_SESS_NR_EVENTS: number of events
 */
enum rtrs_clt_sess_event {
	RTRS_CLT_SESS_EV_PATH,
	RTRS_CLT_SESS_EV_ANSWER,
	RTRS_CLT_SESS_EV_LOST,
	RTRS_CLT_SESS_EV_EXPIRE,
	RTRS_CLT_SESS_EV_EXTEND,
	RTRS_CLT_SESS_NR_EVENTS
};

/**
 * enum rtrs_clt_policy - how a path is selected for a request
 * @RTRS_CLT_RR: round-robin
 * @RTRS_CLT_MI: min-inflight: the path with the fewest requests in flight. Of paths with the same
 *	number, a path is skipped if another path's latency is less than half as long
 * @RTRS_CLT_ML: min-latency: the path whose last measured heartbeat had the shortest round trip
 * @RTRS_CLT_NR_POLICIES: number of policies
 */
enum rtrs_clt_policy {
	RTRS_CLT_RR,
	RTRS_CLT_MI,
	RTRS_CLT_ML,
	RTRS_CLT_NR_POLICIES
};

/**
 * struct rtrs_clt_con - a connection
 * @con: the part that client and server share
 * @established: the CM has established the connection; until then, the CM reports why it failed
 * @done: number of requests completed on the connection; written by its completion handlers
 *
 * @con is padded to whole cache lines, so the other fields share none with fields that submitters
 *	write.
 */
struct rtrs_clt_con {
	struct rtrs_con con;
	bool established;
	u32 done;
};

/**
 * struct rtrs_clt_mr - a memory region of a path; see mr.c
 * @entry: in rtrs_clt_mrs.free while no request uses the memory region
 * @mr: the verbs' memory region
 * @slot: slot of the request that uses the memory region, or NULL
 * @inv_cqe: completion entry of @inv_wr
 * @reg_wr: work request that registers @mr
 * @inv_wr: work request that invalidates @mr
 *
 * The request owns the memory region, like its slot, from rtrs_clt_mr_get() to rtrs_clt_mr_put().
 */
struct rtrs_clt_mr {
	struct list_head entry;
	struct ib_mr *mr;
	struct rtrs_clt_slot *slot;
	struct ib_cqe inv_cqe;
	struct ib_reg_wr reg_wr;
	struct ib_send_wr inv_wr;
};

/**
 * struct rtrs_clt_mrs - a path's memory regions
 * @lock: guards @free and changes of @nr; any context
 * @free: memory regions that no request uses
 * @nr: number of all memory regions; changed only by @grow and while the path is connected or
 *	disconnected
 * @grow: allocates more memory regions
 * @delay: jiffies before @grow runs after it has been queued
 */
struct rtrs_clt_mrs {
	spinlock_t lock; /* see above */
	struct list_head free;
	u32 nr;
	struct delayed_work grow;
	unsigned long delay;
};

/**
 * struct rtrs_clt_slot - a slot of a path, with the resources for one request
 * @io: request in the slot, or NULL
 * @con: connection on which the request is sent and must be answered
 * @queued: equals @con from when rtrs_con_queue() queues the request until the answer arrives, else
 *	NULL. Completion handlers of other connections may read it
 * @form: how the request's data travel
 * @sending: the device may still read the request's data
 * @err: errno of the server's answer, valid while the request waits for @sending or @mr
 * @cpu: CPU on which the request was submitted, for the statistics
 * @nents: number of entries of the request's scatter list that are mapped for DMA
 * @start: time when the request was sent, in ns
 * @rkey: remote key of the server's chunk
 * @buf_rkey: remote key of @buf, valid until the path is disconnected
 * @raddr: address of the server's chunk, for RDMA
 * @mr: memory region registered for the request while its key is valid, else NULL
 * @send_cqe: completion entry of @wr if the data are sent in place
 * @wr: work request that writes the request into the server's chunk
 * @imm: with RTRS_FEATURE_NO_IMM, work request that follows @wr
 * @buf: buffer for small data, then user message and RTRS header; a piece of &rtrs_clt_path.bufs
 * @buf_dma: DMA address of @buf
 * @buf_iova: address of @buf for the server
 * @sge: SGEs of data that are sent in place, then one for the part of @buf to send
 *
 * The submitter owns the slot until @queued is set, then the completion handlers of @con, and
 * rtrs_clt_path_end() once the path's queue pairs are drained. On most machines, a slot with one
 * SGE (RTRS_FEATURE_SLOTS with slots of a few KiB) takes 256 bytes.
 */
struct rtrs_clt_slot {
	struct rtrs_clt_io *io;
	struct rtrs_clt_con *con;
	struct rtrs_con *queued;
	enum rtrs_form form : 8;
	bool sending;
	int err;
	int cpu;
	int nents;
	u64 start;
	u32 rkey;
	u32 buf_rkey;
	u64 raddr;
	struct rtrs_clt_mr *mr;
	struct ib_cqe send_cqe;
	struct ib_rdma_wr wr;
	void *buf;
	u64 buf_dma;
	u64 buf_iova;
	struct rtrs_imm_wr imm;
	struct ib_sge sge[];
};

/* A path has hundreds of slots, each from kmalloc(). */
static_assert(sizeof(struct rtrs_clt_slot) + sizeof(struct ib_sge) <= 256);

/**
 * struct rtrs_clt_answer - an answer from the server, not checked yet
 * @slot: number of the slot
 * @err: 0 or a negative errno
 * @inv_rkey: key that the device has invalidated with the answer, or NULL
 * @new_rkey: key of the slot's chunk from now on, or NULL
 */
struct rtrs_clt_answer {
	u32 slot;
	int err;
	const u32 *inv_rkey;
	const u32 *new_rkey;
};

/**
 * struct rtrs_clt_stats - counters of a path on one CPU
 * @io: the part that client and server share; requests reclaimed when the path ended are also done
 * @migrated_to: number of requests submitted on other CPUs and completed on this one
 * @migrated_from: number of requests submitted on this CPU and completed on others. The other CPUs
 *	write it, so it has a cache line of its own
 */
struct rtrs_clt_stats {
	struct rtrs_stats io;
	u32 migrated_to;
	atomic_t migrated_from ____cacheline_aligned_in_smp;
};

/**
 * struct rtrs_clt_path_stats - statistics of a path
 * @cpu: counters of each CPU; &rtrs_path.stats is the common part of these
 * @latency: time from sending to completion of requests with data; never reset
 * @failed_over: number of requests that were in flight when the path ended, since the last reset
 * @reclaimed: number of requests that were in flight when the path ended; never reset
 * @reconnects: number of failed attempts to connect, and number of successful reconnects
 * @ever_up: the path has been connected before
 */
struct rtrs_clt_path_stats {
	struct rtrs_clt_stats __percpu *cpu;
	struct rtrs_hist __percpu *latency;
	u64 failed_over;
	u64 reclaimed;
	u32 reconnects[2];
	bool ever_up;
};

/**
 * struct rtrs_clt_path_sm - the state machine of a path; see state.c and path.c
 * @lock: guards the fields up to @result; any context
 * @state: changed by rtrs_clt_path_move_locked() only
 * @err: error with which the path left RTRS_CLT_CONNECTING or RTRS_CLT_CONNECTED
 * @gone: the path is being destroyed and can't be connected any more. Set before
 *	rtrs_clt_view.hide() acquires clt->lock, so the path isn't shown again after that
 * @at_once: the next attempt has no delay and is made even if max_tries is reached
 * @hurry: all paths were lost. The next attempt has no delay, but max_tries applies
 * @trying: @connect_work is running an attempt; @end_work is queued only after it
 * @failures: number of failed attempts since the last successful one
 * @short_lives: number of times in a row that the path was lost within
 *	rtrs_clt_reconnect.delay_max_ms after it was connected
 * @up_since: when the path was last connected, in jiffies
 * @begun: number of attempts started
 * @tries: number of attempts ended
 * @result: result of the last attempt, 0 or a negative errno
 * @wait: woken by changes of @nr_pending, @tries and @state
 * @nr_pending: number of connections that have not finished the current step
 * @logged: the last error logged; further attempts that fail with it log nothing
 * @try_err: errno of the last attempt until the path is down, 0 if it succeeded; used by the work
 *	items only
 * @connect_work: connects the path
 * @end_work: disconnects the path. The two work items never overlap, except for the last
 *	instructions of either
 */
struct rtrs_clt_path_sm {
	spinlock_t lock; /* see above */
	enum rtrs_clt_state state;
	int err;
	bool gone;
	bool at_once;
	bool hurry;
	bool trying;
	u32 failures;
	u32 short_lives;
	unsigned long up_since;
	u32 begun;
	u32 tries;
	int result;
	wait_queue_head_t wait;
	atomic_t nr_pending;
	int logged;
	int try_err;
	struct delayed_work connect_work;
	struct work_struct end_work;
};

/**
 * struct rtrs_clt_path_neg - parameters negotiated each time a path connects
 * @offered: features offered to the server, RTRS_FEATURE_*. RTRS_FEATURE_NO_IMM is added once the
 *	device is known to need it, and must then be granted
 * @tag: rtrs_proof_tag() in the connection requests, if the session has a key
 * @sess_id: the server's ID of the session, 0 without RTRS_FEATURE_FENCE
 * @srv_uuid: UUID of the server, or null
 * @depth: number of the server's slots; determines the layout of immediate values
 * @chunk_size: bytes of a chunk or slot of the server, including headers
 * @slot_size: bytes of data in a slot of the server; 0 without RTRS_FEATURE_SLOTS
 * @copy_size: maximum bytes of data that use a slot's buffer
 * @max_io_size: maximum bytes of data in a request
 * @max_sge: maximum number of SGEs of a send
 * @max_segments: maximum number of entries of a request's scatter list
 * @nr_slots: number of slots in use: limited by @depth, rtrs_clt.queue_depth, RTRS_CLT_MAX_SLOTS,
 *	RTRS_CLT_MAX_BUFS and the device's queues
 * @new_rkey: the server sends a new key with each answer
 * @own_inv: the client invalidates a key again after the device has reported that the server
 *	invalidated it; see io.c
 */
struct rtrs_clt_path_neg {
	u32 offered;
	u16 tag;
	u32 sess_id;
	uuid_t srv_uuid;
	u32 depth;
	u32 chunk_size;
	u32 slot_size;
	u32 copy_size;
	u32 max_io_size;
	u32 max_sge;
	u32 max_segments;
	u32 nr_slots;
	bool new_rkey;
	bool own_inv;
};

/**
 * struct rtrs_clt_path_info - exchange of INFO_REQ and INFO_RSP, while connecting
 * @rsp: INFO_RSP
 * @len: bytes received
 * @nonce: with RTRS_FEATURE_PROOF: the client's nonce
 * @asked: INFO_REQ has been posted, so INFO_RSP is expected
 * @recv_cqe: completion entry of the receive of INFO_RSP
 * @send_cqe: completion entry of the registration of buffers, then of the send of INFO_REQ
 */
struct rtrs_clt_path_info {
	struct rtrs_long rsp;
	u32 len;
	u8 nonce[RTRS_PROOF_NONCE];
	bool asked;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
};

/**
 * struct rtrs_clt_fence - a dead path to be fenced, and its requests
 * @entry: in rtrs_clt_fences.list, under rtrs_clt_failover.lock
 * @id: rtrs_path.id of the dead path
 * @sess_id: rtrs_clt_path_neg.sess_id of the dead path
 * @srv_uuid: rtrs_clt_path_neg.srv_uuid of the dead path
 * @granted: the server can fence the path; if not, the path counts as fenced at @until
 * @until: in jiffies, 64 bits
 * @failed: requests have failed that the server must not execute any more, see rtrs_clt_io.dir. The
 *	first path to be connected accepts no requests until the dead path is fenced
 * @ios: requests that were on the path; they wait until the path is fenced
 *
 * Allocated for each attempt to connect a path. The session owns it from rtrs_clt_failover_path(),
 * after the path has died, until the fence ends.
 */
struct rtrs_clt_fence {
	struct list_head entry;
	u32 id;
	u32 sess_id;
	uuid_t srv_uuid;
	bool granted;
	u64 until;
	bool failed;
	struct list_head ios;
};

/**
 * struct rtrs_clt_path_fence - fencing-related fields of a path
 * @own: fence for this path, allocated before it connects and used when it has died
 * @ready: the path is being connected and can carry FENCE, see rtrs_clt_fence_via(); under
 *	clt->lock
 * @asked: ID of the dead path in the unanswered FENCE sent over this path, or 0
 */
struct rtrs_clt_path_fence {
	struct rtrs_clt_fence *own;
	bool ready;
	u32 asked;
};

/**
 * struct rtrs_clt_path - a path
 * @path: the part that client and server share. addr.src is set once routing has selected it;
 *	addr_str is under clt->lock
 * @clt: session of the path; outlives it
 * @entry: in rtrs_clt.paths, under clt->lock
 * @leaving: the path is being removed; under clt->lock
 * @spare: array for the remaining paths, allocated while this path is in rtrs_clt.path_set
 * @answered: rtrs_clt_nr_answered() when the path was connected
 * @added: the path's directory has been added to sysfs; under clt->lock
 * @sm: state machine
 * @neg: parameters negotiated with the server
 * @may_create: on this attempt, the server may create the session. If false, the other paths are
 *	connected, so the server must know the session
 * @create_entry: in rtrs_clt_create.waiters
 * @info: exchange of INFO_REQ and INFO_RSP
 * @probe_cqe: completion entry of the full-size packet
 * @fence: fencing
 * @cons: connections, the service connection first; see rtrs_clt_nr_cons()
 * @bufs: one buffer for each of @slots
 * @slots: one for each request; published (release) when all are allocated
 * @mrs: memory regions
 * @stats: statistics shown in sysfs
 */
struct rtrs_clt_path {
	struct rtrs_path path;
	struct rtrs_clt *clt;
	struct list_head entry;
	bool leaving;
	struct rtrs_clt_path_set *spare;
	u64 answered;
	bool added;
	struct rtrs_clt_path_sm sm;

	struct rtrs_clt_path_neg neg;
	bool may_create;
	struct list_head create_entry;
	struct rtrs_clt_path_info info;
	struct ib_cqe probe_cqe;
	struct rtrs_clt_path_fence fence;

	struct rtrs_clt_con *cons;
	struct rtrs_region bufs;
	struct rtrs_clt_slot **slots;
	struct rtrs_clt_mrs mrs;
	struct rtrs_clt_path_stats stats;
};

/**
 * struct rtrs_clt_view - how paths are shown to users; set by sysfs.c
 * @ktype: type of the path's kobject; its release frees the path
 * @show: shows a path under its known addresses; called from the path's work items. Returns 0, also
 *	if the path is already shown, or a negative errno
 * @hide: hides a path that is gone for good; on return its files have no users
 */
struct rtrs_clt_view {
	const struct kobj_type *ktype;
	int (*show)(struct rtrs_clt_path *path);
	void (*hide)(struct rtrs_clt_path *path);
};

/**
 * struct rtrs_clt_path_set - the paths that accept requests
 * @rcu: frees the set after a grace period
 * @nr: number of entries in @path
 * @path: paths that accept requests, in the order in which they were connected
 *
 * Never changed after publication, only replaced.
 */
struct rtrs_clt_path_set {
	struct rcu_head rcu;
	unsigned int nr;
	struct rtrs_clt_path *path[];
};

/**
 * struct rtrs_clt_failover - requests that wait; see failover.c
 * @retry_ok: callback of the upper layer, see struct rtrs_clt_params
 * @prep_retry: callback of the upper layer, see struct rtrs_clt_params
 * @timeout: seconds that requests wait while there is no path; -1: no limit
 * @down_since: start of the time without a path, in jiffies of 64 bits, as 32 bits wrap after
 *	weeks; changed under clt->lock. This is when the session last left RTRS_CLT_SESS_UP: paths
 *	that are connected and lost again without an answer to any request don't restart the time
 * @lock: guards the fields below, and struct rtrs_clt_fences; any context
 * @state: changed by rtrs_clt_sess_move_locked() only, also under clt->lock
 * @parked: requests that wait for a path, or for the upper layer
 * @resuming: @resume_work has moved @parked to a list of its own
 * @resume_work: sends parked requests, and fails requests that may not wait
 * @work: sends RTRS_CLT_SESS_EV_EXPIRE
 */
struct rtrs_clt_failover {
	int (*retry_ok)(struct rtrs_clt_io *io);
	int (*prep_retry)(struct rtrs_clt_io *io);
	int timeout;
	atomic64_t down_since;
	spinlock_t lock; /* see above */
	enum rtrs_clt_sess_state state;
	struct list_head parked;
	bool resuming;
	struct delayed_work resume_work;
	struct delayed_work work;
};

/**
 * struct rtrs_clt_fences - the dead paths of a session that are to be fenced; see fence.c
 * @unfenced_ms: milliseconds that requests of a dead path wait if its server can't fence it
 * @list: of struct rtrs_clt_fence; under rtrs_clt_failover.lock
 * @nr_changes: number of fences that have ended, plus those that the server turned out to be unable
 *	to end; under rtrs_clt_failover.lock
 * @work: requests fencing of dead paths from the server
 */
struct rtrs_clt_fences {
	unsigned int unfenced_ms;
	struct list_head list;
	unsigned int nr_changes;
	struct delayed_work work;
};

/**
 * struct rtrs_clt_create - creation of the session on the server; see create.c
 * @lock: guards the fields below; any context
 * @waiters: paths that wait to become the owner
 * @owner: ID of the path that may request creation, 0 if there is none
 * @expires: when the next path may become @owner in any case, in jiffies
 */
struct rtrs_clt_create {
	spinlock_t lock; /* see above */
	struct list_head waiters;
	u32 owner;
	unsigned long expires;
};

/**
 * enum rtrs_clt_reported - the last event that was reported to the upper layer
 * @RTRS_CLT_REPORT_NONE: the session isn't open, so no events are reported
 * @RTRS_CLT_REPORTING: rtrs_clt_link.event is running
 * @RTRS_CLT_REPORTED_UP: RTRS_LINK_UP, or none since rtrs_clt_open()
 * @RTRS_CLT_REPORTED_DOWN: RTRS_LINK_DOWN
 */
enum rtrs_clt_reported {
	RTRS_CLT_REPORT_NONE,
	RTRS_CLT_REPORTING,
	RTRS_CLT_REPORTED_UP,
	RTRS_CLT_REPORTED_DOWN
};

/**
 * struct rtrs_clt_link - events for the upper layer
 * @reported: the last event that was reported; under clt->lock
 * @work: calls @event if the state of the session differs from @reported
 * @event: callback of the upper layer, rtrs_clt_params.link_event
 * @srv_event: callback of the upper layer, rtrs_clt_params.srv_event; called without locks
 * @priv: argument of @event and @srv_event
 */
struct rtrs_clt_link {
	enum rtrs_clt_reported reported;
	struct work_struct work;
	void (*event)(void *priv, enum rtrs_link_event ev);
	void (*srv_event)(void *priv);
	void *priv;
};

/**
 * struct rtrs_clt_reconnect - when lost paths are connected again; set by attributes
 * @max_tries: number of failures in a row after which a path isn't connected again, see
 *	rtrs_clt_path_failures(); -1: no limit
 * @delay_ms: approximate delay before the first attempt, in milliseconds; doubled with each failure
 * @delay_max_ms: upper limit of the doubled delay, in milliseconds
 */
struct rtrs_clt_reconnect {
	int max_tries;
	unsigned int delay_ms;
	unsigned int delay_max_ms;
};

/**
 * struct rtrs_clt - a session
 * @name: unique in the network namespace, and on the server
 * @label: name of the session in the log, unique on this client
 * @net: network namespace of the paths, and of @dev
 * @uuid: identifies the session to the server
 * @entry: in the list of all sessions, under rtrs_clt_lock
 * @dev: directory in sysfs; its release frees the session
 * @paths_kobj: directory "paths" of @dev
 * @view: functions that show the paths in sysfs
 * @ratelimit: limits messages that a peer can cause, see rtrs_path_err()
 * @nr_queues: number of connections for I/O in each path that aren't polled
 * @nr_poll_queues: number of polled connections, which follow these
 * @queue_depth: maximum number of slots; 0: the server decides
 * @key: secret for mutual authentication, or NULL
 * @tag: rtrs_clt_path_neg.tag of the first path connected since @nr_up was 0; under @lock
 * @proof_tfm: transform that computes proofs, if there is a key
 * @proof_lock: held while @proof_tfm is used
 * @fencing: RTRS_FEATURE_FENCE is offered to the server
 * @port: the server's port, for paths that are added
 * @limits: set by the first path; further paths must not have lower ones
 * @have_limits: @limits are set
 * @policy: how a path is selected for a request
 * @hb: heartbeat parameters of the paths
 * @reconnect: when lost paths are connected again
 * @rr_next: cursor in @path_set, one for each CPU
 * @path_set: paths that accept requests, under RCU; NULL if there are none
 * @lock: guards the fields below, up to @link
 * @paths: all paths, connected or not
 * @nr_paths: number of @paths
 * @closing: the session is being closed, and no path can be added
 * @wait: woken by changes of @results, @nr_paths, @create and rtrs_clt_fences.nr_changes, and of
 *	the state of a path
 * @results: number of attempts of all paths that have ended, plus paths removed
 * @nr_up: number of paths that accept requests, or whose requests are not all reclaimed yet
 * @sess_id: the server's ID of the session, see struct rtrs_cm_rep
 * @last_id: the last rtrs_path.id that was assigned
 * @link: events for the upper layer
 * @failover: requests that wait
 * @fences: dead paths that are to be fenced
 * @create: creation of the session on the server
 */
struct rtrs_clt {
	char name[RTRS_NAME_LEN];
	char label[RTRS_LABEL_LEN];
	struct net *net;
	uuid_t uuid;
	struct list_head entry;
	struct device dev;
	struct kobject *paths_kobj;
	const struct rtrs_clt_view *view;
	struct ratelimit_state ratelimit;
	unsigned int nr_queues;
	unsigned int nr_poll_queues;
	u16 queue_depth;
	struct key *key;
	u16 tag;
	struct crypto_shash *proof_tfm;
	struct mutex proof_lock; /* proof_tfm */
	bool fencing;
	u16 port;
	struct rtrs_clt_limits limits;
	bool have_limits;
	enum rtrs_clt_policy policy;
	struct rtrs_hb_params hb;
	struct rtrs_clt_reconnect reconnect;
	unsigned int __percpu *rr_next;
	struct rtrs_clt_path_set __rcu *path_set;

	struct mutex lock; /* see above */
	struct list_head paths;
	unsigned int nr_paths;
	bool closing;
	wait_queue_head_t wait;
	atomic_t results;
	unsigned int nr_up;
	u32 sess_id;
	u32 last_id;
	struct rtrs_clt_link link;

	struct rtrs_clt_failover failover;
	struct rtrs_clt_fences fences;
	struct rtrs_clt_create create;
};

/* Number of connections of each path: the service connection, connections for I/O, polled ones. */
static inline unsigned int rtrs_clt_nr_cons(const struct rtrs_clt *clt)
{
	return 1 + clt->nr_queues + clt->nr_poll_queues;
}

static inline struct rtrs_clt_path *to_clt_path(struct rtrs_path *path)
{
	return container_of(path, struct rtrs_clt_path, path);
}

static inline struct rtrs_clt_con *to_clt_con(struct rtrs_con *con)
{
	return container_of(con, struct rtrs_clt_con, con);
}

/* state.c */
extern struct workqueue_struct *rtrs_clt_connect_wq;
extern struct workqueue_struct *rtrs_clt_end_wq;
extern struct workqueue_struct *rtrs_clt_sess_wq;
enum rtrs_clt_state rtrs_clt_next_state(enum rtrs_clt_state state,
					enum rtrs_clt_event ev);
#if IS_ENABLED(CONFIG_KUNIT)
unsigned int rtrs_clt_backoff(unsigned int first, unsigned int max,
			      unsigned int failures);
#endif
u32 rtrs_clt_path_failures(const struct rtrs_clt_path *path);
void rtrs_clt_path_queue_attempt(struct rtrs_clt_path *path);
bool rtrs_clt_path_move_locked(struct rtrs_clt_path *path,
			       enum rtrs_clt_event ev, int err);
bool rtrs_clt_path_move(struct rtrs_clt_path *path, enum rtrs_clt_event ev,
			int err);
void rtrs_clt_path_error(struct rtrs_path *path, int err, const char *why);
void rtrs_clt_path_step_done(struct rtrs_clt_path *path);
int rtrs_clt_path_failed(struct rtrs_clt_path *path);
int rtrs_clt_path_wait(struct rtrs_clt_path *path, unsigned int timeout_ms);

/* mr.c */
bool rtrs_clt_mr_get(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
void rtrs_clt_mr_put(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
int rtrs_clt_mrs_alloc(struct rtrs_clt_path *path, u32 nr);
void rtrs_clt_mrs_free(struct rtrs_clt_path *path);
void rtrs_clt_mrs_init(struct rtrs_clt_path *path);

/* io.c */
void rtrs_clt_slot_init(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
struct rtrs_clt_io *rtrs_clt_slot_reclaim(struct rtrs_clt_path *path,
					  struct rtrs_clt_slot *slot);
#if IS_ENABLED(CONFIG_KUNIT)
struct rtrs_clt_slot *rtrs_clt_find_slot(struct rtrs_clt_con *con, u32 nr);
bool rtrs_clt_key_matches(const struct rtrs_clt_slot *slot, const u32 *rkey);
void rtrs_clt_copy_back(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
enum rtrs_form rtrs_clt_io_form(const struct rtrs_clt_path *path, const struct rtrs_clt_io *io);
u32 rtrs_clt_reg_access(enum rtrs_form form);
struct ib_send_wr *rtrs_clt_build(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
				  const struct rtrs_clt_io *io);
#endif
int rtrs_clt_send_over(struct rtrs_clt_path *path, struct rtrs_clt_io *io,
		       bool last);
void rtrs_clt_answer(struct rtrs_clt_con *con, const struct rtrs_clt_answer *answer);

/* slot.c */
int rtrs_clt_slots_alloc(struct rtrs_clt_path *path);
void rtrs_clt_slots_reclaim(struct rtrs_clt_path *path, struct list_head *ios);
void rtrs_clt_slots_free(struct rtrs_clt_path *path);

/* mpath.c */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt,
					 const struct rtrs_clt_path_set *set,
					 unsigned int queue);
struct rtrs_clt_path_set *rtrs_clt_path_set_alloc(struct rtrs_clt_path *path);
void rtrs_clt_path_set_free(struct rtrs_clt_path *path, struct rtrs_clt_path_set *new);
void rtrs_clt_path_set_add(struct rtrs_clt *clt, struct rtrs_clt_path *path,
			   struct rtrs_clt_path_set *new);
void rtrs_clt_path_set_del(struct rtrs_clt *clt, struct rtrs_clt_path *path);
bool rtrs_clt_is_live(struct rtrs_clt_path *path);
int rtrs_clt_send(struct rtrs_clt *clt, const struct rtrs_clt_path_set *set,
		  struct rtrs_clt_io *io, bool last);
void rtrs_clt_flush(const struct rtrs_clt_path_set *set, unsigned int queue);
int rtrs_clt_poll_paths(const struct rtrs_clt_path_set *set, unsigned int queue);

/* failover.c */
void rtrs_clt_failover_init(struct rtrs_clt *clt);
void rtrs_clt_failover_exit(struct rtrs_clt *clt);
#if IS_ENABLED(CONFIG_KUNIT)
enum rtrs_clt_sess_state rtrs_clt_sess_next_state(enum rtrs_clt_sess_state state,
						  enum rtrs_clt_sess_event ev);
void rtrs_clt_fail_expired(struct rtrs_clt *clt);
#endif
void rtrs_clt_kick_fencing(struct rtrs_clt *clt);
bool rtrs_clt_sess_move(struct rtrs_clt *clt, enum rtrs_clt_sess_event ev);
bool rtrs_clt_sess_has_path(const struct rtrs_clt *clt);
void rtrs_clt_failover_timeout_changed(struct rtrs_clt *clt);
bool rtrs_clt_allow_first_path(struct rtrs_clt *clt);
void rtrs_clt_first_path_up(struct rtrs_clt *clt);
void rtrs_clt_all_paths_lost(struct rtrs_clt *clt);
int rtrs_clt_wait_for_path(struct rtrs_clt *clt, struct rtrs_clt_io *io);

/* fence.c */
void rtrs_clt_fence_init(struct rtrs_clt *clt);
void rtrs_clt_fence_exit(struct rtrs_clt *clt);
void rtrs_clt_failover_path(struct rtrs_clt_path *path, struct list_head *ios);
int rtrs_clt_fence_via(struct rtrs_clt_path *path);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_clt_can_fence(const struct rtrs_clt_path *path,
			const struct rtrs_clt_fence *fence);
bool rtrs_clt_may_fence_via(struct rtrs_clt_path *path, const struct rtrs_clt_fence *fence);
#endif
bool rtrs_clt_fence_answer(struct rtrs_clt_path *path, u32 id);

/* recv.c */
bool rtrs_clt_parse_rkey(const struct rtrs_msg_rkey_rsp *msg, u32 len, u32 slot,
			 u32 *rkey);
bool rtrs_clt_parse_answer(const struct rtrs_msg_answer *msg, u32 len,
			   struct rtrs_clt_answer *answer);
int rtrs_clt_recvs_start(struct rtrs_clt_con *con, u32 nr);

/* create.c */
void rtrs_clt_create_init(struct rtrs_clt *clt);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_clt_begin_create(struct rtrs_clt_path *path);
#endif
int rtrs_clt_wait_create(struct rtrs_clt_path *path);
void rtrs_clt_create_accepted(struct rtrs_clt_path *path);
void rtrs_clt_end_create(struct rtrs_clt_path *path);

/* con.c */
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_clt_choose_form(struct rtrs_clt_path *path);
unsigned int rtrs_clt_answer_ms(const struct rtrs_clt_path *path);
#endif
int rtrs_clt_parse_rep(struct rtrs_clt_path *path,
		       const struct ib_device_attr *attrs, size_t max_mapping,
		       const void *data, u8 len);
int rtrs_clt_peer_errno(int err);
int rtrs_clt_rep_err(const struct rtrs_cm_rep *rep, u8 len);
void rtrs_clt_fill_req(const struct rtrs_clt_path *path, unsigned int cid,
		       struct rtrs_cm_req *req);
int rtrs_clt_conn_resolve(struct rtrs_clt_path *path);
int rtrs_clt_conn_service(struct rtrs_clt_path *path);
int rtrs_clt_conn_io(struct rtrs_clt_path *path);
void rtrs_clt_cons_disconnect(struct rtrs_clt_path *path);
void rtrs_clt_cons_destroy(struct rtrs_clt_path *path);

/* qp.c */
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_clt_qp_params(const struct rtrs_clt_path *path, unsigned int cid,
			struct rtrs_qp_params *params);
bool rtrs_clt_fewer_slots(struct rtrs_clt_path *path);
#endif
int rtrs_clt_dev_slots(const struct ib_device_attr *attrs, bool small);
int rtrs_clt_create_qp(struct rtrs_clt_path *path, unsigned int cid, u32 *recv_wr);

/* proof.c */
int rtrs_clt_proof_tag(struct rtrs_clt_path *path);
int rtrs_clt_proof(struct rtrs_clt_path *path, const u8 *theirs, u8 *ours);

/* setup.c */
int rtrs_clt_info_alloc(struct rtrs_clt_path *path);
void rtrs_clt_fill_info_req(struct rtrs_info_req *req, const char *name);
int rtrs_clt_parse_info_rsp(struct rtrs_clt_path *path);
int rtrs_clt_info_register(struct rtrs_clt_path *path);
int rtrs_clt_info_exchange(struct rtrs_clt_path *path);
void rtrs_clt_info_free(struct rtrs_clt_path *path);

/* probe.c */
#if IS_ENABLED(CONFIG_KUNIT)
u32 rtrs_clt_probe_size(const struct rtrs_clt_path *path, int mtu);
bool rtrs_clt_may_probe(const struct rtrs_clt_path *path);
#endif
int rtrs_clt_probe(struct rtrs_clt_path *path);

/* link.c */
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_clt_same_session(const struct rtrs_clt_path *path);
void rtrs_clt_wake_paths(struct rtrs_clt *clt, struct rtrs_clt_path *lost);
void rtrs_clt_set_limits(struct rtrs_clt_path *path);
int rtrs_clt_check_limits(const struct rtrs_clt_path *path);
#endif
int rtrs_clt_link_add(struct rtrs_clt_path *path);
bool rtrs_clt_link_del(struct rtrs_clt_path *path);
void rtrs_clt_link_gone(struct rtrs_clt_path *path);
void rtrs_clt_link_work(struct work_struct *work);

/* path.c */
struct rtrs_clt_path *rtrs_clt_path_create(struct rtrs_clt *clt,
					   const struct rtrs_addr *addr);
void rtrs_clt_path_destroy(struct rtrs_clt_path *path);
void rtrs_clt_path_free(struct rtrs_clt_path *path);
int rtrs_clt_path_claim_locked(struct rtrs_clt_path *path);
u32 rtrs_clt_path_connect_start(struct rtrs_clt_path *path);
int rtrs_clt_path_connect_status(struct rtrs_clt_path *path, u32 tries);
int rtrs_clt_path_connect_wait(struct rtrs_clt_path *path, u32 tries);
int rtrs_clt_path_reconnect(struct rtrs_clt_path *path);
int rtrs_clt_path_disconnect(struct rtrs_clt_path *path);
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_clt_path_lived(struct rtrs_clt_path *path);
void rtrs_clt_path_result(struct rtrs_clt_path *path, int result);
#endif

/* sess.c */
extern bool rtrs_clt_fencing;
struct rtrs_clt *rtrs_clt_alloc(const struct rtrs_clt_params *params);
void rtrs_clt_free(struct rtrs_clt *clt);
int rtrs_clt_claim_name(struct rtrs_clt *clt);
void rtrs_clt_release_name(struct rtrs_clt *clt);
int rtrs_clt_connect_paths(struct rtrs_clt *clt,
			   const struct rtrs_clt_params *params);
void rtrs_clt_end_paths(struct rtrs_clt *clt);
int rtrs_clt_add_path(struct rtrs_clt *clt, const struct rtrs_addr *addr);
void rtrs_clt_remove_path(struct rtrs_clt_path *path);

/* sysfs.c */
extern struct class rtrs_clt_class;
void rtrs_clt_sysfs_init_sess(struct rtrs_clt *clt);
int rtrs_clt_sysfs_add(struct rtrs_clt *clt);
void rtrs_clt_sysfs_del(struct rtrs_clt *clt);
#if IS_ENABLED(CONFIG_KUNIT)
int rtrs_clt_parse_policy(const char *str);
#endif

#endif /* RTRS_CLT_H */
