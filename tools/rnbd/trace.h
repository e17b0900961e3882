/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests, reconstructed from tracepoints; see "Tracing" in Documentation/rtrs.rst
 */
#ifndef RNBD_TRACE_H
#define RNBD_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "rnbd.h"

/* Slot numbers have 16 bits. */
#define NR_SLOTS 65536

/* Most CPUs that Linux supports */
#define MAX_CPUS 8192

/* Steps of a request. Times are in seconds of the host's clock; NAN: unknown */
enum step {
	/* on the client */
	SUBMIT, POST, ANSWER, COMPLETE,
	/* on the server */
	RECEIVE, DISPATCH, REPLY,
	NR_STEPS
};

struct request {
	unsigned int slot, bytes;
	bool write, parked, failed_over;
	double at[NR_STEPS];
};

/* Completed requests of one side, sorted by slot, then by time */
struct requests {
	struct request *all;
	size_t nr, room;
	/* Request of each slot that is not completed */
	struct request *open[NR_SLOTS];
	/* Index in @all of each slot's first request */
	size_t first[NR_SLOTS + 1];
};

/* Event number @nr of a log. For lost events: they happened between @since and @at. */
struct event {
	double at, since;
	size_t nr;
	unsigned int kind, slot, bytes;
	bool write;
};

/* Time of a CPU's last event, and whether events were lost since then */
struct cpu {
	double last;
	bool lost;
};

struct trace {
	const char *session;
	struct requests of[NR_SIDES];
	u64 lost;
	/* The log being read: the sides of which it has events, and the events so far */
	bool takes[NR_SIDES];
	struct event *events;
	size_t nr_events, room;
	struct cpu cpus[MAX_CPUS];
	bool one_clock;
	/* Difference in seconds of the time of day and the log's clock; NAN: unknown */
	double ahead[NR_SIDES];
};

struct trace *trace_new(const char *session);
void trace_free(struct trace *trace);
void trace_begin_log(struct trace *trace, bool client, bool server);
void trace_line(struct trace *trace, char *line);
void trace_end_log(struct trace *trace);
size_t trace_match(struct trace *trace);
bool trace_joined(const struct trace *trace, size_t matched);
char *trace_head(void);

int trace_live(const struct rnbd *r, double seconds, void (*take)(void *arg, char *line),
	       void *arg);

#endif /* RNBD_TRACE_H */
