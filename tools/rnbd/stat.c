// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd stat: prints rates of devices, sessions and paths between two samples
 */
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

static const struct column columns[] = {
	{ "type", "TYPE", TEXT },
	{ "name", "NAME", TEXT },
	{ "reads_s", "R/s", RATE },
	{ "writes_s", "W/s", RATE },
	{ "read_bytes_s", "RB/s", SIZE },
	{ "written_bytes_s", "WB/s", SIZE },
	{ "in_flight", "INFLIGHT", NUMBER },
	{ "latency_us.mean", "MEAN", USECS },
	{ "latency_us.p50", "P50", USECS },
	{ "latency_us.p99", "P99", USECS },
	{ "latency_us.p99_9", "P99.9", USECS },
	{ "failed_over", "FAILOVER", NUMBER },
	{ "reconnects", "RECONN", NUMBER },
};

/* Counters of a device, a session or a path; @wait only for devices of the server */
struct counters {
	struct io_stats stats;
	struct latency latency, wait;
};

void sample_take(const struct rnbd *r, struct sample *sample)
{
	model_read(r, &sample->model);
	sample->at = now();
}

static void path_counters(const struct path *path, struct counters *c)
{
	memset(c, 0, sizeof(*c));
	c->stats = path->stats;
	c->latency = path->latency;
}

/* Get the counters of a device. On the server, requests are counted by histograms only. */
static void device_counters(const struct device *dev, struct counters *c)
{
	c->stats = dev->stats;
	c->latency = dev->disk;
	c->wait = dev->wait;
	if (dev->side == CLIENT)
		return;
	c->stats.reads = histogram_total(&dev->disk.of[READ]);
	c->stats.writes = histogram_total(&dev->disk.of[WRITE]);
}

/* Subtract an earlier value, unless the counter was reset or belongs to a new object. */
static u64 since(u64 now, u64 before)
{
	return now >= before ? now - before : now;
}

static void subtract(struct counters *c, const struct counters *before)
{
	struct io_stats *s = &c->stats;
	const struct io_stats *b = &before->stats;
	enum direction d;
	bool again;
	size_t i;

	/* Ticks wrap. But if the disk was replaced by another one, they began at 0. */
	again = s->reads < b->reads || s->writes < b->writes;
	for (i = 0; i < NR_TICKS && !again; i++)
		s->ticks_ms[i] -= b->ticks_ms[i];
	s->reads = since(s->reads, b->reads);
	s->read_bytes = since(s->read_bytes, b->read_bytes);
	s->writes = since(s->writes, b->writes);
	s->written_bytes = since(s->written_bytes, b->written_bytes);
	for (d = READ; d < NR_DIRECTIONS; d++) {
		histogram_sub(&c->latency.of[d], &before->latency.of[d]);
		histogram_sub(&c->wait.of[d], &before->wait.of[d]);
	}
}

/* Get the mean from the block layer's milliseconds, which only disks have. */
static double mean_us(const struct io_stats *s)
{
	u64 requests = s->reads + s->writes, ms = 0;
	size_t i;

	for (i = 0; i < NR_TICKS; i++)
		ms += s->ticks_ms[i];
	return requests && ms ? ms * 1e3 / requests : NAN;
}

/* Add the latency of reads and writes together. */
static void add_both(struct json_object *row, const char *key, const struct latency *latency,
		     double mean)
{
	struct histogram both = latency->of[READ];

	histogram_add(&both, &latency->of[WRITE]);
	json_add_latency(row, key, &both, mean);
}

