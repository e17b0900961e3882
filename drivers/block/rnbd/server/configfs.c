// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: volumes and hosts in /sys/kernel/config/rnbd/. A change is effective when the write,
 * rmdir or unlink returns: the closing of forbidden paths and mappings has begun then.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/key.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uuid.h>
#include <net/net_namespace.h>

#include "rules.h"

static struct rnbd_srv_volume *rnbd_srv_to_volume(struct config_item *item)
{
	return container_of(to_config_group(item), struct rnbd_srv_volume, group);
}

static struct rnbd_srv_host *rnbd_srv_to_host(struct config_item *item)
{
	return container_of(item, struct rnbd_srv_host, item);
}

/* Copy the written text without surrounding whitespace. The caller frees the copy. */
static char *rnbd_srv_word(const char *page)
{
	char *word = kstrdup(skip_spaces(page), GFP_KERNEL);

	if (word)
		strim(word);
	return word;
}

/* Show a text of the rules, which may be NULL. */
static ssize_t rnbd_srv_show_text(char *const *text, char *page)
{
	ssize_t len;

	mutex_lock(&rnbd_srv_rules_lock);
	len = sysfs_emit(page, "%s\n", *text ?: "");
	mutex_unlock(&rnbd_srv_rules_lock);
	return len;
}

static ssize_t rnbd_srv_volume_path_show(struct config_item *item, char *page)
{
	return rnbd_srv_show_text(&rnbd_srv_to_volume(item)->path, page);
}

/* Lock the rules to change what mappings of a volume depend on. Fails if it can be opened. */
static int rnbd_srv_lock_disabled(struct rnbd_srv_volume *volume, const char *what)
{
	mutex_lock(&rnbd_srv_rules_lock);
	if (!volume->enabled)
		return 0;
	mutex_unlock(&rnbd_srv_rules_lock);
	pr_err("volume %s is enabled: write 0 to enable before its %s is changed\n",
	       config_item_name(&volume->group.cg_item), what);
	return -EBUSY;
}

static ssize_t rnbd_srv_volume_path_store(struct config_item *item, const char *page, size_t count)
{
	struct rnbd_srv_volume *volume = rnbd_srv_to_volume(item);
	char *path = rnbd_srv_word(page);
	int err;

	if (!path)
		return -ENOMEM;
	if (path[0] == '/') {
		err = rnbd_srv_lock_disabled(volume, "path");
	} else {
		pr_err("volume %s: %s: a path begins with /\n", config_item_name(item), path);
		err = -EINVAL;
	}
	if (!err) {
		swap(volume->path, path);
		mutex_unlock(&rnbd_srv_rules_lock);
	}
	kfree(path);
	return err ?: count;
}
CONFIGFS_ATTR(rnbd_srv_volume_, path);

static ssize_t rnbd_srv_volume_uuid_show(struct config_item *item, char *page)
{
	ssize_t len;

	mutex_lock(&rnbd_srv_rules_lock);
	len = sysfs_emit(page, "%pU\n", &rnbd_srv_to_volume(item)->uuid);
	mutex_unlock(&rnbd_srv_rules_lock);
	return len;
}

static ssize_t rnbd_srv_volume_uuid_store(struct config_item *item, const char *page, size_t count)
{
	struct rnbd_srv_volume *volume = rnbd_srv_to_volume(item);
	const char *text = skip_spaces(page);
	uuid_t uuid;
	int err;

	if (uuid_parse(text, &uuid) || uuid_is_null(&uuid) || *skip_spaces(text + UUID_STRING_LEN))
		return -EINVAL;
	err = rnbd_srv_lock_disabled(volume, "UUID");
	if (err)
		return err;
	uuid_copy(&volume->uuid, &uuid);
	mutex_unlock(&rnbd_srv_rules_lock);
	return count;
}
CONFIGFS_ATTR(rnbd_srv_volume_, uuid);

