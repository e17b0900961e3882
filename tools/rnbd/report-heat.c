// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of latencies as heat maps: a row for each path or disk, a column for each power of two
 * in microseconds. The darker a cell, the larger its share of the row's requests.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum {
	WIDTH		= 1080,
	NAME_W		= 330,
	FIGURES_W	= 230,
	ROW_H		= 20,
	AXIS_H		= 22,
	COLUMNS		= 34,	/* the last one begins after an hour */
	SHADES		= 9,
};

struct row {
	char *name, *detail;
	u64 count[COLUMNS], total;
	double p50, p99;
};

struct heat {
	const struct report *report;
	struct row *rows;
	size_t nr, idle;
	int first, last;	/* columns that are drawn */
};

/* Get the column of a bucket: column n ends at 2^n us. */
static int column_of(const struct histogram *h, unsigned int bucket)
{
	double bound = h->bound_us[bucket];
	int n;

	if (!isfinite(bound))
		return bucket && h->bound_us[bucket - 1] < ldexp(1, COLUMNS - 2) ?
		       (int)ceil(log2(h->bound_us[bucket - 1])) + 1 : COLUMNS - 1;
	n = bound > 1 ? ceil(log2(bound)) : 0;
	return n < COLUMNS ? n : COLUMNS - 1;
}

/* Add a row, unless nothing was counted. @name and @detail are taken over. */
static void add_row(struct heat *heat, const struct histogram *h, char *name, char *detail)
{
	struct row *row;
	unsigned int i;
	int column;

	if (!histogram_total(h)) {
		heat->idle += h->nr != 0;
		free(name);
		free(detail);
		return;
	}
	heat->rows = xrealloc(heat->rows, heat->nr + 1, sizeof(*heat->rows));
	row = &heat->rows[heat->nr++];
	memset(row, 0, sizeof(*row));
	row->name = name;
	row->detail = detail;
	row->total = histogram_total(h);
	row->p50 = histogram_percentile(h, 50);
	row->p99 = histogram_percentile(h, 99);
	for (i = 0; i < h->nr; i++) {
		if (!h->count[i])
			continue;
		column = column_of(h, i);
		row->count[column] += h->count[i];
		heat->first = column < heat->first ? column : heat->first;
		heat->last = column > heat->last ? column : heat->last;
	}
}

static void add_directions(struct heat *heat, const struct latency *latency, const char *name)
{
	add_row(heat, &latency->of[READ], xstrdup(name), xstrdup("read"));
	add_row(heat, &latency->of[WRITE], xstrdup(name), xstrdup("write"));
}

/* ---- drawing ---- */

/* Format the end of a column. */
static void format_bound(char *text, size_t room, int column)
{
	double us = ldexp(1, column);

	if (us < 1000)
		snprintf(text, room, "%.0f \302\265s", us);
	else if (us < 1e6)
		snprintf(text, room, "%.0f ms", us / 1000);
	else
		snprintf(text, room, "%.0f s", us / 1e6);
}

static double column_width(const struct heat *heat)
{
	return (WIDTH - NAME_W - FIGURES_W) / (double)(heat->last - heat->first + 1);
}

static double column_x(const struct heat *heat, int column)
{
	return NAME_W + (column - heat->first) * column_width(heat);
}

static void draw_axis(const struct heat *heat)
{
	/* A label takes 48 pixels. */
	int step = ceil(48 / column_width(heat)), i;
	char bound[32];

	for (i = heat->first; i <= heat->last; i += step) {
		format_bound(bound, sizeof(bound), i - 1);
		html(heat->report, "<text class=\"axis\" x=\"%.1f\" y=\"14\">%s</text>",
		     column_x(heat, i), i > 0 ? bound : "0");
	}
	html(heat->report,
	     "<text class=\"axis right\" x=\"%d\" y=\"14\">requests</text>\n"
	     "<text class=\"axis right\" x=\"%d\" y=\"14\">median</text>\n"
	     "<text class=\"axis right\" x=\"%d\" y=\"14\">99 %%</text>\n",
	     WIDTH - 145, WIDTH - 75, WIDTH - 5);
}

/* Get the shade of a share: each step is a factor of about 2. */
static int shade_of(double share)
{
	int shade = SHADES + floor(log2(share));

	return shade < 1 ? 1 : shade;
}

static void draw_cell(const struct heat *heat, const struct row *row, int column, int y)
{
	double share = row->count[column] / (double)row->total;
	char from[32], to[32];

	format_bound(from, sizeof(from), column - 1);
	format_bound(to, sizeof(to), column);
	html(heat->report,
	     "<rect class=\"h%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
	     shade_of(share), column_x(heat, column), y + 1, column_width(heat) - 1, ROW_H - 2);
	html(heat->report, "%s to %s: %llu, %.2f %%</title></rect>", column ? from : "0", to,
	     row->count[column], share * 100);
}

