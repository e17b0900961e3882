/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD server.
 *
 * Nothing is exported in advance. A session opens devices by name: that of a volume, or a path
 * relative to a directory. Each device that it has open is a mapping: a file, opened in the mode
 * that the client asked for, a backend that does I/O on the file, and an id that the session's
 * I/O messages carry. All mappings of the same disk or file belong to one device, which
 * enforces the access modes.
 *
 * I/O takes a reference to its mapping, and no lock. To close a mapping, one caller sets
 * its closing bit and kills the reference. When the last I/O has ended, a work item
 * waits for users of the attributes and closes the file.
 *
 * Whatever can wait for a disk or a filesystem runs on a workqueue of the session, which limits how
 * many workers it can occupy; a mapping's I/O can occupy some of these. So devices that hang don't
 * hold up other sessions, and few of them don't hold up the session's other devices.
 *
 * rnbd_srv_lock is for devices and mappings; the transport's lock, and the rules' under that, are
 * taken under it. Attributes of sysfs don't take it, and are not waited
 * for under it.
 *
 * Calls go down this list of files; io.c reaches the backends by their ops only:
 *
 *	main.c		loading and unloading
 *	configfs.c	the rules' interface
 *	listen.c	whether clients can connect, and in which network namespace
 *	session.c	sessions, and messages other than I/O
 *	dev.c		devices, and opening and closing their mappings
 *	sysfs.c		attributes of devices and mappings
 *	backend-*.c	I/O on disks and on files
 *	io.c		checking and ending I/O, and answers
 *	map.c		lookup and closing of mappings
 *	writer.c	which mappings of a disk may write
 *	queue.c		requests that may sleep
 *	state.c		what survives a restart
 *	rules.c		who may open what, and how much a host may have
 *	cgroup.c	who pays for I/O
 *	path.c		from a device's name to its file
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
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../../infiniband/ulp/rtrs/rtrs-hist.h"
#include "../../../infiniband/ulp/rtrs/rtrs.h"
#include "../common/rnbd-proto.h"

struct cgroup_subsys_state;
struct rnbd_srv_host;
struct rnbd_srv_rules;

/*
 * Most workers that a session's OPENs, the closing of its mappings, and the I/O of one
 * mapping can occupy. More work than that is queued.
 */
#define RNBD_SRV_SESS_OPENS	4
#define RNBD_SRV_SESS_CLOSES	16
#define RNBD_SRV_MAP_WORKERS	16

/* Entries of data in a request for which it needs no memory. */
#define RNBD_SRV_INLINE_VECS	2

/* How many mappings a session can have: each has a file. */
#define RNBD_SRV_SESS_MAPS	1024

/* Messages that a client can cause: rate-limited for each session. */
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
 * @list: in the list of sessions, under rnbd_srv_lock
 * @users: held by the transport's session and by each mapping
 * @maps: mappings by id; changed under rnbd_srv_lock, read under RCU
 * @next_id: first candidate for the next id, under rnbd_srv_lock
 * @nr_maps: number of @maps, at most RNBD_SRV_SESS_MAPS; under rnbd_srv_lock
 * @rules: of the tenant to which it has connected, which outlives it
 * @rtrs: session of the transport that it belongs to
 * @open_wq: handles OPEN, at most RNBD_SRV_SESS_OPENS at a time
 * @close_wq: closes mappings, at most RNBD_SRV_SESS_CLOSES at a time
 * @disk_wq: for I/O on disks that may sleep
 * @file_wq: for I/O on files
 * @end_work: queued when @users becomes 0; destroys the workqueues, which their own
 *	work items can't do
 * @log: rate limit of what the client can have logged
 * @ver: major version of the protocol that both sides support
 * @features: RNBD_FEATURE_* that the client was granted
 * @event_due: RNBD_FEATURE_* of events that the client has to be sent, under rnbd_srv_lock
 * @label: what sysfs and the log call it; the transport's, as long as this lives
 * @name: the session's name
 */
struct rnbd_srv_sess {
	struct list_head list;
	refcount_t users;
	struct xarray maps;
	u32 next_id;
	unsigned int nr_maps;
	struct rnbd_srv_rules *rules;
	struct rtrs_srv_sess *rtrs;
	struct workqueue_struct *open_wq;
	struct workqueue_struct *close_wq;
	struct workqueue_struct *disk_wq;
	struct workqueue_struct *file_wq;
	struct work_struct end_work;
	struct ratelimit_state log;
	u8 ver;
	u32 features;
	u32 event_due;
	const char *label;
	char name[];
};

