// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: I/O on a regular file. Filesystems sleep, so each request is a work item
 * of its mapping's workqueue. Direct I/O, if the filesystem supports it, occupies a worker
 * until it has been submitted; buffered I/O, until it is done.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/sizes.h>
#include <linux/uio.h>

#include "rnbd-srv.h"

/*
 * Whether a filesystem can punch holes is known only after trying: in the last block that
 * a file could have, where nobody writes meanwhile. A filesystem on top of others may not
 * know how large a file can be (-EFBIG); then it is tried when a client asks for it.
 */
static bool rnbd_srv_file_can_punch(const struct rnbd_srv_map *map)
{
	struct inode *inode = file_inode(map->file);
	unsigned int block = i_blocksize(inode);
	loff_t last = round_down(inode->i_sb->s_maxbytes, block) - block;
	int err;

	if (map->mode == RNBD_ACCESS_RO)
		return false;
	err = vfs_fallocate(map->file,
			    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, last,
			    block);
	return !err || err == -EFBIG;
}

static int rnbd_srv_file_open(struct rnbd_srv_map *map)
{
	struct file *file = map->file;
	struct super_block *sb = file_inode(file)->i_sb;

	if (!rnbd_srv_fs_ok(map->sess, sb))
		return -ENOTBLK;
	if (!file->f_op->read_iter)
		return -EINVAL;
	if (map->mode != RNBD_ACCESS_RO && !file->f_op->write_iter)
		return -EROFS;
	map->block_size = SECTOR_SIZE;
	if ((file->f_flags & O_DIRECT) && sb->s_bdev)
		map->block_size = bdev_logical_block_size(sb->s_bdev);
	map->can_punch = rnbd_srv_file_can_punch(map);
	return 0;
}

static sector_t rnbd_srv_file_capacity(const struct rnbd_srv_map *map)
{
	return round_down(i_size_read(file_inode(map->file)), map->block_size) >>
	       SECTOR_SHIFT;
}

static void rnbd_srv_file_limits(const struct rnbd_srv_map *map,
				 struct rnbd_msg_open_rsp *rsp)
{
	struct super_block *sb = file_inode(map->file)->i_sb;
	u32 fs_block = i_blocksize(file_inode(map->file));

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
 * Programs know what to do if a disk has no space: QEMU pauses its guest until it has.
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
 * rnbd_srv_file_iter() - describe a read's or write's data for a filesystem
 * @req: request; gets its vecs
 * @op: op of the request
 * @iter: set up
 *
 * Context: work item.
 */
VISIBLE_IF_KUNIT void rnbd_srv_file_iter(struct rnbd_srv_req *req,
					 const struct rtrs_srv_op *op,
					 struct iov_iter *iter)
{
	unsigned int dir = req->op == RNBD_OP_READ ? ITER_DEST : ITER_SOURCE;

	rnbd_srv_get_vecs(req, op, GFP_NOIO);
	iov_iter_bvec(iter, dir, req->vecs, op->nents, req->len);
}

/*
 * A short write, most likely for lack of space: the filesystem tells the reason only if it is asked
 * for the rest. Returns the length written, or a negative errno.
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
 * With direct I/O, the filesystem usually returns before the I/O is done. But the I/O may
 * be done before it returns, and it still uses the iocb then: so that has two users.
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

/* Once the filesystem has refused, later OPENs aren't told of discards any more. */
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

static int rnbd_srv_file_sync(struct rnbd_srv_req *req)
{
	return vfs_fsync(req->map->file, 1);
}

static void rnbd_srv_file_write(struct rnbd_srv_req *req)
{
	int err = 0;

	if (req->flags & RNBD_F_PREFLUSH)
		err = rnbd_srv_file_sync(req);
	if (err)
		rnbd_srv_file_end(req, err);
	else
		rnbd_srv_file_rw(req);
}

static void rnbd_srv_file_do(struct rnbd_srv_req *req)
{
	switch (req->op) {
	case RNBD_OP_READ:
		rnbd_srv_file_rw(req);
		break;
	case RNBD_OP_WRITE:
		rnbd_srv_file_write(req);
		break;
	case RNBD_OP_FLUSH:
		rnbd_srv_file_end(req, rnbd_srv_file_sync(req));
		break;
	case RNBD_OP_DISCARD:
		rnbd_srv_file_end(req, rnbd_srv_file_punch(req));
		break;
	case RNBD_OP_WRITE_ZEROES:
		rnbd_srv_file_end(req, rnbd_srv_file_zero(req));
		break;
	default:
		rnbd_srv_end(req, -EOPNOTSUPP);
		break;
	}
}

/*
 * What a filesystem does for a sync or for holes is in its journal, which others wait for: nobody
 * pays for that. The request may be gone when it is done, and the mapping with it.
 */
static void rnbd_srv_file_run(struct rnbd_srv_req *req)
{
	bool pays = rcu_access_pointer(req->map->css) &&
		    (req->op == RNBD_OP_READ || req->op == RNBD_OP_WRITE);

	req->submitted = ktime_get_ns();
	if (pays)
		rnbd_srv_css_begin(req->map);
	rnbd_srv_file_do(req);
	if (pays)
		rnbd_srv_css_end();
}

static void rnbd_srv_file_submit(struct rnbd_srv_req *req)
{
	req->run = rnbd_srv_file_run;
	rnbd_srv_queue_add(req);
}

const struct rnbd_srv_backend rnbd_srv_file_backend = {
	.open = rnbd_srv_file_open,
	.capacity = rnbd_srv_file_capacity,
	.limits = rnbd_srv_file_limits,
	.submit = rnbd_srv_file_submit,
};
