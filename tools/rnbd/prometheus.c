// SPDX-License-Identifier: GPL-2.0
/*
 * Writes the text format of Prometheus. A file in which a series occurs twice is rejected as a
 * whole. Clients choose the names of their sessions, and two names can be the same after they are
 * cleaned. So a series that was written already is left out.
 */
#include <err.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "prometheus.h"

static void print_label(FILE *to, const struct label *label)
{
	const char *c;

	fprintf(to, "%s=\"", label->name);
	for (c = label->value; *c; c++) {
		if (*c == '\n')
			fputs("\\n", to);
		else if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else
			fputc(*c, to);
	}
	fputc('"', to);
}

/* Get the identity of a series: its name and its labels. */
static char *series_name(const char *name, const char *suffix, const struct label *labels,
			 size_t nr)
{
	const char *before = "{";
	char *text = NULL;
	size_t size, i;
	FILE *to;

	to = open_memstream(&text, &size);
	if (!to)
		err(exit_failed, "no memory");
	fprintf(to, "%s%s", name, suffix);
	for (i = 0; i < nr; i++) {
		if (!labels[i].value)
			continue;
		fputs(before, to);
		print_label(to, &labels[i]);
		before = ",";
	}
	if (*before == ',')
		fputc('}', to);
	if (fclose(to))
		err(exit_failed, "no memory");
	return text;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Remember a series. Returns false if it was written already. */
static bool is_new(struct metrics *m, char *series)
{
	char **node = tsearch(series, &m->seen, compare);

	if (!node)
		err(exit_failed, "no memory");
	return *node == series;
}

static void print_value(struct metrics *m, const char *suffix, const struct label *labels,
			size_t nr, double value)
{
	char *series = series_name(m->metric->name, suffix, labels, nr);

	if (!is_new(m, series)) {
		free(series);
		return;
	}
	if (!m->has_head)
		fprintf(m->to, "# HELP %s %s\n# TYPE %s %s\n", m->metric->name, m->metric->help,
			m->metric->name, m->metric->type);
	m->has_head = true;
	fprintf(m->to, "%s %.15g\n", series, value);
}

/* Begin a metric. Its head is written with its first series, if it has any. */
void metric_begin(struct metrics *m, const struct metric *metric)
{
	m->metric = metric;
	m->has_head = false;
}

/* Write the value of a series, unless it is NAN. */
void metric_value(struct metrics *m, const struct label *labels, size_t nr, double value)
{
	if (!isnan(value))
		print_value(m, "", labels, nr, value);
}

/* Check whether a bucket ends at a power of two. The others are added to the next one that does. */
static bool is_exported(double bound_us)
{
	int exponent;

	return !isfinite(bound_us) || frexp(bound_us, &exponent) == 0.5;
}

/* Write a histogram. Drivers that do not have it have no series. */
void metric_histogram(struct metrics *m, const struct label *labels, size_t nr,
		      const struct histogram *h)
{
	struct label all[LABELS_MAX];
	char bound[32];
	u64 total = 0;
	unsigned int i;

	if (!h->nr)
		return;
	memcpy(all, labels, nr * sizeof(*labels));
	all[nr] = (struct label){ "le", bound };
	for (i = 0; i < h->nr; i++) {
		total += h->count[i];
		if (!is_exported(h->bound_us[i]))
			continue;
		if (isfinite(h->bound_us[i]))
			snprintf(bound, sizeof(bound), "%.9g", h->bound_us[i] / 1e6);
		else
			strcpy(bound, "+Inf");
		print_value(m, "_bucket", all, nr + 1, total);
	}
	print_value(m, "_count", labels, nr, total);
	print_value(m, "_sum", labels, nr, total ? histogram_mean(h) * total / 1e6 : 0);
}

void metrics_end(struct metrics *m)
{
	tdestroy(m->seen, free);
	m->seen = NULL;
}
