// SPDX-License-Identifier: GPL-2.0
/*
 * The command line:
 *
 *	rnbd [client|server] [OBJECT] COMMAND [ARGUMENT...] [OPTION...]
 *
 * OBJECT is device, session, path, tenant, host or volume.
 */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

#ifndef VERSION
#define VERSION "unknown"
#endif

/* Options that only some commands accept */
enum {
	WATCH		= 1 << 0,
	COUNT		= 1 << 1,
	INTERVAL	= 1 << 2,
	SECONDS		= 1 << 3,
	PROMETHEUS	= 1 << 4,
	LOAD		= 1 << 5,
	RECONNECTS	= 1 << 6,
	LOGS		= 1 << 7,
	JSON		= 1 << 8,
	DRY_RUN		= 1 << 9,
	TABLE		= 1 << 10,
	WAIT		= 1 << 11,
	SAVE		= 1 << 12,
};

enum { ON_CLIENT = 1 << CLIENT, ON_SERVER = 1 << SERVER, ON_BOTH = ON_CLIENT | ON_SERVER };

struct command {
	/* "device", "session", "path", "tenant", "host" or "volume"; or NULL */
	const char *object;
	const char *name;
	int (*run)(struct rnbd *r, int argc, char **argv);
	unsigned int sides;
	unsigned int options;
	int min, max;
	const char *arguments, *text;
};