static ssize_t rnbd_srv_volume_modes_show(struct config_item *item, char *page)
{
	unsigned long modes = READ_ONCE(rnbd_srv_to_volume(item)->modes);
	unsigned int mode;
	int len = 0;

	for_each_set_bit(mode, &modes, RNBD_ACCESS_MODES)
		len += sysfs_emit_at(page, len, "%s%s", len ? " " : "",
				     rnbd_srv_access_names[mode]);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t rnbd_srv_volume_modes_store(struct config_item *item, const char *page, size_t count)
{
	char **words = argv_split(GFP_KERNEL, page, NULL), **word;
	unsigned long modes = 0;
	int mode = 0;

	if (!words)
		return -ENOMEM;
	for (word = words; *word && mode >= 0; word++) {
		mode = match_string(rnbd_srv_access_names, RNBD_ACCESS_MODES, *word);
		if (mode >= 0)
			modes |= BIT(mode);
		else
			pr_err("volume %s: modes: %s: there are ro, rw, migration and handover\n",
			       config_item_name(item), *word);
	}
	argv_free(words);
	if (mode < 0)
		return -EINVAL;
	rnbd_srv_begin_change();
	rnbd_srv_to_volume(item)->modes = modes;
	rnbd_srv_end_change();
	return count;
}
CONFIGFS_ATTR(rnbd_srv_volume_, modes);

/* Parse a flag of the rules, and set it. */
static ssize_t rnbd_srv_store_flag(bool *flag, const char *page, size_t count)
{
	bool value;
	int err = kstrtobool(page, &value);

	if (err)
		return err;
	rnbd_srv_begin_change();
	*flag = value;
	rnbd_srv_end_change();
	return count;
}

static ssize_t rnbd_srv_volume_exclusive_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(rnbd_srv_to_volume(item)->exclusive));
}

/* Affects only mappings that are opened later. */
static ssize_t rnbd_srv_volume_exclusive_store(struct config_item *item, const char *page,
					       size_t count)
{
	return rnbd_srv_store_flag(&rnbd_srv_to_volume(item)->exclusive, page, count);
}
CONFIGFS_ATTR(rnbd_srv_volume_, exclusive);

static ssize_t rnbd_srv_volume_allow_any_host_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(rnbd_srv_to_volume(item)->allow_any_host));
}

static ssize_t rnbd_srv_volume_allow_any_host_store(struct config_item *item, const char *page,
						    size_t count)
{
	return rnbd_srv_store_flag(&rnbd_srv_to_volume(item)->allow_any_host, page, count);
}
CONFIGFS_ATTR(rnbd_srv_volume_, allow_any_host);

static ssize_t rnbd_srv_volume_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(rnbd_srv_to_volume(item)->enabled));
}

static ssize_t rnbd_srv_volume_enable_store(struct config_item *item, const char *page,
					    size_t count)
{
	struct rnbd_srv_volume *volume = rnbd_srv_to_volume(item);
	bool on;
	int err = kstrtobool(page, &on);

	if (err)
		return err;
	rnbd_srv_begin_change();
	if (on && !volume->path)
		err = -EINVAL;
	else
		volume->enabled = on;
	rnbd_srv_end_change();
	if (err)
		pr_err("volume %s has no path: write one before it is enabled\n",
		       config_item_name(item));
	return err ?: count;
}
CONFIGFS_ATTR(rnbd_srv_volume_, enable);

static struct configfs_attribute *rnbd_srv_volume_attrs[] = {
	&rnbd_srv_volume_attr_path,
	&rnbd_srv_volume_attr_uuid,
	&rnbd_srv_volume_attr_modes,
	&rnbd_srv_volume_attr_exclusive,
	&rnbd_srv_volume_attr_allow_any_host,
	&rnbd_srv_volume_attr_enable,
	NULL
};

static void rnbd_srv_volume_release(struct config_item *item)
{
	struct rnbd_srv_volume *volume = rnbd_srv_to_volume(item);

	kfree(volume->path);
	kfree(volume);
}

