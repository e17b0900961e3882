// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd top: prints the rates of stat on a screen that is refreshed. Devices come first, then
 * sessions, each with its paths; busy ones come first. 80 columns suffice.
 */
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "rnbd.h"

#define NAME_SIZE		512
/* Width of the columns other than the names, with a blank before each */
#define OTHER_COLUMNS		55
#define LEAST_NAME_COLUMNS	10

enum order { BY_IOPS, BY_BYTES, BY_LATENCY, BY_NAME, NR_ORDERS };

static const struct {
	char key;
	const char *name;
} orders[NR_ORDERS] = {
	[BY_IOPS]	= { 'i', "I/O" },
	[BY_BYTES]	= { 'b', "bytes" },
	[BY_LATENCY]	= { 'l', "latency" },
	[BY_NAME]	= { 'n', "name" },
};

/* Rows of a device, or of a session and its paths */
struct block {
	struct json_object *rows;
	size_t first, nr;
	bool is_session;
	double key;
	const char *name;
};

struct top {
	const struct rnbd *r;
	enum order order;
	bool help, terminal, entered;
	struct termios saved;
	sigset_t unblocked;
	int width, height;
	double interval;
};

/* ---- rows ---- */

static const char *row_text(struct json_object *row, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(row, key, &value) || !value)
		return "";
	return json_object_get_string(value);
}

static double row_number(struct json_object *row, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(row, key, &value) ? json_object_get_double(value) : 0;
}

/* Get a latency; NULL if it is unknown. */
static struct json_object *row_latency(struct json_object *row, const char *key)
{
	struct json_object *latency, *value;

	if (!json_object_object_get_ex(row, "latency_us", &latency) ||
	    !json_object_object_get_ex(latency, key, &value))
		return NULL;
	return value;
}

static bool row_is(struct json_object *row, const char *type)
{
	return !strcmp(row_text(row, "type"), type);
}

static double row_key(struct json_object *row, enum order order)
{
	switch (order) {
	case BY_IOPS:
		return row_number(row, "reads_s") + row_number(row, "writes_s");
	case BY_BYTES:
		return row_number(row, "read_bytes_s") + row_number(row, "written_bytes_s");
	case BY_LATENCY:
		return json_object_get_double(row_latency(row, "mean"));
	default:
		return 0;
	}
}

/* ---- order ---- */

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->is_session != y->is_session)
		return x->is_session - y->is_session;
	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return strverscmp(x->name, y->name);
}

/* Make sorted blocks of the rows. Returns the number of blocks. */
static size_t make_blocks(struct json_object *rows, enum order order, struct block *blocks)
{
	size_t i, nr = 0;
	struct json_object *row;

	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		if (nr && row_is(row, "path")) {
			blocks[nr - 1].nr++;
			continue;
		}
		blocks[nr++] = (struct block){
			.rows = rows, .first = i, .nr = 1, .is_session = row_is(row, "session"),
			.key = row_key(row, order), .name = row_text(row, "name"),
		};
	}
	qsort(blocks, nr, sizeof(*blocks), compare_blocks);
	return nr;
}

static struct json_object *block_row(const struct block *block, size_t i)
{
	return json_object_array_get_idx(block->rows, block->first + i);
}

/* ---- drawing ---- */

/* Print a line, cut at the edge of the screen. Erases the rest of the screen's line. */
static void put_line(const struct top *top, char *line)
{
	text_clip(line, top->width);
	fputs(line, stdout);
	fputs(top->terminal ? "\033[K\n" : "\n", stdout);
}

/* Get the name of a row. For a path, it is only the address of the other end, which is shorter. */
static void short_name(char *text, size_t room, struct json_object *row)
{
	const char *name = row_text(row, "name"), *at = strchr(name, '@');
	bool server = !strcmp(row_text(row, "side"), side_name(SERVER));

	if (row_is(row, "path")) {
		name = at ? at + 1 : name;
		snprintf(text, room, "%s", starts_with(name, "ip:") ? name + 3 : name);
	} else {
		snprintf(text, room, "%s%s", name, server ? " (server)" : "");
	}
}

/* Get the width of names. On a narrow screen, columns to the right are cut off. */
static int name_columns(const struct top *top)
{
	int columns = top->width - OTHER_COLUMNS;

	return columns < LEAST_NAME_COLUMNS ? LEAST_NAME_COLUMNS : columns;
}

