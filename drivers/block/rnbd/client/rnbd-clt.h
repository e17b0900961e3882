/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD client.
 *
 * A session connects to a server through the transport. It has devices, and a tag set for
 * their requests. A device is a local disk, backed by a device that is open on the server.
 * The tag of a request is its slot in the transport. Messages to the server about devices
 * are requests as well, with a tag set and slots of their own.
 *
 * The files form a stack, listed from the bottom to the top. Each file calls only files
 * listed before it; calls in the other direction use pointers that the upper file sets.
 *
 *	state.c		states of sessions and devices; notification of users
 *	limits.c	limits of a disk, from the server's answer
 *	generation.c	generations, by which the server fences mappings
 *	cache.c		writes lost with the cache of a removed disk
 *	io.c		requests of disks; messages about devices
 *	tags.c		division of slots among tag sets
 *	session.c	sessions
 *	open.c		opening and closing of devices on the server
 *	reopen.c	reopening of devices
 *	resize.c	changes of size and limits on the server
 *	device.c	mapping and unmapping of devices
 *	map.c		parser of map_device and of the discovery device
 *	discover.c	list of the volumes of a server
 *	sysfs.c		attributes
 *	main.c		loading and unloading
 *
 * Locks, outer ones first. I/O normally takes only the last one. No lock is held while
 * sysfs files are removed, since their handlers take these locks.
 *
 *	rnbd_clt_sessions_lock (mutex)
 *	gendisk.open_mutex
 *	rnbd_clt_dev.open_lock (mutex)
 *	rnbd_clt_sess.ids_lock (mutex, if the server reuses ids at once)
 *	rnbd_clt_sess.info_lock (mutex)
 *	rnbd_clt_sess.lock (spinlock, interrupts off)
 *	RCU read side: from the check of a device's state to the end of the submission
 *
 * When a session loses its last path, its devices become closed. Their requests, old and
 * new ones, wait in the transport. When the session has a path again, each device is
 * reopened by a work item of its own, so that a device that hangs on the server delays no
 * other, unless ids_lock is used. Memory reclaim may wait for the reopening, which therefore
 * allocates memory without I/O (memalloc_noio_save()) and waits for no request of a disk.
 */
#ifndef RNBD_CLT_H
#define RNBD_CLT_H

#include <kunit/visibility.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <rdma/rtrs.h>

#include "../common/rnbd-proto.h"

/* Name of the directory with the driver's attributes of a disk */
#define RNBD_CLT_DEV_GROUP	"rnbd"

/* Requests with up to this many data segments need no allocation. */
#define RNBD_CLT_INLINE_SG	2

/*
 * Most polled, and most other, connections for I/O of a path; and the default number of the
 * latter, unless there are fewer CPUs
 */
#define RNBD_CLT_MAX_QUEUES	64
#define RNBD_CLT_DEF_QUEUES	8

/* Largest queue_depth that a user may set */
#define RNBD_CLT_MAX_DEPTH	4096

/* Features that the client offers to a server */
#define RNBD_CLT_FEATURES	RNBD_FEATURES

/**
 * struct rnbd_clt_tags - a tag set, for a part of a session's slots
 * @set: tag set
 * @q: queue of @set that belongs to no disk; NULL if @set is not allocated
 */
struct rnbd_clt_tags {
	struct blk_mq_tag_set set;
	struct request_queue *q;
};

