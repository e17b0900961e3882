/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as tracepoints tell of them; see "Tracing" in Documentation/rtrs.rst
 */
#ifndef RNBD_TRACE_H
#define RNBD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "rnbd.h"

/* Slots have 16 bits. */
#define NR_SLOTS 65536

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

/* Requests of one side in the order of their beginning, those that came to an end */
struct requests {
	struct request *all;
	size_t nr, room;
	/* By slot, the one that has not ended */
	struct request *open[NR_SLOTS];
	/* Once they are sorted by slot, where those of a slot begin in @all */
	size_t first[NR_SLOTS + 1];
};

struct trace {
	const char *session;
	struct requests client, server;
	u64 lost;
};

struct trace *trace_new(const char *session);
void trace_free(struct trace *trace);
void trace_line(struct trace *trace, char *line);
size_t trace_match(struct trace *trace);

int trace_live(const struct rnbd *r, double seconds, void (*take)(void *arg, char *line),
	       void *arg);

#endif /* RNBD_TRACE_H */