/* Shorten a name at its end; an address at its beginning, as addresses differ at the end. */
static void fit_name(char *name, size_t columns, bool is_address)
{
	const char *end = is_address ? text_end(name, columns) : name;

	memmove(name, end, strlen(end) + 1);
	text_clip(name, columns);
}

static const char *short_state(struct json_object *row)
{
	const char *state = row_text(row, "state");

	if (!strcmp(state, "connected"))
		return "up";
	if (!strcmp(state, "disconnected"))
		return "DOWN";
	if (!strcmp(state, "degraded"))
		return "PARTLY";
	if (!strcmp(state, "closed"))
		return "CLOSED";
	return state;
}

static void format_latency(char *text, size_t room, struct json_object *value)
{
	if (value)
		format_usecs(text, room, json_object_get_double(value));
	else
		snprintf(text, room, "-");
}

static void draw_row(const struct top *top, struct json_object *row)
{
	char name[NAME_SIZE], *line;
	char read[16], written[16], mean[16], p99[16];
	int names = name_columns(top), indent = row_is(row, "path") ? 2 : 0;

	short_name(name, sizeof(name), row);
	format_size(top->r, read, sizeof(read), row_number(row, "read_bytes_s"));
	format_size(top->r, written, sizeof(written), row_number(row, "written_bytes_s"));
	format_latency(mean, sizeof(mean), row_latency(row, "mean"));
	format_latency(p99, sizeof(p99), row_latency(row, "p99"));
	fit_name(name, names - indent, indent);
	line = xasprintf("%*s%s%*s %-6.6s %6.0f %6.0f %5s %5s %4.0f %7s %7s", indent, "", name,
			 names - indent - (int)text_columns(name), "", short_state(row),
			 row_number(row, "reads_s"), row_number(row, "writes_s"), read, written,
			 row_number(row, "in_flight"), mean, p99);
	put_line(top, line);
	free(line);
}

static void draw_heading(const struct top *top, const char *what)
{
	int names = name_columns(top);
	char *line;

	line = xasprintf("%-*.*s %-6s %6s %6s %5s %5s %4s %7s %7s", names, names, what,
			 "STATE", "R/s", "W/s", "RB/s", "WB/s", "INFL", "MEAN", "P99");
	if (top->terminal)
		fputs("\033[7m", stdout);
	put_line(top, line);
	free(line);
	if (top->terminal)
		fputs("\033[m", stdout);
}

static void draw_title(const struct top *top)
{
	char host[64] = "?", clock[16], *line;
	time_t t = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&t, &tm));
	line = xasprintf("rnbd top - %.20s - %s - every %.1fs - by %s - h help, q quit", host,
			 clock, top->interval, orders[top->order].name);
	put_line(top, line);
	free(line);
}

static void draw_help(const struct top *top)
{
	char *text = xasprintf("\n%s\n%s\n%s",
			       "i, b, l, n   sort by I/O a second, bytes a second, latency, name",
			       "+, -         refresh less often, more often",
			       "h, q         this help, quit"), *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		put_line(top, line);
	free(text);
}

/* Draw as many lines as fit on the screen, except for the last one, of the cursor. */
static void draw_blocks(const struct top *top, const struct block *blocks, size_t nr)
{
	int lines = top->height - 2;
	bool sessions = false;
	size_t i, j;

	if (nr && !blocks[0].is_session && --lines > 0)
		draw_heading(top, "DEVICE");
	for (i = 0; i < nr; i++) {
		if (blocks[i].is_session && !sessions && --lines > 0)
			draw_heading(top, "SESSION, PATHS");
		sessions = blocks[i].is_session;
		for (j = 0; j < blocks[i].nr; j++)
			if (--lines > 0)
				draw_row(top, block_row(&blocks[i], j));
	}
}

static void draw(const struct top *top, struct json_object *rows)
{
	struct block *blocks = xcalloc(json_object_array_length(rows), sizeof(*blocks));
	size_t nr = make_blocks(rows, top->order, blocks);

	if (top->terminal)
		fputs("\033[H", stdout);
	draw_title(top);
	if (top->help)
		draw_help(top);
	else
		draw_blocks(top, blocks, nr);
	if (top->terminal)
		fputs("\033[J", stdout);
	fflush(stdout);
	free(blocks);
}

/* ---- the terminal ---- */

