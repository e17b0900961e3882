/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client's session, its paths, and what each slot of a path holds.
 *
 * The files are a stack, here from the bottom to the top. Each calls only those before
 * it in this list; nothing calls back but by pointers that are set from above.
 *
 *	state.c		state of a path: table, moves, errors, waiting for a step
 *	mr.c		memory regions of a path
 *	io.c		requests on a path
 *	slot.c		what a path holds for each request
 *	mpath.c		which path a request takes
 *	failover.c	requests that wait
 *	fence.c		dead paths are fenced before their requests go on
 *	submit.c	requests from the upper layer
 *	recv.c		what comes from the server
 *	create.c	creation of the session on the server, one path at a time
 *	qp.c		sizes of queue pairs, and the slots that they leave
 *	conn.c		connections
 *	info.c		first exchange of messages
 *	proof.c		what both ends prove in it
 *	probe.c		a full-size packet
 *	link.c		paths join and leave their session
 *	path.c		life of a path: its work items
 *	sess.c		sessions and their paths
 *	sysfs.c		what users see and set
 *	main.c		open, close, the module
 *
 * Lifetimes: the upper layer keeps the session (rtrs_clt_open() to
 * rtrs_clt_close()), the session keeps its paths, a path keeps its connections
 * and slots while it is neither RTRS_CLT_IDLE nor RTRS_CLT_WAITING. One work item
 * of each path sets all that up, another one takes it down.
 *
 * Locks, in the order in which they nest:
 *
 *	rtrs_clt_lock		names of sessions; taken alone
 *	rtrs_clt.lock		a session's paths; the only one that is held for long
 *	rtrs_clt_failover.lock	requests that wait, fences
 *	rtrs_clt_create.lock	which path may request the session; taken alone
 *	rtrs_con.sq_lock	a connection's send queue
 *	rtrs_clt_path_sm.lock	state of a path
 *	rtrs_clt_mrs.lock	a path's free memory regions; taken alone
 *
 * Of these the I/O path takes sq_lock, and rtrs_clt_mrs.lock for requests that need a
 * memory region.
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
#include <linux/xarray.h>

#include "../common/core.h"
#include "../rtrs-hist.h"

#define RTRS_CLT_RESOLVE_MS	2000
/* For how long a path may show no sign of life when its server seems to be unreachable */
#define RTRS_CLT_PROBE_MS	2000
#define RTRS_CLT_CONNECT_MS	30000
/*
 * A path that was connected before waits this long for the answer to its first request, for a
 * few tries: the address may belong to a neighbour that is gone, and is resolved again with
 * each try. A server that is slow has more time after that.
 */
#define RTRS_CLT_ANSWER_MS	5000
#define RTRS_CLT_ANSWER_TRIES	3
/* A packet that isn't acknowledged is given up by most devices in 2 to 9 s. */
#define RTRS_CLT_SIZE_MS	10000
/*
 * While a session has no connected path, one path at a time may request its creation. An
 * unanswered request blocks the next for CREATE_MS; an accept without a session ID
 * restarts that; SHORT_CREATE_MS if the server gave an ID before. RoCE CM retransmits
 * after 4.6 or 6.1 s.
 */
#define RTRS_CLT_CREATE_MS	7000
#define RTRS_CLT_SHORT_CREATE_MS	1000
/* rtrs_clt_open() waits this long for further paths once one is connected. */
#define RTRS_CLT_OPEN_MS	5000
/* Initial values of a session's attributes; see struct rtrs_clt. */
#define RTRS_CLT_RECONNECT_MS	1000
#define RTRS_CLT_RECONNECT_MAX_MS 30000
#define RTRS_CLT_FAILOVER_S	30
#define RTRS_CLT_UNFENCED_MS	5000
/*
 * Most and fewest entries in a send's list: data and the headers. Data of more segments
 * go through a memory region. The maximum is enough for 64 KiB of single pages.
 */