/**
 * struct rnbd_clt_sess - a session with a server
 * @list: entry in the list of sessions, under rnbd_clt_sessions_lock
 * @users: number of mapped devices, and of callers that are mapping one; under
 *	rnbd_clt_sessions_lock. At 0, no device can join the session any more
 * @keepers: @users plus disks that are being removed; under rnbd_clt_sessions_lock. At 0, the
 *	session is closed
 * @opened: completed when the first user has opened the session, or failed to
 * @err: result of opening it, valid after @opened; written under rnbd_clt_sessions_lock
 * @port: server port with which the session was opened
 * @queue_depth: depth with which the session was opened; 0 if the user set none
 * @key: shared secret for authentication, or NULL
 * @clt: the transport's session, from before @opened until the session is closed
 * @limits: limits of the transport's session
 * @disks: tags for the requests of all disks; the tag is the slot
 * @admin: tags for messages about devices, if the session has more than one slot
 * @admin_q: queue for those messages: of @admin, or else of @disks
 * @admin_slot: slot of tag 0 of @admin_q
 * @wq: reopens devices; with a rescuer, as reclaim may wait for that. One per session, since
 *	devices that hang on one server would delay the devices of others
 * @news_wq: queries sizes and limits; no I/O waits for it
 * @event_work: queues rnbd_clt_dev.follow of all devices
 * @expire_work: ends the wait for devices that are not reopened in time; queued under @lock
 * @info_lock: held during the exchange of versions with the server
 * @features: RNBD_FEATURE_* that the server granted; written under @info_lock
 * @ids_lock: held during OPEN and CLOSE, towards servers that reuse ids at once
 * @lock: protects the fields up to @devs, and fields of struct rnbd_clt_dev that name this lock
 * @generation: how often the session has lost its last path; also read without the lock.
 *	Device ids are valid in one generation
 * @up: the transport has reported a path
 * @introduced: versions have been exchanged in this generation
 * @devs: devices
 * @ratelimit: rate limit of log messages that the server can cause
 * @net: network namespace of the process that opened the session; referenced
 * @name: name of the session, unique in @net
 * @label: name for log messages, unique on this client: @name and, unless @net is the initial
 *	namespace, the number of @net
 *
 * Created by the first rnbd_clt_sess_get(), closed by the last rnbd_clt_sess_put().
 */
struct rnbd_clt_sess {
	struct list_head list;
	unsigned int users;
	unsigned int keepers;
	struct completion opened;
	int err;

	u16 port;
	unsigned int queue_depth;
	struct key *key;
	struct rtrs_clt *clt;
	struct rtrs_clt_limits limits;
	struct rnbd_clt_tags disks;
	struct rnbd_clt_tags admin;
	struct request_queue *admin_q;
	unsigned int admin_slot;
	struct workqueue_struct *wq;
	struct workqueue_struct *news_wq;
	struct delayed_work event_work;
	struct delayed_work expire_work;

	/* see above */
	struct mutex info_lock;
	u32 features;

	/* see above */
	struct mutex ids_lock;

	/* see above */
	spinlock_t lock;
	unsigned int generation;
	bool up;
	bool introduced;
	struct list_head devs;

	struct ratelimit_state ratelimit;
	struct net *net;
	char name[RTRS_NAME_LEN];
	char label[RTRS_LABEL_LEN];
};

/**
 * enum rnbd_clt_dev_state - state of a device
 * @RNBD_DEV_INIT: the device has not been opened on the server yet
 * @RNBD_DEV_OPEN: I/O is sent to the server
 * @RNBD_DEV_CLOSED: the session was lost and the server may have closed the device, or the
 *	server's disk was removed. I/O waits until the device is reopened
 * @RNBD_DEV_GONE: the server has refused to reopen the device, or has not done it in time. I/O
 *	fails; reopening is retried
 * @RNBD_DEV_REVOKED: the server has closed the device within the session, has another disk by
 *	that name, or has let a newer mapping write. I/O fails until a user reopens the device
 * @RNBD_DEV_UNMAPPED: the device is being removed; final state
 */
enum rnbd_clt_dev_state {
	RNBD_DEV_INIT,
	RNBD_DEV_OPEN,
	RNBD_DEV_CLOSED,
	RNBD_DEV_GONE,
	RNBD_DEV_REVOKED,
	RNBD_DEV_UNMAPPED,
};

