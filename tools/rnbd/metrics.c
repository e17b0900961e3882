// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd metrics, rnbd stat --prometheus: counters, latencies and findings for Prometheus. Names and
 * labels are an interface, see rnbd-stat(8).
 */
#include <ctype.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prometheus.h"

/* Everyone may read the metrics, as everyone may read sysfs. */
#define METRICS_MODE	0644

static const char *const operations[NR_DIRECTIONS] = { "read", "write" };

static double if_known(long long value)
{
	return value < 0 ? NAN : value;
}

/* The counter at an offset of a path or a device */
static double counter_at(const void *of, size_t offset)
{
	return *(const u64 *)((const char *)of + offset);
}

/* ---- paths ---- */

#define PATH_COUNTER(member) .counter = offsetof(struct path, stats.member)

/* The value of a metric: a counter in struct path, or what a function returns */
struct path_metric {
	struct metric metric;
	size_t counter;
	/* Only the client counts this. */
	bool client_only;
	/* Returns NAN if the value is unknown for the path. */
	double (*value)(const struct path *path);
};

static double path_up(const struct path *path)
{
	return path_connected(path);
}

static double path_heartbeat(const struct path *path)
{
	return path->latency_ns > 0 ? path->latency_ns / 1e9 : NAN;
}

static const struct path_metric path_metrics[] = {
	{ { "rnbd_path_up", "gauge", "1 if the path is connected" }, .value = path_up },
	{ { "rnbd_path_reads_total", "counter", "Reads" }, PATH_COUNTER(reads) },
	{ { "rnbd_path_read_bytes_total", "counter", "Bytes read" }, PATH_COUNTER(read_bytes) },
	{ { "rnbd_path_writes_total", "counter", "Writes" }, PATH_COUNTER(writes) },
	{ { "rnbd_path_written_bytes_total", "counter", "Bytes written" },
	  PATH_COUNTER(written_bytes) },
	{ { "rnbd_path_in_flight", "gauge", "Requests in flight" }, PATH_COUNTER(inflight) },
	{ { "rnbd_path_failed_over_total", "counter", "Requests that were sent again" },
	  PATH_COUNTER(failed_over), .client_only = true },
	{ { "rnbd_path_reconnects_total", "counter", "Times that it was connected again" },
	  PATH_COUNTER(reconnects), .client_only = true },
	{ { "rnbd_path_failed_reconnects_total", "counter", "Times that this failed" },
	  PATH_COUNTER(failed_reconnects), .client_only = true },
	{ { "rnbd_path_heartbeat_seconds", "gauge", "Round trip of the last heartbeat" },
	  .value = path_heartbeat },
};

static const struct metric path_latency = {
	"rnbd_path_latency_seconds", "histogram", "How long requests took"
};

static const struct metric path_round_trips = {
	"rnbd_path_round_trip_seconds", "histogram", "Round trips of heartbeats"
};

/* Fill in the labels of a path. Returns their number. */
static size_t path_labels(const struct path *path, struct label *labels)
{
	labels[0] = (struct label){ "side", side_name(path->session->side) };
	labels[1] = (struct label){ "session", path->session->name };
	labels[2] = (struct label){ "path", path->name };
	return 3;
}

static void path_value(struct metrics *m, const struct path_metric *metric,
		       const struct path *path)
{
	struct label labels[LABELS_MAX];
	double value;

	if (metric->value)
		value = metric->value(path);
	else if (metric->client_only && path->session->side != CLIENT)
		value = NAN;
	else
		value = counter_at(path, metric->counter);
	metric_value(m, labels, path_labels(path, labels), value);
}

static void path_latencies(struct metrics *m, const struct path *path)
{
	struct label labels[LABELS_MAX];
	size_t nr = path_labels(path, labels);
	enum direction d;

	for (d = READ; d < NR_DIRECTIONS; d++) {
		labels[nr] = (struct label){ "operation", operations[d] };
		metric_histogram(m, labels, nr + 1, &path->latency.of[d]);
	}
}