#define RTRS_CLT_MAX_SGE	17
#define RTRS_CLT_MIN_SGE	2
/* The client invalidates the keys of reads of up to this many bytes, not the server. */
#define RTRS_CLT_LOCAL_INV	SZ_16K
/* Most data of a request, whatever the server offers. */
#define RTRS_CLT_MAX_IO		SZ_4M
/* Most requests in flight on a path, likewise; each takes memory. */
#define RTRS_CLT_MAX_SLOTS	4096
/* Small data, which are copied, with a server of chunks. */
#define RTRS_CLT_COPY_SIZE	SZ_4K
/* Larger writes into a slot are sent from where they lie: longer than that takes is a copy. */
#define RTRS_CLT_PUSH_COPY	SZ_16K
/* Most memory for small data of a path, with RTRS_FEATURE_SLOTS. */
#define RTRS_CLT_MAX_BUFS	SZ_64M
/* Memory regions that a path begins with. */
#define RTRS_CLT_MIN_MRS	8
/* RDMA READs that the server may have on its way on a connection. */
#define RTRS_CLT_MAX_FETCH	16

/**
 * enum rtrs_clt_state - state of a path; see rtrs_clt_next_state()
 * @RTRS_CLT_IDLE: holds nothing but its addresses, and is not to be connected
 * @RTRS_CLT_WAITING: the same, until its connect_work is due
 * @RTRS_CLT_CONNECTING: its connect_work is connecting it
 * @RTRS_CLT_CONNECTED: takes requests
 * @RTRS_CLT_RESETTING: its end_work takes it down; RTRS_CLT_WAITING follows
 * @RTRS_CLT_CLOSING: its end_work takes it down; RTRS_CLT_IDLE follows
 * @RTRS_CLT_NR_STATES: how many there are
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
 * enum rtrs_clt_event - what moves a path from one state to another
 * @RTRS_CLT_EV_WANT: it is to be connected
 * @RTRS_CLT_EV_DUE: its delay is over
 * @RTRS_CLT_EV_UP: it is connected
 * @RTRS_CLT_EV_FAIL: it has failed, or could not be connected
 * @RTRS_CLT_EV_STOP: it is to be disconnected
 * @RTRS_CLT_EV_ENDED: it has been taken down
 * @RTRS_CLT_NR_EVENTS: how many there are
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
 * enum rtrs_clt_policy - which path a request takes
 * @RTRS_CLT_RR: round-robin: each in turn
 * @RTRS_CLT_MI: min-inflight: the one with the fewest requests in flight; of those that
 *	have as few, one that is much slower than another takes none
 * @RTRS_CLT_ML: min-latency: the one that answered its last heartbeat fastest
 * @RTRS_CLT_NR_POLICIES: how many there are
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
 * @established: the CM has established it; before that, the CM reports its failure
 * @done: counts requests sent over it that are complete; written by its handlers
 *
 * None of that is what submitters write.
 */
struct rtrs_clt_con {
	struct rtrs_con con;
	bool established;
	u32 done;
};

/**
 * struct rtrs_clt_mr - a memory region of a path; see mr.c
 * @entry: in rtrs_clt_mrs.free, while no request has it
 * @mr: the region
 * @slot: slot of the request that has it, NULL if none has
 * @inv_cqe: completion entry of @inv_wr
 * @reg_wr: work request that registers @mr
 * @inv_wr: work request that invalidates @mr
 *
 * Owned by the request, as its slot is, from rtrs_clt_mr_get() to rtrs_clt_mr_put().
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
 * @free: those that no request has
 * @nr: number of all; changed only while the path is set up or taken down, and by @grow
 * @by_key: all, by the constant part of their key
 * @grow: adds more
 * @delay: jiffies that @grow waits when it is queued
 */
struct rtrs_clt_mrs {
	spinlock_t lock; /* see above */
	struct list_head free;
	u32 nr;
	struct xarray by_key;
	struct delayed_work grow;
	unsigned long delay;
};

