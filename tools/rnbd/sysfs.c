// SPDX-License-Identifier: GPL-2.0
/*
 * Reading, listing and writing files in sysfs. Paths are relative to the mount of sysfs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rnbd.h"

/* Longest text of an attribute */
#define ATTRIBUTE_MAX 4096

static char *full_path(const struct rnbd *r, const char *fmt, va_list args)
{
	char *path, *below;

	if (vasprintf(&below, fmt, args) < 0)
		return NULL;
	path = xasprintf("%s/%s", r->sysfs, below);
	free(below);
	return path;
}

static char *read_file(const char *path)
{
	char *text = xcalloc(1, ATTRIBUTE_MAX + 1);
	ssize_t n = -1;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, ATTRIBUTE_MAX);
		close(fd);
	}
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

static char *vread(const struct rnbd *r, const char *fmt, va_list args)
{
	char *path = full_path(r, fmt, args), *text = NULL;

	if (path)
		text = read_file(path);
	free(path);
	return text;
}

/* Read all of an attribute. NULL if it can't be read. */
char *sysfs_read_all(const struct rnbd *r, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = vread(r, fmt, args);
	va_end(args);
	return text;
}

/* Read the first line of an attribute, cleaned. NULL if it can't be read. */
char *sysfs_read(const struct rnbd *r, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = vread(r, fmt, args);
	va_end(args);
	if (!text)
		return NULL;
	text[strcspn(text, "\n")] = 0;
	return text_clean(text);
}

/* Read the number at the beginning of an attribute. False if there is none. */
bool sysfs_read_number(const struct rnbd *r, long long *value, const char *fmt, ...)
{
	char *text, *end;
	va_list args;
	bool is;

	va_start(args, fmt);
	text = vread(r, fmt, args);
	va_end(args);
	if (!text)
		return false;
	*value = strtoll(text, &end, 10);
	is = end != text;
	free(text);
	return is;
}

bool sysfs_exists(const struct rnbd *r, const char *fmt, ...)
{
	va_list args;
	char *path;
	bool is;

	va_start(args, fmt);
	path = full_path(r, fmt, args);
	va_end(args);
	is = path && !access(path, F_OK);
	free(path);
	return is;
}

static int no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* Read the last component of a link's target. NULL if it is not a link. */
char *sysfs_link_name(const struct rnbd *r, const char *fmt, ...)
{
	char target[ATTRIBUTE_MAX + 1], *path, *slash;
	ssize_t n = -1;
	va_list args;

	va_start(args, fmt);
	path = full_path(r, fmt, args);
	va_end(args);
	if (path)
		n = readlink(path, target, ATTRIBUTE_MAX);
	free(path);
	if (n < 0)
		return NULL;
	target[n] = 0;
	slash = strrchr(target, '/');
	return xstrdup(slash ? slash + 1 : target);
}

