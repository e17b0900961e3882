// SPDX-License-Identifier: GPL-2.0
/*
 * A drawing of this host, its devices or volumes, its paths, and the hosts at the other ends. Each
 * session has a lane: a box with its devices, and a line for each path. Sessions with a peer's
 * address in common lead to the same peer. The client is on the left.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Geometry, in pixels, as seen from this host; mirrored for the server */
enum {
	WIDTH		= 1080,
	HOST_W		= 590,	/* this host: devices, then addresses */
	LANE_X		= 12,
	LANE_W		= 400,	/* box of a session */
	ADDRESS_W	= 158,	/* column of addresses within a host */
	PEER_X		= 790,
	PEER_W		= WIDTH - PEER_X - 1,
	PATH_H		= 36,	/* a path */
	TITLE_H		= 30,	/* title of a host */
	HEAD_H		= 24,	/* title of a session */
	GAP		= 8,
};

/* A session with its devices; @session is NULL for devices whose session does not exist any more */
struct lane {
	const struct session *session;
	size_t peer;		/* sessions with the same number have the same peer */
	size_t nr_devices;
	int y, height;
};

struct drawing {
	const struct report *report;
	enum side side;
	struct lane *lanes;
	size_t nr;
};

static const struct model *model_of(const struct drawing *d)
{
	return d->report->model;
}

/* Get the left edge of something @w wide. */
static int left(const struct drawing *d, int x, int w)
{
	return d->side == SERVER ? WIDTH - x - w : x;
}

static const char *state_style(const char *state)
{
	if (!state || !strcmp(state, "open"))
		return "good";
	return strcmp(state, "closed") ? "warn" : "bad";
}

/* Draw a box. @x is not mirrored. */
static void box(const struct drawing *d, const char *style, int x, int y, int w, int h)
{
	html(d->report,
	     "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>",
	     style, x, y, w, h);
}

/* Write text, cut at the edges of its place. @x is not mirrored. */
static void put_text(const struct drawing *d, const char *style, int x, int y, int w,
		     const char *words)
{
	html(d->report, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\">", x, y, w);
	html(d->report, "<text class=\"%s\" y=\"13\">%s</text></svg>", style, words);
}

/* Write an address. The one on the left side of the drawing ends where its line begins. */
static void place_address(const struct drawing *d, const char *style, int x, int y, int w,
			  const char *words)
{
	int at = left(d, x, w);
	bool right = at < left(d, HOST_W, PEER_X - HOST_W);

	html(d->report, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\">", at, y, w);
	html(d->report, "<text class=\"%s%s\" x=\"%d\" y=\"13\">%s</text></svg>", style,
	     right ? " right" : "", right ? w : 0, words);
}

/* Check whether a device is in the lane of a session, or of no session. */
static bool is_in(const struct drawing *d, const struct device *dev, const struct session *session)
{
	if (session)
		return device_is_of(dev, session);
	return dev->side == d->side && !device_session(model_of(d), dev);
}

/* ---- devices ---- */

/* Many devices are drawn small. */
static int device_columns(const struct lane *lane)
{
	return lane->nr_devices > 24 ? 4 : lane->nr_devices > 8 ? 3 : 2;
}

static int device_height(const struct lane *lane)
{
	return lane->nr_devices > 24 ? 20 : 38;
}

static void draw_device(const struct drawing *d, const struct lane *lane, size_t nr,
			const struct device *dev)
{
	int columns = device_columns(lane), w = (LANE_W - 2 * GAP) / columns;
	int h = device_height(lane), x = left(d, LANE_X, LANE_W) + GAP + nr % columns * w;
	int y = lane->y + HEAD_H + nr / columns * (h + 4);
	const char *name = dev->side == CLIENT ? dev->name : dev->mapping_path;
	const char *other = dev->side == CLIENT ? dev->mapping_path : dev->name;
	char size[32] = "", *more;

	if (dev->size >= 0)
		format_size(d->report->r, size, sizeof(size), dev->size);
	more = xasprintf("%s%s%s%s", other ? other : "", *size ? " \302\267 " : "", size,
			 dev->read_only ? " \302\267 ro" : "");
	html(d->report, "<g class=\"device %s\"><title>%s: %s, %s</title>", state_style(dev->state),
	     name, more, dev->state ? dev->state : "open");
	box(d, "chip", x, y, w - 4, h);
	put_text(d, "name", x + 9, y + 2, w - 16, name);
	if (h > 30)
		put_text(d, "small", x + 9, y + 18, w - 16, more);
	html(d->report, "</g>\n");
	free(more);
}

