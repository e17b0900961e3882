/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD server.
 *
 * Nothing is exported in advance. A session opens devices by name, below a folder,
 * and each one that it has open is a map: a file, opened as the client asked for,
 * a backend that does I/O on it, and an id by which the session's I/O finds it. All
 * maps of the same disk or file make up a device, which knows who may write.
 *
 * I/O takes a reference to its map, no lock. To close a map, one claims it; a work
 * item then lets nothing in any more, waits for the I/O in hand and for the users
 * of its attributes, and closes the file.
 *
 * rnbd_srv_lock is the one lock. Attributes don't take it, and are not waited for
 * under it.
 */
#ifndef RNBD_SRV_H
#define RNBD_SRV_H

#include <kunit/visibility.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/percpu-refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../../infiniband/ulp/rtrs/rtrs.h"
#include "../common/rnbd-proto.h"

/**
 * struct rnbd_srv_sess - a client's session
 * @kref: kept by the transport's session and by each map
 * @maps: what it has open, by id; changed under rnbd_srv_lock
 * @next_id: where the search for an id begins, under rnbd_srv_lock
 * @nr_maps: maps whose files aren't closed yet
 * @idle: woken when @nr_maps gets 0
 * @ver: major version that both sides know
 * @name: its name
 */
struct rnbd_srv_sess {
	struct kref kref;
	struct xarray maps;
	u32 next_id;
	atomic_t nr_maps;
	wait_queue_head_t idle;
	u8 ver;
	char name[];
};

/**
 * struct rnbd_srv_dev - a disk or file that is open
 * @list: in the list of all, under rnbd_srv_lock
 * @maps: who has it open, under rnbd_srv_lock
 * @nr_writers: how many of those may write, under rnbd_srv_lock
 * @inode: what tells it from others; kept by the files of @maps
 * @kobj: ctl/devices/<name>; keeps the memory
 * @sessions: the folder "sessions" in there
 *
 * Lives as long as it has maps.
 */
struct rnbd_srv_dev {
	struct list_head list;
	struct list_head maps;
	unsigned int nr_writers;
	struct inode *inode;
	struct kobject kobj;
	struct kobject *sessions;
};

/**
 * struct rnbd_srv_map - a device as a session has it open
 * @kobj: sessions/<session> of the device; keeps the memory
 * @rcu: frees it when no I/O may be looking at it any more
 * @list: in the device's list, under rnbd_srv_lock
 * @sess: session, kept
 * @dev: device
 * @file: the file, until @closed
 * @backend: does I/O on @file
 * @bdev: the disk that @file is, if it is one
 * @block_size: sectors and lengths are multiples of it
 * @id: what the client calls it
 * @mode: what it may do
 * @ref: I/O in hand
 * @drained: done when @ref is gone
 * @closing: bit 0 is set by the one who closes it
 * @close_work: closes it
 * @close_op: request to complete when it is closed, or NULL
 * @closed: done when it is
 * @path: what the client calls the device
 */
struct rnbd_srv_map {
	struct kobject kobj;
	struct rcu_head rcu;
	struct list_head list;
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;

	struct file *file;
	const struct rnbd_srv_backend *backend;
	struct block_device *bdev;
	u32 block_size;
	u32 id;
	enum rnbd_access_mode mode;

	struct percpu_ref ref;
	struct completion drained;
	unsigned long closing;
	struct work_struct close_work;
	struct rtrs_srv_op *close_op;
	struct completion closed;

	char path[RNBD_NAME_LEN];
};

/**
 * struct rnbd_srv_req - this layer's part of a transport's op
 * @map: where the I/O goes; holds its ref
 * @sector: where there, in sectors of 512 bytes
 * @len: how many bytes
 * @op: RNBD_OP_*
 * @flags: RNBD_F_*
 * @prio: priority, valid or 0
 * @bio: for disks
 * @bvec: data of @bio, in one piece
 * @work: for files, for disks that have to be waited for, and for messages that take
 *	long. @bio may still be in use when it is queued
 *
 * One for each slot, made when a path comes up, so that I/O needs no memory.
 */
struct rnbd_srv_req {
	struct rnbd_srv_map *map;
	sector_t sector;
	u32 len;
	u8 op;
	u32 flags;
	u16 prio;
	struct bio bio;
	struct bio_vec bvec;
	struct work_struct work;
};

/**
 * struct rnbd_srv_backend - how I/O is done on a kind of file
 * @open: look at the map's file, which has just been opened, and set block_size;
 *	a negative errno refuses it
 * @capacity: size in sectors of 512 bytes; it may change at any time
 * @limits: fill in what the client is told beyond that
 * @submit: do a request that has been checked, ends in rnbd_srv_end(). Process
 *	context
 *
 * The file is closed when no request is in hand.
 */
struct rnbd_srv_backend {
	int (*open)(struct rnbd_srv_map *map);
	sector_t (*capacity)(const struct rnbd_srv_map *map);
	void (*limits)(const struct rnbd_srv_map *map,
		       struct rnbd_msg_open_rsp *rsp);
	void (*submit)(struct rnbd_srv_req *req);
};

extern const struct rnbd_srv_backend rnbd_srv_bdev_backend;
extern const struct rnbd_srv_backend rnbd_srv_file_backend;

/* backend-bdev.c */
#if IS_ENABLED(CONFIG_KUNIT)
blk_opf_t rnbd_srv_bdev_opf(const struct rnbd_srv_req *req);
#endif

/* backend-file.c */
bool rnbd_srv_fs_ok(const struct super_block *sb);

extern const char * const rnbd_srv_access_names[RNBD_ACCESS_MODES];
extern char rnbd_srv_search_path[];

/* For messages and for closing; for I/O, on files and disks, which closing waits for. */
extern struct workqueue_struct *rnbd_srv_wq;
extern struct workqueue_struct *rnbd_srv_file_wq;
extern struct workqueue_struct *rnbd_srv_bdev_wq;

/* session.c */
void *rnbd_srv_sess_up(struct rtrs_srv_sess *rtrs);
void rnbd_srv_sess_down(struct rtrs_srv_sess *rtrs, void *priv);
void rnbd_srv_sess_free(struct kref *kref);
int rnbd_srv_sess_info(struct rtrs_srv_op *op);
int rnbd_srv_check_open(const struct rtrs_srv_op *op);
void rnbd_srv_request(struct rtrs_srv_op *op);

/* map.c */
char *rnbd_srv_full_path(const struct rnbd_srv_sess *sess, const char *path);
int rnbd_srv_access(const struct rnbd_srv_dev *dev, enum rnbd_access_mode mode);
void rnbd_srv_fill_rsp(const struct rnbd_srv_map *map,
		       struct rnbd_msg_open_rsp *rsp);
int rnbd_srv_open(struct rnbd_srv_sess *sess, const char *path,
		  enum rnbd_access_mode mode, struct rnbd_msg_open_rsp *rsp);
bool rnbd_srv_close(struct rnbd_srv_map *map, struct rtrs_srv_op *op);

/* io.c */
int rnbd_srv_parse(struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_srv_check(const struct rnbd_srv_req *req, const struct rtrs_srv_op *op);
#endif
int rnbd_srv_io(struct rtrs_srv_op *op);
void rnbd_srv_end(struct rnbd_srv_req *req, int err);

/* sysfs.c */
extern const struct kobj_type rnbd_srv_dev_ktype;
extern const struct kobj_type rnbd_srv_map_ktype;
extern struct kobject *rnbd_srv_devices;
int rnbd_srv_add_ctl(void);
void rnbd_srv_del_ctl(void);

#endif /* RNBD_SRV_H */
