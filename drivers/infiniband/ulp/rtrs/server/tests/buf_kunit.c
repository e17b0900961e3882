// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of memory for the data of requests: what a request gets, which request waits when
 * memory is short, and that all memory is released.
 */
#include <kunit/test.h>

#include "../srv.h"

#define MAX_IOS		8
#define SLOT_SIZE	4096

/*
 * A session with two paths that have slots, a session of another listener with one path, and
 * requests without memory.
 */
struct buf_test {
	struct rtrs_srv srv, other_srv;
	struct rtrs_srv_sess sess, other;
	struct rtrs_srv_path path[3];
	struct rtrs_srv_con con[3];
	struct rtrs_srv_io ios[MAX_IOS];
	struct ratelimit_state log;
	u64 charged, before;
	u32 nr_sess;
	struct workqueue_struct *pull_wq;
};

/* Replaces the work that continues requests; the tests continue them directly. */
static void do_nothing(struct work_struct *work)
{
}

static void init_sess(struct rtrs_srv *srv, struct rtrs_srv_sess *sess)
{
	sess->srv = srv;
	mutex_init(&sess->up_lock);
	rtrs_srv_bufs_init(sess);
	INIT_DELAYED_WORK(&sess->bufs.work, do_nothing);
}

static int buf_init(struct kunit *test)
{
	struct buf_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	if (!t)
		return -ENOMEM;
	/* The tests run before the module has created its workqueues. */
	t->pull_wq = rtrs_srv_pull_wq;
	rtrs_srv_pull_wq = system_dfl_wq;
	t->before = rtrs_srv_mem_total();
	t->nr_sess = atomic_read(&rtrs_srv_nr_sess);
	atomic_set(&rtrs_srv_nr_sess, 1);
	/* Suppresses the messages about a lack of memory. */
	ratelimit_state_init(&t->log, 10000 * HZ, 0);
	init_sess(&t->srv, &t->sess);
	init_sess(&t->other_srv, &t->other);
	for (i = 0; i < 3; i++) {
		t->path[i].sess = i == 2 ? &t->other : &t->sess;
		t->path[i].state = RTRS_SRV_CONNECTED;
		t->path[i].path.log = &t->log;
		t->path[i].path.features = RTRS_FEATURE_SLOTS;
		t->path[i].mem.room = SLOT_SIZE;
		t->path[i].mem.max_page = SLOT_SIZE;
		t->path[i].mem.max_io = RTRS_SRV_MAX_IO;
		t->con[i].path = &t->path[i];
	}
	for (i = 0; i < MAX_IOS; i++) {
		INIT_LIST_HEAD(&t->ios[i].pending);
		t->ios[i].con = &t->con[0];
	}
	t->sess.queue_depth = MAX_IOS;
	t->path[0].ios.mem = t->ios;
	t->path[0].ios.size = sizeof(*t->ios);
	test->priv = t;
	return rtrs_srv_bufs_setup(&t->path[0]);
}

static void buf_exit(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	if (!t)
		return;
	for (i = 0; i < MAX_IOS; i++)
		rtrs_srv_io_put_data(&t->ios[i]);
	rtrs_srv_bufs_forget_pages(&t->path[0]);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->sess.bufs.used), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->other.bufs.used), 0);
	rtrs_srv_bufs_free(&t->sess);
	rtrs_srv_bufs_free(&t->other);
	rtrs_srv_mem_uncharge(&t->sess.charged);
	rtrs_srv_mem_uncharge(&t->other.charged);
	rtrs_srv_mem_uncharge(&t->charged);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), t->before);
	flush_work(&rtrs_srv_buf_chooser);
	rtrs_srv_pull_wq = t->pull_wq;
	atomic_set(&rtrs_srv_nr_sess, t->nr_sess);
}

/* Allocates memory for request @i. */
static int get(struct buf_test *t, u32 i, u32 bytes)
{
	t->ios[i].op.data_len = bytes;
	return rtrs_srv_buf_get(&t->ios[i]);
}

static void put(struct buf_test *t, u32 i)
{
	rtrs_srv_io_put_data(&t->ios[i]);
}

/*
 * Allocates memory for a waiting request, as the session's work does, after the next session has
 * been selected.
 */
static struct rtrs_srv_io *next(struct rtrs_srv_sess *sess)
{
	flush_work(&rtrs_srv_buf_chooser);
	return rtrs_srv_bufs_next(sess);
}

