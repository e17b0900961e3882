// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: I/O on a regular file. Filesystems sleep, so a worker runs each request. Direct I/O,
 * if the filesystem supports it, occupies the worker until it has been submitted; buffered I/O,
 * until it is done.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sizes.h>
#include <linux/uio.h>

#include "rnbd-srv.h"

/*
 * Check whether a filesystem can punch holes, by trying it in the last possible block of the file,
 * which contains no data. A stacked filesystem may report -EFBIG, if the lower one limits files to
 * a smaller size. In that case, a client's first request decides.
 */
static bool rnbd_srv_file_can_punch(const struct rnbd_srv_map *map)
{
	struct inode *inode = file_inode(map->file);
	unsigned int block = i_blocksize(inode);
	loff_t last = round_down(inode->i_sb->s_maxbytes, block) - block;
	int err;

	if (map->mode == RNBD_ACCESS_RO)
		return false;
	err = vfs_fallocate(map->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, last, block);
	return !err || err == -EFBIG;
}

/* Check the open file: its name may have been reused since the lookup. */
static int rnbd_srv_file_check(const struct rnbd_srv_map *map)
{
	const struct inode *inode = file_inode(map->file);

	if (!S_ISREG(inode->i_mode) || !rnbd_srv_fs_ok(map->sess, inode->i_sb))
		return -ENOTBLK;
	if (!map->file->f_op->read_iter)
		return -EINVAL;
	/* The protocol has 16 bits for the size of a block. */
	if (map->block_size > U16_MAX)
		return -EOPNOTSUPP;
	return map->mode != RNBD_ACCESS_RO && !map->file->f_op->write_iter ? -EROFS : 0;
}

/* Subvolumes of btrfs share s_dev, and reuse inode numbers: get the device of stat(2). */
static int rnbd_srv_file_identify(struct rnbd_srv_map *map)
{
	struct kstat stat;
	int err;

	err = vfs_getattr(&map->file->f_path, &stat, STATX_INO, AT_STATX_DONT_SYNC);
	if (err)
		return err;
	map->disk_id.dev = stat.dev;
	map->disk_id.nr = stat.ino;
	map->disk_id.generation = file_inode(map->file)->i_generation;
	return 0;
}

static int rnbd_srv_file_open(struct rnbd_srv_map *map, const char *path)
{
	struct super_block *sb;
	int err;

	map->file = rnbd_srv_open_file(map, path);
	if (IS_ERR(map->file))
		return PTR_ERR(map->file);
	sb = file_inode(map->file)->i_sb;
	map->block_size = SECTOR_SIZE;
	if ((map->file->f_flags & O_DIRECT) && sb->s_bdev)
		map->block_size = bdev_logical_block_size(sb->s_bdev);
	err = rnbd_srv_file_check(map) ?: rnbd_srv_file_identify(map);
	if (err) {
		__fput_sync(map->file);
		return err;
	}
	map->can_punch = rnbd_srv_file_can_punch(map);
	return 0;
}

static void rnbd_srv_file_close(struct rnbd_srv_map *map)
{
	__fput_sync(map->file);
}

static int rnbd_srv_file_sync_all(const struct rnbd_srv_map *map)
{
	return vfs_fsync(map->file, 0);
}

static sector_t rnbd_srv_file_capacity(const struct rnbd_srv_map *map)
{
	return round_down(i_size_read(file_inode(map->file)), map->block_size) >>
	       SECTOR_SHIFT;
}