static struct configfs_item_operations rnbd_srv_volume_ops = {
	.release = rnbd_srv_volume_release,
};

static const struct config_item_type rnbd_srv_volume_type = {
	.ct_item_ops = &rnbd_srv_volume_ops,
	.ct_attrs = rnbd_srv_volume_attrs,
	.ct_owner = THIS_MODULE,
};

static ssize_t rnbd_srv_host_sessions_show(struct config_item *item, char *page)
{
	ssize_t len;

	mutex_lock(&rnbd_srv_rules_lock);
	len = sysfs_emit(page, "%s\n", rnbd_srv_to_host(item)->sessions);
	mutex_unlock(&rnbd_srv_rules_lock);
	return len;
}

static ssize_t rnbd_srv_host_sessions_store(struct config_item *item, const char *page,
					    size_t count)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	char *word = rnbd_srv_word(page);

	if (!word)
		return -ENOMEM;
	if (!word[0] || strlen(word) >= sizeof(host->sessions)) {
		kfree(word);
		return -EINVAL;
	}
	rnbd_srv_begin_change();
	strscpy(host->sessions, word, sizeof(host->sessions));
	rnbd_srv_end_change();
	kfree(word);
	return count;
}
CONFIGFS_ATTR(rnbd_srv_host_, sessions);

static ssize_t rnbd_srv_host_addresses_show(struct config_item *item, char *page)
{
	const struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	char text[RTRS_PATH_STR_LEN];
	unsigned int i;
	int len = 0;

	mutex_lock(&rnbd_srv_rules_lock);
	for (i = 0; i < host->nr_prefixes; i++) {
		rtrs_prefix_format(&host->prefixes[i], text, sizeof(text));
		len += sysfs_emit_at(page, len, "%s\n", text);
	}
	mutex_unlock(&rnbd_srv_rules_lock);
	return len;
}

static int rnbd_srv_parse_prefixes(struct config_item *item, char **words, int nr,
				   struct rtrs_prefix *prefixes)
{
	int i;