static void draw_devices(const struct drawing *d, const struct lane *lane)
{
	const struct model *model = model_of(d);
	const struct device *dev = model->devices;
	size_t n = 0;

	for (; dev < model->devices + model->nr_devices; dev++)
		if (is_in(d, dev, lane->session))
			draw_device(d, lane, n++, dev);
}

/* ---- paths ---- */

/* Get the address without "ip:", which the reader does not need. */
static const char *address(const char *addr)
{
	if (!addr)
		return "source not chosen";
	return starts_with(addr, "ip:") ? addr + 3 : addr;
}

/* Describe the values that are not 0. */
static char *counters(const struct path *path)
{
	char *text, *reconnects = xstrdup("");

	if (path->stats.reconnects) {
		free(reconnects);
		reconnects = xasprintf("reconnected %llu times", path->stats.reconnects);
	}
	if (!path->stats.inflight)
		return reconnects;
	text = xasprintf("%llu in flight%s%s", path->stats.inflight, *reconnects ? ", " : "",
			 reconnects);
	free(reconnects);
	return text;
}

static void draw_line(const struct drawing *d, const struct path *path, int y)
{
	int x = left(d, HOST_W, PEER_X - HOST_W), w = PEER_X - HOST_W;
	bool up = path_connected(path);
	char *label, round[32];

	if (up && path->latency_ns > 0) {
		format_usecs(round, sizeof(round), path->latency_ns / 1e3);
		label = xasprintf("%s round trip", round);
	} else {
		label = xstrdup(up ? "connected" : "disconnected");
	}
	html(d->report, "<line class=\"path %s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>",
	     up ? "good" : "bad", x, y, x + w, y);
	html(d->report, "<circle class=\"end %s\" cx=\"%d\" cy=\"%d\" r=\"4\"/>",
	     up ? "good" : "bad", x, y);
	html(d->report, "<circle class=\"end %s\" cx=\"%d\" cy=\"%d\" r=\"4\"/>",
	     up ? "good" : "bad", x + w, y);
	html(d->report, "<text class=\"label %s\" x=\"%d\" y=\"%d\">%s</text>", up ? "" : "bad",
	     x + w / 2, y - 5, label);
	free(label);
	label = counters(path);
	if (*label)
		html(d->report, "<text class=\"label small\" x=\"%d\" y=\"%d\">%s</text>",
		     x + w / 2, y + 13, label);
	free(label);
}

static void draw_path(const struct drawing *d, const struct path *path, int y)
{
	char *port = xasprintf("%s port %lld", path->hca_name ? path->hca_name : "",
			       path->hca_port);

	html(d->report, "<g><title>%s: %s</title>", path->name,
	     path_connected(path) ? "connected" : "disconnected");
	place_address(d, "name", HOST_W - ADDRESS_W - 10, y - 17, ADDRESS_W,
		      address(path->src_addr));
	place_address(d, "small", HOST_W - ADDRESS_W - 10, y, ADDRESS_W,
		      path->hca_name ? port : "no RDMA device");
	place_address(d, "name", PEER_X + 12, y - 9, PEER_W - 20, address(path->dst_addr));
	draw_line(d, path, y);
	html(d->report, "</g>\n");
	free(port);
}

static void draw_lane(const struct drawing *d, const struct lane *lane)
{
	const struct session *session = lane->session;
	int x = left(d, LANE_X, LANE_W);
	const char *style = "good";
	char *title;
	size_t i;

	if (!session)
		style = "bad";
	else if (paths_connected(session) < session->nr_paths || !session->nr_paths)
		style = paths_connected(session) ? "warn" : "bad";
	title = session ? xasprintf("session %s", session->name) : xstrdup("session is gone");
	html(d->report, "<g class=\"lane %s\"><title>%s</title>", style, title);
	box(d, "session", x, lane->y, LANE_W, lane->height);
	put_text(d, "title", x + GAP, lane->y + 3, LANE_W - 2 * GAP, title);
	html(d->report, "</g>\n");
	free(title);
	draw_devices(d, lane);
	for (i = 0; session && i < session->nr_paths; i++)
		draw_path(d, &session->paths[i], lane->y + PATH_H / 2 + i * PATH_H + 4);
	if (session && !session->nr_paths)
		html(d->report, "<text class=\"label bad\" x=\"%d\" y=\"%d\">no path</text>",
		     left(d, HOST_W, PEER_X - HOST_W) + (PEER_X - HOST_W) / 2, lane->y + 20);
}

/* ---- layout ---- */

