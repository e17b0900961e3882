// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: access rules, and limits of hosts. The rules have no list of open mappings: after
 * each change, all mappings are checked again, see rnbd_srv_end_change().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/glob.h>
#include <linux/key.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

/* Protects the rules of all tenants, and their volumes and hosts; taken under rnbd_srv_lock. */
DEFINE_MUTEX(rnbd_srv_rules_lock);

const char * const rnbd_srv_limit_names[RNBD_SRV_NR_LIMITS] = {
	"max_sessions", "max_memory",
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

/* Check whether a client matches a host by the session's name and the address. */
static bool rnbd_srv_host_looks_like(const struct rnbd_srv_host *host, const char *sessname,
				     const struct sockaddr_storage *addr)
{
	unsigned int i;

	if (!glob_match(host->sessions, sessname))
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

/**
 * rnbd_srv_host_is() - check whether a client matches a host
 * @host: a host of the client's tenant
 * @sessname: name of the client's session
 * @peer: the client on one of its paths
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: true if it does.
 */
bool rnbd_srv_host_is(const struct rnbd_srv_host *host, const char *sessname,
		      const struct rtrs_srv_peer *peer)
{
	return rnbd_srv_host_looks_like(host, sessname, peer->addr) &&
	       rnbd_srv_host_proved(host, peer->key);
}

/**
 * rnbd_srv_check_proof() - check whether a client may use the name of a session
 * @rules: rules
 * @sessname: name of the client's session
 * @peer: the client on one of its paths
 *
 * If a session's name matches a host with keys, clients at any address need a proof of one of the
 * keys. Otherwise a stranger could occupy the name, and lock the host out. As an exception, no
 * proof is needed if name and address match a host without keys, and no host with keys.
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0 or -EKEYREJECTED.
 */
int rnbd_srv_check_proof(const struct rnbd_srv_rules *rules, const char *sessname,
			 const struct rtrs_srv_peer *peer)
{
	bool needs_key = false, is_keyed = false, is_other = false;
	const struct rnbd_srv_host *host;

	list_for_each_entry(host, &rules->hosts, list) {
		bool here = rnbd_srv_host_looks_like(host, sessname, peer->addr);

		if (!host->keys[0]) {
			is_other |= here;
		} else if (glob_match(host->sessions, sessname)) {
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
 * @sessname: name of the client's session
 * @peer: the client on one of its paths
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0; -ENOENT if only volumes can be opened, the client is none of the hosts, and no enabled
 * volume allows any host.
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
 * rnbd_srv_admit() - check whether a client may have a path of a session
 * @owner: rules of the tenant to which the client has connected
 * @sessname: name of the session
 * @peer: the client on that path
 *
 * An admitted path is kept even if the client can't open anything any more.
 *
 * Context: see &rtrs_srv_ops.admit.
 * Return: 0; -EKEYREJECTED; or -ENOENT if the client could open nothing.
 */
int rnbd_srv_admit(void *owner, const char *sessname, const struct rtrs_srv_peer *peer)
{
	int err;

	mutex_lock(&rnbd_srv_rules_lock);
	err = rnbd_srv_check_proof(owner, sessname, peer) ?:
	      rnbd_srv_check_known(owner, sessname, peer);
	mutex_unlock(&rnbd_srv_rules_lock);
	return err;
}

/* Get a key of a host. A copy is revoked when its source is not valid any more. */
static struct key *rnbd_srv_host_key(const struct rnbd_srv_host *host, unsigned int i)
{
	if (key_validate(host->sources[i]))
		key_revoke(host->keys[i]);
	return key_get(host->keys[i]);
}

/**
 * rnbd_srv_key() - get one of the keys of the hosts that a client matches
 * @owner: rules of the tenant to which the client has connected
 * @sessname: name of the client's session
 * @addr: address of the client
 * @nr: index of the key in the concatenated key lists of these hosts
 *
 * If keys change between calls, the caller may miss one; the client retries.
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

/**
 * rnbd_srv_has_limits() - check whether a host has limits
 * @host: the host
 *
 * Return: true if it has.
 */
bool rnbd_srv_has_limits(const struct rnbd_srv_host *host)
{
	return READ_ONCE(host->limits[RNBD_SRV_MAX_SESSIONS]) ||
	       READ_ONCE(host->limits[RNBD_SRV_MAX_MEMORY]);
}

/**
 * rnbd_srv_over_limit() - find a limit that a host exceeds
 * @host: the host
 * @used: what it uses, indexed by enum rnbd_srv_limit
 *
 * Return: the first such limit, or RNBD_SRV_NR_LIMITS if there is none.
 */
VISIBLE_IF_KUNIT enum rnbd_srv_limit rnbd_srv_over_limit(const struct rnbd_srv_host *host,
							 const u64 *used)
{
	enum rnbd_srv_limit i;
	u64 limit;

	for (i = 0; i < RNBD_SRV_NR_LIMITS; i++) {
		limit = READ_ONCE(host->limits[i]);
		if (limit && used[i] > limit)
			break;
	}
	return i;
}

/**
 * rnbd_srv_in_limits() - check that a host with one more path does not exceed its limits
 * @host: the host
 * @sess: session of the path, for the log
 * @used: what the host uses with this path, indexed by enum rnbd_srv_limit
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0 or -EDQUOT.
 */
int rnbd_srv_in_limits(struct rnbd_srv_host *host, const struct rnbd_srv_sess *sess,
		       const u64 *used)
{
	enum rnbd_srv_limit which = rnbd_srv_over_limit(host, used);

	if (which == RNBD_SRV_NR_LIMITS)
		return 0;
	/* Not the session's rate limit, as each attempt may create a new session. */
	pr_err_ratelimited("%s: one more path is beyond %s of host %s: it would have %llu, of %llu\n",
			   sess->label, rnbd_srv_limit_names[which],
			   config_item_name(&host->item), used[which],
			   READ_ONCE(host->limits[which]));
	return -EDQUOT;
}

/**
 * rnbd_srv_host_ok() - check whether a session may open a volume, in any access mode
 * @volume: the volume
 * @sess: the session
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: true if it may, once the volume is enabled.
 */
bool rnbd_srv_host_ok(const struct rnbd_srv_volume *volume, const struct rnbd_srv_sess *sess)
{
	const struct rnbd_srv_allow *allow;

	if (volume->allow_any_host)
		return true;
	list_for_each_entry(allow, &volume->allowed, list) {
		if (rnbd_srv_host_is(allow->host, sess->name, &sess->client))
			return true;
	}
	return false;
}

/**
 * rnbd_srv_judge() - check whether the rules allow a mapping
 * @rules: rules
 * @map: mapping with its session, name and access mode
 * @volume: on success, set to the volume, or to NULL if the name is a path
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: 0; -ENOENT if there is no such volume, the volume is not enabled, or the client may not
 * open it; -EACCES if the volume does not allow the access mode.
 */
VISIBLE_IF_KUNIT int rnbd_srv_judge(const struct rnbd_srv_rules *rules,
				    const struct rnbd_srv_map *map,
				    const struct rnbd_srv_volume **volume)
{
	const struct rnbd_srv_volume *found = rnbd_srv_find_volume(rules, map->path);

	if (found ? !rnbd_srv_host_ok(found, map->sess) : rules->listed)
		return -ENOENT;
	if (found && !(found->modes & BIT(map->mode)))
		return -EACCES;
	*volume = found;
	return 0;
}

/**
 * rnbd_srv_rules_apply() - check a new mapping, and look up its volume
 * @map: mapping with its session, name and access mode; gets its volume_path and uuid
 *
 * Return: 0, an errno of rnbd_srv_judge(), or -ENOMEM.
 */
int rnbd_srv_rules_apply(struct rnbd_srv_map *map)
{
	/* Reclaim must not wait for I/O under this lock, which the set-up of paths takes. */
	unsigned int noio = memalloc_noio_save();
	const struct rnbd_srv_volume *volume;
	int err;

	mutex_lock(&rnbd_srv_rules_lock);
	err = rnbd_srv_judge(map->sess->rules, map, &volume);
	if (!err && volume) {
		map->volume_path = kstrdup(volume->path, GFP_KERNEL);
		if (!map->volume_path)
			err = -ENOMEM;
		uuid_copy(&map->uuid, &volume->uuid);
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	memalloc_noio_restore(noio);
	return err;
}

/**
 * rnbd_srv_rules_hold() - check whether the present rules allow a mapping
 * @map: mapping, after rnbd_srv_rules_apply()
 *
 * Context: rnbd_srv_rules_lock is held.
 * Return: true if the rules allow it, and the name still denotes the same volume or path.
 */
bool rnbd_srv_rules_hold(const struct rnbd_srv_map *map)
{
	const struct rnbd_srv_volume *volume;

	lockdep_assert_held(&rnbd_srv_rules_lock);
	return !rnbd_srv_judge(map->sess->rules, map, &volume) &&
	       (volume ? map->volume_path && !strcmp(map->volume_path, volume->path) &&
			 uuid_equal(&map->uuid, &volume->uuid) :
			 !map->volume_path);
}

/**
 * rnbd_srv_rules_refresh() - check a new mapping again, and whether its volume is exclusive now
 * @map: mapping, after rnbd_srv_rules_apply(), not published yet
 *
 * Context: rnbd_srv_lock is held, so later changes of the rules check the published mapping.
 * Return: 0, or -ENOENT if the rules have changed.
 */
int rnbd_srv_rules_refresh(struct rnbd_srv_map *map)
{
	int err = -ENOENT;

	mutex_lock(&rnbd_srv_rules_lock);
	if (rnbd_srv_rules_hold(map)) {
		map->exclusive = map->volume_path &&
				 rnbd_srv_find_volume(map->sess->rules, map->path)->exclusive;
		err = 0;
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	return err;
}
