// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the server's path states (every state, every event), of rejected FENCE messages,
 * and of locks that fencing doesn't take.
 */
#include <kunit/test.h>

#include "../srv.h"

#define S(name)		RTRS_SRV_##name
#define E(name)		RTRS_SRV_EV_##name

static const struct move_case {
	const char *desc;
	enum rtrs_srv_state state;
	enum rtrs_srv_event event;
	enum rtrs_srv_state next;
} move_cases[] = {
	{ "connecting: up takes requests", S(CONNECTING), E(UP), S(CONNECTED) },
	{ "connecting: timeout closes it", S(CONNECTING), E(SETUP_TIMEOUT), S(CLOSING) },
	{ "connecting: end closes it", S(CONNECTING), E(END), S(CLOSING) },
	{ "connected: up is nothing", S(CONNECTED), E(UP), S(CONNECTED) },
	{ "connected: timeout comes too late", S(CONNECTED), E(SETUP_TIMEOUT), S(CONNECTED) },
	{ "connected: end closes it", S(CONNECTED), E(END), S(CLOSING) },
	{ "closing: up comes too late", S(CLOSING), E(UP), S(CLOSING) },
	{ "closing: timeout is nothing", S(CLOSING), E(SETUP_TIMEOUT), S(CLOSING) },
	{ "closing: only the first end counts", S(CLOSING), E(END), S(CLOSING) },
};

KUNIT_ARRAY_PARAM_DESC(move_cases, move_cases, desc);

static void path_moves(struct kunit *test)
{
	const struct move_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_srv_next_state(c->state, c->event), c->next);
}

static void path_moves_are_all_in_the_table(struct kunit *test)
{
	unsigned long seen = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(move_cases); i++)
		__set_bit(move_cases[i].state * RTRS_SRV_NR_EVENTS +
			  move_cases[i].event, &seen);
	KUNIT_EXPECT_EQ(test, seen, BIT(RTRS_SRV_NR_STATES * RTRS_SRV_NR_EVENTS) - 1);
}

/*
 * FENCE messages on a path with id 5 that are rejected. The effect of accepted ones is tested
 * elsewhere.
 */
static const struct fence_case {
	const char *desc;
	u16 cid;
	u32 features, open, id;
} fence_cases[] = {
	{ "on a connection for I/O", 1, RTRS_FEATURE_FENCE, 0, 6 },
	{ "without the feature", 0, 0, 0, 6 },
	{ "without the feature, with others", 0, 0xfffffffe, 0, 6 },
	{ "no path", 0, RTRS_FEATURE_FENCE, 0, 0 },
	{ "the path itself", 0, RTRS_FEATURE_FENCE, 0, 5 },
	{ "before the answer to another", 0, RTRS_FEATURE_FENCE, 7, 6 },
	{ "before the answer to the same", 0, RTRS_FEATURE_FENCE, 6, 6 },
};

KUNIT_ARRAY_PARAM_DESC(fence_cases, fence_cases, desc);

static void fence_is_refused(struct kunit *test)
{
	const struct fence_case *c = test->param_value;
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_srv_con *con = kunit_kzalloc(test, sizeof(*con), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, con);
	con->path = path;
	con->con.cid = c->cid;
	path->path.id = 5;
	path->path.features = c->features;
	path->fence.target = c->open;
	KUNIT_EXPECT_FALSE(test, rtrs_srv_fence_recv(con, c->id));
	KUNIT_EXPECT_EQ(test, path->fence.target, c->open);
}

/* A path without an id is between two paths with one. */
static void path_is_found_by_its_id(struct kunit *test)
{
	struct rtrs_srv_sess *sess = kunit_kzalloc(test, sizeof(*sess), GFP_KERNEL);
	struct rtrs_srv_path *path = kunit_kcalloc(test, 3, sizeof(*path), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, sess);
	KUNIT_ASSERT_NOT_NULL(test, path);
	INIT_LIST_HEAD(&sess->paths);
	mutex_lock(&rtrs_srv_lock);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_path_by_id(sess, 1), NULL);
	for (i = 0; i < 3; i++) {
		path[i].path.id = i == 1 ? 0 : i + 1;
		list_add_tail(&path[i].entry, &sess->paths);
	}
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_path_by_id(sess, 1), &path[0]);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_path_by_id(sess, 2), NULL);
	KUNIT_EXPECT_PTR_EQ(test, rtrs_srv_path_by_id(sess, 3), &path[2]);
	mutex_unlock(&rtrs_srv_lock);
}

