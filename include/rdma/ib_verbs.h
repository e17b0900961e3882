/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workarounds for device drivers of older kernels, in <rdma/ib_verbs.h> */
#ifndef COMPAT_RDMA_IB_VERBS_H
#define COMPAT_RDMA_IB_VERBS_H

#include_next <rdma/ib_verbs.h>
#include <linux/interrupt.h>
#include <linux/smp.h>

/*
 * Before 6.4, rdma_rxe reports completions from a tasklet of the completion queue, and frees the
 * queue without waiting for the tasklet ("RDMA/rxe: Remove tasklet from rxe_cq.c"). Our work item
 * may poll the last completion and free the queue while the tasklet that has scheduled it is still
 * finishing; the tasklet then clears a bit in freed memory. To prevent this, schedule a tasklet on
 * each CPU and wait for it: the tasklets of a CPU run one after the other.
 */
#ifdef COMPAT_RXE_TASKLET
static inline void compat_no_tasklet(struct tasklet_struct *t)
{
}

static inline void compat_schedule_tasklet(void *tasklet)
{
	tasklet_schedule(tasklet);
}

static inline void compat_free_cq(struct ib_cq *cq)
{
	struct tasklet_struct tasklet;
	int cpu;

	if (cq->device->ops.driver_id == RDMA_DRIVER_RXE) {
		tasklet_setup(&tasklet, compat_no_tasklet);
		for_each_online_cpu(cpu) {
			smp_call_function_single(cpu, compat_schedule_tasklet,
						 &tasklet, true);
			tasklet_kill(&tasklet);
		}
	}
	ib_free_cq(cq);
}

#define ib_free_cq compat_free_cq
#endif

#endif /* COMPAT_RDMA_IB_VERBS_H */
