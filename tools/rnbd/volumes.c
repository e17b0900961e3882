// SPDX-License-Identifier: GPL-2.0
/*
 * The table of volumes. Each line is:
 *
 *	NAME SESSION|- PATH[,PATH...]|- VOLUME [OPTION[,OPTION...]]
 *
 * Invalid lines are reported, with their numbers, and ignored. Paths and options of a session
 * apply to all of its volumes, whichever line contains them, so that the order of mapping does not
 * matter.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

#define COLUMNS 5
#define BLANKS " \t\r\n"
/* Longest name of a session or device in messages, and of the link with both in sysfs */
#define WIRE_NAME_MAX 254
#define LINK_MAX 255

/* State of reading the table */
struct reader {
	const char *file;
	const char *only;
	struct volumes *volumes;
	volumes_report *report;
	void *arg;
	/* Number of the current line, and name of its volume */
	int line;
	const char *name;
};

/* Report "FILE:LINE: " and an error. Returns false. */
static bool __printf(2, 3) wrong(const struct reader *reader, const char *fmt, ...)
{
	char *text, *message;
	va_list args;

	reader->volumes->wrong++;
	if (!reader->report ||
	    (reader->only && (!reader->name || strcmp(reader->only, reader->name))))
		return false;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	message = xasprintf("%s:%d: %s", reader->file, reader->line, text ? text : "no memory");
	reader->report(reader->arg, text_clean(message));
	free(message);
	free(text);
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Replace octal escapes such as "\040", as in fstab. Other backslashes are kept. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text != '\\' || !is_octal(text[1]) || text[1] > '3' || !is_octal(text[2]) ||
		    !is_octal(text[3]))
			continue;
		*to = (text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0');
		text += 3;
	}
	*to = 0;
}

/* Describe why @name can't be the name of a volume; the caller frees that. NULL if it can. */
char *volume_name_error(const char *name)
{
	size_t i;

	for (i = 0; name[i]; i++)
		if (!isascii(name[i]) || (!isalnum(name[i]) && !strchr("-_.:@+", name[i])))
			return xasprintf("%s: names are of letters, digits and -_.:@+", name);
	if (i > VOLUME_NAME_MAX)
		return xasprintf("%s: the name has more than %d characters", name, VOLUME_NAME_MAX);
	/* A link of that name in /dev/rnbd would be a directory. */
	if (!i || *name == '-' || !strcmp(name, "all") || !strcmp(name, ".") || !strcmp(name, ".."))
		return xasprintf("%s: a volume can't be called so", i ? name : "''");
	return NULL;
}

/* Report the description of an error, if any, and free it. Returns false if there was one. */
static bool check(const struct reader *reader, char *error)
{
	if (!error)
		return true;
	wrong(reader, "%s", error);
	free(error);
	return false;
}

static bool check_target(const struct reader *reader, const char *session, const char *device)
{
	if (!is_word(session) || strpbrk(session, "/.") || strlen(session) > WIRE_NAME_MAX)
		return wrong(reader, "session %s: at most %d printable characters, no blank / .",
			     session, WIRE_NAME_MAX);
	if (!is_word(device) || strlen(device) > WIRE_NAME_MAX)
		return wrong(reader, "volume %s: at most %d printable characters, no blank", device,
			     WIRE_NAME_MAX);
	if (strlen(device) + 1 + strlen(session) > LINK_MAX)
		return wrong(reader, "session and volume have more than %d characters together",
			     LINK_MAX - 1);
	return true;
}

/* Append a path. Each path except the first one is preceded by "path=". */
void volume_add_path(struct volume *volume, const char *path)
{
	char **paths = &volume->options[PATHS];
	char *longer = *paths ? xasprintf("%s path=%s", *paths, path) : xstrdup(path);

	free(*paths);
	*paths = longer;
}

/* Parse paths, separated by commas. Source and destination are separated by "@". */
static bool take_paths(const struct reader *reader, struct volume *volume, char *text)
{
	char *word, *path;

	if (!strcmp(text, "-"))
		return true;
	while ((word = strsep(&text, ","))) {
		path = parse_path(word);
		if (!path)
			return wrong(reader, "'%s' is no path: [SRC@]DST, both addresses", word);
		volume_add_path(volume, path);
		free(path);
	}
	return true;
}

