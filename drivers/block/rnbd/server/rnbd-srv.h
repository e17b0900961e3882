/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD server.
 *
 * Disks and files are not configured in advance. A session opens a device by the name of a volume,
 * or by a path relative to a directory. The result is a mapping: a disk or file, opened in the
 * client's access mode; a backend, which does I/O on it; and an id, which the session's I/O
 * messages contain. All mappings of the same disk or file belong to one device, which enforces the
 * access modes.
 *
 * I/O takes a reference to its mapping, and no lock. To close a mapping, one caller sets its
 * closing bit and kills the reference. When the last I/O has ended, a work item waits for users of
 * the attributes and closes the disk or file.
 *
 * Operations that may wait for a disk or a filesystem run on workqueues of the session. The number
 * of workers is limited for each session and each mapping. So devices that hang do not delay other
 * sessions, and a few of them do not delay the session's other devices.
 *
 * A session belongs to the hosts of the rules that it matches by its name, the address of its
 * client, and the key that the client has proved. All its paths match the same hosts:
 *
 * - Its first path determines the hosts. A path that matches others is refused (-EACCES), so no
 *   path adds to or takes from what the session may do. Which path is lost makes no difference.
 * - After a change of the rules, one of the paths determines the hosts again. Each change concerns
 *   one host: a path that matches this host is chosen or, without such a path, the oldest path.
 *   Paths that match other hosts end. Mappings, limits and the cgroup follow from the hosts.
 * - Without paths, a session keeps its hosts and mappings, which are checked after changes of the
 *   rules, too. When the client has noticed that it has no path, its next one determines the hosts
 *   as the first one did, and the mappings are checked.
 *
 * rnbd_srv_lock orders new paths, new mappings and changes of the rules. It is held from the change
 * until all sessions have been checked: what comes before the change is checked, what comes later
 * sees the new rules.
 *
 * rnbd_srv_lock protects devices and mappings. rnbd_srv_rules_lock is taken under it, and the
 * transport's lock under that. Attributes in sysfs do not take rnbd_srv_lock. The attributes of
 * a mapping are removed without it, as that waits for their users.
 *
 * The files form a stack, listed from the bottom to the top. Each file calls functions of files
 * listed before it only; calls in the other direction use pointers, such as &rnbd_srv_map.backend:
 *
 *	path.c		conversion of a device's name to a path; opening of files
 *	cgroup.c	accounting of I/O to cgroups
 *	rules.c		access rules and limits of hosts
 *	state.c		state that survives a restart
 *	queue.c		requests that may sleep
 *	writer.c	ownership: which mappings of a disk may write
 *	map.c		lookup and closing of mappings
 *	io.c		checks and completion of I/O; answers
 *	backend-*.c	I/O on disks and files
 *	sysfs.c		attributes of devices and mappings
 *	watch.c		watch of the devices' sizes and limits, and of overdue mappings
 *	access.c	what the rules mean for sessions: paths, mappings, limits, cgroups
 *	dev.c		devices, and their mappings: creation and closing
 *	open.c		OPEN
 *	list.c		list of the volumes that a client may open
 *	session.c	sessions; messages other than I/O
 *	listen.c	listening for clients, in a network namespace
 *	configfs.c	interface of the rules: volumes and hosts
 *	tenant.c	the same: tenants
 *	main.c		loading and unloading
 */
#ifndef RNBD_SRV_H
#define RNBD_SRV_H

#include <kunit/visibility.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/percpu-refcount.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/refcount.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/rtrs-hist.h>
#include <rdma/rtrs.h>

#include "../common/rnbd-proto.h"

struct cgroup_subsys_state;
struct rnbd_srv_host;
struct rnbd_srv_rules;

/*
 * Most workers for a session's OPENs, for the closing of its mappings, and for the I/O of one
 * mapping. Further work waits in queues.
 */
#define RNBD_SRV_SESS_OPENS	4
#define RNBD_SRV_SESS_CLOSES	16
#define RNBD_SRV_MAP_WORKERS	16

