// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd stat --prometheus: counters in the text format of Prometheus. Names and labels are an
 * interface, see rnbd(8).
 */
#include <math.h>
#include <string.h>

#include "rnbd.h"

/* A label's value; NULL: there is none */
struct label {
	const char *name, *value;
};

struct metric {
	const char *name, *type, *help;
};

static void print_label(const struct label *label, bool first)
{
	const char *c;

	printf("%s%s=\"", first ? "" : ",", label->name);
	for (c = label->value; *c; c++) {
		if (*c == '\n')
			fputs("\\n", stdout);
		else if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void print_labels(const struct label *labels, size_t nr)
{
	bool first = true;
	size_t i;

	putchar('{');
	for (i = 0; i < nr; i++) {
		if (!labels[i].value)
			continue;
		print_label(&labels[i], first);
		first = false;
	}
	putchar('}');
}

static void print_head(const struct metric *m)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
}

static void print_value(const char *name, const struct label *labels, size_t nr, double value)
{
	fputs(name, stdout);
	print_labels(labels, nr);
	printf(" %.15g\n", value);
}

/* ---- paths ---- */

struct path_metric {
	struct metric metric;
	/* NAN: not known of this path */
	double (*value)(const struct path *path);
};

/* What only the client counts */
static double if_client(const struct path *path, double value)
{
	return path->session->side == CLIENT ? value : NAN;
}

static double path_up(const struct path *path)
{
	return path_connected(path);
}

static double path_reads(const struct path *path)
{
	return path->stats.reads;
}

static double path_read_bytes(const struct path *path)
{
	return path->stats.read_bytes;
}

static double path_writes(const struct path *path)
{
	return path->stats.writes;
}

static double path_written_bytes(const struct path *path)
{
	return path->stats.written_bytes;
}

static double path_in_flight(const struct path *path)
{
	return path->stats.inflight;
}

static double path_failed_over(const struct path *path)
{
	return if_client(path, path->stats.failed_over);
}

static double path_reconnects(const struct path *path)
{
	return if_client(path, path->stats.reconnects);
}

static double path_failed_reconnects(const struct path *path)
{
	return if_client(path, path->stats.failed_reconnects);
}

static double path_heartbeat(const struct path *path)
{
	return path->latency_ns > 0 ? path->latency_ns / 1e9 : NAN;
}

static const struct path_metric path_metrics[] = {
	{ { "rnbd_path_up", "gauge", "1 if the path is connected" }, path_up },
	{ { "rnbd_path_reads_total", "counter", "Reads" }, path_reads },
	{ { "rnbd_path_read_bytes_total", "counter", "Bytes read" }, path_read_bytes },
	{ { "rnbd_path_writes_total", "counter", "Writes" }, path_writes },
	{ { "rnbd_path_written_bytes_total", "counter", "Bytes written" }, path_written_bytes },
	{ { "rnbd_path_in_flight", "gauge", "Requests in flight" }, path_in_flight },
	{ { "rnbd_path_failed_over_total", "counter", "Requests that were sent again" },
	  path_failed_over },
	{ { "rnbd_path_reconnects_total", "counter", "Times that it was connected again" },
	  path_reconnects },
	{ { "rnbd_path_failed_reconnects_total", "counter", "Times that this failed" },
	  path_failed_reconnects },
	{ { "rnbd_path_heartbeat_seconds", "gauge", "Round trip of the last heartbeat" },
	  path_heartbeat },
};

static void path_labels(const struct path *path, struct label labels[3])
{
	labels[0] = (struct label){ "side", side_name(path->session->side) };
	labels[1] = (struct label){ "session", path->session->name };
	labels[2] = (struct label){ "path", path->name };
}

static void print_path_metric(const struct model *model, const struct path_metric *m)
{
	const struct session *session;
	struct label labels[3];
	double value;
	size_t i, j;

	print_head(&m->metric);
	for (i = 0; i < model->nr_sessions; i++) {
		session = &model->sessions[i];
		for (j = 0; j < session->nr_paths; j++) {
			value = m->value(&session->paths[j]);
			path_labels(&session->paths[j], labels);
			if (!isnan(value))
				print_value(m->metric.name, labels, ARRAY_SIZE(labels), value);
		}
	}
}

static const struct metric latency_metric = {
	"rnbd_path_latency_seconds", "histogram", "How long requests took"
};

static void print_histogram(const struct path *path, enum direction direction)
{
	const struct histogram *h = &path->latency.of[direction];
	struct label labels[5];
	char bound[32];
	u64 total = 0;
	unsigned int i;

	path_labels(path, labels);
	labels[3] = (struct label){ "operation", direction == READ ? "read" : "write" };
	labels[4] = (struct label){ "le", bound };
	for (i = 0; i < h->nr; i++) {
		total += h->count[i];
		if (isfinite(h->bound_us[i]))
			snprintf(bound, sizeof(bound), "%.9g", h->bound_us[i] / 1e6);
		else
			strcpy(bound, "+Inf");
		print_value("rnbd_path_latency_seconds_bucket", labels, 5, total);
	}
	print_value("rnbd_path_latency_seconds_count", labels, 4, total);
	print_value("rnbd_path_latency_seconds_sum", labels, 4,
		    total ? histogram_mean(h) * total / 1e6 : 0);
}

/* Drivers without histograms have no such metric. */
static void print_latencies(const struct model *model)
{
	const struct path *path;
	bool first = true;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++) {
		for (j = 0; j < model->sessions[i].nr_paths; j++) {
			path = &model->sessions[i].paths[j];
			if (!path->latency.of[READ].nr)
				continue;
			if (first)
				print_head(&latency_metric);
			first = false;
			print_histogram(path, READ);
			print_histogram(path, WRITE);
		}
	}
}

