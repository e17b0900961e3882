// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of tracefs become requests:
 *
 *	TASK-PID [CPU] FLAGS SECONDS: rtrs_clt_post: SESSION SRC@DST: slot 7 (0)
 *
 * and requests of the server are joined to the client's, by slot and time.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* Two guesses at the difference of the clocks that far apart support each other. */
#define SAME_OFFSET	(1 / 1000.0)
/* So many requests are enough for guesses. */
#define NR_GUESSERS	500

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
	free_requests(&trace->client);
	free_requests(&trace->server);
	free(trace);
}

/* What had begun in the slot has no end in the log. */
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

static const struct {
	const char *name;
	bool server;
	enum step step;
	bool first, last;
} events[] = {
	{ "rtrs_clt_submit",	false, SUBMIT,	 true,	false },
	{ "rtrs_clt_post",	false, POST,	 false,	false },
	{ "rtrs_clt_answer",	false, ANSWER,	 false,	false },
	{ "rtrs_clt_complete",	false, COMPLETE, false,	true },
	{ "rtrs_srv_receive",	true,  RECEIVE,	 true,	false },
	{ "rtrs_srv_dispatch",	true,  DISPATCH, false,	false },
	{ "rtrs_srv_answer",	true,  REPLY,	 false,	true },
};

/* "write of 4096 bytes", "read 4096 bytes" */
static void take_size(struct request *request, const char *text)
{
	const char *write = strstr(text, "write "), *size = write ? write : strstr(text, "read ");

	if (!size)
		return;
	request->write = write;
	size = strchr(size, ' ') + 1;
	if (starts_with(size, "of "))
		size += 3;
	request->bytes = strtoul(size, NULL, 10);
}

static void take_step(struct requests *requests, size_t event, unsigned int slot, double at,
		      const char *text)
{
	struct request *request;

	request = events[event].first ? begin(requests, slot) : requests->open[slot];
	if (!request)
		return;
	request->at[events[event].step] = at;
	take_size(request, text);
	if (events[event].last)
		finish(requests, slot);
}

/* What happens to a request beside its steps */
static void take_mishap(struct trace *trace, const char *name, unsigned int slot)
{
	struct request *request = trace->client.open[slot];

	if (!request)
		return;
	if (starts_with(name, "rtrs_clt_park:"))
		request->parked = true;
	if (starts_with(name, "rtrs_clt_failover:"))
		request->failed_over = true;
}

static bool of_session(const char *text, const char *session)
{
	size_t n = strlen(session);

	return !strncmp(text, session, n) && (text[n] == ' ' || text[n] == ':');
}

/* The number before ": rtrs_..."; NAN: there's none */
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

/* A line of a log; what is none of an event, or of another session, is left alone. */
void trace_line(struct trace *trace, char *line)
{
	const char *colon, *name, *text, *slot_text, *lost;
	unsigned long slot;
	size_t i, n;
	double at;

	text_clean(line);
	colon = strstr(line, ": rtrs_");
	lost = strstr(line, "[LOST ");
	if (lost)
		trace->lost += strtoull(lost + 6, NULL, 10);
	if (!colon)
		return;
	at = time_before(line, colon);
	name = colon + 2;
	text = strstr(name, ": ");
	slot_text = text ? strstr(text, "slot ") : NULL;
	if (isnan(at) || !slot_text || !of_session(text + 2, trace->session))
		return;
	slot = strtoul(slot_text + 5, NULL, 10);
	if (slot >= NR_SLOTS)
		return;
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		n = strlen(events[i].name);
		if (!strncmp(name, events[i].name, n) && name[n] == ':')
			take_step(events[i].server ? &trace->server : &trace->client, i, slot, at,
				  slot_text);
	}
	take_mishap(trace, name, slot);
}

/* ---- both sides' requests joined ---- */

static int by_slot(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return (int)x->slot - (int)y->slot;
}

/* Have requests stand slot by slot, and note where those of each slot begin. */
static void sort_by_slot(struct requests *requests)
{
	unsigned int slot = 0;
	size_t i;

	if (requests->nr)
		qsort(requests->all, requests->nr, sizeof(*requests->all), by_slot);
	for (i = 0; i < requests->nr; i++)
		while (slot <= requests->all[i].slot)
			requests->first[slot++] = i;
	while (slot <= NR_SLOTS)
		requests->first[slot++] = requests->nr;
}

