// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of how the server reacts: on the wire, in sysfs and in the kernel's log
 */
#include <stdlib.h>
#include <unistd.h>

#include "hostile.h"

#define END_MS	8000
/* The server may have to detect by a timeout that nothing answers. */
#define LOG_MS	10000
/* A rate-limited log is complete after this time without a new line. */
#define QUIET_MS	1000

/* Before the server knows the name of a path, it logs only the addresses. */
static bool unnamed(const char *line)
{
	const char *name = strstr(line, ": ");

	return name && !strncmp(name + 2, "ip:", 3);
}

/* Is the line about another path than @p? An earlier case's unnamed path may end late. */
static bool foreign(const char *line, const struct path *p)
{
	const char *name = strstr(line, ": ");
	size_t len;

	if (!p || !name)
		return false;
	if (unnamed(line))
		return p->nr_info || strstr(line, "handshake");
	name += 2;
	len = strlen(p->sess);
	return strncmp(name, p->sess, len) || name[len] != ' ';
}

/* Waits for a line with the text, about @p if it is not NULL. */
static const char *logged(const char *text, const struct path *p)
{
	u64 end = now_ms() + LOG_MS;
	const char *line;
	unsigned int i = 0;

	for (;;) {
		while ((line = log_line(i))) {
			i++;
			if (strstr(line, text) && !foreign(line, p))
				return line;
		}
		if (now_ms() > end)
			return NULL;
		nap_us(5000);
	}
}

/* Waits until the log has no new lines. */
static int log_quiet(void)
{
	u64 end = now_ms() + LOG_MS, quiet_from = now_ms();
	unsigned int i = 0;

	while (now_ms() < quiet_from + QUIET_MS) {
		if (now_ms() > end)
			return fail("the log never becomes quiet");
		if (log_line(i)) {
			i++;
			quiet_from = now_ms();
		} else {
			nap_us(5000);
		}
	}
	return 0;
}

/* Waits for the messages about the ends of @nr unnamed paths. HOSTILE_LIMITED: some are missing. */
int unnamed_ends_logged(unsigned int nr)
{
	u64 end = now_ms() + LOG_MS;
	unsigned int i = 0, n = 0;
	const char *line;

	if (getenv("HOSTILE_LIMITED"))
		return log_quiet();
	while (n < nr) {
		line = log_line(i);
		if (line) {
			i++;
			n += unnamed(line) && strstr(line, "path ends: ");
		} else if (now_ms() > end) {
			return fail("the log has the ends of %u paths, not %u", n, nr);
		} else {
			nap_us(5000);
		}
	}
	return 0;
}

/* Does the line contain the text, or the errno of that name as a number? */
static bool has_reason(const char *line, const char *reason)
{
	static const struct { const char *name; int err; } errs[] = {
		{ "EINVAL", EINVAL }, { "EPROTO", EPROTO }, { "EEXIST", EEXIST },
	};
	char number[16];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		snprintf(number, sizeof(number), "(-%d)", errs[i].err);
		if (!strcmp(reason, errs[i].name) && strstr(line, number))
			return true;
	}
	return strstr(line, reason);
}

static int wait_end(struct path *p, int ms)
{
	u64 end = now_ms() + ms;

	while (!path_ended(p)) {
		path_poll(p);
		if (now_ms() > end)
			return fail("the path has not ended");
		nap_us(200);
	}
	count_ended();
	return 0;
}

/* The server ends the path and logs why. */
int must_end(struct path *p, const char *reason)
{
	const char *line;

	if (wait_end(p, END_MS))
		return -1;
	if (quiet)
		return 0;
	line = logged("path ends: ", p);
	if (!line)
		return fail("no reason in the log");
	if (reason && !has_reason(line, reason))
		return fail("the log's reason is: %s", line);
	snprintf(note, sizeof(note), "%s", strstr(line, "path ends: "));
	return 0;
}

/* The same after a timeout of the server */
int must_end_late(struct path *p)
{
	return wait_end(p, 60000);
}

/* The server ends the path. Does not check the log, which may be rate-limited. */
int must_end_quietly(struct path *p)
{
	return wait_end(p, END_MS);
}

/* The session ends. */
int must_go(const char *sess, int ms)
{
	u64 end = now_ms() + ms;
	char dir[320];

	snprintf(dir, sizeof(dir), "/sys/class/rtrs-server/%s", sess);
	while (!access(dir, F_OK)) {
		if (now_ms() > end)
			return fail("the session is still there");
		nap_us(20000);
	}
	return 0;
}

/* The path works: a heartbeat is answered. */
int must_live(struct path *p)
{
	u64 end = now_ms() + END_MS;
	unsigned int acks = p->hb_acks;

	if (send_imm(p, 0, (u32)IMM_HB_MSG << 28))
		return fail("can't send a heartbeat");
	while (p->hb_acks == acks) {
		path_poll(p);
		if (path_ended(p))
			return fail("the path ended");
		if (now_ms() > end)
			return fail("heartbeat not answered");
		nap_us(100);
	}
	if (p->unexpected)
		return fail("%u messages that no server sends", p->unexpected);
	return 0;
}

/* The request is answered with an errno. */
int must_answer(struct path *p, const struct request *r, int err)
{
	int got = do_request(p, r);

	if (got > 0)
		return -1;
	if (got != err)
		return fail("answered with %d, not %d", got, err);
	return 0;
}

/* The request is answered with any errno. */
int must_answer_some(struct path *p, const struct request *r)
{
	return do_request(p, r) > 0 ? -1 : 0;
}

/* Frees the path at the end of a case. */
int end_with(struct path *p, int ret)
{
	path_free(p);
	return ret;
}

/* @got: result of connecting, 1 for a reject. It must have the errno, or any if @err is 0. */
int must_refuse(struct path *p, int got, int err)
{
	if (got < 0)
		return -1;
	if (!got)
		return fail("accepted");
	if (p->reject_err >= 0 || (err && p->reject_err != err))
		return fail("rejected with %d, not %d", p->reject_err, err);
	count_refused();
	if (!quiet && !logged("refused", NULL))
		return fail("the reject is not in the log");
	snprintf(note, sizeof(note), "refused with %d", p->reject_err);
	return 0;
}
