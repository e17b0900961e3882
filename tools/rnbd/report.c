// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd report: writes a page for a ticket or a colleague. It has no scripts, refers to nothing
 * else, and shows no keys.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"

/* The page has lines of the kernel's log, which others may not be allowed to read. */
#define REPORT_MODE	0600

static const struct column device_columns[] = {
	{ "name", "DEVICE", TEXT }, { "session", "SESSION", TEXT },
	{ "mapping_path", "VOLUME", TEXT }, { "state", "STATE", TEXT }, { "size", "SIZE", SIZE },
	{ "access_mode", "MODE", TEXT }, { "reads", "READS", NUMBER },
	{ "read_bytes", "READ", SIZE }, { "writes", "WRITES", NUMBER },
	{ "written_bytes", "WRITTEN", SIZE }, { "in_flight", "IN FLIGHT", NUMBER },
};

static const struct column volume_columns[] = {
	{ "mapping_path", "VOLUME", TEXT }, { "name", "DISK", TEXT },
	{ "session", "SESSION", TEXT }, { "size", "SIZE", SIZE },
	{ "access_mode", "MODE", TEXT }, { "read_only", "READ ONLY", YES_NO },
};

static const struct column session_columns[] = {
	{ "name", "SESSION", TEXT }, { "state", "STATE", TEXT },
	{ "paths_connected", "PATHS UP", NUMBER }, { "paths", "PATHS", NUMBER },
	{ "devices", "DEVICES", NUMBER },
};

static const struct column setting_columns[] = {
	{ "name", "SESSION", TEXT }, { "mp_policy", "POLICY", TEXT },
	{ "failover_timeout", "FAILOVER TIMEOUT, S", NUMBER },
	{ "max_reconnect_attempts", "MAX RECONNECT ATTEMPTS", NUMBER },
	{ "reconnect_delay_ms", "RECONNECT DELAY, MS", NUMBER },
	{ "reconnect_delay_max_ms", "AT MOST, MS", NUMBER },
	{ "hb_interval_ms", "HEARTBEAT INTERVAL, MS", NUMBER },
	{ "hb_max_missed", "MAX MISSED", NUMBER },
	{ "unfenced_delay_ms", "UNFENCED DELAY, MS", NUMBER }, { "fencing", "FENCING", NUMBER },
};

static const struct column path_columns[] = {
	{ "session", "SESSION", TEXT }, { "name", "PATH", TEXT }, { "state", "STATE", TEXT },
	{ "hca_name", "RDMA DEVICE", TEXT }, { "reads", "READS", NUMBER },
	{ "read_bytes", "READ", SIZE }, { "writes", "WRITES", NUMBER },
	{ "written_bytes", "WRITTEN", SIZE }, { "in_flight", "IN FLIGHT", NUMBER },
	/* These are missing on the server. */
	{ "reconnects", "RECONNECTS", NUMBER }, { "failed_reconnects", "FAILED", NUMBER },
	{ "failed_over", "SENT AGAIN", NUMBER },
};

#define NR_SERVER_PATH_COLUMNS	9

/* ---- head ---- */