static void measure(struct top *top)
{
	struct winsize size;

	top->width = 80;
	top->height = 10000;
	if (!top->terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	if (size.ws_col)
		top->width = size.ws_col;
	if (size.ws_row)
		top->height = size.ws_row;
}

/* State of the terminal, to restore it at exit */
static struct top *on_screen;
/* Set by a signal handler */
static sig_atomic_t to_stop, continued;
/* Signals that are blocked except in ppoll(), so that none is missed before the call */
static const int signals[] = { SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void leave(void)
{
	struct top *top = on_screen;

	if (!top || !top->entered)
		return;
	top->entered = false;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &top->saved);
}

/* Switch to the alternate screen, and to input of single keys without echo. */
static void enter(struct top *top)
{
	struct termios raw = top->saved;

	if (!top->terminal)
		return;
	raw.c_lflag &= ~(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
	top->entered = true;
}

static void on_stop(int sig)
{
	__atomic_store_n(sig == SIGTSTP ? &to_stop : &continued, 1, __ATOMIC_RELAXED);
}

static void block_signals(struct top *top)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &top->unblocked);
}

static void open_screen(struct top *top)
{
	struct sigaction action = { .sa_handler = on_stop };

	top->terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
			!tcgetattr(STDIN_FILENO, &top->saved);
	if (!top->terminal)
		return;
	on_screen = top;
	atexit(leave);
	sigaction(SIGTSTP, &action, NULL);
	sigaction(SIGCONT, &action, NULL);
	block_signals(top);
	enter(top);
}

/* Restore the terminal for the shell while the process is stopped. */
static void obey_stop(struct top *top)
{
	sigset_t blocked;

	if (__atomic_exchange_n(&to_stop, 0, __ATOMIC_RELAXED)) {
		leave();
		sigprocmask(SIG_SETMASK, &top->unblocked, &blocked);
		raise(SIGSTOP);
		sigprocmask(SIG_SETMASK, &blocked, NULL);
	}
	if (__atomic_exchange_n(&continued, 0, __ATOMIC_RELAXED))
		enter(top);
}

/* Handle a key. Returns false for the key to quit. */
static bool take_key(struct top *top, char key)
{
	size_t i;

	for (i = 0; i < NR_ORDERS; i++)
		if (key == orders[i].key)
			top->order = i;
	if (key == '+' && top->interval < 60)
		top->interval *= 2;
	if (key == '-' && top->interval > 0.2)
		top->interval /= 2;
	top->help = key == 'h' && !top->help;
	return key != 'q';
}

/* Wait until the time of the next sample, or for one key. Returns false to quit. */
static bool wait_for_key(struct top *top, double until)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	double left = until - now();
	struct timespec timeout;
	char key;

	if (!top->terminal) {
		nap(left);
		return true;
	}
	left = left < 0 ? 0 : left;
	timeout.tv_sec = left;
	timeout.tv_nsec = (left - timeout.tv_sec) * 1e9;
	if (ppoll(&in, 1, &timeout, &top->unblocked) <= 0)
		return true;
	return read(STDIN_FILENO, &key, 1) == 1 && take_key(top, key);
}

/* Wait until the next sample, and handle keys at once. Returns false to quit. */
static bool wait_and_take_keys(struct top *top, struct json_object *rows)
{
	double until = now() + top->interval;
	bool go_on = true;

	while (go_on && !stopped() && now() < until) {
		go_on = wait_for_key(top, until);
		obey_stop(top);
		if (go_on && now() < until)
			draw(top, rows);
	}
	return go_on;
}

static void refresh(struct top *top, struct sample *before)
{
	struct json_object *rows;
	struct sample after;
	bool go_on = true;
	long left = top->r->count;

	sample_take(top->r, &after);
	rows = sample_rates(before, &after);
	while (go_on && !stopped()) {
		measure(top);
		draw(top, rows);
		if (left && !--left)
			break;
		go_on = wait_and_take_keys(top, rows);
		model_free(&before->model);
		*before = after;
		sample_take(top->r, &after);
		json_object_put(rows);
		rows = sample_rates(before, &after);
	}
	json_object_put(rows);
	model_free(&after.model);
}

int cmd_top(struct rnbd *r, int argc, char **argv)
{
	struct top top = { .r = r, .interval = r->interval };
	struct sample before;
	int ret;

	(void)argc;
	(void)argv;
	sample_take(r, &before);
	ret = need_module(r, &before.model);
	if (!ret) {
		/* The first interval is short, to show rates soon. */
		nap(0.2);
		stop_on_signals();
		open_screen(&top);
		refresh(&top, &before);
		leave();
		on_screen = NULL;
	}
	model_free(&before.model);
	return ret;
}
