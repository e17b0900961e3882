/* SPDX-License-Identifier: GPL-2.0 */
/* Parts of the report: a page of HTML without scripts, and without references to anything else */
#ifndef RNBD_REPORT_H
#define RNBD_REPORT_H

#include "rnbd.h"

struct report {
	const struct rnbd *r;
	const struct model *model;
	FILE *to;
};

/* ---- report-html.c ---- */

void html(const struct report *report, const char *fmt, ...) __printf(2, 3);
void html_table(const struct report *report, struct json_object *rows,
		const struct column *columns, size_t nr);

/* ---- report-style.c ---- */

extern const char report_style[];

/* ---- report-drawing.c ---- */

void report_drawing(const struct report *report, enum side side);

/* ---- report-heat.c ---- */

void report_heat_maps(const struct report *report);

/* ---- report-system.c ---- */

char *report_host(void);
void report_system(const struct report *report);
void report_rules(const struct report *report);
void report_parameters(const struct report *report);
void report_ports(const struct report *report);

/* ---- report-log.c ---- */

void report_log(const struct report *report);

#endif /* RNBD_REPORT_H */
