// SPDX-License-Identifier: GPL-2.0
/*
 * Devices, sessions and paths as JSON objects. Their keys are an interface, see rnbd-list(8): keys
 * may be added, but not changed. Unknown values are null. Tables are printed from the same objects.
 */
#include <err.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>

#include "rnbd.h"

static struct json_object *checked(struct json_object *value)
{
	if (!value)
		err(exit_failed, "no memory");
	return value;
}

struct json_object *json_new(void)
{
	return checked(json_object_new_object());
}

struct json_object *json_new_array(void)
{
	return checked(json_object_new_array());
}

/* Add a member. @to takes over @value. */
void json_add(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value))
		err(exit_failed, "no memory");
}

void json_append(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, value))
		err(exit_failed, "no memory");
}

struct json_object *json_new_string(const char *value)
{
	return checked(json_object_new_string(value));
}

void json_add_string(struct json_object *to, const char *key, const char *value)
{
	json_add(to, key, value ? json_new_string(value) : NULL);
}

void json_add_int(struct json_object *to, const char *key, long long value)
{
	json_add(to, key, checked(json_object_new_int64(value)));
}

void json_add_bool(struct json_object *to, const char *key, bool value)
{
	json_add(to, key, checked(json_object_new_boolean(value)));
}

/* Add a number with three decimals. */
void json_add_double(struct json_object *to, const char *key, double value)
{
	char text[64];

	if (!isfinite(value)) {
		json_add(to, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.3f", value);
	json_add(to, key, checked(json_object_new_double_s(value, text)));
}

static void add_known(struct json_object *to, const char *key, long long value)
{
	if (value < 0)
		json_add(to, key, NULL);
	else
		json_add_int(to, key, value);
}

/* Add mean and percentiles in microseconds. @mean_us is used if the histogram is empty. */
void json_add_latency(struct json_object *to, const char *key, const struct histogram *h,
		      double mean_us)
{
	struct json_object *latency = json_new();
	double mean = histogram_mean(h);

	json_add_double(latency, "mean", isnan(mean) ? mean_us : mean);
	json_add_double(latency, "p50", histogram_percentile(h, 50));
	json_add_double(latency, "p99", histogram_percentile(h, 99));
	json_add_double(latency, "p99_9", histogram_percentile(h, 99.9));
	json_add(to, key, latency);
}

static void add_stats(struct json_object *to, const struct io_stats *stats)
{
	json_add_int(to, "reads", stats->reads);
	json_add_int(to, "read_bytes", stats->read_bytes);
	json_add_int(to, "writes", stats->writes);
	json_add_int(to, "written_bytes", stats->written_bytes);
	json_add_int(to, "in_flight", stats->inflight);
}

static struct json_object *new_object(const char *type, enum side side, const char *name)
{
	struct json_object *to = json_new();

	json_add_string(to, "type", type);
	json_add_string(to, "side", side_name(side));
	json_add_string(to, "name", name);
	return to;
}

struct json_object *device_json(const struct rnbd *r, const struct device *dev)
{
	struct json_object *to = new_object("device", dev->side, dev->name);
	char *node;

	json_add_string(to, "session", dev->session);
	json_add_string(to, "mapping_path", dev->mapping_path);
	json_add_string(to, "access_mode", dev->access_mode);
	json_add_bool(to, "read_only", dev->read_only);
	add_known(to, "size", dev->size);
	if (dev->side == SERVER)
		return to;
	node = xasprintf("%s/%s", r->dev, dev->name);
	json_add_string(to, "device", node);
	free(node);
	json_add_string(to, "state", dev->state);
	json_add_string(to, "wwid", dev->wwid && *dev->wwid ? dev->wwid : NULL);
	json_add_string(to, "uuid", dev->uuid && *dev->uuid ? dev->uuid : NULL);
	add_stats(to, &dev->stats);
	return to;
}

struct json_object *session_json(const struct model *model, const struct session *session)
{
	struct json_object *to = new_object("session", session->side, session->name);
	const struct number *n;
	size_t i;

	json_add_string(to, "state", session_state(session));
	json_add_int(to, "paths", session->nr_paths);
	json_add_int(to, "paths_connected", paths_connected(session));
	json_add_int(to, "devices", session_devices(model, session));
	if (session->side == SERVER)
		return to;
	json_add_string(to, "mp_policy", session->mp_policy);
	for (i = 0; i < NR_SETTINGS; i++) {
		n = &session->settings[i];
		json_add(to, n->name, n->known ? checked(json_object_new_int64(n->value)) : NULL);
	}
	return to;
}

struct json_object *path_json(const struct path *path)
{
	enum side side = path->session->side;
	struct json_object *to = new_object("path", side, path->name);

	json_add_string(to, "session", path->session->name);
	json_add_string(to, "state", path_connected(path) ? "connected" : "disconnected");
	json_add_string(to, "src_addr", path->src_addr);
	json_add_string(to, "dst_addr", path->dst_addr);
	json_add_string(to, "hca_name", path->hca_name);
	add_known(to, "hca_port", path->hca_port);
	add_stats(to, &path->stats);
	if (side == SERVER)
		return to;
	add_known(to, "heartbeat_ns", path->latency_ns);
	json_add_latency(to, "heartbeat_us", &path->heartbeats, NAN);
	json_add_int(to, "failed_over", path->stats.failed_over);
	json_add_int(to, "reconnects", path->stats.reconnects);
	json_add_int(to, "failed_reconnects", path->stats.failed_reconnects);
	return to;
}

void json_print(struct json_object *value)
{
	puts(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_SPACED |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* Print a document on one line, for output that is repeated. */
void json_print_line(struct json_object *value)
{
	puts(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
}
