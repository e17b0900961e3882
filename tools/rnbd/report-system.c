// SPDX-License-Identifier: GPL-2.0
/*
 * This host: versions, RDMA ports, parameters of modules, and the server's rules. The report has
 * only attributes that all users can read, so none that holds a secret.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "report.h"
#include "rules.h"

static void add_item(const struct report *report, const char *name, const char *value)
{
	html(report, "<div><dt>%s</dt><dd>%s</dd></div>", name, value);
}

char *report_host(void)
{
	struct utsname name = { .nodename = "?" };

	uname(&name);
	return xstrdup(name.nodename);
}

/* Get the name of the distribution from os-release(5); NULL if unknown. */
static char *distribution(void)
{
	FILE *from = fopen("/etc/os-release", "re");
	char *line = NULL, *name = NULL;
	size_t room = 0;

	while (from && !name && getline(&line, &room, from) >= 0) {
		if (!starts_with(line, "PRETTY_NAME="))
			continue;
		name = xstrdup(line + strlen("PRETTY_NAME=") + (line[12] == '"'));
		name[strcspn(name, "\"\n")] = 0;
	}
	free(line);
	if (from)
		fclose(from);
	return name;
}

void report_system(const struct report *report)
{
	struct utsname name = { .release = "?" };
	char *distro = distribution(), *driver, text[64];
	time_t t = time(NULL);
	enum side side;

	uname(&name);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", localtime(&t));
	html(report, "<dl>");
	add_item(report, "Written", text);
	add_item(report, "Kernel", name.release);
	add_item(report, "Machine", name.machine);
	if (distro)
		add_item(report, "System", distro);
	for (side = 0; side < NR_SIDES; side++) {
		if (!report->model->loaded[side])
			continue;
		driver = driver_name(report->r, side);
		add_item(report, side == CLIENT ? "Client" : "Server", driver);
		free(driver);
	}
	add_item(report, "Tool", "rnbd " VERSION);
	html(report, "</dl>\n");
	free(distro);
}

/* ---- RDMA ports ---- */

static const struct column port_columns[] = {
	{ "device", "DEVICE", TEXT },
	{ "port", "PORT", TEXT },
	{ "state", "STATE", TEXT },
	{ "link_layer", "LINK LAYER", TEXT },
	{ "rate", "RATE", TEXT },
	{ "netdev", "NETWORK DEVICE", TEXT },
	{ "mtu", "MTU", NUMBER },
};

static void add_attribute(const struct report *report, struct json_object *row, const char *name,
			  const char *device, const char *port)
{
	char *text = sysfs_read(report->r, "class/infiniband/%s/ports/%s/%s", device, port, name);
	const char *value = text;

	/* "4: ACTIVE" */
	if (text && !strcmp(name, "state") && strstr(text, ": "))
		value = strstr(text, ": ") + 2;
	json_add_string(row, name, value);
	free(text);
}

static void add_port(const struct report *report, struct json_object *rows, const char *device,
		     const char *port)
{
	struct json_object *row = json_new();
	char *netdev;
	long long mtu;

	json_add_string(row, "device", device);
	json_add_string(row, "port", port);
	add_attribute(report, row, "state", device, port);
	add_attribute(report, row, "link_layer", device, port);
	add_attribute(report, row, "rate", device, port);
	netdev = sysfs_read(report->r, "class/infiniband/%s/ports/%s/gid_attrs/ndevs/0", device,
			    port);
	if (netdev) {
		json_add_string(row, "netdev", netdev);
		if (sysfs_read_number(report->r, &mtu, "class/net/%s/mtu", netdev))
			json_add_int(row, "mtu", mtu);
	}
	free(netdev);
	json_append(rows, row);
}

void report_ports(const struct report *report)
{
	struct json_object *rows = json_new_array();
	char **devices, **ports;
	size_t nr, nr_ports, i, j;

	devices = sysfs_list(report->r, &nr, "class/infiniband");
	for (i = 0; i < nr; i++) {
		ports = sysfs_list(report->r, &nr_ports, "class/infiniband/%s/ports", devices[i]);
		for (j = 0; j < nr_ports; j++) {
			add_port(report, rows, devices[i], ports[j]);
			free(ports[j]);
		}
		free(ports);
		free(devices[i]);
	}
	free(devices);
	if (json_object_array_length(rows))
		html_table(report, rows, port_columns, ARRAY_SIZE(port_columns));
	else
		html(report, "<p class=\"none\">No RDMA device.</p>\n");
	json_object_put(rows);
}

