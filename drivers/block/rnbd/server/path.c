// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: from the name a client gives a device to its file.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

#define RNBD_SRV_SESSNAME	"%SESSNAME%"

char rnbd_srv_search_path[PATH_MAX] = "/";
module_param_string(dev_search_path, rnbd_srv_search_path, PATH_MAX, 0444);
MODULE_PARM_DESC(dev_search_path,
		 "Directory that device names are relative to; %SESSNAME% stands for the session's name (default: /)");

static bool rnbd_srv_export_files;
module_param_named(export_files, rnbd_srv_export_files, bool, 0444);
MODULE_PARM_DESC(export_files,
		 "Clients may open files by their paths, and not only disks; a volume may always be a file (default: N)");

static bool rnbd_srv_has_dotdot(const char *path)
{
	size_t len;

	for (; *path; path += strspn(path, "/")) {
		len = strcspn(path, "/");
		if (len == 2 && !strncmp(path, "..", 2))
			return true;
		path += len;
	}
	return false;
}

/*
 * Session names have no '/' and no '.', so the result is below the directory that the
 * administrator chose. A variable in a session's name is not replaced.
 */
static char *rnbd_srv_directory(const struct rnbd_srv_sess *sess)
{
	char *dir = kstrdup(rnbd_srv_search_path, GFP_KERNEL);
	char *old, *var;
	size_t done = 0;

	while (dir && (var = strstr(dir + done, RNBD_SRV_SESSNAME))) {
		old = dir;
		dir = kasprintf(GFP_KERNEL, "%.*s%s%s", (int)(var - old),
				old, sess->name,
				var + strlen(RNBD_SRV_SESSNAME));
		done = var - old + strlen(sess->name);
		kfree(old);
	}
	return dir;
}

/**
 * rnbd_srv_full_path() - turn a device's name into a path
 * @sess: session that opens the device
 * @path: the device's name, as the client gave it
 *
 * Return: the path, to be freed with kfree(); ERR_PTR(-EINVAL) if the name has a ".."
 * component; ERR_PTR(-ENOMEM).
 */
char *rnbd_srv_full_path(const struct rnbd_srv_sess *sess, const char *path)
{
	char *dir, *full = NULL;

	if (rnbd_srv_has_dotdot(path))
		return ERR_PTR(-EINVAL);

	dir = rnbd_srv_directory(sess);
	if (dir)
		full = kasprintf(GFP_KERNEL, "%s/%s", dir, path);
	kfree(dir);
	return full ?: ERR_PTR(-ENOMEM);
}

/**
 * rnbd_srv_fs_ok() - may the files of a filesystem be exported?
 * @sess: session that opens the file, for the log
 * @sb: filesystem of the file
 *
 * Files of proc, sysfs and the like are interfaces to the kernel, not stored data, and
 * opening one can have side effects. A refusal is logged.
 *
 * Return: true if they may be exported.
 */
bool rnbd_srv_fs_ok(struct rnbd_srv_sess *sess, const struct super_block *sb)
{
	if (sb->s_bdev || (sb->s_type->fs_flags & FS_REQUIRES_DEV))
		return true;

	switch (sb->s_magic) {
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case NFS_SUPER_MAGIC:
		return true;
	default:
		rnbd_srv_err(sess, "files of a filesystem of type %s aren't exported\n",
			     sb->s_type->name);
		return false;
	}
}

/**
 * rnbd_srv_files_ok() - may a mapping's name stand for a file?
 * @map: mapping, after rnbd_srv_rules_apply()
 *
 * Return: true if so; false if only for a disk.
 */
bool rnbd_srv_files_ok(const struct rnbd_srv_map *map)
{
	return map->volume_path || rnbd_srv_export_files;
}

static bool rnbd_srv_file_ok(const struct rnbd_srv_map *map, const struct super_block *sb)
{
	if (rnbd_srv_files_ok(map))
		return rnbd_srv_fs_ok(map->sess, sb);
	rnbd_srv_err(map->sess, "%s is a file: they are exported as volumes, or with export_files=Y\n",
		     map->path);
	return false;
}

/**
 * rnbd_srv_open_file() - open a device's file
 * @map: mapping of the device
 * @path: path of its volume, or from rnbd_srv_full_path()
 *
 * The type is checked before the file is opened: opening a FIFO, a character device or a
 * file of tracefs can hang or have side effects. Direct I/O is used on filesystems that
 * are on a disk.
 *
 * Return: the file or an ERR_PTR(); ERR_PTR(-ENOTBLK) if it can't be exported.
 */
struct file *rnbd_srv_open_file(const struct rnbd_srv_map *map, const char *path)
{
	int flags = O_LARGEFILE;
	struct file *file;
	struct path found;
	bool direct, ok;
	umode_t type;
	int err;

	err = kern_path(path, LOOKUP_FOLLOW, &found);
	if (err)
		return ERR_PTR(err);
	type = d_backing_inode(found.dentry)->i_mode;
	direct = S_ISREG(type) && found.dentry->d_sb->s_bdev;
	ok = S_ISBLK(type) || (S_ISREG(type) && rnbd_srv_file_ok(map, found.dentry->d_sb));
	path_put(&found);
	if (!ok)
		return ERR_PTR(-ENOTBLK);

	flags |= map->mode == RNBD_ACCESS_RO ? O_RDONLY : O_RDWR;
	if (direct) {
		file = filp_open(path, flags | O_DIRECT, 0);
		if (file != ERR_PTR(-EINVAL))
			return file;
	}
	return filp_open(path, flags, 0);
}
