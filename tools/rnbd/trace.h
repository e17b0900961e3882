/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as tracepoints tell of them; see "Tracing" in Documentation/rtrs.rst
 */
#ifndef RNBD_TRACE_H
#define RNBD_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "rnbd.h"

/* Slots have 16 bits. */
#define NR_SLOTS 65536

/* Linux has no more. */
#define MAX_CPUS 8192

/* What a request goes through, in seconds of its host's clock; NAN: not told */
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

/* Requests of one side that came to an end, sorted by slot, then by time */
struct requests {
	struct request *all;
	size_t nr, room;
	/* By slot, the one that has not ended */
	struct request *open[NR_SLOTS];
	/* Where those of a slot begin in @all */
	size_t first[NR_SLOTS + 1];
};

/* A line of a log; @nr tells its place in the log. Of lost ones, @since when they may be. */
struct event {
	double at, since;
	size_t nr;
	unsigned int kind, slot, bytes;
	bool write;
};

/* When a CPU had its last event, and whether others were lost since */
struct cpu {
	double last;
	bool lost;
};

struct trace {
	const char *session;
	struct requests of[NR_SIDES];
	u64 lost;
	/* The log that is read: which sides it tells of, and its events so far */
	bool takes[NR_SIDES];
	struct event *events;
	size_t nr_events, room;
	struct cpu cpus[MAX_CPUS];
	bool one_clock;
	/* By how much the time of day is ahead of the clock of the log; NAN: unknown */
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
