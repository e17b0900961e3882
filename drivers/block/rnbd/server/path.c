// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: conversion of a device's name, as sent by a client, to a path; opening of files.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
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
 * Replace %SESSNAME% in dev_search_path. Session names contain no '/' and no '.', so the result is
 * below the administrator's directory. A "%SESSNAME%" within a session's name is not replaced.
 */
static char *rnbd_srv_directory(const struct rnbd_srv_sess *sess)
{
	char *dir = kstrdup(rnbd_srv_search_path, GFP_KERNEL);
	char *old, *var;
	size_t done = 0;

	while (dir && (var = strstr(dir + done, RNBD_SRV_SESSNAME))) {
		old = dir;
		dir = kasprintf(GFP_KERNEL, "%.*s%s%s", (int)(var - old), old, sess->name,
				var + strlen(RNBD_SRV_SESSNAME));
		done = var - old + strlen(sess->name);
		kfree(old);
	}
	return dir;
}

/**
 * rnbd_srv_full_path() - convert a device's name to a path
 * @sess: session that opens the device
 * @path: name of the device, as sent by the client
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

/* Get the size of a disk in bytes without opening it, as that may wait for the disk; 0: unknown. */
static loff_t rnbd_srv_disk_size(dev_t dev)
{
	struct inode *inode = ilookup(blockdev_superblock, dev);
	loff_t size;

	if (!inode)
		return 0;
	size = i_size_read(inode);
	iput(inode);
	return size;
}

/**
 * rnbd_srv_cached_sectors() - get the size of a disk or file, if that needs no waiting
 * @path: path of the disk or file
 *
 * Only memory is searched, so a disk or filesystem that hangs does not delay the caller.
 *
 * Context: process, may sleep, but only for memory.
 * Return: the size in sectors of 512 bytes, or 0 if it is not known.
 */
u64 rnbd_srv_cached_sectors(const char *path)
{
	const struct inode *inode;
	struct path found;
	loff_t size = 0;

	if (kern_path(path, LOOKUP_FOLLOW | LOOKUP_CACHED, &found))
		return 0;
	inode = d_backing_inode(found.dentry);
	if (S_ISBLK(inode->i_mode))
		size = rnbd_srv_disk_size(inode->i_rdev);
	else if (S_ISREG(inode->i_mode))
		size = i_size_read(inode);
	path_put(&found);
	return size >> SECTOR_SHIFT;
}

/**
 * rnbd_srv_fs_ok() - check whether files of a filesystem may be exported
 * @sess: session that opens the file, for the log
 * @sb: filesystem of the file
 *
 * Files in proc, sysfs and the like are interfaces to the kernel, not stored data, and opening one
 * can have side effects. A refusal is logged.
 *
 * Return: true if files may be exported.
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

static bool rnbd_srv_file_ok(const struct rnbd_srv_map *map, const struct super_block *sb)
{
	if (map->volume_path || rnbd_srv_export_files)
		return rnbd_srv_fs_ok(map->sess, sb);
	rnbd_srv_err(map->sess, "%s is a file: they are exported as volumes, or with export_files=Y\n",
		     map->path);
	return false;
}

/**
 * rnbd_srv_open_file() - open the file of a device that isn't a disk
 * @map: mapping of the device, after rnbd_srv_rules_apply()
 * @path: path of the volume, or from rnbd_srv_full_path()
 *
 * The type is checked before the file is opened: opening a FIFO, a character device or a file in
 * tracefs can hang or have side effects. Direct I/O is used if the filesystem is on a disk and
 * supports it.
 *
 * Return: the file or an ERR_PTR(); ERR_PTR(-ENOTBLK) if the file may not be exported.
 */
struct file *rnbd_srv_open_file(const struct rnbd_srv_map *map, const char *path)
{
	int flags = O_LARGEFILE;
	struct file *file;
	struct path found;
	bool direct, ok;
	int err;

	err = kern_path(path, LOOKUP_FOLLOW, &found);
	if (err)
		return ERR_PTR(err);
	direct = found.dentry->d_sb->s_bdev;
	ok = S_ISREG(d_backing_inode(found.dentry)->i_mode) &&
	     rnbd_srv_file_ok(map, found.dentry->d_sb);
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