static void rnbd_srv_file_limits(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	struct super_block *sb = file_inode(map->file)->i_sb;
	u32 fs_block = i_blocksize(file_inode(map->file));

	rsp->logical_block_size = cpu_to_le16(map->block_size);
	rsp->max_hw_sectors = cpu_to_le32(U32_MAX >> SECTOR_SHIFT);
	rsp->max_segments = cpu_to_le16(BIO_MAX_VECS);
	rsp->physical_block_size =
		cpu_to_le16(clamp_t(u32, fs_block, map->block_size, SZ_32K));
	if (READ_ONCE(map->can_punch)) {
		rsp->max_write_zeroes_sectors =
			cpu_to_le32(U32_MAX >> SECTOR_SHIFT);
		rsp->max_discard_sectors = rsp->max_write_zeroes_sectors;
		rsp->discard_granularity = cpu_to_le32(fs_block);
	}
	rsp->cache_policy = RNBD_CACHE_WRITEBACK | RNBD_CACHE_FUA;
	rsp->io_min = cpu_to_le32(fs_block);
	if (sb->s_bdev && bdev_rot(sb->s_bdev))
		rsp->flags |= RNBD_DISK_ROTATIONAL;
}

/**
 * rnbd_srv_file_errno() - convert a filesystem's errno into one that a disk reports
 * @err: 0 or a negative errno
 *
 * Programs handle a disk without space: QEMU pauses its guest until there is space.
 *
 * Context: any.
 */
VISIBLE_IF_KUNIT int rnbd_srv_file_errno(int err)
{
	switch (err) {
	case -EDQUOT:
	case -EFBIG:
		return -ENOSPC;
	default:
		return err;
	}
}

static void rnbd_srv_file_end(struct rnbd_srv_req *req, int err)
{
	rnbd_srv_end(req, rnbd_srv_file_errno(err));
}

static void rnbd_srv_file_put(struct rnbd_srv_req *req)
{
	if (refcount_dec_and_test(&req->iocb_users))
		rnbd_srv_file_end(req, req->iocb_err);
}

/* Any context. */
static void rnbd_srv_file_rw_done(struct kiocb *iocb, long ret)
{
	struct rnbd_srv_req *req = container_of(iocb, struct rnbd_srv_req, iocb);

	if (req->op == RNBD_OP_WRITE)
		kiocb_end_write(iocb);
	if (ret >= 0)
		ret = ret == req->len ? 0 : -EIO;
	req->iocb_err = ret;
	rnbd_srv_file_put(req);
}

/**
 * rnbd_srv_file_iter() - describe the data of a read or write by an iov_iter
 * @req: request; gets its array of struct bio_vec
 * @op: op of the request
 * @iter: iterator to initialize
 *
 * Context: work item.
 */
VISIBLE_IF_KUNIT void rnbd_srv_file_iter(struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
					 struct iov_iter *iter)
{
	unsigned int dir = req->op == RNBD_OP_READ ? ITER_DEST : ITER_SOURCE;

	rnbd_srv_get_vecs(req, op, GFP_NOIO);
	iov_iter_bvec(iter, dir, req->vecs, op->nents, req->len);
}

/*
 * Continue after a short write, which most likely means lack of space: the filesystem returns the
 * errno only for the rest. Returns the length written, or a negative errno.
 */
static ssize_t rnbd_srv_file_rest(struct rnbd_srv_req *req, struct iov_iter *iter, ssize_t done)
{
	struct kiocb *iocb = &req->iocb, rest = *iocb;
	ssize_t ret;

	rest.ki_complete = NULL;
	rest.ki_pos = ((loff_t)req->sector << SECTOR_SHIFT) + done;
	ret = iocb->ki_filp->f_op->write_iter(&rest, iter);
	return ret < 0 ? ret : done + ret;
}

/*
 * With direct I/O, the filesystem usually returns before the I/O is done. But the I/O may also be
 * done while the filesystem still uses the iocb, so the iocb has two references.
 */