/**
 * struct rnbd_clt_dev - a mapped device
 * @list: entry in the session's list, under its lock
 * @sess: session. The device is one of its users until it is unmapped, and one of its keepers
 *	until the disk is removed
 * @disk: the disk; set before the device is visible to users
 * @link: name of the link to the disk in ctl/devices
 * @open_lock: held while the device is opened on the server
 * @reopen: reopens the device; queued under the session's lock unless @state is
 *	RNBD_DEV_UNMAPPED
 * @follow: queries size and limits; queued like @reopen
 * @open_err: result of the last attempt to reopen the device, under @open_lock
 * @limits: the server's answer from which the limits of @disk follow, under @open_lock
 * @limits_work: applies @limits to @disk; queued like @reopen
 * @read_only: the server's disk is read-only; only for @limits_work
 * @id_type: type of @id, RNBD_ID_*; constant once @disk is set, as are the next two
 * @id_len: length of @id in bytes
 * @id: unique id of the server's disk when the device was mapped. The device is not reopened if
 *	the server reports another id
 * @uuid: UUID of the volume when the device was last opened, 0 if there is none; written under
 *	the session's lock, read without a lock: a reader may see parts of two UUIDs, and reads
 *	again when the change is notified
 * @nsectors: last size that the server reported; written under @open_lock, read without a
 *	lock, as @open_lock may be held for as long as the server does not answer
 * @state: written by rnbd_clt_dev_set_state(), read without a lock
 * @mapped: the disk has been added; under the session's lock. The device may be unmapped, and
 *	changes of @state are notified, from then on
 * @flips: number of changes to or from RNBD_DEV_OPEN, under the session's lock
 * @flips_told: number of @flips for which a uevent was sent, under the session's lock
 * @uevent_work: wakes up users who poll the attribute "state", and sends uevents. Not on a
 *	workqueue of the session, whose work items may wait for the server
 * @opened: the device is open on the server as @device_id; under the session's lock
 * @device_id: the server's id of the device; written only while @state prevents I/O
 * @write_flags: RNBD_F_* to set in all writes; written under @open_lock, read without a lock
 * @lost_at: when the client last learned that the server's disk was removed, in jiffies; under
 *	the session's lock
 * @reopen_at: when @reopen was last queued other than for a retry, in jiffies; under the
 *	session's lock
 * @removals: number of times that the client learned that the server's disk was removed; written
 *	under the session's lock
 * @removals_seen: @removals at the last rnbd_clt_check_cache(); under @open_lock
 * @cache_lost: bit 0: acknowledged writes were lost with the write cache, and no flush that was
 *	submitted later has failed yet
 * @lost_removal: value of @removals after the last loss of such writes, 0 if there was none;
 *	flushes that were submitted before it fail
 * @cache_lost_at: when that loss was detected, or the device was opened again, in seconds since
 *	boot; flushes fail for a while
 * @unflushed: whether any acknowledged writes are not covered by a flush yet, see cache.c
 * @del_work: removes the disk
 * @orphan_work: unmaps a claimed device whose network namespace has no processes any more
 * @index: number in the disk's name
 * @access_mode: access mode of the mapping
 * @generation: generation of the mapping, as the server reported it; 0 if the mapping is new;
 *	under @open_lock
 * @gen_flags: known RNBD_GEN_* of the mapping; written under the session's lock
 * @path: name of the device on the server
 *
 * Freed with the disk, and so not before the last user has closed the disk.
 */
struct rnbd_clt_dev {
	struct list_head list;
	struct rnbd_clt_sess *sess;
	struct gendisk *disk;
	char *link;

	/* see above */
	struct mutex open_lock;
	struct work_struct follow;
	struct delayed_work reopen;
	int open_err;
	struct rnbd_msg_open_rsp limits;
	struct work_struct limits_work;
	bool read_only;
	u8 id_type;
	u8 id_len;
	u8 id[16];
	uuid_t uuid;
	u64 nsectors;

	enum rnbd_clt_dev_state state;
	bool mapped;
	unsigned int flips;
	unsigned int flips_told;
	struct work_struct uevent_work;

	bool opened;
	u32 device_id;
	u32 write_flags;
	unsigned long lost_at;
	unsigned long reopen_at;
	unsigned int removals;
	unsigned int removals_seen;
	unsigned long cache_lost;
	unsigned int lost_removal;
	u32 cache_lost_at;
	unsigned long unflushed;