/* Add rates. @latest: present counters; @c: differences during @seconds */
static void add_rates(struct json_object *row, const struct io_stats *latest,
		      const struct counters *c, double seconds)
{
	json_add_int(row, "in_flight", latest->inflight);
	json_add_int(row, "failed_over", latest->failed_over);
	json_add_int(row, "reconnects", latest->reconnects);
	json_add_double(row, "reads_s", c->stats.reads / seconds);
	json_add_double(row, "writes_s", c->stats.writes / seconds);
	json_add_double(row, "read_bytes_s", c->stats.read_bytes / seconds);
	json_add_double(row, "written_bytes_s", c->stats.written_bytes / seconds);
	add_both(row, "latency_us", &c->latency, mean_us(&c->stats));
	add_both(row, "wait_latency_us", &c->wait, NAN);
	json_add_latency(row, "read_latency_us", &c->latency.of[READ], NAN);
	json_add_latency(row, "write_latency_us", &c->latency.of[WRITE], NAN);
}

static struct json_object *new_row(const char *type, enum side side, const char *name,
				   const char *session, const char *state)
{
	struct json_object *row = json_new();

	json_add_string(row, "type", type);
	json_add_string(row, "side", side_name(side));
	json_add_string(row, "name", name);
	json_add_string(row, "session", session);
	json_add_string(row, "state", state);
	return row;
}

/* Find a session in an earlier sample. Objects are identified by their directories. */
static const struct session *earlier_session(const struct model *model,
					     const struct session *session)
{
	size_t i;

	for (i = 0; i < model->nr_sessions; i++)
		if (!strcmp(model->sessions[i].dir, session->dir))
			return &model->sessions[i];
	return NULL;
}

static const struct path *earlier_path(const struct session *session, const struct path *path)
{
	size_t i;

	for (i = 0; session && i < session->nr_paths; i++)
		if (!strcmp(session->paths[i].dir, path->dir))
			return &session->paths[i];
	return NULL;
}

static const struct device *earlier_device(const struct model *model, const struct device *dev)
{
	size_t i;

	for (i = 0; i < model->nr_devices; i++)
		if (!strcmp(model->devices[i].dir, dev->dir))
			return &model->devices[i];
	return NULL;
}

/* Get the differences of a path's counters since @before, an earlier sample of the session. */
static void path_delta(const struct session *before, const struct path *path, struct counters *c)
{
	const struct path *earlier = earlier_path(before, path);
	struct counters old = { 0 };

	path_counters(path, c);
	if (earlier)
		path_counters(earlier, &old);
	subtract(c, &old);
}

static struct json_object *path_row(const struct session *before, const struct path *path,
				    double seconds)
{
	struct json_object *row;
	struct counters delta;

	path_delta(before, path, &delta);
	row = new_row("path", path->session->side, path->name, path->session->name,
		      path_connected(path) ? "connected" : "disconnected");
	add_rates(row, &path->stats, &delta, seconds);
	return row;
}

/* Add up the differences of paths: the sum of counters would drop if a path were deleted. */
static struct json_object *session_row(const struct session *before,
				       const struct session *session, double seconds)
{
	struct counters sum = { 0 }, delta;
	struct io_stats latest = { 0 };
	struct json_object *row;
	enum direction d;
	size_t i;

	for (i = 0; i < session->nr_paths; i++) {
		path_delta(before, &session->paths[i], &delta);
		stats_add(&latest, &session->paths[i].stats);
		stats_add(&sum.stats, &delta.stats);
		for (d = READ; d < NR_DIRECTIONS; d++)
			histogram_add(&sum.latency.of[d], &delta.latency.of[d]);
	}
	row = new_row("session", session->side, session->name, session->name,
		      session_state(session));
	add_rates(row, &latest, &sum, seconds);
	return row;
}

static void add_session(struct json_object *rows, const struct model *before,
			const struct session *session, double seconds)
{
	const struct session *earlier = earlier_session(before, session);
	size_t i;

	json_append(rows, session_row(earlier, session, seconds));
	for (i = 0; i < session->nr_paths; i++)
		json_append(rows, path_row(earlier, &session->paths[i], seconds));
}

static struct json_object *device_row(const struct model *before, const struct device *dev,
				      double seconds)
{
	const struct device *earlier = earlier_device(before, dev);
	struct counters delta, old = { 0 };
	struct json_object *row;

	device_counters(dev, &delta);
	if (earlier)
		device_counters(earlier, &old);
	subtract(&delta, &old);
	row = new_row("device", dev->side, dev->name, dev->session, dev->state);
	add_rates(row, &dev->stats, &delta, seconds);
	return row;
}

