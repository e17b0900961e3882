// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: what the rules mean for sessions: their paths, mappings, limits and cgroups.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/key.h>
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

/**
 * rnbd_srv_begin_change() - begin a change of the rules
 *
 * Holds off new paths, new mappings, and other users of the rules.
 *
 * Context: process, may sleep.
 */
void rnbd_srv_begin_change(void)
{
	mutex_lock(&rnbd_srv_lock);
	mutex_lock(&rnbd_srv_rules_lock);
}

static void rnbd_srv_unlock_rules(void)
{
	mutex_unlock(&rnbd_srv_rules_lock);
	mutex_unlock(&rnbd_srv_lock);
}

/* Check whether a session belongs to a host. */
static bool rnbd_srv_is_host(const struct rnbd_srv_host *host, const struct rnbd_srv_sess *sess)
{
	return host->rules == sess->rules && rnbd_srv_host_is(host, sess->name, &sess->client);
}

/* Let a path determine the hosts of its session. */
static void rnbd_srv_set_client(struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer)
{
	key_put(sess->client.key);
	sess->client.key = key_get(peer->key);
	sess->addr = *peer->addr;
}

/**
 * rnbd_srv_host_beyond() - get a host that one client matches, and another one does not
 * @sess: session of both
 * @a: the one
 * @b: the other
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: the host, or NULL.
 */
VISIBLE_IF_KUNIT struct rnbd_srv_host *rnbd_srv_host_beyond(const struct rnbd_srv_sess *sess,
							    const struct rtrs_srv_peer *a,
							    const struct rtrs_srv_peer *b)
{
	struct rnbd_srv_host *host;

	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (rnbd_srv_host_is(host, sess->name, a) && !rnbd_srv_host_is(host, sess->name, b))
			return host;
	}
	return NULL;
}

/* Get a host that matches only one of a session and a client on one of its paths, or NULL. */
static struct rnbd_srv_host *rnbd_srv_other_host(const struct rnbd_srv_sess *sess,
						 const struct rtrs_srv_peer *peer)
{
	return rnbd_srv_host_beyond(sess, &sess->client, peer) ?:
	       rnbd_srv_host_beyond(sess, peer, &sess->client);
}

static void rnbd_srv_log_other(struct rnbd_srv_sess *sess, const char *what,
			       struct rnbd_srv_host *host)
{
	rnbd_srv_err(sess, "%s: host %s matches only some of the session's paths. Have it match all addresses of the client, or remove paths on the client\n",
		     what, config_item_name(&host->item));
}

/* The first of the session's hosts that has a cgroup decides. */
static void rnbd_srv_choose_css(struct rnbd_srv_sess *sess)
{
	struct cgroup_subsys_state *css = NULL;
	const struct rnbd_srv_host *host;

	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (!css && host->css && rnbd_srv_is_host(host, sess))
			css = host->css;
	}
	rnbd_srv_css_set(sess, css);
}

/* Update the session's cgroup, and close its mappings that the rules don't allow. */
static void rnbd_srv_check_maps(struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_map *map;
	unsigned long id;

	rnbd_srv_choose_css(sess);
	xa_for_each(&sess->maps, id, map) {
		if (!rnbd_srv_rules_hold(map) && rnbd_srv_close(map, NULL))
			rnbd_srv_info(sess, "may not have %s (%s) any more\n", map->path,
				      rnbd_srv_access_names[map->mode]);
	}
}

/*
 * Check of a session's paths after a change of the rules. @chosen: a path has determined the hosts.
 * @end: end the paths that match others. @other: a host that only some paths match, or NULL
 */
struct rnbd_srv_check {
	struct rnbd_srv_sess *sess;
	bool chosen;
	bool end;
	struct rnbd_srv_host *other;
};

static bool rnbd_srv_check_path(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_check *check = arg;
	struct rnbd_srv_sess *sess = check->sess;
	struct rnbd_srv_host *other;

	if (peer->closing)
		return false;
	if (rnbd_srv_check_proof(sess->rules, sess->name, peer))
		return true;
	if (check->end) {
		other = rnbd_srv_other_host(sess, peer);
		check->other = other ?: check->other;
		return other;
	}
	if (!check->chosen || rnbd_srv_host_beyond(sess, peer, &sess->client))
		rnbd_srv_set_client(sess, peer);
	check->chosen = true;
	return false;
}

/* If no path is left, the client on the last one determines the session's hosts. */
static void rnbd_srv_check_sess(struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_check check = { .sess = sess };

	rtrs_srv_each_path(sess->rtrs, rnbd_srv_check_path, &check);
	check.end = true;
	if (check.chosen)
		rtrs_srv_each_path(sess->rtrs, rnbd_srv_check_path, &check);
	if (check.other)
		rnbd_srv_log_other(sess, "ended paths", check.other);
	rnbd_srv_check_maps(sess);
}

/**
 * rnbd_srv_end_change() - close paths and mappings that the changed rules don't allow
 *
 * New I/O on them is refused when this returns; I/O in progress is finished. The client of a closed
 * path may connect again as the rules require now, and resume its session or open its devices in a
 * new one.
 *
 * Context: process, may sleep; after rnbd_srv_begin_change().
 */
