// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd volume: maps, unmaps, lists and checks the volumes of the table, see rnbd-volumes(5)
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volumes.h"

/*
 * Delays in seconds between attempts, doubled each time. The longest delay is short if no server
 * answers, to find the server soon when it starts. It is longer if the server refuses the device,
 * since each refusal is logged on both hosts.
 */
#define FIRST_DELAY 1
#define LONGEST_DELAY 10
#define LONGEST_REFUSED_DELAY 60
/* Time for which the unit's start, and so other remote file systems, wait for a mapping */
static const double start_seconds = 5;

/* Time to wait for a disk in use; a shutdown then unmaps it by force. */
#define IN_USE_SECONDS 10

static const struct column columns[] = {
	{ "name", "NAME", TEXT },
	{ "session", "SESSION", TEXT },
	{ "device_path", "VOLUME", TEXT },
	{ "device", "DEVICE", TEXT },
	{ "state", "STATE", TEXT },
};

static void report(void *arg, const char *text)
{
	(void)arg;
	report_usage("%s", text);
}

static void add_paths(struct json_object *to, const char *paths)
{
	static const char between[] = " path=";
	struct json_object *array = json_new_array();
	const char *next;
	char *path;

	for (; paths; paths = next ? next + strlen(between) : NULL) {
		next = strstr(paths, between);
		path = xasprintf("%.*s", next ? (int)(next - paths) : (int)strlen(paths), paths);
		json_append(array, json_new_string(path));
		free(path);
	}
	json_add(to, "paths", array);
}

static void add_lines(struct json_object *to, const struct volumes *volumes,
		      const struct volume *volume)
{
	struct json_object *options = json_new();
	size_t i;

	for (i = 0; i < NR_VOLUME_OPTIONS; i++)
		if (i != PATHS)
			json_add_string(options, volume_option_name(i),
					volumes_option(volumes, volume, i));
	json_add(to, "options", options);
	add_paths(to, volumes_option(volumes, volume, PATHS));
	json_add_bool(to, "noauto", volume->noauto);
	json_add_bool(to, "nofail", volume->nofail);
	json_add_int(to, "line", volume->line);
}

static const struct device *find_disk(const struct model *model, const char *session,
				      const char *device)
{
	const struct device *dev;
	size_t i;

	for (i = 0; i < model->nr_devices; i++) {
		dev = &model->devices[i];
		if (dev->side == CLIENT && dev->session && dev->mapping_path &&
		    !strcmp(dev->session, session) && !strcmp(dev->mapping_path, device))
			return dev;
	}
	return NULL;
}

static struct json_object *volume_json(const struct rnbd *r, const struct model *model,
				       const struct volumes *volumes, const struct volume *volume)
{
	const struct device *dev = find_disk(model, volume->session, volume->device);
	struct json_object *to = json_new();
	char *node = dev ? xasprintf("%s/%s", r->dev, dev->name) : NULL;

	json_add_string(to, "name", volume->name);
	json_add_string(to, "session", volume->session);
	json_add_string(to, "device_path", volume->device);
	json_add_string(to, "device", node);
	json_add_string(to, "state", dev ? dev->state : NULL);
	add_lines(to, volumes, volume);
	free(node);
	return to;
}

/* List the volumes of the table, with their disks and states. */
int cmd_volume_list(struct rnbd *r, int argc, char **argv)
{
	struct json_object *rows = json_new_array(), *whole;
	struct volumes volumes;
	struct model model;
	size_t i;
	int ret;

	(void)argc;
	(void)argv;
	ret = volumes_read(r, NULL, &volumes, report, NULL);
	model_read(r, &model);
	for (i = 0; i < volumes.nr; i++)
		json_append(rows, volume_json(r, &model, &volumes, &volumes.all[i]));
	if (r->json) {
		whole = json_new();
		json_add(whole, "volumes", json_object_get(rows));
		json_print(whole);
		json_object_put(whole);
	} else {
		print_list(r, rows, columns, ARRAY_SIZE(columns), "volumes");
	}
	json_object_put(rows);
	model_free(&model);
	volumes_free(&volumes);
	return ret;
}

/* Arguments: [FILE] */
int cmd_volume_check(struct rnbd *r, int argc, char **argv)
{
	struct volumes volumes;
	int ret;

	if (argc)
		r->volumes = argv[0];
	if (access(r->volumes, R_OK))
		return report_not_found("%s: %s", r->volumes, strerror(errno));
	ret = volumes_read(r, NULL, &volumes, report, NULL);
	if (!ret && volumes.wrong)
		ret = RNBD_FAILED;
	else if (!ret)
		printf("%s: %zu volumes\n", r->volumes, volumes.nr);
	volumes_free(&volumes);
	return ret;
}

/*
 * Arguments: DISK. For udev: print the name that the table has for a disk, whoever mapped it.
 * Reads only this disk, as udev asks for each of its events.
 */
