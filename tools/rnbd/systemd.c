// SPDX-License-Identifier: GPL-2.0
/*
 * What systemd(1) wants to know, and what it knows
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rnbd.h"

static void notify(const char *path, const char *text)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int fd;

	if (n >= sizeof(to.sun_path))
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

/* The line that systemctl status shows; nothing if we aren't a service */
void notify_status(const char *fmt, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	char *text, *line;
	va_list args;

	if (!path || !*path)
		return;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	line = xasprintf("STATUS=%s", text ? text : "");
	notify(path, line);
	free(line);
	free(text);
}

/* Is the machine being shut down? */
bool shutting_down(void)
{
	FILE *from = popen("systemctl is-system-running 2>/dev/null", "re");
	char state[32] = "";

	if (!from)
		return false;
	if (!fgets(state, sizeof(state), from))
		*state = 0;
	pclose(from);
	return !strcmp(state, "stopping\n");
}

/*
 * File systems don't wait for their disks for ever, and nobody tries again to mount them: what
 * remote-fs.target lacks is started once more.
 */
void start_mounts(void)
{
	if (getenv("NOTIFY_SOCKET") &&
	    system("systemctl --no-block start remote-fs.target"))
		report_failed("file systems may have to be mounted by hand");
}
