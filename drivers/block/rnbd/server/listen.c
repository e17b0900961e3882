// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: whether clients can connect. While they can't, it can be prepared what they will
 * find.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "rnbd-srv.h"

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

static DEFINE_MUTEX(rnbd_srv_listen_lock);
/* NULL while nobody can connect; written under the lock. */
static struct rtrs_srv *rnbd_srv_rtrs;

/**
 * rnbd_srv_listening() - can clients connect?
 *
 * Context: any.
 * Return: true if so.
 */
bool rnbd_srv_listening(void)
{
	return READ_ONCE(rnbd_srv_rtrs);
}

/**
 * rnbd_srv_listen() - let clients connect
 *
 * Context: process, may sleep.
 * Return: 0, also if they can already, or a negative errno.
 */
int rnbd_srv_listen(void)
{
	struct rtrs_srv *rtrs;
	int err = 0;

	mutex_lock(&rnbd_srv_listen_lock);
	if (!rnbd_srv_rtrs) {
		rtrs = rtrs_srv_open(&rnbd_srv_ops, port_nr);
		err = PTR_ERR_OR_ZERO(rtrs);
		if (err)
			pr_err("can't listen on port %u: %pe\n", port_nr, rtrs);
		else
			WRITE_ONCE(rnbd_srv_rtrs, rtrs);
	}
	mutex_unlock(&rnbd_srv_listen_lock);
	return err;
}

/**
 * rnbd_srv_unlisten() - end all sessions, and let none begin
 *
 * Returns when their mappings are closed, which waits for their I/O.
 *
 * Context: process, may sleep.
 */
void rnbd_srv_unlisten(void)
{
	mutex_lock(&rnbd_srv_listen_lock);
	if (rnbd_srv_rtrs)
		rtrs_srv_close(rnbd_srv_rtrs);
	WRITE_ONCE(rnbd_srv_rtrs, NULL);
	mutex_unlock(&rnbd_srv_listen_lock);
}
