// SPDX-License-Identifier: GPL-2.0
/*
 * Checks whether this driver is loaded, or would be, rather than the in-tree driver of the same
 * name. The in-tree server has no rules, and ignores the parameter listen: it exports everything to
 * all hosts. modprobe loads it if this driver was not built for the running kernel.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnbd.h"

/*
 * What only this driver's modules have: a file below /sys/module, and a field of modinfo that
 * begins with these words
 */
static const struct mark {
	const char *module, *file, *field, *begins;
} marks[] = {
	{ "rtrs_client", "version", "version", "" },
	{ "rtrs_server", "parameters/slot_size", "parm", "slot_size:" },
	{ "rnbd_server", "parameters/listen", "parm", "listen:" },
};

static const struct mark *mark_of(const char *module)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(marks); i++)
		if (!strcmp(marks[i].module, module))
			return &marks[i];
	return NULL;
}

/* Check whether the in-tree module is loaded. */
bool driver_is_foreign(const struct rnbd *r, const char *module)
{
	return sysfs_exists(r, "module/%s", module) &&
	       !sysfs_exists(r, "module/%s/%s", module, mark_of(module)->file);
}

/* Get the loaded driver of a side: "rnbd_client 1.0", or "rnbd_client of the kernel". */
char *driver_name(const struct rnbd *r, enum side side)
{
	char *version = sysfs_read(r, "module/rnbd_%s/version", side_name(side)), *name;

	name = xasprintf("rnbd_%s %s", side_name(side), version ? version : "of the kernel");
	free(version);
	return name;
}

/* Run a command. Returns a stream of its output, or NULL with errno. */
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

/* Check whether the module that would be loaded has its mark. -1: no module; was reported. */
static int module_has_mark(const struct mark *mark)
{
	char *const argv[] = { "modinfo", "-F", (char *)mark->field, (char *)mark->module, NULL };
	size_t room = 0, n = strlen(mark->begins);
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
		if (!strncmp(line, mark->begins, n))
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

/* Check that a module is this driver's, whether it is loaded already or not. */
int need_driver(const struct rnbd *r, const char *module)
{
	int has;

	if (driver_is_foreign(r, module))
		return report_foreign(module, "is", "; then: modprobe -r rnbd_server rtrs_server");
	if (sysfs_exists(r, "module/%s", module))
		return RNBD_OK;
	has = module_has_mark(mark_of(module));
	if (has < 0)
		return report_failed("%s can't be loaded: it isn't installed for this kernel",
				     module);
	return has ? RNBD_OK : report_foreign(module, "would be", "");
}