/* ---- parameters ---- */

static const struct column parameter_columns[] = {
	{ "module", "MODULE", TEXT }, { "parameter", "PARAMETER", TEXT },
	{ "value", "VALUE", TEXT },
};

static bool is_public(const struct rnbd *r, const char *module, const char *name)
{
	char *path = xasprintf("%s/module/%s/parameters/%s", r->sysfs, module, name);
	struct stat st;
	bool is = !stat(path, &st) && st.st_mode & 0004;

	free(path);
	return is;
}

static void add_parameters(const struct report *report, struct json_object *rows,
			   const char *module)
{
	struct json_object *row;
	char **names, *value;
	size_t nr, i;

	names = sysfs_list(report->r, &nr, "module/%s/parameters", module);
	for (i = 0; i < nr; i++) {
		if (is_public(report->r, module, names[i])) {
			value = sysfs_read(report->r, "module/%s/parameters/%s", module, names[i]);
			row = json_new();
			json_add_string(row, "module", module);
			json_add_string(row, "parameter", names[i]);
			json_add_string(row, "value", value);
			json_append(rows, row);
			free(value);
		}
		free(names[i]);
	}
	free(names);
}

void report_parameters(const struct report *report)
{
	static const char *const modules[] = {
		"rtrs_core", "rtrs_client", "rtrs_server", "rnbd_client", "rnbd_server"
	};
	struct json_object *rows = json_new_array();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		add_parameters(report, rows, modules[i]);
	if (json_object_array_length(rows))
		html_table(report, rows, parameter_columns, ARRAY_SIZE(parameter_columns));
	else
		html(report, "<p class=\"none\">The modules have no parameters.</p>\n");
	json_object_put(rows);
}

/* ---- rules ---- */

static const struct column volume_columns[] = {
	{ "name", "VOLUME", TEXT }, { "path", "PATH NAME", TEXT }, { "modes", "MODES", TEXT },
	{ "hosts", "HOSTS", TEXT }, { "exclusive", "EXCLUSIVE", TEXT },
	{ "allow_any_host", "ANY HOST", TEXT }, { "enable", "ENABLED", TEXT },
};

static const struct column host_columns[] = {
	{ "name", "HOST", TEXT }, { "sessions", "SESSIONS", TEXT },
	{ "addresses", "ADDRESSES", TEXT }, { "key", "HAS TO PROVE A KEY", TEXT },
	{ "max_sessions", "MAX SESSIONS", TEXT },
	{ "max_memory", "MAX MEMORY", TEXT },
};

static const struct column tenant_columns[] = { { "name", "TENANT", TEXT } };

/* Get a rule as JSON. Names of keys are left out. */
static struct json_object *rule_json(const struct rule *rule)
{
	struct json_object *row = json_new();
	const char *value;
	size_t i;

	json_add_string(row, "name", rule->name);
	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		value = rule->values[i];
		if (i == RULE_KEYS)
			json_add_string(row, "key", value && *value ? "yes" : "no");
		else if (value && *value)
			json_add_string(row, rule_attribute_name(i), value);
	}
	return row;
}

static void add_rules(const struct report *report, const struct rules *rules, enum rule_kind kind,
		      const struct column *columns, size_t nr)
{
	struct json_object *rows = json_new_array();
	size_t i;

	for (i = 0; i < rules->nr; i++)
		if (rules->all[i].kind == kind)
			json_append(rows, rule_json(&rules->all[i]));
	if (json_object_array_length(rows))
		html_table(report, rows, columns, nr);
	json_object_put(rows);
}

void report_rules(const struct report *report)
{
	struct rules rules;

	if (rules_read(report->r, &rules)) {
		html(report, "<p class=\"none\">The rules can't be read.</p>\n");
		return;
	}
	html(report, "<p>Policy: <b>%s</b></p>\n", rules.policy);
	add_rules(report, &rules, RULE_VOLUME, volume_columns, ARRAY_SIZE(volume_columns));
	add_rules(report, &rules, RULE_HOST, host_columns, ARRAY_SIZE(host_columns));
	add_rules(report, &rules, RULE_TENANT, tenant_columns, ARRAY_SIZE(tenant_columns));
	rules_free(&rules);
}
