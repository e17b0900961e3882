// SPDX-License-Identifier: GPL-2.0
/*
 * The file of the table of volumes, as map --save and unmap --save change it: lines are appended
 * and removed, all others are kept byte for byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "volumes.h"

#define DEFAULT_MODE 0644
#define DIR_MODE 0755
#define CHUNK 4096
/* Longest time to wait for another program that changes the table */
#define LOCK_SECONDS 5

/*
 * Lock out others that change the table. Only root may open the file: whoever can open it can keep
 * it locked. Returns an exit code.
 */
static int take_lock(const struct rnbd *r, struct table *table)
{
	double end = now() + LOCK_SECONDS;

	table->lock = open(r->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (table->lock < 0)
		return report_failed("%s: %s", r->lock, strerror(errno));
	while (flock(table->lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return report_failed("%s: %s", r->lock, strerror(errno));
		if (now() >= end)
			return report_failed("%s is being changed by another program", r->volumes);
		nap(0.1);
	}
	return RNBD_OK;
}

static int read_text(struct table *table, FILE *file)
{
	if (fstat(fileno(file), &table->st))
		return errno;
	while (!feof(file) && !ferror(file)) {
		table->text = xrealloc(table->text, table->len + CHUNK, 1);
		table->len += fread(table->text + table->len, 1, CHUNK, file);
	}
	return ferror(file) ? errno : 0;
}

/* Read the table; a missing file counts as empty. Returns an exit code. */
int table_open(const struct rnbd *r, struct table *table)
{
	FILE *file;
	int err = 0, ret;

	*table = (struct table){ .lock = -1 };
	table->st.st_mode = DEFAULT_MODE;
	table->st.st_uid = geteuid();
	table->st.st_gid = getegid();
	ret = r->dry_run ? RNBD_OK : take_lock(r, table);
	if (ret)
		return ret;
	/* What a link refers to is replaced, not the link. */
	table->path = realpath(r->volumes, NULL);
	if (!table->path)
		table->path = xstrdup(r->volumes);
	file = fopen(table->path, "re");
	if (file) {
		err = read_text(table, file);
		fclose(file);
	} else if (errno != ENOENT) {
		err = errno;
	}
	return err ? report_failed("%s: %s", r->volumes, strerror(err)) : RNBD_OK;
}

void table_close(struct table *table)
{
	free(table->path);
	free(table->text);
	if (table->lock >= 0)
		close(table->lock);
}

/* Create the directory of the table, if it is missing. Prints the command of a shell. */
static int make_dir(const struct rnbd *r, const char *path)
{
	char *copy = xstrdup(path);
	const char *dir = dirname(copy);
	int ret = RNBD_OK;

	if (access(dir, F_OK) && errno == ENOENT) {
		if (r->verbose || r->dry_run) {
			fputs("mkdir ", stderr);
			print_quoted(stderr, dir);
			fputc('\n', stderr);
		}
		if (!r->dry_run && mkdir(dir, DIR_MODE))
			ret = report_failed("%s: %s", dir, strerror(errno));
	}
	free(copy);
	return ret;
}

static int begin(const struct table *table, struct new_file *file)
{
	int ret = new_file_open(file, table->path, 0600);

	return ret ? ret : new_file_own(file, &table->st);
}

/* Check that the table can be written. */
int table_check(const struct rnbd *r, const struct table *table)
{
	struct new_file file;
	int ret;

	ret = make_dir(r, table->path);
	if (ret || r->dry_run)
		return ret;
	ret = begin(table, &file);
	if (!ret)
		new_file_drop(&file);
	return ret;
}

int table_write(const struct table *table)
{
	struct new_file file;
	int ret;

	ret = begin(table, &file);
	if (ret)
		return ret;
	fwrite(table->text, 1, table->len, file.to);
	return new_file_commit(&file, true);
}

void table_parse(const struct rnbd *r, const struct table *table, volumes_report *report,
		 void *arg, struct volumes *volumes)
{
	FILE *file = table->len ? fmemopen(table->text, table->len, "r") : NULL;

	volumes_parse(r, file, NULL, volumes, report, arg);
	if (file)
		fclose(file);
}

int table_lines(const struct table *table)
{
	size_t i;
	int n = 0;

	for (i = 0; i < table->len; i++)
		n += table->text[i] == '\n';
	return n + (table->len && table->text[table->len - 1] != '\n');
}

void table_append(struct table *table, const char *line)
{
	bool newline = table->len && table->text[table->len - 1] != '\n';
	size_t n = strlen(line);

	table->text = xrealloc(table->text, table->len + n + 2, 1);
	if (newline)
		table->text[table->len++] = '\n';
	memcpy(table->text + table->len, line, n);
	table->len += n;
	table->text[table->len++] = '\n';
}

/* Remove a line, by its number. */
void table_remove(struct table *table, int line)
{
	char *from = table->text, *end = table->text + table->len, *to;

	while (--line)
		from = (char *)memchr(from, '\n', end - from) + 1;
	to = memchr(from, '\n', end - from);
	to = to ? to + 1 : end;
	memmove(from, to, end - to);
	table->len -= to - from;
}
