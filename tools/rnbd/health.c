// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd health: reports problems, with advice, for people and for monitoring. The exit codes
 * follow the convention for monitoring plugins.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

enum severity { FINE, WARNING, CRITICAL, UNKNOWN, NR_LEVELS };

static const char *const level_names[NR_LEVELS] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* Time before an unacknowledged heartbeat is resent; see Documentation/rtrs.rst */
#define HB_RESEND_MS	268
/* Longest reasonable time before a dead path is detected */
#define HB_SLOW_MS	60000
/* Percentage of max_memory from which the server's use of memory is reported */
#define MEMORY_PERCENT	90

/* Findings so far. @side: side of the object that is checked; NR_SIDES: none */
struct health {
	const struct rnbd *r;
	const struct model *model;
	enum side side;
	struct json_object *findings;
	unsigned int nr[NR_LEVELS];
};

/*
 * Add a finding about @subject, with the text @fmt and an advice. @reason identifies the kind of
 * finding for programs. Together with side and subject it is unique.
 */
static void __printf(6, 7) found(struct health *h, enum severity level, const char *reason,
				 const char *subject, const char *advice, const char *fmt, ...)
{
	struct json_object *finding = json_new();
	va_list args;
	char *problem;
	int n;

	va_start(args, fmt);
	n = vasprintf(&problem, fmt, args);
	va_end(args);
	if (n < 0)
		problem = NULL;
	json_add_string(finding, "level", level_names[level]);
	json_add_string(finding, "reason", reason);
	json_add_string(finding, "side", h->side < NR_SIDES ? side_name(h->side) : NULL);
	json_add_string(finding, "subject", subject);
	json_add_string(finding, "problem", problem);
	json_add_string(finding, "advice", advice);
	json_append(h->findings, finding);
	h->nr[level]++;
	free(problem);
}

static void check_rdma(struct health *h)
{
	size_t nr, i;
	char **names = sysfs_list(h->r, &nr, "class/infiniband");

	for (i = 0; i < nr; i++)
		free(names[i]);
	free(names);
	if (!nr)
		found(h, CRITICAL, "no_rdma_device", "this host",
		      "load the driver of one; on Ethernet: rdma link add rxe0 type rxe netdev DEV",
		      "it has no RDMA device");
}

static void check_port(struct health *h, const char *subject, const struct path *path)
{
	char *state;

	if (!path->hca_name)
		return;
	if (!sysfs_exists(h->r, "class/infiniband/%s", path->hca_name)) {
		found(h, WARNING, "rdma_device_gone", subject,
		      "check that the adapter and its driver are there: rdma link",
		      "its RDMA device %s is gone", path->hca_name);
		return;
	}
	state = sysfs_read(h->r, "class/infiniband/%s/ports/%lld/state", path->hca_name,
			   path->hca_port);
	if (state && !strstr(state, "ACTIVE"))
		found(h, WARNING, "port_not_active", subject,
		      "look at its cable and its switch: rdma link",
		      "the port %s:%lld is not active but %s", path->hca_name, path->hca_port,
		      state);
	free(state);
}

static void check_path(struct health *h, const struct path *path)
{
	char *subject = xasprintf("%s/%s", path->session->name, path->name);

	/* If no path is connected, check_session() reports the session instead. */
	if (!path_connected(path) && path->last_error == -EMSGSIZE)
		found(h, WARNING, "mtu_differs", subject,
		      "give both ends, and what is between them, the same MTU: ip link",
		      "full-size packets are lost on it: its MTU is lower on the server or between");
	else if (!path_connected(path) && paths_connected(path->session))
		found(h, WARNING, "path_disconnected", subject,
		      "rnbd recover; the kernel's log says why it was lost",
		      "the path is disconnected");
	if (path->stats.reconnects > (u64)h->r->max_reconnects)
		found(h, WARNING, "path_reconnects", subject,
		      "find the cause in the kernel's log; then, to begin at 0: rnbd path reset",
		      "it was lost and connected again %llu times", path->stats.reconnects);
	check_port(h, subject, path);
	free(subject);
}