	if (nr > RNBD_SRV_HOST_PREFIXES) {
		pr_err("host %s: addresses: at most %u; write shorter prefixes, or make one more host\n",
		       config_item_name(item), RNBD_SRV_HOST_PREFIXES);
		return -E2BIG;
	}
	for (i = 0; i < nr; i++) {
		if (rtrs_prefix_parse(current->nsproxy->net_ns, words[i], &prefixes[i])) {
			pr_err("host %s: addresses: %s: write ip:ADDRESS[/BITS] or gid:GID[/BITS]\n",
			       config_item_name(item), words[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static ssize_t rnbd_srv_host_addresses_store(struct config_item *item, const char *page,
					     size_t count)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	struct rtrs_prefix *prefixes;
	int nr, err = -ENOMEM;
	char **words;

	words = argv_split(GFP_KERNEL, page, &nr);
	if (!words)
		return -ENOMEM;
	prefixes = kcalloc(RNBD_SRV_HOST_PREFIXES, sizeof(*prefixes), GFP_KERNEL);
	if (prefixes)
		err = rnbd_srv_parse_prefixes(item, words, nr, prefixes);
	if (!err) {
		rnbd_srv_begin_change();
		swap(host->prefixes, prefixes);
		host->nr_prefixes = nr;
		rnbd_srv_end_change();
	}
	kfree(prefixes);
	argv_free(words);
	return err ?: count;
}
CONFIGFS_ATTR(rnbd_srv_host_, addresses);

/* Show the descriptions of the keys, but not their payloads. */
static ssize_t rnbd_srv_host_keys_show(struct config_item *item, char *page)
{
	const struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	unsigned int i;
	int len = 0;

	mutex_lock(&rnbd_srv_rules_lock);
	for (i = 0; i < RNBD_SRV_HOST_KEYS && host->keys[i]; i++)
		len += sysfs_emit_at(page, len, "%s\n", host->keys[i]->description);
	mutex_unlock(&rnbd_srv_rules_lock);
	return len;
}

static void rnbd_srv_put_keys(struct key **keys)
{
	unsigned int i;

	for (i = 0; i < RNBD_SRV_HOST_KEYS; i++)
		key_put(keys[i]);
}

/* Look a key up in the keyrings of the process that writes its name, and copy it. */
static int rnbd_srv_get_key(const char *name, struct key **source, struct key **copy)
{
	struct key *key = rtrs_get_key(name);

	if (IS_ERR(key))
		return PTR_ERR(key);
	*source = key;
	key = rtrs_copy_key(key);
	if (IS_ERR(key))
		return PTR_ERR(key);
	*copy = key;
	return 0;
}

static ssize_t rnbd_srv_host_keys_store(struct config_item *item, const char *page, size_t count)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	struct key *sources[RNBD_SRV_HOST_KEYS] = { };
	struct key *keys[RNBD_SRV_HOST_KEYS] = { };
	int nr, i, err = 0;
	char **words;

	words = argv_split(GFP_KERNEL, page, &nr);
	if (!words)
		return -ENOMEM;
	if (nr > RNBD_SRV_HOST_KEYS) {
		pr_err("host %s: keys: at most %u\n", config_item_name(item), RNBD_SRV_HOST_KEYS);
		err = -E2BIG;
	}
	for (i = 0; i < nr && !err; i++)
		err = rnbd_srv_get_key(words[i], &sources[i], &keys[i]);
	if (!err) {
		rnbd_srv_begin_change();
		for (i = 0; i < RNBD_SRV_HOST_KEYS; i++) {
			swap(host->sources[i], sources[i]);
			swap(host->keys[i], keys[i]);
		}
		rnbd_srv_end_change();
	}
	rnbd_srv_put_keys(sources);
	rnbd_srv_put_keys(keys);
	argv_free(words);
	return err ?: count;
}
CONFIGFS_ATTR(rnbd_srv_host_, keys);

static ssize_t rnbd_srv_limit_show(struct config_item *item, char *page, enum rnbd_srv_limit limit)
{
	u64 value = READ_ONCE(rnbd_srv_to_host(item)->limits[limit]);

	return sysfs_emit(page, "%llu\n", value >> rnbd_srv_limit_shift(limit));
}

/* Affects only new paths: no existing path is closed. */
static ssize_t rnbd_srv_limit_store(struct config_item *item, const char *page, size_t count,
				    enum rnbd_srv_limit limit)
{
	u32 value;
	int err = kstrtou32(page, 10, &value);

	if (err)
		return err;
	mutex_lock(&rnbd_srv_rules_lock);
	WRITE_ONCE(rnbd_srv_to_host(item)->limits[limit],
		   (u64)value << rnbd_srv_limit_shift(limit));
	mutex_unlock(&rnbd_srv_rules_lock);
	return count;
}

#define RNBD_SRV_LIMIT_ATTR(name, limit)						\
static ssize_t rnbd_srv_host_##name##_show(struct config_item *item, char *page)	\
{											\
	return rnbd_srv_limit_show(item, page, RNBD_SRV_##limit);			\
}											\
static ssize_t rnbd_srv_host_##name##_store(struct config_item *item, const char *page,	\
					    size_t count)				\
{											\
	return rnbd_srv_limit_store(item, page, count, RNBD_SRV_##limit);		\
}											\
CONFIGFS_ATTR(rnbd_srv_host_, name)

RNBD_SRV_LIMIT_ATTR(max_sessions, MAX_SESSIONS);
RNBD_SRV_LIMIT_ATTR(max_memory, MAX_MEMORY);

/* Count and show the resources that the host uses. */
static ssize_t rnbd_srv_host_usage_show(struct config_item *item, char *page)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	u64 used[RNBD_SRV_NR_LIMITS];
	unsigned int shift;
	int i, len = 0;

	rnbd_srv_count_host(host, used);
	for (i = 0; i < RNBD_SRV_NR_LIMITS; i++) {
		shift = rnbd_srv_limit_shift(i);
		len += sysfs_emit_at(page, len, "%s %llu\n",
				     rnbd_srv_limit_names[i] + strlen("max_"),
				     (used[i] + (1ULL << shift) - 1) >> shift);
	}
	return len;
}

/* Not readable by all: counting takes rnbd_srv_lock, which would delay clients. */
static struct configfs_attribute rnbd_srv_host_attr_usage = {
	.ca_name = "usage",
	.ca_mode = 0400,
	.ca_owner = THIS_MODULE,
	.show = rnbd_srv_host_usage_show,
};

static ssize_t rnbd_srv_host_cgroup_show(struct config_item *item, char *page)
{
	return rnbd_srv_show_text(&rnbd_srv_to_host(item)->cgroup, page);
}

/* Find a cgroup by its path, without a newline. Returns NULL if the path is empty. */
static struct cgroup_subsys_state *rnbd_srv_find_cgroup(struct config_item *item, const char *path)
{
	struct cgroup_subsys_state *css;

	if (!path[0])
		return NULL;
	css = path[0] == '/' ? rnbd_srv_css_find(path) : ERR_PTR(-EINVAL);
	if (IS_ERR(css))
		pr_err("host %s: cgroup %s: %s: %pe\n", config_item_name(item), path,
		       css == ERR_PTR(-EOPNOTSUPP) ?
		       "write +io to cgroup.subtree_control of the one above" :
		       "give its path below the mount of cgroup2, as in /clients/web", css);
	return css;
}

static ssize_t rnbd_srv_host_cgroup_store(struct config_item *item, const char *page, size_t count)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);
	char *path = rnbd_srv_word(page);
	struct cgroup_subsys_state *css;

	if (!path)
		return -ENOMEM;
	css = rnbd_srv_find_cgroup(item, path);
	if (IS_ERR(css)) {
		kfree(path);
		return PTR_ERR(css);
	}
	rnbd_srv_begin_change();
	swap(host->cgroup, path);
	swap(host->css, css);
	rnbd_srv_end_change();
	if (css)
		css_put(css);
	kfree(path);
	return count;
}
CONFIGFS_ATTR(rnbd_srv_host_, cgroup);

static struct configfs_attribute *rnbd_srv_host_attrs[] = {
	&rnbd_srv_host_attr_sessions,
	&rnbd_srv_host_attr_addresses,
	&rnbd_srv_host_attr_keys,
	&rnbd_srv_host_attr_max_sessions,
	&rnbd_srv_host_attr_max_memory,
	&rnbd_srv_host_attr_usage,
	&rnbd_srv_host_attr_cgroup,
	NULL
};

static void rnbd_srv_host_release(struct config_item *item)
{
	struct rnbd_srv_host *host = rnbd_srv_to_host(item);

	rnbd_srv_put_keys(host->sources);
	rnbd_srv_put_keys(host->keys);
	if (host->css)
		css_put(host->css);
	kfree(host->cgroup);
	kfree(host->prefixes);
	kfree(host);
}

static struct configfs_item_operations rnbd_srv_host_ops = {
	.release = rnbd_srv_host_release,
};

static const struct config_item_type rnbd_srv_host_type = {
	.ct_item_ops = &rnbd_srv_host_ops,
	.ct_attrs = rnbd_srv_host_attrs,
	.ct_owner = THIS_MODULE,
};

/* Get the volume of a directory of links, which holds a reference to it. */
static struct rnbd_srv_volume *rnbd_srv_links_to_volume(struct config_item *item)
{
	return container_of(to_config_group(item), struct rnbd_srv_volume, hosts);
}

/* Allow a host to open a volume. The volume's directory may be removed concurrently. */
static int rnbd_srv_allow_link(struct config_item *hosts, struct config_item *target)
{
	struct rnbd_srv_volume *volume = rnbd_srv_links_to_volume(hosts);
	struct rnbd_srv_allow *allow;
	int err = 0;

	if (target->ci_type != &rnbd_srv_host_type) {
		pr_err("volume %s: %s is not in hosts/\n",
		       config_item_name(&volume->group.cg_item), config_item_name(target));
		return -EINVAL;
	}
	if (rnbd_srv_to_host(target)->rules != volume->rules) {
		pr_err("volume %s: host %s is another tenant's\n",
		       config_item_name(&volume->group.cg_item), config_item_name(target));
		return -EINVAL;
	}
	allow = kzalloc(sizeof(*allow), GFP_KERNEL);
	if (!allow)
		return -ENOMEM;
	allow->host = rnbd_srv_to_host(target);
	mutex_lock(&rnbd_srv_rules_lock);
	if (volume->gone)
		err = -ENOENT;
	else
		list_add_tail(&allow->list, &volume->allowed);
	mutex_unlock(&rnbd_srv_rules_lock);
	if (err)
		kfree(allow);
	return err;
}

/* Revoke a host's access. If there are several links to the host, any entry can be removed. */
static void rnbd_srv_drop_link(struct config_item *hosts, struct config_item *target)
{
	struct rnbd_srv_volume *volume = rnbd_srv_links_to_volume(hosts);
	struct rnbd_srv_allow *allow;

	rnbd_srv_begin_change();
	list_for_each_entry(allow, &volume->allowed, list) {
		if (allow->host == rnbd_srv_to_host(target)) {
			list_del(&allow->list);
			kfree(allow);
			break;
		}
	}
	rnbd_srv_end_change();
}

static void rnbd_srv_links_release(struct config_item *hosts)
{
	config_item_put(&rnbd_srv_links_to_volume(hosts)->group.cg_item);
}

static struct configfs_item_operations rnbd_srv_links_ops = {
	.release = rnbd_srv_links_release,
	.allow_link = rnbd_srv_allow_link,
	.drop_link = rnbd_srv_drop_link,
};

static const struct config_item_type rnbd_srv_links_type = {
	.ct_item_ops = &rnbd_srv_links_ops,
	.ct_owner = THIS_MODULE,
};

/* Add a volume behind the older ones of its tenant. */
static void rnbd_srv_add_volume(struct rnbd_srv_volume *volume)
{
	struct list_head *volumes = &volume->rules->volumes;

	mutex_lock(&rnbd_srv_rules_lock);
	/* A time, so that clients cannot count the volumes of others. */
	volume->nr = ktime_get_ns();
	if (!list_empty(volumes))
		volume->nr = max(volume->nr,
				 list_last_entry(volumes, struct rnbd_srv_volume, list)->nr + 1);
	list_add_tail(&volume->list, volumes);
	mutex_unlock(&rnbd_srv_rules_lock);
}

static struct config_group *rnbd_srv_make_volume(struct config_group *group, const char *name)
{
	struct rnbd_srv_volume *volume;