static bool take_value(const struct reader *reader, struct volume *volume, const char *word)
{
	enum volume_option option;
	const char *value;

	if (!check(reader, option_parse(word, 0, &option, &value)))
		return false;
	if (volume->options[option])
		return wrong(reader, "%s is given twice", volume_option_name(option));
	volume->options[option] = xstrdup(value);
	return true;
}

static bool take_options(const struct reader *reader, struct volume *volume, char *text)
{
	char *word;

	if (!text || !strcmp(text, "-"))
		return true;
	while ((word = strsep(&text, ","))) {
		if (!strcmp(word, "noauto"))
			volume->noauto = true;
		else if (!strcmp(word, "nofail"))
			volume->nofail = true;
		else if (strcmp(word, "_netdev") && strcmp(word, "defaults") &&
			 !take_value(reader, volume, word))
			return false;
	}
	return true;
}

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool differs(const char *a, const char *b)
{
	return a && b && strcmp(a, b);
}

/* Check for a duplicate name or volume, and for different options of the same session. */
static bool check_other(const struct reader *reader, const struct volume *volume,
			const struct volume *other)
{
	size_t i;

	if (same(volume->name, other->name))
		return wrong(reader, "%s: line %d has that name", volume->name, other->line);
	if (!same(volume->session, other->session))
		return true;
	if (same(volume->device, other->device))
		return wrong(reader, "%s: line %d has volume %s of session %s", volume->name,
			     other->line, other->device, other->session);
	for (i = FIRST_SESSION_OPTION; i < NR_VOLUME_OPTIONS; i++)
		if (differs(volume->options[i], other->options[i]))
			return wrong(reader, "%s=%s: line %d has %s for session %s",
				     volume_option_name(i), volume->options[i], other->line,
				     other->options[i], other->session);
	return true;
}

static bool check_others(const struct reader *reader, const struct volume *volume)
{
	size_t i;

	for (i = 0; i < reader->volumes->nr; i++)
		if (!check_other(reader, volume, &reader->volumes->all[i]))
			return false;
	return true;
}

void volume_free(struct volume *volume)
{
	size_t i;

	free(volume->name);
	free(volume->session);
	free(volume->device);
	for (i = 0; i < NR_VOLUME_OPTIONS; i++)
		free(volume->options[i]);
}

/* Take the session. "-" means that its name is made from the first path. */
static bool take_session(const struct reader *reader, struct volume *volume, const char *session,
			 const char *paths)
{
	char *first;

	if (strcmp(session, "-")) {
		volume->session = xstrdup(session);
		return true;
	}
	if (!strcmp(paths, "-"))
		return wrong(reader, "%s: a session without a name needs paths", volume->name);
	first = xasprintf("%.*s", (int)strcspn(paths, ","), paths);
	volume->session = session_name(first);
	free(first);
	return volume->session ||
	       wrong(reader, "%s: this machine has no name for the session", volume->name);
}

static bool fill_volume(const struct reader *reader, struct volume *volume, char **columns)
{
	if (!check(reader, volume_name_error(columns[0])))
		return false;
	volume->line = reader->line;
	volume->name = xstrdup(columns[0]);
	volume->device = xstrdup(columns[3]);
	return take_session(reader, volume, columns[1], columns[2]) &&
	       check_target(reader, volume->session, volume->device) &&
	       take_paths(reader, volume, columns[2]) &&
	       take_options(reader, volume, columns[4]) && check_others(reader, volume);
}

/* Split a line. Returns the number of columns, of which at most COLUMNS are stored. */
static size_t split(char *text, char **columns)
{
	char *word;
	size_t n = 0;

	while ((word = strsep(&text, BLANKS))) {
		if (!*word)
			continue;
		if (n < COLUMNS) {
			unescape(word);
			columns[n] = word;
		}
		n++;
	}
	return n;
}

static void take_line(struct reader *reader, char *text, size_t len)
{
	char *columns[COLUMNS] = { NULL };
	struct volumes *volumes = reader->volumes;
	struct volume volume = { 0 };
	size_t n;

	reader->name = NULL;
	if (strlen(text) != len) {
		wrong(reader, "there is a NUL in it");
		return;
	}
	n = split(text, columns);
	if (!n || *columns[0] == '#')
		return;
	reader->name = columns[0];
	if (n < COLUMNS - 1) {
		wrong(reader, "%zu columns; it takes NAME SESSION PATHS VOLUME [OPTIONS]", n);
	} else if (n > COLUMNS) {
		wrong(reader, "%zu columns, at most 5; OPTIONS have no blanks between them", n);
	} else if (fill_volume(reader, &volume, columns)) {
		volumes->all = xrealloc(volumes->all, volumes->nr + 1, sizeof(volume));
		volumes->all[volumes->nr++] = volume;
		return;
	}
	volume_free(&volume);
}