static void draw_row(const struct heat *heat, const struct row *row, int y)
{
	char p50[32], p99[32];
	int i;

	format_usecs(p50, sizeof(p50), row->p50);
	format_usecs(p99, sizeof(p99), row->p99);
	html(heat->report,
	     "<svg y=\"%d\" width=\"%d\" height=\"%d\"><title>%s</title>\n"
	     "<text class=\"name\" y=\"14\">%s</text></svg>", y, NAME_W - 85, ROW_H, row->name,
	     row->name);
	if (*row->detail)
		html(heat->report, "<text class=\"small right\" x=\"%d\" y=\"%d\">%s</text>",
		     NAME_W - 8, y + 14, row->detail);
	html(heat->report,
	     "<rect class=\"h0\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", NAME_W, y + 1,
	     WIDTH - NAME_W - FIGURES_W - 1, ROW_H - 2);
	for (i = heat->first; i <= heat->last; i++)
		if (row->count[i])
			draw_cell(heat, row, i, y);
	html(heat->report,
	     "<text class=\"figure\" x=\"%d\" y=\"%d\">%llu</text>\n"
	     "<text class=\"figure\" x=\"%d\" y=\"%d\">%s</text>\n"
	     "<text class=\"figure\" x=\"%d\" y=\"%d\">%s</text>\n",
	     WIDTH - 145, y + 14, row->total, WIDTH - 75, y + 14, p50, WIDTH - 5, y + 14, p99);
}

/* The slowest come first. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *one = a, *two = b;

	return (one->p99 < two->p99) - (one->p99 > two->p99);
}

static void draw(struct heat *heat, const char *title, const char *explanation)
{
	size_t i;

	if (!heat->nr && !heat->idle)
		return;
	html(heat->report, "<h3>%s</h3>\n<p>%s", title, explanation);
	if (heat->idle)
		html(heat->report, " %zu rows without requests are left out.", heat->idle);
	html(heat->report, "</p>\n");
	if (!heat->nr)
		return;
	qsort(heat->rows, heat->nr, sizeof(*heat->rows), compare_rows);
	html(heat->report,
	     "<svg class=\"heat\" viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"%s\">",
	     WIDTH, AXIS_H + heat->nr * ROW_H, title);
	draw_axis(heat);
	for (i = 0; i < heat->nr; i++)
		draw_row(heat, &heat->rows[i], AXIS_H + i * ROW_H);
	html(heat->report, "</svg>\n");
}

static void free_rows(struct heat *heat)
{
	size_t i;

	for (i = 0; i < heat->nr; i++) {
		free(heat->rows[i].name);
		free(heat->rows[i].detail);
	}
	free(heat->rows);
}

/* ---- drawing ---- */

static void add_path(struct heat *heat, const struct path *path, bool heartbeats)
{
	char *name = xasprintf("%s %s", path->session->name, path->name);

	if (heartbeats)
		add_row(heat, &path->heartbeats, xstrdup(name), xstrdup(""));
	else
		add_directions(heat, &path->latency, name);
	free(name);
}

static void add_paths(struct heat *heat, bool heartbeats)
{
	const struct model *model = heat->report->model;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++)
		for (j = 0; j < model->sessions[i].nr_paths; j++)
			add_path(heat, &model->sessions[i].paths[j], heartbeats);
}

/* Add disks of the server. Those that several sessions have open stand together in the model. */
static void add_disks(struct heat *heat, bool wait)
{
	const struct model *model = heat->report->model;
	const struct device *dev = model->devices, *before = NULL;
	char *name;

	for (; dev < model->devices + model->nr_devices; dev++) {
		if (dev->side != SERVER || (before && !strcmp(before->name, dev->name)))
			continue;
		before = dev;
		name = xasprintf("%s %s", dev->name, dev->mapping_path ? dev->mapping_path : "");
		add_directions(heat, wait ? &dev->wait : &dev->disk, name);
		free(name);
	}
}

/* Draw all heat maps with the same columns, so that they can be compared. */
void report_heat_maps(const struct report *report)
{
	static const struct {
		void (*add)(struct heat *heat, bool which);
		bool which;
		const char *title, *explanation;
	} maps[] = {
		{ add_paths, false, "Client: requests",
		  "From sending to completion, on each path." },
		{ add_paths, true, "Client: heartbeats",
		  "Round trips of heartbeats: the network without the disk." },
		{ add_disks, false, "Server: disks", "The time that the server's disk takes." },
		{ add_disks, true, "Server: before the disk",
		  "The time that requests wait on the server before they reach the disk." },
	};
	struct heat heats[ARRAY_SIZE(maps)];
	int first = COLUMNS - 1, last = 0;
	size_t i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(maps); i++) {
		heats[i] = (struct heat){ .report = report, .first = first, .last = last };
		maps[i].add(&heats[i], maps[i].which);
		first = heats[i].first;
		last = heats[i].last;
		nr += heats[i].nr;
	}
	if (nr)
		html(report,
		     "<p class=\"note\">Requests since the path was added or the disk opened,\n"
		     "the slowest first. The larger a cell's share of its row, the darker it is.</p>\n");
	else
		html(report, "<p class=\"none\">No request was counted.</p>\n");
	for (i = 0; i < ARRAY_SIZE(maps); i++) {
		heats[i].first = first;
		heats[i].last = last;
		draw(&heats[i], maps[i].title, maps[i].explanation);
		free_rows(&heats[i]);
	}
}