/* Requests with up to this many data segments need no allocation. */
#define RNBD_SRV_INLINE_VECS	2

/* Most mappings of a session; each has an open disk or file. */
#define RNBD_SRV_SESS_MAPS	1024

/* A client with one of these features sends OPEN for all its devices after an event. */
#define RNBD_SRV_EVENTS		(RNBD_FEATURE_RESIZE_EVENT | RNBD_FEATURE_DISK_STATE)

/*
 * Seconds after which the server closes a mapping whose disk was removed, if the client has not
 * closed it; and after SESS_INFO, if the client has not opened the mapping again.
 */
#define RNBD_SRV_GONE_TIME	30
#define RNBD_SRV_UNUSED_TIME	30

/* Log messages that a client can cause, rate-limited for each session */
#define rnbd_srv_log(pr, sess, fmt, ...)				\
do {									\
	struct rnbd_srv_sess *_sess = (sess);				\
									\
	if (__ratelimit(&_sess->log))					\
		pr("%s: " fmt, _sess->label, ##__VA_ARGS__);		\
} while (0)

#define rnbd_srv_err(sess, ...)	 rnbd_srv_log(pr_err, sess, __VA_ARGS__)
#define rnbd_srv_info(sess, ...) rnbd_srv_log(pr_info, sess, __VA_ARGS__)

/**
 * struct rnbd_srv_sess - a client's session
 * @list: entry in the list of sessions, under rnbd_srv_lock
 * @users: references of the transport's session and of mappings
 * @maps: mappings by id; changed under rnbd_srv_lock, read under RCU
 * @next_id: first candidate for the next id, under rnbd_srv_lock
 * @nr_maps: number of @maps, at most RNBD_SRV_SESS_MAPS; under rnbd_srv_lock
 * @opening: mappings whose disk or file is being opened, under rnbd_srv_lock
 * @rules: rules of the tenant to which the client has connected; the tenant outlives the session
 * @client: address and proved key of one of the session's paths, or of a former path. They
 *	determine the session's hosts. The key is referenced; no other member is valid. Protected by
 *	rnbd_srv_rules_lock
 * @addr: the address of @client; its family is 0 before the first path is up
 * @css: I/O controller of the cgroup to which I/O is charged, or NULL; changed under
 *	rnbd_srv_lock, read under RCU
 * @rtrs: the transport's session
 * @open_wq: handles OPEN, at most RNBD_SRV_SESS_OPENS at a time
 * @close_wq: closes mappings, at most RNBD_SRV_SESS_CLOSES at a time
 * @list_wq: handles LIST, one at a time
 * @disk_wq: runs I/O on disks that may sleep
 * @file_wq: runs I/O on files
 * @end_work: queued when @users becomes 0; destroys the workqueues, which their own
 *	work items can't do
 * @log: rate limit of log messages that the client can cause
 * @ver: major version of the protocol that both sides support
 * @features: RNBD_FEATURE_* that the client was granted
 * @event_due: RNBD_FEATURE_* of the events that are due, under rnbd_srv_lock
 * @starts: number of SESS_INFO messages received; read without a lock. After each of them, the
 *	client sends OPEN for its devices again
 * @label: name for sysfs and log messages; belongs to @rtrs, which outlives the struct
 * @name: name of the session
 */
struct rnbd_srv_sess {
	struct list_head list;
	refcount_t users;
	struct xarray maps;
	u32 next_id;
	unsigned int nr_maps;
	struct list_head opening;
	struct rnbd_srv_rules *rules;
	struct rtrs_srv_peer client;
	struct sockaddr_storage addr;
	struct cgroup_subsys_state __rcu *css;
	struct rtrs_srv_sess *rtrs;
	struct workqueue_struct *open_wq;
	struct workqueue_struct *close_wq;
	struct workqueue_struct *list_wq;
	struct workqueue_struct *disk_wq;
	struct workqueue_struct *file_wq;
	struct work_struct end_work;
	struct ratelimit_state log;
	u8 ver;
	u32 features;
	u32 event_due;
	u32 starts;
	const char *label;
	char name[];
};

/**
 * struct rnbd_srv_dev - an open disk or file
 * @list: entry in the list of devices, under rnbd_srv_lock
 * @maps: mappings, which keep the disk or file open; under rnbd_srv_lock
 * @nr_writers: number of mappings that may write, under rnbd_srv_lock
 * @nr_handover: number of mappings in access mode handover, under rnbd_srv_lock
 * @wait: times of reads and writes from their arrival until their submission to the disk or the
 *	filesystem
 * @disk: times of reads and writes from their submission until their completion
 * @kobj: ctl/devices/<name>; its release frees the struct
 * @sessions: subdirectory "sessions"
 *
 * Removed with its last mapping.
 */
struct rnbd_srv_dev {
	struct list_head list;
	struct list_head maps;
	unsigned int nr_writers;
	unsigned int nr_handover;
	struct rtrs_hist __percpu *wait;
	struct rtrs_hist __percpu *disk;
	struct kobject kobj;
	struct kobject *sessions;
};

/**
 * struct rnbd_srv_id - identity of a disk or file during its existence
 * @dev: number of the disk, or of the device that stat(2) reports for the file
 * @nr: sequence number of the disk, or the file's inode number
 * @generation: generation of the file's inode; 0 for a disk
 */
struct rnbd_srv_id {
	dev_t dev;
	u64 nr;
	u32 generation;
};

/**
 * struct rnbd_srv_age - age of a mapping that may write, see writer.c
 * @generation: generation; newer mappings have greater ones. 0 in OPEN: the mapping is new
 * @flags: RNBD_GEN_* that the client reported
 * @known: the mapping was new when it was opened here, so this server knows of all newer ones
 *
 * The age of an open mapping is protected by &rnbd_srv_writer.lock.
 */
struct rnbd_srv_age {
	u64 generation;
	u8 flags;
	bool known;
};

/* Most names of a disk under which its owner is saved */
#define RNBD_SRV_STATE_NAMES	4

/**
 * struct rnbd_srv_writer - which mappings of a disk or file may write
 * @list: entry in the list of all these structs, under rnbd_srv_lock
 * @id: the disk or file
 * @lock: protects the following fields, and &rnbd_srv_map.age; @users and @names change under
 *	rnbd_srv_lock as well
 * @users: number of mappings
 * @newest: greatest generation so far
 * @owner: generation of the newest mapping that has written; 0 if none has
 * @saved: last value of @owner that was saved; the owner's writes are parked until it is @owner
 * @granted: the owner's mapping has been allowed to write since the struct was created, or since
 *	the grace period was restarted
 * @settled: the grace period of mode handover has ended
 * @nr_writes: writes in progress of @owner, in mode handover
 * @nr_old: writes in progress of older mappings in mode handover; writes of @owner are parked until
 *	they have ended
 * @parked: writes that wait for @saved, @nr_old or @settled
 * @settle: ends the grace period
 * @save: saves @owner
 * @nr_names: number of @names
 * @names: names under which @owner is saved; names are never removed
 *
 * Kept after the last mapping is closed, as clients may reopen mappings.
 */
struct rnbd_srv_writer {
	struct list_head list;
	struct rnbd_srv_id id;

	/* see above */
	spinlock_t lock;
	unsigned int users;
	u64 newest;
	u64 owner;
	u64 saved;
	bool granted;
	bool settled;
	unsigned int nr_writes;
	unsigned int nr_old;
	struct list_head parked;
	struct delayed_work settle;
	struct work_struct save;
	unsigned int nr_names;
	char *names[RNBD_SRV_STATE_NAMES];
};

/**
 * struct rnbd_srv_worker - a worker of a mapping (queue.c)
 * @queue: queue of the mapping
 * @work: calls &rnbd_srv_req.run for one request after another, until the queue is empty
 */
struct rnbd_srv_worker {
	struct rnbd_srv_queue *queue;
	struct work_struct work;
};

/**
 * struct rnbd_srv_queue - requests of a mapping that may sleep (queue.c)
 * @wq: workqueue of the session on which @workers run
 * @lock: protects @waiting and @busy; taken in any context
 * @waiting: requests that no worker has started yet; empty while a worker is idle
 * @busy: bits of the workers that will check @waiting again
 * @workers: the workers
 */
struct rnbd_srv_queue {
	struct workqueue_struct *wq;
	spinlock_t lock; /* waiting, busy */
	struct list_head waiting;
	DECLARE_BITMAP(busy, RNBD_SRV_MAP_WORKERS);
	struct rnbd_srv_worker workers[RNBD_SRV_MAP_WORKERS];
};

/**
 * struct rnbd_srv_map - a mapping: a device opened by a session
 * @kobj: sessions/<session> of the device; its release frees the struct
 * @rcu: delays freeing until no I/O can look the mapping up
 * @list: entry in &rnbd_srv_sess.opening, later in &rnbd_srv_dev.maps
 * @waiting: further OPENs of @path while the mapping is being opened, under rnbd_srv_lock
 * @sess: session that opened the device; referenced until @closed
 * @dev: the device; valid while the mapping is in &rnbd_srv_dev.maps
 * @volume_path: path of the volume that @path names, NULL if @path is a path
 * @uuid: UUID of that volume, 0 if @path is a path
 * @exclusive: no other session may open the device
 * @backend: does I/O on the disk or file, which is open until @closed
 * @file: the open file, or NULL if it is a disk
 * @disk: the open disk, which may be claimed, or NULL
 * @bdev: the block device of @disk, or NULL
 * @block_size: logical block size in bytes
 * @told: size and limits that were last reported to the client, or announced by an event, under
 *	rnbd_srv_lock
 * @starts: &rnbd_srv_sess.starts at the last OPEN, under rnbd_srv_lock
 * @overdue: number of rounds of the watch since the client should have closed the mapping, or
 *	opened it again, under rnbd_srv_lock
 * @flushes: the client knows of the disk's write cache, and sends flushes. Otherwise, the server
 *	flushes after each write. Read without a lock
 * @can_punch: the filesystem of @file supports punching holes, as far as known
 * @id: device id in the client's messages
 * @mode: access mode of the mapping
 * @disk_id: identity of the disk or file
 * @age: age of the mapping; until @writer is set, as the client reported it
 * @writer: state of the disk or file; NULL in mode ro, and before the mapping is added to its
 *	device
 * @written: the mapping has written, and its writes bypass @writer; never in mode handover
 * @state_name: name under which the owner is saved; NULL once it belongs to @writer
 * @saved: owner that was saved under @state_name, 0 if none
 * @ref: references of I/O in progress
 * @queue: I/O that may sleep
 * @vecs: pool of arrays of BIO_MAX_VECS entries. Its reserve of one array guarantees progress
 *	without memory, independent of other mappings' disks
 * @closing: bit 0 is set by the caller that closes the mapping
 * @close_work: closes the mapping when @ref has dropped to 0
 * @close_op: request to complete when the mapping is closed, or NULL
 * @closed: completed when the mapping is closed
 * @path: name of the device, as sent by the client
 */
struct rnbd_srv_map {
	struct kobject kobj;
	struct rcu_head rcu;
	struct list_head list;
	struct list_head waiting;
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;

	char *volume_path;
	uuid_t uuid;
	bool exclusive;
	const struct rnbd_srv_backend *backend;
	struct file *file;
	struct file *disk;
	struct block_device *bdev;
	u32 block_size;
	bool can_punch;
	bool flushes;
	struct rnbd_msg_open_rsp told;
	u32 starts;
	u32 overdue;
	u32 id;
	enum rnbd_access_mode mode;
	struct rnbd_srv_id disk_id;
	struct rnbd_srv_age age;
	struct rnbd_srv_writer *writer;
	bool written;
	char *state_name;
	u64 saved;

	struct percpu_ref ref;
	struct rnbd_srv_queue queue;
	mempool_t vecs;
	unsigned long closing;
	struct work_struct close_work;
	struct rtrs_srv_op *close_op;
	struct completion closed;

	char path[RNBD_NAME_LEN];
};

/**
 * struct rnbd_srv_req - RNBD's part of a transport's op
 * @map: mapping, referenced by &rnbd_srv_map.ref
 * @sector: first sector, in units of 512 bytes
 * @len: length in bytes
 * @op: operation, RNBD_OP_*
 * @flags: RNBD_F_*, checked for unknown bits
 * @prio: I/O priority, valid or 0
 * @arrived: time of arrival from the transport, in ns
 * @submitted: time of submission to the disk or the filesystem, in ns; set by the backend
 * @generation: generation for which &rnbd_srv_writer counts the request, 0 if not counted
 * @parked: entry in &rnbd_srv_writer.parked, before the submission to the backend; for OPEN, entry
 *	in &rnbd_srv_map.waiting
 * @bio: used if the mapping is a disk
 * @iocb: used if the mapping is a file
 * @iocb_users: references to @iocb: of its submitter, and of the I/O
 * @iocb_err: result of the I/O, 0 or a negative errno
 * @vecs: data of @bio or @iocb, see rnbd_srv_get_vecs(); NULL without data, and before
 * @inline_vecs: array for @vecs of short requests
 * @work: handles OPEN or LIST
 * @starts: &rnbd_srv_sess.starts when OPEN arrived
 * @queued: entry in &rnbd_srv_queue.waiting, while @bio may still be in use
 * @run: function that a worker calls for the request, in process context
 *
 * There is one per slot, allocated when a path is connected, so that most I/O allocates nothing.
 */
struct rnbd_srv_req {
	struct rnbd_srv_map *map;
	sector_t sector;
	u32 len;
	u8 op;
	u32 flags;
	u16 prio;
	u64 arrived;
	u64 submitted;
	u64 generation;
	union {
		struct list_head parked;
		struct bio bio;
		struct {
			struct kiocb iocb;
			refcount_t iocb_users;
			int iocb_err;
		};
	};
	struct bio_vec *vecs;
	struct bio_vec inline_vecs[RNBD_SRV_INLINE_VECS];
	union {
		struct {
			struct work_struct work;
			u32 starts;
		};
		struct {
			struct list_head queued;
			void (*run)(struct rnbd_srv_req *req);
		};
	};
};

/**
 * struct rnbd_srv_backend - access to disks, or to files
 * @is_disk: requests that may sleep run on &rnbd_srv_sess.disk_wq rather than on file_wq
 * @open: opens the disk or file with this path, and sets block_size and disk_id. Returns 0,
 *	-ENOTBLK if it is of another kind or may not be exported, or another negative errno
 * @capacity: returns the size in sectors of 512 bytes, which may change at any time
 * @limits: fills in the other limits in the answer to OPEN
 * @gone: returns whether the disk was removed; NULL for files
 * @close: undoes @open; called when no request is in progress
 * @sync: writes everything to stable storage
 * @submit: starts a checked request, which ends with rnbd_srv_end(). Process context
 */
struct rnbd_srv_backend {
	bool is_disk;
	int (*open)(struct rnbd_srv_map *map, const char *path);
	void (*close)(struct rnbd_srv_map *map);
	int (*sync)(const struct rnbd_srv_map *map);
	sector_t (*capacity)(const struct rnbd_srv_map *map);
	void (*limits)(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp);
	bool (*gone)(const struct rnbd_srv_map *map);
	void (*submit)(struct rnbd_srv_req *req);
};

extern const struct rnbd_srv_backend rnbd_srv_bdev_backend;
extern const struct rnbd_srv_backend rnbd_srv_file_backend;

static inline bool rnbd_srv_has_data(const struct rnbd_srv_req *req)
{
	return req->op == RNBD_OP_READ || req->op == RNBD_OP_WRITE;
}

static inline bool rnbd_srv_has_cache(const struct rnbd_msg_open_rsp *rsp)
{
	return rsp->cache_policy & RNBD_CACHE_WRITEBACK;
}

extern const char * const rnbd_srv_access_names[RNBD_ACCESS_MODES];
extern char rnbd_srv_search_path[];

/* Directory of the devices in sysfs, from loading to unloading */
extern struct kobject *rnbd_srv_devices;

/* Ends sessions and checks devices. No work item on it waits for I/O. */
extern struct workqueue_struct *rnbd_srv_wq;

/* session.c */
void *rnbd_srv_sess_up(void *owner, struct rtrs_srv_sess *rtrs);
void rnbd_srv_sess_down(struct rtrs_srv_sess *rtrs, void *priv);
int rnbd_srv_sess_info(struct rtrs_srv_op *op);
int rnbd_srv_check_open(const struct rtrs_srv_op *op, u32 features);
void rnbd_srv_request(struct rtrs_srv_op *op);

/* list.c */
void rnbd_srv_queue_list(struct rtrs_srv_op *op);

/* tenant.c */
int rnbd_srv_add_configfs(void);
void rnbd_srv_del_configfs(void);

/* open.c */
int rnbd_srv_open(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
		  const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
		  struct rnbd_srv_req *req, struct rnbd_msg_open_rsp *rsp);

/* dev.c */
struct rnbd_srv_dev *rnbd_srv_dev_alloc(void);
int rnbd_srv_access(const struct rnbd_srv_dev *dev, enum rnbd_access_mode mode);
int rnbd_srv_shared(const struct rnbd_srv_dev *dev, const struct rnbd_srv_map *map);
void rnbd_srv_map_release_file(struct rnbd_srv_map *map);
struct rnbd_srv_map *rnbd_srv_map_alloc(struct rnbd_srv_sess *sess, const char *path,
					enum rnbd_access_mode mode);
int rnbd_srv_map_open(struct rnbd_srv_map *map);
int rnbd_srv_map_attach(struct rnbd_srv_map *map, struct rnbd_srv_dev **spare);

/* access.c */
bool rnbd_srv_same_client(const struct rnbd_srv_sess *a, const struct rnbd_srv_sess *b);
void rnbd_srv_begin_change(void);
void rnbd_srv_end_change(void);
void rnbd_srv_add_sess(struct rnbd_srv_sess *sess);
void rnbd_srv_del_sess(struct rnbd_srv_sess *sess);
void rnbd_srv_count_host(const struct rnbd_srv_host *host, u64 *used);
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer);