static void rnbd_srv_file_rw(struct rnbd_srv_req *req)
{
	struct file *file = req->map->file;
	struct kiocb *iocb = &req->iocb;
	struct iov_iter iter;
	ssize_t ret;

	rnbd_srv_file_iter(req, rtrs_srv_op_from_priv(req), &iter);
	refcount_set(&req->iocb_users, 2);
	init_sync_kiocb(iocb, file);
	iocb->ki_complete = rnbd_srv_file_rw_done;
	iocb->ki_pos = (loff_t)req->sector << SECTOR_SHIFT;
	if (req->op == RNBD_OP_READ) {
		ret = file->f_op->read_iter(iocb, &iter);
	} else {
		iocb->ki_flags |= IOCB_WRITE;
		if (req->flags & RNBD_F_FUA)
			iocb->ki_flags |= IOCB_DSYNC;
		kiocb_start_write(iocb);
		ret = file->f_op->write_iter(iocb, &iter);
	}
	if (ret > 0 && ret < req->len && req->op == RNBD_OP_WRITE)
		ret = rnbd_srv_file_rest(req, &iter, ret);
	if (ret != -EIOCBQUEUED)
		rnbd_srv_file_rw_done(iocb, ret);
	rnbd_srv_file_put(req);
}

static int rnbd_srv_file_fallocate(struct rnbd_srv_req *req, int mode)
{
	return vfs_fallocate(req->map->file, mode | FALLOC_FL_KEEP_SIZE,
			     (loff_t)req->sector << SECTOR_SHIFT, req->len);
}

/* Once the filesystem has refused, answers to OPEN report no discards any more. */
static int rnbd_srv_file_punch(struct rnbd_srv_req *req)
{
	int err = rnbd_srv_file_fallocate(req, FALLOC_FL_PUNCH_HOLE);

	if (err == -EOPNOTSUPP)
		WRITE_ONCE(req->map->can_punch, false);
	return err;
}

static int rnbd_srv_file_zero(struct rnbd_srv_req *req)
{
	int err = -EOPNOTSUPP;

	if (!(req->flags & RNBD_F_NOUNMAP))
		err = rnbd_srv_file_punch(req);
	if (err == -EOPNOTSUPP)
		err = rnbd_srv_file_fallocate(req, FALLOC_FL_ZERO_RANGE);
	return err;
}

static void rnbd_srv_file_do(struct rnbd_srv_req *req)
{
	int err = 0;

	switch (req->op) {
	case RNBD_OP_READ:
		break;
	case RNBD_OP_WRITE:
		if (!(req->flags & RNBD_F_PREFLUSH))
			break;
		fallthrough;
	case RNBD_OP_FLUSH:
		err = vfs_fsync(req->map->file, 1);
		break;
	case RNBD_OP_DISCARD:
		err = rnbd_srv_file_punch(req);
		break;
	case RNBD_OP_WRITE_ZEROES:
		err = rnbd_srv_file_zero(req);
		break;
	default:
		err = -EOPNOTSUPP;
	}
	if (!err && rnbd_srv_has_data(req))
		rnbd_srv_file_rw(req);
	else
		rnbd_srv_file_end(req, err);
}

/*
 * Run a request in a worker. Only reads and writes are charged to the mapping's cgroup: syncs and
 * holes are I/O to the journal, for which other users of the filesystem wait. After
 * rnbd_srv_file_do(), the request and the mapping may be freed already.
 */
static void rnbd_srv_file_run(struct rnbd_srv_req *req)
{
	bool pays = rcu_access_pointer(req->map->sess->css) && rnbd_srv_has_data(req);

	req->submitted = ktime_get_ns();
	if (pays)
		rnbd_srv_css_begin(req->map);
	rnbd_srv_file_do(req);
	if (pays)
		kthread_associate_blkcg(NULL);
}

static void rnbd_srv_file_submit(struct rnbd_srv_req *req)
{
	req->run = rnbd_srv_file_run;
	rnbd_srv_queue_add(req);
}

const struct rnbd_srv_backend rnbd_srv_file_backend = {
	.open = rnbd_srv_file_open,
	.close = rnbd_srv_file_close,
	.sync = rnbd_srv_file_sync_all,
	.capacity = rnbd_srv_file_capacity,
	.limits = rnbd_srv_file_limits,
	.submit = rnbd_srv_file_submit,
};