/**
 * struct rtrs_clt_slot - what a path holds for one slot
 * @io: the request in the slot, NULL when there is none
 * @con: connection on which the request is sent, and must be answered
 * @queued: @con from when the request is queued until it is answered, else NULL; see
 *	rtrs_con_queue(). Handlers of other connections may read it
 * @sending: the device may still read the request's data
 * @err: errno of the server's answer, while @sending or @mr keep the request
 * @cpu: CPU on which it was submitted, for the statistics
 * @nents: entries of the request's scatter list that are mapped for DMA
 * @start: when it was sent, ns
 * @rkey: remote key of the server's chunk
 * @buf_rkey: key of @buf, which the server has as long as the path
 * @raddr: address of the server's chunk, for work requests
 * @mr: memory region that is registered for the request, as long as its key is valid, else
 *	NULL
 * @send_cqe: completion entry of @wr, for data that are sent from where they lie
 * @wr: work request that writes the request into the server's chunk
 * @imm: follows @wr, with RTRS_FEATURE_NO_IMM
 * @buf: room for small data, then for user message and RTRS header; a piece of
 *	&rtrs_clt_path.bufs
 * @buf_dma: DMA address of @buf
 * @buf_iova: address of @buf for the server
 * @sge: data that are sent from where they lie, then what is sent of @buf
 *
 * Owned by the submitter until @queued is set, then by the handlers of @con, and by
 * rtrs_clt_path_end() once the path's queue pairs are drained. With one entry in @sge, as with
 * slots of a few KiB, it has 256 bytes on most machines.
 */
