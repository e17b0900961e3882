// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd trace: shows where requests of a session spend their time, from tracepoints of this host or
 * from recorded logs. The server's part needs a log of the server.
 */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define NR_SLOWEST 10

/* Parts of a request's time. REMOTE includes the next four, which need the server's log. */
enum part { QUEUE, REMOTE, THERE, SERVER_QUEUE, DISK, BACK, COMPLETION, TOTAL, NR_PARTS };

static const struct {
	const char *key, *text;
	enum step from, to;
} parts[NR_PARTS] = {
	[QUEUE]		= { "client_queue", "client: until sent", SUBMIT, POST },
	[REMOTE]	= { "remote", "network and server", POST, ANSWER },
	[THERE]		= { "way_there", "network: way there", POST, RECEIVE },
	[SERVER_QUEUE]	= { "server_queue", "server: until read", RECEIVE, DISPATCH },
	[DISK]		= { "server_disk", "server: its disk", DISPATCH, REPLY },
	[BACK]		= { "way_back", "network: way back", REPLY, ANSWER },
	[COMPLETION]	= { "completion", "client: until done", ANSWER, COMPLETE },
	[TOTAL]		= { "total", "total", SUBMIT, COMPLETE },
};

/* Get the duration of a part. NAN if it is unknown, or if the steps are in reverse order. */
static double part_us(const struct request *request, enum part part)
{
	double us = (request->at[parts[part].to] - request->at[parts[part].from]) * 1e6;

	return us < 0 ? NAN : us;
}

static struct json_object *part_json(const struct trace *trace, enum part part, double slower)
{
	struct json_object *to = json_new();
	struct histogram h;
	double us, max = NAN;
	size_t i;

	histogram_init(&h);
	for (i = 0; i < trace->of[CLIENT].nr; i++) {
		us = part_us(&trace->of[CLIENT].all[i], part);
		if (isnan(us) || part_us(&trace->of[CLIENT].all[i], TOTAL) < slower)
			continue;
		histogram_count(&h, us);
		max = fmax(max, us);
	}
	json_add_string(to, "part", parts[part].key);
	json_add_string(to, "text", parts[part].text);
	json_add_int(to, "requests", histogram_total(&h));
	json_add_latency(to, "latency_us", &h, NAN);
	json_add_double(to, "max_us", max);
	return to;
}

static struct json_object *request_json(const struct request *request)
{
	struct json_object *to = json_new();
	enum part part;

	json_add_double(to, "at", request->at[SUBMIT]);
	json_add_int(to, "slot", request->slot);
	json_add_string(to, "operation", request->write ? "write" : "read");
	json_add_int(to, "bytes", request->bytes);
	json_add_bool(to, "waited_for_path", request->parked);
	json_add_bool(to, "failed_over", request->failed_over);
	for (part = 0; part < NR_PARTS; part++)
		json_add_double(to, parts[part].key, part_us(request, part));
	return to;
}

static int slower_first(const void *a, const void *b)
{
	double x = part_us(a, TOTAL), y = part_us(b, TOTAL);

	return (x < y) - (x > y);
}

static struct json_object *slowest_json(struct trace *trace, double slower)
{
	struct json_object *array = json_new_array();
	size_t i;

	if (trace->of[CLIENT].nr)
		qsort(trace->of[CLIENT].all, trace->of[CLIENT].nr, sizeof(*trace->of[CLIENT].all),
		      slower_first);
	for (i = 0; i < trace->of[CLIENT].nr && i < NR_SLOWEST; i++)
		if (part_us(&trace->of[CLIENT].all[i], TOTAL) >= slower)
			json_append(array, request_json(&trace->of[CLIENT].all[i]));
	return array;
}

static struct json_object *trace_json(const struct rnbd *r, struct trace *trace, size_t matched)
{
	struct json_object *to = json_new(), *array = json_new_array();
	enum part part;

	for (part = 0; part < NR_PARTS; part++)
		json_append(array, part_json(trace, part, r->slower_us));
	json_add_string(to, "session", trace->session);
	json_add_int(to, "requests", trace->of[CLIENT].nr);
	json_add_int(to, "with_server", matched);
	json_add_int(to, "lost_events", trace->lost);
	json_add(to, "parts", array);
	json_add(to, "slowest", slowest_json(trace, r->slower_us));
	return to;
}

static const struct column part_columns[] = {
	{ "text", "WHERE", TEXT },
	{ "requests", "REQUESTS", NUMBER },
	{ "latency_us.mean", "MEAN", USECS },
	{ "latency_us.p50", "P50", USECS },
	{ "latency_us.p99", "P99", USECS },
	{ "max_us", "MAX", USECS },
};

