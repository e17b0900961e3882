// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: what the rules mean for sessions: their paths, mappings, limits and cgroups.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/string.h>

#include "rules.h"

static LIST_HEAD(rnbd_srv_sessions);

/**
 * rnbd_srv_same_client() - check whether two sessions belong to one client
 * @a: a session
 * @b: another session
 *
 * Return: true if they have the same tenant and name, by which the clients of a tenant differ.
 */
bool rnbd_srv_same_client(const struct rnbd_srv_sess *a, const struct rnbd_srv_sess *b)
{
	return a->rules == b->rules && !strcmp(a->name, b->name);
}

/*
 * Check of a mapping: @keep is a path over which the rules allow it, and stays even if the rules
 * change during the check. @others: there are paths over which they don't allow it. @end: end
 * these.
 */
struct rnbd_srv_verdict {
	const struct rnbd_srv_map *map;
	const struct rtrs_srv_path *keep;
	bool others;
	bool end;
};

static bool rnbd_srv_check_peer(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_verdict *verdict = arg;

	if (peer->closing || peer->path == verdict->keep)
		return false;
	if (!rnbd_srv_rules_hold(verdict->map, peer)) {
		verdict->others = true;
		return verdict->end;
	}
	verdict->keep = verdict->keep ?: peer->path;
	return false;
}

/**
 * rnbd_srv_allowed() - check whether the rules allow a mapping over any path of its session
 * @map: mapping after rnbd_srv_map_open()
 *
 * If they do, the session's other paths are ended.
 *
 * Context: rnbd_srv_lock is held.
 * Return: true if they do, or if the session has no path.
 */
bool rnbd_srv_allowed(struct rnbd_srv_map *map)
{
	struct rnbd_srv_verdict verdict = { .map = map };

	lockdep_assert_held(&rnbd_srv_lock);
	rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_check_peer, &verdict);
	verdict.end = verdict.keep && verdict.others;
	if (verdict.end)
		rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_check_peer, &verdict);
	return verdict.keep || !verdict.others;
}

/* Search for the cgroup of a session: a host that one of its paths matches may name one. */
struct rnbd_srv_css_search {
	const struct rnbd_srv_sess *sess;
	struct cgroup_subsys_state *css;
	bool any_path;
};

static bool rnbd_srv_find_css(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_css_search *search = arg;

	if (!peer->closing && !search->css) {
		search->css = rnbd_srv_cgroup(search->sess, peer);
		search->any_path = true;
	}
	return false;
}

/**
 * rnbd_srv_choose_css() - set the cgroup to which a mapping's I/O is charged
 * @map: mapping
 *
 * The first path whose host names a cgroup decides. A session without paths keeps the cgroup.
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_choose_css(struct rnbd_srv_map *map)
{
	struct rnbd_srv_css_search search = { .sess = map->sess };

	lockdep_assert_held(&rnbd_srv_lock);
	rtrs_srv_each_path(map->sess->rtrs, rnbd_srv_find_css, &search);
	if (search.any_path)
		rnbd_srv_css_set(map, search.css);
}

static bool rnbd_srv_peer_refused(const struct rtrs_srv_peer *peer, void *arg)
{
	const struct rnbd_srv_sess *sess = arg;

	return !peer->closing && rnbd_srv_admit(sess->rules, sess->name, peer);
}

/**
 * rnbd_srv_recheck() - close paths and mappings that the rules don't allow any more
 *
 * New I/O on them is refused when this returns; I/O in progress is finished. A path is closed if
 * its client would not be admitted now. The client may connect again with the proof that is
 * required now, and resume its session or open its devices in a new one.
 *
 * Context: process, may sleep; after the change of the rules, without rnbd_srv_rules_lock.
 */
void rnbd_srv_recheck(void)
{
	struct rnbd_srv_sess *sess;
	struct rnbd_srv_dev *dev;
	struct rnbd_srv_map *map;

	mutex_lock(&rnbd_srv_lock);
	list_for_each_entry(sess, &rnbd_srv_sessions, list)
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_peer_refused, sess);
	list_for_each_entry(dev, &rnbd_srv_devs, list) {
		list_for_each_entry(map, &dev->maps, list) {
			/* A mapping that is being closed must not close paths. */
			if (test_bit(0, &map->closing))
				continue;
			rnbd_srv_choose_css(map);
			if (!rnbd_srv_allowed(map) && rnbd_srv_close(map, NULL))
				rnbd_srv_info(map->sess, "may not have %s (%s) any more\n",
					      map->path, rnbd_srv_access_names[map->mode]);
		}
	}
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_add_sess() - add a session to those that rnbd_srv_recheck() checks
 * @sess: session whose first path is not up yet
 */
