// SPDX-License-Identifier: GPL-2.0
/*
 * Reads sessions, paths and devices from sysfs into structs. Attributes that are removed
 * meanwhile, or that an older driver lacks, are NULL, -1 or unknown.
 */
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

static const char *const setting_names[NR_SETTINGS] = {
	[MAX_RECONNECT_ATTEMPTS]	= "max_reconnect_attempts",
	[RECONNECT_DELAY_MS]		= "reconnect_delay_ms",
	[RECONNECT_DELAY_MAX_MS]	= "reconnect_delay_max_ms",
	[HB_INTERVAL_MS]		= "hb_interval_ms",
	[HB_MAX_MISSED]			= "hb_max_missed",
	[FAILOVER_TIMEOUT]		= "failover_timeout",
	[UNFENCED_DELAY_MS]		= "unfenced_delay_ms",
	[FENCING]			= "fencing",
};

const char *side_name(enum side side)
{
	static const char *const names[NR_SIDES] = { "client", "server" };

	return names[side];
}

static void free_names(char **names)
{
	char **name;

	for (name = names; *name; name++)
		free(*name);
	free(names);
}

/* Read up to @nr numbers from an attribute. Missing ones are not changed. */
static void read_numbers(const struct rnbd *r, u64 *numbers, size_t nr, const char *dir,
			 const char *attribute)
{
	char *text = sysfs_read(r, "%s/%s", dir, attribute), *at = text, *end;
	size_t i;

	for (i = 0; text && i < nr; i++, at = end) {
		numbers[i] = strtoull(at, &end, 10);
		if (end == at)
			break;
	}
	free(text);
}

static void read_path_stats(const struct rnbd *r, struct path *path)
{
	u64 rdma[6] = { 0 }, reconnects[2] = { 0 };

	read_numbers(r, rdma, ARRAY_SIZE(rdma), path->dir, "stats/rdma");
	read_numbers(r, reconnects, ARRAY_SIZE(reconnects), path->dir, "stats/reconnects");
	path->stats = (struct io_stats) {
		.reads = rdma[0],
		.read_bytes = rdma[1],
		.writes = rdma[2],
		.written_bytes = rdma[3],
		.inflight = rdma[4],
		.failed_over = rdma[5],
		.reconnects = reconnects[0],
		.failed_reconnects = reconnects[1],
	};
}

static void read_latency(const struct rnbd *r, struct latency *latency, const char *dir,
			 const char *name)
{
	char *text = sysfs_read_all(r, "%s/stats/%s", dir, name);

	if (text)
		histogram_parse_latency(latency, text);
	free(text);
}

static void read_path(const struct rnbd *r, struct path *path)
{
	char *heartbeats;

	path->state = sysfs_read(r, "%s/state", path->dir);
	path->src_addr = sysfs_read(r, "%s/src_addr", path->dir);
	/* The kernel chooses the address of this path. */
	if (path->src_addr && !strcmp(path->src_addr, "-")) {
		free(path->src_addr);
		path->src_addr = NULL;
	}
	path->dst_addr = sysfs_read(r, "%s/dst_addr", path->dir);
	path->hca_name = sysfs_read(r, "%s/hca_name", path->dir);
	if (!sysfs_read_number(r, &path->hca_port, "%s/hca_port", path->dir))
		path->hca_port = -1;
	if (!sysfs_read_number(r, &path->last_error, "%s/last_error", path->dir))
		path->last_error = 0;
	if (!sysfs_read_number(r, &path->latency_ns, "%s/cur_latency", path->dir))
		path->latency_ns = -1;
	read_path_stats(r, path);
	heartbeats = sysfs_read(r, "%s/stats/hb_latency", path->dir);
	if (heartbeats)
		histogram_parse_heartbeat(&path->heartbeats, heartbeats);
	free(heartbeats);
	read_latency(r, &path->latency, path->dir, "io_latency");
}

static void read_session(const struct rnbd *r, struct session *session)
{
	struct number *n;
	char **names;
	size_t i;

	session->mp_policy = sysfs_read(r, "%s/mp_policy", session->dir);
	if (session->mp_policy)
		session->mp_policy[strcspn(session->mp_policy, " ")] = 0;
	for (i = 0; i < NR_SETTINGS; i++) {
		n = &session->settings[i];
		n->name = setting_names[i];
		n->known = sysfs_read_number(r, &n->value, "%s/%s", session->dir, n->name);
	}
	names = sysfs_list(r, &session->nr_paths, "%s/paths", session->dir);
	session->paths = xcalloc(session->nr_paths, sizeof(*session->paths));
	for (i = 0; i < session->nr_paths; i++) {
		session->paths[i].name = text_clean(xstrdup(names[i]));
		session->paths[i].dir = xasprintf("%s/paths/%s", session->dir, names[i]);
		read_path(r, &session->paths[i]);
	}
	free_names(names);
}