struct rtrs_clt_slot {
	struct rtrs_clt_io *io;
	struct rtrs_clt_con *con;
	struct rtrs_con *queued;
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

/**
 * struct rtrs_clt_stats - counters of a path on one CPU
 * @ops: requests that were queued: reads, writes
 * @bytes: bytes of data of these: read, written
 * @done: requests that are complete, or were taken back when the path ended
 * @migrated_to: requests submitted on other CPUs that were completed on this one
 * @migrated_from: requests submitted on this CPU that others completed; these write it, so it
 *	has a cache line of its own
 */
struct rtrs_clt_stats {
	u64 ops[2];
	u64 bytes[2];
	u64 done;
	u32 migrated_to;
	atomic_t migrated_from ____cacheline_aligned_in_smp;
};

/**
 * struct rtrs_clt_path_stats - statistics of a path
 * @cpu: counters of each CPU
 * @latency: of requests with data, from sending to completion; since the path was created
 * @base: sums of @cpu when they were last reset, under clt->lock
 * @failed_over: requests that were on it when it died; can be reset
 * @reclaimed: the same, since the path was created
 * @reconnects: tries that failed, the first ones included, and those that connected it again
 * @ever_up: it has been connected before
 */
struct rtrs_clt_path_stats {
	struct rtrs_clt_stats __percpu *cpu;
	struct rtrs_hist __percpu *latency;
	struct rtrs_clt_stats base;
	u64 failed_over;
	u64 reclaimed;
	u32 reconnects[2];
	bool ever_up;
};

/**
 * struct rtrs_clt_path_sm - the state machine of a path; see state.c and path.c
 * @lock: any context; guards what follows, up to @result
 * @state: changed by rtrs_clt_path_move_locked() only
 * @err: error with which it left RTRS_CLT_CONNECTING or RTRS_CLT_CONNECTED
 * @gone: it is being destroyed and can't be connected any more. Set before
 *	rtrs_clt_view.hide(), which takes clt->lock: it isn't shown again after that
 * @at_once: the next try to connect has no delay
 * @hurry: all paths were lost while this one was connected or taken down: the next try has no
 *	delay, but counts
 * @trying: @connect_work is busy with a try; @end_work is queued when that is over
 * @failures: tries that failed since the last successful one
 * @short_lives: times in a row that it was lost before it had been connected for
 *	rtrs_clt_reconnect.delay_max_ms
 * @up_since: when it was connected last, in jiffies
 * @begun: tries that have begun
 * @tries: tries that have ended
 * @result: result of the last try, 0 or a negative errno
 * @wait: for @nr_pending, @tries, rtrs_clt_path_fence.done, and any change of @state
 * @nr_pending: connections that have not finished the current step
 * @logged: the last error that was logged; it isn't logged again by further tries
 * @try_err: errno of a try that has failed, from then until the path is down, else 0; for
 *	the work items
 * @connect_work: connects the path
 * @end_work: takes it down. The two never run at the same time, except for the last
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
 * struct rtrs_clt_path_neg - negotiated each time a path connects
 * @id: identifies this connect of the path among all connects of the session's paths
 * @nr_connects: number of tries to connect, the current one included
 * @offered: features offered to the server, RTRS_FEATURE_*; with RTRS_FEATURE_NO_IMM, which
 *	must be granted, when the device is known
 * @features: the part of @offered that the server granted
 * @sess_id: the server's ID of the session, 0 without RTRS_FEATURE_FENCE
 * @srv_uuid: UUID of the server, null if it has none
 * @depth: slots that the server has, sets the layout of immediate values
 * @chunk_size: bytes of a chunk, or of a slot of the server
 * @slot_size: bytes of data in such a slot; 0 without RTRS_FEATURE_SLOTS
 * @copy_size: most bytes of data that go through a slot's buffer
 * @max_io_size: most bytes of data in a request
 * @max_sge: entries in a send's list
 * @max_segments: most entries of a request's scatter list
 * @nr_slots: slots that are used: at most @depth, rtrs_clt.queue_depth, RTRS_CLT_MAX_SLOTS,
 *	RTRS_CLT_MAX_BUFS, and what the device's queues have room for
 * @new_rkey: the server sends a new key with each answer
 * @own_inv: keys that the server has invalidated, as the device reports, are invalidated by us
 *	once more
 */
struct rtrs_clt_path_neg {
	u32 id;
	u16 nr_connects;
	u32 offered;
	u32 features;
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
 * @rsp: buffer for INFO_RSP
 * @dma: DMA address of @rsp
 * @len: bytes of INFO_RSP that were received
 * @nonce: with RTRS_FEATURE_PROOF: ours
 * @size: size of @rsp
 * @asked: INFO_REQ has been posted, so that INFO_RSP is expected
 * @recv_cqe: completion entry of the receive of INFO_RSP
 * @send_cqe: completion entry of the send of INFO_REQ
 */
struct rtrs_clt_path_info {
	void *rsp;
	dma_addr_t dma;
	u32 len;
	u8 nonce[RTRS_PROOF_NONCE];
	u32 size;
	bool asked;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
};

/**
 * struct rtrs_clt_fence - a dead path that is to be fenced, and its requests
 * @entry: in rtrs_clt_fences.list, under rtrs_clt_failover.lock
 * @id: rtrs_clt_path_neg.id of the path when it was connected
 * @sess_id: rtrs_clt_path_neg.sess_id of the path
 * @srv_uuid: rtrs_clt_path_neg.srv_uuid of the path
 * @granted: the server can fence the path; otherwise it counts as fenced at @until
 * @until: in jiffies
 * @seen: the round of rtrs_clt_fences.work that has seen it last
 * @ios: requests that were on the path; they wait until it is fenced
 *
 * Allocated with each connect of a path. When the path has died, the session has it until
 * the path is fenced: rtrs_clt_failover_path() to rtrs_clt_fenced().
 */
struct rtrs_clt_fence {
	struct list_head entry;
	u32 id;
	u32 sess_id;
	uuid_t srv_uuid;
	bool granted;
	unsigned long until;
	unsigned int seen;
	struct list_head ios;
};

/**
 * struct rtrs_clt_path_fence - a path's part in fencing
 * @own: for itself, from when it connects until it has died
 * @asked: ID of the path that the server was asked over this one to fence, 0 if none
 * @done: ID of the last path that the server has fenced
 */
struct rtrs_clt_path_fence {
	struct rtrs_clt_fence *own;
	u32 asked;
	u32 done;
};

/**
 * struct rtrs_clt_path_sysfs - a path's directory in sysfs
 * @kobj: the directory; its release frees the path
 * @added: @kobj has been added; under clt->lock
 * @hca_name: name of the RDMA device that the path used last
 * @hca_port: number of the port of that device
 */
struct rtrs_clt_path_sysfs {
	struct kobject kobj;
	bool added;
	char hca_name[IB_DEVICE_NAME_MAX];
	u32 hca_port;
};

/**
 * struct rtrs_clt_path - a path
 * @path: the part that client and server share
 * @clt: session that it belongs to, and that outlives it
 * @entry: in rtrs_clt.paths, under clt->lock
 * @leaving: it is being removed; under clt->lock
 * @spare: room for the others when it leaves rtrs_clt.path_set, as long as it is there
 * @was_live: it has taken requests since it was connected, and counts in rtrs_clt.nr_up
 * @answered: requests that it had answered by then
 * @addr: addresses of both ends; the source is set once routing has chosen it
 * @addr_str: @addr as text, unique in the session; under clt->lock
 * @uuid: identifies it to the server, whenever it connects
 * @sysfs: its directory in sysfs
 * @sm: its state machine
 * @neg: negotiated with the server
 * @may_create: with this connect, the server may create the session. Otherwise it must
 *	know the session, as the other paths are in it
 * @create_entry: in rtrs_clt_create.waiters
 * @info: exchange of INFO_REQ and INFO_RSP
 * @probe_cqe: completion entry of the full-size packet
 * @fence: fencing
 * @nr_cons: connections that are set up
 * @cons: connections, the service connection first; see rtrs_clt_nr_cons()
 * @bufs: a piece of memory for each of @slots
 * @slots: one for each request; published (release) when all are allocated
 * @mrs: its memory regions
 * @stats: statistics that sysfs shows
 */
struct rtrs_clt_path {
	struct rtrs_path path;
	struct rtrs_clt *clt;
	struct list_head entry;
	bool leaving;
	struct rtrs_clt_path_set *spare;
	bool was_live;
	u64 answered;
	struct rtrs_addr addr;
	char addr_str[RTRS_PATH_STR_LEN];
	uuid_t uuid;
	struct rtrs_clt_path_sysfs sysfs;
	struct rtrs_clt_path_sm sm;

