// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection: makes the Nth call of the drivers fail, in any context. faults.h has the calls; the
 * kernel's fault injection counts them, see Documentation/fault-injection; its attributes are in
 * debugfs, fail_rtrs/. Or holds one call until a test releases it.
 */
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/glob.h>
#include <linux/module.h>
#include <linux/wait.h>

#include "faults.h"

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

static DECLARE_FAULT_ATTR(rtrs_faults_attr);
static struct dentry *rtrs_faults_dir;

static char only[80] = "*";
module_param_string(only, only, sizeof(only), 0644);
MODULE_PARM_DESC(only, "Calls that may fail, a pattern of module:call (default *)");

static char hit[160];
module_param_string(hit, hit, sizeof(hit), 0644);
MODULE_PARM_DESC(hit, "The call that failed last");

static char hold[80];
static atomic_t held;
static DECLARE_WAIT_QUEUE_HEAD(rtrs_faults_wait);

static int rtrs_faults_set_hold(const char *val, const struct kernel_param *kp)
{
	int ret = param_set_copystring(val, kp);

	wake_up_all(&rtrs_faults_wait);
	return ret;
}

static const struct kernel_param_ops rtrs_faults_hold_ops = {
	.set = rtrs_faults_set_hold,
	.get = param_get_string,
};

static struct kparam_string rtrs_faults_hold_string = { .maxlen = sizeof(hold), .string = hold };
module_param_cb(hold, &rtrs_faults_hold_ops, &rtrs_faults_hold_string, 0644);
MODULE_PARM_DESC(hold, "One call of this pattern, which may sleep, waits until this is changed");
module_param_named(held, held.counter, int, 0444);
MODULE_PARM_DESC(held, "1 while a call waits");

static void rtrs_faults_hold(const char *name)
{
	if (!glob_match(hold, name) || atomic_cmpxchg(&held, 0, 1))
		return;
	pr_info("%s waits\n", name);
	wait_event_idle(rtrs_faults_wait, !glob_match(hold, name));
	atomic_set(&held, 0);
}

/**
 * rtrs_fault() - shall a call fail?
 * @module: who makes it
 * @call: its name
 * @func: function that makes it
 * @line: line of that function's file
 *
 * Context: that of the call. Only one call may fail at a time, or @hit is garbled.
 * Return: true if it shall fail.
 */
bool rtrs_fault(const char *module, const char *call, const char *func, int line)
{
	char name[64];

	/* A task's fail-nth is for allocations within these calls. */
	if (!rtrs_faults_attr.probability && !*hold)
		return false;
	snprintf(name, sizeof(name), "%s:%s", module, call);
	if (*hold)
		rtrs_faults_hold(name);
	if (!rtrs_faults_attr.probability)
		return false;
	if (!glob_match(only, name) || !should_fail(&rtrs_faults_attr, 1))
		return false;
	snprintf(hit, sizeof(hit), "%s %s:%d", name, func, line);
	pr_info("%s fails\n", hit);
	return true;
}
EXPORT_SYMBOL_GPL(rtrs_fault);

static int __init rtrs_faults_init(void)
{
	int ret;

	/* Log a line without a stack. */
	rtrs_faults_attr.verbose = 0;
	rtrs_faults_dir = fault_create_debugfs_attr("fail_rtrs", NULL,
						    &rtrs_faults_attr);
	if (IS_ERR(rtrs_faults_dir))
		return PTR_ERR(rtrs_faults_dir);
	ret = rtrs_faults_verbs_init();
	if (ret)
		debugfs_remove_recursive(rtrs_faults_dir);
	return ret;
}

static void __exit rtrs_faults_exit(void)
{
	rtrs_faults_device_exit();
	rtrs_faults_verbs_exit();
	debugfs_remove_recursive(rtrs_faults_dir);
}

module_init(rtrs_faults_init);
module_exit(rtrs_faults_exit);

MODULE_DESCRIPTION("RTRS and RNBD: fault injection");
MODULE_LICENSE("GPL");
