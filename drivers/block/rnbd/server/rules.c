// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: who may open what. Nothing is kept here of what is open: after each change
 * all mappings are looked at again, see rnbd_srv_recheck().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/glob.h>
#include <linux/key.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

/* Protects the rules of all tenants, and what is in their folders; under rnbd_srv_lock. */
DEFINE_MUTEX(rnbd_srv_rules_lock);

/* Hosts that are being counted; protected by rnbd_srv_lock as well */
static LIST_HEAD(rnbd_srv_counting);

const char * const rnbd_srv_limit_names[RNBD_SRV_NR_LIMITS] = {
	"max_sessions", "max_paths", "max_connections", "max_slots", "max_memory",
};

static const struct rnbd_srv_volume *rnbd_srv_find_volume(const struct rnbd_srv_rules *rules,
							  const char *name)
{
	struct rnbd_srv_volume *volume;

	list_for_each_entry(volume, &rules->volumes, list) {
		if (volume->enabled && !strcmp(config_item_name(&volume->group.cg_item), name))
			return volume;
	}
	return NULL;
}

static bool rnbd_srv_host_has_name(const struct rnbd_srv_host *host, const char *sessname)
{
	return glob_match(host->sessions, sessname);
}

/* By the name that the client claims, and the address that it has */
static bool rnbd_srv_host_looks_like(const struct rnbd_srv_host *host, const char *sessname,
				     const struct sockaddr_storage *addr)
{
	unsigned int i;

	if (!rnbd_srv_host_has_name(host, sessname))
		return false;
	for (i = 0; i < host->nr_prefixes; i++) {
		if (rtrs_prefix_has(&host->prefixes[i], addr))
			return true;
	}
	return !host->nr_prefixes;
}

static bool rnbd_srv_host_proved(const struct rnbd_srv_host *host, const struct key *key)
{
	unsigned int i;

	for (i = 0; i < RNBD_SRV_HOST_KEYS; i++) {
		if (key && host->keys[i] && rtrs_same_key(host->keys[i], key))
			return true;
	}
	return !host->keys[0];
}

static bool rnbd_srv_host_is(const struct rnbd_srv_host *host, const char *sessname,
			     const struct rtrs_srv_peer *peer)
{
	return rnbd_srv_host_looks_like(host, sessname, peer->addr) &&
	       rnbd_srv_host_proved(host, peer->key);
}

/**
 * rnbd_srv_check_proof() - check whether a client may have a session of a name
 * @rules: rules
 * @sessname: name of its session
 * @peer: the client on one of its paths
 *
 * A name that belongs to a host with keys needs the proof of one of them, from whatever address
 * the client comes: otherwise a stranger could use the name, and keep the host from using it. A
 * host without keys of the same name and the client's address makes an exception, but not where
 * the client's address is also one of the host with keys.
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0 or -EKEYREJECTED.
 */
VISIBLE_IF_KUNIT int rnbd_srv_check_proof(const struct rnbd_srv_rules *rules,
					  const char *sessname, const struct rtrs_srv_peer *peer)
{
	bool needs_key = false, is_keyed = false, is_other = false;
	const struct rnbd_srv_host *host;

	list_for_each_entry(host, &rules->hosts, list) {
		bool here = rnbd_srv_host_looks_like(host, sessname, peer->addr);

		if (!host->keys[0]) {
			is_other |= here;
		} else if (rnbd_srv_host_has_name(host, sessname)) {
			if (here && rnbd_srv_host_proved(host, peer->key))
				return 0;
			needs_key = true;
			is_keyed |= here;
		}
	}
	return needs_key && (is_keyed || !is_other) ? -EKEYREJECTED : 0;
}

/**
 * rnbd_srv_check_known() - check whether a client could open anything
 * @rules: rules
 * @sessname: name of its session
 * @peer: the client on one of its paths
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0; -ENOENT if only volumes can be opened, none of them by any host, and the client is
 * none of the hosts.
 */
