/* SPDX-License-Identifier: GPL-2.0 */
/* The text format of Prometheus */
#ifndef RNBD_PROMETHEUS_H
#define RNBD_PROMETHEUS_H

#include "rnbd.h"

/* Most labels of a series */
#define LABELS_MAX 8

/* A label; omitted if its value is NULL */
struct label {
	const char *name, *value;
};

struct metric {
	const char *name, *type, *help;
};

/*
 * Metrics that are being written. @metric: the one whose series follow; @has_head: its head is
 * written; @seen: tree of the series so far
 */
struct metrics {
	const struct rnbd *r;
	const struct model *model;
	FILE *to;
	const struct metric *metric;
	bool has_head;
	void *seen;
};

void metric_begin(struct metrics *m, const struct metric *metric);
void metric_value(struct metrics *m, const struct label *labels, size_t nr, double value);
void metric_histogram(struct metrics *m, const struct label *labels, size_t nr,
		      const struct histogram *h);
void metrics_end(struct metrics *m);

#endif /* RNBD_PROMETHEUS_H */
