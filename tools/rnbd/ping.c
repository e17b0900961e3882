// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd ping: prints the round-trip time of heartbeats on each path, and of reads of a disk
 *
 * The driver measures a heartbeat each hb_interval_ms. For a path, each new measurement is printed,
 * or that a heartbeat is missing. The reads are sent by the tool, on any path.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rnbd.h"

/* Large enough for any disk's blocks */
#define READ_SIZE 4096
/* Interval of heartbeats if the driver doesn't report it */
#define HB_INTERVAL_S 5
/* Fraction of the interval by which a heartbeat may be late */
#define HB_LATE 0.5

/* A path or a disk, and its results */
struct target {
	const char *type;
	char *name;
	u64 sent, answered;
	/* For a path: number of heartbeats, and when this number was first read */
	u64 heartbeats;
	double heard_at;
	/* When the last heartbeat arrived or was due; the next one is due an interval later. */
	double due_from;
	double min_us, max_us, sum_us;
};

struct ping {
	const struct rnbd *r;
	const char *session;
	struct target *targets;
	size_t nr;
	bool has_disk;
	struct disk disk;
	void *buf;
};

static struct target *new_target(struct ping *p, const char *type, const char *name)
{
	struct target *t;

	p->targets = xrealloc(p->targets, p->nr + 1, sizeof(*p->targets));
	t = &p->targets[p->nr++];
	*t = (struct target){ .type = type, .name = xstrdup(name), .min_us = INFINITY };
	return t;
}

static void add_path(struct ping *p, const struct path *path)
{
	struct target *t = new_target(p, "path", path->name);

	t->heartbeats = histogram_total(&path->heartbeats);
	t->heard_at = now();
	t->due_from = t->heard_at;
}

static void answer(const struct ping *p, struct target *t, double us)
{
	char text[32];

	t->sent++;
	t->answered++;
	t->sum_us += us;
	t->min_us = fmin(t->min_us, us);
	t->max_us = fmax(t->max_us, us);
	format_usecs(text, sizeof(text), us);
	if (!p->r->json)
		printf("%s %s: seq=%llu time=%s\n", t->type, t->name, t->sent, text);
}

static void no_answer(const struct ping *p, struct target *t, const char *why)
{
	t->sent++;
	if (!p->r->json)
		printf("%s %s: seq=%llu %s\n", t->type, t->name, t->sent, why);
}

static const struct path *path_now(const struct model *model, const char *session,
				   const char *name)
{
	const struct session *s;
	size_t i, j;

	for (i = 0; i < model->nr_sessions; i++) {
		s = &model->sessions[i];
		for (j = 0; !strcmp(s->name, session) && j < s->nr_paths; j++)
			if (!strcmp(s->paths[j].name, name))
				return &s->paths[j];
	}
	return NULL;
}

/*
 * Check for a new heartbeat. Without a count, which some drivers lack, each measurement counts as
 * a new one. A reset of the statistics sets the count to 0.
 */
static bool heard(struct target *t, const struct path *path)
{
	u64 heartbeats = histogram_total(&path->heartbeats), before = t->heartbeats;

	t->heartbeats = heartbeats;
	if (path->latency_ns <= 0 ||
	    (path->heartbeats.nr && (heartbeats == before || !heartbeats)))
		return false;
	t->heard_at = now();
	t->due_from = t->heard_at;
	return true;
}

/* Check whether a heartbeat is overdue. Returns true once for each missing heartbeat. */
static bool missed(struct target *t, const struct path *path)
{
	const struct number *ms = &path->session->settings[HB_INTERVAL_MS];
	double interval = ms->known && ms->value > 0 ? ms->value / 1e3 : HB_INTERVAL_S;

	if (now() - t->due_from < interval * (1 + HB_LATE))
		return false;
	t->due_from += interval;
	return true;
}

static void ping_path(const struct ping *p, const struct model *model, struct target *t)
{
	const struct path *path = path_now(model, p->session, t->name);
	char silence[64];

	if (!path) {
		no_answer(p, t, "is gone");
	} else if (!path_connected(path)) {
		no_answer(p, t, "is disconnected");
		t->due_from = now();
	} else if (heard(t, path)) {
		answer(p, t, path->latency_ns / 1e3);
	} else if (missed(t, path)) {
		snprintf(silence, sizeof(silence), "no heartbeat since %.0f s",
			 now() - t->heard_at);
		no_answer(p, t, silence);
	}
}

static void ping_disk(const struct ping *p, struct target *t)
{
	double us = disk_read_us(&p->disk, p->buf, READ_SIZE, 0);

	if (us < 0)
		no_answer(p, t, strerror(-us));
	else
		answer(p, t, us);
}

/* Ping all targets; with @again, only those without a result so far. */
static void ping_all(const struct ping *p, bool again)
{
	struct model model;
	size_t i;

	model_read(p->r, &model);
	for (i = 0; i < p->nr; i++) {
		if (again && p->targets[i].sent)
			continue;
		if (!strcmp(p->targets[i].type, "path"))
			ping_path(p, &model, &p->targets[i]);
		else
			ping_disk(p, &p->targets[i]);
	}
	model_free(&model);
	fflush(stdout);
}

