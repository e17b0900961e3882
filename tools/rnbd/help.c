// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd help: all commands in groups, the commands of an object, or one command. The completions of
 * shells read lines that begin with "  rnbd ", and the options below them.
 */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "volumes.h"

/* Commands of @object, or those in @names. @page is their manual page, of section 8. */
static const struct group {
	const char *title, *page, *object, *names;
	unsigned int sides;
	/* A line each; the last one is NULL. */
	const char *examples[5];
} groups[] = {
	{ "Disks", "rnbd-map", NULL, "discover map unmap remap resize", ON_CLIENT, {
		"rnbd discover 10.0.0.1,10.0.1.1",
		"rnbd map vol1 from storage1 10.0.0.1 10.0.1.1 failover_timeout=300 --save",
		"rnbd unmap vol1 from storage1", "rnbd resize rnbd0 20G" } },
	{ "States", "rnbd-list", NULL, "list show dump", ON_BOTH, {
		"rnbd list all", "rnbd show rnbd0 --json" } },
	{ "Problems", "rnbd-health", NULL, "health recover report", ON_BOTH, {
		"rnbd health", "rnbd recover storage1", "rnbd report ticket.html" } },
	{ "Measurements", "rnbd-stat", NULL, "stat top ping perf trace metrics", ON_BOTH, {
		"rnbd stat --watch 1", "rnbd ping storage1 --count 5",
		"rnbd perf rnbd0 --seconds 10" } },
	{ "Devices", "rnbd-device", "device", NULL, ON_BOTH, { "rnbd device show rnbd0" } },
	{ "Sessions", "rnbd-session", "session", NULL, ON_BOTH, {
		"rnbd session set storage1 failover_timeout=300",
		"rnbd session reconnect storage1" } },
	{ "Paths", "rnbd-path", "path", NULL, ON_BOTH, {
		"rnbd path add storage1 10.0.1.1", "rnbd path disconnect storage1 10.0.1.1" } },
	{ "Volumes that are mapped at boot", "rnbd-volume", "volume", NULL, ON_CLIENT, {
		"rnbd volume check", "rnbd volume map data" } },
	{ "Server", "rnbd-server", NULL, "load stop unload close", ON_SERVER, {
		"rnbd server load", "rnbd server close sda storage1" } },
	{ "Rules of the server", "rnbd-rules", NULL, "rules policy check save clear exports",
	  ON_SERVER, { "rnbd server policy listed", "rnbd server save" } },
	{ "Tenants", "rnbd-tenant", "tenant", NULL, ON_SERVER, {
		"rnbd server tenant add blue netns=/run/netns/blue" } },
	{ "Hosts", "rnbd-host", "host", NULL, ON_SERVER, {
		"rnbd server host add web sessions=web-* addresses=192.168.7.0/24" } },
	{ "Volumes of the server", "rnbd-server-volume", "volume", NULL, ON_SERVER, {
		"rnbd server volume add data path=/dev/vg0/data hosts=web" } },
};

