// SPDX-License-Identifier: GPL-2.0
/*
 * Lets one call that can fail do so: the Nth one that the drivers make, whatever
 * thread, work item or interrupt makes it. faults.h has the calls; the kernel's own
 * fault injection counts them, see Documentation/fault-injection: attributes are in
 * debugfs, fail_rtrs/.
 */
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/glob.h>
#include <linux/module.h>

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

/**
 * rtrs_fault() - is a call to fail?
 * @module: who makes it
 * @call: its name
 * @func: function that makes it
 * @line: line of that function's file
 *
 * Context: any. Only one call fails at a time, or @hit is garbled.
 * Return: true if it is to fail.
 */
bool rtrs_fault(const char *module, const char *call, const char *func, int line)
{
	char name[64];

	/* A task's fail-nth is for what is below these calls. */
	if (!rtrs_faults_attr.probability)
		return false;
	snprintf(name, sizeof(name), "%s:%s", module, call);
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

	/* A line in the log is enough, without a stack. */
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

MODULE_DESCRIPTION("RTRS and RNBD: failures of what lies below");
MODULE_LICENSE("GPL");