	if (strlen(name) >= RNBD_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	volume = kzalloc(sizeof(*volume), GFP_KERNEL);
	if (!volume)
		return ERR_PTR(-ENOMEM);
	volume->rules = &container_of(group, struct rnbd_srv_tenant, volumes)->rules;
	volume->modes = RNBD_SRV_ALL_MODES;
	uuid_gen(&volume->uuid);
	INIT_LIST_HEAD(&volume->allowed);
	config_group_init_type_name(&volume->group, name, &rnbd_srv_volume_type);
	/* A long name is allocated. */
	if (!config_item_name(&volume->group.cg_item)) {
		kfree(volume);
		return ERR_PTR(-ENOMEM);
	}
	config_group_init_type_name(&volume->hosts, "hosts", &rnbd_srv_links_type);
	config_item_get(&volume->group.cg_item);
	configfs_add_default_group(&volume->hosts, &volume->group);
	rnbd_srv_add_volume(volume);
	return &volume->group;
}

/* Remove a volume. It is freed when users of its attributes have finished. */
static void rnbd_srv_drop_volume(struct config_group *group, struct config_item *item)
{
	struct rnbd_srv_volume *volume = rnbd_srv_to_volume(item);

	rnbd_srv_begin_change();
	list_del(&volume->list);
	volume->gone = true;
	rnbd_srv_end_change();
	configfs_remove_default_groups(&volume->group);
	config_item_put(item);
}

static struct configfs_group_operations rnbd_srv_volumes_ops = {
	.make_group = rnbd_srv_make_volume,
	.drop_item = rnbd_srv_drop_volume,
};

/* The directories volumes and hosts each hold a reference to their tenant. */
static void rnbd_srv_volumes_release(struct config_item *item)
{
	config_item_put(&container_of(to_config_group(item), struct rnbd_srv_tenant,
				      volumes)->group.cg_item);
}

static void rnbd_srv_hosts_release(struct config_item *item)
{
	config_item_put(&container_of(to_config_group(item), struct rnbd_srv_tenant,
				      hosts)->group.cg_item);
}

static struct configfs_item_operations rnbd_srv_volumes_item_ops = {
	.release = rnbd_srv_volumes_release,
};

static struct configfs_item_operations rnbd_srv_hosts_item_ops = {
	.release = rnbd_srv_hosts_release,
};

static const struct config_item_type rnbd_srv_volumes_type = {
	.ct_item_ops = &rnbd_srv_volumes_item_ops,
	.ct_group_ops = &rnbd_srv_volumes_ops,
	.ct_owner = THIS_MODULE,
};

static struct config_item *rnbd_srv_make_host(struct config_group *group, const char *name)
{
	struct rnbd_srv_host *host;