/* Check whether a device has counters. On the server, some drivers have none. */
static bool is_counted(const struct device *dev)
{
	return dev->side == CLIENT || dev->disk.of[READ].nr;
}

/* Get rows of devices, then of each session with its paths. */
struct json_object *sample_rates(const struct sample *from, const struct sample *to)
{
	struct json_object *rows = json_new_array();
	double seconds = to->at - from->at;
	size_t i;

	for (i = 0; i < to->model.nr_devices; i++)
		if (is_counted(&to->model.devices[i]))
			json_append(rows, device_row(&from->model, &to->model.devices[i], seconds));
	for (i = 0; i < to->model.nr_sessions; i++)
		add_session(rows, &from->model, &to->model.sessions[i], seconds);
	return rows;
}

static bool has_string(struct json_object *row, const char *key, const char *want)
{
	struct json_object *value;

	return json_object_object_get_ex(row, key, &value) && value &&
	       !strcmp(json_object_get_string(value), want);
}

/* Keep only the rows of an object. For a session, keep the rows of its devices and paths, too. */
static struct json_object *only(struct json_object *rows, const struct found *found)
{
	struct json_object *some = json_new_array(), *row;
	size_t i;
	bool fits;

	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		if (found->device)
			fits = has_string(row, "type", "device") &&
			       has_string(row, "name", found->device->name);
		else if (found->session)
			fits = has_string(row, "session", found->session->name);
		else
			fits = has_string(row, "type", "path") &&
			       has_string(row, "name", found->path->name) &&
			       has_string(row, "session", found->path->session->name);
		if (fits)
			json_append(some, json_object_get(row));
	}
	json_object_put(rows);
	return some;
}

static void print_rates(const struct rnbd *r, struct json_object *rows, double seconds)
{
	struct json_object *document;

	if (!r->json) {
		print_list(r, rows, columns, ARRAY_SIZE(columns),
			   "devices, sessions or paths");
		return;
	}
	document = json_new();
	json_add_double(document, "seconds", seconds);
	json_add(document, "rates", json_object_get(rows));
	if (r->watch)
		json_print_line(document);
	else
		json_print(document);
	json_object_put(document);
}

static int stat_once(const struct rnbd *r, const char *name, struct sample *before, double seconds)
{
	struct found found;
	struct json_object *rows;
	struct sample after;
	int ret = RNBD_OK;

	nap(seconds);
	sample_take(r, &after);
	if (name)
		ret = find_any(&after.model, name, &found);
	if (!ret) {
		rows = sample_rates(before, &after);
		if (name)
			rows = only(rows, &found);
		print_rates(r, rows, after.at - before->at);
		json_object_put(rows);
	}
	model_free(&before->model);
	*before = after;
	return ret;
}

/* Print rates between samples. Without --watch, this is done once, after a second. */
static int stat_rates(const struct rnbd *r, const char *name, struct sample *before)
{
	long left = r->watch ? r->count : 1;
	struct found found;
	int ret = RNBD_OK;

	if (name)
		ret = find_any(&before->model, name, &found);
	while (!ret) {
		ret = stat_once(r, name, before, r->watch ? r->watch : 1);
		if (left && !--left)
			break;
		if (!r->json)
			putchar('\n');
		fflush(stdout);
		if (ferror(stdout))
			break;
	}
	return ret;
}

/* Arguments: [NAME] */
int cmd_stat(struct rnbd *r, int argc, char **argv)
{
	struct sample before;
	int ret;

	if (r->prometheus && argc)
		return report_usage("stat --prometheus is about everything");
	sample_take(r, &before);
	ret = need_module(r, &before.model);
	if (!ret && r->prometheus)
		print_metrics(r, &before.model, stdout);
	else if (!ret)
		ret = stat_rates(r, argc ? argv[0] : NULL, &before);
	model_free(&before.model);
	return ret;
}
