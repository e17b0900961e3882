// SPDX-License-Identifier: GPL-2.0
/*
 * What is to come of something wrong, as seen from outside and in the kernel's log.
 */
#include "hostile.h"

#define END_MS	8000

/* Is it in the log, or will it be soon? */
static bool logged(const char *text, char *line, size_t len)
{
	u64 end = now_ms() + 2000;

	while (!log_has(text, line, len)) {
		if (now_ms() > end)
			return false;
		nap_us(5000);
	}
	return true;
}

/* The server ends the path by itself, and says why. */
int must_end(struct path *p, const char *reason)
{
	u64 end = now_ms() + END_MS;
	char line[300];

	while (!path_ended(p)) {
		path_poll(p);
		if (now_ms() > end)
			return fail("the path lives on");
		nap_us(200);
	}
	count_logged();
	if (!logged("path ends: ", line, sizeof(line)))
		return fail("no reason in the log");
	if (reason && !strstr(line, reason))
		return fail("the log's reason is: %s", line);
	snprintf(note, sizeof(note), "%s", strstr(line, "path ends: "));
	return 0;
}

/* The path goes on: a heartbeat is answered. */
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
		return fail("%u messages that no server would send",
			    p->unexpected);
	return 0;
}

/* The request is answered with an errno, and nothing else happens. */
int must_answer(struct path *p, const struct request *r, int err)
{
	int got = do_request(p, r);

	if (got > 0)
		return -1;
	if (got != err)
		return fail("answered with %d, not %d", got, err);
	return 0;
}

/* Connecting gave 1 for a reject, with this errno (0: any). */
int must_refuse(struct path *p, int got, int err)
{
	char line[300];

	if (got < 0)
		return -1;
	if (!got)
		return fail("it was accepted");
	if (p->reject_err >= 0 || (err && p->reject_err != err))
		return fail("rejected with %d, not %d", p->reject_err, err);
	count_logged();
	if (!logged("refused", line, sizeof(line)))
		return fail("the refusal isn't in the log");
	snprintf(note, sizeof(note), "refused with %d", p->reject_err);
	return 0;
}
