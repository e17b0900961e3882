// SPDX-License-Identifier: GPL-2.0
/*
 * Parses lines of tracefs, and reconstructs requests:
 *
 *	TASK-PID [CPU] FLAGS SECONDS: rtrs_clt_post: SESSION SRC@DST: slot 7 (0)
 *	CPU:1 [LOST 3 EVENTS]
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace.h"

/* Columns of the task's name, which may contain any characters */
#define TASK_COLUMNS	16
/* The first line of a log */
#define HEAD		"# rnbd: CLOCK_REALTIME is ahead by %lf s"

static double clock_seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Make the first line of a log, which helps to join logs. Traces use the monotonic clock. */
char *trace_head(void)
{
	return xasprintf(HEAD, clock_seconds(CLOCK_REALTIME) - clock_seconds(CLOCK_MONOTONIC));
}

struct trace *trace_new(const char *session)
{
	struct trace *trace = xcalloc(1, sizeof(*trace));

	trace->session = session;
	return trace;
}

static void free_requests(struct requests *requests)
{
	size_t i;

	for (i = 0; i < NR_SLOTS; i++)
		free(requests->open[i]);
	free(requests->all);
}

void trace_free(struct trace *trace)
{
	free_requests(&trace->of[CLIENT]);
	free_requests(&trace->of[SERVER]);
	free(trace->events);
	free(trace);
}

/* Begin a request. An earlier request of the slot has no end in the log, and is dropped. */
static struct request *begin(struct requests *requests, unsigned int slot)
{
	struct request *request = xcalloc(1, sizeof(*request));
	enum step step;

	free(requests->open[slot]);
	requests->open[slot] = request;
	request->slot = slot;
	for (step = 0; step < NR_STEPS; step++)
		request->at[step] = NAN;
	return request;
}

static void finish(struct requests *requests, unsigned int slot)
{
	if (requests->nr == requests->room) {
		requests->room = requests->room * 2 + 1024;
		requests->all = xrealloc(requests->all, requests->room, sizeof(*requests->all));
	}
	requests->all[requests->nr++] = *requests->open[slot];
	free(requests->open[slot]);
	requests->open[slot] = NULL;
}

static const struct kind {
	const char *name;
	enum side side;
	enum step step;
	bool first, last, parked, failed_over;
} kinds[] = {
	{ "rtrs_clt_submit",	CLIENT, SUBMIT,	  .first = true },
	{ "rtrs_clt_post",	CLIENT, POST,	  .first = false },
	{ "rtrs_clt_answer",	CLIENT, ANSWER,	  .first = false },
	{ "rtrs_clt_complete",	CLIENT, COMPLETE, .last = true },
	{ "rtrs_clt_park",	CLIENT, NR_STEPS, .parked = true },
	{ "rtrs_clt_failover",	CLIENT, NR_STEPS, .failed_over = true },
	{ "rtrs_srv_receive",	SERVER, RECEIVE,  .first = true },
	{ "rtrs_srv_dispatch",	SERVER, DISPATCH, .first = false },
	{ "rtrs_srv_answer",	SERVER, REPLY,	  .last = true },
};

/* Kind of an event that stands for events that the kernel has lost */
#define LOST ARRAY_SIZE(kinds)

/* Parse "write of 4096 bytes" or "read 4096 bytes". */
static void take_size(struct event *event, const char *text)
{
	const char *write = strstr(text, "write "), *size = write ? write : strstr(text, "read ");

	if (!size)
		return;
	event->write = write;
	size = strchr(size, ' ') + 1;
	if (starts_with(size, "of "))
		size += 3;
	event->bytes = strtoul(size, NULL, 10);
}

static void add_event(struct trace *trace, struct event event)
{
	if (trace->nr_events == trace->room) {
		trace->room = trace->room * 2 + 1024;
		trace->events = xrealloc(trace->events, trace->room, sizeof(*trace->events));
	}
	event.nr = trace->nr_events;
	trace->events[trace->nr_events++] = event;
}

static bool of_session(const char *text, const char *session)
{
	size_t n = strlen(session);

	return !strncmp(text, session, n) && (text[n] == ' ' || text[n] == ':');
}

/* Find ": rtrs_..." after the name of the task. NULL if there is none. */
static const char *find_event(const char *line)
{
	if (strnlen(line, TASK_COLUMNS) < TASK_COLUMNS)
		return NULL;
	return strstr(line + TASK_COLUMNS, ": rtrs_");
}

/* Get the CPU of an event. Without a CPU, the line counts for the first one. */
static struct cpu *cpu_of(struct trace *trace, const char *line)
{
	const char *bracket = strchr(line + TASK_COLUMNS, '[');
	unsigned long nr = bracket ? strtoul(bracket + 1, NULL, 10) : 0;

	return &trace->cpus[nr < MAX_CPUS ? nr : 0];
}

/* Parse the time before ": rtrs_...". NAN if there is none. */
static double time_before(const char *line, const char *colon)
{
	const char *from = colon;
	double at;
	char *end;

	while (from > line && !isspace((unsigned char)from[-1]))
		from--;
	at = strtod(from, &end);
	return end == colon ? at : NAN;
}