/* watch.c */
void rnbd_srv_start_watch(void);
void rnbd_srv_stop_watch(void);

/* map.c */
extern struct mutex rnbd_srv_lock;
extern struct list_head rnbd_srv_devs;
void rnbd_srv_sess_put(struct rnbd_srv_sess *sess);
struct rnbd_srv_map *rnbd_srv_map_get(struct rnbd_srv_sess *sess, u32 id);
bool rnbd_srv_close(struct rnbd_srv_map *map, struct rtrs_srv_op *op);
bool rnbd_srv_gone(const struct rnbd_srv_map *map);
void rnbd_srv_fill_disk(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp);
void rnbd_srv_fill_rsp(struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp);

/* rules.c */
int rnbd_srv_admit(void *owner, const char *sessname, const struct rtrs_srv_peer *peer);
struct key *rnbd_srv_key(void *owner, const char *sessname, const struct sockaddr_storage *addr,
			 unsigned int nr);
bool rnbd_srv_has_limits(const struct rnbd_srv_host *host);
int rnbd_srv_in_limits(struct rnbd_srv_host *host, const struct rnbd_srv_sess *sess,
		       const u64 *used);
int rnbd_srv_rules_apply(struct rnbd_srv_map *map);
int rnbd_srv_rules_refresh(struct rnbd_srv_map *map);
bool rnbd_srv_rules_hold(const struct rnbd_srv_map *map);

