// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of fetching over a port: how much is fetched at a time, and which piece is next. */
#include <kunit/test.h>

#include "../srv.h"

#define NR_CONS		20
#define NR_READS	4
#define PIECE		SZ_128K

/* A port, shares of three sessions, and their connections, see paths[]. */
struct port_test {
	struct rtrs_srv_port port;
	struct rtrs_srv_share shares[3];
	struct rtrs_srv_path paths[4];
	struct rtrs_srv_con cons[NR_CONS];
	unsigned int max_fetch;
	struct workqueue_struct *pull_wq;
	u32 called;
	struct completion go_on;
	struct delayed_work late;
};

/* Share of each path: the first session has two paths. */
static const u32 shares[] = { 0, 0, 1, 2 };
/*
 * Path of each connection: connections a to d belong to the first session, e and f to the second
 * one, and all others to the third one.
 */
static const u32 paths[] = { 0, 0, 1, 1, 2, 2, 3 };

/* Replaces the work that selects pieces and posts them; the tests do so directly. */
static void do_nothing(struct work_struct *work)
{
}

/* Replaces the port's work, and blocks as if it were busy with other connections. */
static void stand_still(struct work_struct *work)
{
	struct port_test *t = container_of(to_delayed_work(work), struct port_test, port.work);

	wait_for_completion(&t->go_on);
}

static int port_init(struct kunit *test)
{
	struct port_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	if (!t)
		return -ENOMEM;
	t->max_fetch = rtrs_srv_max_fetch;
	/* The tests run before the module has created its workqueues. */
	t->pull_wq = rtrs_srv_pull_wq;
	rtrs_srv_pull_wq = system_dfl_wq;
	init_completion(&t->go_on);
	rtrs_srv_port_init(&t->port);
	INIT_DELAYED_WORK(&t->port.work, do_nothing);
	for (i = 0; i < ARRAY_SIZE(t->shares); i++)
		rtrs_srv_share_init(&t->shares[i], &t->port);
	for (i = 0; i < ARRAY_SIZE(t->paths); i++)
		t->paths[i].share = &t->shares[shares[i]];
	for (i = 0; i < NR_CONS; i++) {
		t->cons[i].path = &t->paths[paths[min(i, (u32)ARRAY_SIZE(paths) - 1)]];
		rtrs_srv_fetch_init(&t->cons[i], NULL);
		INIT_DELAYED_WORK(&t->cons[i].fetch.work, do_nothing);
	}
	test->priv = t;
	return 0;
}

static void port_exit(struct kunit *test)
{
	struct port_test *t = test->priv;
	u32 i;

	if (!t)
		return;
	complete_all(&t->go_on);
	cancel_delayed_work_sync(&t->port.work);
	for (i = 0; i < NR_CONS; i++)
		cancel_delayed_work_sync(&t->cons[i].fetch.work);
	rtrs_srv_pull_wq = t->pull_wq;
	rtrs_srv_max_fetch = t->max_fetch;
}

/* Returns a connection's first chain that is in progress, or unused if @used is false. */
static struct rtrs_srv_read *piece(struct rtrs_srv_con *con, bool used)
{
	struct rtrs_srv_read *read;

	for (read = con->fetch.reads; read < con->fetch.reads + NR_READS; read++)
		if (!read->io == !used && list_empty(&read->queue_entry))
			return read;
	return NULL;
}

static bool take(struct rtrs_srv_con *con)
{
	static struct rtrs_srv_io some_io;
	struct rtrs_srv_read *read = piece(con, false);

	read->bytes = PIECE;
	read->io = &some_io;
	return rtrs_srv_budget_get(read);
}

static void put(struct rtrs_srv_con *con)
{
	struct rtrs_srv_read *read = piece(con, true);

	rtrs_srv_budget_put(read);
	read->io = NULL;
}

static void make_old(struct rtrs_srv_con *con)
{
	piece(con, true)->since -= msecs_to_jiffies(RTRS_SRV_PORT_MS);
}