/* Path 1 of the session has received a FENCE for path 2, which is closing. */
struct fence_test {
	struct rtrs_srv_sess sess;
	struct rtrs_srv_path path, target;
	struct rtrs_srv_con con, *cons[1];
	struct rdma_cm_id cm_id;
	struct ib_qp qp;
	struct ib_device dev;
	struct work_struct work;
	struct completion over;
	unsigned int nr_sent;
	u32 sent[2];
};

static int note_imm(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct fence_test *t = container_of(qp, struct fence_test, qp);

	if (t->nr_sent < ARRAY_SIZE(t->sent))
		t->sent[t->nr_sent] = be32_to_cpu(wr->ex.imm_data);
	t->nr_sent++;
	return 0;
}

/* Handles a FENCE up to its answer, and then a FENCE for a path that no longer exists */
static void fence_and_close(struct work_struct *work)
{
	struct fence_test *t = container_of(work, struct fence_test, work);

	rtrs_srv_fence_work(&t->path.fence.work);
	rtrs_srv_fence_drop(&t->target);
	rtrs_srv_sysfs_del_path(&t->target);
	rtrs_srv_fence_done(&t->target);
	t->path.fence.target = 9;
	rtrs_srv_fence_work(&t->path.fence.work);
	complete(&t->over);
}

/* Other sessions may hold rtrs_srv_lock for long, as they allocate memory under it. */
static void fence_waits_for_no_other_session(struct kunit *test)
{
	struct fence_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned long left;

	KUNIT_ASSERT_NOT_NULL(test, t);
	INIT_LIST_HEAD(&t->sess.paths);
	mutex_init(&t->sess.paths_lock);
	t->dev.ops.post_send = note_imm;
	t->qp.device = &t->dev;
	t->cm_id.qp = &t->qp;
	t->con.con.cm_id = &t->cm_id;
	t->con.con.path = &t->path.path;
	t->con.con.sq_size = 4;
	t->con.con.sq_limit = 4;
	spin_lock_init(&t->con.con.sq_lock);
	t->cons[0] = &t->con;
	t->path.conns.con = t->cons;
	t->path.sess = &t->sess;
	t->path.path.id = 1;
	t->path.fence.target = 2;
	INIT_WORK(&t->path.fence.work, rtrs_srv_fence_work);
	list_add_tail(&t->path.entry, &t->sess.paths);
	t->target.sess = &t->sess;
	t->target.path.id = 2;
	t->target.state = RTRS_SRV_CLOSING;
	INIT_WORK(&t->target.fence.work, rtrs_srv_fence_work);
	spin_lock_init(&t->target.state_lock);
	list_add_tail(&t->target.entry, &t->sess.paths);

	INIT_WORK(&t->work, fence_and_close);
	init_completion(&t->over);
	mutex_lock(&rtrs_srv_lock);
	queue_work(system_dfl_wq, &t->work);
	left = wait_for_completion_timeout(&t->over, 10 * HZ);
	mutex_unlock(&rtrs_srv_lock);
	flush_work(&t->work);
	KUNIT_EXPECT_GT(test, left, 0);
	KUNIT_EXPECT_EQ(test, t->nr_sent, 2);
	KUNIT_EXPECT_EQ(test, t->sent[0], rtrs_imm(RTRS_IMM_FENCED, 2));
	KUNIT_EXPECT_EQ(test, t->sent[1], rtrs_imm(RTRS_IMM_FENCED, 9));
	KUNIT_EXPECT_EQ(test, t->path.fence.target, 0);
}

/* The handshake is for the name "new" in a session with UUID 1. */
static const struct await_case {
	const char *desc;
	bool may;
	u8 uuid;
	const char *name;
} await_cases[] = {
	{ "its own session, without a name yet", true, 1, "" },
	{ "its own session", true, 1, "new" },
	{ "the same client's old session", true, 1, "old" },
	{ "another client's, of that name", true, 2, "new" },
	{ "another client's", false, 2, "old" },
	{ "another client's, of a longer name", false, 2, "newer" },
	{ "another client's, without a name yet", false, 2, "" },
};

KUNIT_ARRAY_PARAM_DESC(await_cases, await_cases, desc);