VISIBLE_IF_KUNIT int rnbd_srv_check_known(const struct rnbd_srv_rules *rules,
					  const char *sessname, const struct rtrs_srv_peer *peer)
{
	const struct rnbd_srv_volume *volume;
	const struct rnbd_srv_host *host;

	if (!rules->listed)
		return 0;
	list_for_each_entry(host, &rules->hosts, list) {
		if (rnbd_srv_host_is(host, sessname, peer))
			return 0;
	}
	list_for_each_entry(volume, &rules->volumes, list) {
		if (volume->enabled && volume->allow_any_host)
			return 0;
	}
	return -ENOENT;
}

/**
 * rnbd_srv_admit() - check whether a client may have a session of a name, or keep it
 * @owner: rules of the tenant to which it has connected
 * @sessname: the name
 * @peer: the client
 *
 * A session from which everything was taken remains.
 *
 * Context: see &rtrs_srv_ops.admit; rnbd_srv_lock and the transport's may be held.
 * Return: 0, -EKEYREJECTED, or -ENOENT if there is nothing that a new path could open.
 */
int rnbd_srv_admit(void *owner, const char *sessname, const struct rtrs_srv_peer *peer)
{
	int err;

	mutex_lock(&rnbd_srv_rules_lock);
	err = rnbd_srv_check_proof(owner, sessname, peer);
	if (!err && !peer->admitted)
		err = rnbd_srv_check_known(owner, sessname, peer);
	mutex_unlock(&rnbd_srv_rules_lock);
	return err;
}

/* A copy is as valid as the key that it was copied from. */
static struct key *rnbd_srv_host_key(const struct rnbd_srv_host *host, unsigned int i)
{
	if (key_validate(host->sources[i]))
		key_revoke(host->keys[i]);
	return key_get(host->keys[i]);
}

/**
 * rnbd_srv_key() - get one of the keys of those hosts that a client looks like
 * @owner: rules of the tenant to which it has connected
 * @sessname: name of its session
 * @addr: its address
 * @nr: which one
 *
 * If keys are changed meanwhile, one may be left out: the client tries again.
 *
 * Context: see &rtrs_srv_ops.key.
 * Return: the key, with a reference, or NULL.
 */