/* cgroup.c */
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path);
void rnbd_srv_css_bio(const struct rnbd_srv_map *map, struct bio *bio);
void rnbd_srv_css_begin(const struct rnbd_srv_map *map);
void rnbd_srv_css_set(struct rnbd_srv_sess *sess, struct cgroup_subsys_state *css);

/* path.c */
char *rnbd_srv_full_path(const struct rnbd_srv_sess *sess, const char *path);
u64 rnbd_srv_cached_sectors(const char *path);
bool rnbd_srv_fs_ok(struct rnbd_srv_sess *sess, const struct super_block *sb);
struct file *rnbd_srv_open_file(const struct rnbd_srv_map *map, const char *path);

/* io.c */
int rnbd_srv_parse(struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
void rnbd_srv_answer(const struct rtrs_srv_op *op, const void *rsp, size_t len);
int rnbd_srv_io(struct rtrs_srv_op *op);
bool rnbd_srv_get_vecs(struct rnbd_srv_req *req, const struct rtrs_srv_op *op, gfp_t gfp);
void rnbd_srv_put_vecs(struct rnbd_srv_req *req);
void rnbd_srv_end(struct rnbd_srv_req *req, int err);

/* writer.c */
int rnbd_srv_writer_join(struct rnbd_srv_map *map);
void rnbd_srv_writer_leave(struct rnbd_srv_map *map);
void rnbd_srv_writer_again(struct rnbd_srv_map *map, const struct rnbd_srv_age *age);
void rnbd_srv_writer_fill_rsp(struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp);
int rnbd_srv_writer_begin(struct rnbd_srv_req *req);
void rnbd_srv_writer_end(struct rnbd_srv_req *req);
void rnbd_srv_writer_close(struct rnbd_srv_map *map);
const char *rnbd_srv_writer_state(struct rnbd_srv_map *map);
void rnbd_srv_writer_exit(void);

/* queue.c */
void rnbd_srv_queue_init(struct rnbd_srv_queue *queue, struct workqueue_struct *wq);
void rnbd_srv_queue_exit(struct rnbd_srv_queue *queue);
void rnbd_srv_queue_add(struct rnbd_srv_req *req);

/* state.c */
extern struct workqueue_struct *rnbd_srv_state_wq;
char *rnbd_srv_state_name(const char *path);
int rnbd_srv_state_load(const char *name, u64 *generation);
void rnbd_srv_state_save(const char *name, u64 generation);

/* sysfs.c */
extern const struct kobj_type rnbd_srv_dev_ktype;
extern const struct kobj_type rnbd_srv_map_ktype;

/* For unit tests only, from all files */
#if IS_ENABLED(CONFIG_KUNIT)
blk_opf_t rnbd_srv_bdev_opf(const struct rnbd_srv_req *req);
void rnbd_srv_bdev_fill_bio(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
			    blk_opf_t nowait);
int rnbd_srv_file_errno(int err);
void rnbd_srv_file_iter(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
			struct iov_iter *iter);
struct rnbd_srv_age rnbd_srv_parse_age(const struct rtrs_srv_op *op, u32 features);
int rnbd_srv_check_list(const struct rtrs_srv_op *op, u32 features);
void rnbd_srv_map_answer(struct rnbd_srv_map *map, const struct rnbd_msg_open *msg,
			 struct rnbd_msg_open_rsp *rsp);
u32 rnbd_srv_changed(struct rnbd_srv_map *map);
bool rnbd_srv_overdue(struct rnbd_srv_map *map);
int rnbd_srv_check(const struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
void rnbd_srv_writer_init(struct rnbd_srv_writer *wr);
int rnbd_srv_writer_add(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
			struct rnbd_srv_age *age);
int rnbd_srv_writer_check(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
			  const struct rnbd_srv_age *age);
bool rnbd_srv_writer_done(struct rnbd_srv_writer *wr, u64 generation);
const char *rnbd_srv_writer_word(const struct rnbd_srv_writer *wr, const struct rnbd_srv_age *age);
#endif

#endif /* RNBD_SRV_H */
