/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD client.
 *
 * A session is a connection to a server, by the transport, with devices and a tag set
 * for their requests. A device is a disk here and a device opened on the server. The
 * tag of a request is its slot in the transport. Messages to the server about devices
 * are requests as well, with a tag set and slots of their own.
 *
 * The files are a stack, here from the bottom to the top. Each calls only those before
 * it in this list; nothing calls back but by pointers that are set from above.
 *
 *	ctl.c		the directory in sysfs, and links to disks
 *	state.c		states of a session and its devices; events to users
 *	limits.c	limits of a disk, from what the server says
 *	generation.c	what the server has to know to fence a mapping
 *	io.c		requests, of disks and about them
 *	tags.c		how slots are divided
 *	session.c	sessions, by name
 *	open.c		devices are opened on the server, and closed
 *	reopen.c	and opened again
 *	resize.c	disks get their devices' sizes and limits
 *	device.c	life of a device: map, unmap
 *	map.c		what is written to map_device
 *	sysfs.c		attributes
 *	main.c		the module
 *
 * Locks, outer ones first; none but the last is held in the I/O path, and none of
 * them while sysfs files are removed, since those who use the files take them:
 *
 *	rnbd_clt_sessions_lock (mutex)
 *	gendisk.open_mutex
 *	rnbd_clt_dev.open_lock (mutex)
 *	rnbd_clt_sess.info_lock (mutex)
 *	rnbd_clt_sess.lock (spinlock, interrupts off)
 *	RCU: from the look at a device's state to the end of the submission
 *
 * When a session has lost its last path, its devices are closed, and what was sent to
 * them, or comes, waits in the transport. When there is a path again, each device is
 * opened again by a work item of its own, so that one that hangs on the server delays
 * no other. Memory reclaim may wait for just that, so all of it allocates without I/O
 * (memalloc_noio_save()), and waits for no request of a disk.
 */
#ifndef RNBD_CLT_H
#define RNBD_CLT_H

#include <kunit/visibility.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "../../../infiniband/ulp/rtrs/rtrs.h"
#include "../common/rnbd-proto.h"

/* Directory of a disk's attributes, beside the block layer's. */
#define RNBD_CLT_DEV_GROUP	"rnbd"

/* Entries of data in a request for which it needs no memory. */
#define RNBD_CLT_INLINE_SG	2

/*
 * Most connections for I/O of a path, of either kind, and what it has by default, if there are
 * that many CPUs.
 */
#define RNBD_CLT_MAX_QUEUES	64
#define RNBD_CLT_DEF_QUEUES	8

/* Most requests in flight of a session that can be asked for. */
#define RNBD_CLT_MAX_DEPTH	4096

/* What we offer to a server. */
#define RNBD_CLT_FEATURES	RNBD_FEATURES

/**
 * struct rnbd_clt_tags - some of a session's slots
 * @set: tag set
 * @q: a queue of it that belongs to no disk; NULL if there is no such set
 */
struct rnbd_clt_tags {
	struct blk_mq_tag_set set;
	struct request_queue *q;
};

/**
 * struct rnbd_clt_sess - a session with a server
 * @list: in the list of sessions, under rnbd_clt_sessions_lock
 * @kref: keeps the memory
 * @users: mapped devices, and callers that are mapping one; under
 *	rnbd_clt_sessions_lock. Once it is 0, no device joins the session any more
 * @keepers: @users, and disks that are being removed; under the same lock. When it is 0,
 *	the session is closed
 * @opened: done when the first user has opened the session, or failed to
 * @err: why it failed, valid after @opened; written under rnbd_clt_sessions_lock
 * @gone: done when the session has been closed and its name may be used again
 * @port: the server's port that the session was opened with
 * @queue_depth: requests in flight that were asked for then, 0 if none were
 * @key: secret that both ends prove that they know, or NULL
 * @clt: the transport's session, from before @opened until it is closed
 * @limits: what the transport allows
 * @disks: tags for the requests of all disks; a tag is the slot
 * @admin: tags for messages about devices, if there are slots enough
 * @admin_q: queue for those messages, of @admin if there is that, or of @disks
 * @admin_slot: the slot of tag 0 on @admin_q
 * @wq: opens devices again, also to free memory. Each session has its own, since
 *	devices that hang on one server would delay those of others
 * @news_wq: asks the server for sizes, and sends uevents; no I/O waits for it
 * @event_work: queues rnbd_clt_dev.follow of all devices
 * @info_lock: held while we introduce ourselves to the server
 * @features: what it granted then, RNBD_FEATURE_*; written under @info_lock
 * @lock: guards what follows, and the fields of the devices named there
 * @generation: how often the session has lost its last path; read without the lock
 *	as well. Ids of devices hold for one generation
 * @up: it has a path, as far as the transport has reported
 * @introduced: versions have been exchanged in this generation
 * @devs: devices
 * @ratelimit: of messages that the server can cause
 * @net: network namespace of who opened it, with a reference
 * @name: its name, unique in there
 * @label: what the log calls it, unique here: its name, and the number of @net if that isn't the
 *	initial one
 *
 * Made by the first rnbd_clt_sess_get(), closed by the last rnbd_clt_sess_put().
 */