static const struct turn_case {
	const char *desc;
	/* Maximum number of pieces in progress; 0: no limit */
	u32 max;
	/*
	 * Steps: a connection's letter, followed by
	 *	+ the connection begins a piece
	 *	? the connection's piece is queued
	 *	- the connection's first piece ends
	 *	! the connection's piece is selected and begins
	 *	* the connection's first piece began RTRS_SRV_PORT_MS ago
	 *	/ the connection closes
	 * or "..": no piece is selected; "=N": the limit becomes N pieces.
	 */
	const char *steps;
	/* Number of pieces that count after the last step */
	u32 left;
} turn_cases[] = {
	{ "no limit", 0, "a+ a+ a+ b+ e+ e+ g+ .. a- e- ..", 5 },
	{ "up to the limit", 3, "a+ a+ e+ .. e- e+ a- a- e- ..", 0 },
	{ "one has to wait", 1, "a+ e? .. a- e! .. e- ..", 0 },
	{ "in order", 1, "a+ e? g? .. a- e! .. e- g! .. g- ..", 0 },
	{ "who comes later doesn't overtake", 1, "a+ e? a- g? e! .. e- g! g- ..", 0 },
	{ "nor who has just ended", 1, "a+ e? a- a? e! e? .. e- a! a? .. a- e! .. e- a! a- ..", 0 },
	{ "a session has one turn, whatever its connections", 1,
	  "a+ a? b? c? e? .. a- a! a? a- e! e? e- b! b- e! e? e- c! c- e! e- a! a- ..", 0 },
	{ "three sessions", 1,
	  "a+ b? c? g? e? f? a- b! b- g! g? g- e! e- c! c- g! g- f! f- ..", 0 },
	{ "connections of two paths are of one session", 1, "e+ a? c? g? e- a! a- g! g- c! c- ..",
	  0 },
	{ "who closes passes its turn on", 1, "a+ e? g? e/ .. a- g! .. g- ..", 0 },
	{ "the last one closes", 1, "a+ e? e/ a- .. a+ a- ..", 0 },
	{ "one of a session closes", 1, "g+ a? b? e? a/ g- b! b- e! e- ..", 0 },
	{ "who doesn't wait closes", 1, "a+ e? g/ a/ a- e! e- ..", 0 },
	{ "more at once", 2, "a+ a+ e? g? a- e! .. a- g! .. e- g- ..", 0 },
	{ "the limit is raised", 1, "a+ e? g? .. =3 e! g! .. a- e- g- ..", 0 },
	{ "the limit is lowered", 3, "a+ a+ a+ =1 e? .. a- .. a- .. a- e! .. e- ..", 0 },
	{ "there is no limit any more", 1, "a+ e? g? =0 e! g! .. a- e- g- ..", 0 },
	{ "there is a limit now", 0, "a+ a+ a+ e+ =2 e? .. a- a- .. a- e! .. e- e- ..", 0 },
	{ "who has less on its way is next", 3,
	  "a+ a+ a+ b? e? .. a- e! .. a- b! .. a- e- b- ..", 0 },
	{ "of equals, who has waited longer", 2,
	  "a+ e+ b? g? f? a- b! .. e- g! .. b- f! g- f- ..", 0 },
	{ "an old piece doesn't count", 1, "a+ e? .. a* e! .. e- .. a- ..", 0 },
	{ "nor for its own session", 1, "a+ b? e? .. a* b! .. b- e! .. a- e- ..", 0 },
	{ "it is not given back twice", 2, "a+ a+ e? .. a* e! g? .. a- .. e- g! a- g- ..", 0 },
	{ "all are old", 2, "a+ a+ e? g? .. a* a- e! .. e* a* g! .. e- g- a- ..", 0 },
	{ "an old one counts as long as none waits", 2, "a+ a* ..", 1 },
};

KUNIT_ARRAY_PARAM_DESC(turn_cases, turn_cases, desc);

static void expect_turn(struct kunit *test, const char *step, struct rtrs_srv_con *con)
{
	struct port_test *t = test->priv;
	const struct rtrs_srv_read *next = rtrs_srv_port_next(&t->port);

	KUNIT_EXPECT_TRUE_MSG(test, (next ? next->con : NULL) == con, "%s: it is %c's turn", step,
			      next ? (char)('a' + (next->con - t->cons)) : '-');
}

