// SPDX-License-Identifier: GPL-2.0
/*
 * The systemd generator, which runs if the tool is called as rnbd-generator. It makes systemd
 * start an instance of rnbd-volume@.service for each volume that is mapped at boot; see
 * systemd.generator(7).
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "volumes.h"

#define TEMPLATE "rnbd-volume@.service"
#define WANTS "multi-user.target.wants"

/* Report to the kernel's log, since the journal is not running yet, and reads that log later. */
static void report(void *arg, const char *text)
{
	const struct rnbd *r = arg;
	FILE *log = fopen(r->kmsg, "ae");

	if (!log) {
		report_failed("%s", text);
		return;
	}
	fprintf(log, "<3>rnbd-generator[%d]: %s\n", getpid(), text);
	fclose(log);
}

/*
 * Escape only the characters that are invalid in names of units, as systemctl(1) does with names on
 * its command line.
 */
static char *unit_escape(const char *name)
{
	char *escaped = xcalloc(4 * strlen(name) + 1, 1), *to = escaped;
	const char *from;

	for (from = name; *from; from++) {
		if (isalnum(*from) || strchr(":_-.@", *from))
			*to++ = *from;
		else
			to += sprintf(to, "\\x%02x", (unsigned char)*from);
	}
	return escaped;
}

static int fail(struct rnbd *r, const char *path)
{
	char *text = xasprintf("%s: %s", path, strerror(errno));

	report(r, text);
	free(text);
	return RNBD_FAILED;
}

/* Get the path of the template: the units of PREFIX/sbin/rnbd are in PREFIX/lib. */
static char *template_path(void)
{
	char exe[PATH_MAX] = "", *cut;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int i;

	if (n < 0)
		*exe = 0;
	for (i = 0; i < 2; i++) {
		cut = strrchr(exe, '/');
		if (cut)
			*cut = 0;
	}
	return xasprintf("%s/lib/systemd/system/" TEMPLATE, n < 0 ? "/usr" : exe);
}

static int want(struct rnbd *r, const char *dir, const struct volume *volume)
{
	char *name = unit_escape(volume->name), *template = template_path();
	char *path = xasprintf("%s/rnbd-volume@%s.service", dir, name);
	int ret = RNBD_OK;

	if (symlink(template, path))
		ret = fail(r, path);
	free(path);
	free(template);
	free(name);
	return ret;
}

/* Arguments: DIRECTORY... The first one is for units of normal priority. */
int generate(struct rnbd *r, int argc, char **argv)
{
	struct volumes volumes;
	int ret, one;
	char *dir;
	size_t i;

	if (argc < 2)
		return report_usage("rnbd-generator DIRECTORY...");
	ret = volumes_read(r, NULL, &volumes, report, r);
	dir = xasprintf("%s/" WANTS, argv[1]);
	if (volumes.nr && mkdir(dir, 0755) && errno != EEXIST)
		ret = fail(r, dir);
	for (i = 0; !ret && i < volumes.nr; i++) {
		one = volumes.all[i].noauto ? RNBD_OK : want(r, dir, &volumes.all[i]);
		ret = one ? one : ret;
	}
	free(dir);
	volumes_free(&volumes);
	return ret;
}