static struct session *new_session(struct model *model)
{
	struct session *session;

	model->sessions = xrealloc(model->sessions, model->nr_sessions + 1,
				   sizeof(*model->sessions));
	session = &model->sessions[model->nr_sessions++];
	memset(session, 0, sizeof(*session));
	return session;
}

static struct device *new_device(struct model *model)
{
	struct device *dev;

	model->devices = xrealloc(model->devices, model->nr_devices + 1, sizeof(*model->devices));
	dev = &model->devices[model->nr_devices++];
	memset(dev, 0, sizeof(*dev));
	dev->size = -1;
	dev->server_size = -1;
	return dev;
}

static void read_sessions(const struct rnbd *r, struct model *model, enum side side)
{
	struct session *session;
	char **names;
	size_t nr, i;

	names = sysfs_list(r, &nr, "class/rtrs-%s", side_name(side));
	for (i = 0; i < nr; i++) {
		session = new_session(model);
		session->side = side;
		session->name = text_clean(xstrdup(names[i]));
		session->dir = xasprintf("class/rtrs-%s/%s", side_name(side), names[i]);
		read_session(r, session);
	}
	free_names(names);
}

/* Set the sessions of paths. Called after all sessions are added, as their array may move. */
static void join_paths(struct model *model)
{
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++)
		for (j = 0; j < model->sessions[i].nr_paths; j++)
			model->sessions[i].paths[j].session = &model->sessions[i];
}

/* See the kernel's Documentation/block/stat.rst. Discards and flushes count as writes. */
static void read_disk_stats(const struct rnbd *r, struct device *dev)
{
	u64 f[17] = { 0 };

	read_numbers(r, f, ARRAY_SIZE(f), dev->dir, "../stat");
	dev->stats = (struct io_stats) {
		.reads = f[0],
		.read_bytes = f[2] * SECTOR,
		.writes = f[4] + f[11] + f[15],
		.written_bytes = f[6] * SECTOR,
		.inflight = f[8],
		.ticks_ms = { f[3], f[7], f[14], f[16] },
	};
}

static void read_disk(const struct rnbd *r, struct device *dev, const char *name)
{
	long long n;

	dev->side = CLIENT;
	dev->name = text_clean(xstrdup(name));
	dev->dir = xasprintf("block/%s/rnbd", name);
	dev->session = sysfs_read(r, "%s/session", dev->dir);
	dev->mapping_path = sysfs_read(r, "%s/mapping_path", dev->dir);
	dev->access_mode = sysfs_read(r, "%s/access_mode", dev->dir);
	dev->state = sysfs_read(r, "%s/state", dev->dir);
	dev->wwid = sysfs_read(r, "%s/wwid", dev->dir);
	dev->uuid = sysfs_read(r, "%s/uuid", dev->dir);
	if (sysfs_read_number(r, &n, "block/%s/size", name))
		dev->size = n * SECTOR;
	if (sysfs_read_number(r, &n, "%s/server_sectors", dev->dir))
		dev->server_size = n * SECTOR;
	dev->read_only = sysfs_read_number(r, &n, "block/%s/ro", name) && n;
	read_disk_stats(r, dev);
}

/* Check whether a disk's session is in another network namespace, and so not visible here. */
static bool is_others(const struct rnbd *r, const char *disk)
{
	char *netns = sysfs_read(r, "block/%s/rnbd/netns", disk);
	bool others = netns && *netns;

	free(netns);
	return others;
}

static void read_disks(const struct rnbd *r, struct model *model)
{
	char **names;
	size_t nr, i;

	names = sysfs_list(r, &nr, "block");
	for (i = 0; i < nr; i++)
		if (starts_with(names[i], "rnbd") && sysfs_exists(r, "block/%s/rnbd", names[i]) &&
		    !is_others(r, names[i]))
			read_disk(r, new_device(model), names[i]);
	free_names(names);
}

/* Get the session of a mapping's directory. Another mapping of a disk has "<session>.<id>". */
static char *export_session(const struct model *model, const char *name)
{
	char *session = text_clean(xstrdup(name)), *dot = strrchr(session, '.');
	size_t i;

	for (i = 0; dot && i < model->nr_sessions; i++)
		if (!strcmp(model->sessions[i].name, session))
			dot = NULL;
	if (dot)
		*dot = 0;
	return session;
}

static void read_export(const struct rnbd *r, struct model *model, const char *disk,
			const char *session)
{
	struct device *dev = new_device(model);
	char *disk_dir;
	long long n;

	dev->side = SERVER;
	dev->name = text_clean(xstrdup(disk));
	dev->dir = xasprintf("class/rnbd-server/ctl/devices/%s/sessions/%s", disk, session);
	dev->session = export_session(model, session);
	dev->mapping_path = sysfs_read(r, "%s/mapping_path", dev->dir);
	dev->access_mode = sysfs_read(r, "%s/access_mode", dev->dir);
	dev->read_only = sysfs_read_number(r, &n, "%s/read_only", dev->dir) && n;
	if (sysfs_read_number(r, &n, "class/rnbd-server/ctl/devices/%s/block_dev/size", disk))
		dev->size = n * SECTOR;
	/* These are for all sessions that have the device open. */
	disk_dir = xasprintf("class/rnbd-server/ctl/devices/%s", disk);
	read_latency(r, &dev->wait, disk_dir, "wait_latency");
	read_latency(r, &dev->disk, disk_dir, "disk_latency");
	free(disk_dir);
}

