// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of fetching data: which pieces are fetched, in what order and how many at a time, and
 * how requests end. Nothing is posted.
 */
#include <kunit/test.h>

#include "../srv.h"

#define MAX_IOS		10
#define MAX_NENTS	64

/*
 * Two connections, requests of the first one with data to be fetched, and the results of the
 * requests.
 */
struct fetch_test {
	struct rtrs_srv_port port;
	struct rtrs_srv_share share;
	struct rtrs_srv_path path;
	struct rtrs_srv_con con, other;
	struct workqueue_struct *pull_wq;
	struct fetch_io {
		struct rtrs_srv_io io;
		struct scatterlist sgl[MAX_NENTS];
		u32 fetched, failed;
	} ios[MAX_IOS];
};

static void count_done(struct rtrs_srv_io *io, bool fetched)
{
	struct fetch_io *f = container_of(io, struct fetch_io, io);

	if (fetched)
		f->fetched++;
	else
		f->failed++;
}

/* Replaces the work that selects pieces and posts them; the tests do so directly. */
static void do_nothing(struct work_struct *work)
{
}

static unsigned int nr_runs;

/* Replaces a connection's work. It may run before the test waits for it. */
static void count_run(struct work_struct *work)
{
	WRITE_ONCE(nr_runs, nr_runs + 1);
}

static int fetch_init(struct kunit *test)
{
	struct fetch_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	if (!t)
		return -ENOMEM;
	/* The tests run before the module has created its workqueues. */
	t->pull_wq = rtrs_srv_pull_wq;
	rtrs_srv_pull_wq = system_dfl_wq;
	rtrs_srv_port_init(&t->port);
	INIT_DELAYED_WORK(&t->port.work, do_nothing);
	rtrs_srv_share_init(&t->share, &t->port);
	t->path.share = &t->share;
	t->con.path = &t->path;
	spin_lock_init(&t->con.pend_lock);
	rtrs_srv_fetch_init(&t->con, count_done);
	t->other.path = &t->path;
	rtrs_srv_fetch_init(&t->other, NULL);
	for (i = 0; i < MAX_IOS; i++) {
		INIT_LIST_HEAD(&t->ios[i].io.pending);
		t->ios[i].io.con = &t->con;
	}
	test->priv = t;
	return 0;
}

static void fetch_exit(struct kunit *test)
{
	struct fetch_test *t = test->priv;

	if (!t)
		return;
	cancel_delayed_work_sync(&t->port.work);
	cancel_delayed_work_sync(&t->con.fetch.work);
	rtrs_srv_pull_wq = t->pull_wq;
}

/* Queues request @i to fetch @bytes into memory in entries of @piece bytes. */
static void begin(struct fetch_test *t, u32 i, u32 bytes, u32 piece)
{
	struct fetch_io *f = &t->ios[i];

	sg_init_table(f->sgl, MAX_NENTS);
	f->io.op.sgl = f->sgl;
	f->io.op.data_len = bytes;
	for (; bytes; bytes -= f->sgl[f->io.op.nents++].length)
		f->sgl[f->io.op.nents].length = min(bytes, piece);
	list_add_tail(&f->io.pending, &t->con.fetch.waiting);
}

static struct rtrs_srv_read *next(struct fetch_test *t)
{
	struct rtrs_srv_read *read;

	spin_lock_irq(&t->con.pend_lock);
	read = rtrs_srv_next_read(&t->con);
	spin_unlock_irq(&t->con.pend_lock);
	return read;
}

static void expect_read(struct kunit *test, const struct rtrs_srv_read *read, u32 i, u32 first,
			u32 nents, u32 bytes)
{
	struct fetch_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, read);
	KUNIT_EXPECT_PTR_EQ(test, read->io, &t->ios[i].io);
	KUNIT_EXPECT_PTR_EQ(test, read->sg, &t->ios[i].sgl[first]);
	KUNIT_EXPECT_EQ(test, read->nents, nents);
	KUNIT_EXPECT_EQ(test, read->bytes, bytes);
}