/* Uses up the memory for all clients. */
static void use_up(struct buf_test *t)
{
	u64 bytes;

	for (bytes = 1ULL << 50; bytes; bytes >>= 1)
		rtrs_srv_mem_charge(&t->charged, bytes, "test", &t->log);
}

/* Expects @nents entries, all except the last one of @piece bytes. */
static void expect_list(struct kunit *test, const struct rtrs_srv_io *io, u32 nents, u32 piece)
{
	u32 i, left = io->op.data_len;

	KUNIT_ASSERT_EQ(test, io->op.nents, nents);
	for (i = 0; i < nents; i++) {
		const struct scatterlist *sg = &io->op.sgl[i];

		KUNIT_EXPECT_EQ(test, sg->offset, 0);
		KUNIT_EXPECT_EQ(test, sg->length, min(left, piece));
		left -= sg->length;
	}
	KUNIT_EXPECT_EQ(test, left, 0);
}

static void expect_reserve(struct kunit *test, u32 i, u32 nents)
{
	struct buf_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, t->ios[i].buf);
	KUNIT_EXPECT_TRUE(test, t->ios[i].buf->reserve);
	KUNIT_EXPECT_TRUE(test, t->sess.bufs.reserve_used);
	expect_list(test, &t->ios[i], nents, PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER);
}

static void expect_own(struct kunit *test, u32 i)
{
	struct buf_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, t->ios[i].buf);
	KUNIT_EXPECT_FALSE(test, t->ios[i].buf->reserve);
}

static void small_data_have_a_page(struct kunit *test)
{
	static const u32 sizes[] = { 1, 512, SLOT_SIZE };
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, get(t, i, sizes[i]), 0);
		KUNIT_ASSERT_NOT_NULL(test, t->ios[i].page);
		KUNIT_EXPECT_PTR_EQ(test, sg_page(t->ios[i].op.sgl), t->ios[i].page);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[i].buf, NULL);
		expect_list(test, &t->ios[i], 1, SLOT_SIZE);
		KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + (i + 1) * PAGE_SIZE);
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		put(t, i);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[i].page, NULL);
	}
	KUNIT_EXPECT_FALSE(test, t->sess.bufs.reserve_used);
	rtrs_srv_bufs_forget_pages(&t->path[0]);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

static void page_stays_with_its_slot(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();
	struct page *page;
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, get(t, 0, SLOT_SIZE), 0);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, NULL);
		if (i)
			KUNIT_EXPECT_PTR_EQ(test, t->ios[0].page, page);
		page = t->ios[0].page;
		/* The page is not freed while a request uses it. */
		rtrs_srv_bufs_age(&t->path[0]);
		rtrs_srv_bufs_age(&t->path[0]);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[0].page, page);
		put(t, 0);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, page);
		KUNIT_EXPECT_TRUE(test, t->path[0].ios.kept);
		KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + PAGE_SIZE);
		/* The page has been used since the last call. */
		rtrs_srv_bufs_age(&t->path[0]);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, page);
	}
	rtrs_srv_bufs_age(&t->path[0]);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, NULL);
	KUNIT_EXPECT_FALSE(test, t->path[0].ios.kept);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

static void page_that_others_use_is_not_kept(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();
	struct page *page;

	KUNIT_ASSERT_EQ(test, get(t, 0, SLOT_SIZE), 0);
	page = t->ios[0].page;
	get_page(page);
	put(t, 0);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, NULL);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	put_page(page);
}

static void page_is_not_kept_when_memory_is_short(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total;

	use_up(t);
	total = rtrs_srv_mem_total();
	KUNIT_ASSERT_EQ(test, get(t, 0, SLOT_SIZE), 0);
	put(t, 0);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].kept, NULL);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

static void page_that_is_too_small_is_replaced(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();

	t->path[0].mem.max_page = SZ_64K;
	KUNIT_ASSERT_EQ(test, get(t, 0, PAGE_SIZE), 0);
	put(t, 0);
	KUNIT_ASSERT_EQ(test, get(t, 0, SZ_64K), 0);
	expect_list(test, &t->ios[0], 1, SZ_64K);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + SZ_64K);
	put(t, 0);
	/* A page larger than necessary is reused. */
	KUNIT_ASSERT_EQ(test, get(t, 0, PAGE_SIZE), 0);
	expect_list(test, &t->ios[0], 1, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + SZ_64K);
	put(t, 0);
}