int cmd_volume_name(struct rnbd *r, int argc, char **argv)
{
	char *session, *path;
	struct volumes volumes;
	int ret = RNBD_NOT_FOUND;
	size_t i;

	(void)argc;
	session = sysfs_read(r, "block/%s/rnbd/session", argv[0]);
	path = sysfs_read(r, "block/%s/rnbd/mapping_path", argv[0]);
	volumes_read(r, NULL, &volumes, NULL, NULL);
	for (i = 0; ret && session && path && i < volumes.nr; i++) {
		if (strcmp(volumes.all[i].session, session) ||
		    strcmp(volumes.all[i].device, path))
			continue;
		puts(volumes.all[i].name);
		ret = RNBD_OK;
	}
	volumes_free(&volumes);
	free(path);
	free(session);
	return ret;
}

static void send_change(const struct rnbd *r, const char *dir)
{
	char *doing = xasprintf("send udev a change of %s", dir);

	if (sysfs_exists(r, "%s/uevent", dir))
		sysfs_set(r, doing, dir, "uevent", "change");
	free(doing);
}

/* Have udev renew the links of a disk and of its partitions, as the table may have changed. */
void announce_disk(const struct rnbd *r, const char *session, const char *device)
{
	const struct device *dev;
	struct model model;
	char **names, *dir;
	size_t nr, i;

	model_read(r, &model);
	dev = find_disk(&model, session, device);
	if (dev) {
		dir = xasprintf("block/%s", dev->name);
		send_change(r, dir);
		names = sysfs_list(r, &nr, "%s", dir);
		free(dir);
		for (i = 0; i < nr; i++) {
			dir = xasprintf("block/%s/%s", dev->name, names[i]);
			if (starts_with(names[i], dev->name))
				send_change(r, dir);
			free(dir);
			free(names[i]);
		}
		free(names);
	}
	model_free(&model);
}

/* Map once. Returns the errno, which is reported unless it is @quiet; sets the exit code. */
static int try_map(const struct rnbd *r, const struct volumes *volumes,
		   const struct volume *volume, int quiet, int *code)
{
	char *doing = xasprintf("map volume %s", volume->name);
	char *line = volumes_line(volumes, volume);
	int err;

	err = sysfs_try(r, doing, CLIENT_CTL, "map_device", line, quiet, code);
	free(line);
	free(doing);
	return err;
}

/*
 * Check for errors after which a retry is useless. Only errors from this host are: a refusal by the
 * server can be forged, and the server's configuration can change. EACCES and EPERM are from this
 * host if the user is not root.
 */
static bool is_final(int err)
{
	return (err == EACCES || err == EPERM) && geteuid();
}

static double next_delay(double delay, int err)
{
	bool refused = err == ENOENT || err == EBUSY || err == EROFS || err == ENOTBLK ||
		       err == EMFILE || err == EOPNOTSUPP || err == EINVAL ||
		       err == ENAMETOOLONG || err == EACCES || err == EPERM;
	double longest = refused ? LONGEST_REFUSED_DELAY : LONGEST_DELAY;

	return delay * 2 < longest ? delay * 2 : longest;
}

/* Vary a delay, so that many clients don't connect to a server at the same time. */
static double jittered(double delay)
{
	return delay * (0.75 + drand48() / 4);
}

/* Retry until the volume is mapped. An errno is not reported again for consecutive attempts. */
static int map_waiting(const struct rnbd *r, const struct volumes *volumes,
		       const struct volume *volume)
{
	double delay = FIRST_DELAY;
	int err, last = 0, code;

	notify_ready_within(&start_seconds);
	srand48(getpid());
	for (;;) {
		err = try_map(r, volumes, volume, last, &code);
		if (!err || err == EEXIST)
			return RNBD_OK;
		if (is_final(err))
			return code;
		notify_status("trying %s again: %s", volume->session, strerror(err));
		delay = err == last ? next_delay(delay, err) : FIRST_DELAY;
		last = err;
		nap(jittered(delay));
	}
}

static bool is_mapped(const struct rnbd *r, const struct volume *volume)
{
	struct model model;
	bool is;

	model_read(r, &model);
	is = find_disk(&model, volume->session, volume->device);
	model_free(&model);
	return is;
}

static int map_volume(const struct rnbd *r, const struct volumes *volumes,
		      const struct volume *volume)
{
	int ret = RNBD_OK;
	bool late;

	if (!sysfs_exists(r, CLIENT_CTL))
		ret = report_no_module(r, CLIENT);
	else if (is_mapped(r, volume))
		announce_disk(r, volume->session, volume->device);
	else if (r->wait)
		ret = map_waiting(r, volumes, volume);
	else
		try_map(r, volumes, volume, 0, &ret);
	if (!ret && !r->dry_run)
		ret = report_mapped(r, volume->device, volume->session, NULL);
	late = notified_ready();
	if (!ret && r->wait)
		notify_status("mapped");
	/* Mounts may have timed out if the unit was reported as started before the disk existed. */
	if (!ret && late)
		start_mounts();
	if (!ret || !r->wait || !volume->nofail)
		return ret;
	notify_status("not mapped");
	return RNBD_OK;
}

