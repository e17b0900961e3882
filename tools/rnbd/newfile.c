// SPDX-License-Identifier: GPL-2.0
/*
 * Files that are written as a whole. Readers find the old file or the new one, but no part of it.
 * A file that is committed as durable also survives a crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rnbd.h"

/* Renaming would replace a device such as /dev/null by a file. */
static bool can_replace(const char *path)
{
	struct stat st;

	return lstat(path, &st) || S_ISREG(st.st_mode);
}

/* Begin to write @path with these permissions. Returns an exit code. */
int new_file_open(struct new_file *file, const char *path, mode_t mode)
{
	int fd;

	memset(file, 0, sizeof(*file));
	if (!can_replace(path))
		return report_failed("%s: not a regular file", path);
	file->path = xstrdup(path);
	/* node_exporter reads only names that end in ".prom". */
	file->temporary = xasprintf("%s.XXXXXX", path);
	fd = mkstemp(file->temporary);
	if (fd >= 0 && !fchmod(fd, mode))
		file->to = fdopen(fd, "w");
	if (file->to)
		return RNBD_OK;
	report_failed("%s: %s", path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		unlink(file->temporary);
	}
	free(file->temporary);
	free(file->path);
	return RNBD_FAILED;
}

/* Close the new file and remove it. The old file stays. */
void new_file_drop(struct new_file *file)
{
	fclose(file->to);
	unlink(file->temporary);
	free(file->temporary);
	free(file->path);
}

/* Set owner, group and permissions. Returns an exit code; after an error, the file is dropped. */
int new_file_own(struct new_file *file, const struct stat *st)
{
	int fd = fileno(file->to);
	int ret;

	if (((st->st_uid == geteuid() && st->st_gid == getegid()) ||
	     !fchown(fd, st->st_uid, st->st_gid)) &&
	    !fchmod(fd, st->st_mode & 0777))
		return RNBD_OK;
	ret = report_failed("%s: %s", file->path, strerror(errno));
	new_file_drop(file);
	return ret;
}

/*
 * Make a new name in a directory durable. Returns an errno. Directories that can't be read, and
 * file systems that can't do so (EINVAL), are no error.
 */
static int sync_dir(const char *path)
{
	char *copy = xstrdup(path);
	int fd, err = 0;

	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	if (fd < 0)
		return 0;
	if (fsync(fd) && errno != EINVAL)
		err = errno;
	close(fd);
	return err;
}

/* Replace the old file by the new one. Returns an exit code. */
int new_file_commit(struct new_file *file, bool durable)
{
	int err = ferror(file->to) ? EIO : 0;

	errno = 0;
	if (fflush(file->to) || (durable && fsync(fileno(file->to))))
		err = errno;
	if (fclose(file->to) && !err)
		err = errno;
	if (!err && rename(file->temporary, file->path))
		err = errno;
	if (!err && durable)
		err = sync_dir(file->path);
	if (err) {
		report_failed("%s: %s", file->path, strerror(err));
		unlink(file->temporary);
	}
	free(file->temporary);
	free(file->path);
	return err ? RNBD_FAILED : RNBD_OK;
}