/* List the names in a directory, in version order. NULL follows the last one. */
char **list_dir(size_t *nr, const char *path)
{
	struct dirent **entries = NULL;
	char **names;
	int n, i;

	n = scandir(path, &entries, no_dots, versionsort);
	if (n < 0)
		n = 0;
	names = xcalloc(n + 1, sizeof(*names));
	for (i = 0; i < n; i++) {
		names[i] = xstrdup(entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	*nr = n;
	return names;
}

char **sysfs_list(const struct rnbd *r, size_t *nr, const char *fmt, ...)
{
	char *path, **names;
	va_list args;

	va_start(args, fmt);
	path = full_path(r, fmt, args);
	va_end(args);
	/* An empty path does not exist, so the list is empty. */
	names = list_dir(nr, path ? path : "");
	free(path);
	return names;
}

/* Write to a file. The kernel accepts all of a write to an attribute, or nothing. */
static int write_file(const char *path, const char *text)
{
	int fd, ret = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Print the equivalent command of a shell. */
static void print_command(const char *text, const char *path)
{
	fputs("echo ", stderr);
	print_quoted(stderr, text);
	fputs(" > ", stderr);
	print_quoted(stderr, path);
	fputc('\n', stderr);
}

/*
 * Write to an attribute; @doing describes the purpose. Returns the errno, which is reported unless
 * it is @quiet. Sets the exit code.
 */
int sysfs_try(const struct rnbd *r, const char *doing, const char *dir, const char *attribute,
	      const char *text, int quiet, int *code)
{
	char *path = xasprintf("%s/%s/%s", r->sysfs, dir, attribute);
	char *line = xasprintf("%s\n", text);
	struct kmsg kmsg;
	int err = 0;

	*code = RNBD_OK;
	if (r->verbose || r->dry_run)
		print_command(text, path);
	if (!r->dry_run) {
		kmsg_open(r, &kmsg);
		progress_begin(doing, 0);
		err = -write_file(path, line);
		progress_end();
		if (err)
			*code = RNBD_FAILED;
		if (err && err != quiet)
			*code = report_write(r, &kmsg, doing, path, err);
		kmsg_close(&kmsg);
	}
	free(line);
	free(path);
	return err;
}

/* Write to an attribute. Returns an exit code, RNBD_OK if the errno is @fine. */
int sysfs_set_unless(const struct rnbd *r, const char *doing, const char *dir,
		     const char *attribute, const char *text, int fine)
{
	int code, err = sysfs_try(r, doing, dir, attribute, text, fine, &code);

	return err == fine ? RNBD_OK : code;
}

int sysfs_set(const struct rnbd *r, const char *doing, const char *dir, const char *attribute,
	      const char *text)
{
	return sysfs_set_unless(r, doing, dir, attribute, text, 0);
}

static int make_dir(const char *path, const char *target)
{
	(void)target;
	return mkdir(path, 0755);
}

static int remove_dir(const char *path, const char *target)
{
	(void)target;
	return rmdir(path);
}

static int make_link(const char *path, const char *target)
{
	return symlink(target, path);
}

static int remove_link(const char *path, const char *target)
{
	(void)target;
	return unlink(path);
}

/* Change a directory. Prints the command with --verbose or --dry-run. Returns an exit code. */
static int change_dir(const struct rnbd *r, const char *doing, const char *command,
		      int (*change)(const char *path, const char *target), const char *to,
		      const char *at)
{
	char *path = xasprintf("%s/%s", r->sysfs, at);
	char *target = to ? xasprintf("%s/%s", r->sysfs, to) : NULL;
	int ret = RNBD_OK;
	struct kmsg kmsg;

	if (r->verbose || r->dry_run) {
		fprintf(stderr, "%s ", command);
		if (target) {
			print_quoted(stderr, target);
			fputc(' ', stderr);
		}
		print_quoted(stderr, path);
		fputc('\n', stderr);
	}
	if (!r->dry_run) {
		kmsg_open(r, &kmsg);
		if (change(path, target))
			ret = report_write(r, &kmsg, doing, path, errno);
		kmsg_close(&kmsg);
	}
	free(target);
	free(path);
	return ret;
}

int sysfs_mkdir(const struct rnbd *r, const char *doing, const char *dir)
{
	return change_dir(r, doing, "mkdir", make_dir, NULL, dir);
}

int sysfs_rmdir(const struct rnbd *r, const char *doing, const char *dir)
{
	return change_dir(r, doing, "rmdir", remove_dir, NULL, dir);
}

/* Create a link. Both paths are relative to the mount of sysfs. */
int sysfs_symlink(const struct rnbd *r, const char *doing, const char *target, const char *path)
{
	return change_dir(r, doing, "ln -s", make_link, target, path);
}

int sysfs_unlink(const struct rnbd *r, const char *doing, const char *path)
{
	return change_dir(r, doing, "rm", remove_link, NULL, path);
}