static void read_exports(const struct rnbd *r, struct model *model)
{
	char **disks, **sessions;
	size_t nr, nr_sessions, i, j;

	disks = sysfs_list(r, &nr, "class/rnbd-server/ctl/devices");
	for (i = 0; i < nr; i++) {
		sessions = sysfs_list(r, &nr_sessions, "class/rnbd-server/ctl/devices/%s/sessions",
				      disks[i]);
		for (j = 0; j < nr_sessions; j++)
			read_export(r, model, disks[i], sessions[j]);
		free_names(sessions);
	}
	free_names(disks);
}

/* Read the sides to which the command applies. */
void model_read(const struct rnbd *r, struct model *model)
{
	enum side side;

	memset(model, 0, sizeof(*model));
	for (side = CLIENT; side < NR_SIDES; side++) {
		if (!r->sides[side])
			continue;
		model->loaded[side] = sysfs_exists(r, "class/rnbd-%s", side_name(side));
		read_sessions(r, model, side);
	}
	join_paths(model);
	if (r->sides[CLIENT])
		read_disks(r, model);
	if (r->sides[SERVER])
		read_exports(r, model);
}

static void free_session(struct session *session)
{
	struct path *path;
	size_t i;

	for (i = 0; i < session->nr_paths; i++) {
		path = &session->paths[i];
		free(path->name);
		free(path->dir);
		free(path->state);
		free(path->src_addr);
		free(path->dst_addr);
		free(path->hca_name);
	}
	free(session->paths);
	free(session->name);
	free(session->dir);
	free(session->mp_policy);
}

static void free_device(struct device *dev)
{
	free(dev->name);
	free(dev->dir);
	free(dev->session);
	free(dev->mapping_path);
	free(dev->access_mode);
	free(dev->state);
	free(dev->wwid);
	free(dev->uuid);
}

void model_free(struct model *model)
{
	size_t i;

	for (i = 0; i < model->nr_sessions; i++)
		free_session(&model->sessions[i]);
	free(model->sessions);
	for (i = 0; i < model->nr_devices; i++)
		free_device(&model->devices[i]);
	free(model->devices);
	memset(model, 0, sizeof(*model));
}

/* Check whether a path is connected. On the server, all paths in sysfs are, and have no state. */
bool path_connected(const struct path *path)
{
	return path->state ? !strcmp(path->state, "connected") : path->session->side == SERVER;
}

/* Make "[SRC,]DST", as it is written to add_path, of a path with a destination. */
char *path_text(const struct path *path)
{
	return xasprintf("%s%s%s", path->src_addr ? path->src_addr : "", path->src_addr ? "," : "",
			 path->dst_addr);
}

size_t paths_connected(const struct session *session)
{
	size_t i, n = 0;

	for (i = 0; i < session->nr_paths; i++)
		n += path_connected(&session->paths[i]);
	return n;
}

const char *session_state(const struct session *session)
{
	size_t n = paths_connected(session);

	if (!n)
		return "disconnected";
	return n < session->nr_paths ? "degraded" : "connected";
}

/* Find the session of a device; NULL if it does not exist any more. */
const struct session *device_session(const struct model *model, const struct device *dev)
{
	size_t i;

	for (i = 0; dev->session && i < model->nr_sessions; i++)
		if (model->sessions[i].side == dev->side &&
		    !strcmp(model->sessions[i].name, dev->session))
			return &model->sessions[i];
	return NULL;
}

/* Check whether a device belongs to a session. */
bool device_is_of(const struct device *dev, const struct session *session)
{
	return dev->side == session->side && dev->session &&
	       !strcmp(dev->session, session->name);
}

size_t session_devices(const struct model *model, const struct session *session)
{
	size_t i, n = 0;

	for (i = 0; i < model->nr_devices; i++)
		n += device_is_of(&model->devices[i], session);
	return n;
}

/* Add counters, except for ticks, which only disks have. */
void stats_add(struct io_stats *to, const struct io_stats *stats)
{
	to->reads += stats->reads;
	to->read_bytes += stats->read_bytes;
	to->writes += stats->writes;
	to->written_bytes += stats->written_bytes;
	to->inflight += stats->inflight;
	to->failed_over += stats->failed_over;
	to->reconnects += stats->reconnects;
	to->failed_reconnects += stats->failed_reconnects;
}