struct key *rnbd_srv_key(void *owner, const char *sessname, const struct sockaddr_storage *addr,
			 unsigned int nr)
{
	const struct rnbd_srv_rules *rules = owner;
	struct rnbd_srv_host *host;
	struct key *key = NULL;
	unsigned int i;

	mutex_lock(&rnbd_srv_rules_lock);
	list_for_each_entry(host, &rules->hosts, list) {
		if (!rnbd_srv_host_looks_like(host, sessname, addr))
			continue;
		for (i = 0; i < RNBD_SRV_HOST_KEYS && host->keys[i] && !key; i++) {
			if (!nr--)
				key = rnbd_srv_host_key(host, i);
		}
		if (key)
			break;
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	return key;
}

static void rnbd_srv_host_begin_count(struct rnbd_srv_host *host)
{
	list_add(&host->counting, &rnbd_srv_counting);
	memset(host->used, 0, sizeof(host->used));
	host->counted = NULL;
}

/* Who ends a count does that before rnbd_srv_lock is released, so each begins with none. */
static void rnbd_srv_forget_counted(void)
{
	struct rnbd_srv_host *host, *next;

	list_for_each_entry_safe(host, next, &rnbd_srv_counting, counting)
		list_del_init(&host->counting);
}

static bool rnbd_srv_has_limits(const struct rnbd_srv_host *host)
{
	return memchr_inv(host->limits, 0, sizeof(host->limits));
}

/**
 * rnbd_srv_begin_count() - begin to count what those hosts have that matter to a path
 * @sess: its session
 * @peer: the client on that path
 *
 * Context: rnbd_srv_lock is held until all is counted.
 * Return: false if there are none.
 */
bool rnbd_srv_begin_count(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_host *host;
	bool any;

	mutex_lock(&rnbd_srv_rules_lock);
	list_for_each_entry(host, &sess->rules->hosts, list) {
		if (rnbd_srv_has_limits(host) && rnbd_srv_host_is(host, sess->name, peer))
			rnbd_srv_host_begin_count(host);
	}
	any = !list_empty(&rnbd_srv_counting);
	mutex_unlock(&rnbd_srv_rules_lock);
	return any;
}

/**
 * rnbd_srv_begin_count_of() - begin to count what a host has
 * @host: that host
 *
 * Context: rnbd_srv_lock is held until all is counted.
 */
void rnbd_srv_begin_count_of(struct rnbd_srv_host *host)
{
	mutex_lock(&rnbd_srv_rules_lock);
	rnbd_srv_host_begin_count(host);
	mutex_unlock(&rnbd_srv_rules_lock);
}

/**
 * rnbd_srv_end_count_of() - see what a host has
 * @host: host that has been counted
 * @used: set to that, by enum rnbd_srv_limit
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_end_count_of(const struct rnbd_srv_host *host, u64 *used)
{
	mutex_lock(&rnbd_srv_rules_lock);
	rnbd_srv_forget_counted();
	memcpy(used, host->used, sizeof(host->used));
	mutex_unlock(&rnbd_srv_rules_lock);
}

static void rnbd_srv_host_count(struct rnbd_srv_host *host, const struct rnbd_srv_sess *sess,
				const struct rtrs_srv_peer *peer)
{
	host->used[RNBD_SRV_MAX_SESSIONS] += host->counted != sess;
	host->used[RNBD_SRV_MAX_PATHS]++;
	host->used[RNBD_SRV_MAX_CONNECTIONS] += peer->nr_cons;
	host->used[RNBD_SRV_MAX_SLOTS] += peer->nr_slots;
	host->used[RNBD_SRV_MAX_MEMORY] += peer->memory;
	host->counted = sess;
}

/**
 * rnbd_srv_rules_count() - add a path to what its hosts have
 * @sess: its session; all its paths are counted before those of another one
 * @peer: the client on that path
 *
 * Context: rnbd_srv_lock is held; the transport's may be held.
 */
void rnbd_srv_rules_count(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer)
{
	struct rnbd_srv_host *host;

	mutex_lock(&rnbd_srv_rules_lock);
	list_for_each_entry(host, &rnbd_srv_counting, counting) {
		if (host->rules == sess->rules && rnbd_srv_host_is(host, sess->name, peer))
			rnbd_srv_host_count(host, sess, peer);
	}
	mutex_unlock(&rnbd_srv_rules_lock);
}

/**
 * rnbd_srv_over_limit() - has a host more than it may?
 * @host: host, whose sessions have been counted
 * @which: set to a limit that it is beyond, if it is
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: true if so.
 */
VISIBLE_IF_KUNIT bool rnbd_srv_over_limit(const struct rnbd_srv_host *host,
					  enum rnbd_srv_limit *which)
{
	enum rnbd_srv_limit i;

	for (i = 0; i < RNBD_SRV_NR_LIMITS; i++) {
		if (host->limits[i] && host->used[i] > host->limits[i]) {
			*which = i;
			return true;
		}
	}
	return false;
}

/**
 * rnbd_srv_in_limits() - are all hosts that were counted within their limits?
 * @sess: session that has one more path
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0 or -EDQUOT.
 */
int rnbd_srv_in_limits(const struct rnbd_srv_sess *sess)
{
	struct rnbd_srv_host *host;
	enum rnbd_srv_limit which;
	int err = 0;

	mutex_lock(&rnbd_srv_rules_lock);
	list_for_each_entry(host, &rnbd_srv_counting, counting) {
		if (!rnbd_srv_over_limit(host, &which))
			continue;
		/* Each try may come with a new session. */
		pr_err_ratelimited("%s: one more path is beyond %s of host %s: it would have %llu, of %llu\n",
				   sess->label, rnbd_srv_limit_names[which],
				   config_item_name(&host->item), host->used[which],
				   host->limits[which]);
		err = -EDQUOT;
	}
	rnbd_srv_forget_counted();
	mutex_unlock(&rnbd_srv_rules_lock);
	return err;
}

/**
 * rnbd_srv_cgroup() - get the cgroup that pays for a session's I/O
 * @sess: the session
 * @peer: the client on one of its paths
 * @css: set to the I/O controller of the first of its hosts' cgroups, with a reference
 *
 * Context: rnbd_srv_lock and the transport's may be held.
 * Return: true if there is one.
 */
bool rnbd_srv_cgroup(const struct rnbd_srv_sess *sess, const struct rtrs_srv_peer *peer,
		     struct cgroup_subsys_state **css)
{
	const struct rnbd_srv_host *host;
	bool found = false;

	mutex_lock(&rnbd_srv_rules_lock);
	list_for_each_entry(host, &sess->rules->hosts, list) {
		found = host->css && rnbd_srv_host_is(host, sess->name, peer);
		if (found) {
			rnbd_srv_css_get(host->css);
			*css = host->css;
			break;
		}
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	return found;
}

static bool rnbd_srv_host_ok(const struct rnbd_srv_volume *volume, const char *sessname,
			     const struct rtrs_srv_peer *peer)
{
	const struct rnbd_srv_allow *allow;

	if (volume->allow_any_host)
		return true;
	list_for_each_entry(allow, &volume->allowed, list) {
		if (rnbd_srv_host_is(allow->host, sessname, peer))
			return true;
	}
	return false;
}

/**
 * rnbd_srv_judge() - may a session open what it names?
 * @rules: rules
 * @map: mapping with the session, and with what it names and in which mode
 * @peer: the client on the path that is used for that
 * @volume: set to the volume, or NULL if the name is a path; not if it returns an error
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0; -ENOENT if there is no such volume, it is not enabled, or the session may not
 * know of it; -EACCES if it may not be opened in that mode.
 */
VISIBLE_IF_KUNIT int rnbd_srv_judge(const struct rnbd_srv_rules *rules,
				    const struct rnbd_srv_map *map,
				    const struct rtrs_srv_peer *peer,
				    const struct rnbd_srv_volume **volume)
{
	const struct rnbd_srv_volume *found = rnbd_srv_find_volume(rules, map->path);

	if (found ? !rnbd_srv_host_ok(found, map->sess->name, peer) : rules->listed)
		return -ENOENT;
	if (found && !(found->modes & BIT(map->mode)))
		return -EACCES;
	*volume = found;
	return 0;
}

/**
 * rnbd_srv_rules_apply() - find what a session may open by a name
 * @map: mapping with its session, name and mode; gets its volume_path
 * @peer: the client on the path on which it asked
 *
 * Return: 0, an errno of rnbd_srv_judge(), or -ENOMEM.
 */
int rnbd_srv_rules_apply(struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer)
{
	/* The transport's callbacks take the lock under its own, and must not wait for I/O. */
	unsigned int noio = memalloc_noio_save();
	const struct rnbd_srv_volume *volume;
	int err;

	mutex_lock(&rnbd_srv_rules_lock);
	err = rnbd_srv_judge(map->sess->rules, map, peer, &volume);
	if (!err && volume) {
		map->volume_path = kstrdup(volume->path, GFP_KERNEL);
		if (!map->volume_path)
			err = -ENOMEM;
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	memalloc_noio_restore(noio);
	return err;
}

/**
 * rnbd_srv_rules_refresh() - see whether a volume has become exclusive while it was being opened
 * @map: mapping, after rnbd_srv_rules_apply(), that is not among its device's yet
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_rules_refresh(struct rnbd_srv_map *map)
{
	const struct rnbd_srv_volume *volume;

	mutex_lock(&rnbd_srv_rules_lock);
	volume = rnbd_srv_find_volume(map->sess->rules, map->path);
	map->exclusive = map->volume_path && volume && volume->exclusive;
	mutex_unlock(&rnbd_srv_rules_lock);
}

/**
 * rnbd_srv_rules_hold() - would a session get today what it has open?
 * @map: mapping, after rnbd_srv_rules_apply()
 * @peer: the client on one of the session's paths
 *
 * Context: process; rnbd_srv_lock and the transport's may be held.
 * Return: false if not over that path, or if its name stands for something else now.
 */
bool rnbd_srv_rules_hold(const struct rnbd_srv_map *map, const struct rtrs_srv_peer *peer)
{
	const struct rnbd_srv_volume *volume;
	bool same;

	mutex_lock(&rnbd_srv_rules_lock);
	same = !rnbd_srv_judge(map->sess->rules, map, peer, &volume) &&
	       (volume ? map->volume_path && !strcmp(map->volume_path, volume->path) :
			 !map->volume_path);
	mutex_unlock(&rnbd_srv_rules_lock);
	return same;
}
