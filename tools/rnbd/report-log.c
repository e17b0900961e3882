// SPDX-License-Identifier: GPL-2.0
/*
 * The last lines that the drivers wrote to the kernel's log. The drivers log no keys, but names of
 * keys, which can be keys by mistake. So lines about keys are shown without words that may be keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Most lines of the log in the report */
#define LINES_MAX	300
/* Longest record of the kernel's log */
#define RECORD_MAX	8192
/* Length from which a word of a line about keys may be a key */
#define SECRET_MIN	16

/* A ring of the last lines */
struct log {
	char *lines[LINES_MAX];
	size_t nr;
};

/* Check whether a word of a line about keys may be a key or the name of one. */
static bool is_secret(const char *word, size_t n)
{
	const char *colon = memchr(word, ':', n);

	if (starts_with(word, "key=") || starts_with(word, "keys="))
		return true;
	if (starts_with(word, "ip:") || starts_with(word, "gid:") || memchr(word, '@', n))
		return false;
	return n >= SECRET_MIN || (colon && colon < word + n - 1);
}

/* Hide keys in a line, as "...". */
static char *hide_keys(const char *line)
{
	/* rtrs_core reports a key that it does not find: its second word is the name. */
	bool core = starts_with(line, "rtrs_core: ");
	char *text = xstrdup(""), *longer;
	size_t n, words = 0;

	if (!strstr(line, "key"))
		return free(text), xstrdup(line);
	for (; *line; line += n, words++) {
		n = strcspn(line, " ");
		if (is_secret(line, n) || (core && words == 1))
			longer = xasprintf("%s\342\200\246", text);
		else
			longer = xasprintf("%s%.*s", text, (int)n, line);
		free(text);
		text = longer;
		n += strspn(line + n, " ");
		if (!line[n])
			break;
		longer = xasprintf("%s ", text);
		free(text);
		text = longer;
	}
	return text;
}

/* Add a record, "level,number,microseconds,flags;text", if a driver wrote it. */
static void add_record(struct log *log, char *record)
{
	char *text = strchr(record, ';'), *line;
	unsigned long long us = 0;
	unsigned int level = 6;

	if (!text)
		return;
	*text++ = 0;
	text[strcspn(text, "\n")] = 0;
	if (!starts_with(text, "rnbd_") && !starts_with(text, "rtrs_"))
		return;
	if (sscanf(record, "%u,%*u,%llu", &level, &us) != 2)
		return;
	text = hide_keys(text);
	/* The first character is for the style: the facility is in the higher bits of the level. */
	line = xasprintf("%c[%5llu.%06llu] %s", (level & 7) < 4 ? 'b' : (level & 7) < 5 ? 'w' : ' ',
			 us / 1000000, us % 1000000, text);
	free(text);
	free(log->lines[log->nr % LINES_MAX]);
	log->lines[log->nr++ % LINES_MAX] = line;
}

/* Read the log. A read returns a record; EPIPE means that records were overwritten meanwhile. */
static void read_log(struct log *log, FILE *from)
{
	size_t room = 0;
	char *line = NULL;

	setvbuf(from, NULL, _IOFBF, RECORD_MAX);
	for (;;) {
		errno = 0;
		if (getline(&line, &room, from) >= 0)
			add_record(log, line);
		else if (errno == EPIPE || errno == EINTR)
			clearerr(from);
		else
			break;
	}
	free(line);
}

static void print_log(const struct report *report, const struct log *log)
{
	size_t i = log->nr > LINES_MAX ? log->nr - LINES_MAX : 0;
	const char *line;

	if (i)
		html(report, "<p>%zu older lines are left out.</p>\n", i);
	html(report, "<pre>");
	for (; i < log->nr; i++) {
		line = log->lines[i % LINES_MAX];
		html(report, "<span class=\"%s\">%s</span>\n",
		     *line == 'b' ? "bad" : *line == 'w' ? "warn" : "t", line + 1);
	}
	html(report, "</pre>\n");
}

/* Open the log without waiting for further lines. NULL, with errno, if it can't be read. */
static FILE *open_log(const struct rnbd *r)
{
	int fd = open(r->kmsg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? NULL : fdopen(fd, "r");
}

void report_log(const struct report *report)
{
	FILE *from = open_log(report->r);
	struct log log = { .nr = 0 };
	size_t i;

	if (!from) {
		html(report, "<p class=\"none\">The kernel's log can't be read: %s.</p>\n",
		     strerror(errno));
		return;
	}
	read_log(&log, from);
	fclose(from);
	if (log.nr)
		print_log(report, &log);
	else
		html(report, "<p class=\"none\">No line of the drivers.</p>\n");
	for (i = 0; i < LINES_MAX; i++)
		free(log.lines[i]);
}
