// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the request of the client's log for each request of the server's log. The logs have
 * different clocks.
 *
 * Two entries are of the same request if they have the same slot, operation and size, and the
 * server received and answered it between the client's submission and the arrival of the answer
 * there. So each pair of entries allows these offsets of the server's clock:
 *
 *	from:	server's answer - client's answer
 *	to:	server's receive - client's submit
 *
 * The offset is where most of these intervals overlap. The event of posting isn't used: it follows
 * the doorbell, so the server may receive the request before it. On a busy host, even the answer
 * may precede it.
 */
#include <math.h>
#include <stdlib.h>

#include "trace.h"

/* Largest drift of the clocks while the logs are recorded, in seconds */
#define DRIFT		(50 / 1e6)
/* Largest difference of the hosts' times of day, in seconds, with and without synchronization */
#define IN_TIME		1.0
#define OUT_OF_TIME	60.0
/* Number of the client's requests from which the offset is estimated */
#define NR_SAMPLES	500
/* Most intervals, to limit memory */
#define MAX_INTERVALS	2000000

/* Get the time by which requests of a slot are sorted. */
static double key_time(const struct request *request)
{
	return isnan(request->at[RECEIVE]) ? request->at[SUBMIT] : request->at[RECEIVE];
}

static int by_slot(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->slot != y->slot)
		return (int)x->slot - (int)y->slot;
	return (key_time(x) > key_time(y)) - (key_time(x) < key_time(y));
}

/* Sort requests by slot, and set the index of each slot's first request. */
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