static void handshake_waits_for_few_sessions(struct kunit *test)
{
	const struct await_case *c = test->param_value;
	struct rtrs_srv_path *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	struct rtrs_info_req *req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);
	struct rtrs_srv_sess *sess = kunit_kcalloc(test, 2, sizeof(*sess), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_ASSERT_NOT_NULL(test, req);
	KUNIT_ASSERT_NOT_NULL(test, sess);
	strscpy(req->name, "new", sizeof(req->name));
	path->setup.req.msg = req;
	path->sess = &sess[0];
	sess[0].uuid.b[0] = 1;
	sess[1].uuid.b[0] = c->uuid;
	strscpy(sess[1].name, c->name, sizeof(sess[1].name));
	KUNIT_EXPECT_EQ(test, rtrs_srv_may_await(path, &sess[1]), c->may);
}

/* Five parked handshakes, each in a session of its own */
static const struct parked {
	u8 uuid;
	const char *name;
} parked[] = {
	{ 1, "a" }, { 2, "b" }, { 3, "b" }, { 4, "c" }, { 5, "d" },
};

static const struct change_case {
	const char *desc;
	u8 uuid;
	const char *name;
	/* Bitmap of handshakes that are resumed */
	unsigned int resumed;
} change_cases[] = {
	{ "of the same UUID", 1, "", BIT(0) },
	{ "of the same name", 9, "c", BIT(3) },
	{ "of a name that two want", 9, "b", BIT(1) | BIT(2) },
	{ "of one's UUID and another one's name", 4, "d", BIT(3) | BIT(4) },
	{ "of one's UUID and its name", 1, "a", BIT(0) },
	{ "of nobody's", 9, "e", 0 },
};

KUNIT_ARRAY_PARAM_DESC(change_cases, change_cases, desc);

struct parked_test {
	struct rtrs_srv_sess sess[ARRAY_SIZE(parked)], changed;
	struct rtrs_srv_path path[ARRAY_SIZE(parked)];
	struct rtrs_info_req req[ARRAY_SIZE(parked)];
	unsigned long resumed;
};

static struct parked_test *parked_test;

static void note_resumed(struct work_struct *work)
{
	struct rtrs_srv_path *path = container_of(work, struct rtrs_srv_path, setup.work);

	set_bit(path - parked_test->path, &parked_test->resumed);
}

static void change_resumes_those_that_wait_for_it(struct kunit *test)
{
	const struct change_case *c = test->param_value;
	struct parked_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct workqueue_struct *wq = rtrs_srv_setup_wq;
	struct rtrs_srv_path *path;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	/* The tests run before the module has created its workqueues. */
	rtrs_srv_setup_wq = system_dfl_wq;
	parked_test = t;
	for (i = 0; i < ARRAY_SIZE(parked); i++) {
		path = &t->path[i];
		t->sess[i].uuid.b[0] = parked[i].uuid;
		strscpy(t->req[i].name, parked[i].name, sizeof(t->req[i].name));
		path->sess = &t->sess[i];
		path->setup.req.msg = &t->req[i];
		INIT_WORK(&path->setup.work, note_resumed);
		rtrs_srv_setup_park(path);
		rtrs_srv_setup_park(path);
	}
	t->changed.uuid.b[0] = c->uuid;
	strscpy(t->changed.name, c->name, sizeof(t->changed.name));
	rtrs_srv_changed(&t->changed);
	/* Unparks all handshakes. */
	for (i = 0; i < ARRAY_SIZE(parked); i++) {
		flush_work(&t->path[i].setup.work);
		rtrs_srv_setup_unpark(&t->path[i]);
	}
	KUNIT_EXPECT_EQ(test, t->resumed, c->resumed);
	for (i = 0; i < ARRAY_SIZE(parked); i++)
		rtrs_srv_changed(&t->sess[i]);
	for (i = 0; i < ARRAY_SIZE(parked); i++)
		flush_work(&t->path[i].setup.work);
	KUNIT_EXPECT_EQ(test, t->resumed, c->resumed);
	rtrs_srv_setup_wq = wq;
}

static struct kunit_case rtrs_srv_path_cases[] = {
	KUNIT_CASE_PARAM(path_moves, move_cases_gen_params),
	KUNIT_CASE(path_moves_are_all_in_the_table),
	KUNIT_CASE_PARAM(fence_is_refused, fence_cases_gen_params),
	KUNIT_CASE(path_is_found_by_its_id),
	KUNIT_CASE(fence_waits_for_no_other_session),
	KUNIT_CASE_PARAM(handshake_waits_for_few_sessions, await_cases_gen_params),
	KUNIT_CASE_PARAM(change_resumes_those_that_wait_for_it, change_cases_gen_params),
	{}
};

static struct kunit_suite rtrs_srv_path_suite = {
	.name = "rtrs-server-path",
	.test_cases = rtrs_srv_path_cases,
};

kunit_test_suite(rtrs_srv_path_suite);
