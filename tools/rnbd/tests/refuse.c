// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into the tool under test, this has writes to made-up attributes fail as the
 * kernel's would: if there is a file ATTRIBUTE.refuse beside it, write(2) fails with the
 * errno that is its first line, and the kernel's log gets what follows.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_text(const char *text)
{
	FILE *log = fopen(getenv("RNBD_KMSG"), "a");

	if (!log)
		return;
	fputs(text, log);
	fclose(log);
}

/* 0: it is not to fail */
static int refused(int fd)
{
	char link[64], path[PATH_MAX + 16], text[4096] = "";
	ssize_t n;
	FILE *file;
	int err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX);
	if (n < 0)
		return 0;
	strcpy(path + n, ".refuse");
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%d\n", &err) != 1)
		err = EIO;
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n < 0 ? 0 : n] = 0;
	fclose(file);
	log_text(text);
	return err;
}

ssize_t write(int fd, const void *buf, size_t count)
{
	ssize_t (*real_write)(int fd, const void *buf, size_t count) = dlsym(RTLD_NEXT, "write");
	int err = fd > 2 ? refused(fd) : 0;

	if (!err)
		return real_write(fd, buf, count);
	errno = err;
	return -1;
}
