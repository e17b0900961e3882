// SPDX-License-Identifier: GPL-2.0
/*
 * Prints JSON objects as tables, or as lines of their members. null is printed as "-".
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rnbd.h"

/* Format a size in powers of 1024 with few digits: "512", "1.5K", "12M". */
void format_size(const struct rnbd *r, char *text, size_t room, double bytes)
{
	static const char units[] = " KMGTPE";
	size_t i = 0;

	if (r->bytes) {
		snprintf(text, room, "%.0f", bytes);
		return;
	}
	while (bytes >= 1024 && units[i + 1]) {
		bytes /= 1024;
		i++;
	}
	if (!i)
		snprintf(text, room, "%.0f", bytes);
	else
		snprintf(text, room, bytes < 10 && bytes != (int)bytes ? "%.1f%c" : "%.0f%c", bytes,
			 units[i]);
}

void format_usecs(char *text, size_t room, double us)
{
	if (us < 1000)
		snprintf(text, room, us < 100 ? "%.1fus" : "%.0fus", us);
	else if (us < 1e6)
		snprintf(text, room, us < 1e5 ? "%.1fms" : "%.0fms", us / 1e3);
	else
		snprintf(text, room, "%.1fs", us / 1e6);
}

/* Get a member. Dots in @key separate nested names. NULL if the member is missing or null. */
static struct json_object *get_member(struct json_object *object, const char *key)
{
	char *copy = xstrdup(key), *rest = copy, *name;

	while (object && (name = strsep(&rest, ".")))
		if (!json_object_object_get_ex(object, name, &object))
			object = NULL;
	free(copy);
	return object;
}

/* Format a cell of a table. @text has room for CELL_MAX bytes. */
void format_cell(const struct rnbd *r, char *text, struct json_object *row,
		 const struct column *column)
{
	struct json_object *value = get_member(row, column->key);

	if (!value) {
		strcpy(text, "-");
		return;
	}
	switch (column->format) {
	case TEXT:
	case NUMBER:
		text_copy(text, CELL_MAX, json_object_get_string(value));
		break;
	case SIZE:
		format_size(r, text, CELL_MAX, json_object_get_double(value));
		break;
	case RATE:
		snprintf(text, CELL_MAX, "%.0f", json_object_get_double(value));
		break;
	case USECS:
		format_usecs(text, CELL_MAX, json_object_get_double(value));
		break;
	case YES_NO:
		strcpy(text, json_object_get_boolean(value) ? "yes" : "no");
		break;
	}
}

/* Get the style of a cell with a state: "good", "warn" or "bad". NULL: no state, or no style */
const char *cell_state(const struct column *column, const char *text)
{
	static const struct {
		const char *text, *style;
	} styles[] = {
		{ "open", "good" }, { "connected", "good" }, { "closed", "bad" },
		{ "disconnected", "bad" }, { "degraded", "warn" }, { "init", "warn" },
		{ "unmapped", "warn" }, { "ACTIVE", "good" }, { "DOWN", "bad" },
	};
	size_t i;

	for (i = 0; !strcmp(column->key, "state") && i < ARRAY_SIZE(styles); i++)
		if (!strcmp(styles[i].text, text))
			return styles[i].style;
	return NULL;
}

/* Check for a terminal that knows escape sequences. */
bool has_escapes(int fd)
{
	const char *terminal = getenv("TERM");

	return isatty(fd) && terminal && strcmp(terminal, "dumb");
}

/* Check whether to print colours: only on a terminal, and not if NO_COLOR is set. */
static bool has_colours(void)
{
	const char *none = getenv("NO_COLOR");

	return has_escapes(STDOUT_FILENO) && !(none && *none);
}

/* Print the text of a cell. States are coloured, which takes no columns. */
static void print_text(const struct column *column, const char *text)
{
	const char *style = cell_state(column, text);

	if (!style || !has_colours())
		fputs(text, stdout);
	else
		printf("\033[%sm%s\033[0m", *style == 'g' ? "32" : *style == 'w' ? "33" : "31",
		       text);
}

/* Print text left-aligned, and numbers right-aligned, without trailing blanks. */
static void print_cell(const struct column *column, const char *text, int width, bool last)
{
	int blanks = width - (int)text_columns(text);

	if (column->format != TEXT)
		printf("%*s", blanks, "");
	print_text(column, text);
	if (column->format == TEXT && !last)
		printf("%*s", blanks, "");
	fputs(last ? "\n" : "  ", stdout);
}

static int column_width(const struct rnbd *r, struct json_object *rows,
			const struct column *column)
{
	size_t width = r->no_headings ? 0 : strlen(column->heading), i;
	char text[CELL_MAX];

	for (i = 0; i < json_object_array_length(rows); i++) {
		format_cell(r, text, json_object_array_get_idx(rows, i), column);
		if (text_columns(text) > width)
			width = text_columns(text);
	}
	return width;
}

void print_table(const struct rnbd *r, struct json_object *rows, const struct column *columns,
		 size_t nr)
{
	int *widths = xcalloc(nr, sizeof(*widths));
	char text[CELL_MAX];
	size_t i, j;

	for (j = 0; j < nr; j++)
		widths[j] = column_width(r, rows, &columns[j]);
	for (j = 0; j < nr && !r->no_headings; j++)
		print_cell(&columns[j], columns[j].heading, widths[j], j + 1 == nr);
	for (i = 0; i < json_object_array_length(rows); i++) {
		for (j = 0; j < nr; j++) {
			format_cell(r, text, json_object_array_get_idx(rows, i), &columns[j]);
			print_cell(&columns[j], text, widths[j], j + 1 == nr);
		}
	}
	free(widths);
}

/* Print a table; if it is empty, print what there is none of. */
void print_list(const struct rnbd *r, struct json_object *rows, const struct column *columns,
		size_t nr, const char *what)
{
	if (json_object_array_length(rows))
		print_table(r, rows, columns, nr);
	else if (!r->no_headings)
		printf("no %s\n", what);
}

static void print_member(const char *in, const char *key, struct json_object *value)
{
	char *name = xasprintf("%s%s%s", in, *in ? "." : "", key);

	printf("%-23s %s\n", name, value ? json_object_get_string(value) : "-");
	free(name);
}

/* Print each member on a line, as "key value". */
void print_members(struct json_object *object)
{
	json_object_object_foreach(object, key, value) {
		if (!json_object_is_type(value, json_type_object)) {
			print_member("", key, value);
			continue;
		}
		json_object_object_foreach(value, inner_key, inner)
			print_member(key, inner_key, inner);
	}
}