static void expect_done(struct kunit *test, u32 i, u32 fetched, u32 failed)
{
	struct fetch_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, t->ios[i].fetched, fetched);
	KUNIT_EXPECT_EQ(test, t->ios[i].failed, failed);
	if (fetched || failed)
		KUNIT_EXPECT_TRUE(test, list_empty(&t->ios[i].io.pending));
}

/* Expects that nothing is in progress any more. */
static void expect_idle(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	u32 i;

	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	KUNIT_EXPECT_EQ(test, t->con.fetch.bytes, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->con.fetch.waiting));
	KUNIT_EXPECT_EQ(test, t->port.bytes, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->port.waiting));
	for (i = 0; i < RTRS_SRV_READS; i++)
		KUNIT_EXPECT_PTR_EQ(test, t->con.fetch.reads[i].io, NULL);
}

static const struct piece_case {
	const char *desc;
	u32 bytes, piece;
	/* Number of entries and bytes of each piece, in order */
	u32 want[5][2];
} piece_cases[] = {
	{ "one byte", 1, 65536, { { 1, 1 } } },
	{ "64 KiB", 65536, 65536, { { 1, 65536 } } },
	{ "128 KiB", 131072, 65536, { { 2, 131072 } } },
	{ "128 KiB in one", 131072, 131072, { { 1, 131072 } } },
	{ "128 KiB in small ones", 131072, 16384, { { 8, 131072 } } },
	{ "a byte more", 131073, 65536, { { 2, 131072 }, { 1, 1 } } },
	{ "a byte more, in small ones", 131073, 16384, { { 8, 131072 }, { 1, 1 } } },
	{ "512 KiB", 524288, 65536,
	  { { 2, 131072 }, { 2, 131072 }, { 2, 131072 }, { 2, 131072 } } },
	{ "what doesn't fill a piece", 245760, 49152,
	  { { 2, 98304 }, { 2, 98304 }, { 1, 49152 } } },
};

KUNIT_ARRAY_PARAM_DESC(piece_cases, piece_cases, desc);

static void data_are_fetched_in_pieces(struct kunit *test)
{
	const struct piece_case *c = test->param_value;
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *read;
	u32 i, first = 0;

	begin(t, 0, c->bytes, c->piece);
	for (i = 0; c->want[i][0]; i++) {
		expect_done(test, 0, 0, 0);
		read = next(t);
		expect_read(test, read, 0, first, c->want[i][0], c->want[i][1]);
		first += c->want[i][0];
		rtrs_srv_end_read(read, false);
	}
	expect_done(test, 0, 1, 0);
	expect_idle(test);
}

static void no_more_than_a_limit_is_on_its_way(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;

	begin(t, 0, 3 * RTRS_SRV_READ_BYTES, SZ_64K);
	a = next(t);
	b = next(t);
	expect_read(test, a, 0, 0, 2, RTRS_SRV_READ_BYTES);
	expect_read(test, b, 0, 2, 2, RTRS_SRV_READ_BYTES);
	KUNIT_EXPECT_EQ(test, t->con.fetch.bytes, RTRS_SRV_FETCH_BYTES);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	/* Pieces may end in any order. */
	rtrs_srv_end_read(b, false);
	b = next(t);
	expect_read(test, b, 0, 4, 2, RTRS_SRV_READ_BYTES);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	rtrs_srv_end_read(b, false);
	expect_done(test, 0, 0, 0);
	rtrs_srv_end_read(a, false);
	expect_done(test, 0, 1, 0);
	expect_idle(test);
}