/* Options of commands, in the order of their bits */
static const char *const option_names[] = {
	"--watch", "--count", "--interval", "--seconds", "--prometheus",
	"--depth --size --sequential", "--max-reconnects",
	"--slower --record --client-log --server-log", "--json", "--dry-run", "--no-headings",
	"--wait", "--save", "--all",
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

/* Check for a side to which the command line applies. */
static bool for_sides(const struct rnbd *r, unsigned int sides)
{
	return (r->sides[CLIENT] && sides & ON_CLIENT) || (r->sides[SERVER] && sides & ON_SERVER);
}

static bool in_group(const struct command *c, const struct group *group)
{
	return command_takes(c, group->object) && c->sides & group->sides &&
	       (!group->names || has_word(group->names, c->name));
}

/*
 * Get the words of a command line with this object, or none, without arguments. Returns a string
 * from malloc().
 */
static char *command_words(const struct command *c, const char *object)
{
	return xasprintf("rnbd %s%s%s%s", c->sides == ON_SERVER ? "server " : "",
			 object ? object : "", object ? " " : "", c->name);
}

static void print_command(const struct command *c, const char *object)
{
	char *words = command_words(c, object), *same = command_words(c, c->object);
	bool alias = strcmp(words, same);

	printf("  %s%s%s\n        %s%s\n", words, *c->arguments ? " " : "", c->arguments,
	       alias ? "as " : "", alias ? same : c->text);
	free(same);
	free(words);
}

/* Check whether an example is one of this command. */
static bool is_example_of(const char *example, const struct command *c)
{
	char *words = command_words(c, c->object);
	size_t len = strlen(words);
	bool is = starts_with(example, words) && (!example[len] || example[len] == ' ');

	free(words);
	return is;
}

/* Print the examples of a command, which is in this group. */
static void print_examples(const struct group *group, const struct command *c)
{
	const char *const *example;

	for (example = group->examples; *example; example++)
		if (is_example_of(*example, c))
			printf("    # %s\n", *example);
}

static void print_group(const struct rnbd *r, const struct group *group)
{
	size_t i;

	printf("\n%s, see %s(8):\n", group->title, group->page);
	for (i = 0; i < nr_commands; i++)
		if (in_group(&commands[i], group) && for_sides(r, commands[i].sides) &&
		    !(commands[i].options & HIDDEN))
			print_command(&commands[i], group->object);
	for (i = 0; i < nr_commands; i++)
		if (in_group(&commands[i], group) && for_sides(r, commands[i].sides))
			print_examples(group, &commands[i]);
}

/* Print help with all commands of the sides to which the command line applies. */
int print_help(const struct rnbd *r)
{
	size_t i;

	puts("rnbd [client|server] COMMAND: network block devices over RDMA");
	puts("rnbd help COMMAND, or COMMAND --help: more about a command");
	for (i = 0; i < ARRAY_SIZE(groups); i++)
		if (for_sides(r, groups[i].sides))
			print_group(r, &groups[i]);
	printf("\nOptions:\n%s\nSee rnbd(8).\n", options_help);
	return RNBD_OK;
}

/* Print help with the commands of a device, session, path, tenant, host or volume. */
int help_object(const struct rnbd *r, const char *object)
{
	bool found = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (!same_object(groups[i].object, object) || !for_sides(r, groups[i].sides))
			continue;
		found = true;
		print_group(r, &groups[i]);
	}
	return found ? RNBD_OK : report_usage("%s is not for the %s", object,
					      r->sides[SERVER] ? "server" : "client");
}

/* Print one command, typed with this object: how to use it, its options, manual and examples. */
static void print_one(const struct command *c, const char *object)
{
	size_t i;

	print_command(c, object);
	if (c->run == cmd_map) {
		options_print(0, NR_VOLUME_OPTIONS);
	} else if (c->run == cmd_discover) {
		puts("  session=NAME");
		options_print(FIRST_SESSION_OPTION, FIRST_SETTING);
	} else if (c->run == cmd_session_set) {
		options_print(FIRST_SETTING, NR_VOLUME_OPTIONS);
	}
	fputs("    options: --help --verbose --bytes", stdout);
	for (i = 0; i < ARRAY_SIZE(option_names); i++)
		if (c->options & 1 << i)
			printf(" %s", option_names[i]);
	putchar('\n');
	for (i = 0; i < ARRAY_SIZE(groups); i++)
		if (in_group(c, &groups[i]) && same_object(groups[i].object, object))
			printf("    manual: %s(8)\n", groups[i].page);
	for (i = 0; i < ARRAY_SIZE(groups); i++)
		if (in_group(c, &groups[i]))
			print_examples(&groups[i], c);
}

/* Print help with the commands of that name, of which each side may have its own. */
int help_command(const struct rnbd *r, const char *object, const char *name)
{
	const struct command *c, *other = NULL;
	bool found = false;

	for (c = commands; c < commands + nr_commands; c++) {
		if (!command_takes(c, object) || strcmp(c->name, name))
			continue;
		other = c;
		if (!for_sides(r, c->sides))
			continue;
		found = true;
		print_one(c, object);
	}
	if (found)
		return RNBD_OK;
	if (other)
		return report_usage("%s is not for the %s", name,
				    other->sides == ON_CLIENT ? "server" : "client");
	return report_usage("no command '%s%s%s'; see: rnbd help", object ? object : "",
			    object ? " " : "", name);
}
