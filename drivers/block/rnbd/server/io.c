// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: checks and completion of I/O; answers. Backends rely on the checks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>

#include "rnbd-srv.h"

/*
 * Get a valid I/O priority, or 0: I/O schedulers use it as an array index. The real-time class
 * would starve other clients and the server's own programs, so it is replaced by the highest
 * best-effort level.
 */
static u16 rnbd_srv_prio(const struct rtrs_srv_op *op)
{
	const struct rnbd_msg_io *msg = (const void *)op->msg;
	const struct rnbd_srv_sess *sess = op->priv;
	u16 prio;

	if (op->msg_len < RNBD_MSG_IO_PRIO || READ_ONCE(sess->ver) < RNBD_VER_MAJOR)
		return 0;
	prio = le16_to_cpu(msg->prio);
	if (IOPRIO_PRIO_CLASS(prio) == IOPRIO_CLASS_RT)
		return IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 0);
	return ioprio_valid(prio) ? prio : 0;
}

static bool rnbd_srv_range_ok(const struct rnbd_srv_req *req)
{
	const struct rnbd_srv_map *map = req->map;
	u32 blocks = map->block_size >> SECTOR_SHIFT;
	sector_t capacity = map->backend->capacity(map);
	u32 sectors = req->len >> SECTOR_SHIFT;

	return req->len && IS_ALIGNED(req->len, map->block_size) &&
	       IS_ALIGNED(req->sector, blocks) &&
	       req->sector <= capacity && sectors <= capacity - req->sector;
}

/**
 * rnbd_srv_check() - check an I/O request
 * @req: parsed request with its mapping
 * @op: op of the request
 *
 * Return: 0 if a backend can execute the request, or a negative errno.
 */
VISIBLE_IF_KUNIT int rnbd_srv_check(const struct rnbd_srv_req *req, const struct rtrs_srv_op *op)
{
	if (req->flags & ~RNBD_F_ALL || op->nents > BIO_MAX_VECS)
		return -EINVAL;

	switch (req->op) {
	case RNBD_OP_READ:
	case RNBD_OP_WRITE:
		if (op->data_len != req->len ||
		    op->dir != (req->op == RNBD_OP_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE))
			return -EINVAL;
		break;
	case RNBD_OP_FLUSH:
		return 0;
	case RNBD_OP_DISCARD:
	case RNBD_OP_SECURE_ERASE:
		break;
	case RNBD_OP_WRITE_ZEROES:
		/* In Linux 5.8 to 5.17 the operation was WRITE_SAME, with a block of data. */
		if (op->data_len)
			return -EOPNOTSUPP;
		break;
	default:
		return -EOPNOTSUPP;
	}

	if (req->op != RNBD_OP_READ && req->map->mode == RNBD_ACCESS_RO)
		return -EROFS;
	return rnbd_srv_range_ok(req) ? 0 : -EINVAL;
}

/**
 * rnbd_srv_parse() - parse an I/O message
 * @req: filled in, except for the mapping
 * @op: op with the message
 *
 * Return: 0, or -EINVAL if the message is too short.
 */
int rnbd_srv_parse(struct rnbd_srv_req *req, const struct rtrs_srv_op *op)
{
	const struct rnbd_msg_io *msg = (const void *)op->msg;
	u32 rw;

	if (op->msg_len < RNBD_MSG_IO_MIN)
		return -EINVAL;
	rw = le32_to_cpu(msg->rw);
	req->sector = le64_to_cpu(msg->sector);
	req->len = le32_to_cpu(msg->bi_size);
	req->op = rw & RNBD_OP_MASK;
	req->flags = rw & ~RNBD_OP_MASK;
	req->prio = rnbd_srv_prio(op);
	req->vecs = NULL;
	req->generation = 0;
	req->arrived = ktime_get_ns();
	return 0;
}

/**
 * rnbd_srv_answer() - write the data of an answer
 * @op: op, perhaps with a buffer for the answer
 * @rsp: data of the answer
 * @len: length of @rsp, at most the length of the buffer
 *
 * The rest of the buffer is zeroed: all of it is sent, and it may contain another client's data.
 *
 * Context: any.
 */
void rnbd_srv_answer(const struct rtrs_srv_op *op, const void *rsp, size_t len)
{
	if (len)
		sg_copy_from_buffer(op->sgl, op->nents, rsp, len);
	if (op->data_len > len)
		sg_zero_buffer(op->sgl, op->nents, op->data_len - len, len);
}

static void rnbd_srv_log_refusal(const struct rnbd_srv_req *req, const struct rtrs_srv_op *op,
				 int err)
{
	rnbd_srv_err(req->map->sess, "%s: refused operation %u, flags 0x%x, sector %llu, %u bytes, %u of data: %pe\n",
		     req->map->path, req->op, req->flags, (u64)req->sector,
		     req->len, op->data_len, ERR_PTR(err));
}

/*
 * Get the errno for the client. To the client, -ENOENT means that the device isn't open any more,
 * and -ENODEV that the disk was removed and the request can be sent again when the disk is back.
 * So -ENOENT from a backend and -ENODEV from a file become -EIO.
 */
static int rnbd_srv_errno(const struct rnbd_srv_map *map, int err)
{
	if (rnbd_srv_gone(map))
		return -ENODEV;
	return err == -ENOENT || (err == -ENODEV && !map->bdev) ? -EIO : err;
}

