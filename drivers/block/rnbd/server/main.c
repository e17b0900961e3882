// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "rnbd-srv.h"

static ushort port_nr = RTRS_PORT;
module_param(port_nr, ushort, 0444);
MODULE_PARM_DESC(port_nr, "Port to listen on (default: 1234)");

struct workqueue_struct *rnbd_srv_wq;

static struct rtrs_srv *rnbd_srv_rtrs;

static const struct rtrs_srv_ops rnbd_srv_ops = {
	.op_size = sizeof(struct rnbd_srv_req),
	.request = rnbd_srv_request,
	.sess_up = rnbd_srv_sess_up,
	.sess_down = rnbd_srv_sess_down,
};

static int __init rnbd_srv_init(void)
{
	int err;

	rnbd_srv_wq = alloc_workqueue("rnbd_server", WQ_UNBOUND, 0);
	if (!rnbd_srv_wq)
		return -ENOMEM;

	err = rnbd_srv_add_ctl();
	if (err)
		goto destroy_wq;

	rnbd_srv_rtrs = rtrs_srv_open(&rnbd_srv_ops, port_nr);
	if (IS_ERR(rnbd_srv_rtrs)) {
		err = PTR_ERR(rnbd_srv_rtrs);
		pr_err("can't listen on port %u: %pe\n", port_nr,
		       rnbd_srv_rtrs);
		goto stop_watch;
	}

	/* Last, as nothing may fail any more when somebody can have made folders. */
	err = rnbd_srv_add_configfs();
	if (err)
		goto close_rtrs;
	return 0;

close_rtrs:
	rtrs_srv_close(rnbd_srv_rtrs);
stop_watch:
	/* Clients may have been here meanwhile. */
	rnbd_srv_stop_watch();
	rnbd_srv_del_ctl();
destroy_wq:
	destroy_workqueue(rnbd_srv_wq);
	return err;
}

static void __exit rnbd_srv_exit(void)
{
	rnbd_srv_del_configfs();
	/* Ends all sessions, which closes their mappings. */
	rtrs_srv_close(rnbd_srv_rtrs);
	rnbd_srv_stop_watch();
	destroy_workqueue(rnbd_srv_wq);
	rnbd_srv_del_ctl();
}

/* Behind the transport, where both are built in */
late_initcall(rnbd_srv_init);
module_exit(rnbd_srv_exit);

MODULE_DESCRIPTION("RDMA network block device server");
MODULE_LICENSE("GPL");
MODULE_VERSION(RTRS_DRV_VERSION);