static void no_more_pieces_than_there_are_chains(struct kunit *test)
{
	struct rtrs_srv_read *read[RTRS_SRV_READS + 1];
	struct fetch_test *t = test->priv;
	u32 i;

	for (i = 0; i < RTRS_SRV_READS + 1; i++)
		begin(t, i, 8192, SZ_64K);
	for (i = 0; i < RTRS_SRV_READS; i++) {
		read[i] = next(t);
		expect_read(test, read[i], i, 0, 1, 8192);
	}
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	rtrs_srv_end_read(read[3], false);
	expect_done(test, 3, 1, 0);
	read[RTRS_SRV_READS] = next(t);
	expect_read(test, read[RTRS_SRV_READS], RTRS_SRV_READS, 0, 1, 8192);
	for (i = 0; i < RTRS_SRV_READS + 1; i++) {
		if (i != 3)
			rtrs_srv_end_read(read[i], false);
		expect_done(test, i, 1, 0);
	}
	expect_idle(test);
}

static void requests_take_turns(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;
	u32 i;

	begin(t, 0, SZ_512K, SZ_64K);
	begin(t, 1, SZ_512K, SZ_64K);
	for (i = 0; i < 4; i++) {
		a = next(t);
		b = next(t);
		expect_read(test, a, 0, 2 * i, 2, RTRS_SRV_READ_BYTES);
		expect_read(test, b, 1, 2 * i, 2, RTRS_SRV_READ_BYTES);
		KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
		rtrs_srv_end_read(a, false);
		rtrs_srv_end_read(b, false);
	}
	expect_done(test, 0, 1, 0);
	expect_done(test, 1, 1, 0);
	expect_idle(test);
}

static void small_request_is_not_behind_a_large_one(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;

	begin(t, 0, SZ_1M, SZ_64K);
	a = next(t);
	begin(t, 1, 8192, SZ_64K);
	rtrs_srv_end_read(a, false);
	a = next(t);
	expect_read(test, a, 0, 2, 2, RTRS_SRV_READ_BYTES);
	b = next(t);
	expect_read(test, b, 1, 0, 1, 8192);
	rtrs_srv_end_read(b, false);
	expect_done(test, 1, 1, 0);
	expect_done(test, 0, 0, 0);
	rtrs_srv_end_read(a, false);
}

/* A request of up to three pieces, one or two of which are in progress. */
static const struct fail_case {
	const char *desc;
	u32 bytes, reads;
	bool failed[2];
} fail_cases[] = {
	{ "the only piece", SZ_64K, 1, { true } },
	{ "the first of three, alone", SZ_256K + SZ_64K, 1, { true } },
	{ "the first of three", SZ_256K + SZ_64K, 2, { true, false } },
	{ "the second of three", SZ_256K + SZ_64K, 2, { false, true } },
	{ "the first of two", SZ_256K, 2, { true, false } },
	{ "the last of two", SZ_256K, 2, { false, true } },
	{ "both", SZ_256K, 2, { true, true } },
	{ "both of three", SZ_256K + SZ_64K, 2, { true, true } },
};

KUNIT_ARRAY_PARAM_DESC(fail_cases, fail_cases, desc);

static void failure_is_told_once_after_the_last_piece(struct kunit *test)
{
	const struct fail_case *c = test->param_value;
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *read[2];
	u32 i;

	begin(t, 0, c->bytes, SZ_64K);
	for (i = 0; i < c->reads; i++) {
		read[i] = next(t);
		KUNIT_ASSERT_NOT_NULL(test, read[i]);
	}
	for (i = 0; i < c->reads; i++) {
		expect_done(test, 0, 0, 0);
		rtrs_srv_end_read(read[i], c->failed[i]);
	}
	expect_done(test, 0, 0, 1);
	expect_idle(test);
}

static void failure_is_of_one_request(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;

	begin(t, 0, SZ_512K, SZ_64K);
	begin(t, 1, SZ_64K, SZ_64K);
	a = next(t);
	b = next(t);
	rtrs_srv_end_read(a, true);
	expect_done(test, 0, 0, 1);
	rtrs_srv_end_read(b, false);
	expect_done(test, 1, 1, 0);
	expect_idle(test);
}

