// SPDX-License-Identifier: GPL-2.0-or-later
/* The client module: opening and closing of sessions */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>

#include "clt.h"

MODULE_DESCRIPTION("RTRS client");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("RTRS_CORE");
MODULE_VERSION(RTRS_DRV_VERSION);

/**
 * rtrs_clt_open() - open a session with a server
 * @params: name, paths and callbacks of the session; not needed after return
 *
 * Returns when one path is connected, and either all paths have been tried or five seconds have
 * passed. The other paths are retried in the background.
 *
 * Context: process, may sleep; interrupted by signals.
 * Return: the session or an ERR_PTR(): -EINVAL; -ENOMEM; -EEXIST if a session of the same name is
 * open or two paths are equal; -ERESTARTSYS on a signal; or the error of the first path, such as
 * -EHOSTUNREACH, -ECONNREFUSED, -ETIMEDOUT and -EPROTO.
 */
struct rtrs_clt *rtrs_clt_open(const struct rtrs_clt_params *params)
{
	struct rtrs_clt *clt;
	int ret;

	if (!rtrs_name_valid(params->sessname) || !params->nr_queues ||
	    params->nr_queues >= RTRS_MAX_CONS ||
	    params->nr_poll_queues >= RTRS_MAX_CONS - params->nr_queues ||
	    params->queue_depth > RTRS_MAX_QUEUE_DEPTH ||
	    !params->nr_paths || params->nr_paths > RTRS_MAX_PATHS)
		return ERR_PTR(-EINVAL);
	clt = rtrs_clt_alloc(params);
	if (IS_ERR(clt))
		return clt;
	rtrs_clt_sysfs_init_sess(clt);
	ret = rtrs_clt_claim_name(clt);
	if (ret)
		goto put_dev;
	ret = rtrs_clt_sysfs_add(clt);
	if (ret)
		goto release_name;
	ret = rtrs_clt_connect_paths(clt, params);
	if (ret) {
		rtrs_clt_close(clt);
		return ERR_PTR(ret);
	}
	mutex_lock(&clt->lock);
	clt->link.reported = RTRS_CLT_REPORTED_UP;
	mutex_unlock(&clt->lock);
	/* The session may have lost its paths meanwhile. */
	queue_work(rtrs_clt_sess_wq, &clt->link.work);
	return clt;

release_name:
	rtrs_clt_release_name(clt);
put_dev:
	put_device(&clt->dev);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(rtrs_clt_open);

/**
 * rtrs_clt_close() - close a session
 * @clt: an open session; the caller neither submits to it nor resumes it any more
 *
 * Requests in flight and waiting requests are completed with -ECONNABORTED. link_event() isn't
 * called any more once this function has started to end paths, and is not running when it returns.
 *
 * Context: process, may sleep; not from link_event() or a request's done().
 */
void rtrs_clt_close(struct rtrs_clt *clt)
{
	rtrs_clt_end_paths(clt);
	rtrs_clt_sysfs_del(clt);
	/* From now on the name may be used again. */
	rtrs_clt_release_name(clt);
	put_device(&clt->dev);
}
EXPORT_SYMBOL_GPL(rtrs_clt_close);

static struct dentry *rtrs_clt_debugfs;

static void rtrs_clt_destroy_wqs(void)
{
	if (rtrs_clt_connect_wq)
		destroy_workqueue(rtrs_clt_connect_wq);
	if (rtrs_clt_end_wq)
		destroy_workqueue(rtrs_clt_end_wq);
	if (rtrs_clt_sess_wq)
		destroy_workqueue(rtrs_clt_sess_wq);
}

/*
 * Work items of different paths and sessions run in parallel, up to the limit of an unbound
 * workqueue. If there is no memory for threads, the rescuer runs them one by one.
 */
static int rtrs_clt_alloc_wqs(void)
{
	unsigned int flags = WQ_UNBOUND | WQ_MEM_RECLAIM;

	rtrs_clt_connect_wq = alloc_workqueue("rtrs-clt-connect", flags,
					      WQ_UNBOUND_MAX_ACTIVE);
	rtrs_clt_end_wq = alloc_workqueue("rtrs-clt-end", flags,
					  WQ_UNBOUND_MAX_ACTIVE);
	rtrs_clt_sess_wq = alloc_workqueue("rtrs-clt-sess", flags,
					   WQ_UNBOUND_MAX_ACTIVE);
	return rtrs_clt_connect_wq && rtrs_clt_end_wq && rtrs_clt_sess_wq ?
		0 : -ENOMEM;
}

static int __init rtrs_clt_init(void)
{
	int ret;

	ret = rtrs_clt_alloc_wqs();
	if (!ret)
		ret = class_register(&rtrs_clt_class);
	if (ret) {
		rtrs_clt_destroy_wqs();
		return ret;
	}
	rtrs_clt_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_bool("fencing", 0644, rtrs_clt_debugfs, &rtrs_clt_fencing);
	return 0;
}
module_init(rtrs_clt_init);

static void __exit rtrs_clt_exit(void)
{
	debugfs_remove(rtrs_clt_debugfs);
	class_unregister(&rtrs_clt_class);
	rtrs_clt_destroy_wqs();
}
module_exit(rtrs_clt_exit);
