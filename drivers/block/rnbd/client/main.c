// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD client: loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "../common/rnbd-ctl.h"
#include "rnbd-clt.h"

const char * const rnbd_clt_access_names[RNBD_ACCESS_MODES] = RNBD_ACCESS_NAMES;

static struct class rnbd_clt_class = {
	.name = "rnbd-client",
};

/* /sys/class/rnbd-client/ctl, and the directory for links to disks in it */
struct device *rnbd_clt_ctl;
struct kobject *rnbd_clt_devices;

/* Prevent further mapping, and unmap the devices that are left. */
static void rnbd_clt_stop(void)
{
	struct rnbd_clt_dev *dev;
	bool others;

	rnbd_clt_stop_mapping();
	rnbd_clt_stop_watch();
	while ((dev = rnbd_clt_claim_next(false, &others)))
		rnbd_clt_dev_unmap(dev, false);
	rnbd_clt_exit_devs();
	rnbd_del_ctl(&rnbd_clt_class, rnbd_clt_ctl, rnbd_clt_devices);
}

static int __init rnbd_clt_init(void)
{
	int err;

	err = rnbd_clt_init_devs();
	if (err)
		return err;
	err = rnbd_add_ctl(&rnbd_clt_class, &rnbd_clt_ctl, &rnbd_clt_devices);
	if (err) {
		rnbd_clt_exit_devs();
		return err;
	}
	/* Discovery comes last: if it can't start, users may have mapped devices already. */
	err = rnbd_clt_start_mapping() ?: rnbd_clt_start_discovery();
	if (err)
		rnbd_clt_stop();
	return err;
}

/*
 * Users of open disks and writers of unmap_device hold a reference to the module. So the remaining
 * devices are idle, and not being unmapped.
 */
static void __exit rnbd_clt_exit(void)
{
	rnbd_clt_stop_discovery();
	rnbd_clt_stop();
}

/* After the transport's initcall, if both are built in */
late_initcall(rnbd_clt_init);
module_exit(rnbd_clt_exit);

MODULE_DESCRIPTION("RDMA network block device client");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("RTRS_CORE");
MODULE_VERSION(RTRS_DRV_VERSION);
