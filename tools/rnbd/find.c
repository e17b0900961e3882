// SPDX-License-Identifier: GPL-2.0
/*
 * Lookup of devices, sessions and paths by the names on the command line. Each function returns
 * an exit code, and reports errors.
 */
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

static bool same(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

/* Match "rnbd0", "/dev/rnbd0", the mapped path, or the mapped path and "@SESSION". */
static bool device_matches(const struct device *dev, const char *name)
{
	size_t n;

	if (same(dev->name, name))
		return true;
	if (dev->side == CLIENT && starts_with(name, "/dev/") && same(dev->name, name + 5))
		return true;
	if (!dev->mapping_path || !dev->session)
		return false;
	n = strlen(dev->mapping_path);
	if (strncmp(dev->mapping_path, name, n))
		return false;
	return !name[n] || (name[n] == '@' && same(dev->session, name + n + 1));
}

static bool address_matches(const char *address, const char *name)
{
	if (!address)
		return false;
	return !strcmp(address, name) ||
	       (starts_with(address, "ip:") && !strcmp(address + 3, name));
}

/* Match "SRC@DST", either address, the RDMA device, or the RDMA device and ":PORT". */
static bool path_matches(const struct path *path, const char *name)
{
	char *numbered = number_scopes(name);
	bool matches;
	size_t n;

	matches = same(path->name, numbered) || address_matches(path->src_addr, numbered) ||
		  address_matches(path->dst_addr, numbered);
	free(numbered);
	if (matches)
		return true;
	if (!path->hca_name)
		return false;
	n = strlen(path->hca_name);
	if (strncmp(path->hca_name, name, n))
		return false;
	return !name[n] || (name[n] == ':' && strtol(name + n + 1, NULL, 10) == path->hca_port);
}

/* Match a path, or "SESSION/PATH". */
static bool session_path_matches(const struct path *path, const char *name)
{
	size_t n = strlen(path->session->name);

	return path_matches(path, name) ||
	       (!strncmp(path->session->name, name, n) && name[n] == '/' &&
		path_matches(path, name + n + 1));
}

static int verdict(size_t nr, const char *kind, const char *name)
{
	if (!nr)
		return report_not_found("no %s is called '%s'; see: rnbd list", kind, name);
	if (nr > 1)
		return report_not_found("%zu %ss are called '%s': say which one, or which side", nr,
					kind, name);
	return RNBD_OK;
}

static size_t match_devices(const struct model *model, const char *name, const char *session,
			    const struct device **dev)
{
	size_t i, n = 0;

	for (i = 0; i < model->nr_devices; i++) {
		if (!device_matches(&model->devices[i], name) ||
		    (session && !same(model->devices[i].session, session)))
			continue;
		*dev = &model->devices[i];
		n++;
	}
	return n;
}

static size_t match_sessions(const struct model *model, const char *name,
			     const struct session **session)
{
	size_t i, n = 0;

	for (i = 0; i < model->nr_sessions; i++) {
		if (strcmp(model->sessions[i].name, name))
			continue;
		*session = &model->sessions[i];
		n++;
	}
	return n;
}

static size_t match_paths(const struct model *model, const char *session, const char *name,
			  const struct path **found)
{
	const struct path *path;
	size_t i, j, n = 0;

	for (i = 0; i < model->nr_sessions; i++) {
		if (session && strcmp(model->sessions[i].name, session))
			continue;
		for (j = 0; j < model->sessions[i].nr_paths; j++) {
			path = &model->sessions[i].paths[j];
			if (!session_path_matches(path, name))
				continue;
			*found = path;
			n++;
		}
	}
	return n;
}

/* Check whether find_device() would find one or more devices. Reports nothing. */
bool has_device(const struct model *model, const char *name, const char *session)
{
	const struct device *dev;

	return match_devices(model, name, session, &dev);
}

/* Find a device. If @session is NULL, it can be of any session. */
int find_device(const struct model *model, const char *name, const char *session,
		const struct device **dev)
{
	return verdict(match_devices(model, name, session, dev), "device", name);
}

int find_session(const struct model *model, const char *name, const struct session **session)
{
	return verdict(match_sessions(model, name, session), "session", name);
}

/* Find a path. If @session is NULL, it can be of any session. */
int find_path(const struct model *model, const char *session, const char *name,
	      const struct path **path)
{
	return verdict(match_paths(model, session, name, path), "path", name);
}

/* Find a device, session or path by a name, which must match only one of these kinds. */
int find_any(const struct model *model, const char *name, struct found *found)
{
	size_t devices, sessions, paths;

	memset(found, 0, sizeof(*found));
	devices = match_devices(model, name, NULL, &found->device);
	sessions = match_sessions(model, name, &found->session);
	paths = match_paths(model, NULL, name, &found->path);
	if (!!devices + !!sessions + !!paths > 1)
		return report_not_found("'%s' means several things:%s%s%s", name,
					devices ? " a device" : "", sessions ? " a session" : "",
					paths ? " a path" : "");
	if (devices)
		return verdict(devices, "device", name);
	if (sessions)
		return verdict(sessions, "session", name);
	return verdict(paths, paths ? "path" : "device, session or path", name);
}

/* Find an object by arguments: DEVICE, SESSION, [SESSION] PATH, or any of these if @of is ANY. */
int find_object(const struct model *model, enum object of, int argc, char **argv,
		struct found *found)
{
	const char *first = argc > 1 ? argv[0] : NULL, *name = argv[argc - 1];

	memset(found, 0, sizeof(*found));
	switch (of) {
	case DEVICE:
		return find_device(model, name, NULL, &found->device);
	case SESSION:
		return find_session(model, name, &found->session);
	case PATH:
		return find_path(model, first, name, &found->path);
	default:
		return find_any(model, name, found);
	}
}