/* Find the slot's first request that was received at @at or later, or the end of the slot. */
static size_t find_first(const struct requests *requests, unsigned int slot, double at)
{
	size_t low = requests->first[slot], high = requests->first[slot + 1], middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (requests->all[middle].at[RECEIVE] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Compare operation and size of two requests of the same slot. */
static bool alike(const struct request *client, const struct request *server)
{
	return client->write == server->write && client->bytes == server->bytes;
}

/* ---- offset of the server's clock ---- */

/* Offsets that pairs of requests allow. The offset is known to be between @low and @high. */
struct intervals {
	double *from, *to, low, high;
	size_t nr, room;
};

static void add_interval(struct intervals *all, double from, double to)
{
	if (all->nr == all->room) {
		all->room = all->room * 2 + 1024;
		all->from = xrealloc(all->from, all->room, sizeof(*all->from));
		all->to = xrealloc(all->to, all->room, sizeof(*all->to));
	}
	all->from[all->nr] = from;
	all->to[all->nr++] = to;
}

/* Add the intervals of a client's request. Overlapping ones are merged, to count only once. */
static void add_pairs(const struct requests *servers, const struct request *client,
		      struct intervals *all)
{
	size_t i = find_first(servers, client->slot, client->at[SUBMIT] + all->low), mine = all->nr;
	const struct request *server;
	double from, to;

	for (; i < servers->first[client->slot + 1] && all->nr < MAX_INTERVALS; i++) {
		server = &servers->all[i];
		if (!(server->at[RECEIVE] <= client->at[ANSWER] + all->high))
			return;
		from = server->at[REPLY] - client->at[ANSWER] - DRIFT;
		to = server->at[RECEIVE] - client->at[SUBMIT] + DRIFT;
		if (!alike(client, server) || from > to)
			continue;
		if (all->nr > mine && from <= all->to[all->nr - 1])
			all->to[all->nr - 1] = to;
		else
			add_interval(all, from, to);
	}
}

/* A range in which @nr intervals overlap, with fewer on both sides */
struct place {
	size_t nr;
	double from, to;
};

static double distance(const struct place *place, double near)
{
	return fabs((place->from + place->to) / 2 - near);
}

static bool is_better(const struct place *place, const struct place *than, size_t least,
		      double near)
{
	if (isnan(near) || than->nr < least)
		return place->nr > than->nr;
	return place->nr >= least && distance(place, near) < distance(than, near);
}

/* Find the place nearest to @near with at least @least intervals; if NAN, that with the most. */
static struct place find_place(const struct intervals *all, size_t least, double near)
{
	struct place found = { .from = NAN, .to = NAN }, place;
	size_t begun = 0, ended = 0;

	while (begun < all->nr) {
		while (begun < all->nr && all->from[begun] <= all->to[ended])
			begun++;
		place = (struct place){ begun - ended, all->from[begun - 1], all->to[ended] };
		if (is_better(&place, &found, least, near))
			found = place;
		while (begun < all->nr && ended < begun && all->to[ended] < all->from[begun])
			ended++;
	}
	return found;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Choose the place of the offset. If requests were sent at regular intervals, and the logs don't
 * begin and end with the same one, many places are equally good. The time of day decides, if the
 * logs have it, and its error is less than @within.
 */
static struct place choose_place(const struct trace *trace, double within)
{
	const struct requests *clients = &trace->of[CLIENT];
	double near = trace->ahead[CLIENT] - trace->ahead[SERVER];
	struct intervals all = { .low = -INFINITY, .high = INFINITY };
	size_t step = clients->nr / NR_SAMPLES + 1, i;
	struct place place;

	if (!isnan(near)) {
		all.low = near - within;
		all.high = near + within;
	}
	for (i = 0; i < clients->nr; i += step)
		add_pairs(&trace->of[SERVER], &clients->all[i], &all);
	if (all.nr) {
		qsort(all.from, all.nr, sizeof(*all.from), compare_doubles);
		qsort(all.to, all.nr, sizeof(*all.to), compare_doubles);
	}
	place = find_place(&all, 0, NAN);
	if (!isnan(near))
		place = find_place(&all, place.nr - place.nr / 50, near);
	free(all.from);
	free(all.to);
	return place;
}

/*
 * Find the server's entry of a client's request, or NULL. The entry may be outside of the client's
 * interval by up to @slack; the nearest one is chosen. Of equal ones, the last is chosen: if a
 * request was sent again, the client received the answer to the last one.
 */
static const struct request *find_server(const struct trace *trace, const struct request *client,
					 double offset, double slack)
{
	double begin = client->at[SUBMIT] + offset, end = client->at[ANSWER] + offset, outside;
	const struct requests *servers = &trace->of[SERVER];
	const struct request *found = NULL, *server;
	size_t i = find_first(servers, client->slot, begin - slack);

	for (; i < servers->first[client->slot + 1]; i++) {
		server = &servers->all[i];
		if (!(server->at[RECEIVE] <= end + slack))
			break;
		outside = fmax(0, fmax(begin - server->at[RECEIVE], server->at[REPLY] - end));
		if (alike(client, server) && outside <= slack) {
			slack = outside;
			found = server;
		}
	}
	return found;
}

/*
 * Determine the offset, from all requests. Within the offsets that they allow, assume that the
 * fastest transmission takes as long in both directions. The one to the server begins when the
 * client is ready to send, no sooner after submission than for the fastest request. Returns NAN if
 * no offset fits.
 */
static double find_offset(const struct trace *trace, double within)
{
	struct place place = choose_place(trace, within);
	double offset = (place.from + place.to) / 2, slack = (place.to - place.from) / 2;
	double low = -INFINITY, high = INFINITY, queue = INFINITY;
	const struct request *client, *server;
	size_t i;

	for (i = 0; i < trace->of[CLIENT].nr; i++) {
		client = &trace->of[CLIENT].all[i];
		server = find_server(trace, client, offset, slack);
		if (!server)
			continue;
		low = fmax(low, server->at[REPLY] - client->at[ANSWER]);
		high = fmin(high, server->at[RECEIVE] - client->at[SUBMIT]);
		queue = fmin(queue, client->at[POST] - client->at[SUBMIT]);
	}
	if (!isfinite(low) || !isfinite(high))
		return offset;
	if (isfinite(queue))
		high = fmax(high - queue, fmin(low, high));
	return (low + high) / 2;
}

/* Copy the server's steps to the client's requests. Returns the number of joined requests. */
static size_t match(struct trace *trace, double offset, double slack)
{
	const struct request *server;
	struct request *client;
	enum step step;
	size_t i, nr = 0;

	for (i = 0; i < trace->of[CLIENT].nr; i++) {
		client = &trace->of[CLIENT].all[i];
		server = find_server(trace, client, offset, slack);
		for (step = RECEIVE; step <= REPLY; step++)
			client->at[step] = server ? server->at[step] - offset : NAN;
		nr += !!server;
	}
	return nr;
}

/* Check that the logs are of the same time: they must share half of the shorter one's requests. */
bool trace_joined(const struct trace *trace, size_t matched)
{
	size_t clients = trace->of[CLIENT].nr, servers = trace->of[SERVER].nr;
	size_t fewer = clients < servers ? clients : servers;

	return matched && matched >= fewer / 2;
}

/* Join both sides' requests, in the client's clock. Returns the number of joined requests. */
size_t trace_match(struct trace *trace)
{
	size_t nr;

	sort_by_slot(&trace->of[CLIENT]);
	sort_by_slot(&trace->of[SERVER]);
	/* A single log has one clock. */
	if (trace->one_clock)
		return match(trace, 0, 0);
	nr = match(trace, find_offset(trace, IN_TIME), DRIFT);
	if (!trace_joined(trace, nr))
		nr = match(trace, find_offset(trace, OUT_OF_TIME), DRIFT);
	return nr;
}