/**
 * struct rnbd_srv_dev - a disk or file that is open
 * @list: entry in the list of devices, under rnbd_srv_lock
 * @maps: its mappings, under rnbd_srv_lock; their files tell which disk or file it is
 * @nr_writers: mappings that may write, under rnbd_srv_lock
 * @nr_handover: those of them in access mode handover, under rnbd_srv_lock
 * @wait: of reads and writes, from when the transport hands them over until they are handed
 *	to the disk or the filesystem
 * @disk: of the same, from then until they are done
 * @kobj: ctl/devices/<name>; its release frees the struct
 * @sessions: the directory "sessions" in there
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
 * struct rnbd_srv_id - identity of a disk or file, for as long as it exists
 * @dev: number of the disk, or of the device that stat(2) reports for the file
 * @nr: sequence number of the disk, or the file's inode number
 * @generation: of the file's inode, or 0
 */
struct rnbd_srv_id {
	dev_t dev;
	u64 nr;
	u32 generation;
};

/**
 * struct rnbd_srv_age - what orders mappings that may write, see writer.c
 * @generation: a newer mapping has a greater one. 0 in an OPEN: the mapping is new
 * @flags: RNBD_GEN_* that the client reported
 * @known: the mapping was new when it was opened here: no newer one is unknown here
 *
 * Of an open mapping, protected by &rnbd_srv_writer.lock.
 */
struct rnbd_srv_age {
	u64 generation;
	u8 flags;
	bool known;
};

/* Names of a disk under which its owner is saved */
#define RNBD_SRV_STATE_NAMES	4

/**
 * struct rnbd_srv_writer - which mappings of a disk or file may write
 * @list: entry in the list of all, under rnbd_srv_lock
 * @id: the disk or file
 * @lock: protects the following fields, and &rnbd_srv_map.age; @users and @names change under
 *	rnbd_srv_lock as well
 * @users: mappings
 * @newest: greatest generation so far
 * @owner: generation of the newest mapping that has written; 0 if none has
 * @saved: @owner as it was saved; writes of another owner are parked
 * @granted: the owner's mapping has written since this struct was created
 * @settled: the grace period of mode handover has ended
 * @nr_writes: writes in progress of @owner, in mode handover
 * @nr_old: writes in progress of older mappings in mode handover. Others are parked meanwhile
 * @parked: writes that wait for @saved, @nr_old or @settled
 * @settle: ends the grace period
 * @save: saves @owner
 * @nr_names: number of @names
 * @names: names under which @owner is saved; only added
 *
 * Remains when the last mapping is closed, as clients may reopen mappings.
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
 * @queue: where it finds requests
 * @work: calls &rnbd_srv_req.run for one after another, as long as there are any
 */
struct rnbd_srv_worker {
	struct rnbd_srv_queue *queue;
	struct work_struct work;
};

/**
 * struct rnbd_srv_queue - requests of a mapping that may sleep (queue.c)
 * @wq: workqueue of the session on which @workers run
 * @lock: guards @waiting and @busy; any context
 * @waiting: requests that no worker has taken yet; none while a worker is idle
 * @busy: bits of those workers that look for requests again
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
 * struct rnbd_srv_map - a mapping: a device as one session has it open
 * @kobj: sessions/<session> of the device; its release frees the struct
 * @rcu: delays that until no I/O can be looking it up
 * @list: entry in &rnbd_srv_dev.maps
 * @sess: session that has the device open; referenced until @closed
 * @dev: device that is open; kept by the mapping while it is in @list
 * @volume_path: path of the volume that its name stands for, NULL if its name is a path
 * @exclusive: no other session may have the device open
 * @file: the opened disk or file; valid until @closed
 * @backend: does I/O on @file
 * @bdev: the disk, or NULL if @file is a regular file
 * @claim: keeps others on this machine from using @bdev, or NULL
 * @block_size: logical block size in bytes
 * @css: I/O controller of the cgroup that pays for its I/O, or NULL; changed under
 *	rnbd_srv_lock, read under RCU
 * @told: size and limits that its client was told last, or was told to ask for, under
 *	rnbd_srv_lock
 * @flushes: the client knows of the disk's write cache, and flushes it. While it doesn't, writes
 *	are flushed here. Read without a lock
 * @can_punch: the file's filesystem can punch holes, and has not refused to
 * @id: device id in the client's messages
 * @mode: access mode that the client asked for
 * @disk_id: which disk or file it is
 * @age: age of the mapping, as the client reported it until @writer is set
 * @writer: whether it may write; NULL in mode ro, and until the mapping has a device
 * @written: it has written, and may go on without asking @writer; never in mode handover
 * @state_name: name under which the owner is saved, until @writer has it, or NULL
 * @saved: owner that was saved under @state_name, 0 if none
 * @ref: held by each I/O in progress
 * @queue: its I/O that may sleep
 * @vecs: arrays of BIO_MAX_VECS entries. The one that it keeps lets requests go on without
 *	memory, whatever other mappings' disks do
 * @closing: bit 0 is set by the caller that closes it
 * @close_work: closes it when @ref has dropped to 0
 * @close_op: request to complete when it is closed, or NULL
 * @closed: completed when it is closed
 * @path: the device's name, as the client gave it
 */