	struct work_struct del_work;
	struct work_struct orphan_work;
	int index;
	enum rnbd_access_mode access_mode;
	u64 generation;
	u8 gen_flags;
	char path[RNBD_NAME_LEN];
};

/**
 * struct rnbd_clt_pdu - the driver's part of a request
 * @io: the transport's request
 * @err: result of the request, from rtrs_clt_io.done or a failed submission
 * @admin: type of a message about a device; for the timeout handler, which may run after the
 *	message was freed
 * @generation: generation of the session in which that message is valid
 * @removals: &rnbd_clt_dev.removals when the request was sent or, for a flush, submitted
 * @lost_at: when the server's disk was first removed during the request, in jiffies; valid with
 *	RQF_DONTPREP
 * @msg: message of an I/O request; messages about devices are the caller's
 * @sgt: the data; allocated while @io has entries, see rnbd_clt_map_data()
 * @sgl: first entries of @sgt
 */
struct rnbd_clt_pdu {
	struct rtrs_clt_io io;
	int err;
	u16 admin;
	unsigned int generation;
	unsigned int removals;
	unsigned long lost_at;
	struct rnbd_msg_io msg;
	struct sg_table sgt;
	struct scatterlist sgl[RNBD_CLT_INLINE_SG];
};

/**
 * struct rnbd_clt_setting - a setting of a session, see rtrs_clt_set()
 * @name: name of the setting
 * @val: value as written
 */
struct rnbd_clt_setting {
	const char *name;
	const char *val;
};

/**
 * struct rnbd_clt_map_opts - parsed line that was written to map_device or to /dev/rnbd-discover
 * @net: network namespace of the process that wrote the line
 * @discover: the line was written to /dev/rnbd-discover
 * @sessname: name of the session
 * @label: &rnbd_clt_sess.label of the session
 * @dev_path: name of the device on the server; NULL with @discover
 * @access_mode: access mode of the mapping
 * @nr_queues: connections for I/O of each path, 0 if not specified
 * @nr_poll_queues: polled connections for I/O of each path, 0 if not specified
 * @poll_given: @nr_poll_queues was specified
 * @queue_depth: most requests in flight of the session, 0 if not specified
 * @key: description of the session's key, NULL if not specified
 * @port: port of the server, for all paths
 * @port_given: @port was specified
 * @nr_settings: number of @settings
 * @settings: settings of the session, each at most once, with valid values
 * @nr_paths: number of @path_strs and @paths
 * @path_strs: paths as written
 * @paths: parsed paths
 *
 * The strings point into the buffer that was parsed.
 */
struct rnbd_clt_map_opts {
	struct net *net;
	bool discover;
	const char *sessname;
	char label[RTRS_LABEL_LEN];
	const char *dev_path;
	enum rnbd_access_mode access_mode;
	unsigned int nr_queues;
	unsigned int nr_poll_queues;
	bool poll_given;
	unsigned int queue_depth;
	const char *key;
	unsigned int port;
	bool port_given;
	unsigned int nr_settings;
	struct rnbd_clt_setting settings[RTRS_CLT_NR_SETTINGS];
	unsigned int nr_paths;
	const char *path_strs[RTRS_MAX_PATHS];
	struct rtrs_addr paths[RTRS_MAX_PATHS];
};