static void data_of_a_large_slot_are_in_one_piece(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();

	t->path[0].mem.max_page = RTRS_MAX_SLOT_SIZE;
	KUNIT_ASSERT_EQ(test, get(t, 0, RTRS_MAX_SLOT_SIZE), 0);
	expect_list(test, &t->ios[0], 1, RTRS_MAX_SLOT_SIZE);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + RTRS_MAX_SLOT_SIZE);
	put(t, 0);
	rtrs_srv_bufs_forget_pages(&t->path[0]);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

static const struct large_case {
	const char *desc;
	u32 bytes, nents, allocated;
} large_cases[] = {
	{ "a byte more than a slot", SLOT_SIZE + 1, 1, SZ_8K },
	{ "33 KiB", 33 * SZ_1K, 1, SZ_64K },
	{ "64 KiB", SZ_64K, 1, SZ_64K },
	{ "64 KiB and a byte", SZ_64K + 1, 2, SZ_128K },
	{ "97 KiB", 97 * SZ_1K, 2, SZ_128K },
	{ "200 KiB", 200 * SZ_1K, 4, SZ_256K },
	{ "1 MiB less a byte", SZ_1M - 1, 16, SZ_1M },
	{ "1 MiB", SZ_1M, 16, SZ_1M },
};

KUNIT_ARRAY_PARAM_DESC(large_cases, large_cases, desc);

/* The accounted size is the allocated size, in powers of two. */
static void large_data_have_pieces_of_64_kib(struct kunit *test)
{
	const struct large_case *c = test->param_value;
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total(), allocated = 0;
	u32 i;

	KUNIT_ASSERT_EQ(test, get(t, 0, c->bytes), 0);
	expect_own(test, 0);
	expect_list(test, &t->ios[0], c->nents, SZ_64K);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].page, NULL);
	for (i = 0; i < c->nents; i++)
		allocated += page_size(sg_page(&t->ios[0].op.sgl[i]));
	KUNIT_EXPECT_EQ(test, allocated, c->allocated);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->sess.bufs.used), c->allocated);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + c->allocated);
	put(t, 0);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].buf, NULL);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->sess.bufs.used), 0);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

/* Larger than the page allocator's maximum, to simulate fragmented memory. */
#define NO_PAGE		(2 * SZ_4M)

static void data_of_a_large_slot_fall_back_to_single_pages(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 total = rtrs_srv_mem_total();

	t->path[0].mem.max_page = NO_PAGE;
	t->sess.bufs.reserve_used = true;
	KUNIT_ASSERT_EQ(test, get(t, 0, NO_PAGE), 0);
	expect_list(test, &t->ios[0], NO_PAGE / PAGE_SIZE, PAGE_SIZE);
	expect_own(test, 0);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[0].page, NULL);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->sess.bufs.used), NO_PAGE);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total + NO_PAGE);
	put(t, 0);
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
	/* Fetching into this many entries would need too many work requests. */
	t->ios[1].fetch = true;
	KUNIT_EXPECT_EQ(test, get(t, 1, NO_PAGE), -EINPROGRESS);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[1]);
	t->sess.bufs.reserve_used = false;
}

/* The first request uses the whole list of entries, later ones only a part. */
static void reserve_is_for_when_memory_is_used_up(struct kunit *test)
{
	static const u32 sizes[] = { SZ_1M, SLOT_SIZE + 1, SZ_16K, SZ_16K + 1, SZ_1M };
	struct buf_test *t = test->priv;
	u64 total;
	u32 i;

	use_up(t);
	total = rtrs_srv_mem_total();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, get(t, i, sizes[i]), 0);
		expect_reserve(test, i,
			       DIV_ROUND_UP(sizes[i], PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER));
		put(t, i);
		KUNIT_EXPECT_FALSE(test, t->sess.bufs.reserve_used);
	}
	KUNIT_EXPECT_EQ(test, rtrs_srv_mem_total(), total);
}