static const char *const levels[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* Add a number of things, and how many of them are as they should be. */
static void add_tile(const struct report *report, const char *what, size_t good, size_t all)
{
	if (good == all)
		html(report, "<div class=\"tile\"><b>%zu</b><span>%s</span></div>\n", all, what);
	else
		html(report,
		     "<div class=\"tile %s\"><b>%zu of %zu</b><span>%s</span></div>\n",
		     good ? "warn" : "bad", good, all, what);
}

static void add_memory(const struct report *report)
{
	char used[32], limit[32];
	struct memory memory;

	memory_read(report->r, &memory);
	if (memory.used < 0 || memory.limit < 0)
		return;
	format_size(report->r, used, sizeof(used), memory.used);
	format_size(report->r, limit, sizeof(limit), memory.limit);
	html(report, "<div class=\"tile\"><b>%s</b><span>server: memory of clients, of %s", used,
	     limit);
	if (memory.waits > 0)
		html(report, "; %lld requests waited", memory.waits);
	html(report, "</span></div>\n");
}

static void add_tiles(const struct report *report, enum side side)
{
	const struct model *model = report->model;
	size_t nr = 0, up = 0, paths = 0, paths_up = 0, devices = 0, open = 0, i;

	for (i = 0; i < model->nr_sessions; i++) {
		if (model->sessions[i].side != side)
			continue;
		nr++;
		up += paths_connected(&model->sessions[i]) != 0;
		paths += model->sessions[i].nr_paths;
		paths_up += paths_connected(&model->sessions[i]);
	}
	for (i = 0; i < model->nr_devices; i++) {
		if (model->devices[i].side != side)
			continue;
		devices++;
		open += !model->devices[i].state || !strcmp(model->devices[i].state, "open");
	}
	html(report, "<div class=\"tiles\">\n");
	add_tile(report, side == CLIENT ? "client: devices open" : "server: volumes open", open,
		 devices);
	add_tile(report, side == CLIENT ? "client: sessions with a path" : "server: sessions", up,
		 nr);
	add_tile(report, side == CLIENT ? "client: paths connected" : "server: paths", paths_up,
		 paths);
	if (side == SERVER)
		add_memory(report);
	html(report, "</div>\n");
}

static void add_links(const struct report *report)
{
	html(report, "<nav><a href=\"#problems\">Problems</a>\n"
	     "<a href=\"#topology\">Topology</a><a href=\"#latency\">Latencies</a>");
	if (report->model->loaded[CLIENT])
		html(report, "<a href=\"#client\">Client</a>");
	if (report->model->loaded[SERVER])
		html(report, "<a href=\"#server\">Server</a>");
	html(report, "<a href=\"#system\">System</a><a href=\"#log\">Log</a></nav>\n");
}

static void add_head(const struct report *report, int code)
{
	char *host = report_host();

	/* The policy keeps a page that is not escaped correctly from doing anything. */
	html(report, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	     "<meta http-equiv=\"Content-Security-Policy\"\n"
	     "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	     "<meta name=\"viewport\" content=\"width=device-width\">\n");
	html(report, "<title>rnbd report: %s</title>\n<style>\n", host);
	fputs(report_style, report->to);
	html(report, "</style>\n</head>\n<body>\n<header>\n<h1>rnbd report: %s ", host);
	html(report, "<span class=\"badge %s\">%s</span></h1>\n", levels[code], levels[code]);
	report_system(report);
	add_links(report);
	html(report, "</header>\n<main>\n");
	free(host);
}

/* ---- sections ---- */

static void begin_section(const struct report *report, const char *id, const char *title)
{
	html(report, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

static void end_section(const struct report *report)
{
	html(report, "</section>\n");
}

static const char *text_of(struct json_object *finding, const char *key)
{
	return json_object_get_string(json_object_object_get(finding, key));
}

static void add_problem(const struct report *report, struct json_object *finding)
{
	html(report, "<li><span class=\"badge %s\">%s</span>", text_of(finding, "level"),
	     text_of(finding, "level"));
	html(report, "<div><b>%s</b>: %s<span class=\"advice\">%s</span></div></li>\n",
	     text_of(finding, "subject"), text_of(finding, "problem"), text_of(finding, "advice"));
}

/* List the problems, the worst first. */
static void add_problems(const struct report *report, struct json_object *findings)
{
	struct json_object *finding;
	size_t level, i;

	begin_section(report, "problems", "Problems");
	if (!json_object_array_length(findings))
		html(report, "<p class=\"none\">rnbd health has found no problem.</p>\n");
	html(report, "<ul>\n");
	for (level = ARRAY_SIZE(levels); level--;) {
		for (i = 0; i < json_object_array_length(findings); i++) {
			finding = json_object_array_get_idx(findings, i);
			if (!strcmp(text_of(finding, "level"), levels[level]))
				add_problem(report, finding);
		}
	}
	html(report, "</ul>\n");
	end_section(report);
}

static void add_topology(const struct report *report)
{
	enum side side;

	begin_section(report, "topology", "Topology");
	for (side = 0; side < NR_SIDES; side++)
		if (report->model->loaded[side])
			report_drawing(report, side);
	end_section(report);
}

enum kind { DEVICES, SESSIONS, PATHS };

/* Get all objects of a kind and side as JSON. */
static struct json_object *objects(const struct report *report, enum side side, enum kind kind)
{
	struct json_object *rows = json_new_array();
	const struct model *model = report->model;
	const struct session *session = model->sessions;
	size_t i;

	for (i = 0; kind == DEVICES && i < model->nr_devices; i++)
		if (model->devices[i].side == side)
			json_append(rows, device_json(report->r, &model->devices[i]));
	for (; kind != DEVICES && session < model->sessions + model->nr_sessions; session++) {
		if (session->side != side)
			continue;
		if (kind == SESSIONS)
			json_append(rows, session_json(model, session));
		for (i = 0; kind == PATHS && i < session->nr_paths; i++)
			json_append(rows, path_json(&session->paths[i]));
	}
	return rows;
}

static void add_table(const struct report *report, enum side side, enum kind kind,
		      const char *title, const struct column *columns, size_t nr)
{
	struct json_object *rows = objects(report, side, kind);

	html(report, "<h3>%s</h3>\n", title);
	if (json_object_array_length(rows))
		html_table(report, rows, columns, nr);
	else
		html(report, "<p class=\"none\">None.</p>\n");
	json_object_put(rows);
}

static void add_client(const struct report *report)
{
	begin_section(report, "client", "Client");
	add_table(report, CLIENT, DEVICES, "Devices", device_columns, ARRAY_SIZE(device_columns));
	add_table(report, CLIENT, SESSIONS, "Sessions", session_columns,
		  ARRAY_SIZE(session_columns));
	add_table(report, CLIENT, SESSIONS, "Settings", setting_columns,
		  ARRAY_SIZE(setting_columns));
	add_table(report, CLIENT, PATHS, "Paths", path_columns, ARRAY_SIZE(path_columns));
	end_section(report);
}

static void add_server(const struct report *report)
{
	begin_section(report, "server", "Server");
	html(report, "<h3>Rules</h3>\n");
	report_rules(report);
	add_table(report, SERVER, DEVICES, "Open volumes", volume_columns,
		  ARRAY_SIZE(volume_columns));
	add_table(report, SERVER, SESSIONS, "Sessions", session_columns,
		  ARRAY_SIZE(session_columns));
	add_table(report, SERVER, PATHS, "Paths", path_columns, NR_SERVER_PATH_COLUMNS);
	end_section(report);
}

static void write_report(const struct report *report)
{
	struct json_object *findings;
	enum side side;
	int code;

	findings = health_findings(report->r, report->model, &code);
	add_head(report, code);
	for (side = 0; side < NR_SIDES; side++)
		if (report->model->loaded[side])
			add_tiles(report, side);
	add_problems(report, findings);
	json_object_put(findings);
	add_topology(report);
	begin_section(report, "latency", "Latencies");
	report_heat_maps(report);
	end_section(report);
	if (report->model->loaded[CLIENT])
		add_client(report);
	if (report->model->loaded[SERVER])
		add_server(report);
	begin_section(report, "system", "System");
	html(report, "<h3>RDMA ports</h3>\n");
	report_ports(report);
	html(report, "<h3>Parameters of modules</h3>\n");
	report_parameters(report);
	end_section(report);
	begin_section(report, "log", "Kernel log of the drivers");
	report_log(report);
	end_section(report);
	html(report, "</main>\n<footer>Written by rnbd report. The page contains host names,\n"
	     "addresses, names of volumes and path names, but no keys.</footer>\n"
	     "</body>\n</html>\n");
}

/* Get the default name: with the host and the time, so that a later report is another file. */
static char *default_name(void)
{
	char *host = report_host(), *name, text[32];
	time_t t = time(NULL);

	strftime(text, sizeof(text), "%Y%m%d-%H%M%S", localtime(&t));
	name = xasprintf("rnbd-%s-%s.html", host, text);
	free(host);
	return name;
}

/* Arguments: [FILE]; "-" is the standard output. */
int cmd_report(struct rnbd *r, int argc, char **argv)
{
	char *name = argc ? xstrdup(argv[0]) : default_name();
	struct report report = { .r = r, .to = stdout };
	bool to_file = strcmp(name, "-");
	struct new_file file;
	struct model model;
	int ret = RNBD_OK;

	/* A page without a module is of use, too: the log says why a module can't be loaded. */
	model_read(r, &model);
	report.model = &model;
	if (to_file)
		ret = new_file_open(&file, name, REPORT_MODE);
	if (!ret && to_file)
		report.to = file.to;
	if (!ret)
		write_report(&report);
	if (!ret && to_file)
		ret = new_file_commit(&file, true);
	if (!ret && to_file)
		printf("%s\n", name);
	model_free(&model);
	free(name);
	return ret;
}
