// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: state of a mapping that the client reports when it reopens the mapping: the
 * generation, whether the mapping has written and, in access mode handover, whether a newer mapping
 * has written. From this the server decides whether the mapping may write again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "rnbd-clt.h"

/* Check whether a request changes data. op_is_write() is also true for a flush. */
static bool rnbd_clt_writes(const struct request *rq)
{
	return op_is_write(req_op(rq)) && req_op(rq) != REQ_OP_FLUSH;
}

/**
 * rnbd_clt_fenced() - check whether a request must fail because a newer mapping has written
 * @dev: device in any access mode
 * @rq: request of the device's disk
 *
 * Context: any.
 * Return: true if the request must fail.
 */
bool rnbd_clt_fenced(const struct rnbd_clt_dev *dev, const struct request *rq)
{
	return (READ_ONCE(dev->gen_flags) & RNBD_GEN_FENCED) && rnbd_clt_writes(rq);
}

static void rnbd_clt_note(struct rnbd_clt_dev *dev, u8 flag)
{
	unsigned long flags;
	bool fenced;

	if (READ_ONCE(dev->gen_flags) & flag)
		return;
	spin_lock_irqsave(&dev->sess->lock, flags);
	fenced = flag & ~dev->gen_flags & RNBD_GEN_FENCED;
	WRITE_ONCE(dev->gen_flags, dev->gen_flags | flag);
	spin_unlock_irqrestore(&dev->sess->lock, flags);
	if (fenced)
		pr_warn("%s: %s: a newer mapping has written to it: writes fail until it is unmapped and mapped\n",
			dev->sess->label, dev->path);
}

/**
 * rnbd_clt_note_write() - record that a write has succeeded, or was fenced
 * @dev: device in any access mode
 * @rq: request of the device's disk
 * @err: 0 or the server's errno
 *
 * Context: any, before the request is completed.
 */
void rnbd_clt_note_write(struct rnbd_clt_dev *dev, const struct request *rq, int err)
{
	if (!rnbd_clt_writes(rq))
		return;
	if (!err)
		rnbd_clt_note(dev, RNBD_GEN_WRITER);
	/* In other modes, -EBADE is an error of the server's disk. */
	else if (err == -EBADE && dev->access_mode == RNBD_ACCESS_HANDOVER)
		rnbd_clt_note(dev, RNBD_GEN_FENCED);
}

/**
 * rnbd_clt_set_generation() - set the generation of a mapping
 * @dev: device
 * @generation: generation from the server; 0 turns a closed device into a new mapping
 *
 * Another generation clears the flags, which describe the old one.
 *
 * Context: under the device's open_lock.
 */
void rnbd_clt_set_generation(struct rnbd_clt_dev *dev, u64 generation)
{
	if (dev->generation == generation)
		return;
	dev->generation = generation;
	spin_lock_irq(&dev->sess->lock);
	WRITE_ONCE(dev->gen_flags, 0);
	spin_unlock_irq(&dev->sess->lock);
}

/**
 * rnbd_clt_check_generation() - record the generation that a server reports
 * @dev: device
 * @rsp: the server's answer, with a generation
 *
 * Context: under the device's open_lock.
 * Return: 0, or -EPROTO if the answer has no valid generation.
 */
int rnbd_clt_check_generation(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	if (!rsp->generation) {
		rnbd_clt_dev_err(dev, -EPROTO, "server doesn't report the mapping's generation\n");
		return -EPROTO;
	}
	/* In mode rw, a mapping gets a new generation each time that it is reopened. */
	if (!dev->generation || dev->access_mode == RNBD_ACCESS_RW)
		rnbd_clt_set_generation(dev, le64_to_cpu(rsp->generation));
	if (dev->access_mode == RNBD_ACCESS_HANDOVER && (rsp->gen_flags & RNBD_GEN_FENCED))
		rnbd_clt_note(dev, RNBD_GEN_FENCED);
	return 0;
}