struct rnbd_clt_sess {
	struct list_head list;
	struct kref kref;
	unsigned int users;
	unsigned int keepers;
	struct completion opened;
	int err;
	struct completion gone;

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

	/* see above */
	struct mutex info_lock;
	u32 features;

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
 * @RNBD_DEV_INIT: not opened on the server for the first time yet
 * @RNBD_DEV_OPEN: I/O goes to the server
 * @RNBD_DEV_CLOSED: the session was lost, and with it what the server knew of
 *	the device; or the server's disk was removed. I/O waits until it has been opened again
 * @RNBD_DEV_GONE: the server refuses to open it. I/O fails, and it is tried again
 * @RNBD_DEV_REVOKED: the server has closed it, though the session is the same, or has
 *	another disk by its name, or a newer mapping has written to it. I/O fails until a user has
 *	it opened again
 * @RNBD_DEV_UNMAPPED: it is being removed; the last state
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
 * @list: in the session's list, under its lock
 * @sess: session; the device is a user of it until it is unmapped, and keeps it until its
 *	disk is gone
 * @disk: the disk; set before the device is visible to users
 * @link: name of the link to the disk in ctl/devices
 * @open_lock: held while the device is opened on the server
 * @reopen: opens it again; queued under the session's lock, and never again once
 *	@state is RNBD_DEV_UNMAPPED
 * @follow: asks the server for its size; queued likewise
 * @open_err: result of the last attempt to open it again, under @open_lock
 * @limits: the answer that the disk's limits are made of, under @open_lock
 * @limits_work: makes them, when they have changed; queued under the session's lock, and never
 *	again once @state is RNBD_DEV_UNMAPPED
 * @read_only: the server's disk takes no writes; @limits_work's
 * @id_type: kind of @id, RNBD_ID_*; set with the disk, as are the next two
 * @id_len: length of @id in bytes
 * @id: unique id of the server's disk when it was mapped; it isn't opened with another one
 * @nsectors: the size that the server told last; written under @open_lock, read without a
 *	lock by users, as the lock may be held for as long as a server doesn't answer
 * @state: written by rnbd_clt_dev_set_state(), read without a lock
 * @state_kn: the attribute "state"; set when the device is mapped, and from then on it may
 *	be unmapped; under the session's lock
 * @flips: how often the device has begun or ceased to be open, under the session's lock
 * @flips_told: number of @flips for which a uevent was sent, under the same lock
 * @uevent_work: sends uevents; queued under the session's lock, and never again once @state
 *	is RNBD_DEV_UNMAPPED
 * @opened: the server has it open as @device_id; under the session's lock
 * @device_id: written while @state keeps I/O away
 * @undoing: the server is asked to close @undone_id; under the session's lock
 * @undone_id: id that came in an answer which could not be used
 * @write_flags: set in all writes, RNBD_F_*; written under @open_lock, read without a lock
 * @lost_at: when the server's disk was found to be removed the last time, in jiffies; under the
 *	session's lock
 * @del_work: removes the disk
 * @orphan_work: unmaps it, once its network namespace is gone and it has been claimed for that
 * @index: the number in the disk's name
 * @access_mode: as asked for when mapped
 * @generation: generation of the mapping, as the server reported it; 0 if the mapping is new;
 *	under @open_lock
 * @gen_flags: RNBD_GEN_* that are known of the mapping; written under the session's lock
 * @path: name of the device on the server
 *
 * Freed with the disk, so it outlives the mapping while somebody has the disk open.
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
	u64 nsectors;