static void path_heartbeats(struct metrics *m, const struct path *path)
{
	struct label labels[LABELS_MAX];

	metric_histogram(m, labels, path_labels(path, labels), &path->heartbeats);
}

static void each_path(struct metrics *m, void (*add)(struct metrics *m, const struct path *path))
{
	size_t i, j;

	for (i = 0; i < m->model->nr_sessions; i++)
		for (j = 0; j < m->model->sessions[i].nr_paths; j++)
			add(m, &m->model->sessions[i].paths[j]);
}

static void add_paths(struct metrics *m)
{
	const struct path_metric *metric;
	size_t i, j;

	for (metric = path_metrics; metric < path_metrics + ARRAY_SIZE(path_metrics); metric++) {
		metric_begin(m, &metric->metric);
		for (i = 0; i < m->model->nr_sessions; i++)
			for (j = 0; j < m->model->sessions[i].nr_paths; j++)
				path_value(m, metric, &m->model->sessions[i].paths[j]);
	}
	metric_begin(m, &path_latency);
	each_path(m, path_latencies);
	metric_begin(m, &path_round_trips);
	each_path(m, path_heartbeats);
}

/* ---- sessions ---- */

struct session_metric {
	struct metric metric;
	double (*value)(const struct model *model, const struct session *session);
};

static double session_nr_paths(const struct model *model, const struct session *session)
{
	(void)model;
	return session->nr_paths;
}

static double session_paths_up(const struct model *model, const struct session *session)
{
	(void)model;
	return paths_connected(session);
}

static double session_nr_devices(const struct model *model, const struct session *session)
{
	return session_devices(model, session);
}

static double session_timeout(const struct model *model, const struct session *session)
{
	const struct number *timeout = &session->settings[FAILOVER_TIMEOUT];

	(void)model;
	return timeout->known ? timeout->value : NAN;
}

static const struct session_metric session_metrics[] = {
	{ { "rnbd_session_paths", "gauge", "Paths of the session" }, session_nr_paths },
	{ { "rnbd_session_paths_connected", "gauge", "Paths that are connected" },
	  session_paths_up },
	{ { "rnbd_session_devices", "gauge", "Devices, on the server open volumes" },
	  session_nr_devices },
	{ { "rnbd_session_failover_timeout_seconds", "gauge",
	    "Time that requests wait for a path; -1: no limit" }, session_timeout },
};

static void session_value(struct metrics *m, const struct session *session, double value)
{
	const struct label labels[] = {
		{ "side", side_name(session->side) }, { "session", session->name },
	};

	metric_value(m, labels, ARRAY_SIZE(labels), value);
}

static void add_sessions(struct metrics *m)
{
	const struct session_metric *metric = session_metrics;
	const struct session *session;

	for (; metric < session_metrics + ARRAY_SIZE(session_metrics); metric++) {
		metric_begin(m, &metric->metric);
		session = m->model->sessions;
		for (; session < m->model->sessions + m->model->nr_sessions; session++)
			session_value(m, session, metric->value(m->model, session));
	}
}

/* ---- devices of the client, volumes that clients have open on the server ---- */

#define DEVICE_COUNTER(member) .counter = offsetof(struct device, stats.member)

/* The value of a metric: a counter in struct device, or what a function returns */
struct device_metric {
	struct metric metric;
	size_t counter;
	double (*value)(const struct device *dev);
};

static double device_is_open(const struct device *dev)
{
	return dev->state && !strcmp(dev->state, "open");
}

static double device_size(const struct device *dev)
{
	return if_known(dev->size);
}

static double device_server_size(const struct device *dev)
{
	return if_known(dev->server_size);
}

static double device_read_only(const struct device *dev)
{
	return dev->read_only;
}