struct rnbd_srv_map {
	struct kobject kobj;
	struct rcu_head rcu;
	struct list_head list;
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;

	char *volume_path;
	bool exclusive;
	struct file *file;
	const struct rnbd_srv_backend *backend;
	struct block_device *bdev;
	struct bdev_claim *claim;
	u32 block_size;
	bool can_punch;
	bool flushes;
	struct cgroup_subsys_state __rcu *css;
	struct rnbd_msg_open_rsp told;
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
 * @flags: RNBD_F_*, no others
 * @prio: I/O priority, valid or 0
 * @arrived: when the transport handed it over, ns
 * @submitted: when it was handed to the disk or the filesystem, ns; set by the backend
 * @generation: generation with which it is counted in &rnbd_srv_writer, 0 if it isn't
 * @parked: entry in &rnbd_srv_writer.parked, before the backend gets it
 * @bio: used if the mapping is a disk
 * @iocb: used if the mapping is a file
 * @iocb_users: of @iocb: its submitter, and the I/O
 * @iocb_err: 0 or a negative errno, once the I/O is done
 * @vecs: data of @bio or @iocb, see rnbd_srv_get_vecs(); NULL without, and before
 * @inline_vecs: @vecs, if they are few
 * @work: for OPEN
 * @queued: entry in &rnbd_srv_queue.waiting. @bio may be in use meanwhile
 * @run: called for it then, in process context
 *
 * One per slot, allocated when a path comes up, so that most I/O allocates nothing.
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
		struct work_struct work;
		struct {
			struct list_head queued;
			void (*run)(struct rnbd_srv_req *req);
		};
	};
};

/**
 * struct rnbd_srv_backend - I/O on one kind of file
 * @is_disk: requests that may sleep are for &rnbd_srv_sess.disk_wq
 * @open: called on the newly opened file; sets block_size and returns 0, or refuses with
 *	a negative errno
 * @capacity: returns the size in sectors of 512 bytes; it may change at any time
 * @limits: fills in the other limits in the answer to OPEN
 * @gone: was the disk removed? NULL if that can't be
 * @close: undoes @open, also if that failed; NULL if there is nothing to undo
 * @submit: starts a request that has been checked; ends in rnbd_srv_end(). Process
 *	context
 *
 * The file is closed when no request is in progress.
 */
struct rnbd_srv_backend {
	bool is_disk;
	int (*open)(struct rnbd_srv_map *map);
	void (*close)(struct rnbd_srv_map *map);
	sector_t (*capacity)(const struct rnbd_srv_map *map);
	void (*limits)(const struct rnbd_srv_map *map,
		       struct rnbd_msg_open_rsp *rsp);
	bool (*gone)(const struct rnbd_srv_map *map);
	void (*submit)(struct rnbd_srv_req *req);
};

extern const struct rnbd_srv_backend rnbd_srv_bdev_backend;
extern const struct rnbd_srv_backend rnbd_srv_file_backend;

/* backend-bdev.c */
#if IS_ENABLED(CONFIG_KUNIT)
blk_opf_t rnbd_srv_bdev_opf(const struct rnbd_srv_req *req);
void rnbd_srv_bdev_fill_bio(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
			    blk_opf_t nowait);
#endif

/* backend-file.c */
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_srv_file_errno(int err);
void rnbd_srv_file_iter(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
			struct iov_iter *iter);
#endif

extern const char * const rnbd_srv_access_names[RNBD_ACCESS_MODES];
extern char rnbd_srv_search_path[];

/* Ends sessions. Nothing on it waits for I/O. */
extern struct workqueue_struct *rnbd_srv_wq;

/* listen.c */
int rnbd_srv_listen_first(void);
void rnbd_srv_unlisten_first(void);

/* session.c */
void *rnbd_srv_sess_up(void *owner, struct rtrs_srv_sess *rtrs);
void rnbd_srv_sess_down(struct rtrs_srv_sess *rtrs, void *priv);
int rnbd_srv_sess_info(struct rtrs_srv_op *op);
int rnbd_srv_check_open(const struct rtrs_srv_op *op, u32 features);
#if IS_ENABLED(CONFIG_KUNIT)
struct rnbd_srv_age rnbd_srv_parse_age(const struct rtrs_srv_op *op, u32 features);
#endif
void rnbd_srv_request(struct rtrs_srv_op *op);

/* configfs.c */
int rnbd_srv_add_configfs(void);
void rnbd_srv_del_configfs(void);

