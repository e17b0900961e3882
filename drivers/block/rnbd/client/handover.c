// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: what it remembers of a device in access mode handover, for a server that has
 * forgotten: the mapping's age, whether it has written, and whether a newer one has. Once that is
 * so, writes fail here as they do at the server, until the device is mapped anew.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "rnbd-clt.h"

/**
 * rnbd_clt_writes() - does a request change data?
 * @rq: request of a disk
 *
 * Return: false if it is a read, or a flush alone.
 */
static bool rnbd_clt_writes(const struct request *rq)
{
	return op_is_write(req_op(rq)) && req_op(rq) != REQ_OP_FLUSH;
}

/**
 * rnbd_clt_fenced() - is a request refused because a newer mapping has written?
 * @dev: its device, in any access mode
 * @rq: request of the device's disk
 *
 * Context: any.
 */
bool rnbd_clt_fenced(const struct rnbd_clt_dev *dev, const struct request *rq)
{
	return (READ_ONCE(dev->handover) & RNBD_HANDOVER_FENCED) && rnbd_clt_writes(rq);
}

static void rnbd_clt_note(struct rnbd_clt_dev *dev, u8 flag)
{
	unsigned long flags;
	bool fenced;

	if (READ_ONCE(dev->handover) & flag)
		return;
	spin_lock_irqsave(&dev->sess->lock, flags);
	fenced = flag & ~dev->handover & RNBD_HANDOVER_FENCED;
	WRITE_ONCE(dev->handover, dev->handover | flag);
	spin_unlock_irqrestore(&dev->sess->lock, flags);
	if (fenced)
		pr_warn("%s: %s: a newer mapping has written to it: writes fail until it is unmapped and mapped\n",
			dev->sess->label, dev->path);
}

/**
 * rnbd_clt_note_write() - remember what the end of a request tells
 * @dev: its device, in access mode handover
 * @rq: request of the device's disk
 * @err: 0 or the server's errno
 *
 * Context: any, before the one who has sent the request learns of its end.
 */
void rnbd_clt_note_write(struct rnbd_clt_dev *dev, const struct request *rq, int err)
{
	if (!rnbd_clt_writes(rq))
		return;
	if (!err)
		rnbd_clt_note(dev, RNBD_HANDOVER_WRITER);
	else if (err == -EBADE)
		rnbd_clt_note(dev, RNBD_HANDOVER_FENCED);
}

/**
 * rnbd_clt_fill_handover() - tell a server what it may have forgotten
 * @msg: message that opens the device; in other modes it ends in front of what is told
 * @dev: device
 *
 * Context: under the device's open_lock.
 */
void rnbd_clt_fill_handover(struct rnbd_msg_open_handover *msg, const struct rnbd_clt_dev *dev)
{
	rnbd_clt_fill_open(&msg->open, dev);
	msg->generation = cpu_to_le64(dev->generation);
	msg->flags = READ_ONCE(dev->handover);
	memset(msg->reserved, 0, sizeof(msg->reserved));
}

/**
 * rnbd_clt_check_handover() - take what a server says of a device in access mode handover
 * @dev: device
 * @rsp: its answer
 *
 * Context: under the device's open_lock.
 * Return: 0, or -EPROTO if it is none of a server that knows the mode.
 */
int rnbd_clt_check_handover(struct rnbd_clt_dev *dev, const struct rnbd_msg_open_rsp *rsp)
{
	if (!rsp->generation) {
		rnbd_clt_dev_err(dev, -EPROTO, "server doesn't tell the mapping's age\n");
		return -EPROTO;
	}
	/* The first one counts: the server may be another one. */
	if (!dev->generation)
		dev->generation = le64_to_cpu(rsp->generation);
	if (rsp->handover & RNBD_HANDOVER_FENCED)
		rnbd_clt_note(dev, RNBD_HANDOVER_FENCED);
	return 0;
}
