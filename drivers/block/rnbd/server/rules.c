// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: who may open what. Nothing is kept here of what is open: after each change
 * all mappings are looked at again, see rnbd_srv_recheck().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/glob.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rules.h"

struct rnbd_srv_rules rnbd_srv_rules = {
	.lock = __MUTEX_INITIALIZER(rnbd_srv_rules.lock),
	.volumes = LIST_HEAD_INIT(rnbd_srv_rules.volumes),
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

static bool rnbd_srv_host_is(const struct rnbd_srv_host *host, const char *sessname,
			     const struct sockaddr_storage *peer)
{
	unsigned int i;

	if (!glob_match(host->sessions, sessname))
		return false;
	for (i = 0; i < host->nr_prefixes; i++) {
		if (rtrs_prefix_has(&host->prefixes[i], peer))
			return true;
	}
	return !host->nr_prefixes;
}

static bool rnbd_srv_host_ok(const struct rnbd_srv_volume *volume, const char *sessname,
			     const struct sockaddr_storage *peer)
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
 * @peer: address of the client on the path that is used for that
 * @volume: set to the volume, or NULL if the name is a path; not if it returns an error
 *
 * Context: &rnbd_srv_rules.lock is held.
 * Return: 0; -ENOENT if there is no such volume, it is not enabled, or the session may not
 * know of it; -EACCES if it may not be opened in that mode.
 */
VISIBLE_IF_KUNIT int rnbd_srv_judge(const struct rnbd_srv_rules *rules,
				    const struct rnbd_srv_map *map,
				    const struct sockaddr_storage *peer,
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
 * @map: mapping with its session, name and mode; gets its volume_path and exclusive
 * @peer: address of the client on the path on which it asked
 *
 * Return: 0, an errno of rnbd_srv_judge(), or -ENOMEM.
 */
int rnbd_srv_rules_apply(struct rnbd_srv_map *map, const struct sockaddr_storage *peer)
{
	const struct rnbd_srv_volume *volume;
	int err;

	mutex_lock(&rnbd_srv_rules.lock);
	err = rnbd_srv_judge(&rnbd_srv_rules, map, peer, &volume);
	if (!err && volume) {
		map->volume_path = kstrdup(volume->path, GFP_KERNEL);
		map->exclusive = volume->exclusive;
		if (!map->volume_path)
			err = -ENOMEM;
	}
	mutex_unlock(&rnbd_srv_rules.lock);
	return err;
}

/**
 * rnbd_srv_rules_hold() - would a session get today what it has open?
 * @map: mapping, after rnbd_srv_rules_apply()
 * @peer: address of the client on one of the session's paths
 *
 * Context: process; rnbd_srv_lock and the transport's may be held.
 * Return: false if not over that path, or if its name stands for something else now.
 */
bool rnbd_srv_rules_hold(const struct rnbd_srv_map *map, const struct sockaddr_storage *peer)
{
	const struct rnbd_srv_volume *volume;
	bool same;

	mutex_lock(&rnbd_srv_rules.lock);
	same = !rnbd_srv_judge(&rnbd_srv_rules, map, peer, &volume) &&
	       (volume ? map->volume_path && !strcmp(map->volume_path, volume->path) :
			 !map->volume_path);
	mutex_unlock(&rnbd_srv_rules.lock);
	return same;
}
