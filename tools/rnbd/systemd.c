// SPDX-License-Identifier: GPL-2.0
/*
 * Notification of systemd(1), and queries to it
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rnbd.h"

/* Send a notification, if the process is a service. */
static void notify(const char *text)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || n >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, n);
	/* An abstract address begins with a NUL. */
	if (*path == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
	       offsetof(struct sockaddr_un, sun_path) + n);
	close(fd);
}

static bool is_ready;

/* Report that the unit has started, unless that was reported already. */
static void notify_ready(void)
{
	if (!__atomic_exchange_n(&is_ready, true, __ATOMIC_RELAXED))
		notify("READY=1");
}

/* Check whether the unit was reported as started. */
bool notified_ready(void)
{
	return __atomic_load_n(&is_ready, __ATOMIC_RELAXED);
}

/* Report that the unit has started, and set its status line, shown by systemctl status. */
void notify_status(const char *fmt, ...)
{
	char *text, *line;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	line = xasprintf("STATUS=%s", text ? text : "");
	notify(line);
	free(line);
	free(text);
	notify_ready();
}

static void *ready_thread(void *arg)
{
	nap(*(const double *)arg);
	notify_ready();
	return NULL;
}

/* Report that the unit has started after that time, even while a write to sysfs blocks. */
void notify_ready_within(const double *seconds)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, ready_thread, (void *)seconds))
		notify_ready();
	else
		pthread_detach(thread);
}

/*
 * Check whether the machine is being shut down. If the shutdown begins during boot, the state is
 * still "starting"; in that case, there is a job for shutdown.target.
 */
bool shutting_down(void)
{
	FILE *from = popen("systemctl is-system-running 2>/dev/null;"
			   "systemctl --no-legend list-jobs shutdown.target 2>/dev/null", "re");
	char line[256], unit[32], type[32];
	bool is = false;

	while (from && fgets(line, sizeof(line), from)) {
		if (!strcmp(line, "stopping\n"))
			is = true;
		if (sscanf(line, "%*s %31s %31s", unit, type) == 2)
			is |= !strcmp(unit, "shutdown.target") && !strcmp(type, "start");
	}
	if (from)
		pclose(from);
	return is;
}

/*
 * Start the missing units of remote-fs.target again: systemd does not retry mounts whose wait for a
 * disk has timed out.
 */
void start_mounts(void)
{
	if (getenv("NOTIFY_SOCKET") &&
	    system("systemctl --no-block start remote-fs.target"))
		report_failed("file systems may have to be mounted by hand");
}
