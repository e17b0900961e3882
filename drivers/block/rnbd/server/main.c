// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <net/net_namespace.h>

#include "../common/rnbd-ctl.h"
#include "rules.h"

static struct class rnbd_srv_class = {
	.name = "rnbd-server",
};

/* /sys/class/rnbd-server/ctl, and the directory of the devices in it */
static struct device *rnbd_srv_ctl;
struct kobject *rnbd_srv_devices;

static bool rnbd_srv_listen_now = true;
module_param_named(listen, rnbd_srv_listen_now, bool, 0444);
MODULE_PARM_DESC(listen,
		 "Let clients connect from the beginning; N: when 1 is written to /sys/kernel/config/rnbd/listen (default: Y)");

struct workqueue_struct *rnbd_srv_wq;

static int __init rnbd_srv_init(void)
{
	int err;

	rnbd_srv_wq = alloc_workqueue("rnbd_server", WQ_UNBOUND, 0);
	if (!rnbd_srv_wq)
		return -ENOMEM;

	err = -ENOMEM;
	rnbd_srv_state_wq = alloc_workqueue("rnbd_srv_state", WQ_UNBOUND, 0);
	if (!rnbd_srv_state_wq)
		goto destroy_wq;

	err = rnbd_add_ctl(&rnbd_srv_class, &rnbd_srv_ctl, &rnbd_srv_devices);
	if (err)
		goto destroy_state_wq;

	if (rnbd_srv_listen_now)
		err = rnbd_srv_listen(&rnbd_srv_first, &init_net);
	if (err)
		goto stop_watch;

	/* Last, as loading must not fail once users can have created directories. */
	err = rnbd_srv_add_configfs();
	if (err)
		goto unlisten;
	return 0;

unlisten:
	rnbd_srv_unlisten(&rnbd_srv_first);
stop_watch:
	/* Clients may have connected and opened devices. */
	rnbd_srv_stop_watch();
	rnbd_srv_writer_exit();
	rnbd_del_ctl(&rnbd_srv_class, rnbd_srv_ctl, rnbd_srv_devices);
destroy_state_wq:
	destroy_workqueue(rnbd_srv_state_wq);
destroy_wq:
	destroy_workqueue(rnbd_srv_wq);
	return err;
}

static void __exit rnbd_srv_exit(void)
{
	rnbd_srv_del_configfs();
	/* Ends all sessions, which closes their mappings. */
	rnbd_srv_unlisten(&rnbd_srv_first);
	rnbd_srv_stop_watch();
	rnbd_srv_writer_exit();
	destroy_workqueue(rnbd_srv_state_wq);
	destroy_workqueue(rnbd_srv_wq);
	rnbd_del_ctl(&rnbd_srv_class, rnbd_srv_ctl, rnbd_srv_devices);
}

/* After the transport's initcall, if both are built in */
late_initcall(rnbd_srv_init);
module_exit(rnbd_srv_exit);

MODULE_DESCRIPTION("RDMA network block device server");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("RTRS_CORE");
MODULE_VERSION(RTRS_DRV_VERSION);