void rnbd_srv_add_sess(struct rnbd_srv_sess *sess)
{
	mutex_lock(&rnbd_srv_lock);
	list_add(&sess->list, &rnbd_srv_sessions);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_del_sess() - undo rnbd_srv_add_sess()
 * @sess: session that has no paths any more
 */
void rnbd_srv_del_sess(struct rnbd_srv_sess *sess)
{
	mutex_lock(&rnbd_srv_lock);
	list_del(&sess->list);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_add_host() - add a host to the rules of its tenant
 * @host: the new host
 */
void rnbd_srv_add_host(struct rnbd_srv_host *host)
{
	mutex_lock(&rnbd_srv_lock);
	mutex_lock(&rnbd_srv_rules_lock);
	list_add_tail(&host->list, &host->rules->hosts);
	mutex_unlock(&rnbd_srv_rules_lock);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_del_host() - undo rnbd_srv_add_host()
 * @host: the host
 */
void rnbd_srv_del_host(struct rnbd_srv_host *host)
{
	mutex_lock(&rnbd_srv_lock);
	mutex_lock(&rnbd_srv_rules_lock);
	list_del(&host->list);
	mutex_unlock(&rnbd_srv_rules_lock);
	mutex_unlock(&rnbd_srv_lock);
	rnbd_srv_recheck();
}

/*
 * Count of what a host uses: the session that is being walked, the one that was counted last, and
 * the one that requests one more path, or NULL
 */
struct rnbd_srv_count {
	const struct rnbd_srv_host *host;
	const struct rnbd_srv_sess *sess;
	const struct rnbd_srv_sess *counted;
	const struct rnbd_srv_sess *asks;
	u64 *used;
};

static bool rnbd_srv_count_path(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_count *count = arg;

	/* The new path may replace closing paths of the same client. */
	if (peer->closing && count->asks && rnbd_srv_same_client(count->sess, count->asks))
		return false;
	if (!rnbd_srv_is_host(count->host, count->sess, peer))
		return false;
	count->used[RNBD_SRV_MAX_SESSIONS] += count->counted != count->sess;
	count->used[RNBD_SRV_MAX_MEMORY] += peer->memory;
	count->counted = count->sess;
	return false;
}

/* Count what a host uses, in @used, by walking all paths. */
static void rnbd_srv_count_paths(const struct rnbd_srv_host *host, const struct rnbd_srv_sess *asks,
				 u64 *used)
{
	struct rnbd_srv_count count = { .host = host, .asks = asks, .used = used };
	struct rnbd_srv_sess *sess;

	lockdep_assert_held(&rnbd_srv_lock);
	memset(used, 0, RNBD_SRV_NR_LIMITS * sizeof(*used));
	list_for_each_entry(sess, &rnbd_srv_sessions, list) {
		count.sess = sess;
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_count_path, &count);
	}
}

/**
 * rnbd_srv_count_host() - count what a host uses
 * @host: the host
 * @used: set to the counts, indexed by enum rnbd_srv_limit
 *
 * Context: process, may sleep.
 */
void rnbd_srv_count_host(const struct rnbd_srv_host *host, u64 *used)
{
	mutex_lock(&rnbd_srv_lock);
	rnbd_srv_count_paths(host, NULL, used);
	mutex_unlock(&rnbd_srv_lock);
}

/* Check the limits of the hosts to which a new path belongs. */
static int rnbd_srv_check_limits(const struct rnbd_srv_sess *sess,
				 const struct rtrs_srv_peer *peer)
{
	u64 used[RNBD_SRV_NR_LIMITS];
	struct rnbd_srv_host *host;
	int err;

	lockdep_assert_held(&rnbd_srv_lock);
	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (!rnbd_srv_has_limits(host) || !rnbd_srv_is_host(host, sess, peer))
			continue;
		rnbd_srv_count_paths(host, sess, used);
		err = rnbd_srv_in_limits(host, sess, used);
		if (err)
			return err;
	}
	return 0;
}

static bool rnbd_srv_note_path(const struct rtrs_srv_peer *peer, void *any)
{
	*(bool *)any |= !peer->closing;
	return false;
}

/*
 * Check whether the rules allow the session's mappings over a new path. The rules may have changed
 * while the session had no path. In that case the first path closes forbidden mappings, since the
 * client has closed its devices. A further path is rejected instead, to keep mappings in use.
 */
static int rnbd_srv_may_join(struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer,
			     bool others)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	xa_for_each(&sess->maps, id, map) {
		if (test_bit(0, &map->closing) || rnbd_srv_rules_hold(map, peer))
			continue;
		if (others || !peer->first)
			return -EACCES;
		rnbd_srv_close(map, NULL);
	}
	return 0;
}

static void rnbd_srv_choose_all_css(struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	xa_for_each(&sess->maps, id, map)
		rnbd_srv_choose_css(map);
}

/**
 * rnbd_srv_path_up() - check whether a path may join a session
 * @priv: the session
 * @peer: the client on the path
 *
 * Devices that the session opens later close the paths over which they are not allowed.
 *
 * Context: see &rtrs_srv_ops.path_up.
 * Return: 0; -EACCES if the session has another path, and a mapping that is not allowed over this
 * one; or an errno of rnbd_srv_admit() or rnbd_srv_in_limits().
 */
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_sess *sess = priv;
	bool others = false;
	int err;

	mutex_lock(&rnbd_srv_lock);
	rtrs_srv_each_path(sess->rtrs, rnbd_srv_note_path, &others);
	rtrs_srv_know_path(peer, true);
	/* Checked again, as keys may have changed since the transport's call. */
	err = rnbd_srv_admit(sess->rules, sess->name, peer) ?:
	      rnbd_srv_may_join(sess, peer, others) ?:
	      rnbd_srv_check_limits(sess, peer);
	if (err)
		rtrs_srv_know_path(peer, false);
	else
		rnbd_srv_choose_all_css(sess);
	mutex_unlock(&rnbd_srv_lock);
	return err;
}