/* Log why a device can't be opened; retries with the same errno are not logged again. */
#define rnbd_clt_dev_err(dev, err, fmt, ...)				\
do {									\
	const struct rnbd_clt_dev *__dev = (dev);			\
									\
	if (__dev->open_err != (err) &&					\
	    __ratelimit(&__dev->sess->ratelimit))			\
		pr_err("%s: %s: " fmt, __dev->sess->label, __dev->path,	\
		       ##__VA_ARGS__);					\
} while (0)

extern const char * const rnbd_clt_access_names[RNBD_ACCESS_MODES];

/* Directories in sysfs, from loading to unloading */
extern struct device *rnbd_clt_ctl;
extern struct kobject *rnbd_clt_devices;

/* state.c */
void rnbd_clt_uevent_work(struct work_struct *work);
void rnbd_clt_dev_set_state(struct rnbd_clt_dev *dev, enum rnbd_clt_dev_state state);
void rnbd_clt_dev_wake(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_set_gone(struct rnbd_clt_dev *dev, enum rnbd_clt_dev_state state);
int rnbd_clt_dev_set_claimed(struct rnbd_clt_dev *dev, bool force);
void rnbd_clt_dev_set_mapped(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_revoke(struct rnbd_clt_dev *dev, u32 device_id);
void rnbd_clt_dev_lost(struct rnbd_clt_dev *dev, u32 device_id);
bool rnbd_clt_dev_wants_reopen(const struct rnbd_clt_dev *dev);
void rnbd_clt_sess_down(struct rnbd_clt_sess *sess);
void rnbd_clt_sess_up(struct rnbd_clt_sess *sess);
void rnbd_clt_expire_work(struct work_struct *work);
void rnbd_clt_event_work(struct work_struct *work);
void rnbd_clt_srv_event(void *priv);

/* limits.c */
int rnbd_clt_check_rsp(const struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp, u32 features);
void rnbd_clt_fill_limits(const struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp,
			  struct queue_limits *lim);
u32 rnbd_clt_new_write_flags(const struct rnbd_msg_open_rsp *old,
			     const struct rnbd_msg_open_rsp *new);
bool rnbd_clt_nsectors_ok(u64 nsectors);

/* generation.c */
bool rnbd_clt_fenced(const struct rnbd_clt_dev *dev, const struct request *rq);
void rnbd_clt_note_write(struct rnbd_clt_dev *dev, const struct request *rq, int err);
void rnbd_clt_set_generation(struct rnbd_clt_dev *dev, u64 generation);
int rnbd_clt_check_generation(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp);

/* cache.c */
void rnbd_clt_note_cached(struct rnbd_clt_dev *dev, struct request *rq);
int rnbd_clt_begin_flush(struct rnbd_clt_dev *dev, struct request *rq);
void rnbd_clt_end_flush(struct rnbd_clt_dev *dev, const struct request *rq, int err);
void rnbd_clt_check_cache(struct rnbd_clt_dev *dev);
void rnbd_clt_restart_loss_time(struct rnbd_clt_dev *dev);

/* io.c */
extern const struct blk_mq_ops rnbd_clt_mq_ops;
int rnbd_clt_dev_errno(enum rnbd_clt_dev_state state, bool failfast);
int rnbd_clt_retry_ok(struct rtrs_clt_io *io);
int rnbd_clt_prep_retry(struct rtrs_clt_io *io);
blk_status_t rnbd_clt_status(int err);
int rnbd_clt_admin(struct rnbd_clt_sess *sess, unsigned int generation,
		   const void *msg, size_t msg_len, void *rsp, size_t rsp_len);

/* tags.c */
unsigned int rnbd_clt_admin_slots(unsigned int depth);
int rnbd_clt_alloc_tags(struct rnbd_clt_sess *sess);
void rnbd_clt_stop_queues(struct rnbd_clt_sess *sess);
void rnbd_clt_free_tags(struct rnbd_clt_sess *sess);

/* session.c */
struct rnbd_clt_sess *rnbd_clt_sess_get(const struct rnbd_clt_map_opts *opts);
void rnbd_clt_sess_leave(struct rnbd_clt_sess *sess);
void rnbd_clt_sess_put(struct rnbd_clt_sess *sess);
void rnbd_clt_fill_sess_info(struct rnbd_msg_sess_info *msg, u32 cookie);
u32 rnbd_clt_granted(const struct rnbd_msg_sess_info *msg, const struct rnbd_msg_sess_info *rsp);
int rnbd_clt_sess_set(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts);
int rnbd_clt_sess_introduce(struct rnbd_clt_sess *sess);
struct rnbd_clt_dev *rnbd_clt_claim_next(bool orphans, bool *others);

/* open.c */
void rnbd_clt_limits_work(struct work_struct *work);
void rnbd_clt_dev_queue_limits(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_set_limits(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp);
void rnbd_clt_dev_set_size(struct rnbd_clt_dev *dev, u64 nsectors);
int rnbd_clt_dev_open(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
		      unsigned int generation);
void rnbd_clt_dev_close(struct rnbd_clt_dev *dev);
int rnbd_clt_dev_ask(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp);

/* reopen.c */
bool rnbd_clt_refused(int err, bool may_wait);
void rnbd_clt_reopen_work(struct work_struct *work);
int rnbd_clt_dev_remap(struct rnbd_clt_dev *dev);

/* resize.c */
int rnbd_clt_dev_follow(struct rnbd_clt_dev *dev, bool always);
void rnbd_clt_follow_work(struct work_struct *work);

/* device.c */
int rnbd_clt_dev_map(const struct rnbd_clt_map_opts *opts, const struct attribute_group **groups);
int rnbd_clt_dev_claim(struct rnbd_clt_dev *dev, bool force);
void rnbd_clt_dev_unmap(struct rnbd_clt_dev *dev, bool force);
void rnbd_clt_stop_watch(void);
int rnbd_clt_init_devs(void);
void rnbd_clt_exit_devs(void);

/* map.c */
int rnbd_clt_parse(char *line, struct rnbd_clt_map_opts *opts);

/* Most volumes of a server that are listed */
#define RNBD_CLT_LIST_MAX	4096

/**
 * struct rnbd_clt_volume - a volume that a server has listed
 * @nsectors: capacity in sectors, 0 if unknown
 * @modes: bit mask of the access modes that the volume allows
 * @uuid: UUID of the volume, 0 if there is none
 * @name: name of the volume, printable ASCII without blanks
 */
struct rnbd_clt_volume {
	u64 nsectors;
	u8 modes;
	uuid_t uuid;
	char name[];
};

/**
 * struct rnbd_clt_list - the volumes of a server
 * @cursor: cursor for the next message; 0 before the first message, and when the list is complete
 * @nr: number of entries that the server has sent
 * @nr_volumes: number of @volumes
 * @volumes: array of RNBD_CLT_LIST_MAX pointers, sorted by name; the volumes are from kmalloc()
 */
struct rnbd_clt_list {
	u64 cursor;
	unsigned int nr;
	unsigned int nr_volumes;
	struct rnbd_clt_volume **volumes;
};

/* discover.c */
int rnbd_clt_start_discovery(void);
void rnbd_clt_stop_discovery(void);

/* sysfs.c */
int rnbd_clt_start_mapping(void);
void rnbd_clt_stop_mapping(void);

/* For unit tests only, from all files */
#if IS_ENABLED(CONFIG_KUNIT)
bool rnbd_clt_same_id(const struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp);
int rnbd_clt_fill_msg(struct rnbd_clt_dev *dev, struct request *rq);
int rnbd_clt_map_data(struct request *rq);
void rnbd_clt_unmap_data(struct request *rq);
void rnbd_clt_map_queues(struct blk_mq_tag_set *set);
int rnbd_clt_admin_err(int err);
void rnbd_clt_fill_open(struct rnbd_msg_open_gen *msg, const struct rnbd_clt_dev *dev);
void rnbd_clt_fill_close(struct rnbd_msg_close *msg, u32 device_id);
bool rnbd_clt_lock_ids(struct rnbd_clt_sess *sess);
void rnbd_clt_unlock_ids(struct rnbd_clt_sess *sess, bool locked);
int rnbd_clt_dev_set_open(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp,
			  unsigned int generation);
int rnbd_clt_get_unique_id(struct gendisk *disk, u8 id[16], enum blk_unique_id type);
int rnbd_clt_parse_list(struct rnbd_clt_list *list, const void *buf, size_t len);
size_t rnbd_clt_print_volume(const struct rnbd_clt_volume *volume, char *text, size_t room);
#endif

#endif /* RNBD_CLT_H */