	struct rtrs_clt_path_neg neg;
	bool may_create;
	struct list_head create_entry;
	struct rtrs_clt_path_info info;
	struct ib_cqe probe_cqe;
	struct rtrs_clt_path_fence fence;

	unsigned int nr_cons;
	struct rtrs_clt_con *cons;
	struct rtrs_region bufs;
	struct rtrs_clt_slot **slots;
	struct rtrs_clt_mrs mrs;
	struct rtrs_clt_path_stats stats;
};

/**
 * struct rtrs_clt_view - how paths are shown to users; set by sysfs.c
 * @ktype: of the path's kobject; its release frees the path
 * @show: shows a path, by the addresses that are known; from the path's work items.
 *	Returns 0, also if it is shown already, or a negative errno
 * @hide: hides a path that is gone; on return its files have no users. It isn't shown again
 */
struct rtrs_clt_view {
	const struct kobj_type *ktype;
	int (*show)(struct rtrs_clt_path *path);
	void (*hide)(struct rtrs_clt_path *path);
};

/**
 * struct rtrs_clt_path_set - the paths that take requests
 * @rcu: frees it after a grace period
 * @nr: number of entries in @path
 * @path: paths that take requests, in the order in which they were connected
 *
 * Never changed, only replaced.
 */
struct rtrs_clt_path_set {
	struct rcu_head rcu;
	unsigned int nr;
	struct rtrs_clt_path *path[];
};

/**
 * struct rtrs_clt_failover - requests that wait; see failover.c
 * @retry_ok: the upper layer's, see struct rtrs_clt_params
 * @prep_retry: the upper layer's, see struct rtrs_clt_params
 * @timeout: seconds that requests wait when there is no path; -1: no limit
 * @down_since: when rtrs_clt.nr_up became 0, in jiffies; under clt->lock. While requests
 *	wait, paths that have been connected since and answered none don't count
 * @answered: requests were answered since rtrs_clt.nr_up was 0, or none waited then; under
 *	clt->lock
 * @lock: guards what follows, and struct rtrs_clt_fences; any context
 * @parked: requests that wait for a path, or for the upper layer
 * @down: rtrs_clt.nr_up is 0
 * @expired: it has been 0 for @timeout: requests don't wait
 * @resume_work: sends parked requests
 * @work: sets @expired, and fails the requests that wait
 */
struct rtrs_clt_failover {
	int (*retry_ok)(struct rtrs_clt_io *io);
	int (*prep_retry)(struct rtrs_clt_io *io);
	int timeout;
	unsigned long down_since;
	bool answered;
	spinlock_t lock; /* see above */
	struct list_head parked;
	bool down;
	bool expired;
	struct delayed_work resume_work;
	struct delayed_work work;
};

/**
 * struct rtrs_clt_fences - the dead paths of a session that are to be fenced; see fence.c
 * @unfenced_ms: milliseconds that requests of a dead path wait if its server can't fence it
 * @list: of struct rtrs_clt_fence; under rtrs_clt_failover.lock
 * @work: asks the server to fence dead paths
 * @round: number of runs of @work; used by @work only
 */
struct rtrs_clt_fences {
	unsigned int unfenced_ms;
	struct list_head list;
	struct delayed_work work;
	unsigned int round;
};

/**
 * struct rtrs_clt_create - creation of the session on the server; see create.c
 * @lock: guards what follows; any context
 * @waiters: paths that wait for @owner
 * @owner: id of the path that may request creation, 0 if none does
 * @expires: when the next path may become @owner in any case, in jiffies
 */
struct rtrs_clt_create {
	spinlock_t lock; /* see above */
	struct list_head waiters;
	u32 owner;
	unsigned long expires;
};

/**
 * struct rtrs_clt_link - events for the upper layer; under clt->lock
 * @state: the last event of the session
 * @reported: the last event that was reported to the upper layer
 * @notifying: @event is running
 * @opened: the session is open, so that events are reported
 * @work: calls @event
 * @event: the upper layer's function, rtrs_clt_params.link_event
 * @srv_event: the upper layer's function, rtrs_clt_params.srv_event; called without locks
 * @priv: argument of @event and @srv_event
 */
struct rtrs_clt_link {
	enum rtrs_link_event state;
	enum rtrs_link_event reported;
	bool notifying;
	bool opened;
	struct work_struct work;
	void (*event)(void *priv, enum rtrs_link_event ev);
	void (*srv_event)(void *priv);
	void *priv;
};

/**
 * struct rtrs_clt_reconnect - when lost paths are tried again; attributes
 * @max_tries: failures in a row after which a path isn't tried again, see
 *	rtrs_clt_path_failures(); -1: no limit
 * @delay_ms: milliseconds before the first try, about; doubled with each failure
 * @delay_max_ms: upper limit of the doubled delay, in milliseconds
 */
struct rtrs_clt_reconnect {
	int max_tries;
	unsigned int delay_ms;
	unsigned int delay_max_ms;
};

/**
 * struct rtrs_clt - a session
 * @name: unique in its network namespace, and on the server
 * @label: what the log calls it, unique on this client
 * @net: network namespace of its paths, and of @dev
 * @uuid: identifies it to the server
 * @entry: in the list of all sessions, under rtrs_clt_lock
 * @dev: its directory in sysfs; the release frees the session
 * @paths_kobj: directory "paths" of @dev
 * @view: functions that show its paths in sysfs
 * @ratelimit: of messages that a peer can cause, see rtrs_clt_err()
 * @nr_queues: connections for I/O in each path
 * @nr_poll_queues: polled ones, behind those
 * @queue_depth: most slots that it wants, 0 if that is for the server to say
 * @key: secret that both ends prove that they know, or NULL
 * @proof_tfm: what proofs are made with, if there is a key
 * @proof_lock: held while it is used
 * @fencing: RTRS_FEATURE_FENCE is offered to the server
 * @port: the server's port, for paths that are added
 * @limits: negotiated by the first path; each further path has to reach them
 * @have_limits: @limits are set
 * @policy: how requests are spread over the paths
 * @hb: heartbeats of its paths
 * @reconnect: when lost paths are connected again
 * @rr_next: cursor of each CPU in @path_set
 * @path_set: paths that take requests, under RCU; NULL if there are none
 * @lock: guards what follows, up to @link
 * @paths: all paths, connected or not
 * @nr_paths: number of @paths
 * @closing: it is being closed, and takes no more paths
 * @wait: for @results, @nr_paths, and changes of @create
 * @results: tries of all paths that have ended, and paths that were removed
 * @nr_up: paths that take requests, or have not given all of them back yet
 * @sess_id: the server's ID of the session, see struct rtrs_cm_rep
 * @last_id: rtrs_clt_path_neg.id of the last connect of a path
 * @link: events for the upper layer
 * @failover: requests that wait
 * @fences: dead paths that are to be fenced
 * @create: creation on the server
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

/* For messages that a peer can cause: rate-limited for each session on its own. */
#define rtrs_clt_err(clt, fmt, ...)					\
do {									\
	if (__ratelimit(&(clt)->ratelimit))				\
		pr_err(fmt, ##__VA_ARGS__);				\
} while (0)

/* Connections of each path: for service, for I/O, polled ones for I/O. */
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
bool rtrs_clt_path_move_locked(struct rtrs_clt_path *path,
			       enum rtrs_clt_event ev, int err);
bool rtrs_clt_path_move(struct rtrs_clt_path *path, enum rtrs_clt_event ev,
			int err);
void rtrs_clt_path_error(struct rtrs_path *path, int err, const char *why);
void rtrs_clt_path_step_done(struct rtrs_clt_path *path);
int rtrs_clt_path_wait(struct rtrs_clt_path *path, unsigned int timeout_ms);

/* mr.c */
bool rtrs_clt_mr_get(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
void rtrs_clt_mr_put(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
struct rtrs_clt_mr *rtrs_clt_mr_find(struct rtrs_clt_path *path, u32 rkey);
int rtrs_clt_mrs_alloc(struct rtrs_clt_path *path, u32 nr);
void rtrs_clt_mrs_free(struct rtrs_clt_path *path);
void rtrs_clt_mrs_init(struct rtrs_clt_path *path);

/* io.c */
void rtrs_clt_slot_init(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot);
struct rtrs_clt_io *rtrs_clt_slot_reclaim(struct rtrs_clt_path *path,
					  struct rtrs_clt_slot *slot);
struct rtrs_clt_slot *rtrs_clt_find_key(struct rtrs_clt_con *con, u32 rkey);
#if IS_ENABLED(CONFIG_KUNIT)
struct rtrs_clt_slot *rtrs_clt_find_slot(struct rtrs_clt_con *con, u32 nr);
struct rtrs_clt_slot *rtrs_clt_find_answered(struct rtrs_clt_con *con, u32 rkey, u32 nr);
void rtrs_clt_copy_back(struct rtrs_clt_slot *slot);
u32 rtrs_clt_reg_access(const struct rtrs_clt_path *path, const struct rtrs_clt_io *io);
struct ib_send_wr *rtrs_clt_build(struct rtrs_clt_path *path, struct rtrs_clt_slot *slot,
				  const struct rtrs_clt_io *io);
#endif
int rtrs_clt_send_over(struct rtrs_clt_path *path, struct rtrs_clt_io *io,
		       bool last);
void rtrs_clt_answer(struct rtrs_clt_con *con, u32 slot, int err,
		     const u32 *rkey);
void rtrs_clt_invalidated(struct rtrs_clt_con *con, u32 rkey);
void rtrs_clt_answer_inv(struct rtrs_clt_con *con, u32 rkey, u32 nr, int err);

/* slot.c */
int rtrs_clt_slots_alloc(struct rtrs_clt_path *path);
void rtrs_clt_slots_reclaim(struct rtrs_clt_path *path, struct list_head *ios);
void rtrs_clt_slots_free(struct rtrs_clt_path *path);

/* mpath.c */
struct rtrs_clt_path *rtrs_clt_pick_path(struct rtrs_clt *clt,
					 const struct rtrs_clt_path_set *set,
					 unsigned int queue);
int rtrs_clt_path_set_add(struct rtrs_clt *clt, struct rtrs_clt_path *path);
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
void rtrs_clt_fail_expired(struct rtrs_clt *clt);
#endif
void rtrs_clt_arm_failover_timer(struct rtrs_clt *clt);
void rtrs_clt_first_path_up(struct rtrs_clt *clt);
void rtrs_clt_all_paths_lost(struct rtrs_clt *clt);
int rtrs_clt_wait_for_path(struct rtrs_clt *clt, struct rtrs_clt_io *io);

/* fence.c */
void rtrs_clt_fence_init(struct rtrs_clt *clt);
void rtrs_clt_fence_exit(struct rtrs_clt *clt);
void rtrs_clt_failover_path(struct rtrs_clt_path *path, struct list_head *ios);
void rtrs_clt_kick_fencing(struct rtrs_clt *clt);
bool rtrs_clt_unfenced(struct rtrs_clt *clt);
int rtrs_clt_fence_via(struct rtrs_clt_path *path);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_clt_can_fence(const struct rtrs_clt_path *path,
			const struct rtrs_clt_fence *fence);
#endif
bool rtrs_clt_fence_answer(struct rtrs_clt_path *path, u32 id);

/* recv.c */
bool rtrs_clt_read_rkey(const struct rtrs_msg_rkey_rsp *msg, u32 len, u32 slot,
			u32 *rkey);
bool rtrs_clt_read_answer(const struct rtrs_msg_answer *msg, u32 len, u32 *slot, int *err);
int rtrs_clt_recvs_start(struct rtrs_clt_con *con, u32 nr);

/* create.c */
void rtrs_clt_create_init(struct rtrs_clt *clt);
#if IS_ENABLED(CONFIG_KUNIT)
bool rtrs_clt_begin_create(struct rtrs_clt_path *path);
#endif
int rtrs_clt_wait_create(struct rtrs_clt_path *path);
void rtrs_clt_create_accepted(struct rtrs_clt_path *path);
void rtrs_clt_end_create(struct rtrs_clt_path *path);

/* conn.c */
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_clt_choose_form(struct rtrs_clt_path *path);
unsigned int rtrs_clt_answer_ms(const struct rtrs_clt_path *path);
#endif
int rtrs_clt_read_rep(struct rtrs_clt_path *path,
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
void rtrs_clt_cons_destroy_qps(struct rtrs_clt_path *path);
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
int rtrs_clt_proof_make(struct rtrs_clt_path *path, u8 *mac);
int rtrs_clt_proof_check(struct rtrs_clt_path *path, const u8 *mac);

/* info.c */
int rtrs_clt_info_alloc(struct rtrs_clt_path *path);
void rtrs_clt_fill_info_req(struct rtrs_info_req *req, const char *name);
int rtrs_clt_info_read(struct rtrs_clt_path *path);
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
int rtrs_clt_check_limits(struct rtrs_clt_path *path);
#endif
int rtrs_clt_link_add(struct rtrs_clt_path *path);
void rtrs_clt_link_del(struct rtrs_clt_path *path);
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
unsigned int rtrs_clt_backoff(unsigned int first, unsigned int max,
			      unsigned int failures);
#if IS_ENABLED(CONFIG_KUNIT)
void rtrs_clt_path_lived(struct rtrs_clt_path *path);
u32 rtrs_clt_path_failures(const struct rtrs_clt_path *path);
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
int rtrs_clt_sysfs_init(void);
void rtrs_clt_sysfs_exit(void);
void rtrs_clt_sysfs_init_sess(struct rtrs_clt *clt);
int rtrs_clt_sysfs_add(struct rtrs_clt *clt);
void rtrs_clt_sysfs_del(struct rtrs_clt *clt);
#if IS_ENABLED(CONFIG_KUNIT)
int rtrs_clt_parse_policy(const char *str);
#endif

#endif /* RTRS_CLT_H */
