// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module; opening and closing of sessions.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "clt.h"

MODULE_DESCRIPTION("RTRS client");
MODULE_LICENSE("GPL");
MODULE_VERSION(RTRS_DRV_VERSION);

/**
 * rtrs_clt_open() - open a session with a server
 * @params: name, paths and functions of the session; not needed after return
 *
 * Context: process, may sleep; a signal ends it early.
 * Return: the session, when one of its paths is connected, and all have been tried or five
 * seconds have passed; the others are tried again. Or an ERR_PTR(): -EINVAL; -ENOMEM;
 * -EEXIST if a session of that name is open or two paths are the same; -ERESTARTSYS on a signal;
 * or the error of the first path, such as -EHOSTUNREACH, -ECONNREFUSED, -ETIMEDOUT and
 * -EPROTO.
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
	clt->link.reported = RTRS_LINK_UP;
	clt->link.opened = true;
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
 * Requests in flight, or that wait, are completed with -ECONNABORTED. No link_event()
 * is called after this has begun to end paths, and none runs when it returns.
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
 * Work items of different paths and sessions run at the same time, up to the limit of an
 * unbound workqueue. Without memory for threads, the rescuer runs them one by one.
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
		ret = rtrs_clt_sysfs_init();
	if (ret)
		rtrs_clt_destroy_wqs();
	return ret;
}
module_init(rtrs_clt_init);

static void __exit rtrs_clt_exit(void)
{
	rtrs_clt_sysfs_exit();
	rtrs_clt_destroy_wqs();
}
module_exit(rtrs_clt_exit);
