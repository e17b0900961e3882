// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd recover: reconnects disconnected paths, then reopens closed devices
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

/* Names of the objects to recover; NULL matches all. */
struct target {
	const char *session, *path, *device;
};

enum { PATHS = 1 << 0, DEVICES = 1 << 1 };

static bool wanted(const char *name, const char *want)
{
	return !want || (name && !strcmp(name, want));
}

/* Keep the last error. Recovery continues after errors. */
static void note(int *ret, int one)
{
	if (one)
		*ret = one;
}

static int recover_path(const struct rnbd *r, const struct path *path)
{
	char *doing = xasprintf("reconnect %s of %s", path->name, path->session->name);
	int ret = sysfs_set(r, doing, path->dir, "reconnect", "1");

	free(doing);
	if (!ret && !r->dry_run)
		printf("%s: %s is connected\n", path->session->name, path->name);
	return ret;
}

static int recover_paths(const struct rnbd *r, const struct model *model,
			 const struct target *target)
{
	const struct session *session;
	int ret = RNBD_OK;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++) {
		session = &model->sessions[i];
		for (j = 0; wanted(session->name, target->session) && j < session->nr_paths; j++)
			if (wanted(session->paths[j].name, target->path) &&
			    !path_connected(&session->paths[j]))
				note(&ret, recover_path(r, &session->paths[j]));
	}
	return ret;
}

/* Reopen a device. EALREADY is no error, as the driver may have reopened it meanwhile. */
static int recover_device(const struct rnbd *r, const struct device *dev)
{
	char *doing = xasprintf("open %s again", dev->name);
	int ret = sysfs_set_unless(r, doing, dev->dir, "remap_device", "1", EALREADY);

	free(doing);
	if (!ret && !r->dry_run)
		printf("%s: %s is open\n", dev->session ? dev->session : "?", dev->name);
	return ret;
}

/* Reopen devices. Read the model again: reconnecting a path may have reopened some. */
static int recover_devices(const struct rnbd *r, const struct target *target)
{
	const struct device *dev;
	struct model model;
	int ret = RNBD_OK;
	size_t i;

	model_read(r, &model);
	for (i = 0; i < model.nr_devices; i++) {
		dev = &model.devices[i];
		if (wanted(dev->session, target->session) && wanted(dev->name, target->device) &&
		    dev->state && !strcmp(dev->state, "closed"))
			note(&ret, recover_device(r, dev));
	}
	model_free(&model);
	return ret;
}

/* Set the target. For a device, it includes the paths of the session. */
static void aim(const struct found *found, struct target *target)
{
	if (found->device) {
		target->device = found->device->name;
		target->session = found->device->session;
	} else if (found->session) {
		target->session = found->session->name;
	} else if (found->path) {
		target->path = found->path->name;
		target->session = found->path->session->name;
	}
}

/* Check for "all", but not where it can be the name of a session or device. */
static bool is_all(enum object of, int argc, char **argv)
{
	return !argc || ((of == ANY || of == PATH) && !strcmp(argv[argc - 1], "all"));
}

static int find_target(const struct model *model, enum object of, int argc, char **argv,
		       struct target *target)
{
	struct found found = { 0 };
	int ret = RNBD_OK;

	if (!is_all(of, argc, argv))
		ret = find_object(model, of, argc, argv, &found);
	else if (argc > 1)
		ret = find_session(model, argv[0], &found.session);
	if (!ret)
		aim(&found, target);
	return ret;
}

static int recover(const struct rnbd *r, enum object of, unsigned int what, int argc, char **argv)
{
	struct target target = { 0 };
	struct model model;
	int ret;

	ret = need_model(r, &model);
	if (!ret)
		ret = find_target(&model, of, argc, argv, &target);
	if (!ret) {
		if (what & PATHS)
			ret = recover_paths(r, &model, &target);
		if (what & DEVICES && !target.path)
			note(&ret, recover_devices(r, &target));
	}
	model_free(&model);
	return ret;
}

/* Arguments: [NAME|all] */
int cmd_recover(struct rnbd *r, int argc, char **argv)
{
	return recover(r, ANY, PATHS | DEVICES, argc, argv);
}

int cmd_device_recover(struct rnbd *r, int argc, char **argv)
{
	return recover(r, DEVICE, PATHS | DEVICES, argc, argv);
}

int cmd_session_recover(struct rnbd *r, int argc, char **argv)
{
	return recover(r, SESSION, PATHS | DEVICES, argc, argv);
}

int cmd_session_remap(struct rnbd *r, int argc, char **argv)
{
	return recover(r, SESSION, DEVICES, argc, argv);
}

/* Arguments: [SESSION] PATH|all */
int cmd_path_recover(struct rnbd *r, int argc, char **argv)
{
	return recover(r, PATH, PATHS, argc, argv);
}