	enum rnbd_clt_dev_state state;
	struct kernfs_node *state_kn;
	unsigned int flips;
	unsigned int flips_told;
	struct work_struct uevent_work;

	bool opened;
	u32 device_id;
	bool undoing;
	u32 undone_id;
	u32 write_flags;
	unsigned long lost_at;

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
 * @err: errno that it ended with, from rtrs_clt_io.done or a failed submission
 * @admin: type of the message if it isn't I/O, for the timeout, which may come when
 *	the message is gone
 * @generation: of the session, when that message was written
 * @lost_at: when its device was first lost under it, in jiffies; with RQF_DONTPREP
 * @msg: message if it is I/O; others bring their own
 * @sgt: list of the data, there while @io has entries; see rnbd_clt_map_data()
 * @sgl: its first entries
 */
struct rnbd_clt_pdu {
	struct rtrs_clt_io io;
	int err;
	u16 admin;
	unsigned int generation;
	unsigned long lost_at;
	struct rnbd_msg_io msg;
	struct sg_table sgt;
	struct scatterlist sgl[RNBD_CLT_INLINE_SG];
};

/**
 * struct rnbd_clt_setting - a setting of a session, see rtrs_clt_set()
 * @name: its name
 * @val: its value
 */
struct rnbd_clt_setting {
	const char *name;
	const char *val;
};

/**
 * struct rnbd_clt_map_opts - what was written to map_device
 * @net: network namespace of who wrote it
 * @sessname: session
 * @label: &rnbd_clt_sess.label of that
 * @dev_path: device
 * @access_mode: how to open it
 * @nr_queues: connections for I/O of each path, 0 if not written
 * @nr_poll_queues: polled connections for I/O of each path, 0 if not written
 * @poll_given: that was written
 * @queue_depth: most requests in flight of the session, 0 if not written
 * @key: description of the session's key, NULL if not written
 * @port: port of the server, for all paths
 * @port_given: it was written, and is not the usual one by default
 * @nr_settings: how many
 * @settings: settings of the session, each once, with values that it takes
 * @nr_paths: how many
 * @path_strs: paths as written
 * @paths: and parsed
 *
 * The strings lie in the buffer that was parsed.
 */
struct rnbd_clt_map_opts {
	struct net *net;
	const char *sessname;
	char label[RTRS_LABEL_LEN];
	const char *dev_path;
	enum rnbd_access_mode access_mode;
	unsigned int nr_queues;
	unsigned int nr_poll_queues;
	bool poll_given;
	unsigned int queue_depth;
	const char *key;
	u16 port;
	bool port_given;
	unsigned int nr_settings;
	struct rnbd_clt_setting settings[RTRS_CLT_NR_SETTINGS];
	unsigned int nr_paths;
	const char *path_strs[RTRS_MAX_PATHS];
	struct rtrs_addr paths[RTRS_MAX_PATHS];
};

/* Log why a device can't be opened; once for each errno, not with each of the retries. */
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

/* ctl.c */
extern struct device *rnbd_clt_ctl;
int rnbd_clt_add_ctl(void);
void rnbd_clt_del_ctl(void);
int rnbd_clt_dev_link(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_unlink(struct rnbd_clt_dev *dev);

/* state.c */
void rnbd_clt_dev_init_state(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_set_state(struct rnbd_clt_dev *dev,
			    enum rnbd_clt_dev_state state);
int rnbd_clt_dev_set_claimed(struct rnbd_clt_dev *dev, bool force);
int rnbd_clt_dev_tell_state(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_revoke(struct rnbd_clt_dev *dev, u32 device_id);
void rnbd_clt_dev_lost(struct rnbd_clt_dev *dev, u32 device_id);
bool rnbd_clt_dev_wants_reopen(const struct rnbd_clt_dev *dev);
unsigned int rnbd_clt_sess_generation(struct rnbd_clt_sess *sess);
void rnbd_clt_sess_down(struct rnbd_clt_sess *sess);
void rnbd_clt_sess_up(struct rnbd_clt_sess *sess);
void rnbd_clt_sess_init_event(struct rnbd_clt_sess *sess);
void rnbd_clt_srv_event(void *priv);

/* limits.c */
int rnbd_clt_check_rsp(const struct rnbd_clt_dev *dev,
		       struct rnbd_msg_open_rsp *rsp);
void rnbd_clt_fill_limits(const struct rnbd_clt_dev *dev,
			  const struct rnbd_msg_open_rsp *rsp,
			  struct queue_limits *lim);
#if IS_ENABLED(CONFIG_KUNIT)
bool rnbd_clt_same_id(const struct rnbd_clt_dev *dev,
		      const struct rnbd_msg_open_rsp *rsp);
#endif
u32 rnbd_clt_new_write_flags(const struct rnbd_msg_open_rsp *old,
			     const struct rnbd_msg_open_rsp *new);
bool rnbd_clt_nsectors_ok(u64 nsectors);

/* generation.c */
bool rnbd_clt_fenced(const struct rnbd_clt_dev *dev, const struct request *rq);
void rnbd_clt_note_write(struct rnbd_clt_dev *dev, const struct request *rq, int err);
void rnbd_clt_new_generation(struct rnbd_clt_dev *dev);
void rnbd_clt_fill_generation(struct rnbd_msg_open_gen *msg, const struct rnbd_clt_dev *dev);
int rnbd_clt_check_generation(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp);

/* io.c */
extern const struct blk_mq_ops rnbd_clt_mq_ops;
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_clt_fill_msg(const struct rnbd_clt_dev *dev, struct request *rq);
int rnbd_clt_map_data(struct request *rq);
void rnbd_clt_unmap_data(struct request *rq);
void rnbd_clt_map_queues(struct blk_mq_tag_set *set);
#endif
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
u32 rnbd_clt_granted(const struct rnbd_msg_sess_info *msg,
		     const struct rnbd_msg_sess_info *rsp);
int rnbd_clt_sess_set(struct rnbd_clt_sess *sess,
		      const struct rnbd_clt_map_opts *opts);
int rnbd_clt_sess_introduce(struct rnbd_clt_sess *sess);
struct rnbd_clt_dev *rnbd_clt_any_dev(void);
struct rnbd_clt_dev *rnbd_clt_claim_orphan(bool *others);

/* open.c */
void rnbd_clt_fill_open(struct rnbd_msg_open *msg,
			const struct rnbd_clt_dev *dev);
void rnbd_clt_fill_close(struct rnbd_msg_close *msg, u32 device_id);
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_clt_dev_set_open(struct rnbd_clt_dev *dev, u32 device_id,
			  unsigned int generation);
#endif
void rnbd_clt_dev_init_open(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_queue_limits(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_set_limits(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp);
void rnbd_clt_dev_set_size(struct rnbd_clt_dev *dev, u64 nsectors);
int rnbd_clt_dev_open(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp,
		      unsigned int generation);
void rnbd_clt_dev_undo_open(struct rnbd_clt_dev *dev,
			    const struct rnbd_msg_open_rsp *rsp,
			    unsigned int generation);
void rnbd_clt_dev_close(struct rnbd_clt_dev *dev);
int rnbd_clt_dev_ask(struct rnbd_clt_dev *dev, struct rnbd_msg_open_rsp *rsp);

/* reopen.c */
bool rnbd_clt_refused(int err, bool may_wait);
void rnbd_clt_dev_wake(struct rnbd_clt_dev *dev);
void rnbd_clt_dev_init_reopen(struct rnbd_clt_dev *dev);
int rnbd_clt_dev_remap(struct rnbd_clt_dev *dev);

/* resize.c */
void rnbd_clt_dev_init_follow(struct rnbd_clt_dev *dev);
int rnbd_clt_dev_follow_size(struct rnbd_clt_dev *dev);

/* device.c */
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_clt_get_unique_id(struct gendisk *disk, u8 id[16], enum blk_unique_id type);
#endif
int rnbd_clt_dev_map(const struct rnbd_clt_map_opts *opts,
		     const struct attribute_group **groups);
int rnbd_clt_dev_claim(struct rnbd_clt_dev *dev, bool force);
void rnbd_clt_dev_unmap(struct rnbd_clt_dev *dev, bool force);
void rnbd_clt_stop_watch(void);
int rnbd_clt_init_devs(void);
void rnbd_clt_exit_devs(void);

/* map.c */
int rnbd_clt_parse(char *line, struct rnbd_clt_map_opts *opts);

/* sysfs.c */
int rnbd_clt_start_mapping(void);
void rnbd_clt_stop_mapping(void);

#endif /* RNBD_CLT_H */
