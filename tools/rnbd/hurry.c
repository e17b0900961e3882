// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd session hurry: shortens timeouts before a shutdown. Otherwise, writes during the unmounting
 * of file systems could wait without a limit for a server that is gone.
 */
#include <stdlib.h>

#include "rnbd.h"

static const struct {
	const char *name;
	/* Largest value to keep; larger ones, and -1 for no limit, are replaced by it. */
	long long most;
} settings[] = {
	/* These two limit the time before a dead server is detected. */
	{ "hb_max_missed", 5 },
	{ "hb_interval_ms", 1000 },
	{ "failover_timeout", 10 },
};

static int hurry(const struct rnbd *r, const struct session *session)
{
	int ret = RNBD_OK, one;
	char *doing, *text;
	long long value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (!sysfs_read_number(r, &value, "%s/%s", session->dir, settings[i].name) ||
		    (value >= 0 && value <= settings[i].most))
			continue;
		doing = xasprintf("set %s of %s", settings[i].name, session->name);
		text = xasprintf("%lld", settings[i].most);
		one = sysfs_set(r, doing, session->dir, settings[i].name, text);
		ret = one ? one : ret;
		free(text);
		free(doing);
	}
	return ret;
}

int cmd_session_hurry(struct rnbd *r, int argc, char **argv)
{
	struct model model;
	int ret = RNBD_OK, one;
	size_t i;

	(void)argc;
	(void)argv;
	model_read(r, &model);
	for (i = 0; i < model.nr_sessions; i++) {
		if (model.sessions[i].side != CLIENT)
			continue;
		one = hurry(r, &model.sessions[i]);
		ret = one ? one : ret;
	}
	model_free(&model);
	return ret;
}