static void requests_wait_and_go_on_in_order(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	use_up(t);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_1M), 0);
	for (i = 1; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, get(t, i, SZ_16K), -EINPROGRESS);
		KUNIT_EXPECT_PTR_EQ(test, t->ios[i].buf, NULL);
	}
	for (i = 1; i < 4; i++) {
		/* The attempt fails, and the request remains the first one. */
		KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
		put(t, i - 1);
		KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[i]);
		KUNIT_EXPECT_TRUE(test, list_empty(&t->ios[i].pending));
		expect_reserve(test, i,
			       DIV_ROUND_UP(SZ_16K, PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER));
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&t->sess.bufs.large));
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
}

static void large_request_does_not_overtake_those_that_wait(struct kunit *test)
{
	struct buf_test *t = test->priv;

	use_up(t);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_1M), -EINPROGRESS);
	rtrs_srv_mem_uncharge(&t->charged);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_16K), -EINPROGRESS);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[1]);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[2]);
	expect_own(test, 1);
	expect_own(test, 2);
	expect_reserve(test, 0, DIV_ROUND_UP(SZ_16K, PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER));
}

static void reserve_is_for_who_waits(struct kunit *test)
{
	struct buf_test *t = test->priv;

	use_up(t);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_16K), -EINPROGRESS);
	put(t, 0);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_16K), -EINPROGRESS);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[1]);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	put(t, 1);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[2]);
}

static void small_request_does_not_wait(struct kunit *test)
{
	struct buf_test *t = test->priv;

	use_up(t);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_16K), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 2, SLOT_SIZE), 0);
	KUNIT_EXPECT_NOT_NULL(test, t->ios[2].page);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[1]);
}

/* Requests 2 and 3 are small and get no page; requests 0, 1 and 4 are large. */
static void small_requests_wait_in_front(struct kunit *test)
{
	struct buf_test *t = test->priv;

	use_up(t);
	t->sess.bufs.reserve_used = true;
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_16K), -EINPROGRESS);
	t->path[0].mem.max_page = NO_PAGE;
	t->ios[2].fetch = true;
	t->ios[3].fetch = true;
	KUNIT_EXPECT_EQ(test, get(t, 2, NO_PAGE), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 3, NO_PAGE), -EINPROGRESS);
	t->path[0].mem.max_page = SLOT_SIZE;
	KUNIT_EXPECT_EQ(test, get(t, 4, SZ_16K), -EINPROGRESS);
	t->path[0].mem.max_page = NO_PAGE;
	/* The attempt fails, and the request remains the first one. */
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	t->ios[2].fetch = false;
	t->ios[3].fetch = false;
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[2]);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[3]);
	t->path[0].mem.max_page = SLOT_SIZE;
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	rtrs_srv_mem_uncharge(&t->charged);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[0]);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[1]);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[4]);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	t->sess.bufs.reserve_used = false;
}

static void requests_of_a_closing_path_are_forgotten(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	use_up(t);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), 0);
	for (i = 1; i < 6; i++) {
		t->ios[i].con = &t->con[i & 1];
		KUNIT_EXPECT_EQ(test, get(t, i, SZ_16K), -EINPROGRESS);
	}
	for (i = 1; i < 6; i += 2) {
		KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[1]), &t->ios[i]);
		KUNIT_EXPECT_TRUE(test, list_empty(&t->ios[i].pending));
	}
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[1]), NULL);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[2]);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[4]);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), NULL);
}

/* Requests of a closing path are dropped, and use no memory that others may need. */
static void requests_of_a_closing_path_get_no_memory(struct kunit *test)
{
	struct buf_test *t = test->priv;

	use_up(t);
	t->ios[1].con = &t->con[1];
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_16K), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_16K), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_16K), -EINPROGRESS);
	put(t, 0);
	t->path[1].state = RTRS_SRV_CLOSING;
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), &t->ios[1]);
	KUNIT_EXPECT_PTR_EQ(test, t->ios[1].buf, NULL);
	KUNIT_EXPECT_FALSE(test, t->sess.bufs.reserve_used);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[2]);
	expect_reserve(test, 2, DIV_ROUND_UP(SZ_16K, PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER));
}

/* Uses up the memory for all clients except @bytes. */
static void leave(struct buf_test *t, u64 bytes)
{
	u64 all;

	/* Earlier requests may have left less than a batch in the counts of the CPUs. */
	percpu_counter_set(&rtrs_srv_mem_bufs, percpu_counter_sum(&rtrs_srv_mem_bufs));
	rtrs_srv_mem_uncharge(&t->charged);
	use_up(t);
	all = t->charged;
	rtrs_srv_mem_uncharge(&t->charged);
	rtrs_srv_mem_charge(&t->charged, all - bytes, "test", &t->log);
}