/* Check a parked write again: submit it, park it again, or refuse it. */
static void rnbd_srv_begin_parked(struct rnbd_srv_req *req)
{
	struct rtrs_srv_op *op = rtrs_srv_op_from_priv(req);
	struct rnbd_srv_map *map = req->map;
	int err = rnbd_srv_writer_begin(req);

	if (!err)
		map->backend->submit(req);
	if (!err || err == -EAGAIN)
		return;
	rnbd_srv_log_refusal(req, op, err);
	rtrs_srv_complete(op, err);
	percpu_ref_put(&map->ref);
}

/* Check whether a valid request may begin. -EAGAIN: parked, see rnbd_srv_writer_begin(). */
static int rnbd_srv_may_begin(struct rnbd_srv_req *req)
{
	if (likely(READ_ONCE(req->map->written)) || req->op == RNBD_OP_READ ||
	    req->op == RNBD_OP_FLUSH)
		return 0;
	req->run = rnbd_srv_begin_parked;
	return rnbd_srv_writer_begin(req);
}

/**
 * rnbd_srv_io() - start I/O for a client
 * @op: op with an I/O message
 *
 * Return: 0 if @op has been or will be completed; otherwise a negative errno with which the caller
 * has to complete @op.
 */
int rnbd_srv_io(struct rtrs_srv_op *op)
{
	const struct rnbd_msg_io *msg = (const void *)op->msg;
	struct rnbd_srv_req *req = rtrs_srv_op_priv(op);
	struct rnbd_srv_sess *sess = op->priv;
	struct rnbd_srv_map *map;
	int err;

	err = rnbd_srv_parse(req, op);
	if (err) {
		rnbd_srv_err(sess, "I/O message of %u bytes, less than %zu\n",
			     op->msg_len, RNBD_MSG_IO_MIN);
		return err;
	}
	map = rnbd_srv_map_get(sess, le32_to_cpu(msg->device_id));
	if (!map) {
		rnbd_srv_err(sess, "I/O on device id %u, which isn't open\n",
			     le32_to_cpu(msg->device_id));
		return -ENOENT;
	}

	req->map = map;
	err = rnbd_srv_check(req, op);
	if (unlikely(!err && op->dir == DMA_FROM_DEVICE && req->op != RNBD_OP_READ))
		rnbd_srv_answer(op, NULL, 0);
	if (likely(!err))
		err = rnbd_srv_may_begin(req);
	if (likely(!err))
		map->backend->submit(req);
	if (likely(!err || err == -EAGAIN))
		return 0;
	rnbd_srv_log_refusal(req, op, err);
	/* A removed disk has no sectors, so the range check fails. */
	if (rnbd_srv_gone(map))
		err = -ENODEV;
	percpu_ref_put(&map->ref);
	return err;
}

/**
 * rnbd_srv_get_vecs() - describe a request's data by an array of struct bio_vec
 * @req: request with data that has passed rnbd_srv_check(); it may have the array already
 * @op: op of the request
 * @gfp: GFP_NOIO to wait until another request of the mapping releases its array; GFP_NOWAIT not
 *	to wait
 *
 * Return: true, or false if the allocation fails, which it doesn't with GFP_NOIO.
 */
bool rnbd_srv_get_vecs(struct rnbd_srv_req *req, const struct rtrs_srv_op *op, gfp_t gfp)
{
	struct scatterlist *sg;
	u32 i;

	if (req->vecs)
		return true;
	if (likely(op->nents <= RNBD_SRV_INLINE_VECS))
		req->vecs = req->inline_vecs;
	else
		req->vecs = mempool_alloc(&req->map->vecs, gfp);
	if (unlikely(!req->vecs))
		return false;
	for_each_sg(op->sgl, sg, op->nents, i)
		bvec_set_page(&req->vecs[i], sg_page(sg), sg->length, sg->offset);
	return true;
}

/**
 * rnbd_srv_put_vecs() - release a request's array of struct bio_vec
 * @req: request, with or without an array
 *
 * Context: any.
 */
void rnbd_srv_put_vecs(struct rnbd_srv_req *req)
{
	if (req->vecs != req->inline_vecs)
		mempool_free(req->vecs, &req->map->vecs);
	req->vecs = NULL;
}

static void rnbd_srv_count(const struct rnbd_srv_req *req)
{
	const struct rnbd_srv_dev *dev = req->map->dev;
	bool write = req->op == RNBD_OP_WRITE;

	if (!rnbd_srv_has_data(req))
		return;
	rtrs_hist_add(dev->wait, write, req->submitted - req->arrived);
	rtrs_hist_add(dev->disk, write, ktime_get_ns() - req->submitted);
}

/**
 * rnbd_srv_end() - complete a request that was submitted to a backend
 * @req: request; belongs to the transport afterwards
 * @err: 0 or a negative errno; failures are logged
 *
 * The answer precedes the drop of the mapping's reference, so that CLOSE is answered after all I/O.
 *
 * Context: any.
 */
void rnbd_srv_end(struct rnbd_srv_req *req, int err)
{
	struct rnbd_srv_map *map = req->map;

	rnbd_srv_count(req);
	rnbd_srv_put_vecs(req);
	if (unlikely(req->generation)) {
		rnbd_srv_writer_end(req);
		/* From the disk. The client would conclude that a newer mapping has written. */
		if (err == -EBADE)
			err = -EIO;
	}
	if (unlikely(err)) {
		err = rnbd_srv_errno(map, err);
		rnbd_srv_err(map->sess, "%s: operation %u, sector %llu, %u bytes failed: %pe\n",
			     map->path, req->op, (u64)req->sector, req->len, ERR_PTR(err));
	}
	rtrs_srv_complete(rtrs_srv_op_from_priv(req), err);
	percpu_ref_put(&map->ref);
}