static const struct device_metric device_metrics[] = {
	{ { "rnbd_device_open", "gauge", "1 if I/O goes to the server" },
	  .value = device_is_open },
	{ { "rnbd_device_size_bytes", "gauge", "Size of the device" }, .value = device_size },
	{ { "rnbd_device_server_size_bytes", "gauge", "Size of the volume on the server" },
	  .value = device_server_size },
	{ { "rnbd_device_read_only", "gauge", "1 if the device cannot be written to" },
	  .value = device_read_only },
	{ { "rnbd_device_reads_total", "counter", "Reads" }, DEVICE_COUNTER(reads) },
	{ { "rnbd_device_read_bytes_total", "counter", "Bytes read" },
	  DEVICE_COUNTER(read_bytes) },
	{ { "rnbd_device_writes_total", "counter", "Writes, discards and flushes" },
	  DEVICE_COUNTER(writes) },
	{ { "rnbd_device_written_bytes_total", "counter", "Bytes written" },
	  DEVICE_COUNTER(written_bytes) },
	{ { "rnbd_device_in_flight", "gauge", "Requests in flight" }, DEVICE_COUNTER(inflight) },
};

static void device_value(struct metrics *m, const struct device_metric *metric,
			 const struct device *dev)
{
	const struct label labels[] = {
		{ "device", dev->name }, { "session", dev->session },
		{ "mapping_path", dev->mapping_path },
	};

	metric_value(m, labels, ARRAY_SIZE(labels),
		     metric->value ? metric->value(dev) : counter_at(dev, metric->counter));
}

static void add_devices(struct metrics *m)
{
	const struct device_metric *metric = device_metrics;
	const struct device *dev;
	size_t i;

	for (; metric < device_metrics + ARRAY_SIZE(device_metrics); metric++) {
		metric_begin(m, &metric->metric);
		for (i = 0; i < m->model->nr_devices; i++) {
			dev = &m->model->devices[i];
			if (dev->side == CLIENT)
				device_value(m, metric, dev);
		}
	}
}

static const struct metric volume_open = {
	"rnbd_server_volume_open", "gauge", "1 for each volume that a session has open"
};

static const struct metric disk_latency = {
	"rnbd_server_disk_latency_seconds", "histogram", "How long the server's disk took"
};

static const struct metric wait_latency = {
	"rnbd_server_wait_latency_seconds", "histogram",
	"How long requests waited on the server before they reached its disk"
};

static void add_disk(struct metrics *m, const struct device *dev, const struct latency *latency)
{
	struct label labels[LABELS_MAX] = { { "disk", dev->name } };
	enum direction d;

	for (d = READ; d < NR_DIRECTIONS; d++) {
		labels[1] = (struct label){ "operation", operations[d] };
		metric_histogram(m, labels, 2, &latency->of[d]);
	}
}

/* Check whether the same disk was printed for another session. Latencies are those of the disk. */
static bool is_repeated(const struct model *model, const struct device *dev)
{
	return dev > model->devices && dev[-1].side == SERVER && !strcmp(dev[-1].name, dev->name);
}

static void add_disks(struct metrics *m, const struct metric *metric, size_t latency)
{
	const struct model *model = m->model;
	const struct device *dev;

	metric_begin(m, metric);
	for (dev = model->devices; dev < model->devices + model->nr_devices; dev++)
		if (dev->side == SERVER && !is_repeated(model, dev))
			add_disk(m, dev, (const void *)((const char *)dev + latency));
}

static void volume_value(struct metrics *m, const struct device *dev)
{
	const struct label labels[] = {
		{ "disk", dev->name }, { "session", dev->session },
		{ "mapping_path", dev->mapping_path }, { "access_mode", dev->access_mode },
	};

	metric_value(m, labels, ARRAY_SIZE(labels), 1);
}

static void add_volumes(struct metrics *m)
{
	size_t i;

	metric_begin(m, &volume_open);
	for (i = 0; i < m->model->nr_devices; i++)
		if (m->model->devices[i].side == SERVER)
			volume_value(m, &m->model->devices[i]);
	add_disks(m, &disk_latency, offsetof(struct device, disk));
	add_disks(m, &wait_latency, offsetof(struct device, wait));
}

/* ---- the server as a whole ---- */