static void check_fencing(struct health *h, const struct session *session)
{
	const struct number *delay = &session->settings[UNFENCED_DELAY_MS];
	const struct number *timeout = &session->settings[FAILOVER_TIMEOUT];
	const struct number *fencing = &session->settings[FENCING];

	/* Whether the server supports fencing is known only while a path is connected. */
	if (!fencing->known || fencing->value || !paths_connected(session))
		return;
	if (session->nr_paths > 1)
		found(h, WARNING, "no_fencing", session->name,
		      "use one path only, or this driver's server; see rtrs.rst",
		      "its server cannot fence dead paths: old writes may overwrite newer ones");
	if (delay->known && timeout->known && timeout->value > 0 &&
	    delay->value >= timeout->value * 1000)
		found(h, WARNING, "unfenced_delay", session->name,
		      "raise failover_timeout, or lower unfenced_delay_ms",
		      "without fencing, requests fail after %lld s, and may be sent again after %lld ms",
		      timeout->value, delay->value);
}

static void check_heartbeat(struct health *h, const struct session *session)
{
	const struct number *interval = &session->settings[HB_INTERVAL_MS];
	const struct number *missed = &session->settings[HB_MAX_MISSED];
	long long ms;

	if (!interval->known || !missed->known)
		return;
	ms = interval->value * missed->value;
	if (ms <= HB_RESEND_MS)
		found(h, WARNING, "heartbeat_short", session->name,
		      "raise hb_interval_ms or hb_max_missed",
		      "one lost packet ends a path: heartbeats give up after %lld ms, not more than %d",
		      ms, HB_RESEND_MS);
	if (ms > HB_SLOW_MS)
		found(h, WARNING, "heartbeat_long", session->name,
		      "lower hb_interval_ms or hb_max_missed",
		      "a dead path is noticed after %lld s only", ms / 1000);
}

static void check_reconnecting(struct health *h, const struct session *session)
{
	const struct number *attempts = &session->settings[MAX_RECONNECT_ATTEMPTS];
	const struct number *delay = &session->settings[RECONNECT_DELAY_MS];
	const struct number *timeout = &session->settings[FAILOVER_TIMEOUT];

	if (attempts->known && !attempts->value)
		found(h, WARNING, "reconnect_off", session->name,
		      "rnbd session set SESSION max_reconnect_attempts=-1",
		      "lost paths are not connected again");
	if (delay->known && timeout->known && timeout->value > 0 &&
	    delay->value >= timeout->value * 1000)
		found(h, WARNING, "reconnect_delay", session->name,
		      "raise failover_timeout, or lower reconnect_delay_ms",
		      "requests fail after %lld s, before a lost path is tried again, after %lld ms",
		      timeout->value, delay->value);
}

static void check_session(struct health *h, const struct session *session)
{
	size_t i;

	for (i = 0; i < session->nr_paths; i++)
		check_path(h, &session->paths[i]);
	if (session->side == SERVER)
		return;
	if (!paths_connected(session))
		found(h, CRITICAL, "session_disconnected", session->name,
		      "look at the server and the network; then: rnbd recover",
		      "none of its %zu paths is connected, its I/O waits or fails",
		      session->nr_paths);
	check_fencing(h, session);
	check_heartbeat(h, session);
	check_reconnecting(h, session);
}

static void check_device(struct health *h, const struct device *dev)
{
	if (dev->state && !strcmp(dev->state, "closed"))
		found(h, CRITICAL, "device_closed", dev->name,
		      "if its session has a path: rnbd remap; otherwise connect a path first: rnbd recover",
		      "the server has not opened it, its I/O waits or fails");
}

static void check_client(struct health *h)
{
	/* Only root can read it. */
	char *fencing = sysfs_read(h->r, "kernel/debug/rtrs_client/fencing");

	if (driver_is_foreign(h->r, "rtrs_client"))
		found(h, WARNING, "kernel_driver", "rnbd_client",
		      "check that this driver is built for the running kernel: dkms status",
		      "the kernel's own driver is loaded: old writes may overwrite newer ones");
	if (fencing && strchr("Nn0", *fencing))
		found(h, WARNING, "fencing_off", "rtrs_client",
		      "write Y to /sys/kernel/debug/rtrs_client/fencing; N is for tests",
		      "fencing is switched off: old writes may overwrite newer ones");
	free(fencing);
}

