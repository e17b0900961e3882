// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into the tool under test, this library makes writes to simulated attributes fail like
 * writes to the kernel's: if the file ATTRIBUTE.refuse exists, write(2) fails with the errno in its
 * first line, and the rest of that file is appended to the kernel's log. If the file
 * ATTRIBUTE.answer exists, that file is what is read from the descriptor after a write.
 *
 * The paths of files and directories that are made durable by fsync(2) are appended to the file
 * RNBD_SYNCED, if that is set.
 *
 * The name of this host is the first line of the file RNBD_HOSTNAME, if that exists.
 *
 * Names of hosts resolve to their addresses in the file RNBD_HOSTS, "NAME ADDRESS" on each line.
 *
 * In tracefs, a new directory in "instances" becomes a copy of the directory "template". When it is
 * removed, it is renamed to "ended".
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void log_text(const char *text)
{
	FILE *log = fopen(getenv("RNBD_KMSG"), "a");

	if (!log)
		return;
	fputs(text, log);
	fclose(log);
}

/* Open the file beside that of a descriptor. NULL if there is none. */
static FILE *open_beside(int fd, const char *suffix)
{
	char link[64], path[PATH_MAX + 16];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX);
	if (n < 0)
		return NULL;
	strcpy(path + n, suffix);
	return fopen(path, "r");
}

/* Get the errno with which a write must fail, or 0. */
static int refused(int fd)
{
	FILE *file = open_beside(fd, ".refuse");
	char text[4096] = "";
	ssize_t n;
	int err;

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
	FILE *answer;
	ssize_t n;

	if (err) {
		errno = err;
		return -1;
	}
	n = real_write(fd, buf, count);
	answer = fd > 2 ? open_beside(fd, ".answer") : NULL;
	if (answer) {
		dup2(fileno(answer), fd);
		fclose(answer);
	}
	return n;
}

int fsync(int fd)
{
	int (*real_fsync)(int fd) = dlsym(RTLD_NEXT, "fsync");
	const char *name = getenv("RNBD_SYNCED");
	char link[64], path[PATH_MAX];
	ssize_t n;
	FILE *to;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	to = name && n > 0 ? fopen(name, "a") : NULL;
	if (to) {
		fprintf(to, "%.*s\n", (int)n, path);
		fclose(to);
	}
	return real_fsync(fd);
}

/* Names resolve to their first address of the wanted family, and to no other. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	int (*real_getaddrinfo)(const char *node, const char *service,
				const struct addrinfo *hints, struct addrinfo **found) =
		dlsym(RTLD_NEXT, "getaddrinfo");
	char name[256], address[256];
	FILE *hosts = fopen(getenv("RNBD_HOSTS"), "r");
	int error = EAI_NONAME;

	if (!hosts)
		return EAI_AGAIN;
	while (error && fscanf(hosts, "%255s %255s", name, address) == 2)
		if (!strcmp(name, node))
			error = real_getaddrinfo(address, service, hints, found);
	fclose(hosts);
	return error;
}

int gethostname(char *name, size_t len)
{
	int (*real_gethostname)(char *name, size_t len) = dlsym(RTLD_NEXT, "gethostname");
	FILE *file = fopen(getenv("RNBD_HOSTNAME"), "r");

	if (!file)
		return real_gethostname(name, len);
	if (!fgets(name, len, file))
		*name = 0;
	name[strcspn(name, "\n")] = 0;
	fclose(file);
	return 0;
}

static int command(const char *fmt, const char *path)
{
	const char *tracefs = getenv("RNBD_TRACEFS");
	char line[3 * PATH_MAX], instances[PATH_MAX];

	snprintf(instances, sizeof(instances), "%s/instances/", tracefs);
	if (strncmp(path, instances, strlen(instances)))
		return -1;
	snprintf(line, sizeof(line), fmt, tracefs, path);
	return system(line);
}

int mkdir(const char *path, mode_t mode)
{
	int (*real_mkdir)(const char *path, mode_t mode) = dlsym(RTLD_NEXT, "mkdir");
	int ret = real_mkdir(path, mode);

	if (!ret)
		command("cp -r %s/template/. %s 2>/dev/null", path);
	return ret;
}

int rmdir(const char *path)
{
	int (*real_rmdir)(const char *path) = dlsym(RTLD_NEXT, "rmdir");
	int ret = real_rmdir(path);

	if (ret && command("mv %2$s %1$s/ended", path) == 0)
		ret = 0;
	return ret;
}
