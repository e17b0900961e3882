// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: listening for clients, in a network namespace. An administrator can configure
 * volumes and hosts before clients can connect.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <net/net_namespace.h>

#include "rules.h"

/* Interval of the checks for network namespaces without processes */
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

/* Owner of the volumes and hosts outside of tenants/; listens in the initial namespace. */
struct rnbd_srv_tenant rnbd_srv_first = {
	.rules = {
		.volumes = LIST_HEAD_INIT(rnbd_srv_first.rules.volumes),
		.hosts = LIST_HEAD_INIT(rnbd_srv_first.rules.hosts),
	},
	.lock = __MUTEX_INITIALIZER(rnbd_srv_first.lock),
};

static int rnbd_srv_open_port(struct rnbd_srv_tenant *tenant, struct net *net)
{
	struct rtrs_srv_params params = {
		.ops = &rnbd_srv_ops,
		.owner = &tenant->rules,
		.net = net,
		.port = port_nr,
		/* NULL for the first tenant */
		.scope = config_item_name(&tenant->group.cg_item),
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
 * Close a tenant's port when its network namespace has no processes any more. The namespace is not
 * freed while the server listens or has connections in it, so no callback reports this.
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
			config_item_name(&tenant->group.cg_item));
		rnbd_srv_close_port(tenant);
	}
	mutex_unlock(&tenant->lock);
}

/**
 * rnbd_srv_listen() - let clients of a tenant connect
 * @tenant: the tenant
 * @net: network namespace in which to listen
 *
 * Context: process, may sleep.
 * Return: 0, also if the tenant listens there already; -EBUSY if it listens in another namespace;
 * or another negative errno.
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
 * rnbd_srv_unlisten() - stop listening, and end all sessions of a tenant
 * @tenant: the tenant
 *
 * Waits for the sessions' I/O, syncs the mappings that may write, and closes all mappings before it
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
 * @tenant: a new tenant, zeroed; only its volumes can be opened
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
 * @tenant: tenant; rnbd_srv_listen() is not called for it any more
 *
 * Context: process, may sleep; waits like rnbd_srv_unlisten().
 */
void rnbd_srv_tenant_exit(struct rnbd_srv_tenant *tenant)
{
	rnbd_srv_unlisten(tenant);
	cancel_delayed_work_sync(&tenant->net_work);
	mutex_destroy(&tenant->lock);
}