static void take_event(struct trace *trace, double at, const char *name, const char *text)
{
	struct event event = { .at = at };
	unsigned long slot;
	size_t n;

	slot = strtoul(text + strlen("slot "), NULL, 10);
	if (slot >= NR_SLOTS)
		return;
	event.slot = slot;
	take_size(&event, text);
	for (event.kind = 0; event.kind < ARRAY_SIZE(kinds); event.kind++) {
		n = strlen(kinds[event.kind].name);
		if (trace->takes[kinds[event.kind].side] &&
		    !strncmp(name, kinds[event.kind].name, n) && name[n] == ':') {
			add_event(trace, event);
			return;
		}
	}
}

static void take_head(struct trace *trace, const char *line)
{
	enum side side;
	double ahead;

	if (sscanf(line, HEAD, &ahead) != 1)
		return;
	for (side = CLIENT; side < NR_SIDES; side++)
		if (trace->takes[side])
			trace->ahead[side] = ahead;
}

/* Parse the line for lost events of a CPU. The kernel may not know their number. */
static void take_lost(struct trace *trace, const char *line)
{
	unsigned long cpu;
	u64 nr;
	char *end;

	if (!starts_with(line, "CPU:") || !isdigit((unsigned char)line[4]))
		return;
	cpu = strtoul(line + 4, &end, 10);
	if (cpu >= MAX_CPUS || !starts_with(end, " [LOST "))
		return;
	nr = strtoull(end + 7, &end, 10);
	if (!strstr(end, "EVENTS]"))
		return;
	trace->lost += nr ? nr : 1;
	trace->cpus[cpu].lost = true;
}

/* Add an event for lost ones, which were between the CPU's previous event and @at. */
static void end_gap(struct trace *trace, struct cpu *cpu, double at)
{
	if (cpu->lost)
		add_event(trace, (struct event){ .at = at, .since = cpu->last, .kind = LOST });
	cpu->lost = false;
	cpu->last = at;
}

/* Parse a line of a log. Lines without an event, and events of other sessions, are ignored. */
void trace_line(struct trace *trace, char *line)
{
	const char *colon, *name, *text, *slot_text;
	double at;

	text_clean(line);
	take_head(trace, line);
	take_lost(trace, line);
	colon = find_event(line);
	at = colon ? time_before(line, colon) : NAN;
	if (isnan(at))
		return;
	end_gap(trace, cpu_of(trace, line), at);
	name = colon + 2;
	text = strstr(name, ": ");
	slot_text = text ? strstr(text, "slot ") : NULL;
	if (slot_text && of_session(text + 2, trace->session))
		take_event(trace, at, name, slot_text);
}

/* ---- from events to requests ---- */

/* Drop the requests that have not ended. */
static void drop_open(struct requests *requests)
{
	size_t i;

	for (i = 0; i < NR_SLOTS; i++) {
		free(requests->open[i]);
		requests->open[i] = NULL;
	}
}

/*
 * Drop requests that may be affected by lost events. If the end of a request and the beginning of
 * the slot's next one were lost, a request that has ended since then may consist of two.
 */
static void drop_since(struct trace *trace, double since)
{
	static const enum step last[NR_SIDES] = { [CLIENT] = COMPLETE, [SERVER] = REPLY };
	struct requests *requests;
	enum side side;

	for (side = CLIENT; side < NR_SIDES; side++) {
		requests = &trace->of[side];
		if (!trace->takes[side])
			continue;
		/* Requests are in the order of their ends. */
		while (requests->nr && requests->all[requests->nr - 1].at[last[side]] > since)
			requests->nr--;
		drop_open(requests);
	}
}

static void play(struct trace *trace, const struct event *event)
{
	const struct kind *kind = &kinds[event->kind];
	struct requests *requests = &trace->of[kind->side];
	struct request *request;

	request = kind->first ? begin(requests, event->slot) : requests->open[event->slot];
	if (!request)
		return;
	if (kind->step < NR_STEPS)
		request->at[kind->step] = event->at;
	request->parked |= kind->parked;
	request->failed_over |= kind->failed_over;
	if (event->bytes) {
		request->write = event->write;
		request->bytes = event->bytes;
	}
	if (kind->last)
		finish(requests, event->slot);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* Begin a log, which has events of these sides. */
void trace_begin_log(struct trace *trace, bool client, bool server)
{
	size_t i;

	trace->takes[CLIENT] = client;
	trace->takes[SERVER] = server;
	trace->one_clock = client && server;
	for (i = 0; i < MAX_CPUS; i++)
		trace->cpus[i] = (struct cpu){ .last = -INFINITY };
	if (client)
		trace->ahead[CLIENT] = NAN;
	if (server)
		trace->ahead[SERVER] = NAN;
}

/* End a log. Its events are sorted, as lines of different CPUs may be out of order. */
void trace_end_log(struct trace *trace)
{
	size_t i;

	for (i = 0; i < MAX_CPUS; i++)
		end_gap(trace, &trace->cpus[i], INFINITY);
	if (trace->nr_events)
		qsort(trace->events, trace->nr_events, sizeof(*trace->events), by_time);
	for (i = 0; i < trace->nr_events; i++) {
		if (trace->events[i].kind == LOST)
			drop_since(trace, trace->events[i].since);
		else
			play(trace, &trace->events[i]);
	}
	drop_since(trace, INFINITY);
	trace->nr_events = 0;
}
