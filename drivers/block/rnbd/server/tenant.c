// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: /sys/kernel/config/rnbd/, and the tenants in it. The first tenant's directory is
 * rnbd/ itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "rules.h"

/* Longest name of a tenant: it is appended to session names in sysfs. */
#define RNBD_SRV_TENANT_NAME_LEN	31

static const char * const rnbd_srv_policies[] = { "open", "listed" };

static struct configfs_subsystem rnbd_srv_configfs;

static struct rnbd_srv_tenant *rnbd_srv_to_tenant(struct config_item *item)
{
	if (item == &rnbd_srv_configfs.su_group.cg_item)
		return &rnbd_srv_first;
	return container_of(to_config_group(item), struct rnbd_srv_tenant, group);
}

static ssize_t rnbd_srv_policy_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", rnbd_srv_policies[READ_ONCE(rnbd_srv_first.rules.listed)]);
}

static ssize_t rnbd_srv_policy_store(struct config_item *item, const char *page, size_t count)
{
	int policy = sysfs_match_string(rnbd_srv_policies, page);

	if (policy < 0)
		return policy;
	rnbd_srv_begin_change();
	rnbd_srv_first.rules.listed = policy;
	rnbd_srv_end_change();
	return count;
}
CONFIGFS_ATTR(rnbd_srv_, policy);

static ssize_t rnbd_srv_tenant_listen_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(rnbd_srv_to_tenant(item)->rtrs));
}

/*
 * The first tenant listens in the initial network namespace. Each other tenant listens in the
 * network namespace of the process that writes to the attribute.
 */
static ssize_t rnbd_srv_tenant_listen_store(struct config_item *item, const char *page,
					    size_t count)
{
	struct rnbd_srv_tenant *tenant = rnbd_srv_to_tenant(item);
	bool on;
	int err = kstrtobool(page, &on);

	if (!err && on)
		err = rnbd_srv_listen(tenant, tenant == &rnbd_srv_first ? &init_net :
							current->nsproxy->net_ns);
	else if (!err)
		rnbd_srv_unlisten(tenant);
	return err ?: count;
}
CONFIGFS_ATTR(rnbd_srv_tenant_, listen);

static struct configfs_attribute *rnbd_srv_root_attrs[] = {
	&rnbd_srv_attr_policy,
	&rnbd_srv_tenant_attr_listen,
	NULL
};

static const struct config_item_type rnbd_srv_root_type = {
	.ct_attrs = rnbd_srv_root_attrs,
	.ct_owner = THIS_MODULE,
};

/* Show the number of the network namespace, as in lsns; 0 if the tenant's port is closed. */
static ssize_t rnbd_srv_tenant_netns_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(rnbd_srv_to_tenant(item)->netns));
}
CONFIGFS_ATTR_RO(rnbd_srv_tenant_, netns);

static struct configfs_attribute *rnbd_srv_tenant_attrs[] = {
	&rnbd_srv_tenant_attr_listen,
	&rnbd_srv_tenant_attr_netns,
	NULL
};

static void rnbd_srv_tenant_release(struct config_item *item)
{
	kfree(rnbd_srv_to_tenant(item));
}

static struct configfs_item_operations rnbd_srv_tenant_ops = {
	.release = rnbd_srv_tenant_release,
};

static const struct config_item_type rnbd_srv_tenant_type = {
	.ct_item_ops = &rnbd_srv_tenant_ops,
	.ct_attrs = rnbd_srv_tenant_attrs,
	.ct_owner = THIS_MODULE,
};

/*
 * In names of sysfs directories, a session's name and a dot precede the tenant's name. A tenant's
 * name that begins with a digit could be mistaken for the id of a mapping.
 */
static bool rnbd_srv_tenant_name_ok(const char *name)
{
	const char *c;

	for (c = name; *c; c++) {
		if (!isascii(*c) || (!isalnum(*c) && *c != '-' && *c != '_'))
			return false;
	}
	return isalpha(name[0]) && strlen(name) <= RNBD_SRV_TENANT_NAME_LEN;
}

static struct config_group *rnbd_srv_make_tenant(struct config_group *group, const char *name)
{
	struct rnbd_srv_tenant *tenant;

	if (!rnbd_srv_tenant_name_ok(name)) {
		pr_err("tenant %s: a name is a letter, and up to %d letters, digits, - and _\n",
		       name, RNBD_SRV_TENANT_NAME_LEN - 1);
		return ERR_PTR(-EINVAL);
	}
	tenant = kzalloc(sizeof(*tenant), GFP_KERNEL);
	if (!tenant)
		return ERR_PTR(-ENOMEM);
	rnbd_srv_tenant_init(tenant);
	config_group_init_type_name(&tenant->group, name, &rnbd_srv_tenant_type);
	if (!config_item_name(&tenant->group.cg_item)) {
		kfree(tenant);
		return ERR_PTR(-ENOMEM);
	}
	config_item_get(&tenant->group.cg_item);
	config_item_get(&tenant->group.cg_item);
	rnbd_srv_add_parts(tenant, &tenant->group);
	return &tenant->group;
}

/* Remove a tenant, whose volumes and hosts have been removed. */
static void rnbd_srv_drop_tenant(struct config_group *group, struct config_item *item)
{
	struct rnbd_srv_tenant *tenant = rnbd_srv_to_tenant(item);

	rnbd_srv_tenant_exit(tenant);
	configfs_remove_default_groups(&tenant->group);
	config_item_put(item);
}

static struct configfs_group_operations rnbd_srv_tenants_ops = {
	.make_group = rnbd_srv_make_tenant,
	.drop_item = rnbd_srv_drop_tenant,
};

static const struct config_item_type rnbd_srv_tenants_type = {
	.ct_group_ops = &rnbd_srv_tenants_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem rnbd_srv_configfs = {
	.su_group.cg_item = {
		.ci_namebuf = "rnbd",
		.ci_type = &rnbd_srv_root_type,
	},
	.su_mutex = __MUTEX_INITIALIZER(rnbd_srv_configfs.su_mutex),
};

static struct config_group rnbd_srv_tenants;

/**
 * rnbd_srv_add_configfs() - create /sys/kernel/config/rnbd
 *
 * Directories that users create there hold a reference to the module.
 *
 * Return: 0 or a negative errno.
 */
int rnbd_srv_add_configfs(void)
{
	struct config_group *root = &rnbd_srv_configfs.su_group;

	config_group_init(root);
	rnbd_srv_add_parts(&rnbd_srv_first, root);
	config_group_init_type_name(&rnbd_srv_tenants, "tenants", &rnbd_srv_tenants_type);
	configfs_add_default_group(&rnbd_srv_tenants, root);
	return configfs_register_subsystem(&rnbd_srv_configfs);
}

/**
 * rnbd_srv_del_configfs() - undo rnbd_srv_add_configfs()
 */
void rnbd_srv_del_configfs(void)
{
	configfs_unregister_subsystem(&rnbd_srv_configfs);
}
