// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: what survives a restart. A file for each disk or file that was written to holds the
 * generation of its owner, see writer.c. The file's name is the path by which clients opened the
 * disk: numbers of disks change when a machine boots.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/printk.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

static char rnbd_srv_state_dir[PATH_MAX] = "/var/lib/rnbd-server";
module_param_string(state_dir, rnbd_srv_state_dir, PATH_MAX, 0444);
MODULE_PARM_DESC(state_dir,
		 "Directory for what has to survive a restart of this machine: which mapping was the last to write to a device; must exist (default: /var/lib/rnbd-server)");

/* A decimal number with leading zeroes, and a newline: each write replaces all of the file. */
#define RNBD_SRV_STATE_LEN	21

struct workqueue_struct *rnbd_srv_state_wq;

/**
 * rnbd_srv_state_name() - get the name under which a disk's state is saved
 * @path: absolute path of the disk or file
 *
 * The directory's path is made canonical, so that a client can't cause more files than there are
 * disks and names of them.
 *
 * Context: process, may sleep.
 * Return: the name, to be freed with kfree(), or an ERR_PTR().
 */
char *rnbd_srv_state_name(const char *path)
{
	const char *last = kbasename(path);
	char *dir, *buf, *name = NULL;
	struct path found;
	int err = -ENOMEM;

	dir = kasprintf(GFP_KERNEL, "%.*s", (int)(last - path), path);
	buf = kmalloc(PATH_MAX, GFP_KERNEL);
	if (dir && buf)
		err = kern_path(dir, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &found);
	kfree(dir);
	if (!err) {
		dir = d_path(&found, buf, PATH_MAX);
		path_put(&found);
		if (IS_ERR(dir))
			err = PTR_ERR(dir);
		else
			name = kasprintf(GFP_KERNEL, "%s/%s", dir, last);
	}
	kfree(buf);
	if (!name)
		return ERR_PTR(err ?: -ENOMEM);
	if (strlen(name) > NAME_MAX) {
		kfree(name);
		return ERR_PTR(-ENAMETOOLONG);
	}
	strreplace(name, '/', '!');
	return name;
}

static struct file *rnbd_srv_state_open(const char *name, int flags)
{
	char *path = kasprintf(GFP_KERNEL, "%s/%s", rnbd_srv_state_dir, name);
	struct file *file;

	if (!path)
		return ERR_PTR(-ENOMEM);
	file = filp_open(path, flags, 0600);
	kfree(path);
	return file;
}

/**
 * rnbd_srv_state_load() - read the owner's generation of a disk
 * @name: name from rnbd_srv_state_name()
 * @generation: set to the generation, or to 0 if none is saved
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno. Then the owner isn't known, and no mapping may be opened.
 */
int rnbd_srv_state_load(const char *name, u64 *generation)
{
	char buf[RNBD_SRV_STATE_LEN + 1] = { };
	struct file *file;
	loff_t pos = 0;
	ssize_t len;

	*generation = 0;
	file = rnbd_srv_state_open(name, O_RDONLY);
	if (IS_ERR(file))
		return file == ERR_PTR(-ENOENT) ? 0 : PTR_ERR(file);
	len = kernel_read(file, buf, RNBD_SRV_STATE_LEN, &pos);
	fput(file);
	if (len < 0)
		return len;
	if (len < RNBD_SRV_STATE_LEN || kstrtou64(buf, 10, generation))
		pr_warn("%s/%s isn't the generation of a mapping\n", rnbd_srv_state_dir, name);
	return 0;
}

static int rnbd_srv_state_write(const char *name, u64 generation)
{
	char buf[RNBD_SRV_STATE_LEN + 1];
	struct file *file;
	loff_t pos = 0;
	ssize_t len;
	int err;

	file = rnbd_srv_state_open(name, O_WRONLY | O_CREAT);
	if (IS_ERR(file))
		return PTR_ERR(file);
	scnprintf(buf, sizeof(buf), "%020llu\n", generation);
	len = kernel_write(file, buf, RNBD_SRV_STATE_LEN, &pos);
	err = len < 0 ? len : len < RNBD_SRV_STATE_LEN ? -EIO : vfs_fsync(file, 0);
	fput(file);
	return err;
}

/**
 * rnbd_srv_state_save() - write the owner's generation of a disk
 * @name: name from rnbd_srv_state_name()
 * @generation: the generation
 *
 * A failure is logged. The owner writes nevertheless: that a restarted server doesn't know it is
 * the smaller harm.
 *
 * Context: process, may sleep.
 */
void rnbd_srv_state_save(const char *name, u64 generation)
{
	unsigned int noio = memalloc_noio_save();
	int err = rnbd_srv_state_write(name, generation);

	memalloc_noio_restore(noio);
	if (err == -ENOENT)
		pr_notice_once("there is no folder %s: the last writer to a device is forgotten with a restart\n",
			       rnbd_srv_state_dir);
	else if (err)
		pr_err_ratelimited("%s/%s can't be written: %pe; the last writer is forgotten with a restart\n",
				   rnbd_srv_state_dir, name, ERR_PTR(err));
}