/* dev.c */
int rnbd_srv_access(const struct rnbd_srv_dev *dev, enum rnbd_access_mode mode);
int rnbd_srv_alone(const struct rnbd_srv_dev *dev, const struct rnbd_srv_map *map);
#if IS_ENABLED(CONFIG_KUNIT)
u32 rnbd_srv_changed(struct rnbd_srv_map *map);
#endif
void rnbd_srv_stop_watch(void);
void rnbd_srv_recheck(void);
void rnbd_srv_count_host(struct rnbd_srv_host *host, u64 *used);
void rnbd_srv_add_sess(struct rnbd_srv_sess *sess);
void rnbd_srv_del_sess(struct rnbd_srv_sess *sess);
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer);
int rnbd_srv_open(struct rnbd_srv_sess *sess, const struct rnbd_msg_open *msg,
		  const struct rnbd_srv_age *age, const struct rtrs_srv_peer *peer,
		  struct rnbd_msg_open_rsp *rsp);

/* map.c */
void rnbd_srv_sess_put(struct rnbd_srv_sess *sess);
struct rnbd_srv_map *rnbd_srv_map_get(struct rnbd_srv_sess *sess, u32 id);
bool rnbd_srv_close(struct rnbd_srv_map *map, struct rtrs_srv_op *op);
bool rnbd_srv_gone(const struct rnbd_srv_map *map);
void rnbd_srv_fill_disk(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp);
void rnbd_srv_fill_rsp(struct rnbd_srv_map *map,
		       struct rnbd_msg_open_rsp *rsp);

/* rules.c */
int rnbd_srv_admit(void *owner, const char *sessname, const struct rtrs_srv_peer *peer);
struct key *rnbd_srv_key(void *owner, const char *sessname, const struct sockaddr_storage *addr,
			 unsigned int nr);
bool rnbd_srv_begin_count(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer);
void rnbd_srv_begin_count_of(struct rnbd_srv_host *host);
void rnbd_srv_end_count_of(const struct rnbd_srv_host *host, u64 *used);
void rnbd_srv_rules_count(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer);
int rnbd_srv_in_limits(const struct rnbd_srv_sess *sess);
bool rnbd_srv_cgroup(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer,
		     struct cgroup_subsys_state **css);
int rnbd_srv_rules_apply(struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer);
void rnbd_srv_rules_refresh(struct rnbd_srv_map *map);
bool rnbd_srv_rules_hold(const struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer);

/* cgroup.c */
struct cgroup_subsys_state *rnbd_srv_css_find(const char *path);
void rnbd_srv_css_get(struct cgroup_subsys_state *css);
void rnbd_srv_css_put(struct cgroup_subsys_state *css);
void rnbd_srv_css_bio(const struct rnbd_srv_map *map, struct bio *bio);
void rnbd_srv_css_begin(const struct rnbd_srv_map *map);
void rnbd_srv_css_end(void);
void rnbd_srv_css_set(struct rnbd_srv_map *map, struct cgroup_subsys_state *css);

/* path.c */
char *rnbd_srv_full_path(const struct rnbd_srv_sess *sess, const char *path);
bool rnbd_srv_fs_ok(struct rnbd_srv_sess *sess, const struct super_block *sb);
bool rnbd_srv_files_ok(const struct rnbd_srv_map *map);
struct file *rnbd_srv_open_file(const struct rnbd_srv_map *map, const char *path);

/* io.c */
int rnbd_srv_parse(struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_srv_check(const struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
#endif
void rnbd_srv_answer(const struct rtrs_srv_op *op, const void *rsp, size_t len);
int rnbd_srv_io(struct rtrs_srv_op *op);
bool rnbd_srv_get_vecs(struct rnbd_srv_req *req, const struct rtrs_srv_op *op, gfp_t gfp);
void rnbd_srv_put_vecs(struct rnbd_srv_req *req);
void rnbd_srv_end(struct rnbd_srv_req *req, int err);

/* writer.c */
#if IS_ENABLED(CONFIG_KUNIT)
void rnbd_srv_writer_init(struct rnbd_srv_writer *wr);
int rnbd_srv_writer_add(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
			struct rnbd_srv_age *age);
int rnbd_srv_writer_check(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
			  const struct rnbd_srv_age *age);
bool rnbd_srv_writer_done(struct rnbd_srv_writer *wr, u64 generation);
const char *rnbd_srv_writer_word(const struct rnbd_srv_writer *wr,
				 const struct rnbd_srv_age *age);
#endif
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
extern struct kobject *rnbd_srv_devices;
int rnbd_srv_add_ctl(void);
void rnbd_srv_del_ctl(void);

#endif /* RNBD_SRV_H */
