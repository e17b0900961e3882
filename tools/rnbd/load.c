// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd server load: load the server's modules, with the parameters that its file of settings
 * has, a line each:
 *
 *	PARAMETER = VALUE
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnbd.h"

enum server_module { RTRS_SERVER, RNBD_SERVER, NR_MODULES };

static const char *const modules[] = { "rtrs_server", "rnbd_server" };

/* In the order in which modules depend on each other */
static const struct parameter {
	const char *name;
	enum server_module module;
	/* Can be changed when the module is loaded */
	bool live;
} parameters[] = {
	{ "max_chunk_size", RTRS_SERVER, false },
	{ "sess_queue_depth", RTRS_SERVER, false },
	{ "always_invalidate", RTRS_SERVER, false },
	{ "max_memory", RTRS_SERVER, true },
	{ "max_fetch", RTRS_SERVER, true },
	{ "port_nr", RNBD_SERVER, false },
	{ "dev_search_path", RNBD_SERVER, false },
};

#define NR_PARAMETERS ARRAY_SIZE(parameters)

struct settings {
	char *values[NR_PARAMETERS];
};

/* Without blanks around it, and a pair of quotes */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	if (n > 1 && (*text == '"' || *text == '\'') && text[n - 1] == *text) {
		text++;
		n -= 2;
	}
	text[n] = 0;
	return text;
}

static size_t find_parameter(const char *name)
{
	size_t i = 0;

	while (i < NR_PARAMETERS && strcmp(name, parameters[i].name))
		i++;
	return i;
}

static int take_line(const char *file, int line, char *text, struct settings *settings)
{
	char *name, *value;
	size_t i;

	text[strcspn(text, "\n")] = 0;
	name = trim(text_clean(text));
	value = strchr(name, '=');
	if (!*name || *name == '#')
		return RNBD_OK;
	if (!value)
		return report_usage("%s:%d: '%s' is not PARAMETER = VALUE", file, line, name);
	*value++ = 0;
	name = trim(name);
	value = trim(value);
	i = find_parameter(name);
	if (i == NR_PARAMETERS)
		return report_usage("%s:%d: the server has no parameter '%s'", file, line, name);
	if (settings->values[i])
		return report_usage("%s:%d: %s is given twice", file, line, name);
	if (!*value || strpbrk(value, "\"\\"))
		return report_usage("%s:%d: '%s' is no value for %s", file, line, value, name);
	settings->values[i] = xstrdup(value);
	return RNBD_OK;
}

/* Of a server that has other settings than it was given, nobody knows what it serves. */
static int read_settings(const struct rnbd *r, struct settings *settings)
{
	FILE *file = fopen(r->server_conf, "re");
	int ret = RNBD_OK, line = 0, one;
	char *text = NULL;
	size_t room = 0;

	if (!file && errno == ENOENT)
		return RNBD_OK;
	if (!file)
		return report_failed("%s: %s", r->server_conf, strerror(errno));
	while (getline(&text, &room, file) >= 0) {
		one = take_line(r->server_conf, ++line, text, settings);
		ret = one ? one : ret;
	}
	free(text);
	fclose(file);
	return ret;
}

static int run(char **argv)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		report_failed("%s: %s", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return report_failed("%s: %s", argv[0], strerror(errno));
	return WIFEXITED(status) && !WEXITSTATUS(status) ? RNBD_OK : RNBD_FAILED;
}

/* modprobe MODULE PARAMETER="VALUE"...; the kernel takes the quotes away. */
static int load_module(const struct rnbd *r, enum server_module which,
		       const struct settings *settings)
{
	char *argv[NR_PARAMETERS + 3] = { "modprobe", (char *)modules[which] };
	size_t n = 2, i;
	int ret;

	for (i = 0; i < NR_PARAMETERS; i++)
		if (parameters[i].module == which && settings->values[i])
			argv[n++] = xasprintf("%s=\"%s\"", parameters[i].name,
					      settings->values[i]);
	for (i = 0; (r->verbose || r->dry_run) && argv[i]; i++)
		fprintf(stderr, "%s%s", argv[i], argv[i + 1] ? " " : "\n");
	ret = r->dry_run ? RNBD_OK : run(argv);
	if (ret)
		report_failed("%s can't be loaded: see the kernel's log", modules[which]);
	while (n > 2)
		free(argv[--n]);
	return ret;
}

/* Switches are shown as Y or N, and taken as 1, 0, y and n, too. */
static bool same_value(const char *has, const char *value)
{
	const char *of = !strcmp(has, "Y") ? "Y y 1" : !strcmp(has, "N") ? "N n 0" : NULL;

	return !strcmp(has, value) || (of && strlen(value) == 1 && strstr(of, value));
}

/* It is loaded: change what can be changed, and tell what can't. */
static int change(const struct rnbd *r, size_t i, const char *value)
{
	const char *name = parameters[i].name, *module = modules[parameters[i].module];
	char *dir = xasprintf("module/%s/parameters", module), *has, *doing;
	int ret = RNBD_OK;

	has = sysfs_read(r, "%s/%s", dir, name);
	if (has && !same_value(has, value) && parameters[i].live) {
		doing = xasprintf("set %s of %s", name, module);
		ret = sysfs_set(r, doing, dir, name, value);
		free(doing);
	} else if (has && !same_value(has, value)) {
		fprintf(stderr, "rnbd: %s stays %s until %s is loaded again\n", name, has, module);
	}
	free(has);
	free(dir);
	return ret;
}

static int apply(const struct rnbd *r, enum server_module which, const struct settings *settings)
{
	int ret = RNBD_OK, one;
	size_t i;

	if (!sysfs_exists(r, "module/%s", modules[which]))
		return load_module(r, which, settings);
	for (i = 0; i < NR_PARAMETERS; i++) {
		if (parameters[i].module != which || !settings->values[i])
			continue;
		one = change(r, i, settings->values[i]);
		ret = one ? one : ret;
	}
	return ret;
}

int cmd_load(struct rnbd *r, int argc, char **argv)
{
	struct settings settings = { 0 };
	enum server_module which;
	size_t i;
	int ret;

	(void)argc;
	(void)argv;
	ret = read_settings(r, &settings);
	for (which = 0; !ret && which < NR_MODULES; which++)
		ret = apply(r, which, &settings);
	for (i = 0; i < NR_PARAMETERS; i++)
		free(settings.values[i]);
	return ret;
}