static void session_gets_its_share(struct kunit *test)
{
	struct buf_test *t = test->priv;

	/* Half of the memory is divided into shares, so each session's share is a quarter. */
	atomic_set(&rtrs_srv_nr_sess, 2);
	leave(t, SZ_4M);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_1M), 0);
	expect_own(test, 0);
	expect_own(test, 1);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_16K), 0);
	expect_reserve(test, 2, 1);
	KUNIT_EXPECT_EQ(test, get(t, 3, SZ_16K), -EINPROGRESS);
	put(t, 0);
	put(t, 1);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[3]);
	expect_own(test, 3);
	KUNIT_EXPECT_EQ(test, get(t, 4, SZ_1M - SZ_64K), 0);
	expect_own(test, 4);
	KUNIT_EXPECT_EQ(test, get(t, 5, SZ_1M), 0);
	expect_own(test, 5);
	KUNIT_EXPECT_EQ(test, get(t, 6, SZ_64K), -EINPROGRESS);
	put(t, 5);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), &t->ios[6]);
	expect_own(test, 6);
}

/* The last three requests belong to the other session; there are 64 sessions. */
static void two_of_many(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	KUNIT_ASSERT_EQ(test, rtrs_srv_bufs_setup(&t->path[2]), 0);
	for (i = 5; i < MAX_IOS; i++)
		t->ios[i].con = &t->con[2];
	atomic_set(&rtrs_srv_nr_sess, 64);
}

static void share_is_not_waited_for(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	two_of_many(test);
	leave(t, SZ_2M);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_1M), -EINPROGRESS);
	for (i = 5; i < 7; i++) {
		KUNIT_EXPECT_EQ(test, get(t, i, SZ_8K), 0);
		expect_own(test, i);
	}
	KUNIT_EXPECT_EQ(test, get(t, 7, SZ_8K), 0);
	KUNIT_ASSERT_NOT_NULL(test, t->ios[7].buf);
	KUNIT_EXPECT_TRUE(test, t->ios[7].buf->reserve);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[2]);
}

/*
 * Two of 64 sessions. The shares are too small for any request, and the common half of the memory
 * is sufficient for one request.
 */
static void memory_beyond_shares_goes_in_turn(struct kunit *test)
{
	struct buf_test *t = test->priv;
	struct rtrs_srv_sess *other = &t->other;

	two_of_many(test);
	leave(t, SZ_2M);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_1M), 0);
	expect_own(test, 0);
	KUNIT_EXPECT_EQ(test, get(t, 1, SZ_1M), 0);
	expect_reserve(test, 1, DIV_ROUND_UP(SZ_1M, PAGE_SIZE << RTRS_SRV_BUF_MIN_ORDER));
	KUNIT_EXPECT_EQ(test, get(t, 6, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 7, SZ_1M), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_1M), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 3, SZ_1M), -EINPROGRESS);
	/* The session that releases memory does not get it back next. */
	put(t, 0);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	KUNIT_EXPECT_EQ(test, get(t, 0, SZ_1M), -EINPROGRESS);
	KUNIT_ASSERT_PTR_EQ(test, next(other), &t->ios[7]);
	expect_own(test, 7);
	KUNIT_EXPECT_PTR_EQ(test, next(other), NULL);
	KUNIT_EXPECT_EQ(test, get(t, 5, SZ_1M), -EINPROGRESS);
	put(t, 7);
	KUNIT_EXPECT_PTR_EQ(test, next(other), NULL);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[2]);
	expect_own(test, 2);
	/* Each session is served once in turn. */
	put(t, 2);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	KUNIT_ASSERT_PTR_EQ(test, next(other), &t->ios[5]);
	/* A session with nothing to allocate passes its turn on. */
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	KUNIT_EXPECT_PTR_EQ(test, next(other), NULL);
	KUNIT_EXPECT_EQ(test, get(t, 7, SZ_1M), -EINPROGRESS);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[3]);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_bufs_forget(&t->path[0]), &t->ios[0]);
	put(t, 5);
	KUNIT_EXPECT_PTR_EQ(test, next(other), NULL);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	KUNIT_EXPECT_PTR_EQ(test, next(other), &t->ios[7]);
}