static const struct command commands[] = {
	{ NULL, "map", cmd_map, ON_CLIENT, JSON | DRY_RUN | SAVE, 3, INT_MAX,
	  "DEVICE from SESSION [PATH...] [ro|rw|migration|handover] [dest_port=N] [nr_queues=N] [nr_poll_queues=N] [queue_depth=N] [key=NAME] [SETTING=VALUE...] [--save[=NAME]]",
	  "map a device of a server, and print the disk that it has become" },
	{ NULL, "unmap", cmd_unmap, ON_CLIENT, DRY_RUN | SAVE, 1, 4,
	  "DEVICE [from SESSION] [force] [--save]", "remove the disk" },
	{ NULL, "remap", cmd_remap, ON_CLIENT, DRY_RUN, 1, 1,
	  "DEVICE", "open it on the server again, after it was closed there" },
	{ NULL, "resize", cmd_resize, ON_CLIENT, DRY_RUN, 2, 4,
	  "DEVICE SIZE [UNIT] [force]", "change the disk's size; 0: to that on the server" },
	{ NULL, "close", cmd_close, ON_SERVER, DRY_RUN, 1, 2,
	  "DEVICE [SESSION]", "on the server: take a device away from a session" },
	{ NULL, "load", cmd_load, ON_SERVER, DRY_RUN, 0, 0,
	  "", "load the server's modules, with the parameters and rules of /etc/rnbd/server.conf" },
	{ NULL, "stop", cmd_stop, ON_SERVER, DRY_RUN, 0, 0,
	  "", "end all sessions, which wait for their server then, and let no client connect" },
	{ NULL, "unload", cmd_unload, ON_SERVER, DRY_RUN, 0, 0,
	  "", "end all sessions, which wait for their server then, and unload its modules" },
	{ NULL, "rules", cmd_rules, ON_SERVER, JSON | TABLE, 0, 0,
	  "", "who may open what: the policy, volumes, hosts and tenants" },
	{ NULL, "policy", cmd_policy, ON_SERVER, DRY_RUN, 0, 1,
	  "[open|listed]", "show or set it; listed: only volumes can be opened" },
	{ NULL, "check", cmd_rules_check, ON_SERVER, 0, 0, 1,
	  "[FILE]", "what is wrong with /etc/rnbd/server.conf" },
	{ NULL, "exports", cmd_rules_exports, ON_SERVER, 0, 1, INT_MAX,
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

	{ "device", "map", cmd_map, ON_CLIENT, JSON | DRY_RUN | SAVE, 3, INT_MAX,
	  "DEVICE from SESSION [PATH...] [ro|rw|migration|handover] [dest_port=N] [nr_queues=N] [nr_poll_queues=N] [queue_depth=N] [key=NAME] [SETTING=VALUE...] [--save[=NAME]]",
	  "as rnbd map" },
	{ "device", "unmap", cmd_unmap, ON_CLIENT, DRY_RUN | SAVE, 1, 4,
	  "DEVICE [from SESSION] [force] [--save]", "as rnbd unmap" },
	{ "device", "remap", cmd_remap, ON_CLIENT, DRY_RUN, 1, 1, "DEVICE", "as rnbd remap" },
	{ "device", "resize", cmd_resize, ON_CLIENT, DRY_RUN, 2, 4,
	  "DEVICE SIZE [UNIT] [force]", "as rnbd resize" },
	{ "device", "recover", cmd_device_recover, ON_CLIENT, DRY_RUN, 1, 1,
	  "DEVICE", "connect its session's paths, open it if it is closed" },
	{ "device", "close", cmd_close, ON_SERVER, DRY_RUN, 1, 2,
	  "DEVICE [SESSION]", "as rnbd server close" },
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

	{ "session", "hurry", cmd_session_hurry, ON_CLIENT, DRY_RUN, 0, 0,
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
	  "NAME [netns=PATH]", "a tenant, and the network namespace of its clients" },
	{ "tenant", "set", cmd_tenant_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME netns=PATH", "change it" },
	{ "tenant", "delete", cmd_tenant_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "host", "list", cmd_host_list, ON_SERVER, JSON | TABLE, 0, 0, "", "a table" },
	{ "host", "add", cmd_host_add, ON_SERVER, DRY_RUN, 1, INT_MAX,
	  "NAME [sessions=PATTERN] [addresses=\"PREFIX...\"] [keys=\"KEY [KEY]\"]",
	  "a host, by its sessions' names, and from where it comes" },
	{ "host", "set", cmd_host_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME ATTRIBUTE=VALUE...", "change it" },
	{ "host", "delete", cmd_host_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "volume", "list", cmd_export_list, ON_SERVER, JSON | TABLE, 0, 0, "", "a table" },
	{ "volume", "add", cmd_export_add, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME path=PATH [hosts=\"HOST...\"] [modes=\"ro rw migration handover\"] [exclusive=1] [allow_any_host=1] [enable=0]",
	  "let hosts open a disk or file by that name" },
	{ "volume", "set", cmd_export_set, ON_SERVER, DRY_RUN, 2, INT_MAX,
	  "NAME ATTRIBUTE=VALUE...", "change it" },
	{ "volume", "delete", cmd_export_delete, ON_SERVER, DRY_RUN, 1, 1, "NAME", "remove it" },

	{ "volume", "list", cmd_volume_list, ON_CLIENT, JSON | TABLE, 0, 0,
	  "", "the table of volumes, and which of them are mapped" },
	{ "volume", "check", cmd_volume_check, ON_CLIENT, 0, 0, 1,
	  "[FILE]", "what is wrong with the table of volumes" },
	{ "volume", "map", cmd_volume_map, ON_CLIENT, JSON | DRY_RUN | WAIT, 1, 1,
	  "NAME|all [--wait]", "map a volume of the table, or all that are mapped at boot" },
	{ "volume", "unmap", cmd_volume_unmap, ON_CLIENT, DRY_RUN | WAIT, 1, 2,
	  "NAME|all [force] [--wait]", "unmap a volume of the table, or all" },
};

static const char *const objects[] = { "device", "session", "path", "tenant", "host", "volume" };

/* Long options without a short form */
enum {
	OPTION_SYSFS = 256, OPTION_PROMETHEUS, OPTION_SEQUENTIAL, OPTION_MAX_RECONNECTS,
	OPTION_SLOWER, OPTION_RECORD, OPTION_CLIENT_LOG, OPTION_SERVER_LOG, OPTION_WAIT,
	OPTION_SAVE,
};

static const char short_options[] = "hVvjbnHw:c:i:t:s:q:";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "json", no_argument, NULL, 'j' },
	{ "bytes", no_argument, NULL, 'b' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "no-headings", no_argument, NULL, 'H' },
	{ "sysfs", required_argument, NULL, OPTION_SYSFS },
	{ "watch", required_argument, NULL, 'w' },
	{ "count", required_argument, NULL, 'c' },
	{ "interval", required_argument, NULL, 'i' },
	{ "seconds", required_argument, NULL, 't' },
	{ "size", required_argument, NULL, 's' },
	{ "depth", required_argument, NULL, 'q' },
	{ "sequential", no_argument, NULL, OPTION_SEQUENTIAL },
	{ "prometheus", no_argument, NULL, OPTION_PROMETHEUS },
	{ "max-reconnects", required_argument, NULL, OPTION_MAX_RECONNECTS },
	{ "slower", required_argument, NULL, OPTION_SLOWER },
	{ "record", required_argument, NULL, OPTION_RECORD },
	{ "client-log", required_argument, NULL, OPTION_CLIENT_LOG },
	{ "server-log", required_argument, NULL, OPTION_SERVER_LOG },
	{ "wait", no_argument, NULL, OPTION_WAIT },
	{ "save", optional_argument, NULL, OPTION_SAVE },
	{ }
};

static const char options_help[] =
	"  -h, --help            this, or help with a command\n"
	"  -V, --version         print the version\n"
	"  -v, --verbose         tell what is written to which file\n"
	"  -n, --dry-run         tell, and don't write\n"
	"  -j, --json            print JSON\n"
	"  -b, --bytes           print sizes in bytes\n"
	"  -H, --no-headings     tables without headings\n"
	"      --sysfs DIR       where sysfs is mounted\n";

static void print_command(const struct command *c)
{
	printf("  rnbd %s%s%s%s%s%s\n        %s\n", c->sides == ON_SERVER ? "server " : "",
	       c->object ? c->object : "", c->object ? " " : "", c->name,
	       *c->arguments ? " " : "", c->arguments, c->text);
}

/* Print help with one command. */
static void print_one(const struct command *c)
{
	print_command(c);
	if (c->run == cmd_map)
		options_print(0);
	else if (c->run == cmd_session_set)
		options_print(FIRST_SETTING);
}

static int print_help(void)
{
	size_t i;

	puts("rnbd [client|server] COMMAND: network block devices over RDMA\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		print_command(&commands[i]);
	printf("\nOptions:\n%s\nSee rnbd(8).\n", options_help);
	return RNBD_OK;
}

/* Check for an object in singular or plural. */
static bool is_object(const char *word, const char *object)
{
	size_t n = strlen(object);

	return !strncmp(word, object, n) && (!word[n] || !strcmp(word + n, "s"));
}

static const char *take_object(int *argc, char ***argv)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		if (*argc && is_object(**argv, objects[i])) {
			--*argc;
			++*argv;
			return objects[i];
		}
	}
	return NULL;
}

/* Parse "client" or "server" as the first word. */
static void take_side(struct rnbd *r, int *argc, char ***argv)
{
	enum side side;

	for (side = CLIENT; side < NR_SIDES; side++) {
		if (*argc && !strcmp(**argv, side_name(side))) {
			r->sides[!side] = false;
			--*argc;
			++*argv;
			return;
		}
	}
}

/* Parse "json" as the next word. */
static void take_json(struct rnbd *r, int *argc, char ***argv)
{
	if (!*argc || strcmp(**argv, "json"))
		return;
	r->json = true;
	--*argc;
	++*argv;
}

static bool same_object(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/*
 * Find a command. Commands of volumes exist on both sides, with different meanings. Without a side
 * on the command line, prefer the client's. If the command exists only on the other side, return
 * that, for the error message.
 */
static const struct command *find_command(const struct rnbd *r, const char *object,
					  const char *name)
{
	const struct command *c, *found = NULL, *client = NULL;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (!same_object(c->object, object) || strcmp(c->name, name))
			continue;
		if (!found || (r->sides[SERVER] && !r->sides[CLIENT] && c->sides & ON_SERVER))
			found = c;
		if (c->sides & ON_CLIENT)
			client = c;
	}
	return client && r->sides[CLIENT] ? client : found;
}

/* Clear the sides that the command does not support. Returns false if none remains. */
static bool restrict_sides(struct rnbd *r, const struct command *c)
{
	enum side side;

	for (side = CLIENT; side < NR_SIDES; side++)
		r->sides[side] = r->sides[side] && c->sides & 1 << side;
	return r->sides[CLIENT] || r->sides[SERVER];
}

/* Remove "json" or "help" as the last word. */
static bool take_last(int *argc, char **argv, const char *word)
{
	if (!*argc || strcmp(argv[*argc - 1], word))
		return false;
	--*argc;
	return true;
}

static int run(struct rnbd *r, const struct command *c, unsigned int options, int argc,
	       char **argv)
{
	if (r->help || take_last(&argc, argv, "help")) {
		print_one(c);
		return RNBD_OK;
	}
	if (c->options & JSON && argc > c->min && take_last(&argc, argv, "json"))
		r->json = true;
	if (!restrict_sides(r, c))
		return report_usage("%s is not for the %s", c->name,
				    c->sides == ON_CLIENT ? "server" : "client");
	if (options & ~c->options)
		return report_usage("%s doesn't take one of these options; see: rnbd %s help",
				    c->name, c->name);
	if (argc < c->min || argc > c->max)
		return report_usage("%s%s%s %s", c->object ? c->object : "", c->object ? " " : "",
				    c->name, c->arguments);
	return c->run(r, argc, argv);
}

/* Run the words after options and side: [OBJECT] COMMAND ARGUMENT... */
static int run_words(struct rnbd *r, unsigned int options, int argc, char **argv)
{
	const struct command *c;
	const char *object, *name = "list";

	object = take_object(&argc, &argv);
	if (argc) {
		name = *argv++;
		argc--;
	} else if (!object) {
		return print_help(), r->help ? RNBD_OK : RNBD_USAGE;
	}
	if (!object && !strcmp(name, "help") && !argc)
		return print_help();
	if (!object && !strcmp(name, "help")) {
		object = argc > 1 ? take_object(&argc, &argv) : NULL;
		name = argv[0];
		argv[0] = "help";
		argc = 1;
	}
	c = find_command(r, object, name);
	if (!c)
		return report_usage("no command '%s%s%s'; see: rnbd help", object ? object : "",
				    object ? " " : "", name);
	return run(r, c, options, argc, argv);
}

static const char *from_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* Apply an option without a value. Returns -1 to continue, or an exit code. */
static int take_option(struct rnbd *r, int option, unsigned int *options)
{
	switch (option) {
	case 'h':
		r->help = true;
		break;
	case 'V':
		puts("rnbd " VERSION);
		return RNBD_OK;
	case 'v':
		r->verbose = true;
		break;
	case 'j':
		r->json = true;
		*options |= JSON;
		break;
	case 'b':
		r->bytes = true;
		break;
	case 'n':
		r->dry_run = true;
		*options |= DRY_RUN;
		break;
	case 'H':
		r->no_headings = true;
		*options |= TABLE;
		break;
	case OPTION_PROMETHEUS:
		r->prometheus = true;
		*options |= PROMETHEUS;
		break;
	case OPTION_SEQUENTIAL:
		r->sequential = true;
		*options |= LOAD;
		break;
	case OPTION_WAIT:
		r->wait = true;
		*options |= WAIT;
		break;
	case OPTION_SAVE:
		r->save = true;
		*options |= SAVE;
		break;
	default:
		return exit_usage;
	}
	return -1;
}

static bool take_number(long long min, long long max, long *value)
{
	long long n;

	if (!parse_number(optarg, min, max, &n))
		return false;
	*value = n;
	return true;
}

static bool take_block_size(long *size)
{
	long long bytes;

	if (!parse_size(optarg, &bytes) || !bytes || bytes % SECTOR || bytes > 1 << 24)
		return false;
	*size = bytes;
	return true;
}

/* Apply an option with a value. Returns false if the value is invalid. */
static bool take_value(struct rnbd *r, int option, unsigned int *options)
{
	switch (option) {
	case 'w':
		*options |= WATCH;
		return parse_seconds(optarg, &r->watch);
	case 'c':
		*options |= COUNT;
		return take_number(1, 1000000000, &r->count);
	case 'i':
		*options |= INTERVAL;
		return parse_seconds(optarg, &r->interval);
	case 't':
		*options |= SECONDS;
		return parse_seconds(optarg, &r->seconds);
	case 's':
		*options |= LOAD;
		return take_block_size(&r->block_size);
	case 'q':
		*options |= LOAD;
		return take_number(1, 1024, &r->depth);
	case OPTION_MAX_RECONNECTS:
		*options |= RECONNECTS;
		return take_number(0, 1000000000, &r->max_reconnects);
	case OPTION_SLOWER:
		*options |= LOGS;
		return take_number(0, 1000000000, &r->slower_us);
	default:
		return false;
	}
}

/* Apply an option with the name of a file. */
static bool take_file(struct rnbd *r, int option, unsigned int *options)
{
	switch (option) {
	case OPTION_RECORD:
		r->record = optarg;
		break;
	case OPTION_CLIENT_LOG:
		r->client_log = optarg;
		break;
	case OPTION_SERVER_LOG:
		r->server_log = optarg;
		break;
	default:
		return false;
	}
	*options |= LOGS;
	return true;
}

/* Apply --save=NAME. */
static int take_save(struct rnbd *r, unsigned int *options)
{
	r->save_name = optarg;
	return take_option(r, OPTION_SAVE, options);
}

/* Apply all options. Returns -1 to continue, or an exit code. @optind is set in both cases. */
static int take_options(struct rnbd *r, int argc, char **argv, unsigned int *options)
{
	int option, ret = -1;

	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (ret >= 0)
			continue;
		if (option == '?')
			ret = exit_usage;
		else if (!optarg)
			ret = take_option(r, option, options);
		else if (option == OPTION_SYSFS)
			r->sysfs = optarg;
		else if (option == OPTION_SAVE)
			ret = take_save(r, options);
		else if (!take_file(r, option, options) && !take_value(r, option, options))
			ret = report_usage("'%s' is no value for that option", optarg);
		opterr = ret < 0;
	}
	return ret;
}