	if (strlen(name) >= sizeof(host->sessions))
		return ERR_PTR(-ENAMETOOLONG);
	host = kzalloc(sizeof(*host), GFP_KERNEL);
	if (!host)
		return ERR_PTR(-ENOMEM);
	host->rules = &container_of(group, struct rnbd_srv_tenant, hosts)->rules;
	strscpy(host->sessions, name, sizeof(host->sessions));
	config_item_init_type_name(&host->item, name, &rnbd_srv_host_type);
	if (!config_item_name(&host->item)) {
		kfree(host);
		return ERR_PTR(-ENOMEM);
	}
	rnbd_srv_begin_change();
	list_add_tail(&host->list, &host->rules->hosts);
	rnbd_srv_end_change();
	return &host->item;
}

static void rnbd_srv_drop_host(struct config_group *group, struct config_item *item)
{
	rnbd_srv_begin_change();
	list_del(&rnbd_srv_to_host(item)->list);
	rnbd_srv_end_change();
	config_item_put(item);
}

static struct configfs_group_operations rnbd_srv_hosts_ops = {
	.make_item = rnbd_srv_make_host,
	.drop_item = rnbd_srv_drop_host,
};

static const struct config_item_type rnbd_srv_hosts_type = {
	.ct_item_ops = &rnbd_srv_hosts_item_ops,
	.ct_group_ops = &rnbd_srv_hosts_ops,
	.ct_owner = THIS_MODULE,
};

/**
 * rnbd_srv_add_parts() - create the directories of a tenant's volumes and hosts
 * @tenant: the tenant
 * @group: directory for them
 */
void rnbd_srv_add_parts(struct rnbd_srv_tenant *tenant, struct config_group *group)
{
	config_group_init_type_name(&tenant->volumes, "volumes", &rnbd_srv_volumes_type);
	configfs_add_default_group(&tenant->volumes, group);
	config_group_init_type_name(&tenant->hosts, "hosts", &rnbd_srv_hosts_type);
	configfs_add_default_group(&tenant->hosts, group);
}