/* The first session uses memory for two requests beyond its share, and is the first to wait. */
static void who_has_least_is_next(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u32 i;

	two_of_many(test);
	leave(t, SZ_4M);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, get(t, i, SZ_1M), 0);
		expect_own(test, i);
	}
	KUNIT_EXPECT_EQ(test, get(t, 2, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 3, SZ_1M), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, get(t, 6, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, get(t, 7, SZ_1M), -EINPROGRESS);
	put(t, 0);
	KUNIT_EXPECT_PTR_EQ(test, next(&t->sess), NULL);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->other), &t->ios[7]);
	expect_own(test, 7);
	put(t, 1);
	KUNIT_ASSERT_PTR_EQ(test, next(&t->sess), &t->ios[3]);
	expect_own(test, 3);
}

static const struct copy_case {
	const char *desc;
	u32 off, bytes, max_page;
	bool fragmented;
} copy_cases[] = {
	{ "a page", 0, PAGE_SIZE, SLOT_SIZE },
	{ "a part of a page", 0, 512, SLOT_SIZE },
	{ "a page from a slot that is not aligned", 512, PAGE_SIZE, SLOT_SIZE },
	{ "a buffer", 0, SZ_128K, 0 },
	{ "a buffer that ends within a page", 0, SZ_64K + PAGE_SIZE + 1, 0 },
	{ "a buffer, not aligned", 8, 3 * PAGE_SIZE, 0 },
	{ "the reserve, in many pieces", 0, SZ_64K + 5, 0, true },
};

KUNIT_ARRAY_PARAM_DESC(copy_cases, copy_cases, desc);

/* Data are copied to and from the chunk, and nothing else is changed. */
static void data_are_copied(struct kunit *test)
{
	const struct copy_case *c = test->param_value;
	struct buf_test *t = test->priv;
	struct rtrs_srv_io *io = &t->ios[0];
	u8 *mem = kvmalloc(2 * SZ_128K, GFP_KERNEL), *data;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	data = mem + SZ_128K;
	for (i = 0; i < SZ_128K; i++)
		data[i] = i ^ i >> 8 ^ 0x55;
	memset(mem, 0, SZ_128K);
	memcpy(mem + c->off, data, c->bytes);
	if (c->fragmented)
		use_up(t);
	t->path[0].mem.max_page = c->max_page;
	io->chunk = mem + c->off;
	io->op.dir = DMA_TO_DEVICE;
	KUNIT_EXPECT_EQ(test, get(t, 0, c->bytes), 0);
	rtrs_srv_buf_copy(io);
	memset(mem, 0, SZ_128K);
	io->op.dir = DMA_FROM_DEVICE;
	rtrs_srv_buf_copy(io);
	KUNIT_EXPECT_EQ(test, memcmp(io->chunk, data, c->bytes), 0);
	for (i = 0; i < c->off; i++)
		KUNIT_EXPECT_EQ(test, mem[i], 0);
	for (i = c->off + c->bytes; i < SZ_128K; i++)
		KUNIT_EXPECT_EQ(test, mem[i], 0);
	put(t, 0);
	kvfree(mem);
}

static void session_has_one_reserve(struct kunit *test)
{
	struct buf_test *t = test->priv;
	struct rtrs_srv_buf *reserve = t->sess.bufs.reserve;

	KUNIT_EXPECT_EQ(test, t->sess.charged, RTRS_SRV_MAX_IO);
	KUNIT_EXPECT_EQ(test, rtrs_srv_bufs_setup(&t->path[1]), 0);
	KUNIT_EXPECT_PTR_EQ(test, t->sess.bufs.reserve, reserve);
	KUNIT_EXPECT_EQ(test, t->sess.charged, RTRS_SRV_MAX_IO);
}

static void session_without_slots_has_none(struct kunit *test)
{
	struct buf_test *t = test->priv;

	rtrs_srv_bufs_free(&t->sess);
	rtrs_srv_mem_uncharge(&t->sess.charged);
	t->path[0].path.features = 0;
	KUNIT_EXPECT_EQ(test, rtrs_srv_bufs_setup(&t->path[0]), 0);
	KUNIT_EXPECT_PTR_EQ(test, t->sess.bufs.reserve, NULL);
	KUNIT_EXPECT_EQ(test, t->sess.charged, 0);
}

