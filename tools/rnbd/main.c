// SPDX-License-Identifier: GPL-2.0
/*
 * The command line:
 *
 *	rnbd [client|server] [OBJECT] COMMAND [ARGUMENT...] [OPTION...]
 *
 * OBJECT is device, session, path, tenant, host or volume.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

#ifndef VERSION
#define VERSION "unknown"
#endif

static const char *const objects[] = { "device", "session", "path", "tenant", "host", "volume" };

/* Long options without a short form */
enum {
	OPTION_SYSFS = 256, OPTION_PROMETHEUS, OPTION_SEQUENTIAL, OPTION_MAX_RECONNECTS,
	OPTION_SLOWER, OPTION_RECORD, OPTION_CLIENT_LOG, OPTION_SERVER_LOG, OPTION_WAIT,
	OPTION_SAVE, OPTION_ALL,
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
	{ "all", no_argument, NULL, OPTION_ALL },
	{ }
};

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

/*
 * Find a command. Commands of volumes exist on both sides, with different meanings. Without a side
 * on the command line, prefer the client's. If the command exists only on the other side, return
 * that, for the error message.
 */
static const struct command *find_command(const struct rnbd *r, const char *object,
					  const char *name)
{
	const struct command *c, *found = NULL, *client = NULL;

	for (c = commands; c < commands + nr_commands; c++) {
		if (!command_takes(c, object) || strcmp(c->name, name))
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

/* Run a command, which was typed with this object, or none. */
static int run(struct rnbd *r, const struct command *c, const char *object, unsigned int options,
	       int argc, char **argv)
{
	if (r->help || take_last(&argc, argv, "help"))
		return help_command(r, object, c->name);
	if (c->options & JSON && argc > c->min && take_last(&argc, argv, "json"))
		r->json = true;
	if (!restrict_sides(r, c))
		return report_usage("%s is not for the %s", c->name,
				    c->sides == ON_CLIENT ? "server" : "client");
	if (options & ~c->options)
		return report_usage("%s doesn't take one of these options; see: rnbd %s help",
				    c->name, c->name);
	if (argc < c->min || argc > c->max)
		return report_usage("%s%s%s %s", object ? object : "", object ? " " : "", c->name,
				    c->arguments);
	return c->run(r, argc, argv);
}

/* Run the words after "help": [client|server] [OBJECT] [COMMAND] */
static int run_help(struct rnbd *r, const char *object, int argc, char **argv)
{
	if (!object) {
		take_side(r, &argc, &argv);
		object = take_object(&argc, &argv);
	}
	if (argc && (object || strcmp(argv[0], "help")))
		return help_command(r, object, argv[0]);
	return object ? help_object(r, object) : print_help(r);
}

/* Run the words after options and side: [OBJECT] COMMAND ARGUMENT... */
static int run_words(struct rnbd *r, unsigned int options, int argc, char **argv)
{
	const struct command *c;
	const char *object, *name = "list";
	int ret;

	object = take_object(&argc, &argv);
	if (!argc && (r->help || !object)) {
		ret = run_help(r, object, argc, argv);
		return r->help ? ret : RNBD_USAGE;
	}
	if (argc) {
		name = *argv++;
		argc--;
	}
	if (!strcmp(name, "help"))
		return run_help(r, object, argc, argv);
	c = find_command(r, object, name);
	if (!c)
		return report_usage("no command '%s%s%s'; see: rnbd help", object ? object : "",
				    object ? " " : "", name);
	return run(r, c, object, options, argc, argv);
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
	case OPTION_ALL:
		r->all = true;
		*options |= ALL;
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
		.lock = from_environment("RNBD_LOCK", "/run/rnbd.lock"),
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