static const struct column slowest_columns[] = {
	{ "operation", "SLOWEST", TEXT },
	{ "bytes", "BYTES", NUMBER },
	{ "total", "TOTAL", USECS },
	{ "client_queue", "QUEUE", USECS },
	{ "way_there", "THERE", USECS },
	{ "server_queue", "SERVER", USECS },
	{ "server_disk", "DISK", USECS },
	{ "way_back", "BACK", USECS },
	{ "completion", "DONE", USECS },
};

static void print_text(const struct rnbd *r, const struct trace *trace, struct json_object *all,
		       size_t matched)
{
	printf("session %s: %zu requests, %zu with the server's part\n", trace->session,
	       trace->of[CLIENT].nr, matched);
	if (trace->lost)
		printf("%llu events were lost: some requests are missing\n", trace->lost);
	print_table(r, json_object_object_get(all, "parts"), part_columns,
		    ARRAY_SIZE(part_columns));
	putchar('\n');
	print_table(r, json_object_object_get(all, "slowest"), slowest_columns,
		    ARRAY_SIZE(slowest_columns));
}

static int analyse(const struct rnbd *r, struct trace *trace)
{
	size_t matched = trace_match(trace);
	struct json_object *all;

	if (r->server_log && !trace_joined(trace, matched))
		return report_failed("the logs can't be joined: %zu of %zu and %zu requests fit",
				     matched, trace->of[CLIENT].nr, trace->of[SERVER].nr);
	all = trace_json(r, trace, matched);
	if (r->json)
		json_print(all);
	else
		print_text(r, trace, all, matched);
	json_object_put(all);
	return RNBD_OK;
}

static void take_line(void *arg, char *line)
{
	trace_line(arg, line);
}

static void record_line(void *arg, char *line)
{
	fprintf(arg, "%s\n", line);
}

static int read_log(struct trace *trace, const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int ret = RNBD_OK;

	if (!file)
		return report_failed("can't open %s: %s", path, strerror(errno));
	while (getline(&line, &room, file) >= 0)
		trace_line(trace, line);
	if (ferror(file))
		ret = report_failed("can't read %s", path);
	free(line);
	fclose(file);
	return ret;
}

static int record(const struct rnbd *r)
{
	FILE *file = fopen(r->record, "w");
	char *head;
	bool bad;
	int ret;

	if (!file)
		return report_failed("can't open %s: %s", r->record, strerror(errno));
	head = trace_head();
	record_line(file, head);
	free(head);
	ret = trace_live(r, r->seconds, record_line, file);
	bad = ferror(file);
	if ((fclose(file) || bad) && !ret)
		ret = report_failed("can't write all of %s", r->record);
	return ret;
}

/* Trace on this host, which is the client. */
static int take_live(const struct rnbd *r, struct trace *trace)
{
	char *head = trace_head();

	trace_line(trace, head);
	free(head);
	return trace_live(r, r->seconds, take_line, trace);
}

static int collect(const struct rnbd *r, struct trace *trace)
{
	int ret;

	/* If the host is also the server, its own log includes the server's part. */
	trace_begin_log(trace, true, !r->server_log);
	if (r->client_log)
		ret = read_log(trace, r->client_log);
	else
		ret = take_live(r, trace);
	trace_end_log(trace);
	if (!ret && r->server_log) {
		trace_begin_log(trace, false, true);
		ret = read_log(trace, r->server_log);
		trace_end_log(trace);
	}
	return ret ? ret : analyse(r, trace);
}

/* Get the session of a device or path, or a session. With a log of the client, use any name. */
static int session_of(const struct rnbd *r, const char *name, char **session)
{
	struct found found;
	struct model model;
	int ret = RNBD_OK;

	if (r->client_log) {
		*session = xstrdup(name);
		return RNBD_OK;
	}
	ret = need_model(r, &model);
	if (!ret)
		ret = find_any(&model, name, &found);
	if (!ret && found.device && !found.device->session)
		ret = report_not_found("the session of %s is gone", name);
	if (!ret && found.device)
		*session = xstrdup(found.device->session);
	else if (!ret)
		*session = xstrdup(found.session ? found.session->name :
						   found.path->session->name);
	model_free(&model);
	return ret;
}

/* Arguments: NAME; or --record FILE, which records all sessions */
int cmd_trace(struct rnbd *r, int argc, char **argv)
{
	struct trace *trace;
	char *session;
	int ret;

	if (r->record && !argc)
		return record(r);
	if (r->record || !argc)
		return report_usage("trace NAME, or trace --record FILE");
	ret = session_of(r, argv[0], &session);
	if (ret)
		return ret;
	trace = trace_new(session);
	ret = collect(r, trace);
	trace_free(trace);
	free(session);
	return ret;
}
