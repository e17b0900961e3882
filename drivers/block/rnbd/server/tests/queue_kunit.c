// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of requests that may sleep.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/delay.h>

#include "../rnbd-srv.h"

#define NR_REQS		(2 * RNBD_SRV_MAP_WORKERS + 1)

static atomic_t nr_begun;
static atomic_t nr_ended;
static DECLARE_COMPLETION(go_on);

static void hang(struct rnbd_srv_req *req)
{
	atomic_inc(&nr_begun);
	wait_for_completion(&go_on);
	atomic_inc(&nr_ended);
}

static int wait_until(atomic_t *counter, int nr)
{
	int i;

	for (i = 0; i < 1000 && atomic_read(counter) != nr; i++)
		msleep(20);
	return atomic_read(counter);
}

static void mapping_occupies_few_workers(struct kunit *test)
{
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	struct rnbd_srv_map *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rnbd_srv_req *reqs = kunit_kcalloc(test, NR_REQS, sizeof(*reqs), GFP_KERNEL);
	struct workqueue_struct *wq;
	unsigned int i;

	KUNIT_ASSERT_TRUE(test, map && other && reqs);
	wq = alloc_workqueue("rnbd_srv_test", WQ_UNBOUND, WQ_MAX_ACTIVE);
	KUNIT_ASSERT_NOT_NULL(test, wq);
	rnbd_srv_queue_init(&map->queue, wq);
	rnbd_srv_queue_init(&other->queue, wq);
	reinit_completion(&go_on);
	atomic_set(&nr_begun, 0);
	atomic_set(&nr_ended, 0);
	for (i = 0; i < NR_REQS; i++) {
		reqs[i].map = i < NR_REQS - 1 ? map : other;
		reqs[i].run = hang;
		rnbd_srv_queue_add(&reqs[i]);
	}
	/* The request of the other mapping begins, although it was queued last. */
	KUNIT_EXPECT_EQ(test, wait_until(&nr_begun, RNBD_SRV_MAP_WORKERS + 1),
			RNBD_SRV_MAP_WORKERS + 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&other->queue.waiting));
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&map->queue.waiting, struct rnbd_srv_req,
						   queued), &reqs[RNBD_SRV_MAP_WORKERS]);
	complete_all(&go_on);
	KUNIT_EXPECT_EQ(test, wait_until(&nr_ended, NR_REQS), NR_REQS);
	rnbd_srv_queue_exit(&map->queue);
	rnbd_srv_queue_exit(&other->queue);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(map->queue.busy, RNBD_SRV_MAP_WORKERS));
	/* An idle worker runs the next request. */
	reqs[0].run = hang;
	rnbd_srv_queue_add(&reqs[0]);
	KUNIT_EXPECT_EQ(test, wait_until(&nr_ended, NR_REQS + 1), NR_REQS + 1);
	rnbd_srv_queue_exit(&map->queue);
	destroy_workqueue(wq);
}

static struct kunit_case rnbd_srv_queue_cases[] = {
	KUNIT_CASE(mapping_occupies_few_workers),
	{}
};

static struct kunit_suite rnbd_srv_queue_suite = {
	.name = "rnbd-server-queue",
	.test_cases = rnbd_srv_queue_cases,
};

kunit_test_suite(rnbd_srv_queue_suite);