static void add_one(struct metrics *m, const struct metric *metric, double value)
{
	metric_begin(m, metric);
	metric_value(m, NULL, 0, value);
}

static void add_server(struct metrics *m)
{
	static const struct metric used = {
		"rnbd_server_memory_used_bytes", "gauge", "Memory that clients take"
	}, limit = {
		"rnbd_server_memory_limit_bytes", "gauge", "Memory that clients may take"
	}, waits = {
		"rnbd_server_memory_waits_total", "counter", "Requests that waited for memory"
	}, listening = {
		"rnbd_server_listening", "gauge", "1 if clients can connect"
	};
	struct memory memory;
	long long listens;

	memory_read(m->r, &memory);
	add_one(m, &used, if_known(memory.used));
	add_one(m, &limit, if_known(memory.limit));
	add_one(m, &waits, if_known(memory.waits));
	if (sysfs_read_number(m->r, &listens, "kernel/config/rnbd/listen"))
		add_one(m, &listening, listens);
}

/* ---- findings of health ---- */

static const char *text_of(struct json_object *finding, const char *key)
{
	struct json_object *value = json_object_object_get(finding, key);

	return value ? json_object_get_string(value) : NULL;
}

static void add_finding(struct metrics *m, struct json_object *finding)
{
	char level[16], *c;
	const struct label labels[] = {
		{ "level", level }, { "reason", text_of(finding, "reason") },
		{ "side", text_of(finding, "side") }, { "subject", text_of(finding, "subject") },
	};

	text_copy(level, sizeof(level), text_of(finding, "level"));
	for (c = level; *c; c++)
		*c = tolower((unsigned char)*c);
	metric_value(m, labels, ARRAY_SIZE(labels), 1);
}

static void add_health(struct metrics *m)
{
	static const struct metric status = {
		"rnbd_health_status", "gauge",
		"Exit code of rnbd health: 0 ok, 1 warning, 2 critical, 3 unknown"
	}, problem = {
		"rnbd_health_problem", "gauge", "1 for each finding of rnbd health"
	};
	struct json_object *findings;
	size_t i;
	int code;

	findings = health_findings(m->r, m->model, &code);
	add_one(m, &status, code);
	metric_begin(m, &problem);
	for (i = 0; i < json_object_array_length(findings); i++)
		add_finding(m, json_object_array_get_idx(findings, i));
	json_object_put(findings);
}

static void add_drivers(struct metrics *m)
{
	static const struct metric driver = {
		"rnbd_driver_info", "gauge", "1 for each driver that is loaded"
	};
	struct label labels[2];
	enum side side;
	char *name;

	metric_begin(m, &driver);
	for (side = 0; side < NR_SIDES; side++) {
		if (!m->model->loaded[side])
			continue;
		name = driver_name(m->r, side);
		labels[0] = (struct label){ "side", side_name(side) };
		labels[1] = (struct label){ "driver", name };
		metric_value(m, labels, ARRAY_SIZE(labels), 1);
		free(name);
	}
}

void print_metrics(const struct rnbd *r, const struct model *model, FILE *to)
{
	struct metrics m = { .r = r, .model = model, .to = to };

	add_drivers(&m);
	add_health(&m);
	add_devices(&m);
	add_sessions(&m);
	add_paths(&m);
	add_volumes(&m);
	if (model->loaded[SERVER])
		add_server(&m);
	metrics_end(&m);
}

/*
 * Arguments: [FILE]. Without a module, the metrics are only the state of health, so that a file
 * does not keep the metrics of a driver that was unloaded. The file is outdated after a crash, so
 * it need not be durable.
 */
int cmd_metrics(struct rnbd *r, int argc, char **argv)
{
	struct new_file file;
	struct model model;
	int ret = RNBD_OK;

	if (argc)
		ret = new_file_open(&file, argv[0], METRICS_MODE);
	if (ret)
		return ret;
	model_read(r, &model);
	print_metrics(r, &model, argc ? file.to : stdout);
	model_free(&model);
	return argc ? new_file_commit(&file, false) : RNBD_OK;
}