static bool share_address(const struct session *a, const struct session *b)
{
	size_t i, j;

	for (i = 0; i < a->nr_paths; i++)
		for (j = 0; j < b->nr_paths; j++)
			if (a->paths[i].dst_addr && b->paths[j].dst_addr &&
			    !strcmp(a->paths[i].dst_addr, b->paths[j].dst_addr))
				return true;
	return false;
}

/* Give a new lane its peer. Lanes of peers that turn out to be the same one are merged. */
static void find_peer(struct drawing *d, struct lane *lane)
{
	struct lane *other, *l;
	size_t from;

	lane->peer = d->nr;
	for (other = d->lanes; lane->session && other < lane; other++) {
		if (other->peer == lane->peer || !share_address(other->session, lane->session))
			continue;
		from = lane->peer;
		for (l = d->lanes; l <= lane; l++)
			if (l->peer == from)
				l->peer = other->peer;
	}
}

static void add_lane(struct drawing *d, const struct session *session)
{
	const struct model *model = model_of(d);
	struct lane *lane;
	int devices, paths;
	size_t i;

	d->lanes = xrealloc(d->lanes, d->nr + 1, sizeof(*d->lanes));
	lane = &d->lanes[d->nr];
	*lane = (struct lane){ .session = session };
	for (i = 0; i < model->nr_devices; i++)
		lane->nr_devices += is_in(d, &model->devices[i], session);
	if (!session && !lane->nr_devices)
		return;
	find_peer(d, lane);
	devices = (lane->nr_devices + device_columns(lane) - 1) / device_columns(lane);
	devices = HEAD_H + devices * (device_height(lane) + 4);
	paths = session ? session->nr_paths * PATH_H + GAP : 0;
	lane->height = devices > paths ? devices : paths;
	lane->height = lane->height > HEAD_H + GAP ? lane->height + 4 : HEAD_H + GAP;
	d->nr++;
}

/* Order lanes by peers, and lanes of the same peer as in the model. */
static int compare_lanes(const void *a, const void *b)
{
	const struct lane *one = a, *two = b;

	if (one->peer != two->peer)
		return one->peer < two->peer ? -1 : 1;
	return (one->session > two->session) - (one->session < two->session);
}

/* Place the lanes. Returns the height of the drawing. */
static int place_lanes(struct drawing *d)
{
	int y = TITLE_H;
	size_t i;

	qsort(d->lanes, d->nr, sizeof(*d->lanes), compare_lanes);
	for (i = 0; i < d->nr; i++) {
		if (i && d->lanes[i].peer != d->lanes[i - 1].peer)
			y += TITLE_H;
		d->lanes[i].y = y;
		y += d->lanes[i].height + GAP;
	}
	return y + 4;
}

static void draw_hosts(const struct drawing *d, const char *name, int height)
{
	const struct lane *lane = d->lanes, *last, *end = d->lanes + d->nr;
	int x = left(d, PEER_X, PEER_W), top;

	box(d, "host", left(d, 1, HOST_W - 1), 1, HOST_W - 1, height - 2);
	put_text(d, "title", left(d, LANE_X, HOST_W - 24), 7, HOST_W - 24, name);
	for (; lane < end; lane = last + 1) {
		for (last = lane; last + 1 < end && last[1].peer == lane->peer;)
			last++;
		top = lane->y - TITLE_H + 4;
		if (!lane->session || !lane->session->nr_paths)
			continue;
		box(d, "host", x, top, PEER_W, last->y + last->height - top + 4);
		put_text(d, "title", x + 12, top + 5, PEER_W - 20,
			 d->side == CLIENT ? "server" : "client");
	}
}

void report_drawing(const struct report *report, enum side side)
{
	struct drawing d = { .report = report, .side = side };
	const struct model *model = report->model;
	char *name, *host;
	int height;
	size_t i;

	for (i = 0; i < model->nr_sessions; i++)
		if (model->sessions[i].side == side)
			add_lane(&d, &model->sessions[i]);
	add_lane(&d, NULL);
	if (!d.nr) {
		html(report, "<p class=\"none\">No session.</p>\n");
		free(d.lanes);
		return;
	}
	height = place_lanes(&d);
	host = report_host();
	name = xasprintf("%s \302\267 %s", host, side_name(side));
	html(report,
	     "<svg class=\"drawing\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Topology\">\n",
	     WIDTH, height);
	draw_hosts(&d, name, height);
	for (i = 0; i < d.nr; i++)
		draw_lane(&d, &d.lanes[i]);
	html(report, "</svg>\n");
	free(name);
	free(host);
	free(d.lanes);
}
