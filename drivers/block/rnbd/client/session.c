// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: sessions. A session is found by its name, opened by its first user, and closed
 * when it has neither users nor disks any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/key.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rnbd-clt.h"

static DEFINE_MUTEX(rnbd_clt_sessions_lock);
static LIST_HEAD(rnbd_clt_sessions);
/* Number of sessions that have been closed, under rnbd_clt_sessions_lock; waiters for a change */
static unsigned int rnbd_clt_nr_closed;
static DECLARE_WAIT_QUEUE_HEAD(rnbd_clt_closed);

static void rnbd_clt_link_event(void *priv, enum rtrs_link_event ev)
{
	struct rnbd_clt_sess *sess = priv;

	if (ev == RTRS_LINK_DOWN) {
		rnbd_clt_sess_down(sess);
		pr_warn("%s: session lost, its devices are closed\n", sess->label);
	} else {
		pr_info("%s: session is back, opening its devices again\n", sess->label);
		rnbd_clt_sess_up(sess);
	}
}

/**
 * rnbd_clt_fill_sess_info() - write RNBD_MSG_SESS_INFO
 * @msg: message
 * @cookie: random number, not 0
 */
void rnbd_clt_fill_sess_info(struct rnbd_msg_sess_info *msg, u32 cookie)
{
	*msg = (struct rnbd_msg_sess_info) {
		.hdr.type = cpu_to_le16(RNBD_MSG_SESS_INFO),
		.ver = RNBD_VER_MAJOR,
		.features = cpu_to_le32(RNBD_CLT_FEATURES),
		.cookie = cpu_to_le32(cookie),
	};
}

/**
 * rnbd_clt_granted() - get the features that a server has granted
 * @msg: message that was sent
 * @rsp: its answer
 *
 * A server without support for features leaves arbitrary bytes in the answer, but does not
 * repeat the cookie.
 *
 * Return: RNBD_FEATURE_*, a subset of the offered ones.
 */
u32 rnbd_clt_granted(const struct rnbd_msg_sess_info *msg, const struct rnbd_msg_sess_info *rsp)
{
	if (rsp->cookie != msg->cookie)
		return 0;
	return le32_to_cpu(rsp->features & msg->features);
}

