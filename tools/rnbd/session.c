// SPDX-License-Identifier: GPL-2.0
/*
 * The session of a volume for which none is named: one that leads to the same server, or a new one
 * that is named after this host and the server.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volumes.h"

/* Convert an address to the only form that it has without a prefix; keeps names of hosts. */
static char *canonical(const char *address)
{
	size_t prefix = starts_with(address, "gid:") ? 4 : starts_with(address, "ip:") ? 3 : 0;
	char *text = name_scopes(address + prefix), *scope = strchr(text, '%'), *whole;
	char printed[INET6_ADDRSTRLEN];
	struct in6_addr in6;

	if (scope)
		*scope++ = 0;
	if (inet_pton(AF_INET6, text, &in6) != 1 ||
	    !inet_ntop(AF_INET6, &in6, printed, sizeof(printed)))
		text_copy(printed, sizeof(printed), "");
	whole = xasprintf("%s%s%s", *printed ? printed : text, scope ? "%" : "",
			  scope ? scope : "");
	free(text);
	return whole;
}

static bool same_address(const char *a, const char *b)
{
	char *x = canonical(a), *y = canonical(b);
	bool same = starts_with(a, "gid:") == starts_with(b, "gid:") && !strcmp(x, y);

	free(x);
	free(y);
	return same;
}

/* Get the destination of the path "[SRC,]DST" or "[SRC@]DST". */
static const char *destination(const char *path)
{
	const char *cut = strpbrk(path, ",@");

	return cut ? cut + 1 : path;
}

static bool is_local(const char *host)
{
	return !*host || *host == '(' || !strcmp(host, "localhost") ||
	       starts_with(host, "localhost.");
}

/*
 * Make the name of a session from this host's name and from the destination of a path, as it was
 * typed. The name is the same after a reboot. Characters that a name can't have, and those that
 * are special in patterns or links, become "-". Returns NULL if this host has no name of its own:
 * other hosts would call their sessions the same.
 */
char *session_name(const char *path)
{
	char host[HOST_NAME_MAX + 1] = "", *server, *name, *c;

	if (gethostname(host, sizeof(host) - 1) || is_local(host))
		return NULL;
	server = canonical(destination(path));
	name = xasprintf("%s_%s", host, server);
	for (c = name; *c; c++)
		if (!isascii(*c) || (!isalnum(*c) && !strchr("-_:", *c)))
			*c = '-';
	free(server);
	return name;
}

/* Sessions that lead to the same server */
struct candidates {
	/* Name that a new session would have; NULL if this host has no name */
	const char *own;
	const char *first, *second;
	bool has_own;
};

static void add_candidate(struct candidates *found, const char *session)
{
	if (found->own && !strcmp(found->own, session))
		found->has_own = true;
	if (!found->first)
		found->first = session;
	else if (!found->second && strcmp(found->first, session))
		found->second = session;
}

static void find_open(const struct model *model, const char *server, struct candidates *found)
{
	const struct session *session;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++) {
		session = &model->sessions[i];
		for (j = 0; session->side == CLIENT && j < session->nr_paths; j++)
			if (session->paths[j].dst_addr &&
			    same_address(session->paths[j].dst_addr, server))
				add_candidate(found, session->name);
	}
}

/* Check whether one of the paths, "[SRC,]DST path=[SRC,]DST", leads to the server. */
static bool leads_to(const char *paths, const char *server)
{
	char *copy = xstrdup(paths), *rest = copy, *path;
	bool leads = false;

	while (!leads && (path = strsep(&rest, " ")))
		leads = same_address(destination(starts_with(path, "path=") ? path + 5 : path),
				     server);
	free(copy);
	return leads;
}

static void find_saved(const struct volumes *volumes, const char *server, struct candidates *found)
{
	const struct volume *volume;
	size_t i;

	for (i = 0; i < volumes->nr; i++) {
		volume = &volumes->all[i];
		if (volume->options[PATHS] && leads_to(volume->options[PATHS], server))
			add_candidate(found, volume->session);
	}
}

static int choose(const struct candidates *found, const char *typed, char **session)
{
	if (found->has_own || (!found->first && found->own))
		*session = xstrdup(found->own);
	else if (found->second)
		return report_usage("sessions %s and %s lead to %s: add from SESSION",
				    found->first, found->second, destination(typed));
	else if (found->first)
		*session = xstrdup(found->first);
	else
		return report_usage("this machine has no name for the session: add from SESSION");
	return RNBD_OK;
}

/*
 * Find the session for a path: an open one that leads to the same server, or else one in the table
 * of volumes, or else a new one. @typed is the path as it was typed, @path in the kernel's format.
 * Sets @joined if the session is not new. Returns an exit code; the caller frees @session.
 */
int session_for(const struct rnbd *r, const char *typed, const char *path, char **session,
		bool *joined)
{
	char *own = session_name(typed);
	struct candidates found = { .own = own };
	struct volumes volumes;
	struct model model;
	int ret;

	model_read(r, &model);
	volumes_read(r, NULL, &volumes, NULL, NULL);
	find_open(&model, destination(path), &found);
	if (!found.first)
		find_saved(&volumes, destination(path), &found);
	*joined = found.first;
	ret = choose(&found, typed, session);
	volumes_free(&volumes);
	model_free(&model);
	free(own);
	return ret;
}