void rnbd_srv_end_change(void)
{
	struct rnbd_srv_sess *sess;

	list_for_each_entry(sess, &rnbd_srv_sessions, list)
		rnbd_srv_check_sess(sess);
	rnbd_srv_unlock_rules();
}

/**
 * rnbd_srv_add_sess() - add a session to those that are checked after changes of the rules
 * @sess: session whose first path is not up yet
 */
void rnbd_srv_add_sess(struct rnbd_srv_sess *sess)
{
	sess->client.addr = &sess->addr;
	mutex_lock(&rnbd_srv_lock);
	list_add(&sess->list, &rnbd_srv_sessions);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_del_sess() - undo rnbd_srv_add_sess()
 * @sess: session that has no paths any more, and opens no more devices
 */
void rnbd_srv_del_sess(struct rnbd_srv_sess *sess)
{
	mutex_lock(&rnbd_srv_lock);
	list_del(&sess->list);
	mutex_unlock(&rnbd_srv_lock);
	key_put(sess->client.key);
}

/* Number and memory of a session's paths */
struct rnbd_srv_count {
	bool closing_too;
	unsigned int nr;
	u64 memory;
};

static bool rnbd_srv_count_path(const struct rtrs_srv_peer *peer, void *arg)
{
	struct rnbd_srv_count *count = arg;

	if (count->closing_too || !peer->closing) {
		count->nr++;
		count->memory += peer->memory;
	}
	return false;
}

static struct rnbd_srv_count rnbd_srv_count_paths(const struct rnbd_srv_sess *sess,
						  bool closing_too)
{
	struct rnbd_srv_count count = { .closing_too = closing_too };

	rtrs_srv_each_path(sess->rtrs, rnbd_srv_count_path, &count);
	return count;
}

/*
 * Count what a host uses, in @used, with the new path @peer of the session @asks, which may replace
 * closing paths of the same client. Both may be NULL.
 */
static void rnbd_srv_count_used(const struct rnbd_srv_host *host, const struct rnbd_srv_sess *asks,
				const struct rtrs_srv_peer *peer, u64 *used)
{
	struct rnbd_srv_count count;
	struct rnbd_srv_sess *sess;

	memset(used, 0, RNBD_SRV_NR_LIMITS * sizeof(*used));
	list_for_each_entry(sess, &rnbd_srv_sessions, list) {
		if (!rnbd_srv_is_host(host, sess))
			continue;
		count = rnbd_srv_count_paths(sess, !asks || !rnbd_srv_same_client(sess, asks));
		if (sess == asks)
			rnbd_srv_count_path(peer, &count);
		used[RNBD_SRV_MAX_SESSIONS] += !!count.nr;
		used[RNBD_SRV_MAX_MEMORY] += count.memory;
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
	rnbd_srv_begin_change();
	rnbd_srv_count_used(host, NULL, NULL, used);
	rnbd_srv_unlock_rules();
}

/* Check the limits of a session's hosts with one more path. */
static int rnbd_srv_check_limits(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer)
{
	u64 used[RNBD_SRV_NR_LIMITS];
	struct rnbd_srv_host *host;
	int err;

	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (!rnbd_srv_has_limits(host) || !rnbd_srv_is_host(host, sess))
			continue;
		rnbd_srv_count_used(host, sess, peer, used);
		err = rnbd_srv_in_limits(host, sess, used);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Check that a new path matches the hosts of its session, or let it determine them. It may do so if
 * it is the session's first one; or if there are no @others, and the client knows that it has none:
 * it has closed its devices then, and the mappings that are not allowed can be closed.
 */
static int rnbd_srv_join(struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer, bool others)
{
	struct rnbd_srv_host *other;

	if (!sess->addr.ss_family || (!others && peer->first)) {
		rnbd_srv_set_client(sess, peer);
		return 0;
	}
	other = rnbd_srv_other_host(sess, peer);
	if (!other)
		return 0;
	rnbd_srv_log_other(sess, "refused a path", other);
	return -EACCES;
}

/**
 * rnbd_srv_path_up() - check whether a path may join a session
 * @priv: the session
 * @peer: the client on the path
 *
 * Context: see &rtrs_srv_ops.path_up.
 * Return: 0; -EACCES if the path matches other hosts than the session; -EKEYREJECTED; or an errno
 * of rnbd_srv_in_limits().
 */
int rnbd_srv_path_up(void *priv, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_sess *sess = priv;
	struct sockaddr_storage addr;
	struct rtrs_srv_peer former;
	bool others;
	int err;

	rnbd_srv_begin_change();
	addr = sess->addr;
	former = (struct rtrs_srv_peer){ .addr = &addr, .key = key_get(sess->client.key) };
	others = rnbd_srv_count_paths(sess, false).nr;
	/* The proof is checked again, as keys may have changed since rnbd_srv_admit(). */
	err = rnbd_srv_check_proof(sess->rules, sess->name, peer) ?:
	      rnbd_srv_join(sess, peer, others) ?:
	      rnbd_srv_check_limits(sess, peer);
	if (!err)
		rtrs_srv_track_path(peer);
	else
		rnbd_srv_set_client(sess, &former);
	if (!err && !others)
		rnbd_srv_check_maps(sess);
	rnbd_srv_unlock_rules();
	key_put(former.key);
	return err;
}
