// SPDX-License-Identifier: GPL-2.0
/*
 * Output of HTML. Names come from other hosts, so html() escapes every string that it formats: only
 * literal text of this program can be markup.
 */
#include <err.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static void put_escaped(FILE *to, char c)
{
	switch (c) {
	case '&':
		fputs("&amp;", to);
		break;
	case '<':
		fputs("&lt;", to);
		break;
	case '>':
		fputs("&gt;", to);
		break;
	case '"':
		fputs("&quot;", to);
		break;
	case '\'':
		fputs("&#39;", to);
		break;
	default:
		fputc(c, to);
	}
}

/* Write any text of the system. Control characters and invalid bytes are replaced, too. */
static void put_text(FILE *to, const char *text)
{
	char *clean = text_clean(xstrdup(text ? text : "-")), *c;

	for (c = clean; *c; c++)
		put_escaped(to, *c);
	free(clean);
}

/* Write a number. @spec is its conversion, such as "%.1f". Returns false if it is unknown. */
static bool put_number(FILE *to, const char *spec, va_list *args)
{
	char last = spec[strlen(spec) - 1];

	if (!strchr("dufg", last))
		return false;
	if (last == 'f' || last == 'g')
		fprintf(to, spec, va_arg(*args, double));
	else if (strstr(spec, "ll"))
		fprintf(to, spec, va_arg(*args, long long));
	else if (strchr(spec, 'z'))
		fprintf(to, spec, va_arg(*args, size_t));
	else
		fprintf(to, spec, va_arg(*args, int));
	return true;
}

/*
 * Write markup. @fmt itself is not escaped, the strings of "%s" are. Other conversions work as in
 * printf(). NULL is written as "-".
 */
void html(const struct report *report, const char *fmt, ...)
{
	char spec[16];
	va_list args;
	size_t n;

	va_start(args, fmt);
	for (; *fmt; fmt += n) {
		n = strcspn(fmt, "%");
		fwrite(fmt, 1, n, report->to);
		fmt += n;
		if (!*fmt)
			break;
		n = strcspn(fmt + 1, "sdufg%") + 2;
		snprintf(spec, sizeof(spec), "%.*s", (int)n, fmt);
		if (!strcmp(spec, "%%"))
			fputc('%', report->to);
		else if (!strcmp(spec, "%s"))
			put_text(report->to, va_arg(args, const char *));
		else if (!put_number(report->to, spec, &args))
			errx(exit_failed, "unknown conversion %s", spec);
	}
	va_end(args);
}

/* Get the style of a cell: states are coloured. */
static const char *cell_style(const struct column *column, const char *text)
{
	const char *style;

	if (column->format != TEXT)
		return "n";
	style = cell_state(column, text);
	return style ? style : "t";
}

/* Write a table of JSON objects, as print_table() does. */
void html_table(const struct report *report, struct json_object *rows,
		const struct column *columns, size_t nr)
{
	char text[CELL_MAX];
	size_t i, j;

	html(report, "<div class=\"scroll\"><table>\n<tr>");
	for (j = 0; j < nr; j++)
		html(report, "<th class=\"%s\">%s</th>",
		     columns[j].format == TEXT ? "t" : "n", columns[j].heading);
	html(report, "</tr>\n");
	for (i = 0; i < json_object_array_length(rows); i++) {
		html(report, "<tr>");
		for (j = 0; j < nr; j++) {
			format_cell(report->r, text, json_object_array_get_idx(rows, i),
				    &columns[j]);
			html(report, "<td class=\"%s\">%s</td>", cell_style(&columns[j], text),
			     text);
		}
		html(report, "</tr>\n");
	}
	html(report, "</table></div>\n");
}