static int rnbd_clt_sess_info(struct rnbd_clt_sess *sess, unsigned int generation)
{
	struct rnbd_msg_sess_info msg, *rsp;
	int err;

	rsp = kzalloc(sizeof(*rsp), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	rnbd_clt_fill_sess_info(&msg, get_random_u32() | 1);
	err = rnbd_clt_admin(sess, generation, &msg, sizeof(msg), rsp, sizeof(*rsp));
	if (!err && rsp->hdr.type != cpu_to_le16(RNBD_MSG_SESS_INFO_RSP))
		err = -EPROTO;
	if (!err)
		WRITE_ONCE(sess->features, rnbd_clt_granted(&msg, rsp));
	else if (__ratelimit(&sess->ratelimit))
		pr_err("%s: exchange of versions failed: %pe\n", sess->label, ERR_PTR(err));
	kfree(rsp);
	return err;
}

/**
 * rnbd_clt_sess_introduce() - exchange versions with the server, unless done already
 * @sess: session
 *
 * Must precede other messages in each generation of the session, as the server may have created a
 * new session.
 *
 * Return: 0, -ENOTCONN if there is no path, or another negative errno.
 */
int rnbd_clt_sess_introduce(struct rnbd_clt_sess *sess)
{
	unsigned int noio = memalloc_noio_save();
	unsigned int generation;
	bool up, done;
	int err = 0;

	mutex_lock(&sess->info_lock);
	spin_lock_irq(&sess->lock);
	generation = sess->generation;
	up = sess->up;
	done = sess->introduced;
	spin_unlock_irq(&sess->lock);

	if (!up)
		err = -ENOTCONN;
	else if (!done)
		err = rnbd_clt_sess_info(sess, generation);

	spin_lock_irq(&sess->lock);
	if (!err && sess->generation == generation)
		sess->introduced = true;
	spin_unlock_irq(&sess->lock);
	mutex_unlock(&sess->info_lock);
	memalloc_noio_restore(noio);
	return err;
}

static int rnbd_clt_check_transport(struct rnbd_clt_sess *sess)
{
	const struct rtrs_clt_limits *lim = &sess->limits;

	rtrs_clt_limits(sess->clt, &sess->limits);
	if (lim->queue_depth && lim->nr_queues && lim->max_segments &&
	    lim->max_segments <= USHRT_MAX && lim->max_io_size >= PAGE_SIZE)
		return 0;
	pr_err("%s: server's limits can't be used: depth %u, I/O size %u\n",
	       sess->label, lim->queue_depth, lim->max_io_size);
	return -EPROTO;
}

/*
 * Order matters: timeout handlers of the queues call the transport, and the transport completes
 * requests and reports events until it is closed.
 */
static void rnbd_clt_sess_close(struct rnbd_clt_sess *sess)
{
	rnbd_clt_stop_queues(sess);
	rtrs_clt_close(sess->clt);
	rnbd_clt_free_tags(sess);
}

static unsigned int rnbd_clt_nr_queues(const struct rnbd_clt_map_opts *opts)
{
	return opts->nr_queues ?:
	       min_t(unsigned int, num_online_cpus(), RNBD_CLT_DEF_QUEUES);
}

static int rnbd_clt_sess_open(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	struct rtrs_clt_params params = {
		.sessname = sess->name,
		.label = sess->label,
		.net = sess->net,
		.paths = opts->paths,
		.nr_paths = opts->nr_paths,
		.nr_queues = rnbd_clt_nr_queues(opts),
		.nr_poll_queues = opts->nr_poll_queues,
		.queue_depth = opts->queue_depth,
		.link_event = rnbd_clt_link_event,
		.srv_event = rnbd_clt_srv_event,
		.retry_ok = rnbd_clt_retry_ok,
		.prep_retry = rnbd_clt_prep_retry,
		.priv = sess,
	};
	struct key *key;
	int err;

	sess->port = opts->port;
	sess->queue_depth = opts->queue_depth;
	sess->wq = alloc_workqueue("rnbd-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, sess->label);
	sess->news_wq = alloc_workqueue("rnbd-news-%s", WQ_UNBOUND, 0, sess->label);
	if (!sess->wq || !sess->news_wq)
		return -ENOMEM;
	if (opts->key) {
		key = rtrs_get_key(opts->key);
		if (IS_ERR(key))
			return PTR_ERR(key);
		sess->key = key;
	}
	params.key = sess->key;
	sess->clt = rtrs_clt_open(&params);
	if (IS_ERR(sess->clt)) {
		err = PTR_ERR(sess->clt);
		if (err != -ERESTARTSYS)
			pr_err("%s: can't open the session: %pe\n", sess->label, sess->clt);
		return err;
	}
	err = rnbd_clt_check_transport(sess);
	if (!err)
		err = rnbd_clt_alloc_tags(sess);
	if (err) {
		rtrs_clt_close(sess->clt);
		return err;
	}

	err = rnbd_clt_sess_introduce(sess);
	if (err)
		rnbd_clt_sess_close(sess);
	return err;
}

static struct rnbd_clt_sess *rnbd_clt_sess_alloc(const struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_sess *sess;

	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return ERR_PTR(-ENOMEM);

	sess->users = 1;
	sess->keepers = 1;
	init_completion(&sess->opened);
	mutex_init(&sess->info_lock);
	mutex_init(&sess->ids_lock);
	spin_lock_init(&sess->lock);
	/* The transport reports changes after it has opened the session. */
	sess->up = true;
	INIT_LIST_HEAD(&sess->devs);
	INIT_DELAYED_WORK(&sess->expire_work, rnbd_clt_expire_work);
	INIT_DELAYED_WORK(&sess->event_work, rnbd_clt_event_work);
	ratelimit_state_init(&sess->ratelimit, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
	strscpy(sess->name, opts->sessname, sizeof(sess->name));
	strscpy(sess->label, opts->label, sizeof(sess->label));
	sess->net = get_net(opts->net);
	return sess;
}

static void rnbd_clt_sess_free(struct rnbd_clt_sess *sess)
{
	/* Nothing queues these any more: the transport's session is closed, and no device left. */
	cancel_delayed_work_sync(&sess->event_work);
	cancel_delayed_work_sync(&sess->expire_work);
	if (sess->news_wq)
		destroy_workqueue(sess->news_wq);
	if (sess->wq)
		destroy_workqueue(sess->wq);
	key_put(sess->key);
	put_net(sess->net);
	kfree(sess);
}

/**
 * rnbd_clt_sess_leave() - stop being a user of a session
 * @sess: session; the caller still keeps it until rnbd_clt_sess_put()
 *
 * A session without users can't be joined. rnbd_clt_sess_get() with its name waits until it is
 * closed, and opens another one.
 */
void rnbd_clt_sess_leave(struct rnbd_clt_sess *sess)
{
	mutex_lock(&rnbd_clt_sessions_lock);
	sess->users--;
	mutex_unlock(&rnbd_clt_sessions_lock);
}

/**
 * rnbd_clt_sess_put() - stop keeping a session
 * @sess: session, after rnbd_clt_sess_leave()
 *
 * The last keeper closes the session.
 */
void rnbd_clt_sess_put(struct rnbd_clt_sess *sess)
{
	bool last;

	mutex_lock(&rnbd_clt_sessions_lock);
	last = !--sess->keepers;
	mutex_unlock(&rnbd_clt_sessions_lock);
	if (!last)
		return;

	if (!sess->err)
		rnbd_clt_sess_close(sess);
	/* The session is closed on both sides: release its name. */
	mutex_lock(&rnbd_clt_sessions_lock);
	list_del(&sess->list);
	WRITE_ONCE(rnbd_clt_nr_closed, rnbd_clt_nr_closed + 1);
	mutex_unlock(&rnbd_clt_sessions_lock);
	wake_up_all(&rnbd_clt_closed);
	rnbd_clt_sess_free(sess);
}

static struct rnbd_clt_sess *rnbd_clt_sess_find(const struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_sess *sess;

	lockdep_assert_held(&rnbd_clt_sessions_lock);
	list_for_each_entry(sess, &rnbd_clt_sessions, list) {
		if (net_eq(sess->net, opts->net) && !strcmp(sess->name, opts->sessname))
			return sess;
	}
	return NULL;
}

/*
 * Become a user of an existing session or of a new one. If a session of that name is being closed,
 * or could not be opened, wait until it is gone. @first is set if the session is new and the caller
 * has to open it. Returns ERR_PTR(-ERESTARTSYS), without side effects, if a signal ends the wait.
 */
static struct rnbd_clt_sess *rnbd_clt_sess_use(const struct rnbd_clt_map_opts *opts, bool *first)
{
	struct rnbd_clt_sess *sess;
	unsigned int seen;
	int err;

	for (;;) {
		mutex_lock(&rnbd_clt_sessions_lock);
		sess = rnbd_clt_sess_find(opts);
		if (!sess || (sess->users && !sess->err))
			break;
		seen = rnbd_clt_nr_closed;
		mutex_unlock(&rnbd_clt_sessions_lock);
		err = wait_event_interruptible(rnbd_clt_closed,
					       READ_ONCE(rnbd_clt_nr_closed) != seen);
		if (err)
			return ERR_PTR(err);
	}

	*first = !sess;
	if (sess) {
		sess->users++;
		sess->keepers++;
	} else if (!opts->nr_paths) {
		sess = ERR_PTR(-ENXIO);
	} else {
		sess = rnbd_clt_sess_alloc(opts);
		if (!IS_ERR(sess))
			list_add(&sess->list, &rnbd_clt_sessions);
	}
	mutex_unlock(&rnbd_clt_sessions_lock);
	return sess;
}

static int rnbd_clt_open_first(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	int err = rnbd_clt_sess_open(sess, opts);

	/* From here on rnbd_clt_sess_use() does not return a session that could not be opened. */
	mutex_lock(&rnbd_clt_sessions_lock);
	sess->err = err;
	mutex_unlock(&rnbd_clt_sessions_lock);
	complete_all(&sess->opened);
	return err;
}

/*
 * Reject paths that the open session does not have: the user may mean another server, on which the
 * device's name denotes another volume.
 */
static int rnbd_clt_check_paths(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	unsigned int i;

	if (opts->port_given && !opts->nr_paths && opts->port != sess->port) {
		pr_err("%s: session is open, and dest_port=%u isn't its port\n",
		       sess->label, opts->port);
		return -EINVAL;
	}
	for (i = 0; i < opts->nr_paths; i++) {
		if (rtrs_clt_has_path(sess->clt, &opts->paths[i]))
			continue;
		pr_err("%s: session is open, and path=%s, port %u, isn't one of its paths\n",
		       sess->label, opts->path_strs[i], opts->port);
		return -EINVAL;
	}
	return 0;
}

/* Check whether an open session has another number than the user has given. */
static bool rnbd_clt_differs(const struct rnbd_clt_sess *sess, const char *name, bool given,
			     unsigned int has, unsigned int wanted)
{
	if (!given || wanted == has)
		return false;
	pr_err("%s: session is open with %s=%u, not %u\n", sess->label, name, has, wanted);
	return true;
}

static int rnbd_clt_check_numbers(const struct rnbd_clt_sess *sess,
				  const struct rnbd_clt_map_opts *opts)
{
	const struct rtrs_clt_limits *has = &sess->limits;
	/* The session may have been opened with this depth, and a smaller one negotiated. */
	bool other_depth = opts->queue_depth && opts->queue_depth != sess->queue_depth;

	if (rnbd_clt_differs(sess, "nr_queues", opts->nr_queues, has->nr_queues,
			     opts->nr_queues) ||
	    rnbd_clt_differs(sess, "nr_poll_queues", opts->poll_given, has->nr_poll_queues,
			     opts->nr_poll_queues) ||
	    rnbd_clt_differs(sess, "queue_depth", other_depth, has->queue_depth,
			     opts->queue_depth))
		return -EINVAL;
	return 0;
}

/* Compare the key's name, as the payload of a key may change. */
static int rnbd_clt_check_key(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	if (!opts->key || (sess->key && !strcmp(opts->key, sess->key->description)))
		return 0;
	pr_err("%s: session is open with %s\n", sess->label, sess->key ? "another key" : "no key");
	return -EINVAL;
}

/* Join a session that another caller is opening, or has opened. */
static int rnbd_clt_join(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	if (wait_for_completion_interruptible(&sess->opened))
		return -ERESTARTSYS;
	/* A signal to the other caller ended its attempt: retry. */
	if (sess->err == -ERESTARTSYS)
		return -EAGAIN;
	return sess->err ?: rnbd_clt_check_paths(sess, opts) ?:
	       rnbd_clt_check_numbers(sess, opts) ?: rnbd_clt_check_key(sess, opts);
}

/**
 * rnbd_clt_sess_get() - join a session, or open it
 * @opts: name and parameters of the session. An open session must have the specified paths, numbers
 *	of queues, depth and key. If no path is specified, the session must be open
 *
 * If another caller is opening the session, waits for the result and shares it.
 *
 * Return: the session, for rnbd_clt_sess_leave() and rnbd_clt_sess_put(), or an ERR_PTR().
 */
struct rnbd_clt_sess *rnbd_clt_sess_get(const struct rnbd_clt_map_opts *opts)
{
	struct rnbd_clt_sess *sess;
	bool first;
	int err;

	do {
		sess = rnbd_clt_sess_use(opts, &first);
		if (sess == ERR_PTR(-ENXIO))
			pr_err("%s: no such session, and no path= to open it with\n", opts->label);
		if (IS_ERR(sess))
			return sess;

		err = first ? rnbd_clt_open_first(sess, opts) :
			      rnbd_clt_join(sess, opts);
		if (err) {
			rnbd_clt_sess_leave(sess);
			rnbd_clt_sess_put(sess);
		}
	} while (err == -EAGAIN && !first);
	return err ? ERR_PTR(err) : sess;
}

/**
 * rnbd_clt_sess_set() - change settings of a session
 * @sess: session
 * @opts: the settings
 *
 * Return: 0, or a negative errno, which parsing the settings has ruled out.
 */
int rnbd_clt_sess_set(struct rnbd_clt_sess *sess, const struct rnbd_clt_map_opts *opts)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < opts->nr_settings && !err; i++)
		err = rtrs_clt_set(sess->clt, opts->settings[i].name, opts->settings[i].val);
	return err;
}

/* Claim one of a session's devices for unmapping. */
static struct rnbd_clt_dev *rnbd_clt_claim_dev(struct rnbd_clt_sess *sess)
{
	struct rnbd_clt_dev *dev, *found = NULL;

	spin_lock_irq(&sess->lock);
	list_for_each_entry(dev, &sess->devs, list) {
		/* Fails while the device is being mapped. */
		if (!rnbd_clt_dev_set_claimed(dev, true)) {
			found = dev;
			break;
		}
	}
	spin_unlock_irq(&sess->lock);
	return found;
}

/**
 * rnbd_clt_claim_next() - claim a device for unmapping
 * @orphans: claim only devices whose network namespace has no processes any more
 * @others: set to true if there are sessions in other namespaces than the initial one, else false
 *
 * Return: a device for rnbd_clt_dev_unmap(), or NULL.
 */
struct rnbd_clt_dev *rnbd_clt_claim_next(bool orphans, bool *others)
{
	struct rnbd_clt_dev *dev = NULL;
	struct rnbd_clt_sess *sess;
	bool other;

	*others = false;
	mutex_lock(&rnbd_clt_sessions_lock);
	list_for_each_entry(sess, &rnbd_clt_sessions, list) {
		other = !net_eq(sess->net, &init_net);
		*others |= other;
		if (!orphans || (other && !ns_ref_active_read(sess->net)))
			dev = rnbd_clt_claim_dev(sess);
		if (dev)
			break;
	}
	mutex_unlock(&rnbd_clt_sessions_lock);
	return dev;
}