/* Stop md arrays on a disk or its partition @below: nothing else stops them in a shutdown. */
static void stop_arrays(const struct rnbd *r, const struct device *dev, const char *below)
{
	char **names, *dir, *doing;
	size_t nr, i;

	names = sysfs_list(r, &nr, "block/%s/%s/holders", dev->name, below);
	for (i = 0; i < nr; i++) {
		dir = xasprintf("block/%s/md", names[i]);
		doing = xasprintf("stop %s", names[i]);
		if (sysfs_exists(r, "%s", dir))
			sysfs_set_unless(r, doing, dir, "array_state", "clear", EBUSY);
		free(doing);
		free(dir);
		free(names[i]);
	}
	free(names);
}

static void stop_all_arrays(const struct rnbd *r, const struct device *dev)
{
	char **names;
	size_t nr, i;

	stop_arrays(r, dev, ".");
	names = sysfs_list(r, &nr, "block/%s", dev->name);
	for (i = 0; i < nr; i++) {
		if (starts_with(names[i], dev->name))
			stop_arrays(r, dev, names[i]);
		free(names[i]);
	}
	free(names);
}

/*
 * Unmap a disk, waiting for a limited time while it is in use. During a shutdown, it is then
 * unmapped by force, even if a file system could not be unmounted: the network is stopped next,
 * after which the disk would have no server.
 */
static int unmap_waiting(const struct rnbd *r, const struct device *dev)
{
	double end = now() + IN_USE_SECONDS;
	bool down;
	int code;

	if (try_unmap(r, dev, "normal", EBUSY, &code) != EBUSY)
		return code;
	down = shutting_down();
	do {
		/* Retried, as an array is in use until its file systems are unmounted. */
		if (down)
			stop_all_arrays(r, dev);
		if (try_unmap(r, dev, "normal", EBUSY, &code) != EBUSY)
			return code;
		nap(0.2);
	} while (now() < end);
	if (!down && !shutting_down()) {
		try_unmap(r, dev, "normal", 0, &code);
		return code;
	}
	report_failed("%s is in use, and removed all the same", dev->name);
	try_unmap(r, dev, "force", 0, &code);
	return code;
}

static int unmap_volume(const struct rnbd *r, const struct volume *volume, bool force)
{
	const struct device *dev;
	struct model model;
	int ret = RNBD_OK;

	model_read(r, &model);
	dev = find_disk(&model, volume->session, volume->device);
	if (!dev && !r->wait)
		ret = report_not_found("volume %s is not mapped", volume->name);
	else if (dev && r->wait)
		ret = unmap_waiting(r, dev);
	else if (dev)
		ret = unmap_device(r, dev, force ? "force" : "normal");
	model_free(&model);
	return ret;
}

/* Action of "map all": map a volume unless it has noauto. */
static int map_if_auto(const struct rnbd *r, const struct volumes *volumes,
		       const struct volume *volume)
{
	return volume->noauto ? RNBD_OK : map_volume(r, volumes, volume);
}

static int unmap_normally(const struct rnbd *r, const struct volumes *volumes,
			  const struct volume *volume)
{
	(void)volumes;
	return unmap_volume(r, volume, false);
}

static int unmap_by_force(const struct rnbd *r, const struct volumes *volumes,
			  const struct volume *volume)
{
	(void)volumes;
	return unmap_volume(r, volume, true);
}

static int unmap_if_mapped(const struct rnbd *r, const struct volumes *volumes,
			   const struct volume *volume)
{
	return is_mapped(r, volume) ? unmap_normally(r, volumes, volume) : RNBD_OK;
}

typedef int action(const struct rnbd *r, const struct volumes *volumes,
		   const struct volume *volume);

/* Restore "-", which systemd replaces by "/" in a unit's instance. Names have no "/". */
static char *volume_name(const char *instance)
{
	char *name = xstrdup(instance), *c;

	for (c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

/* Apply @to_one to a volume, or @to_each to all if @called is "all". Returns the last error. */
static int do_volumes(const struct rnbd *r, const char *called, action *to_one, action *to_each)
{
	bool all = !strcmp(called, "all");
	char *name = volume_name(called);
	const struct volume *volume;
	struct volumes volumes;
	int ret, one;
	size_t i;

	ret = volumes_read(r, all ? NULL : name, &volumes, report, NULL);
	volume = volumes_find(&volumes, name);
	if (!ret && volume)
		ret = to_one(r, &volumes, volume);
	else if (!ret && !all)
		ret = report_not_found("no line of %s is a volume called '%s'", r->volumes, name);
	for (i = 0; all && i < volumes.nr; i++) {
		one = to_each(r, &volumes, &volumes.all[i]);
		ret = one ? one : ret;
	}
	volumes_free(&volumes);
	free(name);
	return ret;
}

/* Arguments: NAME|all */
int cmd_volume_map(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return do_volumes(r, argv[0], map_volume, map_if_auto);
}

/* Arguments: NAME [force], or all */
int cmd_volume_unmap(struct rnbd *r, int argc, char **argv)
{
	if (argc == 2 && (strcmp(argv[1], "force") || !strcmp(argv[0], "all")))
		return report_usage("volume unmap NAME [force], or volume unmap all");
	return do_volumes(r, argv[0], argc == 2 ? unmap_by_force : unmap_normally,
			  unmap_if_mapped);
}
