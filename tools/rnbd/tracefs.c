// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints switched on for some seconds, in an instance of their own, so that others who
 * trace are not disturbed
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define LINE_SIZE 4096

static const char *const groups[] = { "rtrs_clt", "rtrs_srv" };

/* Where tracefs is: older systems have it below debugfs only. */
static const char *find_tracefs(const struct rnbd *r)
{
	static const char debugfs[] = "/sys/kernel/debug/tracing";
	char *path = xasprintf("%s/events", r->tracefs);
	bool is = !access(path, F_OK);

	free(path);
	return is || getenv("RNBD_TRACEFS") ? r->tracefs : debugfs;
}

/* Returns 0 or an errno. */
static int write_one(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, "1", 1) < 0)
		err = errno;
	close(fd);
	return err;
}

/* At least one group has to be there. */
static int switch_on(const char *instance)
{
	int err = ENOENT;
	char *path;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		path = xasprintf("%s/events/%s/enable", instance, groups[i]);
		if (!write_one(path))
			err = 0;
		else if (err)
			err = errno;
		free(path);
	}
	return err;
}

/* Lines go one by one to @take; what is left of the last one waits for its end. */
struct splitter {
	char line[LINE_SIZE];
	size_t nr;
	void (*take)(void *arg, char *line);
	void *arg;
};

static void split(struct splitter *s, const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (text[i] != '\n') {
			if (s->nr + 1 < sizeof(s->line))
				s->line[s->nr++] = text[i];
			continue;
		}
		s->line[s->nr] = 0;
		s->take(s->arg, s->line);
		s->nr = 0;
	}
}

/* Until the time is over, or it is interrupted; then what is still there */
static void read_pipe(int fd, double until, struct splitter *splitter)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char text[65536];
	double left;
	ssize_t n;

	for (;;) {
		n = read(fd, text, sizeof(text));
		if (n > 0) {
			split(splitter, text, n);
			continue;
		}
		left = until - now();
		if (left <= 0 || stopped())
			return;
		poll(&in, 1, left < 0.1 ? left * 1000 + 1 : 100);
	}
}

static int trace_instance(const char *instance, double seconds, struct splitter *splitter)
{
	char *path = xasprintf("%s/trace_pipe", instance);
	int fd, err;

	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	err = fd < 0 ? errno : switch_on(instance);
	if (!err)
		read_pipe(fd, now() + seconds, splitter);
	if (fd >= 0)
		close(fd);
	free(path);
	return err;
}

/* Each line of the trace of so many seconds goes to @take. Returns an exit code. */
int trace_live(const struct rnbd *r, double seconds, void (*take)(void *arg, char *line),
	       void *arg)
{
	struct splitter splitter = { .take = take, .arg = arg };
	char *instance;
	int err = 0;

	instance = xasprintf("%s/instances/rnbd-%d", find_tracefs(r), getpid());
	stop_on_signals();
	if (mkdir(instance, 0700))
		err = errno;
	if (!err) {
		err = trace_instance(instance, seconds, &splitter);
		rmdir(instance);
	}
	if (err)
		report_failed("can't trace in %s: %s", instance, strerror(err));
	free(instance);
	if (err == EACCES || err == EPERM)
		return RNBD_NO_PERMISSION;
	return err ? RNBD_FAILED : RNBD_OK;
}