static void end_of_a_connection_leaves_what_is_on_its_way(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;

	begin(t, 0, SZ_512K, SZ_64K);
	begin(t, 1, SZ_64K, SZ_64K);
	a = next(t);
	b = next(t);
	begin(t, 2, SZ_64K, SZ_64K);
	rtrs_srv_fetch_stop(&t->con);
	expect_done(test, 0, 0, 0);
	expect_done(test, 1, 0, 0);
	expect_done(test, 2, 0, 1);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	rtrs_srv_end_read(a, false);
	expect_done(test, 0, 0, 1);
	/* All pieces of this request had begun, so its data are complete. */
	rtrs_srv_end_read(b, false);
	expect_done(test, 1, 1, 0);
	expect_idle(test);
}

static void closed_connection_fetches_nothing(struct kunit *test)
{
	struct fetch_test *t = test->priv;

	t->con.closing = true;
	begin(t, 0, SZ_512K, SZ_64K);
	list_del_init(&t->ios[0].io.pending);
	rtrs_srv_fetch(&t->ios[0].io);
	expect_done(test, 0, 0, 1);
	expect_idle(test);
}

/* Fills the port, or empties it again, as another connection would. */
static void fill_port(struct fetch_test *t, bool full)
{
	struct rtrs_srv_read *read = &t->other.fetch.reads[0];

	read->con = &t->other;
	read->bytes = SZ_1G;
	if (full)
		rtrs_srv_budget_get(read);
	else
		rtrs_srv_budget_put(read);
}

static void full_port_is_waited_for(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_read *a, *b;

	INIT_DELAYED_WORK(&t->con.fetch.work, count_run);
	WRITE_ONCE(nr_runs, 0);
	begin(t, 0, SZ_512K, SZ_64K);
	begin(t, 1, SZ_64K, SZ_64K);
	fill_port(t, true);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	/* The connection's piece is queued at the port, and no further piece begins. */
	a = t->con.fetch.queued;
	expect_read(test, a, 0, 0, 2, RTRS_SRV_READ_BYTES);
	KUNIT_EXPECT_FALSE(test, rtrs_srv_read_due(a));
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	KUNIT_EXPECT_EQ(test, t->con.fetch.bytes, RTRS_SRV_READ_BYTES);
	KUNIT_EXPECT_EQ(test, t->port.bytes, SZ_1G);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_port_next(&t->port), NULL);
	fill_port(t, false);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	/* When the port selects the piece, the connection's work posts it, once. */
	KUNIT_ASSERT_PTR_EQ(test, rtrs_srv_port_next(&t->port), a);
	flush_delayed_work(&t->con.fetch.work);
	KUNIT_EXPECT_EQ(test, READ_ONCE(nr_runs), 1);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_port_next(&t->port), NULL);
	KUNIT_EXPECT_EQ(test, t->port.bytes, RTRS_SRV_READ_BYTES);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	KUNIT_EXPECT_TRUE(test, rtrs_srv_read_due(a));
	KUNIT_EXPECT_FALSE(test, rtrs_srv_read_due(a));
	b = next(t);
	expect_read(test, b, 1, 0, 1, SZ_64K);
	KUNIT_EXPECT_EQ(test, t->port.bytes, RTRS_SRV_READ_BYTES + SZ_64K);
	rtrs_srv_end_read(b, false);
	rtrs_srv_end_read(a, true);
	expect_done(test, 1, 1, 0);
	expect_done(test, 0, 0, 1);
	expect_idle(test);
}

