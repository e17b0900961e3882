// SPDX-License-Identifier: GPL-2.0
/*
 * map --save, unmap --save: add a line to the table of volumes, or remove it. All other lines are
 * kept byte for byte. The new table is parsed before it replaces the old one, so that a line which
 * rnbd-volumes(5) would ignore is never saved, and one that others need is never removed. Other
 * volumes can still change: options of a new line apply to all volumes of its session, and a line
 * that was ignored since the removed one had the same name is valid then.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

/* Report the error of one line. @arg is how the report of its errors begins. */
static void report(void *arg, const char *text)
{
	if (starts_with(text, arg))
		report_usage("%s", text);
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

/* Make a volume's name from the last component of the device's name, with valid characters only. */
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

/* Print paths in the table's format. map_device's format is "ip:SRC,ip:DST path=ip:DST". */
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

/* Make the line of a volume. Options of its session also apply to the session's other lines. */
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
			text = path_text(path);
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

/* Check whether two values of an option mean the same. Interfaces may be given by number. */
static bool same_value(const char *a, const char *b)
{
	char *x, *y;
	bool is;

	if (!a || !b)
		return a == b;
	x = name_scopes(a);
	y = name_scopes(b);
	is = !strcmp(x, y);
	free(x);
	free(y);
	return is;
}

static const char *option_of(const struct volumes *volumes, const struct volume *volume,
			     enum volume_option option)
{
	const char *value = volumes_option(volumes, volume, option);

	return !value && option == ACCESS_MODE ? "rw" : value;
}

/*
 * Find an option of @volume that its line @have doesn't have. @volume may lack options of the
 * session: the line's options apply then. Returns NR_VOLUME_OPTIONS if there is no difference.
 */
static enum volume_option find_difference(const struct volumes *volumes, const struct volume *have,
					  const struct volume *volume)
{
	size_t i;

	for (i = 0; i < NR_VOLUME_OPTIONS; i++)
		if ((volume->options[i] || i < FIRST_SESSION_OPTION) &&
		    !same_value(option_of(volumes, have, i), option_of(volumes, volume, i)))
			break;
	return i;
}

/* Check that the last line of the table is read back as the volume that was to be saved. */
static bool is_read_back(const struct rnbd *r, const struct table *table,
			 const struct volume *volume, const char *name, bool quiet)
{
	int nr = table_lines(table);
	char *prefix = xasprintf("%s:%d: ", r->volumes, nr);
	const struct volume *saved;
	struct volumes volumes;
	bool is;

	table_parse(r, table, quiet ? NULL : report, prefix, &volumes);
	saved = volumes_find(&volumes, name);
	is = saved && saved->line == nr && !saved->noauto && !saved->nofail &&
	     !strcmp(saved->session, volume->session) &&
	     find_difference(&volumes, saved, volume) == NR_VOLUME_OPTIONS;
	volumes_free(&volumes);
	free(prefix);
	return is;
}

static int append(const struct rnbd *r, struct table *table, const struct volume *volume,
		  const char *line, const char *name, bool write)
{
	table_append(table, line);
	if (!is_read_back(r, table, volume, name, write))
		return report_usage("the line for %s can't be saved: %s", r->volumes, line);
	if (!write)
		return table_check(r, table);
	print_append(r, line);
	return r->dry_run ? RNBD_OK : table_write(table);
}

/* Check that the line which the table already has says the same. */
static int compare(const struct rnbd *r, const struct volumes *volumes,
		   const struct volume *have, const struct volume *volume)
{
	enum volume_option option = find_difference(volumes, have, volume);
	const char *value, *name;

	if (r->save_name && strcmp(r->save_name, have->name))
		return report_usage("%s:%d: the volume is called %s", r->volumes, have->line,
				    have->name);
	if (have->noauto)
		return report_usage("%s:%d: volume %s has noauto: it is not mapped at boot",
				    r->volumes, have->line, have->name);
	if (option == NR_VOLUME_OPTIONS)
		return RNBD_OK;
	name = volume_option_name(option);
	value = volumes_option(volumes, have, option);
	if (!value)
		return report_usage("%s:%d: volume %s has no %s", r->volumes, have->line,
				    have->name, name);
	return report_usage("%s:%d: volume %s has %s=%s, not %s", r->volumes, have->line,
			    have->name, name, value, option_of(volumes, volume, option));
}

static int save_volume(const struct rnbd *r, struct table *table, struct volume *volume, bool write)
{
	const struct volume *have;
	struct volumes volumes;
	int ret = RNBD_OK;
	char *name, *line;

	table_parse(r, table, NULL, NULL, &volumes);
	have = find_target(&volumes, volume->session, volume->device);
	if (!have && !volumes_option(&volumes, volume, PATHS))
		add_open_paths(r, volume);
	if (have) {
		ret = compare(r, &volumes, have, volume);
	} else if (volumes_option(&volumes, volume, PATHS)) {
		name = r->save_name ? xstrdup(r->save_name) : choose_name(&volumes, volume);
		line = make_line(&volumes, volume, name);
		ret = append(r, table, volume, line, name, write);
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
 * volume without paths gets the paths of its session.
 */
int volumes_save(const struct rnbd *r, struct volume *volume, bool write)
{
	struct table table;
	int ret;

	ret = r->save_name ? report_error(volume_name_error(r->save_name)) : RNBD_OK;
	if (ret)
		return ret;
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
static int remove_one(const struct rnbd *r, struct table *table, const char *session,
		      const char *device, int *line)
{
	struct volumes before, after;
	const struct volume *volume;
	int ret = RNBD_OK;

	table_parse(r, table, NULL, NULL, &before);
	volume = find_target(&before, session, device);
	*line = volume ? volume->line : 0;
	if (volume) {
		table_remove(table, volume->line);
		table_parse(r, table, NULL, NULL, &after);
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
static int remove_all(const struct rnbd *r, struct table *table, const char *session,
		      const char *device, bool write)
{
	bool changed = false;
	int ret = RNBD_OK, line = 1;

	while (!ret && line) {
		ret = remove_one(r, table, session, device, &line);
		if (!ret && line && write)
			print_remove(r, line);
		changed = changed || line;
	}
	if (ret)
		return ret;
	if (!changed)
		return write ? report_as(RNBD_OK, "no line of %s in %s", device, r->volumes) :
			       RNBD_OK;
	if (!write)
		return table_check(r, table);
	return r->dry_run ? RNBD_OK : table_write(table);
}

/* Remove the lines of a device. If not @write, only check that this is possible. */
int volumes_unsave(const struct rnbd *r, const struct device *dev, bool write)
{
	struct table table;
	int ret;

	if (!dev->session || !dev->mapping_path)
		return report_not_found("%s is gone", dev->name);
	ret = table_open(r, &table);
	if (!ret)
		ret = remove_all(r, &table, dev->session, dev->mapping_path, write);
	table_close(&table);
	return ret;
}

/* Find a line by the name of its volume, or by its device. Returns how many there are. */
static size_t find_line(const struct volumes *volumes, const char *name, const char *session,
			const struct volume **found)
{
	const struct volume *volume;
	size_t i, n = 0;

	for (i = 0; i < volumes->nr; i++) {
		volume = &volumes->all[i];
		if ((strcmp(volume->name, name) && strcmp(volume->device, name)) ||
		    (session && strcmp(volume->session, session)))
			continue;
		*found = volume;
		n++;
	}
	return n;
}

/* Remove the lines of a volume that is not mapped. @session may be NULL. */
int volumes_forget(const struct rnbd *r, const char *name, const char *session)
{
	const struct volume *volume;
	struct volumes volumes;
	struct table table;
	size_t n;
	int ret;

	ret = table_open(r, &table);
	if (!ret) {
		table_parse(r, &table, NULL, NULL, &volumes);
		n = find_line(&volumes, name, session, &volume);
		if (!n)
			ret = report_not_found("no device is called '%s', and no line of %s", name,
					       r->volumes);
		else if (n > 1)
			ret = report_not_found("%zu lines of %s are of '%s': say which one", n,
					       r->volumes, name);
		else
			ret = remove_all(r, &table, volume->session, volume->device, true);
		volumes_free(&volumes);
	}
	table_close(&table);
	return ret ? ret : report_as(RNBD_OK, "%s was not mapped", name);
}