static bool is_generator(const char *called)
{
	const char *name = called ? strrchr(called, '/') : NULL;

	return called && !strcmp(name ? name + 1 : called, "rnbd-generator");
}

int main(int argc, char **argv)
{
	struct rnbd r = {
		.sysfs = from_environment("RNBD_SYSFS", "/sys"),
		.dev = from_environment("RNBD_DEV", "/dev"),
		.kmsg = from_environment("RNBD_KMSG", "/dev/kmsg"),
		.tracefs = from_environment("RNBD_TRACEFS", "/sys/kernel/tracing"),
		.volumes = from_environment("RNBD_VOLUMES", "/etc/rnbd/volumes"),
		.server_conf = from_environment("RNBD_SERVER_CONF", "/etc/rnbd/server.conf"),
		.sides = { true, true },
		.interval = 1,
		.seconds = 5,
		.depth = 16,
		.block_size = 4096,
	};
	unsigned int options = 0;
	int ret;

	if (is_generator(argv[0]))
		return generate(&r, argc, argv);
	ret = take_options(&r, argc, argv, &options);
	argc -= optind;
	argv += optind;
	take_side(&r, &argc, &argv);
	take_json(&r, &argc, &argv);
	if (argc && !strcmp(*argv, "health")) {
		exit_usage = RNBD_HEALTH_UNKNOWN;
		exit_failed = RNBD_HEALTH_UNKNOWN;
	}
	if (ret < 0)
		ret = run_words(&r, options, argc, argv);
	else if (ret == RNBD_USAGE)
		ret = exit_usage;
	if (fflush(stdout) || ferror(stdout)) {
		perror("rnbd: can't write");
		return ret && exit_failed == RNBD_FAILED ? ret : exit_failed;
	}
	return ret;
}