static void closing_connection_waits_for_no_turn(struct kunit *test)
{
	struct fetch_test *t = test->priv;

	begin(t, 0, SZ_512K, SZ_64K);
	begin(t, 1, SZ_64K, SZ_64K);
	fill_port(t, true);
	KUNIT_EXPECT_PTR_EQ(test, next(t), NULL);
	t->con.closing = true;
	rtrs_srv_fetch_stop(&t->con);
	expect_done(test, 1, 0, 1);
	fill_port(t, false);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_port_next(&t->port), NULL);
	/* A piece of this request was queued at the port. */
	expect_done(test, 0, 0, 0);
	rtrs_srv_fetch_drained(&t->con);
	expect_done(test, 0, 0, 1);
	expect_idle(test);
}

/* An iWARP device, which needs a memory region for RDMA READ, but has none available. */
struct no_mrs {
	struct ib_device dev;
	struct ib_port_data port_data[2];
	struct ib_pd pd;
	struct ib_qp qp;
	struct rdma_cm_id id;
};

static void use_no_mrs(struct kunit *test, struct rtrs_srv_con *con)
{
	struct no_mrs *n = kunit_kzalloc(test, sizeof(*n), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, n);
	n->dev.port_data = n->port_data;
	n->dev.attrs.max_fast_reg_page_list_len = 16;
	n->port_data[1].immutable.core_cap_flags = RDMA_CORE_PORT_IWARP;
	n->pd.device = &n->dev;
	n->qp.device = &n->dev;
	n->qp.pd = &n->pd;
	spin_lock_init(&n->qp.mr_lock);
	INIT_LIST_HEAD(&n->qp.rdma_mrs);
	n->id.qp = &n->qp;
	n->id.port_num = 1;
	con->con.cm_id = &n->id;
}

static void piece_that_cant_be_mapped_is_tried_again(struct kunit *test)
{
	struct fetch_test *t = test->priv;
	struct rtrs_srv_io *io = &t->ios[0].io;
	struct delayed_work *again = &t->con.fetch.work;

	use_no_mrs(test, &t->con);
	begin(t, 0, PAGE_SIZE, SZ_64K);
	sg_set_page(io->op.sgl, virt_to_page(t), PAGE_SIZE, 0);
	list_del_init(&io->pending);
	io->fetch = true;
	rtrs_srv_fetch(io);
	KUNIT_EXPECT_PTR_EQ(test, t->con.fetch.reads[0].io, io);
	KUNIT_EXPECT_FALSE(test, t->con.fetch.reads[0].mapped);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(again));
	/* The second attempt fails, too, so another one is queued. */
	flush_delayed_work(again);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(again));
	expect_done(test, 0, 0, 0);
	t->con.closing = true;
	flush_delayed_work(again);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(again));
	expect_done(test, 0, 0, 1);
	expect_idle(test);
}

static struct kunit_case rtrs_srv_fetch_cases[] = {
	KUNIT_CASE_PARAM(data_are_fetched_in_pieces, piece_cases_gen_params),
	KUNIT_CASE(no_more_than_a_limit_is_on_its_way),
	KUNIT_CASE(no_more_pieces_than_there_are_chains),
	KUNIT_CASE(requests_take_turns),
	KUNIT_CASE(small_request_is_not_behind_a_large_one),
	KUNIT_CASE_PARAM(failure_is_told_once_after_the_last_piece, fail_cases_gen_params),
	KUNIT_CASE(failure_is_of_one_request),
	KUNIT_CASE(end_of_a_connection_leaves_what_is_on_its_way),
	KUNIT_CASE(closed_connection_fetches_nothing),
	KUNIT_CASE(full_port_is_waited_for),
	KUNIT_CASE(closing_connection_waits_for_no_turn),
	KUNIT_CASE(piece_that_cant_be_mapped_is_tried_again),
	{}
};

static struct kunit_suite rtrs_srv_fetch_suite = {
	.name = "rtrs-server-fetch",
	.init = fetch_init,
	.exit = fetch_exit,
	.test_cases = rtrs_srv_fetch_cases,
};

kunit_test_suite(rtrs_srv_fetch_suite);