static struct json_object *target_json(const struct target *t)
{
	struct json_object *to = json_new();

	json_add_string(to, "type", t->type);
	json_add_string(to, "name", t->name);
	json_add_int(to, "sent", t->sent);
	json_add_int(to, "answered", t->answered);
	json_add_double(to, "min_us", t->answered ? t->min_us : NAN);
	json_add_double(to, "mean_us", t->answered ? t->sum_us / t->answered : NAN);
	json_add_double(to, "max_us", t->answered ? t->max_us : NAN);
	return to;
}

static void print_target(const struct target *t)
{
	char min[32], mean[32], max[32];

	printf("%s %s: %llu sent, %llu answered", t->type, t->name, t->sent, t->answered);
	if (t->answered) {
		format_usecs(min, sizeof(min), t->min_us);
		format_usecs(mean, sizeof(mean), t->sum_us / t->answered);
		format_usecs(max, sizeof(max), t->max_us);
		printf(", min/mean/max %s/%s/%s", min, mean, max);
	}
	putchar('\n');
}

static void print_summary(const struct ping *p)
{
	struct json_object *document, *targets;
	size_t i;

	if (!p->r->json) {
		putchar('\n');
		for (i = 0; i < p->nr; i++)
			print_target(&p->targets[i]);
		return;
	}
	document = json_new();
	targets = json_new_array();
	for (i = 0; i < p->nr; i++)
		json_append(targets, target_json(&p->targets[i]));
	json_add_string(document, "session", p->session);
	json_add(document, "targets", targets);
	json_print(document);
	json_object_put(document);
}

/* Find the first open device of a session. */
static const struct device *any_device(const struct model *model, const char *session)
{
	const struct device *dev;
	size_t i;

	for (i = 0; i < model->nr_devices; i++) {
		dev = &model->devices[i];
		if (dev->state && !strcmp(dev->state, "open") && dev->session &&
		    !strcmp(dev->session, session))
			return dev;
	}
	return NULL;
}

static int add_disk(struct ping *p, const struct device *dev)
{
	int ret;

	if (dev->state && strcmp(dev->state, "open"))
		return report_failed("%s is %s; see rnbd health", dev->name, dev->state);
	ret = disk_open(p->r, dev->name, &p->disk);
	if (ret)
		return ret;
	p->has_disk = true;
	p->buf = disk_buffer(READ_SIZE);
	new_target(p, "disk", dev->name);
	return RNBD_OK;
}

static int add_session(struct ping *p, const struct model *model, const struct session *session,
		       const struct device *dev)
{
	size_t i;

	for (i = 0; i < session->nr_paths; i++)
		add_path(p, &session->paths[i]);
	if (!dev)
		dev = any_device(model, session->name);
	return dev ? add_disk(p, dev) : RNBD_OK;
}

/* Add a device and its session's paths, a session's paths and one of its devices, or a path. */
static int add_targets(struct ping *p, const struct model *model, const struct found *found)
{
	const struct session *session = found->session;

	if (found->path) {
		p->session = found->path->session->name;
		add_path(p, found->path);
		return RNBD_OK;
	}
	if (found->device)
		session = device_session(model, found->device);
	if (!session)
		return report_not_found("the session of %s is gone", found->device->name);
	p->session = session->name;
	return add_session(p, model, session, found->device);
}

static bool all_sent(const struct ping *p)
{
	size_t i;

	for (i = 0; i < p->nr; i++)
		if (!p->targets[i].sent)
			return false;
	return true;
}

/* Ping until interrupted, or @count times. Returns RNBD_FAILED if a target never answered. */
static int go_on(struct ping *p)
{
	long round, count = p->r->count;
	size_t i;

	stop_on_signals();
	for (round = 0; !count || round < count || !all_sent(p); round++) {
		/* Sleep first: heartbeats from before the start don't count. */
		nap(p->r->interval);
		if (stopped())
			break;
		ping_all(p, count && round >= count);
	}
	print_summary(p);
	for (i = 0; i < p->nr; i++)
		if (p->targets[i].sent && !p->targets[i].answered)
			return RNBD_FAILED;
	return RNBD_OK;
}

static void free_ping(struct ping *p)
{
	size_t i;

	for (i = 0; i < p->nr; i++)
		free(p->targets[i].name);
	free(p->targets);
	free(p->buf);
	if (p->has_disk)
		disk_close(&p->disk);
}

/* Arguments: NAME */
int cmd_ping(struct rnbd *r, int argc, char **argv)
{
	struct ping p = { .r = r };
	struct found found;
	struct model model;
	int ret;

	(void)argc;
	ret = need_model(r, &model);
	if (!ret)
		ret = find_any(&model, argv[0], &found);
	if (!ret)
		ret = add_targets(&p, &model, &found);
	if (!ret)
		ret = go_on(&p);
	free_ping(&p);
	model_free(&model);
	return ret;
}
