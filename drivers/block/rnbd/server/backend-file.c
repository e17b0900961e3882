// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: I/O on a regular file. Filesystems sleep, so each request is a work item.
 * Direct I/O is used if the filesystem supports it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/uio.h>

#include "rnbd-srv.h"

static int rnbd_srv_file_open(struct rnbd_srv_map *map)
{
	struct file *file = map->file;
	struct super_block *sb = file_inode(file)->i_sb;

	if (!rnbd_srv_fs_ok(sb))
		return -ENOTBLK;
	if (!file->f_op->read_iter)
		return -EINVAL;
	if (map->mode != RNBD_ACCESS_RO && !file->f_op->write_iter)
		return -EROFS;
	map->block_size = SECTOR_SIZE;
	if ((file->f_flags & O_DIRECT) && sb->s_bdev)
		map->block_size = bdev_logical_block_size(sb->s_bdev);
	return 0;
}

static sector_t rnbd_srv_file_capacity(const struct rnbd_srv_map *map)
{
	return i_size_read(file_inode(map->file)) >> SECTOR_SHIFT;
}

static void rnbd_srv_file_limits(const struct rnbd_srv_map *map,
				 struct rnbd_msg_open_rsp *rsp)
{
	u32 fs_block = i_blocksize(file_inode(map->file));

	rsp->max_hw_sectors = cpu_to_le32(U32_MAX >> SECTOR_SHIFT);
	rsp->max_segments = cpu_to_le16(BIO_MAX_VECS);
	rsp->physical_block_size =
		cpu_to_le16(clamp_t(u32, fs_block, map->block_size, SZ_32K));
	if (map->file->f_op->fallocate) {
		rsp->max_write_zeroes_sectors =
			cpu_to_le32(U32_MAX >> SECTOR_SHIFT);
		rsp->max_discard_sectors = rsp->max_write_zeroes_sectors;
		rsp->discard_granularity = cpu_to_le32(fs_block);
	}
	rsp->cache_policy = RNBD_CACHE_WRITEBACK | RNBD_CACHE_FUA;
}

static int rnbd_srv_file_rw(struct rnbd_srv_req *req)
{
	struct rtrs_srv_op *op = rtrs_srv_op_from_priv(req);
	struct file *file = req->map->file;
	struct bio_vec bvec;
	struct iov_iter iter;
	struct kiocb iocb;
	ssize_t ret;

	bvec_set_page(&bvec, virt_to_page(op->data), req->len,
		      offset_in_page(op->data));
	init_sync_kiocb(&iocb, file);
	iocb.ki_pos = (loff_t)req->sector << SECTOR_SHIFT;
	if (req->op == RNBD_OP_READ) {
		iov_iter_bvec(&iter, ITER_DEST, &bvec, 1, req->len);
		ret = file->f_op->read_iter(&iocb, &iter);
	} else {
		if (req->flags & RNBD_F_FUA)
			iocb.ki_flags |= IOCB_DSYNC;
		iov_iter_bvec(&iter, ITER_SOURCE, &bvec, 1, req->len);
		file_start_write(file);
		ret = file->f_op->write_iter(&iocb, &iter);
		file_end_write(file);
	}

	if (ret < 0)
		return ret;
	return ret == req->len ? 0 : -EIO;
}

static int rnbd_srv_file_fallocate(struct rnbd_srv_req *req, int mode)
{
	return vfs_fallocate(req->map->file, mode | FALLOC_FL_KEEP_SIZE,
			     (loff_t)req->sector << SECTOR_SHIFT, req->len);
}

static int rnbd_srv_file_zero(struct rnbd_srv_req *req)
{
	int err = -EOPNOTSUPP;

	if (!(req->flags & RNBD_F_NOUNMAP))
		err = rnbd_srv_file_fallocate(req, FALLOC_FL_PUNCH_HOLE);
	if (err == -EOPNOTSUPP)
		err = rnbd_srv_file_fallocate(req, FALLOC_FL_ZERO_RANGE);
	return err;
}

static int rnbd_srv_file_do(struct rnbd_srv_req *req)
{
	int err;

	switch (req->op) {
	case RNBD_OP_READ:
		return rnbd_srv_file_rw(req);
	case RNBD_OP_WRITE:
		if (req->flags & RNBD_F_PREFLUSH) {
			err = vfs_fsync(req->map->file, 1);
			if (err)
				return err;
		}
		return rnbd_srv_file_rw(req);
	case RNBD_OP_FLUSH:
		return vfs_fsync(req->map->file, 1);
	case RNBD_OP_DISCARD:
		return rnbd_srv_file_fallocate(req, FALLOC_FL_PUNCH_HOLE);
	case RNBD_OP_WRITE_ZEROES:
		return rnbd_srv_file_zero(req);
	default:
		return -EOPNOTSUPP;
	}
}

static void rnbd_srv_file_work(struct work_struct *work)
{
	struct rnbd_srv_req *req =
		container_of(work, struct rnbd_srv_req, work);

	rnbd_srv_end(req, rnbd_srv_file_do(req));
}

static void rnbd_srv_file_submit(struct rnbd_srv_req *req)
{
	INIT_WORK(&req->work, rnbd_srv_file_work);
	queue_work(rnbd_srv_file_wq, &req->work);
}

const struct rnbd_srv_backend rnbd_srv_file_backend = {
	.open = rnbd_srv_file_open,
	.capacity = rnbd_srv_file_capacity,
	.limits = rnbd_srv_file_limits,
	.submit = rnbd_srv_file_submit,
};