static void check_server(struct health *h)
{
	struct memory memory;

	if (driver_is_foreign(h->r, "rnbd_server"))
		found(h, CRITICAL, "kernel_driver", "rnbd_server",
		      "check that this driver is built for the running kernel: dkms status",
		      "the kernel's own driver is loaded: it has no rules, and exports everything");
	memory_read(h->r, &memory);
	if (memory.used >= 0 && memory.limit > 0 &&
	    memory.used / (memory.limit / 100 + 1) >= MEMORY_PERCENT)
		found(h, WARNING, "memory_full", "rtrs_server", "raise its parameter max_memory",
		      "clients take %lld of %lld MiB: more paths may be refused",
		      memory.used >> 20, memory.limit >> 20);
}

static void check(struct health *h)
{
	const struct model *model = h->model;
	size_t i;

	h->side = NR_SIDES;
	check_rdma(h);
	h->side = CLIENT;
	if (model->loaded[CLIENT])
		check_client(h);
	h->side = SERVER;
	if (model->loaded[SERVER])
		check_server(h);
	for (i = 0; i < model->nr_sessions; i++) {
		h->side = model->sessions[i].side;
		check_session(h, &model->sessions[i]);
	}
	for (i = 0; i < model->nr_devices; i++) {
		h->side = model->devices[i].side;
		check_device(h, &model->devices[i]);
	}
}

static enum severity worst(const struct health *h)
{
	enum severity level = UNKNOWN;

	while (level && !h->nr[level])
		level--;
	return level;
}

static void check_all(struct health *h, const struct rnbd *r, const struct model *model)
{
	*h = (struct health) {
		.r = r, .model = model, .side = NR_SIDES, .findings = json_new_array()
	};
	if (model->loaded[CLIENT] || model->loaded[SERVER])
		check(h);
	else
		found(h, UNKNOWN, "no_module", "this host", "modprobe rnbd_client or rnbd_server",
		      "neither module is loaded");
}

/* Get all findings as an array. @code: the worst level, as the exit code of health */
struct json_object *health_findings(const struct rnbd *r, const struct model *model, int *code)
{
	struct health h;

	check_all(&h, r, model);
	*code = worst(&h);
	return h.findings;
}

static const char *text_of(struct json_object *finding, const char *key)
{
	return json_object_get_string(json_object_object_get(finding, key));
}

/* Print the findings. Monitoring shows the first line. */
static void print_text(const struct health *h)
{
	struct json_object *finding;
	enum side side;
	char *name;
	size_t i;

	if (worst(h) == FINE)
		printf("rnbd OK: %zu sessions, %zu devices", h->model->nr_sessions,
		       h->model->nr_devices);
	else
		printf("rnbd %s: %u critical, %u warnings", level_names[worst(h)],
		       h->nr[CRITICAL], h->nr[WARNING]);
	for (side = 0; side < NR_SIDES; side++) {
		if (!h->model->loaded[side])
			continue;
		name = driver_name(h->r, side);
		printf("; %s", name);
		free(name);
	}
	putchar('\n');
	for (i = 0; i < json_object_array_length(h->findings); i++) {
		finding = json_object_array_get_idx(h->findings, i);
		printf("%s: %s: %s; %s\n", text_of(finding, "level"), text_of(finding, "subject"),
		       text_of(finding, "problem"), text_of(finding, "advice"));
	}
}

static void print_json(const struct health *h)
{
	struct json_object *document = json_new(), *drivers = json_new_array();
	enum side side;
	char *name;

	for (side = 0; side < NR_SIDES; side++) {
		if (!h->model->loaded[side])
			continue;
		name = driver_name(h->r, side);
		json_append(drivers, json_new_string(name));
		free(name);
	}
	json_add(document, "drivers", drivers);
	json_add_string(document, "status", level_names[worst(h)]);
	json_add_int(document, "code", worst(h));
	json_add(document, "findings", json_object_get(h->findings));
	json_print(document);
	json_object_put(document);
}

int cmd_health(struct rnbd *r, int argc, char **argv)
{
	struct model model;
	struct health h;

	(void)argc;
	(void)argv;
	model_read(r, &model);
	check_all(&h, r, &model);
	if (r->json)
		print_json(&h);
	else
		print_text(&h);
	json_object_put(h.findings);
	model_free(&model);
	return worst(&h);
}