/* ---- disks of the client ---- */

struct disk_metric {
	struct metric metric;
	double (*value)(const struct device *dev);
};

static double disk_is_open(const struct device *dev)
{
	return dev->state && !strcmp(dev->state, "open");
}

static double disk_size(const struct device *dev)
{
	return dev->size < 0 ? NAN : dev->size;
}

static double disk_reads(const struct device *dev)
{
	return dev->stats.reads;
}

static double disk_read_bytes(const struct device *dev)
{
	return dev->stats.read_bytes;
}

static double disk_writes(const struct device *dev)
{
	return dev->stats.writes;
}

static double disk_written_bytes(const struct device *dev)
{
	return dev->stats.written_bytes;
}

static double disk_in_flight(const struct device *dev)
{
	return dev->stats.inflight;
}

static const struct disk_metric disk_metrics[] = {
	{ { "rnbd_device_open", "gauge", "1 if I/O goes to the server" }, disk_is_open },
	{ { "rnbd_device_size_bytes", "gauge", "Size of the disk" }, disk_size },
	{ { "rnbd_device_reads_total", "counter", "Reads" }, disk_reads },
	{ { "rnbd_device_read_bytes_total", "counter", "Bytes read" }, disk_read_bytes },
	{ { "rnbd_device_writes_total", "counter", "Writes, discards and flushes" }, disk_writes },
	{ { "rnbd_device_written_bytes_total", "counter", "Bytes written" }, disk_written_bytes },
	{ { "rnbd_device_in_flight", "gauge", "Requests in flight" }, disk_in_flight },
};

static void print_disk_metric(const struct model *model, const struct disk_metric *m)
{
	const struct device *dev;
	double value;
	size_t i;

	print_head(&m->metric);
	for (i = 0; i < model->nr_devices; i++) {
		dev = &model->devices[i];
		value = m->value(dev);
		if (dev->side != CLIENT || isnan(value))
			continue;
		print_value(m->metric.name,
			    (struct label[]){ { "device", dev->name }, { "session", dev->session },
					      { "mapping_path", dev->mapping_path } }, 3, value);
	}
}

void print_metrics(const struct model *model)
{
	size_t i;

	for (i = 0; model->loaded[CLIENT] && i < ARRAY_SIZE(disk_metrics); i++)
		print_disk_metric(model, &disk_metrics[i]);
	for (i = 0; i < ARRAY_SIZE(path_metrics); i++)
		print_path_metric(model, &path_metrics[i]);
	print_latencies(model);
}
