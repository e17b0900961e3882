// SPDX-License-Identifier: GPL-2.0
/*
 * map --save, unmap --save: add a line to the table of volumes, or remove it. All other lines are
 * kept byte for byte. The new table is parsed before it replaces the old one, so that a line which
 * rnbd-volumes(5) would ignore is never saved, and no other volume changes or disappears.
 */
#include <ctype.h>
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
#define CHUNK 4096

/* The table's file; @lock is its directory, locked against other writers */
struct table {
	char *text;
	size_t len;
	mode_t mode;
	int lock;
};

static void report(void *arg, const char *text)
{
	(void)arg;
	report_usage("%s", text);
}

static void ignore(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static int open_dir(const char *path)
{
	char *copy = xstrdup(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	free(copy);
	return fd;
}

static int read_text(struct table *table, FILE *file)
{
	struct stat st;

	if (fstat(fileno(file), &st))
		return errno;
	table->mode = st.st_mode & 0777;
	while (!feof(file) && !ferror(file)) {
		table->text = xrealloc(table->text, table->len + CHUNK, 1);
		table->len += fread(table->text + table->len, 1, CHUNK, file);
	}
	return ferror(file) ? errno : 0;
}

/* Read the table; a missing file counts as empty. Returns an exit code. */
static int table_open(const struct rnbd *r, struct table *table)
{
	FILE *file;
	int err = 0;

	*table = (struct table){ .mode = DEFAULT_MODE, .lock = open_dir(r->volumes) };
	if (table->lock >= 0)
		flock(table->lock, LOCK_EX);
	file = fopen(r->volumes, "re");
	if (file) {
		err = read_text(table, file);
		fclose(file);
	} else if (errno != ENOENT) {
		err = errno;
	}
	return err ? report_failed("%s: %s", r->volumes, strerror(err)) : RNBD_OK;
}

static void table_close(struct table *table)
{
	free(table->text);
	if (table->lock >= 0)
		close(table->lock);
}

static int table_write(const struct rnbd *r, const struct table *table)
{
	struct new_file file;
	int ret;

	ret = new_file_open(&file, r->volumes, table->mode);
	if (ret)
		return ret;
	fwrite(table->text, 1, table->len, file.to);
	return new_file_commit(&file);
}

static void table_parse(const struct rnbd *r, const struct table *table, const char *only,
			volumes_report *to, struct volumes *volumes)
{
	FILE *file = table->len ? fmemopen(table->text, table->len, "r") : NULL;

	volumes_parse(r, file, only, volumes, to, NULL);
	if (file)
		fclose(file);
}

static int count_lines(const struct table *table)
{
	size_t i;
	int n = 0;

	for (i = 0; i < table->len; i++)
		n += table->text[i] == '\n';
	return n + (table->len && table->text[table->len - 1] != '\n');
}

static void table_append(struct table *table, const char *line)
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
static void table_remove(struct table *table, int line)
{
	char *from = table->text, *end = table->text + table->len, *to;

	while (--line)
		from = (char *)memchr(from, '\n', end - from) + 1;
	to = memchr(from, '\n', end - from);
	to = to ? to + 1 : end;
	memmove(from, to, end - to);
	table->len -= to - from;
}

static const struct volume *find_target(const struct volumes *volumes, const char *session,
					const char *device)
{
	size_t i;

	for (i = 0; i < volumes->nr; i++)
		if (!strcmp(volumes->all[i].session, session) &&
		    !strcmp(volumes->all[i].device, device))
			return &volumes->all[i];
	return NULL;
}

/* Make a name from that of the device: its last component, with valid characters only. */
static char *name_of(const char *device)
{
	const char *slash = strrchr(device, '/');
	char *name = xasprintf("%.*s", VOLUME_NAME_MAX, slash ? slash + 1 : device), *c;

	for (c = name; *c; c++)
		if (!isascii(*c) || (!isalnum(*c) && !strchr("-_.:@+", *c)) ||
		    (c == name && *c == '-'))
			*c = '_';
	return name;
}

/* Choose a name that no other line has, if possible; otherwise the line will be refused. */
static char *choose_name(const struct volumes *volumes, const struct volume *volume)
{
	char *name = name_of(volume->device), *longer;

	if (*name && strcmp(name, "all") && !volumes_find(volumes, name))
		return name;
	longer = xasprintf("%s-%s", volume->session, name);
	free(name);
	name = name_of(longer);
	free(longer);
	return name;
}

/* Convert paths from map_device's format, "ip:SRC,ip:DST path=ip:DST", to that of the table. */
static void print_paths(FILE *to, const char *paths)
{
	static const char between[] = " path=";
	char *named = name_scopes(paths);
	const char *c;

	for (c = named; *c; c++) {
		if ((c == named || c[-1] == ',' || c[-1] == '=') && starts_with(c, "ip:"))
			c += 3;
		if (starts_with(c, between)) {
			fputc(',', to);
			c += strlen(between) - 1;
		} else {
			fputc(*c == ',' ? '@' : *c, to);
		}
	}
	free(named);
}

/* Print a word, in which a backslash would begin an octal number. */
static void print_word(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\134", to);
		else
			fputc(*text, to);
	}
}

/* Make the line of a volume. Options of its session are those of the session's other lines, too. */
static char *make_line(const struct volumes *volumes, const struct volume *volume,
		       const char *name)
{
	char *line = NULL, before = ' ';
	const char *value;
	size_t room, i;
	FILE *to;

	to = open_memstream(&line, &room);
	if (!to)
		return xstrdup("");
	fprintf(to, "%s ", name);
	print_word(to, volume->session);
	fputc(' ', to);
	print_paths(to, volumes_option(volumes, volume, PATHS));
	fputc(' ', to);
	print_word(to, volume->device);
	for (i = 0; i < NR_VOLUME_OPTIONS; i++) {
		value = i == PATHS ? NULL : volumes_option(volumes, volume, i);
		if (!value)
			continue;
		fprintf(to, "%c%s=", before, volume_option_name(i));
		print_word(to, value);
		before = ',';
	}
	fclose(to);
	return line;
}

/* Add the paths of a session that is open, if they are not known otherwise. */
static void add_open_paths(const struct rnbd *r, struct volume *volume)
{
	const struct session *session;
	const struct path *path;
	struct model model;
	size_t i, j;
	char *text;

	model_read(r, &model);
	for (i = 0; i < model.nr_sessions; i++) {
		session = &model.sessions[i];
		if (session->side != CLIENT || strcmp(session->name, volume->session))
			continue;
		for (j = 0; j < session->nr_paths; j++) {
			path = &session->paths[j];
			if (!path->dst_addr)
				continue;
			text = xasprintf("%s%s%s", path->src_addr ? path->src_addr : "",
					 path->src_addr ? "," : "", path->dst_addr);
			volume_add_path(volume, text);
			free(text);
		}
	}
	model_free(&model);
}

/* Print the equivalent command of a shell. */
static void print_append(const struct rnbd *r, const char *line)
{
	if (!r->verbose && !r->dry_run)
		return;
	fputs("echo ", stderr);
	print_quoted(stderr, line);
	fputs(" >> ", stderr);
	print_quoted(stderr, r->volumes);
	fputc('\n', stderr);
}

static void print_remove(const struct rnbd *r, int line)
{
	if (!r->verbose && !r->dry_run)
		return;
	fprintf(stderr, "sed -i %dd ", line);
	print_quoted(stderr, r->volumes);
	fputc('\n', stderr);
}

static int append(const struct rnbd *r, struct table *table, const char *line, const char *name,
		  bool write)
{
	int nr = count_lines(table) + 1;
	const struct volume *saved;
	struct volumes volumes;
	bool is;

	table_append(table, line);
	table_parse(r, table, name, report, &volumes);
	saved = volumes_find(&volumes, name);
	is = saved && saved->line == nr;
	volumes_free(&volumes);
	if (!is)
		return report_usage("the line for %s can't be saved: %s", r->volumes, line);
	if (!write)
		return RNBD_OK;
	print_append(r, line);
	return r->dry_run ? RNBD_OK : table_write(r, table);
}

/* Check that the line which the table already has says the same. */
static int compare(const struct rnbd *r, const struct volumes *volumes,
		   const struct volume *have, const struct volume *volume)
{
	const char *value;
	size_t i;

	if (r->save_name && strcmp(r->save_name, have->name))
		return report_usage("%s:%d: the volume is called %s", r->volumes, have->line,
				    have->name);
	for (i = 0; i < NR_VOLUME_OPTIONS; i++) {
		value = volumes_option(volumes, have, i);
		if (volume->options[i] && (!value || strcmp(volume->options[i], value)))
			return report_usage("%s:%d: volume %s has %s=%s, not %s", r->volumes,
					    have->line, have->name, volume_option_name(i),
					    value ? value : "", volume->options[i]);
	}
	return RNBD_OK;
}

static int save_volume(const struct rnbd *r, struct table *table, struct volume *volume, bool write)
{
	const struct volume *have;
	struct volumes volumes;
	int ret = RNBD_OK;
	char *name, *line;

	table_parse(r, table, "", ignore, &volumes);
	have = find_target(&volumes, volume->session, volume->device);
	if (!have && !volumes_option(&volumes, volume, PATHS))
		add_open_paths(r, volume);
	if (have) {
		ret = compare(r, &volumes, have, volume);
	} else if (volumes_option(&volumes, volume, PATHS)) {
		name = r->save_name ? xstrdup(r->save_name) : choose_name(&volumes, volume);
		line = make_line(&volumes, volume, name);
		ret = append(r, table, line, name, write);
		free(line);
		free(name);
	} else if (write) {
		ret = report_failed("session %s has no paths to save", volume->session);
	}
	volumes_free(&volumes);
	return ret;
}

/*
 * Add a line for a volume, unless there is one. If not @write, only check that this is possible. A
 * volume without paths gets those of its session.
 */
int volumes_save(const struct rnbd *r, struct volume *volume, bool write)
{
	struct table table;
	int ret;

	ret = table_open(r, &table);
	if (!ret)
		ret = save_volume(r, &table, volume, write);
	table_close(&table);
	return ret;
}

/* Check that all volumes but one have the same options as before. */
static int check_kept(const struct rnbd *r, const struct volumes *before,
		      const struct volumes *after, const struct volume *removed)
{
	const struct volume *volume, *kept;
	char *old, *new;
	bool same;
	size_t i;

	for (i = 0; i < before->nr; i++) {
		volume = &before->all[i];
		if (volume == removed)
			continue;
		kept = volumes_find(after, volume->name);
		old = volumes_line(before, volume);
		new = kept ? volumes_line(after, kept) : NULL;
		same = new && !strcmp(old, new);
		free(old);
		free(new);
		if (!same)
			return report_usage("%s:%d: volume %s needs paths or options of line %d",
					    r->volumes, volume->line, volume->name, removed->line);
	}
	return RNBD_OK;
}

/* Remove the first line of a device, if any. Sets *@line to its number, or 0. */
static int remove_one(const struct rnbd *r, struct table *table, const struct device *dev,
		      int *line)
{
	struct volumes before, after;
	const struct volume *volume;
	int ret = RNBD_OK;

	table_parse(r, table, "", ignore, &before);
	volume = find_target(&before, dev->session, dev->mapping_path);
	*line = volume ? volume->line : 0;
	if (volume) {
		table_remove(table, volume->line);
		table_parse(r, table, "", ignore, &after);
		ret = check_kept(r, &before, &after, volume);
		volumes_free(&after);
	}
	volumes_free(&before);
	return ret;
}

/*
 * Remove the lines of a device: without the first one, another one could become valid. If not
 * @write, only check that this is possible.
 */
int volumes_unsave(const struct rnbd *r, const struct device *dev, bool write)
{
	bool changed = false;
	struct table table;
	int ret, line = 1;

	if (!dev->session || !dev->mapping_path)
		return report_not_found("%s is gone", dev->name);
	ret = table_open(r, &table);
	while (!ret && line) {
		ret = remove_one(r, &table, dev, &line);
		if (!ret && line && write)
			print_remove(r, line);
		changed = changed || line;
	}
	if (!ret && changed && write && !r->dry_run)
		ret = table_write(r, &table);
	table_close(&table);
	return ret;
}
