// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: requests that may sleep. A session has a workqueue for its disks, with a rescuer
 * thread, and another for its files. Each mapping has its own list of requests, and can occupy a
 * few workers of its workqueue. So a disk that hangs leaves workers for the session's other disks,
 * and a mapping needs no thread of its own.
 */
#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "rnbd-srv.h"

/* Requests that a worker runs before it is requeued behind the session's other work */
#define RNBD_SRV_WORKER_BATCH	64

/* Get the next request for a worker. If there is none, the worker becomes idle. */
static struct rnbd_srv_req *rnbd_srv_queue_next(struct rnbd_srv_queue *queue, unsigned int worker)
{
	struct rnbd_srv_req *req;

	spin_lock_irq(&queue->lock);
	req = list_first_entry_or_null(&queue->waiting, struct rnbd_srv_req, queued);
	if (req)
		list_del(&req->queued);
	else
		__clear_bit(worker, queue->busy);
	spin_unlock_irq(&queue->lock);
	return req;
}

static void rnbd_srv_queue_work(struct work_struct *work)
{
	struct rnbd_srv_worker *worker = container_of(work, struct rnbd_srv_worker, work);
	struct rnbd_srv_queue *queue = worker->queue;
	struct rnbd_srv_req *req;
	unsigned int nr;

	for (nr = 0; nr < RNBD_SRV_WORKER_BATCH; nr++) {
		req = rnbd_srv_queue_next(queue, worker - queue->workers);
		if (!req)
			return;
		req->run(req);
		cond_resched();
	}
	/* If the rescuer runs this, it serves other mappings first. */
	queue_work(queue->wq, work);
}

/**
 * rnbd_srv_queue_init() - prepare a mapping's list of requests
 * @queue: queue to initialize
 * @wq: workqueue of the mapping's session
 */
void rnbd_srv_queue_init(struct rnbd_srv_queue *queue, struct workqueue_struct *wq)
{
	unsigned int i;

	queue->wq = wq;
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->waiting);
	for (i = 0; i < RNBD_SRV_MAP_WORKERS; i++) {
		queue->workers[i].queue = queue;
		INIT_WORK(&queue->workers[i].work, rnbd_srv_queue_work);
	}
}

/**
 * rnbd_srv_queue_exit() - wait until no worker uses a mapping
 * @queue: queue of a mapping without requests
 *
 * Context: process, may sleep.
 */
void rnbd_srv_queue_exit(struct rnbd_srv_queue *queue)
{
	unsigned int i;

	/* Cancel, not flush: pending work may have to wait for other mappings' workers. */
	for (i = 0; i < RNBD_SRV_MAP_WORKERS; i++)
		if (cancel_work_sync(&queue->workers[i].work))
			__clear_bit(i, queue->busy);
}

/**
 * rnbd_srv_queue_add() - queue a request, for a worker to call its &rnbd_srv_req.run
 * @req: request with its mapping; @run may end the request
 *
 * Context: any.
 */
void rnbd_srv_queue_add(struct rnbd_srv_req *req)
{
	struct rnbd_srv_queue *queue = &req->map->queue;
	unsigned long flags;
	unsigned int idle;

	spin_lock_irqsave(&queue->lock, flags);
	list_add_tail(&req->queued, &queue->waiting);
	idle = find_first_zero_bit(queue->busy, RNBD_SRV_MAP_WORKERS);
	if (idle < RNBD_SRV_MAP_WORKERS) {
		__set_bit(idle, queue->busy);
		queue_work(queue->wq, &queue->workers[idle].work);
	}
	spin_unlock_irqrestore(&queue->lock, flags);
}
