// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: state that survives a restart. For each disk or file that was written to, a state
 * file contains the generation of the owner, see writer.c. The state file is named after the path
 * by which clients opened the disk, since disk numbers change when a machine boots.
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
#include <linux/string_helpers.h>

#include "rnbd-srv.h"

static char rnbd_srv_state_dir[PATH_MAX] = "/var/lib/rnbd-server";
module_param_string(state_dir, rnbd_srv_state_dir, PATH_MAX, 0444);
MODULE_PARM_DESC(state_dir,
		 "Directory for what has to survive a restart of this machine: which mapping was the last to write to a device; must exist (default: /var/lib/rnbd-server)");

/*
 * Saves owners, which may wait for the filesystem of state_dir. It has no rescuer, as filesystems
 * flush work on workqueues without WQ_MEM_RECLAIM.
 */
struct workqueue_struct *rnbd_srv_state_wq;

/* Decimal number with leading zeroes, and newline: fixed length, so a write replaces all. */
#define RNBD_SRV_STATE_LEN	21

/*
 * Converts a path to a file name that no other path has: '/' becomes '!', and '!' is escaped.
 * Returns NULL if the name is too long.
 */
static char *rnbd_srv_state_escape(const char *path, char *name)
{
	int len = string_escape_mem(path, strlen(path), name, NAME_MAX, ESCAPE_HEX, "!\\");

	if (len > NAME_MAX)
		return NULL;
	name[len] = '\0';
	strreplace(name, '/', '!');
	return name;
}

/**
 * rnbd_srv_state_name() - get the name under which a disk's state is saved
 * @path: absolute path of the disk or file
 *
 * The directory's path is made canonical. Otherwise, a client could create any number of state
 * files for a disk by opening it by different paths.
 *
 * Context: process, may sleep.
 * Return: the name, to be freed with kfree(), or an ERR_PTR().
 */
char *rnbd_srv_state_name(const char *path)
{
	const char *last = kbasename(path);
	char *dir, *buf, *full = NULL, *name;
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
			full = kasprintf(GFP_KERNEL, "%s/%s", dir, last);
	}
	if (full) {
		name = rnbd_srv_state_escape(full, buf);
		name = name ? kstrdup(name, GFP_KERNEL) : ERR_PTR(-ENAMETOOLONG);
	} else {
		name = ERR_PTR(err);
	}
	kfree(full);
	kfree(buf);
	return name ?: ERR_PTR(-ENOMEM);
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
 * Return: 0, or a negative errno if the owner is unknown; no mapping may be opened then.
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

/* Makes the name of a new state file durable. */
static int rnbd_srv_state_sync_dir(void)
{
	struct file *dir = filp_open(rnbd_srv_state_dir, O_RDONLY | O_DIRECTORY, 0);
	int err;

	if (IS_ERR(dir))
		return PTR_ERR(dir);
	err = vfs_fsync(dir, 0);
	fput(dir);
	/* The file system needs no fsync of directories. */
	return err == -EINVAL ? 0 : err;
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
	return err ?: rnbd_srv_state_sync_dir();
}

/**
 * rnbd_srv_state_save() - write the owner's generation of a disk
 * @name: name from rnbd_srv_state_name()
 * @generation: the generation
 *
 * A failure is logged, but does not stop the owner from writing: failing all writes would do more
 * harm than a restarted server that does not know the owner.
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
