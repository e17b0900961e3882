// SPDX-License-Identifier: GPL-2.0
/*
 * Enables tracepoints for some seconds, in a separate instance of tracefs, so that other users of
 * tracing are not disturbed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define LINE_SIZE 4096

static const char *const groups[] = { "rtrs_clt", "rtrs_srv" };

/* Get the mount of tracefs, which on older systems is only below debugfs. */
static const char *find_tracefs(const struct rnbd *r)
{
	static const char debugfs[] = "/sys/kernel/debug/tracing";
	char *path = xasprintf("%s/events", r->tracefs);
	bool is = !access(path, F_OK);

	free(path);
	return is || getenv("RNBD_TRACEFS") ? r->tracefs : debugfs;
}

/* Instance of tracefs, which is removed at exit */
static char *instance;
static int trace_pipe = -1;

/* Write to a file of the instance. Returns 0 or an errno. */
static int write_file(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", instance, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	free(path);
	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Enable the tracepoints. At least one group must exist. Returns 0 or an errno. */
static int switch_on(void)
{
	int err = ENOENT, one;
	char *name;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		name = xasprintf("events/%s/enable", groups[i]);
		one = write_file(name, "1");
		if (!one || err)
			err = one;
		free(name);
	}
	return err;
}

static void remove_instance(void)
{
	if (!instance)
		return;
	if (trace_pipe >= 0)
		close(trace_pipe);
	rmdir(instance);
	free(instance);
	instance = NULL;
	trace_pipe = -1;
}

/* Splits text into lines for @take. @line is the beginning of an incomplete line. */
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

/* Read once. Returns 1, 0 if there is nothing to read now, or a negative errno. */
static int read_some(struct splitter *splitter)
{
	char text[65536];
	ssize_t n;

	do
		n = read(trace_pipe, text, sizeof(text));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		split(splitter, text, n);
	if (n >= 0)
		return n > 0;
	return errno == EAGAIN ? 0 : -errno;
}

/*
 * Read until the time is over, or a signal arrives, even if there are always more lines. Then stop
 * the trace, and read the remaining lines. Returns 0 or an errno.
 */
static int read_pipe(double until, struct splitter *splitter)
{
	struct pollfd in = { .fd = trace_pipe, .events = POLLIN };
	double left;
	int ret = 1, err;

	while (ret >= 0 && (left = until - now()) > 0 && !stopped()) {
		ret = read_some(splitter);
		if (!ret)
			poll(&in, 1, left < 0.1 ? left * 1000 + 1 : 100);
	}
	err = write_file("tracing_on", "0");
	if (err)
		report_failed("can't stop the trace, its last lines are missing: %s",
			      strerror(err));
	else if (ret >= 0)
		while ((ret = read_some(splitter)) > 0)
			;
	return ret < 0 ? -ret : 0;
}

/* Trace in the instance. Returns 0 or an errno. */
static int trace_instance(double seconds, struct splitter *splitter)
{
	char *path = xasprintf("%s/trace_pipe", instance);
	int err;

	trace_pipe = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	err = trace_pipe < 0 ? errno : write_file("trace_clock", "mono");
	free(path);
	if (!err)
		err = switch_on();
	if (!err)
		err = read_pipe(now() + seconds, splitter);
	return err;
}

/* Trace for some seconds, and pass each line to @take. Returns an exit code. */
int trace_live(const struct rnbd *r, double seconds, void (*take)(void *arg, char *line),
	       void *arg)
{
	struct splitter splitter = { .take = take, .arg = arg };
	int err = 0;

	instance = xasprintf("%s/instances/rnbd-%d", find_tracefs(r), getpid());
	stop_on_signals();
	/* A reader of the output that exits must not prevent the removal of the instance. */
	signal(SIGPIPE, SIG_IGN);
	atexit(remove_instance);
	err = mkdir(instance, 0700) ? errno : trace_instance(seconds, &splitter);
	if (err)
		report_failed("can't trace in %s: %s", instance, strerror(err));
	remove_instance();
	if (err == EACCES || err == EPERM)
		return RNBD_NO_PERMISSION;
	return err ? RNBD_FAILED : RNBD_OK;
}
