// SPDX-License-Identifier: GPL-2.0
/*
 * Timed reads of a disk, bypassing the page cache
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rnbd.h"

/* Memory alignment that suffices for any disk or file */
#define ALIGN 4096

/* Open a disk. Returns an exit code. */
int disk_open(const struct rnbd *r, const char *name, struct disk *disk)
{
	int err;

	disk->path = xasprintf("%s/%s", r->dev, name);
	disk->fd = open(disk->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (disk->fd < 0) {
		err = errno;
		report_failed("can't open %s: %s", disk->path, strerror(err));
		free(disk->path);
		return err == EACCES || err == EPERM ? RNBD_NO_PERMISSION : RNBD_FAILED;
	}
	disk->size = lseek(disk->fd, 0, SEEK_END);
	return RNBD_OK;
}

void disk_close(struct disk *disk)
{
	close(disk->fd);
	free(disk->path);
}

void *disk_buffer(size_t size)
{
	void *buf = NULL;

	errno = posix_memalign(&buf, ALIGN, size);
	if (errno) {
		perror("rnbd: no memory");
		exit(RNBD_FAILED);
	}
	return buf;
}

/* Read from a disk. Returns the duration in microseconds, or a negative errno. */
double disk_read_us(const struct disk *disk, void *buf, size_t size, long long offset)
{
	double from = now();
	ssize_t n = pread(disk->fd, buf, size, offset);

	if (n < 0)
		return -errno;
	return (size_t)n < size ? -EIO : (now() - from) * 1e6;
}
