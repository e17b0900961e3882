// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions: open and close.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "clt.h"

MODULE_DESCRIPTION("RTRS client");
MODULE_LICENSE("GPL");

/* Guards rtrs_clt_list: names of sessions are unique. */
static DEFINE_MUTEX(rtrs_clt_lock);
static LIST_HEAD(rtrs_clt_list);

static int rtrs_clt_list_add(struct rtrs_clt *clt)
{
	struct rtrs_clt *other;
	int ret = 0;

	mutex_lock(&rtrs_clt_lock);
	list_for_each_entry(other, &rtrs_clt_list, entry)
		if (!strcmp(other->name, clt->name))
			ret = -EEXIST;
	if (!ret)
		list_add_tail(&clt->entry, &rtrs_clt_list);
	mutex_unlock(&rtrs_clt_lock);
	return ret;
}

static void rtrs_clt_list_del(struct rtrs_clt *clt)
{
	mutex_lock(&rtrs_clt_lock);
	list_del(&clt->entry);
	mutex_unlock(&rtrs_clt_lock);
}

/* Makes all paths and connects them; it takes one to have a session. */
static int rtrs_clt_connect_paths(struct rtrs_clt *clt,
				  const struct rtrs_clt_params *params)
{
	struct rtrs_clt_path *path;
	unsigned int i;
	int ret, err = 0;

	for (i = 0; i < params->nr_paths; i++) {
		path = rtrs_clt_path_create(clt, &params->paths[i]);
		if (IS_ERR(path))
			return PTR_ERR(path);
		clt->paths[clt->nr_paths++] = path;
		ret = rtrs_clt_path_connect(path);
		if (!ret)
			clt->have_limits = true;
		else if (ret == -EINTR || ret == -EEXIST)
			return ret;
		else if (!err)
			err = ret;
	}
	return clt->have_limits ? 0 : err;
}

/**
 * rtrs_clt_open() - open a session with a server
 * @params: what it is to be; not needed any more on return
 *
 * Context: process, may sleep; a fatal or any other signal ends it early.
 * Return: the session, as soon as one of its paths is connected and all have been
 * tried, or an ERR_PTR(): -EINVAL, -ENOMEM, -EEXIST if a session of that name
 * is open, -EINTR, or why the first path could not be connected, such as
 * -EHOSTUNREACH, -ECONNREFUSED, -ETIMEDOUT, -EPROTO.
 */
struct rtrs_clt *rtrs_clt_open(const struct rtrs_clt_params *params)
{
	struct rtrs_clt *clt;
	int ret;

	if (!rtrs_name_valid(params->sessname) || !params->nr_queues ||
	    params->nr_queues >= RTRS_MAX_CONS || !params->nr_paths ||
	    params->nr_paths > RTRS_MAX_PATHS)
		return ERR_PTR(-EINVAL);
	clt = kzalloc(sizeof(*clt), GFP_KERNEL);
	if (!clt)
		return ERR_PTR(-ENOMEM);
	strscpy(clt->name, params->sessname, sizeof(clt->name));
	uuid_gen(&clt->uuid);
	clt->nr_queues = params->nr_queues;
	clt->link_event = params->link_event;
	clt->link = RTRS_LINK_DOWN;
	clt->priv = params->priv;
	mutex_init(&clt->lock);
	clt->turn = alloc_percpu(unsigned int);
	if (!clt->turn) {
		kfree(clt);
		return ERR_PTR(-ENOMEM);
	}
	rtrs_clt_sysfs_init_sess(clt);
	ret = rtrs_clt_list_add(clt);
	if (ret)
		goto put_dev;
	ret = rtrs_clt_sysfs_add(clt);
	if (ret)
		goto list_del;
	ret = rtrs_clt_connect_paths(clt, params);
	if (ret) {
		rtrs_clt_close(clt);
		return ERR_PTR(ret);
	}
	mutex_lock(&clt->lock);
	clt->opened = clt->link == RTRS_LINK_UP;
	ret = clt->opened ? 0 : -ECONNABORTED;
	mutex_unlock(&clt->lock);
	if (ret) {
		rtrs_clt_close(clt);
		return ERR_PTR(ret);
	}
	return clt;

list_del:
	rtrs_clt_list_del(clt);
put_dev:
	put_device(&clt->dev);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(rtrs_clt_open);

/**
 * rtrs_clt_close() - close a session
 * @clt: the session; the caller submits nothing to it any more
 *
 * Requests in flight are completed with -ECONNABORTED. No link_event() is called
 * after this has begun to end paths, and none runs when it returns.
 *
 * Context: process, may sleep; not from link_event() or a request's done().
 */
void rtrs_clt_close(struct rtrs_clt *clt)
{
	unsigned int i;

	mutex_lock(&clt->lock);
	clt->opened = false;
	mutex_unlock(&clt->lock);
	for (i = 0; i < clt->nr_paths; i++)
		rtrs_clt_path_destroy(clt->paths[i]);
	rtrs_clt_sysfs_del(clt);
	/* Only now may the name be used again. */
	rtrs_clt_list_del(clt);
	put_device(&clt->dev);
}
EXPORT_SYMBOL_GPL(rtrs_clt_close);

/**
 * rtrs_clt_limits() - what requests of a session may be like
 * @clt: the session
 * @limits: filled in; does not change while the session is open
 */
void rtrs_clt_limits(const struct rtrs_clt *clt, struct rtrs_clt_limits *limits)
{
	*limits = clt->limits;
}
EXPORT_SYMBOL_GPL(rtrs_clt_limits);

static int __init rtrs_clt_init(void)
{
	int ret;

	rtrs_clt_wq = alloc_workqueue("rtrs-client",
				      WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rtrs_clt_wq)
		return -ENOMEM;
	ret = rtrs_clt_sysfs_init();
	if (ret)
		destroy_workqueue(rtrs_clt_wq);
	return ret;
}
module_init(rtrs_clt_init);

static void __exit rtrs_clt_exit(void)
{
	rtrs_clt_sysfs_exit();
	destroy_workqueue(rtrs_clt_wq);
	/* Arrays of paths may still wait for their grace period. */
	rcu_barrier();
}
module_exit(rtrs_clt_exit);
