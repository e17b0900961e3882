// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: whether clients can connect, and in which network namespace. While they can't, it
 * can be prepared what they will find.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <net/net_namespace.h>

#include "rules.h"

/* How often it is looked whether there is still somebody in a namespace */
#define RNBD_SRV_NET_WATCH	HZ

static ushort port_nr = RTRS_PORT;
module_param(port_nr, ushort, 0444);
MODULE_PARM_DESC(port_nr, "Port to listen on (default: 1234)");

static const struct rtrs_srv_ops rnbd_srv_ops = {
	.op_size = sizeof(struct rnbd_srv_req),
	.request = rnbd_srv_request,
	.sess_up = rnbd_srv_sess_up,
	.key = rnbd_srv_key,
	.admit = rnbd_srv_admit,
	.path_up = rnbd_srv_path_up,
	.sess_down = rnbd_srv_sess_down,
};

/* Has what belongs to no other tenant; listens in the initial namespace. */
struct rnbd_srv_tenant rnbd_srv_first = {
	.rules = {
		.volumes = LIST_HEAD_INIT(rnbd_srv_first.rules.volumes),
		.hosts = LIST_HEAD_INIT(rnbd_srv_first.rules.hosts),
	},
	.lock = __MUTEX_INITIALIZER(rnbd_srv_first.lock),
};

/* NULL: the first one has none. */
static const char *rnbd_srv_tenant_name(struct rnbd_srv_tenant *tenant)
{
	return tenant == &rnbd_srv_first ? NULL : config_item_name(&tenant->group.cg_item);
}

/**
 * rnbd_srv_listening() - can clients of a tenant connect?
 * @tenant: the tenant
 *
 * Context: any.
 * Return: true if so.
 */
bool rnbd_srv_listening(const struct rnbd_srv_tenant *tenant)
{
	return READ_ONCE(tenant->rtrs);
}

static int rnbd_srv_open_port(struct rnbd_srv_tenant *tenant, struct net *net)
{
	struct rtrs_srv_params params = {
		.ops = &rnbd_srv_ops,
		.owner = &tenant->rules,
		.net = net,
		.port = port_nr,
		.scope = rnbd_srv_tenant_name(tenant),
	};
	struct rtrs_srv *rtrs = rtrs_srv_open(&params);

	if (IS_ERR(rtrs)) {
		pr_err("%s%scan't listen on port %u: %pe\n", params.scope ?: "",
		       params.scope ? ": " : "", port_nr, rtrs);
		return PTR_ERR(rtrs);
	}
	tenant->net = get_net(net);
	WRITE_ONCE(tenant->netns, net->ns.inum);
	WRITE_ONCE(tenant->rtrs, rtrs);
	if (!net_eq(net, &init_net))
		queue_delayed_work(system_dfl_wq, &tenant->net_work, RNBD_SRV_NET_WATCH);
	return 0;
}

static void rnbd_srv_close_port(struct rnbd_srv_tenant *tenant)
{
	lockdep_assert_held(&tenant->lock);
	WRITE_ONCE(tenant->rules.stopping, true);
	rtrs_srv_close(tenant->rtrs);
	WRITE_ONCE(tenant->rules.stopping, false);
	WRITE_ONCE(tenant->rtrs, NULL);
	put_net(tenant->net);
	tenant->net = NULL;
	WRITE_ONCE(tenant->netns, 0);
}

/*
 * What listens in a namespace, and connections, keep it from being freed, so it tells nobody that
 * all others have gone.
 */
static void rnbd_srv_net_work(struct work_struct *work)
{
	struct rnbd_srv_tenant *tenant = container_of(to_delayed_work(work),
						      struct rnbd_srv_tenant, net_work);

	mutex_lock(&tenant->lock);
	if (tenant->rtrs && ns_ref_active_read(tenant->net)) {
		queue_delayed_work(system_dfl_wq, &tenant->net_work, RNBD_SRV_NET_WATCH);
	} else if (tenant->rtrs) {
		pr_info("%s: its network namespace is gone: ending its sessions\n",
			rnbd_srv_tenant_name(tenant));
		rnbd_srv_close_port(tenant);
	}
	mutex_unlock(&tenant->lock);
}

/**
 * rnbd_srv_listen() - let clients of a tenant connect
 * @tenant: the tenant
 * @net: where; -EBUSY if it listens elsewhere
 *
 * Context: process, may sleep.
 * Return: 0, also if they can already, or a negative errno.
 */
int rnbd_srv_listen(struct rnbd_srv_tenant *tenant, struct net *net)
{
	int err = 0;

	mutex_lock(&tenant->lock);
	if (!tenant->rtrs)
		err = rnbd_srv_open_port(tenant, net);
	else if (!net_eq(tenant->net, net))
		err = -EBUSY;
	mutex_unlock(&tenant->lock);
	return err;
}

/**
 * rnbd_srv_unlisten() - end all sessions of a tenant, and let none begin
 * @tenant: the tenant
 *
 * Waits for the sessions' I/O, syncs what they can write to, and closes their mappings before it
 * returns.
 *
 * Context: process, may sleep.
 */
void rnbd_srv_unlisten(struct rnbd_srv_tenant *tenant)
{
	mutex_lock(&tenant->lock);
	if (tenant->rtrs)
		rnbd_srv_close_port(tenant);
	mutex_unlock(&tenant->lock);
}

/**
 * rnbd_srv_tenant_init() - prepare a tenant
 * @tenant: a new tenant, zeroed; nothing but its volumes can be opened
 */
void rnbd_srv_tenant_init(struct rnbd_srv_tenant *tenant)
{
	INIT_LIST_HEAD(&tenant->rules.volumes);
	INIT_LIST_HEAD(&tenant->rules.hosts);
	tenant->rules.listed = true;
	mutex_init(&tenant->lock);
	INIT_DELAYED_WORK(&tenant->net_work, rnbd_srv_net_work);
}

/**
 * rnbd_srv_tenant_exit() - undo rnbd_srv_tenant_init()
 * @tenant: tenant that nobody tells to listen any more
 *
 * Context: process, may sleep; as rnbd_srv_unlisten().
 */
void rnbd_srv_tenant_exit(struct rnbd_srv_tenant *tenant)
{
	rnbd_srv_unlisten(tenant);
	cancel_delayed_work_sync(&tenant->net_work);
	mutex_destroy(&tenant->lock);
}

/**
 * rnbd_srv_listen_first() - let clients of the first tenant connect
 *
 * Context: process, may sleep.
 * Return: 0, also if they can already, or a negative errno.
 */
int rnbd_srv_listen_first(void)
{
	return rnbd_srv_listen(&rnbd_srv_first, &init_net);
}

/**
 * rnbd_srv_unlisten_first() - end all sessions of the first tenant, and let none begin
 *
 * Context: process, may sleep; as rnbd_srv_unlisten().
 */
void rnbd_srv_unlisten_first(void)
{
	rnbd_srv_unlisten(&rnbd_srv_first);
}