/* Get an option. Those of the session may be in any of its lines. NULL if not specified. */
const char *volumes_option(const struct volumes *volumes, const struct volume *volume,
			   enum volume_option option)
{
	const char *value = volume->options[option];
	size_t i;

	for (i = 0; !value && option >= FIRST_SESSION_OPTION && i < volumes->nr; i++)
		if (same(volumes->all[i].session, volume->session))
			value = volumes->all[i].options[option];
	return value;
}

/* Drop volumes of sessions without a path, after all lines have been read. */
static void drop_pathless(struct reader *reader)
{
	struct volumes *volumes = reader->volumes;
	struct volume *volume;
	size_t i, kept = 0;

	for (i = 0; i < volumes->nr; i++) {
		volume = &volumes->all[i];
		/* Drops either all or none of a session's lines. */
		if (volumes_option(volumes, volume, PATHS)) {
			volumes->all[kept++] = *volume;
			continue;
		}
		reader->line = volume->line;
		reader->name = volume->name;
		wrong(reader, "%s: no line has paths for session %s", volume->name,
		      volume->session);
		volume_free(volume);
		memset(volume, 0, sizeof(*volume));
	}
	volumes->nr = kept;
}

/* Report an error of the whole file. */
static void report_file(const struct rnbd *r, int err, volumes_report *report, void *arg)
{
	char *message = xasprintf("%s: %s", r->volumes, strerror(err));

	if (report)
		report(arg, message);
	free(message);
}

/*
 * Parse lines of the table; @file may be NULL. Invalid lines are ignored, and reported if @only is
 * NULL or the name of their volume. Returns an exit code.
 */
int volumes_parse(const struct rnbd *r, FILE *file, const char *only, struct volumes *volumes,
		  volumes_report *report, void *arg)
{
	struct reader reader = {
		.file = r->volumes, .only = only, .volumes = volumes, .report = report, .arg = arg,
	};
	char *text = NULL;
	bool failed = false;
	size_t room = 0;
	ssize_t n;

	memset(volumes, 0, sizeof(*volumes));
	while (file && (n = getline(&text, &room, file)) >= 0) {
		reader.line++;
		take_line(&reader, text, n);
	}
	free(text);
	if (file && ferror(file)) {
		failed = true;
		report_file(r, errno, report, arg);
	}
	drop_pathless(&reader);
	return failed ? RNBD_FAILED : RNBD_OK;
}

/* Read the table, as volumes_parse() does. A missing file counts as empty. */
int volumes_read(const struct rnbd *r, const char *only, struct volumes *volumes,
		 volumes_report *report, void *arg)
{
	FILE *file = fopen(r->volumes, "re");
	int ret, err = errno;

	ret = volumes_parse(r, file, only, volumes, report, arg);
	if (file) {
		fclose(file);
	} else if (err != ENOENT) {
		report_file(r, err, report, arg);
		ret = RNBD_FAILED;
	}
	return ret;
}

void volumes_free(struct volumes *volumes)
{
	size_t i;

	for (i = 0; i < volumes->nr; i++)
		volume_free(&volumes->all[i]);
	free(volumes->all);
}

const struct volume *volumes_find(const struct volumes *volumes, const char *name)
{
	size_t i;

	for (i = 0; i < volumes->nr; i++)
		if (same(volumes->all[i].name, name))
			return &volumes->all[i];
	return NULL;
}

/* Make the line for map_device. */
char *volumes_line(const struct volumes *volumes, const struct volume *volume)
{
	char *line = xasprintf("sessname=%s device_path=%s", volume->session, volume->device);
	char *longer;
	const char *value;
	size_t i;

	for (i = 0; i < NR_VOLUME_OPTIONS; i++) {
		value = volumes_option(volumes, volume, i);
		if (!value)
			continue;
		longer = xasprintf("%s %s=%s", line, volume_option_name(i), value);
		free(line);
		line = longer;
	}
	return line;
}