/* Both in one slot */
static bool alike(const struct request *client, const struct request *server)
{
	return client->write == server->write && client->bytes == server->bytes;
}

static double middle(const struct request *request, enum step from, enum step to)
{
	return (request->at[from] + request->at[to]) / 2;
}

/* By how much the server's clock would be ahead, if these were the same request */
static double offset_of(const struct request *client, const struct request *server)
{
	return middle(server, RECEIVE, REPLY) - middle(client, POST, ANSWER);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Where most guesses stand close together; NAN: there are none */
static double densest(double *guesses, size_t nr)
{
	size_t from = 0, to, best = 0, best_from = 0;

	if (nr)
		qsort(guesses, nr, sizeof(*guesses), compare_doubles);
	for (to = 0; to < nr; to++) {
		while (guesses[to] - guesses[from] > SAME_OFFSET)
			from++;
		if (to - from + 1 > best) {
			best = to - from + 1;
			best_from = from;
		}
	}
	return best ? guesses[best_from + best / 2] : NAN;
}

/*
 * Requests of a slot come one after the other, so each pair of requests that are alike gives
 * a guess, and only the right one is the same for many pairs.
 */
static double guess_offset(const struct trace *trace)
{
	size_t guessers = trace->client.nr < NR_GUESSERS ? trace->client.nr : NR_GUESSERS;
	const size_t *first = trace->server.first;
	size_t i, j, nr = 0, room = 0;
	double *guesses = NULL, offset;
	unsigned int slot;

	for (i = 0; i < guessers; i++) {
		slot = trace->client.all[i].slot;
		for (j = first[slot]; j < first[slot + 1]; j++) {
			if (!alike(&trace->client.all[i], &trace->server.all[j]))
				continue;
			if (nr == room) {
				room = room * 2 + 1024;
				guesses = xrealloc(guesses, room, sizeof(*guesses));
			}
			offset = offset_of(&trace->client.all[i], &trace->server.all[j]);
			if (!isnan(offset))
				guesses[nr++] = offset;
		}
	}
	offset = densest(guesses, nr);
	free(guesses);
	return offset;
}

/* Of the requests that are alike, the one that fits the offset best; NULL: none does */
static const struct request *find_server(const struct trace *trace, const struct request *client,
					 double offset)
{
	double span = client->at[ANSWER] - client->at[POST], off, best = span / 2 + SAME_OFFSET;
	const size_t *first = trace->server.first;
	const struct request *found = NULL;
	size_t i;

	for (i = first[client->slot]; i < first[client->slot + 1]; i++) {
		if (!alike(client, &trace->server.all[i]))
			continue;
		off = fabs(offset_of(client, &trace->server.all[i]) - offset);
		if (off < best) {
			best = off;
			found = &trace->server.all[i];
		}
	}
	return found;
}

/*
 * No message arrives before it was sent: that bounds the offset from both sides, and the
 * fastest messages bound it best. The way there and the way back are taken to be alike.
 */
static double refine_offset(const struct trace *trace, double guess)
{
	double low = -INFINITY, high = INFINITY;
	const struct request *client, *server;
	size_t i;

	for (i = 0; i < trace->client.nr; i++) {
		client = &trace->client.all[i];
		server = find_server(trace, client, guess);
		if (!server)
			continue;
		low = fmax(low, server->at[REPLY] - client->at[ANSWER]);
		high = fmin(high, server->at[RECEIVE] - client->at[POST]);
	}
	return isfinite(low) && isfinite(high) ? (low + high) / 2 : guess;
}

/* Give the client's requests the server's steps, by the client's clock. Returns how many. */
size_t trace_match(struct trace *trace)
{
	const struct request *server;
	struct request *client;
	enum step step;
	size_t i, nr = 0;
	double offset;

	sort_by_slot(&trace->server);
	offset = guess_offset(trace);
	if (isnan(offset))
		return 0;
	offset = refine_offset(trace, offset);
	for (i = 0; i < trace->client.nr; i++) {
		client = &trace->client.all[i];
		server = find_server(trace, client, offset);
		if (!server)
			continue;
		for (step = RECEIVE; step <= REPLY; step++)
			client->at[step] = server->at[step] - offset;
		nr++;
	}
	return nr;
}
