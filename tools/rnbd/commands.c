// SPDX-License-Identifier: GPL-2.0
/*
 * The table of commands
 */
#include <limits.h>
#include <string.h>

#include "commands.h"

#define MAP_ARGUMENTS \
	"VOLUME [from SESSION] [PATH...] [ro|rw|migration|handover] [dest_port=N] [nr_queues=N] " \
	"[nr_poll_queues=N] [queue_depth=N] [key=NAME] [SETTING=VALUE...] [--save[=NAME]], or " \
	"--all SERVER[,SERVER...] [from LOCAL[,LOCAL...]] [session=NAME] [OPTION...] [--save]"

#define DISCOVER_ARGUMENTS \
	"SERVER[,SERVER...] [from LOCAL[,LOCAL...]] [session=NAME] [dest_port=N] [nr_queues=N] " \
	"[nr_poll_queues=N] [queue_depth=N] [key=NAME]"

const struct command commands[] = {
	{ NULL, "discover", cmd_discover, ON_CLIENT, JSON | TABLE, 1, INT_MAX,
	  DISCOVER_ARGUMENTS,
	  "list the volumes that a server lets this client map" },
	{ NULL, "map", cmd_map, ON_CLIENT, JSON | DRY_RUN | SAVE | ALL, 1, INT_MAX,
	  MAP_ARGUMENTS,
	  "map a volume of a server, and print the name of its device" },
	{ NULL, "unmap", cmd_unmap, ON_CLIENT, DRY_RUN | SAVE, 1, 4,
	  "DEVICE [from SESSION] [force] [--save]", "remove the device" },
	{ NULL, "remap", cmd_remap, ON_CLIENT, DRY_RUN, 1, 1,
	  "DEVICE", "have the server open the volume again, after it was closed there" },
	{ NULL, "resize", cmd_resize, ON_CLIENT, DRY_RUN, 2, 4,
	  "DEVICE SIZE [UNIT] [force]", "change the device's size; 0: to the volume's size" },
	{ NULL, "close", cmd_close, ON_SERVER, DRY_RUN, 1, 2,
	  "DEVICE [SESSION]", "close a volume for a session; its client can open it again" },
	{ NULL, "load", cmd_load, ON_SERVER, DRY_RUN, 0, 0,
	  "", "load the server's modules, with the parameters and rules of /etc/rnbd/server.conf" },
	{ NULL, "stop", cmd_stop, ON_SERVER, DRY_RUN, 0, 0,
	  "", "end all sessions, and let no client connect; the clients' I/O waits" },
	{ NULL, "unload", cmd_unload, ON_SERVER, DRY_RUN, 0, 0,
	  "", "end all sessions, and unload the modules; the clients' I/O waits" },
	{ NULL, "rules", cmd_rules, ON_SERVER, JSON | TABLE, 0, 0,
	  "", "who may open what: the policy, volumes, hosts and tenants" },
	{ NULL, "policy", cmd_policy, ON_SERVER, DRY_RUN, 0, 1,
	  "[open|listed]", "print or set it; listed: clients can open configured volumes only" },
	{ NULL, "check", cmd_rules_check, ON_SERVER, 0, 0, 1,
	  "[FILE]", "what is wrong with /etc/rnbd/server.conf" },
	{ NULL, "exports", cmd_rules_exports, ON_SERVER, HIDDEN, 1, INT_MAX,
	  "PATH... [links LINK...]",
	  "for udev: is one of them the path of a volume? Prints links that it may have" },
	{ NULL, "save", cmd_rules_save, ON_SERVER, DRY_RUN, 0, 1,
	  "[FILE]", "write the rules to /etc/rnbd/server.conf, in the place of those there" },
	{ NULL, "clear", cmd_rules_clear, ON_SERVER, DRY_RUN, 0, 0,
	  "", "remove all volumes, hosts and tenants, and keep the policy" },
	{ NULL, "list", cmd_list, ON_BOTH, JSON | TABLE, 0, 1,
	  "[devices|sessions|paths|all]", "a table" },
	{ NULL, "show", cmd_show, ON_BOTH, JSON, 1, 1,
	  "NAME", "all about a device, a session or a path" },
	{ NULL, "dump", cmd_dump, ON_BOTH, JSON | TABLE, 0, 0,
	  "", "tables of everything" },

	{ NULL, "recover", cmd_recover, ON_CLIENT, DRY_RUN, 0, 1,
	  "[NAME|all]", "connect what is disconnected, open what is closed" },
	{ NULL, "stat", cmd_stat, ON_BOTH, JSON | TABLE | WATCH | COUNT | PROMETHEUS, 0, 1,
	  "[NAME] [--watch SECONDS [--count N]] [--prometheus]",
	  "what devices, sessions and paths do in a second, or in those seconds" },
	{ NULL, "top", cmd_top, ON_BOTH, INTERVAL | COUNT, 0, 0,
	  "[--interval SECONDS]", "the same, on a screen that refreshes; q ends it, h helps" },
	{ NULL, "ping", cmd_ping, ON_CLIENT, JSON | INTERVAL | COUNT, 1, 1,
	  "NAME [--count N] [--interval SECONDS]",
	  "round trips to the server, and to its disk" },
	{ NULL, "perf", cmd_perf, ON_CLIENT, JSON | LOAD | SECONDS, 1, 1,
	  "DEVICE [--seconds N] [--depth N] [--size N] [--sequential]",
	  "read for some seconds: IOPS, bandwidth, latencies" },
	{ NULL, "health", cmd_health, ON_BOTH, JSON | RECONNECTS, 0, 0,
	  "[--max-reconnects N]", "what is wrong, and what to do; exit code for monitoring" },
	{ NULL, "report", cmd_report, ON_BOTH, 0, 0, 1,
	  "[FILE]", "write a page for a ticket: drawing, states, settings, latencies, log" },
	{ NULL, "metrics", cmd_metrics, ON_BOTH, 0, 0, 1,
	  "[FILE]", "print metrics for Prometheus, or write a file for node_exporter" },
	{ NULL, "trace", cmd_trace, ON_BOTH, JSON | SECONDS | LOGS, 0, 1,
	  "[NAME] [--seconds N] [--slower USECS] [--record|--client-log|--server-log FILE]",
	  "where slow requests of a session spend their time" },

	{ "device", "recover", cmd_device_recover, ON_CLIENT, DRY_RUN, 1, 1,
	  "DEVICE", "connect its session's paths, open it if it is closed" },
	{ "device", "list", cmd_list_devices, ON_BOTH, JSON | TABLE, 0, 0, "", "a table" },
	{ "device", "show", cmd_show_device, ON_BOTH, JSON, 1, 1, "DEVICE", "all about it" },

	{ "session", "list", cmd_list_sessions, ON_BOTH, JSON | TABLE, 0, 0, "", "a table" },
	{ "session", "show", cmd_show_session, ON_BOTH, JSON, 1, 1, "SESSION", "all about it" },
	{ "session", "reconnect", cmd_session_reconnect, ON_CLIENT, DRY_RUN, 1, 1,
	  "SESSION", "reconnect all its paths" },
	{ "session", "disconnect", cmd_session_disconnect, ON_BOTH, DRY_RUN, 1, 1,
	  "SESSION", "disconnect all its paths" },
	{ "session", "set", cmd_session_set, ON_CLIENT, DRY_RUN, 2, INT_MAX,
	  "SESSION SETTING=VALUE...", "change settings, such as failover_timeout=300" },

	{ "session", "hurry", cmd_session_hurry, ON_CLIENT, DRY_RUN | HIDDEN, 0, 0,
	  "", "have all sessions wait no longer than 10 s for a path, before a shutdown" },
	{ "session", "recover", cmd_session_recover, ON_CLIENT, DRY_RUN, 1, 1,
	  "SESSION", "connect its paths, open its devices" },
	{ "session", "remap", cmd_session_remap, ON_CLIENT, DRY_RUN, 1, 1,
	  "SESSION", "open its devices that are closed" },

	{ "path", "list", cmd_list_paths, ON_BOTH, JSON | TABLE, 0, 0, "", "a table" },
	{ "path", "show", cmd_show_path, ON_BOTH, JSON, 1, 2, "[SESSION] PATH", "all about it" },
	{ "path", "add", cmd_path_add, ON_CLIENT, DRY_RUN, 2, 2,
	  "SESSION PATH", "connect one more path" },
	{ "path", "delete", cmd_path_delete, ON_CLIENT, DRY_RUN, 1, 2,
	  "[SESSION] PATH|all", "disconnect it, and forget it" },
	{ "path", "readd", cmd_path_readd, ON_CLIENT, DRY_RUN, 1, 2,
	  "[SESSION] PATH", "delete it, and add it again" },
	{ "path", "reconnect", cmd_path_reconnect, ON_CLIENT, DRY_RUN, 1, 2,
	  "[SESSION] PATH|all", "connect it, again if it is connected" },
	{ "path", "recover", cmd_path_recover, ON_CLIENT, DRY_RUN, 1, 2,
	  "[SESSION] PATH|all", "connect it if it is disconnected" },
	{ "path", "disconnect", cmd_path_disconnect, ON_BOTH, DRY_RUN, 1, 2,
	  "[SESSION] PATH|all", "disconnect it, until reconnect" },
	{ "path", "reset", cmd_path_reset, ON_BOTH, DRY_RUN, 1, 2,
	  "[SESSION] PATH|all", "have its statistics begin at 0" },

	{ "tenant", "list", cmd_tenant_list, ON_SERVER, JSON | TABLE, 0, 0, "", "a table" },
	{ "tenant", "add", cmd_tenant_add, ON_SERVER, DRY_RUN, 1, INT_MAX,
	  "NAME [netns=PATH]", "add a tenant, and the network namespace of its clients" },
	{ "tenant", "set", cmd_tenant_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME netns=PATH", "change it" },
	{ "tenant", "delete", cmd_tenant_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "host", "list", cmd_host_list, ON_SERVER, JSON | TABLE, 0, 0, "", "a table" },
	{ "host", "add", cmd_host_add, ON_SERVER, DRY_RUN, 1, INT_MAX,
	  "NAME [sessions=PATTERN] [addresses=\"PREFIX...\"] [keys=\"KEY [KEY]\"] [max_sessions=N] [max_memory=N] [cgroup=PATH]",
	  "add a host: clients with such names of sessions, addresses and keys" },
	{ "host", "set", cmd_host_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME ATTRIBUTE=VALUE...", "change it" },
	{ "host", "delete", cmd_host_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "volume", "list", cmd_export_list, ON_SERVER, JSON | TABLE, 0, 0, "", "a table" },
	{ "volume", "add", cmd_export_add, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME path=PATH [hosts=\"HOST...\"] [modes=\"ro rw migration handover\"] [exclusive=1] [allow_any_host=1] [uuid=UUID] [enable=0]",
	  "add a volume: a disk or file, and the hosts that may open it by that name" },
	{ "volume", "set", cmd_export_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME ATTRIBUTE=VALUE...", "change it" },
	{ "volume", "delete", cmd_export_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "volume", "list", cmd_volume_list, ON_CLIENT, JSON | TABLE, 0, 0,
	  "", "the table of volumes, and which of them are mapped" },
	{ "volume", "check", cmd_volume_check, ON_CLIENT, 0, 0, 1,
	  "[FILE]", "what is wrong with the table of volumes" },
	{ "volume", "name", cmd_volume_name, ON_CLIENT, HIDDEN, 1, 1,
	  "DEVICE", "for udev: print the name that a device has in the table of volumes" },
	{ "volume", "map", cmd_volume_map, ON_CLIENT, JSON | DRY_RUN | WAIT, 1, 1,
	  "NAME|all [--wait]", "map a volume of the table, or all that are mapped at boot" },
	{ "volume", "unmap", cmd_volume_unmap, ON_CLIENT, DRY_RUN | WAIT, 1, 2,
	  "NAME|all [force] [--wait]", "unmap a volume of the table, or all" },
};

const size_t nr_commands = ARRAY_SIZE(commands);

/* Commands that can also be typed with an object before them, as in rnbd device map */
static const struct alias {
	const char *object, *names;
} aliases[] = {
	{ "device", "map unmap remap resize close" },
};

bool same_object(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Check whether the command can be typed with @object, which is NULL if no object was typed. */
bool command_takes(const struct command *c, const char *object)
{
	size_t i;

	if (same_object(c->object, object))
		return true;
	for (i = 0; !c->object && i < ARRAY_SIZE(aliases); i++)
		if (same_object(aliases[i].object, object) && has_word(aliases[i].names, c->name))
			return true;
	return false;
}
