// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of hardware, mlx5 by default, for the drivers' use of soft-RoCE: device attributes are
 * lower, and queue pairs that are too large are refused. The limits are set first; emulate=Y applies
 * them to all devices, until it is N again.
 *
 * Meanwhile, each queue pair and completion queue that the drivers create is logged, so that tests
 * can count them.
 */
#include <linux/module.h>

#include "faults.h"

/* This file calls the real function. */
#undef rdma_create_qp

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

/* Size of a send in the queue: a fixed part and its SGEs, rounded up to blocks */
#define RTRS_FAULTS_WR		132
#define RTRS_FAULTS_SGE		16
#define RTRS_FAULTS_BLOCK	64

static unsigned int sq_blocks = 32768;
module_param(sq_blocks, uint, 0644);
MODULE_PARM_DESC(sq_blocks, "Blocks of 64 bytes in the largest send queue (default 32768)");

static unsigned int max_qp_wr = 32768;
module_param(max_qp_wr, uint, 0644);
MODULE_PARM_DESC(max_qp_wr, "Work requests of a queue, as reported (default 32768)");

static unsigned int max_send_sge = 30;
module_param(max_send_sge, uint, 0644);
MODULE_PARM_DESC(max_send_sge, "Entries in a send's list, as reported (default 30)");

static unsigned int max_cqe = 4194303;
module_param(max_cqe, uint, 0644);
MODULE_PARM_DESC(max_cqe, "Entries of a completion queue, as reported (default 4194303)");

static unsigned int vectors = 1;
module_param(vectors, uint, 0644);
MODULE_PARM_DESC(vectors, "Completion vectors of a device (default 1)");

static bool emulate;

/* Original attributes of a device */
struct rtrs_faults_dev {
	int max_qp_wr;
	int max_send_sge;
	int max_cqe;
	int vectors;
};

static struct ib_client rtrs_faults_client;

static int rtrs_faults_add(struct ib_device *dev)
{
	struct rtrs_faults_dev *old = kmalloc(sizeof(*old), GFP_KERNEL);

	if (!old)
		return -ENOMEM;
	old->max_qp_wr = dev->attrs.max_qp_wr;
	old->max_send_sge = dev->attrs.max_send_sge;
	old->max_cqe = dev->attrs.max_cqe;
	old->vectors = dev->num_comp_vectors;
	dev->attrs.max_qp_wr = min_t(int, old->max_qp_wr, max_qp_wr);
	dev->attrs.max_send_sge = min_t(int, old->max_send_sge, max_send_sge);
	dev->attrs.max_cqe = min_t(int, old->max_cqe, max_cqe);
	dev->num_comp_vectors = vectors;
	ib_set_client_data(dev, &rtrs_faults_client, old);
	return 0;
}

static void rtrs_faults_remove(struct ib_device *dev, void *data)
{
	struct rtrs_faults_dev *old = data;

	dev->attrs.max_qp_wr = old->max_qp_wr;
	dev->attrs.max_send_sge = old->max_send_sge;
	dev->attrs.max_cqe = old->max_cqe;
	dev->num_comp_vectors = old->vectors;
	kfree(old);
}

static struct ib_client rtrs_faults_client = {
	.name	= "rtrs-faults",
	.add	= rtrs_faults_add,
	.remove	= rtrs_faults_remove,
};

static int rtrs_faults_emulate(const char *val, const struct kernel_param *kp)
{
	bool on;
	int ret;

	ret = kstrtobool(val, &on);
	if (ret || on == emulate)
		return ret;
	if (on)
		ret = ib_register_client(&rtrs_faults_client);
	else
		ib_unregister_client(&rtrs_faults_client);
	if (!ret)
		emulate = on;
	return ret;
}

static const struct kernel_param_ops rtrs_faults_emulate_ops = {
	.set	= rtrs_faults_emulate,
	.get	= param_get_bool,
};

module_param_cb(emulate, &rtrs_faults_emulate_ops, &emulate, 0644);
MODULE_PARM_DESC(emulate, "Devices have the limits above (default N)");

static int rtrs_faults_check_qp(const struct ib_device *dev,
				const struct ib_qp_cap *cap)
{
	u64 size = ALIGN(RTRS_FAULTS_WR + cap->max_send_sge * RTRS_FAULTS_SGE,
			 RTRS_FAULTS_BLOCK);

	if (cap->max_send_wr > dev->attrs.max_qp_wr ||
	    cap->max_recv_wr > dev->attrs.max_qp_wr ||
	    cap->max_send_sge > dev->attrs.max_send_sge)
		return -EINVAL;
	if (roundup_pow_of_two(cap->max_send_wr * size) / RTRS_FAULTS_BLOCK >
	    sq_blocks)
		return -ENOMEM;
	return 0;
}

/**
 * rtrs_faults_create_qp() - rdma_create_qp() with the limits
 * @module: who calls it
 * @id: as for rdma_create_qp()
 * @pd: as for rdma_create_qp()
 * @attr: as for rdma_create_qp()
 *
 * Return: as rdma_create_qp().
 */
int rtrs_faults_create_qp(const char *module, struct rdma_cm_id *id,
			  struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	/* Some kernels return the rounded values in @attr. */
	struct ib_qp_cap cap = attr->cap;
	int ret = 0;

	if (emulate)
		ret = rtrs_faults_check_qp(id->device, &attr->cap);
	if (!ret)
		ret = rdma_create_qp(id, pd, attr);
	if (!ret)
		rtrs_faults_add_qp(id->qp);
	if (!emulate)
		return ret;
	pr_info("%s: queue pair of %u sends of %u SGEs, %u receives: %d\n",
		module, cap.max_send_wr, cap.max_send_sge, cap.max_recv_wr, ret);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_faults_create_qp);

/**
 * rtrs_faults_alloc_cq() - ib_alloc_cq() with the limits
 * @module: who calls it
 * @dev: as for ib_alloc_cq()
 * @private: as for ib_alloc_cq()
 * @nr_cqe: as for ib_alloc_cq()
 * @vector: as for ib_alloc_cq()
 * @poll: as for ib_alloc_cq()
 *
 * Return: as ib_alloc_cq().
 */
struct ib_cq *rtrs_faults_alloc_cq(const char *module, struct ib_device *dev,
				   void *private, int nr_cqe, int vector,
				   enum ib_poll_context poll)
{
	struct ib_cq *cq;

	if (emulate && (nr_cqe > dev->attrs.max_cqe ||
			vector >= dev->num_comp_vectors))
		cq = ERR_PTR(-EINVAL);
	else
		cq = __ib_alloc_cq(dev, private, nr_cqe, vector, poll, module);
	if (emulate)
		pr_info("%s: completion queue of %d on vector %d of %s: %d\n",
			module, nr_cqe, vector, dev_name(&dev->dev),
			(int)PTR_ERR_OR_ZERO(cq));
	return cq;
}
EXPORT_SYMBOL_GPL(rtrs_faults_alloc_cq);

/**
 * rtrs_faults_device_exit() - restore the attributes of all devices
 */
void rtrs_faults_device_exit(void)
{
	if (emulate)
		ib_unregister_client(&rtrs_faults_client);
}
