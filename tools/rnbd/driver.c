// SPDX-License-Identifier: GPL-2.0
/*
 * Which driver is loaded, or would be: this one, or the kernel's own of the same name. The kernel's
 * own server has no rules, and ignores the parameter listen: it exports everything to everybody.
 * It is what modprobe finds where this driver wasn't built for the kernel that runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnbd.h"

/* Parameters that only this driver's modules have */
static const struct {
	const char *module, *parameter;
} marks[] = {
	{ "rtrs_client", "fencing" },
	{ "rtrs_server", "slot_size" },
	{ "rnbd_server", "listen" },
};

static const char *mark_of(const char *module)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(marks); i++)
		if (!strcmp(marks[i].module, module))
			return marks[i].parameter;
	return NULL;
}

/* Is the module that is loaded the kernel's own? */
bool driver_is_foreign(const struct rnbd *r, const char *module)
{
	return sysfs_exists(r, "module/%s", module) &&
	       !sysfs_exists(r, "module/%s/parameters/%s", module, mark_of(module));
}

/* The end of a pipe from which to read what the command prints; NULL: errno */
static FILE *run_and_read(char *const *argv, pid_t *pid)
{
	int fds[2];

	if (pipe(fds))
		return NULL;
	*pid = fork();
	if (!*pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		report_failed("%s: %s", argv[0], strerror(errno));
		_exit(127);
	}
	close(fds[1]);
	if (*pid > 0)
		return fdopen(fds[0], "r");
	close(fds[0]);
	return NULL;
}

/* Does the module that would be loaded have the parameter? -1: there is none, which was told. */
static int module_has(const char *module, const char *parameter)
{
	char *const argv[] = { "modinfo", "-F", "parm", (char *)module, NULL };
	size_t room = 0, n = strlen(parameter);
	int status = -1, has = 0;
	char *line = NULL;
	FILE *from;
	pid_t pid;

	from = run_and_read(argv, &pid);
	if (!from) {
		report_failed("modinfo: %s", strerror(errno));
		return -1;
	}
	while (getline(&line, &room, from) >= 0)
		if (!strncmp(line, parameter, n) && line[n] == ':')
			has = 1;
	free(line);
	fclose(from);
	if (waitpid(pid, &status, 0) < 0 || status)
		return -1;
	return has;
}

static int report_foreign(const char *module, const char *what, const char *advice)
{
	struct utsname name = { .release = "?" };
	int ret;

	uname(&name);
	ret = report_failed("%s %s the kernel's own driver: it has no rules, exports everything",
			    module, what);
	fprintf(stderr,
		"  this driver isn't built for Linux %s: see dkms status, try dkms autoinstall%s\n",
		name.release, advice);
	return ret;
}

/* RNBD_OK if the module is this driver's, whether it is loaded or is to be */
int need_driver(const struct rnbd *r, const char *module)
{
	int has;

	if (driver_is_foreign(r, module))
		return report_foreign(module, "is", "; then: modprobe -r rnbd_server rtrs_server");
	if (sysfs_exists(r, "module/%s", module))
		return RNBD_OK;
	has = module_has(module, mark_of(module));
	if (has < 0)
		return report_failed("%s can't be loaded: it isn't installed for this kernel",
				     module);
	return has ? RNBD_OK : report_foreign(module, "would be", "");
}