static void do_step(struct kunit *test, const char *step)
{
	struct port_test *t = test->priv;
	struct rtrs_srv_con *con = step[0] >= 'a' ? &t->cons[step[0] - 'a'] : NULL;

	if (step[0] == '=') {
		rtrs_srv_max_fetch = (step[1] - '0') * (PIECE / SZ_1K);
		return;
	}
	switch (step[1]) {
	case '+':
	case '?':
		KUNIT_EXPECT_EQ_MSG(test, take(con), step[1] == '+', "%s", step);
		break;
	case '-':
		put(con);
		break;
	case '*':
		make_old(con);
		break;
	case '/':
		rtrs_srv_port_leave(con);
		break;
	default:
		expect_turn(test, step, con);
	}
}

static void pieces_begin_in_turn(struct kunit *test)
{
	const struct turn_case *c = test->param_value;
	struct port_test *t = test->priv;
	const char *step;
	u64 left = 0;
	u32 i;

	rtrs_srv_max_fetch = c->max * (PIECE / SZ_1K);
	for (step = c->steps; *step; step += step[2] ? 3 : 2)
		do_step(test, step);
	KUNIT_EXPECT_EQ(test, t->port.bytes, c->left * PIECE);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->port.waiting));
	KUNIT_EXPECT_EQ(test, list_empty(&t->port.reads), !c->left);
	for (i = 0; i < ARRAY_SIZE(t->shares); i++)
		KUNIT_EXPECT_TRUE(test, list_empty(&t->shares[i].reads));
	/* The shares count the same bytes as the port. */
	for (i = 0; i < ARRAY_SIZE(t->shares); i++)
		left += t->shares[i].bytes;
	KUNIT_EXPECT_EQ(test, left, c->left * PIECE);
}

static void count_call(struct work_struct *work)
{
	struct rtrs_srv_con *con = container_of(to_delayed_work(work), struct rtrs_srv_con,
						fetch.work);
	struct port_test *t = container_of(con->path->share->port, struct port_test, port);

	t->called++;
}

/* Holds up the work behind it in an ordered workqueue. */
struct blocker {
	struct work_struct work;
	struct completion go;
};

static void block(struct work_struct *work)
{
	wait_for_completion(&container_of(work, struct blocker, work)->go);
}

/* One run of the port's work selects RTRS_SRV_WORK_BATCH pieces, and requeues the work. */
static void work_of_a_port_is_bounded(struct kunit *test)
{
	struct workqueue_struct *one = alloc_ordered_workqueue("rtrs-test", 0);
	struct port_test *t = test->priv;
	struct blocker first;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, one);
	INIT_WORK_ONSTACK(&first.work, block);
	init_completion(&first.go);
	queue_work(one, &first.work);
	rtrs_srv_pull_wq = one;
	rtrs_srv_max_fetch = 1;
	KUNIT_EXPECT_TRUE(test, take(&t->cons[0]));
	for (i = 1; i < NR_CONS; i++) {
		INIT_DELAYED_WORK(&t->cons[i].fetch.work, count_call);
		KUNIT_EXPECT_FALSE(test, take(&t->cons[i]));
	}
	cancel_delayed_work_sync(&t->port.work);
	rtrs_srv_max_fetch = 0;
	rtrs_srv_port_work(&t->port.work.work);
	KUNIT_EXPECT_EQ(test, t->port.bytes, (1 + RTRS_SRV_WORK_BATCH) * PIECE);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&t->port.work));
	complete(&first.go);
	flush_work(&first.work);
	destroy_work_on_stack(&first.work);
	rtrs_srv_port_work(&t->port.work.work);
	KUNIT_EXPECT_EQ(test, t->port.bytes, NR_CONS * PIECE);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->port.waiting));
	for (i = 1; i < NR_CONS; i++)
		flush_delayed_work(&t->cons[i].fetch.work);
	cancel_delayed_work_sync(&t->port.work);
	/* All these connections have a piece to be posted. */
	KUNIT_EXPECT_EQ(test, t->called, NR_CONS - 1);
	rtrs_srv_pull_wq = system_dfl_wq;
	destroy_workqueue(one);
}

