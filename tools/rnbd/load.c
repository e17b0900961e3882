// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd server load: loads the server's modules with the parameters of the configuration file, and
 * applies the rules of that file before clients can connect. rnbd server stop, unload: the reverse.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules.h"

static const char *const modules[] = { "rtrs_server", "rnbd_server" };

static int run(char *const *argv)
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

/* Run modprobe MODULE PARAMETER="VALUE"...; the kernel removes the quotes. */
static int load_module(const struct rnbd *r, enum server_module which, const struct conf *conf)
{
	char *argv[NR_PARAMETERS + 4] = { "modprobe", (char *)modules[which] };
	size_t n = 2, i;
	int ret;

	for (i = 0; i < NR_PARAMETERS; i++)
		if (parameters[i].module == which && conf->values[i])
			argv[n++] = xasprintf("%s=\"%s\"", parameters[i].name, conf->values[i]);
	if (which == RNBD_SERVER && conf->has_rules)
		argv[n++] = xstrdup("listen=\"N\"");
	for (i = 0; (r->verbose || r->dry_run) && argv[i]; i++)
		fprintf(stderr, "%s%s", argv[i], argv[i + 1] ? " " : "\n");
	ret = r->dry_run ? RNBD_OK : run(argv);
	if (ret)
		report_failed("%s can't be loaded: see the kernel's log", modules[which]);
	while (n > 2)
		free(argv[--n]);
	return ret;
}

/* Compare values. Booleans are shown as Y or N, and can also be written as 1, 0, y and n. */
static bool same_value(const char *has, const char *value)
{
	const char *of = !strcmp(has, "Y") ? "Y y 1" : !strcmp(has, "N") ? "N n 0" : NULL;

	return !strcmp(has, value) || (of && strlen(value) == 1 && strstr(of, value));
}

/* Change a parameter of a loaded module, or report that it can't be changed now. */
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

static int apply(const struct rnbd *r, enum server_module which, const struct conf *conf)
{
	int ret = RNBD_OK, one;
	size_t i;

	if (!sysfs_exists(r, "module/%s", modules[which]))
		return load_module(r, which, conf);
	for (i = 0; i < NR_PARAMETERS; i++) {
		if (parameters[i].module != which || !conf->values[i])
			continue;
		one = change(r, i, conf->values[i]);
		ret = one ? one : ret;
	}
	return ret;
}

/* Let clients connect, unless they can already. */
static int let_connect(const struct rnbd *r)
{
	char *listens = sysfs_read(r, RULES_DIR "/listen");
	int ret = RNBD_OK;

	if (!listens || strcmp(listens, "1"))
		ret = sysfs_set(r, "let clients connect", RULES_DIR, "listen", "1");
	free(listens);
	return ret;
}

/* Apply the rules. If this fails, a server that does not listen yet must not begin to. */
static int apply_rules(const struct rnbd *r, const struct conf *conf)
{
	struct rules have;
	int ret = rules_read(r, &have);
	char *listens;

	if (ret && !r->dry_run)
		return report_no_rules(r, ret);
	if (ret)
		rules_fill(&have);
	ret = rules_apply(r, &have, &conf->rules);
	listens = sysfs_read(r, RULES_DIR "/listen");
	if (ret && (!listens || strcmp(listens, "1")))
		report_failed("the server doesn't listen, as its rules aren't complete");
	free(listens);
	rules_free(&have);
	return ret;
}

int cmd_load(struct rnbd *r, int argc, char **argv)
{
	enum server_module which;
	struct conf conf;
	int ret;

	(void)argc;
	(void)argv;
	ret = conf_read(r, &conf);
	/* Check both modules before one of them is loaded. */
	for (which = 0; !ret && which < NR_MODULES; which++)
		ret = need_driver(r, modules[which]);
	for (which = 0; !ret && which < NR_MODULES; which++)
		ret = apply(r, which, &conf);
	if (!ret && conf.has_rules)
		ret = apply_rules(r, &conf);
	/* Without rules in the file, a newly loaded server listens already. */
	if (!ret && (conf.has_rules || sysfs_exists(r, RULES_DIR "/listen")))
		ret = let_connect(r);
	conf_free(&conf);
	return ret;
}

/* End all sessions. Returns when all devices are closed, and writes to them are durable. */
static int end_sessions(const struct rnbd *r, const struct rules *have)
{
	int ret = sysfs_set(r, "end all sessions", RULES_DIR, "listen", "0");
	int tenants = rules_unlisten(r, have);

	return ret ? ret : tenants;
}

/* End all sessions, but keep modules and rules; "server load" lets clients connect again. */
int cmd_stop(struct rnbd *r, int argc, char **argv)
{
	struct rules have;
	int ret;

	(void)argc;
	(void)argv;
	if (!sysfs_exists(r, "module/rnbd_server"))
		return RNBD_OK;
	ret = need_driver(r, "rnbd_server");
	if (ret)
		return ret;
	ret = rules_read(r, &have);
	if (ret)
		return report_no_rules(r, ret);
	ret = end_sessions(r, &have);
	rules_free(&have);
	return ret;
}

/* End sessions before the rules are removed: so clients wait for the server, without errors. */
int cmd_unload(struct rnbd *r, int argc, char **argv)
{
	char *const modprobe[] = { "modprobe", "-r", "rnbd_server", "rtrs_server", NULL };
	struct rules have, none = { 0 };
	int ret = RNBD_OK;

	(void)argc;
	(void)argv;
	if (!rules_read(r, &have)) {
		ret = end_sessions(r, &have);
		none.policy = have.policy;
		if (!ret)
			ret = rules_apply(r, &have, &none);
		rules_free(&have);
	}
	if (ret)
		return ret;
	if (r->verbose || r->dry_run)
		fputs("modprobe -r rnbd_server rtrs_server\n", stderr);
	return r->dry_run ? RNBD_OK : run(modprobe);
}