/* The data of a request may be as long as a chunk. */
static void session_without_slots_has_a_reserve_for_copies(struct kunit *test)
{
	struct buf_test *t = test->priv;

	rtrs_srv_bufs_free(&t->sess);
	rtrs_srv_mem_uncharge(&t->sess.charged);
	t->sess.bufs.charged = false;
	t->path[0].path.features = 0;
	t->sess.always_invalidate = true;
	t->sess.chunk_size = SZ_2M;
	KUNIT_ASSERT_EQ(test, rtrs_srv_bufs_setup(&t->path[0]), 0);
	KUNIT_EXPECT_EQ(test, t->sess.bufs.reserve->bytes, SZ_2M);
	KUNIT_EXPECT_EQ(test, t->sess.charged, SZ_2M);
}

static void slots_are_within_the_limit(struct kunit *test)
{
	struct buf_test *t = test->priv;
	u64 before = t->sess.charged;

	ratelimit_state_init(&t->sess.log, 10000 * HZ, 0);
	use_up(t);
	KUNIT_EXPECT_EQ(test, rtrs_srv_slots_alloc(&t->sess), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, t->sess.slots.slot, NULL);
	KUNIT_EXPECT_EQ(test, t->sess.charged, before);
	rtrs_srv_mem_uncharge(&t->charged);
	KUNIT_EXPECT_EQ(test, rtrs_srv_slots_alloc(&t->sess), 0);
	/* The second call does nothing, as the slots exist. */
	KUNIT_EXPECT_EQ(test, rtrs_srv_slots_alloc(&t->sess), 0);
	KUNIT_EXPECT_EQ(test, t->sess.charged, before + MAX_IOS * sizeof(struct rtrs_srv_slot));
	kvfree(t->sess.slots.slot);
	t->sess.slots.slot = NULL;
}

static void reserve_is_within_the_limit(struct kunit *test)
{
	struct buf_test *t = test->priv;

	rtrs_srv_bufs_free(&t->sess);
	rtrs_srv_mem_uncharge(&t->sess.charged);
	t->sess.bufs.charged = false;
	use_up(t);
	KUNIT_EXPECT_EQ(test, rtrs_srv_bufs_setup(&t->path[0]), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, t->sess.bufs.reserve, NULL);
	KUNIT_EXPECT_EQ(test, t->sess.charged, 0);
}

static struct kunit_case rtrs_srv_buf_cases[] = {
	KUNIT_CASE(small_data_have_a_page),
	KUNIT_CASE(page_stays_with_its_slot),
	KUNIT_CASE(page_that_others_use_is_not_kept),
	KUNIT_CASE(page_is_not_kept_when_memory_is_short),
	KUNIT_CASE(page_that_is_too_small_is_replaced),
	KUNIT_CASE(data_of_a_large_slot_are_in_one_piece),
	KUNIT_CASE_PARAM(large_data_have_pieces_of_64_kib, large_cases_gen_params),
	KUNIT_CASE(data_of_a_large_slot_fall_back_to_single_pages),
	KUNIT_CASE(reserve_is_for_when_memory_is_used_up),
	KUNIT_CASE(requests_wait_and_go_on_in_order),
	KUNIT_CASE(large_request_does_not_overtake_those_that_wait),
	KUNIT_CASE(reserve_is_for_who_waits),
	KUNIT_CASE(small_request_does_not_wait),
	KUNIT_CASE(small_requests_wait_in_front),
	KUNIT_CASE(requests_of_a_closing_path_are_forgotten),
	KUNIT_CASE(requests_of_a_closing_path_get_no_memory),
	KUNIT_CASE(session_gets_its_share),
	KUNIT_CASE(share_is_not_waited_for),
	KUNIT_CASE(memory_beyond_shares_goes_in_turn),
	KUNIT_CASE(who_has_least_is_next),
	KUNIT_CASE_PARAM(data_are_copied, copy_cases_gen_params),
	KUNIT_CASE(session_has_one_reserve),
	KUNIT_CASE(session_without_slots_has_none),
	KUNIT_CASE(session_without_slots_has_a_reserve_for_copies),
	KUNIT_CASE(slots_are_within_the_limit),
	KUNIT_CASE(reserve_is_within_the_limit),
	{}
};

static struct kunit_suite rtrs_srv_buf_suite = {
	.name = "rtrs-server-buf",
	.init = buf_init,
	.exit = buf_exit,
	.test_cases = rtrs_srv_buf_cases,
};

kunit_test_suite(rtrs_srv_buf_suite);