static void let_go_on(struct work_struct *work)
{
	complete_all(&container_of(to_delayed_work(work), struct port_test, late)->go_on);
}

/* Closes a connection while the port's work is busy with other connections. */
static void end_of_a_connection_waits_for_no_other(struct kunit *test)
{
	struct port_test *t = test->priv;

	rtrs_srv_max_fetch = 1;
	KUNIT_EXPECT_TRUE(test, take(&t->cons[0]));
	KUNIT_EXPECT_FALSE(test, take(&t->cons[4]));
	KUNIT_EXPECT_FALSE(test, take(&t->cons[6]));
	cancel_delayed_work_sync(&t->port.work);
	INIT_DELAYED_WORK(&t->port.work, stand_still);
	queue_delayed_work(rtrs_srv_pull_wq, &t->port.work, 0);
	INIT_DELAYED_WORK(&t->late, let_go_on);
	queue_delayed_work(rtrs_srv_pull_wq, &t->late, HZ);
	rtrs_srv_port_leave(&t->cons[4]);
	KUNIT_EXPECT_FALSE(test, completion_done(&t->go_on));
	cancel_delayed_work_sync(&t->late);
	complete_all(&t->go_on);
	cancel_delayed_work_sync(&t->port.work);
	put(&t->cons[0]);
	KUNIT_ASSERT_PTR_EQ(test, rtrs_srv_port_next(&t->port)->con, &t->cons[6]);
	put(&t->cons[6]);
}

/* Checks which paths have the same port and share. These are freed with the last path. */
static void paths_share_ports(struct kunit *test)
{
	static const struct { u32 sess, dev, port; } of[] = {
		{ 0, 0, 1 }, { 0, 0, 1 }, { 0, 0, 2 }, { 0, 1, 1 }, { 1, 0, 1 }, { 1, 0, 1 },
	};
	struct rtrs_srv_sess *sess = kunit_kcalloc(test, 2, sizeof(*sess), GFP_KERNEL);
	struct ib_device *dev = kunit_kcalloc(test, 2, sizeof(*dev), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kcalloc(test, ARRAY_SIZE(of), sizeof(*path),
						   GFP_KERNEL);
	bool same;
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, path);
	for (i = 0; i < ARRAY_SIZE(of); i++) {
		path[i].sess = &sess[of[i].sess];
		KUNIT_ASSERT_EQ(test, 0, rtrs_srv_path_join_port(&path[i], &dev[of[i].dev],
								 of[i].port));
		for (j = 0; j < i; j++) {
			same = of[i].dev == of[j].dev && of[i].port == of[j].port;
			KUNIT_EXPECT_EQ(test, path[i].share->port == path[j].share->port, same);
			same = same && of[i].sess == of[j].sess;
			KUNIT_EXPECT_EQ(test, path[i].share == path[j].share, same);
		}
	}
	for (i = 0; i < ARRAY_SIZE(of); i++) {
		rtrs_srv_path_leave_port(&path[i]);
		rtrs_srv_path_leave_port(&path[i]);
		KUNIT_EXPECT_PTR_EQ(test, path[i].share, NULL);
	}
}

static struct kunit_case rtrs_srv_port_cases[] = {
	KUNIT_CASE_PARAM(pieces_begin_in_turn, turn_cases_gen_params),
	KUNIT_CASE(work_of_a_port_is_bounded),
	KUNIT_CASE(end_of_a_connection_waits_for_no_other),
	KUNIT_CASE(paths_share_ports),
	{}
};

static struct kunit_suite rtrs_srv_port_suite = {
	.name = "rtrs-server-port",
	.init = port_init,
	.exit = port_exit,
	.test_cases = rtrs_srv_port_cases,
};

kunit_test_suite(rtrs_srv_port_suite);
